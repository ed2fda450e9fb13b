//! Two personas never share an id, and so never share memories.

use serde_json::json;

use crate::findings::{ANN, COMMONS, Scene};

fn card(name: &str, description: &str) -> String {
    json!({"spec": "chara_card_v2", "data": {"name": name, "description": description}}).to_string()
}

impl Scene {
    /// Uploads a file to the guild, confirms it, and returns the preview and the answer.
    async fn upload(&self, file: &str) -> (String, String) {
        let preview = self.command(ANN, COMMONS, &format!("/persona upload {file}")).await;
        (preview, self.command(ANN, COMMONS, "/persona confirm").await)
    }
}

#[tokio::test]
async fn a_card_with_a_like_name_does_not_hear_what_the_other_was_told() {
    let mut scene = Scene::open(false, false).await;
    let (_, added) = scene.upload(&card("Zoë", "Zoë is a carpenter.")).await;
    assert!(added.contains("`zoe`, version 1"), "{added}");
    scene.command(ANN, COMMONS, "/persona use Zoë").await;
    scene.say(ANN, COMMONS, "Zoë, the locker is copper quiet").await;
    assert!(scene.find(ANN, COMMONS, "locker").await.join("\n").contains("copper"));

    let (preview, added) = scene.upload(&card("Zoé", "Zoé is a diver.")).await;
    assert!(!preview.contains("It replaces"), "{preview}");
    assert!(added.contains("`zoe-2`, version 1"), "{added}");
    scene.command(ANN, COMMONS, "/persona use zoe-2").await;
    let found = scene.find(ANN, COMMONS, "locker").await.join("\n");
    assert!(!found.contains("copper"), "{found}");
    let shown = scene.command(ANN, COMMONS, "/persona show zoe").await;
    assert!(shown.contains("a carpenter"), "{shown}");

    // The same name with another character is another persona, too. The same card again is the same persona.
    let (_, added) = scene.upload(&card("Zoë", "Zoë is a pilot.")).await;
    assert!(added.contains("`zoe-3`, version 1"), "{added}");
    let (_, added) = scene.upload(&card("Zoë", "Zoë is a carpenter.")).await;
    assert!(added.contains("`zoe`, version 1"), "{added}");

    // An edit says whom it changes, and that the memories stay.
    let edited = scene.command(ANN, COMMONS, &format!("/persona edit zoe {}", card("Zoë", "Zoë is a sailor."))).await;
    assert!(edited.contains("replaces version 1 of Zoë and keeps its memories"), "{edited}");
    let refused = scene.command(ANN, COMMONS, &format!("/persona edit zoe {}", card("Ida", "Ida sails."))).await;
    assert!(refused.contains("another name"), "{refused}");
}

#[tokio::test]
async fn a_removed_personas_id_goes_to_no_other_name() {
    let mut scene = Scene::open(false, false).await;
    scene.upload(&card("Zoë", "Zoë is a carpenter.")).await;
    scene.command(ANN, COMMONS, "/persona use zoe").await;
    scene.say(ANN, COMMONS, "Zoë, the kettle is copper quiet").await;
    scene.command(ANN, COMMONS, "/persona remove zoe").await;
    let (_, added) = scene.upload(&card("Zoé", "Zoé is a diver.")).await;
    assert!(added.contains("`zoe-2`, version 1"), "{added}");
    scene.command(ANN, COMMONS, "/persona use zoe-2").await;
    assert!(!scene.find(ANN, COMMONS, "kettle").await.join("\n").contains("copper"));
    let (_, added) = scene.upload(&card("Zoë", "Zoë is a carpenter.")).await;
    assert!(added.contains("`zoe`, version 3"), "the persona itself comes back: {added}");
}

#[tokio::test]
async fn a_file_with_the_id_of_another_name_is_refused() {
    let scene = Scene::open(false, false).await;
    let file = |id: &str, name: &str, kind: &str| {
        format!("---\nid: {id}\nname: {name}\nkind: {kind}\n---\n## Intent\nx\n## Core Identity\ny\n")
    };
    for (id, name, kind, refused) in [
        ("luna", "Ida", "assistant", true),
        ("azera", "Ida", "assistant", true),
        ("protag", "Ida", "assistant", true),
        ("protag", "Ida", "user", false),
        ("azera", "Azera", "assistant", false),
        ("ida", "Ida", "assistant", false),
    ] {
        let answer = scene.command(ANN, COMMONS, &format!("/persona upload {}", file(id, name, kind))).await;
        assert_eq!(answer.contains("already, and this is"), refused, "{id} {name}: {answer}");
    }
    for name in ["Azera!", "Protag", "Areza"] {
        let (_, added) = scene.upload(&card(name, "Somebody else.")).await;
        assert!(added.contains("-2`, version 1"), "{added}");
    }
}

/// Two admins check a file of the same name, and both confirm: the second does not replace the first unseen.
#[tokio::test]
async fn a_confirmation_replaces_nothing_that_was_not_shown() {
    let scene = Scene::open(false, false).await;
    let lobby = crate::findings::LOBBY;
    scene.command(ANN, COMMONS, &format!("/persona upload {}", card("Ida", "Ida sails."))).await;
    scene.command(ANN, lobby, &format!("/persona upload {}", card("Ida", "Ida dives."))).await;
    assert!(scene.command(ANN, COMMONS, "/persona confirm").await.contains("version 1"));
    let late = scene.command(ANN, lobby, "/persona confirm").await;
    assert!(late.contains("changed meanwhile"), "{late}");
    assert!(scene.command(ANN, COMMONS, "/persona show ida").await.contains("sails"));
}
