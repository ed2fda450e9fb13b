//! What somebody said instead of an older statement, and what they asked to keep: both are known at once, where they may
//! be shown.

use std::sync::Mutex;

use azera_adapter::Host;
use azera_memory::{Salience, Superseded};
use azera_types::{Clock, MessageId};

use crate::findings::{AN, ANN, COMMONS, DEN, DM_ANN, Scene};
use crate::passages::watching_model;

const OLD: &str = "my dentist appointment is on tuesday";
const NEW: &str = "the practice moved me to friday morning";

/// Notes that one message replaced another, as extraction does.
fn replace(scene: &Scene, old: &MessageId, new: &MessageId) {
    let superseded = Some(Superseded { by: new.clone(), at: scene.engine.clock.now(), same: false });
    let (kind, to) = ("plan".to_owned(), OLD.len());
    let salience = Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded, used: None };
    assert!(scene.engine.memory.memories().mark(old, &salience).unwrap());
}

/// Returns the prompt of the reply to a question.
async fn prompt_of(
    scene: &mut Scene,
    prompts: &Mutex<Vec<String>>,
    who: usize,
    place: usize,
    question: &str,
) -> String {
    prompts.lock().unwrap().clear();
    scene.say(who, place, question).await;
    let prompts = prompts.lock().unwrap();
    prompts.iter().find(|prompt| prompt.trim_end().ends_with(question)).unwrap().clone()
}

#[tokio::test]
async fn a_replaced_statement_is_shown_with_the_newer_one_before_it() {
    let mut scene = Scene::open(false, false).await;
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    scene.say(ANN, COMMONS, OLD).await;
    let old = scene.last();
    scene.say(ANN, COMMONS, NEW).await;
    let new = scene.last();
    replace(&scene, &old, &new);
    // No word of the question stands in the newer statement.
    let question = "which weekday is my dentist appointment?";
    let prompt = prompt_of(&mut scene, &prompts, ANN, DM_ANN, question).await;
    let line = |text: &str| prompt.lines().position(|line| line.contains(text));
    // The best line stands last, next to the question.
    let (was, is) = (line(OLD).unwrap(), line(NEW).unwrap());
    assert!(was < is, "{prompt}");
    assert!(prompt.lines().nth(was).unwrap().contains(", true until "), "{prompt}");
    assert!(!prompt.lines().nth(is).unwrap().contains(", true until "), "{prompt}");
    for command in ["/why", "/me", "/memory search dentist appointment"] {
        let answer = scene.command(ANN, DM_ANN, command).await;
        let old = answer.lines().find(|line| line.contains(OLD)).unwrap_or_else(|| panic!("{command}: {answer}"));
        assert!(old.contains(", until "), "{command}: {answer}");
    }
    // A question about then is answered with what held then.
    let prompt = prompt_of(&mut scene, &prompts, ANN, DM_ANN, "when was my dentist appointment originally?").await;
    let place = |text: &str| prompt.lines().position(|line| line.contains(text));
    assert!(place(OLD).is_some() && place(NEW).is_none_or(|new| Some(new) < place(OLD)), "{prompt}");
    // Without the newer statement, the older one holds again.
    scene.delete(&new).await;
    scene.engine.azera.settle().await.unwrap();
    let prompt = prompt_of(&mut scene, &prompts, ANN, DM_ANN, question).await;
    assert!(prompt.contains(OLD) && !prompt.contains("true until"), "{prompt}");
    assert!(!scene.command(ANN, DM_ANN, "/me").await.contains(", until "));
}

/// Not even the day may tell others that there is a newer statement.
#[tokio::test]
async fn a_newer_statement_that_may_not_be_read_changes_nothing() {
    let mut scene = Scene::open(false, false).await;
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    scene.say(ANN, COMMONS, OLD).await;
    let old = scene.last();
    scene.say(ANN, DM_ANN, NEW).await;
    let new = scene.last();
    replace(&scene, &old, &new);
    let question = "when is the dentist appointment of Ann?";
    let prompt = prompt_of(&mut scene, &prompts, AN, DEN, question).await;
    assert!(prompt.contains(OLD), "{prompt}");
    assert!(!prompt.contains(NEW) && !prompt.contains("true until"), "{prompt}");
    let answers = [
        scene.command(AN, COMMONS, "/memory search dentist appointment").await,
        scene.command(AN, DEN, "/why").await,
        scene.command(ANN, COMMONS, "/me").await,
    ];
    for answer in answers {
        assert!(answer.contains(OLD) && !answer.contains(", until "), "{answer}");
    }
}

#[tokio::test]
async fn what_somebody_asked_to_keep_is_known_at_once_and_only_there() {
    let mut scene = Scene::open(false, false).await;
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    let kept = "the spare key is under the blue pot";
    let question = "where is the spare key?";
    let asked = [scene.message(ANN, DM_ANN, question), scene.message(AN, COMMONS, question)];
    scene.command(ANN, DM_ANN, &format!("/remember {kept}")).await;
    for (asked, is_shown) in asked.into_iter().zip([true, false]) {
        prompts.lock().unwrap().clear();
        scene.submit(asked).await.unwrap();
        scene.engine.azera.settle().await.unwrap();
        let prompts = prompts.lock().unwrap();
        let prompt = prompts.iter().find(|prompt| prompt.trim_end().ends_with(question)).unwrap();
        assert_eq!(prompt.contains(kept), is_shown, "{prompt}");
    }
    let me = scene.command(ANN, DM_ANN, "/me").await;
    assert!(me.starts_with("What you asked me to keep:") && me.contains(kept), "{me}");
    for (who, place) in [(ANN, COMMONS), (AN, COMMONS)] {
        let me = scene.command(who, place, "/me").await;
        assert!(!me.contains(kept), "{me}");
    }
}
