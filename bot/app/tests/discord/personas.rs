//! Personas that admins add to their server.

use azera_fake_discord::{BOT, FakeDiscord, Invoked};

use crate::bot::Bot;
use crate::commands::{answer_text, give, square};
use crate::{answered, answered_for_good, as_described, fake};

/// Uploads a file, and presses a button under the preview.
#[track_caller]
pub fn upload(fake: &FakeDiscord, channel: u64, who: u64, file: &str, button: &str) -> (String, String) {
    let preview = give(fake, channel, who, "persona", "upload", &[("file", file)]);
    let (message, custom_id) = fake.world(|world| {
        let message = world.last_answer().expect("an answer");
        let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|found| found["label"] == *button).unwrap_or_else(|| panic!("{preview}"));
        let id = message["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        (id, button["custom_id"].as_str().expect("an id").to_owned())
    });
    let pressed = fake.world(|world| world.invoke(channel, who, Invoked::Button { message, custom_id }));
    (preview, answer_text(fake, pressed))
}

#[test]
fn an_admin_adds_a_persona_after_a_preview_and_rolls_it_back() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let template = give(&fake, square, bob, "persona", "template", &[]).replacen("Here it is.", "", 1);
    let nix = template.replace("Name", "Nix");
    let wrong =
        give(&fake, square, ann, "persona", "upload", &[("file", &nix.replacen("id: name", "id: NOT AN ID", 1))]);
    assert!(wrong.contains("I cannot add that") && wrong.contains("line 3"), "{wrong}");
    let refused = give(&fake, square, bob, "persona", "upload", &[("file", &nix)]);
    assert!(refused.contains("Only admins"), "{refused}");
    let (preview, cancelled) = upload(&fake, square, ann, &nix, "Cancel");
    assert!(preview.contains("**Nix**"), "{preview}");
    assert!(cancelled.contains("did not add"), "{cancelled}");
    let nothing = give(&fake, square, ann, "persona", "confirm", &[]);
    assert!(nothing.contains("There is no upload"), "{nothing}");
    let (_, taken) = upload(&fake, square, ann, &nix, "Add it");
    assert!(taken.contains("version 1"), "{taken}");
    let used = give(&fake, square, ann, "persona", "use", &[("name", "Nix")]);
    assert!(used.contains("Nix answers here"), "{used}");
    let question = fake.world(|world| world.say(square, bob, "Nix, are you there?"));
    answered(&fake, square, question, "Noted.");
    fake.world(|world| assert_eq!(world.answers(square, question)[0]["author"]["username"], "Nix"));
    let (preview, taken) = upload(&fake, square, ann, &format!("{nix}\n## Likes\n\nThe sea.\n"), "Add it");
    assert!(preview.contains("replaces version 1") && taken.contains("version 2"), "{preview} {taken}");
    assert!(give(&fake, square, bob, "persona", "show", &[("name", "nix")]).contains("The sea."));
    let back = give(&fake, square, ann, "persona", "rollback", &[("name", "nix")]);
    assert!(back.contains("version 1"), "{back}");
    assert!(!give(&fake, square, bob, "persona", "show", &[("name", "nix")]).contains("The sea."));
    give(&fake, square, ann, "persona", "remove", &[("name", "nix")]);
    assert!(!give(&fake, square, bob, "persona", "list", &[]).contains("Nix"));
    let question = fake.world(|world| world.say(square, bob, "Azera, are you there?"));
    answered(&fake, square, question, "Noted.");
    fake.world(|world| assert_eq!(world.answers(square, question)[0]["author"]["id"], BOT.to_string()));
    bot.stop(&fake);
    for secret in ["webhook-secret", "interaction-secret", &fake.token] {
        assert!(!bot.log().contains(secret), "{secret} is in the log");
    }
    as_described(&fake);
}

#[test]
fn invited_personas_answer_by_name_in_one_channel() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let nix =
        give(&fake, square, ann, "persona", "template", &[]).replacen("Here it is.", "", 1).replace("Name", "Nix");
    upload(&fake, square, ann, &nix, "Add it");
    let refused = give(&fake, square, bob, "persona", "invite", &[("name", "Nix")]);
    assert!(refused.contains("Only admins"), "{refused}");
    let invited = give(&fake, square, ann, "persona", "invite", &[("name", "Nix")]);
    assert!(invited.contains("Nix answers here, too"), "{invited}");
    #[track_caller]
    fn answered_by(fake: &FakeDiscord, channel: u64, question: u64, name: &str) -> u64 {
        answered_for_good(fake, channel, question, "Noted.");
        let answer = fake.world(|world| world.answers(channel, question)[0].clone());
        assert_eq!(answer["author"]["username"], *name);
        answer["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
    }
    let to_nix = fake.world(|world| world.say(square, bob, "Nix, the ferry leaves at nine"));
    let said = answered_by(&fake, square, to_nix, "Nix");
    let to_azera = fake.world(|world| world.say(square, bob, "Azera, the bridge is closed"));
    answered_by(&fake, square, to_azera, "azera");
    // A reply to Nix's message is for Nix, and the buttons under Nix's answers are about Nix.
    let replied = fake.world(|world| world.reply(square, bob, "and back at ten", said));
    answered_by(&fake, square, replied, "Nix");
    let why = fake.world(|world| {
        let answer = world.answers(square, to_nix)[0].clone();
        let buttons = answer["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|button| button["label"] == "Why?").expect("a button");
        let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
        world.invoke(square, bob, Invoked::Button { message: said, custom_id })
    });
    let why = answer_text(&fake, why);
    assert!(why.contains("Prompt in tokens"), "{why}");
    // A built-in persona can be dismissed even if the server has one of its own by that name.
    give(&fake, square, ann, "persona", "invite", &[("name", "areza")]);
    let areza = give(&fake, square, ann, "persona", "template", &[]).replacen("Here it is.", "", 1);
    let areza = areza.replace("Name", "Areza").replacen("id: name", "id: areza", 1);
    upload(&fake, square, ann, &areza, "Add it");
    let dismissed = give(&fake, square, ann, "persona", "dismiss", &[("name", "areza")]);
    assert!(dismissed.contains("Areza does not answer here any more"), "{dismissed}");
    let again = give(&fake, square, ann, "persona", "dismiss", &[("name", "areza")]);
    assert!(again.contains("was not invited"), "{again}");
    give(&fake, square, ann, "persona", "dismiss", &[("name", "Nix")]);
    let unheard = fake.world(|world| world.say(square, bob, "Nix, are you still there?"));
    let heard = fake.world(|world| world.say(square, bob, "Azera, is Nix still there?"));
    answered_by(&fake, square, heard, "azera");
    fake.world(|world| assert!(world.answers(square, unheard).is_empty()));
    as_described(&fake);
}
