use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value as Json};
use toml::Value as Toml;
use toml::de::{DeTable, DeValue};

use crate::error::{Origin, Problem};
use crate::keys::{Key, Section, section, sections};
use crate::left_out::is_optional;
use crate::value::shown;

/// The prefix of every override in the environment.
const PREFIX: &str = "AZERA__";

/// The suffix of a variable that names a file with the secret, instead of the secret itself.
const SECRET_FILE: &str = "_file";

/// The largest secret file, in bytes.
const MAX_SECRET_BYTES: u64 = 16 * 1024;

/// The valid values read so far, and the problems with the others.
#[derive(Default)]
pub(crate) struct Draft {
    values: BTreeMap<&'static str, BTreeMap<&'static str, (Json, Origin)>>,
    pub(crate) problems: Vec<Problem>,
    /// Problems with values of sections that can be left out.
    pub(crate) optional: Vec<(&'static str, Problem)>,
}

impl Draft {
    /// Reads the values of a file.
    pub(crate) fn read_file(&mut self, text: &str, file: &Path) {
        let origin = |at: usize| Origin::Line { file: file.to_path_buf(), line: line_of(text, at) };
        let (spans, table) = match (DeTable::parse(text), text.parse::<toml::Table>()) {
            (Ok(spans), Ok(table)) => (spans, table),
            (Err(error), _) | (_, Err(error)) => {
                // Only the message: the whole error shows the line, which may contain a secret.
                let origin = origin(error.span().map_or(0, |span| span.start));
                return self.report(origin, format!("this is not TOML: {}", error.message()));
            }
        };
        for (name, inner) in spans.get_ref() {
            let at = origin(name.span().start);
            let name = name.get_ref().as_ref();
            let Some(section) = section(name) else {
                self.report(at, unknown_section(name));
                continue;
            };
            let (DeValue::Table(inner), Some(values)) = (inner.get_ref(), table.get(name).and_then(Toml::as_table))
            else {
                self.report(at, format!("`{name}` is a section, written [{name}] on a line of its own"));
                continue;
            };
            for key in inner.keys() {
                if let Some(value) = values.get(key.get_ref().as_ref()) {
                    self.take(section, key.get_ref(), origin(key.span().start), |_| value.clone());
                }
            }
        }
    }

    /// Reads the overrides in the environment. An empty variable counts as unset.
    pub(crate) fn read_env(&mut self, env: &HashMap<String, String>) {
        // AZERA_DATA is the short name of data.dir. The long name is read later, so it wins.
        if let (Some(folder), Some(data)) = (env.get("AZERA_DATA").filter(|dir| !dir.is_empty()), section("data")) {
            self.take(data, "dir", Origin::Variable("AZERA_DATA".into()), |key| key.kind.read_variable(folder));
        }
        for (variable, text) in env.iter().filter(|(_, text)| !text.is_empty()) {
            let Some(path) = variable.strip_prefix(PREFIX) else { continue };
            let origin = Origin::Variable(variable.clone());
            let path = path.to_lowercase();
            let Some((section_name, key)) = path.split_once("__") else {
                self.report(origin, format!("an override is written {PREFIX}SECTION__KEY"));
                continue;
            };
            let Some(section) = section(section_name) else {
                self.report(origin, unknown_section(section_name));
                continue;
            };
            // Docker and systemd provide secrets as files.
            let secret = key.strip_suffix(SECRET_FILE).filter(|key| section.key(key).is_some_and(|key| key.secret));
            match secret {
                None => self.take(section, key, origin, |key| key.kind.read_variable(text)),
                Some(secret) => {
                    let beside = variable.get(..variable.len() - SECRET_FILE.len());
                    if beside.and_then(|name| env.get(name)).is_some_and(|value| !value.is_empty()) {
                        let message = format!("`{section_name}.{secret}` is set here and in a variable of its own");
                        self.report_value(section, origin, message);
                        continue;
                    }
                    match secret_in(Path::new(text)) {
                        Ok(value) => self.take(section, secret, origin, |_| Toml::String(value)),
                        Err(why) => {
                            let message = format!("the secret in {text} cannot be read: {why}");
                            self.report_value(section, origin, message);
                        }
                    }
                }
            }
        }
    }

