//! A real homeserver, Synapse, on loopback.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::ports;

/// The shared secret with which `bot/scripts/synapse.sh` registers accounts.
pub const SECRET: &str = "loopback-only";

/// The password of every account that `matrix_person.py` creates.
pub const PASSWORD: &str = "correct horse";

/// Returns the folder of Synapse and matrix-nio, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
pub fn tools() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_SYNAPSE");
    dir.map(PathBuf::from).expect("AZERA_TEST_SYNAPSE names the folder of Synapse; run `make test`")
}

/// Returns the folder of matrix-js-sdk, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn js_tools() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MATRIX_JS");
    dir.map(PathBuf::from).expect("AZERA_TEST_MATRIX_JS names the folder of matrix-js-sdk; run `make test`")
}

pub struct Homeserver {
    pub url: String,
    port: u16,
    state: PathBuf,
    /// The process. It ends when its input closes.
    child: Option<Child>,
}

impl Homeserver {
    pub fn start(scratch: &Path) -> Self {
        // Synapse takes seconds to bind it, also after a restart.
        let port = ports::reserved();
        let state = scratch.join("synapse");
        let mut homeserver = Self { url: format!("http://127.0.0.1:{port}"), port, state, child: None };
        homeserver.serve();
        homeserver
    }

    fn serve(&mut self) {
        let mut child = Command::new("bash")
            .args(["../scripts/synapse.sh", "serve"])
            .args([tools(), self.state.clone()])
            .arg(self.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("the script writes");
        assert_eq!(line.trim(), "ready", "Synapse did not start");
        self.child = Some(child);
    }

    /// Stops the homeserver; its state stays on disk.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            child.wait().expect("the script ends");
        }
    }

    /// Starts the homeserver again with the same state.
    pub fn start_again(&mut self) {
        self.serve();
    }
}

impl Drop for Homeserver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the command of a matrix-nio client.
pub fn python(arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg("../scripts/matrix_person.py").args(arguments);
    command.env("PYTHONPATH", tools()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Returns the command of a matrix-js-sdk client.
pub fn node(arguments: &[&str]) -> Command {
    let dir = js_tools();
    let mut command = Command::new(dir.join("bin/node"));
    command.arg("../scripts/matrix_person.mjs").args(arguments);
    command.env("AZERA_TEST_MATRIX_JS", dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}
