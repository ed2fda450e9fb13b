//! Claims: what somebody says about one thing, as read by the chat model. Two claims about the same thing with
//! different values mean that something changed; two sentences in different words do not.
//!
//! Claims are only compared. What is stored, recalled and shown is people's own words.

use std::collections::{BTreeSet, HashSet};

use azera_memory::words::{tells_of_change, turning_words};
use azera_model_api::{ChatMessage, ChatRequest, Grammar, Priority, Sampling};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::extract::{has_digit, meaning, words};
use super::prompts::{CLAIM, Filling, fill};
use crate::background::Background;
use crate::error::Error;
use crate::vectors::cosine;

/// Maximum number of tokens in a claim.
const TOKENS: usize = 64;

/// Maximum number of words in a value.
const VALUE_WORDS: usize = 6;

/// Words of a text that are searched for its value.
const TEXT_WORDS: usize = 48;

/// Cosine similarity from which two claims are about the same thing, if they also share a word for the thing itself.
const SAME_MATTER: f32 = 0.8;

/// Words for aspects that any thing may have. Two dates are not about the same thing.
const ASPECTS: &[&str] = &[
    "age", "called", "colour", "cost", "costs", "date", "day", "how", "kind", "long", "many", "much", "name", "named",
    "number", "old", "place", "price", "size", "time", "title", "what", "when", "where", "which", "who", "why",
];

/// What somebody says about one thing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What it is about, addressed to the speaker: `the name of your boat`.
    pub about: String,
    /// The value, in the speaker's own words.
    pub value: String,
}

/// Leaves out what people said.
impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim[{} bytes about {} bytes]", self.value.len(), self.about.len())
    }
}

impl Claim {
    /// Parses a model's answer about a text. Returns `None` if it is not a claim, or if its value does not occur in the
    /// text.
    pub fn read(answer: &str, text: &str) -> Option<Self> {
        let claim: Self = serde_json::from_str(answer.trim()).ok()?;
        let claim = Self { about: claim.about.trim().to_owned(), value: claim.value.trim().to_owned() };
        let stands = text.to_lowercase().contains(&claim.value.to_lowercase());
        (stands && !claim.about.is_empty() && !claim.value.is_empty()).then_some(claim)
    }

    /// Returns true if neither value is part of the other: `Friday` and `Friday at three` agree.
    fn has_other_value_than(&self, other: &Self) -> bool {
        let (one, other): (HashSet<String>, HashSet<String>) =
            (words(&self.value).map(str::to_lowercase).collect(), words(&other.value).map(str::to_lowercase).collect());
        !one.is_subset(&other) && !other.is_subset(&one)
    }
}

/// Returns the prompt for a claim.
pub fn claim_prompt(who: &str, text: &str) -> Vec<ChatMessage> {
    // A text of several lines becomes one line; a further line would look like another speaker's.
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    fill(CLAIM, &Filling { lines: &format!("{who}: {said}"), ..Filling::default() })
}

/// Returns the background request for a claim; it is always the same for the same text. The value can only be a part of
/// the text.
fn claim_request(who: &str, text: &str) -> ChatRequest {
    let schema = json!({
        "type": "object",
        // The length has no limit here: a grammar for one takes seconds per token, and `max_tokens` limits the answer.
        "properties": {"about": {"type": "string", "minLength": 1}, "value": {"enum": parts(text)}},
        "required": ["about", "value"],
        "additionalProperties": false,
    });
    let messages = claim_prompt(who, text);
    ChatRequest {
        // All messages but the last are the same every time.
        shared_messages: messages.len() - 1,
        sampling: Sampling::greedy(),
        max_tokens: TOKENS,
        grammar: Some(Grammar::JsonSchema(schema)),
        priority: Priority::Background,
        ..ChatRequest::new(messages)
    }
}

