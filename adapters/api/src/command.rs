use crate::Access;

/// A command as it is declared, once, for every platform: help, menus, permissions and behaviour come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// Who may use it at all; single forms may ask for more.
    pub access: Access,
    /// It makes sense in a terminal alone.
    pub terminal: bool,
    /// The ways to give it; one at least.
    pub forms: &'static [Form],
}

/// One way to give a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// What menus call it; empty if it is the only one.
    pub name: &'static str,
    /// The word it begins with where it is written; empty if its options follow at once.
    pub word: &'static str,
    /// What it does, in one line; the command's own if empty.
    pub help: &'static str,
    /// Who may use it.
    pub access: Access,
    /// What follows, in order.
    pub options: &'static [CommandOption],
}

/// Something that is said with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandOption {
    /// Its name, in small letters.
    pub name: &'static str,
    /// What it is, in one line.
    pub help: &'static str,
    /// What it may be.
    pub kind: OptionKind,
    /// The command needs it. Those that it does not need come last.
    pub required: bool,
}

/// What an option may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Words; behind them there is nothing else.
    Text,
    /// One word.
    Word,
    /// A number from 0 on.
    Count,
    /// That very word, or nothing.
    Flag,
    /// The name of a persona that may answer there.
    Persona,
    /// The name of a model.
    Model,
    /// The name of a branch of the chat.
    Branch,
    /// The id of a memory of something the person said, as in `m42`.
    Memory,
    /// How pictures look: the name of a [`crate::Theme`].
    Theme,
    /// A text of many lines, which a platform with forms asks for in one: what stands there now is what the command answers
    /// without it. Behind it there is nothing else.
    Page,
    /// What a file holds: its text, or the bytes of a PNG picture as a `data:image/png;base64,` address. Behind it there is
    /// nothing else.
    File,
}

/// Something that can be done about a message, where the platform lets people point at one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageAction {
    /// What menus call it.
    pub name: &'static str,
    /// The line that does it, given with the message it is about.
    pub line: &'static str,
    /// What is asked first, and put behind the line.
    pub asks: Option<CommandOption>,
}

impl OptionKind {
    /// Whether there is a list of what it may be, which [`crate::Host::autocomplete`] tells.
    pub fn has_autocomplete(self) -> bool {
        matches!(self, Self::Persona | Self::Model | Self::Branch | Self::Memory | Self::Theme)
    }
}

impl Command {
    /// What may follow the command, for help: words as they are written, in capitals what the person puts in their place.
    pub fn arguments(&self) -> String {
        let forms: Vec<String> = self.forms.iter().map(Form::usage).collect();
        let flags: Vec<&str> =
            self.forms.iter().flat_map(|form| form.options).filter_map(CommandOption::flag).collect();
        let mut written: Vec<&str> = Vec::new();
        for form in forms.iter().map(String::as_str).filter(|form| !form.is_empty()) {
            if !written.contains(&form) {
                written.push(form);
            }
        }
        let mut text = written.join(" | ");
        if forms.len() > 1 && !text.is_empty() {
            text = format!("[{text}]");
        }
        if let Some(flag) = flags.first() {
            text = format!("{text} [{flag}]");
        }
        text
    }

    /// The line that gives a command in one of its forms, with those options of it that `value` has. A file that is given stands in the
    /// place of a text.
    pub fn line<'a>(&self, form: &Form, value: impl Fn(&str) -> Option<&'a str>) -> String {
        let mut line = format!("/{}", self.name);
        let mut add = |word: &str| {
            if !word.is_empty() {
                line.push(' ');
                line.push_str(word);
            }
        };
        add(form.word);
        let holds_file = form.options.iter().any(|one| one.kind == OptionKind::File && value(one.name).is_some());
        for option in form.options {
            match (option.kind, value(option.name)) {
                (OptionKind::Text, _) if holds_file => {}
                (OptionKind::Flag, Some("true")) => add(option.name),
                (OptionKind::Flag, _) | (_, None) => {}
                (_, Some(value)) => add(value.trim()),
            }
        }
        line
    }
}

impl Form {
    /// How it is written, flags apart, and files that may stand in the place of a text.
    fn usage(&self) -> String {
        let is_written = |option: &&CommandOption| match option.kind {
            OptionKind::Flag => false,
            OptionKind::File => option.required,
            _ => true,
        };
        let options = self.options.iter().filter(is_written).map(|option| {
            let name = option.name.to_uppercase();
            if option.required { name } else { format!("[{name}]") }
        });
        std::iter::once(self.word.to_owned())
            .filter(|word| !word.is_empty())
            .chain(options)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl CommandOption {
    fn flag(&self) -> Option<&'static str> {
        (self.kind == OptionKind::Flag).then_some(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: CommandOption = CommandOption { name: "name", help: "", kind: OptionKind::Word, required: true };
    const BACK: CommandOption = CommandOption { name: "back", help: "", kind: OptionKind::Count, required: false };
    const QUOTES: CommandOption = CommandOption { name: "quotes", help: "", kind: OptionKind::Flag, required: false };

    const TEXT: CommandOption = CommandOption { name: "text", help: "", kind: OptionKind::Text, required: false };
    const FILE: CommandOption = CommandOption { name: "file", help: "", kind: OptionKind::File, required: false };

    const fn form(name: &'static str, word: &'static str, options: &'static [CommandOption]) -> Form {
        Form { name, word, help: "", access: Access::Member, options }
    }

    const fn command(forms: &'static [Form]) -> Command {
        Command { name: "do", help: "", access: Access::Member, terminal: false, forms }
    }

    #[test]
    fn help_and_lines_come_from_the_forms() {
        #[track_caller]
        fn check(command: Command, help: &str, values: &[(&str, &str)], lines: &[&str]) {
            assert_eq!(command.arguments(), help);
            let value = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            let given: Vec<String> = command.forms.iter().map(|form| command.line(form, value)).collect();
            assert_eq!(given, lines);
        }
        check(command(const { &[form("", "", &[])] }), "", &[], &["/do"]);
        check(command(const { &[form("", "", &[NAME])] }), "NAME", &[("name", " x ")], &["/do x"]);
        check(
            command(const { &[form("new", "", &[NAME, BACK]), form("list", "list", &[])] }),
            "[NAME [BACK] | list]",
            &[("name", "x"), ("back", "4")],
            &["/do x 4", "/do list"],
        );
        check(
            command(const { &[form("last", "last", &[QUOTES]), form("one", "", &[NAME, QUOTES])] }),
            "[last | NAME] [quotes]",
            &[("name", "m4"), ("quotes", "true")],
            &["/do last quotes", "/do m4 quotes"],
        );
        let bring = const { &[form("bring", "bring", &[TEXT, FILE])] };
        check(command(bring), "bring [TEXT]", &[("text", "x")], &["/do bring x"]);
        check(command(bring), "bring [TEXT]", &[("text", "x"), ("file", "{}")], &["/do bring {}"]);
    }
}
