//! Pictures: asked for, followed, shown to their person, and deleted.

use std::sync::atomic::Ordering;

use azera_adapter::PictureStart;
use serde_json::{Value, json};

use crate::client::Client;
use crate::{World, program};

/// Asks for a picture. Returns the events.
pub async fn draw(client: &mut Client, body: Value) -> Vec<(String, Value)> {
    let answer = client.send("POST", "/api/images/generate", Some(body)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.events().into_iter().map(|(name, data)| (name, serde_json::from_str(&data).unwrap())).collect()
}

#[tokio::test]
async fn a_picture_is_followed_until_it_is_drawn_and_then_listed() {
    let world = World::start().await;
    let (mut key, _) = program(&mut world.owner().await, &["chat"]).await;
    let body = json!({
        "prompt": "a lighthouse at dusk", "negative_prompt": "fog", "model": "grey", "width": 768, "height": 512, "steps": 2,
        "cfg_scale": 5.5, "seed": 9, "custom_filename": "My Tower!", "reference_image": "",
    });
    let events = draw(&mut key, body).await;
    let steps: Vec<(&Value, &Value)> = events
        .iter()
        .filter(|(name, _)| name == "progress")
        .map(|(_, data)| (&data["step"], &data["percentage"]))
        .collect();
    assert_eq!(steps, [(&json!(0), &json!(0)), (&json!(1), &json!(50)), (&json!(2), &json!(100))]);
    let previews: Vec<&Value> = events.iter().filter_map(|(_, data)| data.get("preview")).collect();
    assert_eq!(previews, ["data:image/jpeg;base64,Ymx1cnJlZA=="], "of the first step");
    let (name, complete) = events.last().unwrap();
    assert_eq!((name.as_str(), &complete["image"]["filename"]), ("complete", &json!("my-tower-1.png")));
    let image = &complete["image"];
    assert_eq!((&image["width"], &image["height"], &image["seed"]), (&json!(768), &json!(512), &json!(9)));
    let listed = key.send("GET", "/api/images", None).await.json();
    assert_eq!(listed, json!({"items": [image], "total": 1}));
    let wish = world.engine.studio.wishes.lock().unwrap()[0].clone();
    assert_eq!((wish.negative.as_deref(), wish.guidance, wish.start), (Some("fog"), Some(5.5), None));
    draw(&mut key, json!({"prompt": "a boat", "seed": -1})).await;
    let page = key.send("GET", "/api/images?offset=1&limit=5", None).await.json();
    assert_eq!((&page["total"], &page["items"][0]["filename"]), (&json!(2), &json!("my-tower-1.png")));
    for (query, total) in [
        ("q=lighthouse", 1),
        ("q=a", 2),
        ("q=plane", 0),
        ("by=Ann&q=boat", 1),
        ("by=Bob", 0),
        ("place=Pict", 2),
        ("place=x", 0),
    ] {
        let found = key.send("GET", &format!("/api/images?{query}&limit=9"), None).await.json();
        assert_eq!(found["total"], total, "{query}");
    }
    let long = format!("/api/images?q=lighthouse{}nowhere", "+".repeat(190));
    assert_eq!(key.send("GET", &long, None).await.json()["total"], 1, "what follows 200 characters is not read");
    let models = key.send("GET", "/api/images/models", None).await.json();
    assert_eq!((&models["total"], &models["items"][0]["name"]), (&json!(1), &json!("grey")));
    world.stop().await;
}

#[tokio::test]
async fn a_model_and_a_sampler_are_chosen_from_those_that_are_listed() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let listed = owner.send("GET", "/api/images/models", None).await.json()["items"][0].clone();
    assert_eq!((&listed["models"][1], &listed["samplers"][1]), (&json!("large"), &json!("Euler a")));
    let wish = json!({"prompt": "a boat", "model": listed["models"][1], "sampler": listed["samplers"][1]});
    let image = draw(&mut owner, wish).await.pop().unwrap().1["image"].clone();
    assert_eq!((&image["chosen_model"], &image["sampler"]), (&json!("large"), &json!("Euler a")));
    // The name of what draws is no choice, and neither is an empty one.
    for usual in ["grey", ""] {
        draw(&mut owner, json!({"prompt": "a boat", "model": usual})).await;
    }
    let wishes = world.engine.studio.wishes.lock().unwrap().clone();
    let chosen: Vec<Option<&str>> = wishes.iter().map(|wish| wish.model.as_deref()).collect();
    assert_eq!(chosen, [Some("large"), None, None]);
    world.stop().await;
}

