use std::sync::Arc;

use async_trait::async_trait;

use crate::{ChatMessage, ChatModel, ChatRequest, Error, Event, FinishReason, ModelInfo, Reply, SessionKey, Usage};

/// Returns the reply of a [`ScriptedModel`] to a prompt.
pub type Script = Arc<dyn Fn(&[ChatMessage]) -> String + Send + Sync>;

/// A chat model that says what a script returns, word by word. Tests use it, and simulations in which only memory
/// matters. Its tokens are words. It caches nothing, and LoRAs do not change its replies.
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    script: Script,
}

impl ScriptedModel {
    /// Creates a model with a script.
    pub fn new(script: Script) -> Self {
        let info = ModelInfo {
            name: "scripted".into(),
            family: "scripted".into(),
            parameters: None,
            context_tokens: 8_192,
            thinks: None,
            trusted_in_danger: false,
        };
        Self { info, script }
    }

    /// Returns the model with this many weights, which decide the form of its prompts.
    pub fn with_parameters(mut self, parameters: u64) -> Self {
        self.info.parameters = Some(parameters);
        self
    }

    /// Creates a model that always says `text`.
    pub fn saying(text: &'static str) -> Self {
        Self::new(Arc::new(move |_| text.to_owned()))
    }
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedModel").finish_non_exhaustive()
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn count_tokens(&self, text: &str) -> usize {
        words(text)
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error> {
        let prompt_tokens: usize = request.messages.iter().map(|m| words(&m.content)).sum();
        if prompt_tokens + request.max_tokens > self.info.context_tokens {
            return Err(Error::TooLong {
                prompt: prompt_tokens,
                reply: request.max_tokens,
                context: self.info.context_tokens,
            });
        }
        let text = (self.script)(&request.messages);
        let (events, cancelled, reply) = Reply::channel();
        tokio::spawn(async move {
            let mut completion_tokens = 0;
            let mut finish = FinishReason::Stop;
            for piece in text.split_inclusive(char::is_whitespace) {
                if completion_tokens == request.max_tokens {
                    finish = FinishReason::Length;
                    break;
                }
                if cancelled.is_cancelled() || events.send(Ok(Event::Content(piece.to_owned()))).await.is_err() {
                    return;
                }
                completion_tokens += 1;
            }
            let done = Event::Done(Usage {
                prompt_tokens,
                cached_tokens: 0,
                evaluated_tokens: prompt_tokens,
                completion_tokens,
                ttft_ms: 0.0,
                tokens_per_s: 0.0,
                finish,
                estimated: false,
            });
            // A reader that left does not want the end either.
            events.send(Ok(done)).await.ok();
        });
        Ok(reply)
    }

    async fn forget_session(&self, _session: &SessionKey) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[tokio::test]
    async fn it_says_the_script_and_counts_words() {
        let model = ScriptedModel::new(Arc::new(|messages| format!("heard {}", messages.len())));
        let request = ChatRequest::new(vec![ChatMessage::new(Role::User, "one two three")]);
        let (text, usage) = model.chat(request).await.unwrap().collect().await.unwrap();
        assert_eq!(text, "heard 1");
        assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.finish), (3, 2, FinishReason::Stop));
    }

    #[tokio::test]
    async fn a_request_that_does_not_fit_is_rejected() {
        let mut request = ChatRequest::new(vec![ChatMessage::new(Role::User, "word")]);
        request.max_tokens = 10_000;
        let refused = ScriptedModel::saying("never").chat(request).await;
        assert!(matches!(refused, Err(Error::TooLong { .. })));
    }
}
