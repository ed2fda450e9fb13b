//! Writes PNG files (<https://www.w3.org/TR/png-3/>): eight bits each of red, green and blue, compressed with deflate.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// First bytes of a PNG file.
pub(crate) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Bit depth, colour type 2 (red, green, blue), and the standard methods of compression, filtering and interlacing.
const KIND: [u8; 5] = [8, 2, 0, 0, 0];

/// Row filter "none", which compresses flat colours best.
const UNFILTERED: u8 = 0;

/// Bytes of a pixel.
pub(crate) const CHANNELS: usize = 3;

/// Compresses rows of pixels from the top, each `width` times [`CHANNELS`] bytes.
///
/// # Errors
///
/// Fails if the compression fails, which does not happen in RAM.
pub(crate) fn pack(width: u32, height: u32, pixels: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for row in pixels.chunks_exact(width as usize * CHANNELS) {
        packed.write_all(&[UNFILTERED])?;
        packed.write_all(row)?;
    }
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend(KIND);
    let mut file = SIGNATURE.to_vec();
    chunk(&mut file, *b"IHDR", &header)?;
    chunk(&mut file, *b"IDAT", &packed.finish()?)?;
    chunk(&mut file, *b"IEND", &[])?;
    Ok(file)
}

/// Appends a chunk of the file: length, kind, data, and a checksum of kind and data.
fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut sum = crc32fast::Hasher::new();
    sum.update(&kind);
    sum.update(data);
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend_from_slice(data);
    file.extend(sum.finalize().to_be_bytes());
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    /// Returns width, height and pixels of a file, and checks its format byte by byte.
    pub(crate) fn unpack(file: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut rest = file.strip_prefix(&SIGNATURE).unwrap();
        let mut chunks = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (kind, behind) = behind.split_first_chunk::<4>().unwrap();
            let (data, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
            let (sum, behind) = behind.split_first_chunk::<4>().unwrap();
            assert_eq!(crc32fast::hash(&[&kind[..], data].concat()), u32::from_be_bytes(*sum));
            chunks.push((*kind, data));
            rest = behind;
        }
        assert_eq!(chunks.iter().map(|(kind, _)| kind).collect::<Vec<_>>(), [b"IHDR", b"IDAT", b"IEND"]);
        let header = chunks[0].1;
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!(header[8..], KIND);
        let mut rows = Vec::new();
        ZlibDecoder::new(chunks[1].1).read_to_end(&mut rows).unwrap();
        let row = number(0) as usize * CHANNELS + 1;
        assert_eq!(rows.len(), row * number(4) as usize);
        let pixels = rows.chunks_exact(row).flat_map(|row| {
            assert_eq!(row[0], UNFILTERED);
            row[1..].to_vec()
        });
        (number(0), number(4), pixels.collect())
    }

    #[test]
    fn unpacking_returns_the_packed_pixels() {
        let pixels: Vec<u8> = (0..5 * 3 * 3).collect();
        assert_eq!(unpack(&pack(5, 3, &pixels).unwrap()), (5, 3, pixels));
    }
}
