//! Parses events of rooms.

use azera_types::{Recording, Text, Timestamp};
use matrix_sdk::deserialized_responses::{TimelineEvent, TimelineEventKind};
use matrix_sdk::ruma::events::room::member::MembershipState;
use matrix_sdk::ruma::events::room::message::{
    AudioMessageEventContent, MessageType, OriginalSyncRoomMessageEvent, Relation,
    sanitize::remove_plain_reply_fallback,
};
use matrix_sdk::ruma::events::{
    AnySyncMessageLikeEvent, AnySyncStateEvent, AnySyncTimelineEvent, SyncMessageLikeEvent,
};
use matrix_sdk::ruma::{OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};

use crate::content::AUTOMATED;
use crate::media::Attached;

/// Most mentioned accounts of a message; others are ignored.
const MAX_MENTIONS: usize = 50;

/// Prefix of the links of mention pills.
const PILL: &str = "https://matrix.to/#/";

/// A message of a person.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) room: OwnedRoomId,
    pub(crate) event: OwnedEventId,
    pub(crate) by: OwnedUserId,
    pub(crate) text: Text,
    pub(crate) at: Timestamp,
    /// The root of its thread.
    pub(crate) thread: Option<OwnedEventId>,
    /// The message that it replies to.
    pub(crate) reply_to: Option<OwnedEventId>,
    /// The mentioned accounts.
    pub(crate) mentions: Vec<OwnedUserId>,
    /// The attached file.
    pub(crate) file: Option<Attached>,
}

impl Said {
    /// Returns the person's own words: the text, or the caption of a file.
    pub(crate) fn spoken(&self) -> &str {
        match &self.file {
            Some(file) => file.caption.as_deref().unwrap_or_default(),
            None => &self.text,
        }
    }

    /// Returns a pressed button as if the person had sent a message there.
    pub(crate) fn pressed(room: &RoomId, event: OwnedEventId, by: OwnedUserId, thread: Option<OwnedEventId>) -> Self {
        let (room, text, mentions) = (room.to_owned(), Text::default(), Vec::new());
        Self { room, event, by, text, at: Timestamp::UNIX_EPOCH, thread, reply_to: None, mentions, file: None }
    }
}

/// An event in a room that matters to the bot.
#[derive(Debug, Clone)]
pub(crate) enum RoomEvent {
    /// A message.
    Said(Box<Said>),
    /// An edit of another event.
    Changed {
        /// The edited event.
        target: OwnedEventId,
        /// The new message.
        now: Box<Said>,
    },
    /// A redacted event.
    Redacted(OwnedEventId),
    /// A reaction to a message.
    Reacted {
        /// The message.
        target: OwnedEventId,
        /// The reaction.
        key: String,
        /// The person.
        by: OwnedUserId,
    },
    /// A person joined the room.
    Came {
        /// The person.
        user: OwnedUserId,
        /// The time in milliseconds since 1970.
        at: i64,
    },
    /// The room was upgraded to this one.
    Upgraded(OwnedRoomId),
    /// The decryption keys are missing.
    Undecryptable,
}

/// Parses an event; `None` if it does not matter to the bot. The bot's own events are not filtered here.
pub(crate) fn heard(event: &TimelineEvent, room: &RoomId) -> Option<RoomEvent> {
    if let TimelineEventKind::UnableToDecrypt { .. } = &event.kind {
        return Some(RoomEvent::Undecryptable);
    }
    match event.raw().deserialize().ok()? {
        AnySyncTimelineEvent::MessageLike(AnySyncMessageLikeEvent::RoomMessage(SyncMessageLikeEvent::Original(
            message,
        ))) => {
            if is_automated(event) {
                None
            } else {
                said(message, room)
            }
        }
        AnySyncTimelineEvent::MessageLike(AnySyncMessageLikeEvent::RoomEncrypted(SyncMessageLikeEvent::Original(
            _,
        ))) => Some(RoomEvent::Undecryptable),
        AnySyncTimelineEvent::MessageLike(AnySyncMessageLikeEvent::Reaction(SyncMessageLikeEvent::Original(
            reaction,
        ))) => {
            let relation = reaction.content.relates_to;
            Some(RoomEvent::Reacted { target: relation.event_id, key: relation.key, by: reaction.sender })
        }
        AnySyncTimelineEvent::MessageLike(AnySyncMessageLikeEvent::RoomRedaction(_)) => {
            // Rooms before version 11 name the redacted event outside the content.
            let outside = event.raw().get_field::<OwnedEventId>("redacts").ok().flatten();
            let within = || {
                let content = event.raw().get_field::<serde_json::Value>("content").ok().flatten()?;
                OwnedEventId::try_from(content.get("redacts")?.as_str()?).ok()
            };
            outside.or_else(within).map(RoomEvent::Redacted)
        }
        AnySyncTimelineEvent::State(AnySyncStateEvent::RoomMember(member)) => {
            let member = member.as_original()?;
            let was = member.prev_content().map(|before| &before.membership);
            let came = member.content.membership == MembershipState::Join && was != Some(&MembershipState::Join);
            let at = i64::from(member.origin_server_ts.get());
            came.then(|| RoomEvent::Came { user: member.state_key.clone(), at })
        }
        AnySyncTimelineEvent::State(AnySyncStateEvent::RoomTombstone(tombstone)) => {
            Some(RoomEvent::Upgraded(tombstone.as_original()?.content.replacement_room.clone()))
        }
        _ => None,
    }
}

