use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc;

use azera_adapter::Command;
use nu_ansi_term::{Color, Style};
use reedline::{
    Completer, CompletionResult, DefaultHinter, EditCommand, Emacs, ExternalPrinter, FileBackedHistory, Hinter,
    History, HistoryItem, IdeMenu, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion, ValidationResult,
    Validator, default_emacs_keybindings,
};
use tokio::sync::oneshot;

use crate::Error;

/// Lines of earlier input that can be recalled.
const MAX_HISTORY: usize = 1000;

/// Replies that may wait to be printed above the line being typed.
const MAX_ABOVE_PROMPT: usize = 16;

const MENU: &str = "commands";

/// A command for completion.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandHint {
    /// Its name, without the slash.
    name: String,
    /// Its arguments as a hint, such as `NAME` or `[TEXT]`; empty if none.
    args: String,
    /// What it does, in a few words.
    help: String,
}

impl From<&Command> for CommandHint {
    fn from(command: &Command) -> Self {
        Self { name: command.name.to_owned(), args: command.arguments(), help: command.help.to_owned() }
    }
}

/// What the person typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// One or more lines.
    Text(String),
    /// Ctrl-C: the line was discarded.
    GivenUp,
    /// Ctrl-D, or the end of the input.
    End,
}

/// A question to the thread of the editor: the name of the person, a text to begin with, and where the answer goes.
type Question = (String, Option<String>, oneshot::Sender<Result<Typed, Error>>);

/// The line editor. It runs on a thread of its own, because it blocks on key presses.
pub(crate) struct Editor {
    ask: mpsc::Sender<Question>,
}

impl Editor {
    /// Starts the editor. Also returns a channel for text to print above the line being typed.
    pub(crate) fn start(
        commands: &[Command],
        earlier: &[String],
        colour: bool,
    ) -> Result<(Self, mpsc::SyncSender<String>), Error> {
        let mut history = FileBackedHistory::new(MAX_HISTORY).map_err(failed)?;
        for line in earlier.iter().rev().take(MAX_HISTORY).rev() {
            history.save(HistoryItem::from_command_line(line)).map_err(failed)?;
        }
        let printer = ExternalPrinter::new(MAX_ABOVE_PROMPT);
        let above = printer.sender();
        let (ask, questions) = mpsc::channel::<Question>();
        let commands = commands.iter().map(CommandHint::from).collect();
        let typing = move || {
            let mut line_editor = build(commands, history, colour).with_external_printer(printer);
            while let Ok((name, begun, answer)) = questions.recv() {
                if let Some(begun) = begun {
                    line_editor.run_edit_commands(&[EditCommand::InsertString(begun)]);
                }
                let typed = match line_editor.read_line(&Name(name)) {
                    Ok(Signal::Success(text)) => Ok(Typed::Text(joined(&text))),
                    Ok(Signal::CtrlD) => Ok(Typed::End),
                    Ok(_) => Ok(Typed::GivenUp),
                    Err(e) => Err(failed(e)),
                };
                if answer.send(typed).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("console-input".into()).spawn(typing).map_err(Error::Input)?;
        Ok((Self { ask }, above))
    }

    /// Reads the next input of the person called `name`. The line begins with `begun`, to be changed.
    pub(crate) async fn read(&mut self, name: &str, begun: Option<String>) -> Result<Typed, Error> {
        let (answer, typed) = oneshot::channel();
        let gone = || Error::Editor("the line editor has stopped".into());
        self.ask.send((name.to_owned(), begun, answer)).map_err(|_| gone())?;
        typed.await.map_err(|_| gone())?
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Editor(error.to_string())
}

fn build(commands: Vec<CommandHint>, history: FileBackedHistory, colour: bool) -> Reedline {
    let commands: Arc<[CommandHint]> = commands.into();
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext]),
    );
    for modifier in [KeyModifiers::ALT, KeyModifiers::SHIFT] {
        keys.add_binding(modifier, KeyCode::Enter, ReedlineEvent::Edit(vec![EditCommand::InsertNewline]));
    }
    let hints = Hints {
        commands: commands.clone(),
        dim: Style::new().dimmed(),
        earlier: DefaultHinter::default().with_style(Style::new().dimmed()),
        shows_args: false,
    };
    Reedline::create()
        .with_history(Box::new(history))
        .with_completer(Box::new(Commands(commands)))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(IdeMenu::default().with_name(MENU))))
        .with_hinter(Box::new(hints))
        .with_validator(Box::new(Unfinished))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_ansi_colors(colour)
        // Pasted lines become one input.
        .use_bracketed_paste(true)
}

