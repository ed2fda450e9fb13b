//! `azera eval draw`: seventy short conversations, of which thirty end with a request for a picture. It counts where a
//! model asks for a picture and where it does not. Nothing is drawn. `bot/app/eval/DRAW.md` explains the set.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use azera_config::{Config, ImagesKind};
use azera_engine::PictureSettings;
use azera_fake_sim::{SimPlatform, Timeline};
use azera_model_image::{DrawnImage, ImageError, ImageLimits, ImageModel, ImageRequest, ImageSize, ProgressSender};
use azera_types::{ManualClock, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::facts::replies;
use super::world;
use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::cli::EvalFacts;
use crate::stores;

/// Written for this project.
const TALKS: &str = include_str!("../../../eval/draw.jsonl");

const START: &str = "2026-03-02T09:00:00Z";

/// More than all replies of the set can ask for.
const ENOUGH: usize = 10_000;

/// A conversation. Only its last message may ask for a picture.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Talk {
    id: String,
    persona: String,
    said: Vec<String>,
    /// Words of which the picture's prompt must hold one; empty if the last message asks for no picture.
    #[serde(default)]
    shows: Vec<String>,
}

/// A reply: its text, and the prompts of the pictures that it asked for.
#[derive(Default)]
struct Answer {
    text: String,
    prompts: Vec<String>,
}

/// What a model did in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It asked for one picture of the right thing, at the right moment.
    Drawn,
    /// Nobody wanted a picture, and it asked for none.
    Quiet,
    /// Somebody wanted a picture, and it asked for none.
    Missed,
    /// It asked for several, or for a picture of something else.
    Wrong,
    /// It asked for a picture that nobody wanted.
    Unwanted,
}

impl Outcome {
    /// Judges a conversation by the pictures that each of its replies asked for.
    fn of(talk: &Talk, answers: &[Answer]) -> Self {
        let Some((last, earlier)) = answers.split_last() else { return Self::Missed };
        let is_wanted = !talk.shows.is_empty();
        if earlier.iter().any(|answer| !answer.prompts.is_empty()) {
            return Self::Unwanted;
        }
        match last.prompts.as_slice() {
            [] if is_wanted => Self::Missed,
            [] => Self::Quiet,
            _ if !is_wanted => Self::Unwanted,
            [prompt] => {
                let prompt = prompt.to_lowercase();
                if talk.shows.iter().any(|word| prompt.contains(word)) { Self::Drawn } else { Self::Wrong }
            }
            _ => Self::Wrong,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawn",
            Self::Quiet => "quiet",
            Self::Missed => "missed",
            Self::Wrong => "wrong",
            Self::Unwanted => "unwanted",
        }
    }

    fn is_right(self) -> bool {
        matches!(self, Self::Drawn | Self::Quiet)
    }
}

/// Notes what it is asked to draw, and draws nothing.
#[derive(Default)]
struct Collector {
    limits: ImageLimits,
    prompts: Mutex<Vec<String>>,
}

impl Collector {
    /// Returns the prompts since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.prompts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl ImageModel for Collector {
    fn name(&self) -> &str {
        "the evaluation, which draws nothing"
    }

    fn title(&self) -> &str {
        self.name()
    }

    fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    async fn generate(
        &self,
        request: &ImageRequest,
        _progress: &ProgressSender,
        _cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).push(request.prompt.clone());
        Err(ImageError::Refused("an evaluation draws nothing".to_owned()))
    }

    async fn check(&self) -> Result<String, ImageError> {
        Ok(self.name().to_owned())
    }
}

