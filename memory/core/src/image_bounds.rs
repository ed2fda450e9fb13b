//! How large pictures are, by their headers. Whoever decodes one later needs memory for its pixels.

use crate::gif;

/// The most pixels of a picture that is kept.
const MAX_PIXELS: u64 = 64 << 20;

/// The most frames of a moving picture that is kept.
const MAX_FRAMES: u64 = 2_000;

/// The size of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    width: u64,
    height: u64,
    frames: u64,
}

/// Returns true unless the header of a PNG, JPEG, WebP or GIF picture announces more pixels or frames than are kept.
pub(crate) fn is_within_bounds(bytes: &[u8]) -> bool {
    let size = if bytes.starts_with(b"\x89PNG") {
        png(bytes)
    } else if bytes.starts_with(b"\xff\xd8") {
        jpeg(bytes)
    } else if bytes.starts_with(b"GIF8") {
        gif::size(bytes).map(|(width, height, frames)| Size { width, height, frames })
    } else {
        webp(bytes)
    };
    size.is_none_or(|size| size.width.saturating_mul(size.height) <= MAX_PIXELS && size.frames <= MAX_FRAMES)
}

fn be(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let number = bytes.get(at..at.checked_add(length)?)?;
    Some(number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn le(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let number = bytes.get(at..at.checked_add(length)?)?;
    Some(number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn png(bytes: &[u8]) -> Option<Size> {
    let (width, height) = (be(bytes, 16, 4)?, be(bytes, 20, 4)?);
    let (mut at, mut frames) = (8, 1);
    // The chunk that announces frames stands before the pixels.
    while let (Some(length), Some(kind)) = (be(bytes, at, 4), bytes.get(at + 4..at + 8)) {
        match kind {
            b"acTL" => frames = be(bytes, at + 8, 4)?,
            b"IDAT" | b"IEND" => break,
            _ => {}
        }
        at = at.checked_add(usize::try_from(length).ok()?)?.checked_add(12)?;
    }
    Some(Size { width, height, frames })
}

fn jpeg(bytes: &[u8]) -> Option<Size> {
    let mut at = 2;
    loop {
        match (bytes.get(at)?, *bytes.get(at + 1)?) {
            (0xff, 0xff) => at += 1,
            // A frame header, but not one of the tables that have numbers in between.
            (0xff, marker) if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some(Size { width: be(bytes, at + 7, 2)?, height: be(bytes, at + 5, 2)?, frames: 1 });
            }
            (0xff, 0xda) => return None,
            (0xff, _) => at = at.checked_add(2)?.checked_add(usize::try_from(be(bytes, at + 2, 2)?).ok()?)?,
            _ => return None,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<Size> {
    let (mut size, mut frames, mut at) = (None, 0, 12);
    while let (Some(kind), Some(length)) = (bytes.get(at..at + 4), le(bytes, at + 4, 4)) {
        match kind {
            b"VP8X" if size.is_none() => {
                size = Some((le(bytes, at + 12, 3)?.saturating_add(1), le(bytes, at + 15, 3)?.saturating_add(1)));
            }
            // Behind the frame tag and the start code, with 14 bits each.
            b"VP8 " if size.is_none() => {
                size = Some((le(bytes, at + 14, 2)? & 0x3fff, le(bytes, at + 16, 2)? & 0x3fff));
            }
            b"VP8L" if size.is_none() => {
                let packed = le(bytes, at + 9, 4)?;
                size = Some(((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1));
            }
            b"ANMF" => frames += 1,
            _ => {}
        }
        let padded = length.checked_add(length % 2)?;
        at = at.checked_add(8)?.checked_add(usize::try_from(padded).ok()?)?;
    }
    let (width, height) = size?;
    Some(Size { width, height, frames })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png_of(width: u32, height: u32, frames: Option<u32>) -> Vec<u8> {
        let chunk = |kind: &[u8], data: &[u8]| [&(data.len() as u32).to_be_bytes(), kind, data, b"sums"].concat();
        let head = [width.to_be_bytes().as_slice(), &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        let frames = frames.map(|frames| chunk(b"acTL", &[frames.to_be_bytes(), [0; 4]].concat())).unwrap_or_default();
        [b"\x89PNG\r\n\x1a\n".as_slice(), &chunk(b"IHDR", &head), &frames, &chunk(b"IDAT", b"x")].concat()
    }

    fn jpeg_of(width: u16, height: u16) -> Vec<u8> {
        let head =
            [&[0xff, 0xc0, 0, 11, 8][..], &height.to_be_bytes(), &width.to_be_bytes(), &[1, 1, 0x11, 0]].concat();
        [&[0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2][..], &head].concat()
    }

    fn webp_of(width: u32, height: u32, frames: usize) -> Vec<u8> {
        let le24 = |side: u32| (side - 1).to_le_bytes()[..3].to_vec();
        let head = [&b"VP8X\x0a\0\0\0\0\0\0\0"[..], &le24(width), &le24(height)].concat();
        [&b"RIFF\0\0\0\0WEBP"[..], &head, &b"ANMF\0\0\0\0".repeat(frames)].concat()
    }

    fn gif_of(width: u16, height: u16, frames: usize) -> Vec<u8> {
        let frame = b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x01\x44\0".repeat(frames);
        [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0, 0, 0], &frame, b"\x3b"].concat()
    }

    #[test]
    fn bombs_are_told_by_their_headers() {
        for (fits, bytes) in [
            (true, png_of(4_000, 3_000, None)),
            (false, png_of(60_000, 60_000, None)),
            (false, png_of(u32::MAX, u32::MAX, None)),
            (true, png_of(100, 100, Some(50))),
            (false, png_of(100, 100, Some(1_000_000))),
            (true, jpeg_of(8_000, 6_000)),
            (false, jpeg_of(65_500, 65_500)),
            (true, webp_of(4_000, 3_000, 3)),
            (false, webp_of(16_000, 16_000, 0)),
            (false, webp_of(10, 10, 3_000)),
            (true, gif_of(800, 600, 100)),
            (false, gif_of(60_000, 60_000, 1)),
            (false, gif_of(10, 10, 2_001)),
            (true, b"\x89PNG".to_vec()),
        ] {
            assert_eq!(is_within_bounds(&bytes), fits, "{:?}", bytes.get(..40.min(bytes.len())));
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_within_its_bytes(kind in 0_usize..3, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let start: [&[u8]; 3] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"RIFF\x20\0\0\0WEBP"];
            is_within_bounds(&[start[kind], &bytes].concat());
        }
    }
}
