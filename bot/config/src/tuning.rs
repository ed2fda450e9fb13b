use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use toml::Value as Toml;

use crate::keys::{Key, section};
use crate::value::{Kind, shown};
use crate::{Gardener, Mind};

/// The numbers of the inner life, from the configuration or as a place has tuned them: all of `[mind]` and
/// `[gardener]`. The switches in those sections apply to every place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tuning {
    /// How minds change.
    pub mind: Mind,
    /// What is written between messages.
    pub gardener: Gardener,
}

/// A number of the inner life that a place can tune.
#[derive(Debug, Clone, PartialEq)]
pub struct Tunable {
    /// The key's name.
    pub name: &'static str,
    /// The key's documentation, for people.
    pub about: &'static str,
    /// The allowed values, for people: `a whole number from 0 to 23`.
    pub allowed: String,
    /// The current value.
    pub value: f64,
}

/// Returns the keys of a section that are numbers.
fn keys(name: &str) -> impl Iterator<Item = &'static Key> {
    let keys = section(name).map_or(&[][..], |section| &section.keys);
    keys.iter().filter(|key| matches!(key.kind, Kind::Integer(..) | Kind::Number(..)))
}

fn numbers(name: &str, now: &impl Serialize) -> Vec<Tunable> {
    let now = serde_json::to_value(now).unwrap_or_default();
    let tunable = |key: &'static Key| {
        let (allowed, value) = (key.kind.to_string(), now[&key.name].as_f64()?);
        Some(Tunable { name: &key.name, about: &key.doc, allowed, value })
    };
    keys(name).filter_map(tunable).collect()
}

/// Returns a section with those of the tuned numbers that belong to it.
fn changed<T: Serialize + DeserializeOwned>(name: &str, now: &T, tuned: &[(&str, f64)]) -> Result<T, String> {
    let mut json = serde_json::to_value(now).map_err(|error| error.to_string())?;
    for key in keys(name) {
        let Some((_, value)) = tuned.iter().find(|(name, _)| key.name == *name) else { continue };
        if let Some(section) = json.as_object_mut() {
            section.insert(key.name.clone(), checked(key, *value)?);
        }
    }
    serde_json::from_value(json).map_err(|error| error.to_string())
}

fn checked(key: &Key, value: f64) -> Result<Json, String> {
    // A whole number fits either kind of key.
    let whole = value.fract() == 0.0 && value.abs() < f64::from(u32::MAX);
    let written = if whole { Toml::Integer(value as i64) } else { Toml::Float(value) };
    let checked = key.kind.check(&written);
    checked.ok_or_else(|| format!("`{}` must be {}, not {}", key.name, key.kind, shown(&written)))
}

impl Tuning {
    /// Returns all numbers, in the order of the configuration.
    pub fn numbers(&self) -> Vec<Tunable> {
        let mut all = numbers("mind", &self.mind);
        all.extend(numbers("gardener", &self.gardener));
        all
    }

    /// Returns a copy with other values for some numbers, each within the limits of the configuration file. Counts that
    /// the installation has at 0 stay 0, and check-ins that it has off stay off. A place cannot raise the daily requests
    /// to the model above the installation's.
    ///
    /// # Errors
    /// A message for the person who set the numbers, which says what is wrong.
    pub fn with<'a>(&self, tuned: impl IntoIterator<Item = (&'a str, f64)>) -> Result<Self, String> {
        let tuned: Vec<(&str, f64)> = tuned.into_iter().collect();
        let known = |name: &str| ["mind", "gardener"].into_iter().flat_map(keys).any(|key| key.name == name);
        if let Some((name, _)) = tuned.iter().find(|(name, _)| !known(name)) {
            return Err(format!("there is no number `{}`", name.chars().take(40).collect::<String>()));
        }
        let mind = changed("mind", &self.mind, &tuned)?;
        if let Some((_, message)) = mind.contradictions().into_iter().next() {
            return Err(message);
        }
        Ok(Self { mind, gardener: changed("gardener", &self.gardener, &tuned)?.within(&self.gardener) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_changes_within_its_limits() {
        #[track_caller]
        fn check(name: &str, value: f64, want: Result<f64, &str>) {
            let changed = Tuning::default().with([(name, value)]);
            let found = changed.as_ref().map_err(String::as_str).map(|tuning| {
                let numbers = tuning.numbers();
                let others = numbers.iter().zip(Tuning::default().numbers()).filter(|(now, before)| *now != before);
                assert!(others.clone().all(|(now, _)| now.name == name));
                numbers.iter().find(|number| number.name == name).unwrap().value
            });
            assert_eq!(found, want);
        }
        check("dream_pressure", 0.25, Ok(0.25));
        check("dream_pressure", 0.0, Ok(0.0));
        check("reflection_hour", 7.0, Ok(7.0));
        check("reflection_hour", 7.5, Err("`reflection_hour` must be a whole number from 0 to 23, not 7.5"));
        check("energy_tired", 1.5, Err("`energy_tired` must be a number from 0 to 1, not 1.5"));
        check("energy_tired", f64::NAN, Err("`energy_tired` must be a number from 0 to 1, not nan"));
        check("notes_every", 3.0, Ok(3.0));
        check("rest_minutes", 0.0, Err("`rest_minutes` must be a whole number from 1 to 10080, not 0"));
        check("dreams", 1.0, Err("there is no number `dreams`"));
        check("soup", 1.0, Err("there is no number `soup`"));
        check(
            "night_to_hour",
            1.0,
            Err("`mind.night_from_hour` and `mind.night_to_hour` are both 1: the night has no hours"),
        );
    }

    #[test]
    fn numbers_that_depend_on_each_other_can_be_set_together() {
        let night = Tuning::default().with([("night_from_hour", 7.0), ("night_to_hour", 1.0)]).unwrap().mind;
        assert_eq!((night.night_from_hour, night.night_to_hour), (7, 1));
    }

    #[test]
    fn every_number_is_listed_once_with_its_allowed_values() {
        let numbers = Tuning::default().numbers();
        assert_eq!(numbers.iter().filter(|number| number.about.is_empty()).count(), 0);
        let mut names: Vec<&str> = numbers.iter().map(|number| number.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), numbers.len());
        let all_of_mind = section("mind").unwrap().keys.len();
        assert!(numbers.len() > all_of_mind, "{} of {all_of_mind}", numbers.len());
        let hour = numbers.iter().find(|number| number.name == "quiet_from").unwrap();
        assert_eq!((hour.allowed.as_str(), hour.value), ("a whole number from 0 to 23", 0.0));
    }

    #[test]
    fn a_place_cannot_enable_what_is_off_or_raise_the_request_limit() {
        let mut all = Tuning::default();
        all.gardener = Gardener { notes_every: 0, check_ins_from: 3, check_ins_to: 3, ..all.gardener };
        let more = [("notes_every", 5.0), ("piece_days", 1.0), ("asks_per_day", 1_000.0), ("check_ins_to", 12.0)];
        let place = all.with(more).unwrap().gardener;
        assert_eq!((place.notes_every, place.piece_days, place.asks_per_day), (0, 1, all.gardener.asks_per_day));
        assert_eq!((place.check_ins_from, place.check_ins_to), (3, 3));
        assert_eq!(all.with([("asks_per_day", 1.0)]).unwrap().gardener.asks_per_day, 1);
    }
}
