//! The programs that record and play sound. They are asked for by their names, so that building Azera needs no library
//! of sound.

use std::io::Read as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::bail;

/// A program with its arguments for mono sound of 16 bit. `RATE` stands for the samples of a second.
struct Program {
    name: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
}

const RECORDERS: [Program; 3] = [
    Program {
        name: "arecord",
        package: "alsa-utils",
        arguments: &["-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "RATE", "-"],
    },
    Program {
        name: "parec",
        package: "pulseaudio-utils",
        arguments: &["--raw", "--format=s16le", "--channels=1", "--rate=RATE", "--latency-msec=30"],
    },
    Program {
        name: "pw-record",
        package: "pipewire-bin",
        arguments: &["--raw", "--format=s16", "--channels=1", "--rate=RATE", "--latency=30ms", "-"],
    },
];

const PLAYERS: [Program; 3] = [
    Program {
        name: "aplay",
        package: "alsa-utils",
        arguments: &["-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "RATE", "--buffer-time=120000", "-"],
    },
    Program {
        name: "pacat",
        package: "pulseaudio-utils",
        arguments: &["--raw", "--format=s16le", "--channels=1", "--rate=RATE", "--latency-msec=60"],
    },
    Program {
        name: "pw-play",
        package: "pipewire-bin",
        arguments: &["--raw", "--format=s16", "--channels=1", "--rate=RATE", "--latency=60ms", "-"],
    },
];

/// The most of a program's own words in an error.
const MAX_WORDS: u64 = 400;

/// A running program. Dropping it ends it.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts the first program that records, and waits for its first samples, which it returns with the pipe.
///
/// # Errors
/// No program records: the error names what each of them said, or the package that has it.
pub fn record(rate: u32) -> anyhow::Result<(Running, ChildStdout, Vec<u8>)> {
    let mut why = Vec::new();
    for program in &RECORDERS {
        let Some(mut child) = start(program, rate, false, &mut why)? else { continue };
        let Some(mut sound) = child.stdout.take() else { continue };
        let mut first = [0; 64];
        match sound.read(&mut first) {
            Ok(count) if count > 0 => return Ok((Running(child), sound, first[..count].to_vec())),
            _ => why.push(failure(program, child)),
        }
    }
    bail!("there is no microphone:{}", why.concat())
}

/// A running program that plays what is written to it.
pub struct Playback {
    _running: Running,
    /// Takes the samples.
    pub sound: ChildStdin,
    /// The name of the program.
    pub name: &'static str,
    /// Its place among the players.
    place: usize,
}

/// Starts the first program that plays.
///
/// # Errors
/// No program plays: the error names what each of them said, or the package that has it.
pub fn play(rate: u32) -> anyhow::Result<Playback> {
    play_from(0, rate)
}

/// Starts the first program that plays and comes after this one, which ended.
///
/// # Errors
/// As with [`play`].
pub fn play_after(ended: &Playback, rate: u32) -> anyhow::Result<Playback> {
    play_from(ended.place + 1, rate)
}

fn play_from(first: usize, rate: u32) -> anyhow::Result<Playback> {
    let mut why = Vec::new();
    for (place, program) in PLAYERS.iter().enumerate().skip(first) {
        let Some(mut child) = start(program, rate, true, &mut why)? else { continue };
        if let Some(sound) = child.stdin.take() {
            return Ok(Playback { _running: Running(child), sound, name: program.name, place });
        }
    }
    bail!("nothing can play sound:{}", why.concat())
}

/// Starts a program; `None`, with a reason, if it is not there.
fn start(program: &Program, rate: u32, plays: bool, why: &mut Vec<String>) -> anyhow::Result<Option<Child>> {
    let arguments = program.arguments.iter().map(|argument| argument.replace("RATE", &rate.to_string()));
    let mut command = Command::new(program.name);
    command.args(arguments).stderr(Stdio::piped());
    match plays {
        true => command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()),
        false => command.stdin(Stdio::null()).stdout(Stdio::piped()),
    };
    match command.spawn() {
        Ok(child) => Ok(Some(child)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            why.push(format!("\n- {} is not installed (package {})", program.name, program.package));
            Ok(None)
        }
        Err(error) => bail!("{}: {error}", program.name),
    }
}

/// Returns what a program said when it ended.
fn failure(program: &Program, mut child: Child) -> String {
    // It may still wait for something.
    child.kill().ok();
    child.wait().ok();
    let mut said = String::new();
    if let Some(words) = child.stderr.take() {
        // What cannot be read is no reason.
        words.take(MAX_WORDS).read_to_string(&mut said).ok();
    }
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("\n- {}: {}", program.name, if said.is_empty() { "it gave no sound".to_owned() } else { said.join("; ") })
}
