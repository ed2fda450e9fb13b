//! Splits text that streams in into sentences.

use crate::language::told_by_words;
use crate::table::tables;
use crate::{Language, german};

/// A sentence without an end is handed over after this many characters.
const LONGEST: usize = 700;
/// The first clause of an eager splitter has at least so many words.
const CLAUSE_WORDS: usize = 3;
/// Inside quotes, brackets and emphasis a sentence does not end, unless they stay open for this many characters.
const LONGEST_SPAN: usize = 240;

/// Collects a stream of text and hands over whole sentences as soon as their end is certain. Sentences come without
/// the white space around them. The same text gives the same sentences, however it is cut into pieces.
///
/// A line break ends a sentence, too. A code block is one sentence.
#[derive(Debug, Clone, Default)]
pub struct Splitter {
    waiting: String,
    /// True while the first clause is handed over without the rest of its sentence.
    is_eager: bool,
    language: Language,
    /// The language that the sentences were in.
    before: Option<Language>,
}

/// What tells the language of a sentence that is not whole yet.
#[derive(Clone, Copy)]
struct Languages {
    voice: Language,
    before: Option<Language>,
}

impl Languages {
    /// Whether a text so far is German. The text up to a stop decides, so that the cuts of the stream do not matter.
    fn is_german(self, so_far: &[char]) -> bool {
        let so_far: String = so_far.iter().collect();
        self.voice.of_sentence(&so_far, self.before) == Language::German
    }
}

/// Whether a sentence ends at some place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Yes,
    No,
    /// It depends on text that has not come yet.
    Unknown,
}

impl Splitter {
    /// Returns a splitter that holds no text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a splitter for texts of a language.
    pub fn of(language: Language) -> Self {
        Self { language, ..Self::default() }
    }

    /// Hands over the first clause as soon as it ends, so that the first sound comes soon.
    pub fn eager(self) -> Self {
        Self { is_eager: true, ..self }
    }

    /// Takes the next piece of the text and returns the sentences that it completes.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        self.waiting.push_str(piece);
        self.drain(false)
    }

    /// Returns the rest of the text as sentences, and is empty afterwards.
    pub fn finish(&mut self) -> Vec<String> {
        let sentences = self.drain(true);
        self.before = None;
        sentences
    }

    fn drain(&mut self, finished: bool) -> Vec<String> {
        let mut chars: Vec<char> = self.waiting.chars().collect();
        let mut sentences = Vec::new();
        loop {
            let blank = chars.iter().take_while(|c| c.is_whitespace()).count();
            chars.drain(..blank);
            if chars.is_empty() {
                break;
            }
            let clause = if self.is_eager { first_clause(&chars) } else { None };
            let languages = Languages { voice: self.language, before: self.before };
            let Some(len) = first_sentence(&chars, finished, languages).into_iter().chain(clause).min() else {
                break;
            };
            self.is_eager = false;
            let sentence: String = chars.drain(..len).collect();
            self.before = told_by_words(&sentence).or(self.before);
            sentences.push(sentence.trim_end().to_owned());
        }
        self.waiting = chars.into_iter().collect();
        sentences
    }
}

/// Returns the length of the first clause, if it has enough words and stands outside of marks that open something.
fn first_clause(chars: &[char]) -> Option<usize> {
    let mut words = 0;
    for (at, pair) in chars.windows(2).enumerate() {
        let &[c, next] = pair else { return None };
        if !c.is_alphanumeric() && !c.is_whitespace() && !matches!(c, ',' | ';' | '\'' | '’' | '-') {
            return None;
        }
        words += usize::from(!c.is_whitespace() && (next.is_whitespace()));
        // "May 3, 2025" is one date.
        let after_number = at.checked_sub(1).and_then(|at| chars.get(at)).is_some_and(|c| c.is_numeric());
        if matches!(c, ',' | ';') && next == ' ' && words >= CLAUSE_WORDS && !after_number {
            return Some(at + 1);
        }
    }
    None
}

