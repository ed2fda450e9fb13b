//! Voice notes: Opus in an Ogg file, mono.

use std::io::{self, Write};
use std::time::Duration;

use azera_voice_api::SampleRate;
use azera_voice_opus::{NOTE_RATE, NoteWriter, OpusError};
use azera_voice_recordings::Resampler;

use super::SoundFile;

/// Writes a voice note from sound of any rate.
pub struct NoteFile<W: Write> {
    writer: NoteWriter<W>,
    resampler: Resampler,
}

impl<W: Write> NoteFile<W> {
    /// Begins a file.
    pub fn new(out: W, rate: SampleRate) -> io::Result<Self> {
        let writer = NoteWriter::new(out).map_err(writing)?;
        Ok(Self { writer, resampler: Resampler::new(rate, NOTE_RATE) })
    }
}

impl<W: Write> SoundFile for NoteFile<W> {
    fn push(&mut self, samples: &[f32]) -> io::Result<()> {
        let mut sound = Vec::new();
        self.resampler.push(samples, &mut sound);
        self.writer.push(&sound).map_err(writing)
    }

    fn finish(mut self) -> io::Result<Duration> {
        let mut rest = Vec::new();
        self.resampler.finish(&mut rest);
        self.writer.push(&rest).map_err(writing)?;
        self.writer.finish().map_err(writing)
    }
}

fn writing(error: OpusError) -> io::Error {
    io::Error::other(error)
}
