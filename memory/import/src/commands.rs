//! Brings commands of a shell into one form, so that the same command in another session is found again, and so that no
//! secret is kept: values of variables, quoted texts, addresses and words that may be secrets are left out. A sign (`…`)
//! stands for what was left out.

use crate::secrets::{is_secretive, may_be_secret, names_secret, names_user};
use crate::shell::{Joint, Simple, Word, commands};

/// Longest form of a command, in bytes.
pub const MAX_COMMAND_BYTES: usize = 160;

/// Most commands of one call.
const MAX_COMMANDS: usize = 6;

/// Most words of one command.
const MAX_WORDS: usize = 10;

/// Longest word that is kept, in bytes.
const MAX_WORD_BYTES: usize = 60;

/// Longest name of an option, in bytes.
const MAX_OPTION_BYTES: usize = 30;

/// Longest number of a version behind the name of a program, in bytes.
const MAX_VERSION_BYTES: usize = 4;

/// Stands for what was left out.
const LEFT_OUT: &str = "…";

/// Programs that only look, wait or prepare. A procedure does not consist of them.
const LOOKS: &[&str] = &[
    ".", ":", "[", "[[", "alias", "awk", "basename", "cat", "cd", "clear", "column", "cut", "date", "df", "diff",
    "dirname", "du", "echo", "egrep", "exit", "export", "false", "fd", "file", "find", "free", "grep", "head",
    "history", "id", "jq", "kill", "less", "ls", "lsof", "man", "mkdir", "more", "nl", "nproc", "popd", "printenv",
    "printf", "ps", "pushd", "pwd", "read", "rg", "set", "sleep", "sort", "source", "stat", "tail", "tee", "test",
    "tr", "tree", "true", "uname", "uniq", "unset", "wait", "wc", "whereis", "which", "whoami", "xargs", "xxd", "yes",
];

/// Words of a script. What such a line does cannot be told from its commands.
const SCRIPT: &[&str] = &[
    "((", "case", "coproc", "do", "done", "elif", "else", "fi", "for", "function", "if", "select", "until", "while",
    "{",
];

/// Programs that run another one, with the number of words that belong to them.
const WRAPPERS: &[(&str, usize)] = &[
    ("command", 0),
    ("env", 0),
    ("exec", 0),
    ("ionice", 0),
    ("nice", 0),
    ("nohup", 0),
    ("sudo", 0),
    ("time", 0),
    ("timeout", 1),
];

/// Options of wrappers that take a value.
const WRAPPER_VALUES: &[&str] = &["-n", "-u", "-k", "-s", "-c", "-g"];

/// Letters of options whose value often is a secret, a name of a user or an address.
const SECRETIVE_LETTERS: &str = "pPawu";

/// Programs in which these letters mean something else: a package, a folder, a project.
const PLAIN_PROGRAMS: &[&str] = &["cargo", "cp", "make", "npm", "tsc"];

/// Options of git that take a value and stand before its command.
const GIT_VALUES: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/// A call of a shell in its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Normal {
    /// The commands.
    pub(crate) text: String,
    /// True if the shell's answer is that of these commands; false if a later command hides it.
    pub(crate) is_exact: bool,
}

/// Returns a command line in its form; `None` if it only looks, or cannot be understood. `folder` is the folder that the
/// session works in.
pub(crate) fn normal(line: &str, folder: Option<&str>) -> Option<Normal> {
    let found = commands(line)?;
    let mut text = String::new();
    let (mut count, mut is_exact, mut last) = (0, true, String::new());
    for pipeline in pipelines(&found) {
        let Some(first) = pipeline.first() else { continue };
        let mut shown = None;
        let mut is_last_part = true;
        for simple in pipeline {
            match (&shown, part(simple, folder)?) {
                (None, Some(part)) => (shown, is_last_part) = (Some(part), true),
                _ => is_last_part = shown.is_none(),
            }
        }
        let Some(shown) = shown else {
            // What only looks changes the answer where it runs in any case.
            is_exact &= count == 0 || first.joint == Joint::And;
            continue;
        };
        // The shell does not wait for what runs in the background.
        is_exact &= !pipeline.iter().any(|simple| simple.is_background);
        is_exact &= is_last_part && (count == 0 || first.joint == Joint::And);
        if shown == last {
            continue;
        }
        count += 1;
        if count > MAX_COMMANDS {
            return None;
        }
        if count > 1 {
            text.push_str(match first.joint {
                Joint::And | Joint::Pipe => " && ",
                Joint::Or => " || ",
                Joint::Next => "; ",
            });
        }
        text.push_str(&shown);
        last = shown;
    }
    (count > 0).then(|| Normal { text: cut(text), is_exact })
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_COMMAND_BYTES {
        text.truncate(text.floor_char_boundary(MAX_COMMAND_BYTES - LEFT_OUT.len()));
        text.push_str(LEFT_OUT);
    }
    text
}

