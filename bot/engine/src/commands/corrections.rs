//! Commands by which people correct what is remembered: what holds now in place of something, and what helps.

use azera_adapter::CommandAnswer;
use azera_memory::{NewFact, NotReplaced, ReplyRating};
use azera_types::{Author, MemoryId, Text};

use super::chat::no_reply;
use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

impl Commands {
    /// Keeps a new statement and puts it in the place of an older one of the person.
    pub(super) async fn update_memory(&self, at: &CommandContext<'_>, what: &str) -> Result<CommandAnswer, Error> {
        let (id, text) = what.split_once(char::is_whitespace).unwrap_or((what, ""));
        let (Ok(older), text) = (id.parse::<MemoryId>(), text.trim()) else { return Ok(refused(UPDATE.into())) };
        if text.is_empty() {
            return Ok(refused(UPDATE.into()));
        }
        let (read_scope, person) = (at.read_scope.clone(), at.line.person.clone());
        let fact = NewFact {
            persona: at.chat.persona.clone(),
            chat: at.chat.id.clone(),
            scope: at.place.scope(),
            author: Author::Person { id: person.clone(), name: at.line.name.clone() },
            text: Text::new(text),
            at: self.services.clock.now(),
        };
        let updated =
            self.services.blocking(move |memory| memory.memories().update(&read_scope, &person, older, fact)).await?;
        Ok(match updated {
            Ok(newer) => {
                self.indexer.wake();
                done(format!(
                    "Kept as `{newer}`, in place of `{older}`. `/forget {newer}` forgets it, and `{older}` then holds again."
                ))
            }
            Err(why) => refused(in_words(why)),
        })
    }

    /// Puts a statement of the person in the place of an older one.
    pub(super) async fn replace_memory(&self, at: &CommandContext<'_>, what: &str) -> Result<CommandAnswer, Error> {
        let mut ids = what.split_whitespace().map(str::parse::<MemoryId>);
        let (Some(Ok(older)), Some(Ok(newer)), None) = (ids.next(), ids.next(), ids.next()) else {
            return Ok(refused("`/memory replace m42 m51`: the older one first.".into()));
        };
        self.replace(
            at,
            older,
            Some(newer),
            format!("`{newer}` holds now in place of `{older}`. `/memory current {older}` undoes that."),
        )
        .await
    }

    /// Lets a statement hold again.
    pub(super) async fn unreplace_memory(&self, at: &CommandContext<'_>, id: &str) -> Result<CommandAnswer, Error> {
        let Ok(older) = id.parse::<MemoryId>() else {
            return Ok(refused("`/memory current m42`, with its id.".into()));
        };
        self.replace(at, older, None, format!("`{older}` holds again.")).await
    }

    async fn replace(
        &self,
        at: &CommandContext<'_>,
        older: MemoryId,
        newer: Option<MemoryId>,
        answer: String,
    ) -> Result<CommandAnswer, Error> {
        let (read_scope, person) = (at.read_scope.clone(), at.line.person.clone());
        let replaced =
            self.services.blocking(move |memory| memory.memories().replace(&read_scope, &person, older, newer)).await?;
        Ok(match replaced {
            Ok(()) => done(answer),
            // It is as the person wants it, so the command did not fail.
            Err(why @ (NotReplaced::Holds(_) | NotReplaced::Repeated { .. })) => done(in_words(why)),
            Err(why) => refused(in_words(why)),
        })
    }

    /// Notes whether a memory helps in this place.
    pub(super) async fn rate_memory(&self, at: &CommandContext<'_>, what: &str) -> Result<CommandAnswer, Error> {
        let (id, rating) = what.split_once(char::is_whitespace).unwrap_or((what, ""));
        if id.eq_ignore_ascii_case("reply") {
            return self.rate_reply(at, rating.trim()).await;
        }
        let (is_helpful, answer) = match rating.trim() {
            "helpful" => (Some(true), "helps you here, so I put it forward when I answer you in this place"),
            "unhelpful" => (Some(false), "does not help you here, so I put it back when I answer you in this place"),
            "none" => (None, "counts like any other again when I answer you in this place"),
            _ => return Ok(refused(RATE.into())),
        };
        let Ok(id) = id.parse::<MemoryId>() else { return Ok(refused(RATE.into())) };
        let (read_scope, person, now) = (at.read_scope.clone(), at.line.person.clone(), self.services.clock.now());
        let chat = at.chat.id.clone();
        let rated = self
            .services
            .blocking(move |memory| memory.memories().rate(&read_scope, &chat, id, &person, is_helpful, now))
            .await?;
        Ok(match rated {
            Some(_) => done(format!("`{id}` {answer}.")),
            None => refused(format!("I remember no `{id}` that may be shown here.")),
        })
    }

