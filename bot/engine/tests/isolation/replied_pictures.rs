//! Pictures of messages that others reply to: they are seen where the message may be read, and nowhere else.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::Outcome;
use azera_model_api::{ChatMessage, ScriptedModel};
use azera_model_image::{SeeError, Verdict, Viewer};
use azera_types::MessageId;
use tokio::sync::Barrier;

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, Scene};
use crate::held::text_of;
use crate::remix::photo;
use crate::shown_pictures::{Eye, shown};
use crate::world::{Change, Target};

/// What is seen in the pictures here.
const SEEN: &str = "a plain wall, quiet";

const BLIND: &str = "I cannot see pictures here, because no vision model is set up. Please tell me what it shows.";

impl Scene {
    /// Opens a scene whose model repeats what it is asked.
    async fn with_echo(guild_joined: bool) -> Self {
        let mut scene = Self::open(guild_joined, false).await;
        let echo = |messages: &[ChatMessage]| messages.last().map(|last| last.content.clone()).unwrap_or_default();
        scene.engine.answered_by(Arc::new(ScriptedModel::new(Arc::new(echo)))).await;
        scene
    }

    /// Somebody shows a picture to the others, and not to the bot.
    async fn show_aside(&mut self, who: usize, place: usize, text: &str) -> MessageId {
        let mut inbound = self.message(who, place, text);
        inbound.parts.push(shown(&photo(5)));
        inbound.mentions_bot = false;
        let id = inbound.id.clone();
        self.submit(inbound).await.unwrap();
        self.settled().await;
        id
    }

    /// Somebody replies to a message, and asks the bot.
    async fn reply(&mut self, who: usize, place: usize, text: &str, to: &MessageId) -> Outcome {
        let mut inbound = self.message(who, place, text);
        inbound.reply_to = Some(to.clone());
        let outcome = self.submit(inbound).await.unwrap();
        self.settled().await;
        outcome
    }
}

#[tokio::test]
async fn a_picture_that_is_replied_to_is_seen_and_remembered_with_its_own_message() {
    let mut scene = Scene::with_echo(false).await;
    let picture = scene.show_aside(ANN, COMMONS, "look").await;
    assert!(!scene.holds("plain wall"), "nobody asked yet");
    let answer = scene.reply(AN, COMMONS, "what is this?", &picture).await;
    let told = text_of(&answer);
    assert!(told.contains(&format!("[seen in photo.png, a guess] {SEEN}")), "{told}");
    assert!(scene.holds(&format!("look\\n[seen in photo.png, a guess] {SEEN}")), "it is Ann's message that shows it");
    assert!(!scene.holds(&format!("what is this?\\n[seen in photo.png, a guess] {SEEN}")));
    // With the picture goes what was said about it.
    scene.give((ANN, COMMONS), "/forget last quotes", Some(&picture), None).await;
    assert!(!scene.holds("plain wall"));
    let answer = scene.reply(AN, COMMONS, "and now?", &picture).await;
    assert!(!text_of(&answer).contains("replies to"), "{}", text_of(&answer));
}

#[tokio::test]
async fn a_reply_sees_no_picture_of_a_place_that_may_not_be_read_there() {
    let mut scene = Scene::with_echo(false).await;
    let picture = scene.show_aside(ANN, DEN, "look").await;
    for (who, place) in [(AN, COMMONS), (BOB, DM_BOB), (ANN, COMMONS)] {
        let answer = scene.reply(who, place, "what is this?", &picture).await;
        assert!(!text_of(&answer).contains("replies to"), "{who} in {place}: {}", text_of(&answer));
    }
    assert!(!scene.holds("plain wall"), "nobody looked at it");
    let direct = {
        let mut inbound = scene.message(ANN, DM_ANN, "look");
        inbound.parts.push(shown(&photo(6)));
        let id = inbound.id.clone();
        scene.submit(inbound).await.unwrap();
        scene.settled().await;
        id
    };
    for (who, place) in [(AN, DM_AN), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN)] {
        let answer = scene.reply(who, place, "what is this?", &direct).await;
        let told = text_of(&answer);
        assert!(!told.contains("replies to") && !told.contains("that picture"), "{who} in {place}: {told}");
    }
    // Who may read the den may also ask from their own direct chat.
    let answer = scene.reply(AN, DM_AN, "what is this?", &picture).await;
    assert!(text_of(&answer).contains("plain wall"), "{}", text_of(&answer));
}

