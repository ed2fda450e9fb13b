//! Stage *remember*: notes which memories the reply used, and keeps the exchange so that its surprise can be measured. It
//! writes no memory (`memory/core/src/turns.rs` does, in the stage *commit*), and nothing here can fail the turn.

use std::sync::Arc;

use azera_memory::{Kind, MemoryRow, MessageRow, Provenance, ReadScope};
use azera_types::{MemoryId, MessageId};

use super::commit::Committed;
use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generate::Draft;
use super::sources;
use crate::surprise::Exchange;
use crate::turn::Turns;

impl Turns {
    /// Notes an exchange whose surprise is measured later, and the memories that the reply used.
    pub(super) async fn remember(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        committed: &Committed,
        changes_before: u64,
    ) {
        if !draft.generated.is_fixed()
            && !self.services.interruptions.has(&draft.id)
            && self.is_to_learn_from(request, context, composition)
            && let Some(exchange) = self.learnable_exchange(request, context, composition, draft, committed).await
        {
            self.surprise.exchanges.wait(exchange, changes_before);
        }
        self.note_used(request, composition, draft, committed).await;
    }

    /// Whether the exchange may be learned from: not a reply of fixed words, and not a second reply to one message.
    fn is_to_learn_from(&self, request: &TurnRequest, context: &TurnContext, composition: &Composition) -> bool {
        context.overrides.garden.surprise
            && !composition.style.is_in_danger()
            && !request.again
            && context.model.scorer().is_some()
    }

    /// The exchange with everything that its prompt rests on; `None` if some of that is gone.
    async fn learnable_exchange(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        committed: &Committed,
    ) -> Option<Exchange> {
        let message = &request.message;
        let memories = composition.memories();
        let memories = memories.iter().map(|hit| &hit.memory);
        // Notes make way for newer ones, so an exchange rests on the messages behind them instead.
        let (notes, others): (Vec<&MemoryRow>, Vec<&MemoryRow>) =
            memories.clone().partition(|memory| memory.kind == Kind::Note);
        let noted = self.messages_behind(context.read_scope.clone(), &notes).await?;
        let rows = composition.shown(context).iter().chain([message]).chain(&noted);
        let provenance = Provenance {
            messages: rows.map(|row| (row.id.clone(), row.edited_at)).collect(),
            memories: others.into_iter().map(|memory| memory.id).collect(),
            ..Provenance::default()
        };
        Some(Exchange {
            said: message.clone(),
            prompt: composition.prompt.messages.clone(),
            reply: draft.generated.text.clone(),
            model: context.model.info().name.clone(),
            loras: draft.generated.loras.clone(),
            at: committed.reply.at,
            sources: memories.flat_map(|memory| memory.sources.iter().cloned()).collect(),
            provenance: Arc::new(provenance),
        })
    }

    /// The messages that notes were made of, if all are there.
    async fn messages_behind(&self, read_scope: ReadScope, notes: &[&MemoryRow]) -> Option<Vec<MessageRow>> {
        let ids: Vec<MessageId> = notes.iter().flat_map(|notes| notes.sources.iter().cloned()).collect();
        if ids.is_empty() {
            return Some(Vec::new());
        }
        let rows = self.services.blocking(move |memory| {
            let rows = ids.iter().map(|id| memory.messages().get(&read_scope, id));
            rows.collect::<Result<Vec<_>, azera_memory::Error>>()
        });
        match rows.await {
            Ok(rows) => rows.into_iter().collect(),
            Err(error) => {
                tracing::info!(%error, "the surprise of an exchange is not measured");
                None
            }
        }
    }

    /// Notes which extracted memories of this place the reply rests on: use keeps a memory strong.
    async fn note_used(&self, request: &TurnRequest, composition: &Composition, draft: &Draft, committed: &Committed) {
        let place = request.message.scope.clone();
        let rests_on = sources::rests_on(&draft.generated.text, &composition.recalled(), &composition.carried());
        let of_here = rests_on.into_iter().filter(|hit| hit.memory.salience.is_some() && hit.memory.scope == place);
        let used: Vec<MemoryId> = of_here.map(|hit| hit.memory.id).collect();
        if used.is_empty() {
            return;
        }
        let at = committed.reply.at;
        if let Err(error) = self.services.blocking(move |memory| memory.memories().used(&place, &used, at)).await {
            tracing::warn!(%error, "the use of a memory is not noted");
        }
    }
}
