//! Following what happens in one's chats: one stream for each client.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::talk::event;
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Need};
use crate::events::PersonEvents;
use crate::problem::Problem;
use crate::web::Shared;

/// How often it is checked, while nothing happens, that a client may still listen.
const CHECKED_EVERY: Duration = Duration::from_secs(30);

pub(super) fn endpoints() -> Vec<Endpoint> {
    let summary = "Follow what happens in one's chats; the header Last-Event-ID goes on from an event";
    vec![
        Endpoint::new(Method::GET, "/api/events", Need::Scope(Scope::Chat), summary, follow)
            .sends("text/event-stream", "Events: ready, reset, message, changed, removed."),
    ]
}

/// A client's place in the events of its person.
struct Follower {
    shared: Arc<Shared>,
    caller: Caller,
    events: Arc<PersonEvents>,
    last: watch::Receiver<u64>,
    /// The number of the event that was sent last.
    at: u64,
    waiting: VecDeque<Event>,
}

async fn follow(State(shared): State<Arc<Shared>>, caller: Caller, headers: HeaderMap) -> Result<Response, Problem> {
    let events = shared.events.of(&caller.person()?);
    let last = events.follow();
    let before = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let known = before.and_then(|id| shared.events.number(id)).filter(|number| events.after(*number).is_some());
    let (at, name) = match (before, known) {
        (_, Some(number)) => (number, "ready"),
        (None, None) => (*last.borrow(), "ready"),
        // An earlier start, or too long ago.
        (Some(_), None) => (*last.borrow(), "reset"),
    };
    let mut follower = Follower { shared, caller, events, last, at, waiting: VecDeque::new() };
    follower.add(name, &json!({}));
    Ok(Sse::new(follower.stream()).keep_alive(KeepAlive::default()).into_response())
}

impl Follower {
    /// Adds an event with the id of the client's place.
    fn add(&mut self, name: &str, data: &Value) {
        self.waiting.push_back(event(name, data).id(self.shared.events.id(self.at)));
    }

    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        futures::stream::unfold(self, |mut follower| async move {
            let event = follower.next().await?;
            Some((Ok(event), follower))
        })
    }

    /// Waits for the next event; `None` when the client may no longer listen, or the web stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
            // The session, the key or the token may be over since the last event.
            if !self.shared.is_current(&self.caller) {
                return None;
            }
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            self.last.mark_unchanged();
            match self.events.after(self.at) {
                Some(missed) => {
                    for happened in missed {
                        self.at = happened.number;
                        self.add(happened.name, &happened.data);
                    }
                }
                None => {
                    self.at = *self.last.borrow();
                    self.add("reset", &json!({}));
                }
            }
            if !self.waiting.is_empty() {
                continue;
            }
            tokio::select! {
                () = self.shared.stop.cancelled() => return None,
                changed = self.last.changed() => changed.ok()?,
                () = tokio::time::sleep(CHECKED_EVERY) => {}
            }
        }
    }
}
