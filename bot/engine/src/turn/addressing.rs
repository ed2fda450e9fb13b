//! Deciding whether to answer. Pure.

use azera_adapter::SkipReason;
use azera_memory::Answering;

/// Words people put before a name when they call somebody.
const CALLS: [&str; 8] = ["hey", "hi", "hello", "yo", "ok", "okay", "dear", "good"];

/// What there is to know about a message when it is decided on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addressing {
    /// The chat is a DM.
    pub dm: bool,
    /// The platform says that it mentions the bot.
    pub mentions_bot: bool,
    /// It mentions other people.
    pub mentions_others: bool,
    /// It replies to the bot (`true`), to somebody else (`false`), or to nobody.
    pub replies_to_bot: Option<bool>,
    /// It calls the persona by a name it answers to.
    pub called: bool,
    /// It calls somebody else who takes part in the conversation.
    pub calls_another: bool,
    /// It has no text.
    pub empty: bool,
    /// The chat's setting.
    pub answering: Answering,
}

/// Why a message is left unanswered; `None` if it is to be answered.
pub fn decide(to: &Addressing) -> Option<SkipReason> {
    if to.empty {
        return Some(SkipReason::Empty);
    }
    if to.answering == Answering::Never {
        return Some(SkipReason::Muted);
    }
    if to.dm || to.mentions_bot || to.called || to.replies_to_bot == Some(true) {
        return None;
    }
    if to.mentions_others || to.calls_another || to.replies_to_bot == Some(false) {
        return Some(SkipReason::MeantForAnother);
    }
    match to.answering {
        Answering::Always => None,
        Answering::Addressed | Answering::Never => Some(SkipReason::NotAddressed),
    }
}

/// Whether `text` calls somebody by one of `names`: with the name at its beginning, after a greeting, or at its very
/// end. A name in the middle talks *about* somebody.
pub fn calls<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> bool {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let greetings = words.iter().take_while(|word| CALLS.contains(&word.as_str())).count();
    names.into_iter().any(|name| {
        let name: Vec<String> = name.split_whitespace().map(str::to_lowercase).collect();
        !name.is_empty()
            && (words.get(greetings..).is_some_and(|rest| rest.starts_with(&name))
                || words.starts_with(&name)
                || words.ends_with(&name) && ends_as_a_call(text, &name))
    })
}

/// A name at the end calls somebody only behind a comma or alone with a greeting: "what do you think, Azera?".
fn ends_as_a_call(text: &str, name: &[String]) -> bool {
    let lower = text.to_lowercase();
    let Some(before) = lower.rfind(&name.join(" ")).and_then(|at| lower.get(..at)) else { return false };
    before.trim_end().ends_with([',', '@', '!', '.', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_called() {
        #[track_caller]
        fn check(text: &str, want: bool) {
            assert_eq!(calls(text, ["Azera", "Lady of Logs"]), want, "{text:?}");
        }
        check("Azera, what time is it?", true);
        check("azera what time is it", true);
        check("Hey Azera!", true);
        check("good morning Azera", false);
        check("what do you think, azera?", true);
        check("lady of logs: report", true);
        check("I asked Azera yesterday", false);
        check("I asked azera", false);
        check("azeration is no word", false);
        check("", false);
    }

    #[test]
    fn when_to_answer() {
        #[track_caller]
        fn check(change: impl FnOnce(&mut Addressing), want: Option<SkipReason>) {
            let mut to = Addressing::default();
            change(&mut to);
            assert_eq!(decide(&to), want, "{to:?}");
        }
        check(|_| (), Some(SkipReason::NotAddressed));
        check(|to| to.dm = true, None);
        check(|to| to.mentions_bot = true, None);
        check(|to| to.called = true, None);
        check(|to| to.replies_to_bot = Some(true), None);
        check(|to| to.replies_to_bot = Some(false), Some(SkipReason::MeantForAnother));
        check(|to| to.answering = Answering::Always, None);
        let another = |to: &mut Addressing| {
            to.answering = Answering::Always;
            to.mentions_others = true;
        };
        check(another, Some(SkipReason::MeantForAnother));
        check(|to| (to.mentions_others, to.mentions_bot) = (true, true), None);
        check(|to| (to.dm, to.answering) = (true, Answering::Never), Some(SkipReason::Muted));
        check(|to| (to.dm, to.empty) = (true, true), Some(SkipReason::Empty));
    }
}
