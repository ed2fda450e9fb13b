//! Pages of lists. A cursor names the list and the last item that was returned, so it works for that list alone.

use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Items of a page without a limit.
const USUAL: usize = 20;

/// Most items of a page.
pub(crate) const MOST: usize = 100;

/// Bytes of the digest in a cursor.
const DIGEST_BYTES: usize = 6;

/// Returns how many items a page has.
pub(crate) fn limit(asked: Option<usize>) -> Result<usize, Failure> {
    match asked {
        None => Ok(USUAL),
        Some(0) => Err(Failure::invalid("`limit` is at least 1.")),
        Some(asked) => Ok(asked.min(MOST)),
    }
}

/// The list that a cursor belongs to.
pub(crate) struct List(String);

impl List {
    /// Names a list by the tool and its arguments besides limit and cursor.
    pub(crate) fn new(tool: &str, arguments: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in [tool].iter().chain(arguments) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        Self(digest.finalize().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns a cursor behind the item with this key.
    pub(crate) fn cursor(&self, last: &str) -> String {
        format!("{}.{last}", self.0)
    }

    /// Returns the key of the last item that a cursor names.
    pub(crate) fn after<'a>(&self, cursor: Option<&'a str>) -> Result<Option<&'a str>, Failure> {
        let Some(cursor) = cursor else { return Ok(None) };
        match cursor.split_once('.') {
            Some((list, last)) if list == self.0 => Ok(Some(last)),
            _ => Err(Failure::invalid(
                "`cursor` belongs to another call. Pass `next_cursor` of the page before, with the same arguments.",
            )),
        }
    }
}

impl List {
    /// Returns how many items a cursor of a list that is read by position leaves out.
    pub(crate) fn skipped(&self, cursor: Option<&str>) -> Result<usize, Failure> {
        let skip = self.after(cursor)?.map(str::parse::<usize>).transpose();
        Ok(skip.map_err(|_| Failure::invalid("`cursor` is no cursor of this tool."))?.unwrap_or(0))
    }
}

/// Returns the page behind `after` of a list that is there as a whole, and the cursor of the next page.
pub(crate) fn page<T>(
    list: &List,
    items: Vec<T>,
    after: Option<&str>,
    limit: usize,
    key: impl Fn(&T) -> String,
) -> Result<(Vec<T>, Option<String>), Failure> {
    let from = match after {
        None => 0,
        Some(after) => {
            let position = items.iter().position(|item| key(item) == after);
            position.ok_or_else(|| Failure::invalid("The list changed. Begin again without `cursor`."))? + 1
        }
    };
    let is_last = items.len() <= from + limit;
    let page: Vec<T> = items.into_iter().skip(from).take(limit).collect();
    let next = page.last().filter(|_| !is_last).map(|last| list.cursor(&key(last)));
    Ok((page, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_each_item_once() {
        let list = List::new("list", &["dream"]);
        let (mut cursor, mut seen): (Option<String>, Vec<u32>) = (None, Vec::new());
        loop {
            let after = list.after(cursor.as_deref()).unwrap();
            let (items, next) = page(&list, (0..7).collect(), after, 3, u32::to_string).unwrap();
            seen.extend(items);
            let Some(next) = next else { break };
            cursor = Some(next);
        }
        assert_eq!(seen, (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let cursor = List::new("list", &["dream"]).cursor("m4");
        for (tool, kind) in [("list", "fact"), ("search", "dream")] {
            assert!(List::new(tool, &[kind]).after(Some(&cursor)).is_err());
        }
        assert!(List::new("list", &[]).after(Some("nonsense")).is_err());
        assert_eq!(List::new("list", &["dream"]).after(Some(&cursor)).unwrap(), Some("m4"));
    }
}
