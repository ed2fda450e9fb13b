//! Marks what is worth keeping in conversations that somebody imported, and compares it with what they said elsewhere. A
//! command that imports has no chat model that could compare, so the running bot does it later.

use std::collections::HashSet;
use std::sync::PoisonError;

use azera_memory::{MessageRow, ReadScope};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, Scope, Timestamp};

use super::TRY_AGAIN;
use super::diary::LOOKED_AT;
use super::extract::Comparison;
use super::schedule::after;
use crate::background::Background;
use crate::error::Error;

/// Statements of a person in which those of one chat are looked for.
const STATEMENTS: usize = 512;

/// Returns where an imported conversation counts as said, for the person who imported it alone.
fn place(chat: &ChatId, person: &PersonId, scope: &Scope) -> Place {
    let kind = match scope {
        Scope::Realm(realm) => PlaceKind::Public(realm.clone()),
        _ => PlaceKind::Dm(person.clone()),
    };
    Place { chat: chat.clone(), kind, since: None }
}

impl Background {
    /// Marks what is worth keeping in the newest messages of an imported chat, among those that `new` names. Only the
    /// words of `person`, who imported it, are marked. Does nothing without the classifiers. If `compares` is false, or
    /// while the model that compares claims is away, all statements stand, and the chat waits to be compared.
    pub(crate) async fn mark_imported(
        &self,
        read_scope: &ReadScope,
        person: &PersonId,
        chat: &ChatId,
        new: &HashSet<MessageId>,
        compares: bool,
    ) -> Result<(), Error> {
        self.judge.classifiers.settled().await;
        let Some(classifiers) = self.judge.classifiers.now() else { return Ok(()) };
        let (of, at) = (read_scope.clone(), chat.clone());
        let rows = self.services.blocking(move |memory| memory.messages().history(&of, &at, LOOKED_AT)).await?;
        let own = |row: &MessageRow| row.author.person() == Some(person) && new.contains(&row.id);
        let rows: Vec<MessageRow> = rows.into_iter().filter(own).collect();
        let rows: Vec<&MessageRow> = rows.iter().collect();
        let found = self.find_salient(&classifiers, &rows).await?;
        let comparison = if compares { Comparison::Now } else { Comparison::Later };
        let mut waits = !compares && !found.is_empty();
        for (row, salience) in found {
            match self.mark_salient(read_scope, person, row, salience, comparison).await {
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "the claims of an import are compared later");
                    waits = true;
                }
                marked => marked?,
            }
        }
        if waits {
            self.set_waiting(chat, true).await?;
            self.look_at_imports(Some(self.services.clock.now()));
        }
        Ok(())
    }

    async fn set_waiting(&self, chat: &ChatId, is_waiting: bool) -> Result<(), Error> {
        let chat = chat.clone();
        self.services.blocking(move |memory| memory.imports().set_waiting(&chat, is_waiting)).await
    }

    /// Sets when to look for imported chats that wait; `None` if none does.
    fn look_at_imports(&self, at: Option<Timestamp>) {
        *self.imports_due.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Compares what waits, if it is time to look for it.
    pub(super) async fn compare_imports(&self, now: Timestamp) {
        let due = *self.imports_due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.is_none_or(|due| due > now) {
            return;
        }
        let again = match self.compare_waiting().await {
            Ok(()) => None,
            Err(error) => {
                tracing::info!(%error, "the claims of an import are compared later");
                Some(after(now, TRY_AGAIN))
            }
        };
        self.look_at_imports(again);
    }

    async fn compare_waiting(&self) -> Result<(), Error> {
        for (chat, persona, person, scope) in self.services.blocking(|memory| memory.imports().waiting()).await? {
            if self.services.stopping.is_cancelled() {
                return Ok(());
            }
            self.compare_chat(&chat, persona, &person, &scope).await?;
            self.set_waiting(&chat, false).await?;
        }
        Ok(())
    }

    /// Compares the statements of an imported chat that stand, the oldest first.
    async fn compare_chat(
        &self,
        chat: &ChatId,
        persona: PersonaId,
        person: &PersonId,
        scope: &Scope,
    ) -> Result<(), Error> {
        let read_scope = ReadScope::in_place(persona, &place(chat, person, scope), &ReadableScopes::default());
        let (of, who) = (read_scope.clone(), person.clone());
        let mut marked = self.services.blocking(move |memory| memory.memories().salient(&of, &who, STATEMENTS)).await?;
        marked.retain(|memory| memory.chat.as_ref() == Some(chat));
        marked.sort_by_key(|memory| (memory.at, memory.id));
        for memory in marked {
            // One before it may have replaced it.
            let (of, id) = (read_scope.clone(), memory.id);
            let read = move |memory: &azera_memory::Memory| {
                let Some(row) = memory.memories().get(&of, id)? else { return Ok(None) };
                let Some(source) = row.sources.first() else { return Ok(None) };
                let stands = row.salience.filter(|salience| salience.superseded.is_none());
                Ok(memory.messages().get(&of, source)?.zip(stands))
            };
            if let Some((row, salience)) = self.services.blocking(read).await? {
                self.mark_salient(&read_scope, person, &row, salience, Comparison::Now).await?;
            }
        }
        Ok(())
    }
}
