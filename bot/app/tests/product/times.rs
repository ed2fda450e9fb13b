//! Questions about a time and about what changed, with the default embedding model.

use serde_json::{Value, json};

use crate::{azera, lines, replay};

fn report(what: &str) -> Value {
    let home = tempfile::tempdir().expect("a folder");
    lines(&azera(home.path(), &["eval", what, "--half", "even", "--json"], "")).remove(0)
}

/// The half on which nothing was chosen. The bounds lie a little below the published figures.
#[test]
fn questions_about_a_time_find_the_right_message_first() {
    let report = report("time");
    assert!(report["first_right"].as_f64() > Some(TIME_FIRST), "{report}");
    assert!(report["any_at_5"].as_f64() > Some(0.95), "{report}");
}

#[test]
fn questions_about_what_changed_find_what_holds_for_them_first() {
    let report = report("changes");
    assert!(report["first_right"].as_f64() > Some(CHANGES_FIRST), "{report}");
    assert!(report["wrongly_closed"].as_f64() < Some(0.02), "{report}");
}

const TIME_FIRST: f64 = 0.8;
const CHANGES_FIRST: f64 = 0.75;

/// A realm in a zone in which these messages are said on another day than in UTC.
fn days(zone: &str, asked: &[&str]) -> Vec<Value> {
    let said = |id: &str, at: &str, text: &str| json!({"type": "message", "at": at, "id": id, "chat": "kitchen", "person": "ann", "name": "Ann", "text": text});
    let mut timeline = vec![
        json!({"type": "realm", "at": "2026-06-01T08:00:00Z", "realm": "house", "members": ["ann", "ben"], "time_zone": zone}),
        json!({"type": "chat", "at": "2026-06-01T08:00:00Z", "realm": "house", "chat": "kitchen", "kind": "public"}),
        json!({"type": "chat", "at": "2026-06-01T08:00:00Z", "realm": "house", "chat": "lounge", "kind": "public"}),
        said("lure", "2026-06-05T09:00:00Z", "What I did all day was the accounts."),
        said("kite", "2026-06-16T22:30:00Z", "The kite flew higher than the chimney."),
        said("jam", "2026-06-17T12:00:00Z", "Six jars of plum jam are on the shelf."),
    ];
    let probe = |(minute, query): (usize, &&str)| json!({"type": "probe", "at": format!("2026-06-18T09:{minute:02}:00Z"), "chat": "lounge", "person": "ben", "query": query});
    timeline.extend(asked.iter().enumerate().map(probe));
    timeline
}

fn first(answer: &Value) -> (&str, bool) {
    let hit = &answer["hits"][0];
    let by_date = hit["signals"].as_array().expect("signals").iter().any(|signal| signal == "date");
    (hit["sources"][0].as_str().expect("a message"), by_date)
}

#[test]
fn a_day_is_the_realms_and_every_form_of_it_is_read() {
    let home = tempfile::tempdir().expect("a folder");
    let asked = [
        "What did Ann do the day before yesterday?",
        "What did Ann do on 2026-06-16?",
        "What did Ann do on Jun 16th?",
        "What did Ann do on 16/06/2026?",
        "What did Ann do on Tuesday?",
        "Was hat Ann vorgestern gemacht?",
    ];
    let answers = replay(&days("America/New_York", &asked), home.path(), "scripted");
    let probes: Vec<&Value> = answers.iter().filter(|line| line["type"] == "probe").collect();
    assert_eq!(probes.len(), asked.len());
    for probe in probes {
        assert_eq!(first(probe), ("kite", true), "{probe}");
    }
    // In Berlin it was said after midnight.
    let home = tempfile::tempdir().expect("a folder");
    let answers = replay(
        &days("Europe/Berlin", &["What did Ann do on 16/06/2026?", "What did Ann do on the 17th?"]),
        home.path(),
        "scripted",
    );
    let probes: Vec<&Value> = answers.iter().filter(|line| line["type"] == "probe").collect();
    assert!(!first(probes[0]).1, "{}", probes[0]);
    assert!(first(probes[1]).1, "{}", probes[1]);
}

#[test]
fn search_and_prompts_show_the_realms_days() {
    let home = tempfile::tempdir().expect("a folder");
    let mut timeline = days("Asia/Tokyo", &[]);
    let command =
        |at: &str, text: &str| json!({"type": "command", "at": at, "chat": "lounge", "person": "ben", "text": text});
    timeline.push(command("2026-06-18T09:00:00Z", "/memory search the kite above the chimney"));
    timeline.push(json!({"type": "message", "at": "2026-06-18T09:01:00Z", "id": "ask", "chat": "lounge", "person": "ben", "name": "Ben", "text": "How high did the kite fly?", "mentions_bot": true}));
    timeline.push(command("2026-06-18T09:02:00Z", "/why"));
    let answers = replay(&timeline, home.path(), "scripted");
    let shown: Vec<&str> =
        answers.iter().filter(|line| line["type"] == "command").filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(shown.len(), 2);
    // It is the 16th in UTC.
    for text in shown {
        assert!(text.contains("Ann, 2026-06-17") || text.contains("told, 2026-06-17"), "{text}");
        assert!(!text.contains("2026-06-16"), "{text}");
    }
}
