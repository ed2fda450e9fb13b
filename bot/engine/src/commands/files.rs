//! `/memory files` and `/memory file`: files of messages that may be shown here.

use azera_adapter::{AnswerFile, CommandAnswer, FileContent};
use azera_memory::StoredFile;

use super::{CommandContext, Commands, done, refused};
use crate::error::Error;

/// Newest files that a list shows.
const MAX_LISTED: usize = 40;

/// Digits of an id that a list shows.
const SHOWN_DIGITS: usize = 12;

impl Commands {
    /// Lists the newest kept files.
    pub(super) async fn list_files(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let read_scope = at.read_scope.clone();
        let files = self.services.blocking(move |memory| memory.files().list(&read_scope)).await?;
        if files.is_empty() {
            return Ok(done("I keep no files that may be shown here.".into()));
        }
        let mut text = String::from("Files that I keep and that may be shown here, newest first:\n");
        for file in files.iter().take(MAX_LISTED) {
            let StoredFile { part, blob, author, at: sent_at, .. } = file;
            let id: String = blob.as_str().chars().take(SHOWN_DIGITS).collect();
            let (name, size) = (part.name.replace('`', "'"), part.bytes.div_ceil(1024));
            text.push_str(&format!("- `{id}` {name}, {size} KB, {}, {}\n", author.name(), at.day(*sent_at)));
        }
        if files.len() > MAX_LISTED {
            text.push_str(&format!("and {} older ones.\n", files.len() - MAX_LISTED));
        }
        text.push_str("`/memory file ID` gives you one.");
        Ok(done(text))
    }

    /// Gives the person a kept file.
    pub(super) async fn give_file(&self, at: &CommandContext<'_>, which: &str) -> Result<CommandAnswer, Error> {
        let (read_scope, wanted) = (at.read_scope.clone(), which.to_owned());
        let found = self.services.blocking(move |memory| memory.files().get(&read_scope, &wanted)).await?;
        let Some((file, bytes)) = found else {
            return Ok(refused("I keep no such file that may be shown here; `/memory files` lists them.".into()));
        };
        let text = format!("From {}, {}:", file.author.name(), at.day(file.at));
        let files = vec![AnswerFile { part: file.part, content: FileContent(bytes) }];
        Ok(CommandAnswer { files, ..done(text) })
    }
}
