use std::sync::LazyLock;

use azera_model_api::{ChatMessage, Role};
use azera_personas::{Persona, fill_placeholders};
use azera_types::{TimeZone, Timestamp};
use thiserror::Error;

use crate::abilities::Abilities;
use crate::alternate::alternate;
use crate::beyond::beginning;
use crate::cut::cut_middle;
use crate::form::{Form, PersonaForm};
use crate::fragment::{Fragment, FragmentKind};
use crate::language::foreign_language;
use crate::only_english::only_english;
use crate::persona_text;
use crate::recalled::{RecalledMemory, recalled_line};
use crate::reminders::reminder;
use crate::today::{asks_for_today, today};
use crate::unsaid::{is_material, unsaid};

/// The start of the history moves in steps of this many messages, so that most turns find their previous prefix in the
/// cache.
pub const HISTORY_STEP: u64 = 16;

/// Tokens that a message costs besides its text, for the template's marks around it.
const MESSAGE_OVERHEAD: usize = 8;

/// The person's name in a persona's examples. It is the same in every chat, so that chats can share the evaluation of
/// the examples.
const EXAMPLE_PERSON: &str = "Sam";

/// Tokens reserved for the heading above recalled lines.
const HEADING_TOKENS: usize = 24;

/// The most tokens for lines about the style of the reply.
const STYLE_TOKENS: usize = 300;

/// The share of the room for recalled lines, as a divisor: a quarter. The history gets the rest.
const RECALLED_SHARE: usize = 4;

/// The share of the room for carried writings and notes, as a divisor.
const CARRIED_SHARE: usize = 4;

/// What stands before guidance.
const GUIDANCE_HEADING: &str = "[For this reply:";

/// How to talk where the reply is heard. It stands in the last turn, so that what comes before is evaluated once for calls and
/// for written messages.
const ALOUD: &str =
    "This is heard, not read: talk in a few short plain sentences, without lists, headings, tables or links.";

/// The role that people play unless they choose another.
static DEFAULT_ROLE: LazyLock<Option<Persona>> = LazyLock::new(|| azera_personas::built_in("protag"));

/// One line of the conversation.
#[derive(Clone, PartialEq, Eq)]
pub struct Line {
    /// The line's depth on its branch. The start of the history is aligned to it.
    pub depth: u64,
    /// The speaker's name; `None` for the persona itself.
    pub speaker: Option<String>,
    /// The text.
    pub text: String,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line[{} bytes]", self.text.len())
    }
}

/// The parts of a prompt.
#[derive(Debug, Clone)]
pub struct PromptParts<'a> {
    /// The persona that answers.
    pub persona: &'a Persona,
    /// The role that the person plays, if it has any text.
    pub user_persona: Option<&'a Persona>,
    /// Entries of the persona's lorebook that the conversation triggered, in prompt order.
    pub lore: &'a [String],
    /// Instructions for the style of the reply, one per line, the most important first.
    pub style: &'a [String],
    /// True to leave out tasks, lore, the person's role and how to talk aloud, because no role is played. Their room stays empty, so that
    /// [`history_cut`] stays right.
    pub plainly: bool,
    /// True if the reply is heard: in a call, or as the voice message that answers one.
    pub aloud: bool,
    /// What the persona can do besides talking.
    pub abilities: Abilities,
    /// True if several people may speak here. Then every line carries its speaker's name.
    pub group: bool,
    /// Recent writings that the persona carries into every prompt, the most important first.
    pub carried: &'a [RecalledMemory],
    /// The persona's working notes of this chat.
    pub notes: Option<&'a str>,
    /// The conversation before the message, oldest line first.
    pub history: &'a [Line],
    /// Recalled memories, best first.
    pub recalled: &'a [RecalledMemory],
    /// The time zone in which days are shown.
    pub zone: TimeZone,
    /// The current time. The prompt names it only if the message asks for it.
    pub now: Option<Timestamp>,
    /// The message to answer. Its speaker is a person.
    pub message: &'a Line,
}

