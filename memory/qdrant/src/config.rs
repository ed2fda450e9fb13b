use std::fmt;

use azera_memory::{Error, IndexMetadata};
use azera_memory_remote::RetryPolicy;
use azera_types::{PersonaId, Scope};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Longest name of a collection, in characters.
pub const MAX_COLLECTION_CHARS: usize = 64;

/// Separates persona and scope; ids hold no control characters.
const SEPARATOR: [u8; 1] = [0x1f];

/// Bytes of a token. With 16, two scopes share a token once in 2^64 installations of their size.
const TOKEN_BYTES: usize = 16;

/// Bytes of the installation marker in collection names.
const MARK_BYTES: usize = 8;

/// A server, and the collection on it.
#[derive(Clone)]
pub struct QdrantConfig {
    /// Address of the gRPC interface, such as `http://127.0.0.1:6334`.
    pub url: String,
    /// The API key.
    pub key: Option<String>,
    /// The alias: letters, digits, `-` and `_`, at most [`MAX_COLLECTION_CHARS`]. It belongs to one installation. The
    /// collection behind it has a marker made from the installation's secret; the collection of another installation is
    /// left alone.
    pub collection: String,
    /// Length of a vector.
    pub dimension: usize,
    /// Secret that makes tokens and collections of this installation unique.
    pub secret: String,
    /// Deadlines and retries of calls.
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

    /// Returns true if others could read the traffic: it is not encrypted and leaves this machine.
    pub(crate) fn is_readable(&self) -> bool {
        let Some(rest) = self.url.strip_prefix("http://") else { return false };
        let host = rest.split('/').next().unwrap_or(rest);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
        host != "localhost" && !host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Fails if the vector does not fit this index.
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

    /// Returns the token of a memory's persona and scope.
    pub(crate) fn token_of(&self, label: &IndexMetadata) -> String {
        self.token(&label.persona, &label.scope)
    }

    /// Returns the token that stands for a persona and a scope on the server.
    pub(crate) fn token(&self, persona: &PersonaId, scope: &Scope) -> String {
        let mut hash = Sha256::new();
        for part in [self.secret.as_bytes(), &SEPARATOR, persona.as_str().as_bytes(), &SEPARATOR] {
            hash.update(part);
        }
        hash.update(scope.to_string().as_bytes());
        HEXLOWER.encode(&hash.finalize()[..TOKEN_BYTES])
    }

    /// Returns the marker in collection names. No persona id is empty, so the hashed text differs from that of every
    /// token.
    pub(crate) fn installation_marker(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.secret.as_bytes(), &SEPARATOR, &SEPARATOR] {
            hash.update(part);
        }
        HEXLOWER.encode(&hash.finalize()[..MARK_BYTES])
    }
}

/// Information about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its kind and address.
    pub server: String,
    /// Its version.
    pub version: String,
    /// Number of points of this installation; `None` if its collection does not exist yet.
    pub points: Option<u64>,
    /// True if others could read the traffic: it is not encrypted and leaves this machine.
    pub readable: bool,
}