/// Returns the time of an event in milliseconds since 1970.
pub(crate) fn said_at(event: &TimelineEvent) -> i64 {
    event.raw().get_field("origin_server_ts").ok().flatten().unwrap_or(i64::MAX)
}

/// Returns true if the event is the bot's own joining or invitation. No earlier message was for the bot.
pub(crate) fn is_beginning(event: &TimelineEvent, own: &UserId) -> bool {
    let Ok(AnySyncTimelineEvent::State(AnySyncStateEvent::RoomMember(member))) = event.raw().deserialize() else {
        return false;
    };
    let Some(member) = member.as_original().filter(|member| member.state_key == own) else { return false };
    let was = member.prev_content().map(|before| before.membership.clone());
    match member.content.membership {
        MembershipState::Invite => true,
        // After an invitation, the messages since the invitation count.
        MembershipState::Join => !matches!(was, Some(MembershipState::Join | MembershipState::Invite)),
        _ => false,
    }
}

/// Returns true if a message is marked as automated.
fn is_automated(event: &TimelineEvent) -> bool {
    let content = event.raw().get_field::<serde_json::Value>("content").ok().flatten();
    content.is_some_and(|content| content.get(AUTOMATED).is_some_and(|automated| *automated != false))
}

/// Returns the root of a message's thread.
pub(crate) fn thread_of(event: &TimelineEvent) -> Option<OwnedEventId> {
    let content = event.raw().get_field::<serde_json::Value>("content").ok().flatten()?;
    let relation =
        content.get("m.relates_to").filter(|relation| relation.get("rel_type").is_some_and(|it| it == "m.thread"))?;
    OwnedEventId::try_from(relation.get("event_id")?.as_str()?).ok()
}

fn said(message: OriginalSyncRoomMessageEvent, room: &RoomId) -> Option<RoomEvent> {
    let at = Timestamp::from_millisecond(message.origin_server_ts.get().into()).ok()?;
    let mut said = Said {
        room: room.to_owned(),
        event: message.event_id,
        by: message.sender,
        text: Text::default(),
        at,
        thread: None,
        reply_to: None,
        mentions: Vec::new(),
        file: None,
    };
    let (mut msgtype, mut mentions) = (message.content.msgtype, message.content.mentions);
    let mut target = None;
    match message.content.relates_to {
        Some(Relation::Reply(reply)) => said.reply_to = Some(reply.in_reply_to.event_id),
        Some(Relation::Thread(thread)) => {
            said.reply_to = thread.in_reply_to.filter(|_| !thread.is_falling_back).map(|to| to.event_id);
            said.thread = Some(thread.event_id);
        }
        Some(Relation::Replacement(replacement)) => {
            (msgtype, mentions) = (replacement.new_content.msgtype, replacement.new_content.mentions);
            target = Some(replacement.event_id);
        }
        _ => {}
    }
    let (text, html) = words(&msgtype)?;
    said.file = attached(&msgtype);
    let text = if said.reply_to.is_some() { remove_plain_reply_fallback(&text) } else { &text };
    said.text = Text::new(text.trim());
    said.mentions = match mentions {
        Some(mentions) => mentions.user_ids.into_iter().take(MAX_MENTIONS).collect(),
        // Older clients mention people through links.
        None => html.map(|html| pills(&html)).unwrap_or_default(),
    };
    Some(match target {
        Some(target) => RoomEvent::Changed { target, now: Box::new(said) },
        None => RoomEvent::Said(Box::new(said)),
    })
}

