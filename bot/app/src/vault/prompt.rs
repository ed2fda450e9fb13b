//! A question on the terminal whose answer is not shown.

use std::io::{Read, Write, stdin};

use anyhow::{Context, bail};
use azera_memory_vault::{MAX_VALUE_BYTES, SecretText};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Keys that end or change the answer, as terminals send them.
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CTRL_U: u8 = 21;
const DELETE: u8 = 127;

/// Keeps the terminal from showing what is typed. It is as before when this is dropped.
struct Quiet(Termios);

impl Quiet {
    fn new() -> anyhow::Result<Self> {
        let before = tcgetattr(stdin()).context("reading the terminal's settings")?;
        let mut quiet = before.clone();
        // Without signals, Ctrl-C comes as a key, so that the terminal never stays quiet.
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(stdin(), OptionalActions::Now, &quiet).context("changing the terminal's settings")?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        tcsetattr(stdin(), OptionalActions::Now, &self.0).ok();
        eprintln!();
    }
}

/// Asks a question, and returns the line that is typed.
///
/// # Errors
/// Ctrl-C, an empty or too long answer, and errors of the terminal.
pub fn hidden(question: &str) -> anyhow::Result<SecretText> {
    let mut errors = std::io::stderr();
    errors.write_all(question.as_bytes())?;
    errors.flush()?;
    let _quiet = Quiet::new()?;
    let mut typed = Vec::new();
    for byte in stdin().lock().bytes() {
        match byte.context("reading the terminal")? {
            b'\n' | b'\r' | CTRL_D => break,
            CTRL_C => bail!("nothing was stored"),
            CTRL_U => typed.clear(),
            BACKSPACE | DELETE => {
                // A letter may have several bytes: those after the first begin with the bits 10.
                while typed.pop().is_some_and(|byte: u8| byte & 0b1100_0000 == 0b1000_0000) {}
            }
            byte if typed.len() <= MAX_VALUE_BYTES => typed.push(byte),
            _ => bail!("a value has at most {MAX_VALUE_BYTES} bytes; nothing was stored"),
        }
    }
    let text = String::from_utf8(typed).ok().context("the value is no text; nothing was stored")?;
    Ok(SecretText::new(text)?)
}
