//! The product's prompts for made-up conversations.

use azera_model_api::ChatMessage;
use azera_personas::Persona;
use azera_prompt::{Budget, Form, Line, MemoryOrigin, PromptParts, RecalledMemory, compose};

use crate::sampler::{Sampler, StatedFact};
use crate::seeds::SEEDS;

/// Enough room for every training example, so that nothing is cut.
const BUDGET: Budget = Budget { context_tokens: 8192, reply_tokens: 512 };

/// The persona that replies in an example.
#[derive(Clone)]
pub(crate) enum Cast {
    /// Azera, or a persona with another name and the same way to talk.
    Plain(Box<Persona>),
    /// Areza.
    Areza(Box<Persona>),
}

impl Cast {
    /// Returns every persona with its share of the examples, in percent.
    pub(crate) fn all() -> Vec<(usize, Self)> {
        let built_in = |id: &str| azera_personas::built_in(id).map(Box::new);
        let mut all = Vec::new();
        all.extend(built_in("azera").map(|azera| (66, Self::Plain(azera))));
        all.extend(built_in("areza").map(|areza| (16, Self::Areza(areza))));
        for (name, brief) in &SEEDS.personas {
            let id = name.to_lowercase();
            let text = format!(
                "---\nid: {id}\nname: {name}\nkind: assistant\n---\n\n# {name}\n\n## Brief\n\n{brief}\n\n## Intent\n\n{brief}\n"
            );
            all.extend(azera_personas::check(&text).persona.map(|persona| (3, Self::Plain(Box::new(persona)))));
        }
        all
    }

    pub(crate) fn persona(&self) -> &Persona {
        match self {
            Self::Plain(persona) | Self::Areza(persona) => persona,
        }
    }

    pub(crate) fn is_areza(&self) -> bool {
        matches!(self, Self::Areza(_))
    }
}

/// A conversation up to the message to answer.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) group: bool,
    /// Speaker and text, oldest first; `None` is the persona.
    pub(crate) history: Vec<(Option<String>, String)>,
    /// Recalled lines, best first.
    pub(crate) recalled: Vec<RecalledMemory>,
    pub(crate) carried: Vec<RecalledMemory>,
    pub(crate) notes: Option<String>,
    pub(crate) speaker: String,
    pub(crate) message: String,
}

impl Scene {
    /// Returns the messages that the product would send to the model.
    pub(crate) fn prompt(&self, form: &Form, persona: &Persona) -> Option<Vec<ChatMessage>> {
        let line = |(depth, (speaker, text)): (usize, &(Option<String>, String))| Line {
            depth: depth as u64,
            speaker: speaker.clone(),
            text: text.clone(),
        };
        let history: Vec<Line> = self.history.iter().enumerate().map(line).collect();
        let message =
            Line { depth: history.len() as u64, speaker: Some(self.speaker.clone()), text: self.message.clone() };
        let parts = PromptParts {
            group: self.group,
            carried: &self.carried,
            notes: self.notes.as_deref(),
            history: &history,
            recalled: &self.recalled,
            ..PromptParts::new(persona, &message)
        };
        // The examples are far below any limit, so an estimate of the tokens is enough.
        compose(form, &parts, BUDGET, &|text| text.len() / 3 + 1).ok().map(|prompt| prompt.messages)
    }
}

/// Returns a statement as a recalled line.
pub(crate) fn recalled(stated: &StatedFact) -> RecalledMemory {
    RecalledMemory::new(MemoryOrigin::Said, Some(stated.who.clone()), stated.text.clone(), stated.at)
}

impl Sampler {
    /// Returns an unrelated line.
    pub(crate) fn chatter(&mut self, who: &str) -> RecalledMemory {
        let (speaker, text) = if self.chance(12) {
            let exchange = self.of(&SEEDS.talk);
            (None, self.of(&exchange.answers).replace("{persona}", "an AI"))
        } else {
            (Some(who.to_owned()), (*self.of(&SEEDS.chatter)).to_owned())
        };
        RecalledMemory::new(MemoryOrigin::Said, speaker, text, self.time())
    }

    /// Returns one or two exchanges of small talk before the message.
    pub(crate) fn small_talk(&mut self, who: &str, persona: &str) -> Vec<(Option<String>, String)> {
        let mut history = Vec::new();
        for _ in 0..=self.below(2) {
            let exchange = self.of(&SEEDS.talk);
            let said = self.typed(&exchange.said.replace("{persona}", persona), persona);
            history.push((Some(who.to_owned()), said));
            history.push((None, self.of(&exchange.answers).replace("{persona}", persona)));
        }
        history
    }
}