impl<'a> PromptParts<'a> {
    /// Creates parts with only a persona and a message.
    pub fn new(persona: &'a Persona, message: &'a Line) -> Self {
        Self {
            persona,
            user_persona: None,
            lore: &[],
            style: &[],
            plainly: false,
            aloud: false,
            abilities: Abilities::default(),
            group: false,
            carried: &[],
            notes: None,
            history: &[],
            recalled: &[],
            zone: TimeZone::UTC,
            now: None,
            message,
        }
    }
}

/// The room for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Tokens for prompt and reply together.
    pub context_tokens: usize,
    /// Tokens reserved for the reply.
    pub reply_tokens: usize,
}

/// A prompt, ready for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The messages.
    pub messages: Vec<ChatMessage>,
    /// The number of leading messages that every chat of this persona shares.
    pub shared_messages: usize,
    /// The size of each part, in prompt order.
    pub fragments: Vec<Fragment>,
    /// The number of history lines that fit: the newest ones.
    pub history_lines: usize,
    /// The number of recalled memories that fit: the best ones.
    pub recalled_lines: usize,
    /// The number of carried writings that fit: the first ones.
    pub carried_lines: usize,
    /// True if the working notes fit.
    pub shows_notes: bool,
    /// Texts of the prompt that the reply should not say back, by [`Form::unsaid`].
    pub unsaid: Vec<String>,
    /// The words with which the reply begins, by [`Form::declines`]. The model continues from them.
    pub beginning: Option<&'static str>,
    /// The whole reply in place of a model's, by [`Form::only_english`].
    pub only_english: Option<&'static str>,
}

/// The reasons why a prompt cannot be composed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The persona alone leaves too little room for a conversation.
    #[error(
        "the persona {name} takes {tokens} tokens, and the model has room for {room}: choose a larger model or shorten the persona"
    )]
    PersonaTooLong {
        /// The persona's name.
        name: String,
        /// The persona's tokens.
        tokens: usize,
        /// The available tokens.
        room: usize,
    },
}

/// Composes a prompt. `count` returns the number of tokens of a text for the model that reads the prompt.
pub fn compose(
    form: &Form,
    parts: &PromptParts<'_>,
    budget: Budget,
    count: &dyn Fn(&str) -> usize,
) -> Result<Prompt, Error> {
    let shared = shared_messages(form, parts);
    let Frame { message, mut guidance, carried, left, style_tokens } = frame(form, parts, &shared, budget, count)?;
    if parts.plainly {
        guidance
            .retain(|(kind, _)| matches!(kind, FragmentKind::Language | FragmentKind::Today | FragmentKind::Reminder));
    }
    guidance.extend(fitting(parts.style, style_tokens, count).map(|style| (FragmentKind::Style, style)));

    let mut recalled = Vec::new();
    let mut recalled_tokens = 0;
    for memory in parts.recalled.iter().take(form.recalled_lines) {
        let line = recalled_line(memory, &parts.zone);
        let tokens = count(&line) + 1;
        if recalled_tokens + tokens > left / RECALLED_SHARE {
            break;
        }
        recalled_tokens += tokens;
        recalled.push(line);
    }
    let start = history_start(parts, left - left / RECALLED_SHARE, count);
    let history: Vec<ChatMessage> =
        parts.history.iter().skip(start).map(|line| chat_message(line, parts.group)).collect();
    let history_tokens: usize = history.iter().map(|line| count(&line.content)).sum();

    let mut fragments = vec![Fragment { kind: FragmentKind::Persona, tokens: count(&shared[0].content) }];
    if shared.len() > 1 {
        let tokens = shared.iter().skip(1).map(|message| count(&message.content)).sum();
        fragments.push(Fragment { kind: FragmentKind::Examples, tokens });
    }
    let Carried { lines: carried_lines, shows_notes, fragments: carried_fragments, message: carried } = carried;
    fragments.extend(carried_fragments);
    if !history.is_empty() {
        fragments.push(Fragment { kind: FragmentKind::History, tokens: history_tokens });
    }
    fragments.extend(guidance.iter().map(|(kind, text)| Fragment { kind: *kind, tokens: count(text) }));
    if !recalled.is_empty() {
        fragments.push(Fragment { kind: FragmentKind::Recalled, tokens: recalled_tokens });
    }
    fragments.push(Fragment { kind: FragmentKind::Message, tokens: count(&message) });

    let shared_messages = shared.len();
    let (history_lines, recalled_lines) = (history.len(), recalled.len());
    let mut messages = shared;
    messages.extend(carried);
    messages.extend(history);
    let person = parts.message.speaker.as_deref().filter(|_| !parts.group);
    messages.push(last_turn(&guidance, &recalled, person, &message));
    if form.alternates {
        messages = alternate(messages, shared_messages);
    }
    let unsaid = unsaid(form.unsaid, parts.persona, &parts.message.text);
    Ok(Prompt {
        messages,
        shared_messages,
        fragments,
        history_lines,
        recalled_lines,
        carried_lines,
        shows_notes,
        unsaid,
        beginning: form.declines.then(|| beginning(parts.message)).flatten(),
        only_english: only_english(form, parts),
    })
}

