//! The questions that somebody asked aloud, until the engine has them. The conversation must know when one gets no answer:
//! nobody waits for it then, and no sound says that an answer is coming.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use azera_adapter::{
    AutocompleteOption, AutocompleteRequest, CommandAnswer, CommandLine, Host, HostError, InboundEvent, Outcome,
    Receipt, SearchRequest, Searched,
};
use azera_types::{PersonId, PlatformId};
use azera_voice_call::Request;
use tokio::sync::mpsc;

use super::aloud::ToSay;

/// Most questions that wait for the engine. An older one is dropped for a newer one.
const MAX_WAITING: usize = 32;

/// What was asked aloud and has not reached the engine yet, in order. Clones share it.
#[derive(Clone, Default)]
pub struct Questions(Arc<Mutex<VecDeque<String>>>);

impl Questions {
    /// Records that a line was said, and not typed.
    pub fn ask(&self, line: &str) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(line.trim().to_owned());
    }

    /// Takes the question that this message is, and the ones before it, which never became a message. Returns how many
    /// were taken; 0 for a typed message.
    fn take(&self, message: &str) -> usize {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = waiting.iter().position(|line| line == message.trim()).map_or(0, |at| at + 1);
        waiting.drain(..found);
        found
    }
}

/// The engine, as the terminal reaches it. It tells the conversation which questions get no answer.
pub struct Asking<H> {
    /// The engine.
    pub engine: H,
    /// What was asked aloud.
    pub questions: Questions,
    /// The conversation.
    pub say: mpsc::UnboundedSender<ToSay>,
}

impl<H> Asking<H> {
    /// Tells the conversation that so many questions of a person get no answer.
    fn unanswered(say: &mpsc::UnboundedSender<ToSay>, person: &PersonId, count: usize) {
        for _ in 0..count {
            // A conversation that is over waits for nothing.
            say.send(ToSay { begins: None, request: Request::Unanswered(Some(person.clone())) }).ok();
        }
    }
}

#[async_trait]
impl<H: Host> Host for Asking<H> {
    async fn submit(&self, platform: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        let (person, asked) = match &event {
            InboundEvent::Message(message) => (message.person.clone(), self.questions.take(message.text.as_str())),
            _ => return self.engine.submit(platform, event).await,
        };
        // Those before this message became none.
        Self::unanswered(&self.say, &person, asked.saturating_sub(1));
        let receipt = match self.engine.submit(platform, event).await {
            Ok(receipt) => receipt,
            Err(error) => {
                Self::unanswered(&self.say, &person, asked.min(1));
                return Err(error);
            }
        };
        let (recorded, say) = (receipt.recorded(), self.say.clone());
        Ok(Receipt::new(recorded, async move {
            let outcome = receipt.outcome().await;
            if !matches!(outcome, Ok(Outcome::Replied(_))) {
                Self::unanswered(&say, &person, asked.min(1));
            }
            outcome
        }))
    }

    async fn command(&self, platform: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        self.engine.command(platform, line).await
    }

    async fn autocomplete(
        &self,
        platform: &PlatformId,
        line: AutocompleteRequest,
    ) -> Result<Vec<AutocompleteOption>, HostError> {
        self.engine.autocomplete(platform, line).await
    }

    async fn search(&self, platform: &PlatformId, line: SearchRequest) -> Result<Searched, HostError> {
        self.engine.search(platform, line).await
    }

    async fn settle(&self) -> Result<(), HostError> {
        self.engine.settle().await
    }
}

#[cfg(test)]
mod tests {
    use azera_adapter::{Recorded, SkipReason};
    use azera_types::{ChatId, Inbound, MessageId, Text, Timestamp};

    use super::*;

    /// Answers nothing; fails where the text says so.
    struct Silent;

    #[async_trait]
    impl Host for Silent {
        async fn submit(&self, _: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
            match event {
                InboundEvent::Message(message) if message.text.as_str() == "Fail." => Err(HostError::Busy),
                InboundEvent::Message(message) if message.text.as_str() == "Break." => {
                    Ok(Receipt::new(Recorded::New, std::future::ready(Err(HostError::Interrupted))))
                }
                _ => {
                    let skipped = Ok(Outcome::Skipped(SkipReason::Muted));
                    Ok(Receipt::new(Recorded::New, std::future::ready(skipped)))
                }
            }
        }

        async fn command(&self, _: &PlatformId, _: CommandLine) -> Result<CommandAnswer, HostError> {
            Ok(CommandAnswer::default())
        }

        async fn autocomplete(
            &self,
            _: &PlatformId,
            _: AutocompleteRequest,
        ) -> Result<Vec<AutocompleteOption>, HostError> {
            Ok(Vec::new())
        }

        async fn search(&self, _: &PlatformId, _: SearchRequest) -> Result<Searched, HostError> {
            Ok(Searched::default())
        }

        async fn settle(&self) -> Result<(), HostError> {
            Ok(())
        }
    }

    fn message(text: &str) -> InboundEvent {
        InboundEvent::Message(Inbound {
            id: MessageId::new("console:1").unwrap(),
            chat: ChatId::new("console:ann:1").unwrap(),
            person: PersonId::new("console:ann").unwrap(),
            name: "Ann".to_owned(),
            text: Text::new(text),
            at: Timestamp::UNIX_EPOCH,
            parts: Vec::new(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        })
    }

    #[tokio::test]
    async fn the_conversation_learns_which_questions_get_no_answer() {
        let (say, mut told) = mpsc::unbounded_channel();
        let questions = Questions::default();
        let host = Asking { engine: Silent, questions: questions.clone(), say };
        let platform = PlatformId::new("console").unwrap();
        let mut unanswered = async |text: &str| {
            if let Ok(receipt) = host.submit(&platform, message(text)).await {
                receipt.outcome().await.ok();
            }
            let mut count = 0;
            while let Ok(ToSay { request, .. }) = told.try_recv() {
                assert!(matches!(request, Request::Unanswered(Some(person)) if person.as_str() == "console:ann"));
                count += 1;
            }
            count
        };
        assert_eq!(unanswered("Hello?").await, 0, "it was typed");
        for text in ["Hello?", "Break.", "Fail."] {
            questions.ask(text);
            assert_eq!(unanswered(text).await, 1, "{text}");
            assert_eq!(unanswered(text).await, 0, "{text} was typed");
        }
        // The terminal took the first one for a command.
        questions.ask("help");
        questions.ask("Hello?");
        assert_eq!(unanswered("Hello?").await, 2);
    }
}
