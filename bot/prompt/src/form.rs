//! The form of a prompt for each model family. Every value here was measured with `azera eval facts`; the results are
//! in `bot/docs/BENCHMARKS.md`.

use azera_model_api::Sampling;

/// How much of a persona the prompt contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonaForm {
    /// Only the *Brief* section. A model of a hundred million parameters loses the question behind anything longer.
    Brief,
    /// All sections.
    Full,
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
    /// The most example exchanges from the persona. Examples that use a memory come first.
    pub examples: usize,
    /// The most recalled lines.
    pub recalled_lines: usize,
    /// The least score of a recalled memory in the prompt, as a share of the best memory's score. Each line that does
    /// not answer the question makes a small model likelier to answer with that line.
    pub recalled_share: f32,
    /// The most tokens for carried writings (diary, journal, dream) and notes.
    pub carried_tokens: usize,
    /// The most tokens in a reply. A small model that goes on for long has lost its way.
    pub reply_tokens: usize,
    /// Strings that end a reply, besides the model's own end token.
    pub stop: &'static [&'static str],
    /// How the texts between messages are requested.
    pub writing: Writing,
    /// True if the prompt contains task behaviours and the person's role.
    pub guidance: bool,
    /// How tokens are chosen, unless the configuration says otherwise.
    pub sampling: Sampling,
}

/// Returns the form for a family of the registry. A family that nobody has measured gets the form for capable models.
pub fn form_for(family: &str) -> Form {
    match family {
        "smollm2" => Form {
            persona: PersonaForm::Brief,
            examples: 2,
            recalled_lines: 8,
            recalled_share: 0.5,
            carried_tokens: 120,
            reply_tokens: 100,
            // The first paragraph is the answer. The rest strays, usually into the end of a letter.
            stop: &["\n\n"],
            writing: Writing {
                lines: 4,
                led: true,
                tokens: 80,
                sampling: Sampling {
                    temperature: 0.7,
                    top_k: 40,
                    top_p: 1.0,
                    min_p: 0.1,
                    repeat_penalty: 1.15,
                    ..Sampling::default()
                },
            },
            guidance: false,
            sampling: Sampling {
                temperature: 0.3,
                top_k: 40,
                top_p: 1.0,
                min_p: 0.1,
                repeat_penalty: 1.1,
                phrase_penalty: 0.5,
                phrase_tokens: 3,
                ..Sampling::default()
            },
        },
        _ => Form {
            persona: PersonaForm::Full,
            examples: 3,
            recalled_lines: 20,
            recalled_share: 0.0,
            carried_tokens: 600,
            reply_tokens: usize::MAX,
            stop: &[],
            writing: Writing { lines: 40, led: false, tokens: 250, sampling: Sampling::default() },
            guidance: true,
            sampling: Sampling::default(),
        },
    }
}
