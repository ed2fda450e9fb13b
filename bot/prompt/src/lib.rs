//! Composing the prompt: typed fragments, a token budget, a form for each model family. Pure: the same parts give the
//! same prompt.
//!
//! Invariants:
//! - What is stable stands first (persona, examples, what it carries with it, history), what changes with every turn last (recalled lines, the
//!   message), so that the engine's prefix cache finds what it evaluated before.
//! - The first [`Prompt::shared_messages`] messages depend on the persona and the form alone; nothing private stands there.
//! - A prompt never exceeds its budget. What does not fit goes in this order: history from its oldest end, recalled
//!   lines from the weakest, the person's message from its middle. The persona is never cut.

mod compose;
mod form;
mod fragment;
mod persona_text;

pub use compose::{
    Budget, Error, HISTORY_STEP, Line, MemoryOrigin, Prompt, PromptParts, RecalledMemory, compose, history_cut,
};
pub use form::{Form, PersonaForm, Writing, form_for};
pub use fragment::{Fragment, FragmentKind};
