use std::collections::VecDeque;
use std::sync::Arc;

use azera_server_messages::SentTexts;
use reqwest::Response;

use crate::config::Api;
use crate::error::Error;
use crate::lines::{LineError, Lines, MAX_LINE_BYTES, MAX_STREAM_BYTES};
use crate::server::{Server, content_type};
use crate::wire::{Piece, Wire, WireError};
use crate::{ollama, openai};

/// The content types that can hold a reply. Servers without streaming answer with JSON, and some give no exact type.
const KINDS: [&str; 6] = [
    "text/event-stream",
    "application/json",
    "application/x-ndjson",
    "application/jsonl",
    "application/octet-stream",
    "text/plain",
];

/// A reply in transit from a server. Dropping it closes the connection.
pub(crate) struct Stream {
    server: Arc<Server>,
    response: Response,
    sent: SentTexts,
    lines: Lines,
    wire: Wire,
    ready: VecDeque<Piece>,
    /// The error that follows the ready pieces.
    failed: Option<Error>,
}

impl Stream {
    /// Reads a response to `sent` as a stream.
    pub(crate) fn new(server: Arc<Server>, response: Response, sent: SentTexts) -> Result<Self, Error> {
        let wire = match server.api {
            Api::Ollama => Wire::Ollama(ollama::Parser::default()),
            Api::OpenAi | Api::LlamaCpp => {
                let is_known = |kind: &&str| KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known));
                if let Some(kind) = content_type(&response).filter(|kind| !is_known(kind)) {
                    return Err(server.protocol(format!("the answer has the type {kind} instead of text/event-stream")));
                }
                Wire::OpenAi(openai::Parser::default())
            }
        };
        Ok(Self { server, response, sent, lines: Lines::default(), wire, ready: VecDeque::new(), failed: None })
    }

    /// Returns the next piece. Must not be called after [`Piece::End`].
    pub(crate) async fn next(&mut self) -> Result<Piece, Error> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(piece);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            self.failed = self.read().await.err();
        }
    }

    /// Reads until a piece is ready. Pieces before an error count, because they may have arrived in the same chunk.
    async fn read(&mut self) -> Result<(), Error> {
        while self.ready.is_empty() {
            match self.response.chunk().await.map_err(|error| self.server.network(error))? {
                Some(chunk) => {
                    self.lines.push(&chunk).map_err(|error| self.unreadable(error))?;
                    while let Some(line) = self.lines.next().map_err(|error| self.unreadable(error))? {
                        self.take(&line)?;
                    }
                }
                None => {
                    if let Some(line) = self.lines.rest() {
                        self.take(&line)?;
                    }
                    self.wire.end(&mut self.ready).map_err(|error| self.refused(error))?;
                    if self.ready.is_empty() {
                        let reason = "the connection ended before the reply did".to_owned();
                        return Err(Error::BrokeOff { server: self.server.name(), reason });
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, line: &str) -> Result<(), Error> {
        self.wire.line(line, &mut self.ready).map_err(|error| self.refused(error))
    }

    fn refused(&self, error: WireError) -> Error {
        match error {
            WireError::Malformed(reason) => self.server.protocol(reason),
            WireError::ServerSaid(value) => self.server.error_in(&value, &self.sent),
        }
    }

    fn unreadable(&self, error: LineError) -> Error {
        let too_much = |what, limit| Error::TooMuch { server: self.server.name(), what, limit };
        match error {
            LineError::LongLine => too_much("a line of a stream", MAX_LINE_BYTES),
            LineError::LongStream => too_much("a stream", MAX_STREAM_BYTES),
        }
    }
}
