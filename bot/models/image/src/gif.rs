//! The first frame of a GIF file (<https://www.w3.org/Graphics/GIF/spec-gif89a.txt>). What the file holds besides it is not
//! read: comments, later frames, how long they are shown.

use image::{Rgb, RgbImage};

use crate::picture::{PictureError, PictureLimits};

/// Begins a frame.
const FRAME: u8 = 0x2c;

/// Begins an extension, and the extension that says which colour is transparent.
const EXTENSION: u8 = 0x21;
const CONTROL: u8 = 0xf9;

/// Says in a frame's flags that its rows come in four passes.
const INTERLACED: u8 = 0x40;

/// The most codes of a table of strings.
const MAX_CODES: usize = 4_096;

/// The most bits of a code.
const MAX_BITS: u32 = 12;

/// First row and step of each pass over the rows of an interlaced frame.
const PASSES: [(usize, usize); 4] = [(0, 8), (4, 8), (2, 4), (1, 2)];

/// Returns true if bytes begin like a GIF file that has a size.
pub(crate) fn is_gif(bytes: &[u8]) -> bool {
    (bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")) && bytes.len() >= HEADER
}

/// Bytes of the signature and of the size.
const HEADER: usize = 13;

/// Reads a file from its front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], PictureError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(PictureError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, PictureError> {
        self.take(1)?.first().copied().ok_or(PictureError::Damaged)
    }

    fn number(&mut self) -> Result<u32, PictureError> {
        let bytes = self.take(2)?.first_chunk::<2>().ok_or(PictureError::Damaged)?;
        Ok(u32::from(u16::from_le_bytes(*bytes)))
    }

    /// Returns the table of colours that flags announce, three bytes each; empty without one.
    fn colours(&mut self, flags: u8) -> Result<&'a [u8], PictureError> {
        if flags & 0x80 == 0 {
            return Ok(&[]);
        }
        self.take(3 << ((flags & 7) + 1))
    }

    /// Returns the content of a row of blocks, up to the empty one.
    fn blocks(&mut self) -> Result<Vec<u8>, PictureError> {
        let mut content = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(content),
                length => content.extend_from_slice(self.take(usize::from(length))?),
            }
        }
    }
}

/// Returns a size, if it is within the limits.
fn checked(width: u32, height: u32, limits: &PictureLimits) -> Result<(u32, u32), PictureError> {
    if width == 0 || height == 0 {
        return Err(PictureError::Damaged);
    }
    let is_too_large = width.max(height) > limits.max_side || u64::from(width) * u64::from(height) > limits.max_pixels;
    if is_too_large { Err(PictureError::TooLarge) } else { Ok((width, height)) }
}

/// Returns the width and height of a GIF file without decoding it.
pub(crate) fn size_of(bytes: &[u8], limits: &PictureLimits) -> Result<(u32, u32), PictureError> {
    if bytes.len() > limits.max_bytes {
        return Err(PictureError::TooLarge);
    }
    let mut file = Reader(bytes);
    file.take(6)?;
    checked(file.number()?, file.number()?, limits)
}

/// Decodes the first frame of a GIF file, on white.
pub(crate) fn first_frame(bytes: &[u8], limits: &PictureLimits) -> Result<RgbImage, PictureError> {
    let (width, height) = size_of(bytes, limits)?;
    let mut file = Reader(bytes);
    let flags = file.take(HEADER)?.get(10).copied().ok_or(PictureError::Damaged)?;
    let shared = file.colours(flags)?;
    let mut transparent = None;
    loop {
        match file.byte()? {
            EXTENSION => {
                let label = file.byte()?;
                let content = file.blocks()?;
                if let (CONTROL, [flags, _, _, index]) = (label, content.as_slice()) {
                    transparent = (flags & 1 == 1).then_some(*index);
                }
            }
            FRAME => return frame(&mut file, (width, height), (shared, transparent), limits),
            // Some programs write empty blocks between the parts.
            0 => {}
            _ => return Err(PictureError::Damaged),
        }
    }
}

