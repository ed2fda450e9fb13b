use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azera_adapter::{
    Access, AnswerFile, Making, Outbound, PictureProgress, Platform, PlatformError, StreamEvent, Streaming, answered,
};
use azera_types::{
    ChatId, Clock, IdError, MessageId, PersonId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Timestamp,
};
use tokio::sync::Notify;

use crate::format::{View, printable};
use crate::inline::InlinePictures;
use crate::saved::save;
use crate::shown::Shown;
use crate::{Format, Person, owner};

/// The platform's name, and the first part of every id it creates.
pub const PLATFORM: &str = "console";

/// The realm of everyone at this machine.
pub const REALM: &str = "local";

/// The terminal as a platform.
pub struct Console {
    id: PlatformId,
    realm: RealmId,
    clock: Arc<dyn Clock>,
    operator: Person,
    state: Mutex<State>,
    broken: Notify,
}

struct State {
    speaker: Person,
    /// True if a program reads the output: it gets replies to everyone, each with its chat, not only those to the
    /// speaker.
    hears_all: bool,
    view: Box<dyn View>,
    shown: Shown,
    /// Pictures whose drawing was told above a line that is being typed.
    told: Shown,
    /// True if the person hid the rest of the running turn.
    muted: bool,
    /// The running turn of each chat, if it has one.
    turns: HashMap<ChatId, RunningTurn>,
    /// Prints text above the line that is being typed.
    above_prompt: Option<SyncSender<String>>,
    /// True while a line is being typed.
    at_prompt: bool,
    /// How the terminal shows pictures, if it does.
    inline: Option<InlinePictures>,
    /// The first write error.
    broken: Option<io::Error>,
}

/// A turn that the person waits for.
struct RunningTurn {
    /// The message; `None` for a command.
    message: Option<MessageId>,
    /// True if an error of its reply was shown.
    had_error: bool,
}

