//! The form of a prompt for each model family and size. The forms of `smollm2` and `qwen2` were measured with
//! `azera eval facts` and `azera eval talk`; the results are in `bot/docs/BENCHMARKS.md`. The other families differ from
//! them only in how tokens are chosen, by what their makers recommend.

use azera_model_api::{ModelInfo, Sampling};

/// How much of a persona the prompt contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonaForm {
    /// Only the *Brief* section. A model of a hundred million parameters loses the question behind anything longer.
    Brief,
    /// All sections.
    Full,
}

/// What a reply should not say back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsaid {
    /// Nothing: the model can be asked to repeat or to correct a text.
    Nothing,
    /// The persona's description, and the message that is answered unless it holds a text to work on.
    PersonaAndTalk,
    /// The persona's description and the message that is answered.
    PersonaAndMessage,
}

/// The size of a model. It decides how much a prompt can ask of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Below 250 million weights: SmolLM2 135M.
    Tiny,
    /// Below a billion.
    Small,
    /// Below 3 billion.
    Medium,
    /// All others, and models of unknown size, because those are on servers.
    Large,
}

impl Size {
    /// Returns the size of a model with this many weights.
    pub fn of(parameters: Option<u64>) -> Self {
        match parameters {
            Some(..250_000_000) => Self::Tiny,
            Some(..1_000_000_000) => Self::Small,
            Some(..3_000_000_000) => Self::Medium,
            Some(_) | None => Self::Large,
        }
    }
}

/// How a model is asked for the texts that a persona writes between messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Writing {
    /// The most lines of conversation in the request.
    pub lines: usize,
    /// True if the request contains the first words, which the model continues. Without them, a small model begins with
    /// a greeting.
    pub led: bool,
    /// The most tokens in a text.
    pub tokens: usize,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// The form of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// How much of the persona the prompt contains.
    pub persona: PersonaForm,
    /// What every persona is told about how to answer, after its own text; may be empty. `{{char}}` stands for its name;
    /// `{{only}}`, `{{nights}}` and `{{drawing}}` for what [`crate::Abilities`] say.
    pub rules: &'static str,
    /// The most example exchanges from the persona. Examples that use a memory come first.
    pub examples: usize,
    /// The most recalled lines.
    pub recalled_lines: usize,
    /// The least score of a recalled memory in the prompt, as a share of the best memory's score. Each line that does
    /// not answer the question makes a small model likelier to answer with that line.
    pub recalled_share: f32,
    /// True if the recalled lines of a question may repeat what people said earlier in the conversation. A small model
    /// denies what it was told five messages before, unless that stands next to the question.
    pub recalls_shown: bool,
    /// The most tokens for carried writings (diary, journal, dream) and notes.
    pub carried_tokens: usize,
    /// The most tokens in a reply. A small model that goes on for long has lost its way.
    pub reply_tokens: usize,
    /// What a reply should not say back, where the sampler has a phrase penalty.
    pub unsaid: Unsaid,
    /// Strings that end a reply, besides the model's own end token.
    pub stop: &'static [&'static str],
    /// How the texts between messages are requested.
    pub writing: Writing,
    /// True if the prompt contains task behaviours and the person's role.
    pub guidance: bool,
    /// True if the prompt names the day and the time when the message asks for them.
    pub today: bool,
    /// True if the prompt names the person's language where it is not English. Without it, small models answer in the
    /// language of the persona's text.
    pub language: bool,
    /// True if a rule stands again next to the message that it is about. Models of a billion weights forget it otherwise.
    pub reminders: bool,
    /// True if the prompt says how to talk where the reply is heard. The smallest models write plain sentences anyway, and
    /// take each further line for something to talk about.
    pub aloud: bool,
    /// True if the reply is one sentence that begins with what the persona cannot do where the message asks for a story, a
    /// poem, a sum or a deed. Without it, a model of a hundred million weights writes what only looks like an answer.
    pub declines: bool,
    /// True if the model speaks only English. To a message in another language, the persona then says so, once in a
    /// conversation. What such a model writes there misses the message, or is no language.
    pub only_english: bool,
    /// True if the model's template accepts only turns that alternate between person and persona.
    pub alternates: bool,
    /// How tokens are chosen, unless the configuration says otherwise.
    pub sampling: Sampling,
    /// The same while the model thinks before it answers.
    pub thinking: Sampling,
}

