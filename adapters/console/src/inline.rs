//! Pictures within the terminal, where it can show them: which protocol it speaks, and how a picture is written in it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use azera_model_image::{Picture, PictureLimits};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::time::{Instant, sleep};

use crate::sixel;

/// The longest side of a shown picture, in pixels. The saved file keeps its size.
const SIDE: u32 = 640;

/// Bytes of base64 in one command of kitty's protocol.
const CHUNK: usize = 4_096;

/// How long a terminal may take to say what it can. It answers at once or never, but may be far away.
const PATIENCE: Duration = Duration::from_millis(500);

/// Time between two looks for the answer.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1_024;

/// Asks whether kitty's protocol is known, and then what else the terminal can. Every terminal answers the second question.
const QUESTION: &[u8] = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c";

/// Opens a file without waiting for bytes in it.
const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 4 };

/// How a terminal is told to show a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlinePictures {
    /// kitty's graphics protocol.
    Kitty,
    /// iTerm2's inline images.
    Iterm,
    /// Sixels, in 216 colours.
    Sixel,
}

/// What the environment says about the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalNames {
    /// TERM.
    pub term: String,
    /// TERM_PROGRAM, or LC_TERMINAL.
    pub program: String,
    /// True within tmux or screen, which pass no pictures on.
    pub is_multiplexed: bool,
}

/// What is known without asking the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    Known(InlinePictures),
    Never,
    Ask,
}

/// Returns how the terminal of this process shows pictures; `None` if it does not. Asks it if the environment does not
/// tell, and waits for half a second at most. Call it before anything reads from the terminal.
pub async fn detect(names: &TerminalNames) -> Option<InlinePictures> {
    match guess(names) {
        Guess::Known(protocol) => Some(protocol),
        Guess::Never => None,
        Guess::Ask => {
            crossterm::terminal::enable_raw_mode().ok()?;
            let answer = ask().await;
            crossterm::terminal::disable_raw_mode().ok()?;
            understood(&answer.unwrap_or_default())
        }
    }
}

fn guess(names: &TerminalNames) -> Guess {
    let (term, program) = (names.term.to_lowercase(), names.program.to_lowercase());
    if names.is_multiplexed || ["", "dumb", "linux"].contains(&term.as_str()) {
        return Guess::Never;
    }
    match program.as_str() {
        "ghostty" => Guess::Known(InlinePictures::Kitty),
        "iterm.app" | "iterm2" | "wezterm" | "mintty" => Guess::Known(InlinePictures::Iterm),
        _ if term.contains("kitty") || term.contains("ghostty") => Guess::Known(InlinePictures::Kitty),
        _ => Guess::Ask,
    }
}

