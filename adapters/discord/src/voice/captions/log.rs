//! Which message of the bot holds the caption of which utterance, so that the caption goes when the utterance is forgotten.
//!
//! It is kept on disk, a file for each voice channel and a line for each message. It holds ids alone, and no words.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use azera_types::MessageId;
use serde::{Deserialize, Serialize};
use serenity::all::{ChannelId, MessageId as ShownId};

/// Bytes from which the log of a voice channel takes no more messages: some hundred hours of captions. It is read whole
/// when somebody forgets something.
const FULL: u64 = 64 << 20;

/// Stands for a line which says that captions are missing.
pub(super) const GAP: &str = "gap";

/// A message with captions. Its text has a line for each utterance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Posted {
    /// The thread, and the message in it.
    pub(super) thread: ChannelId,
    /// See `thread`.
    pub(super) message: ShownId,
    /// What each line shows: an utterance or a reply. `None` for a line that is to be removed.
    pub(super) lines: Vec<Option<MessageId>>,
}

impl Posted {
    /// Returns true if a line of it is to be removed.
    pub(super) fn is_due(&self) -> bool {
        self.lines.contains(&None)
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Posted(Posted),
    /// It cannot be read. It stays as it is, for somebody who repairs the file.
    Damaged(Vec<u8>),
}

impl Entry {
    fn posted(self) -> Option<Posted> {
        match self {
            Self::Posted(posted) => Some(posted),
            Self::Damaged(_) => None,
        }
    }

    fn posted_mut(&mut self) -> Option<&mut Posted> {
        match self {
            Self::Posted(posted) => Some(posted),
            Self::Damaged(_) => None,
        }
    }
}

/// The messages with captions.
pub(in crate::voice) struct CaptionLog {
    folder: PathBuf,
    /// Voice channels with lines that are to be removed.
    due: BTreeSet<ChannelId>,
    /// See [`FULL`].
    full: u64,
}

impl CaptionLog {
    /// Opens the log in a folder.
    pub(in crate::voice) fn open(folder: &Path) -> Self {
        let mut log = Self { folder: folder.join("discord-captions"), due: BTreeSet::new(), full: FULL };
        // A log that cannot be read may have some.
        let may_be_due = |channel| log.posted_in(channel).map_or(true, |all| all.iter().any(Posted::is_due));
        log.due = log.channels().filter(|channel| may_be_due(*channel)).collect();
        log
    }

    /// Returns the voice channels with captions.
    fn channels(&self) -> impl Iterator<Item = ChannelId> + use<> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        // A crash may leave a file that was being written, with another ending.
        let logs =
            files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
        let ids = logs.filter_map(|path| path.file_stem()?.to_str()?.parse().ok().filter(|id| *id != 0));
        ids.map(ChannelId::new)
    }

    /// Returns the utterances and replies that stand in captions, with their voice channels.
    pub(super) fn shown(&self) -> io::Result<Vec<(ChannelId, BTreeSet<MessageId>)>> {
        let said = |channel| {
            let lines = self.posted_in(channel)?.into_iter().flat_map(|posted| posted.lines).flatten();
            Ok((channel, lines.filter(|said| said.as_str() != GAP).collect()))
        };
        self.channels().map(said).collect()
    }

    fn path(&self, channel: ChannelId) -> PathBuf {
        self.folder.join(format!("{channel}.jsonl"))
    }

    /// Returns true if no more messages of a voice channel may be added.
    pub(super) fn is_full(&self, channel: ChannelId) -> bool {
        std::fs::metadata(self.path(channel)).is_ok_and(|file| file.len() >= self.full)
    }

    /// Returns the threads in which captions of a voice channel stand.
    pub(super) fn threads(&self, channel: ChannelId) -> io::Result<BTreeSet<ChannelId>> {
        Ok(self.posted_in(channel)?.into_iter().map(|posted| posted.thread).collect())
    }

    /// Forgets the messages in threads of a voice channel that are gone.
    pub(super) fn forget_threads(&mut self, channel: ChannelId, gone: &BTreeSet<ChannelId>) -> io::Result<()> {
        let mut all = self.read(channel)?;
        all.retain_mut(|entry| entry.posted_mut().is_none_or(|posted| !gone.contains(&posted.thread)));
        self.write(channel, &all)?;
        self.note_due(channel, &mut all);
        Ok(())
    }

