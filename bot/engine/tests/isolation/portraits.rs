//! Portraits: a persona's face comes from its own file, and from no other picture.

use azera_memory::persona_identity;
use azera_types::PersonaId;

use crate::findings::{AN, ANN, COMMONS, DEN, DM_ANN, Scene};
use crate::test_engine::realm;

const MIRA: &str = "---\nid: mira\nname: Mira\n---\n\n## Intent\n\nMira keeps the harbour log.\n\n## Core Identity\n\nYou are \
                    Mira.\n\n## Appearance\n\nRed hair,\na grey oilskin coat.\n";

/// Asks for a picture, waits until it is drawn, and returns its number.
async fn draw(scene: &Scene, place: usize, command: &str) -> u64 {
    let answer = scene.command(ANN, place, command).await;
    scene.settled().await;
    let number = answer.split(": picture ").nth(1).and_then(|rest| rest.split('.').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{command}: {answer}"))
}

fn face(scene: &Scene) -> Option<String> {
    let identity = persona_identity(Some(&realm(0)), &PersonaId::new("mira").unwrap());
    scene.engine.memory.personas().picture(&identity).unwrap()
}

#[tokio::test]
async fn an_admin_draws_a_portrait_from_the_file_and_makes_it_the_face() {
    let (scene, painter) = Scene::with_painter(|settings| settings.size.width = 128).await;
    scene.command(ANN, COMMONS, &format!("/persona upload {MIRA}")).await;
    scene.command(ANN, COMMONS, "/persona confirm").await;
    for (who, command) in [(AN, "/persona portrait mira"), (AN, "/persona face 1")] {
        let refused = scene.command(who, COMMONS, command).await;
        assert!(refused.contains("Only admins"), "{refused}");
    }
    assert!(scene.command(ANN, COMMONS, "/persona portrait azera").await.contains("belongs to this place"));
    let number = draw(&scene, COMMONS, "/persona portrait mira").await;
    let asked = painter.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.prompt, "portrait of Mira, Red hair, a grey oilskin coat., head and shoulders");
    assert_eq!((asked.size.width, asked.size.height), (64, 64), "a face is square");
    assert_eq!(face(&scene), None, "nothing changes before an admin chooses");
    let chosen = scene.command(ANN, COMMONS, &format!("/persona face {number}")).await;
    assert!(chosen.contains("shows this face"), "{chosen}");
    let first = face(&scene).unwrap();
    // A variation of it can take its place; with words of somebody, it is no portrait any more.
    let number = draw(&scene, COMMONS, "/picture vary").await;
    assert!(scene.command(ANN, COMMONS, &format!("/persona face {number}")).await.contains("shows this face"));
    let second = face(&scene).unwrap();
    assert_ne!(second, first);
    let number = draw(&scene, COMMONS, "/picture vary in the rain").await;
    let refused = scene.command(ANN, COMMONS, &format!("/persona face {number}")).await;
    assert!(refused.contains("is not a portrait"), "{refused}");
    let refused = scene.command(ANN, COMMONS, "/persona portrait mira my old neighbour").await;
    assert!(refused.contains("says how it looks"), "{refused}");
    // What a private channel shows does not become what everybody sees.
    let number = draw(&scene, DEN, "/persona portrait mira").await;
    let refused = scene.command(ANN, DEN, &format!("/persona face {number}")).await;
    assert!(refused.contains("everybody here may read"), "{refused}");
    assert_eq!(face(&scene), Some(second));
}

