//! Ogg Opus files: completes one that a crash cut short, and splits one into files that play alone.

use std::io::{self, Read, Seek, Write};
use std::time::Duration;

use ogg::{OggReadError, Packet, PacketReader, PacketWriteEndInfo, PacketWriter};

/// Samples of Opus sound in a second, as Ogg counts them.
const RATE: u64 = 48_000;

/// Packets of one page: one second of packets of 20 ms.
const PAGE_PACKETS: u64 = 50;

/// Samples of a packet. `azera-voice-opus` writes no others.
const PACKET_SAMPLES: u64 = 960;

/// The position of the samples to leave out, in the first packet.
const PRE_SKIP_AT: usize = 10;

/// The number of the stream.
const SERIAL: u32 = 0x617a_6572;

/// The most bytes of a page's header and of its table.
const PAGE_OVERHEAD: usize = 27 + 255;

/// The packets that every file begins with.
struct Heads {
    head: Vec<u8>,
    tags: Vec<u8>,
    pre_skip: u64,
}

impl Heads {
    fn read<R: Read + Seek>(reader: &mut PacketReader<R>) -> io::Result<Self> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the recording has no Opus header");
        let mut next = || reader.read_packet().ok().flatten().ok_or_else(damaged);
        let (head, tags) = (next()?.data, next()?.data);
        let pre_skip = head.get(PRE_SKIP_AT..).and_then(|rest| rest.first_chunk::<2>()).ok_or_else(damaged)?;
        if !head.starts_with(b"OpusHead") || !tags.starts_with(b"OpusTags") {
            return Err(damaged());
        }
        let pre_skip = u64::from(u16::from_le_bytes(*pre_skip));
        Ok(Self { head, tags, pre_skip })
    }
}

/// Writes packets of 20 ms into a file, each once it is known whether it is the last one.
struct Rewriter<W: Write> {
    file: PacketWriter<'static, W>,
    last: Option<Vec<u8>>,
    packets: u64,
}

impl<W: Write> Rewriter<W> {
    fn begin(out: W, heads: &Heads) -> io::Result<Self> {
        let mut file = PacketWriter::new(out);
        for head in [&heads.head, &heads.tags] {
            file.write_packet(head.clone(), SERIAL, PacketWriteEndInfo::EndPage, 0)?;
        }
        Ok(Self { file, last: None, packets: 0 })
    }

    fn push(&mut self, packet: Vec<u8>) -> io::Result<()> {
        if let Some(before) = self.last.replace(packet) {
            self.packets += 1;
            let ends_page = self.packets.is_multiple_of(PAGE_PACKETS);
            let end = if ends_page { PacketWriteEndInfo::EndPage } else { PacketWriteEndInfo::NormalPacket };
            self.file.write_packet(before, SERIAL, end, self.packets * PACKET_SAMPLES)?;
        }
        Ok(())
    }

    /// Ends the file. Without a position of its end, all of the last packet is sound. Returns that position, too.
    fn finish(mut self, end: Option<u64>) -> io::Result<(W, u64)> {
        let whole = (self.packets + u64::from(self.last.is_some())) * PACKET_SAMPLES;
        let end = end.unwrap_or(whole);
        let last = self.last.take().unwrap_or_default();
        self.file.write_packet(last, SERIAL, PacketWriteEndInfo::EndStream, end)?;
        Ok((self.file.into_inner(), end))
    }
}