    /// Adds a message with captions of a voice channel.
    pub(super) fn add(&self, channel: ChannelId, posted: &Posted) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(self.path(channel))?;
        // A line that a crash cut short has no end.
        file.write_all(&[b"\n", line(posted)?.as_slice()].concat())?;
        file.sync_all()
    }

    /// Adds a message that was found after a crash. Its lines without an utterance are to be removed.
    pub(super) fn note_found(&mut self, channel: ChannelId, posted: &Posted) -> io::Result<()> {
        self.add(channel, posted)?;
        if posted.is_due() {
            self.due.insert(channel);
        }
        Ok(())
    }

    /// Returns what each line of a message with captions shows; `None` if it is no such message.
    pub(super) fn lines_of(&self, thread: ChannelId, message: ShownId) -> Option<Vec<Option<MessageId>>> {
        let readable = |channel: ChannelId| {
            let all = self.posted_in(channel);
            all.inspect_err(|error| tracing::error!(%channel, %error, "cannot read where captions stand")).ok()
        };
        let mut all = self.channels().filter_map(readable).flatten();
        all.find(|posted| posted.thread == thread && posted.message == message).map(|posted| posted.lines)
    }

    /// Returns the newest message with captions in a thread of a voice channel.
    pub(super) fn newest_in(&self, channel: ChannelId, thread: ChannelId) -> io::Result<Option<ShownId>> {
        let there = self.posted_in(channel)?.into_iter().filter(|posted| posted.thread == thread);
        Ok(there.map(|posted| posted.message).max())
    }

    /// Returns the messages with captions of a voice channel.
    pub(super) fn messages(&self, channel: ChannelId) -> io::Result<BTreeSet<ShownId>> {
        Ok(self.posted_in(channel)?.into_iter().map(|posted| posted.message).collect())
    }

    /// Marks the lines of these utterances as lines to be removed.
    pub(super) fn withdraw(&mut self, channel: ChannelId, gone: &BTreeSet<&MessageId>) -> io::Result<()> {
        let mut all = self.read(channel)?;
        let mut is_due = false;
        for shown in all.iter_mut().filter_map(Entry::posted_mut).flat_map(|posted| posted.lines.iter_mut()) {
            if shown.as_ref().is_some_and(|shown| gone.contains(shown)) {
                (*shown, is_due) = (None, true);
            }
        }
        if !is_due {
            return Ok(());
        }
        self.due.insert(channel);
        self.write(channel, &all)
    }

    /// Returns the messages with lines that are to be removed, by voice channel, and an error for each channel of which
    /// that cannot be read.
    pub(super) fn due(&self) -> Vec<(ChannelId, io::Result<Vec<Posted>>)> {
        let due_in = |channel| Ok(self.posted_in(channel)?.into_iter().filter(Posted::is_due).collect());
        self.due.iter().map(|channel| (*channel, due_in(*channel))).collect()
    }

    /// Records that a message shows only the lines that are not to be removed; without any, it is gone.
    pub(super) fn settle(&mut self, channel: ChannelId, message: ShownId) -> io::Result<()> {
        let mut all = self.read(channel)?;
        for posted in all.iter_mut().filter_map(Entry::posted_mut).filter(|posted| posted.message == message) {
            posted.lines.retain(Option::is_some);
        }
        all.retain_mut(|entry| entry.posted_mut().is_none_or(|posted| !posted.lines.is_empty()));
        self.write(channel, &all)?;
        self.note_due(channel, &mut all);
        Ok(())
    }

    /// Notes whether a voice channel has lines that are to be removed.
    fn note_due(&mut self, channel: ChannelId, all: &mut [Entry]) {
        if !all.iter_mut().filter_map(Entry::posted_mut).any(|posted| posted.is_due()) {
            self.due.remove(&channel);
        }
    }

    /// Forgets the captions of voice channels. They stay where they are shown.
    pub(in crate::voice) fn forget(&mut self, channels: &[ChannelId]) {
        for channel in channels {
            self.due.remove(channel);
            if let Err(error) = self.write(*channel, &[]) {
                tracing::warn!(%channel, %error, "cannot remove what is known of captions");
            }
        }
    }

    /// Returns the messages of a voice channel.
    fn posted_in(&self, channel: ChannelId) -> io::Result<Vec<Posted>> {
        Ok(self.read(channel)?.into_iter().filter_map(Entry::posted).collect())
    }

    /// Reads the log of a voice channel. Only one that does not exist is empty: what is written in its place later must
    /// not lose what could not be read now.
    fn read(&self, channel: ChannelId) -> io::Result<Vec<Entry>> {
        let bytes = match std::fs::read(self.path(channel)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            bytes => bytes?,
        };
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let entry = |line: &[u8]| match serde_json::from_slice(line) {
            Ok(posted) => Entry::Posted(posted),
            Err(error) => {
                tracing::warn!(%channel, %error, "a line about captions is damaged");
                Entry::Damaged(line.to_owned())
            }
        };
        Ok(lines.map(entry).collect())
    }

    /// Writes the messages of a voice channel atomically.
    fn write(&self, channel: ChannelId, all: &[Entry]) -> io::Result<()> {
        let path = self.path(channel);
        if all.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let mut lines = Vec::new();
        for entry in all {
            match entry {
                Entry::Posted(posted) => lines.extend(line(posted)?),
                Entry::Damaged(bytes) => lines.extend([bytes, b"\n".as_slice()].concat()),
            }
        }
        azera_files::write(&path, &lines)
    }
}

