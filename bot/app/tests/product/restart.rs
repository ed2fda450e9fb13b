//! The process sets how libgomp's threads wait, and when glibc returns memory, before anything else.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::command;

/// libgomp's variables, and glibc's.
const ALL: [&str; 4] = ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"];

/// How long the process may take to read its configuration; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the process sets.
const SPINS: &str = "GOMP_SPINCOUNT=2000";
const RETURNED_FROM: &str = "MALLOC_MMAP_THRESHOLD_=1048576";

/// Returns these variables in the environment of a process that waits for its configuration.
fn variables(own: Option<(&str, &str)>) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("azera.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut command = command(folder.path(), &["config"]);
    command.env("AZERA_CONFIG", &pipe).stdout(Stdio::null()).envs(own);
    let mut child = command.spawn().expect("the binary runs");
    // Opening the pipe waits for its reader, for ever if the process ends before.
    let (opened, is_open) = channel();
    std::thread::spawn(move || opened.send(File::options().write(true).open(&pipe)));
    let empty = is_open.recv_timeout(PATIENCE).expect("it reads its configuration").expect("a pipe");
    let environment = std::fs::read(format!("/proc/{}/environ", child.id())).expect("its environment");
    drop(empty);
    assert!(child.wait().expect("it ends").success());
    let variables = environment.split(|byte| *byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned());
    let named = |variable: &String| variable.split('=').next().is_some_and(|name| ALL.contains(&name));
    let mut variables: Vec<_> = variables.filter(named).collect();
    variables.sort();
    variables
}

#[test]
fn threads_spin_briefly_and_freed_memory_is_returned() {
    assert_eq!(variables(None), [SPINS, RETURNED_FROM]);
}

#[test]
fn the_users_own_variables_win_and_the_other_one_is_set() {
    assert_eq!(variables(Some(("GOMP_SPINCOUNT", "70"))), ["GOMP_SPINCOUNT=70", RETURNED_FROM]);
    assert_eq!(variables(Some(("OMP_WAIT_POLICY", "passive"))), [RETURNED_FROM, "OMP_WAIT_POLICY=passive"]);
    assert_eq!(variables(Some(("MALLOC_MMAP_THRESHOLD_", "70"))), [SPINS, "MALLOC_MMAP_THRESHOLD_=70"]);
    let own = "glibc.malloc.mmap_threshold=70";
    assert_eq!(variables(Some(("GLIBC_TUNABLES", own))), [format!("GLIBC_TUNABLES={own}"), SPINS.to_owned()]);
}

/// Some systems take variables away from a program with rights of its own, at each start.
#[test]
fn it_restarts_only_once() {
    assert_eq!(variables(Some(("AZERA_RESTARTED", "1"))), [""; 0]);
}
