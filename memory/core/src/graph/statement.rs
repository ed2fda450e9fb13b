//! Statements that two names mean one or two things. They are memories like any other: people make them by a command,
//! find them with `/memory search` and take them back with `/forget`.

/// Joins the names of a statement that both mean the same.
const SAME: &str = "is the same as";

/// Joins the names of a statement that they mean different things.
const DIFFERENT: &str = "is not the same as";

/// Returns a statement that two names mean the same.
pub fn same(one: &str, other: &str) -> String {
    format!("\"{}\" {SAME} \"{}\".", bare(one), bare(other))
}

/// Returns a statement that two names mean different things.
pub fn different(one: &str, other: &str) -> String {
    format!("\"{}\" {DIFFERENT} \"{}\".", bare(one), bare(other))
}

fn bare(name: &str) -> String {
    name.replace('"', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A statement about two names, with their places in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) one: std::ops::Range<usize>,
    pub(super) other: std::ops::Range<usize>,
    pub(super) is_same: bool,
}

/// Reads a whole text as such a statement.
pub(super) fn parse(text: &str) -> Option<Statement> {
    let body = text.trim().strip_suffix('.').unwrap_or(text.trim());
    let inner = body.strip_prefix('"')?.strip_suffix('"')?;
    let (one, is_same, other) = [(SAME, true), (DIFFERENT, false)].into_iter().find_map(|(words, is_same)| {
        let (one, other) = inner.split_once(&format!("\" {words} \""))?;
        Some((one, is_same, other))
    })?;
    if one.contains('"') || other.contains('"') {
        return None;
    }
    let place = |part: &str| {
        let from = part.as_ptr().addr() - text.as_ptr().addr();
        from..from + part.len()
    };
    Some(Statement { one: place(one), other: place(other), is_same })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_as_it_was_written() {
        for is_same in [true, false] {
            let text = if is_same { same("Annie ", "ann \"x\" lee") } else { different("Annie", "ann x lee") };
            let read = parse(&text).unwrap();
            assert_eq!((text.get(read.one), text.get(read.other)), (Some("Annie"), Some("ann x lee")));
            assert_eq!(read.is_same, is_same);
        }
        assert_eq!(parse("Annie is the same as Ann."), None);
    }
}
