//! What the smallest model does not pretend to be able to do.

use super::{azera, lines};

#[test]
fn the_smallest_model_begins_honestly_where_it_cannot_do_what_is_asked() {
    let scratch = tempfile::tempdir().expect("a folder");
    let said =
        "Tell me a story about a fox.\nWhat's 14 times 3?\nRemind me tomorrow at 7 please\nMy cat is called Brioche.\n";
    let events = lines(&azera(scratch.path(), &["chat", "--json", "--model", "smollm2-135m", "--seed", "1"], said));
    let turns = events.iter().filter(|event| event["type"] == "reply");
    let replies: Vec<&str> = turns.filter_map(|turn| turn["text"].as_str()).collect();
    let [story, sum, deed, talk] = replies[..] else { panic!("{events:?}") };
    for (declined, beginning) in
        [(story, "I can't tell stories"), (sum, "I'm no good at sums"), (deed, "I can't do that")]
    {
        let is_one_sentence = declined.ends_with(['.', '!']) && declined.matches(['.', '!', '?']).count() == 1;
        assert!(declined.starts_with(beginning) && is_one_sentence, "{declined}");
    }
    assert!(!talk.starts_with("I can't"), "{talk}");
}

#[test]
fn the_smallest_model_says_in_the_persons_language_that_it_speaks_only_english() {
    let scratch = tempfile::tempdir().expect("a folder");
    let said = "Ich bin gerade erst nach Hause gekommen und ziemlich müde.\nMy cat is called Brioche.\n\
                Meine Katze schläft heute den ganzen Tag auf dem Sofa.\n";
    let events = lines(&azera(scratch.path(), &["chat", "--json", "--model", "smollm2-135m", "--seed", "1"], said));
    let turns = events.iter().filter(|event| event["type"] == "reply");
    let replies: Vec<&str> = turns.filter_map(|turn| turn["text"].as_str()).collect();
    let [german, english, again] = replies[..] else { panic!("{events:?}") };
    assert_eq!(german, "Tut mir leid, ich spreche nur Englisch. Schreib mir bitte auf Englisch.");
    assert!(![english, again].iter().any(|reply| reply.contains("Englisch")), "{english} / {again}");
}
