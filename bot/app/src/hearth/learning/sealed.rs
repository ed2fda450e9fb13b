//! Sealed files, readable only with the key: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) with a random nonce for each
//! file. A file's purpose is authenticated data, so one file cannot pass as another.

use std::fs;
use std::io;
use std::path::Path;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// First bytes of a sealed file; the last one is the version.
const MAGIC: &[u8; 8] = b"AZERASE\x01";

const NONCE: usize = 24;

/// The key of an installation.
pub struct Key(XChaCha20Poly1305);

impl Key {
    /// Reads a key file, and creates it first if it is missing.
    pub fn read_or_create(path: &Path) -> io::Result<Self> {
        if path.try_exists()? {
            return Self::read(path);
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let digits = HEXLOWER.encode(&bytes);
        // A half-written key would block every job, so write it whole. Only one process creates keys in a data folder.
        azera_files::write_through(&path.with_extension("part"), path, format!("{digits}\n").as_bytes())?;
        Self::read(path)
    }

    /// Reads a key file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let digits = fs::read_to_string(path)?;
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.trim().as_bytes()).ok();
        let cipher = bytes.and_then(|bytes| XChaCha20Poly1305::new_from_slice(&bytes).ok());
        cipher.map(Self).ok_or_else(|| invalid(format!("{} holds no key: 64 hexadecimal digits", path.display())))
    }

    /// Seals data for a purpose.
    pub fn seal(&self, purpose: &str, plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let aad = [MAGIC.as_slice(), purpose.as_bytes()].concat();
        let payload = Payload { msg: plain, aad: &aad };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload).map_err(io::Error::other)?;
        Ok([MAGIC.as_slice(), &nonce, &sealed].concat())
    }

    /// Opens data that was sealed for the purpose.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let rest = sealed.strip_prefix(MAGIC);
        let Some((nonce, sealed)) = rest.and_then(|rest| rest.split_first_chunk::<NONCE>()) else {
            return Err(invalid("it is nothing that Azera sealed, or an older or newer one did".into()));
        };
        let aad = [MAGIC.as_slice(), purpose.as_bytes()].concat();
        let payload = Payload { msg: sealed, aad: &aad };
        let opened = self.0.decrypt(&XNonce::from(*nonce), payload);
        opened.map_err(|_| {
            invalid("the key does not open it: it is another's, or the file was renamed or damaged".into())
        })
    }
}

/// Returns an error for invalid data.
pub fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_file_opens_only_with_its_key_and_purpose() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = Key::read_or_create(&path).unwrap();
        let sealed = key.seal("course one", b"the owl is of pear wood").unwrap();
        assert!(!sealed.windows(9).any(|some| some == b"pear wood"));
        assert_ne!(sealed, key.seal("course one", b"the owl is of pear wood").unwrap(), "another nonce each time");
        let again = Key::read_or_create(&path).unwrap();
        assert_eq!(again.open("course one", &sealed).unwrap(), b"the owl is of pear wood");
        for purpose in ["course two", "learned one", ""] {
            assert_eq!(again.open(purpose, &sealed).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        let other = Key::read_or_create(&folder.path().join("other")).unwrap();
        assert!(other.open("course one", &sealed).unwrap_err().to_string().contains("another's"));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(key.open("course one", &damaged).is_err(), "byte {at}");
            assert!(key.open("course one", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_key_file_is_private_and_invalid_ones_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert_eq!(Key::read(&path).err().unwrap().kind(), io::ErrorKind::NotFound);
        Key::read_or_create(&path).unwrap();
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
        let digits = fs::read_to_string(&path).unwrap();
        let digits = digits.trim();
        // All but the first two have the byte length of a key.
        let wrong =
            [String::new(), format!("{digits}00"), "ä".repeat(32), format!("0{}0", "ä".repeat(31)), "+f".repeat(32)];
        for wrong in wrong {
            fs::write(&path, &wrong).unwrap();
            assert!(
                Key::read_or_create(&path).err().unwrap().to_string().contains("64 hexadecimal digits"),
                "{wrong:?}"
            );
        }
    }
}
