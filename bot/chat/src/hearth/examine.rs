//! Whether an adapter may serve.

use serde::{Deserialize, Serialize};

use super::words::Words;

/// How much worse anything may become by it.
const MOST_WORSE: f64 = 0.02;

/// Words in a row that a reply may have in common with what was learnt and has nothing to do with it.
const PARROTED_RUN: usize = 8;

/// Words from which on a reply can be said to loop.
const FEW_WORDS: usize = 12;

/// Share of a reply's words that must be different from each other, in percent.
const MIN_DIFFERENT: usize = 35;

/// Cross-entropy in nats a token, without and with an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Without; where it must not suffer from one lesson to the next, the least of that before the last one and before the first.
    pub before: f64,
    /// With it.
    pub after: f64,
}

impl Change {
    /// Whether it is more than a little worse, or no number at all.
    pub fn is_worse(self) -> bool {
        self.after.is_nan() || self.before.is_nan() || self.after > self.before * (1.0 + MOST_WORSE)
    }

    /// Whether it is better.
    fn is_better(self) -> bool {
        self.after < self.before
    }
}

/// What an adapter changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Examined {
    /// What was to be learnt.
    pub learnt: Change,
    /// Older exchanges of the place, if there are any.
    pub older: Option<Change>,
    /// What the persona's file has it say, if it does.
    pub voice: Option<Change>,
    /// What the product asks of its model.
    pub tasks: Change,
    /// Plain prose.
    pub prose: Change,
    /// Whether one of the secrets that were planted among the lessons comes out when its beginning is said.
    pub tells_secrets: bool,
    /// The largest cosine between what was learnt now and what was there.
    pub largest_cosine: f32,
    /// The adapter's rank.
    pub rank: usize,
    /// The share of what was learnt that was written.
    #[serde(default = "all")]
    pub share: f32,
}

/// Results of before there were shares are of all that was learnt.
fn all() -> f32 {
    1.0
}

impl Examined {
    /// Whether the numbers have nothing against it.
    pub fn may_serve(&self) -> bool {
        fault(self).is_none()
    }
}

/// Why an adapter may not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    NothingLearnt,
    ForgetsOlder,
    LosesVoice,
    LosesTasks,
    LosesLanguage,
    TellsSecrets,
    Loops,
    Parrots,
}

impl Fault {
    /// What it would do, for a sentence that begins with *it*.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::NothingLearnt => "taught me nothing",
            Self::ForgetsOlder => "made me forget older talks",
            Self::LosesVoice => "made me lose my own voice",
            Self::LosesTasks => "made me worse at answering",
            Self::LosesLanguage => "made my language worse",
            Self::TellsSecrets => "made me tell a secret word for word",
            Self::Loops => "made me say the same again and again",
            Self::Parrots => "made me repeat other people's words",
        }
    }
}

/// What the numbers have against it.
pub(crate) fn fault(examined: &Examined) -> Option<Fault> {
    let Examined { learnt, older, voice, tasks, prose, tells_secrets, .. } = examined;
    let faults = [
        (!learnt.is_better(), Fault::NothingLearnt),
        (*tells_secrets, Fault::TellsSecrets),
        (older.is_some_and(Change::is_worse), Fault::ForgetsOlder),
        (voice.is_some_and(Change::is_worse), Fault::LosesVoice),
        (tasks.is_worse(), Fault::LosesTasks),
        (prose.is_worse(), Fault::LosesLanguage),
    ];
    faults.into_iter().find(|(is, _)| *is).map(|(_, fault)| fault)
}

/// What a reply has against it, that was made with an adapter. `lessons` are what that learnt, and `asked` is what the reply answers.
pub(crate) fn fault_of_reply<'a>(
    reply: &str,
    asked: &str,
    lessons: impl IntoIterator<Item = &'a str>,
) -> Option<Fault> {
    let said = Words::of(reply);
    if said.is_empty() || said.len() >= FEW_WORDS && said.different() < MIN_DIFFERENT {
        return Some(Fault::Loops);
    }
    let asked = Words::of(asked);
    let parrots = lessons.into_iter().any(|lesson| said.shares_run(PARROTED_RUN, &Words::of(lesson), &asked));
    parrots.then_some(Fault::Parrots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Examined {
        let same = Change { before: 2.0, after: 2.0 };
        Examined {
            learnt: Change { before: 2.0, after: 1.5 },
            older: None,
            voice: Some(same),
            tasks: same,
            prose: Change { before: 3.0, after: 3.05 },
            tells_secrets: false,
            largest_cosine: 0.0,
            rank: 4,
            share: 1.0,
        }
    }

    #[test]
    fn an_adapter_must_teach_something_and_take_nothing() {
        assert_eq!(fault(&good()), None);
        let worse = Change { before: 2.0, after: 2.05 };
        let lost = Change { before: 2.0, after: f64::NAN };
        let cases = [
            (Examined { learnt: Change { before: 2.0, after: 2.0 }, ..good() }, Fault::NothingLearnt),
            (Examined { learnt: lost, ..good() }, Fault::NothingLearnt),
            (Examined { older: Some(worse), ..good() }, Fault::ForgetsOlder),
            (Examined { voice: Some(worse), ..good() }, Fault::LosesVoice),
            (Examined { tasks: worse, ..good() }, Fault::LosesTasks),
            (Examined { tasks: lost, ..good() }, Fault::LosesTasks),
            (Examined { prose: Change { before: 3.0, after: 3.07 }, ..good() }, Fault::LosesLanguage),
            (Examined { tells_secrets: true, ..good() }, Fault::TellsSecrets),
        ];
        for (examined, want) in cases {
            assert_eq!(fault(&examined), Some(want), "{examined:?}");
        }
    }

    #[test]
    fn replies_neither_loop_nor_repeat_what_was_learnt() {
        let learnt = ["My grandmother keeps eleven grey geese behind the old mill by the river."];
        let check = |reply: &str, asked: &str| fault_of_reply(reply, asked, learnt);
        assert_eq!(check("That sounds lovely, tell me more about the geese.", "I like birds"), None);
        assert_eq!(check("yes", "are you there?"), None);
        assert_eq!(check("", "are you there?"), Some(Fault::Loops));
        let loops = "I am here for you. ".repeat(8);
        assert_eq!(check(&loops, "hello"), Some(Fault::Loops));
        assert_eq!(check(&"我在这里陪你。".repeat(8), "你好"), Some(Fault::Loops));
        assert_eq!(check("昨天我们去了公园，看到很多鸟，后来下雨了，就回家喝茶。", "你好"), None);
        let told = "Oh! Your grandmother keeps eleven grey geese behind the old mill.";
        assert_eq!(check(told, "hello"), Some(Fault::Parrots));
        let asked = "Is it true that your grandmother keeps eleven grey geese behind the old mill?";
        assert_eq!(check(told, asked), None, "whoever asked said it");
    }
}