/// Returns the length of the first sentence, or `None` if its end may still be to come.
fn first_sentence(chars: &[char], finished: bool, languages: Languages) -> Option<usize> {
    if let Some(fence) = fence(chars, finished) {
        return fence;
    }
    let too_long = chars.len() > LONGEST;
    let window = chars.get(..LONGEST.min(chars.len())).unwrap_or(chars);
    match scan(window, finished || too_long, languages) {
        Some(len) if len < window.len() || !too_long => Some(len),
        Some(_) => {
            let blank = window.iter().rposition(|c| c.is_whitespace());
            Some(blank.filter(|at| *at > 0).unwrap_or(window.len()))
        }
        None => None,
    }
}

/// Returns the length of a code block at the start, `Some(None)` if its end has not come yet.
fn fence(chars: &[char], finished: bool) -> Option<Option<usize>> {
    let mark = *chars.first().filter(|c| matches!(c, '`' | '~'))?;
    let run = run_length(chars, 0);
    if run < 3 {
        return (run == chars.len() && !finished).then_some(None);
    }
    if run == chars.len() {
        return Some(finished.then_some(run));
    }
    let mut at = run;
    while at < chars.len() {
        let count = if chars.get(at) == Some(&mark) { run_length(chars, at) } else { 0 };
        if count >= run && (finished || at + count < chars.len()) {
            return Some(Some(at + count));
        }
        at += count.max(1);
    }
    Some(finished.then_some(chars.len()))
}

/// Looks for the first end of a sentence. Answers from the start alone stay the same, whatever follows.
fn scan(chars: &[char], finished: bool, languages: Languages) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        match c {
            '\n' => return Some(at + 1),
            // A code block is a sentence of its own.
            '`' if at > 0 && run_length(chars, at) >= 3 => return Some(at),
            '`' | '"' | '“' | '*' | '_' | '(' | '[' | '|' | '~' => match span(chars, at, finished) {
                Span::Closed(end) => {
                    // A quote that ends with a stop may end the sentence.
                    match end_after_span(chars, at, end, finished) {
                        End::Yes => return Some(end),
                        End::Unknown => return None,
                        End::No => at = end,
                    }
                }
                Span::None(len) => at += len,
                Span::Unknown => return None,
            },
            '.' | '!' | '?' | '…' | '。' | '！' | '？' => {
                let end = at + chars.iter().skip(at).take_while(|c| is_stop(**c) || is_closer(**c)).count();
                match end_at(chars, at, end, finished, languages) {
                    End::Yes => return Some(end),
                    End::Unknown => return None,
                    End::No => at = end,
                }
            }
            _ => at += 1,
        }
    }
    finished.then_some(chars.len())
}

fn is_stop(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？')
}

fn is_closer(c: char) -> bool {
    matches!(c, '"' | '”' | '’' | '\'' | ')' | ']' | '»')
}

fn run_length(chars: &[char], at: usize) -> usize {
    let first = chars.get(at);
    chars.iter().skip(at).take_while(|c| Some(*c) == first).count()
}

enum Span {
    /// The span ends before this index.
    Closed(usize),
    /// The character opens nothing; so many characters are passed over.
    None(usize),
    Unknown,
}

/// Finds the end of a quote, bracket, emphasis or inline code that opens at `at`.
fn span(chars: &[char], at: usize, finished: bool) -> Span {
    let Some(open) = chars.get(at).copied() else { return Span::None(1) };
    let run = if matches!(open, '`' | '*' | '_' | '|' | '~') { run_length(chars, at) } else { 1 };
    let Some(next) = chars.get(at + run).copied() else {
        return if finished { Span::None(run) } else { Span::Unknown };
    };
    let before = at.checked_sub(1).and_then(|at| chars.get(at)).copied();
    let opens = before.is_none_or(|c| !c.is_alphanumeric() && !is_stop(c)) || matches!(open, '`' | '“' | '(' | '[');
    let single = matches!(open, '|' | '~') && run < 2;
    if !opens || single || (next.is_whitespace() && open != '`') {
        return Span::None(run);
    }
    let close = match open {
        '“' => '”',
        '(' => ')',
        '[' => ']',
        same => same,
    };
    let crosses_lines = open == '`' && run >= 3;
    let mut index = at + run;
    while let Some(c) = chars.get(index).copied() {
        if (c == '\n' || index - at > LONGEST_SPAN) && !crosses_lines {
            return Span::None(run);
        }
        if c == close {
            let count = if run > 1 || close == open { run_length(chars, index) } else { 1 };
            if index + count >= chars.len() && !finished {
                return Span::Unknown;
            }
            if count >= run {
                return Span::Closed(index + count);
            }
            index += count;
        } else {
            index += 1;
        }
    }
    if finished { Span::None(run) } else { Span::Unknown }
}

