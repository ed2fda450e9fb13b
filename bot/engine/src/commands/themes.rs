//! `/memory themes`: what is talked about most.

use azera_adapter::CommandAnswer;
use azera_memory::{MemoryRow, Theme, ThemePage, shortened};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Themes of a page.
const PAGE: usize = 5;

/// Most characters shown of a memory, and of a word.
const SHOWN: usize = 160;
const WORD_CHARS: usize = 32;

impl Commands {
    pub(super) async fn list_themes(&self, at: &CommandContext<'_>, page: &str) -> Result<CommandAnswer, Error> {
        let number = if page.is_empty() { Some(1) } else { page.parse::<usize>().ok().filter(|number| *number > 0) };
        let Some(number) = number else {
            return Ok(refused(format!("`{}` is no page. `/memory themes` shows the first one.", short(page))));
        };
        let (read_scope, skip) = (at.read_scope.clone(), (number - 1).saturating_mul(PAGE));
        let found = self.services.blocking(move |memory| memory.themes().list(&read_scope, skip, PAGE)).await?;
        let pages = found.total.div_ceil(PAGE);
        if pages == 0 {
            return Ok(done(
                "I know no themes yet that may be shown here. I look for them in quiet times, once several memories are \
                 alike."
                    .into(),
            ));
        }
        if found.themes.is_empty() {
            return Ok(refused(format!("The last page is {pages}. `/memory themes {pages}` shows it.")));
        }
        Ok(done(page_text(at, &found, number, pages)))
    }
}

fn page_text(at: &CommandContext<'_>, found: &ThemePage, number: usize, pages: usize) -> String {
    let mut text = String::from("What is talked about most, as far as it may be shown here:\n");
    for (index, theme) in found.themes.iter().enumerate() {
        text.push_str(&describe(at, (number - 1) * PAGE + index + 1, theme));
    }
    if found.is_cut {
        text.push_str("Older memories were too many to count.\n");
    }
    if number < pages {
        text.push_str(&format!("Page {number} of {pages}; `/memory themes {}` goes on.\n", number + 1));
    }
    text.push_str(
        "I find themes in quiet times, so the newest memories may be missing. `/forget mNUMBER` forgets one.",
    );
    text
}

fn describe(at: &CommandContext<'_>, number: usize, theme: &Theme) -> String {
    let (first, last) = (at.day(theme.said.0), at.day(theme.said.1));
    let span = if first == last { format!("on {first}") } else { format!("from {first} to {last}") };
    let count = counted(theme.memories, "memory", "memories");
    let mut text = format!("{number}. {}: {count} {span} ({})\n", name(theme), theme.scope);
    text.push_str(&quoted("typical", &theme.typical, theme));
    if theme.newest.id != theme.typical.id {
        text.push_str(&quoted("newest", &theme.newest, theme));
    }
    if !theme.parts.is_empty() {
        let parts: Vec<String> = theme.parts.iter().map(|part| format!("{} ({})", name(part), part.memories)).collect();
        text.push_str(&format!("   - in it: {}\n", parts.join("; ")));
    }
    text
}

fn quoted(what: &str, memory: &MemoryRow, theme: &Theme) -> String {
    let body = shortened(&memory.text, &theme.words.join(" "), SHOWN);
    format!("   - {what}: `{}` \"{}\"\n", memory.id, body.as_str())
}

/// Returns the words of a theme.
fn name(theme: &Theme) -> String {
    if theme.words.is_empty() {
        return "without a name".to_owned();
    }
    theme.words.iter().map(|word| short(word)).collect::<Vec<_>>().join(", ")
}

fn short(text: &str) -> String {
    shortened(text, "", WORD_CHARS).as_str().to_owned()
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
