//! Pictures made from pictures: which ones may be started from where, and what the rules make of them.

use azera_adapter::{CommandAnswer, CommandLine, FileContent, GivenPicture, Host, Platform};
use azera_memory::{NewPicture, PictureQuota, blob_id};
use azera_model_image::Picture;
use azera_types::{InboundPart, MessageId, Part, PlatformId, Text};

use std::sync::atomic::Ordering;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, Scene};
use crate::pictures::Painter;
use crate::test_engine::{chat, person};
use crate::world::PEOPLE;

/// Returns a picture file of a colour of its own.
pub fn photo(shade: u8) -> Vec<u8> {
    Picture::from_rgb(96, 48, vec![shade; 96 * 48 * 3]).unwrap().to_png(&[]).unwrap()
}

impl Scene {
    /// Lets somebody send a message with a picture; returns the message.
    async fn send_photo(&mut self, who: usize, place: usize, text: &str, alt: Option<&str>, shade: u8) -> MessageId {
        let bytes = photo(shade);
        let part = Part::new("photo.png", Some("image/png"), bytes.len() as u64).described(alt);
        let mut inbound = self.message(who, place, text);
        inbound.parts.push(InboundPart { part, source: std::sync::Arc::new(bytes) });
        let id = inbound.id.clone();
        self.submit(inbound).await.unwrap();
        self.settled().await;
        id
    }

    /// Gives a command about a message, and with a picture.
    pub async fn give(
        &self,
        (who, place): (usize, usize),
        text: &str,
        about: Option<&MessageId>,
        picture: Option<GivenPicture>,
    ) -> CommandAnswer {
        let answer = self.give_meanwhile((who, place), text, about, picture).await;
        self.settled().await;
        answer
    }

    /// Gives such a command, and does not wait for what it begins.
    async fn give_meanwhile(
        &self,
        (who, place): (usize, usize),
        text: &str,
        about: Option<&MessageId>,
        picture: Option<GivenPicture>,
    ) -> CommandAnswer {
        self.pass(90);
        let (name, about) = (PEOPLE[who].1.to_owned(), about.cloned());
        let line = CommandLine { chat: chat(place), person: person(who), name, text: Text::new(text), about, picture };
        self.engine.azera.command(self.engine.platform.sim.id(), line).await.unwrap()
    }

    /// Asks for a picture that starts from another, of a server that hangs.
    async fn with_waiting_photo() -> (Self, std::sync::Arc<Painter>) {
        let (scene, painter) = Self::with_painter(|_| {}).await;
        painter.hangs.store(true, Ordering::SeqCst);
        let given = Some(GivenPicture { description: None, content: FileContent(photo(9)) });
        let answer = scene.give_meanwhile((ANN, COMMONS), "/imagine a heliotrope knight", None, given).await;
        assert!(answer.ok, "{}", answer.text);
        assert_eq!(scene.kept_files(), [photo(9)]);
        assert!(scene.engine.memory.check().unwrap().is_sound());
        (scene, painter)
    }

    /// Returns the bytes of every kept file.
    fn kept_files(&self) -> Vec<Vec<u8>> {
        let blobs = &self.engine.layers.blobs;
        let listed = blobs.list().unwrap();
        listed.iter().map(|(id, _)| blobs.get(id).unwrap().unwrap()).collect()
    }
}

#[tokio::test]
async fn a_shown_picture_is_remixed_only_where_its_message_may_be_read() {
    let larger =
        |settings: &mut azera_engine::PictureSettings| (settings.size.width, settings.size.height) = (256, 256);
    let (mut scene, painter) = Scene::with_painter(larger).await;
    let shown = scene.send_photo(ANN, DM_ANN, "my cat, quiet", None, 7).await;
    let none = MessageId::new("m987654").unwrap();
    for at in [(AN, DM_AN), (BOB, DM_BOB), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
        for command in ["/picture remix as a knight", "/imagine a knight"] {
            let answer = scene.give(at, command, Some(&shown), None).await;
            let other = scene.give(at, command, Some(&none), None).await;
            assert_eq!(answer.ok, other.ok, "{command} in {at:?}: {}", answer.text);
        }
        let newest = scene.give(at, "/picture remix as a knight", None, None).await;
        // What was drawn there meanwhile may be the newest.
        assert!(newest.ok || newest.text.contains("no picture to start from"), "{}", newest.text);
    }
    let started = |painter: &crate::pictures::Painter| {
        let asked = painter.asked.lock().unwrap();
        let read = |png: &[u8]| Picture::read(png, &azera_model_image::PictureLimits::default()).unwrap();
        let shades = asked.iter().filter_map(|one| one.reference.as_ref());
        shades.filter(|one| read(&one.png) == read(&photo(7))).count()
    };
    assert_eq!(started(&painter), 0);
    for (command, about) in [("/picture remix as a knight", None), ("/imagine a knight", Some(&shown))] {
        let answer = scene.give((ANN, DM_ANN), command, about, None).await;
        assert!(answer.ok, "{command}: {}", answer.text);
    }
    // The second remix without a number would start from the first.
    assert_eq!(started(&painter), 2);
    let last = painter.asked.lock().unwrap().pop().unwrap();
    assert_eq!((last.size.width, last.size.height), (368, 184), "the proportions are those of the picture");
    assert!((last.reference.unwrap().strength - 0.6).abs() < 1e-6);
}

