//! The parts of HTTP that the tests' model servers need.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use serde_json::Value;

/// Reads a request. Returns its path and its body as JSON, null if there is none.
pub fn request(stream: &TcpStream) -> std::io::Result<(String, Value)> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
    while stream.read_line(&mut line)? > 2 {
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            None => path = line.split(' ').nth(1).unwrap_or_default().to_owned(),
            Some(_) => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((path, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
