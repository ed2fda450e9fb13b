//! Overrides of a place: numbers of its minds, rules of its own, and whose help lines are shown. The record stores
//! them; a cache holds them ready for use.
//!
//! Like a mind, overrides belong to the public channels of a realm together, to one private chat, or to one direct
//! message. The text of a rule stands in prompts, so it may only show where the rule holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_affect::{MindParams, RealmRules, Rules};
use azera_config::Tuning;
use azera_types::{PlatformId, Scope};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::background::PersonaPlace;
use crate::config::Garden;
use crate::error::Error;
use crate::minds::MindService;

/// Maximum number of places with cached overrides; beyond that the cache is emptied.
const MAX_CACHED: usize = 10_000;

/// Maximum number of places with a cached time zone; beyond that the cache is emptied.
const MAX_ZONES: usize = 100_000;

/// Overrides as the record stores them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SavedOverrides {
    /// Changed numbers of `[mind]` and `[gardener]`.
    pub(crate) tuned: BTreeMap<String, f64>,
    /// Rules of the place, and built-in rules turned off.
    pub(crate) rules: RealmRules,
    /// The language and country of the help lines, such as `en-GB`, or [`NO_COUNTRY`].
    pub(crate) locale: Option<String>,
}

/// The locale of a place whose people live in many countries.
pub(crate) const NO_COUNTRY: &str = "none";

/// Overrides ready for use.
pub(crate) struct Overrides {
    /// All numbers of `[mind]` and `[gardener]`, as they apply here.
    pub(crate) tuning: Tuning,
    /// Parameters of minds.
    pub(crate) params: Arc<MindParams>,
    /// Settings of background jobs.
    pub(crate) garden: Arc<Garden>,
    /// Rules that apply here.
    pub(crate) rules: Rules,
    /// The stored overrides, including what no longer applies; `None` if they cannot be read.
    pub(crate) saved: Option<SavedOverrides>,
}

impl Overrides {
    /// Applies stored overrides to `base`. The error says which of them is not allowed.
    fn checked(base: &Tuning, zone: TimeZone, saved: SavedOverrides) -> Result<Self, String> {
        let tuning = base.with(saved.tuned.iter().map(|(name, value)| (name.as_str(), *value)))?;
        for number in tuning.numbers() {
            if let Some(wanted) = saved.tuned.get(number.name).filter(|wanted| **wanted != number.value) {
                let (name, most) = (number.name, number.value);
                return Err(format!("`{name}` cannot be {wanted}; the configuration allows {most}"));
            }
        }
        let rules = Rules::with(&saved.rules).map_err(|error| error.to_string())?;
        Ok(Self::from_parts(tuning, zone, rules, Some(saved)))
    }

    fn from_parts(tuning: Tuning, zone: TimeZone, rules: Rules, saved: Option<SavedOverrides>) -> Self {
        let params = Arc::new(MindParams { constants: tuning.mind.clone(), zone });
        let garden = Arc::new(Garden::from(&tuning.gardener));
        Self { tuning, params, garden, rules, saved }
    }

    /// Applies those of the stored overrides that are still allowed: the configuration or the version may have changed
    /// since.
    fn still_valid(base: &Tuning, zone: TimeZone, saved: Option<SavedOverrides>) -> Self {
        let mut tuning = base.clone();
        let mut rules = RealmRules::default();
        if let Some(saved) = &saved {
            let tuned = saved.tuned.iter().map(|(name, value)| (name.as_str(), *value));
            match base.with(tuned) {
                Ok(tuned) => tuning = tuned,
                Err(why) => tracing::warn!(why, "numbers that a place changed no longer apply"),
            }
            let alone = |own, off| Rules::with(&RealmRules { own, off });
            for rule in &saved.rules.own {
                match alone(vec![rule.clone()], Vec::new()) {
                    Ok(_) => rules.own.push(rule.clone()),
                    Err(_) => tracing::warn!("a rule of a place no longer applies"),
                }
            }
            let still = |name: &&String| alone(Vec::new(), vec![(*name).clone()]).is_ok();
            rules.off = saved.rules.off.iter().filter(still).cloned().collect();
        }
        let rules = Rules::with(&rules).unwrap_or_else(|_| Rules::builtin());
        Self::from_parts(tuning, zone, rules, saved)
    }
}

