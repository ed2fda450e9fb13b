//! Decides whether to answer. This module does no I/O.

use azera_adapter::SkipReason;
use azera_memory::Answering;
use azera_personas::{SpokenName, spoken_names};

use super::speech::{Speech, leading_quotation, own_words, without_quotations};
use super::vocative::{calls_form, calls_sign};

/// What there is to know about a message when it is decided on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addressing {
    /// The chat is a DM.
    pub dm: bool,
    /// The platform says that it mentions the bot.
    pub mentions_bot: bool,
    /// It mentions other people.
    pub mentions_others: bool,
    /// It replies to the bot (`true`), to somebody else (`false`), or to nobody (`None`).
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

/// Returns true if `text` calls somebody by one of `names`: with the name at its beginning, after a greeting, or at its
/// end behind a comma. A name in the middle talks *about* somebody. Accents and decoration of a name do not count, and
/// neither do quotations.
pub fn calls<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> bool {
    let own = own_words(text);
    let speech = Speech::of(&without_quotations(&own));
    // In stories, people put what they say themselves in quotation marks.
    let spoken = leading_quotation(&own).map(Speech::of);
    names.into_iter().any(|name| {
        let forms = spoken_names(name);
        if forms.is_empty() {
            return calls_sign(&own, name);
        }
        forms.into_iter().any(|form| {
            calls_form(&speech, &form)
                || spoken.as_ref().is_some_and(|spoken| calls_form(spoken, &SpokenName { common: true, ..form }))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, want: bool) {
        assert_eq!(calls(text, [name]), want, "{name:?} in {text:?}");
    }

    #[test]
    fn who_is_called() {
        #[track_caller]
        fn check(text: &str, want: bool) {
            assert_eq!(calls(text, ["Azera", "Lady of Logs"]), want, "{text:?}");
        }
        check("Azera, what time is it?", true);
        check("azera what time is it", true);
        check("Hey Azera!", true);
        check("good morning Azera", true);
        check("thanks azera 😊", true);
        check("what do you think, azera?", true);
        check("are you there azera?", true);
        check("lady of logs: report", true);
        check("It rains. Azera, is the window shut?", true);
        check("I am off, good night Azera.", true);
        check("Azera-chan, hello", true);
        check("please ask @azera for it", true);
        check("I asked Azera yesterday", false);
        check("I asked azera", false);
        check("azeration is no word", false);
        check("Azera's window is shut", false);
        check("azera.exe does not start", false);
        check("It rained. Azera slept.", false);
        check("", false);
    }

    #[test]
    fn decoration_of_a_name_does_not_count() {
        for text in
            ["Vega, are you up?", "hi vega!", "vega 🌟 how is the sky?", "Where is the moon, Vega?", "🌟 Vega 🌟, hi"]
        {
            check("Vega 🌟", text, true);
            check("☆Vega☆", text, true);
            check("Vega (old)", text, true);
        }
        check("Vega 🌟", "I saw Vega last night.", false);
        check("Prof. Umber", "prof umber: is it late?", true);
        check("Prof. Umber", "Is it late, Prof. Umber?", true);
        check("Prof. Umber", "Umber, is it late?", true);
        check("Prof. Umber", "Prof. Umberton left.", false);
        check("Prof. Umber", "I met Prof. Umber, a friend.", false);
        check("Mr. O'Shea", "Mr. O'Shea, come in", true);
        check("Mr. O'Shea", "Hello Mr O’Shea!", true);
        check("H.A.R.P.", "harp, play", true);
        check("H.A.R.P.", "H.A.R.P.: play", true);
        check("R2-D9", "R2D9, roll on", true);
        check("Vega", "Vega...are you up?", true);
        check("🌟", "🌟 hello", true);
        check("🌟", "hello 🌟", false);
    }

    #[test]
    fn a_name_of_one_letter_needs_a_mark() {
        check("V.", "V., what now?", true);
        check("V.", "hello v!", true);
        check("V.", "What now, V?", true);
        check("V.", "v necks are out", false);
        check("Q!", "Q! Look!", true);
    }

    #[test]
    fn accents_are_optional() {
        for text in ["Chloe, hi", "Chloé, hi", "chloe\u{301}, hi", "CHLOË, hi", "thanks chloe"] {
            check("Chloé", text, true);
        }
        check("Søren", "soren, hi", true);
        check("Mira", "mïra, hi", true);
    }

    #[test]
    fn a_name_that_is_a_word_needs_a_sign() {
        for (name, text) in [
            ("Will", "Will it snow?"),
            ("Will", "hey will it snow?"),
            ("Hope", "Hope it snows."),
            ("Hope", "I hope so. Hope is all we have."),
            ("Rose", "Rose bushes need water"),
            ("Mark", "Mark the date."),
            ("Grace", "grace period ends"),
            ("May", "May I come in?"),
            ("Joy", "what a joy"),
            ("Will", "I think it will"),
        ] {
            check(name, text, false);
        }
        for (name, text) in [
            ("Will", "Will, will it snow?"),
            ("Will", "Hey Will!"),
            ("Will", "hey Will do you see it?"),
            ("Hope", "Good morning Hope"),
            ("Rose", "What do you think, Rose?"),
            ("Mark", "That helps, thanks Mark."),
            ("Grace", "It snows. Grace, shut the door."),
            ("May", "may?"),
        ] {
            check(name, text, true);
        }
    }

    #[test]
    fn names_in_other_scripts_are_heard() {
        check("凛", "凛、元気？", true);
        check("凛", "ねえ、凛ちゃん", true);
        check("凛", "おはよう凛", true);
        check("凛", "元気ですか、凛？", true);
        check("凛", "凛はどこですか", false);
        check("小雨", "小雨，你在吗？", true);
        check("小雨", "小雨你好", true);
        check("小雨", "你好小雨！", true);
        check("小雨", "小雨昨天来了", false);
        check("유나", "유나야, 안녕", true);
        check("유나", "나는 어제 유나", false);
        check("凛", "What do you think, 凛?", true);
        check("凛", "I asked 凛", false);
        check("千早 愛", "千早愛、元気？", true);
        check("ジャン・リュック", "ジャン・リュック、元気？", true);
        check("Luna 凛", "Luna 凛, hi", true);
        check("أمل", "أمل، كيف حالك؟", true);
        check("أمل", "كيف حالك يا أمل؟", true);
        check("أمل", "ما رأيك، أمل؟", true);
        check("أمل", "أمل كبير في القلب", false);
        check("Ёлка", "привет ёлка", true);
        check("Ёлка", "Елка, ты где?", true);
    }

    #[test]
    fn a_quotation_calls_nobody_and_hides_no_call() {
        check("Azera", "> it is late\nAzera, is that so?", true);
        check("Azera", "> Azera, is it late?\nNo.", false);
        check("Azera", "\"It is late.\" Azera, is that so?", true);
        check("Azera", "He said \"wake up, Azera\"", false);
        check("Azera", "\"Azera, where are you?\" she asks.", true);
        check("Azera", "<:wave:123> Azera hi", true);
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
