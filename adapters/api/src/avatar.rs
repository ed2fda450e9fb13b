use async_trait::async_trait;
use azera_types::PersonaId;

/// A picture, whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// The file.
    pub bytes: Vec<u8>,
    /// What it is, as in `image/png`.
    pub media_type: &'static str,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({}, {} bytes)", self.media_type, self.bytes.len())
    }
}

/// What personas look like, for platforms that show it. Names and pictures are nobody's private word.
#[async_trait]
pub trait Avatars: Send + Sync {
    /// The persona that answers where nobody chose another, and its name; `None` if it is not there.
    async fn usual(&self) -> Option<(PersonaId, String)>;

    /// The picture of a persona; `None` if it has none.
    async fn picture(&self, persona: &PersonaId) -> Option<Picture>;
}
