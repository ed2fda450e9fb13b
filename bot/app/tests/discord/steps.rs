//! The steps of a picture, as the project's own sidecar reports them, become edits of the message that will show it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use azera_model_image::Picture;
use serde_json::json;

use crate::bot::Bot;
use crate::commands::{give, square};
use crate::{as_described, fake};

/// Steps of the picture.
const STEPS: u32 = 5;

/// A sidecar that does a step when it is told to, and says when it reported it.
fn sidecar(go_on: Receiver<()>, reported: Sender<Instant>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // The client may hang up at any time.
            answer(&stream, &go_on, &reported).ok();
        }
    });
    url
}

fn answer(mut stream: &TcpStream, go_on: &Receiver<()>, reported: &Sender<Instant>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut request, mut length) = (String::new(), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            None => request = line.clone(),
            Some(_) => {}
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    if !request.starts_with("POST") {
        let grey = Picture::from_rgb(8, 8, vec![120; 8 * 8 * 3]).expect("the right number of pixels");
        let png = grey.to_png(&[]).expect("a picture");
        write!(stream, "HTTP/1.1 200 -\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", png.len())?;
        return stream.write_all(&png);
    }
    write!(stream, "HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let mut tell = |event: serde_json::Value| write!(stream, "data: {event}\n\n").and_then(|()| stream.flush());
    tell(json!({"type": "queued", "job": "j1", "ahead": 0}))?;
    for step in 1..=STEPS {
        if go_on.recv().is_err() {
            return Ok(());
        }
        tell(json!({"type": "progress", "step": step, "steps": STEPS, "preview": null}))?;
        reported.send(Instant::now()).ok();
    }
    // The picture ends once the last step was seen.
    go_on.recv().ok();
    tell(json!({"type": "done", "seed": 7, "model": "tiny"}))
}

#[test]
fn every_step_of_the_sidecar_becomes_an_edit() {
    let fake = fake();
    let ([_, bob, _], square) = square(&fake);
    let ((go_on, steps), (reports, reported)) = (channel(), channel());
    let url = sidecar(steps, reports);
    let mut bot = Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "sidecar").with("AZERA__IMAGES__URL", &url);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    give(&fake, square, bob, "imagine", "", &[("prompt", "a lighthouse")]);
    let mut longest = std::time::Duration::ZERO;
    for step in 1..=STEPS {
        go_on.send(()).expect("the sidecar runs");
        let at = reported.recv().expect("the sidecar reports");
        let text = format!("step {step} of {STEPS}");
        fake.wait(&text, |world| {
            let messages = world.bots_messages(square);
            messages.iter().any(|one| one["content"].as_str().is_some_and(|shown| shown.contains(&text))).then_some(())
        });
        longest = longest.max(at.elapsed());
    }
    eprintln!("a step to its visible edit, the longest of {STEPS}: {} ms", longest.as_millis());
    go_on.send(()).expect("the sidecar runs");
    fake.wait("the picture", |world| {
        let messages = world.bots_messages(square);
        messages.iter().any(|one| one["attachments"].as_array().is_some_and(|files| files.len() == 1)).then_some(())
    });
    as_described(&fake);
}
