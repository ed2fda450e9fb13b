//! The steps of a picture, as the project's own sidecar reports them, become edits of the message that will show it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use azera_fake_discord::FakeDiscord;
use azera_model_image::Picture;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::bot::Bot;
use crate::commands::{give, square};
use crate::{as_described, fake};

/// Steps of the picture.
const STEPS: u32 = 5;

/// How the drawing ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Drawn,
    Fails,
}

/// A sidecar that does a step when it is told to, and says when it reported it.
fn sidecar(go_on: Receiver<()>, reported: Sender<Instant>, end: End) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // The client may hang up at any time.
            answer(&stream, &go_on, &reported, end).ok();
        }
    });
    url
}

fn answer(mut stream: &TcpStream, go_on: &Receiver<()>, reported: &Sender<Instant>, end: End) -> std::io::Result<()> {
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
        tell(json!({"type": "progress", "step": step, "steps": STEPS, "preview": preview(step)}))?;
        reported.send(Instant::now()).ok();
    }
    // The picture ends once the last step was seen.
    go_on.recv().ok();
    tell(match end {
        End::Drawn => json!({"type": "done", "seed": 7, "model": "tiny"}),
        End::Fails => json!({"type": "error", "code": "flagged", "message": "the safety check withheld the picture"}),
    })
}

/// How the picture looks after a step, as the sidecar sends it.
fn preview(step: u32) -> String {
    let shade = u8::try_from(step * 40).expect("a shade");
    let picture = Picture::from_rgb(32, 32, vec![shade; 32 * 32 * 3]).expect("the right number of pixels");
    STANDARD.encode(picture.to_png(&[("prompt", "a lighthouse")]).expect("a picture"))
}

/// Returns the names of the files of the bot's messages that hold a text.
fn files_of(fake: &FakeDiscord, channel: u64, text: &str) -> Vec<String> {
    fake.wait(text, |world| {
        let messages = world.bots_messages(channel);
        let found = messages.iter().find(|one| one["content"].as_str().is_some_and(|shown| shown.contains(text)))?;
        let names = found["attachments"].as_array().into_iter().flatten().filter_map(|file| file["filename"].as_str());
        Some(names.map(str::to_owned).collect())
    })
}

#[test]
fn a_preview_is_replaced_by_the_next_one_and_by_the_picture_and_goes_with_a_failure() {
    for end in [End::Drawn, End::Fails] {
        let fake = fake();
        let ([_, bob, _], square) = square(&fake);
        let ((go_on, steps), (reports, reported)) = (channel(), channel());
        let url = sidecar(steps, reports, end);
        let mut bot = Bot::new(&fake, None).with("AZERA__IMAGES__KIND", "sidecar").with("AZERA__IMAGES__URL", &url);
        bot = bot.with("AZERA__IMAGES__PREVIEWS", "true");
        bot.start(&fake);
        fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
        give(&fake, square, bob, "imagine", "", &[("prompt", "a lighthouse")]);
        for step in 1..=STEPS {
            go_on.send(()).expect("the sidecar runs");
            reported.recv().expect("the sidecar reports");
            assert_eq!(files_of(&fake, square, &format!("step {step} of {STEPS}")), ["preview.jpg"], "step {step}");
        }
        go_on.send(()).expect("the sidecar runs");
        match end {
            End::Drawn => assert_eq!(files_of(&fake, square, "seed 7"), ["a-lighthouse.png"]),
            End::Fails => assert_eq!(files_of(&fake, square, "I could not draw that"), [] as [&str; 0]),
        }
        as_described(&fake);
    }
}

#[test]
fn every_step_of_the_sidecar_becomes_an_edit() {
    let fake = fake();
    let ([_, bob, _], square) = square(&fake);
    let ((go_on, steps), (reports, reported)) = (channel(), channel());
    let url = sidecar(steps, reports, End::Drawn);
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
