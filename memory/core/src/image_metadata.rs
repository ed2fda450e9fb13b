//! Removes the metadata of pictures before they are kept: place, time, camera, author, thumbnails. The pixels stay as
//! they are, and so does how the camera was held, without which photos lie on their side. Pictures whose structure cannot
//! be read are not kept.

use azera_types::{Part, PartKind};

use crate::exif::{self, BLOCK_LENGTH};
use crate::gif;
use crate::image_bounds::is_within_bounds;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8";

/// PNG chunks that say how the picture looks. Others are left out.
const PNG_CHUNKS: [&[u8; 4]; 14] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"bKGD", b"pHYs", b"acTL",
    b"fcTL", b"fdAT",
];

/// WebP chunks that say how the picture looks.
const WEBP_CHUNKS: [&[u8; 4]; 6] = [b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"];

/// Flags of a `VP8X` chunk that announce a colour profile and XMP, which are left out.
const WEBP_METADATA_FLAGS: u8 = 0x20 | 0x04;

/// The flag of a `VP8X` chunk that announces Exif.
const WEBP_EXIF_FLAG: u8 = 0x08;

/// Begins Exif in JPEG, and in some WebP files.
const EXIF: &[u8] = b"Exif\0\0";

/// The length of a JFIF segment without a thumbnail, and the index of the thumbnail's width.
const JFIF_LENGTH: usize = 18;
const JFIF_THUMBNAIL: usize = 16;

/// The length of Adobe's segment.
const ADOBE_LENGTH: usize = 16;

/// Returns the bytes to keep of a part; `None` if they may hold metadata that cannot be removed, or if they are a picture
/// with more pixels or frames than are kept.
pub fn without_metadata(part: &Part, bytes: Vec<u8>) -> Option<Vec<u8>> {
    // What the bytes are matters, not what somebody says they are.
    if bytes.starts_with(PNG) {
        return png(&bytes).filter(|kept| is_within_bounds(kept));
    }
    if bytes.starts_with(JPEG) {
        return jpeg(&bytes).filter(|kept| is_within_bounds(kept));
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        return gif::without_metadata(&bytes).filter(|kept| is_within_bounds(kept));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return webp(&bytes).filter(|kept| is_within_bounds(kept));
    }
    // HEIC pictures and films, whatever they are called.
    let is_container = bytes.get(4..8) == Some(b"ftyp") && part.kind != PartKind::Audio;
    let is_tiff = bytes.starts_with(b"II*\0") || bytes.starts_with(b"MM\0*");
    (part.kind != PartKind::Image && !is_container && !is_tiff).then_some(bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at.checked_add(4)?)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*four)).ok()
}

fn png(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut kept = PNG.to_vec();
    let mut at = PNG.len();
    let mut turned = None;
    loop {
        // Length, type, data, checksum.
        let end = be32(bytes, at)?.checked_add(at)?.checked_add(12)?;
        let chunk = bytes.get(at..end)?;
        let kind = chunk.get(4..8)?;
        if PNG_CHUNKS.iter().any(|known| known.as_slice() == kind) {
            kept.extend_from_slice(chunk);
        } else if kind == b"eXIf" && turned.is_none() && chunk.len() >= BLOCK_LENGTH + 12 {
            turned = exif::orientation(chunk.get(8..chunk.len() - 4)?);
            kept.extend(turned.map(png_exif).unwrap_or_default());
        }
        if kind == b"IEND" {
            // What stands behind the picture is not part of it.
            return Some(kept);
        }
        at = end;
    }
}

/// Returns the chunk of a PNG file that holds an orientation alone.
fn png_exif(orientation: u8) -> Vec<u8> {
    let data = [b"eXIf".as_slice(), &exif::block(orientation)].concat();
    [&(BLOCK_LENGTH as u32).to_be_bytes(), data.as_slice(), &exif::png_checksum(&data).to_be_bytes()].concat()
}

