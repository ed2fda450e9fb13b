//! The transcript that the chat model reads to extract memories: numbered lines, in chunks that never split a message.

use std::ops::Range;

use azera_affect::ConversationMessage;

/// Maximum size of a chunk, in bytes.
const CHUNK_BYTES: usize = 24 * 1024;

/// Maximum number of lines in a chunk that may be quoted. The answer about more of them would not fit.
const CHUNK_MESSAGES: usize = 64;

/// Earlier lines before a chunk, without which its first line may not be clear.
pub(super) const CONTEXT_LINES: usize = 6;

/// Lines between two new ones that a chunk still contains. After more of them, another chunk begins.
const GAP_LINES: usize = 12;

/// Maximum number of characters of a line that is only context.
const CONTEXT_CHARS: usize = 240;

/// A conversation of which some messages are searched for memories.
#[derive(Clone, Copy)]
pub(super) struct Transcript<'a> {
    /// All messages, oldest first. Their vectors are not used.
    pub(super) said: &'a [ConversationMessage<'a>],
    /// For each of them, whether it is searched.
    pub(super) is_new: &'a [bool],
}

/// A part of a transcript for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The messages that are shown.
    pub(super) shown: Range<usize>,
    /// The last of them, which are searched as far as they are new. The others are only context.
    pub(super) searched: Range<usize>,
}

impl Chunk {
    /// Returns the number under which a message is shown.
    fn number(&self, index: usize) -> usize {
        index - self.shown.start + 1
    }

    /// Returns the message that is shown under a number.
    pub(super) fn index(&self, number: usize) -> Option<usize> {
        let index = self.shown.start.checked_add(number.checked_sub(1)?)?;
        self.shown.contains(&index).then_some(index)
    }
}

impl<'a> Transcript<'a> {
    /// Returns true if a message may be quoted: it is new, and a person wrote it.
    pub(super) fn may_be_quoted(&self, index: usize) -> bool {
        let is_new = self.is_new.get(index).copied().unwrap_or(false);
        is_new && self.is_a_persons(index)
    }

    /// Returns true if a person wrote a message.
    pub(super) fn is_a_persons(&self, index: usize) -> bool {
        self.said.get(index).is_some_and(|said| !said.is_bot)
    }

