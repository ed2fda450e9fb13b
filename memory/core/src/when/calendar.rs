//! Finds the days that a named time means.

use azera_types::Timestamp;
use jiff::civil::Date;
use jiff::{Span, ToSpan};

use super::span::{Reading, Relation, TimeSpan};
use super::{Calendar, DayPart, Named, Third, Unit, Which};

/// Years back in which a date without a year is looked for.
const YEARS_BACK: i16 = 5;

/// Weight of another reading than the likeliest.
const OTHER_READING: f32 = 0.5;

/// Weight of the rest of a day where a part of it is named.
const REST_OF_DAY: f32 = 0.8;

/// Time zones south of the equator, where summer begins in December.
const SOUTHERN: &[&str] = &[
    "Australia/",
    "Antarctica/",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Africa/Johannesburg",
    "Africa/Maputo",
    "Africa/Harare",
    "Africa/Windhoek",
    "America/Sao_Paulo",
    "America/Argentina/",
    "America/Buenos_Aires",
    "America/Santiago",
    "America/Montevideo",
    "America/Asuncion",
];

/// First and last day of a reading, and its weight.
type Days = (Date, Date, f32);

/// Resolves named times for one calendar.
pub(super) struct Resolver<'a> {
    calendar: &'a Calendar,
    today: Date,
    /// True if the text speaks of what is to come.
    future: bool,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(calendar: &'a Calendar, future: bool) -> Self {
        Self { calendar, today: calendar.now.to_zoned(calendar.zone.clone()).date(), future }
    }

    /// Returns the stretch of time; `None` for a day that does not exist.
    pub(super) fn span(&self, named: Named, part: Option<DayPart>, relation: Relation) -> Option<TimeSpan> {
        if let Named::Ago(hours, Unit::Hour) = named {
            let middle = self.calendar.now.checked_sub(Span::new().hours(hours)).ok()?;
            let (from, to) = (middle.checked_sub(45.minutes()).ok()?, middle.checked_add(45.minutes()).ok()?);
            let ranges = vec![Reading { from, to, weight: 1.0 }];
            return Some(TimeSpan { ranges, slack_days: 0.1, relation, exact: Some((middle, middle)) });
        }
        let (days, slack_days) = self.days(named)?;
        let hours = match (part, named) {
            (Some(part), _) => Some(part.hours()),
            (None, Named::Date { moment: Some(moment), .. }) => {
                let hour = i64::from(moment.to_zoned(self.calendar.zone.clone()).hour());
                Some((hour - 1, hour + 2))
            }
            _ => None,
        };
        let mut ranges = Vec::new();
        for (first, last, weight) in days {
            let (from, to) = (self.at(first, 0)?, self.at(last.tomorrow().ok()?, 0)?);
            match hours.filter(|_| first == last) {
                Some((begins, ends)) => {
                    ranges.push(Reading { from: self.at(first, begins)?, to: self.at(first, ends)?, weight });
                    ranges.push(Reading { from, to, weight: weight * REST_OF_DAY });
                }
                None => ranges.push(Reading { from, to, weight }),
            }
        }
        let exact = self.exact(named, part);
        (!ranges.is_empty()).then_some(TimeSpan { ranges, slack_days, relation, exact })
    }

    /// Returns the beginning and the end of a time without the hours or days around it, if its reading has some.
    fn exact(&self, named: Named, part: Option<DayPart>) -> Option<(Timestamp, Timestamp)> {
        match named {
            Named::Date { moment: Some(moment), .. } if part.is_none() => Some((moment, moment)),
            Named::Ago(number, unit) => {
                let day = self.day_ago(number, unit)?;
                Some((self.at(day, 0)?, self.at(day.tomorrow().ok()?, 0)?))
            }
            _ => None,
        }
    }

    /// Returns the moment at which the clocks of the place show an hour. Hours below 0 are of the day before, and those
    /// from 24 on of the next one. Days on which the clocks change have 23 or 25 hours, so the hour is not a duration.
    fn at(&self, date: Date, hour: i64) -> Option<Timestamp> {
        let shown = date.at(0, 0, 0, 0).checked_add(Span::new().hours(hour)).ok()?;
        Some(shown.to_zoned(self.calendar.zone.clone()).ok()?.timestamp())
    }

    /// Returns the readings of a time in days, and the days over which closeness fades.
    fn days(&self, named: Named) -> Option<(Vec<Days>, f32)> {
        let today = self.today;
        let day = |days: i32| today.checked_add(days.days()).ok();
        let one = |date: Date| vec![(date, date, 1.0)];
        Some(match named {
            Named::Date { year, month, day, swapped, third, .. } => self.date(year, month, day, swapped, third)?,
            Named::Month(month, which) => (self.month(month, which)?, 10.0),
            Named::Year(year) => (vec![(Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?, 1.0)], 30.0),
            Named::DayOfMonth(number) => (one(self.day_of_month(number)?), 4.0),
            Named::Day(days) => (one(day(days)?), 2.0),
            Named::Weekday(weekday, which) => (one(self.weekday(weekday, which)?), 3.0),
            Named::Weekend(which) => {
                let saturday = self.weekend(which)?;
                (vec![(saturday, saturday.tomorrow().ok()?, 1.0)], 3.0)
            }
            Named::Ago(number, unit) => self.ago(number, unit)?,
            Named::Lately(number, unit) => (vec![(today.checked_sub(steps(unit, number)).ok()?, today, 1.0)], 4.0),
            Named::Unit(unit, step) => self.unit(unit, step)?,
            Named::Season(season, year, which) => (self.season(season, year, which)?, 20.0),
            Named::Feast(month, day, length, year) => {
                let from = |year: i16| Date::new(year, month, day).ok();
                let starts = self.years(year, from)?;
                let lasts = |(date, weight): (Date, f32)| {
                    Some((date, date.checked_add(i32::from(length - 1).days()).ok()?, weight))
                };
                (starts.into_iter().map(lasts).collect::<Option<Vec<_>>>()?, 5.0)
            }
        })
    }

    fn date(
        &self,
        year: Option<i16>,
        month: i8,
        day: Option<i8>,
        swapped: bool,
        third: Option<Third>,
    ) -> Option<(Vec<Days>, f32)> {
        let Some(day) = day else {
            let starts = self.years(year, |year| Date::new(year, month, 1).ok())?;
            return Some((starts.into_iter().map(|(first, weight)| in_third(first, third, weight)).collect(), 10.0));
        };
        let of = |month: i8, day: i8| self.years(year, |year| Date::new(year, month, day).ok());
        let mut readings = of(month, day).unwrap_or_default();
        if swapped && let Some(others) = of(day, month) {
            // A day to come is the less likely reading.
            let is_past = |list: &[(Date, f32)]| list.first().is_some_and(|(date, _)| *date <= self.today);
            let (likely, others) = match !is_past(&readings) && is_past(&others) {
                true => (others, readings),
                false => (readings, others),
            };
            readings = likely;
            readings.extend(others.into_iter().map(|(date, weight)| (date, weight * OTHER_READING)));
        }
        let days: Vec<Days> = readings.into_iter().map(|(date, weight)| (date, date, weight)).collect();
        (!days.is_empty()).then_some((days, 4.0))
    }

    /// Returns the dates of a year, or of the years around now if no year is named: the newest past one is the
    /// likeliest, or the next one if the text speaks of what is to come.
    fn years(&self, year: Option<i16>, date: impl Fn(i16) -> Option<Date>) -> Option<Vec<(Date, f32)>> {
        if let Some(year) = year {
            return Some(vec![(date(year)?, 1.0)]);
        }
        let is_future = |date: Date| date > self.today;
        let years = (self.today.year() - YEARS_BACK)..=(self.today.year() + 1);
        let (mut future, past): (Vec<Date>, Vec<Date>) = years.filter_map(&date).partition(|date| is_future(*date));
        future.truncate(1);
        let mut past = past.into_iter().rev();
        let likeliest = match self.future {
            true => future.first().copied().or_else(|| past.next()),
            false => past.next().or_else(|| future.first().copied()),
        }?;
        let others = past.chain(future).filter(|date| *date != likeliest).map(|date| (date, OTHER_READING));
        Some(std::iter::once((likeliest, 1.0)).chain(others).collect())
    }

    fn month(&self, month: i8, which: Which) -> Option<Vec<Days>> {
        let first = |year: i16| Date::new(year, month, 1).ok();
        let this = self.today.first_of_month();
        let year = self.today.year();
        let start = match which {
            Which::Plain => {
                let starts = self.years(None, first)?;
                return Some(starts.into_iter().map(|(first, weight)| in_third(first, None, weight)).collect());
            }
            Which::This => first(year)?,
            Which::Last => [first(year)?, first(year - 1)?].into_iter().find(|start| *start < this)?,
            Which::Earlier => first(year - 1)?,
            Which::Next => [first(year)?, first(year + 1)?].into_iter().find(|start| *start > this)?,
        };
        Some(vec![in_third(start, None, 1.0)])
    }

    /// Returns the newest day of this number that is not to come.
    fn day_of_month(&self, number: i8) -> Option<Date> {
        let month = |back: i32| self.today.first_of_month().checked_sub(back.months()).ok();
        let dates = (-1..12).filter_map(|back| month(back)?.with().day(number).build().ok());
        let fits = |date: &Date| if self.future { *date >= self.today } else { *date <= self.today };
        if self.future { dates.filter(fits).min() } else { dates.filter(fits).max() }
    }

    fn weekday(&self, weekday: i8, which: Which) -> Option<Date> {
        let today = self.today.weekday().to_monday_one_offset();
        let back = i32::from((today - weekday).rem_euclid(7));
        let forward = i32::from((weekday - today).rem_euclid(7));
        let other_than_today = |days: i32| if days == 0 { 7 } else { days };
        let days = match which {
            Which::Plain if self.future => forward,
            Which::Plain | Which::Last => -other_than_today(back),
            Which::Next => other_than_today(forward),
            Which::This => i32::from(weekday - today),
            Which::Earlier => i32::from(weekday - today) - 7,
        };
        self.today.checked_add(days.days()).ok()
    }

    /// Returns the Saturday of a weekend.
    fn weekend(&self, which: Which) -> Option<Date> {
        let today = i32::from(self.today.weekday().to_monday_one_offset());
        let past = -(today + 1);
        let is_weekend = today >= 6;
        let coming = 6 - today;
        let days = match which {
            Which::Last => past,
            Which::Earlier => past - 7,
            Which::Next => coming + if is_weekend { 7 } else { 0 },
            Which::This | Which::Plain if is_weekend || self.future => coming,
            Which::This | Which::Plain => past,
        };
        self.today.checked_add(days.days()).ok()
    }

    fn ago(&self, number: i32, unit: Unit) -> Option<(Vec<Days>, f32)> {
        let middle = self.day_ago(number, unit)?;
        // The longer ago, the less exact people are.
        let (exact, about, slack) = match unit {
            Unit::Hour | Unit::Day => (0, 0, 2.0),
            Unit::Week | Unit::Fortnight => (0, 3, 4.0),
            Unit::Month => (4, 12, 10.0),
            Unit::Year => (20, 60, 40.0),
        };
        let around = |days: i32, weight: f32| {
            Some((middle.checked_sub(days.days()).ok()?, middle.checked_add(days.days()).ok()?, weight))
        };
        Some((vec![around(exact, 1.0)?, around(about, 0.85)?], slack))
    }

    fn day_ago(&self, number: i32, unit: Unit) -> Option<Date> {
        self.today.checked_sub(steps(unit, number)).ok()
    }

    fn unit(&self, unit: Unit, step: i32) -> Option<(Vec<Days>, f32)> {
        let today = self.today;
        let moved = |date: Date| date.checked_add(steps(unit, step)).ok();
        let (first, last, slack) = match unit {
            Unit::Hour => (today, today, 0.2),
            Unit::Day => (moved(today)?, moved(today)?, 2.0),
            Unit::Week | Unit::Fortnight => {
                let monday = moved(today.checked_sub(i32::from(today.weekday().to_monday_zero_offset()).days()).ok()?)?;
                (monday, monday.checked_add(6.days()).ok()?, 3.0)
            }
            Unit::Month => {
                let first = moved(today.first_of_month())?;
                (first, first.last_of_month(), 6.0)
            }
            Unit::Year => {
                let year = i16::try_from(i32::from(today.year()) + step).ok()?;
                (Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?, 30.0)
            }
        };
        Some((vec![(first, last, 1.0)], slack))
    }

    fn season(&self, season: i8, year: Option<i16>, which: Which) -> Option<Vec<Days>> {
        let zone = self.calendar.zone.iana_name().unwrap_or_default();
        let shift = if SOUTHERN.iter().any(|southern| zone.starts_with(southern)) { 6 } else { 0 };
        let month = (season * 3 + shift - 1) % 12 + 1;
        let last = |first: Date| Some(first.checked_add(2.months()).ok()?.last_of_month());
        let start = |year: i16| Date::new(year, month, 1).ok();
        if let Some(year) = year {
            return Some(vec![(start(year)?, last(start(year)?)?, 1.0)]);
        }
        let starts: Vec<Date> = ((self.today.year() - 3)..=(self.today.year() + 1)).filter_map(start).collect();
        let over = |first: &Date| last(*first).is_some_and(|last| last < self.today);
        let chosen = match which {
            Which::Next => starts.iter().copied().find(|first| *first > self.today),
            Which::Last => starts.iter().rev().copied().find(over),
            Which::Earlier => starts.iter().rev().copied().filter(over).nth(1),
            Which::Plain | Which::This if self.future => {
                starts.iter().copied().find(|first| last(*first) >= Some(self.today))
            }
            Which::Plain | Which::This => starts.iter().rev().copied().find(|first| *first <= self.today),
        }?;
        let mut days = vec![(chosen, last(chosen)?, 1.0)];
        if which == Which::Plain {
            for other in starts.into_iter().filter(|first| *first != chosen) {
                days.push((other, last(other)?, OTHER_READING));
            }
        }
        Some(days)
    }
}

fn in_third(first: Date, third: Option<Third>, weight: f32) -> Days {
    let on = |day: i8| first.with().day(day).build().unwrap_or(first);
    match third {
        None => (first, first.last_of_month(), weight),
        Some(Third::Early) => (first, on(10), weight),
        Some(Third::Middle) => (on(11), on(20), weight),
        Some(Third::Late) => (on(21), first.last_of_month(), weight),
    }
}

fn steps(unit: Unit, number: i32) -> Span {
    match unit {
        Unit::Hour => Span::new(),
        Unit::Day => number.days(),
        Unit::Week => number.weeks(),
        Unit::Fortnight => number.saturating_mul(2).weeks(),
        Unit::Month => number.months(),
        Unit::Year => number.years(),
    }
}
