//! GIF files: the first frame of each.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use azera_model_image::{Picture, PictureError, PictureLimits};

/// A picture of ten by ten pixels that another program wrote: the first example of "What's in a GIF".
const SAMPLE: &[u8] = b"GIF89a\x0a\0\x0a\0\x91\0\0\xff\xff\xff\xff\0\0\0\0\xff\0\0\0\x21\xf9\x04\0\0\0\0\0\
    \x2c\0\0\0\0\x0a\0\x0a\0\0\x02\x16\x8c\x2d\x99\x87\x2a\x1c\xdc\x33\xa0\x02\x75\xec\x95\xfa\xa8\xde\x60\x8c\
    \x04\x91\x4c\x01\0\x3b";

fn read(file: &[u8]) -> Result<Picture, PictureError> {
    Picture::read(file, &PictureLimits::default())
}

/// Returns the pixels of a picture, one after another.
fn pixels(picture: &Picture) -> impl Iterator<Item = [u8; 3]> {
    picture.pixels().chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]])
}

/// Packs bytes by LZW.
fn packed(bytes: &[u8], bits: u32) -> Vec<u8> {
    let (clear, end) = (1_u32 << bits, (1_u32 << bits) + 1);
    let (mut out, mut held, mut held_bits) = (Vec::new(), 0_u64, 0);
    let mut put = |code: u32, width: u32| {
        held |= u64::from(code) << held_bits;
        held_bits += width;
        while held_bits >= 8 {
            out.push(held as u8);
            (held, held_bits) = (held >> 8, held_bits - 8);
        }
    };
    let mut strings = std::collections::HashMap::new();
    let (mut next, mut width) = (end + 1, bits + 1);
    put(clear, width);
    let mut current: Option<u32> = None;
    for byte in bytes {
        let byte = u32::from(*byte);
        let Some(before) = current else {
            current = Some(byte);
            continue;
        };
        if let Some(code) = strings.get(&(before, byte)) {
            current = Some(*code);
            continue;
        }
        put(before, width);
        if next < 4_096 {
            if next == 1 << width {
                width += 1;
            }
            strings.insert((before, byte), next);
            next += 1;
        } else {
            put(clear, width);
            strings.clear();
            (next, width) = (end + 1, bits + 1);
        }
        current = Some(byte);
    }
    put(current.unwrap(), width);
    put(end, width);
    put(0, 16);
    out
}

/// Returns a file with one frame at this place.
fn file(size: (u16, u16), place: (u16, u16), own: (u16, u16), flags: u8, indexes: &[u8], control: &[u8]) -> Vec<u8> {
    let le = |numbers: &[u16]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    let colours: Vec<u8> = (0..=255).flat_map(|index| [index, 255 - index, 7]).collect();
    let blocks = packed(indexes, 8);
    let blocks = blocks.chunks(255).flat_map(|block| [&[block.len() as u8], block].concat());
    let mut file = [b"GIF89a".to_vec(), le(&[size.0, size.1]), vec![0xf7, 0, 0], colours, control.to_vec()].concat();
    file.extend([vec![0x2c], le(&[place.0, place.1, own.0, own.1]), vec![flags, 8]].concat());
    file.extend(blocks);
    file.extend([0, 0x3b]);
    file
}

fn noise(count: usize) -> Vec<u8> {
    (0..count as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 21) as u8 & if at % 3 == 0 { 3 } else { 255 })
        .collect()
}

#[test]
fn the_file_of_another_program_is_read() {
    let picture = read(SAMPLE).unwrap();
    let letters: String = pixels(&picture)
        .map(|pixel| match pixel {
            [255, 255, 255] => '.',
            [255, 0, 0] => 'r',
            [0, 0, 255] => 'b',
            other => panic!("{other:?}"),
        })
        .collect();
    let (top, middle) = ("rrrrrbbbbb", "rrr....bbb");
    let (low, bottom) = ("bbb....rrr", "bbbbbrrrrr");
    let lines = [top, top, top, middle, middle, low, low, bottom, bottom, bottom];
    assert_eq!((picture.width(), letters), (10, lines.concat()));
}

