//! Adapters that ship with this program.
//!
//! They are part of the binary: whoever has that has them, in whatever folder the models lie, and none can be older or newer
//! than the program that names it. Engines read files, so one is written beside its model when it is wanted.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    entry::is_sha256,
    error::{Error, IoContext},
};

/// What the adapters that ship may take together, in bytes.
pub const MAX_SHIPPED_BYTES: u64 = 16 << 20;

/// The adapters, by the names that ledgers use.
const FILES: &[(&str, &[u8])] = &[
    ("smollm2-135m.gguf", include_bytes!("../loras/smollm2-135m.gguf")),
    ("smollm2-135m-reading.gguf", include_bytes!("../loras/smollm2-135m-reading.gguf")),
];

/// What a ledger says of an adapter that ships with this program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledLora {
    /// Its name among those that ship.
    pub file: String,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
}

/// An adapter as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledLora {
    /// The file.
    pub path: PathBuf,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
}

impl BundledLora {
    fn bytes(&self) -> Option<&'static [u8]> {
        FILES.iter().find(|(name, _)| *name == self.file).map(|(_, bytes)| *bytes)
    }

    /// What is wrong with it, in words, or nothing.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !is_sha256(&self.sha256) {
            return Err(format!("adapter {}: sha256 must be 64 lower-case hexadecimal digits", self.file));
        }
        match self.bytes() {
            Some(_) => Ok(()),
            None => Err(format!("no adapter {} ships with this program", self.file)),
        }
    }

    /// Sees to it that the adapter lies at `path`, whole.
    pub(crate) fn install(&self, path: &Path) -> Result<Option<InstalledLora>, Error> {
        let Some(bytes) = self.bytes() else { return Ok(None) };
        if fs::read(path).ok().as_deref() != Some(bytes) {
            let folder = path.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(folder).at(folder)?;
            file.write_all(bytes).and_then(|()| file.as_file().sync_all()).at(file.path())?;
            file.persist(path).map_err(|error| error.error).at(path)?;
        }
        Ok(Some(InstalledLora { path: path.to_owned(), sha256: self.sha256.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::registry::Registry;

    fn shipped() -> Vec<BundledLora> {
        Registry::built_in().unwrap().entries().iter().flat_map(|entry| entry.shipped().cloned()).collect()
    }

    #[test]
    fn every_lora_is_the_one_its_entry_names() {
        assert_eq!(shipped().len(), FILES.len());
        assert!(FILES.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>() <= MAX_SHIPPED_BYTES);
        for lora in shipped() {
            let bytes = lora.bytes().unwrap();
            let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, lora.sha256, "{}", lora.file);
        }
    }

    #[test]
    fn one_that_was_damaged_or_is_of_another_program_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        for lora in shipped() {
            let path = folder.path().join(&lora.file);
            let installed = lora.install(&path).unwrap().unwrap();
            assert_eq!(fs::read(&installed.path).unwrap(), lora.bytes().unwrap());
            fs::write(&installed.path, b"another").unwrap();
            assert_eq!(lora.install(&path).unwrap(), Some(installed.clone()));
            assert_eq!(fs::read(&installed.path).unwrap(), lora.bytes().unwrap());
        }
    }

    #[test]
    fn what_does_not_ship_is_refused() {
        let check = |file: &str, sha256: &str, said: &str| {
            let problem = BundledLora { file: file.into(), sha256: sha256.into() }.validate().unwrap_err();
            assert!(problem.contains(said), "{problem}");
        };
        check("nobody.gguf", &"0".repeat(64), "no adapter nobody.gguf");
        check("nobody.gguf", "0", "64 lower-case");
    }
}
