//! What a place made of how its personas are: numbers of their minds, rules of its own, whose help lines are shown. Kept in the record, and here as what
//! minds go by. Like a mind, customs belong to the public places of a realm together, or to a private chat or a direct message
//! alone: what a rule says stands in prompts, and shows where it holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_affect::{MindParams, RealmRules, Rules};
use azera_config::Tuning;
use azera_types::{PlatformId, Scope};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::background::PersonaPlace;
use crate::config::Garden;
use crate::engine::Engine;
use crate::error::Error;

/// Places whose customs are held at once; beyond that they are read from the record anew.
const MAX_HELD: usize = 10_000;

/// Places whose time zone is known at once; beyond that it is asked anew.
const MAX_ZONES: usize = 100_000;

/// Customs as they are saved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SavedOverrides {
    /// Numbers of `[mind]` and `[gardener]` that are others here.
    pub(crate) tuned: BTreeMap<String, f64>,
    /// Rules.
    pub(crate) rules: RealmRules,
    /// The language and country that help lines are for, such as `en-GB`, or [`NO_COUNTRY`].
    pub(crate) locale: Option<String>,
}

/// The locale of a place whose people live in many countries.
pub(crate) const NO_COUNTRY: &str = "none";

/// Customs in force.
pub(crate) struct Overrides {
    /// The numbers of the inner life.
    pub(crate) tuning: Tuning,
    /// What minds go by, of these.
    pub(crate) params: Arc<MindParams>,
    /// What is written between messages, by these.
    pub(crate) garden: Arc<Garden>,
    /// What messages call for.
    pub(crate) rules: Rules,
    /// As they are saved, whatever of it holds; `None` if that cannot be read.
    pub(crate) saved: Option<SavedOverrides>,
}

impl Overrides {
    /// What the saved ones come to; an error says what is wrong with them.
    fn of(base: &Tuning, zone: TimeZone, saved: SavedOverrides) -> Result<Self, String> {
        let tuning = base.with(saved.tuned.iter().map(|(name, value)| (name.as_str(), *value)))?;
        for number in tuning.numbers() {
            if let Some(wanted) = saved.tuned.get(number.name).filter(|wanted| **wanted != number.value) {
                let (name, most) = (number.name, number.value);
                return Err(format!("`{name}` cannot be {wanted}, whoever runs me allows {most}"));
            }
        }
        let rules = Rules::with(&saved.rules).map_err(|error| error.to_string())?;
        Ok(Self::by(tuning, zone, rules, Some(saved)))
    }

    fn by(tuning: Tuning, zone: TimeZone, rules: Rules, saved: Option<SavedOverrides>) -> Self {
        let params = Arc::new(MindParams { constants: tuning.mind.clone(), zone });
        let garden = Arc::new(Garden::from(&tuning.gardener));
        Self { tuning, params, garden, rules, saved }
    }

    /// As much of the saved ones as still holds: the configuration may be another by now, or the version.
    fn holding(base: &Tuning, zone: TimeZone, saved: Option<SavedOverrides>) -> Self {
        let mut tuning = base.clone();
        let mut rules = RealmRules::default();
        if let Some(saved) = &saved {
            let tuned = saved.tuned.iter().map(|(name, value)| (name.as_str(), *value));
            match base.with(tuned) {
                Ok(tuned) => tuning = tuned,
                Err(why) => tracing::warn!(why, "what was tuned in a place does not hold any more"),
            }
            let alone = |own, off| Rules::with(&RealmRules { own, off });
            for rule in &saved.rules.own {
                match alone(vec![rule.clone()], Vec::new()) {
                    Ok(_) => rules.own.push(rule.clone()),
                    Err(_) => tracing::warn!("a rule of a place does not hold any more"),
                }
            }
            let still = |name: &&String| alone(Vec::new(), vec![(*name).clone()]).is_ok();
            rules.off = saved.rules.off.iter().filter(still).cloned().collect();
        }
        let rules = Rules::with(&rules).unwrap_or_else(|_| Rules::builtin());
        Self::by(tuning, zone, rules, saved)
    }
}

impl Overrides {
    /// Whether a number is another here.
    pub(crate) fn is_tuned(&self, name: &str) -> bool {
        self.saved.as_ref().is_some_and(|saved| saved.tuned.contains_key(name))
    }

    /// The locale that help lines are for, if one was chosen here or else for the installation.
    pub(crate) fn locale<'a>(&'a self, installation: Option<&'a str>) -> Option<&'a str> {
        let chosen = self.saved.as_ref().and_then(|saved| saved.locale.as_deref());
        chosen.or(installation).filter(|locale| *locale != NO_COUNTRY)
    }

    /// The built-in rules that were taken out.
    pub(crate) fn off(&self) -> &[String] {
        self.saved.as_ref().map_or(&[], |saved| &saved.rules.off)
    }
}

type Where = (PlatformId, Scope);

/// The customs of every place that was asked for, and what time it is there.
#[derive(Default)]
pub(crate) struct OverrideCache {
    overrides: Mutex<HashMap<Where, Arc<Overrides>>>,
    zones: Mutex<HashMap<Where, TimeZone>>,
    /// Held while customs are changed, from reading them on.
    changing: tokio::sync::Mutex<()>,
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OverrideCache {
    fn put(&self, of: Where, overrides: &Arc<Overrides>) {
        let mut held = lock(&self.overrides);
        if held.len() >= MAX_HELD {
            held.clear();
        }
        held.insert(of, overrides.clone());
    }

    /// What the record has may be forgotten by now.
    pub(crate) fn clear(&self) {
        lock(&self.overrides).clear();
    }
}

impl Engine {
    /// The customs of a place.
    pub(crate) async fn overrides(&self, platform: &PlatformId, place: &Scope) -> Result<Arc<Overrides>, Error> {
        let of = (platform.clone(), place.clone());
        if let Some(held) = lock(&self.0.overrides.overrides).get(&of) {
            return Ok(held.clone());
        }
        let _changing = self.0.overrides.changing.lock().await;
        self.read_overrides(of).await
    }

