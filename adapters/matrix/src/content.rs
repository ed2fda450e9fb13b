//! The contents of the events that the bot sends.

use azera_types::MessageId;
use data_encoding::HEXLOWER;
use matrix_sdk::ruma::{EventId, OwnedEventId, OwnedMxcUri, OwnedTransactionId, OwnedUserId};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::markdown::to_html;

/// Key of the profile of a single message (MSC4144, under its unstable name).
const PROFILE: &str = "com.beeper.per_message_profile";

/// Key that marks a message as automated (MSC3955, under its unstable name).
pub(crate) const AUTOMATED: &str = "org.matrix.msc3955.automated";

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Part of a conversation.
    Text,
    /// A notice, which other bots do not answer.
    Notice,
}

/// The relation of a message to others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relation {
    /// The message that it replies to.
    pub(crate) reply_to: Option<OwnedEventId>,
    /// The root of its thread.
    pub(crate) thread: Option<OwnedEventId>,
}

/// The persona that speaks, if it is not the account itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Speaker {
    /// Identifies the persona.
    pub(crate) id: String,
    /// The displayed name.
    pub(crate) name: String,
    /// The displayed picture.
    pub(crate) picture: Option<OwnedMxcUri>,
}

/// A message to send.
#[derive(Debug, Clone)]
pub(crate) struct Message<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) speaker: Option<&'a Speaker>,
    pub(crate) relation: &'a Relation,
    pub(crate) mentions: &'a [OwnedUserId],
}

impl Message<'_> {
    /// Returns the content of an `m.room.message` event.
    pub(crate) fn content(&self) -> Value {
        let mut content = self.bare();
        if let Some(relation) = self.relation.content() {
            content.insert("m.relates_to".into(), relation);
        }
        Value::Object(content)
    }

    /// Returns the content of an edit of `event`. Edits mention nobody again.
    pub(crate) fn edit_of(&self, event: &EventId) -> Value {
        let new = Self { mentions: &[], ..self.clone() }.bare();
        let mut content = new.clone();
        for key in ["body", "formatted_body"] {
            if let Some(Value::String(text)) = content.get_mut(key) {
                // For clients that do not support edits.
                text.insert_str(0, "* ");
            }
        }
        content.insert("m.new_content".into(), Value::Object(new));
        content.insert("m.relates_to".into(), json!({ "rel_type": "m.replace", "event_id": event }));
        Value::Object(content)
    }

    fn bare(&self) -> Map<String, Value> {
        let msgtype = match self.kind {
            Kind::Text => "m.text",
            Kind::Notice => "m.notice",
        };
        let mut body = self.text.to_owned();
        let mut html = to_html(self.text);
        if let Some(Speaker { name, .. }) = self.speaker {
            let shown = html.take().unwrap_or_else(|| escaped(self.text).replace('\n', "<br />"));
            html = Some(format!("<strong data-mx-profile-fallback>{}: </strong>{shown}", escaped(name)));
            body = format!("{name}: {body}");
        }
        let mut content = Map::new();
        content.insert("msgtype".into(), msgtype.into());
        content.insert("body".into(), body.into());
        if let Some(html) = html {
            content.insert("format".into(), "org.matrix.custom.html".into());
            content.insert("formatted_body".into(), html.into());
        }
        let mentions = if self.mentions.is_empty() { json!({}) } else { json!({ "user_ids": self.mentions }) };
        content.insert("m.mentions".into(), mentions);
        content.insert(AUTOMATED.into(), true.into());
        if let Some(Speaker { id, name, picture }) = self.speaker {
            let mut profile = json!({ "id": id, "displayname": name, "has_fallback": true });
            if let Some(picture) = picture {
                profile["avatar_url"] = json!(picture);
            }
            content.insert(PROFILE.into(), profile);
        }
        content
    }
}

impl Relation {
    /// Returns the content of `m.relates_to`; `None` without a relation.
    pub(crate) fn content(&self) -> Option<Value> {
        let in_reply_to = self.reply_to.as_ref().map(|event| json!({ "event_id": event }));
        match (&self.thread, in_reply_to) {
            (None, None) => None,
            (None, Some(to)) => Some(json!({ "m.in_reply_to": to })),
            (Some(root), to) => Some(json!({
                "rel_type": "m.thread",
                "event_id": root,
                // For clients that do not support threads.
                "is_falling_back": true,
                "m.in_reply_to": to.unwrap_or_else(|| json!({ "event_id": root })),
            })),
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the transaction id of an event. The same event always has the same id, so that the homeserver accepts it
/// only once.
pub(crate) fn transaction(what: &str, about: &MessageId, part: usize) -> OwnedTransactionId {
    let digest = Sha256::digest(format!("{what}\u{1f}{about}\u{1f}{part}"));
    format!("azera-{}", HEXLOWER.encode(&digest[..16])).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_an_edit_of_it() {
        let relation = Relation {
            reply_to: Some(EventId::parse("$asked").unwrap()),
            thread: Some(EventId::parse("$root").unwrap()),
        };
        let picture = Some(OwnedMxcUri::from("mxc://a/picture"));
        let speaker = Speaker { id: "areza".into(), name: "Areza <3".into(), picture };
        let ann = [OwnedUserId::try_from("@ann:a").unwrap()];
        let message = Message {
            kind: Kind::Text,
            text: "a *word*",
            speaker: Some(&speaker),
            relation: &relation,
            mentions: &ann,
        };
        // The order of JSON objects depends on other crates' features.
        let mut sorted = insta::Settings::clone_current();
        sorted.set_sort_maps(true);
        let _sorted = sorted.bind_to_scope();
        insta::assert_json_snapshot!(message.content(), @r#"
        {
          "body": "Areza <3: a *word*",
          "com.beeper.per_message_profile": {
            "avatar_url": "mxc://a/picture",
            "displayname": "Areza <3",
            "has_fallback": true,
            "id": "areza"
          },
          "format": "org.matrix.custom.html",
          "formatted_body": "<strong data-mx-profile-fallback>Areza &lt;3: </strong>a <em>word</em>",
          "m.mentions": {
            "user_ids": [
              "@ann:a"
            ]
          },
          "m.relates_to": {
            "event_id": "$root",
            "is_falling_back": true,
            "m.in_reply_to": {
              "event_id": "$asked"
            },
            "rel_type": "m.thread"
          },
          "msgtype": "m.text",
          "org.matrix.msc3955.automated": true
        }
        "#);
        let plain = Message { speaker: None, text: "better", ..message };
        insta::assert_json_snapshot!(plain.edit_of(&EventId::parse("$first").unwrap()), @r#"
        {
          "body": "* better",
          "m.mentions": {},
          "m.new_content": {
            "body": "better",
            "m.mentions": {},
            "msgtype": "m.text",
            "org.matrix.msc3955.automated": true
          },
          "m.relates_to": {
            "event_id": "$first",
            "rel_type": "m.replace"
          },
          "msgtype": "m.text",
          "org.matrix.msc3955.automated": true
        }
        "#);
    }

    #[test]
    fn the_same_event_has_the_same_transaction_id() {
        let message = MessageId::new("$a").unwrap();
        assert_eq!(transaction("reply", &message, 0), transaction("reply", &message, 0));
        assert_ne!(transaction("reply", &message, 0), transaction("reply", &message, 1));
        assert_ne!(transaction("reply", &message, 0), transaction("notice", &message, 0));
    }
}
