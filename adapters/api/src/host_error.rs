use thiserror::Error;

/// The error that stands behind a [`HostError`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error of a call to the engine. Each variant is a decision for the caller: try again, ask for something else, or
/// give up.
#[derive(Debug, Error)]
pub enum HostError {
    /// Too many messages are waiting. The message was not received; try again later.
    #[error("too many messages are waiting")]
    Busy,
    /// The engine is shutting down. It may not have received the message; submit it again after the next start.
    #[error("Azera is shutting down")]
    Stopping,
    /// The chat is unknown, or the person cannot read it.
    #[error("that person cannot write in that chat")]
    NotAllowed,
    /// The disk is full. Earlier messages are safe; this one may be lost.
    #[error("there is no room left on the disk; what was said before is safe, and I go on when there is room again")]
    Full,
    /// A model, a platform or a store does not work at the moment. The same call may succeed later. A message that was
    /// received is stored, and the engine itself answers it later; to submit it again does no harm.
    #[error(transparent)]
    Unavailable(Cause),
    /// The work ended before it was done. To submit a message again does no harm.
    #[error("the work was interrupted")]
    Interrupted,
    /// The call is refused until a person changes something, such as the persona or the length of a message.
    #[error(transparent)]
    Refused(Cause),
    /// The record or an index failed or is damaged, and waiting does not help.
    #[error(transparent)]
    Storage(Cause),
    /// Any other failure. If the call was about a message, the message is stored.
    #[error(transparent)]
    Internal(Cause),
}

impl HostError {
    /// Returns true if the same call may succeed later without any change.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Busy | Self::Full | Self::Unavailable(_) | Self::Interrupted => true,
            Self::Stopping | Self::NotAllowed | Self::Refused(_) | Self::Storage(_) | Self::Internal(_) => false,
        }
    }

    /// Returns the text for a person who asked for something in a chat. It names the cause only where the person can
    /// change it; all other causes belong in the log.
    pub fn in_words(&self) -> String {
        match self {
            Self::Busy => "Too many messages are waiting. Try again in a minute.".into(),
            Self::Stopping => "I am shutting down. Ask again when I am back.".into(),
            Self::NotAllowed => "You cannot ask that here.".into(),
            Self::Full => {
                "There is no room left on the disk. What was said before is safe. I go on when there is room again."
                    .into()
            }
            Self::Unavailable(_) => "That does not work at the moment. Try again in a few minutes.".into(),
            Self::Interrupted => "That was interrupted. Try again.".into(),
            Self::Refused(cause) => format!("That did not work: {cause}."),
            Self::Storage(_) => {
                "My memory could not be read or written. The operator finds the reason in the log.".into()
            }
            Self::Internal(_) => {
                "That failed because of a fault in me. The operator finds the reason in the log.".into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_a_cause_only_if_they_can_change_it() {
        const CAUSE: &str = "row 7 of /var/lib";
        let named = |error: HostError| error.in_words().contains(CAUSE);
        assert!(named(HostError::Refused(CAUSE.into())));
        for error in
            [HostError::Unavailable(CAUSE.into()), HostError::Storage(CAUSE.into()), HostError::Internal(CAUSE.into())]
        {
            assert_eq!(error.to_string(), CAUSE, "the log names it");
            assert!(!named(error));
        }
    }

    #[test]
    fn only_errors_that_pass_by_themselves_are_temporary() {
        for error in [HostError::Busy, HostError::Full, HostError::Interrupted, HostError::Unavailable("gone".into())] {
            assert!(error.is_temporary(), "{error:?}");
        }
        for error in [HostError::Stopping, HostError::NotAllowed, HostError::Refused("no".into())] {
            assert!(!error.is_temporary(), "{error:?}");
        }
    }
}
