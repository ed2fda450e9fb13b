//! How commands on this machine find the running web: a file in the data folder that only its owner may read.

use std::io::{BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use thiserror::Error;

use crate::local_connection::{Answer, Ends, Failure, TIMEOUT, Timed, receive};
use crate::{private_file, secrets};

/// The file's name.
const FILE: &str = "web.json";

/// The path at which the web proves that it knows the key.
pub(crate) const PROOF_PATH: &str = "/api/local/proof";

/// The status of a web that was asked too slowly.
const REQUEST_TIMEOUT: u16 = 408;

/// The status of a web that has no proof: an older Azera, or another program.
const NOT_FOUND: u16 = 404;

/// What stands before the challenge in a proof, so that the key signs nothing else by it.
const PROOF_OF: &[u8] = b"azera local proof\n";

/// Least time that a command needs to ask again.
const TO_ASK: Duration = Duration::from_millis(500);

/// Returns the pause before a web that gets too many requests is asked again, if the time allows that. It is a second at
/// least: another program may listen there, and say anything.
fn pause(after_s: u64, elapsed: Duration, longest: Duration) -> Option<Duration> {
    let pause = Duration::from_secs(after_s.max(1));
    (elapsed.saturating_add(pause).saturating_add(TO_ASK) <= longest).then_some(pause)
}

/// What the running web tells commands on this machine.
#[derive(Clone, Serialize, Deserialize)]
pub struct Local {
    /// The address of the web.
    pub address: String,
    /// The link that makes the owner's account; `None` once there is one.
    pub setup: Option<String>,
    /// A key for commands on this machine, which works from there alone and until the web stops. It manages the owner's keys,
    /// and reads and imports for people of the terminal.
    pub key: String,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Local({})", self.address)
    }
}

/// Why the file cannot be read.
#[derive(Debug, Error)]
pub enum LocalError {
    /// There is no file, so no web runs.
    #[error("no web runs here")]
    NotRunning,
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The web does not answer.
    #[error("the web at {address} does not answer: {source}")]
    Silent {
        /// The address.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The web takes the question and does not answer in time.
    #[error("the web at {address} did not answer in time: Azera is busy or stops; try again later")]
    Busy {
        /// The address.
        address: String,
    },
    /// The web gets more requests from the address of this command than it accepts.
    #[error("the web at {address} gets too many requests from this machine; try again in {after_s} s")]
    TooMany {
        /// The address.
        address: String,
        /// Seconds to wait.
        after_s: u64,
    },
    /// What listens there does not know the key, so it is not sent the key.
    #[error(
        "the program at {address} could not prove that it is the Azera of this data folder, so no key was sent: restart \
         Azera if an older version is running"
    )]
    Stranger {
        /// The address.
        address: String,
    },
    /// The web has no such thing.
    #[error("{0}")]
    Missing(String),
    /// The web answers that it does not work.
    #[error("{0}")]
    Refused(String),
}