#[test]
fn a_large_frame_fills_the_table_of_strings_and_begins_anew() {
    let indexes = noise(300 * 200);
    let picture = read(&file((300, 200), (0, 0), (300, 200), 0, &indexes, &[])).unwrap();
    assert!(pixels(&picture).zip(&indexes).all(|(pixel, index)| pixel == [*index, 255 - *index, 7]));
    let flat = vec![9; 300 * 200];
    let picture = read(&file((300, 200), (0, 0), (300, 200), 0, &flat, &[])).unwrap();
    assert!(pixels(&picture).all(|pixel| pixel == [9, 246, 7]));
}

#[test]
fn rows_in_passes_a_place_and_a_transparent_colour_count() {
    let indexes: Vec<u8> = [0_u8, 8, 4, 2, 6, 10, 1, 3, 5, 7, 9].iter().flat_map(|row| [*row; 3]).collect();
    let picture = read(&file((3, 11), (0, 0), (3, 11), 0x40, &indexes, &[])).unwrap();
    let firsts: Vec<u8> = pixels(&picture).step_by(3).map(|pixel| pixel[0]).collect();
    assert_eq!(firsts, (0..11).collect::<Vec<u8>>());
    let control = [0x21, 0xf9, 4, 1, 0, 0, 5, 0];
    let picture = read(&file((4, 2), (1, 1), (3, 1), 0, &[3, 5, 3], &control)).unwrap();
    let seen: Vec<u8> = pixels(&picture).map(|pixel| pixel[2]).collect();
    assert_eq!(seen, [255, 255, 255, 255, 255, 7, 255, 7]);
    for beyond in [((2, 1), (3, 1)), ((1, 2), (3, 1)), ((0, 0), (9, 1))] {
        let file = file((4, 2), beyond.0, beyond.1, 0, &[3; 9], &control);
        assert_eq!(read(&file), Err(PictureError::Damaged), "{beyond:?} reaches beyond the whole");
    }
}

#[test]
fn missing_pixels_are_white_and_empty_blocks_between_the_parts_count_for_nothing() {
    let few = file((3, 2), (0, 0), (3, 2), 0, &[1, 2, 3, 4], &[0, 0]);
    let seen: Vec<u8> = pixels(&read(&few).unwrap()).map(|pixel| pixel[0]).collect();
    assert_eq!(seen, [1, 2, 3, 4, 255, 255]);
    assert_eq!(read(&few[..few.len() - 1]).map(|picture| picture.width()), Ok(3), "it lacks its end");
}

#[test]
fn what_is_too_large_or_damaged_is_not_decoded() {
    let small = PictureLimits { max_pixels: 99, ..PictureLimits::default() };
    assert_eq!(Picture::read(SAMPLE, &small), Err(PictureError::TooLarge));
    assert_eq!(Picture::size_of(SAMPLE, &PictureLimits::default()), Ok((10, 10)));
    assert_eq!(read(&file((2, 2), (0, 0), (9_000, 1), 0, &[1], &[])), Err(PictureError::TooLarge));
    for length in 13..SAMPLE.len() - 2 {
        assert_eq!(read(&SAMPLE[..length]), Err(PictureError::Damaged), "{length}");
    }
    // It announces as many pixels as may be in a frame, and has one.
    let bomb = file((2, 2), (0, 0), (4_096, 2_048), 0, &[1], &[]);
    assert_eq!(read(&bomb), Err(PictureError::Damaged));
}

#[test]
fn any_byte_may_be_wrong() {
    for at in 0..SAMPLE.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut file = SAMPLE.to_vec();
            file[at] = byte;
            if let Ok(picture) = read(&file) {
                assert!(
                    u64::from(picture.width()) * u64::from(picture.height()) <= PictureLimits::default().max_pixels
                );
            }
        }
    }
}
