//! Streams about a picture that waits or is being drawn.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use azera_adapter::{FileContent, PictureAsked, PictureState, Reading};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::Stream;
use serde_json::json;

use super::images::Image;
use super::talk::event;
use crate::problem::Problem;
use crate::web::Shared;

/// Time between two looks at a picture that is being drawn.
const LOOK: Duration = Duration::from_millis(250);

/// Answers with a stream about a picture that waits.
pub(super) fn follow(shared: Arc<Shared>, at: Reading, asked: PictureAsked, steps: u32) -> Result<Response, Problem> {
    match asked {
        PictureAsked::Waits(number) => {
            let drawing = Drawing { at, number, steps };
            Ok(Sse::new(progress(shared, drawing)).keep_alive(KeepAlive::default()).into_response())
        }
        PictureAsked::Refused(why) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", why)),
        PictureAsked::TooMany(why) => Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_pictures", why)),
    }
}

/// A picture that somebody follows.
#[derive(Clone)]
struct Drawing {
    at: Reading,
    number: u64,
    /// The steps that were asked for; 0 for the configured ones.
    steps: u32,
}

/// What comes next in a stream about a picture.
enum Next {
    Look { shown: Option<(u32, u32)> },
    End,
}

/// Returns how a picture goes on, until it ends. It is drawn without anybody who follows, too.
fn progress(shared: Arc<Shared>, drawing: Drawing) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    futures::stream::unfold(Next::Look { shown: None }, move |next| {
        let (shared, drawing) = (shared.clone(), drawing.clone());
        async move {
            let Next::Look { shown } = next else { return None };
            loop {
                let (step, steps, preview) = match shared.state_of(&drawing).await {
                    Ok(Some(PictureState::Drawing { step, steps, preview })) if steps > 0 => (step, steps, preview),
                    Ok(Some(PictureState::Waits | PictureState::Drawing { .. })) => (0, drawing.steps, None),
                    ended => return Some((Ok(last(ended)), Next::End)),
                };
                if shown != Some((step, steps)) {
                    let event = event("progress", &told(drawing.number, (step, steps), preview));
                    return Some((Ok(event), Next::Look { shown: Some((step, steps)) }));
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = shared.stop.cancelled() => return None,
                }
            }
        }
    })
}

impl Shared {
    async fn state_of(&self, drawing: &Drawing) -> Result<Option<PictureState>, Problem> {
        Ok(self.pictures()?.picture_state(&self.platform, drawing.at.clone(), drawing.number).await?)
    }
}

/// Returns the last event of a picture that goes on no more.
fn last(ended: Result<Option<PictureState>, Problem>) -> Event {
    let why = match ended {
        Ok(Some(PictureState::Drawn(picture))) => return event("complete", &json!({"image": Image::from(picture)})),
        Ok(Some(PictureState::Failed(why))) => why,
        Ok(_) => "The picture was taken back.".to_owned(),
        Err(problem) => problem.detail,
    };
    event("error", &json!({"message": why}))
}

fn told(number: u64, (step, steps): (u32, u32), preview: Option<FileContent>) -> serde_json::Value {
    let percentage = u64::from(step) * 100 / u64::from(steps).max(1);
    let mut told = json!({"step": step, "total_steps": steps, "percentage": percentage.min(100), "number": number});
    if let Some(FileContent(jpeg)) = preview {
        told["preview"] = json!(format!("data:image/jpeg;base64,{}", STANDARD.encode(jpeg)));
    }
    told
}
