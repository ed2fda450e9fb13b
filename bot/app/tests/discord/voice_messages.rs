//! Voice messages: spoken questions, and spoken answers beside the text.

use std::path::Path;
use std::sync::Arc;

use azera_fake_discord::FakeDiscord;
use serde_json::Value;

use crate::bot::Bot;
use crate::commands::square;
use crate::model::Model;
use crate::{answered_for_good, as_described, fake};

/// The answer to a question about the garden.
const ANSWER: &str = "The garden opens at nine in the morning.";

/// Returns a bot whose model answers questions about the garden.
fn bot(fake: &FakeDiscord) -> (Bot, Model) {
    let model = Model::start(Arc::new(|body: &Value| {
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        let asked = last.and_then(|last| last["content"].as_str()).unwrap_or_default().to_lowercase();
        let answer = if asked.contains("garden") { ANSWER } else { "What do you mean?" };
        (answer.to_owned(), String::new())
    }));
    let bot = Bot::new(fake, Some(&model)).with_even_voice().with("AZERA__VOICE__SPEECH_MODEL", "whisper-tiny.en");
    (bot, model)
}

/// Runs a command of the binary and returns what it prints.
#[track_caller]
fn output(bot: &Bot, arguments: &[&str]) -> String {
    let output = bot.command(arguments).output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns words as a voice message. Without liveliness, the same words always sound the same.
fn spoken(bot: &Bot, folder: &Path, words: &str) -> Vec<u8> {
    let file = folder.join("question.ogg");
    output(bot, &["say", "--liveliness", "0", "--out", &file.to_string_lossy(), words]);
    std::fs::read(file).expect("the file")
}

/// Waits for the sound beside the answer to a question, and returns its words in lower case.
#[track_caller]
fn heard(fake: &FakeDiscord, bot: &Bot, folder: &Path, channel: u64, question: u64) -> String {
    let file = fake.wait("the sound of the answer", |world| {
        let answers: Vec<u64> =
            world.answers(channel, question).iter().filter_map(|it| it["id"].as_str()?.parse().ok()).collect();
        answers.into_iter().find_map(|id| world.files_of(channel, id).into_iter().next())
    });
    assert_eq!(file.0, "voice-message.ogg");
    let path = folder.join("answer.ogg");
    std::fs::write(&path, file.1).expect("a file");
    output(bot, &["transcribe", &path.to_string_lossy()]).to_lowercase()
}

#[test]
fn a_spoken_question_gets_an_answer_in_text_and_sound() {
    let (fake, scratch) = (fake(), tempfile::tempdir().expect("a folder"));
    let ([_, bob, _], square) = square(&fake);
    let dm = fake.world(|world| world.dm(bob));
    let (mut bot, _model) = bot(&fake);
    let file = spoken(&bot, scratch.path(), "When does the garden open?");
    bot.start(&fake);
    // What people say to each other is not heard.
    let aside = fake.world(|world| world.speak(square, bob, &file, 1.5));
    let question = fake.world(|world| world.speak(dm, bob, &file, 1.5));
    answered_for_good(&fake, dm, question, ANSWER);
    let words = heard(&fake, &bot, scratch.path(), dm, question);
    assert!(words.contains("garden") && words.contains("morning"), "{words}");
    assert!(fake.world(|world| world.answers(square, aside).is_empty()));
    // A written question gets text alone, and text and sound go with the question.
    let written = fake.world(|world| world.say(dm, bob, "And when does the garden close?"));
    answered_for_good(&fake, dm, written, ANSWER);
    fake.world(|world| world.delete(dm, question));
    fake.wait("text and sound to go", |world| world.answers(dm, question).is_empty().then_some(()));
    let silent = fake.world(|world| {
        let answers = world.answers(dm, written);
        answers.iter().all(|answer| answer["attachments"].as_array().is_none_or(Vec::is_empty))
    });
    assert!(silent);
    as_described(&fake);
}

#[test]
fn without_a_speech_model_a_voice_message_gets_a_plain_answer() {
    let (fake, scratch) = (fake(), tempfile::tempdir().expect("a folder"));
    let ([_, bob, _], _) = square(&fake);
    let dm = fake.world(|world| world.dm(bob));
    let (bot, _model) = bot(&fake);
    let file = spoken(&bot, scratch.path(), "When does the garden open?");
    let mut bot = bot.with("AZERA__VOICE__SPEECH_MODEL", "whisper-base");
    bot.start(&fake);
    bot.logs("`azera models pull whisper-base` fetches it");
    let question = fake.world(|world| world.speak(dm, bob, &file, 1.5));
    let answer =
        "I cannot listen to voice messages here, because no speech model is set up. Please write to me instead.";
    answered_for_good(&fake, dm, question, answer);
    as_described(&fake);
}
