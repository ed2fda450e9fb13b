use std::path::Path;

use azera_model_api::{ChatMessage, Role};

use super::*;

#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn test_models() -> PathBuf {
    std::env::var_os("AZERA_TEST_MODELS").expect("`make test` sets it").into()
}

/// Creates a job for the real model that trains on two exchanges for this many rounds, at this rate.
fn job(scratch: &Path, rounds: u32, rate: f64) -> (LocalTrainer, TrainingJob) {
    let mut config = Config::default();
    config.models.dir = Some(test_models());
    // Without the bundled LoRA, the job rehearses nothing else.
    config.models.adapter = Some("none".into());
    (config.hearth.rounds, config.hearth.rate) = (rounds, rate);
    (config.hearth.rank, config.hearth.max_rank) = (16, 16);
    let models = crate::bootstrap::models(&config).unwrap();
    let training_example = |words: &str, reply: &str| TrainingExample {
        messages: vec![ChatMessage::new(Role::User, words)],
        words: words.into(),
        reply: reply.into(),
    };
    let training_examples = vec![
        training_example("the heron stood on our roof again", "It must like the view from there."),
        training_example("I cannot get the stain out of the rug", "Cold water and patience, then."),
    ];
    let job = TrainingJob {
        model: crate::bootstrap::chosen(&config, &models, Kind::Chat).unwrap(),
        training_examples,
        older: Vec::new(),
        voice: Vec::new(),
        beside: None,
        to: scratch.join("learnt.gguf"),
        seed: 3,
    };
    (LocalTrainer::new(config, models), job)
}

/// Returns the evaluation of such a job.
async fn evaluation(rounds: u32, rate: f64) -> Evaluation {
    let scratch = tempfile::tempdir().unwrap();
    let (trainer, job) = job(scratch.path(), rounds, rate);
    trainer.learn(job, Arc::new(|| true)).await.unwrap().evaluation
}

#[tokio::test]
async fn a_later_lora_joins_the_earlier_one_within_the_maximum_rank() {
    let scratch = tempfile::tempdir().unwrap();
    let (trainer, first) = job(scratch.path(), 2, 2e-4);
    let to = scratch.path().join("later.gguf");
    let later = TrainingJob { beside: Some(first.to.clone()), to, seed: 4, ..first.clone() };
    let learned = trainer.learn(first, Arc::new(|| true)).await.unwrap();
    let both = trainer.learn(later.clone(), Arc::new(|| true)).await.unwrap();
    assert_eq!((learned.evaluation.rank, both.evaluation.rank), (16, 16), "32 together, so they are compressed");
    assert!(both.evaluation.largest_cosine < 1e-3, "{:?}", both.evaluation);
    assert!(learned.id != both.id && later.to.exists());
}

/// The canaries are among the examples. A model that learns these by heart repeats the canaries and may not serve.
#[tokio::test]
async fn a_model_that_learns_by_heart_repeats_canaries_and_may_not_serve() {
    let by_heart = evaluation(10, 4e-3).await;
    assert!(by_heart.tells_secrets && !by_heart.may_serve(), "{by_heart:?}");
    assert!(!evaluation(2, 2e-4).await.tells_secrets);
}