#[tokio::test]
async fn a_reply_sees_no_picture_from_before_a_newcomer_came() {
    let mut scene = Scene::with_echo(true).await;
    scene.pass(3 * 3_600);
    let picture = scene.show_aside(ANN, COMMONS, "look").await;
    scene.change(Change::Join(BOB, GUILD));
    let answer = scene.reply(AN, COMMONS, "what is this?", &picture).await;
    assert!(!text_of(&answer).contains("replies to"), "{}", text_of(&answer));
    assert!(!scene.holds("plain wall"));
    scene.change(Change::Leave(BOB, GUILD));
    let answer = scene.reply(AN, COMMONS, "what is this?", &picture).await;
    assert!(text_of(&answer).contains("plain wall"), "{}", text_of(&answer));
    let reply = match &answer {
        Outcome::Replied(turn) => turn.reply.clone(),
        Outcome::Skipped(why) => panic!("{}", why.why()),
    };
    // The reply that told it is as old as the picture, for those who come later.
    scene.change(Change::Join(BOB, GUILD));
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    let why = scene.give((BOB, COMMONS), "/why", Some(&reply), None).await;
    assert!(!why.text.contains("plain wall") && !scene.command(BOB, COMMONS, "/gallery").await.contains("plain wall"));
    assert!(scene.find(BOB, DM_BOB, "plain wall").await.is_empty());
}

#[tokio::test]
async fn a_picture_of_somebody_who_is_remembered_only_where_they_ask_is_not_looked_at() {
    let mut scene = Scene::with_echo(false).await;
    scene.command(ANN, DM_ANN, "/privacy addressed").await;
    let picture = scene.show_aside(ANN, COMMONS, "look").await;
    let answer = scene.reply(AN, COMMONS, "what is this?", &picture).await;
    assert!(!text_of(&answer).contains("replies to"), "{}", text_of(&answer));
    assert!(!scene.holds("plain wall"));
}

#[tokio::test]
async fn without_a_vision_model_nobody_guesses_what_is_replied_to() {
    let mut scene = Scene::with_echo(false).await;
    scene.engine.is_blind = true;
    scene.engine.reopen().await;
    let alone = scene.show_aside(ANN, COMMONS, "").await;
    for _ in 0..2 {
        assert_eq!(text_of(&scene.reply(AN, COMMONS, "@Luna", &alone).await), BLIND, "each time it is called");
    }
    // Words are answered, and the model knows that it saw nothing. Beside them it is said once.
    let words = scene.show_aside(ANN, COMMONS, "my boat").await;
    for (reply, to, is_said) in [
        ("it's my cat Miso", &alone, true),
        ("remind me to water the plants", &alone, false),
        ("do you like it, my boat?", &words, false),
    ] {
        let answer = scene.reply(AN, COMMONS, reply, to).await;
        let told = text_of(&answer);
        assert!(told.contains(reply) && told.contains("; a picture of it that you did not see]"), "{told}");
        assert_eq!(told.ends_with(BLIND), is_said, "{told}");
    }
    // Somebody in danger is answered.
    let answer = scene.reply(AN, COMMONS, "I want to kill myself", &alone).await;
    assert!(azera_affect::Help::Crisis.stands_in(text_of(&answer)), "{}", text_of(&answer));
    assert!(!text_of(&answer).starts_with(BLIND), "{}", text_of(&answer));
}

/// Looks at pictures like [`Eye`], and only while two look at the same time.
struct TwoEyes(Barrier);

#[async_trait]
impl Viewer for TwoEyes {
    fn max_bytes(&self) -> u64 {
        Eye.max_bytes()
    }

    async fn describe(&self, file: Vec<u8>) -> Result<String, SeeError> {
        self.0.wait().await;
        Eye.describe(file).await
    }

    async fn judge(&self, file: Vec<u8>) -> Result<Verdict, SeeError> {
        Eye.judge(file).await
    }
}

#[tokio::test]
async fn two_replies_that_look_at_the_same_pictures_are_both_answered() {
    let mut scene = Scene::with_echo(false).await;
    scene.engine.is_blind = true;
    scene.engine.reopen().await;
    scene.engine.azera.give_sight(Arc::new(TwoEyes(Barrier::new(2))));
    let mut pictures = scene.message(ANN, DEN, "look");
    pictures.parts.extend((20..24).map(|shade| shown(&photo(shade))));
    pictures.mentions_bot = false;
    let id = pictures.id.clone();
    scene.submit(pictures).await.unwrap();
    scene.settled().await;
    let (mut first, mut second) = (scene.message(ANN, DEN, "what is this?"), scene.message(AN, DM_AN, "and this?"));
    (first.reply_to, second.reply_to) = (Some(id.clone()), Some(id));
    let (first, second) = tokio::join!(scene.submit(first), scene.submit(second));
    for answer in [first.unwrap(), second.unwrap()] {
        let told = text_of(&answer);
        assert!(told.matches(SEEN).count() >= 4, "{told}");
    }
}