impl Overrides {
    /// Returns true if the place changed this number.
    pub(crate) fn is_tuned(&self, name: &str) -> bool {
        self.saved.as_ref().is_some_and(|saved| saved.tuned.contains_key(name))
    }

    /// Returns the locale of the help lines, if the place or else the installation chose one.
    pub(crate) fn locale<'a>(&'a self, installation: Option<&'a str>) -> Option<&'a str> {
        let chosen = self.saved.as_ref().and_then(|saved| saved.locale.as_deref());
        chosen.or(installation).filter(|locale| *locale != NO_COUNTRY)
    }

    /// Returns the built-in rules that were turned off.
    pub(crate) fn off(&self) -> &[String] {
        self.saved.as_ref().map_or(&[], |saved| &saved.rules.off)
    }
}

type CacheKey = (PlatformId, Scope);

/// The overrides and time zones of places that were needed since the start.
#[derive(Default)]
pub(crate) struct OverrideCache {
    overrides: Mutex<HashMap<CacheKey, Arc<Overrides>>>,
    zones: Mutex<HashMap<CacheKey, TimeZone>>,
    /// Held while overrides are read and changed.
    changing: tokio::sync::Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OverrideCache {
    fn put(&self, of: CacheKey, overrides: &Arc<Overrides>) {
        let mut cached = lock(&self.overrides);
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(of, overrides.clone());
    }

    /// Returns the time zone of a place, if the platform was asked for it.
    pub(crate) fn zone(&self, platform: &PlatformId, place: &Scope) -> Option<TimeZone> {
        lock(&self.zones).get(&(platform.clone(), place.clone())).cloned()
    }

    /// Keeps the time zone of a place.
    pub(crate) fn note_zone(&self, platform: &PlatformId, place: &Scope, zone: &TimeZone) {
        let mut zones = lock(&self.zones);
        if zones.len() >= MAX_ZONES {
            zones.clear();
        }
        zones.insert((platform.clone(), place.clone()), zone.clone());
    }

    /// Empties the cache, because the record may have forgotten overrides.
    pub(crate) fn clear(&self) {
        lock(&self.overrides).clear();
    }
}

impl MindService {
    /// Returns the overrides of a place.
    pub(crate) async fn overrides(&self, platform: &PlatformId, place: &Scope) -> Result<Arc<Overrides>, Error> {
        let of = (platform.clone(), place.clone());
        if let Some(cached) = lock(&self.cache.overrides).get(&of) {
            return Ok(cached.clone());
        }
        let _changing = self.cache.changing.lock().await;
        self.read_overrides(of).await
    }

    async fn read_overrides(&self, of: CacheKey) -> Result<Arc<Overrides>, Error> {
        let (platform, place) = of.clone();
        let json = self.services.blocking(move |memory| memory.places().overrides(&platform, &place)).await?;
        let saved = match json.map(serde_json::from_value::<SavedOverrides>) {
            None => Some(SavedOverrides::default()),
            Some(Ok(saved)) => Some(saved),
            Some(Err(error)) => {
                tracing::warn!(place = %of.1, %error, "cannot read the overrides of a place");
                None
            }
        };
        let zone = lock(&self.cache.zones).get(&of).cloned().unwrap_or_else(|| self.params.zone.clone());
        let overrides = Arc::new(Overrides::still_valid(&self.tuning, zone, saved));
        self.cache.put(of, &overrides);
        Ok(overrides)
    }