/// Returns how many of the oldest lines of `parts.history` a prompt of the same parts does not show. Recalled lines do
/// not change it, so it can be called before recall.
pub fn history_cut(
    form: &Form,
    parts: &PromptParts<'_>,
    budget: Budget,
    count: &dyn Fn(&str) -> usize,
) -> Result<usize, Error> {
    let left = frame(form, parts, &shared_messages(form, parts), budget, count)?.left;
    Ok(history_start(parts, left - left / RECALLED_SHARE, count))
}

/// The parts of every prompt that do not depend on history and recall, and the room they leave.
struct Frame {
    message: String,
    guidance: Vec<(FragmentKind, String)>,
    carried: Carried,
    left: usize,
    /// Tokens reserved for [`PromptParts::style`], which is not known yet when the history is cut.
    style_tokens: usize,
}

/// The carried writings and notes, as one message.
#[derive(Default)]
struct Carried {
    message: Option<ChatMessage>,
    lines: usize,
    shows_notes: bool,
    fragments: Vec<Fragment>,
}

fn frame(
    form: &Form,
    parts: &PromptParts<'_>,
    shared: &[ChatMessage],
    budget: Budget,
    count: &dyn Fn(&str) -> usize,
) -> Result<Frame, Error> {
    let person = parts.message.speaker.as_deref().unwrap_or("the person");
    let room = budget.context_tokens.saturating_sub(budget.reply_tokens);
    let persona_tokens: usize = shared.iter().map(|message| count(&message.content) + MESSAGE_OVERHEAD).sum();
    let left = room.saturating_sub(persona_tokens);
    // If less than a quarter is left, there is no room for a conversation.
    if left < room / 4 {
        return Err(Error::PersonaTooLong { name: parts.persona.name.clone(), tokens: persona_tokens, room });
    }
    let guidance = guidance(form, parts, person, left / 4, count);
    let guidance_tokens: usize = guidance.iter().map(|(_, text)| count(text)).sum();
    let message = cut_middle(&said(parts.message, parts.group), left / 2, count);
    let style_tokens = if form.guidance { STYLE_TOKENS.min(left / 8) } else { 0 };
    let taken = count(&message) + MESSAGE_OVERHEAD + HEADING_TOKENS + guidance_tokens + style_tokens;
    let left = left.saturating_sub(taken);
    let carried = carried(parts, form.carried_tokens.min(left / CARRIED_SHARE), count);
    let carried_tokens: usize = carried.message.iter().map(|message| count(&message.content) + MESSAGE_OVERHEAD).sum();
    let left = left.saturating_sub(carried_tokens);
    Ok(Frame { message, guidance, carried, left, style_tokens })
}

