//! The process sets how libgomp's threads wait, and when glibc returns memory, before anything else.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::command;

/// Returns the variables of these names in the environment of a process that waits for its configuration.
fn variables(names: [&str; 2], own: Option<(&str, &str)>) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("azera.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut command = command(folder.path(), &["config"]);
    command.env("AZERA_CONFIG", &pipe).stdout(Stdio::null()).envs(own);
    let mut child = command.spawn().expect("the binary runs");
    // Opening the pipe waits for its reader.
    let empty = File::options().write(true).open(&pipe).expect("a pipe");
    let environment = std::fs::read(format!("/proc/{}/environ", child.id())).expect("its environment");
    drop(empty);
    assert!(child.wait().expect("it ends").success());
    let variables = environment.split(|byte| *byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned());
    let named = |variable: &String| variable.split('=').next().is_some_and(|name| names.contains(&name));
    let mut variables: Vec<_> = variables.filter(named).collect();
    variables.sort();
    variables
}

#[test]
fn threads_spin_briefly_unless_the_user_sets_it() {
    let spins = |own| variables(["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"], own);
    assert_eq!(spins(None), ["GOMP_SPINCOUNT=2000"]);
    assert_eq!(spins(Some(("GOMP_SPINCOUNT", "70"))), ["GOMP_SPINCOUNT=70"]);
    assert_eq!(spins(Some(("OMP_WAIT_POLICY", "passive"))), ["OMP_WAIT_POLICY=passive"]);
}

#[test]
fn freed_memory_is_returned_unless_the_user_sets_it() {
    let threshold = |own| variables(["MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"], own);
    assert_eq!(threshold(None), ["MALLOC_MMAP_THRESHOLD_=1048576"]);
    assert_eq!(threshold(Some(("MALLOC_MMAP_THRESHOLD_", "70"))), ["MALLOC_MMAP_THRESHOLD_=70"]);
    let own = "glibc.malloc.mmap_threshold=70";
    assert_eq!(threshold(Some(("GLIBC_TUNABLES", own))), [format!("GLIBC_TUNABLES={own}")]);
}
