//! The formats, and how one is recognised.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Bytes of a file's beginning that [`Format::of`] looks at.
pub const HEAD_BYTES: usize = 64 << 10;

/// A format of exported conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A transcript of Claude Code: JSON lines.
    ClaudeCode,
    /// `conversations.json` of an export of ChatGPT.
    ChatGpt,
    /// `conversations.json` of an export of Claude.
    Claude,
    /// JSON of DiscordChatExporter, one channel a file.
    Discord,
    /// A chat of SillyTavern: JSON lines.
    SillyTavern,
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no such format: claude-code, chatgpt, claude, discord and sillytavern are known")]
pub struct UnknownFormat;

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::ClaudeCode, Self::ChatGpt, Self::Claude, Self::Discord, Self::SillyTavern];

    /// Returns the name, as the command line takes it and the record stores it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ChatGpt => "chatgpt",
            Self::Claude => "claude",
            Self::Discord => "discord",
            Self::SillyTavern => "sillytavern",
        }
    }

    /// Returns the format of a file that begins with `head`, at most [`HEAD_BYTES`] of it; `None` if it is none of these.
    pub fn of(head: &[u8]) -> Option<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let names = |key: &str| head.windows(key.len()).any(|part| part == key.as_bytes());
        let first_of = |formats: &[(Self, &[&str])]| {
            formats.iter().find(|(_, keys)| keys.iter().all(|key| names(key))).map(|(format, _)| *format)
        };
        match head.first()? {
            b'[' => first_of(&[(Self::Claude, &["\"chat_messages\""]), (Self::ChatGpt, &["\"mapping\""])]),
            b'{' => first_of(&[
                (Self::Discord, &["\"guild\"", "\"channel\"", "\"messages\""]),
                (Self::ClaudeCode, &["\"sessionId\""]),
                (Self::ClaudeCode, &["\"leafUuid\""]),
                (Self::SillyTavern, &["\"character_name\""]),
                (Self::SillyTavern, &["\"is_user\"", "\"mes\""]),
            ]),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}
