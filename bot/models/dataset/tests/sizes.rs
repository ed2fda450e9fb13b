//! Lessons follow the size of the model that learns from them.

use azera_model_dataset::{Kind, synthetic_examples};

#[test]
fn lessons_have_the_prompt_in_which_the_model_talks() {
    let recalled = [(1, Kind::Recalled)];
    let system = |parameters| {
        let example = synthetic_examples(("qwen2", parameters), 1, 1, &recalled).remove(0);
        example.messages[0].content.clone()
    };
    let (small, medium, large) = (system(Some(494_032_768)), system(Some(1_543_714_304)), system(None));
    for (parameters, told) in [(Some(494_032_768), &small), (Some(1_543_714_304), &medium), (None, &large)] {
        let rules = azera_prompt::form_for("qwen2", parameters).rules;
        let first = rules.split(['{', ',']).next().unwrap().trim();
        assert!(told.contains(first), "{first:?} is not in {told}");
    }
    assert!(small.len() < medium.len() && medium.len() < large.len(), "the larger a model, the more it is told");
}
