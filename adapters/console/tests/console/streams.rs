//! Replies whose streamed text is not the reply.

use azera_adapter_console::Format;

use crate::{talk, with_ids_hidden};

#[tokio::test]
async fn retracted_text_is_marked_and_the_reply_shown_whole() {
    let session = talk(Format::Terminal { colour: false }, "hello\nretract\n").await;
    insta::assert_snapshot!(session.out, @"
    This is Azera.
    Azera › **You** said:
    hello

    Azera › They want
    (The text above was thinking, not the reply.)
    Azera › **You** said:
    retract
    ");
    assert_eq!(talk(Format::Plain, "retract\n").await.out, "**You** said:\nretract\n");
}

/// Whoever forgot it wants to hear no more of it.
#[tokio::test]
async fn a_withdrawn_reply_ends_without_an_error() {
    let session = talk(Format::Terminal { colour: false }, "hello\nforget\n").await;
    insta::assert_snapshot!(session.out, @"
    This is Azera.
    Azera › **You** said:
    hello

    Azera › I was ab
    (The text above is no reply.)
    (no answer: the message was forgotten)
    ");
    let session = talk(Format::Plain, "forget\n").await;
    assert_eq!((session.out.as_str(), session.err.as_str(), session.summary.failed), ("", "", 0));
    insta::assert_snapshot!(with_ids_hidden(&talk(Format::Json, "forget\n").await.out), @r#"
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"content","text":"I was ab"}
    {"chat":"console:ann:main","reply":"console:ID~r0","type":"withdrawn"}
    {"type":"silent","to":"console:ID","chat":"console:ann:main","why":"the message was forgotten"}
    "#);
}

#[tokio::test]
async fn a_failure_of_an_earlier_message_hides_none_of_the_present_one() {
    for format in [Format::Plain, Format::Terminal { colour: false }] {
        let session = talk(format, "fail again\n").await;
        let shown = session.out + &session.err;
        let found = ["the model is gone", "too many messages are waiting"].map(|error| shown.matches(error).count());
        assert_eq!(found, [1, 1], "{format:?}: {shown}");
    }
}
