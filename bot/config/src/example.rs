use serde_json::Value as Json;

use crate::Config;
use crate::keys::{Key, sections};
use crate::value::Kind;

/// The widest comment line, in characters.
const WIDTH: usize = 100;

const HEAD: &str = "\
Azera's configuration: every key with its default. A key without a default is commented out with a #. A key that you \
leave out keeps its default, so your own file can be a single line.

Azera reads the first of: the file given by --config, the file that AZERA_CONFIG names, azera/azera.toml in the XDG \
configuration folder (usually ~/.config). An environment variable can set each key too: AZERA__MODELS__SLOTS=4 \
(separate the items of a list by commas). The environment overrides the file. A secret can also be read from a file of \
its own, which AZERA__MODELS__HUB_TOKEN_FILE and the like name, or from the vault: \"vault:NAME\" is what `azera vault set NAME` \
stored.

This file is generated from the types in bot/config: cargo run -p azera-tidy -- bless
";

impl Config {
    /// Returns the text of `azera.example.toml`: every key with its documentation, range and default.
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
        // Rust's `Debug` keeps the `.0` of a whole float, and TOML needs it to tell 1.0 from 1.
        Json::Number(number) if matches!(key.kind, Kind::Number(..)) => {
            format!("{:?}", number.as_f64().unwrap_or_default())
        }
        // Strings, booleans, integers and lists of strings look the same in JSON and TOML.
        other => other.to_string(),
    };
    match (&key.default, &key.example) {
        (Some(default), _) => format!("{} = {}", key.name, show(default)),
        (None, Some(example)) => format!("#{} = {}", key.name, show(example)),
        (None, None) => format!("#{} =", key.name),
    }
}

/// Returns the allowed range in words, for the kinds that have one.
fn range(kind: &Kind) -> String {
    match kind {
        Kind::Integer(least, most) => format!("From {least} to {most}."),
        Kind::ZeroOr(least, most) => format!("0, or from {least} to {most}."),
        Kind::Number(least, most) => format!("From {least:?} to {most:?}."),
        Kind::List(items, least, most) => format!("At most {items}, each of {least} to {most} characters."),
        Kind::Flag | Kind::Text(..) | Kind::Address(_) | Kind::Choice(_) => String::new(),
    }
}

/// Returns one indented line for each option of a choice, with its meaning.
fn options(kind: &Kind) -> Vec<String> {
    let Kind::Choice(options) = kind else { return Vec::new() };
    options.iter().map(|(name, meaning)| format!("  {name:?}: {meaning}")).collect()
}

/// Formats the text as comment lines no wider than [`WIDTH`]. A blank line separates paragraphs.
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
