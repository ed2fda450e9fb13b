//! Decides whether a LoRA may serve.

use serde::{Deserialize, Serialize};

use super::words::Words;

/// Maximum relative increase of any loss.
const MAX_INCREASE: f64 = 0.02;

/// Number of consecutive words that a reply may share with a training example its question does not mention.
const PARROTED_RUN: usize = 8;

/// Minimum number of words of a reply that can count as a loop.
const MIN_LOOP_WORDS: usize = 12;

/// Minimum share of a reply's words that must differ from each other, in percent.
const MIN_DIFFERENT: usize = 35;

/// Cross-entropy in nats per token, without and with a LoRA.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossChange {
    /// Without the LoRA. For losses that must not grow from one training job to the next, the lower one of before the
    /// latest job and before the first.
    pub before: f64,
    /// With the LoRA.
    pub after: f64,
}

impl LossChange {
    /// Returns true if the loss grew by more than the allowed share, or is not a number.
    pub fn is_worse(self) -> bool {
        self.after.is_nan() || self.before.is_nan() || self.after > self.before * (1.0 + MAX_INCREASE)
    }

    fn is_better(self) -> bool {
        self.after < self.before
    }
}

/// The measured effects of a LoRA.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Loss on the training examples.
    #[serde(rename = "learnt")]
    pub learned: LossChange,
    /// Loss on older exchanges of the place, if there are any.
    pub older: Option<LossChange>,
    /// Loss on the example replies in the persona's file, if it has any.
    pub voice: Option<LossChange>,
    /// Loss on the tasks that the product gives its model.
    pub tasks: LossChange,
    /// Loss on plain prose.
    pub prose: LossChange,
    /// Whether the model completes a canary, a made-up secret among the training examples, from its beginning.
    pub tells_secrets: bool,
    /// Largest cosine similarity between the newly learned change and the one before.
    pub largest_cosine: f32,
    /// The LoRA's rank.
    pub rank: usize,
    /// Share of the newly learned change that was written to the LoRA.
    #[serde(default = "all")]
    pub share: f32,
}

/// Evaluations stored before this field existed are of LoRAs with the whole change.
fn all() -> f32 {
    1.0
}

impl Evaluation {
    /// Returns true if no measured value has a fault.
    pub fn may_serve(&self) -> bool {
        fault(self).is_none()
    }
}

/// Why a LoRA may not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EvaluationFault {
    #[serde(rename = "nothing_learnt")]
    NothingLearned,
    ForgetsOlder,
    LosesVoice,
    LosesTasks,
    LosesLanguage,
    TellsSecrets,
    Loops,
    Parrots,
}

impl EvaluationFault {
    /// Describes the fault, for a sentence that begins with *it*.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::NothingLearned => "taught me nothing",
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

/// Returns the first fault in an evaluation.
pub(crate) fn fault(evaluation: &Evaluation) -> Option<EvaluationFault> {
    let Evaluation { learned, older, voice, tasks, prose, tells_secrets, .. } = evaluation;
    let faults = [
        (!learned.is_better(), EvaluationFault::NothingLearned),
        (*tells_secrets, EvaluationFault::TellsSecrets),
        (older.is_some_and(LossChange::is_worse), EvaluationFault::ForgetsOlder),
        (voice.is_some_and(LossChange::is_worse), EvaluationFault::LosesVoice),
        (tasks.is_worse(), EvaluationFault::LosesTasks),
        (prose.is_worse(), EvaluationFault::LosesLanguage),
    ];
    faults.into_iter().find(|(is, _)| *is).map(|(_, fault)| fault)
}

/// Returns the fault of a reply made with a LoRA. `question` is what the reply answers.
pub(crate) fn fault_of_reply<'a>(
    reply: &str,
    question: &str,
    training_examples: impl IntoIterator<Item = &'a str>,
) -> Option<EvaluationFault> {
    let said = Words::of(reply);
    if said.is_empty() || said.len() >= MIN_LOOP_WORDS && said.different() < MIN_DIFFERENT {
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
            learned: LossChange { before: 2.0, after: 1.5 },
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
    fn a_lora_must_lower_its_own_loss_and_no_other_may_grow() {
        assert_eq!(fault(&good()), None);
        let worse = LossChange { before: 2.0, after: 2.05 };
        let lost = LossChange { before: 2.0, after: f64::NAN };
        let cases = [
            (Evaluation { learned: LossChange { before: 2.0, after: 2.0 }, ..good() }, EvaluationFault::NothingLearned),
            (Evaluation { learned: lost, ..good() }, EvaluationFault::NothingLearned),
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
    fn replies_that_loop_or_repeat_training_examples_are_faults() {
        let learned = ["My grandmother keeps eleven grey geese behind the old mill by the river."];
        let check = |reply: &str, question: &str| fault_of_reply(reply, question, learned);
        assert_eq!(check("That sounds lovely, tell me more about the geese.", "I like birds"), None);
        assert_eq!(check("yes", "are you there?"), None);
        assert_eq!(check("", "are you there?"), Some(EvaluationFault::Loops));
        let loops = "I am here for you. ".repeat(8);
        assert_eq!(check(&loops, "hello"), Some(EvaluationFault::Loops));
        assert_eq!(check(&"我在这里陪你。".repeat(8), "你好"), Some(EvaluationFault::Loops));
        assert_eq!(check("昨天我们去了公园，看到很多鸟，后来下雨了，就回家喝茶。", "你好"), None);
        let parroting = "Oh! Your grandmother keeps eleven grey geese behind the old mill.";
        assert_eq!(check(parroting, "hello"), Some(EvaluationFault::Parrots));
        let question = "Is it true that your grandmother keeps eleven grey geese behind the old mill?";
        assert_eq!(check(parroting, question), None, "whoever asked said it");
    }

    #[test]
    fn records_of_earlier_versions_keep_their_names() {
        let stored = serde_json::to_value(good()).unwrap();
        assert_eq!(stored["learnt"], serde_json::json!({"before": 2.0, "after": 1.5}));
        assert_eq!(serde_json::from_value::<Evaluation>(stored).unwrap(), good());
        assert_eq!(serde_json::to_value(EvaluationFault::NothingLearned).unwrap(), "nothing_learnt");
    }
}