/// Returns the text of a message and its HTML; files get a description. `None` for notices, which only bots send.
fn words(msgtype: &MessageType) -> Option<(String, Option<String>)> {
    let html = |formatted: &Option<matrix_sdk::ruma::events::room::message::FormattedBody>| {
        formatted.as_ref().map(|formatted| formatted.body.clone())
    };
    let file = |what: &str, it: &Attached| {
        let size = it.bytes.map_or_else(String::new, |bytes| format!(", {} kB", bytes.div_ceil(1_000)));
        let caption = it.caption.as_ref().map_or_else(String::new, |caption| format!("\n{caption}"));
        format!("[{what}: {}{size}]{caption}", it.name)
    };
    Some(match msgtype {
        MessageType::Text(text) => (text.body.clone(), html(&text.formatted)),
        MessageType::Emote(emote) => (format!("*{}*", emote.body), html(&emote.formatted)),
        MessageType::Image(_) => (file("image", &attached(msgtype)?), None),
        // The words of a voice message become its text.
        MessageType::Audio(it) if it.voice.is_some() => (it.caption().unwrap_or_default().to_owned(), None),
        MessageType::Audio(_) => (file("audio", &attached(msgtype)?), None),
        MessageType::Video(_) => (file("video", &attached(msgtype)?), None),
        MessageType::File(_) => (file("file", &attached(msgtype)?), None),
        MessageType::Location(it) => (format!("[location: {}]", it.body), None),
        _ => return None,
    })
}

/// Returns the file of a message.
fn attached(msgtype: &MessageType) -> Option<Attached> {
    let ((source, name, caption), info) = match msgtype {
        MessageType::Image(it) => {
            ((&it.source, it.filename(), it.caption()), it.info.as_ref().map(|it| (it.size, it.mimetype.clone())))
        }
        MessageType::Audio(it) => {
            ((&it.source, it.filename(), it.caption()), it.info.as_ref().map(|it| (it.size, it.mimetype.clone())))
        }
        MessageType::Video(it) => {
            ((&it.source, it.filename(), it.caption()), it.info.as_ref().map(|it| (it.size, it.mimetype.clone())))
        }
        MessageType::File(it) => {
            ((&it.source, it.filename(), it.caption()), it.info.as_ref().map(|it| (it.size, it.mimetype.clone())))
        }
        _ => return None,
    };
    let (bytes, mime) = info.unwrap_or_default();
    let (name, caption, bytes) = (name.to_owned(), caption.map(str::to_owned), bytes.map(u64::from));
    let recording = match msgtype {
        MessageType::Audio(it) => Some(recording(it)),
        _ => None,
    };
    Some(Attached { source: source.clone(), name, mime, bytes, caption, recording })
}

/// Returns what the sender says of a recording.
fn recording(audio: &AudioMessageEventContent) -> Recording {
    let duration = audio.audio.as_ref().map(|details| details.duration);
    let duration = duration.or_else(|| audio.info.as_ref().and_then(|info| info.duration));
    let duration_ms = duration.and_then(|duration| u64::try_from(duration.as_millis()).ok());
    Recording { is_voice_message: audio.voice.is_some(), duration_ms, is_heard: false }
}

