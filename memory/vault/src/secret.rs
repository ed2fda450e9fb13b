use std::fmt;

use zeroize::Zeroizing;

use crate::Error;

/// Longest value of an entry, in bytes.
pub const MAX_VALUE_BYTES: usize = 16 * 1024;

/// A secret text. Its bytes are overwritten when it is dropped, and `Debug` shows nothing of it, not even its length.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Wraps a secret.
    ///
    /// # Errors
    /// [`Error::Value`] if it is empty or longer than [`MAX_VALUE_BYTES`].
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = Zeroizing::new(text.into());
        if (1..=MAX_VALUE_BYTES).contains(&text.len()) { Ok(Self(text)) } else { Err(Error::Value) }
    }

    /// Returns the secret itself, for the one call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
