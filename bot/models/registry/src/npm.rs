//! Downloads files from npm packages with the machine's own npm, and so with its configuration.
//!
//! A package is a gzipped tar archive.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use flate2::read::GzDecoder;
use tokio::process::Command;

use crate::{
    error::{Error, IoContext},
    wheel::{last_lines, read_end},
};

/// The longest time that npm may take.
const NPM_TIMEOUT: Duration = Duration::from_secs(1800);
/// Bytes of a block of a tar archive.
const BLOCK: usize = 512;
/// The most bytes of an archive, unpacked.
const MAX_ARCHIVE_BYTES: u64 = 1 << 30;

/// Downloads the archive of exactly `version` of `package` into `folder`, which is empty. Returns the archive's path.
pub(crate) async fn download(npm: &[String], package: &str, version: &str, folder: &Path) -> Result<PathBuf, Error> {
    let command = npm.join(" ");
    let missing = |reason: String| Error::NpmMissing { command: command.clone(), reason };
    let Some((program, arguments)) = npm.split_first() else {
        return Err(missing("no command is configured".to_owned()));
    };
    let requirement = format!("{package}@{version}");
    let failed = |output: String| Error::NpmFailed { package: requirement.clone(), output };
    let mut child = Command::new(program)
        .args(arguments)
        .args(["pack", "--ignore-scripts", "--no-update-notifier", "--loglevel", "error", "--pack-destination"])
        .arg(folder)
        .arg(&requirement)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| missing(error.to_string()))?;
    let errors = child.stderr.take();
    let work = async { tokio::join!(child.wait(), read_end(errors)) };
    let Ok((status, output)) = tokio::time::timeout(NPM_TIMEOUT, work).await else {
        return Err(failed(format!("it took longer than {} minutes", NPM_TIMEOUT.as_secs() / 60)));
    };
    if !status.map_err(|error| missing(error.to_string()))?.success() {
        return Err(failed(last_lines(&output)));
    }
    let mut files = fs::read_dir(folder).at(folder)?.filter_map(|file| file.ok().map(|file| file.path()));
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .ok_or_else(|| failed("it left no package".to_owned()))
}

/// Extracts files from the archive of `package`, each to a path. Blocks. Never writes more than `max_bytes` of a file.
pub(crate) fn unpack(
    archive: &Path,
    package: &str,
    members: &[(String, PathBuf)],
    max_bytes: u64,
) -> Result<(), Error> {
    let odd = |reason: String| Error::NpmPackage { package: package.to_owned(), reason };
    let file = BufReader::new(File::open(archive).at(archive)?);
    let mut tar = GzDecoder::new(file).take(MAX_ARCHIVE_BYTES);
    let mut wanted: BTreeSet<usize> = (0..members.len()).collect();
    while !wanted.is_empty() {
        let header = Header::read(&mut tar).map_err(|error| odd(format!("it cannot be read ({error})")))?;
        let Some(Header { path, size }) = header else { break };
        let padded = size.next_multiple_of(BLOCK as u64);
        let found = wanted.iter().copied().find(|index| members.get(*index).is_some_and(|(member, _)| *member == path));
        let left = match found.and_then(|index| Some((index, members.get(index)?))) {
            Some(_) if size > max_bytes => return Err(odd(format!("{path} is larger than {max_bytes} bytes"))),
            Some((index, (_, target))) => {
                let mut out = File::create(target).at(target)?;
                let written = io::copy(&mut (&mut tar).take(size), &mut out);
                if written.map_err(|error| odd(format!("{path} cannot be unpacked ({error})")))? != size {
                    return Err(odd(format!("{path} is cut off")));
                }
                wanted.remove(&index);
                padded - size
            }
            None => padded,
        };
        io::copy(&mut (&mut tar).take(left), &mut io::sink())
            .map_err(|error| odd(format!("it cannot be read ({error})")))?;
    }
    match wanted.first().and_then(|index| members.get(*index)) {
        Some((member, _)) => Err(odd(format!("it has no file {member}"))),
        None => Ok(()),
    }
}

/// What the header of a file in a tar archive says.
struct Header {
    path: String,
    size: u64,
}

impl Header {
    /// Reads the next header; `None` at the end of the archive.
    fn read(tar: &mut impl Read) -> io::Result<Option<Self>> {
        let mut block = [0; BLOCK];
        match tar.read_exact(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let text = |range: std::ops::Range<usize>| {
            let field = block.get(range).unwrap_or_default();
            let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(field).trim().to_owned()
        };
        let size = u64::from_str_radix(&text(124..136), 8)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a file without a size"))?;
        let (name, folder) = (text(0..100), text(345..500));
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        // A link or a folder has a size for nothing.
        let is_file = matches!(block.get(156), Some(0 | b'0'));
        Ok(Some(Self { path: if is_file { path } else { String::new() }, size }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// Returns a gzipped tar archive with these files.
    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (path, bytes) in files {
            let mut header = [0_u8; BLOCK];
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[345..345 + folder.len()].copy_from_slice(folder.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
            header[156] = b'0';
            tar.extend(header);
            tar.extend_from_slice(bytes);
            tar.resize(tar.len().next_multiple_of(BLOCK), 0);
        }
        tar.resize(tar.len() + 2 * BLOCK, 0);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&tar).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn wanted_files_are_unpacked_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tgz");
        let long = vec![7; 1_000];
        fs::write(&path, archive(&[("p/one.bin", b"one"), ("p/long.bin", &long), ("p/two.bin", b"two")])).unwrap();
        let members = |names: &[&str]| -> Vec<(String, PathBuf)> {
            names.iter().map(|name| (format!("p/{name}"), folder.path().join(name))).collect()
        };
        unpack(&path, "p 1", &members(&["two.bin", "long.bin"]), 1_000).unwrap();
        assert_eq!(fs::read(folder.path().join("two.bin")).unwrap(), b"two");
        assert_eq!(fs::read(folder.path().join("long.bin")).unwrap(), long);
        assert!(!folder.path().join("one.bin").exists());
        let error = |names: &[&str], max_bytes| unpack(&path, "p 1", &members(names), max_bytes).unwrap_err();
        assert!(error(&["three.bin"], 9).to_string().contains("it has no file p/three.bin"));
        assert!(error(&["long.bin"], 999).to_string().contains("p/long.bin is larger than 999 bytes"));
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(unpack(&path, "p 1", &members(&["two.bin"]), 9).is_err());
        fs::write(&path, b"no archive").unwrap();
        assert!(error(&["two.bin"], 9).to_string().contains("cannot be read"));
    }
}
