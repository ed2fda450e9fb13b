//! Which captions are about to be posted. After a crash between a post and its entry in the log, the next start finds the
//! message again: see [`VoiceCalls::recover_captions`].
//!
//! It is kept on disk, a file for each thread, and holds ids alone.

use std::path::{Path, PathBuf};

use azera_types::MessageId;
use serde::{Deserialize, Serialize};
use serenity::all::{ChannelId, GetMessages, Http, Message, MessageId as ShownId};

use super::VoiceCalls;
use super::board::is_caption;
use super::log::Posted;
use crate::error::{Failure, failure, in_words};

/// Most posts of a thread whose outcome is unknown.
const MAX_OPEN: usize = 20;

/// Messages of a thread that are asked for at a time, and how often, after a crash.
const PAGE: u8 = 100;
const MAX_PAGES: usize = 10;

/// A message that is about to be posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    /// The voice channel, and the thread.
    pub(super) voice: ChannelId,
    /// See `voice`.
    pub(super) thread: ChannelId,
    /// The mark by which Discord posts it only once.
    pub(super) nonce: String,
    /// A message of the thread that is older.
    pub(super) after: ShownId,
    /// What each line shows.
    pub(super) lines: Vec<MessageId>,
}

/// The messages that are about to be posted.
pub(in crate::voice) struct Intents {
    folder: PathBuf,
    /// Those of an earlier process that are not looked for yet.
    left: Vec<Intent>,
    /// Those that were not found, and may stand there all the same. The next start looks for them again.
    kept: Vec<Intent>,
}

impl Intents {
    /// Opens the files in a folder. A damaged one counts as missing.
    pub(in crate::voice) fn open(folder: &Path) -> Self {
        let folder = folder.join("discord-captions").join("next");
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let read = |path: PathBuf| serde_json::from_slice::<Vec<Intent>>(&std::fs::read(path).ok()?).ok();
        let left = files.filter_map(|file| read(file.path())).flatten().collect();
        Self { folder, left, kept: Vec::new() }
    }

    fn path(&self, thread: ChannelId) -> PathBuf {
        self.folder.join(format!("{thread}.json"))
    }

