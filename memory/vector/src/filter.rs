use azera_memory::Grant;
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

/// The persona and scope of a key.
pub(crate) fn persona_and_scope(key: &str) -> Option<(PersonaId, Scope)> {
    let (persona, scope) = key.split_once(SEPARATOR)?;
    Some((PersonaId::new(persona).ok()?, scope.parse().ok()?))
}

/// Microseconds since 1970, rounded down. The engine compares them as f64, which is exact until the year 2255.
pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_nanosecond().div_euclid(1_000).try_into().unwrap_or(i64::MAX)
}

/// What a grant to a persona leaves visible, and of that what is not younger than `until`.
pub(crate) fn filter(persona: &PersonaId, grant: &Grant, until: Timestamp) -> Filter {
    // A time within the same microsecond as the horizon counts as before it: never more is shown than the right says.
    let horizon = |since: Timestamp| micros(since) + i64::from(since.as_nanosecond().rem_euclid(1_000) != 0);
    let place = FieldCondition::new_match(path(KEY), Match::from(key(persona, &grant.scope)));
    let number = |at: i64| OrderedFloat(at as f64);
    let (from, to) = (grant.since.map(horizon).map(number), Some(number(micros(until))));
    let time = FieldCondition::new_range(path(AT), Range { lt: None, gt: None, gte: from, lte: to });
    Filter { must: Some(vec![Condition::Field(place), Condition::Field(time)]), ..Filter::new() }
}

/// The path of a field of the payload.
pub(crate) fn path(field: &str) -> JsonPath {
    JsonPath { first_key: field.to_owned(), rest: Vec::new() }
}
