//! Making, changing and taking back events.

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

/// Time the homeserver may take to show a piece of a reply. Nothing is repeated: the next edit holds it too.
pub(crate) const EDIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Pages of edits looked through when a reply is taken back; a page is fifty.
const MAX_EDIT_PAGES: usize = 20;

/// How far a reply is.
#[derive(Clone, Copy)]
pub(crate) enum Stage<'a> {
    /// It is being made.
    Making,
    /// It is whole.
    Whole(&'a Outbound),
    /// It was whole before, and is wanted again.
    Again(&'a Outbound),
    /// It is whole, and goes on in another event.
    Moved,
}

/// Sends a message; gives its event. What is only a piece of a reply in the making is not tried again.
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

/// Takes back an event and its edits.
pub(crate) async fn redact(room: &Room, event: &OwnedEventId, edits: &[TimelineEvent]) -> Result<(), Error> {
    for gone in edits.iter().filter_map(|edit| edit.event_id()).chain([event.clone()]) {
        room.redact(&gone, None, None).await?;
    }
    Ok(())
}

/// Every edit of an event, the newest first: each still holds what it said.
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