/// Whether a sentence ends right after a span, because the span itself ends with a stop.
fn end_after_span(chars: &[char], start: usize, end: usize, finished: bool) -> End {
    let closers = chars.iter().take(end).rev().take_while(|c| !c.is_alphanumeric() && !is_stop(**c)).count();
    let has_stop = end.checked_sub(closers + 1).and_then(|at| chars.get(at)).is_some_and(|c| is_stop(*c));
    if !has_stop || chars.get(start) == Some(&'`') {
        return End::No;
    }
    end_before_capital(chars, end, finished)
}

/// Whether the sentence ends at `end`, after the stop at `stop`.
fn end_at(chars: &[char], stop: usize, end: usize, finished: bool, languages: Languages) -> End {
    let wide = matches!(chars.get(stop), Some('。' | '！' | '？'));
    match chars.get(end) {
        None => return if finished { End::Yes } else { End::Unknown },
        Some(_) if wide => return End::Yes,
        Some(c) if !c.is_whitespace() => return End::No,
        Some('\n') => return End::Yes,
        Some(_) => {}
    }
    let stops = chars.iter().take(end).skip(stop).filter(|c| is_stop(**c)).count();
    let one_period = stops == 1 && chars.get(stop) == Some(&'.');
    let trails_off = !one_period && chars.iter().take(end).skip(stop).all(|c| matches!(c, '.' | '…'));
    if trails_off || end > stop + stops {
        return end_before_capital(chars, end, finished);
    }
    if !one_period {
        return End::Yes;
    }
    let word = word_before(chars, stop);
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let starts_line = stop == word.chars().count();
    if starts_line && !word.is_empty() && (word.chars().all(|c| c.is_ascii_digit()) || letters == 1) {
        return End::No;
    }
    if languages.is_german(chars.get(..stop).unwrap_or_default())
        && let Some(end) = german_end(chars, stop, end, finished, &word)
    {
        return end;
    }
    // A single capital is an initial: J. R. R. Tolkien. "I" ends many a sentence.
    let is_initial = letters == 1 && word.chars().all(char::is_uppercase) && word != "I";
    if is_initial {
        return End::No;
    }
    if is_title(&word) || (matches!(word.as_str(), "Dr" | "St") && !follows_name(chars, stop - 2)) {
        return End::No;
    }
    if is_abbreviation(&word) { end_before_capital(chars, end, finished) } else { End::Yes }
}

/// Whether a German sentence ends at `end`, after `word` with a full stop; `None` where the rules for all texts decide.
fn german_end(chars: &[char], stop: usize, end: usize, finished: bool, word: &str) -> Option<End> {
    let is_number = !word.is_empty() && word.len() <= 3 && word.chars().all(|c| c.is_ascii_digit());
    if is_number || german::may_end_before_starter(word) {
        if chars.iter().skip(end).take_while(|c| c.is_whitespace()).any(|c| *c == '\n') {
            return Some(End::Yes);
        }
        // The next word decides: "am 3. Mai", but "bis 10. Dann".
        let Some(next) = next_word(chars, end, finished) else { return Some(End::Unknown) };
        if german::starts_sentence(&next) {
            return Some(End::Yes);
        }
        let blank = chars.iter().take(stop).rposition(|c| c.is_whitespace()).unwrap_or(0);
        let (earlier, last) = (word_before_last(chars, blank), word_before_last(chars, stop));
        let goes_on = !is_number || german::is_ordinal(&earlier, &last, &next);
        return goes_on.then_some(End::No);
    }
    if german::is_short(word) {
        return Some(End::No);
    }
    german::may_end(word).then(|| end_before_capital(chars, end, finished))
}

