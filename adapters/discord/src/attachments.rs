//! Attached files. Text files are read within limits; for others, the model gets only name and description. The engine
//! decides which files are kept, and only those are downloaded whole.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{FileContent, GivenPicture, MAX_GIVEN_BYTES, MAX_GIVEN_PICTURE_BYTES, MAX_GIVEN_SOUND_BYTES};
use azera_types::{FetchError, Fetching, InboundPart, Part, PartSource, Text};
use serenity::all::Attachment;

/// Most files of one message that are read; for others, the model gets only the name.
const MAX_READ: usize = 4;

/// Bytes of a file that are downloaded; the rest of a longer one is ignored.
const MAX_BYTES: usize = 64 << 10;

/// Characters of all files of a message that the prompt shows.
const SHOWN_CHARS: usize = 4_000;

/// Time limit for one file.
const TIME: Duration = Duration::from_secs(10);

/// Discord's file server; files from other hosts are not downloaded.
pub(crate) const FILES_HOST: &str = "cdn.discordapp.com";

/// Media types that contain text, besides `text/*`.
const TEXTUAL: [&str; 6] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/toml",
    "application/x-sh",
    "application/sql",
];

/// File extensions that mean text when Discord does not give a media type.
const ENDINGS: [&str; 10] = ["txt", "md", "log", "csv", "json", "toml", "yaml", "yml", "rs", "py"];

/// Characters of a chunk of a long file.
const PIECE_CHARS: usize = 1_200;

/// Most chunks of one message.
const MAX_PIECES: usize = 64;

/// The contents of attached files.
#[derive(Default)]
pub(crate) struct Attached {
    /// Text for the prompt: one note per file, followed by the beginning of its text.
    pub(crate) notes: Vec<String>,
    /// Chunks of the rest of long files, for recall.
    pub(crate) pieces: Vec<Text>,
    /// The files themselves.
    pub(crate) parts: Vec<InboundPart>,
}

/// Reads the files of a message. A voice message gets no note: its words become the text.
pub(crate) async fn read(client: &reqwest::Client, attachments: &[Attachment]) -> Attached {
    let mut attached = Attached::default();
    let (mut read, mut left) = (0, SHOWN_CHARS);
    for attachment in attachments {
        if attachment.duration_secs.is_some() {
            attached.parts.push(part(client, attachment, None));
            continue;
        }
        let kind = attachment.content_type.as_deref().unwrap_or("unknown kind");
        let described = attachment.description.as_ref().map_or_else(String::new, |it| format!(", shows: {it}"));
        let named = format!("attached: {} ({kind}, {} bytes{described})", attachment.filename, attachment.size);
        let is_read = is_text(attachment) && read < MAX_READ;
        let fetched = if is_read { Some(fetch(client, attachment).await) } else { None };
        attached.parts.push(part(client, attachment, fetched.as_ref()));
        let Some(fetched) = fetched else {
            attached.notes.push(format!("[{named}]"));
            continue;
        };
        read += 1;
        match fetched {
            Ok((text, whole)) => {
                let end = text.char_indices().nth(left).map_or(text.len(), |(at, _)| at);
                let (shown, behind) = text.split_at(end);
                left -= shown.chars().count();
                let rest = match (behind.is_empty(), whole) {
                    (true, true) => "",
                    (false, true) => "; it goes on behind what follows",
                    (_, false) => "; it goes on behind what follows, and is too long to be read whole",
                };
                attached.notes.push(format!("[{named}{rest}]\n{}", shown.trim_end()));
                let pieces = pieces(&attachment.filename, behind);
                attached.pieces.extend(pieces.take(MAX_PIECES - attached.pieces.len()));
            }
            Err(why) => attached.notes.push(format!("[{named}; {why}]")),
        }
    }
    attached
}

/// Returns the files of a message, without reading any.
pub(crate) fn parts(client: &reqwest::Client, attachments: &[Attachment]) -> Vec<InboundPart> {
    attachments.iter().map(|attachment| part(client, attachment, None)).collect()
}

/// Returns a file as part of the message. A text that was read whole is not downloaded again. Only voice messages have a
/// duration.
fn part(
    client: &reqwest::Client,
    attachment: &Attachment,
    fetched: Option<&Result<(String, bool), &'static str>>,
) -> InboundPart {
    let part = Part::new(&attachment.filename, attachment.content_type.as_deref(), attachment.size.into());
    let source: Arc<dyn PartSource> = match fetched {
        Some(Ok((text, true))) => Arc::new(text.clone().into_bytes()),
        _ => Arc::new(Download { client: client.clone(), attachment: attachment.clone() }),
    };
    let part = match attachment.duration_secs {
        Some(seconds) => part.spoken(Some((seconds * 1_000.0) as u64)),
        None => part,
    };
    InboundPart { part: part.described(attachment.description.as_deref()), source }
}

/// A file on Discord's file server.
struct Download {
    client: reqwest::Client,
    attachment: Attachment,
}

