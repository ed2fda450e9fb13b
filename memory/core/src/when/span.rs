//! A stretch of time, and how close a moment is to it.

use azera_types::Timestamp;

/// Closeness right outside a stretch of time. People often mention events some days after them.
const OUTSIDE: f32 = 0.45;

/// Days over which the closeness to an open end falls to 1/e.
const OPEN_END_DAYS: f32 = 60.0;

/// How much a moment on the right side of an open end counts, however far away it is.
const RIGHT_SIDE: f32 = 0.7;

/// How often longer than a question's time a statement's time may be. `This year` says little about a day.
const TOO_LONG: f32 = 5.0;

/// Share of a closeness that is left when a statement is made within the time but speaks of another time.
const SPEAKS_OF_ANOTHER: f32 = 0.4;

/// On which side of a stretch of time something lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Within it.
    Within,
    /// Before it.
    Before,
    /// Before its end.
    Until,
    /// After it.
    After,
    /// From its start on.
    Since,
}

/// A stretch of time that a text names, with what else it may mean.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSpan {
    /// Readings, the likeliest first. There is at least one.
    pub(super) ranges: Vec<Reading>,
    /// Days outside after which closeness has fallen to 1/e.
    pub(super) slack_days: f32,
    /// On which side the text speaks of.
    pub(super) relation: Relation,
    /// Beginning and end of the named time itself, if the likeliest reading has hours or days around it.
    pub(super) exact: Option<(Timestamp, Timestamp)>,
}

/// One reading of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub(super) from: Timestamp,
    /// The moment after its end.
    pub(super) to: Timestamp,
    /// How likely the reading is, up to 1.
    pub(super) weight: f32,
}

impl Reading {
    /// Returns the days between this reading and another stretch of time; 0 or less if they overlap.
    fn gap(&self, from: Timestamp, to: Timestamp) -> f32 {
        days(to, self.from).max(days(self.to, from))
    }

    fn length(&self) -> f32 {
        days(self.from, self.to)
    }
}

impl TimeSpan {
    /// Returns the time on one side of this one.
    pub(crate) fn beside(self, relation: Relation) -> Self {
        Self { relation, ..self }
    }

    /// Returns the moment of something that was said without naming a time.
    pub(crate) fn moment(at: Timestamp) -> Self {
        let ranges = vec![Reading { from: at, to: at, weight: 1.0 }];
        Self { ranges, slack_days: 1.0, relation: Relation::Within, exact: None }
    }

    /// Returns the time from the beginning of `first` to the end of this one, in the likeliest reading of both.
    pub(super) fn joined_with(mut self, first: &Self) -> Option<Self> {
        let begins = first.ranges.first()?.from;
        let range = self.ranges.first_mut()?;
        range.from = begins.min(range.from);
        self.ranges.truncate(1);
        let begins = first.exact.map_or(begins, |(from, _)| from);
        self.exact = self.exact.map(|(from, to)| (begins.min(from), to));
        Some(self)
    }

    /// Returns the readings of a time that something is planned for, the likeliest first; nothing if the text speaks of
    /// what comes after the time.
    pub(crate) fn planned(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let is_after = matches!(self.relation, Relation::After | Relation::Since);
        self.ranges.iter().filter(move |_| !is_after).map(|range| (range.from, range.to))
    }

