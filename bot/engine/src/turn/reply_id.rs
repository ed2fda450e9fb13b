//! Ids of replies.

use azera_adapter::{CUT_MARK, REPLY_MARK};
use azera_types::{MAX_ID_BYTES, MessageId};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Bytes of the digest that replaces a long id; long enough to prevent collisions.
const DIGEST_BYTES: usize = 16;

/// Replies have ids that follow from the message they answer, so that a turn taken up again after a crash makes the
/// same one. A message's id that leaves no room is cut, and a digest of the whole of it keeps it apart from others that
/// begin alike.
pub(crate) fn reply_id(to: &MessageId, number: usize) -> MessageId {
    let suffix = format!("{REPLY_MARK}{number}");
    let whole = to.as_str();
    let id = if whole.len() + suffix.len() <= MAX_ID_BYTES {
        format!("{whole}{suffix}")
    } else {
        let digest = HEXLOWER.encode(&Sha256::digest(whole)[..DIGEST_BYTES]);
        let room = MAX_ID_BYTES - suffix.len() - digest.len() - CUT_MARK.len();
        let beginning = whole.get(..whole.floor_char_boundary(room)).unwrap_or_default();
        format!("{beginning}{CUT_MARK}{digest}{suffix}")
    };
    // The beginning of a valid id with a plain ending within the limit is a valid id.
    MessageId::new(id).unwrap_or_else(|_| to.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MessageId {
        MessageId::new(text).unwrap()
    }

    #[test]
    fn a_short_id_is_kept_whole() {
        assert_eq!(reply_id(&id("m1"), 0).as_str(), "m1~r0");
        assert_eq!(reply_id(&id(&"x".repeat(252)), 0).as_str(), format!("{}~r0", "x".repeat(252)));
    }

    #[test]
    fn platforms_know_what_a_reply_answers() {
        let check = |to: &str, want: Option<&str>| {
            let answered = azera_adapter::answered(&reply_id(&id(to), 12));
            assert_eq!(answered.as_ref().map(MessageId::as_str), want, "{to}");
        };
        check("$event-of_a_room", Some("$event-of_a_room"));
        check("m2~r0", Some("m2~r0"));
        check(&"x".repeat(255), None);
        assert_eq!(azera_adapter::answered(&id("m1")), None);
        assert_eq!(azera_adapter::answered(&id("m1~rx")), None);
    }

    #[test]
    fn long_ids_that_begin_alike_have_replies_of_their_own() {
        let long = |end: &str| id(&format!("{}{end}", "é".repeat(126)));
        let ids = [reply_id(&long("a"), 0), reply_id(&long("b"), 0), reply_id(&long("a"), 1), reply_id(&long("ab"), 0)];
        for (index, one) in ids.iter().enumerate() {
            assert!(one.as_str().len() <= MAX_ID_BYTES && one.as_str().starts_with("éé"), "{one}");
            assert!(ids.iter().skip(index + 1).all(|other| other != one), "{one}");
        }
        assert_eq!(reply_id(&long("a"), 0), reply_id(&long("a"), 0), "the same message gives the same id");
    }
}
