//! What a realm made of how its personas are: numbers of their minds, rules of its own. Kept in the record, and here as what
//! minds go by.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_mind::{Nature, RealmRules, Rules};
use azera_types::{PlatformId, Scope};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::azera::Azera;
use crate::error::Error;
use crate::gardener::Home;

/// Homes whose customs are held at once; beyond that they are read from the record anew.
const MAX_HELD: usize = 10_000;

/// Customs as they are saved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Saved {
    /// Numbers of `[mind]` that are others here.
    pub(crate) tuned: BTreeMap<String, f64>,
    /// Rules.
    pub(crate) rules: RealmRules,
}

/// Customs in force.
pub(crate) struct Customs {
    /// What minds go by.
    pub(crate) nature: Arc<Nature>,
    /// What messages call for.
    pub(crate) rules: Rules,
    pub(crate) saved: Saved,
}

impl Customs {
    /// What the saved ones come to; an error says what is wrong with them.
    fn of(base: &Nature, zone: TimeZone, saved: Saved) -> Result<Self, String> {
        // Numbers that are allowed together only are set together: what was wrong on the way may be right in the end.
        let mut constants = base.constants.clone();
        let mut left: Vec<(&String, &f64)> = saved.tuned.iter().collect();
        while !left.is_empty() {
            let before = left.len();
            let mut wrong = String::new();
            left.retain(|(name, value)| match constants.with(name, **value) {
                Ok(tuned) => {
                    constants = tuned;
                    false
                }
                Err(why) => {
                    wrong = why;
                    true
                }
            });
            if left.len() == before {
                return Err(wrong);
            }
        }
        let rules = Rules::with(&saved.rules).map_err(|error| error.to_string())?;
        Ok(Self { nature: Arc::new(Nature { constants, zone }), rules, saved })
    }
}

/// The customs of every home that was asked for.
#[derive(Default)]
pub(crate) struct Held(Mutex<HashMap<(PlatformId, Scope), Arc<Customs>>>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, HashMap<(PlatformId, Scope), Arc<Customs>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, platform: &PlatformId, home: &Scope) -> Option<Arc<Customs>> {
        self.lock().get(&(platform.clone(), home.clone())).cloned()
    }

    fn put(&self, platform: &PlatformId, home: &Scope, customs: &Arc<Customs>) {
        let mut held = self.lock();
        if held.len() >= MAX_HELD {
            held.clear();
        }
        held.insert((platform.clone(), home.clone()), customs.clone());
    }

    /// Those of direct messages may be forgotten.
    pub(crate) fn forget_direct(&self) {
        self.lock().retain(|(_, home), _| !matches!(home, Scope::Dm(_)));
    }
}

impl Azera {
    /// The customs of a realm, a room outside any or a direct message.
    pub(crate) async fn customs(&self, platform: &PlatformId, home: &Scope) -> Result<Arc<Customs>, Error> {
        if let Some(held) = self.0.customs.get(platform, home) {
            return Ok(held);
        }
        let of = (platform.clone(), home.clone());
        let saved = self.blocking(move |memory| memory.customs(&of.0, &of.1)).await?;
        let saved: Option<Saved> = saved.and_then(|saved| {
            let read = serde_json::from_value(saved);
            read.inspect_err(|error| tracing::warn!(%home, %error, "a realm's customs cannot be read")).ok()
        });
        let base = &self.0.nature;
        let zone = base.zone.clone();
        let customs = Customs::of(base, zone.clone(), saved.unwrap_or_default()).or_else(|why| {
            // The configuration may have changed since, so that the two do not go together any more.
            tracing::warn!(%home, why, "a realm's customs do not hold");
            Customs::of(base, zone, Saved::default())
        });
        let customs = Arc::new(customs.map_err(|_| Error::Interrupted)?);
        self.0.customs.put(platform, home, &customs);
        Ok(customs)
    }

    /// Gives a home other customs, and its minds at once what they go by; an inner error says what is wrong with them.
    pub(crate) async fn set_customs(
        &self,
        platform: &PlatformId,
        home: &Scope,
        saved: Saved,
    ) -> Result<Result<Arc<Customs>, String>, Error> {
        let zone = self.customs(platform, home).await?.nature.zone.clone();
        let customs = match Customs::of(&self.0.nature, zone, saved) {
            Ok(customs) => Arc::new(customs),
            Err(why) => return Ok(Err(why)),
        };
        let json = serde_json::to_value(&customs.saved).map_err(|_| Error::Interrupted)?;
        let of = (platform.clone(), home.clone());
        self.blocking(move |memory| memory.set_customs(&of.0, &of.1, &json)).await?;
        self.0.customs.put(platform, home, &customs);
        self.0.minds.follow(home, &customs.nature, self.0.clock.now());
        Ok(Ok(customs))
    }

    /// The mind of a persona goes by the customs of its home, in this time zone.
    pub(crate) async fn acclimatise(&self, home: &Home, zone: TimeZone) -> Result<(), Error> {
        let Home { platform, place: home, persona } = home;
        let mut customs = self.customs(platform, home).await?;
        if customs.nature.zone != zone {
            let nature = Nature { constants: customs.nature.constants.clone(), zone };
            let (rules, saved) = (customs.rules.clone(), customs.saved.clone());
            customs = Arc::new(Customs { nature: Arc::new(nature), rules, saved });
            self.0.customs.put(platform, home, &customs);
        }
        self.0.minds.follows(persona, home, &customs.nature, self.0.clock.now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_go_together_alone_are_set_together() {
        #[track_caller]
        fn check(tuned: &[(&str, f64)], want: Result<(u8, u8), &str>) {
            let tuned = tuned.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let saved = Saved { tuned, ..Saved::default() };
            let customs = Customs::of(&Nature::default(), TimeZone::UTC, saved);
            let found = customs.map(|it| (it.nature.constants.night_from_hour, it.nature.constants.night_to_hour));
            assert_eq!(found, want.map_err(str::to_owned));
        }
        check(&[], Ok((1, 7)));
        // The first alone would leave the night without hours.
        check(&[("night_from_hour", 7.0), ("night_to_hour", 12.0)], Ok((7, 12)));
        check(&[("soup", 1.0)], Err("there is no number `soup`"));
    }
}