/// What models from a quarter of a billion weights on are told; from a billion on, [`FULL_RULES`]. They take the persona's description for something to
/// tell, and the person's words for something to say again, unless they are told who speaks.
const RULES: &str = "Answer each message as {{char}}, in its language, in a few plain sentences. When the person tells you \
                     something, react to it instead of repeating it. When they ask for a story or a poem, tell it in \
                     full. Never invent what the person did or said: if they never told you, say that you don't know it \
                     yet. Asked whether you are human, say that you are an AI.{{drawing}}";

/// The same for models from a billion weights on, which can follow more rules. Without these, such a model promises to
/// call somebody, says that it never dreams, and answers "What am I allergic to?" for itself.
const FULL_RULES: &str = "Talk as {{char}} with the person who writes to you. Answer in a few plain sentences. In \
                          their messages, \"I\" and \"my\" are the person: answer with \"you\" and \"your\". When the person \
                          tells you something, say what you think of it and ask about it, instead of repeating it. Do \
                          not offer help and do not ask what else they need, unless your description says so. When \
                          they ask for a story or a poem, tell it in full. Never invent what the person did or said: \
                          if they never told you, say that you don't know it yet. Here you can {{only}}: you cannot \
                          call anybody, order, book or look up anything, and you get no news or weather; say so when \
                          they ask for it. You have moods{{nights}}. Asked whether you are human, say that you are an \
                          AI; which company made you is not known.{{drawing}} Always write in the language in which \
                          the person writes.";

/// Beginnings of the other side's next line, in the words that models use for it.
const STOP: &[&str] = &[
    "\nUser:",
    "\n**User:**",
    "\nHuman:",
    "\nThe person:",
    // What models for assistants end each answer with. The space keeps a reply that is nothing else.
    " Is there anything else",
    " Is there anything specific",
    " Is there anything you need",
    " Do you have any other questions",
    " Do you need any help",
    " What else can I",
    " How can I assist you",
    " Let me know if you have any",
    " Let me know if you need any",
    " If you have any other questions",
    " If you have any more questions",
    " If you ever have any questions",
    " Feel free to ask",
];

/// Returns the form for a model.
pub fn form_of(model: &ModelInfo) -> Form {
    form_for(&model.family, model.parameters)
}

/// Returns the form for a family of the registry and a number of weights. Without the number, a family has its usual
/// size. A family that nobody has measured gets the form of its size.
pub fn form_for(family: &str, parameters: Option<u64>) -> Form {
    let size = match (family, parameters) {
        ("smollm2", None) => Size::Tiny,
        _ => Size::of(parameters),
    };
    let form = match size {
        Size::Tiny => tiny(),
        Size::Small => small(),
        Size::Medium => medium(),
        Size::Large => large(),
    };
    let (sampling, thinking) = match size {
        Size::Tiny => (form.sampling.clone(), form.thinking.clone()),
        _ => sampling_of(family, &form.sampling),
    };
    // Other models of this size may speak another language. Larger ones of this family have seen more than English.
    let only_english = family == "smollm2" && size == Size::Tiny;
    // The templates of these families refuse two turns of the same side in a row.
    Form { sampling, thinking, only_english, alternates: matches!(family, "gemma3" | "mistral"), ..form }
}

/// Returns how a family chooses tokens, with and without thinking. Penalties against loops stay those of the size.
fn sampling_of(family: &str, base: &Sampling) -> (Sampling, Sampling) {
    let with = |temperature: f32, top_k: u32, top_p: f32, min_p: f32| Sampling {
        temperature: temperature.min(base.temperature),
        top_k,
        top_p,
        min_p,
        ..base.clone()
    };
    let sampling = match family {
        "qwen3" => with(0.7, 20, 0.8, 0.0),
        "llama3" => with(0.6, 40, 0.9, 0.05),
        "gemma3" => with(1.0, 64, 0.95, 0.0),
        "mistral" => with(0.3, 40, 1.0, 0.05),
        _ => base.clone(),
    };
    // While it thinks, a model must be free to repeat itself.
    let thinking = match family {
        "qwen3" => Sampling { repeat_penalty: 1.0, ..with(0.6, 20, 0.95, 0.0) },
        _ => sampling.clone(),
    };
    (sampling, thinking)
}

fn tiny() -> Form {
    let sampling = Sampling {
        temperature: 0.3,
        top_k: 40,
        top_p: 1.0,
        min_p: 0.1,
        repeat_penalty: 1.1,
        phrase_penalty: 0.5,
        phrase_tokens: 3,
        ..Sampling::default()
    };
    Form {
        persona: PersonaForm::Brief,
        rules: "",
        examples: 2,
        recalled_lines: 8,
        recalled_share: 0.5,
        recalls_shown: false,
        carried_tokens: 120,
        reply_tokens: 100,
        // The first paragraph is the answer. The rest strays, usually into the end of a letter.
        stop: &["\n\n"],
        unsaid: Unsaid::Nothing,
        writing: led_writing(4),
        guidance: false,
        today: false,
        language: false,
        reminders: false,
        aloud: false,
        declines: true,
        only_english: false,
        alternates: false,
        thinking: sampling.clone(),
        sampling,
    }
}