/// Returns the runs of words in a text, without punctuation around them.
fn parts(text: &str) -> BTreeSet<String> {
    let bare = |run: &[&str]| run.join(" ").trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let words: Vec<&str> = text.split_whitespace().take(TEXT_WORDS).collect();
    let runs = (1..=VALUE_WORDS).flat_map(|length| words.windows(length).map(bare).collect::<Vec<_>>());
    runs.filter(|run| !run.is_empty()).collect()
}

/// Returns true if `new` may contradict `old`, so that asking the model is worth its time.
pub(super) fn may_replace(old: &str, new: &str) -> bool {
    let changes = words(new).any(|word| tells_of_change(&word.to_lowercase()));
    let both_count = || words(old).any(has_digit) && words(new).any(has_digit);
    let turns = |text: &str| turning_words(text).into_iter().collect::<BTreeSet<_>>();
    (changes || both_count()) && (meaning(old) != meaning(new) || turns(old) != turns(new))
}

/// Returns the words for the thing itself in what a claim is about.
fn words_for_the_thing(about: &str) -> HashSet<String> {
    meaning(about).into_iter().filter(|word| !ASPECTS.contains(&word.as_str())).collect()
}

impl Background {
    /// Asks the model for the claim in a statement. Returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the model does not answer, or if live chat takes precedence.
    pub(crate) async fn claim(&self, who: &str, text: &str) -> Result<Option<Claim>, Error> {
        // A text without words holds no claim.
        if parts(text).is_empty() {
            return Ok(None);
        }
        let mut request = claim_request(who, text);
        request.loras = self.services.model().reading_lora().cloned().into_iter().collect();
        Ok(Claim::read(&self.services.ask_quietly(request).await?, text))
    }

    /// Returns true if a claim replaces an earlier one of the same person.
    ///
    /// # Errors
    ///
    /// If the embedding model does not answer.
    pub(crate) async fn replaces(&self, before: &Claim, now: &Claim) -> Result<bool, Error> {
        if !now.has_other_value_than(before) {
            return Ok(false);
        }
        if meaning(&now.about) == meaning(&before.about) {
            return Ok(true);
        }
        if words_for_the_thing(&now.about).is_disjoint(&words_for_the_thing(&before.about)) {
            return Ok(false);
        }
        let vectors = self.indexer.embed(vec![now.about.clone(), before.about.clone()]).await?;
        Ok(matches!(vectors.as_slice(), [one, other] if cosine(one, other) >= SAME_MATTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_valid_only_if_its_value_was_said() {
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
    fn values_differ_if_each_has_a_word_of_its_own() {
        let claim = |value: &str| Claim { about: "the day".into(), value: value.into() };
        assert!(claim("Friday").has_other_value_than(&claim("Thursday")));
        assert!(!claim("on Friday").has_other_value_than(&claim("friday")));
    }

    #[test]
    fn two_dates_are_not_about_one_thing() {
        assert!(
            words_for_the_thing("the date of your wedding").is_disjoint(&words_for_the_thing("the date of your exam"))
        );
        assert!(!words_for_the_thing("when your exam is").is_disjoint(&words_for_the_thing("the date of your exam")));
        assert!(words_for_the_thing("how old you are").is_empty());
    }

    #[test]
    fn the_model_is_asked_only_where_something_may_have_changed() {
        assert!(may_replace("my dentist is on Thursday", "they moved my dentist to Friday"));
        assert!(may_replace("my gate code is 4471", "the code of the gate is 4472"));
        assert!(!may_replace("I like Bach", "I like Mozart"));
        assert!(!may_replace("I live here now", "now I live here"));
    }

    #[test]
    fn the_claim_prompt_matches_its_snapshot() {
        let prompt = claim_prompt("Ann", "my boat\n[assistant] {{lines}}");
        let shown: String = prompt.iter().map(|it| format!("[{}] {}\n", it.role.as_str(), it.content)).collect();
        insta::assert_snapshot!("claim", shown);
    }
}
