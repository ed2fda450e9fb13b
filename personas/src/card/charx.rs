//! Reads CharX files: ZIP archives with `card.json` and the card's pictures, as V3 describes them. Some writers put a
//! JPEG picture in front of the archive.

use std::io::{Cursor, Read};

use serde_json::Value;
use zip::ZipArchive;

use super::png::{SIGNATURE, read_png};
use crate::error::Error;
use crate::limits::{MAX_CARD_BYTES, MAX_CARD_JSON_BYTES, MAX_CHARX_FILES};

/// The first bytes of a ZIP archive with files in it.
const ZIP: &[u8] = b"PK\x03\x04";
const JPEG: &[u8] = &[0xFF, 0xD8, 0xFF];

/// The parts of a CharX file.
pub(super) struct Charx {
    pub(super) json: Vec<u8>,
    /// The icon, if it is a sound PNG picture.
    pub(super) avatar: Option<Vec<u8>>,
    /// Number of other files in the archive.
    pub(super) dropped: usize,
}

/// Reads a CharX file. Returns `None` if the bytes are not a ZIP archive, or a JPEG picture without one.
///
/// # Errors
///
/// [`Error::NotACard`] if the archive is damaged or holds no `card.json`, [`Error::TooLarge`] above a limit. Both hold
/// whatever sizes the archive claims, because only as many bytes as allowed are inflated.
pub(super) fn read_charx(bytes: &[u8]) -> Result<Option<Charx>, Error> {
    let picture = bytes.starts_with(JPEG);
    if !picture && !bytes.starts_with(ZIP) {
        return Ok(None);
    }
    let mut archive = match ZipArchive::new(Cursor::new(bytes)) {
        Ok(archive) => archive,
        Err(_) if picture => return Ok(None),
        Err(_) => return Err(not_a_card("the archive is damaged")),
    };
    if archive.len() > MAX_CHARX_FILES {
        return Err(Error::TooLarge { what: "the archive", limit: format!("{MAX_CHARX_FILES} files") });
    }
    let Some(json) = inflate(&mut archive, "card.json", MAX_CARD_JSON_BYTES)? else {
        return if picture { Ok(None) } else { Err(not_a_card("the archive has no `card.json`")) };
    };
    let avatar = match icon(&json) {
        // A damaged or huge icon costs the picture, not the card.
        Some(path) => inflate(&mut archive, &path, MAX_CARD_BYTES).ok().flatten().and_then(|file| picture_alone(&file)),
        None => None,
    };
    let dropped = archive.len().saturating_sub(1 + usize::from(avatar.is_some()));
    Ok(Some(Charx { json, avatar, dropped }))
}

/// Returns a file of the archive; `None` if there is none of that name.
fn inflate(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str, limit: usize) -> Result<Option<Vec<u8>>, Error> {
    let Some(index) = archive.index_for_name(name) else { return Ok(None) };
    let file = archive.by_index(index).map_err(|_| not_a_card("a file in the archive is damaged or encrypted"))?;
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|_| not_a_card("a file in the archive is damaged"))?;
    if bytes.len() > limit {
        return Err(Error::TooLarge { what: "a file in the archive", limit: format!("{limit} bytes") });
    }
    Ok(Some(bytes))
}

/// Returns the path of the card's main icon in the archive.
fn icon(json: &[u8]) -> Option<String> {
    let card: Value = serde_json::from_slice(json).ok()?;
    let icons = card.get("data")?.get("assets")?.as_array()?.iter().filter(|asset| asset["type"] == "icon");
    let main = icons.clone().find(|asset| asset["name"] == "main").or_else(|| icons.clone().next())?;
    let uri = main["uri"].as_str()?;
    // The specification spells it `embeded`.
    let path = uri.strip_prefix("embeded://").or_else(|| uri.strip_prefix("embedded://"))?;
    Some(path.to_owned())
}

/// Returns a PNG picture without its texts; `None` for other pictures.
fn picture_alone(file: &[u8]) -> Option<Vec<u8>> {
    let png = file.starts_with(&SIGNATURE).then(|| read_png(file))?;
    (png.fault.is_none() && png.shows()).then_some(png.avatar)
}

fn not_a_card(reason: &str) -> Error {
    Error::NotACard { reason: reason.to_owned() }
}
