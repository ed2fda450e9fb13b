//! What was known at a time: what had been said, imported and edited by then, where it may be shown.

use azera_adapter::{Hit, Host, HostError, Platform, SearchRequest};
use azera_memory::{Import, ImportState, NewFact, NewImported};
use azera_types::{Author, ChatId, Clock, MessageId, PersonaId, Scope, Text, Timestamp};

use crate::findings::{AN, ANN, COMMONS, DM_ANN, Scene};
use crate::oracle::DEFAULT_PERSONA;
use crate::test_engine::{chat, edit_to, person};
use crate::world::PEOPLE;

const SAID: &str = "the spare key is under the blue pot";
const EDITED: &str = "the spare key is with the smith";
const IMPORTED: &str = "the spare key hangs by the oars";

impl Scene {
    /// Returns what a person finds of what was known at a time.
    pub async fn hits_as_of(&self, who: usize, place: usize, query: &str, as_of: Option<&str>) -> Vec<Hit> {
        self.pass(90);
        let (chat, person, query, as_of) = (chat(place), person(who), Text::new(query), as_of.map(Text::new));
        let line = SearchRequest { chat, person, query, limit: Some(50), as_of };
        self.engine.azera.search(self.engine.platform.sim.id(), line).await.unwrap().hits
    }

    /// Imports a message of Ann from long ago.
    fn import_old(&self) {
        self.import_one(0, IMPORTED);
    }

    fn import_one(&self, number: usize, text: &str) {
        let import = Import {
            id: "of-oars".into(),
            by: person(ANN),
            persona: PersonaId::new(DEFAULT_PERSONA).unwrap(),
            scope: Scope::Dm(person(ANN)),
            file: "oars.json".into(),
            format: "chatgpt".into(),
            learns: false,
        };
        let new = NewImported {
            id: MessageId::new(format!("import:oars:{number}")).unwrap(),
            chat: ChatId::new("import:oars").unwrap(),
            title: None,
            after: None,
            person: person(ANN),
            name: PEOPLE[ANN].1.into(),
            text: Text::new(text),
            at: "2024-03-01T10:00:00Z".parse().unwrap(),
        };
        let added = self.engine.memory.imports().add(&import, new, self.engine.clock.now()).unwrap();
        assert_eq!(added, ImportState::New);
    }

    /// Returns which of the statements somebody finds.
    async fn keys(&self, who: usize, place: usize, question: &str, as_of: Option<&str>) -> Vec<&'static str> {
        let hits = self.hits_as_of(who, place, question, as_of).await;
        let is_found = |said: &&str| hits.iter().any(|hit| hit.kind == "message" && hit.text.as_str() == *said);
        [SAID, EDITED, IMPORTED].into_iter().filter(is_found).collect()
    }
}

/// It is June when the scene begins.
#[tokio::test]
async fn what_was_known_then_had_been_said_imported_and_edited_by_then() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, SAID).await;
    scene.say(ANN, DM_ANN, "the spare key is with the neighbour").await;
    let edited = scene.last();
    let august: Timestamp = "2025-08-20T10:00:00Z".parse().unwrap();
    scene.pass(august.duration_since(scene.engine.clock.now()).as_secs());
    scene.edit(&edited, edit_to(EDITED, august)).await;
    scene.import_old();
    let all = vec![SAID, EDITED, IMPORTED];
    let now = "where is the spare key?";
    for is_indexed in [false, true] {
        if is_indexed {
            scene.engine.azera.settle().await.unwrap();
        }
        let known = async |time: &str| {
            scene.keys(ANN, DM_ANN, &format!("what did you know about the spare key {time}?"), None).await
        };
        assert_eq!(known("in June 2025").await, [SAID], "{is_indexed}");
        assert_eq!(known("in May 2025").await, [""; 0], "{is_indexed}");
        assert_eq!(known("in March 2024").await, [""; 0], "{is_indexed}");
        assert_eq!(known("in August 2025").await, all, "{is_indexed}");
        let as_of = async |time| scene.keys(ANN, DM_ANN, now, Some(time)).await;
        assert_eq!(as_of("June").await, [SAID], "{is_indexed}");
        assert_eq!(as_of("2025-06-30").await, [SAID], "{is_indexed}");
        assert_eq!(as_of("2024-03-02T00:00:00Z").await, [""; 0], "{is_indexed}");
        assert_eq!(as_of("2025-08-31").await, all, "{is_indexed}");
        assert_eq!(scene.keys(ANN, DM_ANN, now, None).await, all, "{is_indexed}");
        // Asked for another time, a place shows no more than it shows now.
        assert_eq!(scene.keys(AN, COMMONS, now, Some("2025-08-31")).await, [""; 0], "{is_indexed}");
    }
    let line = SearchRequest {
        chat: chat(DM_ANN),
        person: person(ANN),
        query: Text::new(now),
        limit: None,
        as_of: Some(Text::new("porridge")),
    };
    let refused = scene.engine.azera.search(scene.engine.platform.sim.id(), line).await;
    assert!(matches!(refused, Err(HostError::Refused(_))), "{refused:?}");
}

