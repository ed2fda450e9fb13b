use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Error;

/// The largest file that is checked, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// The fixed top-level folders that contain crates.
const FOLDERS: &[&str] = &["bot", "adapters", "memory", "personas", "voice"];

/// The sources of a checkout: every `.rs` file and `Cargo.toml`, keyed by its path from the root with `/` between the
/// parts.
#[derive(Debug, Clone, Default)]
pub struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Reads a checkout.
    ///
    /// # Errors
    /// [`Error`] if a file or folder cannot be read, or if a file is too long.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let mut tree = Self::default();
        tree.add(root, "Cargo.toml")?;
        for folder in FOLDERS.iter().filter(|folder| root.join(folder).is_dir()) {
            tree.walk(root, folder)?;
        }
        Ok(tree)
    }

    fn walk(&mut self, root: &Path, folder: &str) -> Result<(), Error> {
        let path = root.join(folder);
        let fail = |source| Error::Read { path: path.clone(), source };
        for entry in fs::read_dir(&path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let kind = entry.file_type().map_err(fail)?;
            // A name that is not UTF-8 belongs to no source file: Cargo rejects it.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let inner = format!("{folder}/{name}");
            if kind.is_dir() && !name.starts_with('.') && name != "target" {
                self.walk(root, &inner)?;
            } else if kind.is_file() && (name.ends_with(".rs") || name == "Cargo.toml") {
                self.add(root, &inner)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, root: &Path, name: &str) -> Result<(), Error> {
        let path = root.join(name);
        let fail = |source| Error::Read { path: path.clone(), source };
        if fs::metadata(&path).map_err(fail)?.len() > MAX_FILE_BYTES {
            return Err(Error::TooLong { path });
        }
        self.0.insert(name.to_owned(), fs::read_to_string(&path).map_err(fail)?);
        Ok(())
    }

    /// Returns a file's text.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Returns the Rust files, ordered by path.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

impl<P: Into<String>, T: Into<String>> FromIterator<(P, T)> for Tree {
    fn from_iter<I: IntoIterator<Item = (P, T)>>(files: I) -> Self {
        Self(files.into_iter().map(|(path, text)| (path.into(), text.into())).collect())
    }
}