/// Adds the carried writings, then the notes. Each is whole or left out, because a beginning without its end misleads.
fn carried(parts: &PromptParts<'_>, room: usize, count: &dyn Fn(&str) -> usize) -> Carried {
    let mut carried = Carried::default();
    let (mut text, mut left) = (String::new(), room);
    for writing in parts.carried {
        let line = format!("{}\n", recalled_line(writing, &parts.zone));
        let tokens = count(&line) + 1;
        if tokens > left {
            break;
        }
        left -= tokens;
        text.push_str(&line);
        carried.lines += 1;
    }
    if carried.lines > 0 {
        carried.fragments.push(Fragment { kind: FragmentKind::Carried, tokens: room - left });
    }
    if let Some(notes) = parts.notes {
        let notes = format!("Your notes:\n{notes}\n");
        let tokens = count(&notes) + 1;
        if tokens <= left {
            text.push_str(&notes);
            carried.shows_notes = true;
            carried.fragments.push(Fragment { kind: FragmentKind::Notes, tokens });
        }
    }
    // A user message, like recalled lines, because templates differ in what else they accept here.
    carried.message = (!text.is_empty()).then(|| ChatMessage::new(Role::User, text.trim_end()));
    carried
}

fn chat_message(line: &Line, group: bool) -> ChatMessage {
    let role = if line.speaker.is_some() { Role::User } else { Role::Assistant };
    ChatMessage::new(role, said(line, group))
}

/// Returns the messages at the start of every chat of the persona.
fn shared_messages(form: &Form, parts: &PromptParts<'_>) -> Vec<ChatMessage> {
    let persona = parts.persona;
    let rules = parts.abilities.fill(form.rules);
    let text = match form.persona {
        PersonaForm::Brief => persona_text::brief(persona, &rules),
        PersonaForm::Full => persona_text::full(persona, &rules),
    };
    // The person's name would make this text differ from chat to chat; "you" and "they" carry the meaning.
    let text = fill_placeholders(&text, "the person", &persona.name).into_owned();
    let mut messages = vec![ChatMessage::new(Role::System, text)];
    let mut exchanges = persona.exchanges();
    exchanges.sort_by_key(|exchange| exchange.remembered.is_empty());
    for exchange in exchanges.into_iter().take(form.examples) {
        let fill = |text: &str| fill_placeholders(text, EXAMPLE_PERSON, &persona.name).into_owned();
        let recalled: Vec<String> = exchange.remembered.iter().map(|line| fill(line)).collect();
        messages.push(last_turn(&[], &recalled, Some(EXAMPLE_PERSON), &fill(exchange.person)));
        messages.push(ChatMessage::new(Role::Assistant, fill(exchange.persona)));
    }
    messages
}

/// Returns the person's role, the persona's behaviour for this kind of task, the day if the message asks for it, and
/// the matching lorebook entries, as far as they fit into `room`.
fn guidance(
    form: &Form,
    parts: &PromptParts<'_>,
    person: &str,
    room: usize,
    count: &dyn Fn(&str) -> usize,
) -> Vec<(FragmentKind, String)> {
    let fill = |text: &str| fill_placeholders(text, person, &parts.persona.name).into_owned();
    let mut guidance = Vec::new();
    if form.guidance {
        // The default role says nothing about the person, and a description in the person's turn is easily taken for
        // the persona's own.
        let role = parts.user_persona.filter(|role| DEFAULT_ROLE.as_ref() != Some(*role));
        let role = role.map(|role| format!("{person} plays {}: {}", role.name, role.brief()));
        guidance.extend(role.map(|text| (FragmentKind::UserPersona, fill(&text))));
        let task = parts.persona.task_behaviour_for(&parts.message.text);
        guidance.extend(task.map(|task| (FragmentKind::Task, fill(&task.text))));
    }
    let reminder = form.reminders.then(|| reminder(parts.abilities, person, parts.message, parts.history)).flatten();
    guidance.extend(reminder.map(|text| (FragmentKind::Reminder, text)));
    guidance.extend((form.aloud && parts.aloud).then(|| (FragmentKind::Aloud, ALOUD.to_owned())));
    let is_asked = form.language && !is_material(&parts.message.text);
    let language = is_asked.then(|| foreign_language(parts.message, parts.history)).flatten();
    guidance.extend(language.map(|language| (FragmentKind::Language, format!("Answer in {}.", language.eng_name()))));
    let now = parts.now.filter(|_| form.today && asks_for_today(&parts.message.text));
    guidance.extend(now.map(|now| (FragmentKind::Today, today(now, &parts.zone))));
    guidance.extend(parts.lore.iter().map(|entry| (FragmentKind::Lore, fill(entry))));
    let mut left = room;
    guidance.retain(|(_, text)| {
        let tokens = count(text);
        let fits = tokens <= left;
        left = left.saturating_sub(tokens);
        fits
    });
    guidance
}