#[tokio::test]
async fn a_picture_is_served_whole_and_in_parts() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    draw(&mut owner, json!({"prompt": "0123456789"})).await;
    let path = "/api/images/picture-1.png";
    let whole = owner.send("GET", path, None).await;
    assert_eq!((whole.status, whole.body.as_str()), (200, "0123456789"));
    let headers = ["content-type", "content-disposition", "x-content-type-options", "cache-control", "accept-ranges"];
    assert_eq!(
        headers.map(|name| whole.header(name).unwrap()),
        ["image/png", "inline; filename=\"picture-1.png\"", "nosniff", "private, no-cache", "bytes"]
    );
    let part = owner.send_with("GET", path, &[("Range", "bytes=2-4")], "").await;
    assert_eq!((part.status, part.body.as_str()), (206, "234"));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    let small = owner.send("GET", &format!("{path}/thumbnail"), None).await;
    assert_eq!(
        (small.status, small.body.as_str(), small.header("content-type")),
        (200, "small 0123456789", Some("image/jpeg"))
    );
    let shrunk = || world.engine.studio.shrunk.load(Ordering::SeqCst);
    assert_eq!(shrunk(), 1);
    let tag = [("If-None-Match", small.header("etag").unwrap())];
    let known = owner.send_with("GET", &format!("{path}/thumbnail"), &tag, "").await;
    assert_eq!((known.status, known.body.as_str(), shrunk()), (304, "", 1), "it is not made anew");
    assert_eq!(known.header("etag"), small.header("etag"));
    assert_ne!(whole.header("etag"), small.header("etag"));
    for missing in ["picture-2.png", "tower-1.png", "1", "..%2f1"] {
        owner.send("GET", &format!("/api/images/{missing}/thumbnail"), None).await.is(404, "not_found");
    }
    let end = owner.send_with("GET", path, &[("Range", "bytes=-3")], "").await;
    assert_eq!((end.status, end.body.as_str()), (206, "789"));
    let beyond = owner.send_with("GET", path, &[("Range", "bytes=10-")], "").await;
    beyond.is(416, "no_such_range");
    assert_eq!(beyond.header("content-range"), Some("bytes */10"));
    let known = owner.send_with("GET", path, &[("If-None-Match", whole.header("etag").unwrap())], "").await;
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    // Each picture has one name, and a name is no path.
    for other in [
        "tower-1.png",
        "picture-01.png",
        "picture-1.jpg",
        "picture-2.png",
        "..%2fweb.json",
        "picture-1.png%00",
        "1.png",
    ] {
        owner.send("GET", &format!("/api/images/{other}"), None).await.is(404, "not_found");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_deleted_picture_is_gone() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    draw(&mut owner, json!({"prompt": "a boat"})).await;
    let deleted = owner.send("DELETE", "/api/images/picture-1.png", None).await.json();
    assert_eq!(deleted, json!({"status": "deleted", "filename": "picture-1.png"}));
    for method in ["GET", "DELETE"] {
        owner.send(method, "/api/images/picture-1.png", None).await.is(404, "not_found");
    }
    assert_eq!(owner.send("GET", "/api/images", None).await.json()["total"], 0);
    world.stop().await;
}

#[tokio::test]
async fn a_picture_is_pinned_and_drawn_larger_by_those_who_see_it() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    draw(&mut owner, json!({"prompt": "a boat", "width": 512, "height": 384})).await;
    let (pin, larger) = ("/api/images/picture-1.png/pin", "/api/images/picture-1.png/upscale");
    for (method, path) in [("PUT", pin), ("DELETE", pin), ("POST", larger)] {
        bob.send(method, path, None).await.is(404, "not_found");
        owner.send(method, &path.replace("-1", "-9"), None).await.is(404, "not_found");
    }
    let is_pinned =
        async |owner: &mut Client| owner.send("GET", "/api/images", None).await.json()["items"][0]["pinned"].clone();
    assert_eq!(is_pinned(&mut owner).await, json!(false));
    assert_eq!(owner.send("PUT", pin, None).await.json(), json!({"status": "pinned"}));
    assert_eq!(is_pinned(&mut owner).await, json!(true));
    assert_eq!(owner.send("DELETE", pin, None).await.json(), json!({"status": "unpinned"}));
    assert_eq!(is_pinned(&mut owner).await, json!(false));
    let answer = owner.send("POST", larger, None).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let events = answer.events();
    let (name, complete) = events.last().unwrap();
    let image = serde_json::from_str::<Value>(complete).unwrap()["image"].clone();
    assert_eq!((name.as_str(), &image["filename"]), ("complete", &json!("picture-2.png")));
    assert_eq!((&image["width"], &image["height"]), (&json!(1_024), &json!(768)));
    world.engine.studio.is_closed.store(true, Ordering::SeqCst);
    owner.send("POST", larger, None).await.is(409, "images_unavailable");
    world.stop().await;
}