impl Console {
    /// Creates a console for `operator`. Replies go to `out`; in [`Format::Plain`], errors go to `err`.
    pub fn new(
        operator: Person,
        format: Format,
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, IdError> {
        let state = State {
            speaker: operator.clone(),
            hears_all: format == Format::Json,
            view: format.view(out, err),
            shown: Shown::default(),
            told: Shown::default(),
            muted: false,
            turns: HashMap::new(),
            above_prompt: None,
            at_prompt: false,
            inline: None,
            broken: None,
        };
        Ok(Self {
            id: PlatformId::new(PLATFORM)?,
            realm: RealmId::new(REALM)?,
            clock,
            operator,
            state: Mutex::new(state),
            broken: Notify::new(),
        })
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Returns the person who speaks now.
    pub(crate) fn speaker(&self) -> Person {
        self.lock().speaker.clone()
    }

    pub(crate) fn set_speaker(&self, person: Person) {
        self.lock().speaker = person;
    }

    pub(crate) fn set_above_prompt(&self, printer: SyncSender<String>) {
        self.lock().above_prompt = Some(printer);
    }

    /// Shows pictures within the terminal from now on, besides their paths.
    pub fn show_pictures(&self, inline: InlinePictures) {
        self.lock().inline = Some(inline);
    }

    pub(crate) fn set_at_prompt(&self, at_prompt: bool) {
        self.lock().at_prompt = at_prompt;
    }

    /// Returns true if replies to everyone are shown, so that people may talk at the same time.
    pub(crate) fn hears_all(&self) -> bool {
        self.lock().hears_all
    }

    /// Starts the turn of a message or of a command in a chat: shows its replies and its errors.
    pub(crate) fn begin_turn(&self, chat: &ChatId, message: Option<&MessageId>) {
        let mut state = self.lock();
        state.muted = false;
        state.turns.insert(chat.clone(), RunningTurn { message: message.cloned(), had_error: false });
    }

    /// Returns true if a turn is running in a chat.
    pub(crate) fn in_turn(&self, chat: &ChatId) -> bool {
        self.lock().turns.contains_key(chat)
    }

    /// Ends the turn in a chat; returns true if it showed an error.
    pub(crate) fn end_turn(&self, chat: &ChatId) -> bool {
        self.lock().turns.remove(chat).is_some_and(|turn| turn.had_error)
    }

    /// Hides the rest of the running turn; returns false if it is hidden already.
    pub(crate) fn mute(&self) -> bool {
        !std::mem::replace(&mut self.lock().muted, true)
    }

    /// Shows something through the view.
    pub(crate) fn show(&self, act: impl FnOnce(&mut dyn View) -> io::Result<()>) -> io::Result<()> {
        act(&mut *self.lock().view)
    }

    /// Waits for a write error and returns it.
    pub(crate) async fn output_broken(&self) -> io::Error {
        loop {
            self.broken.notified().await;
            if let Some(e) = self.take_broken() {
                return e;
            }
        }
    }

    /// Takes the write error, if there was one.
    pub(crate) fn take_broken(&self) -> Option<io::Error> {
        self.lock().broken.take()
    }

    fn note_broken(&self, state: &mut State, error: io::Error) {
        state.broken.get_or_insert(error);
        self.broken.notify_one();
    }

    /// Saves the files of a reply. Shows pictures where the terminal can, and the paths.
    fn show_files(&self, state: &mut State, outbound: &Outbound) -> Result<(), PlatformError> {
        // The folder is new, so a second delivery needs another one; each is unique by the time.
        let name = format!("azera-{}-{}", outbound.id, self.clock.now().as_millisecond());
        let refused = |error: io::Error| PlatformError::Refused(format!("a file could not be saved: {error}"));
        let paths = save(&outbound.files, &name).map_err(refused)?;
        for (file, path) in outbound.files.iter().zip(paths) {
            let picture = state.inline.and_then(|inline| inline.written(&file.content.0));
            let above = state.above_prompt.as_ref().filter(|_| state.at_prompt);
            match above {
                Some(printer) => {
                    let picture = picture.map_or_else(String::new, |picture| format!("{picture}\r\n"));
                    let line = format!("{picture}({})", path.display());
                    printer
                        .try_send(line)
                        .map_err(|_| PlatformError::Transient("too much waits to be shown".into()))?;
                }
                None => {
                    if let Err(e) = state.view.file(&outbound.chat, &path, picture.as_deref()) {
                        self.note_broken(state, e);
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows the files of an answer, which were saved there.
    pub(crate) fn show_answer_files(&self, chat: &ChatId, files: &[(&AnswerFile, PathBuf)]) -> io::Result<()> {
        let mut state = self.lock();
        for (file, path) in files {
            let picture = state.inline.and_then(|inline| inline.written(&file.content.0));
            state.view.file(chat, path, picture.as_deref())?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Platform for Console {
    fn id(&self) -> &PlatformId {
        &self.id
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        let mine = owner(chat).filter(|owner| owner == asker);
        Ok(mine.map(|owner| Place { chat: chat.clone(), kind: PlaceKind::Dm(owner), since: None }))
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        Ok(owner(chat).map(|owner| Place { chat: chat.clone(), kind: PlaceKind::Dm(owner), since: None }))
    }

    /// Every person of the console belongs to the realm of this machine.
    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        let local = person.as_str().strip_prefix(PLATFORM).is_some_and(|rest| rest.starts_with(':'));
        let realms = if local { vec![(self.realm.clone(), None)] } else { Vec::new() };
        Ok(ReadableScopes { realms, ..ReadableScopes::default() })
    }

    /// The person at the machine is the operator; people who speak through them manage their own chats.
    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        Ok(if *person == self.operator.id {
            Access::Operator
        } else if owner(chat).as_ref() == Some(person) {
            Access::Admin
        } else {
            Access::Member
        })
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        let Some(owner) = owner(&outbound.chat) else {
            return Err(PlatformError::Refused(format!("{} is no chat of the console", outbound.chat)));
        };
        let mut state = self.lock();
        if state.shown.contains(&outbound.id) {
            return Ok(());
        }
        if owner != state.speaker.id && !state.hears_all {
            return Err(PlatformError::Transient(format!("{owner} is not at the terminal")));
        }
        if state.at_prompt
            && let Some(printer) = &state.above_prompt
        {
            let text = state.view.reply_text(outbound);
            printer.try_send(text).map_err(|_| PlatformError::Transient("too much waits to be shown".into()))?;
        } else if !state.muted
            && let Err(e) = state.view.reply(outbound)
        {
            let refusal = PlatformError::Transient(e.to_string());
            self.note_broken(&mut state, e);
            return Err(refusal);
        }
        state.shown.insert(&outbound.id);
        self.show_files(&mut state, outbound)
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        let mut state = self.lock();
        if owner(&outbound.chat).as_ref() != Some(&state.speaker.id) {
            return Err(PlatformError::Refused(format!("{} is not the speaker's chat", outbound.chat)));
        }
        if let Err(e) = state.view.reply_again(outbound) {
            let refusal = PlatformError::Transient(e.to_string());
            self.note_broken(&mut state, e);
            return Err(refusal);
        }
        state.shown.insert(&outbound.id);
        Ok(())
    }

    /// A terminal cannot retract its output; the reply is only marked as shown.
    async fn retract(&self, _chat: &ChatId, reply: &MessageId, _at: Timestamp) -> Result<(), PlatformError> {
        self.lock().shown.insert(reply);
        Ok(())
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }
}

#[async_trait]
impl Streaming for Console {
    async fn event(&self, Making { chat, reply, .. }: Making<'_>, event: &StreamEvent) {
        let mut state = self.lock();
        let seen = owner(chat).is_some_and(|owner| owner == state.speaker.id || state.hears_all);
        if !seen || state.muted || state.at_prompt || state.shown.contains(reply) {
            return;
        }
        // Another message of the chat may be tried again meanwhile.
        if matches!(event, StreamEvent::Error { .. })
            && !state.view.names_failed_messages()
            && let Some(turn) = state.turns.get_mut(chat).filter(|turn| turn.message == answered(reply))
        {
            turn.had_error = true;
        }
        if let Err(e) = state.view.event(chat, reply, event) {
            self.note_broken(&mut state, e);
        }
    }

    async fn progress(&self, Making { chat, reply, .. }: Making<'_>, progress: PictureProgress<'_>) {
        let text = progress.text;
        let mut state = self.lock();
        let seen = owner(chat).is_some_and(|owner| owner == state.speaker.id || state.hears_all);
        if !seen || state.muted || state.shown.contains(reply) {
            return;
        }
        if state.at_prompt {
            // Once: every further line would push the typed one away. The picture itself says that it is done.
            let is_new = !state.told.contains(reply);
            let line = printable(text).replace('\n', "  ");
            if is_new && state.above_prompt.as_ref().is_some_and(|printer| printer.try_send(line).is_ok()) {
                state.told.insert(reply);
            }
            return;
        }
        if let Err(e) = state.view.progress(chat, reply, text) {
            self.note_broken(&mut state, e);
        }
    }
}

#[cfg(test)]
mod tests {
    use azera_adapter::State as Mind;
    use azera_types::{ManualClock, PersonaId};

    use super::*;
    use crate::chat_id;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn terminal() -> (Console, Shared, Outbound) {
        let out = Shared::default();
        let ann = Person::new("ann").unwrap();
        let outbound = Outbound {
            id: MessageId::new("r").unwrap(),
            chat: chat_id(&ann.id, "main").unwrap(),
            persona: PersonaId::new("azera").unwrap(),
            persona_name: "Azera".into(),
            text: "one two".into(),
            reply_to: None,
            asker: None,
            state: Mind::default(),
            help: String::new(),
            files: Vec::new(),
            can_upscale: false,
        };
        let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
        let format = Format::Terminal { colour: false };
        (Console::new(ann, format, Box::new(out.clone()), Box::new(io::sink()), clock).unwrap(), out, outbound)
    }

    fn text(out: &Shared) -> String {
        String::from_utf8(out.0.lock().unwrap().clone()).unwrap()
    }

    #[tokio::test]
    async fn a_reply_hidden_halfway_stays_hidden() {
        let (console, out, outbound) = terminal();
        console.begin_turn(&outbound.chat, None);
        let piece = |text: &str| StreamEvent::Content { text: text.into() };
        let making = Making {
            chat: &outbound.chat,
            reply: &outbound.id,
            persona: &outbound.persona,
            persona_name: &outbound.persona_name,
            asker: None,
            is_help: false,
        };
        console.event(making, &piece("one")).await;
        assert!(console.mute());
        assert!(!console.mute(), "asked twice");
        console.event(making, &piece(" two")).await;
        console.deliver(&outbound).await.unwrap();
        console.begin_turn(&outbound.chat, None);
        console.deliver(&outbound).await.unwrap();
        assert_eq!(text(&out), "› one");
    }

    #[tokio::test]
    async fn a_reply_chosen_again_is_shown_again() {
        let (console, out, outbound) = terminal();
        console.deliver(&outbound).await.unwrap();
        console.show_again(&outbound).await.unwrap();
        console.deliver(&outbound).await.unwrap();
        assert_eq!(text(&out), "Azera › one two\nAzera › one two\n");
        console.set_speaker(Person::new("bob").unwrap());
        assert!(console.show_again(&outbound).await.is_err());
    }

    #[tokio::test]
    async fn a_picture_is_shown_where_the_terminal_can_and_its_path_everywhere() {
        let picture = azera_model_image::Picture::from_rgb(4, 4, vec![9; 4 * 4 * 3]).unwrap().to_png(&[]).unwrap();
        let part = azera_types::Part::new("boat.png", Some("image/png"), picture.len() as u64);
        let file = AnswerFile { part, content: azera_adapter::FileContent(picture) };
        for inline in [None, Some(InlinePictures::Kitty)] {
            let (console, out, mut outbound) = terminal();
            outbound.id = MessageId::new(format!("picture-{}", uuid::Uuid::now_v7())).unwrap();
            outbound.files = vec![file.clone()];
            if let Some(inline) = inline {
                console.show_pictures(inline);
            }
            console.deliver(&outbound).await.unwrap();
            let shown = text(&out);
            assert_eq!(shown.contains("\u{1b}_Ga=T"), inline.is_some(), "{shown}");
            let path = shown.lines().last().unwrap();
            assert!(path.ends_with("boat.png") && std::path::Path::new(path).is_file(), "{shown}");
            std::fs::remove_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        }
    }

    #[tokio::test]
    async fn the_drawing_of_a_picture_is_told_once_above_a_line_that_is_being_typed() {
        let (console, out, outbound) = terminal();
        let (above, shown) = std::sync::mpsc::sync_channel(8);
        console.set_above_prompt(above);
        console.set_at_prompt(true);
        let (chat, reply, persona) = (&outbound.chat, &outbound.id, &outbound.persona);
        let making = Making { chat, reply, persona, persona_name: "Azera", asker: None, is_help: false };
        for text in ["🎨 a boat\nI begin … (0 s)", "🎨 a boat\n▰▱ step 1 of 2"] {
            console.progress(making, PictureProgress { since: Timestamp::UNIX_EPOCH, text, preview: None }).await;
        }
        assert_eq!(shown.try_recv().as_deref(), Ok("🎨 a boat  I begin … (0 s)"));
        assert!(shown.try_recv().is_err());
        console.deliver(&outbound).await.unwrap();
        assert_eq!(shown.try_recv().as_deref(), Ok("Azera › one two"), "it is done");
        assert_eq!(text(&out), "");
    }

    #[tokio::test]
    async fn a_reply_goes_above_a_line_that_is_being_typed() {
        let (console, out, outbound) = terminal();
        let (above, shown) = std::sync::mpsc::sync_channel(1);
        console.set_above_prompt(above);
        console.set_at_prompt(true);
        console.deliver(&outbound).await.unwrap();
        let second = Outbound { id: MessageId::new("r2").unwrap(), ..outbound };
        assert!(console.deliver(&second).await.unwrap_err().is_transient(), "the queue has room for one reply");
        assert_eq!(shown.try_recv().as_deref(), Ok("Azera › one two"));
        assert_eq!(text(&out), "");
        console.set_at_prompt(false);
        console.deliver(&second).await.unwrap();
        assert_eq!(text(&out), "Azera › one two\n");
    }
}