/// Joins the first lines that fit into `room` to one text.
fn fitting(lines: &[String], room: usize, count: &dyn Fn(&str) -> usize) -> Option<String> {
    let mut text = String::new();
    for line in lines {
        let more = if text.is_empty() { line.clone() } else { format!("{text} {line}") };
        if count(&more) > room {
            break;
        }
        text = more;
    }
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the heading above recalled lines.
fn recalled_heading(person: Option<&str>) -> String {
    match person {
        Some(name) => format!("What {name} told you before:"),
        None => "What you were told before:".to_owned(),
    }
}

/// Returns the lines that stand above parts of a prompt. A model that writes one of them has begun to write the next
/// prompt, so they end a reply. `person` wrote the message.
pub fn prompt_headings(person: Option<&str>) -> Vec<String> {
    let people = [None, Some(EXAMPLE_PERSON)].into_iter().chain(person.map(Some));
    let mut headings: Vec<String> = people.map(recalled_heading).collect();
    headings.push(GUIDANCE_HEADING.to_owned());
    headings
}

/// Returns the last turn: guidance, recalled lines with the best one nearest to the end, and the message. The message
/// must stand last to be answered.
fn last_turn(
    guidance: &[(FragmentKind, String)],
    recalled: &[String],
    person: Option<&str>,
    message: &str,
) -> ChatMessage {
    let mut turn = String::new();
    if !guidance.is_empty() {
        // In brackets and with a name, because they are not the person's words.
        let lines: Vec<&str> = guidance.iter().map(|(_, line)| line.as_str()).collect();
        turn.push_str(&format!("{GUIDANCE_HEADING} {}]\n\n", lines.join("\n")));
    }
    if !recalled.is_empty() {
        turn.push_str(&recalled_heading(person));
        turn.push('\n');
        for line in recalled.iter().rev() {
            turn.push_str(&format!("- {line}\n"));
        }
        turn.push('\n');
    }
    turn.push_str(message);
    ChatMessage::new(Role::User, turn)
}

fn said(line: &Line, group: bool) -> String {
    match &line.speaker {
        Some(name) if group => format!("{name}: {}", line.text),
        _ => line.text.clone(),
    }
}

/// Returns the index of the first of the newest lines that fit, aligned to a multiple of [`HISTORY_STEP`] if possible.
fn history_start(parts: &PromptParts<'_>, room: usize, count: &dyn Fn(&str) -> usize) -> usize {
    let mut start = parts.history.len();
    let mut tokens = 0;
    for (index, line) in parts.history.iter().enumerate().rev() {
        tokens += count(&said(line, parts.group)) + MESSAGE_OVERHEAD;
        if tokens > room {
            break;
        }
        start = index;
    }
    if start > 0 {
        let aligned = parts.history.iter().skip(start).position(|line| line.depth % HISTORY_STEP == 0);
        start += aligned.unwrap_or(0);
    }
    start
}
