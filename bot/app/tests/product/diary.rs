//! The import of a diary: its days are those of the place, and of the writer.

use serde_json::{Value, json};

use super::{azera, of, replay};

/// Half past two in the morning of the 10th in Kiritimati, the earliest place on Earth.
const NOW: &str = "2026-04-09T12:30:00Z";

fn import(texts: &[&str]) -> Vec<Value> {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut timeline = vec![
        json!({"type": "realm", "at": "2026-04-09T12:00:00Z", "realm": "atoll", "members": ["ann", "ben"],
               "admins": ["ann"], "time_zone": "Pacific/Kiritimati"}),
        json!({"type": "chat", "at": "2026-04-09T12:00:00Z", "realm": "atoll", "chat": "lagoon", "kind": "public"}),
    ];
    let lines = texts.iter().map(|text| format!("/journal import {text}")).chain(["/journal list".to_owned()]);
    timeline.extend(
        lines.map(|line| json!({"type": "command", "at": NOW, "chat": "lagoon", "person": "ann", "text": line})),
    );
    let replayed = replay(&timeline, scratch.path(), "scripted");
    of(&replayed, "command").into_iter().cloned().collect()
}

fn said(answer: &Value) -> &str {
    answer["text"].as_str().expect("a text")
}

#[test]
fn days_are_those_of_the_place() {
    let answers = import(&[
        "# 2026-04-09\nThe reef glowed.\n\n# 2026-04-10\nUp before the terns.\n",
        "# 2026-03-05\n## Dawn\nCoral.\n## Dusk\nCrabs.\n",
        "\u{feff}# Friday, March 6, 2026\r\nNotes:\r\n```sh\r\n# count the crabs\r\n```\r\nDone.\r\n",
        "[{\"text\":\"Mended the net.\",\"at\":1772800000}]",
        "# 2026-04-11\nTomorrow.",
    ]);
    let [.., tomorrow, list] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(said(tomorrow).contains("line 1: 2026-04-11 lies in the future"), "{tomorrow}");
    let list = said(list);
    for (day, words) in [
        ("2026-04-10", "Up before the terns."),
        ("2026-04-09", "The reef glowed."),
        ("2026-03-05", "## Dawn Coral. ## Dusk Crabs."),
        ("2026-03-06", "# count the crabs"),
        ("2026-03-07", "Mended the net."),
    ] {
        let line = list.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {list}"));
        assert!(line.contains(day), "{day}: {line}");
    }
    assert_eq!(list.lines().count(), 6, "{list}");
}

#[test]
fn a_day_that_is_none_or_two_is_refused_and_nothing_imported() {
    let answers = import(&[
        "# 2026-01-05\nFine.\n\n# 2026-02-30\nNo such day.",
        "# 02/03/2026\nWhich?",
        "# January 2026\nWhich day?",
        "# 5. J\u{e4}nner 2026\nWhich month?",
        "harbour.md",
    ]);
    for (answer, why) in answers.iter().zip([
        "line 4: there is no day 2026-02-30",
        "line 1: 02/03/2026 can mean 2026-03-02 or 2026-02-03",
        "line 1: `January 2026` names no day",
        "is unknown; write the day as in 2026-03-01",
        "is the name of a file",
    ]) {
        assert!(said(answer).contains(why), "{why}: {answer}");
    }
    assert!(said(&answers[5]).contains("no journal entries"), "{}", answers[5]);
}

#[test]
fn the_terminal_reads_the_file() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("winter.md");
    std::fs::write(&file, "# 1.2.2026\nIce on the \u{fc}ber-well.\n\n# 2 February 2026\nThaw.\n").expect("a diary");
    let input = format!("/journal import {}\n/journal list\n/journal import lost.md\n", file.display());
    let output = azera(scratch.path(), &["chat", "--model", "scripted"], &input);
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("Imported: 2 journal entries.") && out.contains("2026-02-01: Ice on"), "{out} {errors}");
    assert!(errors.contains("There is no file `lost.md`.") && !out.contains("lost.md"), "{out} {errors}");
}
