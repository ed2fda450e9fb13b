//! Personas that admins add as files, and how they look.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns a chunk of a PNG file, with its checksum.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut crc = u32::MAX;
    for byte in kind.iter().chain(data) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            // The polynomial of the PNG specification, annex D.
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let length = u32::try_from(data.len()).expect("a small file");
    [&length.to_be_bytes()[..], kind, data, &(!crc).to_be_bytes()].concat()
}

/// Returns a PNG of one grey pixel, with a character card in it if one is given.
fn picture(card: Option<&Value>) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]));
    if let Some(card) = card {
        let text = [&b"chara\0"[..], STANDARD.encode(card.to_string()).as_bytes()].concat();
        file.extend(chunk(b"tEXt", &text));
    }
    // One row: no filter and one byte (RFC 1950 and 1951, a stored block).
    file.extend(chunk(b"IDAT", &[0x78, 0x01, 0x01, 2, 0, 0xfd, 0xff, 0, 128, 0x00, 0x82, 0x00, 0x81]));
    file.extend(chunk(b"IEND", b""));
    file
}

fn card(name: &str) -> Value {
    json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": name, "description": "You keep a lighthouse and speak briefly.", "personality": "", "scenario": "",
        "first_mes": "Good evening.", "mes_example": "",
    }})
}