/// However much was said since.
#[tokio::test]
async fn what_was_known_then_is_found_behind_what_was_said_later() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, SAID).await;
    let august: Timestamp = "2025-08-20T10:00:00Z".parse().unwrap();
    scene.pass(august.duration_since(scene.engine.clock.now()).as_secs());
    for number in 0..150 {
        let fact = NewFact {
            persona: PersonaId::new(DEFAULT_PERSONA).unwrap(),
            chat: chat(DM_ANN),
            scope: Scope::Dm(person(ANN)),
            author: Author::Person { id: person(ANN), name: PEOPLE[ANN].1.into() },
            text: Text::new(format!("spare key {number}")),
            at: august,
        };
        scene.engine.memory.memories().store_fact(fact).unwrap();
    }
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.keys(ANN, DM_ANN, "where is the spare key?", Some("June")).await, [SAID]);
    assert_eq!(scene.keys(ANN, DM_ANN, "where is the spare key?", Some("2025-05-01")).await, [""; 0]);
}

/// However much older was imported since: all of it was said before, and none of it was known.
#[tokio::test]
async fn what_was_known_then_is_found_behind_what_was_imported_later() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, SAID).await;
    let august: Timestamp = "2025-08-20T10:00:00Z".parse().unwrap();
    scene.pass(august.duration_since(scene.engine.clock.now()).as_secs());
    for number in 0..1_300 {
        scene.import_one(number, &format!("spare key {number}"));
    }
    scene.engine.azera.settle().await.unwrap();
    let asked = "where is the spare key?";
    assert_eq!(scene.keys(ANN, DM_ANN, asked, Some("June")).await, [SAID]);
    assert_eq!(scene.keys(ANN, DM_ANN, asked, Some("2025-05-01")).await, [""; 0]);
    let then = scene.hits_as_of(ANN, DM_ANN, asked, Some("June")).await;
    assert!(then.iter().all(|hit| !hit.text.starts_with("spare key")), "what was imported later was not known");
    let now = scene.hits_as_of(ANN, DM_ANN, asked, Some("2025-08-31")).await;
    assert!(now.iter().any(|hit| hit.text.starts_with("spare key")), "and is known now");
}

/// What replaced a statement later was not known then.
#[tokio::test]
async fn what_was_known_then_held_then() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, SAID).await;
    let id = scene.hits(ANN, DM_ANN, SAID).await.into_iter().find(|hit| hit.kind == "message").unwrap().memory.0;
    let august: Timestamp = "2025-08-20T10:00:00Z".parse().unwrap();
    scene.pass(august.duration_since(scene.engine.clock.now()).as_secs());
    scene.command(ANN, DM_ANN, &format!("/memory update {id} the spare key is with the smith")).await;
    for (as_of, is_over) in [(None, true), (Some("June"), false), (Some("2025-08-31"), true)] {
        let hits = scene.hits_as_of(ANN, DM_ANN, "where is the spare key?", as_of).await;
        let hit = hits.iter().find(|hit| hit.memory.0 == id).unwrap();
        assert_eq!(hit.holding.held_until.is_some(), is_over, "{as_of:?}");
        assert_eq!(hits.iter().any(|hit| hit.kind == "fact"), is_over, "{as_of:?}");
    }
}
