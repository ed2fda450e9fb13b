//! The rules of a realm, and what they make of a message's tags.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::bond::{Bond, Deltas};
use crate::help::Help;
use crate::rule::{MAX_RULES, Rule, RuleError, StoredRule};
use crate::tags::Tag;

/// The most texts that one message may add to a prompt. The texts of safety rules are always added.
pub const MAX_ENDINGS: usize = 3;

/// The most characters in those texts together.
pub const MAX_ENDINGS_CHARS: usize = 900;

const FILE: &str = include_str!("../rules/builtin.toml");

/// The origin of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Built in for safety: always in force.
    Safety,
    /// The realm's own.
    Realm,
    /// Built in; a realm may turn it off or replace it.
    BuiltIn,
}

/// A realm's changes to the rules: its own rules, and the built-in rules that it turned off. This is the saved form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RealmRules {
    /// The realm's own rules. A rule with the name of a built-in rule replaces it.
    pub own: Vec<Rule>,
    /// The names of the built-in rules that are turned off.
    pub off: Vec<String>,
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq)]
struct Standing {
    rule: Rule,
    origin: Origin,
    /// True if only safety rules apply while this rule matches.
    drop_act: bool,
    /// Tags that other rules ignore while this rule matches.
    silences: Vec<Tag>,
    help: Option<Help>,
}

/// The rules in force, in the order in which they apply: safety, the realm's own, then the other built-in ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules(Vec<Standing>);

/// What the tags of a message call for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchedRules {
    /// Texts for the end of this turn's prompt, safety first: at most [`MAX_ENDINGS`] and [`MAX_ENDINGS_CHARS`], but
    /// always those of the safety rules. `{{user}}` stands for the person's name.
    pub endings: Vec<String>,
    /// The changes of feelings by all rules together. [`Bond::apply`] limits them.
    pub deltas: Deltas,
    /// Help to show word for word below the reply, whatever the model says.
    pub help: Vec<Help>,
    /// True if the persona leaves its role. Then the prompt contains no style, no feelings and no mood.
    pub drop_act: bool,
    /// The names of the rules that matched, for `/why`.
    pub rules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(flatten)]
    written: StoredRule,
    #[serde(default)]
    safety: bool,
    #[serde(default)]
    drop_act: bool,
    #[serde(default)]
    silences: Vec<String>,
    help: Option<Help>,
}

static BUILT_IN: LazyLock<Vec<Standing>> =
    LazyLock::new(|| built_in(FILE).expect("a test reads the file of built-in rules"));

fn built_in(file: &str) -> Result<Vec<Standing>, Box<dyn std::error::Error>> {
    let file: File = toml::from_str(file)?;
    let standing = |entry: Entry| -> Result<Standing, RuleError> {
        let rule = Rule::try_from(entry.written)?;
        let silences = entry.silences.into_iter().map(|tag| {
            Tag::named(&tag).ok_or_else(|| RuleError::UnknownTag { rule: rule.name.clone(), tag: tag.clone() })
        });
        let silences = silences.collect::<Result<_, _>>()?;
        let origin = if entry.safety { Origin::Safety } else { Origin::BuiltIn };
        Ok(Standing { rule, origin, drop_act: entry.drop_act, silences, help: entry.help })
    };
    Ok(file.rule.into_iter().map(standing).collect::<Result<_, _>>()?)
}

impl Rules {
    /// Returns the built-in rules.
    pub fn builtin() -> Self {
        Self::in_order(BUILT_IN.clone())
    }

    /// Returns the built-in rules with a realm's changes.
    ///
    /// # Errors
    /// [`RuleError`] if the realm has too many rules, an invalid rule, two rules with one name, or changes a safety
    /// rule.
    pub fn with(realm: &RealmRules) -> Result<Self, RuleError> {
        if realm.own.len() > MAX_RULES {
            return Err(RuleError::TooMany(realm.own.len()));
        }
        let origin = |name: &str| BUILT_IN.iter().find(|rule| rule.rule.name == name).map(|rule| rule.origin);
        let mut rules = BUILT_IN.clone();
        for name in &realm.off {
            match origin(name) {
                Some(Origin::Safety) => return Err(RuleError::Safety(name.clone())),
                Some(_) => rules.retain(|standing| standing.rule.name != *name),
                None => return Err(RuleError::Unknown(name.clone())),
            }
        }
        for (index, rule) in realm.own.iter().enumerate() {
            rule.check()?;
            if origin(&rule.name) == Some(Origin::Safety) {
                return Err(RuleError::Safety(rule.name.clone()));
            }
            if realm.own.iter().take(index).any(|other| other.name == rule.name) {
                return Err(RuleError::Twice(rule.name.clone()));
            }
            rules.retain(|standing| standing.rule.name != rule.name);
            let rule = rule.clone();
            rules.push(Standing { rule, origin: Origin::Realm, drop_act: false, silences: Vec::new(), help: None });
        }
        Ok(Self::in_order(rules))
    }

    fn in_order(mut rules: Vec<Standing>) -> Self {
        rules.sort_by_key(|standing| standing.origin);
        Self(rules)
    }

    /// Iterates over the rules in force, in the order in which they apply.
    pub fn iter(&self) -> impl Iterator<Item = (&Rule, Origin)> {
        self.0.iter().map(|standing| (&standing.rule, standing.origin))
    }

    /// Returns what the tags of a message call for, given the bond with its author.
    pub fn matching(&self, tags: &[Tag], bond: &Bond) -> MatchedRules {
        let mut heard = tags.to_vec();
        if bond.is_minor() {
            heard.push(Tag::Minor);
        }
        let safety = || self.0.iter().filter(|standing| standing.origin == Origin::Safety);
        let matching: Vec<&Standing> = safety().filter(|standing| standing.rule.answers(&heard)).collect();
        let mut matched =
            MatchedRules { drop_act: matching.iter().any(|standing| standing.drop_act), ..MatchedRules::default() };
        let silenced: Vec<Tag> = matching.iter().flat_map(|standing| standing.silences.iter().copied()).collect();
        heard.retain(|tag| {
            let for_safety = safety().any(|standing| standing.rule.tags.contains(tag));
            for_safety || !(matched.drop_act || silenced.contains(tag))
        });
        for standing in self.0.iter().filter(|standing| standing.rule.answers(&heard)) {
            matched.take(standing);
        }
        matched
    }
}

impl MatchedRules {
    fn take(&mut self, standing: &Standing) {
        let Standing { rule, origin, help, .. } = standing;
        self.rules.push(rule.name.clone());
        self.deltas.extend(&rule.deltas);
        self.help.extend(help.filter(|help| !self.help.contains(help)));
        let chars: usize = self.endings.iter().chain([&rule.ending_text]).map(|text| text.chars().count()).sum();
        let room = self.endings.len() < MAX_ENDINGS && chars <= MAX_ENDINGS_CHARS;
        if !rule.ending_text.is_empty() && (room || *origin == Origin::Safety) {
            self.endings.push(rule.ending_text.clone());
        }
    }
}
