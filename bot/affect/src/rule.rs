//! One rule, and what may be written into one.

use std::collections::BTreeMap;

use azera_types::Dimension;
use serde::{Deserialize, Serialize};

use crate::bond::Deltas;
use crate::tags::Tag;

/// Rules of its own that a realm may have.
pub const MAX_RULES: usize = 64;

/// Characters of a rule's name.
pub const MAX_RULE_NAME_CHARS: usize = 48;

/// Tags that one rule may answer to.
pub const MAX_RULE_TAGS: usize = 8;

/// Characters of a rule's text: it is read by small models, in every turn it matches.
pub const MAX_ENDING_CHARS: usize = 400;

/// How much one rule may change one feeling. What one message may change in all is another limit, of the configuration.
pub const MAX_RULE_DELTA: f64 = 0.5;

/// Why a rule cannot stand.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// Its name is none.
    #[error("a rule's name is 1 to {MAX_RULE_NAME_CHARS} of a-z, 0-9, _ and -, not {0:?}")]
    Name(String),
    /// It answers to no tag, or to too many.
    #[error("the rule `{rule}` must name 1 to {MAX_RULE_TAGS} tags, not {count}")]
    Tags {
        /// The rule.
        rule: String,
        /// Tags it names.
        count: usize,
    },
    /// A tag that does not exist.
    #[error("the rule `{rule}` names the tag {tag:?}; there are {}", known_tags())]
    UnknownTag {
        /// The rule.
        rule: String,
        /// The tag.
        tag: String,
    },
    /// A feeling that does not exist.
    #[error("the rule `{rule}` changes {dimension:?}; there are {}", known_dimensions())]
    UnknownDimension {
        /// The rule.
        rule: String,
        /// The feeling.
        dimension: String,
    },
    /// A change out of range.
    #[error("the rule `{rule}` changes {dimension} by {delta}; it must be from -{MAX_RULE_DELTA} to {MAX_RULE_DELTA}")]
    Delta {
        /// The rule.
        rule: String,
        /// The feeling.
        dimension: Dimension,
        /// The change.
        delta: f64,
    },
    /// Its text is too long.
    #[error("the text of the rule `{rule}` has {chars} characters; at most {MAX_ENDING_CHARS} are allowed")]
    Length {
        /// The rule.
        rule: String,
        /// Characters it has.
        chars: usize,
    },
    /// Its text holds a line break, another control character or the mark of a chat template.
    #[error(
        "the text of the rule `{rule}` must stand on one line, without control characters and marks such as <|im_start|>"
    )]
    Text {
        /// The rule.
        rule: String,
    },
    /// It does nothing.
    #[error("the rule `{rule}` does nothing: give it an ending_text, or feelings to change")]
    Empty {
        /// The rule.
        rule: String,
    },
    /// Two of one name.
    #[error("there are two rules `{0}`")]
    Twice(String),
    /// More than a realm may have.
    #[error("a realm may have {MAX_RULES} rules of its own at most, not {0}")]
    TooMany(usize),
    /// A safety rule, which nobody changes or turns off.
    #[error(
        "`{0}` is a safety rule: it can be neither changed nor turned off. Add a rule of another name for the same tag"
    )]
    Safety(String),
    /// No rule of this name can be turned off.
    #[error("there is no built-in rule `{0}` to turn off")]
    Unknown(String),
}

impl RuleError {
    /// Whether the same rule may stand later without anybody changing it: never.
    pub fn is_transient(&self) -> bool {
        false
    }
}

fn known_tags() -> String {
    Tag::ALL.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(", ")
}

fn known_dimensions() -> String {
    Dimension::ALL.map(Dimension::name).join(", ")
}

/// What a message's tags call for: a text at the end of that turn's prompt, and changes of what is felt towards the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredRule", into = "StoredRule")]
pub struct Rule {
    /// What it is called: 1 to [`MAX_RULE_NAME_CHARS`] of `a-z`, `0-9`, `_` and `-`.
    pub name: String,
    /// It answers to a message that has any of these: 1 to [`MAX_RULE_TAGS`].
    pub tags: Vec<Tag>,
    /// One line of at most [`MAX_ENDING_CHARS`]; may be empty if it changes something. `{{user}}` stands for the person's name.
    pub ending_text: String,
    /// Changes of -[`MAX_RULE_DELTA`] to [`MAX_RULE_DELTA`] each.
    pub deltas: Deltas,
}

