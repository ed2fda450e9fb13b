//! LoRAs that ship with this program.
//!
//! They are part of the binary. So every installation has them, wherever its models folder is, and they always match
//! the program. Engines read files, so a LoRA is written beside its model when it is needed.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, IoContext},
    source::is_sha256,
};

/// The largest total size of the bundled LoRAs, in bytes.
pub const MAX_SHIPPED_BYTES: u64 = 16 << 20;

/// The bundled LoRAs, by the names that registries use.
const FILES: &[(&str, &[u8])] = &[
    ("smollm2-135m.gguf", include_bytes!("../loras/smollm2-135m.gguf")),
    ("smollm2-135m-reading.gguf", include_bytes!("../loras/smollm2-135m-reading.gguf")),
];

/// A registry's reference to a bundled LoRA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledLora {
    /// The name of the bundled file.
    pub file: String,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
}

/// A LoRA as a file.
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

    /// Checks the reference. The error says what is wrong.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !is_sha256(&self.sha256) {
            return Err(format!("adapter {}: sha256 must be 64 lower-case hexadecimal digits", self.file));
        }
        match self.bytes() {
            Some(_) => Ok(()),
            None => Err(format!("no LoRA {} ships with this program", self.file)),
        }
    }

    /// Writes the LoRA to `path`, unless it is already there unchanged.
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
    fn every_bundled_lora_has_the_hash_of_its_entry() {
        assert_eq!(shipped().len(), FILES.len());
        assert!(FILES.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>() <= MAX_SHIPPED_BYTES);
        for lora in shipped() {
            let bytes = lora.bytes().unwrap();
            let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, lora.sha256, "{}", lora.file);
        }
    }

    #[test]
    fn a_changed_lora_file_is_written_again() {
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
    fn a_lora_that_is_not_bundled_is_rejected() {
        let check = |file: &str, sha256: &str, said: &str| {
            let problem = BundledLora { file: file.into(), sha256: sha256.into() }.validate().unwrap_err();
            assert!(problem.contains(said), "{problem}");
        };
        check("nobody.gguf", &"0".repeat(64), "no LoRA nobody.gguf");
        check("nobody.gguf", "0", "64 lower-case");
    }
}
