//! A search by command finds what was said just now, and only where it may be shown.

use azera_adapter::{CommandLine, Host, Outcome, Platform, SearchRequest};
use azera_types::Text;

use crate::findings::{ANN, BOB, COMMONS, DEN, DM_ANN, GUILD, Scene};
use crate::test_engine::{chat, person};
use crate::world::{Change, PEOPLE};

impl Scene {
    /// Returns the answer to a search in the same second.
    async fn search_now(&self, who: usize, place: usize, words: &str) -> String {
        let platform = self.engine.platform.sim.id();
        let (name, text) = (PEOPLE[who].1.to_owned(), Text::new(format!("/memory search {words}")));
        let line = CommandLine { chat: chat(place), person: person(who), name, text, about: None, picture: None };
        let answer = self.engine.azera.command(platform, line).await.unwrap().text;
        let line =
            SearchRequest { chat: chat(place), person: person(who), query: Text::new(words), limit: None, as_of: None };
        let hits = self.engine.azera.search(platform, line).await.unwrap().hits;
        assert_eq!(answer.contains("I remember nothing"), hits.is_empty(), "{answer}\n{hits:?}");
        answer
    }
}

#[tokio::test]
async fn a_search_finds_what_was_said_in_the_same_second() {
    let mut scene = Scene::open(true, false).await;
    scene.change(Change::Join(BOB, GUILD));
    scene.say(ANN, DEN, "the zeppelin lands at noon, quiet").await;
    assert!(scene.search_now(ANN, DEN, "zeppelin").await.contains("lands at noon"));
    assert!(scene.search_now(ANN, DM_ANN, "zeppelin").await.contains("lands at noon"));
    for (who, place) in [(ANN, COMMONS), (BOB, COMMONS)] {
        let answer = scene.search_now(who, place, "zeppelin").await;
        assert!(!answer.contains("lands at noon"), "{answer}");
    }
}

#[tokio::test]
async fn a_search_finds_what_is_not_indexed_yet() {
    let mut scene = Scene::open(true, false).await;
    scene.change(Change::Join(BOB, GUILD));
    scene.engine.embedder_down.store(true, std::sync::atomic::Ordering::Relaxed);
    let inbound = scene.message(ANN, DEN, "the zeppelin lands at noon, quiet");
    let outcome = scene.submit(inbound).await.unwrap();
    assert!(matches!(outcome, Outcome::Replied(_)), "{outcome:?}");
    assert!(scene.search_now(ANN, DEN, "zeppelin").await.contains("lands at noon"));
    let answer = scene.search_now(BOB, COMMONS, "zeppelin").await;
    assert!(!answer.contains("lands at noon"), "{answer}");
}
