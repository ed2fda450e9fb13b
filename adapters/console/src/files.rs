//! Paths in the place of a command's file: `/journal import diary.md`.

use std::path::PathBuf;

use azera_adapter::{Command, MAX_GIVEN_BYTES, OptionKind, given};

/// Extensions of the files that commands accept.
const EXTENSIONS: [&str; 6] = ["md", "markdown", "txt", "json", "jsonl", "png"];

/// Beginnings of a path.
const BEGINNINGS: [&str; 4] = ["/", "./", "../", "~/"];

/// Replaces a path where a command accepts a file by the contents of the file. The error says why the file cannot be
/// used. Other lines stay as they are.
pub(crate) fn with_file(line: &str, commands: &[Command]) -> Result<String, String> {
    let Some((before, argument)) = file_argument(line.trim(), commands) else { return Ok(line.to_owned()) };
    let name = unquoted(argument);
    let path = match name.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(name),
    };
    if !path.is_file() {
        let is_path = BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || (!name.contains(char::is_whitespace)
                && path
                    .extension()
                    .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))));
        return if is_path { Err(format!("There is no file `{name}`.")) } else { Ok(line.to_owned()) };
    }
    let failed = |why: &str| format!("The file `{name}` cannot be used: {why}.");
    let length = std::fs::metadata(&path).map_err(|error| failed(&error.to_string()))?.len();
    if length > MAX_GIVEN_BYTES as u64 {
        return Err(failed("it is larger than 8 MB"));
    }
    let bytes = std::fs::read(&path).map_err(|error| failed(&error.to_string()))?;
    let text = given(bytes).map_err(failed)?;
    if text.trim().is_empty() {
        return Err(failed("it is empty"));
    }
    Ok(format!("{before}{text}"))
}

/// Splits a line before the argument in the place of a file, if the command takes one and the argument is one line.
fn file_argument<'a>(line: &'a str, commands: &[Command]) -> Option<(&'a str, &'a str)> {
    let (name, rest) = line.strip_prefix('/')?.split_once(char::is_whitespace)?;
    let command = commands.iter().find(|command| command.name.eq_ignore_ascii_case(name))?;
    let (word, argument) = rest.trim_start().split_once(char::is_whitespace)?;
    let takes_file = |form: &&azera_adapter::Form| form.options.iter().any(|option| option.kind == OptionKind::File);
    command.forms.iter().filter(takes_file).find(|form| form.word == word)?;
    let argument = argument.trim();
    let before = line.get(..line.len() - argument.len())?;
    (!argument.is_empty() && !argument.contains('\n')).then_some((before, argument))
}

/// Removes quotes around a path, as shells and file managers write them.
fn unquoted(text: &str) -> &str {
    ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use azera_adapter::{Access, CommandOption, Form};

    use super::*;

    const FILE: CommandOption = CommandOption { name: "file", help: "", kind: OptionKind::File, required: false };
    const COMMANDS: &[Command] = &[Command {
        name: "journal",
        help: "",
        access: Access::Member,
        terminal: false,
        forms: &[
            Form { name: "import", word: "import", help: "", access: Access::Member, options: &[FILE] },
            Form { name: "search", word: "search", help: "", access: Access::Member, options: &[] },
        ],
    }];

    #[test]
    fn a_path_is_replaced_by_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my diary.md");
        std::fs::write(&path, "# 2026-02-03\nSnow.\n").unwrap();
        let path = path.display();
        let read = |line: &str| with_file(line, COMMANDS);
        for line in [
            format!("/journal import {path}"),
            format!("/journal import \"{path}\""),
            format!("/journal  import   '{path}'"),
        ] {
            assert!(read(&line).unwrap().ends_with(" # 2026-02-03\nSnow.\n"), "{line}");
        }
        for line in [
            "/journal import Snow fell.",
            "/journal import # 2026-02-03\nSnow.",
            "/journal search diary.md",
            "/journal import",
            "/other import a.md",
        ] {
            assert_eq!(read(line).unwrap(), line);
        }
        for (line, why) in [
            ("/journal import gone.md".to_owned(), "There is no file `gone.md`."),
            ("/journal import /tmp/no such file".to_owned(), "There is no file `/tmp/no such file`."),
            (format!("/journal import {}", folder.path().display()), "There is no file"),
        ] {
            assert!(read(&line).unwrap_err().starts_with(why), "{line}");
        }
        let blank = folder.path().join("blank.md");
        std::fs::write(&blank, " \n").unwrap();
        assert!(read(&format!("/journal import {}", blank.display())).unwrap_err().contains("it is empty"));
        let binary = folder.path().join("photo.txt");
        std::fs::write(&binary, [0xff, 0xd8, 0]).unwrap();
        assert!(read(&format!("/journal import {}", binary.display())).unwrap_err().contains("neither text"));
    }
}
