//! One answer, read aloud while it is written.

use crate::{Language, Options, Splitter, markup, scan};

/// One sentence of an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Sentence {
    /// As the model wrote it.
    pub written: String,
    /// As a voice says it; empty if nothing of it is read aloud.
    pub spoken: String,
}

/// Leaves out what was written.
impl std::fmt::Debug for Sentence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sentence[{} bytes written, {} spoken]", self.written.len(), self.spoken.len())
    }
}

/// Reads one answer: splits the stream and says each sentence. It mentions code once in an answer.
#[derive(Debug, Default)]
pub struct Reader {
    splitter: Splitter,
    options: Options,
    so_far: SoFar,
}

/// What counts for the next sentence of an answer.
#[derive(Debug, Default)]
pub(crate) struct SoFar {
    /// True if code was mentioned.
    pub(crate) code_noted: bool,
    /// The language that the sentences were in.
    language: Option<Language>,
}

impl Reader {
    /// Returns a reader for one answer.
    pub fn new(options: Options) -> Self {
        Self { splitter: Splitter::of(options.language), options, ..Self::default() }
    }

    /// Hands over the first clause before its sentence is whole, so that the first sound comes soon.
    pub fn eager(self) -> Self {
        Self { splitter: self.splitter.eager(), ..self }
    }

    /// Takes the next piece of the answer and returns the sentences that it completes.
    pub fn push(&mut self, piece: &str) -> Vec<Sentence> {
        let sentences = self.splitter.push(piece);
        self.say(sentences)
    }

    /// Returns the rest of the answer. The reader then starts a new one.
    pub fn finish(&mut self) -> Vec<Sentence> {
        let sentences = self.splitter.finish();
        let said = self.say(sentences);
        self.so_far = SoFar::default();
        said
    }

    fn say(&mut self, sentences: Vec<String>) -> Vec<Sentence> {
        let say = |written: String| {
            let spoken = say(&written, &self.options, &mut self.so_far);
            Sentence { written, spoken }
        };
        sentences.into_iter().map(say).collect()
    }
}

/// Says a text that follows others.
pub(crate) fn say(text: &str, options: &Options, so_far: &mut SoFar) -> String {
    let folded = crate::fold::fold(text);
    let language = options.language.of_sentence(&folded, so_far.language);
    so_far.language = Some(language);
    let plain = markup::plain_text(&folded, options, language, &mut so_far.code_noted);
    // A code block of an answer that mentioned code before is silent; so is a line of ornaments.
    scan::say(plain.trim(), options, language)
}