#[tokio::test]
async fn with_the_message_goes_what_was_made_of_its_picture() {
    let (mut scene, _) = Scene::with_painter(|_| {}).await;
    let shown = scene.send_photo(ANN, COMMONS, "my cat, quiet", None, 7).await;
    assert!(scene.give((AN, COMMONS), "/picture remix as a heliotrope knight", Some(&shown), None).await.ok);
    assert!(scene.holds("heliotrope"));
    scene.give((ANN, COMMONS), "/forget last quotes", Some(&shown), None).await;
    assert!(!scene.holds("heliotrope"));
    assert!(scene.engine.layers.blobs.list().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_said_about_a_picture_counts_for_the_rules_down_the_line() {
    let (mut scene, painter) = Scene::with_painter(|_| {}).await;
    let son = scene.send_photo(ANN, COMMONS, "look at my son, 5 years old, quiet", None, 1).await;
    let alt = scene.send_photo(ANN, COMMONS, "quiet", Some("a schoolgirl in a garden"), 2).await;
    for shown in [&son, &alt] {
        let answer = scene.give((AN, COMMONS), "/picture remix topless", Some(shown), None).await;
        assert!(!answer.ok && answer.text.contains("under 18"), "{}", answer.text);
    }
    let knight = scene.give((ANN, COMMONS), "/picture remix as a knight", Some(&son), None).await;
    let number = knight.choices[0].line.rsplit(' ').next().unwrap().to_owned();
    // The prompt of the remix says nothing of a child; what it started from does.
    for command in ["remix", "edit"] {
        let answer = scene.give((ANN, COMMONS), &format!("/picture {command} {number} topless"), None, None).await;
        assert!(!answer.ok && answer.text.contains("under 18"), "{command}: {}", answer.text);
    }
    let given = |description: &str| {
        Some(GivenPicture { description: Some(description.into()), content: FileContent(photo(3)) })
    };
    let answer = scene.give((ANN, DM_ANN), "/imagine topless", None, given("my 12 year old")).await;
    assert!(!answer.ok && answer.text.contains("under 18"), "{}", answer.text);
    assert!(scene.give((ANN, DM_ANN), "/imagine a knight", None, given("my 12 year old")).await.ok);
    assert_eq!(painter.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_picture_that_comes_with_a_command_is_for_its_person_alone() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let given = || Some(GivenPicture { description: None, content: FileContent(photo(9)) });
    let answer = scene.give((ANN, COMMONS), "/imagine a knight --seed 7", None, given()).await;
    let number = answer.choices[0].line.rsplit(' ').next().unwrap().to_owned();
    assert!(scene.give((ANN, COMMONS), &format!("/picture again {number}"), None, None).await.ok);
    let other = scene.give((AN, COMMONS), &format!("/picture again {number}"), None, None).await;
    assert!(!other.ok && other.text.contains("not kept any more"), "{}", other.text);
    assert!(scene.give((AN, COMMONS), &format!("/picture vary {number}"), None, None).await.ok);
    assert!(painter.asked.lock().unwrap().iter().all(|asked| asked.reference.is_some()));
    let broken = Some(GivenPicture { description: None, content: FileContent(b"\x89PNG".to_vec()) });
    let answer = scene.give((ANN, COMMONS), "/imagine a knight", None, broken).await;
    assert!(!answer.ok && answer.text.contains("cannot start from that picture"), "{}", answer.text);
}

#[tokio::test]
async fn a_request_with_a_picture_of_its_own_outlives_a_restart_and_leaves_nothing_behind() {
    let (mut scene, painter) = Scene::with_waiting_photo().await;
    scene.engine.azera.stop().await;
    painter.hangs.store(false, Ordering::SeqCst);
    painter.asked.lock().unwrap().clear();
    scene.engine.reopen().await;
    scene.settled().await;
    let asked = painter.asked.lock().unwrap().clone();
    let read = |png: &[u8]| Picture::read(png, &azera_model_image::PictureLimits::default()).unwrap();
    assert!(asked.len() == 1 && read(&asked[0].reference.as_ref().unwrap().png) == read(&photo(9)));
    assert_eq!(scene.posts().iter().map(|(_, files)| *files).collect::<Vec<_>>(), [1]);
    let kept = scene.kept_files();
    assert!(kept.len() == 1 && kept[0] != photo(9), "the drawn one alone is kept");
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn a_picture_that_came_with_a_waiting_request_is_for_nobody_and_goes_with_it() {
    let (scene, _) = Scene::with_waiting_photo().await;
    let digest = azera_memory::blob_id(&photo(9)).unwrap();
    for (who, place) in [(ANN, COMMONS), (AN, COMMONS), (ANN, DM_ANN), (AN, DM_AN), (BOB, DM_BOB)] {
        let files = scene.command_meanwhile(who, place, "/memory files").await;
        let file = scene.give_meanwhile((who, place), &format!("/memory file {}", digest.as_str()), None, None).await;
        assert!(!files.contains("png") && file.files.is_empty(), "{who} in {place}: {files}");
        let export = scene.command_meanwhile(who, place, "/memory export").await;
        assert_eq!(export.contains("starts_from"), place == DM_ANN, "{who} in {place}");
    }
    scene.command_meanwhile(ANN, DM_ANN, "/forget me").await;
    assert_eq!(scene.kept_files(), Vec::<Vec<u8>>::new());
    assert!(scene.engine.memory.check().unwrap().is_sound());
    for end in ["/picture cancel", "/picture forbid knight"] {
        let (mut scene, painter) = Scene::with_waiting_photo().await;
        if end.contains("forbid") {
            scene.engine.azera.stop().await;
            let home = scene.engine.memory.pictures().waiting().unwrap().remove(0);
            let wishes = serde_json::json!({ "forbidden": ["knight"] });
            scene.engine.memory.pictures().set_wishes(&home.platform, &home.scope, &wishes).unwrap();
            scene.engine.reopen().await;
        } else {
            assert!(scene.give_meanwhile((ANN, COMMONS), end, None, None).await.ok);
        }
        painter.hangs.store(false, Ordering::SeqCst);
        scene.settled().await;
        assert_eq!(scene.kept_files(), Vec::<Vec<u8>>::new(), "{end}");
    }
}

#[tokio::test]
async fn an_edited_picture_keeps_its_seed_and_takes_another_prompt() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let command = "/imagine a lighthouse --seed 7 --negative fog --size 128x64";
    let answer = scene.give((ANN, COMMONS), command, None, None).await;
    let number = answer.choices[0].line.rsplit(' ').next().unwrap().to_owned();
    let shown = scene.give((AN, COMMONS), &format!("/picture edit {number}"), None, None).await;
    let fields: Vec<String> = shown.form.unwrap().fields.into_iter().map(|field| field.value).collect();
    assert_eq!(fields, ["a lighthouse", "fog"]);
    let edit = |what: &str| format!("/picture edit {number} {what}");
    assert!(scene.give((AN, COMMONS), &edit("a castle"), None, None).await.ok);
    assert!(scene.give((AN, COMMONS), &edit("a mill --seed 9 --negative none"), None, None).await.ok);
    let asked = painter.asked.lock().unwrap().clone();
    let seen: Vec<_> = asked.iter().map(|one| (one.prompt.as_str(), one.negative.as_str(), one.seed)).collect();
    assert_eq!(seen, [("a lighthouse", "fog", 7), ("a castle", "fog", 7), ("a mill", "", 9)]);
    assert!(asked.iter().all(|one| one.size.width == 128 && one.reference.is_none()));
    for (who, place) in [(AN, DM_AN), (BOB, DM_BOB)] {
        let readable = scene.give((who, place), &edit("a castle"), None, None).await.ok;
        // An reads the commons from his direct chat; Bob is in another place.
        assert_eq!(readable, who == AN, "{who}");
    }
}

#[tokio::test]
async fn a_picture_is_drawn_larger_until_it_is_as_large_as_pictures_may_be() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let asked = scene.give((ANN, COMMONS), "/imagine a lighthouse --seed 7", None, None).await;
    let mut number = asked.choices[0].line.rsplit(' ').next().unwrap().to_owned();
    let none = scene.give((BOB, DM_BOB), "/picture upscale 987654", None, None).await;
    assert_eq!(scene.give((BOB, DM_BOB), &format!("/picture upscale {number}"), None, None).await, none);
    // The painter's pictures have 8 pixels a side.
    for round in 1..=8 {
        let larger = scene.give((AN, COMMONS), &format!("/picture upscale {number}"), None, None).await;
        assert!(larger.ok, "{}", larger.text);
        number = larger.choices[0].line.rsplit(' ').next().unwrap().to_owned();
        let request = painter.enlarged.lock().unwrap().pop().unwrap();
        assert_eq!((request.size.width, request.drawn_by.seed), (8 << round, 7));
        assert_eq!(request.drawn_by.prompt, "a lighthouse");
    }
    let refused = scene.give((AN, COMMONS), &format!("/picture upscale {number}"), None, None).await;
    assert!(!refused.ok && refused.text.contains("as large as"), "{}", refused.text);
}

#[tokio::test]
async fn a_server_that_cannot_draw_larger_is_not_asked() {
    let mut scene = Scene::open(false, false).await;
    scene.engine.pictures = Some(crate::pictures::settings(std::sync::Arc::default()));
    scene.engine.reopen().await;
    let asked = scene.give((ANN, COMMONS), "/imagine a lighthouse", None, None).await;
    let number = asked.choices[0].line.rsplit(' ').next().unwrap().to_owned();
    let refused = scene.give((ANN, COMMONS), &format!("/picture upscale {number}"), None, None).await;
    assert!(!refused.ok && refused.text.contains("cannot draw pictures larger"), "{}", refused.text);
}

#[tokio::test]
async fn a_picture_whose_start_is_damaged_says_that_it_is_gone() {
    let (mut scene, painter) = Scene::with_waiting_photo().await;
    scene.engine.azera.stop().await;
    let blobs = scene.engine.layers.blobs.clone();
    blobs.put(&blob_id(&photo(9)).unwrap(), b"other bytes").unwrap();
    painter.hangs.store(false, Ordering::SeqCst);
    scene.engine.reopen().await;
    scene.settled().await;
    let told = scene.delivered().pop().unwrap_or_default();
    assert!(told.contains("the picture that it starts from is gone"), "{told}");
    assert!(scene.engine.memory.pictures().waiting().unwrap().is_empty());
}

#[tokio::test]
async fn waiting_requests_that_keep_their_own_copies_take_no_room_from_uploads() {
    let (scene, _) = Scene::with_waiting_photo().await;
    for shade in 10..16 {
        let given = Some(GivenPicture { description: None, content: FileContent(photo(shade)) });
        let answer = scene.give_meanwhile((ANN, COMMONS), "/imagine a heliotrope knight", None, given).await;
        assert!(answer.ok, "{}", answer.text);
    }
    scene.engine.azera.stop().await;
}

#[tokio::test]
async fn the_start_of_a_request_is_dropped_after_a_day_without_its_platform() {
    let (mut scene, _) = Scene::with_waiting_photo().await;
    scene.engine.azera.stop().await;
    let mut row = scene.engine.memory.pictures().waiting().unwrap().remove(0);
    scene.engine.memory.pictures().cancel(&row.message).unwrap();
    row.platform = PlatformId::new("removed").unwrap();
    let quota = PictureQuota {
        day: "2026-03-01".into(),
        by_person: 10,
        in_place: 10,
        waiting: 10,
        waiting_by_person: 10,
        waiting_in_place: 10,
    };
    scene.engine.memory.pictures().ask(NewPicture { row, quota, start: Some(photo(9)) }).unwrap();
    scene.engine.reopen().await;
    scene.settled().await;
    assert_eq!(scene.kept_files(), [photo(9)], "its platform may come back");
    scene.pass(25 * 3_600);
    scene.settled().await;
    assert!(scene.kept_files().is_empty());
    assert_eq!(scene.engine.memory.pictures().waiting().unwrap().len(), 1, "it waits on");
    assert!(scene.engine.memory.check().unwrap().is_sound());
}
