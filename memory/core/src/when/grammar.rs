//! Puts the words of time together: finds the first time that a text names.

use std::ops::Range;

use super::calendar::Resolver;
use super::lexicon::Meaning;
use super::reading::{Prefix, Read, Span};
use super::span::Relation;
use super::words::{Token, meanings_at, tokens};
use super::{Calendar, Found, Named, Third, TimeSpan, Unit, Which, numeric};

/// Words without a meaning of their own that may stand between two words of a time.
const MAX_FILLERS: usize = 2;

/// Bytes behind the last word that is read in which a date in digits may end.
const MAX_DATE_BYTES: usize = 64;

/// Words after `the 14th` that make it another thing than a day: whatever is not one of these.
const AFTER_A_DAY: &[&str] =
    &["in", "at", "and", "or", "of", "when", "with", "to", "by", "before", "after", "this", "last"];

/// Finds times in one text.
pub(super) struct Reader<'a> {
    calendar: &'a Calendar,
    tokens: Vec<Token>,
    digits: Vec<(Range<usize>, Named)>,
    is_person: &'a dyn Fn(&str) -> bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, calendar: &'a Calendar, is_person: &'a dyn Fn(&str) -> bool) -> Self {
        let tokens = tokens(text);
        // Dates behind the words that are read cannot be found.
        let end = tokens.last().map_or(0, |token| token.range.end.saturating_add(MAX_DATE_BYTES));
        let read = text.get(..text.floor_char_boundary(end)).unwrap_or(text);
        Self { calendar, tokens, digits: numeric::dates(read, calendar), is_person }
    }

    pub(super) fn find(&self) -> Option<Found> {
        let future = (0..self.tokens.len()).any(|index| self.has(index, |meaning| meaning == Meaning::Future));
        let resolver = Resolver::new(self.calendar, future);
        (0..self.tokens.len()).find_map(|index| self.found_at(index, &resolver))
    }

    /// Returns the longest time that begins at a word, with its preposition.
    fn found_at(&self, index: usize, resolver: &Resolver<'_>) -> Option<Found> {
        let mut best: Option<(usize, Span)> = None;
        for (prefix, start) in self.prefixes(index) {
            // `The week before 3 August` is close to that day; `three times a week since May` says since when.
            let is_near = index.checked_sub(1).is_some_and(|before| self.unit(before).is_some());
            let is_side = matches!(prefix, Prefix::Side(relation) if relation != Relation::Since);
            let prefix = if is_near && is_side { Prefix::On } else { prefix };
            let Some((end, span)) = self.span_at(start, prefix, resolver) else { continue };
            if best.as_ref().is_none_or(|(before, _)| end > *before) {
                best = Some((end, span));
            }
        }
        let (end, Span { span, is_vague, is_relative }) = best?;
        let (first, last) = (self.tokens.get(index)?, self.tokens.get(end.checked_sub(1)?)?);
        Some(Found { span, range: first.range.start..last.range.end, is_vague, is_relative })
    }

    /// Returns the prepositions at a word, each with the word after it; always also none.
    fn prefixes(&self, index: usize) -> Vec<(Prefix, usize)> {
        let of = |meaning| {
            Some(match meaning {
                Meaning::In => Prefix::In,
                Meaning::On => Prefix::On,
                Meaning::Between => Prefix::Between,
                Meaning::Before => Prefix::Side(Relation::Before),
                Meaning::After => Prefix::Side(Relation::After),
                Meaning::Since => Prefix::Side(Relation::Since),
                Meaning::Until => Prefix::Side(Relation::Until),
                _ => return None,
            })
        };
        let found = self.meanings(index).filter_map(|(meaning, words)| Some((of(meaning)?, index + words)));
        let mut prefixes: Vec<(Prefix, usize)> = found.collect();
        prefixes.push((Prefix::None, index));
        prefixes
    }

    fn span_at(&self, start: usize, prefix: Prefix, resolver: &Resolver<'_>) -> Option<(usize, Span)> {
        let relation = match prefix {
            Prefix::Side(relation) => relation,
            _ => Relation::Within,
        };
        if prefix == Prefix::Between
            && let Some((span, end)) = self.between(start, resolver)
        {
            return Some((end, Span { span, is_vague: false, is_relative: false }));
        }
        let read = self.longest(start, prefix)?;
        let is_vague = matches!(read.named, Named::Weekday(_, Which::Plain) | Named::DayOfMonth(_));
        let is_relative = !matches!(read.named, Named::Date { .. } | Named::Year(_) | Named::Month(_, Which::Plain));
        let span = resolver.span(read.named, read.part, relation)?;
        Some((read.end, Span { span, is_vague, is_relative }))
    }

    /// Reads `3 and 10 March` or `March and May`.
    fn between(&self, start: usize, resolver: &Resolver<'_>) -> Option<(TimeSpan, usize)> {
        let (day, after_day) = self.number(self.skip(start)).map_or((None, start), |(day, end)| (Some(day), end));
        let first = self.longest(start, Prefix::In);
        let middle = first.as_ref().map_or(after_day, |read| read.end);
        let (_, second_start) = self.meanings(middle).find(|(meaning, _)| *meaning == Meaning::To)?;
        let second = self.longest(middle + second_start, Prefix::In)?;
        let named = match (first, second.named) {
            (Some(first), _) => first.named,
            (None, Named::Date { year, month, day: Some(_), .. }) => {
                let day = i8::try_from(day?).ok().filter(|day| *day <= 31);
                Named::Date { year, month, day: Some(day?), swapped: false, third: None, moment: None }
            }
            _ => return None,
        };
        // `March and May 2025` gives the year once.
        let named = match (named, second.named) {
            (Named::Date { year: None, month, day, third, moment, .. }, Named::Date { year: Some(year), .. }) => {
                Named::Date { year: Some(year), month, day, swapped: false, third, moment }
            }
            (named, _) => named,
        };
        let (from, to) =
            (resolver.span(named, None, Relation::Within)?, resolver.span(second.named, None, Relation::Within)?);
        Some((to.joined_with(&from)?, second.end))
    }

    /// Returns the longest time at a word, with the part of the day after or before it.
    fn longest(&self, start: usize, prefix: Prefix) -> Option<Read> {
        let mut best: Option<Read> = None;
        for skipped in 0..=MAX_FILLERS {
            let at = start + skipped;
            if skipped > 0 && !self.has(at - 1, |meaning| meaning == Meaning::Filler) {
                break;
            }
            for read in self.readings(at, prefix) {
                if best.is_none_or(|best| read.end > best.end) {
                    best = Some(read);
                }
            }
        }
        best.map(|read| self.with_part(read))
    }

    fn readings(&self, at: usize, prefix: Prefix) -> Vec<Read> {
        let read = |(named, end)| Read { named, part: None, end };
        let all = [
            self.in_digits(at),
            self.day_and_month(at),
            self.month(at, prefix),
            self.day_of_month(at, prefix),
            self.year(at, prefix),
            self.ago(at),
            self.lately(at),
            self.stepped(at),
            self.season(at, prefix),
        ];
        let mut readings: Vec<Read> = all.into_iter().flatten().map(read).collect();
        for (meaning, words) in self.meanings(at) {
            match meaning {
                Meaning::Day(days) if self.is_day(at, days) => readings.push(read((Named::Day(days), at + words))),
                Meaning::DayAndPart(days, part) => {
                    readings.push(Read { named: Named::Day(days), part: Some(part), end: at + words });
                }
                Meaning::Feast(month, day, length) => {
                    let (year, end) = self.following_year(at + words);
                    readings.push(read((Named::Feast(month, day, length, year), end)));
                }
                // `the evening of 14 March`
                Meaning::Part(part) => {
                    let day = self.skip(at + words);
                    let date = self.in_digits(day).or_else(|| self.day_and_month(day));
                    readings.extend(date.map(|(named, end)| Read { named, part: Some(part), end }));
                }
                _ => {}
            }
        }
        readings
    }

    /// `hier` is a time in French only.
    fn is_day(&self, at: usize, days: i32) -> bool {
        let is_hier = days == -1 && self.word(at) == Some("hier");
        !is_hier || (0..self.tokens.len()).any(|index| self.has(index, |meaning| meaning == Meaning::NeedsHier))
    }

    fn with_part(&self, read: Read) -> Read {
        let is_one_day = matches!(
            read.named,
            Named::Day(_) | Named::Weekday(..) | Named::DayOfMonth(_) | Named::Date { day: Some(_), .. }
        );
        if !is_one_day || read.part.is_some() {
            return read;
        }
        let mut at = read.end;
        let is_between = |meaning| matches!(meaning, Meaning::Filler | Meaning::In | Meaning::On);
        for _ in 0..=MAX_FILLERS {
            let part = self.meanings(at).find_map(|(meaning, words)| match meaning {
                Meaning::Part(part) if !self.begins(at) => Some((part, words)),
                _ => None,
            });
            if let Some((part, words)) = part {
                return Read { part: Some(part), end: at + words, ..read };
            }
            match self.meanings(at).find(|(meaning, _)| is_between(*meaning)) {
                Some((_, words)) if !self.begins(at) => at += words,
                _ => break,
            }
        }
        read
    }

    fn in_digits(&self, at: usize) -> Option<(Named, usize)> {
        let start = self.tokens.get(at)?.range.start;
        let (range, named) = self.digits.iter().find(|(range, _)| range.start == start)?;
        let inside = self.tokens.iter().skip(at).take_while(|token| token.range.start < range.end).count();
        Some((*named, at + inside))
    }

    /// Reads `14 March 2026`, `the 14th of March`, `March 14th, 2026`, `14. März`.
    fn day_and_month(&self, at: usize) -> Option<(Named, usize)> {
        let named = |year, month, day| {
            let day = i8::try_from(day).ok().filter(|day| (1..=31).contains(day))?;
            Some(Named::Date { year, month, day: Some(day), swapped: false, third: None, moment: None })
        };
        if let Some((day, after)) = self.number(at) {
            let (month, end) = self.any_month(self.skip(after))?;
            let (year, end) = self.following_year(end);
            return Some((named(year, month, day)?, end));
        }
        let (month, after) = self.any_month(at)?;
        let (day, after) = self.number(self.skip(after))?;
        // `in March 3 people came` names no day.
        let is_count = self.has(after, |meaning| matches!(meaning, Meaning::Unit(_)));
        let (year, end) = self.following_year(after);
        (!is_count).then_some((named(year, month, day)?, end))
    }

    /// Reads a month without a day: `in March`, `March 2026`, `last March`, `early March`.
    fn month(&self, at: usize, prefix: Prefix) -> Option<(Named, usize)> {
        if let Some((which, after)) = self.which(at)
            && let Some((month, end)) = self.any_month(self.skip(after))
        {
            return Some((Named::Month(month, which), end));
        }
        let third = self.meanings(at).find_map(|(meaning, words)| match meaning {
            Meaning::Early => Some((Third::Early, words)),
            Meaning::Middle => Some((Third::Middle, words)),
            Meaning::Late => Some((Third::Late, words)),
            _ => None,
        });
        let start = third.map_or(at, |(_, words)| self.skip(at + words));
        let (month, after) = self.any_month(start)?;
        let (year, end) = self.following_year(self.skip(after));
        let third = third.map(|(third, _)| third);
        if year.is_some() || third.is_some() {
            let end = if year.is_some() { end } else { after };
            return Some((Named::Date { year, month, day: None, swapped: false, third, moment: None }, end));
        }
        if let Some((which, end)) = self.which(after).filter(|_| !self.begins(after)) {
            return Some((Named::Month(month, which), end));
        }
        self.is_month(start, prefix).then_some((Named::Month(month, Which::Plain), after))
    }

    /// Returns true if a bare month is a time and no person.
    fn is_month(&self, at: usize, prefix: Prefix) -> bool {
        let is = |wanted| self.has(at, |meaning| meaning == wanted);
        let is_short = self.meanings(at).any(|(meaning, _)| matches!(meaning, Meaning::Short(_)));
        let known = self.word(at).is_some_and(|word| (self.is_person)(word));
        match prefix {
            Prefix::In | Prefix::Between => true,
            _ if known || is_short => false,
            Prefix::On | Prefix::None => !is(Meaning::Name),
            Prefix::Side(_) => !is(Meaning::Name) || !self.acts(at),
        }
    }

    /// Returns true if the word after this one shows that this one is a person.
    fn acts(&self, at: usize) -> bool {
        !self.begins(at + 1) && self.has(at + 1, |meaning| meaning == Meaning::PersonBefore)
    }

    fn any_month(&self, at: usize) -> Option<(i8, usize)> {
        self.meanings(at).find_map(|(meaning, words)| match meaning {
            Meaning::Month(month) | Meaning::Short(month) => Some((month, at + words)),
            _ => None,
        })
    }

    /// Reads `the 14th`.
    fn day_of_month(&self, at: usize, prefix: Prefix) -> Option<(Named, usize)> {
        let word = self.word(at)?;
        let is_ordinal = ["st", "nd", "rd", "th"].iter().any(|ending| word.ends_with(ending));
        let (day, end) = self.number(at).filter(|_| is_ordinal && prefix != Prefix::None && prefix != Prefix::In)?;
        let is_over = self.begins(end)
            || self.word(end).is_none_or(|next| AFTER_A_DAY.contains(&next))
            || self.has(end, |meaning| matches!(meaning, Meaning::Part(_)));
        let day = i8::try_from(day).ok().filter(|day| is_over && (1..=31).contains(day))?;
        Some((Named::DayOfMonth(day), end))
    }

    fn year(&self, at: usize, prefix: Prefix) -> Option<(Named, usize)> {
        let (year, end) = self.following_year(at);
        let newest = self.calendar.now.to_zoned(self.calendar.zone.clone()).year() + 1;
        // A number such as 2070 is a year only after a preposition.
        let year = year.filter(|year| !matches!(prefix, Prefix::None) || (1950..=newest).contains(year))?;
        (!self.has(end, |meaning| matches!(meaning, Meaning::Unit(_)))).then_some((Named::Year(year), end))
    }

    fn following_year(&self, at: usize) -> (Option<i16>, usize) {
        let year = self.word(at).filter(|word| word.len() == 4 && (word.starts_with("19") || word.starts_with("20")));
        match year.and_then(|word| word.parse().ok()) {
            Some(year) => (Some(year), at + 1),
            None => (None, at),
        }
    }

    /// Reads `three days ago` and its forms in other languages.
    fn ago(&self, at: usize) -> Option<(Named, usize)> {
        if let Some((_, words)) = self.meanings(at).find(|(meaning, _)| *meaning == Meaning::AgoBefore) {
            let (number, after) = self.count(at + words)?;
            let (unit, end) = self.unit(after)?;
            return Some((Named::Ago(number, unit), end));
        }
        let (number, after) = self.count(at)?;
        let (unit, after) = self.unit(after)?;
        let (_, words) = self.meanings(after).find(|(meaning, _)| *meaning == Meaning::AgoAfter)?;
        (!self.begins(after)).then_some((Named::Ago(number, unit), after + words))
    }

    /// Reads `the last three days` and `the past week`.
    fn lately(&self, at: usize) -> Option<(Named, usize)> {
        let (which, after) = self.which(at)?;
        let (number, after) = match self.count(after) {
            Some((number, after)) => (number, after),
            None if self.word(at) == Some("past") => (1, after),
            None => return None,
        };
        let (unit, end) = self.unit(after)?;
        (which == Which::Last && unit != Unit::Hour).then_some((Named::Lately(number, unit), end))
    }

    /// Reads weekdays, weekends and units: `last Monday`, `Monday last week`, `this weekend`, `la semana pasada`.
    fn stepped(&self, at: usize) -> Option<(Named, usize)> {
        let (before, thing) = match self.which(at) {
            Some((which, after)) => (Some(which), self.skip(after)),
            None => (None, at),
        };
        let (kind, words) = self
            .meanings(thing)
            .find(|(meaning, _)| matches!(meaning, Meaning::Weekday(_) | Meaning::Weekend | Meaning::Unit(_)))?;
        let after = thing + words;
        // `Monday last week` and `lunes pasado`
        let last_week = self.stepped_week(after).filter(|_| before.is_none() && matches!(kind, Meaning::Weekday(_)));
        let behind = match self.meanings(after).find(|(meaning, _)| *meaning == Meaning::BeforeLast) {
            Some((_, words)) => Some((Which::Earlier, after + words)),
            None => self.which(after).filter(|_| !self.begins(after) && self.unit(self.skip(after + 1)).is_none()),
        };
        let (which, end) = match (before, last_week, behind) {
            (_, Some((which, end)), _) => (which, end),
            (Some(which), ..) => (which, after),
            (None, None, Some((which, end))) => (which, end),
            (None, None, None) => (Which::Plain, after),
        };
        let named = match kind {
            Meaning::Weekday(weekday) => Named::Weekday(weekday, which),
            Meaning::Weekend => Named::Weekend(which),
            Meaning::Unit(unit) => {
                let step = match which {
                    Which::Plain => return None,
                    Which::Last => -1,
                    Which::Earlier => -2,
                    Which::This => 0,
                    Which::Next => 1,
                };
                if matches!(unit, Unit::Hour | Unit::Day) {
                    return None;
                }
                Named::Unit(unit, step)
            }
            _ => return None,
        };
        Some((named, end))
    }

    fn stepped_week(&self, at: usize) -> Option<(Which, usize)> {
        let at = self.skip(at);
        let (which, after) = self.which(at)?;
        let (unit, end) = self.unit(self.skip(after))?;
        let which = match which {
            Which::Last => Which::Earlier,
            which => which,
        };
        (unit == Unit::Week).then_some((which, end))
    }

    /// Reads a season. Without a word of time beside it, `summer` may be a name and `été` a verb.
    fn season(&self, at: usize, prefix: Prefix) -> Option<(Named, usize)> {
        let (which, start) = self.which(at).map_or((None, at), |(which, after)| (Some(which), self.skip(after)));
        let (season, after) = self.meanings(start).find_map(|(meaning, words)| match meaning {
            Meaning::Season(season) => Some((season, start + words)),
            _ => None,
        })?;
        let (year, end) = self.following_year(self.skip(after));
        if year.is_some() {
            return Some((Named::Season(season, year, Which::Plain), end));
        }
        let behind = self.which(after).filter(|_| which.is_none() && !self.begins(after));
        let known = self.word(start).is_some_and(|word| (self.is_person)(word));
        match (which, behind) {
            (Some(which), _) => Some((Named::Season(season, None, which), after)),
            (None, Some((which, end))) => Some((Named::Season(season, None, which), end)),
            (None, None) => match prefix {
                Prefix::In => Some((Named::Season(season, None, Which::Plain), after)),
                Prefix::Side(_) if !known && !self.acts(start) => {
                    Some((Named::Season(season, None, Which::Plain), after))
                }
                _ => None,
            },
        }
    }

    fn which(&self, at: usize) -> Option<(Which, usize)> {
        self.meanings(at).find_map(|(meaning, words)| {
            let which = match meaning {
                Meaning::Last => Which::Last,
                Meaning::This => Which::This,
                Meaning::Next => Which::Next,
                _ => return None,
            };
            Some((which, at + words))
        })
    }

    fn unit(&self, at: usize) -> Option<(Unit, usize)> {
        self.meanings(at).find_map(|(meaning, words)| match meaning {
            Meaning::Unit(unit) => Some((unit, at + words)),
            _ => None,
        })
    }

    /// Reads a number in digits or in words.
    fn count(&self, at: usize) -> Option<(i32, usize)> {
        let in_words = self.meanings(at).find_map(|(meaning, words)| match meaning {
            Meaning::Number(number) => Some((number, at + words)),
            _ => None,
        });
        let is_plain = self.word(at).is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
        in_words.or_else(|| self.number(at).filter(|_| is_plain))
    }

    /// Reads a number of up to three digits, perhaps with an ending: `14`, `14th`, `1er`.
    fn number(&self, at: usize) -> Option<(i32, usize)> {
        let word = self.word(at)?;
        let digits = word.chars().take_while(char::is_ascii_digit).count();
        let (number, ending) = word.split_at_checked(digits)?;
        let is_ending = matches!(ending, "" | "st" | "nd" | "rd" | "th" | "er" | "e" | "º" | "o");
        let number = number.parse().ok().filter(|_| is_ending && (1..=3).contains(&digits))?;
        Some((number, at + 1))
    }

    /// Returns the next word that is no filler.
    fn skip(&self, at: usize) -> usize {
        let is_filler = |index: &usize| !self.begins(*index) && self.has(*index, |meaning| meaning == Meaning::Filler);
        (at..at + MAX_FILLERS).find(|index| !is_filler(index)).unwrap_or(at + MAX_FILLERS)
    }

    fn word(&self, at: usize) -> Option<&str> {
        self.tokens.get(at).map(|token| token.folded.as_str())
    }

    /// Returns true if something new begins at a word, or the text is over.
    fn begins(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| token.begins)
    }

    fn has(&self, at: usize, is: impl Fn(Meaning) -> bool) -> bool {
        self.meanings(at).any(|(meaning, _)| is(meaning))
    }

    fn meanings(&self, at: usize) -> impl Iterator<Item = (Meaning, usize)> {
        meanings_at(&self.tokens, at)
    }
}
