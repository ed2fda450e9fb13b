//! Sends, edits and redacts events.

use std::time::Duration;

use azera_adapter::Outbound;
use matrix_sdk::Room;
use matrix_sdk::config::RequestConfig;
use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::room::{IncludeRelations, RelationsOptions};
use matrix_sdk::ruma::events::relation::RelationType;
use matrix_sdk::ruma::{OwnedEventId, TransactionId, uint};
use serde_json::Value;

use crate::Error;

/// Time limit for showing a piece of a reply. It is not retried, because the next edit contains it.
pub(crate) const EDIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Pages of edits searched when a reply is retracted; a page has fifty.
const MAX_EDIT_PAGES: usize = 20;

/// The stage of a reply.
#[derive(Clone, Copy)]
pub(crate) enum Stage<'a> {
    /// It is being generated.
    Making,
    /// It is complete.
    Whole(&'a Outbound),
    /// It was complete before, and was chosen again.
    Again(&'a Outbound),
    /// It is complete, and moves to another event.
    Moved,
}

/// Sends a message and returns its event. Pieces of a reply that is being generated are not retried.
pub(crate) async fn send(
    room: &Room,
    content: Value,
    id: &TransactionId,
    stage: Stage<'_>,
) -> Result<OwnedEventId, Error> {
    let sending = room.send_raw("m.room.message", content).with_transaction_id(id);
    let sent = match stage {
        Stage::Making => {
            sending.with_request_config(RequestConfig::new().disable_retry().timeout(EDIT_TIMEOUT)).await?
        }
        Stage::Whole(_) | Stage::Again(_) | Stage::Moved => sending.await?,
    };
    Ok(sent.response.event_id)
}

/// Redacts an event and its edits.
pub(crate) async fn redact(room: &Room, event: &OwnedEventId, edits: &[TimelineEvent]) -> Result<(), Error> {
    for gone in edits.iter().filter_map(|edit| edit.event_id()).chain([event.clone()]) {
        room.redact(&gone, None, None).await?;
    }
    Ok(())
}

/// Returns every edit of an event, newest first. Each still contains its text.
pub(crate) async fn edits_of(room: &Room, event: &OwnedEventId) -> Result<Vec<TimelineEvent>, Error> {
    let mut edits = Vec::new();
    let mut from = None;
    for _ in 0..MAX_EDIT_PAGES {
        let options = RelationsOptions {
            from,
            limit: Some(uint!(50)),
            include_relations: IncludeRelations::RelationsOfType(RelationType::Replacement),
            ..RelationsOptions::default()
        };
        let page = room.relations(event.clone(), options).await?;
        edits.extend(page.chunk);
        from = page.next_batch_token;
        if from.is_none() {
            break;
        }
    }
    Ok(edits)
}
