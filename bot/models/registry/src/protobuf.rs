//! Protocol buffer messages, as far as ONNX files need them.

/// The wire type of a number.
const NUMBER: u64 = 0;
/// The wire type of eight bytes.
const FIXED_64: u64 = 1;
/// The wire type of a field with a length.
pub(crate) const WITH_LENGTH: u64 = 2;
/// The wire type of four bytes.
const FIXED_32: u64 = 5;

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    /// Its number.
    pub(crate) number: u64,
    /// The field with its tag, to copy it.
    pub(crate) whole: &'a [u8],
    /// Its bytes: a text, a message, or a number of fixed length. Empty for a number of any length.
    pub(crate) bytes: &'a [u8],
    /// Its number of any length; 0 for others.
    pub(crate) value: u64,
}

impl<'a> Field<'a> {
    /// Returns its bytes as text; empty if they are none.
    pub(crate) fn text(&self) -> &'a str {
        std::str::from_utf8(self.bytes).unwrap_or_default()
    }
}

/// Returns the fields of a message in order; `None` if it is cut off, or no message.
pub(crate) fn fields(mut message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let mut rest = message;
        let tag = read_varint(&mut rest)?;
        let (value, length) = match tag % 8 {
            NUMBER => (read_varint(&mut rest)?, 0),
            FIXED_64 => (0, 8),
            WITH_LENGTH => (0, usize::try_from(read_varint(&mut rest)?).ok()?),
            FIXED_32 => (0, 4),
            _ => return None,
        };
        let (bytes, rest) = rest.split_at_checked(length)?;
        let whole = message.get(..message.len() - rest.len())?;
        fields.push(Field { number: tag / 8, whole, bytes, value });
        message = rest;
    }
    Some(fields)
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Writes a field that is a text, a message, or bytes.
pub(crate) fn write_with_length(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    write_varint(out, field * 8 + WITH_LENGTH);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a field that is a number.
pub(crate) fn write_number(out: &mut Vec<u8>, field: u64, number: u64) {
    write_varint(out, field * 8 + NUMBER);
    write_varint(out, number);
}

/// Writes a number without a tag.
pub(crate) fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number % 0x80) as u8 | 0x80);
        number /= 0x80;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_back() {
        let mut message = Vec::new();
        write_number(&mut message, 3, u64::MAX);
        write_with_length(&mut message, 20, "é".as_bytes());
        message.extend([0x15, 1, 2, 3, 4]);
        let found = fields(&message).unwrap();
        let read: Vec<_> = found.iter().map(|field| (field.number, field.value, field.bytes)).collect();
        assert_eq!(read, [(3, u64::MAX, &b""[..]), (20, 0, "é".as_bytes()), (2, 0, &[1, 2, 3, 4])]);
        assert_eq!(found[1].text(), "é");
        assert_eq!(found.iter().map(|field| field.whole).collect::<Vec<_>>().concat(), message);
        for length in 1..message.len() {
            let is_between = [11, 16].contains(&length);
            assert_eq!(fields(&message[..length]).is_some(), is_between, "{length}");
        }
        assert!(fields(&[0x07]).is_none() && fields(&[0xff; 12]).is_none());
    }
}
