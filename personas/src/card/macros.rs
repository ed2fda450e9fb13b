//! Reduces the macros of character cards, such as `{{random::red::blue}}`, to the placeholders `{{user}}` and `{{char}}`
//! and plain text. No macro reaches a prompt with its braces.

use std::collections::BTreeSet;

use crate::hygiene::defuse;

/// Macros that other programs fill in while they run. Azera has nothing to put there, so they are removed.
const UNAVAILABLE: &[&str] = &[
    "addglobalvar",
    "addvar",
    "authorsnote",
    "banned",
    "bias",
    "charanchor",
    "chardepthprompt",
    "charfirstmessage",
    "charinstruction",
    "charjailbreak",
    "charprompt",
    "charversion",
    "char_version",
    "chat",
    "currentswipeid",
    "date",
    "datetimeformat",
    "decglobalvar",
    "decvar",
    "description",
    "firstincludedmessageid",
    "getglobalvar",
    "getvar",
    "idle_duration",
    "incglobalvar",
    "incvar",
    "input",
    "isodate",
    "isotime",
    "jailbreak",
    "lastcharmessage",
    "lastgenerationtype",
    "lastmessage",
    "lastmessageid",
    "lastswipeid",
    "lastusermessage",
    "lorebook",
    "main",
    "maxprompt",
    "mesexamples",
    "mesexamplesraw",
    "model",
    "outlet",
    "persona",
    "personality",
    "roll",
    "scenario",
    "setglobalvar",
    "setvar",
    "summary",
    "system",
    "systemprompt",
    "time",
    "timediff",
    "weekday",
    "wi",
    "world_info",
];

/// Names of the person, and of the persona, as macros and in angle brackets.
const PERSON: [&str; 3] = ["user", "username", "user_name"];
const PERSONA: [&str; 6] = ["char", "bot", "charname", "char_name", "charifnotgroup", "group"];

/// Deepest nesting that is followed; deeper braces are dropped.
const MAX_DEPTH: usize = 32;

/// Most times that a text is reduced again.
const MAX_ROUNDS: usize = 8;

/// A text without macros.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reduced {
    /// The text, with `{{user}}` and `{{char}}` as its only macros.
    pub(crate) text: String,
    /// Names of the macros that were removed or became their own text.
    pub(crate) unknown: BTreeSet<String>,
}

/// Reduces the macros of a text. A random choice becomes its first option, because a persona's prompt must be the same
/// each time. Comments are removed. A macro that Azera does not know becomes the text between its braces, or goes if it
/// has arguments behind `::`.
pub(crate) fn reduce_macros(text: &str) -> Reduced {
    let mut reduced = reduce_once(text);
    // What is left of one macro can form another with the text around it.
    for _ in 0..MAX_ROUNDS {
        let mut again = reduce_once(&reduced.text);
        if again.text == reduced.text {
            break;
        }
        again.unknown.append(&mut reduced.unknown);
        reduced = again;
    }
    reduced
}

/// A text that may stand in a prompt.
pub(super) struct Cleaned {
    pub(super) text: String,
    /// See [`Reduced::unknown`].
    pub(super) unknown: BTreeSet<String>,
    /// True if control tokens or hidden characters were defused.
    pub(super) defused: bool,
}

/// Removes macros, control tokens and hidden characters, except `{{char}}` and `{{user}}`. Hidden characters go first,
/// because they could hide a macro, and tokens again at last, because a macro could hide one.
pub(super) fn clean(given: &str) -> Cleaned {
    let visible = defuse(given);
    let Reduced { text, unknown } = reduce_macros(&visible);
    let clean = defuse(&text);
    let defused = clean != text || visible != given;
    Cleaned { text: clean.into_owned(), unknown, defused }
}

fn reduce_once(text: &str) -> Reduced {
    let mut reducer = Reducer { open: vec![String::new()], unknown: BTreeSet::new() };
    if !text.contains("{{") && !text.contains('<') {
        return Reduced { text: text.to_owned(), unknown: reducer.unknown };
    }
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let run = rest.len() - rest.trim_start_matches('{').len();
        rest = if run >= 2 {
            reducer.opens(run);
            rest.get(run..)
        } else if reducer.open.len() > 1 && rest.starts_with("}}") {
            reducer.closes();
            rest.get(2..)
        } else if let Some((placeholder, length)) = angle_placeholder(rest) {
            reducer.push(placeholder);
            rest.get(length..)
        } else {
            reducer.push(c.encode_utf8(&mut [0; 4]));
            rest.get(c.len_utf8()..)
        }
        .unwrap_or_default();
    }
    reducer.finish()
}

