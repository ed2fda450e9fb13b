//! Finds the card in a file: JSON, a PNG picture, or a CharX archive.

use serde_json::{Map, Value};

use super::charx::{Charx, read_charx};
use super::convert::{Card, Conversion};
use super::fields::is_blank;
use super::json::read_object;
use super::png::{PngCard, SIGNATURE, read_png};
use super::{CardSpec, ImportedCard, REPEATED, TOP_LEVEL};
use crate::error::Error;
use crate::limits::{MAX_CARD_BYTES, MAX_CARD_JSON_BYTES};

/// The six fields of V1, and their names in the older cards of Pygmalion and of text generation programs.
const FLAT: [(&str, &[&str]); 6] = [
    ("name", &["char_name"]),
    ("description", &["char_persona", "context"]),
    ("personality", &[]),
    ("scenario", &["world_scenario"]),
    ("first_mes", &["char_greeting", "greeting"]),
    ("mes_example", &["example_dialogue"]),
];

/// Reads a character card: JSON of V1, V2 or V3, or of the older Pygmalion form, in UTF-8 or UTF-16; a PNG file with
/// one (`ccv3` before `chara`); or a CharX archive.
///
/// The persona's id is derived from its name and is never a built-in one; the host may have to choose another if it is
/// taken.
///
/// # Errors
///
/// [`Error::NotACard`], [`Error::Json`], [`Error::Png`] and [`Error::Field`] if the card cannot be read,
/// [`Error::TooLarge`] above a limit, [`Error::Invalid`] if the card does not give a valid persona.
pub fn import_card(bytes: &[u8]) -> Result<ImportedCard, Error> {
    if bytes.len() > MAX_CARD_BYTES {
        return Err(Error::TooLarge { what: "the card", limit: format!("{} MiB", MAX_CARD_BYTES >> 20) });
    }
    let mut conversion = Conversion::default();
    if bytes.starts_with(&SIGNATURE) {
        let png = read_png(bytes);
        let json = card_text(&mut conversion, &png)?;
        let avatar = avatar(&mut conversion, png);
        return finish(conversion, &json, avatar);
    }
    if let Some(Charx { json, avatar, dropped }) = read_charx(bytes)? {
        if dropped > 0 {
            conversion.note("assets", format!("{dropped} other file(s) of the archive were dropped"));
        }
        return finish(conversion, &json, avatar);
    }
    match other_picture(bytes) {
        Some(kind) => {
            let reason = format!(
                "it is a {kind} picture, whatever its name says, and those carry no card; save the card as PNG or JSON"
            );
            Err(Error::NotACard { reason })
        }
        None => finish(conversion, bytes, None),
    }
}

/// Returns the kind of a picture that is no PNG, by its first bytes.
fn other_picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("WebP"),
        [0xFF, 0xD8, 0xFF, ..] => Some("JPEG"),
        [b'G', b'I', b'F', b'8', ..] => Some("GIF"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', ..] => Some("AVIF"),
        [b'B', b'M', ..] => Some("BMP"),
        _ => None,
    }
}

