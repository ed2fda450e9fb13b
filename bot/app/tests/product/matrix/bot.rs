//! The bot: the real binary with `azera run`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::homeserver::{Homeserver, PASSWORD, SECRET, python};
use super::model::Model;
use super::person::PATIENCE;
use crate::command;

/// Settings by name; `None` removes one.
pub type Settings = Vec<(&'static str, Option<String>)>;

/// Returns settings with values.
pub fn settings(more: &[(&'static str, &str)]) -> Settings {
    more.iter().map(|(key, value)| (*key, Some((*value).to_owned()))).collect()
}

/// The bot's account.
pub const BOT: &str = "@azera:localhost";

pub struct Bot {
    home: PathBuf,
    homeserver: String,
    model: String,
    /// Settings that replace or extend the default ones; one without a value is left out.
    pub more: Settings,
    child: Option<Child>,
}

impl Bot {
    /// Creates the bot's account and starts the bot.
    pub fn start(homeserver: &Homeserver, scratch: &Path, model: &Model, more: Settings) -> Self {
        Self::make_account(homeserver);
        Self::at(&homeserver.url, scratch, model, more)
    }

    pub fn make_account(homeserver: &Homeserver) {
        let made = python(&[&homeserver.url, SECRET, "azera", "-"]).status().expect("python3 runs");
        assert!(made.success());
    }

    /// Starts the bot with the homeserver at an address.
    pub fn at(address: &str, scratch: &Path, model: &Model, more: Settings) -> Self {
        let mut bot = Self::unstarted(address, scratch, model, more);
        bot.start_again();
        bot
    }

    /// Returns a bot that has not started.
    pub fn unstarted(address: &str, scratch: &Path, model: &Model, more: Settings) -> Self {
        let (home, homeserver) = (scratch.to_path_buf(), address.to_owned());
        Self { home, homeserver, model: model.url.clone(), more, child: None }
    }

    /// Returns any command of the binary, on the bot's data.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.home, arguments);
        for (key, value) in [
            ("MATRIX__HOMESERVER", self.homeserver.as_str()),
            ("MATRIX__USER", "azera"),
            ("MATRIX__PASSWORD", PASSWORD),
            ("MATRIX__PERSON_PER_MINUTE", "1000"),
            ("MATRIX__ROOM_PER_MINUTE", "1000"),
            ("CHAT_SERVER__API", "openai"),
            ("CHAT_SERVER__URL", &self.model),
            ("CHAT_SERVER__MODEL", "talker"),
            // New messages become memories at once.
            ("MEMORY__MIN_AGE_S", "0"),
        ] {
            command.env(format!("AZERA__{key}"), value);
        }
        for (key, value) in &self.more {
            match value {
                Some(value) => command.env(format!("AZERA__{key}"), value),
                None => command.env_remove(format!("AZERA__{key}")),
            };
        }
        command
    }

    /// Starts the bot and waits until it listens.
    #[track_caller]
    pub fn start_again(&mut self) {
        match self.launch().recv_timeout(PATIENCE) {
            Ok(Ok(())) => {}
            Ok(Err(log)) => panic!("the bot did not start: {log}"),
            Err(_) => panic!("the bot did not start"),
        }
    }

    /// Starts the bot and kills it after at most this time.
    pub fn start_and_kill(&mut self, within: Duration) {
        // The bot may listen by then or not.
        self.launch().recv_timeout(within).ok();
        self.kill();
    }

    /// Starts the bot. The channel reports that it listens, or its whole log when it ends.
    fn launch(&mut self) -> Receiver<Result<(), String>> {
        let mut command = self.command(&["run"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("the binary runs");
        let (sender, heard) = channel();
        let output = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            let mut log = String::new();
            for line in output.lines().map_while(Result::ok) {
                log.push_str(&line);
                log.push('\n');
                if line.contains("Azera listens") {
                    sender.send(Ok(())).ok();
                }
                eprintln!("bot: {line}");
            }
            sender.send(Err(log)).ok();
        });
        self.child = Some(child);
        heard
    }

    /// Returns the Matrix line of `azera doctor`.
    #[track_caller]
    pub fn doctor(&self) -> String {
        let output = self.command(&["doctor"]).output().expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.contains("Matrix: "));
        line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))).to_owned()
    }

    /// Runs the doctor until its Matrix line is as expected, because the bot updates its status a moment after it acts.
    #[track_caller]
    pub fn until_doctor_says(&self, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.doctor();
            if wanted(&said) {
                return said;
            }
            assert!(Instant::now() < end, "the doctor still says: {said}");
        }
    }

    /// Returns the bot's data folder.
    pub fn data(&self) -> PathBuf {
        self.home.join(".local/share/azera")
    }

    /// Returns the memory of its own that the process has, in bytes: not what is mapped from files.
    pub fn memory(&self) -> u64 {
        let pid = self.child.as_ref().expect("it runs").id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line of it");
        line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
    }

    /// Kills the bot.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
    }

    /// Stops the bot with SIGTERM, as a service manager does.
    #[track_caller]
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        let ended = child.wait().expect("it ends");
        assert!(ended.success(), "{ended}");
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        self.kill();
    }
}
