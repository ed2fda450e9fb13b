//! How a prompt is written for each model family. Every choice here was measured with `azera eval facts`; the figures
//! stand in `bot/docs/BENCHMARKS.md`.

use azera_model_api::Sampling;

/// How much of a persona stands in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonaForm {
    /// The *Brief* section: a model of a hundred million parameters loses the question behind anything longer.
    Brief,
    /// Everything.
    Full,
}

/// How a model is asked for what a persona writes between messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Writing {
    /// Lines of what was said that it is given at most.
    pub lines: usize,
    /// Whether its first words are given, so that it goes on with them. A small model left alone begins with a greeting.
    pub led: bool,
    /// Tokens of a text at most.
    pub tokens: usize,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// The form of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// How much of the persona.
    pub persona: PersonaForm,
    /// Example exchanges from the persona at most, those that use a memory first.
    pub examples: usize,
    /// Recalled lines at most.
    pub recalled_lines: usize,
    /// Share of the best memory's score a recalled memory must have to stand in the prompt. Each line that does not
    /// answer the question makes a small model likelier to answer with that line.
    pub recalled_share: f32,
    /// Tokens that what the persona carries with it (diary, journal, dream, notes) may take.
    pub carried_tokens: usize,
    /// Tokens of a reply at most; a small model that goes on for long has lost its way.
    pub reply_tokens: usize,
    /// What ends a reply besides the model's own word.
    pub stop: &'static [&'static str],
    /// How what is written between messages is asked for.
    pub writing: Writing,
    /// Whether task behaviours and the role of the person are told.
    pub guidance: bool,
    /// How tokens are chosen unless the configuration says otherwise.
    pub sampling: Sampling,
}

/// The form for a family of the ledger. A family nobody has measured gets the form for capable models.
pub fn form_for(family: &str) -> Form {
    match family {
        "smollm2" => Form {
            persona: PersonaForm::Brief,
            examples: 2,
            recalled_lines: 8,
            recalled_share: 0.5,
            carried_tokens: 120,
            reply_tokens: 100,
            // Its first paragraph is the answer; what follows wanders off, as a rule into the end of a letter.
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
