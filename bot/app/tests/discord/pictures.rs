//! Charts as pictures.

use azera_fake_discord::{Answer, FakeDiscord, Invoked};
use serde_json::{Value, json};

use crate::bot::Bot;
use crate::commands::{ask, square};
use crate::{as_described, fake};

/// The signature of a PNG file (<https://www.w3.org/TR/png-3/#5PNG-file-signature>).
const PNG: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Returns the width and height in a PNG file's header.
fn size(picture: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

/// Returns the answer to a command, with its picture.
#[track_caller]
fn drawn(fake: &FakeDiscord, channel: u64, who: u64, name: &str, options: Value) -> Answer {
    let id = fake.world(|world| {
        let what = Invoked::Command { name: name.to_owned(), kind: 1, options, target: None };
        world.invoke(channel, who, what)
    });
    let answer = fake.wait("an answer", |world| {
        let answer = &world.interaction(id).answer;
        answer.message.is_some().then(|| answer.clone())
    });
    assert!(answer.ephemeral, "everybody sees it");
    assert_eq!(answer.files.len(), 1, "{:?}", answer.message);
    assert!(answer.files[0].bytes.starts_with(&PNG) && answer.files[0].name.ends_with(".png"));
    answer
}

#[test]
fn status_and_memory_charts_have_pictures_with_descriptions() {
    let fake = fake();
    let ([_, bob, _], square) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    ask(&fake, square, bob);
    let theme = |name: &str| json!({"name": "theme", "type": 3, "value": name});
    let status = drawn(&fake, square, bob, "status", json!([]));
    let described = status.files[0].description.as_str();
    for word in ["feels", "mood", "energy", "focus", "Answered by"] {
        assert!(described.contains(word), "{word} is not in {described:?}");
    }
    let caption = status.message.map(|message| message["content"].clone()).unwrap_or_default();
    assert!(caption.as_str().is_some_and(|said| said.contains("Towards Bob")), "{caption}");
    let (width, height) = size(&status.files[0].bytes);
    assert!(width >= 640 && height >= 320, "{width} x {height}");
    let dark = drawn(&fake, square, bob, "status", json!([theme("dark")]));
    let light = drawn(&fake, square, bob, "status", json!([theme("light")]));
    assert_eq!(size(&dark.files[0].bytes), size(&light.files[0].bytes));
    assert_ne!(dark.files[0].bytes, light.files[0].bytes);
    let stats = json!([{"name": "stats", "type": 1, "options": [theme("light")]}]);
    let memory = drawn(&fake, square, bob, "memory", stats);
    let described = memory.files[0].description.as_str();
    for word in ["1 memory may be shown here", "of kind message", "By week, from "] {
        assert!(described.contains(word), "{word} is not in {described:?}");
    }
    as_described(&fake);
}
