//! Prompts: texts that a person picks in a client's menu.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use crate::failure::Failure;
use crate::search::{By, Words};
use crate::session::Caller;

/// The prompt that brings memories about something.
const ABOUT: &str = "what_you_know_about";

/// The prompt that has the client's model keep what was said.
const KEEP: &str = "keep_this_conversation";

/// Memories that a prompt brings.
const MEMORIES: usize = 10;

/// Returns the prompts that the session may use.
pub(crate) fn list(caller: &Caller) -> Vec<Prompt> {
    let mut prompts = Vec::new();
    if caller.session.rights.read {
        let topic = PromptArgument::new("topic").with_description("What it is about").with_required(true);
        let about = Prompt::new(ABOUT, Some("Brings what Azera remembers about something"), Some(vec![topic]));
        prompts.push(about.with_title("What you know about ..."));
    }
    if caller.session.rights.write {
        let keep = Prompt::new(KEEP, Some("Keeps what of this conversation is worth remembering"), None);
        prompts.push(keep.with_title("Keep this conversation"));
    }
    prompts
}

/// Returns the messages of a prompt.
pub(crate) async fn get(caller: &Caller, name: &str, arguments: JsonObject) -> Result<GetPromptResult, Failure> {
    let rights = caller.session.rights;
    let text = match name {
        ABOUT if rights.read => {
            let topic = arguments.get("topic").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
            if topic.is_empty() {
                return Err(Failure::invalid("the prompt needs the argument `topic`"));
            }
            about(caller, topic).await?
        }
        KEEP if rights.write => {
            "Look through this conversation for what I said that is worth remembering: facts about me, \
                                 habits, plans, preferences and decisions. Show me the list. For each that I agree to, call \
                                 `remember` with one statement that is clear on its own."
                .to_owned()
        }
        _ => return Err(Failure::invalid(format!("this session has no prompt {name:?}"))),
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

async fn about(caller: &Caller, topic: String) -> Result<String, Failure> {
    let words = Words { query: topic.clone(), kinds: Vec::new(), limit: Some(MEMORIES), as_of: None, cursor: None };
    let found = caller.search("recall", words, By::Everything).await?;
    let mut text = format!("What do you know about this from my memories: {topic}\n\n{}\n", found.notice);
    for found in &found.memories {
        let memory = &found.memory;
        // A quoted text stays on one line of JSON, so it cannot end the list.
        let quoted = Value::String(memory.text.clone());
        let until = memory.held_until.as_ref().map_or_else(String::new, |until| format!(", true until {until}"));
        let (id, author) = (&memory.id, &memory.author);
        text.push_str(&format!("- {id} ({author}, {}, {}{until}): {quoted}\n", memory.evidence, memory.at));
    }
    if found.memories.is_empty() {
        text.push_str("(nothing was found)\n");
    }
    Ok(text)
}