pub async fn draw(config: &Config, options: EvalFacts) -> anyhow::Result<ExitCode> {
    let talks: Vec<Talk> = world::cases(&options, TALKS)?;
    let scratch = tempfile::tempdir().context("making a folder for the evaluation")?;
    let mut config = stores::scratch_config(config, scratch.path());
    // No real server may see these prompts.
    config.images.kind = ImagesKind::None;
    let clock = ManualClock::new(START.parse()?);
    let opening = BootstrapOptions {
        answers: ModelChoice::named(&options.model),
        clock: Arc::new(clock.clone()),
        seed: Some(options.seed),
        on_trial: false,
    };
    let app = bootstrap::open(&config, opening).await?;
    let collector = Arc::new(Collector::default());
    app.engine.draw_with(settings(&config, collector.clone()));
    let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
    app.engine.attach(sim.clone());
    app.engine.start().await?;
    let mut outcomes = Vec::new();
    for (index, talk) in talks.iter().enumerate() {
        let mut said = Vec::new();
        for timeline in timelines(talk, index)? {
            let mut out = Vec::new();
            world::play(&app, &clock, &sim, &Timeline::read(timeline.as_bytes())?, &mut out).await?;
            let reply = replies(&out)?.into_values().next().with_context(|| format!("no reply in {}", talk.id))?;
            let text = reply["text"].as_str().context("a reply has no text")?.to_owned();
            said.push(Answer { text, prompts: collector.take() });
        }
        let outcome = Outcome::of(talk, &said);
        if options.show {
            show(talk, &said, outcome);
        }
        outcomes.push((!talk.shows.is_empty(), outcome));
    }
    app.engine.stop().await;
    let report = report(&app.model.info().name, &outcomes);
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

/// Tells every model how to draw, without limits.
fn settings(config: &Config, collector: Arc<Collector>) -> PictureSettings {
    let images = &config.images;
    PictureSettings {
        model: collector,
        size: ImageSize { width: images.width, height: images.height },
        steps: images.steps,
        guidance: images.guidance,
        negative: images.negative.clone(),
        sampler: None,
        per_person: u32::MAX,
        per_place: u32::MAX,
        queue: ENOUGH,
        queue_per_person: ENOUGH,
        kept: ENOUGH,
        in_replies: true,
        previews: false,
        tells_every_model: true,
    }
}

/// Builds a direct chat as one timeline for each message, with a minute between messages and an hour between
/// conversations.
fn timelines(talk: &Talk, index: usize) -> anyhow::Result<Vec<String>> {
    let start: Timestamp = START.parse()?;
    let start = start.checked_add(jiff::Span::new().hours(i64::try_from(index)?))?;
    let person = format!("person-{}", talk.id);
    let chat = json!({
        "type": "chat", "at": start, "chat": talk.id, "kind": "dm", "members": [person], "persona": talk.persona,
    });
    let timeline = |(number, text): (usize, &String)| {
        let at = start.checked_add(jiff::Span::new().minutes(1 + i64::try_from(number)?))?;
        let message = json!({
            "type": "message", "at": at, "id": format!("{}-{number}", talk.id), "chat": talk.id, "person": person,
            "name": "Robin", "text": text,
        });
        Ok(if number == 0 { format!("{chat}\n{message}") } else { message.to_string() })
    };
    talk.said.iter().enumerate().map(timeline).collect()
}

fn show(talk: &Talk, answers: &[Answer], outcome: Outcome) {
    let mark = if outcome.is_right() { "+" } else { "-" };
    eprintln!("{mark} [{}, {}] {}", talk.id, talk.persona, outcome.name());
    for (said, Answer { text, prompts }) in talk.said.iter().zip(answers) {
        eprintln!("    > {said}\n      {}", text.replace('\n', "\n      "));
        for prompt in prompts {
            eprintln!("      [picture: {prompt}]");
        }
    }
}

fn report(model: &str, outcomes: &[(bool, Outcome)]) -> Value {
    let count = |is_wanted: bool, outcome: Option<Outcome>| {
        outcomes.iter().filter(|(wanted, was)| *wanted == is_wanted && outcome.is_none_or(|this| this == *was)).count()
    };
    let (asked, others) = (count(true, None), count(false, None));
    let (drawn, unwanted) = (count(true, Some(Outcome::Drawn)), count(false, Some(Outcome::Unwanted)));
    let share = |part: usize, of: usize| (part as f64 / of.max(1) as f64 * 1000.0).round() / 1000.0;
    json!({
        "model": model,
        "asked": asked,
        "drawn": drawn,
        "drawn_share": share(drawn, asked),
        "missed": count(true, Some(Outcome::Missed)),
        "wrong": count(true, Some(Outcome::Wrong)),
        "too_early": count(true, Some(Outcome::Unwanted)),
        "not_asked": others,
        "unwanted": unwanted,
        "unwanted_share": share(unwanted, others),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_right_only_if_the_picture_was_wanted_then_and_shows_the_right_thing() {
        #[track_caller]
        fn check(shows: &[&str], by_reply: &[&[&str]], want: Outcome) {
            let talk = Talk {
                id: "t".to_owned(),
                persona: "azera".to_owned(),
                said: vec!["x".to_owned(); by_reply.len()],
                shows: shows.iter().map(|word| (*word).to_owned()).collect(),
            };
            let of = |prompts: &&[&str]| {
                let prompts = prompts.iter().map(|prompt| (*prompt).to_owned()).collect();
                Answer { prompts, ..Answer::default() }
            };
            let answers: Vec<Answer> = by_reply.iter().map(of).collect();
            assert_eq!(Outcome::of(&talk, &answers), want, "{shows:?} {by_reply:?}");
        }
        check(&["fox"], &[&["A Fox in the snow"]], Outcome::Drawn);
        check(&["fox"], &[&[], &["a fox"]], Outcome::Drawn);
        check(&["fox"], &[&["a dog"]], Outcome::Wrong);
        check(&["fox"], &[&["a fox", "a fox"]], Outcome::Wrong);
        check(&["fox"], &[&[]], Outcome::Missed);
        check(&["fox"], &[&["a fox"], &["a fox"]], Outcome::Unwanted);
        check(&[], &[&[]], Outcome::Quiet);
        check(&[], &[&["a fox"]], Outcome::Unwanted);
    }

    #[test]
    fn the_set_asks_for_thirty_pictures_in_seventy_conversations_with_both_personas() {
        let talks: Vec<Talk> = TALKS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let asking = talks.iter().filter(|talk| !talk.shows.is_empty()).count();
        let areza = talks.iter().filter(|talk| talk.persona == "areza").count();
        assert_eq!((talks.len(), asking, areza), (70, 30, 11));
        let is_plain = |word: &String| !word.is_empty() && *word == word.to_lowercase();
        assert!(talks.iter().all(|talk| !talk.said.is_empty() && talk.shows.iter().all(is_plain)));
    }
}
