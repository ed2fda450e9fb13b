//! Palettes of PNG files, checked before decoding: the `png` crate (0.18) panics on one that is no list of colours.

/// Bytes of a file's signature.
const SIGNATURE: usize = 8;

/// Bytes of a chunk besides its content: its length, its name and its checksum.
const AROUND: usize = 12;

/// Bytes of a palette at most: three for each of 256 colours.
const MOST: usize = 768;

/// Returns true if each palette before the pixels is a list of at most 256 colours
/// (<https://www.w3.org/TR/png-3/#11PLTE>).
pub(crate) fn is_list_of_colours(png: &[u8]) -> bool {
    let mut rest = png.get(SIGNATURE..).unwrap_or_default();
    while let Some((length, named)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        if named.starts_with(b"PLTE") && (!length.is_multiple_of(3) || length > MOST) {
            return false;
        }
        if named.starts_with(b"IDAT") {
            break;
        }
        rest = length.checked_add(AROUND).and_then(|whole| rest.get(whole..)).unwrap_or_default();
    }
    true
}
