use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Adapters one reply or score can be asked with.
pub const MAX_LORAS: usize = 8;

/// What an adapter is: the SHA-256 of its file. Two files with equal content are one adapter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoraId([u8; 32]);

impl LoraId {
    /// Bytes of an id.
    pub const BYTES: usize = 32;

    /// The id that is this SHA-256.
    pub const fn new(sha256: [u8; Self::BYTES]) -> Self {
        Self(sha256)
    }

    /// The SHA-256.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for LoraId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LoraId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text is no SHA-256 in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an adapter is named by 64 hexadecimal digits")]
pub struct BadLoraId;

impl FromStr for LoraId {
    type Err = BadLoraId;

    fn from_str(text: &str) -> Result<Self, BadLoraId> {
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
        let digits = digits.ok_or(BadLoraId)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| (byte << 4) | digit)).collect();
        match digits.len() {
            64 => bytes.try_into().map(Self).map_err(|_| BadLoraId),
            _ => Err(BadLoraId),
        }
    }
}

/// A low-rank adapter: for some of a model's weights `W` two narrow matrices, so that `W x + scale (alpha / rank) B A x`
/// is computed in the place of `W x` (LoRA, arXiv:2106.09685). Several are added up.
#[derive(Debug, Clone, PartialEq)]
pub struct Lora {
    /// What its file must hash to.
    pub id: LoraId,
    /// Where the file is: GGUF, in llama.cpp's form of adapters.
    pub path: PathBuf,
    /// How strongly it works; 1 is as it was trained. Finite.
    pub scale: f32,
}

impl Lora {
    /// An adapter at the strength it was trained with.
    pub fn new(id: LoraId, path: impl Into<PathBuf>) -> Self {
        Self { id, path: path.into(), scale: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = LoraId::new(std::array::from_fn(|at| u8::try_from(at * 7).unwrap()));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        let check = |text: &str| assert_eq!(text.parse::<LoraId>(), Err(BadLoraId), "{text}");
        check("");
        check("00");
        check(&"0".repeat(63));
        check(&"0".repeat(66));
        check(&"g".repeat(64));
        check(&format!("+{}", "0".repeat(63)));
        check(&"é".repeat(32));
    }
}
