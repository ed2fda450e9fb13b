//! AES-256-GCM with a random nonce for each message. A sealed message is the nonce, then the ciphertext with its tag.

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use zeroize::Zeroizing;

use crate::Error;

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;

/// Bytes of a nonce.
const NONCE_BYTES: usize = 12;

/// Bytes of a tag.
const TAG_BYTES: usize = 16;

/// Bytes that sealing adds.
pub(crate) const OVERHEAD_BYTES: usize = NONCE_BYTES + TAG_BYTES;

/// A key of 256 bits, which is overwritten when it is dropped.
pub(crate) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// Returns random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(bytes)
}

/// Returns a new random key.
pub(crate) fn new_key() -> Result<Key, Error> {
    Ok(Zeroizing::new(random()?))
}

/// Joins the parts of associated data. Each has its length before it, so no two lists of parts give the same bytes.
fn joined(context: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in context {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// Seals a message. It opens with the same key and the same context only.
pub(crate) fn seal(key: &Key, context: &[&[u8]], message: &[u8]) -> Result<Vec<u8>, Error> {
    let nonce: [u8; NONCE_BYTES] = random()?;
    let aad = joined(context);
    let cipher = Aes256Gcm::new(key.as_slice().into());
    let sealed = cipher.encrypt(nonce.as_slice().into(), Payload { msg: message, aad: &aad });
    // Only messages of many gigabytes fail.
    let sealed = sealed.map_err(|_| Error::Full)?;
    Ok([nonce.as_slice(), &sealed].concat())
}

/// Opens a sealed message; `None` if the key, the context or any bit differs.
pub(crate) fn open(key: &Key, context: &[&[u8]], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES)?;
    let aad = joined(context);
    let cipher = Aes256Gcm::new(key.as_slice().into());
    cipher.decrypt(nonce.into(), Payload { msg: sealed, aad: &aad }).ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_opens_with_its_own_key_and_context_alone() {
        let (key, other) = (new_key().unwrap(), new_key().unwrap());
        let sealed = seal(&key, &[b"ab", b"c"], b"heliotrope").unwrap();
        assert_eq!(open(&key, &[b"ab", b"c"], &sealed).unwrap().as_slice(), b"heliotrope");
        assert_eq!(sealed.len(), b"heliotrope".len() + OVERHEAD_BYTES);
        assert!(open(&other, &[b"ab", b"c"], &sealed).is_none());
        assert!(open(&key, &[b"a", b"bc"], &sealed).is_none(), "parts keep their borders");
        assert!(open(&key, &[b"ab", b"c"], &[]).is_none());
        assert_ne!(sealed, seal(&key, &[b"ab", b"c"], b"heliotrope").unwrap(), "each has a nonce of its own");
    }

    /// Test case 16 of "The Galois/Counter Mode of Operation" by McGrew and Viega, without its last four bytes' padding.
    #[test]
    fn the_cipher_is_the_published_one() {
        let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let nonce = hex("cafebabefacedbaddecaf888");
        let plain = hex(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let cipher = Aes256Gcm::new(key.as_slice().into());
        let sealed = cipher.encrypt(nonce.as_slice().into(), Payload { msg: &plain, aad: &aad }).unwrap();
        assert!(sealed.ends_with(&hex("76fc6ece0f4e1768cddf8853bb2d551b")), "the tag");
        assert!(sealed.starts_with(&hex("522dc1f099567d07f47f37a32a84427d")), "the ciphertext");
    }
}
