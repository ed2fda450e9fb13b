//! Passes a client's session on to a server that may end before the session does. The session then goes on with the next
//! server, and the client notices nothing.
//!
//! A server knows nothing of a session but its handshake, so the next one hears the handshake again. A request that has no
//! answer yet is sent again if it only reads. A change may have been made or not, so the client is told that.

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};

use crate::declared;
use crate::proxy::UNREACHABLE;

/// The id of a handshake that the client does not hear of.
const REPEATED: &str = "azera-handshake-again";

/// How many servers may end before one of them answers. A request is sent to no more than that; then the client is told.
const MAX_SERVERS: usize = 5;

/// What the client is told where servers end and end.
const AGAIN: &str = "Azera ended again and again before it answered.";

/// A stream to a server, one message a line.
pub struct Link {
    /// What the server says.
    pub input: Input,
    /// What the server hears.
    pub output: Output,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

/// Finds the server that a session goes on with.
#[async_trait(?Send)]
pub trait Servers {
    /// Connects with a server.
    ///
    /// # Errors
    /// There is none. The text says why, and what to do.
    async fn connect(&self) -> Result<Link, String>;
}

/// Passes messages on until the client closes its side and the server has answered what it could.
///
/// # Errors
/// The client's stream breaks.
pub async fn relay<R, W>(input: R, output: W, first: Link, servers: &dyn Servers) -> std::io::Result<()>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    let (server, heard) = (Some(first.output), Some(BufReader::new(first.input).lines()));
    let mut relay = Relay { output, servers, server, heard, asked: Asked::default(), ended: 0 };
    let mut lines = BufReader::new(input).lines();
    let mut is_open = true;
    while is_open || relay.heard.is_some() {
        let said = tokio::select! {
            line = lines.next_line(), if is_open => Said::Client(line?),
            line = next(&mut relay.heard) => Said::Server(line),
        };
        match said {
            Said::Client(Some(line)) if line.trim().is_empty() => {}
            Said::Client(Some(line)) => relay.ask(line).await?,
            Said::Client(None) => {
                is_open = false;
                relay.close().await;
            }
            Said::Server(Some(line)) => relay.answer(&line).await?,
            Said::Server(None) if is_open => relay.go_on().await?,
            Said::Server(None) => break,
        }
    }
    relay.refuse("Azera ended before it answered.").await
}

/// What came next.
enum Said {
    /// A line of the client; `None` at its end.
    Client(Option<String>),
    /// A line of the server; `None` at its end.
    Server(Option<String>),
}

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;
type Heard = Lines<BufReader<Input>>;

/// Returns the next line of the server; `None` if it has ended. Waits for ever where there is no server.
async fn next(heard: &mut Option<Heard>) -> Option<String> {
    match heard {
        // A stream that breaks has ended.
        Some(heard) => heard.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// Writes a message as one line.
async fn send<W: AsyncWrite + Unpin>(output: &mut W, line: &str) -> std::io::Result<()> {
    output.write_all(line.as_bytes()).await?;
    output.write_all(b"\n").await?;
    output.flush().await
}

/// A request without an answer so far.
struct Call {
    id: Value,
    line: String,
    /// The tool that it calls, if the tool changes anything.
    changes: Option<String>,
    is_sent: bool,
    /// How many servers it was sent to.
    servers: usize,
}

/// What the client asked so far.
#[derive(Default)]
struct Asked {
    /// The handshake: its request, and whether a server agreed to it.
    begun: Option<(Value, bool)>,
    /// The client's notification that ends the handshake.
    initialized: Option<String>,
    open: Vec<Call>,
}

impl Asked {
    fn take(&mut self, line: String) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { return };
        match message.get("method").and_then(Value::as_str) {
            Some("initialize") => self.begun = Some((message.clone(), false)),
            Some("notifications/initialized") => self.initialized = Some(line.clone()),
            Some("notifications/cancelled") => {
                let id = message.pointer("/params/requestId");
                self.open.retain(|call| Some(&call.id) != id);
            }
            _ => {}
        }
        if let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) {
            let changes = changing_tool(&message);
            self.open.push(Call { id: id.clone(), line, changes, is_sent: false, servers: 0 });
        }
    }

    /// Takes note of what a server said. Returns true if it is an answer.
    fn answered(&mut self, line: &str) -> bool {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return false };
        let Some(id) = message.get("id").filter(|_| message.get("method").is_none()) else { return false };
        self.open.retain(|call| call.id != *id);
        if let Some((begun, is_answered)) = &mut self.begun
            && begun.get("id") == Some(id)
        {
            // A server that refuses it has begun nothing.
            *is_answered = message.get("result").is_some();
        }
        true
    }

    /// Returns the handshake to repeat, if a server agreed to it.
    fn handshake(&self) -> Option<String> {
        let (begun, _) = self.begun.as_ref().filter(|(_, is_answered)| *is_answered)?;
        let mut again = begun.clone();
        again.as_object_mut()?.insert("id".to_owned(), REPEATED.into());
        Some(again.to_string())
    }
}

/// Returns the name of the tool that a message calls, if that changes anything.
fn changing_tool(message: &Value) -> Option<String> {
    let is_call = message.get("method").and_then(Value::as_str) == Some("tools/call");
    let tool = message.pointer("/params/name").and_then(Value::as_str).filter(|_| is_call)?;
    declared::changes(tool).then(|| tool.to_owned())
}

