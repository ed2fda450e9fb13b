//! `/memory learnt`: what was said, changed, settled and forgotten in the last days.

use crate::findings::{AN, ANN, COMMONS, DM_AN, DM_ANN, Scene};

const NOTHING: &str = "I learnt nothing in the last 7 days that may be shown here.";
const LEARNT: &str = "/memory learnt";
const DAY: i64 = 24 * 3_600;

/// Returns the id that an answer names first.
fn id_in(answer: &str) -> String {
    answer
        .split('`')
        .find(|part| part.strip_prefix('m').is_some_and(|id| id.parse::<u64>().is_ok()))
        .unwrap()
        .to_owned()
}

/// Returns the lines under a heading.
fn under<'a>(answer: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = answer.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| line.starts_with("- ")).collect()
}

#[tokio::test]
async fn what_was_kept_changed_and_forgotten_is_told() {
    let scene = Scene::open(false, false).await;
    assert_eq!(scene.command(ANN, DM_ANN, LEARNT).await, NOTHING);
    let (was, is) = ("the spare key is under the blue pot", "Miranda lives in Tallinn and has the spare key");
    let old = id_in(&scene.command(ANN, DM_ANN, &format!("/remember {was}")).await);
    let learnt = scene.command(ANN, DM_ANN, LEARNT).await;
    assert_eq!(under(&learnt, "You asked me to keep:").len(), 1, "{learnt}");
    assert!(learnt.contains(&old) && learnt.contains(was) && !learnt.contains("What changed"), "{learnt}");
    scene.pass(2 * DAY);
    let new = id_in(&scene.command(ANN, DM_ANN, &format!("/memory update {old} {is}")).await);
    let learnt = scene.command(ANN, DM_ANN, LEARNT).await;
    let changed = under(&learnt, "What changed:");
    assert_eq!(changed.len(), 1, "{learnt}");
    let parts = [&format!("- `{old}` until "), was, &format!("now `{new}`"), is];
    assert!(parts.iter().all(|part| changed[0].contains(*part)), "{learnt}");
    assert!(under(&learnt, "You asked me to keep:").is_empty(), "it is told already: {learnt}");
    let names = under(&learnt, "Names that are new to me:");
    assert!(names.iter().any(|line| line.contains("Miranda lives in Tallinn") && line.contains(&new)), "{learnt}");
    for (who, place) in [(ANN, COMMONS), (AN, COMMONS), (AN, DM_AN)] {
        assert_eq!(scene.command(who, place, LEARNT).await, NOTHING);
    }
    scene.command(ANN, DM_ANN, &format!("/forget {new}")).await;
    let learnt = scene.command(ANN, DM_ANN, LEARNT).await;
    assert_eq!(under(&learnt, "You asked me to keep:").len(), 1, "{learnt}");
    assert!(!learnt.contains("What changed") && !learnt.contains("until") && !learnt.contains("Miranda"), "{learnt}");
    scene.command(ANN, DM_ANN, &format!("/forget {old}")).await;
    assert_eq!(scene.command(ANN, DM_ANN, LEARNT).await, NOTHING);
}

#[tokio::test]
async fn a_week_later_nothing_of_it_is_new() {
    let scene = Scene::open(false, false).await;
    let old = id_in(&scene.command(ANN, DM_ANN, "/remember Miranda lives in Tallinn").await);
    scene.command(ANN, DM_ANN, &format!("/memory update {old} Miranda moved to Riga")).await;
    assert!(scene.command(ANN, DM_ANN, LEARNT).await.contains("What changed:"));
    scene.pass(8 * DAY);
    scene.command(ANN, DM_ANN, "/remember Miranda has a boat").await;
    let learnt = scene.command(ANN, DM_ANN, LEARNT).await;
    assert_eq!(under(&learnt, "You asked me to keep:").len(), 1, "{learnt}");
    assert!(!learnt.contains("What changed") && !learnt.contains("Names that are new"), "{learnt}");
}

#[tokio::test]
async fn what_was_settled_is_told_where_its_report_may_be_read() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "I'm going to paint the zeppelin tomorrow, quiet").await;
    scene.pass(2 * DAY);
    scene.say(ANN, DM_ANN, "I painted the zeppelin in stripes, quiet").await;
    let own = scene.command(ANN, DM_ANN, LEARNT).await;
    let settled = under(&own, "What was settled:");
    assert!(settled.len() == 1 && settled[0].contains("plan of Ann") && settled[0].contains("in stripes"), "{own}");
    let there = scene.command(ANN, COMMONS, LEARNT).await;
    assert!(!there.contains("settled") && !there.contains("stripes"), "{there}");
}
