//! Times in texts, from the words to the days.

use azera_types::Timestamp;
use jiff::tz::TimeZone;

use super::*;

/// A Monday evening.
const NOW: &str = "2026-03-09T20:00:00Z";

fn calendar() -> Calendar {
    Calendar::new(NOW.parse().unwrap(), TimeZone::UTC)
}

/// Returns the first and last day of the likeliest reading, as `2026-03-08..2026-03-08`, with the side if there is one.
fn days(text: &str, calendar: &Calendar, known: &[&str]) -> Option<String> {
    let span = find(text, calendar, &|word| known.contains(&word))?.span;
    let range = span.ranges.first()?;
    let day = |at: Timestamp| at.to_zoned(calendar.zone.clone()).date();
    let last = range.to.checked_sub(jiff::Span::new().nanoseconds(1)).ok()?;
    let side = if span.is_within() { String::new() } else { format!("{:?} ", span.relation) };
    Some(format!("{side}{}..{}", day(range.from), day(last)))
}

#[track_caller]
fn check(text: &str, want: &str) {
    assert_eq!(days(text, &calendar(), &[]).as_deref(), Some(want), "{text}");
}

#[track_caller]
fn check_none(text: &str) {
    assert_eq!(days(text, &calendar(), &[]), None, "{text}");
}

#[test]
fn dates_are_read_in_every_common_form() {
    for text in [
        "What did Ann do on 14 February 2026?",
        "What did Ann do on 2026-02-14?",
        "What did Ann do on Feb 14th?",
        "What did Ann do on 14/02/2026?",
        "on 14.02.2026",
        "on 14 Feb",
        "on the 14th of February",
        "on February 14, 2026",
        "am 14. Februar",
        "el 14 de febrero de 2026",
        "le 14 février",
        "il 14 febbraio",
        "em 14 de fevereiro",
        "14 Şubat",
        "op 14 februari",
        "at 2026-02-14T09:30:00Z",
        "on the 14th",
        "on 14/02",
    ] {
        let found = days(text, &calendar(), &[]);
        assert!(
            found.as_deref().is_some_and(|days| days.starts_with("2026-02-14..2026-02-14") || text.contains("T09")),
            "{text}: {found:?}"
        );
    }
    check("in 2026-02", "2026-02-01..2026-02-28");
    check("in February", "2026-02-01..2026-02-28");
    check("in May", "2025-05-01..2025-05-31");
    check("late May 2024", "2024-05-21..2024-05-31");
    check("during 2022", "2022-01-01..2022-12-31");
    check("between 3 and 10 February", "2026-02-03..2026-02-10");
    check("before 14 February", "Before 2026-02-14..2026-02-14");
    check("seit Januar", "Since 2026-01-01..2026-01-31");
}

#[test]
fn relative_times_count_from_the_moment_of_the_question() {
    check("What did Ann do yesterday?", "2026-03-08..2026-03-08");
    check("What did Ann do last Monday?", "2026-03-02..2026-03-02");
    check("What did Ann do a week ago?", "2026-03-02..2026-03-02");
    check("the day before yesterday", "2026-03-07..2026-03-07");
    check("three days ago", "2026-03-06..2026-03-06");
    check("two weeks ago", "2026-02-23..2026-02-23");
    check("last week", "2026-03-02..2026-03-08");
    check("last weekend", "2026-03-07..2026-03-08");
    check("this morning", "2026-03-09..2026-03-09");
    check("last month", "2026-02-01..2026-02-28");
    check("last year", "2025-01-01..2025-12-31");
    check("on Friday", "2026-03-06..2026-03-06");
    check("Tuesday last week", "2026-03-03..2026-03-03");
    check("in the last three days", "2026-03-06..2026-03-09");
    check("last summer", "2025-06-01..2025-08-31");
    check("in spring", "2026-03-01..2026-05-31");
    check("at Christmas", "2025-12-24..2025-12-26");
    check("vor zwei Wochen", "2026-02-23..2026-02-23");
    check("letzten Montag", "2026-03-02..2026-03-02");
    check("la semana pasada", "2026-03-02..2026-03-08");
    check("il y a trois jours", "2026-03-06..2026-03-06");
    check("qu'est-ce qu'elle a fait hier soir", "2026-03-08..2026-03-09");
    check("due settimane fa", "2026-02-23..2026-02-23");
    check("há duas semanas", "2026-02-23..2026-02-23");
    check("iki gün önce", "2026-03-07..2026-03-07");
    check("eergisteren", "2026-03-07..2026-03-07");
}

