//! `azera eval mood`: compares methods of detecting the mood in a persona's sentences. One is the product's classifier.
//! The test sentences were not used to choose any of them.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use azera_affect::{Classifiers, LabelledSentence, Mood, MoodClassifier};
use azera_config::Config;
use azera_model_api::{ChatMessage, ChatModel, Embedder, Priority, Purpose, Role, ScoreRequest, SessionKey};
use azera_model_registry::Kind;
use azera_types::SystemClock;

use super::labels::{classifiers, label_all, read, report, vector};
use crate::bootstrap;
use crate::cli::{EvalMood, MoodBy};
use crate::progress::Bar;

/// Texts embedded at a time.
const BATCH: usize = 16;

/// Weights of the scores to try, in twentieths of the classifier's weight.
const WEIGHTS: std::ops::RangeInclusive<u8> = 0..=40;

/// A score for each of [`Mood::ALL`].
type MoodScores = [f64; Mood::ALL.len()];

/// A method of mood detection.
enum Method {
    Classifier(Arc<dyn Embedder>, Arc<Classifiers>),
    Prototypes(Arc<dyn Embedder>, Vec<Vec<f32>>),
    Scores(Scores),
    Mix(Arc<dyn Embedder>, Arc<Classifiers>, Scores, f64),
}

pub async fn mood(config: &Config, options: EvalMood) -> anyhow::Result<ExitCode> {
    let known: Vec<&str> = Mood::ALL.map(Mood::name).to_vec();
    let sentences = read(&options.labels.file, &known, true)?;
    let method = Method::open(config, &options).await?;
    let results =
        label_all(&sentences, async |text| Ok(vec![likeliest(&method.score_moods(text).await?).name()])).await?;
    report(&sentences, &results, &known, "accuracy", &options.labels)
}

impl Method {
    async fn open(config: &Config, options: &EvalMood) -> anyhow::Result<Self> {
        let embedder = async || bootstrap::embedder(config).await;
        let examples = MoodClassifier::labelled_examples()?;
        Ok(match options.by {
            MoodBy::Classifier => {
                let embedder = embedder().await?;
                let classifiers = classifiers(config, &embedder).await?;
                Self::Classifier(embedder, classifiers)
            }
            MoodBy::Prototypes => {
                let embedder = embedder().await?;
                let vectors = vectors(embedder.as_ref(), &examples).await?;
                Self::Prototypes(embedder, centroids(&examples, &vectors))
            }
            MoodBy::Scores => Self::Scores(Scores::open(config, &options.model, &examples).await?.0),
            MoodBy::Mix => {
                let embedder = embedder().await?;
                let classifiers = classifiers(config, &embedder).await?;
                let left_out = MoodClassifier::left_out(&vectors(embedder.as_ref(), &examples).await?)?;
                let (scores, example_scores) = Scores::open(config, &options.model, &examples).await?;
                let weight = best_weight(&examples, &left_out, &example_scores);
                eprintln!("the scores weigh {weight} of what the classifier weighs");
                Self::Mix(embedder, classifiers, scores, weight)
            }
        })
    }

    async fn score_moods(&self, text: &str) -> anyhow::Result<MoodScores> {
        Ok(match self {
            Self::Classifier(embedder, classifiers) => {
                let vector = vector(embedder.as_ref(), text).await?;
                logarithms(&classifiers.mood.probabilities(text, &vector))
            }
            Self::Prototypes(embedder, centroids) => {
                let vector = vector(embedder.as_ref(), text).await?;
                for_each_mood(|number| centroids.get(number).map_or(f64::MIN, |centroid| dot(centroid, &vector)))
            }
            Self::Scores(scores) => scores.score_moods(text).await?,
            Self::Mix(embedder, classifiers, scores, weight) => {
                let vector = vector(embedder.as_ref(), text).await?;
                mixed(&classifiers.mood.probabilities(text, &vector), &scores.score_moods(text).await?, *weight)
            }
        })
    }
}

/// A chat model's log-probabilities of the moods' names after a sentence, minus their mean over the examples. The model
/// finds some words likelier whatever the sentence is (contextual calibration, Zhao et al. 2021).
struct Scores {
    model: Arc<dyn ChatModel>,
    session: SessionKey,
    prior: MoodScores,
}

impl Scores {
    /// Loads the model and computes the prior from the examples. Also returns the examples' own scores.
    async fn open(
        config: &Config,
        name: &str,
        examples: &[LabelledSentence],
    ) -> anyhow::Result<(Self, Vec<MoodScores>)> {
        let models = bootstrap::models(config)?;
        let name = match name {
            "default" => bootstrap::chosen(config, &models, Kind::Chat)?,
            name => name.to_owned(),
        };
        let installed = bootstrap::installed(&models, &name).await?;
        let of = config.clone();
        let model = tokio::task::spawn_blocking(move || {
            bootstrap::load_chat(&of, &models, &installed, false, Arc::new(SystemClock))
        })
        .await??;
        ensure!(model.scorer().is_some(), "{name} cannot say how likely a text is");
        let mut scores = Self { model, session: SessionKey::new("moods"), prior: MoodScores::default() };
        let bar = Bar::new();
        let mut example_scores = Vec::with_capacity(examples.len());
        for example in examples {
            example_scores.push(scores.score_moods(&example.text).await?);
            bar.count("reading the examples", example_scores.len(), examples.len());
        }
        scores.prior = mean(&example_scores);
        for own in &mut example_scores {
            *own = for_each_mood(|number| own[number] - scores.prior[number]);
        }
        Ok((scores, example_scores))
    }