fn jpeg(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut kept = JPEG.to_vec();
    let mut at = JPEG.len();
    let mut turned = None;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Markers may be padded.
            0xff => at += 1,
            0xd9 => {
                kept.extend_from_slice(&[0xff, 0xd9]);
                return Some(kept);
            }
            // Markers without data do not stand here.
            0x00 | 0x01 | 0xd0..=0xd8 => return None,
            _ => {
                let length = usize::from(u16::from_be_bytes([*bytes.get(at + 2)?, *bytes.get(at + 3)?]));
                let end = at.checked_add(2)?.checked_add(length)?;
                let segment = bytes.get(at..end).filter(|_| length >= 2)?;
                if marker == 0xe1 && turned.is_none() {
                    turned = jpeg_orientation(segment);
                    kept.extend(turned.map(jpeg_exif).unwrap_or_default());
                }
                kept.extend(jpeg_look(marker, segment));
                at = end;
                if marker == 0xda {
                    let scan = scan_length(bytes.get(at..)?)?;
                    kept.extend_from_slice(bytes.get(at..at + scan)?);
                    at += scan;
                }
            }
        }
    }
}

/// Returns what of a segment says how the picture looks.
fn jpeg_look(marker: u8, segment: &[u8]) -> Vec<u8> {
    let cut = |length: usize| {
        let mut segment = segment.get(..length.min(segment.len())).unwrap_or_default().to_vec();
        if let Some([_, _, high, low]) = segment.first_chunk_mut::<4>() {
            // At most as long as before.
            [*high, *low] = (length.min(usize::from(u16::MAX)) as u16 - 2).to_be_bytes();
        }
        segment
    };
    match (marker, segment.get(4..9).unwrap_or_default()) {
        // What stands behind is a small picture of the uncut photo.
        (0xe0, b"JFIF\0") if segment.len() >= JFIF_LENGTH => {
            let mut kept = cut(JFIF_LENGTH);
            kept.iter_mut().skip(JFIF_THUMBNAIL).for_each(|side| *side = 0);
            kept
        }
        (0xee, b"Adobe") if segment.len() > ADOBE_LENGTH => cut(ADOBE_LENGTH),
        (0xe0, b"JFIF\0") | (0xee, b"Adobe") => segment.to_vec(),
        (0xe0..=0xef | 0xfe, _) => Vec::new(),
        _ => segment.to_vec(),
    }
}

/// Returns the orientation in a segment of Exif that has the room to hold it alone.
fn jpeg_orientation(segment: &[u8]) -> Option<u8> {
    let tiff = segment.get(4..)?.strip_prefix(EXIF)?;
    exif::orientation(tiff).filter(|_| tiff.len() >= BLOCK_LENGTH)
}

/// Returns the segment of a JPEG file that holds an orientation alone.
fn jpeg_exif(orientation: u8) -> Vec<u8> {
    let length = (2 + EXIF.len() + BLOCK_LENGTH) as u16;
    [&[0xff, 0xe1], length.to_be_bytes().as_slice(), EXIF, &exif::block(orientation)].concat()
}

/// Returns the length of the compressed data up to the next marker.
fn scan_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7 | 0xff))
}