    fn take(&mut self, section: &'static Section, name: &str, origin: Origin, value: impl FnOnce(&Key) -> Toml) {
        let Some(key) = section.key(name) else {
            return self.report(origin, unknown_key(section, name));
        };
        let value = value(key);
        match key.kind.check(&value) {
            Some(value) => {
                self.values.entry(&section.name).or_default().insert(&key.name, (value, origin));
            }
            None => {
                let found = if key.secret { "what it is".to_owned() } else { shown(&value) };
                let message = format!("`{}.{name}` must be {}, not {found}", section.name, key.kind);
                self.report_value(section, origin, message);
            }
        }
    }

    /// Records a problem.
    pub(crate) fn report(&mut self, origin: Origin, message: String) {
        self.problems.push(Problem { origin, message });
    }

    /// Records a problem with a value of a section.
    fn report_value(&mut self, section: &'static Section, origin: Origin, message: String) {
        match is_optional(&section.name) {
            true => self.optional.push((section.name.as_str(), Problem { origin, message })),
            false => self.report(origin, message),
        }
    }

    /// Returns the source of a key's value.
    pub(crate) fn origin(&self, section: &str, key: &str) -> Origin {
        self.values.get(section).and_then(|keys| keys.get(key)).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Returns the values without their sources.
    pub(crate) fn values(&self) -> Json {
        let keys = |keys: &BTreeMap<&str, (Json, Origin)>| -> Map<_, _> {
            keys.iter().map(|(key, (value, _))| ((*key).to_owned(), value.clone())).collect()
        };
        Json::Object(self.values.iter().map(|(name, values)| ((*name).to_owned(), keys(values).into())).collect())
    }
}

/// Reads a secret from a file, and removes the line end that editors append.
fn secret_in(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SECRET_BYTES {
        return Err(std::io::Error::other(format!("it has more than {MAX_SECRET_BYTES} bytes")));
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Returns the line of a byte offset, counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn unknown_section(name: &str) -> String {
    let names: Vec<_> = sections().iter().map(|section| section.name.as_str()).collect();
    let homes = sections_with(name);
    // A mistyped section name is likelier than a key outside its section: `model` means `models`.
    let hint = match closest_name(name, &names) {
        None if !homes.is_empty() => format!("`{name}` belongs into {homes}"),
        _ => suggestion(name, &names),
    };
    format!("there is no section `{name}`; {hint}")
}

fn unknown_key(section: &Section, name: &str) -> String {
    let names: Vec<_> = section.keys.iter().map(|key| key.name.as_str()).collect();
    let homes = sections_with(name);
    let hint = if homes.is_empty() { suggestion(name, &names) } else { format!("it belongs into {homes}") };
    format!("there is no key `{}.{name}`; {hint}", section.name)
}

/// Returns the sections that have a key with this name.
fn sections_with(key: &str) -> String {
    let homes: Vec<_> = sections().iter().filter(|section| section.key(key).is_some()).collect();
    homes.iter().map(|section| format!("[{}]", section.name)).collect::<Vec<_>>().join(" or ")
}

/// Suggests the name that was probably meant, or lists all names.
fn suggestion(name: &str, names: &[&str]) -> String {
    match closest_name(name, names) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there are {}", names.join(", ")),
    }
}

/// Returns the closest name, if at most a third of its letters differ. More differences make another word.
pub(crate) fn closest_name<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let distance = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    let (distance, nearest) = names.iter().map(|candidate| (distance(candidate), *candidate)).min()?;
    (distance * 3 <= nearest.chars().count()).then_some(nearest)
}