#[tokio::test]
async fn a_picture_is_taken_back_by_the_person_who_asked() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    draw(&mut owner, json!({"prompt": "a boat"})).await;
    draw(&mut owner, json!({"prompt": "a ship", "persona_id": "azera"})).await;
    let cancel = async |client: &mut Client, number: u64| {
        client.send("POST", "/api/images/cancel", Some(json!({"number": number}))).await
    };
    for number in [1, 2, 3] {
        cancel(&mut bob, number).await.is(404, "not_found");
    }
    for number in [1, 2] {
        assert_eq!(cancel(&mut owner, number).await.json(), json!({"status": "cancelled"}), "{number}");
        cancel(&mut owner, number).await.is(404, "not_found");
    }
    world.stop().await;
}

#[tokio::test]
async fn what_waits_is_listed_and_followed_again_by_the_person_who_asked() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    let answer = owner.send("POST", "/api/images/generate", Some(json!({"prompt": "a boat", "steps": 2}))).await;
    let first: Value = serde_json::from_str(&answer.events()[0].1).unwrap();
    assert_eq!((&first["state"], &first["place"], &first["number"]), (&json!("waits"), &json!(3), &json!(1)));
    let listed = owner.send("GET", "/api/images/waiting", None).await.json();
    let want = json!({"number": 1, "prompt": "a boat", "state": "loading", "place": null, "downloaded": 2_000_000_000,
        "step": 0, "total_steps": 0, "percentage": 0});
    assert_eq!(listed, json!({"items": [want], "total": 1}));
    // It goes on, and is drawn: the stream of it begins anew.
    world.engine.studio.begin_again();
    let events = owner.send("GET", "/api/images/waiting/1", None).await.events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["progress", "progress", "complete"], "{events:?}");
    let loading: Value = serde_json::from_str(&events[0].1).unwrap();
    assert_eq!((&loading["state"], &loading["downloaded"]), (&json!("loading"), &json!(0)));
    assert_eq!(bob.send("GET", "/api/images/waiting", None).await.json()["total"], 0);
    bob.send("GET", "/api/images/waiting/1", None).await.is(404, "not_found");
    owner.send("GET", "/api/images/waiting/2", None).await.is(404, "not_found");
    world.stop().await;
}

#[tokio::test]
async fn what_cannot_be_drawn_is_said() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    for (wrong, part) in [
        (json!({"prompt": " "}), "prompt"),
        (json!({"prompt": "x", "width": 10}), "width"),
        (json!({"prompt": "x", "height": 5000}), "height"),
        (json!({"prompt": "x", "steps": 0}), "steps"),
        (json!({"prompt": "x", "cfg_scale": 31}), "cfg_scale"),
        (json!({"prompt": "x", "seed": -2}), "seed"),
        (json!({"prompt": "x", "reference_strength": 0.0}), "reference_strength"),
        (json!({"prompt": "x", "reference_image": "../../etc/passwd"}), "reference_image"),
        (json!({"prompt": "x", "custom_filename": "a\r\nX-Evil: 1"}), "custom_filename"),
    ] {
        let answer = owner.send("POST", "/api/images/generate", Some(wrong)).await;
        answer.is(400, "invalid");
        assert!(answer.body.contains(part), "{}", answer.body);
    }
    let mut ask =
        async |prompt: &str| owner.send("POST", "/api/images/generate", Some(json!({"prompt": prompt}))).await;
    ask("something forbidden").await.is(422, "refused");
    ask("one too many").await.is(429, "too_many_pictures");
    let events = ask("something impossible").await.events();
    assert_eq!(events.last().unwrap().0, "error", "{events:?}");
    for (kind, wanted, has) in [("model", "dall-e-3", "small, large"), ("sampler", "eular", "euler, Euler a")] {
        let other = json!({"prompt": "x", kind: wanted});
        let answer = owner.send("POST", "/api/images/generate", Some(other)).await;
        answer.is(422, if kind == "model" { "model_not_found" } else { "sampler_not_found" });
        assert!(answer.body.contains(has), "{}", answer.body);
    }
    let unknown = json!({"prompt": "x", "persona_id": "nobody"});
    owner.send("POST", "/api/images/generate", Some(unknown)).await.is(404, "not_found");
    world.engine.studio.is_closed.store(true, Ordering::SeqCst);
    let answer = owner.send("POST", "/api/images/generate", Some(json!({"prompt": "x"}))).await;
    answer.is(409, "images_unavailable");
    assert!(answer.body.contains("[images]"), "it says how to get one: {}", answer.body);
    assert_eq!(owner.send("GET", "/api/images/models", None).await.json()["total"], 0);
    assert_eq!(owner.send("GET", "/api/images", None).await.status, 200, "earlier pictures stay");
    world.stop().await;
}

