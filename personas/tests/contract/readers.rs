//! The forms in which cards are found in the world.

use std::io::{Cursor, Write};

use azera_personas::limits::{MAX_CARD_JSON_BYTES, MAX_CHARX_FILES};
use azera_personas::{CardSpec, ImportedCard, import_card};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::cards::import;
use crate::png::{chunk, header, picture, text, with_header};

fn tarn() -> Value {
    json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Tarn", "description": "Tarn mends nets. ÿþ?>"}})
}

#[track_caller]
fn read(bytes: &[u8]) -> ImportedCard {
    let card = import_card(bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(card.persona.name, "Tarn");
    card
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let error = import_card(bytes).expect_err("is refused").to_string();
    assert!(error.contains(expected), "{error:?} does not say {expected:?}");
}

fn notes(card: &ImportedCard) -> String {
    card.notes.iter().map(|note| format!("{note}\n")).collect()
}

#[test]
fn half_an_emoji_costs_only_itself() {
    for (half, becomes) in [(r"\ud83d", "\u{FFFD}"), (r"\ude00", "\u{FFFD}"), (r"\ud83d\ude00", "😀")] {
        let json = tarn().to_string().replace("ÿþ?>", half);
        let card = read(json.as_bytes());
        assert_eq!(card.persona.core_identity, format!("Tarn mends nets. {becomes}"));
        assert_eq!(notes(&card).contains("half emoji"), becomes != "😀");
        read(&picture(&[text("chara", &json)]));
    }
}

#[test]
fn text_encodings_are_read() {
    let json = tarn().to_string();
    let wide = |mark: &[u8], to_bytes: fn(u16) -> [u8; 2]| {
        [mark, &json.encode_utf16().flat_map(to_bytes).collect::<Vec<_>>()].concat()
    };
    let plain = read(json.as_bytes());
    for bytes in [
        [b"\xEF\xBB\xBF", json.as_bytes()].concat(),
        wide(b"\xFF\xFE", u16::to_le_bytes),
        wide(b"\xFE\xFF", u16::to_be_bytes),
        wide(b"", u16::to_le_bytes),
        [json.as_bytes(), b"\n\0"].concat(),
    ] {
        assert_eq!(read(&bytes).persona, plain.persona);
    }
    let latin = json.replace('ÿ', "\u{0}").replace('\u{0}', "@").into_bytes();
    let latin: Vec<u8> = latin.into_iter().map(|byte| if byte == b'@' { 0xFF } else { byte }).collect();
    assert!(notes(&read(&latin)).contains("not UTF-8"));
}

#[test]
fn base64_for_addresses_is_read() {
    let packed = URL_SAFE.encode(tarn().to_string());
    assert!(packed.contains(['-', '_']), "{packed}");
    let file = |packed: &str| picture(&[chunk(b"tEXt", format!("chara\0{packed}").as_bytes())]);
    read(&file(&packed));
    read(&file(packed.trim_end_matches('=')));
}

#[test]
fn wrong_checksums_are_forgiven_where_they_matter_to_nobody() {
    let json = tarn().to_string();
    let unsound = |mut chunk: Vec<u8>| {
        let end = chunk.len();
        chunk[end - 4..].fill(0);
        chunk
    };
    let card = read(&picture(&[unsound(text("chara", &json))]));
    assert!(card.avatar.is_some() && notes(&card).contains("checksum"), "{}", notes(&card));
    let card = read(&picture(&[unsound(chunk(b"tEXt", b"Comment\0hi")), text("chara", &json)]));
    assert!(card.avatar.is_some() && notes(&card).contains("checksum"), "{}", notes(&card));
    let card = read(&with_header(unsound(header(1, 1)), &[text("chara", &json)]));
    assert!(card.avatar.is_none() && notes(&card).contains("checksum"), "{}", notes(&card));
}

#[test]
fn a_card_behind_the_end_of_a_picture_is_read() {
    let card = read(&[picture(&[]), text("chara", &tarn().to_string())].concat());
    assert_eq!(card.avatar, Some(picture(&[])));
    assert!(notes(&card).contains("behind its end"), "{}", notes(&card));
}

#[test]
fn other_pictures_are_named() {
    refused(b"RIFF\x1a\0\0\0WEBPVP8 ", "WebP");
    refused(b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG");
    refused(b"GIF89a", "GIF");
    refused(b"\0\0\0\x20ftypavif", "AVIF");
}

#[test]
fn cards_of_older_programs_are_read() {
    let pygmalion = json!({"char_name": "Tarn", "char_persona": "Mends nets.", "char_greeting": "Aye, {{user}}.",
        "world_scenario": "A harbour.", "example_dialogue": "<START>\nYou: Hello\nTarn: Aye."});
    let card = import(&pygmalion);
    assert_eq!((card.spec, card.persona.name.as_str()), (CardSpec::V1, "Tarn"));
    assert_eq!(
        (card.persona.core_identity.as_str(), card.persona.prime_directive.dynamic.as_str()),
        ("Mends nets.", "A harbour.")
    );
    assert_eq!((card.data.greetings.len(), card.persona.examples.len()), (1, 1));
    let generation = json!({"name": "Tarn", "context": "Mends nets.", "greeting": "Aye."});
    let card = import(&generation);
    assert_eq!((card.persona.core_identity.as_str(), card.data.greetings.len()), ("Mends nets.", 1));
    // Some cards have both forms.
    let both = json!({"name": "Tarn", "description": "Mends nets.", "char_name": "Tarn", "char_persona": "Other."});
    assert_eq!(import(&both).persona.core_identity, "Mends nets.");
}

pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in files {
        zip.start_file(*name, options).expect("a file in memory");
        zip.write_all(bytes).expect("writes to memory");
    }
    zip.finish().expect("writes to memory").into_inner()
}

#[test]
fn charx_archives_are_read() {
    let mut card = tarn();
    card["spec"] = json!("chara_card_v3");
    card["data"]["assets"] = json!([
        {"type": "icon", "name": "other", "uri": "embeded://assets/other.png", "ext": "png"},
        {"type": "icon", "name": "main", "uri": "embeded://assets/main.png", "ext": "png"}]);
    let json = card.to_string();
    let icon = picture(&[text("Comment", "x")]);
    let files: [(&str, &[u8]); 3] =
        [("card.json", json.as_bytes()), ("assets/main.png", &icon), ("assets/other.png", b"no picture")];
    let found = read(&archive(&files));
    assert_eq!((found.spec, found.avatar), (CardSpec::V3, Some(picture(&[]))));
    assert!(found.notes.iter().any(|note| note.message.contains("1 other file(s)")), "{:?}", found.notes);
    read(&[b"\xff\xd8\xff\xe0 a picture", archive(&files).as_slice()].concat());
    assert_eq!(read(&archive(&files[..1])).avatar, None);
    refused(&archive(&files[1..]), "no `card.json`");
    refused(b"PK\x03\x04 broken", "damaged");
    refused(&archive(&[("card.json", &vec![b' '; 64 << 20])]), &format!("{MAX_CARD_JSON_BYTES} bytes"));
    let bomb = archive(&[("card.json", json.as_bytes()), ("assets/main.png", &vec![0; 64 << 20])]);
    assert_eq!(read(&bomb).avatar, None, "a huge icon costs only itself");
    let many: Vec<String> = (0..=MAX_CHARX_FILES).map(|n| n.to_string()).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
    refused(&archive(&many), "files");
}

#[test]
fn the_import_says_what_people_can_call() {
    let says = |name: &str| notes(&import(&json!({"data": {"name": name}})));
    assert!(says("Vega 🌟").contains("people can call it by: Vega\n"));
    assert!(says("Vega (old)").contains("people can call it by: Vega old, Vega\n"));
    assert!(says("🌟").contains("cannot call it by name"));
}

#[test]
fn a_card_never_gets_the_id_of_a_built_in_persona() {
    let id = |name: &str| import(&json!({"data": {"name": name}})).persona.id.to_string();
    assert_eq!((id("Azera!"), id("Protag"), id("AREZA ✨")), ("azera-2".into(), "protag-2".into(), "areza-2".into()));
    assert_eq!((id("Zoë"), id("Zoé")), ("zoe".into(), "zoe".into()));
}
