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

/// Signs in an output that something failed.
const FAILED: &[&str] = &[
    "error:",
    "error[",
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
const WORKED: &[&str] =
    &["test result: ok", " passed in ", " passed (", "Finished `", "BUILD SUCCESS", "Build succeeded", "0 failed"];

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
    let head = output.get(..output.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let tail = output.get(output.ceil_char_boundary(output.len().saturating_sub(LOOKED_AT))..).unwrap_or_default();
    let has = |signs: &[&str]| signs.iter().any(|sign| head.contains(sign) || tail.contains(sign));
    match (has(FAILED), has(WORKED)) {
        (true, _) => Some(false),
        (false, true) if !is_error => Some(true),
        _ => None,
    }
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
        ];
        for (is_error, output, details, is_exact, want) in cases {
            assert_eq!(worked(is_error, output, details, is_exact), want, "{output}");
        }
    }
}
