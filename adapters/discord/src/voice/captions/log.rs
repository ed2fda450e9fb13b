//! Which message of the bot holds the caption of which utterance, so that the caption goes when the utterance is forgotten.
//!
//! It is kept on disk, a file for each voice channel and a line for each message. It holds ids alone, and no words.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use azera_types::MessageId;
use serde::{Deserialize, Serialize};
use serenity::all::{ChannelId, MessageId as ShownId};

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

/// The messages with captions.
pub(in crate::voice) struct CaptionLog {
    folder: PathBuf,
    /// Voice channels with lines that are to be removed.
    due: BTreeSet<ChannelId>,
}

impl CaptionLog {
    /// Opens the log in a folder.
    pub(in crate::voice) fn open(folder: &Path) -> Self {
        let mut log = Self { folder: folder.join("discord-captions"), due: BTreeSet::new() };
        log.due = log.channels().filter(|channel| log.read(*channel).iter().any(Posted::is_due)).collect();
        log
    }

    /// Returns the voice channels with captions.
    fn channels(&self) -> impl Iterator<Item = ChannelId> + use<> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let ids = files.filter_map(|file| file.path().file_stem()?.to_str()?.parse().ok().filter(|id| *id != 0));
        ids.map(ChannelId::new)
    }

    /// Returns the utterances and replies that stand in captions, with their voice channels.
    pub(super) fn shown(&self) -> Vec<(ChannelId, BTreeSet<MessageId>)> {
        let of = |channel| self.read(channel).into_iter().flat_map(|posted| posted.lines).flatten();
        let said = |channel| of(channel).filter(|said| said.as_str() != GAP).collect();
        self.channels().map(|channel| (channel, said(channel))).collect()
    }

    fn path(&self, channel: ChannelId) -> PathBuf {
        self.folder.join(format!("{channel}.jsonl"))
    }

    /// Adds a message with captions of a voice channel.
    pub(super) fn add(&self, channel: ChannelId, posted: &Posted) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(self.path(channel))?;
        // A line that a crash cut short has no end.
        file.write_all(&[b"\n", line(posted)?.as_slice()].concat())?;
        file.sync_all()
    }

    /// Adds a message that was found after a crash. Its lines without an utterance are to be removed.
    pub(super) fn note_found(&mut self, channel: ChannelId, posted: &Posted) -> std::io::Result<()> {
        self.add(channel, posted)?;
        if posted.is_due() {
            self.due.insert(channel);
        }
        Ok(())
    }

    /// Returns what each line of a message with captions shows; `None` if it is no such message.
    pub(super) fn lines_of(&self, thread: ChannelId, message: ShownId) -> Option<Vec<Option<MessageId>>> {
        let mut all = self.channels().flat_map(|channel| self.read(channel));
        all.find(|posted| posted.thread == thread && posted.message == message).map(|posted| posted.lines)
    }

    /// Returns the newest message with captions in a thread of a voice channel.
    pub(super) fn newest_in(&self, channel: ChannelId, thread: ChannelId) -> Option<ShownId> {
        let there = self.read(channel).into_iter().filter(|posted| posted.thread == thread);
        there.map(|posted| posted.message).max()
    }

    /// Returns the messages with captions of a voice channel.
    pub(super) fn messages(&self, channel: ChannelId) -> BTreeSet<ShownId> {
        self.read(channel).into_iter().map(|posted| posted.message).collect()
    }

    /// Marks the lines of these utterances as lines to be removed.
    pub(super) fn withdraw(&mut self, channel: ChannelId, gone: &BTreeSet<&MessageId>) -> std::io::Result<()> {
        let mut all = self.read(channel);
        let mut is_due = false;
        for shown in all.iter_mut().flat_map(|posted| posted.lines.iter_mut()) {
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

    /// Returns the messages with lines that are to be removed, each with its voice channel.
    pub(super) fn due(&self) -> Vec<(ChannelId, Posted)> {
        let all = self.due.iter().flat_map(|channel| self.read(*channel).into_iter().map(|posted| (*channel, posted)));
        all.filter(|(_, posted)| posted.is_due()).collect()
    }

    /// Records that a message shows only the lines that are not to be removed; without any, it is gone.
    pub(super) fn settle(&mut self, channel: ChannelId, message: ShownId) -> std::io::Result<()> {
        let mut all = self.read(channel);
        for posted in all.iter_mut().filter(|posted| posted.message == message) {
            posted.lines.retain(Option::is_some);
        }
        all.retain(|posted| !posted.lines.is_empty());
        if !all.iter().any(Posted::is_due) {
            self.due.remove(&channel);
        }
        self.write(channel, &all)
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

    /// Reads the messages of a voice channel. What cannot be read counts as missing.
    fn read(&self, channel: ChannelId) -> Vec<Posted> {
        let file = match std::fs::File::open(self.path(channel)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                tracing::error!(%channel, %error, "cannot read where captions stand; they stay when they are forgotten");
                return Vec::new();
            }
        };
        let lines = BufReader::new(file).lines().map_while(Result::ok).filter(|line| !line.is_empty());
        let read = lines.map(|line| serde_json::from_str(&line));
        read.filter_map(|posted| {
            posted.inspect_err(|error| tracing::warn!(%channel, %error, "a line about captions is damaged")).ok()
        })
        .collect()
    }

    /// Writes the messages of a voice channel atomically.
    fn write(&self, channel: ChannelId, all: &[Posted]) -> std::io::Result<()> {
        let path = self.path(channel);
        if all.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let temporary = path.with_extension("jsonl.new");
        let mut file = std::fs::File::create(&temporary)?;
        for posted in all {
            file.write_all(&line(posted)?)?;
        }
        file.sync_all()?;
        std::fs::rename(&temporary, &path)
    }
}

fn line(posted: &Posted) -> std::io::Result<Vec<u8>> {
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

    #[test]
    fn a_caption_is_found_again_until_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = CaptionLog::open(folder.path());
        log.add(ROOM, &posted(10, &["a", "b"])).unwrap();
        log.add(ROOM, &posted(11, &["c"])).unwrap();
        log.withdraw(ROOM, &BTreeSet::from([&id("x")])).unwrap();
        assert!(log.due().is_empty());
        log.withdraw(ROOM, &BTreeSet::from([&id("b"), &id("c")])).unwrap();
        // It is still known after a restart.
        let mut log = CaptionLog::open(folder.path());
        let due = log.due();
        assert_eq!(due.len(), 2);
        assert_eq!(log.shown(), [(ROOM, BTreeSet::from([id("a")]))]);
        assert_eq!(due[0].1.lines, [Some(id("a")), None]);
        log.settle(ROOM, ShownId::new(11)).unwrap();
        assert_eq!(log.due().len(), 1);
        log.settle(ROOM, ShownId::new(10)).unwrap();
        assert!(log.due().is_empty() && CaptionLog::open(folder.path()).due().is_empty());
        assert_eq!(log.read(ROOM), [posted(10, &["a"])]);
        log.forget(&[ROOM]);
        assert!(log.read(ROOM).is_empty());
    }

    #[test]
    fn a_damaged_line_hides_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let log = CaptionLog::open(folder.path());
        log.add(ROOM, &posted(10, &["a"])).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(log.path(ROOM)).unwrap();
        file.write_all(b"{\"thread\":\n").unwrap();
        log.add(ROOM, &posted(11, &["b"])).unwrap();
        assert_eq!(log.read(ROOM).len(), 2);
    }
}
