//! The one thing in Exif metadata that says how a picture looks: how the camera was held. It is read out of a block, and
//! written as a block that holds nothing else.

/// The tag of the orientation.
const ORIENTATION: u16 = 0x0112;

/// The type of a 16-bit number.
const SHORT: u16 = 3;

/// Bytes of an entry.
const ENTRY: usize = 12;

/// The length of what [`block`] returns.
pub(crate) const BLOCK_LENGTH: usize = 26;

/// Returns the orientation that a TIFF block names, from 2 to 8; `None` if it names none, or says that the picture stands
/// upright.
pub(crate) fn orientation(tiff: &[u8]) -> Option<u8> {
    let is_little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let two = *tiff.get(at..at.checked_add(2)?)?.first_chunk::<2>()?;
        Some(if is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) })
    };
    let long = |at: usize| {
        let four = *tiff.get(at..at.checked_add(4)?)?.first_chunk::<4>()?;
        Some(if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    };
    let first = usize::try_from(long(4)?).ok()?;
    for number in 0..usize::from(short(first)?) {
        let at = first.checked_add(2)?.checked_add(number * ENTRY)?;
        if short(at)? == ORIENTATION && short(at + 2)? == SHORT && long(at + 4)? == 1 {
            return u8::try_from(short(at + 8)?).ok().filter(|value| (2..=8).contains(value));
        }
    }
    None
}

/// Returns a TIFF block that holds an orientation alone.
pub(crate) fn block(orientation: u8) -> [u8; BLOCK_LENGTH] {
    let mut block = *b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0";
    block[19] = orientation;
    block
}

/// Returns the checksum of a PNG chunk: CRC-32 over its type and data.
pub(crate) fn png_checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orientation_is_read_in_both_orders_of_bytes_and_written_alone() {
        let little = b"II*\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x04\0\0\0abc\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        assert_eq!(orientation(little), Some(6));
        for turned in 2..=8 {
            assert_eq!(orientation(&block(turned)), Some(turned));
        }
        for upright in [block(0), block(1), block(9)] {
            assert_eq!(orientation(&upright), None);
        }
        for cut in 0..20 {
            assert_eq!(orientation(&block(6)[..cut]), None, "{cut}");
        }
        assert_eq!(orientation(b"MM\0*\xff\xff\xff\xff"), None);
    }

    #[test]
    fn a_checksum_is_that_of_png() {
        assert_eq!(png_checksum(b"IEND"), 0xae42_6082);
    }
}