    /// Returns the readings as moments of beginning and end, the likeliest first; nothing for a time before or after
    /// another one.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let is_since = self.relation == Relation::Since;
        let ranges = self.ranges.iter().filter(move |_| is_since || self.is_within());
        ranges.map(move |range| (range.from, if is_since { Timestamp::MAX } else { range.to }))
    }

    /// Returns the likeliest time from which on something holds, such as May in "since May"; `None` for any other time.
    pub(crate) fn since(&self) -> Option<(Timestamp, Timestamp)> {
        let range = self.ranges.first().filter(|_| self.relation == Relation::Since)?;
        Some((range.from, range.to))
    }

    /// Returns the moment by which something was known that was known at this time; `None` for a time with an open end.
    pub(crate) fn known_by(&self) -> Option<Timestamp> {
        let range = self.ranges.first()?;
        // Hours or days around a time would tell what became known after it.
        let (from, to) = self.exact.unwrap_or((range.from, range.to));
        match self.relation {
            Relation::Within | Relation::Until => Some(to),
            Relation::Before => Some(from),
            Relation::After | Relation::Since => None,
        }
    }

    /// Returns true if the likeliest reading begins after a moment.
    pub(crate) fn begins_after(&self, at: Timestamp) -> bool {
        self.ranges.first().is_some_and(|range| range.from > at)
    }

    /// Returns the likeliest moment after the end.
    pub(crate) fn end(&self) -> Timestamp {
        self.ranges.first().map_or(Timestamp::MAX, |range| range.to)
    }

    /// Returns how many days the likeliest reading lasts.
    pub(crate) fn days(&self) -> f32 {
        self.ranges.first().map_or(0.0, Reading::length)
    }

    /// Returns true if the text asks for a time within the stretch.
    pub(crate) fn is_within(&self) -> bool {
        self.relation == Relation::Within
    }

    /// Returns how close something is that was said `at` and speaks of the time `of`, from 0 to 1.
    pub(crate) fn closeness(&self, at: Timestamp, of: Option<&Self>) -> f32 {
        let by_moment = self.near(at, at);
        let Some(Reading { from, to, .. }) = of.and_then(|of| of.ranges.first().copied()) else { return by_moment };
        let longest = self.ranges.first().map_or(0.0, Reading::length).max(2.0) * TOO_LONG;
        if self.is_within() && days(from, to) > longest {
            return by_moment;
        }
        self.near(from, to).max(by_moment * SPEAKS_OF_ANOTHER)
    }

    fn near(&self, from: Timestamp, to: Timestamp) -> f32 {
        let to_reading = |range: &Reading| range.weight * self.near_to(range, from, to);
        self.ranges.iter().map(to_reading).fold(0.0, f32::max)
    }

    fn near_to(&self, range: &Reading, from: Timestamp, to: Timestamp) -> f32 {
        let open = |gap: f32| match gap >= 0.0 {
            true => RIGHT_SIDE + (1.0 - RIGHT_SIDE) * (-gap / OPEN_END_DAYS).exp(),
            false => OUTSIDE * (gap / self.slack_days).exp(),
        };
        match self.relation {
            Relation::Within if range.gap(from, to) < 0.0 || (range.from <= from && to < range.to) => 1.0,
            Relation::Within => OUTSIDE * (-range.gap(from, to).max(0.0) / self.slack_days).exp(),
            Relation::Before => open(days(from, range.from) - f32::EPSILON),
            Relation::Until => open(days(from, range.to) - f32::EPSILON),
            Relation::After => open(days(range.to, to)),
            Relation::Since => open(days(range.from, to)),
        }
    }
}

/// Returns the days from one moment to another.
fn days(from: Timestamp, to: Timestamp) -> f32 {
    to.duration_since(from).as_secs_f32() / 86_400.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn span(relation: Relation) -> TimeSpan {
        let (from, to) = (time("2026-03-14T00:00:00Z"), time("2026-03-15T00:00:00Z"));
        TimeSpan { ranges: vec![Reading { from, to, weight: 1.0 }], slack_days: 4.0, relation, exact: None }
    }

    #[test]
    fn closeness_drops_at_the_border_and_falls_beyond_it() {
        let near = |at: &str| span(Relation::Within).closeness(time(at), None);
        assert_eq!(near("2026-03-14T00:00:00Z"), 1.0);
        assert_eq!(near("2026-03-14T23:59:59Z"), 1.0);
        assert!(near("2026-03-15T00:00:00Z") <= OUTSIDE && near("2026-03-13T23:00:00Z") <= OUTSIDE);
        assert!(near("2026-03-16T00:00:00Z") < near("2026-03-15T00:00:00Z"));
        assert!(near("2025-03-14T12:00:00Z") < 1e-6);
    }

    #[test]
    fn an_open_end_prefers_its_side_and_what_is_near() {
        let near = |relation, at: &str| span(relation).closeness(time(at), None);
        assert!(near(Relation::Before, "2026-03-01T00:00:00Z") > near(Relation::Before, "2025-03-01T00:00:00Z"));
        assert!(near(Relation::Before, "2025-03-01T00:00:00Z") >= RIGHT_SIDE);
        assert!(near(Relation::Before, "2026-03-14T08:00:00Z") < OUTSIDE);
        assert!(near(Relation::Until, "2026-03-14T08:00:00Z") > RIGHT_SIDE);
        assert!(near(Relation::After, "2026-03-14T08:00:00Z") < OUTSIDE);
        assert!(near(Relation::Since, "2026-03-14T08:00:00Z") > RIGHT_SIDE);
        assert!(near(Relation::After, "2026-03-15T08:00:00Z") > RIGHT_SIDE);
    }

    #[test]
    fn a_statement_about_another_time_counts_by_that_time() {
        let asked = span(Relation::Within);
        let next_day = time("2026-03-15T09:00:00Z");
        assert_eq!(asked.closeness(next_day, Some(&asked)), 1.0, "`yesterday`, said a day later");
        let before = TimeSpan {
            ranges: vec![Reading { from: time("2026-03-13T00:00:00Z"), ..asked.ranges[0] }],
            ..asked.clone()
        };
        let before =
            TimeSpan { ranges: vec![Reading { to: time("2026-03-14T00:00:00Z"), ..before.ranges[0] }], ..before };
        assert!(asked.closeness(time("2026-03-14T09:00:00Z"), Some(&before)) < 0.5, "`yesterday`, said on the day");
    }
}
