//! Giving the persona a mood.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use azera_adapter::GivenMood;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need};
use crate::problem::Problem;
use crate::web::Shared;

/// The chat whose persona feels.
const HOME: &str = "main";

/// The moods that can be given: the name for clients, the name in `/status`, and how pleasant it is.
const MOODS: [(&str, &str, f32); 6] = [
    ("excited", "excited", 0.9),
    ("happy", "happy", 0.8),
    ("content", "content", 0.65),
    ("neutral", "calm", 0.5),
    ("melancholy", "melancholy", 0.35),
    ("sad", "melancholy", 0.2),
];

/// A mood to give.
#[derive(Deserialize, JsonSchema)]
struct NewMood {
    /// `excited`, `happy`, `content`, `neutral`, `melancholy` or `sad`.
    mood: String,
}

/// The mood that was given.
#[derive(Debug, Serialize, JsonSchema)]
struct Updated {
    /// Always `updated`.
    status: &'static str,
    /// The mood.
    mood: &'static str,
    /// How pleasant it is, from 0 to 1.
    mood_value: f32,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let summary = "Give the persona a mood in one's own chats alone. It fades like every other mood";
    vec![
        Endpoint::new(Method::POST, "/api/status/mood", Need::Scope(Scope::Chat), summary, give)
            .takes::<NewMood>()
            .answers::<Updated>(),
    ]
}

async fn give(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewMood>,
) -> Result<axum::Json<Updated>, Problem> {
    let wanted = new.mood.trim().to_ascii_lowercase();
    let found = MOODS.into_iter().find(|(mood, ..)| *mood == wanted);
    let unknown = || Problem::invalid("`mood` is excited, happy, content, neutral, melancholy or sad.");
    let (mood, name, value) = found.ok_or_else(unknown)?;
    shared.count_message(&caller)?;
    let at = shared.reading(&caller, HOME)?;
    if !shared.moods()?.give_mood(&shared.platform, at, GivenMood { name, value }).await? {
        return Err(unknown());
    }
    Ok(axum::Json(Updated { status: "updated", mood, mood_value: value }))
}
