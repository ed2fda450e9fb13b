//! Stage *recall*: chooses the memories of a prompt, without weak ones and mostly without those that it shows anyway.
//! `crate::recall` does the search, which commands use, too.

use std::collections::HashSet;

use azera_memory::MessageRow;
use azera_types::{MessageId, Text};

use super::context::{TurnContext, TurnRequest};
use super::hearing::as_written;
use super::history::History;
use crate::error::Error;
use crate::recall::{Asking, Recall, Trace};
use crate::turn::Turns;

/// The last messages of the conversation. They stand next to the question anyway.
const NEWEST: usize = 2;

impl Turns {
    /// Recalls what helps to answer the message, best first.
    pub(super) async fn recall_for_turn(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        history: &History,
        trace: Trace,
    ) -> Result<Recall, Error> {
        let (message, form) = (&request.message, &context.form);
        let asks = message.text.as_str().contains(['?', '？']);
        let shown = not_recalled(history.shown(context), form.recalls_shown && asks);
        let replaced = context.replaces.iter().map(|reply| &reply.id);
        let exclude: HashSet<MessageId> = shown.chain([&message.id]).chain(replaced).cloned().collect();
        let (person, persona) = (&request.inbox.person, &context.persona.name);
        let asking = Asking { person, persona, calendar: &context.calendar, known_by: None, trace };
        let question = Text::new(as_written(&message.text));
        let mut recall =
            self.recall.recall(&context.read_scope, &question, asking, exclude, form.recalled_lines).await?;
        // Each line that does not answer the question makes a small model likelier to answer with that line.
        let best = recall.hits.first().map_or(0.0, |best| best.score);
        let floor = best - best.abs() * (1.0 - form.recalled_share);
        recall.hits.retain(|hit| hit.score >= floor && !history.carries(hit));
        Ok(recall)
    }
}

/// Returns the messages that the prompt shows and that recall leaves out: all of them, or the newest ones and those of
/// the persona if the others may be recalled again.
fn not_recalled(shown: &[MessageRow], again: bool) -> impl Iterator<Item = &MessageId> {
    let newest = shown.len().saturating_sub(NEWEST);
    let is_left_out = move |at: usize, row: &MessageRow| !again || at >= newest || row.author.person().is_none();
    shown.iter().enumerate().filter(move |(at, row)| is_left_out(*at, row)).map(|(_, row)| &row.id)
}
