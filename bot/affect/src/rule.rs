//! One rule, and the limits of what it may contain.

use std::collections::BTreeMap;

use azera_types::Dimension;
use serde::{Deserialize, Serialize};

use crate::bond::Deltas;
use crate::tags::Tag;

/// The most rules that a realm may define.
pub const MAX_RULES: usize = 64;

/// The longest name of a rule, in characters.
pub const MAX_RULE_NAME_CHARS: usize = 48;

/// The most tags in one rule.
pub const MAX_RULE_TAGS: usize = 8;

/// The longest text of a rule, in characters. Small models read it in every turn that the rule matches.
pub const MAX_ENDING_CHARS: usize = 400;

/// The most that one rule may change one feeling. The configuration limits the total change per message separately.
pub const MAX_RULE_DELTA: f64 = 0.5;

/// The reasons to reject a rule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// The name is not allowed.
    #[error("a rule's name is 1 to {MAX_RULE_NAME_CHARS} of a-z, 0-9, _ and -, not {0:?}")]
    Name(String),
    /// The rule has no tag, or too many.
    #[error("the rule `{rule}` must name 1 to {MAX_RULE_TAGS} tags, not {count}")]
    Tags {
        /// The rule's name.
        rule: String,
        /// The number of tags.
        count: usize,
    },
    /// A tag does not exist.
    #[error("the rule `{rule}` names the tag {tag:?}; there are {}", known_tags())]
    UnknownTag {
        /// The rule's name.
        rule: String,
        /// The tag.
        tag: String,
    },
    /// A feeling does not exist.
    #[error("the rule `{rule}` changes {dimension:?}; there are {}", known_dimensions())]
    UnknownDimension {
        /// The rule's name.
        rule: String,
        /// The feeling.
        dimension: String,
    },
    /// A change is out of range.
    #[error("the rule `{rule}` changes {dimension} by {delta}; it must be from -{MAX_RULE_DELTA} to {MAX_RULE_DELTA}")]
    Delta {
        /// The rule's name.
        rule: String,
        /// The feeling.
        dimension: Dimension,
        /// The change.
        delta: f64,
    },
    /// The text is too long.
    #[error("the text of the rule `{rule}` has {chars} characters; at most {MAX_ENDING_CHARS} are allowed")]
    Length {
        /// The rule's name.
        rule: String,
        /// The text's length in characters.
        chars: usize,
    },
    /// The text contains a line break, another control character or a mark of a chat template.
    #[error(
        "the text of the rule `{rule}` must stand on one line, without control characters and marks such as <|im_start|>"
    )]
    Text {
        /// The rule's name.
        rule: String,
    },
    /// The rule does nothing.
    #[error("the rule `{rule}` does nothing: give it an ending_text, or feelings to change")]
    Empty {
        /// The rule's name.
        rule: String,
    },
    /// Two rules have the same name.
    #[error("there are two rules `{0}`")]
    Twice(String),
    /// The realm has too many rules.
    #[error("a realm may have {MAX_RULES} rules of its own at most, not {0}")]
    TooMany(usize),
    /// The rule is a safety rule, which nobody can change or turn off.
    #[error(
        "`{0}` is a safety rule: it can be neither changed nor turned off. Add a rule of another name for the same tag"
    )]
    Safety(String),
    /// No rule with this name can be turned off.
    #[error("there is no built-in rule `{0}` to turn off")]
    Unknown(String),
}

impl RuleError {
    /// Returns true if the same rule may be accepted later with nothing changed. This is always false.
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

/// What a message's tags call for: a text at the end of that turn's prompt, and changes of the feelings towards the
/// person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredRule", into = "StoredRule")]
pub struct Rule {
    /// The name: 1 to [`MAX_RULE_NAME_CHARS`] of `a-z`, `0-9`, `_` and `-`.
    pub name: String,
    /// The tags: 1 to [`MAX_RULE_TAGS`]. The rule matches a message that has any of them.
    pub tags: Vec<Tag>,
    /// One line of at most [`MAX_ENDING_CHARS`] characters. It may be empty if the rule changes a feeling. `{{user}}`
    /// stands for the person's name.
    pub ending_text: String,
    /// Changes of feelings, each from -[`MAX_RULE_DELTA`] to [`MAX_RULE_DELTA`].
    pub deltas: Deltas,
}

/// A rule in its written and saved form.
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
        // Checked here, because [`Deltas`] would silently ignore a change that is not a number.
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
    /// Creates a rule from names of tags and feelings, as people write it.
    ///
    /// # Errors
    /// A [`RuleError`] that says what is wrong.
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

    /// Checks every limit.
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

    /// Returns true if the rule has any of these tags.
    pub(crate) fn answers(&self, tags: &[Tag]) -> bool {
        self.tags.iter().any(|tag| tags.contains(tag))
    }
}
