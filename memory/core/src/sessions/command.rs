//! Compares commands of sessions.

use std::collections::HashSet;

/// What a command is for, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Tests,
    Builds,
    Other,
}

/// Words of commands that test something.
const TESTS: &[&str] =
    &["test", "tests", "pytest", "jest", "vitest", "spec", "rspec", "e2e", "tox", "nextest", "ctest", "playwright"];

/// Words of commands that build or check something.
const BUILDS: &[&str] = &[
    "build",
    "check",
    "compile",
    "clippy",
    "lint",
    "tsc",
    "typecheck",
    "vet",
    "fmt",
    "make",
    "cmake",
    "ninja",
    "gradle",
    "mvn",
    "eslint",
    "mypy",
    "ruff",
    "svelte-check",
];

fn purpose(part: &str) -> Purpose {
    let has = |list: &[&str]| {
        part.split(' ').any(|word| word.split([':', '/']).any(|piece| list.contains(&piece.trim_start_matches("./"))))
    };
    match (has(TESTS), has(BUILDS)) {
        (true, _) => Purpose::Tests,
        (false, true) => Purpose::Builds,
        (false, false) => Purpose::Other,
    }
}

/// Returns the single commands of a line.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split(" && ").flat_map(|part| part.split(" || ")).flat_map(|part| part.split("; "))
}

/// Returns true if the line tests, builds or checks something: its failure counts until it works again.
pub(super) fn checks(line: &str) -> bool {
    parts(line).any(|part| purpose(part) != Purpose::Other)
}

/// Returns true if the success of `worked` shows that what failed in `failed` works now.
pub(super) fn shows_solved(worked: &str, failed: &str) -> bool {
    if worked == failed {
        return true;
    }
    let is_git = |part: &&str| part.starts_with("git ");
    let mut needed: Vec<&str> = parts(failed).filter(|part| !is_git(part)).collect();
    if needed.is_empty() {
        needed = parts(failed).collect();
    }
    needed.iter().all(|failed| parts(worked).any(|worked| covers(worked, failed)))
}

/// Returns true if one command says no more than the other, so it does at least as much: `cargo test` covers
/// `cargo test -p gate`. What builds is covered by a test of the same program.
fn covers(worked: &str, failed: &str) -> bool {
    let (mut one, mut other) = (worked.split(' '), failed.split(' '));
    if one.next() != other.next() {
        return false;
    }
    let is_built = purpose(failed) == Purpose::Builds && purpose(worked) == Purpose::Tests;
    let words: HashSet<&str> = other.collect();
    is_built || one.all(|word| words.contains(word)) && worked.split(' ').nth(1) == failed.split(' ').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_solves_what_it_covers() {
        let cases = [
            ("cargo test", "cargo test", true),
            ("cargo test", "cargo test -p gate", true),
            ("cargo test -p gate", "cargo test", false),
            ("cargo test -p boat", "cargo test -p gate", false),
            ("cargo test", "cargo build --release", true),
            ("cargo build", "cargo test", false),
            ("cargo clippy", "cargo test", false),
            ("make lint && git commit -m", "make lint && git commit -m", true),
            ("make lint", "make lint && git commit -m", true),
            ("git commit -m", "make lint && git commit -m", false),
            ("npm test", "cargo test", false),
            ("git push", "git push", true),
        ];
        for (worked, failed, want) in cases {
            assert_eq!(shows_solved(worked, failed), want, "{worked} for {failed}");
        }
        assert!(checks("npm run test:e2e") && checks("make lint && git push") && !checks("git push"));
    }
}
