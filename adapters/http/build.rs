//! Embeds the console, if it was built: every file of `console/dist`, with its media type and its compressed copy. Without
//! one, the table is empty, and the web serves its plain page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folder of the built console.
const DIST: &str = "console/dist";

/// The ending of a compressed copy.
const COMPRESSED: &str = ".gz";

#[expect(clippy::disallowed_methods, reason = "Cargo names the folder for what this makes")]
fn main() -> io::Result<()> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join(DIST);
    let is_built = dist.join("index.html").is_file();
    // A path that is missing would make Cargo run this every time.
    println!("cargo::rerun-if-changed={}", if is_built { DIST } else { "console" });
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if is_built {
        walk(&dist, &mut files)?;
        files.sort();
    }
    let mut table = String::from("&[\n");
    for file in files.iter().filter(|file| !file.to_string_lossy().ends_with(COMPRESSED)) {
        write_file(&mut table, &dist, file)?;
    }
    table.push(']');
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("console.rs"), table)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Adds a line of the table: address, media type, content and compressed content.
fn write_file(table: &mut String, dist: &Path, file: &Path) -> io::Result<()> {
    let name = file.strip_prefix(dist).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
    let packed = PathBuf::from(format!("{}{COMPRESSED}", file.display()));
    let packed = if packed.is_file() { format!("Some(include_bytes!({packed:?}))") } else { "None".to_owned() };
    let media_type = media_type(&name)?;
    let line = format!(
        "    File {{ name: {name:?}, media_type: {media_type:?}, content: include_bytes!({file:?}), compressed: {packed} }},"
    );
    writeln!(table, "{line}").map_err(io::Error::other)
}

fn media_type(name: &str) -> io::Result<&'static str> {
    Ok(match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("md" | "txt") => "text/plain; charset=utf-8",
        _ => return Err(io::Error::other(format!("{name} in {DIST} has a type that build.rs does not know"))),
    })
}