fn line(posted: &Posted) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(posted)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: ChannelId = ChannelId::new(1);

    fn id(text: &str) -> MessageId {
        MessageId::new(text).unwrap()
    }

    fn posted(message: u64, said: &[&str]) -> Posted {
        let lines = said.iter().map(|said| Some(id(said))).collect();
        Posted { thread: ChannelId::new(7), message: ShownId::new(message), lines }
    }

    fn due(log: &CaptionLog) -> Vec<Posted> {
        log.due().into_iter().flat_map(|(_, due)| due.unwrap()).collect()
    }

    #[test]
    fn a_caption_is_found_again_until_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = CaptionLog::open(folder.path());
        log.add(ROOM, &posted(10, &["a", "b"])).unwrap();
        log.add(ROOM, &posted(11, &["c"])).unwrap();
        log.withdraw(ROOM, &BTreeSet::from([&id("x")])).unwrap();
        assert!(due(&log).is_empty());
        log.withdraw(ROOM, &BTreeSet::from([&id("b"), &id("c")])).unwrap();
        // It is still known after a restart.
        let mut log = CaptionLog::open(folder.path());
        assert_eq!(due(&log).len(), 2);
        assert_eq!(log.shown().unwrap(), [(ROOM, BTreeSet::from([id("a")]))]);
        assert_eq!(due(&log)[0].lines, [Some(id("a")), None]);
        log.settle(ROOM, ShownId::new(11)).unwrap();
        assert_eq!(due(&log).len(), 1);
        log.settle(ROOM, ShownId::new(10)).unwrap();
        assert!(due(&log).is_empty() && due(&CaptionLog::open(folder.path())).is_empty());
        assert_eq!(log.posted_in(ROOM).unwrap(), [posted(10, &["a"])]);
        log.forget(&[ROOM]);
        assert!(log.read(ROOM).unwrap().is_empty());
    }

    #[test]
    fn a_full_log_takes_more_once_an_old_thread_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = CaptionLog::open(folder.path());
        log.full = 100;
        let (old, new) = (ChannelId::new(7), ChannelId::new(8));
        log.add(ROOM, &posted(10, &["a", "b"])).unwrap();
        assert!(!log.is_full(ROOM));
        log.add(ROOM, &posted(11, &["an-utterance-with-a-long-id", "another-utterance-with-a-long-id"])).unwrap();
        log.add(ROOM, &Posted { thread: new, ..posted(20, &["a"]) }).unwrap();
        assert!(log.is_full(ROOM));
        assert_eq!(log.threads(ROOM).unwrap(), BTreeSet::from([old, new]));
        log.forget_threads(ROOM, &BTreeSet::from([old])).unwrap();
        assert!(!log.is_full(ROOM));
        assert_eq!(log.shown().unwrap(), [(ROOM, BTreeSet::from([id("a")]))]);
    }

    #[test]
    fn a_damaged_line_hides_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = CaptionLog::open(folder.path());
        log.add(ROOM, &posted(10, &["a"])).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(log.path(ROOM)).unwrap();
        // Bytes that are no text, as a failing disk gives them.
        file.write_all(b"{\"thread\":\n\xff\xfe\n").unwrap();
        log.add(ROOM, &posted(11, &["b"])).unwrap();
        assert_eq!(log.posted_in(ROOM).unwrap(), [posted(10, &["a"]), posted(11, &["b"])]);
        log.withdraw(ROOM, &BTreeSet::from([&id("a"), &id("b")])).unwrap();
        log.settle(ROOM, ShownId::new(10)).unwrap();
        log.settle(ROOM, ShownId::new(11)).unwrap();
        assert_eq!(std::fs::read(log.path(ROOM)).unwrap(), b"{\"thread\":\n\xff\xfe\n", "it is lost");
        assert!(due(&log).is_empty());
    }

    #[test]
    fn a_log_that_cannot_be_read_is_not_empty() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = CaptionLog::open(folder.path());
        log.add(ROOM, &posted(10, &["a", "b"])).unwrap();
        log.withdraw(ROOM, &BTreeSet::from([&id("a")])).unwrap();
        // Nothing can read a folder as a file.
        let (path, away) = (log.path(ROOM), folder.path().join("away"));
        std::fs::rename(&path, &away).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(log.shown().is_err() && log.messages(ROOM).is_err());
        assert!(log.withdraw(ROOM, &BTreeSet::from([&id("b")])).is_err());
        assert!(log.settle(ROOM, ShownId::new(10)).is_err());
        let mut log = CaptionLog::open(folder.path());
        assert!(log.due().iter().all(|(_, due)| due.is_err()) && log.due().len() == 1);
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(&away, &path).unwrap();
        log.withdraw(ROOM, &BTreeSet::from([&id("b")])).unwrap();
        assert_eq!(due(&log)[0].lines, [None, None]);
    }
}