    /// Notes whether a reply helps: the one that the command points at, or the last one. A thumb below a reply comes here,
    /// too, with the name of the reaction.
    async fn rate_reply(&self, at: &CommandContext<'_>, rating: &str) -> Result<CommandAnswer, Error> {
        let (rating, reaction) = match rating.split_once(" by ") {
            Some((rating, reaction)) => (rating.trim(), Some(reaction.trim().to_owned())),
            None => (rating, None),
        };
        if reaction.as_ref().is_some_and(|reaction| reaction.len() > MAX_REACTION_BYTES) {
            return Ok(refused(RATE.into()));
        }
        let (is_helpful, only) = match rating {
            "helpful" => (Some(true), None),
            "unhelpful" => (Some(false), None),
            "none" => (None, None),
            "none helpful" => (None, Some(true)),
            "none unhelpful" => (None, Some(false)),
            _ => return Ok(refused(RATE.into())),
        };
        let pointed_at = match &at.line.about {
            Some(id) => self.pointed_at(at, id).await?.filter(|row| row.answers.is_some()),
            None => None,
        };
        let reply = match pointed_at {
            // It need not be the reply on the current branch.
            Some(reply) => Some(reply),
            None => self.exchange(at).await?.map(|(_, reply)| reply),
        };
        let Some(reply) = reply else { return Ok(no_reply(at)) };
        let (read_scope, person, now) = (at.read_scope.clone(), at.line.person.clone(), self.services.clock.now());
        let chat = at.chat.id.clone();
        let rated = self
            .services
            .blocking(move |memory| match is_helpful {
                Some(is_helpful) => {
                    let (reply, chat, person, reaction) = (&reply.id, &chat, &person, reaction.as_deref());
                    let rating = ReplyRating { reply, chat, person, is_helpful, reaction, at: now };
                    memory.memories().rate_reply(&read_scope, rating)
                }
                None => memory.memories().unrate_reply(&read_scope, &reply.id, &person, only),
            })
            .await?;
        let what = match is_helpful {
            Some(true) => "help you here, so I put them forward when I answer you in this place",
            Some(false) => "do not help you here, so I put them back when I answer you in this place",
            None => "count like any others again when I answer you in this place",
        };
        Ok(match rated {
            Some(1..) => done(format!("The memories behind that reply {what}.")),
            Some(0) => refused("There is no memory behind that reply that you could rate.".into()),
            None => no_reply(at),
        })
    }
}

/// Longest name of a reaction.
const MAX_REACTION_BYTES: usize = 512;

const UPDATE: &str = "`/memory update m42 TEXT`: the id of what you said, and what holds now.";

const RATE: &str = "`/memory rate m42 helpful`, `unhelpful`, or `none` to take it back; `/memory rate reply helpful` for all memories \
                    behind the last reply.";

fn in_words(why: NotReplaced) -> String {
    match why {
        NotReplaced::Unknown(id) => format!("I remember no `{id}` that may be shown here."),
        NotReplaced::NotOwn(id) => format!("`{id}` is no statement of yours; you can replace your own words only."),
        NotReplaced::Circle => "The newer one rests on the older one, so it cannot replace it.".into(),
        NotReplaced::Older => "The newer one must be the later one: name the older one first.".into(),
        NotReplaced::Holds(id) => format!("`{id}` holds already: nothing that may be shown here replaced it."),
        NotReplaced::Repeated { older, by: Some(by) } => {
            format!("`{older}` holds already; it is listed as `{by}`, which says the same.")
        }
        NotReplaced::Repeated { older, by: None } => {
            format!("`{older}` holds already; it is listed as another statement, which says the same.")
        }
        NotReplaced::Already { older, by: Some(by) } => {
            format!(
                "`{by}` replaced `{older}` already. Use `/memory update {by} TEXT`, or let `{older}` hold again with `/memory current {older}`."
            )
        }
        NotReplaced::Already { older, by: None } => {
            format!(
                "A newer message of yours replaced `{older}` already. `/memory current {older}` lets it hold again."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_answered_with_the_statement_that_is_listed_if_it_may_be_named() {
        let answer = |by| in_words(NotReplaced::Repeated { older: MemoryId(42), by });
        let named = format!("`{}`, which says the same", MemoryId(51));
        assert!(answer(Some(MemoryId(51))).ends_with(&format!("is listed as {named}.")));
        assert!(answer(None).ends_with("is listed as another statement, which says the same."));
    }
}
