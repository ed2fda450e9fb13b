//! Files: downloads files for commands within limits, and uploads long answers.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{
    FileContent, GivenPicture, MAX_GIVEN_BYTES, MAX_GIVEN_PICTURE_BYTES, MAX_GIVEN_SOUND_BYTES, given, given_sound,
};
use azera_types::{FetchError, Fetching, InboundPart, Part, PartKind, PartSource, Recording};
use matrix_sdk::ruma::events::room::MediaSource;
use matrix_sdk::ruma::{MxcUri, OwnedMxcUri};
use matrix_sdk::{Client, Room};
use matrix_sdk_base::crypto::{AttachmentDecryptor, MediaEncryptionInfo};
use serde_json::{Value, json};

use crate::Error;
use crate::content::{AUTOMATED, Relation};

/// Time limit for one file.
const TIME: Duration = Duration::from_secs(30);

/// Paths of media on homeservers: since Matrix 1.11, and before.
const PATHS: [&str; 2] = ["_matrix/client/v1/media/download", "_matrix/media/v3/download"];

/// An attached file.
#[derive(Clone)]
pub(crate) struct Attached {
    /// Its address, with the key if it is encrypted.
    pub(crate) source: MediaSource,
    /// Its name.
    pub(crate) name: String,
    /// Its media type according to the sender.
    pub(crate) mime: Option<String>,
    /// Its size according to the sender.
    pub(crate) bytes: Option<u64>,
    /// Its caption.
    pub(crate) caption: Option<String>,
    /// What the sender says of a recording; `None` for other files.
    pub(crate) recording: Option<Recording>,
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// A file on a homeserver.
struct Download {
    client: Client,
    file: Attached,
}

impl PartSource for Download {
    fn fetch(&self, limit: u64) -> Fetching<'_> {
        Box::pin(async move {
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            let bytes =
                fetch(&self.client, &self.file, most).await.map_err(|why| FetchError::Failed(why.to_owned()))?;
            if bytes.len() > most { Err(FetchError::TooLarge) } else { Ok(bytes) }
        })
    }
}

/// Returns a file as part of its message.
pub(crate) fn part(client: &Client, file: &Attached) -> InboundPart {
    // The sender need not say how large it is. The download is limited.
    let part = Part::new(&file.name, file.mime.as_deref(), file.bytes.unwrap_or(0));
    let part = match file.recording {
        Some(recording) => Part { kind: PartKind::Audio, recording: Some(recording), ..part },
        None => part,
    };
    InboundPart { part, source: Arc::new(Download { client: client.clone(), file: file.clone() }) }
}

/// Returns a file as it is put into a command's line; the error says why not.
pub(crate) async fn given_file(client: &Client, file: &Attached) -> Result<String, &'static str> {
    if file.bytes.is_some_and(|bytes| bytes > MAX_GIVEN_BYTES as u64) {
        return Err("it is larger than 8 MB");
    }
    given(fetch(client, file, MAX_GIVEN_BYTES).await?)
}

/// Returns a recording as it is put into a command's line; the error says why not.
pub(crate) async fn given_recording(client: &Client, file: &Attached) -> Result<String, &'static str> {
    if file.bytes.is_some_and(|bytes| bytes > MAX_GIVEN_SOUND_BYTES as u64) {
        return Err("it is larger than 10 MB");
    }
    given_sound(fetch(client, file, MAX_GIVEN_SOUND_BYTES).await?)
}

/// Returns a picture that a command was sent with; the error says why not.
pub(crate) async fn given_picture(client: &Client, file: &Attached) -> Result<GivenPicture, &'static str> {
    let bytes = fetch(client, file, MAX_GIVEN_PICTURE_BYTES).await?;
    if bytes.len() > MAX_GIVEN_PICTURE_BYTES {
        return Err("it is larger than 16 MB");
    }
    Ok(GivenPicture { description: None, content: FileContent(bytes) })
}

