//! Reads PNG files as far as cards need it: chunks, their checksums, and texts, but no pixels.
//!
//! The parser is our own because nothing here decodes an image. So a header that promises a hundred megapixels costs
//! nothing, and compressed text is inflated only up to a limit.

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
    /// Number of bytes after the end of the picture.
    pub(crate) trailing: usize,
}

impl PngCard<'_> {
    /// Returns true if the picture is small enough to be shown.
    pub(crate) fn shows(&self) -> bool {
        let (width, height) = self.size;
        width.max(height) <= MAX_AVATAR_SIDE_PX && u64::from(width) * u64::from(height) <= MAX_AVATAR_PIXELS
    }
}

/// The text of a chunk, still encoded.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    offset: usize,
    data: &'a [u8],
    compressed: bool,
}

/// Reads the chunks of a PNG file.
///
/// # Errors
///
/// [`Error::Png`] if it is truncated, a checksum is wrong, or it violates the format.
pub(crate) fn read_png(bytes: &[u8]) -> Result<PngCard<'_>, Error> {
    let mut card =
        PngCard { v3: Vec::new(), v2: Vec::new(), assets: 0, avatar: SIGNATURE.to_vec(), size: (0, 0), trailing: 0 };
    let mut offset = SIGNATURE.len();
    let mut pixels = false;
    loop {
        let chunk = Chunk::read(bytes, offset)?;
        let first = offset == SIGNATURE.len();
        if first != (chunk.kind == *b"IHDR") {
            return Err(Error::Png { offset, reason: "the header must come first and once" });
        }
        match &chunk.kind {
            b"IHDR" => card.size = read_header(&chunk)?,
            b"IDAT" => pixels = true,
            b"tEXt" | b"zTXt" | b"iTXt" => chunk.read_text(&mut card)?,
            _ => {}
        }
        if PICTURE_CHUNKS.contains(&&chunk.kind) {
            card.avatar.extend_from_slice(chunk.whole);
        }
        offset += chunk.whole.len();
        if chunk.kind == *b"IEND" {
            break;
        }
    }
    if !pixels {
        return Err(Error::Png { offset, reason: "there is no picture in it" });
    }
    card.trailing = bytes.len() - offset;
    Ok(card)
}

struct Chunk<'a> {
    offset: usize,
    kind: [u8; 4],
    data: &'a [u8],
    /// Length, kind, data and checksum.
    whole: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn read(bytes: &'a [u8], offset: usize) -> Result<Self, Error> {
        let cut_off = Error::Png { offset, reason: "the file ends in the middle of a chunk" };
        let word = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
        let (Some(length), Some(kind)) = (word(offset), word(offset + 4)) else { return Err(cut_off) };
        // A length is at most 2^31 - 1 (PNG specification, 5.3), and the file is far smaller.
        let length = u32::from_be_bytes(length) as usize;
        let end = offset.saturating_add(length).saturating_add(12);
        let Some(whole) = bytes.get(offset..end) else { return Err(cut_off) };
        let (Some(checked), Some(crc)) = (whole.get(4..8 + length), word(offset + 8 + length)) else {
            return Err(cut_off);
        };
        let mut sum = Crc::new();
        sum.update(checked);
        if sum.sum() != u32::from_be_bytes(crc) {
            return Err(Error::Png { offset, reason: "a chunk's checksum is wrong" });
        }
        Ok(Self { offset, kind, data: checked.get(4..).unwrap_or_default(), whole })
    }

    /// Stores the chunk's text if its keyword is one of a card's.
    fn read_text(&self, card: &mut PngCard<'a>) -> Result<(), Error> {
        let malformed = || Error::Png { offset: self.offset, reason: "a text chunk breaks the format" };
        let (keyword, rest) = split_at_nul(self.data).ok_or_else(malformed)?;
        let texts = match keyword {
            b"ccv3" => &mut card.v3,
            b"chara" => &mut card.v2,
            _ => {
                card.assets += usize::from(keyword.starts_with(b"chara-ext-asset_"));
                return Ok(());
            }
        };
        let (compressed, data) = match &self.kind {
            b"tEXt" => (false, rest),
            b"zTXt" => match rest.split_first() {
                Some((0, data)) => (true, data),
                _ => return Err(malformed()),
            },
            _ => {
                let [flag @ (0 | 1), 0, rest @ ..] = rest else { return Err(malformed()) };
                let (_language, rest) = split_at_nul(rest).ok_or_else(malformed)?;
                let (_translated, data) = split_at_nul(rest).ok_or_else(malformed)?;
                (*flag == 1, data)
            }
        };
        texts.push(Text { offset: self.offset, data, compressed });
        Ok(())
    }
}

fn split_at_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == 0)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// Returns width and height from the header, and checks that its colour type and depth exist.
fn read_header(chunk: &Chunk<'_>) -> Result<(u32, u32), Error> {
    let [w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, 0, 0, 0 | 1] = *chunk.data else {
        return Err(Error::Png { offset: chunk.offset, reason: "the header breaks the format" });
    };
    let (width, height) = (u32::from_be_bytes([w0, w1, w2, w3]), u32::from_be_bytes([h0, h1, h2, h3]));
    let exists = match colour {
        0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | 4 | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    if exists && width > 0 && height > 0 {
        Ok((width, height))
    } else {
        Err(Error::Png { offset: chunk.offset, reason: "the header breaks the format" })
    }
}

impl Text<'_> {
    /// Returns the JSON of the text: in base64, as the specification says, or bare, as some writers do.
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
        let json = if text.trim_ascii_start().starts_with(b"{") {
            text.to_vec()
        } else {
            if text.len() > MAX_CHUNK_TEXT_BYTES {
                return Err(too_large());
            }
            let packed: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
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

fn too_large() -> Error {
    Error::TooLarge { what: "the card's text", limit: format!("{MAX_CARD_JSON_BYTES} bytes of JSON") }
}
