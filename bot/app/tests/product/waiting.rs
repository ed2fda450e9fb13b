//! How llama.cpp's threads wait for one another is said before anything else happens.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::command;

/// What a process says to libgomp, read while it waits for its configuration.
fn said(own: Option<&str>) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("azera.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut command = command(folder.path(), &["config"]);
    command.env("AZERA_CONFIG", &pipe).stdout(Stdio::null());
    if let Some(own) = own {
        command.env("GOMP_SPINCOUNT", own);
    }
    let mut child = command.spawn().expect("the binary runs");
    // Opening it waits for who reads it.
    let empty = File::options().write(true).open(&pipe).expect("a pipe");
    let environment = std::fs::read(format!("/proc/{}/environ", child.id())).expect("its environment");
    drop(empty);
    assert!(child.wait().expect("it ends").success());
    let variables = environment.split(|byte| *byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned());
    variables.filter(|variable| variable.starts_with("GOMP_SPINCOUNT=")).collect()
}

#[test]
fn threads_wait_briefly_unless_somebody_says_how() {
    assert_eq!(said(None), ["GOMP_SPINCOUNT=2000"]);
    assert_eq!(said(Some("70")), ["GOMP_SPINCOUNT=70"]);
}
