//! The current day and time, for messages that ask for it. Every other prompt leaves them out: small models comment on
//! whatever the prompt says.

use azera_types::{TimeZone, Timestamp};

/// What people write when they ask for the day or the time, in lower case. A message must also be short or hold a
/// question mark, see [`asks_for_today`].
const QUESTIONS: &[&str] = &[
    "what day",
    "which day",
    "what's today",
    "what is today",
    "today's date",
    "what date",
    "which date",
    "the date today",
    "what time is it",
    "what's the time",
    "the time now",
    "what month",
    "which month",
    "what year",
    "which year",
    "day of the week",
    "weekday",
    "how many days",
    "how long until",
    "how many weeks",
    "welcher tag",
    "welchen tag",
    "welches datum",
    "der wievielte",
    "wie spät",
    "wieviel uhr",
    "wie viel uhr",
    "wochentag",
    "quel jour",
    "quelle date",
    "quelle heure",
    "qué día",
    "que dia",
    "qué fecha",
    "qué hora",
    "che giorno",
    "che ora",
    "che data",
    "welke dag",
    "hoe laat",
    "que horas",
    "hangi gün",
    "saat kaç",
];

/// The most characters of a message that asks without a question mark.
const SHORT: usize = 60;

/// Returns true if a message seems to ask for the current day or time.
pub(crate) fn asks_for_today(message: &str) -> bool {
    let asks = message.contains(['?', '？']) || message.chars().count() <= SHORT;
    asks && {
        let lower = message.to_lowercase().replace('’', "'");
        QUESTIONS.iter().any(|question| lower.contains(question))
    }
}

/// Returns a sentence with the day and the time.
pub(crate) fn today(now: Timestamp, zone: &TimeZone) -> String {
    now.to_zoned(zone.clone()).strftime("It is %A, %-d %B %Y, %H:%M.").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_for_the_day_are_recognised() {
        for asks in ["What day is it?", "what’s the time", "Wie spät ist es?", "How many days until Christmas?"] {
            assert!(asks_for_today(asks), "{asks}");
        }
        let long = "I wrote down what day the letter came, because my landlord said that it never arrived at all.";
        for other in ["I had a bad day.", "See you tomorrow", long] {
            assert!(!asks_for_today(other), "{other}");
        }
    }

    #[test]
    fn the_day_is_that_of_the_time_zone() {
        let now: Timestamp = "2026-11-27T23:30:00Z".parse().unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(today(now, &zone), "It is Saturday, 28 November 2026, 00:30.");
    }
}