#[test]
fn what_is_no_time_is_not_read_as_one() {
    for text in [
        "May I ask something?",
        "room 2400 is locked",
        "What did April say?",
        "Does May like it?",
        "the first time we met",
        "on the 3rd floor",
        "open 24/7",
        "Was ist hier los?",
        "the summer is a nice name",
        "version 1.2.3",
        "How did they march on?",
    ] {
        check_none(text);
    }
}

#[test]
fn a_known_person_wins_over_a_month_unless_the_grammar_shows_the_month() {
    let known = |text: &str| days(text, &calendar(), &["april", "june"]);
    assert_eq!(known("What happened since April?"), None);
    assert_eq!(known("before April moved out"), None);
    assert_eq!(known("What happened in April?").as_deref(), Some("2025-04-01..2025-04-30"));
    assert_eq!(known("on June 3").as_deref(), Some("2025-06-03..2025-06-03"));
    assert_eq!(days("since April", &calendar(), &[]).as_deref(), Some("Since 2025-04-01..2025-04-30"));
}

#[test]
fn days_are_those_of_the_zone_and_the_hemisphere() {
    let auckland = Calendar::new(NOW.parse().unwrap(), TimeZone::get("Pacific/Auckland").unwrap());
    assert_eq!(days("yesterday", &auckland, &[]).as_deref(), Some("2026-03-09..2026-03-09"));
    assert_eq!(days("last summer", &auckland, &[]).as_deref(), Some("2025-12-01..2026-02-28"));
    let month_first = Calendar { month_first: true, ..calendar() };
    assert_eq!(days("on 02/03/2026", &month_first, &[]).as_deref(), Some("2026-02-03..2026-02-03"));
    assert_eq!(days("on 02/03/2026", &calendar(), &[]).as_deref(), Some("2026-03-02..2026-03-02"));
}

/// A Monday noon in Berlin.
fn berlin() -> Calendar {
    Calendar::new("2026-07-20T10:00:00Z".parse().unwrap(), TimeZone::get("Europe/Berlin").unwrap())
}