struct Relay<'a, W> {
    output: W,
    servers: &'a dyn Servers,
    /// What the server hears; `None` where there is none, or once the client has ended.
    server: Option<Output>,
    heard: Option<Heard>,
    asked: Asked,
    /// How many servers ended since one answered, or since the client asked something.
    ended: usize,
}

impl<W: AsyncWrite + Send + Unpin> Relay<'_, W> {
    /// Passes a line of the client on.
    async fn ask(&mut self, line: String) -> std::io::Result<()> {
        self.asked.take(line.clone());
        self.ended = 0;
        let sent = match &mut self.server {
            Some(server) => send(server, &line).await.is_ok(),
            None => false,
        };
        if !sent {
            self.hear_out().await?;
            return self.go_on().await;
        }
        if let Some(call) = self.asked.open.iter_mut().find(|call| call.line == line) {
            (call.is_sent, call.servers) = (true, 1);
        }
        Ok(())
    }

    /// Passes a line of the server on.
    async fn answer(&mut self, line: &str) -> std::io::Result<()> {
        if self.asked.answered(line) {
            self.ended = 0;
        }
        send(&mut self.output, line).await
    }

    /// Passes on what a server that hears nothing more had said before. It may have answered a change.
    async fn hear_out(&mut self) -> std::io::Result<()> {
        while self.heard.is_some() {
            match next(&mut self.heard).await {
                Some(line) => self.answer(&line).await?,
                None => self.heard = None,
            }
        }
        Ok(())
    }

    /// Ends what the server hears. What it says until its end is still passed on.
    async fn close(&mut self) {
        if let Some(mut server) = self.server.take()
            && let Err(error) = server.shutdown().await
        {
            tracing::debug!(%error, "the server ended first");
        }
    }

    /// Goes on with another server.
    async fn go_on(&mut self) -> std::io::Result<()> {
        (self.server, self.heard) = (None, None);
        while self.ended < MAX_SERVERS {
            self.ended += 1;
            let link = match self.servers.connect().await {
                Ok(link) => link,
                Err(detail) => return self.refuse(&detail).await,
            };
            let (mut server, mut heard) = (link.output, BufReader::new(link.input).lines());
            match self.resume(&mut server, &mut heard).await? {
                Resumed::Goes => {
                    (self.server, self.heard) = (Some(server), Some(heard));
                    return Ok(());
                }
                Resumed::Ended => {
                    self.heard = Some(heard);
                    self.hear_out().await?;
                }
                Resumed::Refused(detail) => return self.refuse(&detail).await,
            }
        }
        // The next question looks for a server again.
        self.refuse(AGAIN).await
    }

    /// Tells a new server what the one before knew, and asks it what has no answer yet.
    async fn resume(&mut self, server: &mut Output, heard: &mut Heard) -> std::io::Result<Resumed> {
        if let Some(handshake) = self.asked.handshake() {
            if send(server, &handshake).await.is_err() {
                return Ok(Resumed::Ended);
            }
            match greeting(heard).await {
                Resumed::Goes => {}
                other => return Ok(other),
            }
            if let Some(initialized) = &self.asked.initialized
                && send(server, initialized).await.is_err()
            {
                return Ok(Resumed::Ended);
            }
        }
        for mut call in std::mem::take(&mut self.asked.open) {
            match &call.changes {
                Some(tool) if call.is_sent => {
                    let detail = format!(
                        "The Azera that was asked ended, and nobody knows whether {tool} was done. Look before you call it \
                         again."
                    );
                    send(&mut self.output, &error(&call.id, &detail)).await?;
                }
                _ if call.servers >= MAX_SERVERS => send(&mut self.output, &error(&call.id, AGAIN)).await?,
                _ => {
                    // If it ends now, the next one is asked.
                    call.servers += 1;
                    call.is_sent = send(server, &call.line).await.is_ok();
                    self.asked.open.push(call);
                }
            }
        }
        Ok(if self.asked.open.iter().all(|call| call.is_sent) { Resumed::Goes } else { Resumed::Ended })
    }

    /// Answers everything that has no answer with an error.
    async fn refuse(&mut self, detail: &str) -> std::io::Result<()> {
        for call in std::mem::take(&mut self.asked.open) {
            send(&mut self.output, &error(&call.id, detail)).await?;
        }
        Ok(())
    }
}

/// What became of a session with another server.
enum Resumed {
    Goes,
    /// The server ended.
    Ended,
    /// The server does not go on with the session, for this reason.
    Refused(String),
}

/// Waits for the answer to the repeated handshake.
async fn greeting(heard: &mut Heard) -> Resumed {
    while let Ok(Some(line)) = heard.next_line().await {
        let answer = serde_json::from_str::<Value>(&line).unwrap_or_default();
        if answer.get("id").and_then(Value::as_str) == Some(REPEATED) {
            let reason = answer.pointer("/error/message").and_then(Value::as_str);
            return match answer.get("result") {
                Some(_) => Resumed::Goes,
                None => Resumed::Refused(reason.unwrap_or("Azera does not go on with this session.").to_owned()),
            };
        }
    }
    Resumed::Ended
}

fn error(id: &Value, detail: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": UNREACHABLE, "message": detail}}).to_string()
}

#[cfg(test)]
mod tests;
