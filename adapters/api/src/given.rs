use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Largest file that a command accepts, in bytes.
pub const MAX_GIVEN_BYTES: usize = 8 << 20;

/// Largest picture that a command accepts, in bytes.
pub const MAX_GIVEN_PICTURE_BYTES: usize = 16 << 20;

/// Largest recording that a command accepts, in bytes.
pub const MAX_GIVEN_SOUND_BYTES: usize = 10 << 20;

/// First bytes of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// First bytes of a ZIP archive.
const ZIP: &[u8] = b"PK\x03\x04";

/// Converts a file for a command line: its text, or a PNG picture or a ZIP archive as a `data:` address. Text may be UTF-8
/// or marked UTF-16. The error says why the file is not accepted.
pub fn given(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() > MAX_GIVEN_BYTES {
        return Err("it is larger than 8 MB");
    }
    if bytes.starts_with(PNG) {
        return Ok(format!("data:image/png;base64,{}", STANDARD.encode(bytes)));
    }
    if bytes.starts_with(ZIP) {
        return Ok(format!("data:application/zip;base64,{}", STANDARD.encode(bytes)));
    }
    let wide = |to_unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).filter_map(|pair| pair.first_chunk::<2>()).map(|pair| to_unit(*pair));
        char::decode_utf16(units).skip(1).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    match bytes.as_slice() {
        [0xFF, 0xFE, ..] => Ok(wide(u16::from_le_bytes)),
        [0xFE, 0xFF, ..] => Ok(wide(u16::from_be_bytes)),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            Err("it is a WebP picture, whatever its name says; save it as PNG")
        }
        _ => String::from_utf8(bytes).map_err(|_| "it is neither text, a PNG picture nor a CharX archive"),
    }
}

/// Converts a recording for a command line: a `data:` address. The error says why the file is not accepted.
pub fn given_sound(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() > MAX_GIVEN_SOUND_BYTES {
        return Err("it is larger than 10 MB");
    }
    let kind = match bytes.as_slice() {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "wav",
        [b'O', b'g', b'g', b'S', ..] => "ogg",
        [b'f', b'L', b'a', b'C', ..] => "flac",
        [b'I', b'D', b'3', ..] => "mpeg",
        [0xFF, second, ..] if second & 0xE0 == 0xE0 => "mpeg",
        _ => return Err("it is no WAV, MP3, Ogg or FLAC file; another program can convert it"),
    };
    Ok(format!("data:audio/{kind};base64,{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_a_picture_becomes_a_data_address() {
        assert_eq!(given(b"# Nix".to_vec()).unwrap(), "# Nix");
        assert_eq!(given(PNG.to_vec()).unwrap(), "data:image/png;base64,iVBORw0KGgo=");
        assert_eq!(given(ZIP.to_vec()).unwrap(), "data:application/zip;base64,UEsDBA==");
        assert_eq!(given(b"\xff\xfe#\0 \0\xeb\0".to_vec()).unwrap(), "# \u{eb}");
        assert_eq!(given(b"\xfe\xff\0#".to_vec()).unwrap(), "#");
        assert!(given(b"RIFF\x1a\0\0\0WEBPVP8 ".to_vec()).unwrap_err().contains("WebP"));
        assert!(given(vec![0xff, 0xd8]).is_err());
        assert!(given(vec![b'a'; MAX_GIVEN_BYTES + 1]).is_err());
    }

    #[test]
    fn a_recording_becomes_a_data_address_and_nothing_else_does() {
        assert_eq!(given_sound(b"OggS".to_vec()).unwrap(), "data:audio/ogg;base64,T2dnUw==");
        for sound in [&b"RIFF\x1a\0\0\0WAVE"[..], b"fLaC", b"ID3", &[0xFF, 0xFB]] {
            assert!(given_sound(sound.to_vec()).unwrap().starts_with("data:audio/"), "{sound:?}");
        }
        assert!(given_sound(b"# Nix".to_vec()).unwrap_err().contains("no WAV"));
        assert!(given_sound(vec![b'O'; MAX_GIVEN_SOUND_BYTES + 1]).unwrap_err().contains("10 MB"));
    }
}