impl PartSource for Download {
    fn fetch(&self, limit: u64) -> Fetching<'_> {
        Box::pin(async move {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            match bytes(&self.client, &self.attachment, limit).await {
                Ok((bytes, true)) => Ok(bytes),
                Ok((_, false)) => Err(FetchError::TooLarge),
                Err(why) => Err(FetchError::Failed(why.to_owned())),
            }
        })
    }
}

/// Splits a text into chunks that name the file, at line ends where possible.
fn pieces(name: &str, text: &str) -> impl Iterator<Item = Text> {
    let mut pieces: Vec<String> = vec![String::new()];
    for line in text.split_inclusive('\n') {
        let mut line = line;
        while !line.is_empty() {
            let held = pieces.last().map_or(0, |piece| piece.chars().count());
            let end = line.char_indices().nth(PIECE_CHARS - held).map_or(line.len(), |(at, _)| at);
            if end < line.len() && held > 0 {
                pieces.push(String::new());
                continue;
            }
            let (fits, behind) = line.split_at(end);
            if let Some(piece) = pieces.last_mut() {
                piece.push_str(fits);
            }
            line = behind;
        }
    }
    let texts = pieces.into_iter().filter(|piece| !piece.trim().is_empty());
    texts.enumerate().map(move |(number, piece)| Text::new(format!("{name}, {}: {}", number + 2, piece.trim())))
}

fn is_text(attachment: &Attachment) -> bool {
    match &attachment.content_type {
        Some(kind) => {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind.starts_with("text/") || TEXTUAL.contains(&kind)
        }
        None => {
            let ending = attachment.filename.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
            ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
        }
    }
}

/// Returns the beginning of a file and whether that is all of it. The error says why it cannot be read.
async fn fetch(client: &reqwest::Client, attachment: &Attachment) -> Result<(String, bool), &'static str> {
    let (bytes, whole) = bytes(client, attachment, MAX_BYTES).await?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, whole)),
        // A long file may be cut in the middle of a character.
        Err(error) if !whole && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            Ok((String::from_utf8(bytes).unwrap_or_default(), false))
        }
        Err(_) => Err("it is no text"),
    }
}

/// Returns the contents of a file given with a command: its text, or a picture as a `data:` address. The error says why
/// not.
pub(crate) async fn given(client: &reqwest::Client, attachment: &Attachment) -> Result<String, &'static str> {
    let (bytes, true) = bytes(client, attachment, MAX_GIVEN_BYTES).await? else {
        return Err("it is larger than 8 MB");
    };
    azera_adapter::given(bytes)
}

/// Returns a recording given with a command as a `data:` address. The error says why not.
pub(crate) async fn given_sound(client: &reqwest::Client, attachment: &Attachment) -> Result<String, &'static str> {
    let (bytes, true) = bytes(client, attachment, MAX_GIVEN_SOUND_BYTES).await? else {
        return Err("it is larger than 10 MB");
    };
    azera_adapter::given_sound(bytes)
}

/// Returns a picture given with a command. The error says why not.
pub(crate) async fn given_picture(
    client: &reqwest::Client,
    attachment: &Attachment,
) -> Result<GivenPicture, &'static str> {
    let (bytes, true) = bytes(client, attachment, MAX_GIVEN_PICTURE_BYTES).await? else {
        return Err("it is larger than 16 MB");
    };
    Ok(GivenPicture { description: attachment.description.as_deref().map(Text::new), content: FileContent(bytes) })
}

/// Returns the first bytes of a file, and whether that is all of it.
async fn bytes(
    client: &reqwest::Client,
    attachment: &Attachment,
    limit: usize,
) -> Result<(Vec<u8>, bool), &'static str> {
    let not_there = "it could not be fetched";
    let url = reqwest::Url::parse(&attachment.url).map_err(|_| not_there)?;
    if url.scheme() != "https" || url.host_str() != Some(FILES_HOST) {
        return Err(not_there);
    }
    let reading = async {
        let mut response = client.get(url).send().await?.error_for_status()?;
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let Some(chunk) = response.chunk().await? else { return Ok((bytes, true)) };
            bytes.extend_from_slice(&chunk);
        }
        let whole = bytes.len() == limit && response.chunk().await?.is_none();
        bytes.truncate(limit);
        Ok::<_, reqwest::Error>((bytes, whole))
    };
    match tokio::time::timeout(TIME, reading).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(_)) | Err(_) => Err(not_there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_contain_everything_and_end_at_line_ends() {
        let cut = |text: &str| pieces("log", text).map(|piece| piece.as_str().to_owned()).collect::<Vec<_>>();
        assert!(cut(" \n").is_empty());
        assert_eq!(cut("one\ntwo\n"), ["log, 2: one\ntwo"]);
        let line = format!("{}\n", "x".repeat(499));
        let lines = cut(&line.repeat(5));
        assert_eq!(lines.iter().map(|piece| piece.matches('\n').count()).collect::<Vec<_>>(), [1, 1, 0]);
        let long = cut(&"y".repeat(3_000));
        assert_eq!(long.iter().map(|piece| piece.matches('y').count()).collect::<Vec<_>>(), [1_200, 1_200, 600]);
        assert!(long[2].starts_with("log, 4: "));
    }
}
