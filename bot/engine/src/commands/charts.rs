//! Charts of the numbers in answers, for platforms that can draw them.

use std::collections::BTreeMap;

use azera_adapter::{Bar, Chart, Column, Theme};
use azera_affect::State;
use azera_memory::{Stats, week_begins, week_of};
use azera_types::{Scope, TimeZone, Timestamp};

/// Number of weeks shown, including this one.
pub(super) const WEEKS: i64 = 12;

/// Weeks between two labels with a date.
const DATED: i64 = 3;

/// Parses a theme. The error is the answer to the person.
pub(super) fn theme(name: &str) -> Result<Theme, &'static str> {
    Theme::named(name).ok_or("Pictures are `dark` or `light`.")
}

/// Returns the values of a mind, with the names that people read.
pub(super) fn measures(state: &State) -> [(&'static str, f64); 5] {
    [
        ("mood", state.value),
        ("energy", state.energy),
        ("focus", state.focus),
        ("clarity", state.clarity),
        ("tiredness", state.pressure),
    ]
}

pub(super) fn of_mind(name: &str, state: &State, caption: String, theme: Theme) -> Chart {
    let bar = |(label, share): (&str, f64)| {
        let percent = (share.clamp(0.0, 1.0) * 100.0).round() as u8;
        Bar { label: label.into(), percent, value: format!("{percent} %") }
    };
    Chart {
        title: name.into(),
        subtitle: format!("feels {}", state.mood),
        bars: measures(state).map(bar).to_vec(),
        caption,
        theme,
        ..Chart::default()
    }
}

/// Returns the number of new memories in each of the last weeks, newest last. It starts with the first week that has
/// any.
pub(super) fn weeks(stats: &Stats, now: Timestamp) -> Vec<(Timestamp, usize)> {
    let this = week_of(now);
    let lately = (this - WEEKS + 1)..=this;
    let counted = lately.map(|week| (week_begins(week), stats.weeks.get(&week).copied().unwrap_or(0)));
    counted.skip_while(|(_, count)| *count == 0).collect()
}

/// Returns a chart of memories by kind and by week. Its days are those of `zone`.
pub(super) fn of_memory(stats: &Stats, now: Timestamp, zone: &TimeZone, theme: Theme) -> Chart {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places: BTreeMap<&Scope, usize> = BTreeMap::new();
    for (kind, scope, count) in &stats.counts {
        *kinds.entry(kind.as_str()).or_default() += count;
        *places.entry(scope).or_default() += count;
    }
    let most = kinds.values().copied().max().unwrap_or(0).max(1);
    let bars = kinds.into_iter().map(|(label, count)| Bar {
        label: label.into(),
        percent: u8::try_from(count * 100 / most).unwrap_or(100),
        value: count.to_string(),
    });
    let columns = (0_i64..).zip(weeks(stats, now)).map(|(number, (begins, value))| {
        let date = || begins.to_zoned(zone.clone()).strftime("%m-%d").to_string();
        Column { label: if number % DATED == 0 { date() } else { String::new() }, value }
    });
    let mut caption: String = places.into_iter().map(|(scope, count)| format!("- {count} from {scope}\n")).collect();
    if stats.queued > 0 {
        caption.push_str(&format!("{} are still being indexed.", stats.queued));
    }
    Chart {
        title: "What I remember".into(),
        subtitle: format!("{} may be shown here", super::memory::memories(stats.total())),
        bars: bars.collect(),
        columns_title: "by the week in which it was said".into(),
        columns: columns.collect(),
        caption,
        theme,
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use azera_memory::Kind;
    use azera_types::RealmId;

    use super::*;

    #[test]
    fn memories_are_counted_by_kind_and_week() {
        let now: Timestamp = "2026-09-09T12:00:00Z".parse().unwrap();
        let realm = Scope::Realm(RealmId::new("guild").unwrap());
        let this = week_of(now);
        let stats = Stats {
            counts: vec![
                (Kind::Message, Scope::Global, 30),
                (Kind::Message, realm.clone(), 10),
                (Kind::Fact, realm, 1),
            ],
            queued: 2,
            weeks: BTreeMap::from([(this, 7), (this - 2, 4), (this - 11, 1), (this - 12, 29)]),
        };
        let chart = of_memory(&stats, now, &TimeZone::UTC, Theme::Light);
        let bars: Vec<_> = chart.bars.iter().map(|bar| (bar.label.as_str(), bar.percent, bar.value.as_str())).collect();
        assert_eq!(bars, [("fact", 2, "1"), ("message", 100, "40")]);
        let values: Vec<usize> = chart.columns.iter().map(|column| column.value).collect();
        assert_eq!(values, [1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 7]);
        let dated: Vec<&str> = chart.columns.iter().map(|column| column.label.as_str()).collect();
        assert_eq!(dated, ["06-22", "", "", "07-13", "", "", "08-03", "", "", "08-24", "", ""]);
        // There it is still Sunday when a week begins.
        let zone = TimeZone::get("America/New_York").unwrap();
        assert_eq!(of_memory(&stats, now, &zone, Theme::Light).columns[0].label, "06-21");
        assert_eq!(chart.caption, "- 11 from realm:guild\n- 30 from global\n2 are still being indexed.");
        assert_eq!(of_memory(&Stats::default(), now, &TimeZone::UTC, Theme::Dark).columns, []);
    }

    #[test]
    fn a_theme_is_called_by_its_name() {
        assert_eq!(theme("").unwrap(), Theme::Dark);
        assert_eq!(theme("light").unwrap(), Theme::Light);
        assert!(theme("purple").unwrap_err().contains("`dark`"));
    }
}