#[tokio::test]
async fn no_other_picture_becomes_a_face() {
    let (scene, _) = Scene::with_painter(|_| {}).await;
    scene.command(ANN, COMMONS, &format!("/persona upload {}", MIRA.replace("Appearance", "Habits"))).await;
    scene.command(ANN, COMMONS, "/persona confirm").await;
    let refused = scene.command(ANN, COMMONS, "/persona portrait mira").await;
    assert!(refused.contains("does not say how it looks"), "{refused}");
    let number = draw(&scene, COMMONS, "/imagine a lighthouse").await;
    let refused = scene.command(ANN, COMMONS, &format!("/persona face {number}")).await;
    assert!(refused.contains("is not a portrait"), "{refused}");
    // A picture that may not be shown here does not even have a number.
    let private = draw(&scene, DM_ANN, "/imagine my garden").await;
    let refused = scene.command(ANN, COMMONS, &format!("/persona face {private}")).await;
    assert_eq!(refused, scene.command(ANN, COMMONS, "/persona face 987654").await);
    assert_eq!(face(&scene), None);
}

#[tokio::test]
async fn a_persona_that_draws_itself_has_the_look_of_its_file() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let styled = MIRA.replace("name: Mira\n", "name: Mira\npictures: {style: ink wash}\n");
    scene.command(ANN, COMMONS, &format!("/persona upload {styled}")).await;
    scene.command(ANN, COMMONS, "/persona confirm").await;
    scene.command(ANN, COMMONS, "/persona use mira").await;
    for prompt in ["Mira in the rain", "yourself, asleep", "a boat", "Mira in a boat --style none"] {
        draw(&scene, COMMONS, &format!("/imagine {prompt}")).await;
    }
    draw(&scene, COMMONS, "/persona portrait mira").await;
    let seen: Vec<String> = painter.asked.lock().unwrap().iter().map(|one| one.prompt.clone()).collect();
    let look = "Red hair, a grey oilskin coat.";
    let want = [
        format!("Mira in the rain, {look}, ink wash"),
        format!("yourself, asleep, {look}, ink wash"),
        "a boat, ink wash".to_owned(),
        "Mira in a boat".to_owned(),
        format!("portrait of Mira, {look}, head and shoulders, ink wash"),
    ];
    assert_eq!(seen, want);
    // What the file says of the look counts like the words of a prompt.
    let young = styled.replace("Red hair", "A girl of 12 years");
    scene.command(ANN, COMMONS, &format!("/persona upload {young}")).await;
    scene.command(ANN, COMMONS, "/persona confirm").await;
    let refused = scene.command(ANN, COMMONS, "/imagine yourself naked").await;
    assert!(refused.contains("under 18"), "{refused}");
}

#[tokio::test]
async fn what_a_persona_draws_has_its_style_unless_somebody_wants_none() {
    let (scene, painter) = Scene::with_painter(|settings| settings.negative = "blur".into()).await;
    let styled = MIRA.replace("name: Mira\n", "name: Mira\npictures: {style: ink wash, negative: photo}\n");
    scene.command(ANN, COMMONS, &format!("/persona upload {styled}")).await;
    scene.command(ANN, COMMONS, "/persona confirm").await;
    scene.command(ANN, COMMONS, "/persona use mira").await;
    let first = draw(&scene, COMMONS, "/imagine a boat --negative fog").await;
    draw(&scene, COMMONS, &format!("/picture edit {first} a ship")).await;
    let plain = draw(&scene, COMMONS, "/imagine a boat --style none").await;
    draw(&scene, COMMONS, &format!("/picture again {plain}")).await;
    let asked = painter.asked.lock().unwrap().clone();
    let seen: Vec<_> = asked.iter().map(|one| (one.prompt.as_str(), one.negative.as_str())).collect();
    let want = [
        ("a boat, ink wash", "fog, photo, blur"),
        ("a ship, ink wash", "fog, photo, blur"),
        ("a boat", "blur"),
        ("a boat", "blur"),
    ];
    assert_eq!(seen, want);
    // The words of a style count like those of a prompt.
    scene.command(ANN, COMMONS, &format!("/persona upload {}", styled.replace("ink wash", "nude"))).await;
    scene.command(ANN, COMMONS, "/persona confirm").await;
    let refused = scene.command(ANN, COMMONS, "/imagine a schoolgirl").await;
    assert!(refused.contains("under 18"), "{refused}");
}
