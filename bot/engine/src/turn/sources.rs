//! What a reply was built on: from which places, how far back, and from which messages and facts.

use std::collections::BTreeMap;

use azera_memory::{Hit, MessageRow, SourceScope};
use azera_types::{MemoryId, MessageId, Scope, Timestamp};

use super::overlap::quotes;

/// The scopes of the prompt's contents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplySources {
    /// When the oldest of what came from the reply's own place was said.
    pub(crate) from: Timestamp,
    /// The other places.
    pub(crate) source_scopes: Vec<SourceScope>,
}

/// Returns the scopes that a reply is built on. `realm` is set if a realm owns the persona. Sources of sources count.
pub(crate) fn origins<'a>(
    question: &'a MessageRow,
    hits: &[&'a Hit],
    history: impl IntoIterator<Item = &'a MessageRow>,
    realm: Option<&'a Scope>,
    now: Timestamp,
) -> ReplySources {
    let mut oldest: BTreeMap<&Scope, Timestamp> = BTreeMap::new();
    let mut used = |scope, source_scopes, at| {
        for (scope, at) in std::iter::once((scope, at)).chain(each(source_scopes)) {
            oldest.entry(scope).and_modify(|from| *from = at.min(*from)).or_insert(at);
        }
    };
    used(&question.scope, &question.source_scopes, question.at);
    // A realm's persona is there for its realm alone, as it is now.
    realm.into_iter().for_each(|realm| used(realm, &[], now));
    history.into_iter().for_each(|row| used(&row.scope, &row.source_scopes, row.at));
    hits.iter().for_each(|hit| used(&hit.memory.scope, &hit.memory.source_scopes, hit.memory.at));
    let from = oldest.remove(&question.scope).unwrap_or(question.at);
    let source_scopes = oldest.into_iter().map(|(scope, from)| SourceScope { scope: scope.clone(), from }).collect();
    ReplySources { from, source_scopes }
}

/// Returns the messages that a reply is built on: the one it answers, the one with pictures that this replies to, the
/// sources of the memories in its prompt, and the messages of the conversation that it quotes.
pub(crate) fn messages(
    reply: &str,
    (question, replied): (&MessageRow, Option<&MessageRow>),
    hits: &[&Hit],
    history: &[MessageRow],
) -> Vec<MessageId> {
    let remembered = hits.iter().flat_map(|hit| hit.memory.sources.iter());
    let quoted = history.iter().filter(|row| quotes(reply, &row.text)).map(|row| &row.id);
    let asked = std::iter::once(&question.id).chain(replied.map(|replied| &replied.id));
    let mut messages: Vec<MessageId> = asked.chain(remembered).chain(quoted).cloned().collect();
    messages.sort();
    messages.dedup();
    messages
}

/// Returns the memories that are forgotten on their own: written ones, and those without a source message.
pub(crate) fn facts(hits: &[&Hit]) -> Vec<MemoryId> {
    let apart = hits.iter().map(|hit| &hit.memory).filter(|row| row.sources.is_empty() || row.kind.is_written());
    apart.map(|memory| memory.id).collect()
}

/// Returns the memories that a reply rests on: all recalled ones, and the carried ones that it quotes.
pub(crate) fn rests_on<'a>(reply: &str, recalled: &[&'a Hit], carried: &[&'a Hit]) -> Vec<&'a Hit> {
    let quoted = carried.iter().filter(|hit| quotes(reply, &hit.memory.text));
    recalled.iter().chain(quoted).copied().collect()
}

fn each(source_scopes: &[SourceScope]) -> impl Iterator<Item = (&Scope, Timestamp)> {
    source_scopes.iter().map(|source_scope| (&source_scope.scope, source_scope.from))
}

#[cfg(test)]
mod tests {
    use azera_types::{ChatId, RealmId};

    use super::*;

    fn said(id: &str, scope: Scope, second: i64, text: &str) -> MessageRow {
        crate::test_rows::said(id, scope, Timestamp::from_second(second).unwrap(), text)
    }

    #[test]
    fn each_place_is_needed_as_far_back_as_anything_reaches() {
        let here = Scope::Chat(ChatId::new("here").unwrap());
        let realm = |id: &str| Scope::Realm(RealmId::new(id).unwrap());
        let source_scope =
            |scope: &Scope, second| SourceScope { scope: scope.clone(), from: Timestamp::from_second(second).unwrap() };
        let question = said("m3", here.clone(), 90, "and the code?");
        let mut first = said("m1", here.clone(), 50, "it is 4711");
        first.source_scopes = vec![source_scope(&realm("guild"), 20), source_scope(&here, 40)];
        let mut second = said("m2", here.clone(), 70, "nothing to speak of");
        second.source_scopes = vec![source_scope(&realm("guild"), 30), source_scope(&realm("club"), 60)];
        let owner = realm("troupe");
        let history = [first, second];
        let ReplySources { from, source_scopes } = origins(&question, &[], &history, Some(&owner), question.at);
        assert_eq!(from, Timestamp::from_second(40).unwrap());
        assert_eq!(
            source_scopes,
            [source_scope(&realm("club"), 60), source_scope(&realm("guild"), 20), source_scope(&owner, 90)]
        );
        let messages = messages("4711, I think", (&question, None), &[], &history);
        let messages: Vec<&str> = messages.iter().map(MessageId::as_str).collect();
        assert_eq!(messages, ["m1", "m3"], "the one it answers and the one it quotes");
    }
}
