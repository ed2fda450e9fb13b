//! Recalled lines that repeat what the prompt shows of the conversation: for small models, next to a question.

use std::sync::{Arc, Mutex};

use azera_adapter::Host;
use azera_model_api::{ChatMessage, ScriptedModel};

use crate::findings::{ANN, DM_ANN, Scene};

const TOLD: &str = "our cat Brioche hates cardboard boxes";
const QUESTION: &str = "what does our cat Brioche hate?";

/// Tells something, talks about other things, and returns the last prompt after `last` was said.
async fn prompt_after(parameters: Option<u64>, last: &str) -> String {
    let mut scene = Scene::open(false, false).await;
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let seen = prompts.clone();
    let model = ScriptedModel::new(Arc::new(move |messages: &[ChatMessage]| {
        let prompt: String = messages.iter().map(|message| format!("{}\n", message.content)).collect();
        seen.lock().unwrap().push(prompt);
        "Noted.".to_owned()
    }));
    let model = match parameters {
        Some(parameters) => model.with_parameters(parameters),
        None => model,
    };
    scene.engine.answered_by(Arc::new(model)).await;
    for said in [TOLD, "the train was late", "I made soup", last] {
        scene.say(ANN, DM_ANN, said).await;
        scene.engine.azera.settle().await.unwrap();
    }
    prompts.lock().unwrap().iter().rev().find(|prompt| prompt.trim_end().ends_with(last)).unwrap().clone()
}

#[tokio::test]
async fn a_small_model_reads_what_it_was_told_next_to_the_question() {
    let small = Some(1_500_000_000);
    let times = |prompt: &str| prompt.matches(TOLD).count();
    let prompt = prompt_after(small, QUESTION).await;
    assert_eq!(times(&prompt), 2, "{prompt}");
    // The second time stands under the heading of recalled lines, after the conversation.
    let (heading, again) = (prompt.rfind("told you before:").unwrap(), prompt.rfind(TOLD).unwrap());
    assert!(prompt.find("I made soup").unwrap() < heading && heading < again, "{prompt}");
    let prompt = prompt_after(small, "our cat Brioche hates so much").await;
    assert_eq!(times(&prompt), 1, "nothing was asked: {prompt}");
    let prompt = prompt_after(None, QUESTION).await;
    assert_eq!(times(&prompt), 1, "a large model finds it: {prompt}");
}
