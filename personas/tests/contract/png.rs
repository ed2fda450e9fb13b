//! PNG files made for tests.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

pub(crate) fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut sum = Crc::new();
    sum.update(kind);
    sum.update(data);
    let length = u32::try_from(data.len()).expect("test data is small");
    [&length.to_be_bytes()[..], kind, data, &sum.sum().to_be_bytes()].concat()
}

pub(crate) fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

pub(crate) fn header(width: u32, height: u32) -> Vec<u8> {
    chunk(b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat())
}

/// Returns a grey 1 x 1 picture with the given chunks between header and pixels.
pub(crate) fn picture(chunks: &[Vec<u8>]) -> Vec<u8> {
    with_header(header(1, 1), chunks)
}

pub(crate) fn with_header(header: Vec<u8>, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1A\n".to_vec();
    file.extend(header);
    file.extend(chunks.concat());
    file.extend(chunk(b"IDAT", &zlib(&[0, 128])));
    file.extend(chunk(b"IEND", b""));
    file
}

pub(crate) fn text(keyword: &str, json: &str) -> Vec<u8> {
    chunk(b"tEXt", &[keyword.as_bytes(), b"\0", STANDARD.encode(json).as_bytes()].concat())
}

pub(crate) fn compressed_text(keyword: &str, content: &[u8]) -> Vec<u8> {
    chunk(b"zTXt", &[keyword.as_bytes(), b"\0\0", &zlib(content)].concat())
}

pub(crate) fn international_text(keyword: &str, json: &str, compressed: bool) -> Vec<u8> {
    let content = if compressed { zlib(json.as_bytes()) } else { json.as_bytes().to_vec() };
    chunk(b"iTXt", &[keyword.as_bytes(), b"\0", &[u8::from(compressed), 0], b"en\0title\0", &content].concat())
}