fn webp(bytes: &[u8]) -> Option<Vec<u8>> {
    let le32 = |at: usize| {
        let four = bytes.get(at..at.checked_add(4)?)?.first_chunk::<4>()?;
        usize::try_from(u32::from_le_bytes(*four)).ok()
    };
    let bytes = bytes.get(..le32(4)?.checked_add(8)?)?;
    let mut chunks: Vec<(&[u8], &[u8])> = Vec::new();
    let mut at = 12;
    while at < bytes.len() {
        let length = le32(at + 4)?;
        // Data of an odd length is padded.
        let next = at.checked_add(8)?.checked_add(length)?.checked_add(length % 2)?;
        let chunk = bytes.get(at..next)?;
        chunks.push((chunk.get(..4)?, chunk));
        at = next;
    }
    let flags = chunks.iter().find(|(kind, _)| kind == b"VP8X").and_then(|(_, chunk)| chunk.get(8));
    let mut turned = chunks
        .iter()
        .filter(|(kind, _)| kind == b"EXIF")
        .find_map(|(_, chunk)| webp_orientation(chunk))
        // Who shows the picture looks for it only if it is announced.
        .filter(|_| flags.is_some_and(|flags| flags & WEBP_EXIF_FLAG != 0));
    let announced = if turned.is_some() { WEBP_METADATA_FLAGS } else { WEBP_METADATA_FLAGS | WEBP_EXIF_FLAG };
    let mut kept = b"WEBP".to_vec();
    for (kind, chunk) in chunks {
        if WEBP_CHUNKS.iter().any(|known| known.as_slice() == kind) {
            let from = kept.len();
            kept.extend_from_slice(chunk);
            if kind == b"VP8X" {
                *kept.get_mut(from + 8)? &= !announced;
            }
        } else if kind == b"EXIF"
            && webp_orientation(chunk).is_some()
            && let Some(orientation) = turned.take()
        {
            kept.extend_from_slice(b"EXIF");
            kept.extend_from_slice(&(BLOCK_LENGTH as u32).to_le_bytes());
            kept.extend_from_slice(&exif::block(orientation));
        }
    }
    let mut whole = b"RIFF".to_vec();
    whole.extend(u32::try_from(kept.len()).ok()?.to_le_bytes());
    whole.append(&mut kept);
    Some(whole)
}

