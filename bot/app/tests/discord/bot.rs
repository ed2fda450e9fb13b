//! Starts the real binary against the fake Discord.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use azera_fake_discord::FakeDiscord;
use tempfile::TempDir;

use crate::model::Model;

/// How long to wait for a line in the log.
const PATIENCE: Duration = Duration::from_secs(300);

/// A data folder and a bot that runs on it.
pub struct Bot {
    scratch: TempDir,
    api: String,
    token: String,
    model: Option<String>,
    /// True if the registry's default model answers.
    own_model: bool,
    more: Vec<(String, String)>,
    process: Option<Child>,
    log: Arc<(Mutex<String>, Condvar)>,
}

/// Returns the folder of the default models, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
pub fn models() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MODELS");
    dir.map(PathBuf::from).expect("AZERA_TEST_MODELS names the folder of the default models; run `make test`")
}

/// Returns the file of Discord's own OpenAPI description, if one is set.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
pub fn description() -> Option<PathBuf> {
    std::env::var_os("AZERA_DISCORD_OPENAPI").map(PathBuf::from).filter(|path| path.exists())
}

impl Bot {
    /// Creates a bot that answers with the given model, or with the scripted one.
    pub fn new(fake: &FakeDiscord, model: Option<&Model>) -> Self {
        let scratch = tempfile::tempdir().expect("a folder");
        std::fs::write(scratch.path().join("root.pem"), &fake.root_certificate).expect("a file");
        Self {
            scratch,
            api: fake.api.to_string(),
            token: fake.token.clone(),
            model: model.map(|model| model.url.clone()),
            own_model: false,
            more: Vec::new(),
            process: None,
            log: Arc::default(),
        }
    }

    /// Lets the default model answer.
    pub fn with_own_model(mut self) -> Self {
        self.own_model = true;
        self
    }

    /// Lets recall find new memories at once.
    pub fn recalling_at_once(self) -> Self {
        self.with("AZERA__MEMORY__MIN_AGE_S", "0")
    }

    /// Lets a persona answer that speaks without liveliness: the same words always sound the same.
    pub fn with_even_voice(self) -> Self {
        let personas = self.data().join("personas");
        std::fs::create_dir_all(&personas).expect("a folder");
        let file = "---\nid: even\nname: Azera\nkind: assistant\nvoice: {liveliness: 0}\n---\n\n# Azera\n\n## Intent\n\n\
                    Answer questions about the town.\n\n## Core Identity\n\nYou know the town, its trains and its garden.\n";
        std::fs::write(personas.join("even.md"), file).expect("a file");
        self.with("AZERA__CHAT__PERSONA", "even")
    }

    /// Sets a configuration key.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.more.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Returns the data folder.
    pub fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// Returns the binary with a command, configured for the fake.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let home = self.scratch.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_azera"));
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
        command.env("AZERA__MODELS__DIR", models()).env("AZERA__MODELS__PREFIX_CACHE_MB", "0");
        command.env("AZERA__HTTP__ENABLED", "false").env("AZERA__VOICE__ESPEAK", "false");
        command.env("AZERA__MODELS__THREADS", "1").env("AZERA__BACKUP__ENABLED", "false");
        command.env("AZERA_DATA", home.join("data")).env("AZERA_LOG", "info,azera_adapter_discord=debug");
        command.env("AZERA__DISCORD__TOKEN", &self.token).env("AZERA__DISCORD__API_ADDRESS", &self.api);
        command.env("AZERA__DISCORD__API_ROOT_CERTIFICATE", home.join("root.pem"));
        // The voice gateway is reached with the certificates of the machine.
        command.env("SSL_CERT_FILE", home.join("root.pem"));
        if let Some(url) = &self.model {
            command.env("AZERA__CHAT_SERVER__API", "openai").env("AZERA__CHAT_SERVER__URL", url);
            command.env("AZERA__CHAT_SERVER__MODEL", "tester");
        }
        for (key, value) in &self.more {
            command.env(key, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the bot and waits until it listens.
    pub fn start(&mut self, fake: &FakeDiscord) {
        let before = fake.world(|world| world.identified);
        let arguments: &[&str] =
            if self.own_model || self.model.is_some() { &["run"] } else { &["run", "--model", "scripted"] };
        let mut process = self.command(arguments).spawn().expect("the binary runs");
        let stderr = process.stderr.take().expect("a pipe");
        let log = self.log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log_text = log.0.lock().expect("nobody panics while they hold this");
                log_text.push_str(&line);
                log_text.push('\n');
                log.1.notify_all();
            }
        });
        self.process = Some(process);
        fake.wait("the bot to connect", |world| (world.identified > before && world.listening()).then_some(()));
    }

    /// Returns the id of the process.
    pub fn process_id(&self) -> u32 {
        self.process.as_ref().expect("the bot runs").id()
    }

    /// Kills the bot.
    pub fn kill(&mut self, fake: &FakeDiscord) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it can be killed");
            process.wait().expect("it ends");
            fake.wait("the connection to end", |world| (!world.listening()).then_some(()));
        }
    }

    /// Asks the bot to stop and waits until it has.
    pub fn stop(&mut self, fake: &FakeDiscord) {
        if let Some(mut process) = self.process.take() {
            let id = process.id().to_string();
            let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill runs");
            assert!(sent.success());
            let status = process.wait().expect("it ends");
            assert!(status.success(), "{}", self.log());
            fake.wait("the connection to end", |world| (!world.listening()).then_some(()));
        }
    }

    /// Waits until the bot logs these words, for what the fake cannot see.
    #[track_caller]
    pub fn logs(&self, words: &str) {
        self.logs_times(words, 1, PATIENCE);
    }

    /// Waits until the bot logged these words so many times.
    #[track_caller]
    pub fn logs_times(&self, words: &str, times: usize, patience: Duration) {
        let log = self.log.0.lock().expect("nobody panics while they hold this");
        let lacks = |log: &mut String| log.matches(words).count() < times;
        let waited = self.log.1.wait_timeout_while(log, patience, lacks);
        let is_in_vain = waited.expect("nobody panics while they hold this").1.timed_out();
        assert!(!is_in_vain, "waited in vain for {words:?} in the log, {times} times");
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.log.0.lock().expect("nobody panics while they hold this").clone()
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}
