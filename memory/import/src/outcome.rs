//! Tells from the result of a tool whether its commands worked.

use serde_json::Value;

/// Bytes at the beginning and at the end of an output that are looked at.
const LOOKED_AT: usize = 8 << 10;

/// Beginnings of results of calls that never ran.
const NOT_RUN: &[&str] = &[
    "The user doesn't want to proceed",
    "[Request interrupted by user",
    "Permission to use",
    "Command running in background",
];

/// Signs in an output that something failed. A line that begins with `error:` is one, too.
const FAILED: &[&str] = &[
    "fatal:",
    "FAILED",
    "Traceback (most recent call last)",
    "npm ERR!",
    "make: ***",
    "panicked at",
    "command not found",
    "BUILD FAILURE",
    "BUILD FAILED",
    "Segmentation fault",
    "AssertionError",
];

/// Signs in an output that everything worked.
const WORKED: &[&str] = &["test result: ok", " passed in ", " passed (", "BUILD SUCCESS", "Build succeeded"];

/// What cargo writes when it has built something, and when it then runs it. Its end says nothing of that run.
const BUILT: &str = "Finished `";
const RUNS: &str = "Running `";

/// Words behind the number of what failed.
const COUNTED: &[&str] = &["failed", "failure", "failures", "failing"];

/// Returns whether a call worked; `None` if its result does not tell. `is_exact` says that the shell's answer is that of
/// the commands.
pub(crate) fn worked(is_error: bool, output: &str, details: Option<&Value>, is_exact: bool) -> Option<bool> {
    let flag = |name: &str| details.and_then(|details| details.get(name)).and_then(Value::as_bool).unwrap_or(false);
    if flag("interrupted") || NOT_RUN.iter().any(|begins| output.trim_start().starts_with(begins)) {
        return None;
    }
    if is_exact {
        return Some(!is_error);
    }
    let (head, tail) = (head(output), tail(output));
    let has = |sign: &str| head.contains(sign) || tail.contains(sign);
    let lines = || head.lines().chain(tail.lines());
    let counts = || lines().flat_map(failures);
    let failed = FAILED.iter().any(|sign| has(sign)) || lines().any(is_error_line) || counts().any(|count| count > 0);
    let worked = WORKED.iter().any(|sign| has(sign)) || has(BUILT) && !has(RUNS) || counts().next().is_some();
    match (failed, worked) {
        (true, _) => Some(false),
        (false, true) if !is_error => Some(true),
        _ => None,
    }
}

fn head(output: &str) -> &str {
    output.get(..output.floor_char_boundary(LOOKED_AT)).unwrap_or_default()
}

/// Returns the end of an output, from the beginning of a line.
fn tail(output: &str) -> &str {
    let Some(at) = output.len().checked_sub(LOOKED_AT).filter(|at| *at > 0) else { return output };
    let tail = output.get(output.ceil_char_boundary(at)..).unwrap_or_default();
    tail.split_once('\n').map_or(tail, |(_, lines)| lines)
}

/// Returns true if a line begins with `error:` or the code of an error; `error::tests` is only a name.
fn is_error_line(line: &str) -> bool {
    let begins = line.trim_start().as_bytes();
    let Some((word, rest)) = begins.split_at_checked(b"error".len()) else { return false };
    word.eq_ignore_ascii_case(b"error")
        && (rest.starts_with(b"[") || rest.starts_with(b":") && !rest.starts_with(b"::"))
}

/// Returns how many failed, as often as a line tells it: `1 failed, 3 passed`. A number too large to be read counts.
fn failures(line: &str) -> impl Iterator<Item = u64> {
    let mut last: Option<&str> = None;
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).filter_map(move |word| {
        let number = last.replace(word).filter(|last| last.bytes().all(|b| b.is_ascii_digit()))?;
        let is_counted = COUNTED.iter().any(|counted| word.eq_ignore_ascii_case(counted));
        is_counted.then(|| number.parse().unwrap_or(u64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_counts_where_no_later_command_hides_it() {
        let interrupted = json!({"interrupted": true, "stdout": ""});
        let cases = [
            (false, "ok", None, true, Some(true)),
            (true, "Exit code 101\nerror: test failed", None, true, Some(false)),
            (true, "The user doesn't want to proceed with this tool use.", None, true, None),
            (false, "", Some(&interrupted), true, None),
            (false, "Command running in background with ID: 3", None, true, None),
            (false, "running 3 tests\ntest result: ok. 3 passed", None, false, Some(true)),
            (false, "test result: FAILED. 1 passed", None, false, Some(false)),
            (false, "3 files", None, false, None),
            (true, "Exit code 1", None, false, None),
            (false, "1 failed, 3 passed in 0.2s", None, false, Some(false)),
            (false, "10 failed, 3 passed", None, false, Some(false)),
            (false, "0 failed, 3 passed", None, false, Some(true)),
            (false, "Tests  1 failed | 3 passed (4)", None, false, Some(false)),
            (false, "Tests  4 passed (4)", None, false, Some(true)),
            (false, "3 examples, 1 failure", None, false, Some(false)),
            (false, "    Finished `dev` profile in 1s\nError: no gate", None, false, Some(false)),
            (false, "    Finished `dev` profile in 1s", None, false, Some(true)),
            (false, "    Finished `dev` profile in 1s\n     Running `target/debug/gate`", None, false, None),
            (false, "test error::tests::parse ... ok\ntest result: ok. 1 passed; 0 failed", None, false, Some(true)),
            (false, "error::tests: x\ntest result: ok", None, false, Some(true)),
            (false, "error[E0308]: mismatched types", None, false, Some(false)),
        ];
        for (is_error, output, details, is_exact, want) in cases {
            assert_eq!(worked(is_error, output, details, is_exact), want, "{output}");
        }
    }
}
