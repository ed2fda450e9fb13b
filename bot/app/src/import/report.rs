//! What an import did.

use std::collections::{BTreeMap, BTreeSet};

use azera_import::Flaw;
use azera_types::{ChatId, MAX_TEXT_BYTES};
use serde_json::{Value, json};

/// Flaws that are listed; more are counted.
const LISTED_FLAWS: usize = 20;

/// What happened to one file.
#[derive(Debug, Default)]
pub struct Report {
    /// The file's name.
    pub file: String,
    /// The format's name.
    pub format: &'static str,
    /// The import's id.
    pub id: String,
    pub dry_run: bool,
    /// Messages that were added, or would be.
    pub added: usize,
    /// Messages that were there before.
    pub known: usize,
    /// Messages that were forgotten before.
    pub forgotten: usize,
    /// Messages that were too long. Their beginning was added.
    pub cut: usize,
    /// Commands that were added, or would be.
    pub commands: usize,
    /// What nobody said, by reason.
    pub left_out: BTreeMap<&'static str, usize>,
    pub flaws: usize,
    /// The first flaws.
    pub listed: Vec<Flaw>,
    /// Why the file could not be read to its end.
    pub broken: Option<String>,
    pub interrupted: bool,
    /// Chats that got a message.
    pub chats: BTreeSet<ChatId>,
    pub seconds: f64,
}

impl Report {
    pub fn flaw(&mut self, flaw: Flaw) {
        self.flaws += 1;
        if self.listed.len() < LISTED_FLAWS {
            self.listed.push(flaw);
        }
    }

    /// Returns the report for programs.
    pub fn to_json(&self) -> Value {
        let flaws: Vec<_> =
            self.listed.iter().map(|flaw| json!({"position": flaw.position, "why": flaw.why})).collect();
        json!({
            "file": self.file, "format": self.format, "import": self.id, "dry_run": self.dry_run,
            "added": self.added, "known": self.known, "forgotten": self.forgotten, "cut": self.cut,
            "commands": self.commands,
            "left_out": self.left_out, "chats": self.chats.len(), "flaws": self.flaws, "listed_flaws": flaws,
            "broken": self.broken, "interrupted": self.interrupted, "seconds": self.seconds,
        })
    }

    /// Returns the report in words, a line for each part.
    pub fn in_words(&self) -> String {
        let done = if self.dry_run { "would import" } else { "imported" };
        let (messages, chats) = (counted(self.added, "message"), counted(self.chats.len(), "chat"));
        let (file, format, known) = (&self.file, self.format, self.known);
        let mut lines = vec![format!("{file} ({format}): {done} {messages} in {chats}; known before: {known}")];
        if self.commands > 0 {
            lines.push(format!("  commands that were run: {}", self.commands));
        }
        if self.forgotten > 0 {
            lines.push(format!("  forgotten before, and left out: {}", self.forgotten));
        }
        if self.cut > 0 {
            lines.push(format!("  cut at {} KB: {}", MAX_TEXT_BYTES / 1024, self.cut));
        }
        let reasons: Vec<String> = self.left_out.iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
        if !reasons.is_empty() {
            lines.push(format!("  left out: {}", reasons.join(", ")));
        }
        for Flaw { position, why } in &self.listed {
            lines.push(format!("  number {position}: {why}"));
        }
        if self.flaws > self.listed.len() {
            lines.push(format!("  and {} more", counted(self.flaws - self.listed.len(), "flaw")));
        }
        if let Some(broken) = &self.broken {
            lines.push(format!("  the rest was not read: {broken}"));
        }
        if self.interrupted {
            lines.push("  stopped; the same command goes on from here".to_owned());
        }
        if self.added > 0 && !self.dry_run {
            lines.push(format!("  azera import --undo {} forgets it again", self.id));
        }
        lines.join("\n")
    }
}

/// Returns a number with its noun.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