    /// Changes the overrides of a place, and applies them to its minds at once. The inner error says why nothing was
    /// changed.
    pub(crate) async fn change_overrides(
        &self,
        platform: &PlatformId,
        place: &Scope,
        change: impl FnOnce(&mut SavedOverrides),
    ) -> Result<Result<(), String>, Error> {
        let of = (platform.clone(), place.clone());
        let _changing = self.cache.changing.lock().await;
        let before = self.read_overrides(of.clone()).await?;
        let Some(mut saved) = before.saved.clone() else {
            return Ok(Err("what was chosen here before cannot be read by this version".into()));
        };
        change(&mut saved);
        let overrides = match Overrides::checked(&self.tuning, before.params.zone.clone(), saved) {
            Ok(overrides) => Arc::new(overrides),
            Err(why) => return Ok(Err(why)),
        };
        let json = serde_json::to_value(&overrides.saved).map_err(|_| Error::Interrupted)?;
        let (on, at) = of.clone();
        self.services.blocking(move |memory| memory.places().set_overrides(&on, &at, &json)).await?;
        self.cache.put(of, &overrides);
        self.states.follow(place, &overrides.params, self.services.clock.now());
        self.agenda.follow(platform, place, &overrides.garden);
        Ok(Ok(()))
    }

    /// Applies the overrides of a place to a persona's mind there, in this time zone.
    pub(crate) async fn apply_overrides(&self, home: &PersonaPlace, zone: TimeZone) -> Result<(), Error> {
        let of = (home.platform.clone(), home.place.clone());
        let _changing = self.cache.changing.lock().await;
        self.cache.note_zone(&of.0, &of.1, &zone);
        let cached = lock(&self.cache.overrides).get(&of).filter(|cached| cached.params.zone == zone).cloned();
        let overrides = match cached {
            Some(overrides) => overrides,
            None => self.read_overrides(of).await?,
        };
        self.states.follows(&home.persona, &home.place, &overrides.params, self.services.clock.now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use azera_affect::Rule;

    use super::*;

    #[test]
    fn overrides_that_no_longer_apply_are_ignored_but_stay_stored() {
        let rule = Rule::new("jokes", ["joke"], "Laugh along.", []).unwrap();
        let saved = SavedOverrides {
            tuned: [("soup".to_owned(), 1.0)].into(),
            rules: RealmRules { own: vec![rule], off: vec!["a_rule_of_old".into(), "insult".into()] },
            locale: None,
        };
        assert!(Overrides::checked(&Tuning::default(), TimeZone::UTC, saved.clone()).is_err());
        let overrides = Overrides::still_valid(&Tuning::default(), TimeZone::UTC, Some(saved.clone()));
        let names: Vec<&str> = overrides.rules.iter().map(|(rule, _)| rule.name.as_str()).collect();
        assert!(names.contains(&"jokes") && !names.contains(&"insult"));
        assert_eq!(overrides.tuning, Tuning::default());
        assert_eq!(overrides.saved, Some(saved));
    }

    #[test]
    fn a_number_above_the_configured_maximum_is_capped() {
        let tuned =
            [("asks_per_day".to_owned(), 40.0), ("notes_every".to_owned(), 3.0), ("energy_tired".to_owned(), 0.5)];
        let saved = SavedOverrides { tuned: tuned.into(), ..SavedOverrides::default() };
        let mut base = Tuning::default();
        assert_eq!(Overrides::checked(&base, TimeZone::UTC, saved.clone()).ok().map(|it| it.garden.per_day), Some(40));
        base.gardener.asks_per_day = 10;
        let overrides = Overrides::still_valid(&base, TimeZone::UTC, Some(saved.clone()));
        assert_eq!((overrides.garden.per_day, overrides.garden.notes_every), (10, 3));
        assert_eq!(overrides.params.constants.energy_tired, 0.5);
        let refused = Overrides::checked(&base, TimeZone::UTC, saved).err();
        assert_eq!(refused.as_deref(), Some("`asks_per_day` cannot be 40; the configuration allows 10"));
        // Turning background jobs off wins over what a place changed.
        base.gardener.enabled = false;
        let garden = Garden::from(&base.with([("notes_every", 3.0)]).unwrap().gardener);
        assert_eq!((garden.notes_every, garden.diary_messages, garden.check_in_hours), (0, 0, (0, 0)));
    }
}
