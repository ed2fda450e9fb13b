//! Commands that take long run beside their room, so that it goes on meanwhile.

use std::sync::Arc;

use azera_adapter::Host;
use azera_types::MessageId;

use crate::Matrix;
use crate::events::Said;

/// Returns true if a command may take minutes: `/voice say` makes the sound of a whole text.
pub(crate) fn is_slow(line: &str) -> bool {
    let mut words = line.trim_start_matches('/').split_whitespace();
    words.next().is_some_and(|name| name.eq_ignore_ascii_case("voice")) && words.next() == Some("say")
}

impl Matrix {
    /// Runs a command of a person and answers it. Does not wait for that.
    pub(crate) fn run_beside(self: Arc<Self>, host: Arc<dyn Host>, said: Said, line: String, about: Option<MessageId>) {
        tokio::spawn(async move {
            if let Err(error) = self.run_command(host.as_ref(), &said, line, about).await {
                tracing::warn!(room = %said.room, %error, "cannot answer a command");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_spoken_does_not_hold_its_room() {
        assert!(is_slow("/voice say Good day.") && is_slow("/Voice  say"));
        assert!(!is_slow("/voice samples") && !is_slow("/say Good day.") && !is_slow("/voice"));
    }
}
