//! A message of a person and a reply to it, for tests that change what matters to them.

use azera_types::{ChatId, Inbound, MessageId, PersonId, PersonaId, PlatformId, Text, Timestamp};

use crate::{NewReply, WhyRow};

/// Returns a message of a person that is to be answered.
pub fn inbound(id: &MessageId, chat: &ChatId, person: &PersonId, text: &str, at: Timestamp) -> Inbound {
    Inbound {
        id: id.clone(),
        chat: chat.clone(),
        person: person.clone(),
        name: person.as_str().to_owned(),
        text: Text::new(text),
        at,
        parts: Vec::new(),
        mentions_bot: true,
        mentions: Vec::new(),
        reply_to: None,
    }
}

/// Returns a reply of the persona `azera` to a message, which rests on nothing.
///
/// # Panics
///
/// Panics if the ids of these tests are none.
pub fn reply(id: &MessageId, to: &MessageId, asker: &PersonId, text: &str, at: Timestamp) -> NewReply {
    NewReply {
        id: id.clone(),
        to: to.clone(),
        platform: PlatformId::new("test").expect("a platform"),
        asker: asker.clone(),
        persona: PersonaId::new("azera").expect("a persona"),
        persona_name: "Azera".into(),
        text: Text::new(text),
        at,
        from: Timestamp::UNIX_EPOCH,
        source_scopes: Vec::new(),
        built_on: Vec::new(),
        built_on_facts: Vec::new(),
        memorable: false,
        state: serde_json::Value::Null,
        help: String::new(),
        why: WhyRow {
            reply: id.clone(),
            recalled: Vec::new(),
            missing: Vec::new(),
            fragments: Vec::new(),
            model: "none".into(),
            seed: 0,
            usage: serde_json::Value::Null,
            recall_ms: 0.0,
            shown: None,
        },
        replaces: None,
    }
}
