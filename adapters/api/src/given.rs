use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Largest file that a command accepts, in bytes.
pub const MAX_GIVEN_BYTES: usize = 8 << 20;

/// First bytes of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Converts a file for a command line: its text, or a PNG picture as a `data:` address. The error says why the file is
/// not accepted.
pub fn given(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() > MAX_GIVEN_BYTES {
        return Err("it is larger than 8 MB");
    }
    if bytes.starts_with(PNG) {
        return Ok(format!("data:image/png;base64,{}", STANDARD.encode(bytes)));
    }
    String::from_utf8(bytes).map_err(|_| "it is neither text nor a PNG picture")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_a_picture_becomes_a_data_address() {
        assert_eq!(given(b"# Nix".to_vec()).unwrap(), "# Nix");
        assert_eq!(given(PNG.to_vec()).unwrap(), "data:image/png;base64,iVBORw0KGgo=");
        assert!(given(vec![0xff, 0xd8]).is_err());
        assert!(given(vec![b'a'; MAX_GIVEN_BYTES + 1]).is_err());
    }
}