fn small() -> Form {
    let sampling = Sampling {
        temperature: 0.3,
        top_k: 40,
        top_p: 0.95,
        min_p: 0.1,
        repeat_penalty: 1.1,
        phrase_penalty: 0.8,
        phrase_tokens: 5,
        ..Sampling::default()
    };
    Form {
        persona: PersonaForm::Brief,
        rules: RULES,
        examples: 5,
        recalled_lines: 8,
        recalled_share: 0.5,
        recalls_shown: true,
        carried_tokens: 200,
        reply_tokens: 250,
        stop: STOP,
        unsaid: Unsaid::PersonaAndMessage,
        writing: led_writing(8),
        guidance: false,
        today: true,
        language: true,
        reminders: false,
        aloud: false,
        declines: false,
        only_english: false,
        alternates: false,
        thinking: sampling.clone(),
        sampling,
    }
}

fn medium() -> Form {
    let sampling =
        Sampling { temperature: 0.5, min_p: 0.1, phrase_penalty: 0.8, phrase_tokens: 6, ..Sampling::default() };
    Form {
        rules: FULL_RULES,
        reminders: true,
        aloud: true,
        unsaid: Unsaid::PersonaAndTalk,
        carried_tokens: 400,
        reply_tokens: 500,
        writing: Writing { lines: 20, led: false, tokens: 200, sampling: Sampling::default() },
        thinking: sampling.clone(),
        sampling,
        ..small()
    }
}

fn large() -> Form {
    let sampling = Sampling { phrase_penalty: 0.5, phrase_tokens: 10, ..Sampling::default() };
    Form {
        persona: PersonaForm::Full,
        rules: FULL_RULES,
        unsaid: Unsaid::Nothing,
        recalled_lines: 20,
        recalled_share: 0.0,
        recalls_shown: false,
        carried_tokens: 600,
        reply_tokens: usize::MAX,
        writing: Writing { lines: 40, led: false, tokens: 250, sampling: Sampling::default() },
        guidance: true,
        language: false,
        reminders: false,
        aloud: true,
        thinking: sampling.clone(),
        sampling,
        ..small()
    }
}

/// Returns how models below a billion weights write.
fn led_writing(lines: usize) -> Writing {
    let sampling =
        Sampling { temperature: 0.7, top_k: 40, top_p: 1.0, min_p: 0.1, repeat_penalty: 1.15, ..Sampling::default() };
    Writing { lines, led: true, tokens: 80, sampling }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_gets_the_form_of_its_size() {
        #[track_caller]
        fn check(family: &str, parameters: Option<u64>, like: &Form) {
            let form = form_for(family, parameters);
            assert_eq!(
                (form.persona, form.guidance, form.recalled_lines),
                (like.persona, like.guidance, like.recalled_lines)
            );
        }
        check("smollm2", None, &tiny());
        check("smollm2", Some(134_515_008), &tiny());
        check("smollm2", Some(1_711_376_384), &medium());
        check("qwen2", Some(494_032_768), &small());
        check("qwen3", Some(2_031_739_904), &medium());
        check("generic", None, &large());
        check("mistral", Some(24_000_000_000), &large());
    }

    #[test]
    fn every_form_has_penalties_against_loops() {
        for family in ["smollm2", "qwen2", "qwen3", "llama3", "gemma3", "mistral", "generic"] {
            for parameters in [None, Some(135_000_000), Some(500_000_000), Some(2_000_000_000), Some(8_000_000_000)] {
                let form = form_for(family, parameters);
                assert!(form.sampling.repeat_penalty > 1.0 && form.sampling.phrase_penalty > 0.0, "{family}");
                assert!(form.thinking.phrase_penalty > 0.0 && !form.stop.is_empty(), "{family}");
            }
        }
    }

    #[test]
    fn thinking_is_chosen_apart_for_qwen3() {
        let form = form_for("qwen3", Some(8_000_000_000));
        assert_ne!(form.sampling, form.thinking);
        let form = form_for("qwen2", Some(1_500_000_000));
        assert_eq!(form.sampling, form.thinking);
    }
}
