use std::collections::BTreeSet;

use super::{lies_in, lies_in_any};
use crate::source::{Token, reads, tokens};
use crate::{CORE, Finding, PURE, Tree};

/// Platform names that the core must not know, in lower case.
const PLATFORMS: &[&str] = &["discord", "matrix"];

/// Macros that bypass the log.
const PRINTS: &[&str] = &["print", "println", "eprint", "eprintln"];

/// Functions of `std::env` that read or change variables.
const VARIABLES: &[&str] = &["var", "var_os", "vars", "vars_os", "set_var", "remove_var"];

/// Checks the code of every file.
pub(crate) fn code(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut parsed = Vec::new();
    for (path, text) in tree.sources() {
        match tokens(text) {
            Some(tokens) => parsed.push((path, tokens)),
            None => findings.push(Finding {
                path: path.to_owned(),
                line: 1,
                rule: "code",
                message: "this is not Rust".to_owned(),
            }),
        }
    }
    let for_tests: BTreeSet<String> = parsed.iter().flat_map(|(path, tokens)| test_modules(path, tokens)).collect();
    for (path, tokens) in &parsed {
        let whole = is_test_file(path) || for_tests.contains(*path);
        let file = File { path, tokens, test: whole };
        for (at, token) in tokens.iter().enumerate() {
            let broken = file.rules_at(at).into_iter().flatten();
            findings.extend(broken.map(|(rule, message)| Finding {
                path: (*path).to_owned(),
                line: token.line,
                rule,
                message,
            }));
        }
    }
    for (path, text) in tree.sources().filter(|(path, _)| lies_in_any(path, CORE)) {
        platforms(path, text, findings);
    }
}

/// Finds platform names anywhere in a file. Comments count: a comment that explains code by a platform depends on it.
fn platforms(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        let line = line.to_lowercase();
        if let Some(platform) = PLATFORMS.iter().find(|platform| line.contains(**platform)) {
            findings.push(Finding {
                path: path.to_owned(),
                line: index + 1,
                rule: "platforms",
                message: format!("the core never names a platform, and here is `{platform}`"),
            });
        }
    }
}

type Broken = Option<(&'static str, String)>;

/// A file, as the rules see it.
struct File<'a> {
    path: &'a str,
    tokens: &'a [Token],
    /// True if the whole file is compiled only for tests.
    test: bool,
}

impl File<'_> {
    /// Returns every rule that the code starting at this token breaks.
    fn rules_at(&self, at: usize) -> [Broken; 7] {
        [
            self.ignored(at),
            self.unfinished(at),
            self.print(at),
            self.sleep(at),
            self.dropped_result(at),
            self.variable(at),
            self.io(at),
        ]
    }

    fn reads(&self, at: usize, pattern: &[&str]) -> bool {
        reads(self.tokens, at, pattern)
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    fn is_test(&self, at: usize) -> bool {
        self.test || self.tokens.get(at).is_some_and(|token| token.test)
    }

    /// Returns true if a macro with one of these names is called here.
    fn calls_macro(&self, at: usize, names: &[&str]) -> bool {
        names.contains(&self.text(at)) && self.text(at + 1) == "!" && ["(", "[", "{"].contains(&self.text(at + 2))
    }

    /// Returns true if one of these words follows `module::` here.
    fn follows(&self, at: usize, module: &str, words: &[&str]) -> bool {
        self.reads(at, &[module, ":", ":"]) && words.contains(&self.text(at + 3))
    }

    fn ignored(&self, at: usize) -> Broken {
        let plain = self.reads(at, &["#", "[", "ignore"]);
        let sometimes = self.reads(at, &["#", "[", "cfg_attr"])
            && self.tokens.iter().skip(at).take_while(|token| token.text != "]").any(|token| token.text == "ignore");
        (plain || sometimes)
            .then(|| ("ignore", "a test that does not run proves nothing: mend it, or remove it".into()))
    }

    fn unfinished(&self, at: usize) -> Broken {
        self.calls_macro(at, &["todo", "unimplemented"])
            .then(|| ("unfinished", format!("`{}!` is not a product: write it, or leave it out", self.text(at))))
    }

    fn print(&self, at: usize) -> Broken {
        let program = self.path.ends_with("src/main.rs")
            || lies_in(self.path, "bot/app")
            || self.path.ends_with("/build.rs")
            || self.path.contains("/src/bin/");
        (!program && !self.is_test(at) && self.calls_macro(at, PRINTS))
            .then(|| ("print", "a library does not print: use `tracing`, or a writer it is given".into()))
    }

    /// A method called `sleep` belongs to a clock that tests may drive, so it is allowed.
    fn sleep(&self, at: usize) -> Broken {
        let called = ["sleep", "sleep_until", "sleep_ms"].contains(&self.text(at)) && self.text(at + 1) == "(";
        let before = at.checked_sub(1).map_or("", |before| self.text(before));
        (called && self.is_test(at) && before != "." && before != "fn")
            .then(|| ("sleep", "a test does not sleep: drive a clock, or wait for the event itself".into()))
    }

    fn dropped_result(&self, at: usize) -> Broken {
        if !self.reads(at, &["let", "_", "="]) {
            return None;
        }
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(at + 3) {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.checked_sub(1)?,
                ";" if depth == 0 => return None,
                "await" if depth == 0 && self.text(index - 1) == "." && self.text(index + 1) != "?" => break,
                _ => {}
            }
        }
        Some(("dropped", "`let _ =` drops the result of what was awaited: handle it, or say in `if` why not".into()))
    }

    fn variable(&self, at: usize) -> Broken {
        let exempt = lies_in(self.path, "bot/config") || self.path.ends_with("/build.rs") || self.is_test(at);
        (!exempt && self.follows(at, "env", VARIABLES))
            .then(|| ("environment", "azera-config alone reads the environment".into()))
    }

    fn io(&self, at: usize) -> Broken {
        let io = self.follows(at, "std", &["fs", "net", "process"]) || self.reads(at, &["tokio", ":", ":"]);
        (io && lies_in_any(self.path, PURE) && !self.is_test(at))
            .then(|| ("pure", "this crate does no I/O: take what it needs as a value".into()))
    }
}

/// Returns true if Cargo compiles this file only for tests or benchmarks.
fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "benches") && !path.contains("/src/")
}

/// Returns the files of the modules that this file declares only for tests.
fn test_modules(path: &str, tokens: &[Token]) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    let declared = |at: &usize| {
        tokens.get(*at).is_some_and(|token| token.test && token.text == "mod")
            && tokens.get(at + 2).is_some_and(|token| token.text == ";")
    };
    let names = (0..tokens.len()).filter(declared).filter_map(|at| tokens.get(at + 1));
    names.flat_map(|name| [format!("{folder}/{}.rs", name.text), format!("{folder}/{}/mod.rs", name.text)]).collect()
}
