use async_trait::async_trait;
use azera_types::PersonaId;

/// A picture file.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The media type, such as `image/png`.
    pub media_type: &'static str,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({}, {} bytes)", self.media_type, self.bytes.len())
    }
}

/// Names and pictures of personas, for platforms that show them. They are not private.
#[async_trait]
pub trait Avatars: Send + Sync {
    /// Returns id and name of the default persona; `None` if it does not exist.
    async fn usual(&self) -> Option<(PersonaId, String)>;

    /// Returns the picture of a persona; `None` if it has none.
    async fn picture(&self, persona: &PersonaId) -> Option<Picture>;
}