/// Sends a form with one file.
pub async fn send_form(client: &Client, path: &str, field: &str, name: &str, file: &[u8]) -> crate::client::Answer {
    let head = format!(
        "--x\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\nContent-Type: image/png\r\n\r\n"
    );
    let body = [head.as_bytes(), file, b"\r\n--x--\r\n"].concat();
    client.send_bytes("POST", path, &[("Content-Type", "multipart/form-data; boundary=x")], &body).await
}

#[tokio::test]
async fn an_uploaded_picture_is_for_its_person_alone() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    let upload = "/api/images/upload-reference";
    let kept = send_form(&owner, upload, "file", "me.png", b"\x89PNG heliotrope").await;
    assert_eq!(kept.status, 200, "{}", kept.body);
    let kept = kept.json();
    let url = kept["url"].as_str().unwrap().to_owned();
    let own = owner.send("GET", &url, None).await;
    assert_eq!((own.status, own.header("content-type")), (200, Some("image/png")));
    assert!(own.bytes.ends_with(b"heliotrope"));
    bob.send("GET", &url, None).await.is(404, "not_found");
    draw(&mut owner, json!({"prompt": "x", "reference_image": kept["id"], "reference_strength": 0.5})).await;
    let wish = world.engine.studio.wishes.lock().unwrap()[0].clone();
    let id = kept["id"].as_str().unwrap().to_owned();
    assert_eq!((wish.start, wish.strength), (Some(PictureStart::Uploaded(id)), Some(0.5)));
    draw(&mut owner, json!({"prompt": "y", "reference_image": "/api/images/picture-1.png"})).await;
    let wish = world.engine.studio.wishes.lock().unwrap()[1].clone();
    assert_eq!(wish.start, Some(PictureStart::Drawn(1)));
    send_form(&owner, upload, "file", "me.png", b"<svg onload=alert(1)>").await.is(422, "refused");
    send_form(&owner, upload, "picture", "me.png", b"\x89PNG").await.is(400, "invalid");
    owner.send("POST", upload, Some(json!({}))).await.is(415, "media_type");
    send_form(&owner, upload, "file", "big.png", &vec![0; 21 << 20]).await.is(413, "too_large");
    world.stop().await;
}

#[tokio::test]
async fn only_owners_learn_where_the_server_is() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    let (mut program, _) = program(&mut owner, &["chat"]).await;
    let listed = owner.send("GET", "/api/images/models", None).await.json();
    assert_eq!(listed["items"][0]["server"], "grey at http://10.0.0.7:7860");
    for client in [&mut guest, &mut program] {
        let listed = client.send("GET", "/api/images/models", None).await;
        assert!(!listed.body.contains("10.0.0.7"), "{}", listed.body);
        assert_eq!(listed.json()["items"][0]["name"], "grey");
    }
    world.stop().await;
}

#[tokio::test]
async fn pictures_need_the_scope_to_chat() {
    let world = World::start().await;
    let (mut reader, _) = program(&mut world.owner().await, &["memory:read", "memory:write", "mcp"]).await;
    for (method, path) in [
        ("POST", "/api/images/generate"),
        ("POST", "/api/images/cancel"),
        ("GET", "/api/tts/status"),
        ("GET", "/api/images"),
        ("GET", "/api/images/models"),
        ("GET", "/api/images/picture-1.png"),
        ("GET", "/api/images/picture-1.png/thumbnail"),
        ("DELETE", "/api/images/picture-1.png"),
        ("GET", "/api/images/references/x.png"),
        ("POST", "/api/tts/synthesize"),
        ("POST", "/api/status/mood"),
    ] {
        reader.send(method, path, Some(json!({}))).await.is(403, "scope");
        assert_eq!(world.client().send(method, path, Some(json!({}))).await.status, 401, "{path}");
    }
    world.stop().await;
}