    async fn read_overrides(&self, of: Where) -> Result<Arc<Overrides>, Error> {
        let (platform, place) = of.clone();
        let json = self.blocking(move |memory| memory.overrides(&platform, &place)).await?;
        let saved = match json.map(serde_json::from_value::<SavedOverrides>) {
            None => Some(SavedOverrides::default()),
            Some(Ok(saved)) => Some(saved),
            Some(Err(error)) => {
                tracing::warn!(place = %of.1, %error, "the customs of a place cannot be read");
                None
            }
        };
        let zone = lock(&self.0.overrides.zones).get(&of).cloned().unwrap_or_else(|| self.0.params.zone.clone());
        let overrides = Arc::new(Overrides::holding(&self.0.tuning, zone, saved));
        self.0.overrides.put(of, &overrides);
        Ok(overrides)
    }

    /// Changes the customs of a place, and gives its minds at once what they go by; an inner error says why nothing was changed.
    pub(crate) async fn change_overrides(
        &self,
        platform: &PlatformId,
        place: &Scope,
        change: impl FnOnce(&mut SavedOverrides),
    ) -> Result<Result<(), String>, Error> {
        let of = (platform.clone(), place.clone());
        let _changing = self.0.overrides.changing.lock().await;
        let before = self.read_overrides(of.clone()).await?;
        let Some(mut saved) = before.saved.clone() else {
            return Ok(Err("what was chosen here before cannot be read by this version".into()));
        };
        change(&mut saved);
        let overrides = match Overrides::of(&self.0.tuning, before.params.zone.clone(), saved) {
            Ok(overrides) => Arc::new(overrides),
            Err(why) => return Ok(Err(why)),
        };
        let json = serde_json::to_value(&overrides.saved).map_err(|_| Error::Interrupted)?;
        let (on, at) = of.clone();
        self.blocking(move |memory| memory.set_overrides(&on, &at, &json)).await?;
        self.0.overrides.put(of, &overrides);
        self.0.minds.follow(place, &overrides.params, self.0.clock.now());
        self.0.agenda.follow(platform, place, &overrides.garden);
        Ok(Ok(()))
    }

    /// The mind of a persona goes by the customs of its place, in this time zone.
    pub(crate) async fn apply_overrides(&self, home: &PersonaPlace, zone: TimeZone) -> Result<(), Error> {
        let of = (home.platform.clone(), home.place.clone());
        let _changing = self.0.overrides.changing.lock().await;
        {
            let mut zones = lock(&self.0.overrides.zones);
            if zones.len() >= MAX_ZONES {
                zones.clear();
            }
            zones.insert(of.clone(), zone.clone());
        }
        let held = lock(&self.0.overrides.overrides).get(&of).filter(|held| held.params.zone == zone).cloned();
        let overrides = match held {
            Some(overrides) => overrides,
            None => self.read_overrides(of).await?,
        };
        self.0.minds.follows(&home.persona, &home.place, &overrides.params, self.0.clock.now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use azera_affect::Rule;

    use super::*;

    #[test]
    fn what_holds_no_more_is_left_out_and_kept_for_a_version_that_knows_it() {
        let rule = Rule::new("jokes", ["joke"], "Laugh along.", []).unwrap();
        let saved = SavedOverrides {
            tuned: [("soup".to_owned(), 1.0)].into(),
            rules: RealmRules { own: vec![rule], off: vec!["a_rule_of_old".into(), "insult".into()] },
            locale: None,
        };
        assert!(Overrides::of(&Tuning::default(), TimeZone::UTC, saved.clone()).is_err());
        let overrides = Overrides::holding(&Tuning::default(), TimeZone::UTC, Some(saved.clone()));
        let names: Vec<&str> = overrides.rules.iter().map(|(rule, _)| rule.name.as_str()).collect();
        assert!(names.contains(&"jokes") && !names.contains(&"insult"));
        assert_eq!(overrides.tuning, Tuning::default());
        assert_eq!(overrides.saved, Some(saved));
    }

    #[test]
    fn what_the_installation_came_to_allow_no_more_of_is_cut_and_the_rest_holds() {
        let tuned =
            [("asks_per_day".to_owned(), 40.0), ("notes_every".to_owned(), 3.0), ("energy_tired".to_owned(), 0.5)];
        let saved = SavedOverrides { tuned: tuned.into(), ..SavedOverrides::default() };
        let mut base = Tuning::default();
        assert_eq!(Overrides::of(&base, TimeZone::UTC, saved.clone()).ok().map(|it| it.garden.per_day), Some(40));
        base.gardener.asks_per_day = 10;
        let overrides = Overrides::holding(&base, TimeZone::UTC, Some(saved.clone()));
        assert_eq!((overrides.garden.per_day, overrides.garden.notes_every), (10, 3));
        assert_eq!(overrides.params.constants.energy_tired, 0.5);
        let refused = Overrides::of(&base, TimeZone::UTC, saved).err();
        assert_eq!(refused.as_deref(), Some("`asks_per_day` cannot be 40, whoever runs me allows 10"));
        // Whoever switched it all off is asked for nothing by what a place tuned.
        base.gardener.enabled = false;
        let garden = Garden::from(&base.with([("notes_every", 3.0)]).unwrap().gardener);
        assert_eq!((garden.notes_every, garden.diary_messages, garden.check_in_hours), (0, 0, (0, 0)));
    }
}
