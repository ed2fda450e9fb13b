//! GIF files (<https://www.w3.org/Graphics/GIF/spec-gif89a.txt>): their comments and what applications put into them is
//! removed before they are kept, and they are measured.

/// Bytes of the signature, the size and what belongs to it.
const HEADER: usize = 13;

/// Begin a frame, an extension, and the end.
const FRAME: u8 = 0x2c;
const EXTENSION: u8 = 0x21;
const END: u8 = 0x3b;

/// The label of the extension that says how long the next frame is shown and which colour is transparent, and its length.
const CONTROL: u8 = 0xf9;
const CONTROL_LENGTH: usize = 8;

/// The whole extension that says how often the frames are shown again, without that number.
const LOOP: &[u8] = b"\x21\xff\x0bNETSCAPE2.0\x03\x01";
const LOOP_LENGTH: usize = LOOP.len() + 3;

/// A part of a file.
enum Block<'a> {
    /// A frame with its colours and pixels.
    Frame(&'a [u8]),
    /// An extension.
    Extension(&'a [u8]),
}

/// Returns the length of the table of colours that flags announce.
fn colours(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Returns where a row of blocks ends.
fn blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = usize::from(*bytes.get(at)?);
        at = at.checked_add(1)?.checked_add(length)?;
        if length == 0 {
            return Some(at);
        }
    }
}

/// Returns the beginning of a file with the colours of all frames, and its parts; `None` if a part does not end. As in
/// browsers, a file with a frame may lack its own end, and empty blocks may stand between the parts.
fn parts(bytes: &[u8]) -> Option<(&[u8], Vec<Block<'_>>)> {
    let mut at = HEADER.checked_add(colours(*bytes.get(10)?))?;
    let head = bytes.get(..at)?;
    let (mut parts, mut has_frame) = (Vec::new(), false);
    loop {
        let end = match bytes.get(at).copied() {
            None if has_frame => return Some((head, parts)),
            Some(END) => return Some((head, parts)),
            Some(0) => {
                at += 1;
                continue;
            }
            Some(EXTENSION) => blocks(bytes, at.checked_add(2)?)?,
            Some(FRAME) => blocks(bytes, at.checked_add(11)?.checked_add(colours(*bytes.get(at + 9)?))?)?,
            _ => return None,
        };
        let part = bytes.get(at..end)?;
        let is_frame = part.first() == Some(&FRAME);
        has_frame |= is_frame;
        parts.push(if is_frame { Block::Frame(part) } else { Block::Extension(part) });
        at = end;
    }
}

/// Returns a file with its frames, and of its extensions those that say how the frames are shown; `None` if it cannot be
/// read.
pub(crate) fn without_metadata(bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, parts) = parts(bytes)?;
    let mut kept = head.to_vec();
    for part in parts {
        match part {
            Block::Frame(part) => kept.extend_from_slice(part),
            // Of this length it holds a number alone.
            Block::Extension(part) if part.len() == LOOP_LENGTH && part.starts_with(LOOP) => {
                kept.extend_from_slice(part);
            }
            Block::Extension(part) if part.get(1) == Some(&CONTROL) && part.len() == CONTROL_LENGTH => {
                kept.extend_from_slice(part);
            }
            Block::Extension(_) => {}
        }
    }
    kept.push(END);
    Some(kept)
}

/// Returns the width and height of the largest of a file's frames and of the file itself, and the number of frames.
pub(crate) fn size(bytes: &[u8]) -> Option<(u64, u64, u64)> {
    let (head, parts) = parts(bytes)?;
    let number = |bytes: &[u8], at: usize| {
        let two = bytes.get(at..at + 2)?.first_chunk::<2>()?;
        Some(u64::from(u16::from_le_bytes(*two)))
    };
    let (mut width, mut height, mut frames) = (number(head, 6)?, number(head, 8)?, 0);
    for part in parts {
        if let Block::Frame(part) = part {
            (width, height, frames) = (width.max(number(part, 5)?), height.max(number(part, 7)?), frames + 1);
        }
    }
    Some((width, height, frames))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"52.5200N 13.4050E";

    fn extension(label: u8, blocks: &[&[u8]]) -> Vec<u8> {
        let blocks = blocks.iter().flat_map(|block| [&[block.len() as u8], *block].concat());
        [EXTENSION, label].into_iter().chain(blocks).chain([0]).collect()
    }

    fn frame(width: u16, height: u16) -> Vec<u8> {
        let le = |number: u16| number.to_le_bytes();
        [&[FRAME, 0, 0, 0, 0][..], &le(width), &le(height), &[0x80, 1, 2, 3, 4, 5, 6, 2, 2, 0x44, 1, 0]].concat()
    }

    #[test]
    fn a_gif_keeps_its_frames_and_loses_what_was_written_into_it() {
        let head = b"GIF89a\x0a\0\x0a\0\x80\0\0abcdef".as_slice();
        let control = extension(CONTROL, &[&[0, 5, 0, 0]]);
        let again = extension(0xff, &[b"NETSCAPE2.0", &[1, 0, 0]]);
        let secrets = [
            extension(0xfe, &[SECRET]),
            extension(0xff, &[b"XMP DataXMP", SECRET]),
            extension(0xff, &[b"NETSCAPE2.0", &[1, 0, 0], SECRET]),
            extension(CONTROL, &[&[0, 5, 0, 0], SECRET]),
            extension(1, &[&[0; 12], SECRET]),
        ]
        .concat();
        let (first, second) = (frame(10, 10), frame(4, 4));
        let with = [head, &secrets, &again, &control, &first, &secrets, &control, &second, &[END], SECRET].concat();
        let without = [head, &again, &control, &first, &control, &second, &[END]].concat();
        assert_eq!(without_metadata(&with).as_ref(), Some(&without));
        assert_eq!(without_metadata(&without), Some(without.clone()), "nothing more is removed");
        assert_eq!(size(&without), Some((10, 10, 2)));
        // Cut between two parts behind a frame, a file gets an end. Cut within one, it cannot be read.
        let first_ends = [head, &again, &control, &first].concat().len();
        let between = [first_ends, first_ends + control.len(), without.len() - 1];
        for length in 0..without.len() {
            let ended = between.contains(&length).then(|| [&without[..length], &[END]].concat());
            assert_eq!(without_metadata(&without[..length]), ended, "{length}");
        }
    }

    #[test]
    fn empty_blocks_between_the_parts_are_left_out() {
        let head = b"GIF89a\x0a\0\x0a\0\0\0\0".as_slice();
        let frame = frame(10, 10);
        let with = [head, &[0], &frame, &[0, 0], &frame, &[0, END]].concat();
        assert_eq!(without_metadata(&with), Some([head, &frame, &frame, &[END]].concat()));
        assert_eq!(size(&with), Some((10, 10, 2)));
    }

    #[test]
    fn a_frame_that_is_larger_than_the_file_says_counts() {
        let file = [b"GIF89a\x0a\0\x0a\0\0\0\0".as_slice(), &frame(60_000, 3), &frame(2, 50_000), &[END]].concat();
        assert_eq!(size(&file), Some((60_000, 50_000, 2)));
    }
}
