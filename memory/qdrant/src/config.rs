use std::fmt;

use azera_memory::{Error, IndexMetadata};
use azera_memory_remote::RetryPolicy;
use azera_types::{PersonaId, Scope};
use sha2::{Digest, Sha256};

/// Characters of a collection's name.
pub const MAX_COLLECTION_CHARS: usize = 64;

/// Stands between persona and scope; ids hold no control characters.
const SEPARATOR: [u8; 1] = [0x1f];

/// Bytes of a token. Of 16, two places have the same one once in 2^64 houses of their size.
const TOKEN_BYTES: usize = 16;

/// Bytes of a house's mark in the names of its collections.
const MARK_BYTES: usize = 8;

/// A server, and what the house's collection is called on it.
#[derive(Clone)]
pub struct QdrantConfig {
    /// The address of its gRPC interface, as in `http://127.0.0.1:6334`.
    pub url: String,
    /// Its key.
    pub key: Option<String>,
    /// The collection: letters, digits, `-` and `_`, at most [`MAX_COLLECTION_CHARS`]. It belongs to one house alone:
    /// behind that name stands a collection with the mark of the house's secret, and one of another house is left alone.
    pub collection: String,
    /// Numbers in a vector.
    pub dimension: usize,
    /// What makes tokens and collections of this house unlike those of others.
    pub secret: String,
    /// How long the server is waited for.
    pub patience: RetryPolicy,
}

impl fmt::Debug for QdrantConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QdrantConfig")
            .field("url", &self.url)
            .field("collection", &self.collection)
            .field("dimension", &self.dimension)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl QdrantConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let name = &self.collection;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || name.len() > MAX_COLLECTION_CHARS || !name.chars().all(plain) {
            return Err(Error::Invalid("the name of a Qdrant collection holds letters, digits, - and _ alone".into()));
        }
        let address = self.url.split_once("://").map(|(_, rest)| rest);
        let host = address.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if host.is_empty() || host.contains('@') {
            return Err(Error::Invalid("the address of a Qdrant server is http:// or https://, host and port".into()));
        }
        Ok(())
    }

    /// Whether what is sent can be read on the way: it is neither encrypted nor stays on this machine.
    pub(crate) fn is_readable(&self) -> bool {
        let Some(rest) = self.url.strip_prefix("http://") else { return false };
        let host = rest.split('/').next().unwrap_or(rest);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
        host != "localhost" && !host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Refuses what is no vector of this index.
    pub(crate) fn check_vector(&self, vector: &[f32]) -> Result<(), Error> {
        if vector.len() != self.dimension {
            let (got, want) = (vector.len(), self.dimension);
            return Err(Error::Invalid(format!("a vector of {got} numbers for an index of vectors of {want}")));
        }
        if vector.iter().any(|number| !number.is_finite()) {
            return Err(Error::Invalid("a vector holds numbers that are not finite".into()));
        }
        Ok(())
    }

    /// What stands on the server for a memory's persona and scope.
    pub(crate) fn token_of(&self, label: &IndexMetadata) -> String {
        self.token(&label.persona, &label.scope)
    }

    /// What stands on the server for a persona and a scope together.
    pub(crate) fn token(&self, persona: &PersonaId, scope: &Scope) -> String {
        let mut hash = Sha256::new();
        for part in [self.secret.as_bytes(), &SEPARATOR, persona.as_str().as_bytes(), &SEPARATOR] {
            hash.update(part);
        }
        hash.update(scope.to_string().as_bytes());
        hash.finalize().iter().take(TOKEN_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }

    /// What marks the house's collections. No persona is empty, so it is the beginning of no token.
    pub(crate) fn installation_marker(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.secret.as_bytes(), &SEPARATOR, &SEPARATOR] {
            hash.update(part);
        }
        hash.finalize().iter().take(MARK_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its kind and address.
    pub server: String,
    /// Its version.
    pub version: String,
    /// Points the house has there; none if its collection is not there yet.
    pub points: Option<u64>,
    /// Whether what is sent to it can be read on the way: it is neither encrypted nor stays on this machine.
    pub readable: bool,
}
