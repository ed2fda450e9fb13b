//! Compares commands of sessions.

/// What a command is for, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Tests,
    Builds,
    /// Looks at the text of the program: a linter, a formatter, a checker of types. A test shows nothing of it.
    Lints,
    Other,
}

/// Words of commands that test something.
const TESTS: &[&str] =
    &["test", "tests", "pytest", "jest", "vitest", "spec", "rspec", "e2e", "tox", "nextest", "ctest", "playwright"];

/// Words of commands that build or check something.
const BUILDS: &[&str] = &["build", "check", "compile", "make", "cmake", "ninja", "gradle", "mvn"];

/// Words of commands that look at the text of a program.
const LINTS: &[&str] = &[
    "biome",
    "black",
    "clippy",
    "eslint",
    "flake8",
    "fmt",
    "format",
    "gofmt",
    "golangci-lint",
    "isort",
    "lint",
    "mypy",
    "prettier",
    "pylint",
    "pyright",
    "ruff",
    "rustfmt",
    "shellcheck",
    "stylelint",
    "svelte-check",
    "tsc",
    "typecheck",
    "vet",
];

/// Options whose absence makes a command do more. Another one, such as `--strict`, may make it say more.
const NARROWS: &[&str] = &["-p", "--package"];

/// Stands for words that were not kept.
const LEFT_OUT: char = '…';

fn purpose(part: &str) -> Purpose {
    let has = |list: &[&str]| {
        part.split(' ').any(|word| word.split([':', '/']).any(|piece| list.contains(&piece.trim_start_matches("./"))))
    };
    if has(LINTS) {
        Purpose::Lints
    } else if has(TESTS) {
        Purpose::Tests
    } else if has(BUILDS) {
        Purpose::Builds
    } else {
        Purpose::Other
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
/// `cargo test -p gate`. What cargo builds is covered by its tests.
fn covers(worked: &str, failed: &str) -> bool {
    if worked == failed {
        return true;
    }
    let (mut one, mut other) = (worked.split(' '), failed.split(' '));
    // What was left out may narrow it.
    if worked.contains(LEFT_OUT) || one.next() != other.next() {
        return false;
    }
    let (does, did) = (one.next(), other.next());
    let is_built =
        worked.starts_with("cargo ") && does == Some("test") && matches!(did, Some("build" | "check" | "b" | "c"));
    if does != did && !is_built {
        return false;
    }
    let is_within = one.all(|word| failed.split(' ').any(|known| known == word));
    let is_strict = purpose(failed) == Purpose::Lints
        && other.any(|word| {
            word.starts_with('-') && !NARROWS.contains(&word) && worked.split(' ').all(|known| known != word)
        });
    is_within && !is_strict
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
            ("cargo test", "cargo check", true),
            ("cargo test -p boat", "cargo build -p gate", false),
            ("cargo test", "cargo clippy", false),
            ("cargo test", "cargo fmt --check", false),
            ("npm test", "npm run lint", false),
            ("npm test", "npm run build", false),
            ("make test", "make lint", false),
            ("npx vitest", "npx tsc", false),
            ("cargo clippy", "cargo clippy -p gate", true),
            ("cargo clippy", "cargo clippy -- --deny warnings", false),
            ("mypy src", "mypy --strict src", false),
            ("pytest …", "pytest … tests/gate.py", false),
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
