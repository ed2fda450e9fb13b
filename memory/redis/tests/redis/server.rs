//! Starts a redis-server for each test and ends it by its process id.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Attempts to find a free port. Another test may take a port between choosing and using it.
const TRIES: usize = 20;

const PASSWORD: &str = "hush-hush";

pub struct RedisServer {
    child: Option<Child>,
    port: u16,
    password: bool,
    _dir: TempDir,
}

/// Returns the path of the server's program, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn program() -> String {
    std::env::var("AZERA_TEST_REDIS").unwrap_or_else(|_| "redis-server".into())
}

impl RedisServer {
    pub fn start() -> Self {
        Self::start_with(false)
    }

    pub fn with_password() -> Self {
        Self::start_with(true)
    }

    fn start_with(password: bool) -> Self {
        let dir = TempDir::new().unwrap();
        for _ in 0..TRIES {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if let Some(child) = run(port, password, &dir) {
                return Self { child: Some(child), port, password, _dir: dir };
            }
        }
        panic!("no redis-server starts; run `make test`, which fetches one");
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn password(&self) -> Option<String> {
        self.password.then(|| PASSWORD.to_owned())
    }

    /// Kills the server; it loses all data.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts it again on the same port.
    pub fn again(&mut self) {
        self.stop();
        self.child = Some(run(self.port, self.password, &self._dir).expect("the same port is free again"));
    }

    /// Returns its raw answer to a command.
    pub fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> usize {
        self.ask("DBSIZE").lines().next().unwrap().trim_start_matches(':').parse().unwrap()
    }

    /// Stops it from answering, like a machine that hangs, until it is resumed.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Starts a server; `None` if the port was taken meanwhile.
fn run(port: u16, password: bool, dir: &TempDir) -> Option<Child> {
    let mut command = Command::new(program());
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.arg("--dir").arg(dir.path());
    if password {
        command.args(["--requirepass", PASSWORD]);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("redis-server; see `make test`");
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    if said.by_ref().map_while(Result::ok).any(|line| line.contains("Ready to accept connections")) {
        // The output must be read on, or the server would block on a full pipe.
        std::thread::spawn(move || said.for_each(drop));
        return Some(child);
    }
    child.wait().unwrap();
    None
}
