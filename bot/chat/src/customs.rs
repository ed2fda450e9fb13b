//! What a place made of how its personas are: numbers of their minds, rules of its own, whose help lines are shown. Kept in the record, and here as what
//! minds go by. Like a mind, customs belong to the public places of a realm together, or to a private chat or a direct message
//! alone: what a rule says stands in prompts, and shows where it holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_config::Tuning;
use azera_mind::{Nature, RealmRules, Rules};
use azera_types::{PlatformId, Scope};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::azera::Azera;
use crate::config::Garden;
use crate::error::Error;
use crate::gardener::Home;

/// Places whose customs are held at once; beyond that they are read from the record anew.
const MAX_HELD: usize = 10_000;

/// Places whose time zone is known at once; beyond that it is asked anew.
const MAX_ZONES: usize = 100_000;

/// Customs as they are saved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Saved {
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
pub(crate) struct Customs {
    /// The numbers of the inner life.
    pub(crate) tuning: Tuning,
    /// What minds go by, of these.
    pub(crate) nature: Arc<Nature>,
    /// What is written between messages, by these.
    pub(crate) garden: Arc<Garden>,
    /// What messages call for.
    pub(crate) rules: Rules,
    /// As they are saved, whatever of it holds; `None` if that cannot be read.
    pub(crate) saved: Option<Saved>,
}