    fn read(&self, thread: ChannelId) -> Vec<Intent> {
        std::fs::read(self.path(thread)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(&self, thread: ChannelId, open: &[Intent]) -> std::io::Result<()> {
        let path = self.path(thread);
        if open.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        std::fs::create_dir_all(&self.folder)?;
        azera_files::write(&path, &serde_json::to_vec(open)?)
    }

    /// Returns true if something is being shown in a thread of which nobody knows yet where it stands.
    pub(super) fn is_open(&self, thread: ChannelId) -> bool {
        !self.read(thread).is_empty()
    }

    /// Notes what is about to be posted.
    ///
    /// # Errors
    /// It cannot be written. Then nothing may be posted.
    pub(super) fn begin(&self, intent: Intent) -> std::io::Result<()> {
        let mut open = self.read(intent.thread);
        open.retain(|other| other.nonce != intent.nonce);
        if open.len() >= MAX_OPEN {
            return Err(std::io::Error::other("too many captions may stand in the thread or not"));
        }
        let thread = intent.thread;
        open.push(intent);
        self.write(thread, &open)
    }

    /// Records that a message stands in the log, or was not posted.
    pub(super) fn done(&self, thread: ChannelId, nonce: &str) -> std::io::Result<()> {
        let mut open = self.read(thread);
        open.retain(|other| other.nonce != nonce);
        self.write(thread, &open)
    }

    /// Returns a message of an earlier process that may have been posted.
    fn left(&self) -> Option<Intent> {
        self.left.last().cloned()
    }

    fn is_found(&mut self, intent: &Intent) -> std::io::Result<()> {
        self.done(intent.thread, &intent.nonce)?;
        self.left.retain(|left| left != intent);
        Ok(())
    }

    /// Leaves a message for the next start.
    fn is_kept(&mut self, intent: &Intent) {
        self.kept.extend(self.left.extract_if(.., |left| left == intent));
    }

    /// Forgets what was about to be posted of voice channels.
    pub(in crate::voice) fn forget(&mut self, channels: &[ChannelId]) {
        let mut gone: Vec<Intent> = self.left.extract_if(.., |left| channels.contains(&left.voice)).collect();
        gone.extend(self.kept.extract_if(.., |kept| channels.contains(&kept.voice)));
        for intent in gone {
            if let Err(error) = self.done(intent.thread, &intent.nonce) {
                tracing::warn!(%error, "cannot remove what is known of captions");
            }
        }
    }
}

/// What became of the search for a message.
enum Sought {
    /// It is noted, or stands nowhere.
    Found,
    /// It may stand where nobody looked.
    NotAll,
    /// Discord or the disk fails.
    Later,
}

impl VoiceCalls {
    /// Looks for messages that an earlier process posted without noting them in the log. Notes them, or removes them if
    /// it cannot be told what they show. Returns false if Discord or the disk fails.
    pub(super) async fn recover_captions(&self) -> bool {
        loop {
            let Some(intent) = self.caption_intents.lock().await.left() else { return true };
            let mut intents = match self.find_again(&intent).await {
                Sought::Found => self.caption_intents.lock().await,
                Sought::NotAll => {
                    self.caption_intents.lock().await.is_kept(&intent);
                    continue;
                }
                Sought::Later => return false,
            };
            if let Err(error) = intents.is_found(&intent) {
                tracing::error!(%error, "cannot note that captions were found again");
                return false;
            }
        }
    }

    async fn find_again(&self, intent: &Intent) -> Sought {
        let Ok(line) = self.line() else { return Sought::Later };
        let (messages, is_all) = match later(&line.http, intent).await {
            Ok(found) => found,
            // Nobody can read what stands in a thread that is gone.
            Err(error) if failure(&error) == Failure::Gone => return Sought::Found,
            Err(error) if failure(&error) == Failure::Refused => {
                tracing::warn!(error = in_words(&error), "may not look for captions; the next start tries again");
                return Sought::NotAll;
            }
            Err(error) => {
                tracing::warn!(error = in_words(&error), "cannot look for captions; trying again in a minute");
                return Sought::Later;
            }
        };
        let known = match self.caption_log.lock().await.messages(intent.voice) {
            Ok(known) => known,
            Err(error) => {
                tracing::error!(%error, "cannot read where captions stand; trying again in a minute");
                return Sought::Later;
            }
        };
        // Replies have buttons.
        let is_ours = |message: &Message| {
            message.author.id == line.directory.me && message.components.is_empty() && is_caption(&message.content)
        };
        let unknown: Vec<&Message> =
            messages.iter().filter(|message| is_ours(message) && !known.contains(&message.id)).collect();
        for message in &unknown {
            let is_meant = is_all && unknown.len() == 1 && message.content.lines().count() == intent.lines.len();
            let lines = intent.lines.iter().map(|line| is_meant.then(|| line.clone())).collect();
            // A message with other lines is removed: nobody knows whose words it shows.
            let posted = Posted { thread: intent.thread, message: message.id, lines };
            let noted = self.caption_log.lock().await.note_found(intent.voice, &posted);
            if let Err(error) = noted {
                tracing::error!(%error, "cannot note where captions stand");
                return Sought::Later;
            }
        }
        if is_all { Sought::Found } else { Sought::NotAll }
    }
}

/// Returns the messages of a thread that may be the one that was about to be posted, and whether these are all.
async fn later(http: &Http, intent: &Intent) -> serenity::Result<(Vec<Message>, bool)> {
    let (mut messages, mut after) = (Vec::new(), intent.after);
    for _ in 0..MAX_PAGES {
        let page = intent.thread.messages(http, GetMessages::new().after(after).limit(PAGE)).await?;
        let (is_full, newest) = (page.len() == usize::from(PAGE), page.iter().map(|message| message.id).max());
        messages.extend(page);
        match newest.filter(|_| is_full) {
            Some(newest) => after = newest,
            None => return Ok((messages, true)),
        }
    }
    Ok((messages, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(nonce: &str) -> Intent {
        Intent {
            voice: ChannelId::new(1),
            thread: ChannelId::new(7),
            nonce: nonce.to_owned(),
            after: ShownId::new(5),
            lines: vec![MessageId::new("a").unwrap()],
        }
    }

    #[test]
    fn what_was_about_to_be_posted_is_known_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let intents = Intents::open(folder.path());
        intents.begin(intent("x")).unwrap();
        intents.begin(intent("x")).unwrap();
        intents.begin(intent("y")).unwrap();
        assert!(intents.left().is_none(), "only an earlier process left some");
        intents.done(ChannelId::new(7), "y").unwrap();
        let mut intents = Intents::open(folder.path());
        assert_eq!(intents.left, [intent("x")]);
        intents.is_found(&intent("x")).unwrap();
        assert!(intents.left().is_none() && Intents::open(folder.path()).left.is_empty());
        intents.begin(intent("z")).unwrap();
        let mut intents = Intents::open(folder.path());
        intents.forget(&[ChannelId::new(1)]);
        assert!(Intents::open(folder.path()).left.is_empty());
        intents.begin(intent("kept")).unwrap();
        let mut intents = Intents::open(folder.path());
        intents.is_kept(&intent("kept"));
        assert!(intents.left().is_none(), "this process looks no more");
        assert_eq!(Intents::open(folder.path()).left, [intent("kept")], "the next one does");
        intents.forget(&[ChannelId::new(1)]);
        assert!(Intents::open(folder.path()).left.is_empty());
        for number in 0..MAX_OPEN {
            intents.begin(intent(&number.to_string())).unwrap();
        }
        assert!(intents.begin(intent("more")).is_err());
    }
}
