//! Reads CTranslate2's `model.bin`, version 6. Memory and time are bounded by the length of the file.
//!
//! The file consists of the version, the name and revision of the model's form, and variables. Each variable has a
//! name, a shape, the number of its element type, and its bytes. A list of second names follows. Lengths of strings
//! count a final NUL byte. Everything is little-endian.

/// The version that is read.
const VERSION: u32 = 6;
/// The most dimensions of a variable.
const MAX_RANK: u8 = 4;

/// CTranslate2's number for 16-bit integers.
pub(crate) const INT16: u8 = 2;
/// CTranslate2's number for 16-bit floats.
pub(crate) const FLOAT16: u8 = 4;

/// A variable of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable<'a> {
    /// The name, such as `encoder/layer_norm/beta`.
    pub(crate) name: &'a str,
    /// The number of elements in each dimension, the slowest-moving first. Empty for a single number.
    pub(crate) shape: Vec<u64>,
    /// CTranslate2's number for the type of the elements.
    pub(crate) element_type: u8,
    /// The bytes of the elements.
    pub(crate) data: &'a [u8],
}

/// Returns the name of the model's form and its variables. The error says what the file has, for the end of a sentence.
pub(crate) fn read(file: &[u8]) -> Result<(&str, Vec<Variable<'_>>), String> {
    let mut rest = Rest(file);
    let version = rest.u32()?;
    if version != VERSION {
        return Err(format!("version {version} of CTranslate2's format, and version {VERSION} is read"));
    }
    let form = rest.text()?;
    rest.u32()?;
    let count = rest.u32()?;
    let mut variables = Vec::new();
    for _ in 0..count {
        variables.push(rest.variable()?);
    }
    Ok((form, variables))
}

/// The unread part of the file.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or("a model.bin that ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| "a model.bin that ends too early".to_owned())
    }

    fn u8(&mut self) -> Result<u8, String> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a str, String> {
        let length = u16::from_le_bytes(self.array()?);
        let bytes = self.take(length.into())?;
        let text = bytes.strip_suffix(&[0]).ok_or("a name without an end")?;
        std::str::from_utf8(text).map_err(|_| "a name that is not UTF-8".to_owned())
    }

    fn variable(&mut self) -> Result<Variable<'a>, String> {
        let name = self.text()?;
        let rank = self.u8()?;
        if rank > MAX_RANK {
            return Err(format!("{rank} dimensions in {name}, and at most {MAX_RANK} are read"));
        }
        let shape = (0..rank).map(|_| self.u32().map(u64::from)).collect::<Result<Vec<u64>, _>>()?;
        let element_type = self.u8()?;
        let length = self.u32()? as usize;
        let data = self.take(length)?;
        let size = element_size(element_type).ok_or_else(|| format!("elements of an unknown type in {name}"))?;
        let expected = shape.iter().try_fold(size, |bytes, count| bytes.checked_mul(*count));
        if expected != Some(length as u64) {
            return Err(format!("{length} bytes in {name}, which do not fill its shape {shape:?}"));
        }
        Ok(Variable { name, shape, element_type, data })
    }
}

/// Returns the bytes of one element.
fn element_size(element_type: u8) -> Option<u64> {
    match element_type {
        1 => Some(1),
        INT16 | FLOAT16 | 5 => Some(2),
        0 | 3 => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put_text(out: &mut Vec<u8>, text: &str) {
        out.extend_from_slice(&(text.len() as u16 + 1).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    }

    /// Returns a file with a number and a tensor of two rows.
    fn small() -> Vec<u8> {
        let mut out = 6_u32.to_le_bytes().to_vec();
        put_text(&mut out, "WhisperSpec");
        out.extend_from_slice(&3_u32.to_le_bytes());
        out.extend_from_slice(&2_u32.to_le_bytes());
        put_text(&mut out, "encoder/num_heads");
        out.extend_from_slice(&[0, INT16, 2, 0, 0, 0, 6, 0]);
        put_text(&mut out, "a/weight");
        out.extend_from_slice(&[2, 2, 0, 0, 0, 3, 0, 0, 0, FLOAT16, 12, 0, 0, 0]);
        out.extend_from_slice(&[7; 12]);
        out
    }

    #[test]
    fn variables_are_read_with_their_shapes() {
        let file = small();
        let (form, variables) = read(&file).unwrap();
        assert_eq!(form, "WhisperSpec");
        assert_eq!(
            variables,
            [
                Variable { name: "encoder/num_heads", shape: vec![], element_type: INT16, data: &[6, 0] },
                Variable { name: "a/weight", shape: vec![2, 3], element_type: FLOAT16, data: &[7; 12] },
            ]
        );
        let mut other = file;
        other[0] = 5;
        assert!(read(&other).unwrap_err().contains("version 5"));
    }

    proptest! {
        #[test]
        fn a_cut_or_changed_file_gives_an_error_or_other_variables(at in 0..100_usize, byte: u8, cut in 0..100_usize) {
            let whole = small();
            prop_assert!(read(&whole[..cut.min(whole.len() - 1)]).is_err());
            let mut changed = whole;
            let at = at % changed.len();
            changed[at] = byte;
            if let Ok((_, variables)) = read(&changed) {
                prop_assert!(variables.iter().map(|variable| variable.data.len()).sum::<usize>() <= changed.len());
            }
        }
    }
}
