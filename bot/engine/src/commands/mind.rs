//! `/status`, `/rules` and `/tune`: shows how the persona feels here, and changes rules and numbers.

use azera_adapter::{Access, CommandAnswer};
use azera_affect::{Bond, Origin, Rule, Tag};
use azera_prompt::form_of;
use azera_types::{Dimension, PlaceKind, Timestamp};

use super::{CommandContext, charts, done, refused};
use crate::commands::Commands;
use crate::error::Error;
use crate::overrides::{Overrides, SavedOverrides};

/// Blocks of a full bar.
const BAR: usize = 10;

/// The word for the configured value.
const DEFAULT: &str = "default";

/// Explains what no place sets for itself.
const NOT_HERE: &str = "The configuration sets for all places whether I dream and keep a journal, and how many model calls a day may \
                        take. A persona's file sets its style blend. It can also set `notes_every` and `emotion_decay_rate`, and \
                        then its numbers apply.";

impl Commands {
    pub(super) async fn status_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let theme = match charts::theme(arguments) {
            Ok(theme) => theme,
            Err(why) => return Ok(refused(why.into())),
        };
        let (scope, now) = (at.place.scope(), self.services.clock.now());
        let persona = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?.persona;
        let bond = self.minds.bond(at.chat.persona.clone(), at.line.person.clone(), scope.clone()).await?;
        let Some(state) = self.minds.states.state(&at.chat.persona, &scope, now) else {
            return Ok(done(format!("{} has not talked here yet.", persona.name)));
        };
        let mut text = format!("**{}** feels {}.\n```\n", persona.name, state.mood);
        for (name, value) in charts::measures(&state) {
            line(&mut text, name, &bar(value), value);
        }
        text.push_str("```\n");
        let felt = felt(&bond);
        let name = at.line.name.as_str();
        let mut besides = match felt.as_str() {
            "" => format!("Towards {name}: nothing in particular.\n"),
            felt => format!("Towards {name}: {felt}.\n"),
        };
        for (what, when) in [("Last slept", state.last_dream), ("Last reflected", state.last_reflection)] {
            if let Some(when) = when {
                besides.push_str(&format!("{what} {}.\n", ago(when, now)));
            }
        }
        besides.push_str(&format!("Answered by {}.", self.services.model().info().name));
        text.push_str(&besides);
        let chart = charts::of_mind(&persona.name, &state, besides, theme);
        Ok(CommandAnswer { chart: Some(chart), ..done(text) })
    }

    pub(super) async fn rules_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can change the rules of a shared place.".into()));
        }
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, rest.trim()) {
            ("" | "list", "") => Ok(done(listed(self.overrides_of(at).await?.as_ref()) + self.too_small_for_rules())),
            ("add", rule) if !rule.is_empty() => self.add_rule(at, rule).await,
            ("test", text) if !text.is_empty() => self.test_rules(at, text).await,
            ("remove", name) if !name.is_empty() => self.remove_rule(at, name).await,
            ("restore", name) if !name.is_empty() => self.restore_rule(at, name).await,
            _ => Ok(refused(
                "`/rules list`, `/rules test TEXT`, `/rules remove NAME`, `/rules restore NAME`, or `/rules add NAME TAGS TEXT`, \
                 as in `/rules add jokes joke,good_news playfulness=0.1 Laugh along with {{user}}.`"
                    .into(),
            )),
        }
    }

    async fn add_rule(&self, at: &CommandContext<'_>, written: &str) -> Result<CommandAnswer, Error> {
        let rule = match read_rule(written) {
            Ok(rule) => rule,
            Err(why) => return Ok(refused(why)),
        };
        let name = rule.name.clone();
        self.change(
            at,
            format!(
                "The rule `{name}` holds from now on; `/rules remove {name}` takes it back.{}",
                self.too_small_for_rules()
            ),
            |saved| {
                saved.rules.own.retain(|own| own.name != name);
                saved.rules.own.push(rule);
            },
        )
        .await
    }

    /// Returns a note for models too small to get the texts of rules.
    fn too_small_for_rules(&self) -> &'static str {
        match form_of(self.services.model().info()).guidance {
            true => "",
            false => {
                "\nThe present model is too small to follow the texts of rules, so its prompt leaves them out. Rules still change feelings, \
                 and help lines are still shown. A larger model (`/model list`) also gets the texts."
            }
        }
    }

    async fn remove_rule(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        let saved = self.overrides_of(at).await?.saved.clone().unwrap_or_default();
        if let Some(own) = saved.rules.own.iter().find(|own| own.name == name) {
            let reply_text = format!("The rule `{name}` is gone. It was: `/rules add {}`", as_written(own));
            return self.change(at, reply_text, |saved| saved.rules.own.retain(|own| own.name != name)).await;
        }
        if saved.rules.off.iter().any(|off| off == name) {
            return Ok(refused(format!("No rule `{name}` is in force here.")));
        }
        let reply_text =
            format!("The rule `{name}` does not hold here any more; `/rules restore {name}` brings it back.");
        self.change(at, reply_text, |saved| saved.rules.off.push(name.to_owned())).await
    }

    async fn restore_rule(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        if !self.overrides_of(at).await?.off().iter().any(|off| off == name) {
            return Ok(refused(format!("No built-in rule `{name}` was removed here.")));
        }
        let reply_text = format!("The rule `{name}` holds again.");
        self.change(at, reply_text, |saved| saved.rules.off.retain(|off| off != name)).await
    }

    /// Shows what a message would call for, without changing a bond or storing anything.
    async fn test_rules(&self, at: &CommandContext<'_>, text: &str) -> Result<CommandAnswer, Error> {
        if self.judge.classifiers.now().is_none() {
            return Ok(refused("I am still learning to classify messages. Try again in a minute.".into()));
        }
        let tags = self.judge.tags_of(text).await?;
        let matched = self.overrides_of(at).await?.rules.matching(&tags, &Bond::new());
        let mut reply_text = match tags.as_slice() {
            [] => "No tag fits this message.".to_owned(),
            tags => format!("It is: {}.", names(tags)),
        };
        if !matched.rules.is_empty() {
            reply_text.push_str(&format!("\nRules: {}.", matched.rules.join(", ")));
        }
        let changes: Vec<String> =
            matched.deltas.iter().map(|(dimension, delta)| format!("{dimension} {delta:+}")).collect();
        if !changes.is_empty() {
            reply_text.push_str(&format!("\nFeelings: {}.", changes.join(", ")));
        }
        for ending in &matched.endings {
            reply_text.push_str(&format!("\n> {ending}"));
        }
        Ok(done(reply_text))
    }

    pub(super) async fn tune_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can change these numbers in a shared place.".into()));
        }
        let overrides = self.overrides_of(at).await?;
        let mut words = arguments.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, ..) => Ok(done(numbers(&overrides))),
            (Some(name), None, _) => Ok(match overrides.tuning.numbers().into_iter().find(|it| it.name == name) {
                Some(number) => {
                    done(format!("`{name}` is {}. {} {}.", number.value, number.about, capital(&number.allowed)))
                }
                None => refused(format!("There is no number `{name}`; `/tune` lists them.")),
            }),
            (Some(name), Some(DEFAULT), None) => {
                if !overrides.is_tuned(name) {
                    return Ok(refused(format!("`{name}` is not tuned here.")));
                }
                let reply_text = format!("`{name}` has the configured value again.");
                self.change(at, reply_text, |saved| {
                    saved.tuned.remove(name);
                })
                .await
            }
            (Some(name), Some(value), None) => {
                let Ok(value) = value.parse::<f64>() else {
                    return Ok(refused(format!("`/tune {name} NUMBER`, or `/tune {name} {DEFAULT}`.")));
                };
                let reply_text =
                    format!("`{name}` is {value} here from now on; `/tune {name} {DEFAULT}` takes it back.");
                self.change(at, reply_text, |saved| {
                    saved.tuned.insert(name.to_owned(), value);
                })
                .await
            }
            _ => Ok(refused("`/tune`, `/tune NAME`, `/tune NAME NUMBER` or `/tune NAME default`.".into())),
        }
    }

    pub(super) async fn overrides_of(&self, at: &CommandContext<'_>) -> Result<std::sync::Arc<Overrides>, Error> {
        self.minds.overrides(at.platform, &at.place.scope()).await
    }

    async fn change(
        &self,
        at: &CommandContext<'_>,
        reply_text: String,
        change: impl FnOnce(&mut SavedOverrides),
    ) -> Result<CommandAnswer, Error> {
        Ok(match self.minds.change_overrides(at.platform, &at.place.scope(), change).await? {
            Ok(()) => done(reply_text),
            Err(why) => refused(format!("Nothing was changed: {why}.")),
        })
    }
}

