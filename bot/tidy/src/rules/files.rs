use crate::{Finding, MAX_FILE_LINES, Tree, VAGUE_NAMES};

/// Checks a file's name, length and first line, but not its code.
pub(crate) fn files(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.sources() {
        let mut report = |line, rule, message| {
            findings.push(Finding { path: path.to_owned(), line, rule, message });
        };
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            let message =
                format!("{lines} lines, the limit is {MAX_FILE_LINES}: a file that does two things is two files");
            report(MAX_FILE_LINES + 1, "length", message);
        }
        let parts = path.strip_suffix(".rs").unwrap_or(path).split('/');
        if let Some(vague) = parts.into_iter().find(|part| VAGUE_NAMES.contains(part)) {
            report(1, "name", format!("`{vague}` says nothing: name it for what it does"));
        }
        if is_crate_root(tree, path) && !begins_with_docs(text) {
            report(1, "docs", "a crate begins with `//!`: what it is for, and what always holds in it".to_owned());
        }
    }
}

/// Returns true for the first file of a library, or of a program without a library.
fn is_crate_root(tree: &Tree, path: &str) -> bool {
    path.ends_with("/src/lib.rs")
        || path.strip_suffix("/src/main.rs").is_some_and(|folder| tree.get(&format!("{folder}/src/lib.rs")).is_none())
}

/// Returns true if the file begins with a `//!` page; inner attributes may come first.
fn begins_with_docs(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("#!["));
    first.is_some_and(|line| line.strip_prefix("//!").is_some_and(|doc| !doc.trim().is_empty()))
}