/// Asks the terminal; returns what it says in time.
async fn ask() -> std::io::Result<Vec<u8>> {
    let mut terminal: File = OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open("/dev/tty")?;
    terminal.write_all(QUESTION)?;
    terminal.flush()?;
    let (mut answer, end) = (Vec::new(), Instant::now() + PATIENCE);
    let mut chunk = [0; 256];
    while !is_whole(&answer) && answer.len() < MAX_ANSWER && Instant::now() < end {
        match terminal.read(&mut chunk) {
            Ok(read) => answer.extend_from_slice(chunk.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        sleep(BETWEEN_LOOKS).await;
    }
    Ok(answer)
}

/// Returns true once the answer to the second question is there.
fn is_whole(answer: &[u8]) -> bool {
    attributes(answer).is_some()
}

/// Returns the numbers in the answer about what the terminal can.
fn attributes(answer: &[u8]) -> Option<Vec<u32>> {
    let text = String::from_utf8_lossy(answer);
    let (_, after) = text.split_once("\u{1b}[?")?;
    let (numbers, _) = after.split_once('c')?;
    Some(numbers.split(';').filter_map(|number| number.parse().ok()).collect())
}

fn understood(answer: &[u8]) -> Option<InlinePictures> {
    /// The attribute of terminals that show sixels.
    const SIXELS: u32 = 4;
    let knows_kitty = answer.windows(7).any(|part| part == b"i=31;OK");
    if knows_kitty {
        return Some(InlinePictures::Kitty);
    }
    attributes(answer)?.contains(&SIXELS).then_some(InlinePictures::Sixel)
}

impl InlinePictures {
    /// Returns a picture file as what the terminal is sent, made smaller if it is large; `None` if it is no picture that
    /// can be read.
    pub(crate) fn written(self, file: &[u8]) -> Option<String> {
        let picture = Picture::read(file, &PictureLimits::default()).ok()?.thumbnail(SIDE);
        if self == Self::Sixel {
            let side = |side: u32| usize::try_from(side).ok();
            return Some(sixel::encode(side(picture.width())?, side(picture.height())?, picture.pixels()));
        }
        let png = picture.to_png(&[]).ok()?;
        let data = STANDARD.encode(&png);
        Some(match self {
            Self::Kitty => kitty(&data),
            _ => format!("\u{1b}]1337;File=inline=1;size={};preserveAspectRatio=1:{data}\u{7}", png.len()),
        })
    }
}

/// Returns a PNG file in base64 as commands of kitty's protocol.
fn kitty(data: &str) -> String {
    let mut out = String::with_capacity(data.len() + data.len() / CHUNK * 16 + 32);
    let mut rest = data;
    let mut settings = "a=T,f=100,q=2,";
    loop {
        let (chunk, behind) = rest.split_at(rest.len().min(CHUNK));
        let more = u8::from(!behind.is_empty());
        out.push_str(&format!("\u{1b}_G{settings}m={more};{chunk}\u{1b}\\"));
        if behind.is_empty() {
            return out;
        }
        (rest, settings) = (behind, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(term: &str, program: &str) -> TerminalNames {
        TerminalNames { term: term.into(), program: program.into(), is_multiplexed: false }
    }

    #[test]
    fn the_environment_names_terminals_that_show_pictures() {
        let check = |term, program, want| assert_eq!(guess(&names(term, program)), want, "{term} {program}");
        check("xterm-kitty", "", Guess::Known(InlinePictures::Kitty));
        check("xterm-ghostty", "ghostty", Guess::Known(InlinePictures::Kitty));
        check("xterm-256color", "iTerm.app", Guess::Known(InlinePictures::Iterm));
        check("xterm-256color", "WezTerm", Guess::Known(InlinePictures::Iterm));
        check("xterm-256color", "", Guess::Ask);
        check("linux", "", Guess::Never);
        check("dumb", "", Guess::Never);
        let within_tmux = TerminalNames { is_multiplexed: true, ..names("tmux-256color", "iTerm.app") };
        assert_eq!(guess(&within_tmux), Guess::Never);
    }

    #[test]
    fn a_terminal_says_what_it_can() {
        let check = |answer: &[u8], want| assert_eq!(understood(answer), want, "{}", answer.escape_ascii());
        check(b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c", Some(InlinePictures::Kitty));
        check(b"\x1b[?62;4;22c", Some(InlinePictures::Sixel));
        check(b"\x1b[?64;22c", None);
        check(b"\x1b_Gi=31;ENOTSUPPORTED\x1b\\\x1b[?1;2c", None);
        check(b"", None);
        assert!(!is_whole(b"\x1b_Gi=31;OK\x1b\\\x1b[?6") && is_whole(b"\x1b[?6c"));
    }

    #[test]
    fn a_picture_is_written_in_each_protocol() {
        // Noise, which no encoder makes smaller.
        let noise = |at: u32| {
            let mixed = (at ^ 0x5bd1_e995).wrapping_mul(2_654_435_761);
            let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(2_246_822_519);
            (mixed ^ (mixed >> 13)) as u8
        };
        let pixels = (0..200 * 100 * 3).map(noise).collect();
        let picture = Picture::from_rgb(200, 100, pixels).unwrap();
        let file = picture.to_png(&[("prompt", "hush")]).unwrap();
        let written = InlinePictures::Kitty.written(&file).unwrap();
        let chunks: Vec<&str> = written.split_terminator("\u{1b}\\").collect();
        assert!(chunks.len() > 1 && chunks[0].starts_with("\u{1b}_Ga=T,f=100,q=2,m=1;"), "{}", chunks.len());
        assert!(chunks[1..].iter().all(|chunk| chunk.starts_with("\u{1b}_Gm=") && chunk.len() < CHUNK + 16));
        let data: String = chunks.iter().filter_map(|chunk| chunk.split_once(';')).map(|(_, data)| data).collect();
        let shown = Picture::read(&STANDARD.decode(data).unwrap(), &PictureLimits::default()).unwrap();
        assert_eq!(shown, picture);
        let written = InlinePictures::Iterm.written(&file).unwrap();
        assert!(written.starts_with("\u{1b}]1337;File=inline=1;size=") && written.ends_with('\u{7}'));
        assert!(InlinePictures::Sixel.written(&file).unwrap().starts_with("\u{1b}P0;1q\"1;1;200;100"));
        assert_eq!(InlinePictures::Kitty.written(b"no picture"), None);
    }
}
