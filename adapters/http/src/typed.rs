//! What a typed command needs. A key that may chat reads no memories, and administers nothing, by typing a command.

use azera_adapter::{Access, Command};

use crate::accounts::Scope;
use crate::endpoint::Need;

/// Returns what a caller needs for a typed command. A command that is not named here needs a session.
pub(crate) fn need(line: &str, commands: &[Command]) -> Need {
    let line = line.trim().trim_start_matches('/');
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (name, arguments) = (name.to_ascii_lowercase(), arguments.trim());
    let verb = arguments.split_whitespace().next().unwrap_or_default();
    if commands.iter().any(|command| command.name == name && is_for_operators(command, verb)) {
        return Need::Scope(Scope::Admin);
    }
    match (name.as_str(), verb) {
        ("memory", "known") if !changes_known(arguments) => Need::Scope(Scope::MemoryRead),
        ("why", verb) if !verb.is_empty() => Need::Scope(Scope::MemoryRead),
        ("forget", "" | "last" | "chat") => Need::Scope(Scope::Chat),
        ("memory", "" | "search" | "stats" | "themes" | "files" | "file" | "export") => Need::Scope(Scope::MemoryRead),
        ("dream" | "journal" | "garden", "" | "list" | "show" | "search" | "export") => Need::Scope(Scope::MemoryRead),
        ("graph", "merge" | "split") => Need::Scope(Scope::MemoryWrite),
        ("me" | "notes" | "graph", _) => Need::Scope(Scope::MemoryRead),
        ("forget" | "remember" | "memory" | "dream" | "journal" | "garden", _) => Need::Scope(Scope::MemoryWrite),
        (
            "answer" | "branch" | "checkin" | "gallery" | "group" | "help" | "imagine" | "model" | "persona"
            | "picture" | "regenerate" | "rules" | "settings" | "status" | "swipe" | "tag" | "tune" | "voice" | "why",
            _,
        ) => Need::Scope(Scope::Chat),
        // `link`, `hearth` and `privacy` say what may be kept of a person, and who that is.
        _ => Need::Session,
    }
}

/// Returns true if a command says whether a statement counts as known, and does not only list what does.
fn changes_known(arguments: &str) -> bool {
    arguments.split_whitespace().nth(2).is_some()
}

fn is_for_operators(command: &Command, verb: &str) -> bool {
    let is_meant = |word: &str| word.eq_ignore_ascii_case(verb);
    command.access == Access::Operator
        || command.forms.iter().any(|form| form.access == Access::Operator && is_meant(form.word))
}

#[cfg(test)]
mod tests {
    use azera_adapter::Form;

    use super::*;

    #[test]
    fn each_command_needs_the_scope_of_what_it_does() {
        const USE: &[Form] = &[Form { name: "use", word: "use", help: "", access: Access::Operator, options: &[] }];
        let model = Command { name: "model", help: "", access: Access::Member, terminal: false, forms: USE };
        for (line, wanted) in [
            ("/why", Need::Scope(Scope::Chat)),
            ("/why m7", Need::Scope(Scope::MemoryRead)),
            (" /Forget last quotes", Need::Scope(Scope::Chat)),
            ("/forget me", Need::Scope(Scope::MemoryWrite)),
            ("/forget m7", Need::Scope(Scope::MemoryWrite)),
            ("/memory forget me", Need::Scope(Scope::MemoryWrite)),
            ("/memory\texport", Need::Scope(Scope::MemoryRead)),
            ("/memory known 2", Need::Scope(Scope::MemoryRead)),
            ("/memory known m7 off", Need::Scope(Scope::MemoryWrite)),
            ("/journal trigger", Need::Scope(Scope::MemoryWrite)),
            ("/graph Ann", Need::Scope(Scope::MemoryRead)),
            ("/graph merge Ann = Annie", Need::Scope(Scope::MemoryWrite)),
            ("/dream", Need::Scope(Scope::MemoryRead)),
            ("/model list", Need::Scope(Scope::Chat)),
            ("/MODEL USE other", Need::Scope(Scope::Admin)),
            ("/link", Need::Session),
            ("/hearth opt-in", Need::Session),
            ("/unheard-of", Need::Session),
        ] {
            assert_eq!(need(line, &[model]), wanted, "{line}");
        }
    }
}