/// Returns the placeholder for `<user>`, `<char>` or `<bot>` at the start of a text, and the length of the mark.
fn angle_placeholder(text: &str) -> Option<(&'static str, usize)> {
    let inner = text.strip_prefix('<')?;
    let named = |name: &str| {
        inner.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
            && inner.get(name.len()..).is_some_and(|after| after.starts_with('>'))
    };
    let found = |names: &[&'static str]| names.iter().find(|name| named(name)).map(|name| name.len() + 2);
    found(&PERSON[..1]).map(|length| ("{{user}}", length)).or(found(&PERSONA[..2]).map(|length| ("{{char}}", length)))
}

struct Reducer {
    /// The text so far, then that of each open macro.
    open: Vec<String>,
    unknown: BTreeSet<String>,
}

impl Reducer {
    fn push(&mut self, text: &str) {
        if let Some(innermost) = self.open.last_mut() {
            innermost.push_str(text);
        }
    }

    /// Opens a macro for each pair of braces. The first of an odd number is a brace of the text.
    fn opens(&mut self, braces: usize) {
        if braces % 2 == 1 {
            self.push("{");
        }
        for _ in 0..braces / 2 {
            if self.open.len() <= MAX_DEPTH {
                self.open.push(String::new());
            }
        }
    }

    fn closes(&mut self) {
        let inner = self.open.pop().unwrap_or_default();
        let value = self.value(inner.trim());
        self.push(&value);
    }

    fn finish(mut self) -> Reduced {
        // A macro that is never closed is text.
        while self.open.len() > 1 {
            let inner = self.open.pop().unwrap_or_default();
            self.push(&inner);
        }
        Reduced { text: self.open.pop().unwrap_or_default(), unknown: self.unknown }
    }

    fn value(&mut self, inner: &str) -> String {
        if inner.starts_with("//") {
            return String::new();
        }
        let end = inner.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(inner.len());
        let (name, argument) = inner.split_at_checked(end).unwrap_or((inner, ""));
        let lower = name.to_lowercase();
        match lower.as_str() {
            "" | "original" | "comment" | "hidden_key" | "trim" | "noop" => String::new(),
            "newline" => "\n".to_owned(),
            "space" => " ".to_owned(),
            "random" | "pick" => first_option(argument),
            name if PERSON.contains(&name) => "{{user}}".to_owned(),
            name if PERSONA.contains(&name) => "{{char}}".to_owned(),
            // `{{#if ...}}`, `{{/if}}`, `{{.variable}}` and `{{$variable}}` are code.
            code if code.starts_with(['#', '/', '.', '$', '?', '!']) => self.gone(name),
            name if UNAVAILABLE.contains(&name) || name.starts_with("time_utc") || argument.starts_with("::") => {
                self.gone(name)
            }
            _ => {
                self.unknown.insert(name.to_owned());
                inner.to_owned()
            }
        }
    }

    fn gone(&mut self, name: &str) -> String {
        self.unknown.insert(name.to_owned());
        String::new()
    }
}

/// Returns the first option of `::a::b` or of `:a,b` that is not empty.
fn first_option(argument: &str) -> String {
    let options = argument.trim_start();
    let first = |mut options: &mut dyn Iterator<Item = String>| {
        Iterator::by_ref(&mut options).map(|option| option.trim().to_owned()).find(|option| !option.is_empty())
    };
    let found = match options.strip_prefix("::") {
        Some(options) => first(&mut options.split("::").map(str::to_owned)),
        None => {
            // A comma behind a backslash belongs to an option.
            let options = options.trim_start_matches(':').replace("\\,", "\u{0}");
            first(&mut options.split(',').map(|option| option.replace('\u{0}', ",")))
        }
    };
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str, unknown: &[&str]) {
        let reduced = reduce_macros(text);
        assert_eq!(reduced.text, expected, "{text:?}");
        assert_eq!(reduced.unknown.iter().map(String::as_str).collect::<Vec<_>>(), unknown, "{text:?}");
    }

    #[test]
    fn names_become_placeholders() {
        check("{{User}} and <BOT>", "{{user}} and {{char}}", &[]);
        check("{{ char }}, <user>, <Char>, <b>", "{{char}}, {{user}}, {{char}}, <b>", &[]);
        check("{{{char}}}", "{{{char}}}", &[]);
    }

    #[test]
    fn comments_and_choices_are_reduced() {
        check("a{{// a secret: x}}b{{comment: x}}{{original}}", "ab", &[]);
        check("{{random:red,blue}} {{pick::x,y::z}} {{random::::a}}", "red x,y a", &[]);
        check("{{random: one\\, two, three}}{{random}}", "one, two", &[]);
        check("{{random::{{user}} waves::{{char}} waves}}", "{{user}} waves", &[]);
        check("{{random::{{pick::a::b}}{{// no}}::c}}", "a", &[]);
        check("{{// {{user}} is late }}x", "x", &[]);
    }

    #[test]
    fn no_macro_hides_in_another_or_behind_a_hidden_character() {
        check("{{{// x}}{time}}", "", &["time"]);
        assert_eq!(clean("{\0{time}} <|im_{{// x}}end|>").text, " (im_end)");
    }

    #[test]
    fn unknown_macros_leave_no_braces() {
        check("{{roll:d6}}|{{time}}|{{getvar::mood}}", "||", &["getvar", "roll", "time"]);
        check("{{Lord Byron}}", "Lord Byron", &["Lord"]);
        check("{{#if x}}a{{/if}}", "a", &["#if", "/if"]);
        check("{{unclosed", "unclosed", &[]);
        check("{\"a\": {\"b\": 1}}", "{\"a\": {\"b\": 1}}", &[]);
        check(&"{{".repeat(1000), "", &[]);
    }
}
