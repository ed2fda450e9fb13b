//! Files of messages: who gets them, by which way ever, and that those that are not kept are never fetched.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use azera_adapter::{CommandAnswer, CommandLine, Edit, Host, InboundEvent, Platform};
use azera_memory::blob_id;
use azera_types::{Clock, FetchError, Fetching, InboundPart, Part, PartSource, Text, TimeZone};

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, Scene};
use crate::test_engine::{chat, person};
use crate::world::PEOPLE;

const SECRET: &[u8] = b"the lighthouse password is heliotrope";

/// A file that counts how often it is fetched.
#[derive(Default)]
struct Counted(AtomicUsize);

impl PartSource for Counted {
    fn fetch(&self, _: u64) -> Fetching<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Err(FetchError::Failed("it is gone".into()))))
    }
}

fn part(name: &str, source: Arc<dyn PartSource>) -> InboundPart {
    InboundPart { part: Part::new(name, Some("text/plain"), SECRET.len() as u64), source }
}

impl Scene {
    /// Somebody sends a file to the bot.
    async fn send(&mut self, who: usize, place: usize, name: &str, source: Arc<dyn PartSource>) {
        let mut inbound = self.message(who, place, "look at that");
        inbound.parts.push(part(name, source));
        self.submit(inbound).await.unwrap();
        self.engine.azera.settle().await.unwrap();
    }

    async fn answer(&self, who: usize, place: usize, text: &str) -> CommandAnswer {
        self.pass(90);
        let name = PEOPLE[who].1.to_owned();
        let line = CommandLine {
            chat: chat(place),
            person: person(who),
            name,
            text: Text::new(text),
            about: None,
            picture: None,
        };
        self.engine.azera.command(self.engine.platform.sim.id(), line).await.unwrap()
    }

    /// Returns the file that somebody is given by its name or its id.
    async fn given(&self, who: usize, place: usize, which: &str) -> Option<Vec<u8>> {
        let answer = self.answer(who, place, &format!("/memory file {which}")).await;
        assert_eq!(answer.ok, !answer.files.is_empty());
        answer.files.into_iter().next().map(|file| file.content.0)
    }

    fn stored(&self) -> usize {
        self.engine.layers.blobs.list().unwrap().len()
    }
}

#[tokio::test]
async fn a_person_gets_all_of_their_files_part_by_part_and_no_others() {
    let mut scene = Scene::open(false, false).await;
    for number in 0..12 {
        let bytes = format!("file {number} of Ann").into_bytes();
        scene.send(ANN, COMMONS, &format!("{number}.txt"), Arc::new(bytes)).await;
    }
    scene.send(AN, COMMONS, "an.txt", Arc::new(b"for everybody".to_vec())).await;
    // Nine of these have more bytes than a part.
    for number in 0..9 {
        scene.send(AN, COMMONS, &format!("large{number}.txt"), Arc::new(vec![b'a' + number; 1_000_000])).await;
    }
    let part = async |who: usize, place: usize, line: &str| {
        let answer = scene.answer(who, place, line).await;
        let names: Vec<String> = answer.files.iter().map(|file| file.part.name.clone()).collect();
        (answer.ok, answer.text, names)
    };
    let (ok, text, first) = part(ANN, DM_ANN, "/memory export files").await;
    assert!(ok && text.contains("part 1 of 2") && text.contains("/memory export files 2"), "{text}");
    assert_eq!(first, (0..10).map(|number| format!("{number}.txt")).collect::<Vec<_>>());
    // The second is what a form sends whose field holds the part alone.
    for line in ["/memory export files 2", "/memory export 2"] {
        assert_eq!(part(ANN, DM_ANN, line).await.2, ["10.txt", "11.txt"], "{line}");
    }
    for wrong in ["files 3", "files 0", "files all", "files 1 2", "filesystem", "files2", "3", "everything"] {
        let (ok, text, files) = part(ANN, DM_ANN, &format!("/memory export {wrong}")).await;
        assert!(!ok && files.is_empty() && !text.contains("\"messages\""), "{wrong}: {text}");
    }
    let first = part(AN, DM_AN, "/memory export files").await;
    assert_eq!((first.2.len(), first.2[0].as_str()), (9, "an.txt"), "{}", first.1);
    assert_eq!(part(AN, DM_AN, "/memory export files 2").await.2, ["large8.txt"]);
    assert!(part(BOB, DM_BOB, "/memory export files").await.2.is_empty());
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, COMMONS)] {
        let (ok, text, files) = part(who, place, "/memory export files").await;
        assert!(!ok && files.is_empty() && text.contains("in a direct message"), "{who} in {place}: {text}");
    }
}

