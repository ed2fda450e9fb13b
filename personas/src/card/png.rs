//! Reads PNG files as far as cards need it: chunks, their checksums, and texts, but no pixels.
//!
//! The parser is our own because nothing here decodes an image. So a header that promises a hundred megapixels costs
//! nothing, and compressed text is inflated only up to a limit. A card is read from a damaged file as long as its text
//! can be found; the picture is then dropped, because its pixels cannot be checked.

use std::io::Read;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::Crc;
use flate2::read::ZlibDecoder;

use crate::error::Error;
use crate::limits::{MAX_AVATAR_PIXELS, MAX_AVATAR_SIDE_PX, MAX_CARD_JSON_BYTES, MAX_CHUNK_TEXT_BYTES};

/// The first eight bytes of every PNG file (PNG specification, 5.2).
pub(crate) const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A];

/// Chunks of the picture, still or animated. An avatar contains no others: no texts, times or camera data, and no
/// embedded colour profiles, which are compressed and thus another risk.
const PICTURE_CHUNKS: [&[u8; 4]; 13] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"bKGD", b"pHYs", b"acTL", b"fcTL", b"fdAT",
];

/// Base64 as card writers produce it, padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The parts of a PNG file that matter for a card.
#[derive(Debug)]
pub(crate) struct PngCard<'a> {
    /// Texts under the keyword `ccv3`, in file order.
    pub(crate) v3: Vec<Text<'a>>,
    /// Texts under the keyword `chara`.
    pub(crate) v2: Vec<Text<'a>>,
    /// Number of assets embedded as texts of their own.
    pub(crate) assets: usize,
    /// The picture without texts.
    pub(crate) avatar: Vec<u8>,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
    /// Number of bytes after the end of the picture that hold no chunks.
    pub(crate) trailing: usize,
    /// The first fault of the picture itself, with its position. Such a picture is not shown.
    pub(crate) fault: Option<(usize, &'static str)>,
    /// Number of other texts with a wrong checksum.
    pub(crate) unsound_remarks: usize,
    /// True if a card's text stands behind the end of the picture.
    pub(crate) behind_end: bool,
    /// True if the picture has ended.
    ended: bool,
}

impl PngCard<'_> {
    /// Returns true if the picture is small enough to be shown.
    pub(crate) fn shows(&self) -> bool {
        let (width, height) = self.size;
        width.max(height) <= MAX_AVATAR_SIDE_PX && u64::from(width) * u64::from(height) <= MAX_AVATAR_PIXELS
    }

    fn fail(&mut self, offset: usize, reason: &'static str) {
        self.fault.get_or_insert((offset, reason));
    }
}

/// The text of a chunk, still encoded.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    offset: usize,
    data: &'a [u8],
    compressed: bool,
    /// True if the chunk's checksum is right.
    pub(crate) sound: bool,
}

/// Reads the chunks of a PNG file, also those behind its end and those whose checksum is wrong.
pub(crate) fn read_png(bytes: &[u8]) -> PngCard<'_> {
    let mut card = PngCard {
        v3: Vec::new(),
        v2: Vec::new(),
        assets: 0,
        avatar: SIGNATURE.to_vec(),
        size: (0, 0),
        trailing: 0,
        fault: None,
        unsound_remarks: 0,
        behind_end: false,
        ended: false,
    };
    let mut offset = SIGNATURE.len();
    let mut pixels = false;
    while offset < bytes.len() {
        let Some(chunk) = Chunk::read(bytes, offset) else { break };
        if (offset == SIGNATURE.len()) != (chunk.kind == *b"IHDR") && (!card.ended || chunk.kind == *b"IHDR") {
            card.fail(offset, "the header must come first and once");
        }
        pixels |= chunk.kind == *b"IDAT";
        chunk.add_to(&mut card);
        offset += chunk.whole.len();
    }
    if card.ended {
        card.trailing = bytes.len() - offset;
    } else {
        card.fail(offset, "the file ends in the middle of a chunk");
    }
    if !pixels {
        card.fail(offset, "there is no picture in it");
    }
    card
}

struct Chunk<'a> {
    offset: usize,
    kind: [u8; 4],
    data: &'a [u8],
    /// Length, kind, data and checksum.
    whole: &'a [u8],
    /// True if the checksum is right.
    sound: bool,
}

impl<'a> Chunk<'a> {
    /// Returns the chunk at a position; `None` if the file ends before the chunk does, or if its kind is not four letters.
    fn read(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let word = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
        let kind = word(offset + 4)?;
        if !kind.iter().all(u8::is_ascii_alphabetic) {
            return None;
        }
        // A length is at most 2^31 - 1 (PNG specification, 5.3), and the file is far smaller.
        let length = u32::from_be_bytes(word(offset)?) as usize;
        let end = offset.saturating_add(length).saturating_add(12);
        let whole = bytes.get(offset..end)?;
        let checked = whole.get(4..8 + length)?;
        let mut sum = Crc::new();
        sum.update(checked);
        let sound = sum.sum() == u32::from_be_bytes(word(offset + 8 + length)?);
        Some(Self { offset, kind, data: checked.get(4..).unwrap_or_default(), whole, sound })
    }

