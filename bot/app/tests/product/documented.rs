//! The commands of the guides, run as they stand there.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use super::models;

/// Commands that need more than a fresh data folder: the network, a server, an hour, an answer, a microphone, or earlier
/// steps.
const LEFT_OUT: [&str; 11] = [
    "make ",
    "azera models pull",
    "azera hearth",
    "azera run",
    "azera discord",
    "azera bench",
    "azera eval",
    "azera vault set",
    "azera voice --hands-free",
    "docker",
    "/mnt/",
];

fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "```sh" {
            let block = lines.by_ref().map(str::trim_start).take_while(|line| *line != "```");
            blocks.push(block.collect::<Vec<_>>().join("\n"));
        }
    }
    blocks
}

#[test]
fn commands_of_the_guides_run_in_a_fresh_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    pages.extend(
        std::fs::read_dir(root.join("bot/docs")).expect("the guides").map(|entry| entry.expect("a guide").path()),
    );
    pages.sort();
    let mut ran = 0;
    for path in pages.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        for block in blocks(&std::fs::read_to_string(path).expect("a page")) {
            if LEFT_OUT.iter().any(|part| block.contains(part)) || !block.contains("azera ") {
                continue;
            }
            let scratch = tempfile::tempdir().expect("a folder");
            symlink(env!("CARGO_BIN_EXE_azera"), scratch.path().join("azera")).expect("the binary");
            let mut shell = Command::new("sh");
            shell.args(["-e", "-c", &block]).current_dir(scratch.path()).env_clear();
            shell.env("PATH", format!("{}:/usr/bin:/bin", scratch.path().display())).env("HOME", scratch.path());
            shell.env("AZERA__MODELS__DIR", models()).env("AZERA__MODELS__THREADS", "1").stdin(Stdio::null());
            let output = shell.output().expect("a shell");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {block}\n{errors}", path.display());
            ran += 1;
        }
    }
    assert!(ran >= 5, "the guides hold commands that can run anywhere: {ran}");
}
