//! The gallery: whose pictures it lists, and only where they may be shown.

use crate::findings::{AN, ANN, COMMONS, DEN, DM_AN, DM_ANN, Scene};
use crate::pictures::number;
use crate::world::PEOPLE;

#[tokio::test]
async fn pictures_are_listed_by_the_person_who_asked_and_only_where_they_may_be_shown() {
    let (scene, _) = Scene::with_painter(|_| {}).await;
    for (who, place, prompt) in
        [(ANN, COMMONS, "a violet boat"), (AN, COMMONS, "a crimson ship"), (ANN, DM_ANN, "a heliotrope lamp")]
    {
        assert!(scene.ask(who, place, &format!("/imagine {prompt}")).await.ok);
        scene.settled().await;
    }
    let list = scene.ask(ANN, COMMONS, "/gallery").await.text;
    assert!(list.contains(&format!(", by {}", PEOPLE[AN].1)) && list.contains(", yours"), "{list}");
    let mine = scene.ask(ANN, COMMONS, "/gallery by me").await.text;
    assert!(mine.contains("violet") && !mine.contains("crimson") && !mine.contains("heliotrope"), "{mine}");
    // Both have this name.
    let theirs = scene.ask(AN, COMMONS, &format!("/gallery by {}", PEOPLE[ANN].1.to_uppercase())).await.text;
    assert!(theirs.contains("violet") && theirs.contains("crimson"), "{theirs}");
    for (who, place) in [(AN, DM_AN), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
        let found = scene.ask(who, place, &format!("/gallery by {}", PEOPLE[ANN].1)).await.text;
        assert!(!found.contains("heliotrope"), "{who} in {place}: {found}");
    }
    assert!(scene.ask(ANN, DM_ANN, "/gallery by me").await.text.contains("heliotrope"));
    // As platforms write a mention.
    let mentioned = scene.ask(ANN, COMMONS, &format!("/gallery by <@{}>", PEOPLE[AN].0)).await.text;
    assert!(mentioned.contains("crimson") && !mentioned.contains("violet"), "{mentioned}");
    assert!(scene.ask(ANN, COMMONS, "/gallery by nobody").await.text.contains("by a person of that name"));
}

#[tokio::test]
async fn a_search_by_person_channel_and_words_finds_what_is_all_of_that_and_may_be_shown() {
    let (scene, _) = Scene::with_painter(|_| {}).await;
    for (who, place, prompt) in [
        (ANN, COMMONS, "a violet boat"),
        (ANN, COMMONS, "a violet ship"),
        (AN, DEN, "a violet boat in the den"),
        (ANN, DM_ANN, "a violet boat at night"),
    ] {
        assert!(scene.ask(who, place, &format!("/imagine {prompt}")).await.ok);
        scene.settled().await;
    }
    let found = async |who: usize, place: usize, line: &str| {
        let list = scene.ask(who, place, line).await;
        assert!(list.ok, "{line}: {}", list.text);
        list.text.lines().filter(|line| line.starts_with("- ")).count()
    };
    for (line, count) in [
        ("/gallery in here", 1),
        ("/gallery by me", 3),
        ("/gallery by me --in here", 1),
        ("/gallery search violet --by me", 3),
        ("/gallery search boat --by me --in here", 1),
        ("/gallery search ship --in here", 0),
        ("/gallery pinned --by me", 0),
        ("/gallery search boat --pinned", 0),
        ("/gallery in a channel that nobody knows", 0),
    ] {
        assert_eq!(found(ANN, DM_ANN, line).await, count, "{line}");
    }
    // What may not be shown is found by no condition.
    for line in ["/gallery search night", "/gallery in here --search night", "/gallery by me --search night"] {
        assert_eq!(found(ANN, COMMONS, line).await, 0, "{line}");
        assert_eq!(found(AN, DEN, line).await, 0, "{line}");
    }
    for line in ["/gallery in", "/gallery by me --by me", "/gallery search", "/gallery --by me", "/gallery list x"] {
        assert!(!scene.ask(ANN, DM_ANN, line).await.ok, "{line}");
    }
}

#[tokio::test]
async fn a_shown_picture_comes_with_everything_that_can_be_done_with_it() {
    let (scene, _) = Scene::with_painter(|_| {}).await;
    let drawn = number(&scene.ask(ANN, COMMONS, "/imagine a violet boat").await);
    scene.settled().await;
    let lines = async || {
        let shown = scene.ask(ANN, COMMONS, &format!("/gallery show {drawn}")).await;
        shown.choices.into_iter().map(|choice| choice.line).collect::<Vec<_>>()
    };
    let all = |pin: &str| {
        ["again", "vary", "upscale", "edit", pin, "delete"].map(|verb| format!("/picture {verb} {drawn}")).to_vec()
    };
    assert_eq!(lines().await, all("pin"));
    scene.ask(ANN, COMMONS, &format!("/picture pin {drawn}")).await;
    assert_eq!(lines().await, all("unpin"));
}