impl Bot {
    /// Returns the template of a persona.
    fn template(&self, name: &str) -> String {
        let output = self.command(&["persona", "template", name]).output().expect("the binary runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

/// Returns the profile that a message is shown with, after its last edit.
fn profile(person: &Person, event: &str) -> Value {
    let shown = person.seen.iter().find(|shown| shown.event == event).expect("it was seen");
    shown.newest["com.beeper.per_message_profile"].clone()
}

#[test]
fn only_an_admin_adds_a_persona_file() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let file = scene.bot.template("Nix");
    for encrypted in [false, true] {
        let room = scene.room_with(&mut bob, json!({"encrypted": encrypted}));
        let upload = Some("!azera persona upload");
        bob.send_file(&room, "nix.md", file.as_bytes(), upload);
        bob.until_said(&room, BOT, "that he may not", |body| body.contains("Only admins"));
        let broken = file.replacen("id: nix", "id: NOT AN ID", 1);
        assert_ne!(broken, file);
        let line = 1 + broken.lines().position(|line| line.contains("NOT AN ID")).expect("it is there");
        scene.ann.send_file(&room, "nix.md", broken.as_bytes(), upload);
        let refusal = scene.ann.until_said(&room, BOT, "what is wrong", |body| body.contains("I cannot add that"));
        assert!(refusal.body.contains(&format!("line {line}")), "{}", refusal.body);
        scene.ann.send_file(&room, "nix.md", &vec![b'x'; (8 << 20) + 1], upload);
        scene.ann.until_said(&room, BOT, "that it is too large", |body| body.contains("larger than 8 MB"));
        scene.ann.say(&room, "!azera persona upload");
        scene.ann.until_said(&room, BOT, "how it is done", |body| body.contains("as its caption"));
        // The command may also reply to the file.
        let sent = scene.ann.send_file(&room, "nix.md", file.as_bytes(), None);
        let replies = json!({"m.in_reply_to": {"event_id": sent}});
        let command = json!({"msgtype": "m.text", "body": "!azera persona upload", "m.relates_to": replies});
        scene.ann.send(&room, command);
        let preview = |body: &str| body.contains("(`nix`)") && body.contains("`!azera persona confirm`");
        scene.ann.until_said(&room, BOT, "a preview", preview);
        bob.say(&room, "!azera persona confirm");
        bob.until("that he may not", |bob| {
            let refused = bob.said_by(&room, BOT).filter(|shown| shown.body.contains("Only admins"));
            (refused.count() == 2).then_some(())
        });
        scene.ann.say(&room, "!azera persona confirm");
        scene.ann.until_said(&room, BOT, "that it is here", |body| body.starts_with("Nix is here as `nix`, version 1"));
        scene.ann.say(&room, "!azera persona use nix");
        scene.ann.until_said(&room, BOT, "who answers", |body| body.contains("From now on Nix answers"));
        scene.ann.say(&room, "Nix, who are you? q1");
        let answer = scene.ann.until_said(&room, BOT, "Nix's answer", |body| body == format!("Nix: {}", answer_to(1)));
        let shown = profile(&scene.ann, &answer.event);
        assert_eq!((&shown["displayname"], &shown["avatar_url"]), (&json!("Nix"), &Value::Null));
        let import = Some("!azera dream import");
        bob.send_file(&room, "dreams.md", b"# 2026-03-01\nI flew.", import);
        bob.until_said(&room, BOT, "that he may not", |body| body.contains("Only admins can import"));
        scene.ann.send_file(&room, "dreams.md", b"# 2026-03-01\nI flew home.", import);
        scene.ann.until_said(&room, BOT, "how many came", |body| body.starts_with("Imported: 1 dream."));
    }
}

/// A card's picture is shown with its persona's messages: only the picture, uploaded once.
#[test]
fn a_persona_has_a_name_and_a_picture() {
    let mut scene = Scene::open();
    let mut bob = scene.person("bob");
    let room = scene.room_with(&mut bob, json!({"encrypted": true}));
    let file = picture(Some(&card("Mira")));
    scene.ann.send_file(&room, "mira.png", &file, Some("Azera: /persona upload"));
    scene.ann.until_said(&room, BOT, "a preview", |body| body.contains("**Mira**") || body.contains("Mira (`mira`)"));
    scene.ann.say(&room, "!azera persona confirm");
    scene.ann.until_said(&room, BOT, "that it is here", |body| body.starts_with("Mira is here as `mira`"));
    scene.ann.say(&room, "!azera persona use mira");
    scene.ann.until_said(&room, BOT, "who answers", |body| body.contains("From now on Mira answers"));
    let mut urls = Vec::new();
    for number in 1..=3 {
        scene.ann.say(&room, &format!("Mira, what now? q{number}"));
        let whole = format!("Mira: {}", answer_to(number));
        let answer = scene.ann.until_said(&room, BOT, &whole, |body| body == whole);
        let shown = profile(&scene.ann, &answer.event);
        assert_eq!(shown["displayname"], "Mira");
        urls.push(shown["avatar_url"].as_str().expect("a picture").to_owned());
        if number == 2 {
            scene.bot.kill();
            scene.bot.start_again();
        }
    }
    assert!(urls.iter().all(|url| *url == urls[0]), "{urls:?}");
    assert_eq!(scene.ann.fetch(json!({"url": urls[0]})), picture(None), "the picture keeps nothing but itself");
}

/// An account without a name looks like the default persona; an account with a name keeps it.
#[test]
fn the_account_looks_like_its_default_persona() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (homeserver, model) = (Homeserver::start(scratch.path()), Model::start());
    Bot::make_account(&homeserver);
    let mut ann = Person::enter(&homeserver, scratch.path(), "ann");
    let mut bot = Bot::unstarted(&homeserver.url, scratch.path(), &model, settings(&[("CHAT__PERSONA", "mira")]));
    let file = scratch.path().join("mira.png");
    std::fs::write(&file, picture(Some(&card("Mira")))).expect("it is written");
    let added =
        bot.command(&["persona", "add", file.to_str().expect("a plain path")]).output().expect("the binary runs");
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    bot.start_again();
    let looks = json!({"do": "call", "path": format!("profile/{BOT}")});
    let first = ann.act(looks.clone())["answer"].clone();
    assert_eq!(first["displayname"], "Mira");
    assert_eq!(ann.fetch(json!({"url": first["avatar_url"]})), picture(None));
    bot.stop();
    bot.more = settings(&[("CHAT__PERSONA", "areza")]);
    bot.start_again();
    assert_eq!(ann.act(looks)["answer"], first);
}
