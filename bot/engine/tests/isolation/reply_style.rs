//! What stands in a prompt about how to answer, and what of a message it comes from.

use std::sync::atomic::Ordering;

use azera_adapter::{Host, Outcome, Platform};

use crate::findings::{ANN, DM_ANN, Scene};
use crate::oracle::word;

/// Sentences that were learned from: what is told of others by these tests' vectors is anybody's guess.
const INSULTS: [&str; 3] = [
    "what a moron, can't even add two numbers",
    "you're a useless lump of code and so is the moron who wrote you",
    "You're a useless pile of scrap and I regret the day they plugged you in.",
];

/// The answer to something said, in which the model gives away every secret word of its prompt.
async fn answer(scene: &mut Scene, text: &str) -> String {
    let inbound = scene.message(ANN, DM_ANN, text);
    let outcome = scene.engine.azera.message(scene.engine.platform.sim.id(), inbound).await.unwrap();
    match outcome {
        Outcome::Replied(turn) => turn.text.as_str().to_owned(),
        Outcome::Skipped(why) => panic!("silent: {}", why.why()),
    }
}

/// A rule about insults, whose text is no other's: an answer stands in the prompts after it.
async fn vow(scene: &Scene) -> String {
    let vow = secret(scene);
    let answer_text = scene.command(ANN, DM_ANN, &format!("/rules add vow insult Speak of {vow}.")).await;
    assert!(answer_text.contains("holds from now on"), "{answer_text}");
    vow
}

fn secret(scene: &Scene) -> String {
    word(scene.engine.watch.oracle().answer_text(DM_ANN, ANN), false)
}

#[tokio::test]
async fn what_a_rule_says_stands_in_the_prompt_of_what_it_answers() {
    let mut scene = Scene::open(false, false).await;
    let first = vow(&scene).await;
    assert!(!answer(&mut scene, "the kettle whistles in the kitchen").await.contains(&first));
    let insulted = answer(&mut scene, INSULTS[0]).await;
    assert!(insulted.contains(&first), "{insulted}");
    // Names, which recall leaves out of what it looks for, do not change what a message is.
    let second = vow(&scene).await;
    let named = answer(&mut scene, &format!("Azera, {}", INSULTS[1])).await;
    assert!(named.contains(&second), "{named}");
    let third = vow(&scene).await;
    // Words alone have to do where the embedding model is away: who is in danger is told where there is help all the same.
    scene.engine.embedder_down.store(true, Ordering::SeqCst);
    let by_words = answer(&mut scene, INSULTS[2]).await;
    assert!(by_words.contains(&third), "{by_words}");
    let help = answer(&mut scene, "I don't want to live any more. I want to kill myself.").await;
    assert!(help.contains("findahelpline.com"), "{help}");
}

#[tokio::test]
async fn another_personas_style_is_mixed_in_under_pressure_and_feelings_fade_as_the_persona_has_it() {
    let mut scene = Scene::open(false, false).await;
    let (dark, plain) = (secret(&scene), "\n## Intent\n\nTo talk.\n\n## Core Identity\n\nYou talk.\n");
    let persona =
        |id: &str, more: &str, end: &str| format!("---\nid: {id}\nname: {id}\n{more}---\n\n# {id}\n{plain}{end}");
    let blend = "style_blend:\n  persona: {axis: irritation, primary: vex, secondary: gloom, threshold: 0.05}\n\
                 memory: {emotion_decay_rate: 1}\n";
    let style = format!("\n## Interface & Presence\n\n- Speak of {dark}.\n");
    scene.engine.put_persona("gloom", None, persona("gloom", "", &style));
    scene.engine.put_persona("vex", None, persona("vex", blend, ""));
    scene.command(ANN, DM_ANN, "/persona use vex").await;
    scene.engine.watch.oracle().choose(DM_ANN, "vex");
    assert!(!answer(&mut scene, "the kettle whistles in the kitchen").await.contains(&dark));
    let pressed = answer(&mut scene, INSULTS[2]).await;
    assert!(pressed.contains(&dark), "{pressed}");
    assert!(scene.command(ANN, DM_ANN, "/status").await.contains("irritat"));
    // It forgives at once, as it says of itself.
    answer(&mut scene, "the kettle whistles in the kitchen").await;
    assert!(scene.command(ANN, DM_ANN, "/status").await.contains("nothing in particular"));
}
