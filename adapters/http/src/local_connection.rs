//! The connection between a command on this machine and the running web: one question, with an end to waiting.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest wait for an answer of the running web.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer that is read. Who uses hooks imports thousands of files, and may list them.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// The status of a web that was asked too often, by any program that shares the address. It did nothing of what was asked.
const TOO_MANY_REQUESTS: u16 = 429;

/// The two ends of a connection, as each end sees them. They are part of a proof, so that a program that took the address
/// over cannot have the web prove itself at another address, and pass that on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

impl Ends {
    pub(crate) fn new(client: SocketAddr, server: SocketAddr) -> Self {
        // A socket of both protocols shows addresses of the older one in another form.
        let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        Self { client: canonical(client), server: canonical(server) }
    }
}

/// A connection that ends at a moment, whatever the other end sends until then.
pub(crate) struct Timed {
    pub(crate) stream: TcpStream,
    /// `None` for no end.
    pub(crate) until: Option<Instant>,
}

impl Timed {
    fn left(until: Option<Instant>) -> std::io::Result<Option<Duration>> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.set_read_timeout(Self::left(self.until)?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.set_write_timeout(Self::left(self.until)?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// Why there is no answer.
pub(crate) enum Failure {
    Io(std::io::Error),
    TooMany { after_s: u64 },
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// One answer of the web.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Seconds after which it may be asked again.
    retry_after_s: Option<u64>,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the answer, unless the web refused the request because it gets too many. If it does not say for how long, the
    /// longest wait is assumed.
    pub(crate) fn taken(self) -> Result<Self, Failure> {
        if self.status == TOO_MANY_REQUESTS {
            return Err(Failure::TooMany { after_s: self.retry_after_s.unwrap_or(TIMEOUT.as_secs()) });
        }
        Ok(self)
    }
}

/// Reads one answer.
pub(crate) fn receive(connection: &mut BufReader<Timed>) -> std::io::Result<Answer> {
    let wrong = || std::io::Error::other("this is no answer of the web");
    let mut input = connection.take(MAX_ANSWER_BYTES);
    let (mut status, mut length, mut retry_after_s) = (None, None, None);
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        match line.trim_end() {
            "" if status.is_some() => break,
            "" => return Err(wrong()),
            first if status.is_none() => status = first.split(' ').nth(1).and_then(|status| status.parse().ok()),
            header => {
                let number = |wanted: &str| {
                    let (name, value) = header.split_once(':')?;
                    name.eq_ignore_ascii_case(wanted).then(|| value.trim().parse().ok())?
                };
                length = number("content-length").or(length);
                retry_after_s = number("retry-after").or(retry_after_s);
            }
        }
        status.ok_or_else(wrong)?;
    }
    let mut body = String::new();
    input.take(length.unwrap_or(MAX_ANSWER_BYTES)).read_to_string(&mut body)?;
    Ok(Answer { status: status.ok_or_else(wrong)?, retry_after_s, body })
}