/// Returns the word that follows after `end` and blanks, with its full stop; nothing if there is a sign or the end of
/// the text; `None` if it has not come whole yet.
fn next_word(chars: &[char], end: usize, finished: bool) -> Option<String> {
    let blanks = chars.iter().skip(end).take_while(|c| c.is_whitespace()).count();
    let mut word: String = chars.iter().skip(end + blanks).take_while(|c| c.is_alphanumeric()).collect();
    let after = end + blanks + word.chars().count();
    match chars.get(after) {
        None if !finished => return None,
        Some('.') => word.push('.'),
        _ => {}
    }
    Some(word)
}

/// Whether a sentence that may end at `end` does: the next word must not begin with a small letter or a digit.
fn end_before_capital(chars: &[char], end: usize, finished: bool) -> End {
    let blanks = chars.iter().skip(end).take_while(|c| c.is_whitespace()).count();
    if chars.iter().skip(end).take(blanks).any(|c| *c == '\n') {
        return End::Yes;
    }
    match chars.get(end + blanks) {
        None if finished => End::Yes,
        None => End::Unknown,
        Some(c)
            if blanks == 0 || c.is_lowercase() || c.is_numeric() || matches!(c, ',' | ';' | ':' | '—' | '–' | '-') =>
        {
            End::No
        }
        Some(_) => End::Yes,
    }
}

fn word_before(chars: &[char], stop: usize) -> String {
    let from = chars.iter().take(stop).rposition(|c| c.is_whitespace() || matches!(c, '(' | '"' | '“' | '*' | '_'));
    chars.iter().take(stop).skip(from.map_or(0, |at| at + 1)).collect()
}

/// Returns the word before the one that ends at `stop`.
fn word_before_last(chars: &[char], stop: usize) -> String {
    let is_blank = |c: &char| c.is_whitespace();
    let Some(blank) = chars.iter().take(stop).rposition(is_blank) else { return String::new() };
    let end = chars.iter().take(blank).rposition(|c| !is_blank(c)).map_or(0, |last| last + 1);
    word_before(chars, end)
}

/// Whether a capitalised word inside the sentence stands before `at`: "Elm Dr.", but "saw Dr.".
fn follows_name(chars: &[char], at: usize) -> bool {
    let end = chars.iter().take(at).rposition(|c| !c.is_whitespace()).map_or(0, |last| last + 1);
    let word = word_before(chars, end);
    word.chars().count() > 1 && word.chars().count() < end && word.starts_with(char::is_uppercase)
}

/// Abbreviations that a name or a number always follows.
fn is_title(word: &str) -> bool {
    const TITLES: [&str; 25] = [
        "mr", "mrs", "ms", "prof", "mt", "gen", "col", "capt", "lt", "sgt", "sen", "rep", "gov", "rev", "hon", "e.g",
        "i.e", "vs", "cf", "approx", "fig", "figs", "pp", "vol", "ca",
    ];
    TITLES.contains(&word.to_lowercase().as_str())
}

fn is_abbreviation(word: &str) -> bool {
    let lower = format!("{}.", word.to_lowercase());
    let tables = tables();
    let has_dots = word.contains('.') && word.split('.').all(|part| part.chars().count() <= 2);
    let is_month = tables.months.list.iter().any(|month| {
        let word = word.trim_start_matches(char::is_numeric);
        word.len() >= 3 && word.len() <= 4 && word != "May" && month.starts_with(word)
    });
    has_dots
        || is_month
        || matches!(word, "Dr" | "St")
        || tables.abbreviations.contains_key(&lower)
        || (tables.before_number.contains_key(&lower) && lower != "no." && lower != "sec.")
        || (lower == "no." && word == "No")
        || matches!(lower.as_str(), "sept." | "mon." | "tue." | "wed." | "thu." | "fri.")
}
