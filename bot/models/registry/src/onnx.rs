//! ONNX files: the check that one is complete, and the settings of a Piper voice inside it.
//!
//! An ONNX file is one protocol buffer message, `ModelProto`. Only its top level is read here.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read as _, Write as _},
    path::Path,
};

use crate::{
    error::{Error, IoContext},
    protobuf::{WITH_LENGTH, write_with_length},
};

/// The metadata key under which a Piper voice keeps its settings, the text of its `.onnx.json` file.
pub(crate) const PIPER_SETTINGS: &str = "piper_settings";
/// The largest settings of a voice, in bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;
/// The field `ModelProto.graph`.
pub(crate) const GRAPH: u64 = 7;
/// The field `ModelProto.metadata_props`.
const METADATA: u64 = 14;

/// Returns an error if the file is not an ONNX model, or is cut off.
pub(crate) fn inspect(path: &Path) -> Result<(), Error> {
    let wrong = |reason| Error::NotOnnx { path: path.to_owned(), reason };
    let mut left = fs::metadata(path).at(path)?.len();
    let mut file = BufReader::new(File::open(path).at(path)?);
    let mut has_graph = false;
    while left > 0 {
        let (tag, bytes) = varint(&mut file).at(path)?.ok_or_else(|| wrong("it has no fields"))?;
        left = left.saturating_sub(bytes);
        let (field, length) = match tag % 8 {
            0 => {
                let (_, bytes) = varint(&mut file).at(path)?.ok_or_else(|| wrong("it is cut off"))?;
                left = left.saturating_sub(bytes);
                (tag / 8, 0)
            }
            1 => (tag / 8, 8),
            WITH_LENGTH => {
                let (length, bytes) = varint(&mut file).at(path)?.ok_or_else(|| wrong("it is cut off"))?;
                left = left.saturating_sub(bytes);
                (tag / 8, length)
            }
            5 => (tag / 8, 4),
            _ => return Err(wrong("it has no fields")),
        };
        if length > left {
            return Err(wrong("it is cut off"));
        }
        let length = i64::try_from(length).map_err(|_| wrong("it is cut off"))?;
        file.seek_relative(length).at(path)?;
        left -= length.unsigned_abs();
        has_graph |= field == GRAPH && length > 0;
    }
    if has_graph { Ok(()) } else { Err(wrong("it has no graph")) }
}

/// Moves a Piper voice to `output` and adds its settings. ONNX runtimes ignore what they do not know there.
pub(crate) fn add_piper_settings(voice: &Path, settings: &Path, output: &Path) -> Result<(), Error> {
    let mut text = String::new();
    let file = File::open(settings).at(settings)?;
    file.take(MAX_SETTINGS_BYTES + 1).read_to_string(&mut text).at(settings)?;
    let length = text.len() as u64;
    if length > MAX_SETTINGS_BYTES {
        let what = settings.display().to_string();
        return Err(Error::WrongSize { what, expected: MAX_SETTINGS_BYTES, actual: length });
    }
    inspect(voice)?;
    fs::rename(voice, output).at(voice)?;
    let mut file = fs::OpenOptions::new().append(true).open(output).at(output)?;
    file.write_all(&metadata_field(PIPER_SETTINGS, &text)).at(output)?;
    fs::remove_file(settings).at(settings)
}

/// Returns one entry of a model's metadata as a field of `ModelProto`.
pub(crate) fn metadata_field(key: &str, value: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    for (field, text) in [(1, key), (2, value)] {
        write_with_length(&mut entry, field, text.as_bytes());
    }
    let mut whole = Vec::new();
    write_with_length(&mut whole, METADATA, &entry);
    whole
}

/// Reads a number and returns it with the bytes that it takes; `None` if the file ends, or the number is too long.
fn varint(file: &mut impl BufRead) -> std::io::Result<Option<(u64, u64)>> {
    let mut number = 0_u64;
    for (index, byte) in file.bytes().take(10).enumerate() {
        let byte = byte?;
        number |= u64::from(byte & 0x7f).checked_shl(7 * index as u32).unwrap_or(0);
        if byte < 0x80 {
            return Ok(Some((number, index as u64 + 1)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::write_varint;

    /// Returns a small file with a version, a graph of 300 bytes and a name.
    fn model() -> Vec<u8> {
        let mut file = vec![0x08, 0x08];
        write_with_length(&mut file, GRAPH, &[1; 300]);
        write_with_length(&mut file, 2, b"made by hand");
        file
    }

    #[test]
    fn a_model_is_complete_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let reason = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            inspect(&path).err().map(|error| error.to_string())
        };
        assert_eq!(reason(&model()), None);
        for (bytes, said) in [
            (&model()[..200], "cut off"),
            (&model()[..3], "cut off"),
            (&b"\x08\x08"[..], "no graph"),
            (b"", "no graph"),
            (b"GGUF\x03\0\0\0", "ONNX"),
            (b"<html><body>not found</body></html>", "ONNX"),
        ] {
            let error = reason(bytes).unwrap();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn settings_become_part_of_the_voice() {
        let folder = tempfile::tempdir().unwrap();
        let [voice, settings, output] = ["v.onnx", "v.onnx.json", "model"].map(|name| folder.path().join(name));
        let text = format!("{{\"name\": \"{}\"}}", "é".repeat(200));
        fs::write(&voice, model()).unwrap();
        fs::write(&settings, &text).unwrap();
        add_piper_settings(&voice, &settings, &output).unwrap();
        inspect(&output).unwrap();
        let file = fs::read(&output).unwrap();
        assert!(file.starts_with(&model()) && file.ends_with(text.as_bytes()));
        assert!(!voice.exists() && !settings.exists());
    }

    #[test]
    fn numbers_of_any_length_are_read_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, number);
            assert_eq!(varint(&mut bytes.as_slice()).unwrap(), Some((number, bytes.len() as u64)));
        }
        assert_eq!(varint(&mut [0x80].as_slice()).unwrap(), None);
    }
}
