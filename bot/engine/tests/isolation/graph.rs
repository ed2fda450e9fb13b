//! The graph shows what people said of others only where that may be read, and keeps none of it behind.

use azera_adapter::Host;
use azera_memory::{Order, Table};
use azera_types::Clock;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, LOBBY, Scene};
use crate::test_engine::edit_to;
use crate::world::Change;

const UNKNOWN: &str = "Nobody named";

/// A relation in an answer; the quote of its memory ends in other words.
const LIVES: &str = "Miranda lives in Tallinn (said on";

impl Scene {
    /// Returns whether any row of the record contains this name, in its key or in its value.
    pub(crate) fn names(&self, name: &str) -> bool {
        Table::ALL.iter().any(|table| {
            let rows = self.engine.layers.store.scan(*table, b"", None, Order::Ascending, usize::MAX).unwrap();
            let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase().contains(name);
            rows.iter().any(|(key, value)| holds(key) || holds(value))
        })
    }

    /// Returns the first memory that an answer names.
    async fn source(&self, who: usize, place: usize, command: &str) -> String {
        let shown = self.command(who, place, command).await;
        let (_, behind) = shown.split_once("`m").unwrap_or_else(|| panic!("no memory in {shown}"));
        format!("m{}", behind.split_once('`').unwrap().0)
    }
}

#[tokio::test]
async fn a_relation_is_shown_where_its_words_may_be_read_and_nowhere_else() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, "My sister Miranda lives in Tallinn, quiet").await;
    let shown = scene.command(ANN, DM_ANN, "/graph miranda").await;
    for part in ["**Miranda**, a person", "Ann's sister is Miranda", "Miranda lives in Tallinn"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, COMMONS), (AN, DM_AN), (BOB, DM_BOB)] {
        for name in ["Miranda", "Tallinn"] {
            let shown = scene.command(who, place, &format!("/graph {name}")).await;
            assert!(shown.starts_with(UNKNOWN), "{who} in {place}: {shown}");
        }
        assert!(!scene.command(who, place, "/graph list").await.contains("Miranda"));
    }
    scene.say(AN, DEN, "Miranda works at Harbour Radio, quiet").await;
    let den = scene.command(AN, DEN, "/graph Miranda").await;
    assert!(den.contains("Harbour Radio") && !den.contains("Tallinn") && !den.contains("sister"), "{den}");
    assert!(scene.command(ANN, COMMONS, "/graph Miranda").await.starts_with(UNKNOWN));
    assert!(!den.contains("indirectly related"), "{den}");
    // Ann reads the den, so her own messages show both.
    let both = scene.command(ANN, DM_ANN, "/graph Miranda").await;
    assert!(both.contains("Harbour Radio") && both.contains("Tallinn"), "{both}");
    scene.say(ANN, DM_ANN, "Tallinn is cold, quiet").await;
    let further = scene.command(ANN, DM_ANN, "/graph Miranda").await;
    assert!(further.contains("indirectly related: `") && further.contains("Tallinn is cold"), "{further}");
}

#[tokio::test]
async fn another_persona_and_a_newcomer_know_no_relation() {
    let mut scene = Scene::open(true, false).await;
    scene.say(AN, COMMONS, "Miranda lives in Tallinn, quiet").await;
    assert!(scene.command(AN, LOBBY, "/graph Miranda").await.contains("Tallinn"));
    scene.command(ANN, LOBBY, "/persona use areza").await;
    assert!(scene.command(AN, LOBBY, "/graph Miranda").await.starts_with(UNKNOWN));
    scene.change(Change::Join(BOB, GUILD));
    assert!(scene.command(AN, COMMONS, "/graph Miranda").await.starts_with(UNKNOWN));
}

#[tokio::test]
async fn a_forgotten_relation_leaves_no_name_behind() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, "My sister Miranda lives in Tallinn, quiet").await;
    scene.say(ANN, DM_ANN, "Tallinn is cold, quiet").await;
    assert!(scene.names("miranda"));
    let export = scene.command(ANN, DM_ANN, "/memory export").await;
    assert!(export.contains("\"relation\": \"sister\""), "{export}");
    let id = scene.source(ANN, DM_ANN, "/graph Miranda").await;
    scene.command(ANN, DM_ANN, &format!("/forget {id}")).await;
    assert!(scene.command(ANN, DM_ANN, "/graph Miranda").await.starts_with(UNKNOWN));
    assert!(!scene.command(ANN, DM_ANN, "/graph Tallinn").await.contains("Miranda"));
    assert!(!scene.names("miranda"), "a row still names her");
}

#[tokio::test]
async fn an_edit_changes_the_relation() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, "My sister Miranda lives in Tallinn, quiet").await;
    let edit = edit_to("My sister Rosalind lives in Riga, quiet", scene.engine.clock.now());
    scene.edit(&scene.last(), edit).await;
    scene.engine.azera.settle().await.unwrap();
    assert!(scene.command(ANN, DM_ANN, "/graph Rosalind").await.contains("Riga"));
    assert!(scene.command(ANN, DM_ANN, "/graph Miranda").await.starts_with(UNKNOWN));
    assert!(!scene.names("miranda"), "a row still names her");
}

#[tokio::test]
async fn two_names_are_merged_where_it_was_said_and_split_again() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, "My sister Miranda lives in Tallinn, quiet").await;
    scene.say(ANN, DM_ANN, "I met Randy at the harbour, quiet").await;
    scene.say(AN, COMMONS, "Miranda met Randy in Riga, quiet").await;
    assert!(!scene.command(ANN, DM_ANN, "/graph Randy").await.contains(LIVES));
    let merged = scene.command(ANN, DM_ANN, "/graph merge Randy = Miranda").await;
    assert!(merged.contains("now count as the same wherever this memory may be shown"), "{merged}");
    assert!(scene.command(ANN, DM_ANN, "/graph Randy").await.contains(LIVES));
    let commons = scene.command(ANN, COMMONS, "/graph Randy").await;
    assert!(commons.contains("Miranda met Randy"), "a statement in direct messages reached others: {commons}");
    let split = scene.command(ANN, DM_ANN, "/graph split Randy = Miranda").await;
    assert!(!scene.command(ANN, DM_ANN, "/graph Randy").await.contains(LIVES));
    // Without the newer statement the older one counts again, and without both none does.
    for (answer, joined) in [(split, true), (merged, false)] {
        let (_, undo) = answer.split_once("`/forget ").unwrap();
        let (id, _) = undo.split_once('`').unwrap();
        scene.command(ANN, DM_ANN, &format!("/forget {id}")).await;
        let shown = scene.command(ANN, DM_ANN, "/graph Randy").await;
        assert_eq!(shown.contains(LIVES), joined, "{shown}");
    }
    let unknown = scene.command(ANN, DM_ANN, "/graph merge Randy = Nobody").await;
    assert!(unknown.starts_with(UNKNOWN), "{unknown}");
}
