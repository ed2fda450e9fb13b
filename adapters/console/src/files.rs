//! Paths in the place of a command's file: `/journal import diary.md`, `/imagine a knight --picture me.jpg`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use azera_adapter::{
    Command, FileContent, GivenPicture, MAX_GIVEN_BYTES, MAX_GIVEN_PICTURE_BYTES, MAX_GIVEN_SOUND_BYTES, OptionKind,
    given, given_sound,
};
use azera_types::{InboundPart, Part};

/// Extensions of the files that commands accept.
const EXTENSIONS: [&str; 6] = ["md", "markdown", "txt", "json", "jsonl", "png"];

/// Beginnings of a path.
const BEGINNINGS: [&str; 4] = ["/", "./", "../", "~/"];

/// Replaces a path where a command accepts a file by the contents of the file. The error says why the file cannot be
/// used. Other lines stay as they are.
pub(crate) fn with_file(line: &str, commands: &[Command]) -> Result<String, String> {
    let Some((before, argument)) = file_argument(line.trim(), commands) else { return Ok(line.to_owned()) };
    let name = unquoted(argument);
    let path = path_of(name);
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

/// The option that names the path of a picture.
const PICTURE: &str = "--picture";

/// Takes the path of a picture out of a command that takes one, and reads the picture. The path ends at the next option.
/// The error says why the picture cannot be used.
pub(crate) fn with_picture(line: &str, commands: &[Command]) -> Result<(String, Option<GivenPicture>), String> {
    let none = || Ok((line.to_owned(), None));
    let Some((name, arguments)) = line.trim().trim_start_matches('/').split_once(char::is_whitespace) else {
        return none();
    };
    let command = commands.iter().find(|command| command.name.eq_ignore_ascii_case(name));
    if !command.is_some_and(|command| command.takes_picture(arguments)) {
        return none();
    }
    let Some((before, behind)) = line.split_once(&format!(" {PICTURE} ")) else { return none() };
    let (named, rest) =
        behind.split_once(" --").map_or((behind, String::new()), |(named, rest)| (named, format!(" --{rest}")));
    let name = unquoted(named.trim());
    let failed = |why: &str| format!("The picture `{name}` cannot be used: {why}.");
    let path = path_of(name);
    let bytes = read(&path, MAX_GIVEN_PICTURE_BYTES).map_err(|why| failed(&why))?;
    if bytes.len() > MAX_GIVEN_PICTURE_BYTES {
        return Err(failed("it is larger than 16 MB"));
    }
    Ok((format!("{before}{rest}"), Some(GivenPicture { description: None, content: FileContent(bytes) })))
}

/// Extensions of pictures and their media types.
const PICTURES: [(&str, &str); 5] =
    [("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("webp", "image/webp"), ("gif", "image/gif")];

/// Takes the path of a picture off the end of what somebody says, and reads the picture. What neither exists nor ends like
/// a picture is talk about the option. The error says why the picture cannot be used.
pub(crate) fn with_shown_picture(text: &str) -> Result<(&str, Option<InboundPart>), String> {
    let behind = text.trim_end().rsplit_once(PICTURE);
    // The option stands alone, and a path on one line follows.
    let Some((before, named)) = behind.filter(|(before, named)| {
        (before.is_empty() || before.ends_with(char::is_whitespace))
            && named.starts_with(char::is_whitespace)
            && !named.contains('\n')
    }) else {
        return Ok((text, None));
    };
    let name = unquoted(named.trim());
    let failed = |why: &str| format!("The picture `{name}` cannot be used: {why}.");
    let path = path_of(name);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mime = PICTURES.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known)).map(|(_, mime)| *mime);
    if mime.is_none() && !path.exists() {
        return Ok((text, None));
    }
    let bytes = read(&path, MAX_GIVEN_PICTURE_BYTES).map_err(|why| failed(&why))?;
    if bytes.len() > MAX_GIVEN_PICTURE_BYTES {
        return Err(failed("it is larger than 16 MB"));
    }
    let mime = mime.ok_or_else(|| failed("it is no PNG, JPEG, WebP or GIF"))?;
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let part = Part::new(file, Some(mime), bytes.len() as u64);
    Ok((before.trim_end(), Some(InboundPart { part, source: Arc::new(bytes) })))
}

/// Replaces the path of a recording, at the end of a command that takes one, by the recording. The error says why it cannot
/// be used.
pub(crate) fn with_recording(line: &str, commands: &[Command]) -> Result<String, String> {
    let none = || Ok(line.to_owned());
    let Some((name, arguments)) = line.trim().trim_start_matches('/').split_once(char::is_whitespace) else {
        return none();
    };
    let command = commands.iter().find(|command| command.name.eq_ignore_ascii_case(name));
    let Some(words) = command.and_then(|command| command.words_before_sound(arguments)) else { return none() };
    let Some((before, named)) = after_words(line.trim(), words + 1) else { return none() };
    let name = unquoted(named);
    let failed = |why: &str| format!("The recording `{name}` cannot be used: {why}.");
    let bytes = read(&path_of(name), MAX_GIVEN_SOUND_BYTES).map_err(|why| failed(&why))?;
    Ok(format!("{before} {}", given_sound(bytes).map_err(failed)?))
}

/// Splits a line behind this number of words; `None` if nothing follows.
fn after_words(line: &str, words: usize) -> Option<(&str, &str)> {
    let mut rest = line;
    for _ in 0..words {
        rest = rest.trim_start().split_once(char::is_whitespace)?.1;
    }
    let rest = rest.trim();
    let before = line.get(..line.len() - rest.len())?.trim_end();
    (!rest.is_empty()).then_some((before, rest))
}

/// Reads a file of at most this size, and one byte of a larger one.
fn read(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    // A pipe or a device may never end; opening a pipe may wait for ever.
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn path_of(name: &str) -> PathBuf {
    match name.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(name),
    }
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
    fn the_path_of_a_recording_is_replaced_by_the_recording() {
        let option = |name, kind, required| CommandOption { name, help: "", kind, required };
        let options: &'static [CommandOption] = Box::leak(Box::new([
            option("name", OptionKind::Word, true),
            option("recording", OptionKind::Sound, false),
        ]));
        let forms: &'static [Form] =
            Box::leak(Box::new([Form { name: "add", word: "samples add", help: "", access: Access::Member, options }]));
        let commands = [Command { name: "voice", help: "", access: Access::Member, terminal: false, forms }];
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("my voice.ogg");
        std::fs::write(&path, b"OggS").unwrap();
        let read = |line: &str| with_recording(line, &commands);
        let sound = "/voice samples add ann data:audio/ogg;base64,T2dnUw==";
        assert_eq!(read(&format!("/voice samples add ann {}", path.display())).unwrap(), sound);
        assert_eq!(read(&format!("/voice samples add ann \"{}\"", path.display())).unwrap(), sound);
        for line in ["/voice samples add ann", "/voice samples list", "/voice", "hello"] {
            assert_eq!(read(line).unwrap(), line);
        }
        assert!(read("/voice samples add ann nothing.ogg").unwrap_err().contains("`nothing.ogg` cannot be used"));
    }

    #[test]
    fn the_path_of_a_picture_is_taken_out_of_the_line() {
        const PICTURE: CommandOption =
            CommandOption { name: "picture", help: "", kind: OptionKind::Picture, required: false };
        const IMAGINE: &[Command] = &[Command {
            name: "imagine",
            help: "",
            access: Access::Member,
            terminal: false,
            forms: &[Form { name: "", word: "", help: "", access: Access::Member, options: &[PICTURE] }],
        }];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my cat.png");
        std::fs::write(&path, [1, 2]).unwrap();
        let path = path.display();
        for line in [
            format!("/imagine a knight --picture \"{path}\" --strength 0.5"),
            format!("/imagine a knight --picture {path} --strength 0.5"),
        ] {
            let (line, picture) = with_picture(&line, IMAGINE).unwrap();
            assert_eq!((line.as_str(), picture.unwrap().content.0), ("/imagine a knight --strength 0.5", vec![1, 2]));
        }
        assert!(with_picture("/imagine x --picture gone.png", IMAGINE).unwrap_err().contains("`gone.png`"));
        for (named, why) in [("/dev/zero", "not a file"), ("/", "not a file")] {
            let error = with_picture(&format!("/imagine x --picture {named}"), IMAGINE).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let large = folder.path().join("large.png");
        File::create(&large).unwrap().set_len(MAX_GIVEN_PICTURE_BYTES as u64 + 1).unwrap();
        let error = with_picture(&format!("/imagine x --picture {}", large.display()), IMAGINE).unwrap_err();
        assert!(error.contains("larger than 16 MB"), "{error}");
        for line in ["/imagine a knight", "/other x --picture gone.png"] {
            assert_eq!(with_picture(line, IMAGINE).unwrap(), (line.to_owned(), None));
        }
    }

    #[test]
    fn the_path_of_a_picture_is_taken_off_what_somebody_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my cat.PNG");
        std::fs::write(&path, [1, 2]).unwrap();
        for (said, text) in [
            (format!("what is this? --picture {}", path.display()), "what is this?"),
            (format!("what\nis this? --picture \"{}\"\n", path.display()), "what\nis this?"),
            (format!("--picture {}", path.display()), ""),
        ] {
            let (left, shown) = with_shown_picture(&said).unwrap();
            let part = shown.unwrap().part;
            assert_eq!(
                (left, part.name.as_str(), part.mime.as_str(), part.bytes),
                (text, "my cat.PNG", "image/png", 2)
            );
        }
        let talk = ["what does the flag --picture do?", "I need --picture here", "what does --picture gone.txt do?"];
        let other = ["hello", "the option --picture", "--pictures of cats", "no--picture x", "--picture a\nb"];
        for said in talk.into_iter().chain(other) {
            assert_eq!(with_shown_picture(said).unwrap(), (said, None));
        }
        assert!(with_shown_picture("look --picture gone.png").unwrap_err().contains("`gone.png` cannot be used"));
        assert!(with_shown_picture("look --picture /dev/zero").unwrap_err().contains("not a file"));
        let notes = folder.path().join("notes.txt");
        std::fs::write(&notes, "secret").unwrap();
        let error = with_shown_picture(&format!("look --picture {}", notes.display())).unwrap_err();
        assert!(error.contains("no PNG"), "{error}");
    }

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