/// Removes the backslashes with which a person continued lines. Those in code blocks belong to the code.
fn joined(text: &str) -> String {
    let mut in_code = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        in_code ^= line.starts_with(FENCE);
        match line.strip_suffix("\\\n").filter(|_| !in_code) {
            Some(line) => {
                out.push_str(line);
                out.push('\n');
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Begins and ends a code block.
const FENCE: &str = "```";

struct Unfinished;

impl Validator for Unfinished {
    /// Input continues after a backslash at the end of a line, and inside an open code block.
    fn validate(&self, text: &str) -> ValidationResult {
        let fences = text.lines().filter(|line| line.starts_with(FENCE)).count();
        if text.ends_with('\\') || fences % 2 == 1 { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

struct Commands(Arc<[CommandHint]>);

impl Completer for Commands {
    fn complete(&mut self, line: &str, cursor: usize) -> CompletionResult {
        let typed = line.get(..cursor).unwrap_or(line);
        let Some(typed) = typed.strip_prefix('/').filter(|typed| !typed.contains(char::is_whitespace)) else {
            return CompletionResult::fresh(Vec::new());
        };
        let fitting = self.0.iter().filter(|command| command.name.starts_with(typed));
        let suggestions: Vec<_> = fitting
            .map(|command| Suggestion {
                value: format!("/{}", command.name),
                description: Some(format!("{} {}", command.args, command.help).trim().to_owned()),
                span: Span::new(0, cursor),
                append_whitespace: !command.args.is_empty(),
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// Shows the arguments of a typed command name, and otherwise how an earlier line continued.
struct Hints {
    commands: Arc<[CommandHint]>,
    dim: Style,
    earlier: DefaultHinter,
    shows_args: bool,
}

/// Returns the hint after a line that is a command name only.
fn args_after<'a>(commands: &'a [CommandHint], line: &str) -> Option<Cow<'a, str>> {
    let typed = line.strip_prefix('/')?;
    let command = commands.iter().find(|command| command.name == typed.trim_end() && !command.args.is_empty())?;
    let args = command.args.as_str();
    Some(if typed.ends_with(' ') { args.into() } else { format!(" {args}").into() })
}

impl Hinter for Hints {
    fn handle(&mut self, line: &str, pos: usize, history: &dyn History, colour: bool, cwd: &str) -> String {
        let args = args_after(&self.commands, line);
        self.shows_args = args.is_some();
        match args {
            Some(args) if colour => self.dim.paint(args).to_string(),
            Some(args) => args.into_owned(),
            None => self.earlier.handle(line, pos, history, colour, cwd),
        }
    }

    fn complete_hint(&self) -> String {
        if self.shows_args { String::new() } else { self.earlier.complete_hint() }
    }

    fn next_hint_token(&self) -> String {
        if self.shows_args { String::new() } else { self.earlier.next_hint_token() }
    }
}

/// The prompt: the name of the person who types.
struct Name(String);

impl Prompt for Name {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        (&self.0).into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        " › ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "… ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "not found: ",
        };
        format!(" ({found}{}) › ", search.term).into()
    }

    fn get_prompt_color(&self) -> Color {
        Color::Green
    }

    fn get_indicator_color(&self) -> Color {
        Color::Green
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Arc<[CommandHint]> {
        let hint =
            |name: &str, args: &str| CommandHint { name: name.into(), args: args.into(), help: "does it".into() };
        [hint("persona", "use NAME"), hint("new", ""), hint("persist", "")].into()
    }

    #[test]
    fn commands_complete_in_the_first_word_only() {
        #[track_caller]
        fn check(line: &str, want: &[&str]) {
            let found = Commands(commands()).complete(line, line.len());
            assert_eq!(found.suggestions().iter().map(|s| s.value.as_str()).collect::<Vec<_>>(), want);
        }
        check("/pers", &["/persona", "/persist"]);
        check("/", &["/persona", "/new", "/persist"]);
        check("/x", &[]);
        check("/persona u", &[]);
        check("say /pers", &[]);
    }

    #[test]
    fn a_typed_command_shows_its_arguments() {
        #[track_caller]
        fn check(line: &str, want: Option<&str>) {
            assert_eq!(args_after(&commands(), line).as_deref(), want);
        }
        check("/persona", Some(" use NAME"));
        check("/persona ", Some("use NAME"));
        check("/persona use", None);
        check("/new", None);
        check("persona", None);
    }

    #[test]
    fn unfinished_input_continues() {
        #[track_caller]
        fn check(text: &str, complete: bool) {
            assert_eq!(matches!(Unfinished.validate(text), ValidationResult::Complete), complete, "{text:?}");
        }
        check("hi", true);
        check("hi \\", false);
        check("hi \\\nthere", true);
        check("```\nlet x", false);
        check("```\nlet x\n```", true);
        assert_eq!(joined("one\\\ntwo\nthree"), "one\ntwo\nthree");
        assert_eq!(joined("```\nls \\\n  -l\n```\nwhat\\\nfor?"), "```\nls \\\n  -l\n```\nwhat\nfor?");
    }
}
