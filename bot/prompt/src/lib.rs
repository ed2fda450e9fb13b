//! Composes the prompt of a turn from typed parts, within a token budget, in the form that suits the model family.
//!
//! The crate is pure: the same parts give the same prompt. It does not fetch history, recall memories or call a model.
//! Start with [`compose`]; [`form_of`] holds the choices for each family and size.
//!
//! Invariants:
//! - Stable parts come first (persona, examples, carried writings, history). Parts that change with every turn come
//!   last (recalled lines, message). This lets the engine's prefix cache find what it evaluated before.
//! - The first [`Prompt::shared_messages`] messages depend only on the persona, what it can do, and the form. They
//!   contain nothing private.
//! - A prompt never exceeds its budget. Parts that do not fit are dropped in this order: the oldest history, the
//!   weakest recalled lines, the middle of the person's message. The persona is never cut.

mod abilities;
mod alternate;
mod beyond;
mod compose;
mod cut;
mod form;
mod fragment;
mod language;
mod only_english;
mod persona_text;
mod recalled;
mod reminders;
mod today;
mod unsaid;

pub use abilities::Abilities;
pub use compose::{Budget, Error, HISTORY_STEP, Line, Prompt, PromptParts, compose, history_cut, prompt_headings};
pub use form::{Form, PersonaForm, Size, Unsaid, Writing, form_for, form_of};
pub use fragment::{Fragment, FragmentKind};
pub use recalled::{MemoryOrigin, RecalledMemory};
