use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// The most LoRAs in one request.
pub const MAX_LORAS: usize = 8;

/// The identity of a LoRA: the SHA-256 of its file. Two files with equal content are the same LoRA.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoraId([u8; 32]);

impl LoraId {
    /// The length of an id, in bytes.
    pub const BYTES: usize = 32;

    /// Creates an id from a SHA-256.
    pub const fn new(sha256: [u8; Self::BYTES]) -> Self {
        Self(sha256)
    }

    /// Returns the SHA-256.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for LoraId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for LoraId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The error for a text that is not a SHA-256 in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a LoRA is named by 64 hexadecimal digits")]
pub struct BadLoraId;

impl FromStr for LoraId {
    type Err = BadLoraId;

    fn from_str(text: &str) -> Result<Self, BadLoraId> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| BadLoraId)?;
        bytes.try_into().map(Self).map_err(|_| BadLoraId)
    }
}

/// A LoRA (low-rank adaptation, arXiv:2106.09685). For some of a model's weights `W` it has two narrow matrices, so
/// that the model computes `W x + scale (alpha / rank) B A x` instead of `W x`. The products of several LoRAs are
/// added.
#[derive(Debug, Clone, PartialEq)]
pub struct Lora {
    /// The SHA-256 that its file must have.
    pub id: LoraId,
    /// The path of its GGUF file, in llama.cpp's format for LoRAs.
    pub path: PathBuf,
    /// The strength; 1 is the strength of training. Finite.
    pub scale: f32,
}

impl Lora {
    /// Creates a LoRA at the strength it was trained with.
    pub fn new(id: LoraId, path: impl Into<PathBuf>) -> Self {
        Self { id, path: path.into(), scale: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_parses_from_its_own_display() {
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
