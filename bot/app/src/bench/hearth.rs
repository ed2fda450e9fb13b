//! `azera bench hearth`: how long it takes to learn what was lived through, and what becomes of it when more is learnt. The
//! exchanges are made up; the way is the product's own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use azera_chat::{Change, Course, Lesson, MayGoOn, Trainer};
use azera_config::Config;
use azera_curriculum::{Kind as LessonKind, lessons};
use azera_ledger::Kind;
use serde_json::{Value, json};

use super::rounded;
use crate::cli::BenchHearth;
use crate::hearth::{OnThisMachine, bar, show};
use crate::house::{chosen, family, models};
use crate::measure::Resident;

/// What people talk about in it, as the curriculum has it.
const TALK: [(usize, LessonKind); 2] = [(1, LessonKind::Heard), (1, LessonKind::Talk)];

/// The first course is drawn from this number, the next from the next.
const DRAWN_FROM: u64 = 7_000;

/// Exchanges that are learnt for one that is left out.
const LEFT_OUT: usize = 8;

pub async fn hearth(config: &Config, options: &BenchHearth) -> anyhow::Result<Value> {
    let models = models(config)?;
    let model = match &options.model {
        Some(name) => name.clone(),
        None => chosen(config, &models, Kind::Chat)?,
    };
    let installed = models.find(&model)?;
    let installed =
        installed.with_context(|| format!("{model} is not here: `azera models pull {model}` fetches it"))?;
    let family = family(&installed)?;
    let bar = bar();
    let watch = {
        let bar = bar.clone();
        Arc::new(move |now: &_| show(&bar, now))
    };
    let trainer = OnThisMachine::watched(config.clone(), models, watch);
    trainer.ground(&model).with_context(|| format!("{model} cannot learn here"))?;
    let folder = tempfile::tempdir()?;
    let mut longest = Duration::ZERO;
    let (mut beside, mut first, mut courses) = (None, Vec::new(), Vec::new());
    let (mut slowest, mut largest_cosine, mut at_first, mut at_last) = (0.0_f64, 0.0_f32, None, None);
    for number in 0..options.courses {
        let count = options.exchanges + options.exchanges.div_ceil(LEFT_OUT);
        let mut lived = exchanges(&family, DRAWN_FROM + number as u64, count);
        let left_out = lived.split_off(options.exchanges);
        if number == 0 {
            first.clone_from(&lived);
        }
        let to = folder.path().join(format!("{number}.gguf"));
        let course = Course {
            model: model.clone(),
            lessons: lived,
            older: if number == 0 { left_out } else { first.clone() },
            voice: Vec::new(),
            beside: beside.replace(to.clone()),
            to,
            seed: number as u64,
        };
        let began = Instant::now();
        let (may_go_on, longest_between) = asked();
        let trained = trainer.learn(course, may_go_on).await.map_err(|error| anyhow!("{error}"))?;
        longest = longest.max(longest_between());
        let seconds = began.elapsed().as_secs_f64();
        let examined = trained.examined;
        slowest = slowest.max(seconds);
        largest_cosine = largest_cosine.max(examined.largest_cosine);
        match number {
            0 => at_first = Some(examined.learnt.after),
            _ => at_last = examined.older.map(|older| older.after),
        }
        bar.suspend(|| eprintln!("course {} of {}: {seconds:.1} s", number + 1, options.courses));
        courses.push(json!({
            "seconds": rounded(seconds), "rank": examined.rank, "share": rounded(f64::from(examined.share)),
            "largest_cosine": examined.largest_cosine,
            "learnt": change(examined.learnt), "older": examined.older.map(change), "tasks": change(examined.tasks),
            "prose": change(examined.prose), "tells_secrets": examined.tells_secrets,
        }));
    }
    bar.finish_and_clear();
    let worse = at_first.zip(at_last).map(|(first, last)| rounded(last / first - 1.0));
    Ok(json!({
        "model": model, "exchanges": options.exchanges, "slowest_s": rounded(slowest),
        "longest_until_it_gives_way_ms": rounded(longest.as_secs_f64() * 1_000.0), "largest_cosine": largest_cosine,
        "first_course_worse_by": worse, "peak_mb": Resident::now().map(|resident| rounded(resident.peak)), "courses": courses,
    }))
}

/// Lets a course go on each time it asks, and tells the longest time between two times: so long somebody who talks may have to wait
/// until the processor is theirs.
fn asked() -> (MayGoOn, impl Fn() -> Duration) {
    let times = Arc::new(Mutex::new((Instant::now(), Duration::ZERO)));
    let noted = Arc::clone(&times);
    let may_go_on = move || {
        let (last, longest) = &mut *noted.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = (*longest).max(last.elapsed());
        *last = Instant::now();
        true
    };
    (Arc::new(may_go_on), move || times.lock().unwrap_or_else(PoisonError::into_inner).1)
}

fn change(change: Change) -> Value {
    json!({"before": rounded(change.before), "after": rounded(change.after)})
}

fn exchanges(family: &str, seed: u64, count: usize) -> Vec<Lesson> {
    let drawn = lessons(family, seed, count, &TALK);
    drawn
        .into_iter()
        .map(|lesson| {
            let asked = lesson.messages.last().map_or("", |last| last.content.as_str());
            let words = asked.lines().last().unwrap_or_default().to_owned();
            Lesson { words, messages: lesson.messages, reply: lesson.reply }
        })
        .collect()
}