/// Returns the commands that are joined by `|`.
fn pipelines(found: &[Simple]) -> impl Iterator<Item = &[Simple]> {
    found.chunk_by(|_, next| next.joint == Joint::Pipe)
}

/// Returns a command in its form. The outer `None` means that the whole line is a script, the inner one that the command
/// only looks.
fn part(simple: &Simple, folder: Option<&str>) -> Option<Option<String>> {
    let words = unwrapped(&simple.words);
    let Some((program, arguments)) = words.split_first() else { return Some(None) };
    let name = program.text.as_str();
    if SCRIPT.contains(&name) {
        return None;
    }
    let name = name.rsplit_once('/').filter(|_| name.starts_with('/')).map_or(name, |(_, name)| name);
    if LOOKS.contains(&name) {
        return Some(None);
    }
    // A stream editor only looks unless it edits in place.
    if name == "sed" && !arguments.iter().any(|word| word.text.starts_with("-i")) {
        return Some(None);
    }
    if program.is_expanded || !is_plain(without_version(name)) {
        return Some(None);
    }
    let mut form = Form { text: name.to_owned(), words: 1 };
    if is_secretive(base_name(name)) {
        if !arguments.is_empty() {
            form.leave_out();
        }
    } else if name == "git" {
        form.git(arguments);
    } else {
        form.arguments(name, arguments, folder);
    }
    Some(Some(form.text))
}

/// Returns the name of a program without its folder and its version.
fn base_name(word: &str) -> &str {
    let name = word.rsplit_once(['/', '\\']).map_or(word, |(_, name)| name);
    without_version(name.strip_suffix(".exe").unwrap_or(name))
}

/// Returns the name of a program without the number of its version: `python3` is no password.
fn without_version(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if name.len() - bare.len() <= MAX_VERSION_BYTES { bare } else { name }
}

/// Returns the words without variables before them, and without programs that only run another one.
fn unwrapped(mut words: &[Word]) -> &[Word] {
    loop {
        let Some((first, rest)) = words.split_first() else { return words };
        if is_assignment(&first.text) {
            words = rest;
            continue;
        }
        let Some((_, own)) = WRAPPERS.iter().find(|(name, _)| *name == first.text) else { return words };
        words = rest;
        while let Some((option, rest)) = words.split_first().filter(|(word, _)| word.text.starts_with('-')) {
            words =
                if WRAPPER_VALUES.contains(&option.text.as_str()) { rest.get(1..).unwrap_or_default() } else { rest };
        }
        words = words.get(*own..).unwrap_or_default();
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name.trim_end_matches('+'));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Returns true if a word holds no more than the signs of names, paths and numbers, and is no secret.
fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= MAX_WORD_BYTES
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "._/+:,-*".contains(c))
        && !word.contains("://")
        && !may_be_secret(word)
}

/// What the word behind an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    #[default]
    Any,
    /// The value of an option that names a secret.
    Secret,
    /// The value of a letter that often stands before a secret.
    Letter,
    /// A user, maybe with a password behind `:`.
    User,
    /// The value of such a letter in a program where it means something else.
    Plain,
}

impl Next {
    fn hides(self, word: &str) -> bool {
        match self {
            Self::Any | Self::Plain => false,
            Self::Secret | Self::Letter => true,
            Self::User => word.contains(':'),
        }
    }
}

/// A command that gets its words.
struct Form {
    text: String,
    words: usize,
}

