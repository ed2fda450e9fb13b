use serde_json::Value as Json;

use crate::Config;
use crate::keys::{Key, sections};
use crate::value::Kind;

/// Columns of the comments.
const WIDTH: usize = 100;

const HEAD: &str = "\
Azera's configuration, with every key at its default; a key that has none stands behind a #. What you leave out keeps \
its default, so your own file may be a single line.

Azera reads the first of: the file given by --config, the file that AZERA_CONFIG names, azera/azera.toml in the XDG \
configuration folder (~/.config for most people). Each key can be set by an environment variable too: \
AZERA__MODELS__SLOTS=4 (the items of a list parted by commas). The environment wins over the file. A secret can also \
stand in a file of its own, which AZERA__MODELS__HUB_TOKEN_FILE and the like name.

This file is generated from the types in bot/config: cargo run -p azera-tidy -- bless
";

impl Config {
    /// `azera.example.toml`: every key, with its documentation, what it may hold, and its default.
    pub fn example() -> String {
        let mut lines = comment(HEAD);
        for section in sections() {
            lines.push(String::new());
            lines.extend(comment(&section.doc));
            lines.push(format!("[{}]", section.name));
            for key in &section.keys {
                lines.extend(comment(&format!("{} {}", key.doc, range(&key.kind))));
                lines.extend(options(&key.kind).iter().flat_map(|option| comment(option)));
                lines.push(assignment(key));
            }
        }
        lines.join("\n") + "\n"
    }
}

fn assignment(key: &Key) -> String {
    let show = |value: &Json| match value {
        // A number with a fraction that has none still is one: TOML tells 1 and 1.0 apart.
        Json::Number(number) if matches!(key.kind, Kind::Number(..)) => {
            format!("{:?}", number.as_f64().unwrap_or_default())
        }
        // Texts, flags, whole numbers and lists of texts look alike in JSON and TOML.
        other => other.to_string(),
    };
    match (&key.default, &key.example) {
        (Some(default), _) => format!("{} = {}", key.name, show(default)),
        (None, Some(example)) => format!("#{} = {}", key.name, show(example)),
        (None, None) => format!("#{} =", key.name),
    }
}

/// From where to where, for kinds that have a range worth telling.
fn range(kind: &Kind) -> String {
    match kind {
        Kind::Integer(least, most) => format!("From {least} to {most}."),
        Kind::Number(least, most) => format!("From {least:?} to {most:?}."),
        Kind::List(items, least, most) => format!("At most {items}, each of {least} to {most} characters."),
        Kind::Flag | Kind::Text(..) | Kind::Address(_) | Kind::Choice(_) => String::new(),
    }
}

/// What may be chosen, and what it means; indented.
fn options(kind: &Kind) -> Vec<String> {
    let Kind::Choice(options) = kind else { return Vec::new() };
    options.iter().map(|(name, meaning)| format!("  {name:?}: {meaning}")).collect()
}

/// The text as comment lines no wider than [`WIDTH`]; a blank line parts paragraphs.
fn comment(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.trim_end().split("\n\n") {
        if !lines.is_empty() {
            lines.push("#".to_owned());
        }
        let indent: String = paragraph.chars().take_while(|c| *c == ' ').collect();
        let mut line = format!("#{indent}");
        for word in paragraph.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(line);
                line = format!("#{indent}");
            }
            line.push(' ');
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}