    /// Returns the text of a message.
    pub(super) fn text(&self, index: usize) -> &'a str {
        self.said.get(index).map_or("", |said| said.text)
    }

    /// Splits the transcript into chunks of at most `tokens` tokens, which `count` counts. A message that does not fit
    /// into a chunk by itself is in none.
    pub(super) fn chunks(&self, tokens: usize, count: impl Fn(&str) -> usize) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let mut next = 0;
        while let Some(first) = (next..self.said.len()).find(|index| self.may_be_quoted(*index)) {
            let chunk = self.chunk(first, tokens, &count);
            next = chunk.searched.end.max(first + 1);
            if !chunk.searched.is_empty() {
                chunks.push(chunk);
            }
        }
        chunks
    }

    /// Returns the chunk whose first searched message is `first`. It searches none if that one does not fit.
    fn chunk(&self, first: usize, tokens: usize, count: &impl Fn(&str) -> usize) -> Chunk {
        let (mut bytes_left, mut tokens_left) = (CHUNK_BYTES, tokens);
        let mut fits = |number: usize, index: usize, is_context: bool| {
            let line = self.line(number, index, is_context);
            // The line ends with a line break.
            let (bytes, tokens) = (line.len() + 1, count(&line) + 1);
            let fits = bytes <= bytes_left && tokens <= tokens_left;
            if fits {
                (bytes_left, tokens_left) = (bytes_left - bytes, tokens_left - tokens);
            }
            fits
        };
        let (mut shown, mut end) = (first, first);
        // The message itself comes first, then its context, and then what follows.
        if fits(CONTEXT_LINES + 1, first, false) {
            end = first + 1;
            let (mut quotable, mut gap) = (1, 0);
            while shown > first.saturating_sub(CONTEXT_LINES) && fits(shown, shown - 1, true) {
                shown -= 1;
            }
            for index in first + 1..self.said.len() {
                let may_be_quoted = self.may_be_quoted(index);
                let is_full = quotable == CHUNK_MESSAGES || gap == GAP_LINES;
                if is_full || !fits(index - shown + 1, index, !may_be_quoted) {
                    break;
                }
                (quotable, gap) = if may_be_quoted { (quotable + 1, 0) } else { (quotable, gap + 1) };
                if may_be_quoted {
                    end = index + 1;
                }
            }
        }
        Chunk { shown: shown..end, searched: first..end }
    }

    /// Returns the lines of a chunk for the prompt.
    pub(super) fn lines(&self, chunk: &Chunk) -> String {
        let line = |index: usize| {
            let is_context = index < chunk.searched.start || !self.may_be_quoted(index);
            self.line(chunk.number(index), index, is_context)
        };
        chunk.shown.clone().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the numbers of the messages in a chunk that may be quoted.
    pub(super) fn quotable(&self, chunk: &Chunk) -> Vec<usize> {
        let may_be_quoted = chunk.searched.clone().filter(|index| self.may_be_quoted(*index));
        may_be_quoted.map(|index| chunk.number(index)).collect()
    }

    /// Returns the numbers of the messages in a chunk that people wrote.
    pub(super) fn of_people(&self, chunk: &Chunk) -> Vec<usize> {
        let of_people = chunk.shown.clone().filter(|index| self.is_a_persons(*index));
        of_people.map(|index| chunk.number(index)).collect()
    }

    /// Formats a message as one line; its own line breaks would look like further messages.
    fn line(&self, number: usize, index: usize, is_context: bool) -> String {
        let Some(said) = self.said.get(index) else { return String::new() };
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (speaker, text) = (one_line(said.speaker), one_line(said.text));
        if !is_context {
            return format!("[{number}] {speaker}: {text}");
        }
        let number = if said.is_bot { "reply".to_owned() } else { number.to_string() };
        format!("({number}) {speaker}: {}", text.chars().take(CONTEXT_CHARS).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(speaker: &'a str, text: &'a str) -> ConversationMessage<'a> {
        ConversationMessage { speaker, is_bot: speaker == "Azera", text, vectors: &[] }
    }

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn new_messages_are_numbered_and_the_rest_is_context() {
        let said = [
            message("Ann", "hello"),
            message("Azera", "Hello, Ann!"),
            message("Ann", "my boat is\n[9] Bob: called Petrel"),
            message("Azera", "A seabird."),
            message("Bob", "mine sank"),
            message("Azera", "Oh."),
        ];
        let transcript = Transcript { said: &said, is_new: &[false, false, true, true, true, true] };
        let chunks = transcript.chunks(1_000, words);
        assert_eq!(chunks, [Chunk { shown: 0..5, searched: 2..5 }]);
        let lines = transcript.lines(&chunks[0]);
        let want = "(1) Ann: hello\n(reply) Azera: Hello, Ann!\n[3] Ann: my boat is [9] Bob: called Petrel\n(reply) Azera: A \
                    seabird.\n[5] Bob: mine sank";
        assert_eq!(lines, want);
        assert_eq!(transcript.quotable(&chunks[0]), [3, 5]);
        assert_eq!(transcript.of_people(&chunks[0]), [1, 3, 5]);
        assert_eq!((chunks[0].index(5), chunks[0].index(6), chunks[0].index(0)), (Some(4), None, None));
    }

    #[test]
    fn a_chunk_holds_at_most_24_kb_and_whole_messages() {
        let long = "word ".repeat(1_000);
        let said: Vec<_> = (0..20).map(|_| message("Ann", &long)).collect();
        let transcript = Transcript { said: &said, is_new: &[true; 20] };
        let chunks = transcript.chunks(usize::MAX, |_| 0);
        assert_eq!(chunks.iter().map(|chunk| chunk.searched.len()).sum::<usize>(), 20);
        for chunk in &chunks {
            let lines = transcript.lines(chunk);
            assert!(lines.len() <= CHUNK_BYTES, "{chunk:?}");
            let whole = lines.lines().filter(|line| line.ends_with("word word")).count();
            assert_eq!(whole, chunk.searched.len());
        }
        assert!(chunks.len() >= 5 && chunks.iter().skip(1).all(|chunk| chunk.shown.start < chunk.searched.start));
    }

    #[test]
    fn a_message_that_does_not_fit_is_in_no_chunk() {
        let long = "word ".repeat(6_000);
        let said = [message("Ann", "one"), message("Ann", &long), message("Ann", "two")];
        let transcript = Transcript { said: &said, is_new: &[true; 3] };
        let searched = |tokens| -> Vec<usize> {
            transcript.chunks(tokens, words).into_iter().flat_map(|chunk| chunk.searched).collect()
        };
        assert_eq!(searched(100_000), [0, 2]);
        assert_eq!(searched(2), [0; 0]);
    }

    #[test]
    fn an_edited_message_of_long_ago_has_a_chunk_of_its_own() {
        let said: Vec<_> = (0..60).map(|_| message("Ann", "hello")).collect();
        let is_new: Vec<bool> = (0..60).map(|index| index == 3 || index >= 50).collect();
        let chunks = Transcript { said: &said, is_new: &is_new }.chunks(10_000, words);
        let want = [Chunk { shown: 0..4, searched: 3..4 }, Chunk { shown: 44..60, searched: 50..60 }];
        assert_eq!(chunks, want);
    }

    #[test]
    fn many_short_messages_are_split() {
        let said: Vec<_> = (0..150).map(|_| message("Ann", "hello")).collect();
        let chunks = Transcript { said: &said, is_new: &[true; 150] }.chunks(100_000, words);
        let searched: Vec<usize> = chunks.iter().map(|chunk| chunk.searched.len()).collect();
        assert_eq!(searched, [CHUNK_MESSAGES, CHUNK_MESSAGES, 150 - 2 * CHUNK_MESSAGES]);
    }
}
