//! Reads one file into the record.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, bail};
use azera_import::{Format, Found, HEAD_BYTES, ImportedMessage, Ran, ReadError, Role, Source, read};
use azera_memory::{Import, ImportState, Memory, NewImported, RanCommand};
use azera_types::{ChatId, MAX_NAME_CHARS, MAX_TEXT_BYTES, MessageId, PersonId, Text, TimeZone, Timestamp};
use tokio_util::sync::CancellationToken;

use super::author::author_named;
use super::name_of;
use super::report::Report;
use super::target::Target;

/// Messages between two flushes, and between two steps of the progress.
const FLUSH_EVERY: usize = 256;

/// Conversations whose last message is kept, so that the next one follows it.
const MAX_CHATS: usize = 4_096;

/// Most times that the import of one conversation is undone and repeated.
const MAX_GENERATIONS: usize = 1_000;

/// What to do with a conversation whose import was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Somebody asks for it: import it again.
    ImportAgain,
    /// A program asks for it: leave it out.
    LeaveOut,
}

/// One file to import.
#[derive(Debug, Clone)]
pub struct Job {
    pub path: PathBuf,
    /// The format; `None` finds out.
    pub format: Option<Format>,
    pub target: Target,
    /// The name of the importing person's account in the file, or its id.
    pub me: Option<String>,
    /// The zone of times without one.
    pub zone: TimeZone,
    pub dry_run: bool,
    pub undone: Known,
}

impl Job {
    /// Returns the file's name, for people.
    pub fn file_name(&self) -> String {
        name_of(&self.path).unwrap_or_default()
    }
}

/// Imports a file. What was imported stays if the rest fails; the report then says so.
///
/// # Errors
///
/// Fails if the file cannot be opened, is of no known format, or if the record fails.
pub fn import_file(
    memory: &Memory,
    job: &Job,
    stop: &CancellationToken,
    progress: &dyn Fn(u64, u64),
    now: Timestamp,
) -> anyhow::Result<Report> {
    let named = || format!("reading {}", job.path.display());
    let path = job.path.canonicalize().with_context(named)?;
    let mut file = File::open(&path).with_context(named)?;
    let bytes = file.metadata().with_context(named)?.len();
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head).with_context(named)?;
    let Some(format) = job.format.or_else(|| Format::of(&head)) else {
        bail!(
            "{} is no export that Azera knows; --format names one, and an archive must be unpacked first",
            job.path.display()
        );
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let source = Source { format, stem, zone: job.zone.clone() };
    let me = match &job.me {
        Some(me) => author_named(&source, BufReader::new(File::open(&path).with_context(named)?), me, stop)?,
        None => None,
    };
    let done = Cell::new(0);
    let input = BufReader::with_capacity(HEAD_BYTES, Counted { input: head.as_slice().chain(file), done: &done });
    let target = &job.target;
    let import = Import {
        id: target.import_id(format, &path),
        by: target.person.id.clone(),
        persona: target.persona.clone(),
        scope: target.scope(),
        file: name_of(&path)?,
        format: format.name().to_owned(),
        // People play somebody else there.
        learns: format != Format::SillyTavern,
    };
    let report = Report {
        file: import.file.clone(),
        format: format.name(),
        id: import.id.clone(),
        dry_run: job.dry_run,
        ..Report::default()
    };
    let mut writer = Writer {
        memory,
        job,
        format,
        import,
        now,
        report,
        me,
        chats: HashMap::new(),
        last: HashMap::new(),
        unflushed: 0,
        failure: None,
    };
    let mut step = 0_usize;
    let ended = read(&source, input, &mut |found| {
        step += 1;
        if step.is_multiple_of(FLUSH_EVERY) {
            progress(done.get(), bytes);
        }
        writer.take(found, stop)
    });
    writer.finish(ended)
}

/// Counts the bytes that are read.
struct Counted<'a, R> {
    input: R,
    done: &'a Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.done.set(self.done.get() + read as u64);
        Ok(read)
    }
}

/// A conversation in the record.
#[derive(Clone)]
struct ChatOfImport {
    id: ChatId,
    generation: usize,
}

/// Takes what is read, and writes it.
struct Writer<'a> {
    memory: &'a Memory,
    job: &'a Job,
    format: Format,
    import: Import,
    now: Timestamp,
    report: Report,
    /// The importing person's id in the source, if the source does not mark their words itself.
    me: Option<String>,
    /// The chats of conversations by their ids in the source; `None` for those that were forgotten.
    chats: HashMap<String, Option<ChatOfImport>>,
    /// The last message of each chat, and its time.
    last: HashMap<ChatId, (MessageId, Timestamp)>,
    unflushed: usize,
    failure: Option<anyhow::Error>,
}