/// Returns the bytes of a file, or more than `limit` if it has more. The error says why there are none.
async fn fetch(client: &Client, file: &Attached, limit: usize) -> Result<Vec<u8>, &'static str> {
    let url = match &file.source {
        MediaSource::Plain(url) => url,
        MediaSource::Encrypted(file) => &file.url,
    };
    let bytes = match tokio::time::timeout(TIME, download(client, url, limit)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => {
            tracing::debug!(%error, "cannot download a file");
            return Err("it could not be fetched");
        }
        Err(_) => return Err("fetching it took too long"),
    };
    match &file.source {
        MediaSource::Encrypted(file) if bytes.len() <= limit => {
            let keys = MediaEncryptionInfo::from((**file).clone());
            decrypted(bytes, keys).ok_or("it could not be decrypted")
        }
        // A part of an encrypted file cannot be decrypted, and is too much anyway.
        MediaSource::Plain(_) | MediaSource::Encrypted(_) => Ok(bytes),
    }
}

fn decrypted(bytes: Vec<u8>, keys: MediaEncryptionInfo) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut bytes = Cursor::new(bytes);
    // Reading to the end checks the digest.
    AttachmentDecryptor::new(&mut bytes, keys).ok()?.read_to_end(&mut plain).ok()?;
    Some(plain)
}

/// Downloads a file, at most one byte more than `limit`. matrix-sdk has no limit.
async fn download(client: &Client, url: &MxcUri, limit: usize) -> Result<Vec<u8>, matrix_sdk::reqwest::Error> {
    let Ok((server, id)) = url.parts() else { return Ok(Vec::new()) };
    let (base, token) = (client.homeserver(), client.access_token().unwrap_or_default());
    let [newest, before] = PATHS.map(|path| format!("{}/{path}/{server}/{id}", base.as_str().trim_end_matches('/')));
    let get = |url: String| client.http_client().get(url).bearer_auth(&token).send();
    let mut response = get(newest).await?;
    if response.status() == matrix_sdk::reqwest::StatusCode::NOT_FOUND {
        response = get(before).await?;
    }
    let mut response = response.error_for_status()?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            bytes.truncate(limit.saturating_add(1));
            break;
        }
    }
    Ok(bytes)
}

/// Uploads a public file and returns its address.
pub(crate) async fn upload(client: &Client, bytes: Vec<u8>, media_type: &str) -> Result<OwnedMxcUri, Error> {
    let kind = media_type.parse().unwrap_or(mime::APPLICATION_OCTET_STREAM);
    let uploaded = client.media().upload(&kind, bytes, None).await?;
    Ok(uploaded.content_uri)
}

/// Uploads a file for a room; returns the content of its message, with its relation to others.
pub(crate) async fn related_file(
    client: &Client,
    room: &Room,
    part: &Part,
    bytes: &[u8],
    relation: &Relation,
) -> Result<Value, Error> {
    let mut content = file_content(client, room, part, bytes).await?;
    if let Some(relation) = relation.content() {
        content["m.relates_to"] = relation;
    }
    Ok(content)
}

/// Uploads a file for a room; returns the content of its message.
pub(crate) async fn file_content(client: &Client, room: &Room, part: &Part, bytes: &[u8]) -> Result<Value, Error> {
    let msgtype = match part.kind {
        PartKind::Image => "m.image",
        PartKind::Audio => "m.audio",
        PartKind::File => "m.file",
    };
    let mut content = json!({
        "msgtype": msgtype,
        "body": part.alt.as_deref().unwrap_or(&part.name),
        "filename": part.name,
        "info": { "mimetype": part.mime, "size": bytes.len() },
        "m.mentions": {},
        AUTOMATED: true,
    });
    if room.latest_encryption_state().await?.is_encrypted() {
        let file = client.upload_encrypted_file(&mut Cursor::new(bytes)).await?;
        content["file"] = serde_json::to_value(file)?;
    } else {
        content["url"] = json!(upload(client, bytes.to_vec(), &part.mime).await?);
    }
    if let Some(recording) = part.recording.filter(|recording| recording.is_voice_message) {
        content["info"]["duration"] = json!(recording.duration_ms);
        content["org.matrix.msc1767.audio"] = json!({ "duration": recording.duration_ms });
        content["org.matrix.msc3245.voice"] = json!({});
    }
    Ok(content)
}