/// Returns true if the person may configure the place: in a direct message the person, in other places admins.
pub(super) fn may_configure_place(at: &CommandContext<'_>) -> bool {
    matches!(at.place.kind, PlaceKind::Dm(_)) || at.access >= Access::Admin
}

/// Parses a rule from one line: its name, tags separated by commas, changes of the bond such as `warmth=0.1`, and its
/// text.
fn read_rule(written: &str) -> Result<Rule, String> {
    let (name, rest) = written.split_once(char::is_whitespace).unwrap_or((written, ""));
    let (tags, rest) = rest.trim_start().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let mut rest = rest.trim_start();
    let mut deltas = Vec::new();
    while let Some((dimension, delta)) = rest.split_whitespace().next().and_then(|word| word.split_once('=')) {
        let Ok(value) = delta.parse::<f64>() else { break };
        deltas.push((dimension.to_owned(), value));
        rest = rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    }
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    Rule::new(name, tags, rest, deltas).map_err(|error| format!("That is not a rule: {error}."))
}

/// Formats a rule as [`read_rule`] reads it.
fn as_written(rule: &Rule) -> String {
    let mut text = format!("{} {}", rule.name, rule.tags.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(","));
    for (dimension, delta) in rule.deltas.iter() {
        text.push_str(&format!(" {dimension}={delta}"));
    }
    if !rule.ending_text.is_empty() {
        text.push_str(&format!(" {}", rule.ending_text));
    }
    text
}

