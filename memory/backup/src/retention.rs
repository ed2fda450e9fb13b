//! The rule for removing old backups.

use std::collections::HashSet;
use std::time::Duration;

use azera_types::Timestamp;

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;

/// Age and size of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupTime {
    /// When it was made.
    pub at: Timestamp,
    /// Size of its file in bytes.
    pub bytes: u64,
}

/// How long backups stay. Hours and days are UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionRule {
    /// Up to this age, all stay.
    pub all: Duration,
    /// Up to this age, the first of each hour stays.
    pub hourly: Duration,
    /// Up to this age, the first of each day stays.
    pub daily: Duration,
    /// Most backups in total; the oldest are removed first.
    pub max_count: usize,
    /// Most bytes in total; the oldest are removed first.
    pub max_bytes: u64,
}

impl RetentionRule {
    /// Returns for each backup whether it stays. The newest always stays.
    ///
    /// The first backup of an hour or a day stays, not the last one. So, apart from the limits, the result does not
    /// depend on how often the rule is applied.
    pub fn keeps(&self, made: &[BackupTime], now: Timestamp) -> Vec<bool> {
        let mut oldest_first: Vec<usize> = (0..made.len()).collect();
        oldest_first.sort_by_key(|index| (made[*index].at, *index));
        let (mut hours, mut days) = (HashSet::new(), HashSet::new());
        let mut retained = vec![false; made.len()];
        for index in &oldest_first {
            let at = made[*index].at;
            let first_of_hour = hours.insert(at.as_second().div_euclid(HOUR_S));
            let first_of_day = days.insert(at.as_second().div_euclid(DAY_S));
            // A backup from the future, made before the clock was set back, counts as new.
            let age = Duration::try_from(now.duration_since(at)).unwrap_or_default();
            retained[*index] = age < self.all || first_of_hour && age < self.hourly || first_of_day && age < self.daily;
        }
        if let Some(newest) = oldest_first.last() {
            retained[*newest] = true;
        }
        let (mut count, mut bytes) = (0, 0_u64);
        for index in oldest_first.iter().rev() {
            if !retained[*index] {
                continue;
            }
            count += 1;
            bytes = bytes.saturating_add(made[*index].bytes);
            retained[*index] = count == 1 || count <= self.max_count && bytes <= self.max_bytes;
        }
        retained
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: RetentionRule = RetentionRule {
        all: Duration::from_secs(3_600),
        hourly: Duration::from_secs(24 * 3_600),
        daily: Duration::from_secs(7 * 24 * 3_600),
        max_count: usize::MAX,
        max_bytes: u64::MAX,
    };

    /// Noon of some day.
    const NOON: i64 = 20_000 * DAY_S + 12 * HOUR_S;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns backups made this many minutes before noon.
    fn made(minutes: &[i64]) -> Vec<BackupTime> {
        minutes.iter().map(|minutes| BackupTime { at: at(NOON - minutes * 60), bytes: 10 }).collect()
    }

    #[test]
    fn the_rule_keeps_the_right_backups_in_examples() {
        #[track_caller]
        fn check(rule: RetentionRule, minutes: &[i64], want: &[i64]) {
            let retained = rule.keeps(&made(minutes), at(NOON));
            let retained: Vec<i64> =
                minutes.iter().zip(retained).filter(|(_, retained)| *retained).map(|(minutes, _)| *minutes).collect();
            assert_eq!(retained, want, "of {minutes:?}");
        }
        check(RULE, &[], &[]);
        check(RULE, &[0, 5, 30, 59], &[0, 5, 30, 59]);
        // The first one of the hour from 10 to 11 stays.
        check(RULE, &[5, 61, 70, 119, 120], &[5, 120]);
        // From more than a day ago, the first of the day stays; within the last day, one per hour.
        check(RULE, &[5, 790, 800, 23 * 60, 25 * 60, 30 * 60], &[5, 800, 23 * 60, 30 * 60]);
        check(RULE, &[5, 6 * 24 * 60, 8 * 24 * 60], &[5, 6 * 24 * 60]);
        check(RULE, &[90 * 24 * 60], &[90 * 24 * 60]);
        check(RULE, &[-10, 90 * 24 * 60], &[-10]);
        check(RetentionRule { max_count: 2, ..RULE }, &[59, 5, 30], &[5, 30]);
        check(RetentionRule { max_bytes: 25, ..RULE }, &[59, 5, 30], &[5, 30]);
        check(RetentionRule { max_count: 0, max_bytes: 0, ..RULE }, &[59, 5, 30], &[5]);
    }

    proptest! {
        #[test]
        fn the_rule_holds_for_any_backups(
            minutes in prop::collection::vec(0_i64..12 * 24 * 60, 0..200),
            later in 0_i64..10 * 24 * 60,
            max_count in 1_usize..100,
            max_bytes in 10_u64..1_000,
        ) {
            let all = made(&minutes);
            let pick = |made: &[BackupTime], rule: RetentionRule, now: i64| -> Vec<BackupTime> {
                let keeps = rule.keeps(made, at(now));
                made.iter().zip(keeps).filter(|(_, retained)| *retained).map(|(made, _)| *made).collect()
            };
            let retained = pick(&all, RULE, NOON);
            let age = |made: &BackupTime| NOON - made.at.as_second();
            for made in &all {
                if age(made) < HOUR_S {
                    prop_assert!(retained.contains(made), "one of the last hour went");
                }
                // Each hour of the last day and each day of the last week keeps a backup, if its first one is recent
                // enough.
                let same = |other: &BackupTime, length: i64| {
                    other.at.as_second().div_euclid(length) == made.at.as_second().div_euclid(length)
                };
                let first = |length: i64| all.iter().filter(|other| same(other, length)).map(age).max();
                if first(HOUR_S).is_some_and(|age| age < DAY_S) {
                    prop_assert!(retained.iter().any(|other| same(other, HOUR_S)), "nothing is left of an hour");
                }
                if first(DAY_S).is_some_and(|age| age < 7 * DAY_S) {
                    prop_assert!(retained.iter().any(|other| same(other, DAY_S)), "nothing is left of a day");
                }
            }
            let newest = all.iter().map(|made| made.at).max();
            prop_assert_eq!(retained.iter().map(|made| made.at).max(), newest, "the newest is kept");
            // Two backups may have the same minute; then the one that stays counts for both. Backups older than an hour
            // lie hours apart.
            let older: HashSet<i64> =
                retained.iter().filter(|made| age(made) >= HOUR_S).map(|made| made.at.as_second().div_euclid(HOUR_S)).collect();
            let newest_is_older = usize::from(newest.is_some_and(|newest| NOON - newest.as_second() >= HOUR_S));
            let count = retained.iter().filter(|made| age(made) >= HOUR_S).count();
            prop_assert!(count <= older.len() + newest_is_older, "more than one of an hour");
            // Applying the rule again removes nothing more, and applying it often gives the same result as once.
            prop_assert_eq!(pick(&retained, RULE, NOON), retained.clone());
            let end = NOON + later * 60;
            let often = (0..=10).fold(all.clone(), |left, step| pick(&left, RULE, NOON + later * 60 * step / 10));
            prop_assert_eq!(often, pick(&all, RULE, end));
            // The limits hold, and remove the oldest.
            let limited = pick(&all, RetentionRule { max_count, max_bytes, ..RULE }, NOON);
            prop_assert!(limited.len() <= max_count.max(1));
            prop_assert!(limited.iter().map(|made| made.bytes).sum::<u64>() <= max_bytes);
            let oldest = limited.iter().map(|made| made.at).min();
            let older_gone = retained.iter().filter(|made| !limited.contains(made)).all(|made| Some(made.at) <= oldest);
            prop_assert!(older_gone, "a younger one went before an older one");
        }
    }
}
