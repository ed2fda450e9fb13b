use crate::Access;

/// The declaration of a command for all platforms. Help, menus, permissions and behaviour come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The name, without the slash.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// Who may use it at all; single forms may require more.
    pub access: Access,
    /// True if it makes sense in a terminal only.
    pub terminal: bool,
    /// Its forms; at least one.
    pub forms: &'static [Form],
}

/// One form of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// The name in menus; empty if it is the only form.
    pub name: &'static str,
    /// The first word when it is typed; empty if its options follow at once.
    pub word: &'static str,
    /// What it does, in one line; if empty, the command's own help is used.
    pub help: &'static str,
    /// Who may use it.
    pub access: Access,
    /// Its options, in order.
    pub options: &'static [CommandOption],
}

/// An option of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandOption {
    /// The name, in lower case.
    pub name: &'static str,
    /// What it is, in one line.
    pub help: &'static str,
    /// The values it takes.
    pub kind: OptionKind,
    /// True if the command needs it. Optional ones come last.
    pub required: bool,
}

/// The values that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Words up to the end of the line; so it must be the last option.
    Text,
    /// One word.
    Word,
    /// A number from 0 up.
    Count,
    /// The option's own name, or nothing.
    Flag,
    /// The name of a persona that may answer there.
    Persona,
    /// The name of a model.
    Model,
    /// The name of a branch of the chat.
    Branch,
    /// The id of a memory of the person's own words, such as `m42`.
    Memory,
    /// The name of a [`crate::Theme`].
    Theme,
    /// A value of a text's side, written behind the text as `--name value`.
    Setting,
    /// The name of a model that draws, written as [`OptionKind::Setting`].
    PictureModel,
    /// The name of a sampler of what draws, written as [`OptionKind::Setting`].
    Sampler,
    /// The name of a voice that can speak there, written like a [`OptionKind::Setting`].
    Voice,
    /// A text of many lines. Platforms with forms ask for it in one, filled with the current text, which is the
    /// command's answer without this option. It must be the last option.
    Page,
    /// A picture. It comes with the command's line and is no part of it.
    Picture,
    /// The contents of a file: its text, or a PNG picture as a `data:image/png;base64,` address. It must be the last
    /// option.
    File,
    /// A recording, as a `data:audio/...;base64,` address. It must be the last option.
    Sound,
}

/// An action on a message, for platforms where people can select one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageAction {
    /// The name in menus.
    pub name: &'static str,
    /// The command line that does it; the message is passed along.
    pub line: &'static str,
    /// An option to ask for first, and to append to the line.
    pub asks: Option<CommandOption>,
}

impl OptionKind {
    /// Returns true if [`crate::Host::autocomplete`] suggests values.
    pub fn has_autocomplete(self) -> bool {
        let is_named = matches!(self, Self::Persona | Self::Model | Self::Branch | Self::Memory | Self::Theme);
        is_named || matches!(self, Self::PictureModel | Self::Sampler | Self::Voice)
    }

    /// Returns true if a value is written behind a text, as `--name value`.
    fn is_setting(self) -> bool {
        matches!(self, Self::Setting | Self::PictureModel | Self::Sampler | Self::Voice)
    }
}

impl Command {
    /// Returns the arguments for help: literal words as they are, placeholders in capitals.
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

    /// Returns true if a picture can come with these arguments.
    pub fn takes_picture(&self, arguments: &str) -> bool {
        let word = arguments.split_whitespace().next().unwrap_or_default();
        let forms = self.forms.iter().filter(|form| form.word.is_empty() || form.word == word);
        forms.flat_map(|form| form.options).any(|option| option.kind == OptionKind::Picture)
    }

    /// Returns how many words of these arguments come before a recording; `None` if they take none.
    pub fn words_before_sound(&self, arguments: &str) -> Option<usize> {
        let begins = |form: &&Form| {
            let mut words = arguments.split_whitespace();
            form.word.split_whitespace().all(|word| words.next() == Some(word))
        };
        let forms = self.forms.iter().filter(|form| !form.word.is_empty()).filter(begins);
        let takes = |form: &&Form| form.options.iter().any(|option| option.kind == OptionKind::Sound);
        let form = forms.into_iter().find(takes)?;
        Some(form.word.split_whitespace().count() + form.options.iter().filter(|option| option.required).count())
    }

    /// Returns the command line for a form, with the options that `value` returns. A file may replace a text.
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
                (OptionKind::Picture, _) => {}
                (OptionKind::Flag, Some("true")) => add(option.name),
                (OptionKind::Flag, _) | (_, None) => {}
                (kind, Some(value)) if kind.is_setting() => add(&format!("--{} {}", option.name, value.trim())),
                (_, Some(value)) => add(value.trim()),
            }
        }
        line
    }
}

impl Form {
    /// Returns how the form is written, without flags and without files that may replace a text.
    pub fn usage(&self) -> String {
        let is_written = |option: &&CommandOption| match option.kind {
            OptionKind::Flag | OptionKind::Picture => false,
            kind if kind.is_setting() => false,
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
    fn help_and_command_lines_follow_the_forms() {
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
        const SIZE: CommandOption =
            CommandOption { name: "size", help: "", kind: OptionKind::Setting, required: false };
        check(
            command(const { &[form("", "", &[TEXT, SIZE])] }),
            "[TEXT]",
            &[("text", "a boat"), ("size", "wide")],
            &["/do a boat --size wide"],
        );
        const PICTURE: CommandOption =
            CommandOption { name: "picture", help: "", kind: OptionKind::Picture, required: false };
        check(
            command(const { &[form("", "", &[TEXT, PICTURE])] }),
            "[TEXT]",
            &[("text", "a boat"), ("picture", "7")],
            &["/do a boat"],
        );
        let bring = const { &[form("bring", "bring", &[TEXT, FILE])] };
        check(command(bring), "bring [TEXT]", &[("text", "x")], &["/do bring x"]);
        check(command(bring), "bring [TEXT]", &[("text", "x"), ("file", "{}")], &["/do bring {}"]);
    }
}