/// Returns the accounts in the links of a message.
fn pills(html: &str) -> Vec<OwnedUserId> {
    let mut users = Vec::new();
    for link in html.split(PILL).skip(1) {
        let id: String = link.chars().take_while(|c| !"\"'<>?/".contains(*c)).collect();
        let id = id.replace("%40", "@").replace("%3A", ":").replace("%3a", ":");
        match OwnedUserId::try_from(id) {
            Ok(user) if !users.contains(&user) && users.len() < MAX_MENTIONS => users.push(user),
            _ => {}
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use matrix_sdk::ruma::room_id;
    use matrix_sdk::ruma::serde::Raw;
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, content: Value, more: Value) -> TimelineEvent {
        let mut event = json!({
            "type": kind, "event_id": "$e", "sender": "@ann:a", "origin_server_ts": 1_000, "content": content,
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        TimelineEvent::from_plaintext(Raw::new(&event).unwrap().cast_unchecked())
    }

    fn message(content: Value) -> Option<RoomEvent> {
        heard(&event("m.room.message", content, json!({})), room_id!("!r:a"))
    }

    fn plain(content: Value) -> Said {
        match message(content) {
            Some(RoomEvent::Said(said)) => *said,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_are_parsed() {
        let said = plain(json!({ "msgtype": "m.text", "body": "hello" }));
        assert_eq!((&*said.text, said.by.as_str(), said.at.as_millisecond()), ("hello", "@ann:a", 1_000));
        let reply = json!({
            "msgtype": "m.text", "body": "> <@bob:a> what?\n\nthat", "m.mentions": { "user_ids": ["@bob:a"] },
            "m.relates_to": { "m.in_reply_to": { "event_id": "$bob" } },
        });
        let reply = plain(reply);
        assert_eq!((&*reply.text, reply.reply_to.unwrap().as_str(), reply.mentions.len()), ("that", "$bob", 1));
        let thread = json!({
            "msgtype": "m.text", "body": "in it",
            "m.relates_to": {
                "rel_type": "m.thread", "event_id": "$root", "is_falling_back": true,
                "m.in_reply_to": { "event_id": "$last" },
            },
        });
        let thread = plain(thread);
        assert_eq!((thread.thread.unwrap().as_str(), thread.reply_to), ("$root", None));
        let pill = plain(json!({
            "msgtype": "m.text", "body": "Azera: hi", "format": "org.matrix.custom.html",
            "formatted_body": "<a href=\"https://matrix.to/#/%40azera%3Aa\">Azera</a>: hi",
        }));
        assert_eq!(pill.mentions, ["@azera:a"]);
        let image = plain(json!({
            "msgtype": "m.image", "body": "look", "filename": "cat.png", "url": "mxc://a/b", "info": { "size": 12_345 },
        }));
        assert_eq!(&*image.text, "[image: cat.png, 13 kB]\nlook");
        assert_eq!((image.spoken(), &*image.file.as_ref().unwrap().name), ("look", "cat.png"));
        let voice = plain(json!({
            "msgtype": "m.audio", "body": "Voice message", "url": "mxc://a/b", "info": { "duration": 2_500 },
            "org.matrix.msc3245.voice": {},
        }));
        let recording = voice.file.as_ref().unwrap().recording.unwrap();
        assert_eq!((&*voice.text, recording.is_voice_message, recording.duration_ms), ("", true, Some(2_500)));
        let song = plain(json!({ "msgtype": "m.audio", "body": "song.mp3", "url": "mxc://a/b" }));
        assert_eq!((&*song.text, song.file.unwrap().recording.unwrap().is_voice_message), ("[audio: song.mp3]", false));
        assert!(message(json!({ "msgtype": "m.notice", "body": "beep" })).is_none());
        assert!(message(json!({ "msgtype": "m.text", "body": "beep", AUTOMATED: true })).is_none());
    }

    #[test]
    fn edits_and_redactions_are_parsed() {
        let edit = message(json!({
            "msgtype": "m.text", "body": "* better", "m.new_content": { "msgtype": "m.text", "body": "better" },
            "m.relates_to": { "rel_type": "m.replace", "event_id": "$first" },
        }));
        let Some(RoomEvent::Changed { target, now }) = edit else { panic!("{edit:?}") };
        assert_eq!((target.as_str(), &*now.text), ("$first", "better"));
        for (content, more) in [(json!({ "redacts": "$x" }), json!({})), (json!({}), json!({ "redacts": "$x" }))] {
            let redaction = heard(&event("m.room.redaction", content, more), room_id!("!r:a"));
            assert!(matches!(redaction, Some(RoomEvent::Redacted(gone)) if gone == "$x"));
        }
    }

    #[test]
    fn joins_are_parsed() {
        let own = OwnedUserId::try_from("@azera:a").unwrap();
        #[track_caller]
        fn check(was: Option<&str>, is: &str, own: &UserId, came: bool, begins: bool) {
            let before = was.map_or_else(|| json!({}), |was| json!({ "prev_content": { "membership": was } }));
            let more = json!({ "state_key": own, "unsigned": before });
            let event = event("m.room.member", json!({ "membership": is }), more);
            assert_eq!(matches!(heard(&event, room_id!("!r:a")), Some(RoomEvent::Came { .. })), came, "{was:?} {is}");
            assert_eq!(is_beginning(&event, own), begins, "{was:?} {is}");
        }
        check(None, "join", &own, true, true);
        check(None, "invite", &own, false, true);
        check(Some("invite"), "join", &own, true, false);
        check(Some("join"), "join", &own, false, false);
        check(Some("join"), "leave", &own, false, false);
    }
}
