//! Recordings of voices, which an XTTS server clones.

use std::sync::{Arc, OnceLock};

use crate::xtts::Latents;

/// Recordings that may be cloned. They may come and go at any time.
pub trait Samples: Send + Sync {
    /// Returns the ids of their voices.
    fn ids(&self) -> Vec<String>;

    /// Returns where the numbers of a voice are kept; `None` if there is no such recording any more.
    fn numbers(&self, id: &str) -> Option<Numbers>;

    /// Returns a recording as a WAV file, mono, at 24 kHz; `None` if there is none any more.
    fn wav(&self, id: &str) -> Option<Vec<u8>>;
}

/// What a server computed for a recording. Clones mean the same. Keep it with the recording, and drop it with that.
#[derive(Clone, Default)]
pub struct Numbers(Arc<OnceLock<Arc<Latents>>>);

impl Numbers {
    pub(crate) fn get(&self) -> Option<Arc<Latents>> {
        self.0.get().cloned()
    }

    pub(crate) fn set(&self, latents: Arc<Latents>) {
        self.0.get_or_init(|| latents);
    }

    /// Returns true if both mean the same recording.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Leaves out the numbers.
impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Numbers[known: {}]", self.0.get().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_numbers() {
        assert_eq!(format!("{:?}", Numbers::default()), "Numbers[known: false]");
    }
}