#[tokio::test]
async fn a_file_is_given_only_where_its_message_may_be_read() {
    let mut scene = Scene::open(false, false).await;
    scene.send(ANN, DM_ANN, "plan.txt", Arc::new(SECRET.to_vec())).await;
    scene.send(AN, COMMONS, "open.txt", Arc::new(b"for everybody".to_vec())).await;
    let digest = blob_id(SECRET).unwrap();
    for which in ["plan.txt", digest.as_str(), digest.as_str().get(..12).unwrap()] {
        assert_eq!(scene.given(ANN, DM_ANN, which).await.as_deref(), Some(SECRET), "{which}");
        for (who, place) in [(AN, DM_AN), (BOB, DM_BOB), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
            assert_eq!(scene.given(who, place, which).await, None, "{which} to {who} in {place}");
            // Nothing tells whether the file exists.
            let missing = scene.answer(who, place, &format!("/memory file {}", "0".repeat(64))).await;
            assert_eq!(scene.answer(who, place, &format!("/memory file {which}")).await, missing);
            assert!(!scene.command(who, place, "/memory files").await.contains("plan.txt"));
        }
    }
    // In a direct message, a person also gets what they may read elsewhere.
    assert_eq!(scene.given(ANN, DM_ANN, "open.txt").await.as_deref(), Some(b"for everybody".as_slice()));
    assert!(scene.command(ANN, DM_ANN, "/memory files").await.contains("plan.txt"));
    let theirs = scene.command(AN, DM_AN, "/memory export").await;
    assert!(theirs.contains("open.txt") && !theirs.contains("plan.txt") && !theirs.contains(digest.as_str()));
    assert!(scene.command(ANN, DM_ANN, "/memory export").await.contains(digest.as_str()));
    assert!(scene.find(AN, COMMONS, "heliotrope").await.iter().all(|hit| !hit.contains("heliotrope")));
}

/// It is past midnight in Tokyo, where the realm is, and still the day before in UTC.
#[tokio::test]
async fn a_file_is_shown_with_its_day_in_the_time_zone_of_the_place() {
    let mut scene = Scene::open(false, false).await;
    scene.engine.says_its_zone("Asia/Tokyo");
    scene.send(AN, COMMONS, "open.txt", Arc::new(b"for everybody".to_vec())).await;
    let day = |zone: TimeZone| scene.engine.clock.now().to_zoned(zone).strftime("%F").to_string();
    let (tokyo, utc) = (day(TimeZone::get("Asia/Tokyo").unwrap()), day(TimeZone::UTC));
    assert_ne!(tokyo, utc);
    for line in ["/memory files", "/memory file open.txt"] {
        let text = scene.answer(AN, COMMONS, line).await.text;
        assert!(text.contains(&tokyo) && !text.contains(&utc), "{line}: {text}");
    }
}

#[tokio::test]
async fn the_same_file_of_two_people_is_each_ones_own() {
    let mut scene = Scene::open(false, false).await;
    scene.send(ANN, DM_ANN, "plan.txt", Arc::new(SECRET.to_vec())).await;
    let before = scene.command(AN, DM_AN, "/memory files").await;
    assert!(before.contains("no files"), "{before}");
    scene.send(AN, DM_AN, "mine.txt", Arc::new(SECRET.to_vec())).await;
    assert_eq!(scene.stored(), 1);
    assert_eq!(scene.given(AN, DM_AN, "plan.txt").await, None);
    let listed = scene.command(AN, DM_AN, "/memory files").await;
    assert_eq!(listed.matches("mine.txt").count() + listed.matches("plan.txt").count(), 1, "{listed}");
    scene.command(ANN, DM_ANN, "/forget me quotes").await;
    assert_eq!(scene.given(AN, DM_AN, "mine.txt").await.as_deref(), Some(SECRET));
    assert_eq!(scene.given(ANN, DM_ANN, "plan.txt").await, None);
    scene.command(AN, DM_AN, "/forget me quotes").await;
    assert_eq!(scene.stored(), 0);
}

