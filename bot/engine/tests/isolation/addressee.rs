//! Several personas in one chat: each hears what is said to it, and nothing else.

use azera_adapter::{CommandLine, Host, Outcome, Platform};
use azera_memory::{Kind, ReadScope};
use azera_types::{MessageId, PersonaId, ReadableScopes, Text};

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, Scene};
use crate::oracle::{DEFAULT_PERSONA, secrets_in, word};
use crate::test_engine::{chat, person};
use crate::world::{Change, PEOPLE, Target};

/// Returns who answered, and the reply's id.
#[track_caller]
fn answered(outcome: &Outcome) -> (&str, MessageId) {
    match outcome {
        Outcome::Replied(turn) => (turn.persona.as_str(), turn.reply.clone()),
        Outcome::Skipped(reason) => panic!("nobody answered: {}", reason.why()),
    }
}

async fn command_about(scene: &Scene, who: usize, place: usize, text: &str, about: &MessageId) -> String {
    let line = CommandLine {
        chat: chat(place),
        person: person(who),
        name: PEOPLE[who].1.to_owned(),
        text: Text::new(text),
        about: Some(about.clone()),
        picture: None,
    };
    let answer = scene.engine.azera.command(scene.engine.platform.sim.id(), line).await.unwrap();
    scene.engine.azera.settle().await.unwrap();
    answer.text
}

#[tokio::test]
async fn only_the_persona_that_is_called_hears_a_message() {
    let mut scene = Scene::open(false, false).await;
    let usual = answered(&scene.say(ANN, COMMONS, "Azera, the kettle is copper quiet").await).0.to_owned();
    assert!(usual.starts_with(DEFAULT_PERSONA), "nobody invited another: {usual}");
    scene.command(ANN, COMMONS, "/persona invite azera").await;
    let outcome = scene.say(ANN, COMMONS, "Azera, the teapot is silver quiet").await;
    let (who, reply) = answered(&outcome);
    assert_eq!(who, "azera");
    assert_eq!(answered(&scene.say(ANN, COMMONS, "Luna, the cup is golden quiet").await).0, usual);
    assert_eq!(answered(&scene.say(ANN, COMMONS, "the spoon is wooden quiet").await).0, usual, "nobody is called");
    // A reply to a persona's message addresses that persona, unless it calls another by name.
    for (text, wanted) in [("and the tray is tin quiet", "azera"), ("Luna, the jar is glass quiet", &usual)] {
        let mut inbound = scene.message(ANN, COMMONS, text);
        inbound.reply_to = Some(reply.clone());
        let outcome = scene.submit(inbound).await.unwrap();
        scene.engine.azera.settle().await.unwrap();
        assert_eq!(answered(&outcome).0, wanted, "{text}");
    }
    let of_usual = scene.find(ANN, COMMONS, "kettle teapot cup spoon tray jar").await.join("\n");
    for (thing, known) in
        [("copper", true), ("silver", false), ("golden", true), ("wooden", true), ("tin", false), ("glass", true)]
    {
        assert_eq!(of_usual.contains(thing), known, "{thing}: {of_usual}");
    }
    // A command about a message concerns the persona that heard it.
    assert!(command_about(&scene, ANN, COMMONS, "/why", &reply).await.contains("Prompt in tokens"));
    scene.command(ANN, COMMONS, "/persona dismiss azera").await;
    assert!(!command_about(&scene, ANN, COMMONS, "/why", &reply).await.contains("Prompt in tokens"));
    assert_eq!(answered(&scene.say(ANN, COMMONS, "Azera, are you still there quiet").await).0, usual);
}

#[tokio::test]
async fn forget_last_forgets_the_last_message_to_any_persona() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, COMMONS, "/persona invite azera").await;
    scene.say(ANN, COMMONS, "Luna, the cup is golden quiet").await;
    scene.say(ANN, COMMONS, "Azera, the teapot is silver quiet").await;
    let receipt = scene.command(ANN, COMMONS, "/forget last").await;
    assert!(receipt.starts_with("Forgotten"), "{receipt}");
    assert!(scene.find(ANN, COMMONS, "cup teapot").await.join("\n").contains("golden"));
    scene.command(ANN, COMMONS, "/persona use azera").await;
    assert!(!scene.find(ANN, COMMONS, "cup teapot").await.join("\n").contains("silver"));
}

#[tokio::test]
async fn admins_invite_personas_and_a_realms_persona_stays_within_its_realm() {
    let scene = Scene::open(false, false).await;
    let refused = scene.command(AN, COMMONS, "/persona invite azera").await;
    assert!(refused.contains("Only admins"), "{refused}");
    assert!(scene.command(ANN, DEN, "/persona invite protag").await.contains("cannot answer"));
    assert!(scene.command(ANN, DEN, "/persona invite azera").await.contains("answers here, too"));
    assert!(scene.command(ANN, DEN, "/persona invite azera").await.contains("already"));
    assert!(scene.command(ANN, DEN, "/persona list").await.contains("(here, when called by name)"));
    assert!(scene.command(ANN, DEN, "/settings").await.contains("Called by name, Azera"));
    scene.command(ANN, DEN, "/persona use areza").await;
    scene.command(ANN, DEN, "/persona invite luna").await;
    let settings = scene.command(ANN, DEN, "/settings").await;
    assert!(settings.contains("Luna"), "{settings}");
    // Somebody from outside reads along, so the guild's Luna is not available.
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    let settings = scene.command(ANN, DEN, "/settings").await;
    assert!(!settings.contains("Luna"), "{settings}");
}

#[tokio::test]
async fn after_a_restart_each_persona_writes_about_what_was_said_to_it() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, COMMONS, "/persona invite azera").await;
    let mut secrets = Vec::new();
    for name in ["Azera", "Azera", "Luna", "Luna"] {
        let secret = scene.engine.watch.oracle().new_secret(COMMONS, ANN);
        scene.say(ANN, COMMONS, &format!("{name}, the lighthouse password is {} quiet", word(secret, false))).await;
        secrets.push(secret);
    }
    scene.engine.reopen().await;
    scene.wait(3_600).await;
    let sim = &scene.engine.platform.sim;
    let place = sim.place(&chat(COMMONS), &person(ANN)).await.unwrap().unwrap();
    for (persona, secrets) in [("azera", &secrets[..2]), (DEFAULT_PERSONA, &secrets[2..])] {
        let read_scope = ReadScope::in_place(PersonaId::new(persona).unwrap(), &place, &ReadableScopes::default());
        let diary = scene.engine.memory.writings().list(&read_scope, &[Kind::Diary], 10).unwrap();
        let wrote: Vec<_> = diary.iter().map(|(memory, _)| secrets_in(&memory.text)).collect();
        assert_eq!(wrote, [secrets.iter().copied().collect()], "{persona}");
    }
}
