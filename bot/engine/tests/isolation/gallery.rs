//! The gallery: whose pictures it lists, and only where they may be shown.

use crate::findings::{AN, ANN, COMMONS, DEN, DM_AN, DM_ANN, Scene};
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
    assert!(scene.ask(ANN, COMMONS, "/gallery by nobody").await.text.contains("by them"));
}