fn listed(overrides: &Overrides) -> String {
    let mut text = String::from("Rules in force here. A message of a tag brings the text into that answer's prompt:\n");
    for (rule, origin) in overrides.rules.iter() {
        let origin = match origin {
            Origin::Safety => ", for safety: always there",
            Origin::Realm => ", your own",
            Origin::BuiltIn => "",
        };
        text.push_str(&format!("- `{}`{origin} ({}): {}\n", rule.name, names(&rule.tags), what_it_does(rule)));
    }
    if !overrides.off().is_empty() {
        text.push_str(&format!("Removed: {}.\n", overrides.off().join(", ")));
    }
    text
}

fn what_it_does(rule: &Rule) -> String {
    let changes = rule.deltas.iter().map(|(dimension, delta)| format!("{dimension} {delta:+}"));
    let ending = Some(rule.ending_text.clone()).filter(|text| !text.is_empty());
    ending.into_iter().chain(changes).collect::<Vec<_>>().join("; ")
}

fn names(tags: &[Tag]) -> String {
    tags.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(", ")
}

/// Lists all numbers, and marks those that the place changed.
fn numbers(overrides: &Overrides) -> String {
    let mut text = String::from("`/tune NAME` says what a number is, `/tune NAME NUMBER` changes it here:\n```\n");
    for number in overrides.tuning.numbers() {
        let changed = if overrides.is_tuned(number.name) { "  (tuned here)" } else { "" };
        text.push_str(&format!("{:<26} {}{changed}\n", number.name, number.value));
    }
    text + "```\n" + NOT_HERE
}

/// Capitalises the first letter.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn line(text: &mut String, name: &str, bar: &str, value: f64) {
    text.push_str(&format!("{name:<10} {bar} {value:.2}\n"));
}

/// Draws a share from 0 to 1 as a row of blocks.
fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// Lists the dimensions of a bond, the strongest first.
fn felt(bond: &Bond) -> String {
    let mut felt: Vec<(Dimension, f64)> = Dimension::ALL
        .into_iter()
        .map(|dimension| (dimension, bond.get(dimension)))
        .filter(|(_, it)| *it != 0.0)
        .collect();
    felt.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    felt.iter().map(|(dimension, value)| format!("{dimension} {value:+.2}")).collect::<Vec<_>>().join(", ")
}

/// Describes in words how long ago something was.
fn ago(when: Timestamp, now: Timestamp) -> String {
    let minutes = now.duration_since(when).as_mins();
    match minutes {
        ..1 => "just now".into(),
        1 => "a minute ago".into(),
        2..60 => format!("{minutes} minutes ago"),
        60..120 => "an hour ago".into(),
        120..2_880 => format!("{} hours ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1_440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_rule_parses_to_the_same_rule() {
        #[track_caller]
        fn check(written: &str, want: Result<(), &str>) {
            let rule = read_rule(written);
            assert_eq!(rule.as_ref().map(drop).map_err(String::as_str), want);
            if let Ok(rule) = rule {
                assert_eq!(as_written(&rule), written);
            }
        }
        check("jokes joke,good_news playfulness=0.1 Laugh along with {{user}}.", Ok(()));
        check("thanks gratitude warmth=0.2", Ok(()));
        check("sums code_help Say that 1=1 holds.", Ok(()));
        check(
            "sums code_help 1=1 is a sum.",
            Err(
                "That is not a rule: the rule `sums` changes \"1\"; there are warmth, trust, playfulness, tension, irritation, concern.",
            ),
        );
        check("jokes", Err("That is not a rule: the rule `jokes` must name 1 to 8 tags, not 0."));
    }

    #[test]
    fn elapsed_time_is_described_in_words() {
        #[track_caller]
        fn check(seconds: i64, want: &str) {
            let now = Timestamp::UNIX_EPOCH;
            let when = Timestamp::from_second(-seconds).unwrap();
            assert_eq!(ago(when, now), want);
        }
        check(-30, "just now");
        check(59, "just now");
        check(60, "a minute ago");
        check(3_599, "59 minutes ago");
        check(3_600, "an hour ago");
        check(47 * 3_600, "47 hours ago");
        check(48 * 3_600, "2 days ago");
    }

    #[test]
    fn the_length_of_a_bar_follows_its_share() {
        assert_eq!([bar(0.0), bar(0.5), bar(2.0)], ["░░░░░░░░░░", "█████░░░░░", "██████████"]);
    }
}