    async fn score_moods(&self, text: &str) -> anyhow::Result<MoodScores> {
        let scorer = self.model.scorer().context("the model scores no more")?;
        let request = ScoreRequest {
            messages: vec![ChatMessage::new(Role::User, mood_prompt(text))],
            continuations: Mood::ALL.map(|mood| format!(" {mood}")).to_vec(),
            within: true,
            session: Some(self.session.clone()),
            priority: Priority::Foreground,
            loras: Vec::new(),
        };
        let found = scorer.score(request).await?;
        Ok(for_each_mood(|number| found.get(number).map_or(f64::MIN, |score| score.log_prob) - self.prior[number]))
    }
}

/// Returns the prompt that a mood's name follows. It did better on the examples than the other prompt tried.
fn mood_prompt(text: &str) -> String {
    format!("Text: {text}\nMood:")
}

/// Returns the smallest weight of the scores that classifies most examples correctly. Each example counts by its
/// left-out classification.
fn best_weight(examples: &[LabelledSentence], left_out: &[Vec<f32>], scores: &[MoodScores]) -> f64 {
    let right = |weight: f64| {
        let results =
            left_out.iter().zip(scores).map(|(classified, scores)| likeliest(&mixed(classified, scores, weight)));
        results.zip(examples).filter(|(mood, example)| example.labels.iter().any(|label| label == mood.name())).count()
    };
    let weights = WEIGHTS.map(|twentieths| f64::from(twentieths) / 20.0);
    weights.rev().max_by_key(|weight| right(*weight)).unwrap_or_default()
}

fn mixed(classified: &[f32], scores: &MoodScores, weight: f64) -> MoodScores {
    let classified = logarithms(classified);
    for_each_mood(|number| classified[number] + weight * scores[number])
}

/// Returns the logarithms of probabilities. Zero counts as the smallest positive number.
fn logarithms(probabilities: &[f32]) -> MoodScores {
    for_each_mood(|number| probabilities.get(number).map_or(0.0, |it| f64::from(*it)).max(f64::MIN_POSITIVE).ln())
}

fn mean(all: &[MoodScores]) -> MoodScores {
    for_each_mood(|number| all.iter().map(|own| own[number]).sum::<f64>() / all.len().max(1) as f64)
}

fn for_each_mood(of: impl Fn(usize) -> f64) -> MoodScores {
    std::array::from_fn(of)
}

fn likeliest(weighed: &MoodScores) -> Mood {
    let most = Mood::ALL.into_iter().zip(weighed).max_by(|(_, a), (_, b)| a.total_cmp(b));
    most.map_or(Mood::Calm, |(mood, _)| mood)
}

async fn vectors(embedder: &dyn Embedder, examples: &[LabelledSentence]) -> anyhow::Result<Vec<Vec<f32>>> {
    let mut vectors = Vec::with_capacity(examples.len());
    for batch in examples.chunks(BATCH) {
        let texts = batch.iter().map(|example| example.text.clone()).collect();
        vectors.extend(embedder.embed(texts, Purpose::Document, Priority::Foreground).await?);
    }
    Ok(vectors)
}

/// Returns the normalised mean vector of each mood's examples.
fn centroids(examples: &[LabelledSentence], vectors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let centroid = |mood: Mood| {
        let own = examples.iter().zip(vectors).filter(|(example, _)| example.labels.iter().any(|it| it == mood.name()));
        let mut sum = vec![0.0; vectors.first().map_or(0, Vec::len)];
        for (_, vector) in own {
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
        }
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        sum.iter_mut().for_each(|value| *value /= length);
        sum
    };
    Mood::ALL.map(centroid).to_vec()
}

fn dot(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(mood: Mood) -> LabelledSentence {
        LabelledSentence { text: String::new(), labels: vec![mood.name().to_owned()] }
    }

    fn only(mood: Mood, value: f64) -> MoodScores {
        Mood::ALL.map(|other| if other == mood { value } else { 0.0 })
    }

    #[test]
    fn the_smallest_sufficient_weight_wins() {
        let even = vec![0.125; 8];
        let sure: Vec<f32> = only(Mood::Calm, 0.99).map(|it| it.max(0.001) as f32).to_vec();
        let examples = [example(Mood::Curious), example(Mood::Calm)];
        // The first example needs its score. The second becomes wrong if scores weigh too much.
        let scores = [only(Mood::Curious, 1.0), only(Mood::Happy, 100.0)];
        assert_eq!(best_weight(&examples, &[even.clone(), sure], &scores), 0.05);
        // Scores without information get no weight.
        assert_eq!(best_weight(&examples, &[even.clone(), even], &[MoodScores::default(); 2]), 0.0);
    }

    #[test]
    fn a_prototype_is_the_direction_of_its_examples() {
        let examples = [example(Mood::Happy), example(Mood::Happy), example(Mood::Calm)];
        let found = centroids(&examples, &[vec![3.0, 0.0], vec![0.0, 4.0], vec![0.0, 2.0]]);
        assert_eq!(found[0], [0.6, 0.8]);
        assert_eq!(found[3], [0.0, 1.0]);
        assert_eq!(found[1], [0.0, 0.0]);
        assert_eq!(likeliest(&for_each_mood(|number| dot(&found[number], &[0.1, 1.0]))), Mood::Calm);
    }

    #[test]
    fn the_prior_is_the_mean_of_the_examples() {
        assert_eq!(mean(&[only(Mood::Happy, -2.0), only(Mood::Happy, -4.0)]), only(Mood::Happy, -3.0));
    }
}
