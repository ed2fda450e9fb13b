//! Time zones of places: in which days people's questions are read, and memories are shown.

use azera_memory::Calendar;
use azera_types::{PlaceKind, PlatformId, Scope, TimeZone, Timestamp};

use crate::access::AccessControl;
use crate::error::Error;
use crate::minds::MindService;

impl MindService {
    /// Returns the calendar by which times in texts of a place are read now.
    pub(crate) async fn calendar(
        &self,
        access: &AccessControl,
        platform: &PlatformId,
        place: &Scope,
    ) -> Result<Calendar, Error> {
        let zone = self.time_zone(access, platform, place).await;
        let overrides = self.overrides(platform, place).await?;
        let month_first = overrides.locale(self.services.config.locale.as_deref()).is_some_and(puts_month_first);
        Ok(Calendar { now: self.services.clock.now(), zone, month_first })
    }

    /// Returns the time zone of a place. Asks the platform once, and uses the configured zone while it does not answer.
    pub(crate) async fn time_zone(&self, access: &AccessControl, platform: &PlatformId, place: &Scope) -> TimeZone {
        if let Some(zone) = self.cache.zone(platform, place) {
            return zone;
        }
        match self.ask_time_zone(access, platform, place).await {
            Ok(zone) => {
                self.cache.note_zone(platform, place, &zone);
                zone
            }
            Err(error) => {
                tracing::warn!(%error, "cannot get the time zone of a place; the configured one is used");
                self.configured_zone()
            }
        }
    }

    /// Asks the platform for the time zone of a place; the configured one where the platform gives none.
    pub(crate) async fn ask_time_zone(
        &self,
        access: &AccessControl,
        platform: &PlatformId,
        place: &Scope,
    ) -> Result<TimeZone, Error> {
        let Ok(platform) = self.services.platform(platform) else { return Ok(TimeZone::UTC) };
        let realm = match place {
            Scope::Realm(realm) => Some(realm.clone()),
            Scope::Chat(chat) => match access.place_unasked(platform.as_ref(), chat).await?.map(|place| place.kind) {
                Some(PlaceKind::Private { realm, .. }) => realm,
                _ => None,
            },
            _ => None,
        };
        let named = match realm {
            Some(realm) => platform.realm(&realm).await?.time_zone,
            None => None,
        };
        Ok(named.and_then(|name| TimeZone::get(&name).ok()).unwrap_or_else(|| self.configured_zone()))
    }

    /// Returns the time zone of places without one of their own.
    pub(crate) fn configured_zone(&self) -> TimeZone {
        TimeZone::get(&self.services.config.garden.time_zone).unwrap_or(TimeZone::UTC)
    }
}

/// Returns a moment's day in a time zone, such as `2026-03-14`.
pub(crate) fn day(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%F").to_string()
}

/// Returns a stretch of time as exactly as it was named: a year, a month or a day.
pub(crate) fn stretch(from: Timestamp, to: Timestamp, zone: &TimeZone) -> String {
    let days = to.duration_since(from).as_hours() / 24;
    let format = match days {
        300.. => "%Y",
        27.. => "%Y-%m",
        _ => "%F",
    };
    from.to_zoned(zone.clone()).strftime(format).to_string()
}

/// Returns a moment in a time zone to the minute, with the zone's short name.
pub(crate) fn minute(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%F %H:%M %Z").to_string()
}

/// Returns true for locales whose people write the month before the day.
fn puts_month_first(locale: &str) -> bool {
    let region = locale.rsplit(['-', '_']).next().unwrap_or(locale);
    region.eq_ignore_ascii_case("US")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_in_the_zone_of_its_place() {
        let at: Timestamp = "2026-03-14T23:30:00Z".parse().unwrap();
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(day(at, &zone), "2026-03-15");
        assert_eq!(minute(at, &zone), "2026-03-15 00:30 CET");
        assert_eq!(minute(at, &TimeZone::UTC), "2026-03-14 23:30 UTC");
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let stretch = |from, to| stretch(time(from), time(to), &TimeZone::UTC);
        assert_eq!(stretch("2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z"), "2026-05");
        assert_eq!(stretch("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"), "2026");
        assert_eq!(stretch("2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"), "2026-05-01");
    }

    #[test]
    fn the_month_is_first_in_one_country() {
        assert!(puts_month_first("en-US"));
        assert!(!puts_month_first("en-GB"));
    }
}