/// Decodes a frame onto a picture of this size.
fn frame(
    file: &mut Reader<'_>,
    (width, height): (u32, u32),
    (shared, transparent): (&[u8], Option<u8>),
    limits: &PictureLimits,
) -> Result<RgbImage, PictureError> {
    let (left, top) = (file.number()?, file.number()?);
    let (own_width, own_height) = checked(file.number()?, file.number()?, limits)?;
    // What decoding may take is counted by the size of the whole.
    if left.saturating_add(own_width) > width || top.saturating_add(own_height) > height {
        return Err(PictureError::Damaged);
    }
    let flags = file.byte()?;
    let own = file.colours(flags)?;
    let colours = if own.is_empty() { shared } else { own };
    let bits = u32::from(file.byte()?);
    let pixels = own_width as usize * own_height as usize;
    // Pixels that are missing stay white, as browsers leave them out.
    let indexes = unpacked(&file.blocks()?, bits, pixels).filter(|indexes| !indexes.is_empty());
    let indexes = indexes.ok_or(PictureError::Damaged)?;
    let mut picture = RgbImage::from_pixel(width, height, Rgb([255; 3]));
    for (row, line) in rows(own_height as usize, flags & INTERLACED != 0).zip(indexes.chunks(own_width as usize)) {
        for (column, index) in (0..).zip(line) {
            let from = usize::from(*index) * 3;
            let colour = colours.get(from..from + 3).and_then(|colour| colour.first_chunk::<3>());
            let at = (left + column, top + row as u32);
            if let (Some(colour), Some(pixel)) = (colour, picture.get_pixel_mut_checked(at.0, at.1))
                && transparent != Some(*index)
            {
                pixel.0 = *colour;
            }
        }
    }
    Ok(picture)
}

/// Returns the numbers of a frame's rows in the order in which they come.
fn rows(height: usize, is_interlaced: bool) -> Box<dyn Iterator<Item = usize>> {
    if !is_interlaced {
        return Box::new(0..height);
    }
    Box::new(PASSES.into_iter().flat_map(move |(first, step)| (first..height).step_by(step)))
}

/// A string of the table: another string and one byte behind it.
#[derive(Clone, Copy)]
struct Entry {
    before: Option<u16>,
    first: u8,
    last: u8,
}

/// Unpacks at most `most` bytes that were packed by LZW; `None` if the codes make no sense.
fn unpacked(packed: &[u8], bits: u32, most: usize) -> Option<Vec<u8>> {
    if !(1..=8).contains(&bits) {
        return None;
    }
    let (clear, end) = (1_usize << bits, (1_usize << bits) + 1);
    let literal = |byte: usize| Entry { before: None, first: byte as u8, last: byte as u8 };
    // The codes to clear and to end have places in the table, and are never looked up.
    let mut table: Vec<Entry> = (0..=end).map(literal).collect();
    let (mut width, mut previous) = (bits + 1, None);
    let (mut held, mut held_bits) = (0_u32, 0);
    let mut packed = packed.iter();
    // A file may announce more pixels than it has.
    let mut unpacked = Vec::with_capacity(most.min(packed.len().saturating_mul(8)));
    while unpacked.len() < most {
        while held_bits < width {
            let Some(byte) = packed.next() else { return Some(unpacked) };
            held |= u32::from(*byte) << held_bits;
            held_bits += 8;
        }
        let code = (held & ((1 << width) - 1)) as usize;
        (held, held_bits) = (held >> width, held_bits - width);
        if code == end {
            break;
        }
        if code == clear {
            table.truncate(end + 1);
            (width, previous) = (bits + 1, None);
            continue;
        }
        if let Some(before) = previous {
            let before_first = table.get(usize::from(before))?.first;
            let last = if code == table.len() { before_first } else { table.get(code)?.first };
            if table.len() < MAX_CODES {
                table.push(Entry { before: Some(before), first: before_first, last });
                if table.len() == 1 << width && width < MAX_BITS {
                    width += 1;
                }
            }
        }
        append(&mut unpacked, &table, code, most)?;
        previous = u16::try_from(code).ok();
    }
    Some(unpacked)
}

/// Appends the string of a code, but not beyond `most` bytes.
fn append(unpacked: &mut Vec<u8>, table: &[Entry], code: usize, most: usize) -> Option<()> {
    let from = unpacked.len();
    let mut entry = table.get(code)?;
    unpacked.push(entry.last);
    while let Some(before) = entry.before {
        entry = table.get(usize::from(before))?;
        unpacked.push(entry.last);
    }
    unpacked.get_mut(from..)?.reverse();
    unpacked.truncate(most);
    Some(())
}
