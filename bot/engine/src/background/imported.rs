//! Marks what is worth keeping in conversations that somebody imported.

use std::collections::HashSet;

use azera_memory::{MessageRow, ReadScope};
use azera_types::{ChatId, MessageId, PersonId};

use super::diary::LOOKED_AT;
use crate::background::Background;
use crate::error::Error;

impl Background {
    /// Marks what is worth keeping in the newest messages of an imported chat, among those that `new` names. Only the
    /// words of `person`, who imported it, are marked. Does nothing without the classifiers. While the model that compares
    /// claims is away, all statements stand; they are not compared later.
    pub(crate) async fn mark_imported(
        &self,
        read_scope: &ReadScope,
        person: &PersonId,
        chat: &ChatId,
        new: &HashSet<MessageId>,
    ) -> Result<(), Error> {
        self.judge.classifiers.settled().await;
        let Some(classifiers) = self.judge.classifiers.now() else { return Ok(()) };
        let (of, chat) = (read_scope.clone(), chat.clone());
        let rows = self.services.blocking(move |memory| memory.messages().history(&of, &chat, LOOKED_AT)).await?;
        let own = |row: &MessageRow| row.author.person() == Some(person) && new.contains(&row.id);
        let rows: Vec<MessageRow> = rows.into_iter().filter(own).collect();
        let rows: Vec<&MessageRow> = rows.iter().collect();
        for (row, salience) in self.find_salient(&classifiers, &rows).await? {
            match self.mark_salient(read_scope, person, row, salience).await {
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "the claims of an import are not compared")
                }
                marked => marked?,
            }
        }
        Ok(())
    }
}
