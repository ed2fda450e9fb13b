//! Personas that admins bring to their server.

use azera_discord_peer::{BOT, Invoked, Peer};

use crate::bot::Bot;
use crate::commands::{give, square, told};
use crate::{answered, answered_for_good, as_described, peer};

/// Uploads a file, and presses one of the buttons under what is answered.
#[track_caller]
fn upload(peer: &Peer, channel: u64, who: u64, file: &str, button: &str) -> (String, String) {
    let preview = give(peer, channel, who, "persona", "upload", &[("file", file)]);
    let (message, custom_id) = peer.world(|world| {
        let message = world.last_answer().expect("an answer");
        let buttons = message["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|found| found["label"] == *button).unwrap_or_else(|| panic!("{preview}"));
        let id = message["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        (id, button["custom_id"].as_str().expect("an id").to_owned())
    });
    let pressed = peer.world(|world| world.invoke(channel, who, Invoked::Button { message, custom_id }));
    (preview, told(peer, pressed))
}

#[test]
fn an_admin_brings_a_persona_that_is_shown_first_and_can_be_taken_back() {
    let peer = peer();
    let ([ann, bob, _], square) = square(&peer);
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let template = give(&peer, square, bob, "persona", "template", &[]).replacen("Here it is.", "", 1);
    let nix = template.replace("Name", "Nix");
    let wrong =
        give(&peer, square, ann, "persona", "upload", &[("file", &nix.replacen("id: name", "id: NOT AN ID", 1))]);
    assert!(wrong.contains("cannot be taken in") && wrong.contains("line 3"), "{wrong}");
    let refused = give(&peer, square, bob, "persona", "upload", &[("file", &nix)]);
    assert!(refused.contains("the admins'"), "{refused}");
    let (preview, cancelled) = upload(&peer, square, ann, &nix, "Cancel");
    assert!(preview.contains("**Nix**"), "{preview}");
    assert!(cancelled.contains("not taken in"), "{cancelled}");
    let nothing = give(&peer, square, ann, "persona", "confirm", &[]);
    assert!(nothing.contains("Nothing waits"), "{nothing}");
    let (_, taken) = upload(&peer, square, ann, &nix, "Take it in");
    assert!(taken.contains("version 1"), "{taken}");
    let used = give(&peer, square, ann, "persona", "use", &[("name", "Nix")]);
    assert!(used.contains("Nix answers here"), "{used}");
    let asked = peer.world(|world| world.say(square, bob, "Nix, are you there?"));
    answered(&peer, square, asked, "Noted.");
    peer.world(|world| assert_eq!(world.answers(square, asked)[0]["author"]["username"], "Nix"));
    let (preview, taken) = upload(&peer, square, ann, &format!("{nix}\n## Likes\n\nThe sea.\n"), "Take it in");
    assert!(preview.contains("place of version 1") && taken.contains("version 2"), "{preview} {taken}");
    assert!(give(&peer, square, bob, "persona", "show", &[("name", "nix")]).contains("The sea."));
    let back = give(&peer, square, ann, "persona", "rollback", &[("name", "nix")]);
    assert!(back.contains("version 1"), "{back}");
    assert!(!give(&peer, square, bob, "persona", "show", &[("name", "nix")]).contains("The sea."));
    give(&peer, square, ann, "persona", "remove", &[("name", "nix")]);
    assert!(!give(&peer, square, bob, "persona", "list", &[]).contains("Nix"));
    let asked = peer.world(|world| world.say(square, bob, "Azera, are you there?"));
    answered(&peer, square, asked, "Noted.");
    peer.world(|world| assert_eq!(world.answers(square, asked)[0]["author"]["id"], BOT.to_string()));
    bot.stop(&peer);
    for secret in ["webhook-secret", "interaction-secret", &peer.token] {
        assert!(!bot.log().contains(secret), "{secret} is in the log");
    }
    as_described(&peer);
}

#[test]
fn personas_that_are_invited_answer_in_one_channel_by_their_names() {
    let peer = peer();
    let ([ann, bob, _], square) = square(&peer);
    let mut bot = Bot::new(&peer, None);
    bot.start(&peer);
    peer.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let nix =
        give(&peer, square, ann, "persona", "template", &[]).replacen("Here it is.", "", 1).replace("Name", "Nix");
    upload(&peer, square, ann, &nix, "Take it in");
    let refused = give(&peer, square, bob, "persona", "invite", &[("name", "Nix")]);
    assert!(refused.contains("the admins'"), "{refused}");
    let invited = give(&peer, square, ann, "persona", "invite", &[("name", "Nix")]);
    assert!(invited.contains("Nix answers here, too"), "{invited}");
    #[track_caller]
    fn answered_by(peer: &Peer, channel: u64, asked: u64, name: &str) -> u64 {
        answered_for_good(peer, channel, asked, "Noted.");
        let answer = peer.world(|world| world.answers(channel, asked)[0].clone());
        assert_eq!(answer["author"]["username"], *name);
        answer["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
    }
    let to_nix = peer.world(|world| world.say(square, bob, "Nix, the ferry leaves at nine"));
    let said = answered_by(&peer, square, to_nix, "Nix");
    let to_azera = peer.world(|world| world.say(square, bob, "Azera, the bridge is closed"));
    answered_by(&peer, square, to_azera, "azera");
    // Who replies to Nix means it, and what stands under its answers is about them.
    let replied = peer.world(|world| world.reply(square, bob, "and back at ten", said));
    answered_by(&peer, square, replied, "Nix");
    let why = peer.world(|world| {
        let answer = world.answers(square, to_nix)[0].clone();
        let buttons = answer["components"][0]["components"].as_array().cloned().unwrap_or_default();
        let button = buttons.iter().find(|button| button["label"] == "Why?").expect("a button");
        let custom_id = button["custom_id"].as_str().expect("an id").to_owned();
        world.invoke(square, bob, Invoked::Button { message: said, custom_id })
    });
    let why = told(&peer, why);
    assert!(why.contains("Prompt in tokens"), "{why}");
    // One that everybody has is sent away also when the server has one of its own by that name.
    give(&peer, square, ann, "persona", "invite", &[("name", "areza")]);
    let areza = give(&peer, square, ann, "persona", "template", &[]).replacen("Here it is.", "", 1);
    let areza = areza.replace("Name", "Areza").replacen("id: name", "id: areza", 1);
    upload(&peer, square, ann, &areza, "Take it in");
    let dismissed = give(&peer, square, ann, "persona", "dismiss", &[("name", "areza")]);
    assert!(dismissed.contains("Areza does not answer here any more"), "{dismissed}");
    let again = give(&peer, square, ann, "persona", "dismiss", &[("name", "areza")]);
    assert!(again.contains("was not invited"), "{again}");
    give(&peer, square, ann, "persona", "dismiss", &[("name", "Nix")]);
    let unheard = peer.world(|world| world.say(square, bob, "Nix, are you still there?"));
    let heard = peer.world(|world| world.say(square, bob, "Azera, is Nix still there?"));
    answered_by(&peer, square, heard, "azera");
    peer.world(|world| assert!(world.answers(square, unheard).is_empty()));
    as_described(&peer);
}
