//! `/help`: all commands, or one of them.

use azera_adapter::{Access, Command, CommandAnswer, OptionKind, suggestion};

use super::{COMMANDS, done, refused, who};

/// Explains the command of this name, or lists all that the person may use.
pub(super) fn help(name: &str, access: Access) -> CommandAnswer {
    let name = name.trim_start_matches('/');
    if name.is_empty() {
        return done(overview(access));
    }
    match COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name)) {
        Some(command) if access < command.access => {
            refused(format!("`/{}` is for {}.", command.name, who(command.access)))
        }
        Some(command) => done(explained(command, access)),
        None => refused(suggestion(name, COMMANDS)),
    }
}

/// Says that a command got more than it takes, so that nothing was done.
pub(super) fn takes_less(command: &Command) -> String {
    match command.name {
        "help" => "`/help` explains one command, as in `/help branch`.".to_owned(),
        name => format!("`/{name}` takes no text after its name, so I did nothing."),
    }
}

fn overview(access: Access) -> String {
    let mut text = String::from("Talk to me as you like. These are my commands:\n");
    for command in COMMANDS.iter().filter(|command| command.access <= access) {
        text.push_str(&format!("- `/{}`: {}\n", command.name, command.help));
    }
    text.push_str("`/help NAME` explains one of them, as in `/help branch`.\n");
    text
}

fn explained(command: &Command, access: Access) -> String {
    let mut text = format!("`/{}`: {}\n", command.name, command.help);
    let mut options: Vec<String> = Vec::new();
    for form in command.forms.iter().filter(|form| form.access <= access) {
        let usage = form.usage();
        let space = if usage.is_empty() { "" } else { " " };
        let about = if form.help.is_empty() { String::new() } else { format!(": {}", form.help) };
        if !usage.is_empty() || !about.is_empty() {
            text.push_str(&format!("- `/{}{space}{usage}`{about}\n", command.name));
        }
        for option in form.options {
            let name =
                if option.kind == OptionKind::Flag { option.name.to_owned() } else { option.name.to_uppercase() };
            let line = format!("  - {name}: {}\n", option.help);
            // Several forms may share an option.
            if !options.contains(&line) {
                options.push(line);
            }
        }
    }
    text.extend(options);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The width of a small terminal.
    const COLUMNS: usize = 80;

    #[test]
    fn help_lists_only_commands_that_the_person_may_use() {
        assert!(!overview(Access::Member).contains("`/answer"));
        assert!(overview(Access::Admin).contains("`/answer"));
        assert!(COMMANDS.iter().all(|command| overview(Access::Operator).contains(&format!("`/{}`", command.name))));
        assert!(!help("answer", Access::Member).ok);
        assert!(!help("persona", Access::Member).text.contains("/persona upload"));
        assert!(help("persona", Access::Admin).text.contains("/persona upload"));
    }

    #[test]
    fn help_about_a_command_is_about_that_command() {
        let answer = help("/Branch", Access::Member);
        assert!(answer.ok && answer.text.starts_with("`/branch`: "), "{}", answer.text);
        for part in ["- `/branch NAME [BACK]`: ", "- `/branch list`: ", "- `/branch switch NAME`: ", "  - BACK: "] {
            assert!(answer.text.contains(part), "{part}: {}", answer.text);
        }
        let answer = help("brunch", Access::Member);
        assert!(!answer.ok && answer.text.contains("Did you mean `/branch`?"), "{}", answer.text);
    }

    #[test]
    fn help_fits_a_small_terminal_and_says_nothing_twice() {
        let about_each = COMMANDS.iter().map(|command| explained(command, Access::Operator));
        for text in about_each.chain([overview(Access::Operator)]) {
            // The marks of code are not shown.
            let too_wide = |line: &&str| line.replace('`', "").chars().count() > COLUMNS;
            assert_eq!(text.lines().filter(too_wide).collect::<Vec<_>>(), [""; 0], "more than {COLUMNS} columns");
            let mut lines: Vec<&str> = text.lines().collect();
            let all = lines.len();
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), all, "{text}");
        }
    }
}