/// A rule as it is written and saved.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredRule {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) ending_text: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) deltas: BTreeMap<String, f64>,
}

impl TryFrom<StoredRule> for Rule {
    type Error = RuleError;

    fn try_from(written: StoredRule) -> Result<Self, RuleError> {
        let StoredRule { name, tags, ending_text, deltas } = written;
        let tags = tags.into_iter().map(|tag| {
            Tag::named(&tag)
                .ok_or_else(|| RuleError::UnknownTag { rule: name.clone(), tag: tag.chars().take(40).collect() })
        });
        let tags = tags.collect::<Result<Vec<_>, _>>()?;
        let deltas = deltas.into_iter().map(|(dimension, delta)| match Dimension::named(&dimension) {
            Some(dimension) => Ok((dimension, delta)),
            None => {
                Err(RuleError::UnknownDimension { rule: name.clone(), dimension: dimension.chars().take(40).collect() })
            }
        });
        let deltas = deltas.collect::<Result<Vec<_>, _>>()?;
        let rule = Self { tags, ending_text: ending_text.trim().to_owned(), deltas: Deltas::default(), name };
        // What is no number would be left out of the changes unnoticed.
        let bad = deltas.iter().find(|(_, delta)| delta.is_nan() || delta.abs() > MAX_RULE_DELTA);
        if let Some((dimension, delta)) = bad {
            return Err(RuleError::Delta { rule: rule.name, dimension: *dimension, delta: *delta });
        }
        let rule = Self { deltas: deltas.into_iter().collect(), ..rule };
        rule.check()?;
        Ok(rule)
    }
}

impl From<Rule> for StoredRule {
    fn from(rule: Rule) -> Self {
        Self {
            name: rule.name,
            tags: rule.tags.iter().map(|tag| tag.name().to_owned()).collect(),
            ending_text: rule.ending_text,
            deltas: rule.deltas.iter().map(|(dimension, delta)| (dimension.name().to_owned(), delta)).collect(),
        }
    }
}

impl Rule {
    /// A rule as somebody writes it: names of tags, names of feelings.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(
        name: &str,
        tags: impl IntoIterator<Item = impl Into<String>>,
        ending_text: &str,
        deltas: impl IntoIterator<Item = (String, f64)>,
    ) -> Result<Self, RuleError> {
        Self::try_from(StoredRule {
            name: name.to_owned(),
            tags: tags.into_iter().map(Into::into).collect(),
            ending_text: ending_text.to_owned(),
            deltas: deltas.into_iter().collect(),
        })
    }

    /// Whether it keeps within every limit.
    pub(crate) fn check(&self) -> Result<(), RuleError> {
        let rule = || self.name.clone();
        let chars = self.name.chars().count();
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if !(1..=MAX_RULE_NAME_CHARS).contains(&chars) || !self.name.chars().all(allowed) {
            return Err(RuleError::Name(self.name.chars().take(MAX_RULE_NAME_CHARS).collect()));
        }
        if !(1..=MAX_RULE_TAGS).contains(&self.tags.len()) {
            return Err(RuleError::Tags { rule: rule(), count: self.tags.len() });
        }
        let chars = self.ending_text.chars().count();
        if chars > MAX_ENDING_CHARS {
            return Err(RuleError::Length { rule: rule(), chars });
        }
        let marks = ["<|", "|>", "[INST]", "[/INST]"];
        if self.ending_text.contains(char::is_control) || marks.iter().any(|mark| self.ending_text.contains(mark)) {
            return Err(RuleError::Text { rule: rule() });
        }
        let too_much = |(_, delta): &(Dimension, f64)| delta.abs() > MAX_RULE_DELTA;
        if let Some((dimension, delta)) = self.deltas.iter().find(too_much) {
            return Err(RuleError::Delta { rule: rule(), dimension, delta });
        }
        if self.ending_text.trim().is_empty() && self.deltas.is_empty() {
            return Err(RuleError::Empty { rule: rule() });
        }
        Ok(())
    }

    /// Whether it answers to any of these tags.
    pub(crate) fn answers(&self, tags: &[Tag]) -> bool {
        self.tags.iter().any(|tag| tags.contains(tag))
    }
}