    fn add_to(&self, card: &mut PngCard<'a>) {
        match &self.kind {
            b"IHDR" => match read_header(self) {
                Some(size) => card.size = size,
                None => card.fail(self.offset, "the header breaks the format"),
            },
            b"tEXt" | b"zTXt" | b"iTXt" => self.read_text(card),
            _ => {}
        }
        if PICTURE_CHUNKS.contains(&&self.kind) && !card.ended {
            if !self.sound {
                card.fail(self.offset, "a chunk's checksum is wrong");
            }
            card.avatar.extend_from_slice(self.whole);
        }
        card.ended |= self.kind == *b"IEND";
    }

    /// Stores the chunk's text if its keyword is one of a card's.
    fn read_text(&self, card: &mut PngCard<'a>) {
        let Some((keyword, rest)) = split_at_nul(self.data) else {
            if self.data.starts_with(b"chara") || self.data.starts_with(b"ccv3") {
                card.fail(self.offset, "a text chunk breaks the format");
            }
            return;
        };
        let texts = match keyword {
            b"ccv3" => &mut card.v3,
            b"chara" => &mut card.v2,
            _ => {
                card.assets += usize::from(keyword.starts_with(b"chara-ext-asset_"));
                card.unsound_remarks += usize::from(!self.sound);
                return;
            }
        };
        let Some((compressed, data)) = self.encoded(rest) else {
            card.fail(self.offset, "a text chunk breaks the format");
            return;
        };
        texts.push(Text { offset: self.offset, data, compressed, sound: self.sound });
        card.behind_end |= card.ended;
    }

    /// Returns the text behind the keyword, and true if it is compressed.
    fn encoded(&self, rest: &'a [u8]) -> Option<(bool, &'a [u8])> {
        match &self.kind {
            b"tEXt" => Some((false, rest)),
            b"zTXt" => match rest.split_first() {
                Some((0, data)) => Some((true, data)),
                _ => None,
            },
            _ => {
                let [flag @ (0 | 1), 0, rest @ ..] = rest else { return None };
                let (_language, rest) = split_at_nul(rest)?;
                let (_translated, data) = split_at_nul(rest)?;
                Some((*flag == 1, data))
            }
        }
    }
}

fn split_at_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == 0)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// Returns width and height from the header; `None` if its colour type and depth do not exist.
fn read_header(chunk: &Chunk<'_>) -> Option<(u32, u32)> {
    let [w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, 0, 0, 0 | 1] = *chunk.data else { return None };
    let (width, height) = (u32::from_be_bytes([w0, w1, w2, w3]), u32::from_be_bytes([h0, h1, h2, h3]));
    let exists = match colour {
        0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | 4 | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    (exists && width > 0 && height > 0).then_some((width, height))
}

impl Text<'_> {
    /// Returns the JSON of the text: in base64, as the specification says, in base64 for addresses, or bare, as some
    /// writers do.
    ///
    /// # Errors
    ///
    /// [`Error::Png`] if it is neither, [`Error::TooLarge`] above a limit.
    pub(crate) fn json(&self) -> Result<Vec<u8>, Error> {
        let inflated;
        let text = if self.compressed {
            inflated = self.inflate()?;
            &inflated
        } else {
            self.data
        };
        let json = if text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii_start().starts_with(b"{") {
            text.to_vec()
        } else {
            if text.len() > MAX_CHUNK_TEXT_BYTES {
                return Err(too_large());
            }
            let packed: Vec<u8> = text.iter().filter_map(standard).collect();
            BASE64
                .decode(packed)
                .map_err(|_| Error::Png { offset: self.offset, reason: "the card in it is not base64" })?
        };
        if json.len() > MAX_CARD_JSON_BYTES { Err(too_large()) } else { Ok(json) }
    }

    fn inflate(&self) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        let limit = MAX_CHUNK_TEXT_BYTES as u64 + 1;
        ZlibDecoder::new(self.data)
            .take(limit)
            .read_to_end(&mut text)
            .map_err(|_| Error::Png { offset: self.offset, reason: "the compressed text is damaged" })?;
        if text.len() > MAX_CHUNK_TEXT_BYTES { Err(too_large()) } else { Ok(text) }
    }
}

/// Returns a byte of base64 in the standard alphabet; `None` for white space and for a NUL at the end.
fn standard(byte: &u8) -> Option<u8> {
    match byte {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        0 => None,
        byte if byte.is_ascii_whitespace() => None,
        byte => Some(*byte),
    }
}

fn too_large() -> Error {
    Error::TooLarge { what: "the card's text", limit: format!("{MAX_CARD_JSON_BYTES} bytes of JSON") }
}
