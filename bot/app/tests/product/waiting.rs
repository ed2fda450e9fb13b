//! The process sets how libgomp's threads wait before anything else.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::command;

/// Returns libgomp's variable in the environment of a process that waits for its configuration.
fn spin_counts(own: Option<&str>) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("azera.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut command = command(folder.path(), &["config"]);
    command.env("AZERA_CONFIG", &pipe).stdout(Stdio::null());
    if let Some(own) = own {
        command.env("GOMP_SPINCOUNT", own);
    }
    let mut child = command.spawn().expect("the binary runs");
    // Opening the pipe waits for its reader.
    let empty = File::options().write(true).open(&pipe).expect("a pipe");
    let environment = std::fs::read(format!("/proc/{}/environ", child.id())).expect("its environment");
    drop(empty);
    assert!(child.wait().expect("it ends").success());
    let variables = environment.split(|byte| *byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned());
    variables.filter(|variable| variable.starts_with("GOMP_SPINCOUNT=")).collect()
}

#[test]
fn threads_spin_briefly_unless_the_user_sets_it() {
    assert_eq!(spin_counts(None), ["GOMP_SPINCOUNT=2000"]);
    assert_eq!(spin_counts(Some("70")), ["GOMP_SPINCOUNT=70"]);
}
