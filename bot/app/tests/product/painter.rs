//! A server that draws, as AUTOMATIC1111's interface describes it: every picture is grey, and holds metadata of its own.
//! It also says what a picture shows, as llama-server does: a grey square.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use azera_model_image::Picture;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A prompt that is never drawn to its end.
#[allow(dead_code, reason = "only one of the two test programs that share this file takes pictures back")]
pub const ENDLESS: &str = "an endless staircase";

/// Metadata in the server's pictures, which nobody is to be sent.
pub const SERVER_METADATA: &str = "steps: 20, path: /home/operator";

pub struct Painter {
    pub url: String,
    pub asked: Arc<Mutex<Vec<Value>>>,
    /// While set, every request for a picture fails.
    pub is_broken: Arc<AtomicBool>,
    /// While set, no picture is drawn to its end.
    pub is_held: Arc<AtomicBool>,
    /// While set, every picture shows a naked person.
    pub is_nude: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
}

impl Painter {
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    pub fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (is_broken, is_held, is_nude) = (Arc::default(), Arc::default(), Arc::default());
        let painter = Self { url, asked: Arc::default(), is_broken, is_held, is_nude, stopped: Arc::default() };
        let (asked, stopped) = (painter.asked.clone(), painter.stopped.clone());
        let (broken, held, nude) = (painter.is_broken.clone(), painter.is_held.clone(), painter.is_nude.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (asked, broken, held, nude) = (asked.clone(), broken.clone(), held.clone(), nude.clone());
                // The client may hang up at any time.
                std::thread::spawn(move || answer(&stream, &asked, &broken, (&held, &nude)).ok());
            }
        });
        painter
    }

    /// Returns where it listens.
    #[allow(dead_code, reason = "only one of the two test programs that share this file asks")]
    pub fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    /// Returns the prompts of all requests so far.
    #[allow(dead_code, reason = "only one of the two test programs that share this file asks")]
    pub fn prompts(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("nobody panics while they hold this");
        asked.iter().filter_map(|body| body["prompt"].as_str()).map(str::to_owned).collect()
    }
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        TcpStream::connect(self.url.trim_start_matches("http://")).ok();
    }
}

fn answer(
    stream: &TcpStream,
    asked: &Mutex<Vec<Value>>,
    broken: &AtomicBool,
    (held, nude): (&AtomicBool, &AtomicBool),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
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
    reader.read_exact(&mut body)?;
    let (status, answer) = match path.as_str() {
        "/sdapi/v1/txt2img" | "/sdapi/v1/img2img" if broken.load(Ordering::SeqCst) => {
            (503, json!({"detail": "resting"}))
        }
        "/sdapi/v1/txt2img" | "/sdapi/v1/img2img" => {
            let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let is_endless = body["prompt"].as_str().is_some_and(|prompt| prompt.contains(ENDLESS));
            if is_endless || held.load(Ordering::SeqCst) {
                // Until the client hangs up.
                return reader.read(&mut [0]).map(drop);
            }
            let info = json!({"seed": body["seed"], "sd_model_name": "grey"}).to_string();
            asked.lock().expect("nobody panics while they hold this").push(body);
            let grey = Picture::from_rgb(8, 8, vec![120; 8 * 8 * 3]).expect("the right number of pixels");
            let png = grey.to_png(&[("parameters", SERVER_METADATA)]).expect("a picture");
            (200, json!({"images": [STANDARD.encode(png)], "parameters": {}, "info": info}))
        }
        "/sdapi/v1/extra-single-image" => {
            let larger = Picture::from_rgb(16, 16, vec![120; 16 * 16 * 3]).expect("the right number of pixels");
            (200, json!({"html_info": "", "image": STANDARD.encode(larger.to_png(&[]).expect("a picture"))}))
        }
        "/v1/chat/completions" => {
            let judges = String::from_utf8_lossy(&body).contains("minor:");
            let said = match (judges, nude.load(Ordering::SeqCst)) {
                (true, false) => "sexual: no, minor: no",
                (true, true) => "sexual: yes, minor: no",
                (false, _) => "A grey square.",
            };
            (200, json!({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}))
        }
        "/sdapi/v1/sd-models" => {
            let model = |name: &str| json!({"title": name, "model_name": name});
            (200, json!([model("anime"), model("photo")]))
        }
        "/sdapi/v1/samplers" => (200, json!([{"name": "Euler a"}, {"name": "Heun"}])),
        "/sdapi/v1/options" => (200, json!({"sd_model_checkpoint": "grey"})),
        "/internal/progress" => (200, json!({"active": true, "progress": 0.05, "live_preview": null})),
        _ => (200, Value::Null),
    };
    let text = answer.to_string();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}
