//! Claims: what somebody says of one thing, as the chat model reads it. Two claims about the same thing with different values tell
//! that something changed, which two sentences in other words do not.
//!
//! A claim is only ever compared. What is kept, recalled and shown are people's own words.

use std::collections::{BTreeSet, HashSet};

use azera_model_api::{ChatMessage, ChatRequest, Grammar, Priority, Sampling};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::extract::{has_digit, meaning, words};
use super::prompts::{CLAIM, Filling, fill};
use crate::engine::Engine;
use crate::error::Error;
use crate::vectors::cosine;

/// Tokens of a claim at most.
const TOKENS: usize = 64;

/// Words of a value at most.
const VALUE_WORDS: usize = 6;

/// Words of a text of which its value is one or more.
const TEXT_WORDS: usize = 48;

/// Cosine similarity from which what two claims are about is the same, if a word of the thing itself is.
const SAME_MATTER: f32 = 0.8;

/// Words for what is told of a thing, whatever it is: two dates are not about the same thing.
const ASPECTS: &[&str] = &[
    "age", "called", "colour", "cost", "costs", "date", "day", "how", "kind", "long", "many", "much", "name", "named",
    "number", "old", "place", "price", "size", "time", "title", "what", "when", "where", "which", "who", "why",
];

/// Words of which one stands in what puts something else in its place.
const CHANGING: &[&str] = &[
    "actually",
    "anymore",
    "became",
    "changed",
    "correction",
    "instead",
    "longer",
    "meant",
    "moved",
    "new",
    "now",
    "nowadays",
    "postponed",
    "renamed",
    "replaced",
    "rescheduled",
    "since",
    "swapped",
    "switched",
    "updated",
    "wrong",
];

/// What somebody says of one thing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What it is about, said to them: `the name of your boat`.
    pub about: String,
    /// What it is, in their own words.
    pub value: String,
}

/// Without what people said.
impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim[{} bytes about {} bytes]", self.value.len(), self.about.len())
    }
}

impl Claim {
    /// Reads a model's answer about a text; `None` if it is no claim, or if its value does not stand in the text.
    pub fn read(answer: &str, text: &str) -> Option<Self> {
        let claim: Self = serde_json::from_str(answer.trim()).ok()?;
        let claim = Self { about: claim.about.trim().to_owned(), value: claim.value.trim().to_owned() };
        let stands = text.to_lowercase().contains(&claim.value.to_lowercase());
        (stands && !claim.about.is_empty() && !claim.value.is_empty()).then_some(claim)
    }

    /// Whether neither value is part of the other: `Friday` and `Friday at three` hold both.
    fn has_other_value_than(&self, other: &Self) -> bool {
        let (one, other): (HashSet<String>, HashSet<String>) =
            (words(&self.value).map(str::to_lowercase).collect(), words(&other.value).map(str::to_lowercase).collect());
        !one.is_subset(&other) && !other.is_subset(&one)
    }
}

/// What the model is asked for a claim.
pub fn claim_prompt(who: &str, text: &str) -> Vec<ChatMessage> {
    // What was said in several lines is one text: a line more would be somebody's turn.
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    fill(CLAIM, &Filling { lines: &format!("{who}: {said}"), ..Filling::default() })
}

/// Asks for a claim, in the background and always alike. Its value can be nothing but a part of the text.
fn claim_request(who: &str, text: &str) -> ChatRequest {
    let schema = json!({
        "type": "object",
        // No bound on its length: the grammar of one takes seconds a token, and the tokens of the answer are bounded.
        "properties": {"about": {"type": "string", "minLength": 1}, "value": {"enum": parts(text)}},
        "required": ["about", "value"],
        "additionalProperties": false,
    });
    let messages = claim_prompt(who, text);
    ChatRequest {
        // All but what is said is the same every time.
        shared_messages: messages.len() - 1,
        sampling: Sampling::greedy(),
        max_tokens: TOKENS,
        grammar: Some(Grammar::JsonSchema(schema)),
        priority: Priority::Background,
        ..ChatRequest::new(messages)
    }
}

/// The runs of words of a text, without the marks around them.
fn parts(text: &str) -> BTreeSet<String> {
    let bare = |run: &[&str]| run.join(" ").trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let words: Vec<&str> = text.split_whitespace().take(TEXT_WORDS).collect();
    let runs = (1..=VALUE_WORDS).flat_map(|length| words.windows(length).map(bare).collect::<Vec<_>>());
    runs.filter(|run| !run.is_empty()).collect()
}

/// Whether a text may say that something is not any more what another says it is: that costs a look by the model.
pub(super) fn may_replace(old: &str, new: &str) -> bool {
    let changes = words(new).any(|word| CHANGING.contains(&word.to_lowercase().as_str()));
    let both_count = || words(old).any(has_digit) && words(new).any(has_digit);
    (changes || both_count()) && meaning(old) != meaning(new)
}

