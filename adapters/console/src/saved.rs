//! Files of answers. A terminal cannot show them, so they are saved, and their paths are shown.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use azera_adapter::AnswerFile;

/// Saves files in a new folder that only the person at the terminal can read; returns their paths. `name` is unique, and
/// names the folder.
pub(crate) fn save(files: &[AnswerFile], name: &str) -> io::Result<Vec<PathBuf>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let folder = std::env::temp_dir().join(name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let mut paths = Vec::with_capacity(files.len());
    for (number, file) in files.iter().enumerate() {
        // Two files may have the same name.
        let folder = if number == 0 { folder.clone() } else { folder.join(number.to_string()) };
        if number > 0 {
            DirBuilder::new().mode(0o700).create(&folder)?;
        }
        let path = folder.join(&file.part.name);
        let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        new.write_all(&file.content.0)?;
        paths.push(path);
    }
    Ok(paths)
}
