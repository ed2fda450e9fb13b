//! A program that gets a text and sends bytes, within limits.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use super::EspeakLimits;

/// A running program. Dropping it ends it, and everything that it started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // It may have ended by itself. Its id is not given away before it was waited for.
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Runs a program with a text as its standard input, and returns what it sends; `None` if there is no such program.
pub(super) fn run(
    program: &Path,
    arguments: &[&str],
    input: &str,
    limits: EspeakLimits,
) -> Result<Option<Vec<u8>>, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut running = match command.spawn() {
        Ok(child) => Running(child),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("it cannot be started: {error}")),
    };
    let (Some(mut stdin), Some(stdout)) = (running.0.stdin.take(), running.0.stdout.take()) else {
        return Err("it has no pipes".to_owned());
    };
    let (tell, told) = mpsc::channel();
    let (input, most) = (input.as_bytes().to_vec(), limits.bytes as u64 + 1);
    // Each pipe has a thread of its own, so that neither side waits for the other. Both threads end with the program.
    std::thread::spawn(move || {
        // A program that does not read sends no sound either.
        stdin.write_all(&input).ok();
    });
    std::thread::spawn(move || {
        let mut sent = Vec::new();
        let read = stdout.take(most).read_to_end(&mut sent);
        // Nobody may wait any more.
        tell.send(read.map(|_| sent)).ok();
    });
    let read = told.recv_timeout(limits.time);
    drop(running);
    let sent = read.map_err(|_| format!("it did not answer within {} s", limits.time.as_secs_f32()))?;
    let sent = sent.map_err(|error| format!("its answer cannot be read: {error}"))?;
    if sent.len() > limits.bytes {
        return Err(format!("it sent more than {} bytes", limits.bytes));
    }
    Ok(Some(sent))
}