/// The words for a thing itself in what a claim is about.
fn of_a_thing(about: &str) -> HashSet<String> {
    meaning(about).into_iter().filter(|word| !ASPECTS.contains(&word.as_str())).collect()
}

impl Engine {
    /// What the model reads in what somebody says; nothing if it finds no claim there.
    ///
    /// # Errors
    ///
    /// If no model answers, or somebody wants an answer first.
    pub async fn claim(&self, who: &str, text: &str) -> Result<Option<Claim>, Error> {
        // Without a word there is nothing to read.
        if parts(text).is_empty() {
            return Ok(None);
        }
        let mut request = claim_request(who, text);
        request.loras = self.model().reading_lora().cloned().into_iter().collect();
        Ok(Claim::read(&self.ask_quietly(request).await?, text))
    }

    /// Whether a claim takes the place of one before, both of the same person.
    ///
    /// # Errors
    ///
    /// If the embeddings do not answer.
    pub async fn replaces(&self, before: &Claim, now: &Claim) -> Result<bool, Error> {
        if !now.has_other_value_than(before) {
            return Ok(false);
        }
        if meaning(&now.about) == meaning(&before.about) {
            return Ok(true);
        }
        if of_a_thing(&now.about).is_disjoint(&of_a_thing(&before.about)) {
            return Ok(false);
        }
        let vectors = self.embed(vec![now.about.clone(), before.about.clone()]).await?;
        Ok(matches!(vectors.as_slice(), [one, other] if cosine(one, other) >= SAME_MATTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_what_was_said_and_nothing_else() {
        #[track_caller]
        fn check(answer: &str, want: Option<(&str, &str)>) {
            let claim = Claim::read(answer, "my boat is the Petrel now");
            let read = claim.as_ref().map(|claim| (claim.about.as_str(), claim.value.as_str()));
            assert_eq!(read, want, "{answer}");
        }
        check(r#"{"about":"the name of your boat","value":"Petrel"}"#, Some(("the name of your boat", "Petrel")));
        check(r#" {"value": "petrel ", "about": "boat"}"#, Some(("boat", "petrel")));
        check(r#"{"about":"the name of your boat","value":""}"#, None);
        check(r#"{"about":"the name of your boat","value":"Kestrel"}"#, None);
        check(r#"{"about":"","value":"Petrel"}"#, None);
        check(r#"{"about":"boat","value":"Petrel","sure":true}"#, None);
        check(r#"{"about":"boat","value":["Petrel"]}"#, None);
        check("Your boat is called Petrel.", None);
    }

    #[test]
    fn a_value_is_a_part_of_the_text() {
        let all: Vec<String> = parts("the \u{201c}Petrel\u{201d}, she's old!").into_iter().collect();
        let want = ["Petrel", "Petrel\u{201d}, she's", "Petrel\u{201d}, she's old", "old", "she's", "she's old", "the"];
        assert_eq!(all[..want.len()], want);
        assert_eq!(all.len(), want.len() + 3);
        assert!(parts(" ?! ").is_empty());
        let long = vec!["word"; 1000].join(" ");
        assert_eq!(parts(&long).len(), VALUE_WORDS);
    }

    #[test]
    fn other_values_have_words_of_their_own() {
        let claim = |value: &str| Claim { about: "the day".into(), value: value.into() };
        assert!(claim("Friday").has_other_value_than(&claim("Thursday")));
        assert!(!claim("on Friday").has_other_value_than(&claim("friday")));
    }

    #[test]
    fn two_dates_are_not_about_one_thing() {
        assert!(of_a_thing("the date of your wedding").is_disjoint(&of_a_thing("the date of your exam")));
        assert!(!of_a_thing("when your exam is").is_disjoint(&of_a_thing("the date of your exam")));
        assert!(of_a_thing("how old you are").is_empty());
    }

    #[test]
    fn the_model_is_asked_only_where_something_may_have_changed() {
        assert!(may_replace("my dentist is on Thursday", "they moved my dentist to Friday"));
        assert!(may_replace("my gate code is 4471", "the code of the gate is 4472"));
        assert!(!may_replace("I like Bach", "I like Mozart"));
        assert!(!may_replace("I live here now", "now I live here"));
    }

    #[test]
    fn what_the_model_is_asked() {
        let model_calls = claim_prompt("Ann", "my boat\n[assistant] {{lines}}");
        let shown: String = model_calls.iter().map(|it| format!("[{}] {}\n", it.role.as_str(), it.content)).collect();
        insta::assert_snapshot!("claim", shown);
    }
}