/// Returns the JSON in a PNG; uses the older copy if the newer one is damaged.
fn card_text(conversion: &mut Conversion, png: &PngCard<'_>) -> Result<Vec<u8>, Error> {
    let mut failure = None;
    for text in png.v3.iter().chain(&png.v2) {
        match text.json() {
            Ok(json) => {
                if failure.is_some() {
                    conversion.note("ccv3", "was damaged, so an older copy of the card was read");
                }
                if !text.sound {
                    conversion.note("picture", "the checksum of the card's text is wrong; it was read all the same");
                }
                return Ok(json);
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let damaged = png.fault.map(|(offset, reason)| Error::Png { offset, reason });
    Err(failure.or(damaged).unwrap_or_else(|| Error::NotACard {
        reason: "the picture carries no character; cards have a `ccv3` or `chara` text in them, and some sites \
                 strip it from pictures"
            .to_owned(),
    }))
}

fn avatar(conversion: &mut Conversion, png: PngCard<'_>) -> Option<Vec<u8>> {
    if png.assets > 0 {
        conversion.note("assets", format!("{} embedded asset(s) in the picture were dropped", png.assets));
    }
    if png.behind_end {
        conversion.note("picture", "the card's text stands behind its end; it was read all the same");
    }
    if png.unsound_remarks > 0 {
        conversion.note("picture", format!("{} remark(s) in it have a wrong checksum", png.unsound_remarks));
    }
    if png.trailing > 0 {
        conversion.note("picture", format!("{} bytes after its end were dropped", png.trailing));
    }
    if let Some((offset, reason)) = png.fault {
        conversion.note("picture", format!("is damaged at byte {offset}: {reason}; it was dropped"));
        return None;
    }
    if png.shows() {
        return Some(png.avatar);
    }
    let (width, height) = png.size;
    conversion.note("picture", format!("{width} x {height} pixels are too many; it was dropped"));
    None
}

fn finish(mut conversion: Conversion, json: &[u8], avatar: Option<Vec<u8>>) -> Result<ImportedCard, Error> {
    if json.len() > MAX_CARD_JSON_BYTES {
        let limit = format!("{} KiB", MAX_CARD_JSON_BYTES >> 10);
        return Err(Error::TooLarge { what: "the card's JSON", limit });
    }
    let read = read_object(json)?;
    for mended in read.mended {
        conversion.note("card", mended);
    }
    let (spec, fields) = card_fields(&mut conversion, read.object)?;
    let Card { persona, data, notes } = conversion.run(fields)?;
    Ok(ImportedCard { persona, data, avatar, spec, notes })
}

/// Returns the card's format, and the object with its fields.
fn card_fields(
    conversion: &mut Conversion,
    mut top: Map<String, Value>,
) -> Result<(CardSpec, Map<String, Value>), Error> {
    if !top.get("data").is_some_and(Value::is_object) {
        return flat_fields(conversion, top);
    }
    let Some(Value::Object(card)) = top.remove("data") else { return flat_fields(conversion, top) };
    let spec = match top.remove("spec").as_ref().and_then(Value::as_str) {
        Some("chara_card_v2") => CardSpec::V2,
        Some("chara_card_v3") => CardSpec::V3,
        Some("lorebook_v3") => {
            return Err(Error::NotACard { reason: "this is a lorebook without a character".to_owned() });
        }
        _ => {
            conversion.note("spec", "is none that is known; read as V3");
            CardSpec::V3
        }
    };
    top.remove("spec_version");
    // V2 cards often repeat their fields at the top level for V1 readers.
    let (mut repeated, mut beside) = (Vec::new(), Map::new());
    for (field, value) in top {
        if card.get(&field) == Some(&value) {
            repeated.push(Value::from(field));
        } else {
            beside.insert(field, value);
        }
    }
    if !repeated.is_empty() {
        conversion.keep(REPEATED, Value::Array(repeated));
    }
    if !beside.is_empty() {
        if beside.values().any(|value| !is_blank(value)) {
            conversion.note("spec", format!("{} field(s) beside `data` kept for export", beside.len()));
        }
        conversion.keep(TOP_LEVEL, Value::Object(beside));
    }
    Ok((spec, card))
}

/// Returns the fields of a card without `data`: V1, or an older form under its names.
fn flat_fields(
    conversion: &mut Conversion,
    mut top: Map<String, Value>,
) -> Result<(CardSpec, Map<String, Value>), Error> {
    let mut older = false;
    for (field, names) in FLAT {
        let Some(name) = names.iter().find(|name| top.get(**name).is_some_and(|value| !is_blank(value))) else {
            continue;
        };
        if top.get(field).is_none_or(is_blank)
            && let Some(value) = top.remove(*name)
        {
            top.insert(field.to_owned(), value);
            older = true;
        }
    }
    if older {
        conversion.note("spec", "is that of an older card (`char_name` and so on); read as V1");
    }
    if FLAT.iter().skip(1).any(|(field, _)| top.contains_key(*field)) {
        return Ok((CardSpec::V1, top));
    }
    Err(Error::NotACard { reason: "the JSON has none of a card's fields".to_owned() })
}