#[tokio::test]
async fn a_withdrawn_file_is_gone() {
    let mut scene = Scene::open(false, false).await;
    scene.send(ANN, COMMONS, "plan.txt", Arc::new(SECRET.to_vec())).await;
    let edited = scene.last();
    let edit = |name: &str, source: Arc<dyn PartSource>| Edit {
        text: Text::new("look again"),
        parts: vec![part(name, source)],
        at: scene.engine.clock.now(),
    };
    let other = edit("other.txt", Arc::new(b"harmless".to_vec()));
    scene.edit(&edited, other).await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.given(ANN, COMMONS, "plan.txt").await, None);
    assert_eq!(scene.given(ANN, COMMONS, "other.txt").await.as_deref(), Some(b"harmless".as_slice()));
    scene.delete(&edited).await;
    assert_eq!((scene.given(ANN, COMMONS, "other.txt").await, scene.stored()), (None, 0));
}

#[tokio::test]
async fn a_file_that_is_not_kept_is_never_fetched() {
    let mut scene = Scene::open(false, false).await;
    scene.command(AN, DM_AN, "/privacy addressed").await;
    let (overheard, addressed) = (Arc::new(Counted::default()), Arc::new(Counted::default()));
    let mut inbound = scene.message(AN, COMMONS, "look at that, Ann");
    inbound.mentions_bot = false;
    inbound.parts.push(part("overheard.txt", overheard.clone()));
    // Handed in again, too, as after a crash.
    for _ in 0..2 {
        scene.submit(inbound.clone()).await.unwrap();
        scene.engine.azera.settle().await.unwrap();
    }
    scene.send(AN, COMMONS, "addressed.txt", addressed.clone()).await;
    assert_eq!((overheard.0.load(Ordering::SeqCst), addressed.0.load(Ordering::SeqCst)), (0, 1));
    assert!(scene.command(AN, COMMONS, "/memory files").await.contains("no files"), "it could not be fetched");
}

#[tokio::test]
async fn a_file_that_comes_with_an_edit_before_the_answer_is_kept_if_its_message_is() {
    let mut scene = Scene::open(false, false).await;
    let sim = scene.engine.platform.sim.clone();
    scene.command(AN, DM_AN, "/privacy addressed").await;
    for (mentions_bot, kept) in [(true, 1), (false, 0)] {
        let mut inbound = scene.message(AN, COMMONS, "look at that, Ann");
        inbound.mentions_bot = mentions_bot;
        let id = inbound.id.clone();
        let source = Arc::new(Counted::default());
        scene.engine.azera.submit(sim.id(), InboundEvent::Message(inbound)).await.unwrap();
        let edit = Edit {
            text: Text::new("look at this, Ann"),
            parts: vec![part("edited.txt", source.clone())],
            at: scene.engine.clock.now(),
        };
        scene.edit(&id, edit).await;
        scene.engine.azera.settle().await.unwrap();
        assert_eq!(source.0.load(Ordering::SeqCst), kept, "to the bot: {mentions_bot}");
    }
}

#[tokio::test]
async fn a_deleted_message_leaves_no_file_in_memory() {
    let mut scene = Scene::open(false, false).await;
    let sim = scene.engine.platform.sim.clone();
    *scene.engine.platform.hang.lock().unwrap() = Some(false);
    let first = scene.message(ANN, COMMONS, "look at this");
    scene.engine.azera.submit(sim.id(), InboundEvent::Message(first)).await.unwrap();
    scene.engine.platform.hung.notified().await;
    // The next message waits behind that one, and its file with it.
    let source: Arc<dyn PartSource> = Arc::new(SECRET.to_vec());
    let held = Arc::downgrade(&source);
    let mut next = scene.message(ANN, COMMONS, "look at that");
    next.parts.push(part("plan.txt", source));
    let id = next.id.clone();
    scene.engine.azera.submit(sim.id(), InboundEvent::Message(next)).await.unwrap();
    assert!(held.upgrade().is_some());
    scene.delete(&id).await;
    assert!(held.upgrade().is_none(), "the file of a deleted message waits on");
}