impl Local {
    fn path(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Reads what the running web wrote.
    ///
    /// # Errors
    /// No web runs, or the file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, LocalError> {
        let path = Self::path(folder);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| LocalError::Read { path, source: std::io::Error::other(error) }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(LocalError::NotRunning),
            Err(source) => Err(LocalError::Read { path, source }),
        }
    }

    /// Returns true if the web still runs. A file may be left of one that was killed.
    pub fn is_running(&self) -> bool {
        TcpStream::connect(self.host()).is_ok()
    }

    /// Returns true if the address is one of this machine alone. Commands send their key nowhere else.
    pub fn is_here(&self) -> bool {
        self.host().parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
    }

    fn host(&self) -> &str {
        self.address.strip_prefix("http://").unwrap_or(&self.address)
    }

    /// Calls the running web with the rights of its owner. Blocks until it answers.
    ///
    /// # Errors
    /// The web does not answer, or refuses.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, LocalError> {
        self.call_for(method, path, body, Some(TIMEOUT))
    }

    /// Does the same, and waits at most so long for the connection and the whole answer. Without a limit, only the proof that
    /// this is the web has one. A web that gets too many requests is asked again when it accepts some.
    ///
    /// # Errors
    /// The web does not answer, or refuses.
    pub fn call_for(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        wait: Option<Duration>,
    ) -> Result<Value, LocalError> {
        let begun = Instant::now();
        let mut refused = None;
        loop {
            let left = wait.map(|wait| wait.saturating_sub(begun.elapsed()));
            match self.call_once(method, path, body, left) {
                Err(LocalError::TooMany { address, after_s }) => {
                    let error = LocalError::TooMany { address, after_s };
                    let Some(pause) = pause(after_s, begun.elapsed(), wait.unwrap_or(TIMEOUT)) else {
                        return Err(error);
                    };
                    std::thread::sleep(pause);
                    refused = Some(error);
                }
                // The time is over because of too many requests.
                Err(LocalError::Busy { address }) => return Err(refused.unwrap_or(LocalError::Busy { address })),
                answer => return answer,
            }
        }
    }

    fn call_once(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        wait: Option<Duration>,
    ) -> Result<Value, LocalError> {
        let address = || self.address.clone();
        let failed = |failure: Failure| match failure {
            Failure::TooMany { after_s } => LocalError::TooMany { address: address(), after_s },
            Failure::Io(source) => match source.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => LocalError::Busy { address: address() },
                ErrorKind::PermissionDenied => LocalError::Stranger { address: address() },
                _ => LocalError::Silent { address: address(), source },
            },
        };
        let Answer { status, body: answer, .. } = self.exchange(method, path, body, wait).map_err(failed)?;
        let value: Value =
            serde_json::from_str(&answer).map_err(|error| failed(std::io::Error::other(error).into()))?;
        if status == 200 {
            return Ok(value);
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let detail = text("error").unwrap_or("it refuses").to_owned();
        Err(if text("code") == Some("not_found") { LocalError::Missing(detail) } else { LocalError::Refused(detail) })
    }

    /// Returns the proof of knowing the key, for a challenge that nobody saw before, on one connection.
    pub(crate) fn proof(&self, challenge: &str, on: Ends) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_bytes()).ok()?;
        mac.update(PROOF_OF);
        mac.update(challenge.as_bytes());
        // No address has a line end, so the last two lines are these, whatever the challenge is.
        mac.update(format!("\n{}\n{}", on.client, on.server).as_bytes());
        Some(URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        wait: Option<Duration>,
    ) -> Result<Answer, Failure> {
        let mut connection = self.connect(wait)?;
        let key = format!("Authorization: Bearer {}\r\nConnection: close\r\n", self.key);
        self.send(connection.get_mut(), (method, path), &key, &body.map(Value::to_string).unwrap_or_default())?;
        receive(&mut connection)?.taken()
    }

    /// Connects with the web, which proves on this connection that it knows the key before the key is sent. The web may have
    /// been killed since it wrote the file, and another program of this machine may listen at its address.
    fn connect(&self, wait: Option<Duration>) -> Result<BufReader<Timed>, Failure> {
        let begun = Instant::now();
        let first = wait.unwrap_or(TIMEOUT).min(TIMEOUT);
        let nowhere = || std::io::Error::from(ErrorKind::AddrNotAvailable);
        let address = self.host().to_socket_addrs()?.next().ok_or_else(nowhere)?;
        let stream = TcpStream::connect_timeout(&address, first)?;
        let ends = Ends::new(stream.local_addr()?, stream.peer_addr()?);
        let mut connection = BufReader::new(Timed { stream, until: Some(begun + first) });
        let challenge = secrets::token().map_err(std::io::Error::other)?;
        let body = json!({"challenge": challenge}).to_string();
        self.send(connection.get_mut(), ("POST", PROOF_PATH), "", &body)?;
        let Answer { status, body: answer, .. } = receive(&mut connection)?.taken()?;
        match status {
            200 | NOT_FOUND => {}
            REQUEST_TIMEOUT | 500.. => return Err(std::io::Error::from(ErrorKind::WouldBlock).into()),
            _ => {
                let wrong = format!("it answered with status {status} when it was to prove itself");
                return Err(std::io::Error::other(wrong).into());
            }
        }
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let given = answer.get("proof").and_then(Value::as_str).unwrap_or_default();
        if !self.proof(&challenge, ends).is_some_and(|proof| secrets::same(&proof, given)) {
            return Err(std::io::Error::from(ErrorKind::PermissionDenied).into());
        }
        connection.get_mut().until = wait.map(|wait| begun + wait);
        Ok(connection)
    }

    fn send(&self, stream: &mut Timed, (method, path): (&str, &str), headers: &str, body: &str) -> std::io::Result<()> {
        let (host, length) = (self.host(), body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())
    }

    /// Writes the file, which is never readable for others.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), crate::Error> {
        let path = Self::path(folder);
        let content = serde_json::to_vec(self);
        let content = content.map_err(|error| crate::Error::File { path: path.clone(), source: error.into() })?;
        private_file::write(&path, &content)
    }

    /// Removes the file.
    pub(crate) fn remove(folder: &Path) {
        if let Err(error) = std::fs::remove_file(Self::path(folder)) {
            tracing::debug!(%error, "there is no file of the web to remove");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_web_that_does_not_answer_is_busy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let local = Local { address, setup: None, key: "azl_1".to_owned() };
        let answer = local.call_for("GET", "/", None, Some(Duration::from_millis(1)));
        assert!(matches!(answer, Err(LocalError::Busy { .. })));
    }

    /// Answers one question as a program does that is no web of this data folder. It hears no secret. Returns what is said
    /// of it.
    fn answered(status: &str, body: impl FnOnce(&Local, &str, Ends) -> String) -> LocalError {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let local = Local { address, setup: None, key: "azl_secret".to_owned() };
        let asked = local.clone();
        let asking = std::thread::spawn(move || asked.call("POST", "/api/local/imports", Some(&json!({"a": "b"}))));
        let (mut stranger, client) = listener.accept().unwrap();
        let mut heard = [0; 4_096];
        let begun = stranger.read(&mut heard).unwrap();
        let mut heard = String::from_utf8_lossy(heard.get(..begun).unwrap()).into_owned();
        let challenge = heard.rsplit('"').nth(1).unwrap_or_default().to_owned();
        let body = body(&local, &challenge, Ends::new(client, stranger.local_addr().unwrap()));
        write!(stranger, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let error = asking.join().unwrap().unwrap_err();
        stranger.read_to_string(&mut heard).unwrap();
        assert!(heard.contains("challenge") && !heard.contains("azl_") && !heard.contains("imports"), "{heard}");
        error
    }

    #[test]
    fn a_proof_that_was_given_at_another_address_or_to_another_program_is_none() {
        let proof = |local: &Local, challenge: &str, on: Ends| json!({"proof": local.proof(challenge, on)}).to_string();
        let elsewhere = |local: &Local, challenge: &str, on: Ends| {
            proof(local, challenge, Ends { server: "127.0.0.2:80".parse().unwrap(), ..on })
        };
        assert!(matches!(answered("200 OK", elsewhere), LocalError::Stranger { .. }));
        let passed_on = |local: &Local, challenge: &str, on: Ends| {
            proof(local, challenge, Ends { client: "127.0.0.1:4711".parse().unwrap(), ..on })
        };
        assert!(matches!(answered("200 OK", passed_on), LocalError::Stranger { .. }));
    }

    #[test]
    fn a_web_that_is_busy_or_refuses_is_no_stranger() {
        let none = |_: &Local, _: &str, _: Ends| "{}".to_owned();
        for status in ["408 Request Timeout", "503 Service Unavailable", "500 Error"] {
            assert!(matches!(answered(status, none), LocalError::Busy { .. }), "{status}");
        }
        let many = answered("429 Too Many Requests\r\nRetry-After: 60", none);
        assert!(matches!(many, LocalError::TooMany { after_s: 60, .. }), "{many}");
        assert!(matches!(answered("404 Not Found", none), LocalError::Stranger { .. }));
        let refused = answered("421 Misdirected Request", none).to_string();
        assert!(refused.contains("with status 421 when it was to prove itself"), "{refused}");
    }

    #[test]
    fn a_busy_web_is_asked_again_while_there_is_time() {
        let seconds = Duration::from_secs;
        assert_eq!(pause(3, seconds(0), seconds(10)), Some(seconds(3)));
        assert_eq!(pause(0, seconds(1), seconds(10)), Some(seconds(1)), "no busy loop");
        assert_eq!(pause(3, seconds(7), seconds(10)), None);
        assert_eq!(pause(u64::MAX, seconds(1), seconds(10)), None);
    }

    /// Answers one connection of a command: with the proof or without, and then with `answer`.
    fn serve(listener: &TcpListener, local: &Local, proves: bool, answer: &str) {
        let (mut web, client) = listener.accept().unwrap();
        let on = Ends::new(client, web.local_addr().unwrap());
        let mut heard = [0; 4_096];
        let mut hear = |web: &mut TcpStream| {
            let length = web.read(&mut heard).unwrap();
            String::from_utf8_lossy(heard.get(..length).unwrap()).into_owned()
        };
        let challenge = hear(&mut web).rsplit('"').nth(1).unwrap_or_default().to_owned();
        if proves {
            let proof = json!({"proof": local.proof(&challenge, on)}).to_string();
            write!(web, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{proof}", proof.len()).unwrap();
            assert!(hear(&mut web).contains("azl_secret"));
        }
        web.write_all(answer.as_bytes()).unwrap();
    }

    /// What another program of this machine asks counts for the same address. The limit may come before the proof and after.
    #[test]
    fn a_web_that_gets_too_many_requests_is_asked_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let local = Local { address, setup: None, key: "azl_secret".to_owned() };
        let known = local.clone();
        // A thread that is not asked again ends with the test.
        std::thread::spawn(move || {
            let many = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n{}";
            serve(&listener, &known, false, many);
            serve(&listener, &known, true, many);
            serve(&listener, &known, true, "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"imports\":1}");
        });
        assert_eq!(local.call("GET", "/api/local/imports", None).unwrap(), json!({"imports": 1}));
    }

    #[test]
    fn both_ends_of_a_socket_of_both_protocols_are_named_alike() {
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (old, mapped) = (end("127.0.0.1:4711"), end("[::ffff:127.0.0.1]:4711"));
        assert_eq!(Ends::new(old, mapped), Ends::new(mapped, old));
    }

    #[test]
    fn a_program_that_took_the_address_over_is_not_sent_the_key() {
        let nothing = |_: &Local, _: &str, _: Ends| "{}".to_owned();
        let other_key = |local: &Local, challenge: &str, on: Ends| {
            let other = Local { key: "azl_other".to_owned(), ..local.clone() };
            json!({"proof": other.proof(challenge, on)}).to_string()
        };
        let no_json = |_: &Local, _: &str, _: Ends| "x".to_owned();
        for error in [answered("200 OK", nothing), answered("200 OK", other_key), answered("200 OK", no_json)] {
            assert!(matches!(error, LocalError::Stranger { .. }), "{error}");
        }
    }

    #[test]
    fn a_proof_is_for_one_challenge_one_key_and_one_connection() {
        let local = |key: &str| Local { address: String::new(), setup: None, key: key.to_owned() };
        let on = |client: u16, server: u16| {
            Ends::new(SocketAddr::from(([127, 0, 0, 1], client)), SocketAddr::from(([127, 0, 0, 1], server)))
        };
        let proof = local("azl_1").proof("one", on(1, 2));
        assert!(proof.is_some() && proof == local("azl_1").proof("one", on(1, 2)));
        for (key, challenge, on) in [
            ("azl_1", "two", on(1, 2)),
            ("azl_2", "one", on(1, 2)),
            ("azl_1", "one", on(3, 2)),
            ("azl_1", "one", on(1, 3)),
        ] {
            assert!(proof != local(key).proof(challenge, on));
        }
    }
}
