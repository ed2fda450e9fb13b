use std::fmt;

use serde_json::Value as Json;
use toml::Value as Toml;

/// How many characters of a wrong value an error shows.
const SHOWN_CHARS: usize = 40;

/// Marks an integer in the schema that may also be 0, below its least value.
const OR_ZERO: &str = "x-or-zero";

/// The type and range of a key's value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Flag,
    /// An integer; least and most.
    Integer(i64, i64),
    /// Zero for "never", or an integer; least and most.
    ZeroOr(i64, i64),
    /// A number; least and most.
    Number(f64, f64),
    /// A text; the least and most characters.
    Text(u64, u64),
    /// An http or https address; the most characters.
    Address(u64),
    /// One of these texts, each with its meaning.
    Choice(Vec<(String, String)>),
    /// A list of texts: the most items, and the least and most characters of each.
    List(u64, u64, u64),
}

impl Kind {
    /// Returns the kind that a JSON schema describes, or `None` for a type that no key has or that lacks limits.
    pub(crate) fn of(schema: &Json) -> Option<Self> {
        if let Some(options) = schema["oneOf"].as_array() {
            let option = |o: &Json| {
                Some((o["const"].as_str()?.to_owned(), o["description"].as_str().unwrap_or_default().into()))
            };
            return options.iter().map(option).collect::<Option<_>>().map(Self::Choice);
        }
        // The type of an optional key is a list of two: the type itself, and null.
        let kind = schema["type"].as_str().or_else(|| schema["type"].get(0)?.as_str())?;
        match kind {
            "boolean" => Some(Self::Flag),
            "integer" => {
                let (least, most) = (schema["minimum"].as_i64()?, schema["maximum"].as_i64()?);
                let or_zero = schema[OR_ZERO] == true;
                Some(if or_zero { Self::ZeroOr(least, most) } else { Self::Integer(least, most) })
            }
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

    /// Converts a value to the form that the sections read, or returns `None` if it has another type or is out of
    /// range.
    pub(crate) fn check(&self, value: &Toml) -> Option<Json> {
        let length = |text: &str, least: u64, most: u64| {
            let chars = text.chars().count() as u64;
            (least..=most).contains(&chars) && !text.contains(char::is_control)
        };
        let allowed = match (self, value) {
            (Self::Flag, Toml::Boolean(_)) => true,
            (Self::Integer(least, most), Toml::Integer(number)) => (least..=most).contains(&number),
            (Self::ZeroOr(least, most), Toml::Integer(number)) => *number == 0 || (least..=most).contains(&number),
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

    /// Parses the text of an environment variable. Text that does not parse stays a text, which [`Kind::check`] then
    /// rejects.
    pub(crate) fn read_variable(&self, text: &str) -> Toml {
        let parsed = match self {
            Self::Flag => text.parse().ok().map(Toml::Boolean),
            Self::Integer(..) | Self::ZeroOr(..) => text.parse().ok().map(Toml::Integer),
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
            Self::ZeroOr(least, most) => write!(f, "0, or a whole number from {least} to {most}"),
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

/// Returns a wrong value as an error shows it: in TOML form, cut to [`SHOWN_CHARS`].
pub(crate) fn shown(value: &Toml) -> String {
    let text = value.to_string();
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}
