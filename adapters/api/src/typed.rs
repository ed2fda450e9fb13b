use crate::{Command, Form, OptionKind};

/// What a typed line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed<'a> {
    /// Something said. A path, `// a comment` and `/s` are no commands. Neither is the name of a command without
    /// arguments, if text follows it: `/new beginnings are hard`.
    Talk,
    /// A command.
    Command,
    /// It looks like a command, and no command has this name.
    Unknown(&'a str),
}

/// Tells a command from talk. `own` are the names of commands that only this platform has.
pub fn typed<'a>(line: &'a str, commands: &[Command], own: &[&str]) -> Typed<'a> {
    let Some(rest) = line.trim().strip_prefix('/') else { return Typed::Talk };
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_name) {
        return Typed::Talk;
    }
    if own.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Typed::Command;
    }
    match commands.iter().find(|command| command.name.eq_ignore_ascii_case(name)) {
        Some(command) if command.takes(arguments.trim(), commands) => Typed::Command,
        Some(_) => Typed::Talk,
        // Signs such as `/s` mark the tone of what was said.
        None if name.len() == 1 => Typed::Talk,
        None => Typed::Unknown(name),
    }
}

/// Says that there is no command of a name, and which one was probably meant.
pub fn suggestion(name: &str, commands: &[Command]) -> String {
    if name.len() > MAX_NAME_BYTES {
        return "There is no command of that name. `/help` lists all commands.".to_owned();
    }
    let typed = name.to_lowercase();
    let distance = |command: &Command| strsim::damerau_levenshtein(&typed, command.name);
    let begun = commands.iter().find(|command| typed.len() > 2 && command.name.starts_with(&typed));
    // More differences make another word.
    let is_near = |command: &&Command| distance(command) * 3 <= command.name.chars().count();
    let nearest = begun.or_else(|| commands.iter().min_by_key(|command| distance(command)).filter(is_near));
    match nearest {
        Some(nearest) => format!("There is no command `/{name}`. Did you mean `/{}`?", nearest.name),
        None => format!("There is no command `/{name}`. `/help` lists all commands."),
    }
}

/// Longer names are not repeated.
const MAX_NAME_BYTES: usize = 64;

/// The command that explains the others.
const HELP: &str = "help";

impl Command {
    /// Returns true if the command takes these arguments. Nothing is known about the arguments of a command that has
    /// any, except that help explains commands.
    pub fn takes(&self, arguments: &str, commands: &[Command]) -> bool {
        if arguments.is_empty() {
            return true;
        }
        if self.name == HELP {
            let name = arguments.trim_start_matches('/');
            return !arguments.contains(char::is_whitespace)
                || commands.iter().any(|command| command.name.eq_ignore_ascii_case(name));
        }
        if !self.forms.is_empty() && self.forms.iter().all(Form::takes_a_memory_alone) {
            let number = arguments.trim_start_matches(['m', 'M']);
            return !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        }
        self.forms.iter().any(|form| !form.word.is_empty() || !form.options.is_empty())
    }
}

impl Form {
    /// Returns true if nothing may stand behind the command but the number of a memory. Other words are talk, as in
    /// `/why not`.
    fn takes_a_memory_alone(&self) -> bool {
        let [option] = self.options else { return false };
        self.word.is_empty() && matches!(option.kind, OptionKind::Memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, CommandOption};

    const TEXT: CommandOption = CommandOption { name: "text", help: "", kind: OptionKind::Text, required: true };
    const ALONE: &[Form] = &[Form { name: "", word: "", help: "", access: Access::Member, options: &[] }];
    const WITH_TEXT: &[Form] = &[Form { name: "", word: "", help: "", access: Access::Member, options: &[TEXT] }];

    const MEMORY: CommandOption = CommandOption { name: "id", help: "", kind: OptionKind::Memory, required: false };
    const WITH_MEMORY: &[Form] = &[Form { name: "", word: "", help: "", access: Access::Member, options: &[MEMORY] }];

    const fn command(name: &'static str, forms: &'static [Form]) -> Command {
        Command { name, help: "", access: Access::Member, terminal: false, forms }
    }

    const COMMANDS: &[Command] = &[
        command("help", ALONE),
        command("leave", ALONE),
        command("remember", WITH_TEXT),
        command("regenerate", ALONE),
        command("why", WITH_MEMORY),
    ];

    #[test]
    fn only_names_of_commands_are_commands() {
        #[track_caller]
        fn check(line: &str, expected: Typed<'_>) {
            assert_eq!(typed(line, COMMANDS, &["own"]), expected, "{line:?}");
        }
        for talk in [
            "hello",
            "/",
            "/ leave",
            "//leave",
            "/var/log is full",
            "/usr/bin",
            "/leave/",
            "/5 stars",
            "/s",
            "/j just kidding",
            "/leave it to me",
            "/leave\nit to me",
            "/regenerate the forest",
            "/leave!",
            "/h\u{e9}lp",
            "/help me with my homework",
            "/why not",
            "/why m",
        ] {
            check(talk, Typed::Talk);
        }
        for command in [
            "/leave",
            " /leave ",
            "/Leave",
            "/remember a boat",
            "/remember",
            "/own",
            "/own x",
            "/help leave",
            "/help /Leave",
            "/help nobody",
            "/why",
            "/why m42",
            "/why 42",
        ] {
            check(command, Typed::Command);
        }
        check("/shout at me", Typed::Unknown("shout"));
        check("/remembr a boat", Typed::Unknown("remembr"));
    }

    #[test]
    fn the_nearest_command_is_suggested() {
        assert_eq!(suggestion("remembr", COMMANDS), "There is no command `/remembr`. Did you mean `/remember`?");
        assert_eq!(suggestion("laeve", COMMANDS), "There is no command `/laeve`. Did you mean `/leave`?");
        assert_eq!(suggestion("REGEN", COMMANDS), "There is no command `/REGEN`. Did you mean `/regenerate`?");
        assert_eq!(suggestion("shrug", COMMANDS), "There is no command `/shrug`. `/help` lists all commands.");
    }
}
