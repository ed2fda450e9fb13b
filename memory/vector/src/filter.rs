use azera_memory::{Grant, Right};
use azera_types::{PersonaId, Scope, Timestamp};
use qdrant_edge::external::ordered_float::OrderedFloat;
use qdrant_edge::{Condition, FieldCondition, Filter, JsonPath, Match, Range};

use crate::config::{AT, KEY};

/// Stands between persona and scope; ids hold no control characters.
const SEPARATOR: char = '\u{1f}';

/// Persona and scope as one string, so that one look-up filters by both.
pub(crate) fn key(persona: &PersonaId, scope: &Scope) -> String {
    format!("{persona}{SEPARATOR}{scope}")
}

/// Microseconds since 1970, rounded down. The engine compares them as f64, which is exact until the year 2255.
pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_nanosecond().div_euclid(1_000).try_into().unwrap_or(i64::MAX)
}

/// What a right leaves visible up to `until`.
pub(crate) fn filter(right: &Right, until: Timestamp) -> Filter {
    let name = |grant: &Grant| key(right.persona(), &grant.scope);
    let whole: Vec<String> = right.grants().iter().filter(|grant| grant.since.is_none()).map(name).collect();
    let partly = right.grants().iter().filter_map(|grant| Some((grant, grant.since?)));
    // A time within the same microsecond as the horizon counts as before it: never more is shown than the right says.
    let horizon = |since: Timestamp| micros(since) + i64::from(since.as_nanosecond().rem_euclid(1_000) != 0);
    let mut places = vec![Condition::Field(FieldCondition::new_match(path(KEY), Match::from(whole)))];
    places.extend(partly.map(|(grant, since)| {
        let place = FieldCondition::new_match(path(KEY), Match::from(name(grant)));
        let late = FieldCondition::new_range(path(AT), range(Some(horizon(since)), None));
        Condition::Filter(Filter { must: Some(vec![Condition::Field(place), Condition::Field(late)]), ..Filter::new() })
    }));
    let early = FieldCondition::new_range(path(AT), range(None, Some(micros(until))));
    Filter { must: Some(vec![Condition::Field(early)]), should: Some(places), ..Filter::new() }
}

/// The path of a field of the payload.
pub(crate) fn path(field: &str) -> JsonPath {
    JsonPath { first_key: field.to_owned(), rest: Vec::new() }
}

fn range(from: Option<i64>, to: Option<i64>) -> Range<OrderedFloat<f64>> {
    let number = |at: i64| OrderedFloat(at as f64);
    Range { lt: None, gt: None, gte: from.map(number), lte: to.map(number) }
}