#[test]
fn what_was_known_at_a_time_of_day_ends_at_that_moment() {
    for (text, want) in [
        ("2026-06-30T10:00:00Z", "2026-06-30T10:00:00Z"),
        ("2026-06-30T10:00:00-04:00", "2026-06-30T14:00:00Z"),
        ("2026-06-30T10:00:00", "2026-06-30T08:00:00Z"),
        (" 2026-06-30 10:00 ", "2026-06-30T08:00:00Z"),
        ("2026-06-30T10", "2026-06-30T08:00:00Z"),
        ("20260630T101530", "2026-06-30T08:15:30Z"),
        ("2026-06-30T23:30", "2026-06-30T21:30:00Z"),
        ("2026-06-30T10:00[Asia/Tokyo]", "2026-06-30T01:00:00Z"),
        ("2026-06-30 10:00:00 +0200", "2026-06-30T08:00:00Z"),
        ("at 2026-06-30 10:00", "2026-06-30T08:00:00Z"),
        ("before 2026-06-30T10:00", "2026-06-30T08:00:00Z"),
        ("between 2026-06-30T08:00 and 2026-06-30T10:00", "2026-06-30T08:00:00Z"),
        // The clocks skip this time in spring, and show it twice in autumn.
        ("2026-03-29T02:30", "2026-03-29T01:30:00Z"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00Z"),
        ("by 2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z"),
    ] {
        assert_eq!(known_by(text, &berlin()), Some(want.parse().unwrap()), "{text}");
    }
}

#[test]
fn what_was_known_at_a_day_ends_with_that_day() {
    for (text, want) in [
        ("2026-06-30", "2026-06-30T22:00:00Z"),
        ("June", "2026-06-30T22:00:00Z"),
        ("last month", "2026-06-30T22:00:00Z"),
        ("a year ago", "2025-07-20T22:00:00Z"),
        ("two months ago", "2026-05-20T22:00:00Z"),
        ("vor zwei Monaten", "2026-05-20T22:00:00Z"),
        ("before two months ago", "2026-05-19T22:00:00Z"),
        ("a week ago", "2026-07-13T22:00:00Z"),
        ("two hours ago", "2026-07-20T08:00:00Z"),
    ] {
        assert_eq!(known_by(text, &berlin()), Some(want.parse().unwrap()), "{text}");
    }
    for text in ["porridge", "since June", "after 2026-06-30T10:00"] {
        assert_eq!(known_by(text, &berlin()), None, "{text}");
    }
}

#[test]
fn hours_are_those_of_the_clock_also_on_days_on_which_it_changes() {
    let berlin = berlin();
    for (text, from, to) in [
        ("at 2026-06-30T10:00", "2026-06-30T07:00:00Z", "2026-06-30T10:00:00Z"),
        ("at 2026-03-29T11:00", "2026-03-29T08:00:00Z", "2026-03-29T11:00:00Z"),
        ("at 2026-10-25T11:00", "2026-10-25T09:00:00Z", "2026-10-25T12:00:00Z"),
        ("the morning of 29 March 2026", "2026-03-29T03:00:00Z", "2026-03-29T10:00:00Z"),
        ("the morning of 25 October 2026", "2026-10-25T04:00:00Z", "2026-10-25T11:00:00Z"),
        ("the evening of 28 March 2026", "2026-03-28T16:00:00Z", "2026-03-29T01:00:00Z"),
    ] {
        let span = find(text, &berlin, &|_| false).unwrap().span;
        let likeliest = (span.ranges[0].from, span.ranges[0].to);
        assert_eq!(likeliest, (from.parse().unwrap(), to.parse().unwrap()), "{text}");
    }
}

#[test]
fn a_time_with_an_offset_is_on_the_day_that_it_has_in_the_place() {
    let tokyo = Calendar::new(NOW.parse().unwrap(), TimeZone::get("Asia/Tokyo").unwrap());
    for (text, day) in [
        ("What did I say at 2026-02-14T23:30:00Z?", "2026-02-15"),
        ("What did I say at 2026-02-14T23:30+02:00?", "2026-02-15"),
        ("What did I say at 2026-02-14T21:00-05?", "2026-02-15"),
        ("What did I say at 2026-02-14 21:00:00 -0500?", "2026-02-15"),
        ("What did I say at 2026-02-14 10:00:00+09:00?", "2026-02-14"),
        ("What did I say at 2026-02-14T10:00?", "2026-02-14"),
        // No offset, but from when until when.
        ("What did I say on 2026-02-14 10:00-11:30?", "2026-02-14"),
        // No place has this offset.
        ("What did I say at 2026-02-14T10:00-99:00?", "2026-02-14"),
    ] {
        assert_eq!(days(text, &tokyo, &[]), Some(format!("{day}..{day}")), "{text}");
    }
}

#[test]
fn no_text_breaks_the_reader() {
    for text in [
        "",
        "14",
        "999 years ago",
        "the the the",
        "31 February 2026",
        "0/0/2026",
        "ago",
        "in",
        "1 1 1 1",
        "last",
        "🦊 yesterday’s",
    ] {
        let _found = find(text, &calendar(), &|_| false);
    }
    let far = Calendar::new("0001-01-02T00:00:00Z".parse().unwrap(), TimeZone::UTC);
    assert_eq!(days("999 years ago", &far, &[]), days("999 years ago", &far, &[]));
}
