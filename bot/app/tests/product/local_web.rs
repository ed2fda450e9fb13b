//! The web of a bot that serves another platform, for its owner.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

/// The web of a running bot.
pub struct Web {
    address: String,
    setup: String,
}

impl Web {
    /// Reads the file by which commands on the machine find the web.
    pub fn of(data: &Path) -> Self {
        let file = std::fs::read_to_string(data.join("web.json")).expect("the file of the web");
        let local: Value = serde_json::from_str(&file).expect("JSON");
        let text = |name: &str| local[name].as_str().expect("a text").to_owned();
        Self { address: text("address").trim_start_matches("http://").to_owned(), setup: text("setup") }
    }

    /// Sends a request with these headers, each a line of its own. Returns the head and the body.
    fn send(&self, method: &str, path: &str, headers: &str, body: &Value) -> (String, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).expect("the web is there");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head.to_owned(), serde_json::from_str(body).expect("JSON"))
    }

    /// Makes the owner's account. Returns the owner's browser.
    pub fn own(&self) -> Owner<'_> {
        let code = self.setup.rsplit_once('=').expect("a link with a code").1;
        let owner = json!({"code": code, "name": "Ann", "password": "correct horse battery"});
        let (head, session) = self.send("POST", "/api/setup", "", &owner);
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a session");
        let cookie = cookie.split(';').next().expect("a cookie");
        let csrf = session["csrf"].as_str().expect("a token");
        Owner { web: self, headers: format!("Cookie: {cookie}\r\nX-CSRF-Token: {csrf}\r\n") }
    }
}

/// The owner's browser.
pub struct Owner<'a> {
    web: &'a Web,
    headers: String,
}

impl Owner<'_> {
    /// Sends a request. Returns the status and the body.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (head, answer) = self.web.send(method, path, &self.headers, body);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), answer)
    }
}
