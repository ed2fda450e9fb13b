//! Speech, recordings of voices, moods and the log: for whom they are meant.

use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::images::send_form;
use crate::{World, program};

#[tokio::test]
async fn a_text_becomes_sound() {
    let world = World::start().await;
    let (mut key, _) = program(&mut world.owner().await, &["chat"]).await;
    let speech = "/api/tts/synthesize";
    let body = json!({"text": "Good morning.", "model": "any", "voice_description": "warm", "persona_id": "azera"});
    let said = key.send("POST", speech, Some(body)).await;
    assert_eq!(said.status, 200, "{}", said.body);
    let said = said.json();
    assert_eq!((&said["format"], &said["duration_ms"]), (&json!("wav"), &json!(1_250)));
    assert_eq!(STANDARD.decode(said["audio_base64"].as_str().unwrap()).unwrap(), b"RIFF Good morning.");
    let sampled = json!({"text": "Hi", "voice_sample_url": "/api/voice-samples/joe-1.wav"});
    assert_eq!(key.send("POST", speech, Some(sampled)).await.status, 200);
    let asked = world.engine.studio.spoken.lock().unwrap().clone();
    assert_eq!((asked[0].persona.as_ref().map(|id| id.as_str()), &asked[0].voice), (Some("azera"), &None));
    assert_eq!((&asked[1].persona, asked[1].voice.as_deref()), (&None, Some("joe-1")));
    for (wrong, status, code) in [
        (json!({"text": "  "}), 400, "invalid"),
        (json!({"text": "x".repeat(33 << 10)}), 413, "too_large"),
        (json!({"text": "x", "persona_id": "nobody"}), 404, "not_found"),
        (json!({"text": "x", "voice_sample_url": "joe"}), 400, "invalid"),
        (json!({"text": "x", "voice_sample_url": "/api/voice-samples/nobody.wav"}), 422, "refused"),
    ] {
        key.send("POST", speech, Some(wrong)).await.is(status, code);
    }
    let status = key.send("GET", "/api/tts/status", None).await.json();
    assert_eq!(status, json!({"available": true, "why": null, "hears": true, "why_deaf": null}));
    world.engine.studio.is_closed.store(true, Ordering::SeqCst);
    let status = key.send("GET", "/api/tts/status", None).await.json();
    assert_eq!(status["why"], "No voice is on this machine.");
    assert_eq!(status["why_deaf"], "No speech model is on this machine.");
    assert_eq!((&status["available"], &status["hears"]), (&json!(false), &json!(false)));
    key.send("POST", speech, Some(json!({"text": "x"}))).await.is(409, "speech_unavailable");
    world.stop().await;
}

#[tokio::test]
async fn only_owners_keep_and_hear_recordings_of_voices() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let guest = world.guest(&mut owner, "Bob").await;
    let upload = "/api/voice-samples/upload";
    let kept = send_form(&owner, upload, "file", "../Joe's Voice.wav", b"RIFF sound").await;
    assert_eq!(kept.status, 200, "{}", kept.body);
    let want = json!({
        "success": true, "filename": "joe-s-voice.wav", "url": "/api/voice-samples/joe-s-voice.wav", "size": 10,
    });
    assert_eq!(kept.json(), want);
    let part = owner.send_with("GET", "/api/voice-samples/joe-s-voice.wav", &[("Range", "bytes=0-9")], "").await;
    assert_eq!((part.status, part.header("content-type"), part.body.as_str()), (206, Some("audio/wav"), "RIFF sound"));
    send_form(&owner, upload, "file", "x.wav", b"no sound").await.is(422, "refused");
    send_form(&owner, upload, "file", "x.wav", &vec![0; 11 << 20]).await.is(413, "too_large");
    for name in ["nobody.wav", "joe-s-voice", "..%2f..%2fweb.json", "joe-s-voice.wav.wav"] {
        owner.send("GET", &format!("/api/voice-samples/{name}"), None).await.is(404, "not_found");
    }
    let listed = owner.send("GET", "/api/voice-samples", None).await.json();
    let want = json!({
        "filename": "joe-s-voice.wav", "url": "/api/voice-samples/joe-s-voice.wav", "name": "joe-s-voice",
        "consent": "They agreed.", "seconds": 2.5, "added_at": "2027-01-15T08:00:00Z",
    });
    assert_eq!(listed, json!({"items": [want], "total": 1}));
    let (chatter, _) = program(&mut owner, &["chat"]).await;
    for mut other in [guest, chatter] {
        send_form(&other, upload, "file", "x.wav", b"RIFF").await.is(403, "scope");
        for (method, path) in [
            ("GET", "/api/voice-samples"),
            ("GET", "/api/voice-samples/joe-s-voice.wav"),
            ("DELETE", "/api/voice-samples/joe-s-voice.wav"),
        ] {
            other.send(method, path, None).await.is(403, "scope");
        }
    }
    let path = "/api/voice-samples/joe-s-voice.wav";
    assert_eq!(owner.send("DELETE", path, None).await.json(), json!({"status": "deleted"}));
    for method in ["GET", "DELETE"] {
        owner.send(method, path, None).await.is(404, "not_found");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_mood_is_given_in_ones_own_chats() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    let given = bob.send("POST", "/api/status/mood", Some(json!({"mood": "Melancholy"}))).await.json();
    assert_eq!(given["status"], "updated");
    assert_eq!((&given["mood"], &given["mood_value"]), (&json!("melancholy"), &json!(0.35)));
    for mood in ["furious", ""] {
        bob.send("POST", "/api/status/mood", Some(json!({"mood": mood}))).await.is(400, "invalid");
    }
    owner.send("POST", "/api/status/mood", Some(json!({"mood": "neutral"}))).await;
    let moods = world.engine.studio.moods.lock().unwrap().clone();
    assert_eq!(moods.iter().map(|(_, mood)| mood.name).collect::<Vec<_>>(), ["melancholy", "calm"]);
    assert_ne!(moods[0].0, moods[1].0, "each in their own chat");
    world.stop().await;
}

#[tokio::test]
async fn only_owners_see_the_log_and_the_newest_line_is_the_last() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    let (mut admin, _) = program(&mut owner, &["admin"]).await;
    let (mut chatter, _) = program(&mut owner, &["chat", "memory:read", "memory:write", "mcp"]).await;
    for other in [&mut guest, &mut chatter] {
        other.send("GET", "/api/logs", None).await.is(403, "scope");
    }
    let all = admin.send("GET", "/api/logs", None).await.json();
    assert_eq!((&all["total"], all["items"].as_array().unwrap().len()), (&json!(100), 100), "there are many more");
    let last = &all["items"][99];
    assert_eq!(
        (&last["level"], &last["message"], &last["fields"]),
        (&json!("error"), &json!("line 299"), &json!({"tries": 2}))
    );
    assert!(last["timestamp"].as_str().unwrap().ends_with('Z'));
    let grave = admin.send("GET", "/api/logs?level=WARN&limit=2", None).await.json();
    let levels: Vec<&str> =
        grave["items"].as_array().unwrap().iter().map(|line| line["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["warn", "error"]);
    for wrong in ["level=loud", "limit=-1", "limit=many"] {
        admin.send("GET", &format!("/api/logs?{wrong}"), None).await.is(400, "invalid");
    }
    world.stop().await;
}