impl Writer<'_> {
    fn take(&mut self, found: Found, stop: &CancellationToken) -> ControlFlow<()> {
        if stop.is_cancelled() {
            self.report.interrupted = true;
            return ControlFlow::Break(());
        }
        match found {
            Found::LeftOut(reason) => *self.report.left_out.entry(reason).or_default() += 1,
            Found::Flaw(flaw) => self.report.flaw(flaw),
            Found::Message(message) => return self.or_fail(|writer| writer.message(&message)),
            Found::Ran(ran) => return self.or_fail(|writer| writer.ran(ran)),
        }
        ControlFlow::Continue(())
    }

    fn or_fail(&mut self, work: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> ControlFlow<()> {
        match work(self) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn finish(mut self, ended: Result<(), ReadError>) -> anyhow::Result<Report> {
        if !self.job.dry_run {
            self.memory.imports().flush()?;
        }
        if let Some(failure) = self.failure {
            return Err(failure).with_context(|| {
                format!("importing {}; {} messages were imported", self.report.file, self.report.added)
            });
        }
        self.report.broken = ended.err().map(|error| error.to_string());
        Ok(self.report)
    }

    fn message(&mut self, message: &ImportedMessage) -> anyhow::Result<()> {
        let Some(ChatOfImport { id: chat, generation }) = self.chat(&message.chat.id)? else {
            self.report.forgotten += 1;
            return Ok(());
        };
        let before = self.last.get(&chat).cloned();
        // A message without a time was said after the one before it.
        let Some(at) = message.at.or_else(|| before.as_ref().map(|(_, at)| *at)) else {
            let why = "the message has no time that can be read, and none comes before it".to_owned();
            self.report.flaw(azera_import::Flaw { position: message.position, why });
            return Ok(());
        };
        let (id, state) = self.message_state(&message.chat.id, &message.id, generation)?;
        let text = Text::new(&message.text);
        let (person, name) = self.author(message)?;
        let (title, after) = (message.chat.title.clone(), before.map(|(id, _)| id));
        let new = NewImported { id: id.clone(), chat: chat.clone(), title, after, person, name, text, at };
        let state = if self.job.dry_run || state != ImportState::New {
            state
        } else {
            self.memory.imports().add(&self.import, new, self.now)?
        };
        match state {
            ImportState::New => {
                self.report.added += 1;
                self.report.cut += usize::from(message.text.len() > MAX_TEXT_BYTES);
                self.report.chats.insert(chat.clone());
            }
            ImportState::Kept => self.report.known += 1,
            ImportState::Forgotten | ImportState::Undone => self.report.forgotten += 1,
        }
        if self.last.len() >= MAX_CHATS && !self.last.contains_key(&chat) {
            self.last.clear();
        }
        self.last.insert(chat, (id, at));
        self.unflushed += 1;
        if self.unflushed >= FLUSH_EVERY && !self.job.dry_run {
            self.unflushed = 0;
            self.memory.imports().flush()?;
        }
        Ok(())
    }

    /// Adds what was run for a message, if the message is kept.
    fn ran(&mut self, ran: Ran) -> anyhow::Result<()> {
        let Some(ChatOfImport { id: chat, generation }) = self.chat(&ran.chat.id)? else { return Ok(()) };
        let (id, state) = self.message_state(&ran.chat.id, &ran.message, generation)?;
        if self.job.dry_run {
            self.report.commands += if state == ImportState::New { ran.commands.len() } else { 0 };
            return Ok(());
        }
        if state != ImportState::Kept {
            return Ok(());
        }
        let before = self.last.get(&chat).map(|(_, at)| *at);
        let command = |command: azera_import::RanCommand| {
            let at = command.at.or(before)?;
            Some(RanCommand { id: command.id, text: Text::new(&command.text), worked: command.worked, at })
        };
        let commands = ran.commands.into_iter().filter_map(command).collect();
        self.report.commands += self.memory.imports().ran(&self.import, &id, commands)?;
        Ok(())
    }

    /// Returns the chat of a conversation; `None` if it was forgotten.
    fn chat(&mut self, conversation: &str) -> anyhow::Result<Option<ChatOfImport>> {
        if let Some(known) = self.chats.get(conversation) {
            return Ok(known.clone());
        }
        let mut found = None;
        for generation in 0..MAX_GENERATIONS {
            let id = self.job.target.chat_id(self.format, conversation, generation)?;
            match self.memory.imports().chat_state(&id)? {
                ImportState::New | ImportState::Kept => {
                    found = Some(ChatOfImport { id, generation });
                    break;
                }
                ImportState::Undone if self.job.undone == Known::ImportAgain => {}
                ImportState::Undone | ImportState::Forgotten => break,
            }
        }
        if self.chats.len() >= MAX_CHATS {
            self.chats.clear();
        }
        self.chats.insert(conversation.to_owned(), found.clone());
        Ok(found)
    }

    /// Returns a message's id, and what is there of it. An undo gives messages new ids, so a message that is kept or was
    /// forgotten under an earlier id counts under that one. New messages get an id of the chat's generation, or a later
    /// one.
    fn message_state(
        &self,
        conversation: &str,
        message: &str,
        chat_generation: usize,
    ) -> anyhow::Result<(MessageId, ImportState)> {
        for generation in 0..MAX_GENERATIONS {
            let id = self.job.target.message_id(self.format, conversation, message, generation)?;
            match self.memory.imports().message_state(&id)? {
                ImportState::New if generation < chat_generation => {}
                ImportState::Undone if self.job.undone == Known::ImportAgain => {}
                state => return Ok((id, state)),
            }
        }
        bail!("a message's import was undone {MAX_GENERATIONS} times");
    }

    /// Returns who said a message. Only the importing person's own words are theirs.
    fn author(&self, message: &ImportedMessage) -> anyhow::Result<(PersonId, String)> {
        let target = &self.job.target;
        let author = &message.author;
        let own = match message.role {
            Role::Owner => true,
            Role::Person => self.me.as_ref() == Some(&author.id),
            Role::Assistant => false,
        };
        if own {
            return Ok((target.person.id.clone(), target.person.name.clone()));
        }
        Ok((target.speaker_id(self.format, author)?, shown_name(&author.name)))
    }
}

/// Returns a name without line breaks and other control characters. Names stand at the beginning of lines in prompts.
fn shown_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let short: String = plain.trim().chars().take(MAX_NAME_CHARS).collect();
    if short.is_empty() { "Somebody".to_owned() } else { short }
}
