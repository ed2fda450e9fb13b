//! How the `azera mcp` that has the data folder serves those that start beside it: over a socket in the folder.
//!
//! A guest says in its first line whom it speaks for, and hears in the first answer whether it may. The protocol follows. Only
//! processes of the same user of this machine are served: each of them could open the folder itself.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use azera_adapter_mcp::Link;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, duplex};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Host, Speaker};

/// The socket's file in the data folder.
const SOCKET: &str = "mcp.sock";

/// Only the user may connect.
const SOCKET_MODE: u32 = 0o600;

/// Longest first line.
const MAX_FIRST_BYTES: u64 = 16 << 10;

/// Bytes of a message that wait for a session.
pub const PIPE_BYTES: usize = 64 << 10;

/// What a guest hears first.
#[derive(Debug, Serialize, Deserialize)]
struct Welcome {
    /// Why the guest is not served; `None` if it is.
    refused: Option<String>,
}

/// Connects with the `azera mcp` that has the folder, and waits until that has opened it. Returns `None` if there is none, or
/// if it ends first.
///
/// # Errors
///
/// Fails if it refuses to speak for this person.
pub async fn join(data: &Path, speaker: &Speaker) -> anyhow::Result<Option<Link>> {
    let Ok(stream) = UnixStream::connect(data.join(SOCKET)).await else { return Ok(None) };
    let (input, mut output) = stream.into_split();
    let asked = format!("{}\n", serde_json::to_string(speaker)?);
    let mut input = BufReader::new(input);
    let mut answer = String::new();
    let heard = match output.write_all(asked.as_bytes()).await {
        Ok(()) => (&mut input).take(MAX_FIRST_BYTES).read_line(&mut answer).await,
        Err(error) => Err(error),
    };
    if !matches!(heard, Ok(1..)) || !answer.ends_with('\n') {
        return Ok(None);
    }
    match serde_json::from_str::<Welcome>(&answer)?.refused {
        Some(reason) => bail!("{reason}"),
        None => Ok(Some(Link { input: Box::new(input), output: Box::new(output) })),
    }
}

/// The socket of the process that has the folder.
pub struct Guests {
    listener: UnixListener,
    path: PathBuf,
}

impl Guests {
    /// Opens the socket. Call it as soon as this process has the folder: then guests wait until it is open. Returns `None` where
    /// the system has no such socket; then nobody else is served.
    pub fn listen(data: &Path) -> Option<Self> {
        let path = data.join(SOCKET);
        // Whoever made it had the folder before, and has ended.
        std::fs::remove_file(&path).ok();
        let listener = UnixListener::bind(&path).and_then(|listener| {
            std::fs::set_permissions(&path, Permissions::from_mode(SOCKET_MODE))?;
            Ok(listener)
        });
        match listener {
            Ok(listener) => Some(Self { listener, path }),
            Err(error) => {
                tracing::warn!("no other assistant is served meanwhile: cannot make {}: {error}", path.display());
                None
            }
        }
    }

    /// Serves guests until `stop` is cancelled. Calls that are running are still answered.
    pub async fn serve(&self, host: &Host, stop: &CancellationToken) {
        let mut sessions = JoinSet::new();
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted.map(|(stream, _)| stream),
            };
            match stream {
                Ok(stream) if is_same_user(&stream) => {
                    let (host, stop) = (host.clone(), stop.clone());
                    sessions.spawn(async move {
                        if let Err(error) = welcome(stream, &host, &stop).await {
                            tracing::warn!("a session of another assistant ended: {error:#}");
                        }
                    });
                }
                Ok(_) => tracing::warn!("another user of this machine asked for a session, and got none"),
                Err(error) => {
                    tracing::warn!(%error, "another assistant could not connect");
                    // The system is out of files, perhaps. Do not ask it as fast as it refuses.
                    tokio::time::sleep(super::LOOK_AGAIN).await;
                }
            }
            while sessions.try_join_next().is_some() {}
        }
        while sessions.join_next().await.is_some() {}
    }

    /// Removes the socket's file. Guests that connected go on waiting until this value is dropped, which must come after the
    /// folder is free.
    pub fn remove(&self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the socket is gone already");
        }
    }
}

/// Returns true if the process at the other end runs as the same user of this machine.
fn is_same_user(stream: &UnixStream) -> bool {
    let own = UnixStream::pair().and_then(|(one, _)| one.peer_cred());
    match (own, stream.peer_cred()) {
        (Ok(own), Ok(peer)) => own.uid() == peer.uid(),
        _ => false,
    }
}

/// Serves one guest, until it leaves or `stop` is cancelled.
async fn welcome(stream: UnixStream, host: &Host, stop: &CancellationToken) -> anyhow::Result<()> {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    let mut asked = String::new();
    let mut first = (&mut input).take(MAX_FIRST_BYTES);
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        heard = first.read_line(&mut asked) => heard?,
    };
    // Its first line may hold anything, so no error quotes it.
    let speaker = serde_json::from_str::<Value>(&asked).and_then(serde_json::from_value::<Speaker>).ok();
    let session = match speaker {
        Some(speaker) => host.session(&speaker),
        None => Err(anyhow::anyhow!("the `azera mcp` that has the data folder is of another version: end it first")),
    };
    let refused = session.as_ref().err().map(|error| format!("{error:#}"));
    output.write_all(format!("{}\n", serde_json::to_string(&Welcome { refused })?).as_bytes()).await?;
    let Ok(session) = session else { return Ok(()) };
    // The server ends with its input, and answers what it has begun.
    let (mut pipe, piped) = duplex(PIPE_BYTES);
    let feeding = async move {
        tokio::select! {
            copied = tokio::io::copy(&mut input, &mut pipe) => copied.map(drop),
            () = stop.cancelled() => Ok(()),
        }
    };
    let (fed, ended) = tokio::join!(feeding, host.server(session).serve(piped, output));
    if let Err(error) = fed {
        tracing::debug!(%error, "a guest's stream broke");
    }
    Ok(ended?)
}