impl Customs {
    /// What the saved ones come to; an error says what is wrong with them.
    fn of(base: &Tuning, zone: TimeZone, saved: Saved) -> Result<Self, String> {
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

    fn by(tuning: Tuning, zone: TimeZone, rules: Rules, saved: Option<Saved>) -> Self {
        let nature = Arc::new(Nature { constants: tuning.mind.clone(), zone });
        let garden = Arc::new(Garden::from(&tuning.gardener));
        Self { tuning, nature, garden, rules, saved }
    }

    /// As much of the saved ones as still holds: the configuration may be another by now, or the version.
    fn holding(base: &Tuning, zone: TimeZone, saved: Option<Saved>) -> Self {
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

impl Customs {
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
pub(crate) struct Held {
    customs: Mutex<HashMap<Where, Arc<Customs>>>,
    zones: Mutex<HashMap<Where, TimeZone>>,
    /// Held while customs are changed, from reading them on.
    changing: tokio::sync::Mutex<()>,
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    fn put(&self, of: Where, customs: &Arc<Customs>) {
        let mut held = lock(&self.customs);
        if held.len() >= MAX_HELD {
            held.clear();
        }
        held.insert(of, customs.clone());
    }

    /// What the record has may be forgotten by now.
    pub(crate) fn clear(&self) {
        lock(&self.customs).clear();
    }
}

impl Azera {
    /// The customs of a place.
    pub(crate) async fn customs(&self, platform: &PlatformId, place: &Scope) -> Result<Arc<Customs>, Error> {
        let of = (platform.clone(), place.clone());
        if let Some(held) = lock(&self.0.customs.customs).get(&of) {
            return Ok(held.clone());
        }
        let _changing = self.0.customs.changing.lock().await;
        self.read_customs(of).await
    }

    async fn read_customs(&self, of: Where) -> Result<Arc<Customs>, Error> {
        let (platform, place) = of.clone();
        let json = self.blocking(move |memory| memory.customs(&platform, &place)).await?;
        let saved = match json.map(serde_json::from_value::<Saved>) {
            None => Some(Saved::default()),
            Some(Ok(saved)) => Some(saved),
            Some(Err(error)) => {
                tracing::warn!(place = %of.1, %error, "the customs of a place cannot be read");
                None
            }
        };
        let zone = lock(&self.0.customs.zones).get(&of).cloned().unwrap_or_else(|| self.0.nature.zone.clone());
        let customs = Arc::new(Customs::holding(&self.0.tuning, zone, saved));
        self.0.customs.put(of, &customs);
        Ok(customs)
    }

    /// Changes the customs of a place, and gives its minds at once what they go by; an inner error says why nothing was changed.
    pub(crate) async fn change_customs(
        &self,
        platform: &PlatformId,
        place: &Scope,
        change: impl FnOnce(&mut Saved),
    ) -> Result<Result<(), String>, Error> {
        let of = (platform.clone(), place.clone());
        let _changing = self.0.customs.changing.lock().await;
        let before = self.read_customs(of.clone()).await?;
        let Some(mut saved) = before.saved.clone() else {
            return Ok(Err("what was chosen here before cannot be read by this version".into()));
        };
        change(&mut saved);
        let customs = match Customs::of(&self.0.tuning, before.nature.zone.clone(), saved) {
            Ok(customs) => Arc::new(customs),
            Err(why) => return Ok(Err(why)),
        };
        let json = serde_json::to_value(&customs.saved).map_err(|_| Error::Interrupted)?;
        let (on, at) = of.clone();
        self.blocking(move |memory| memory.set_customs(&on, &at, &json)).await?;
        self.0.customs.put(of, &customs);
        self.0.minds.follow(place, &customs.nature, self.0.clock.now());
        self.0.agenda.follow(platform, place, &customs.garden);
        Ok(Ok(()))
    }

    /// The mind of a persona goes by the customs of its place, in this time zone.
    pub(crate) async fn acclimatise(&self, home: &Home, zone: TimeZone) -> Result<(), Error> {
        let of = (home.platform.clone(), home.place.clone());
        let _changing = self.0.customs.changing.lock().await;
        {
            let mut zones = lock(&self.0.customs.zones);
            if zones.len() >= MAX_ZONES {
                zones.clear();
            }
            zones.insert(of.clone(), zone.clone());
        }
        let held = lock(&self.0.customs.customs).get(&of).filter(|held| held.nature.zone == zone).cloned();
        let customs = match held {
            Some(customs) => customs,
            None => self.read_customs(of).await?,
        };
        self.0.minds.follows(&home.persona, &home.place, &customs.nature, self.0.clock.now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use azera_mind::Rule;

    use super::*;

    #[test]
    fn what_holds_no_more_is_left_out_and_kept_for_a_version_that_knows_it() {
        let rule = Rule::new("jokes", ["joke"], "Laugh along.", []).unwrap();
        let saved = Saved {
            tuned: [("soup".to_owned(), 1.0)].into(),
            rules: RealmRules { own: vec![rule], off: vec!["a_rule_of_old".into(), "insult".into()] },
            locale: None,
        };
        assert!(Customs::of(&Tuning::default(), TimeZone::UTC, saved.clone()).is_err());
        let customs = Customs::holding(&Tuning::default(), TimeZone::UTC, Some(saved.clone()));
        let names: Vec<&str> = customs.rules.iter().map(|(rule, _)| rule.name.as_str()).collect();
        assert!(names.contains(&"jokes") && !names.contains(&"insult"));
        assert_eq!(customs.tuning, Tuning::default());
        assert_eq!(customs.saved, Some(saved));
    }

    #[test]
    fn what_the_installation_came_to_allow_no_more_of_is_cut_and_the_rest_holds() {
        let tuned =
            [("asks_per_day".to_owned(), 40.0), ("notes_every".to_owned(), 3.0), ("energy_tired".to_owned(), 0.5)];
        let saved = Saved { tuned: tuned.into(), ..Saved::default() };
        let mut base = Tuning::default();
        assert_eq!(Customs::of(&base, TimeZone::UTC, saved.clone()).ok().map(|it| it.garden.per_day), Some(40));
        base.gardener.asks_per_day = 10;
        let customs = Customs::holding(&base, TimeZone::UTC, Some(saved.clone()));
        assert_eq!((customs.garden.per_day, customs.garden.notes_every), (10, 3));
        assert_eq!(customs.nature.constants.energy_tired, 0.5);
        let refused = Customs::of(&base, TimeZone::UTC, saved).err();
        assert_eq!(refused.as_deref(), Some("`asks_per_day` cannot be 40, whoever runs me allows 10"));
        // Whoever switched it all off is asked for nothing by what a place tuned.
        base.gardener.enabled = false;
        let garden = Garden::from(&base.with([("notes_every", 3.0)]).unwrap().gardener);
        assert_eq!((garden.notes_every, garden.diary_messages, garden.check_in_hours), (0, 0, (0, 0)));
    }
}
