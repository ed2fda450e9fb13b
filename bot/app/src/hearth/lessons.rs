//! Lessons as lines of JSON.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use azera_curriculum::{Kind, Lesson, lessons};
use azera_hearth::Example;
use azera_llama::LlamaReader;
use azera_model::{ChatMessage, Role};
use serde::{Deserialize, Serialize};

use crate::cli::Curriculum;

/// A line of a file of lessons.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    kind: Kind,
    messages: Vec<Said>,
    reply: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Said {
    role: String,
    content: String,
}

/// Writes lessons.
pub fn write(options: &Curriculum) -> anyhow::Result<()> {
    let path = &options.out;
    let file = File::create(path).with_context(|| format!("writing {}", path.display()))?;
    let mut out = BufWriter::new(file);
    for lesson in lessons(&options.family, options.seed, options.count) {
        let Lesson { kind, messages, reply } = lesson;
        let said = |message: ChatMessage| Said { role: message.role.as_str().to_owned(), content: message.content };
        let row = Row { kind, messages: messages.into_iter().map(said).collect(), reply };
        writeln!(out, "{}", serde_json::to_string(&row)?)?;
    }
    out.flush().with_context(|| format!("writing {}", path.display()))?;
    println!("{} lessons are in {}", options.count, path.display());
    Ok(())
}

/// Reads lessons as a model reads them, at most `limit`.
pub fn read(path: &Path, reader: &LlamaReader, limit: usize) -> anyhow::Result<Vec<Example>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let rows = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).take(limit);
    rows.map(|(index, line)| example(line, reader).with_context(|| format!("line {} of {}", index + 1, path.display())))
        .collect()
}

fn example(line: &str, reader: &LlamaReader) -> anyhow::Result<Example> {
    let row: Row = serde_json::from_str(line)?;
    let messages = row.messages.into_iter().map(|said| {
        let role = match said.role.as_str() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            other => anyhow::bail!("there is no role {other:?}"),
        };
        Ok(ChatMessage::new(role, said.content))
    });
    let messages = messages.collect::<anyhow::Result<Vec<_>>>()?;
    let (tokens, start) = reader.exchange(&messages, &row.reply)?;
    Ok(Example::from_token(start, tokens))
}
