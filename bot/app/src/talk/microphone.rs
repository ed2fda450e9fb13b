//! The microphone: frames of sound, in order.

use std::io::Read;
use std::process::ChildStdout;

use azera_voice_api::{FRAME_SAMPLES, RECOGNITION_RATE};
use tokio::sync::mpsc;

use super::programs::{Running, record};

/// Frames that wait to be heard: about two seconds. More are lost, as by a person who cannot follow.
const MAX_WAITING: usize = 64;

/// Bytes of a frame: 16 bit for a sample.
const FRAME_BYTES: usize = FRAME_SAMPLES * 2;

/// A frame of sound.
pub type Frame = Box<[f32; FRAME_SAMPLES]>;

/// Opens the microphone. The frames end when the program that records does.
///
/// # Errors
/// No program records.
pub fn open() -> anyhow::Result<mpsc::Receiver<Frame>> {
    let (running, sound, first) = record(RECOGNITION_RATE.0)?;
    let (frames, heard) = mpsc::channel(MAX_WAITING);
    std::thread::Builder::new().name("microphone".to_owned()).spawn(move || read(running, sound, first, &frames))?;
    Ok(heard)
}

fn read(running: Running, sound: ChildStdout, first: Vec<u8>, frames: &mpsc::Sender<Frame>) {
    let mut sound = std::io::Cursor::new(first).chain(sound);
    let mut bytes = [0; FRAME_BYTES];
    while sound.read_exact(&mut bytes).is_ok() {
        let mut frame = Box::new([0.0; FRAME_SAMPLES]);
        for (sample, pair) in frame.iter_mut().zip(bytes.as_chunks().0) {
            *sample = f32::from(i16::from_le_bytes(*pair)) / f32::from(i16::MAX);
        }
        if let Err(mpsc::error::TrySendError::Closed(_)) = frames.try_send(frame) {
            break;
        }
    }
    drop(running);
}