/// Returns the orientation in a chunk of Exif that has the room to hold it alone.
fn webp_orientation(chunk: &[u8]) -> Option<u8> {
    let data = chunk.get(8..).filter(|data| data.len() >= BLOCK_LENGTH)?;
    exif::orientation(data.strip_prefix(EXIF).unwrap_or(data))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &[u8] = b"52.5200N 13.4050E";

    fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u32).to_be_bytes();
        [&length, kind, data, b"sums"].concat()
    }

    fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker], length.as_slice(), data].concat()
    }

    fn riff(kind: &[u8], data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u32).to_le_bytes();
        [kind, &length, data, if data.len() % 2 == 1 { b"\0" } else { b"" }].concat()
    }

    fn image(bytes: &[u8]) -> Option<Vec<u8>> {
        without_metadata(&Part::new("x", Some("image/png"), 0), bytes.to_vec())
    }

    #[track_caller]
    fn check(with: Vec<u8>, without: Vec<u8>) {
        assert!(with.windows(SECRET.len()).any(|part| part == SECRET), "the test tests nothing");
        assert_eq!(image(&with).as_ref(), Some(&without));
        assert_eq!(image(&without), Some(without), "nothing more is removed");
    }

    #[test]
    fn a_png_loses_its_metadata_and_keeps_its_pixels() {
        let (head, pixels, end) =
            (chunk(b"IHDR", b"\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0"), chunk(b"IDAT", b"pixels"), chunk(b"IEND", b""));
        let secrets = [chunk(b"eXIf", SECRET), chunk(b"tEXt", SECRET), chunk(b"zzZz", SECRET)].concat();
        check([PNG, &head, &secrets, &pixels, &end, SECRET].concat(), [PNG, &head, &pixels, &end].concat());
    }

    #[test]
    fn a_jpeg_loses_its_metadata_and_keeps_all_its_scans() {
        let (jfif, table) = (segment(0xe0, b"JFIF\0\x01\x02"), segment(0xdb, b"table"));
        let (first, second) = (segment(0xda, b"first"), segment(0xda, b"second"));
        let secrets = [segment(0xe1, SECRET), segment(0xed, SECRET), segment(0xfe, SECRET)].concat();
        let data: &[u8] = b"ab\xff\x00c\xff\xd0d";
        check(
            [JPEG, &jfif, &secrets, &table, &first, data, &secrets, &second, data, b"\xff\xd9", SECRET].concat(),
            [JPEG, &jfif, &table, &first, data, &second, data, b"\xff\xd9"].concat(),
        );
    }

    #[test]
    fn a_webp_loses_its_metadata_and_does_not_announce_any() {
        let whole = |chunks: &[u8]| [b"RIFF", &(chunks.len() as u32 + 4).to_le_bytes()[..], b"WEBP", chunks].concat();
        let (pixels, secrets) = (riff(b"VP8 ", b"odd"), [riff(b"EXIF", SECRET), riff(b"XMP ", SECRET)].concat());
        let flags = |flags: u8| riff(b"VP8X", &[flags, 0, 0, 0, 1, 1, 0, 1, 1, 0]);
        check(
            [whole(&[flags(0x2c | 0x10), pixels.clone(), secrets].concat()), SECRET.to_vec()].concat(),
            whole(&[flags(0x10), pixels].concat()),
        );
    }

    /// Returns Exif of a picture that was taken with a turned camera, with a secret.
    fn turned() -> Vec<u8> {
        let mut tiff = exif::block(6)[..8].to_vec();
        tiff.extend([0, 2]);
        // The place, then the orientation.
        tiff.extend(b"\x88\x25\0\x02\0\0\0\x04abc\0");
        tiff.extend(&exif::block(6)[10..]);
        tiff.extend(SECRET);
        tiff
    }

    #[test]
    fn a_photo_keeps_how_the_camera_was_held_and_nothing_else() {
        let (pixels, frame) = (segment(0xda, b"first"), segment(0xdb, b"table"));
        let held = |tiff: &[u8]| segment(0xe1, &[EXIF, tiff].concat());
        let thumbnail = [b"JFIF\0\x01\x02\x01\0\x48\0\x48\x02\x01", SECRET].concat();
        check(
            [JPEG, &segment(0xe0, &thumbnail), &held(&turned()), &held(&turned()), &frame, &pixels, b"\xff\xd9"]
                .concat(),
            [
                JPEG,
                &segment(0xe0, b"JFIF\0\x01\x02\x01\0\x48\0\x48\0\0"),
                &held(&exif::block(6)),
                &frame,
                &pixels,
                b"\xff\xd9",
            ]
            .concat(),
        );
        let head = chunk(b"IHDR", b"\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0");
        let rest = [chunk(b"IDAT", b"pixels"), chunk(b"IEND", b"")].concat();
        check([PNG, &head, &chunk(b"eXIf", &turned()), &rest].concat(), [PNG, &head, &png_exif(6), &rest].concat());
        let whole = |chunks: &[u8]| [b"RIFF", &(chunks.len() as u32 + 4).to_le_bytes()[..], b"WEBP", chunks].concat();
        let flags = |flags: u8| riff(b"VP8X", &[flags, 0, 0, 0, 1, 1, 0, 1, 1, 0]);
        let seen = riff(b"VP8 ", b"even");
        check(
            whole(&[flags(0x2c), seen.clone(), riff(b"EXIF", &turned())].concat()),
            whole(&[flags(0x08), seen.clone(), riff(b"EXIF", &exif::block(6))].concat()),
        );
        check(
            whole(&[flags(0x24), seen.clone(), riff(b"EXIF", &turned())].concat()),
            whole(&[flags(0), seen].concat()),
        );
    }

    #[test]
    fn bytes_that_may_hold_metadata_are_not_kept() {
        let heic: &[u8] = b"\0\0\0\x18ftypheic";
        assert_eq!(image(b"GIF89a"), None);
        assert_eq!(image(&[PNG, b"cut"].concat()), None);
        let file = Part::new("x.txt", Some("text/plain"), 0);
        assert_eq!(without_metadata(&file, heic.to_vec()), None, "it says that it is a text");
        assert_eq!(without_metadata(&file, b"II*\0".to_vec()), None);
        assert_eq!(without_metadata(&file, b"a text".to_vec()), Some(b"a text".to_vec()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_within_their_bounds(
            kind in 0_usize..5,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let gif = b"GIF89a\x02\0\x02\0\0\0\0";
            let start: [&[u8]; 5] = [PNG, JPEG, b"RIFF\x20\0\0\0WEBP", gif, &[gif.as_slice(), b"\x21\xff\x0b"].concat()];
            let whole = [start[kind], &bytes].concat();
            if let Some(kept) = image(&whole) {
                prop_assert!(kept.len() <= whole.len());
                prop_assert_eq!(image(&kept), Some(kept));
            }
        }
    }
}
