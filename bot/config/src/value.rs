use std::fmt;

use serde_json::Value as Json;
use toml::Value as Toml;

/// Characters of a wrong value that an error shows.
const SHOWN_CHARS: usize = 40;

/// What a key may hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number from, to.
    Integer(i64, i64),
    /// A number from, to.
    Number(f64, f64),
    /// A text of so many characters, from, to.
    Text(u64, u64),
    /// An http or https address of so many characters at most.
    Address(u64),
    /// One of these texts; each with what it means.
    Choice(Vec<(String, String)>),
    /// A list of so many texts at most, each of so many characters, from, to.
    List(u64, u64, u64),
}

impl Kind {
    /// What a JSON schema allows; `None` for a type no key has, or one without limits.
    pub(crate) fn of(schema: &Json) -> Option<Self> {
        if let Some(options) = schema["oneOf"].as_array() {
            let option = |o: &Json| {
                Some((o["const"].as_str()?.to_owned(), o["description"].as_str().unwrap_or_default().into()))
            };
            return options.iter().map(option).collect::<Option<_>>().map(Self::Choice);
        }
        // Of an optional key it is a list of two: the type, and null.
        let kind = schema["type"].as_str().or_else(|| schema["type"].get(0)?.as_str())?;
        match kind {
            "boolean" => Some(Self::Flag),
            "integer" => Some(Self::Integer(schema["minimum"].as_i64()?, schema["maximum"].as_i64()?)),
            "number" => Some(Self::Number(schema["minimum"].as_f64()?, schema["maximum"].as_f64()?)),
            "string" if schema["format"] == "uri" => Some(Self::Address(schema["maxLength"].as_u64()?)),
            "string" => Some(Self::Text(schema["minLength"].as_u64()?, schema["maxLength"].as_u64()?)),
            "array" => {
                let item = &schema["items"];
                Some(Self::List(schema["maxItems"].as_u64()?, item["minLength"].as_u64()?, item["maxLength"].as_u64()?))
            }
            _ => None,
        }
    }

    /// The value as the sections take it; `None` if it is not of this kind, or beyond its limits.
    pub(crate) fn check(&self, value: &Toml) -> Option<Json> {
        let length = |text: &str, least: u64, most: u64| {
            let chars = text.chars().count() as u64;
            (least..=most).contains(&chars) && !text.contains(char::is_control)
        };
        let allowed = match (self, value) {
            (Self::Flag, Toml::Boolean(_)) => true,
            (Self::Integer(least, most), Toml::Integer(number)) => (least..=most).contains(&number),
            (Self::Number(least, most), Toml::Float(number)) => (least..=most).contains(&number),
            (Self::Number(least, most), Toml::Integer(number)) => (*least..=*most).contains(&(*number as f64)),
            (Self::Text(least, most), Toml::String(text)) => length(text, *least, *most),
            (Self::Address(most), Toml::String(text)) => {
                let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
                host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
                    && length(text, 1, *most)
                    && !text.contains(char::is_whitespace)
            }
            (Self::Choice(options), Toml::String(text)) => options.iter().any(|(name, _)| name == text),
            (Self::List(items, least, most), Toml::Array(list)) => {
                list.len() as u64 <= *items
                    && list.iter().all(|item| item.as_str().is_some_and(|text| length(text, *least, *most)))
            }
            _ => false,
        };
        if allowed { serde_json::to_value(value).ok() } else { None }
    }

    /// Reads the text of an environment variable. What does not fit stays a text, which [`Kind::check`] then refuses.
    pub(crate) fn read_variable(&self, text: &str) -> Toml {
        let parsed = match self {
            Self::Flag => text.parse().ok().map(Toml::Boolean),
            Self::Integer(..) => text.parse().ok().map(Toml::Integer),
            Self::Number(..) => text.parse().ok().map(Toml::Float),
            Self::Text(..) | Self::Address(_) | Self::Choice(_) => None,
            Self::List(..) => {
                Some(Toml::Array(text.split(',').map(|item| Toml::String(item.trim().to_owned())).collect()))
            }
        };
        parsed.unwrap_or_else(|| Toml::String(text.to_owned()))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("true or false"),
            Self::Integer(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Number(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Text(least, most) => write!(f, "a text of {least} to {most} characters"),
            Self::Address(most) => write!(f, "an http or https address of at most {most} characters"),
            Self::Choice(options) => {
                let names: Vec<_> = options.iter().map(|(name, _)| format!("{name:?}")).collect();
                write!(f, "one of {}", names.join(", "))
            }
            Self::List(items, least, most) => {
                write!(f, "a list of at most {items} texts of {least} to {most} characters")
            }
        }
    }
}

/// A wrong value as an error shows it: as it would be written, cut to [`SHOWN_CHARS`].
pub(crate) fn shown(value: &Toml) -> String {
    let text = value.to_string();
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}
