//! Checks the commands in the documentation: each must be one that the program accepts.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the README and the guides with their names.
fn pages() -> Vec<(String, String)> {
    let guides = std::fs::read_dir(root().join("bot/docs")).unwrap().map(|entry| entry.unwrap().path());
    let guides = guides.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)).into_iter().chain(guides).collect();
    files.sort();
    files.into_iter().map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

/// Returns the `sh` blocks of a page without their indentation.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "```sh" {
            let block = lines.by_ref().map(str::trim_start).take_while(|line| *line != "```");
            blocks.push(block.map(|line| format!("{line}\n")).collect());
        }
    }
    blocks
}

/// Returns the simple commands of a shell script as words. Here-documents and redirections are left out.
fn commands(script: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let script = script.replace("\\\n", " ");
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        for words in simple(line) {
            let heredoc = words.iter().find_map(|word| word.strip_prefix("<<")).map(str::to_owned);
            found.push(without_redirections(words));
            if let Some(end) = heredoc {
                lines.by_ref().take_while(|line| *line != end).for_each(drop);
            }
        }
    }
    found
}

/// Splits a line at pipes and separators, and each part into words.
fn simple(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let quoted: String = chars.by_ref().take_while(|next| *next != c).collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            ' ' | '\t' => words.extend(word.take()),
            '#' if word.is_none() => break,
            '|' | '&' | ';' => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    all.push(words);
    all.retain(|words| !words.is_empty());
    all
}

fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.trim_start_matches(|c: char| c.is_ascii_digit()) {
            "<" | ">" | ">>" => drop(words.next()),
            redirected if redirected.starts_with(['<', '>']) => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Returns the words of an `azera` command, after variables that are set for it.
fn of_azera(words: &[String]) -> Option<&[String]> {
    let is_variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
    };
    let start = words.iter().position(|word| !is_variable(word))?;
    words.get(start..).filter(|words| words[0] == "azera")
}

#[track_caller]
fn check(place: &str, words: &[String]) {
    if let Err(error) = Cli::try_parse_from(words) {
        let shows = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        assert!(shows, "{place}: `{}`: {error}", words.join(" "));
    }
}

#[test]
fn commands_in_sh_blocks_are_accepted() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let (mut checked, mut made) = (0, 0);
    for (name, page) in pages() {
        for words in blocks(&page).iter().flat_map(|block| commands(block)) {
            if let Some(words) = of_azera(&words) {
                check(&name, words);
                checked += 1;
            } else if words[0] == "make" {
                let targets = words[1..].iter().filter(|word| !word.contains('='));
                for target in targets {
                    assert!(
                        makefile.lines().any(|line| line.starts_with(&format!("{target}:"))),
                        "{name}: make {target}"
                    );
                    made += 1;
                }
            }
        }
    }
    assert!(checked >= 10 && made >= 3, "the guides hold commands: {checked}, {made}");
}

/// Commands within sentences and tables may be shortened, and hold placeholders. Their names and options must exist.
#[test]
fn commands_in_sentences_have_names_and_options_that_exist() {
    let mut checked = 0;
    for (name, page) in pages() {
        for code in page.split('`').skip(1).step_by(2).filter(|code| code.starts_with("azera ") && !code.contains('\n'))
        {
            for words in commands(code) {
                let Some(words) = of_azera(&words).filter(|words| words.len() > 1) else { continue };
                if words.iter().any(|word| word == "COMMAND" || word == "...") {
                    continue;
                }
                checked += 1;
                if let Err(error) = Cli::try_parse_from(words) {
                    let exists = !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
                    assert!(exists, "{name}: `{code}`: {error}");
                }
            }
        }
    }
    assert!(checked >= 30, "the guides name commands: {checked}");
}

/// Collects the examples below the help of a command and its subcommands.
fn examples(command: &clap::Command, found: &mut Vec<String>) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("  ") && line.contains("azera "));
    // A description follows after two spaces.
    found.extend(lines.map(|line| line.trim().split("  ").next().unwrap_or_default().to_owned()));
    command.get_subcommands().for_each(|command| examples(command, found));
}

#[test]
fn examples_in_the_help_are_accepted() {
    let mut found = Vec::new();
    examples(&Cli::command(), &mut found);
    assert!(found.len() >= 15, "{found:?}");
    for example in found {
        for words in commands(&example) {
            if let Some(words) = of_azera(&words) {
                check("help", words);
            }
        }
    }
}

#[test]
fn help_fits_a_small_terminal() {
    fn check(mut command: clap::Command) {
        let help = command.render_long_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= super::HELP_COLUMNS, "{}: {line}", command.get_name());
        }
        for subcommand in command.get_subcommands() {
            check(subcommand.clone().term_width(super::HELP_COLUMNS));
        }
    }
    check(Cli::command().term_width(super::HELP_COLUMNS));
}

#[test]
fn scripts_are_split_into_commands() {
    let script =
        "cat > a <<'END'\nazera nonsense\nEND\nA=1 azera chat --as 'Ann Lee' \\\n  < in 2>err | sort # azera x\n";
    let words: Vec<Vec<String>> = commands(script);
    assert_eq!(words, [vec!["cat"], vec!["A=1", "azera", "chat", "--as", "Ann Lee"], vec!["sort"]]);
    assert_eq!(of_azera(&words[1]).unwrap(), ["azera", "chat", "--as", "Ann Lee"]);
    // A renamed option is found.
    let unknown = ["azera", "chat", "--speak-as", "Ann"].map(str::to_owned);
    assert!(Cli::try_parse_from(&unknown).is_err());
}
