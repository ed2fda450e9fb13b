//! Several personas in a voice channel, each with its own voice.

use std::sync::Arc;

use azera_fake_discord::Network;

use crate::bot::Bot;
use crate::commands::give;
use crate::model::Model;
use crate::personas::upload;
use crate::voice::people::Voice;
use crate::voice::{Room, SILENCE, sounds};
use crate::xtts::{ANA, Asked, CRAIG, Xtts};
use crate::{as_described, fake};

/// Persona files: a name, and its voice.
const PERSONAS: [(&str, &str); 3] = [("Rosa", ANA.0), ("Martin", CRAIG.0), ("Oscar", "nobody")];

/// A model whose answers name the persona that gives them.
fn model() -> Model {
    Model::start(Arc::new(|body| {
        let prompt = body["messages"].to_string();
        let is_it = |(name, _): &&(&str, &str)| prompt.contains(&format!("You are {name}"));
        let name = PERSONAS.iter().find(is_it).map_or("nobody", |(name, _)| name);
        (format!("This is {name} speaking."), String::new())
    }))
}

#[test]
fn each_persona_in_a_call_speaks_with_its_own_voice() {
    let (fake, xtts, model) = (fake(), Xtts::start(), model());
    let bot = Bot::new(&fake, Some(&model))
        .with("AZERA__SPEECH_SERVER__API", "xtts")
        .with("AZERA__SPEECH_SERVER__URL", &xtts.url())
        .with("AZERA__SPEECH_SERVER__VOICE", CRAIG.0);
    let room = Room::begin(fake, bot, &["Ann"]);
    let ann = room.people[0];
    let (fake, channel) = (&room.fake, room.channel);
    for (name, voice) in PERSONAS {
        let file = give(fake, channel, ann, "persona", "template", &[]).replacen("Here it is.", "", 1);
        let file = file.replace("Name", name).replacen("id: name", &format!("id: {}", name.to_lowercase()), 1);
        let file = file.replacen("kind: assistant", &format!("kind: assistant\nvoice: {voice}"), 1);
        upload(fake, channel, ann, &file, "Add it");
    }
    give(fake, channel, ann, "persona", "use", &[("name", "Rosa")]);
    for name in ["Martin", "Oscar"] {
        give(fake, channel, ann, "persona", "invite", &[("name", name)]);
    }
    room.press(0, "Hear me");
    let voice = Voice::open();
    let ask = |words: &str, answer: &str| {
        let spoken = room.spoken();
        room.say(&voice, 0, words, Network::default());
        let number = xtts.voice_of(answer);
        // Its words are 22 packets or more, and "hmm" is four. Silence does not count.
        fake.wait("the answer to be heard", |world| {
            let heard = || sounds(&world.voice.heard[spoken..]);
            (heard().count() > 10 && heard().next_back()?.at.elapsed() > SILENCE).then_some(())
        });
        number
    };
    assert_eq!(ask("When does the last train leave today?", "This is Rosa speaking"), ANA.1);
    assert_eq!(ask("Martin, when does the last train leave today?", "This is Martin speaking"), CRAIG.1);
    // Nobody has Oscar's voice, so the usual one speaks for him, and the log says so once.
    for _ in 0..2 {
        assert_eq!(ask("Oscar, when does the last train leave today?", "This is Oscar speaking"), CRAIG.1);
        xtts.forget();
    }
    assert!(!xtts.asked().contains(&Asked::Cloned), "these voices are the server's own");
    assert_eq!(room.bot.log().matches("a persona's voice is not here").count(), 1);
    as_described(fake);
}