impl Form {
    fn word(&mut self, word: &str) {
        if self.words >= MAX_WORDS {
            return self.leave_out();
        }
        self.words += 1;
        self.text.push(' ');
        self.text.push_str(word);
    }

    fn leave_out(&mut self) {
        if !self.text.ends_with(LEFT_OUT) {
            self.text.push(' ');
            self.text.push_str(LEFT_OUT);
        }
    }

    /// Adds what git is told to do. Names of branches and files differ each time.
    fn git(&mut self, arguments: &[Word]) {
        let (mut is_named, mut is_value) = (false, false);
        for word in arguments.iter().filter(|word| !word.is_expanded) {
            let is_option = word.text.starts_with('-');
            if std::mem::take(&mut is_value) {
                continue;
            } else if is_option && is_named {
                self.option(&word.text);
            } else if is_option {
                is_value = GIT_VALUES.contains(&word.text.as_str());
            } else if !is_named && word.text.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
                is_named = true;
                self.word(&word.text);
            }
        }
    }

    fn arguments(&mut self, program: &str, arguments: &[Word], folder: Option<&str>) {
        let mut is_plain_program = PLAIN_PROGRAMS.contains(&program);
        let (mut next, mut is_named) = (Next::Any, false);
        for word in arguments {
            let text = word.text.as_str();
            let before = std::mem::take(&mut next);
            if text.starts_with('-') && text.len() > 1 {
                // What stands behind goes to a program that this one runs.
                is_plain_program &= text != "--";
                next = self.option(text);
                if next == Next::Letter && is_plain_program {
                    next = Next::Plain;
                }
            } else if is_named || word.is_expanded || before.hides(text) {
                self.leave_out();
            } else if is_secretive(base_name(text)) {
                self.value(text, folder);
                return self.leave_out();
            } else {
                self.value(text, folder);
                // Behind `password` or `secret set` stand secrets. A file may be named so.
                is_named = before != Next::Plain && names_secret(text) && !text.contains(['/', '.']);
            }
        }
    }

    /// Adds an option without its value. Returns what the next word is.
    fn option(&mut self, option: &str) -> Next {
        if option == "--" {
            self.word(option);
            return Next::Any;
        }
        let (name, has_value) = match option.split_once('=') {
            Some((name, _)) => (name, true),
            None => (option, false),
        };
        let bare = name.trim_start_matches('-');
        let is_name = name.len() <= MAX_OPTION_BYTES
            && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            && !may_be_secret(bare);
        // A value may stand directly behind a letter.
        let is_whole = name.starts_with("--") || name.len() <= 2;
        if is_name && is_whole {
            self.word(&if has_value { format!("{name}={LEFT_OUT}") } else { name.to_owned() });
        } else {
            // The letter alone may be known. A quoted word may hold any sign there, the end of a line too.
            let letter = name.chars().nth(1).filter(|c| c.is_ascii_alphanumeric() || *c == '-');
            self.word(&format!("-{}{LEFT_OUT}", letter.map(String::from).unwrap_or_default()));
        }
        if has_value {
            Next::Any
        } else if names_secret(bare) {
            Next::Secret
        } else if !name.starts_with("--") && bare.ends_with(|c| SECRETIVE_LETTERS.contains(c)) {
            Next::Letter
        } else if names_user(bare) {
            Next::User
        } else {
            Next::Any
        }
    }

    fn value(&mut self, word: &str, folder: Option<&str>) {
        if let Some((name, _)) = word.split_once('=') {
            return if is_assignment(word) && !may_be_secret(name) {
                self.word(&format!("{name}={LEFT_OUT}"));
            } else {
                self.leave_out();
            };
        }
        // Paths are those within the folder. Others differ by machine.
        let within = folder.and_then(|folder| word.strip_prefix(folder.trim_end_matches('/'))?.strip_prefix('/'));
        let word = within.unwrap_or(word);
        let holds_secret = word.contains(':') && names_secret(word);
        if is_plain(word) && !holds_secret && !word.starts_with('/') && !word.starts_with('~') {
            self.word(word);
        } else {
            self.leave_out();
        }
    }
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
