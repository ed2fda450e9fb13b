use toml::Value as Toml;

use crate::Mind;
use crate::keys::{Key, section};
use crate::value::shown;

/// A number of `[mind]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Tunable {
    /// Its name.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// What it is now.
    pub value: f64,
}

/// The keys of `[mind]`, all of which are numbers.
fn keys() -> &'static [Key] {
    section("mind").map_or(&[], |section| &section.keys)
}

impl Mind {
    /// All of its numbers, in the order of the configuration.
    pub fn numbers(&self) -> Vec<Tunable> {
        let now = serde_json::to_value(self).unwrap_or_default();
        let tunable =
            |key: &'static Key| Some(Tunable { name: &key.name, about: &key.doc, value: now[&key.name].as_f64()? });
        keys().iter().filter_map(tunable).collect()
    }

    /// The same with other values for some numbers, each within the limits that the configuration file has.
    ///
    /// # Errors
    /// What is wrong with them, in words for whoever wrote them.
    pub fn with<'a>(&self, tuned: impl IntoIterator<Item = (&'a str, f64)>) -> Result<Self, String> {
        let mut json = serde_json::to_value(self).map_err(|error| error.to_string())?;
        for (name, value) in tuned {
            let Some(key) = keys().iter().find(|key| key.name == name) else {
                return Err(format!("there is no number `{}`", name.chars().take(40).collect::<String>()));
            };
            // What is whole may stand for either kind of number.
            let whole = value.fract() == 0.0 && value.abs() < f64::from(u32::MAX);
            let written = if whole { Toml::Integer(value as i64) } else { Toml::Float(value) };
            let checked = key.kind.check(&written);
            let checked = checked.ok_or_else(|| format!("`{name}` must be {}, not {}", key.kind, shown(&written)))?;
            if let Some(numbers) = json.as_object_mut() {
                numbers.insert(name.to_owned(), checked);
            }
        }
        let mind: Self = serde_json::from_value(json).map_err(|error| error.to_string())?;
        match mind.contradictions().into_iter().next() {
            Some((_, message)) => Err(message),
            None => Ok(mind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_changes_within_its_limits() {
        #[track_caller]
        fn check(name: &str, value: f64, want: Result<f64, &str>) {
            let changed = Mind::default().with([(name, value)]);
            let found = changed.as_ref().map_err(String::as_str).map(|mind| {
                let numbers = mind.numbers();
                let others = numbers.iter().zip(Mind::default().numbers()).filter(|(now, before)| *now != before);
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
        check("soup", 1.0, Err("there is no number `soup`"));
        check(
            "night_to_hour",
            1.0,
            Err("`mind.night_from_hour` and `mind.night_to_hour` are both 1: the night has no hours"),
        );
    }

    #[test]
    fn numbers_that_go_together_alone_are_set_together() {
        let night = Mind::default().with([("night_from_hour", 7.0), ("night_to_hour", 1.0)]).unwrap();
        assert_eq!((night.night_from_hour, night.night_to_hour), (7, 1));
    }

    #[test]
    fn every_key_is_a_number() {
        assert_eq!(Mind::default().numbers().len(), keys().len());
    }
}
