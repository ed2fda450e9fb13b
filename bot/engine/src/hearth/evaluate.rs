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
pub struct LossChange {
    /// Without; where it must not suffer from one lesson to the next, the least of that before the last one and before the first.
    pub before: f64,
    /// With it.
    pub after: f64,
}

impl LossChange {
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
pub struct Evaluation {
    /// What was to be learnt.
    pub learnt: LossChange,
    /// Older exchanges of the place, if there are any.
    pub older: Option<LossChange>,
    /// What the persona's file has it say, if it does.
    pub voice: Option<LossChange>,
    /// What the product asks of its model.
    pub tasks: LossChange,
    /// Plain prose.
    pub prose: LossChange,
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

impl Evaluation {
    /// Whether the numbers have nothing against it.
    pub fn may_serve(&self) -> bool {
        fault(self).is_none()
    }
}

/// Why an adapter may not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EvaluationFault {
    NothingLearnt,
    ForgetsOlder,
    LosesVoice,
    LosesTasks,
    LosesLanguage,
    TellsSecrets,
    Loops,
    Parrots,
}

impl EvaluationFault {
    /// What it would do, for a sentence that begins with *it*.
    pub(crate) fn in_words(self) -> &'static str {
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
pub(crate) fn fault(evaluation: &Evaluation) -> Option<EvaluationFault> {
    let Evaluation { learnt, older, voice, tasks, prose, tells_secrets, .. } = evaluation;
    let faults = [
        (!learnt.is_better(), EvaluationFault::NothingLearnt),
        (*tells_secrets, EvaluationFault::TellsSecrets),
        (older.is_some_and(LossChange::is_worse), EvaluationFault::ForgetsOlder),
        (voice.is_some_and(LossChange::is_worse), EvaluationFault::LosesVoice),
        (tasks.is_worse(), EvaluationFault::LosesTasks),
        (prose.is_worse(), EvaluationFault::LosesLanguage),
    ];
    faults.into_iter().find(|(is, _)| *is).map(|(_, fault)| fault)
}

/// What a reply has against it, that was made with an adapter. `training_log` are what that learnt, and `question` is what the reply answers.
pub(crate) fn fault_of_reply<'a>(
    reply: &str,
    question: &str,
    training_examples: impl IntoIterator<Item = &'a str>,
) -> Option<EvaluationFault> {
    let said = Words::of(reply);
    if said.is_empty() || said.len() >= FEW_WORDS && said.different() < MIN_DIFFERENT {
        return Some(EvaluationFault::Loops);
    }
    let question = Words::of(question);
    let parrots = training_examples
        .into_iter()
        .any(|training_example| said.shares_run(PARROTED_RUN, &Words::of(training_example), &question));
    parrots.then_some(EvaluationFault::Parrots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Evaluation {
        let same = LossChange { before: 2.0, after: 2.0 };
        Evaluation {
            learnt: LossChange { before: 2.0, after: 1.5 },
            older: None,
            voice: Some(same),
            tasks: same,
            prose: LossChange { before: 3.0, after: 3.05 },
            tells_secrets: false,
            largest_cosine: 0.0,
            rank: 4,
            share: 1.0,
        }
    }

    #[test]
    fn a_lora_must_teach_something_and_take_nothing() {
        assert_eq!(fault(&good()), None);
        let worse = LossChange { before: 2.0, after: 2.05 };
        let lost = LossChange { before: 2.0, after: f64::NAN };
        let cases = [
            (Evaluation { learnt: LossChange { before: 2.0, after: 2.0 }, ..good() }, EvaluationFault::NothingLearnt),
            (Evaluation { learnt: lost, ..good() }, EvaluationFault::NothingLearnt),
            (Evaluation { older: Some(worse), ..good() }, EvaluationFault::ForgetsOlder),
            (Evaluation { voice: Some(worse), ..good() }, EvaluationFault::LosesVoice),
            (Evaluation { tasks: worse, ..good() }, EvaluationFault::LosesTasks),
            (Evaluation { tasks: lost, ..good() }, EvaluationFault::LosesTasks),
            (Evaluation { prose: LossChange { before: 3.0, after: 3.07 }, ..good() }, EvaluationFault::LosesLanguage),
            (Evaluation { tells_secrets: true, ..good() }, EvaluationFault::TellsSecrets),
        ];
        for (evaluation, want) in cases {
            assert_eq!(fault(&evaluation), Some(want), "{evaluation:?}");
        }
    }

    #[test]
    fn replies_neither_loop_nor_repeat_what_was_learnt() {
        let learnt = ["My grandmother keeps eleven grey geese behind the old mill by the river."];
        let check = |reply: &str, question: &str| fault_of_reply(reply, question, learnt);
        assert_eq!(check("That sounds lovely, tell me more about the geese.", "I like birds"), None);
        assert_eq!(check("yes", "are you there?"), None);
        assert_eq!(check("", "are you there?"), Some(EvaluationFault::Loops));
        let loops = "I am here for you. ".repeat(8);
        assert_eq!(check(&loops, "hello"), Some(EvaluationFault::Loops));
        assert_eq!(check(&"我在这里陪你。".repeat(8), "你好"), Some(EvaluationFault::Loops));
        assert_eq!(check("昨天我们去了公园，看到很多鸟，后来下雨了，就回家喝茶。", "你好"), None);
        let in_words = "Oh! Your grandmother keeps eleven grey geese behind the old mill.";
        assert_eq!(check(in_words, "hello"), Some(EvaluationFault::Parrots));
        let question = "Is it true that your grandmother keeps eleven grey geese behind the old mill?";
        assert_eq!(check(in_words, question), None, "whoever asked said it");
    }
}
