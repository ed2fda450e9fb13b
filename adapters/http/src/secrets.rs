//! Tokens and passwords: how they are made, stored and compared. Only digests are stored, and every comparison takes the
//! same time whatever the difference.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::Error;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Random bytes of a password's salt.
const SALT_BYTES: usize = 16;

/// Bytes of a password's digest.
const HASH_BYTES: usize = 32;

/// Memory of one Argon2id computation, in KiB. With two passes it is OWASP's recommendation for Argon2id.
const MEMORY_KIB: u32 = 19_456;

/// Passes over that memory.
const PASSES: u32 = 2;

/// Returns a new random token of 256 bits, as text that fits into a URL.
pub(crate) fn token() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random::<TOKEN_BYTES>()?))
}

/// Returns a new random id.
pub(crate) fn id() -> Result<Uuid, Error> {
    Ok(uuid::Builder::from_random_bytes(random::<16>()?).into_uuid())
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(bytes)
}

/// Returns the digest under which a token is stored. Tokens are random, so they need no slow hash.
pub(crate) fn digest(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(token.as_bytes()))
}

/// Compares two texts in constant time. Their lengths are no secret.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// A password as it is stored: the digest with the salt and the cost that made it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PasswordHash {
    salt: String,
    hash: String,
    memory_kib: u32,
    passes: u32,
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash")
    }
}

impl PasswordHash {
    /// Hashes a password with Argon2id. It takes tens of milliseconds of one core.
    pub(crate) fn of(password: &str) -> Result<Self, Error> {
        let salt = random::<SALT_BYTES>()?;
        let hash = argon2id(password, &salt, MEMORY_KIB, PASSES)?;
        Ok(Self {
            salt: URL_SAFE_NO_PAD.encode(salt),
            hash: URL_SAFE_NO_PAD.encode(hash),
            memory_kib: MEMORY_KIB,
            passes: PASSES,
        })
    }

    /// Returns the digest itself, which is another one for each password and each time.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns true if this is the hash of `password`.
    pub(crate) fn matches(&self, password: &str) -> bool {
        let hash = URL_SAFE_NO_PAD
            .decode(&self.salt)
            .ok()
            .and_then(|salt| argon2id(password, &salt, self.memory_kib, self.passes).ok());
        hash.is_some_and(|hash| same(&URL_SAFE_NO_PAD.encode(hash), &self.hash))
    }
}

fn argon2id(password: &str, salt: &[u8], memory_kib: u32, passes: u32) -> Result<[u8; HASH_BYTES], Error> {
    let fail = |error: argon2::Error| Error::Password(error.to_string());
    let params = Params::new(memory_kib, passes, 1, Some(HASH_BYTES)).map_err(fail)?;
    let mut hash = [0; HASH_BYTES];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into(password.as_bytes(), salt, &mut hash).map_err(fail)?;
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_matches_its_own_hash_alone() {
        let hash = PasswordHash::of("correct horse battery").unwrap();
        assert!(hash.matches("correct horse battery"));
        assert!(!hash.matches("correct horse batterx"));
        let again = PasswordHash::of("correct horse battery").unwrap();
        assert_ne!(hash.hash, again.hash, "each hash has a salt of its own");
        let stored = serde_json::to_string(&hash).unwrap();
        assert!(!stored.contains("horse"), "{stored}");
        assert!(serde_json::from_str::<PasswordHash>(&stored).unwrap().matches("correct horse battery"));
    }

    #[test]
    fn tokens_are_random_and_their_digests_are_stable() {
        assert_ne!(token().unwrap(), token().unwrap());
        assert_eq!(token().unwrap().len(), 43);
        assert_eq!(digest(""), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    }
}