/// Returns the next packet that is whole. A file that was cut short ends with the last one of these.
fn next<R: Read + Seek>(reader: &mut PacketReader<R>) -> io::Result<Option<Packet>> {
    match reader.read_packet() {
        Ok(packet) => Ok(packet),
        Err(OggReadError::ReadError(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        Err(_) => Ok(None),
    }
}

/// Copies what is whole of a file that was cut short, and ends it. Returns how long its sound lasts.
pub(crate) fn complete<W: Write>(broken: impl Read + Seek, out: W) -> io::Result<Duration> {
    let mut reader = PacketReader::new(broken);
    let heads = Heads::read(&mut reader)?;
    let mut file = Rewriter::begin(out, &heads)?;
    let mut end = None;
    while let Some(packet) = next(&mut reader)? {
        end = packet.last_in_stream().then(|| packet.absgp_page());
        if !packet.data.is_empty() {
            file.push(packet.data)?;
        }
    }
    let (mut out, end) = file.finish(end)?;
    out.flush()?;
    let samples = end.saturating_sub(heads.pre_skip);
    Ok(Duration::from_millis(samples * 1_000 / RATE))
}

/// Splits a file into files of at most `max_bytes`, each of which plays alone.
pub(crate) fn split(whole: impl Read + Seek, max_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut reader = PacketReader::new(whole);
    let heads = Heads::read(&mut reader)?;
    let begin = || Rewriter::begin(Vec::new(), &heads);
    let start_bytes = heads.head.len() + heads.tags.len() + 3 * PAGE_OVERHEAD;
    let (mut files, mut file, mut bytes) = (Vec::new(), begin()?, start_bytes);
    let mut end = None;
    // Samples in the files before.
    let mut before = 0;
    while let Some(packet) = next(&mut reader)? {
        // A packet takes a byte of the page's table, and a share of its header.
        let needed = packet.data.len() + 2 + PAGE_OVERHEAD / PAGE_PACKETS as usize + packet.data.len() / 255;
        if bytes + needed > max_bytes && file.packets > 0 {
            before += (file.packets + 1) * PACKET_SAMPLES;
            let full = std::mem::replace(&mut file, begin()?);
            files.push(full.finish(None)?.0);
            bytes = start_bytes;
        }
        bytes += needed;
        end = packet.last_in_stream().then(|| packet.absgp_page());
        if !packet.data.is_empty() {
            file.push(packet.data)?;
        }
    }
    files.push(file.finish(end.map(|end| end.saturating_sub(before)))?.0);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use azera_voice_opus::{NoteWriter, PacketDecoder};

    use super::*;

    fn tone(seconds: usize) -> Vec<f32> {
        (0..seconds * 48_000).map(|n| (n as f32 * 440.0 / 48_000.0 * std::f32::consts::TAU).sin() * 0.5).collect()
    }

    fn written(seconds: usize) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = NoteWriter::new(&mut file).unwrap();
        writer.push(&tone(seconds)).unwrap();
        writer.finish().unwrap();
        file
    }

    /// Returns the samples of a file, as its last page says, and those that a decoder makes of it.
    fn samples(file: Vec<u8>) -> (u64, usize) {
        let mut reader = PacketReader::new(Cursor::new(file));
        let mut decoder = PacketDecoder::new(&reader.read_packet_expected().unwrap().data).unwrap();
        reader.read_packet_expected().unwrap();
        let (mut sound, mut end, mut is_ended) = (Vec::new(), 0, false);
        while let Some(packet) = reader.read_packet().unwrap() {
            decoder.push(&packet.data, &mut sound).unwrap();
            (end, is_ended) = (packet.absgp_page(), packet.last_in_stream());
        }
        assert!(is_ended);
        (end, sound.len())
    }

    #[test]
    fn a_whole_file_stays_as_it_is() {
        let file = written(3);
        let mut out = Vec::new();
        assert_eq!(complete(Cursor::new(&file), &mut out).unwrap(), Duration::from_secs(3));
        assert_eq!(out, file);
        assert_eq!(split(Cursor::new(&file), 1 << 20).unwrap(), [file]);
    }

    #[test]
    fn a_file_that_was_cut_short_plays_up_to_its_last_whole_second() {
        let file = written(5);
        for cut in [file.len() - 1, file.len() / 2, file.len() / 3] {
            let mut out = Vec::new();
            let lasts = complete(Cursor::new(&file[..cut]), &mut out).unwrap();
            assert!(lasts >= Duration::from_millis(900) && lasts <= Duration::from_secs(5), "{lasts:?}");
            let (end, decoded) = samples(out);
            assert!(decoded as u64 + 960 >= end && end > 43_000, "{end} {decoded}");
        }
        assert!(complete(Cursor::new(&file[..20]), Vec::new()).is_err());
        assert!(complete(Cursor::new(b""), Vec::new()).is_err());
    }

    #[test]
    fn parts_of_a_file_have_all_of_its_sound_and_no_more_bytes_than_allowed() {
        let file = written(20);
        let parts = split(Cursor::new(&file), file.len() / 3).unwrap();
        assert!(parts.len() >= 3, "{}", parts.len());
        assert!(parts.iter().all(|part| part.len() <= file.len() / 3));
        let whole = samples(file).0;
        assert_eq!(parts.into_iter().map(|part| samples(part).0).sum::<u64>(), whole);
    }
}
