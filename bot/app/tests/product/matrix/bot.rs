//! The bot: the real binary, `azera run`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use super::homeserver::{Homeserver, PASSWORD, SECRET, python};
use super::model::Model;
use super::person::PATIENCE;
use crate::command;

/// The bot's account.
pub const BOT: &str = "@azera:localhost";

pub struct Bot {
    home: PathBuf,
    homeserver: String,
    model: String,
    /// Settings besides the usual ones.
    more: &'static [(&'static str, &'static str)],
    child: Option<Child>,
}

impl Bot {
    /// Makes the bot's account, and starts it.
    pub fn start(
        homeserver: &Homeserver,
        scratch: &Path,
        model: &Model,
        more: &'static [(&'static str, &'static str)],
    ) -> Self {
        let made = python(&[&homeserver.url, SECRET, "azera", "-"]).status().expect("python3 runs");
        assert!(made.success());
        Self::at(&homeserver.url, scratch, model, more)
    }

    /// Starts it with the homeserver at an address.
    pub fn at(address: &str, scratch: &Path, model: &Model, more: &'static [(&'static str, &'static str)]) -> Self {
        let (home, homeserver) = (scratch.to_path_buf(), address.to_owned());
        let mut bot = Self { home, homeserver, model: model.url.clone(), more, child: None };
        bot.start_again();
        bot
    }

    /// Any command of the binary, on the bot's data.
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
            // What was said just now is a memory at once.
            ("MEMORY__MIN_AGE_S", "0"),
        ]
        .iter()
        .chain(self.more)
        {
            command.env(format!("AZERA__{key}"), value);
        }
        command
    }

    /// Starts it, and waits until it listens.
    #[track_caller]
    pub fn start_again(&mut self) {
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
        match heard.recv_timeout(PATIENCE) {
            Ok(Ok(())) => {}
            Ok(Err(log)) => panic!("the bot did not start: {log}"),
            Err(_) => panic!("the bot did not start"),
        }
    }

    /// Ends it at once, wherever it is.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
    }

    /// Ends it as a service manager does.
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
