//! Faults that were found, one test each: something was shown that must not be, or was lost.

use std::collections::BTreeSet;

use azera_adapter::{CommandLine, Hit, Host, Outcome, Platform};
use azera_memory::{Order, Table};
use azera_types::{Clock, Inbound, MessageId, Text};

use crate::held::text_of;
use crate::oracle::{DEFAULT_PERSONA, Origin, secrets_in, word};
use crate::test_engine::{TestEngine, chat, person};
use crate::world::{CHATS, Change, Founding, PEOPLE, Target, World};

pub const ANN: usize = 0;
pub const AN: usize = 1;
pub const BOB: usize = 4;
pub const COMMONS: usize = 0;
/// Another public channel of the guild.
pub const LOBBY: usize = 1;
pub const DEN: usize = 3;
pub const DM_ANN: usize = 7;
pub const DM_AN: usize = 8;
pub const DM_BOB: usize = 11;

pub const GUILD: Target = Target::Realm(0);

/// Returns a world with Ann and An in the guild and its den. The arguments say which of them hides its past from
/// newcomers.
fn world(guild_joined: bool, den_joined: bool) -> World {
    let both = 1 << ANN | 1 << AN;
    let nobody = Founding { members: 0, admins: 0, joined: false };
    World {
        careless: false,
        realms: vec![Founding { members: both, admins: 1 << ANN, joined: guild_joined }, nobody],
        private: vec![Founding { members: both, admins: 0, joined: den_joined }, nobody, nobody, nobody],
        acts: Vec::new(),
        observer: (COMMONS, ANN),
    }
}

pub struct Scene {
    pub engine: TestEngine,
    said: usize,
}

impl Scene {
    pub async fn open(guild_joined: bool, den_joined: bool) -> Self {
        let engine = TestEngine::open(&world(guild_joined, den_joined), Default::default(), &BTreeSet::new()).await;
        Self { engine, said: 0 }
    }

    pub fn pass(&self, seconds: i64) {
        let now = self.engine.clock.now().checked_add(azera_types::Span::new().seconds(seconds)).unwrap();
        self.engine.clock.advance_to(now);
        self.engine.watch.oracle().now = now;
    }

    pub fn change(&self, change: Change) {
        self.pass(90);
        self.engine.change(change);
    }

    /// Creates a message of `who` to the bot. The oracle does not know of secrets in its text.
    pub fn message(&mut self, who: usize, place: usize, text: &str) -> Inbound {
        self.pass(90);
        self.said += 1;
        let id = format!("m{}", self.said);
        let mut oracle = self.engine.watch.oracle();
        let message = crate::oracle::Message {
            chat: place,
            by: who,
            persona: oracle.persona(place),
            at: oracle.now,
            secrets: Vec::new(),
        };
        oracle.messages.insert(id.clone(), message);
        Inbound {
            id: MessageId::new(id).unwrap(),
            chat: chat(place),
            person: person(who),
            name: PEOPLE[who].1.to_owned(),
            text: Text::new(text),
            at: oracle.now,
            parts: Vec::new(),
            mentions_bot: true,
            mentions: Vec::new(),
            reply_to: None,
        }
    }

    pub async fn say(&mut self, who: usize, place: usize, text: &str) -> Outcome {
        let inbound = self.message(who, place, text);
        let outcome = self.submit(inbound).await.unwrap();
        self.engine.azera.settle().await.unwrap();
        outcome
    }

    /// Somebody tells a secret in a chat, and the reply repeats nothing of it.
    pub async fn tell(&mut self, who: usize, place: usize) -> usize {
        let secret = self.engine.watch.oracle().new_secret(place, who);
        self.say(who, place, &format!("the lighthouse password is {} quiet", word(secret, false))).await;
        secret
    }

    /// Returns what a person finds.
    pub async fn find(&self, who: usize, place: usize, query: &str) -> Vec<String> {
        self.hits(who, place, query).await.iter().map(|hit| hit.text.as_str().to_owned()).collect()
    }

    /// Returns what a person finds, with how well it answers.
    pub async fn hits(&self, who: usize, place: usize, query: &str) -> Vec<Hit> {
        self.hits_as_of(who, place, query, None).await
    }

    pub async fn command(&self, who: usize, place: usize, text: &str) -> String {
        let answer = self.command_meanwhile(who, place, text).await;
        self.engine.azera.settle().await.unwrap();
        answer
    }

    /// Gives a command while something else is in progress, without waiting for that.
    pub async fn command_meanwhile(&self, who: usize, place: usize, text: &str) -> String {
        self.pass(90);
        let (chat, person, name, text) = (chat(place), person(who), PEOPLE[who].1.to_owned(), Text::new(text));
        let line = CommandLine { chat, person, name, text, about: None, picture: None };
        self.engine.azera.command(self.engine.platform.sim.id(), line).await.unwrap().text
    }

    /// Returns the id of the last message.
    pub fn last(&self) -> MessageId {
        MessageId::new(format!("m{}", self.said)).unwrap()
    }

    /// Gives a command about a message. Returns whether it succeeded, and the answer.
    pub async fn point(&self, who: usize, place: usize, text: &str, about: &MessageId) -> (bool, String) {
        self.pass(90);
        let (name, about) = (PEOPLE[who].1.to_owned(), Some(about.clone()));
        let line =
            CommandLine { chat: chat(place), person: person(who), name, text: Text::new(text), about, picture: None };
        let answer = self.engine.azera.command(self.engine.platform.sim.id(), line).await.unwrap();
        self.engine.azera.settle().await.unwrap();
        (answer.ok, answer.text)
    }

    /// Sends a message whose reply is written and not delivered, because the machine stops.
    pub async fn crash(&mut self, who: usize, place: usize, text: &str) {
        let inbound = self.message(who, place, text);
        let platform = self.engine.platform.clone();
        *platform.hang.lock().unwrap() = Some(false);
        tokio::select! {
            outcome = self.submit(inbound) => panic!("{outcome:?}"),
            () = platform.hung.notified() => {}
        }
    }

    /// Returns the delivered texts, in order.
    pub fn delivered(&self) -> Vec<String> {
        let delivered = self.engine.platform.delivered.lock().unwrap();
        delivered.iter().map(|outbound| outbound.text.as_str().to_owned()).collect()
    }
}

/// A newcomer searches for words from before their time. They must not find later messages by these words.
#[tokio::test]
async fn words_from_before_a_horizon_find_nothing_after_it() {
    let mut scene = Scene::open(true, false).await;
    // Ann came with the guild itself. Windows count again when none can reach back to that.
    scene.pass(3 * 3_600);
    scene.say(ANN, COMMONS, "the zeppelin lands at noon, quiet").await;
    scene.change(Change::Join(BOB, GUILD));
    scene.say(ANN, COMMONS, "bring a hat, quiet").await;
    assert_eq!(scene.find(BOB, DM_BOB, "when does the zeppelin land?").await, [""; 0]);
    assert_eq!(scene.find(BOB, DM_BOB, "who brings a hat?").await, ["bring a hat, quiet"]);
    // Somebody who was there finds it, and what was said after it.
    assert_eq!(scene.find(ANN, DM_ANN, "when does the zeppelin land?").await.len(), 2);
}

/// A fact was indexed together with the words said before it, and kept them when those were forgotten.
#[tokio::test]
async fn a_fact_is_not_found_by_forgotten_words_said_before_it() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "the zeppelin lands at noon, quiet").await;
    scene.command(ANN, COMMONS, "/remember bring a hat").await;
    scene.command(ANN, COMMONS, "/forget last").await;
    assert_eq!(scene.find(ANN, COMMONS, "when does the zeppelin land?").await, [""; 0]);
    assert_eq!(scene.find(ANN, COMMONS, "who brings a hat?").await, ["bring a hat"]);
}

/// The den's history is open to newcomers, and the guild's is not.
#[tokio::test]
async fn a_private_chat_shows_its_realm_only_as_far_back_as_all_can_read_there() {
    let mut scene = Scene::open(true, false).await;
    let early = scene.tell(ANN, COMMONS).await;
    scene.change(Change::Join(BOB, GUILD));
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    let late = scene.tell(ANN, COMMONS).await;
    let found: BTreeSet<usize> = secrets_in(&scene.find(ANN, DEN, "the lighthouse password").await.join(" "));
    assert!(found.contains(&late) && !found.contains(&early), "{found:?}");
}

/// A reply in the den is built on the guild's past; then somebody joins both who cannot read that past.
#[tokio::test]
async fn a_reply_is_hidden_from_people_who_cannot_read_its_oldest_source() {
    let mut scene = Scene::open(true, false).await;
    let early = scene.tell(ANN, COMMONS).await;
    scene.pass(3_600);
    // Bob joins the guild before the reply, and the den after it.
    scene.change(Change::Join(BOB, GUILD));
    let reply = scene.say(ANN, DEN, "what is the lighthouse password? launder").await;
    assert!(secrets_in(text_of(&reply)).contains(&early));
    scene.pass(3_600);
    let find = "what do you recall of the lighthouse password?";
    assert!(secrets_in(&scene.find(AN, DEN, find).await.join(" ")).contains(&early));
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    assert!(!secrets_in(&scene.find(AN, DEN, find).await.join(" ")).contains(&early));
}

/// A reply waits in the outbox, the machine stops, and a guest comes who is not in the realm it was built on.
#[tokio::test]
async fn a_reply_in_the_outbox_is_shown_only_if_all_readers_may_read_its_sources() {
    for guest in [false, true] {
        let mut scene = Scene::open(false, false).await;
        let secret = scene.tell(ANN, COMMONS).await;
        let before = scene.delivered().len();
        scene.crash(AN, DEN, "what is the lighthouse password? say it").await;
        if guest {
            scene.change(Change::Join(BOB, Target::Chat(DEN)));
        }
        scene.engine.reopen().await;
        scene.engine.azera.settle().await.unwrap();
        let delivered = scene.delivered().split_off(before);
        assert_eq!(delivered.len(), 1, "answered once: {delivered:?}");
        assert_eq!(secrets_in(&delivered[0]).contains(&secret), !guest, "{delivered:?}");
        assert!(scene.engine.memory.outbox().pending().unwrap().is_empty());
        // A withdrawn reply is in nobody's history.
        let history = scene.command(AN, DEN, "/branch switch main").await;
        assert_eq!(secrets_in(&history).contains(&secret), !guest, "{history}");
    }
}

/// The person who asked has left: the reply goes, and no other is generated.
#[tokio::test]
async fn a_reply_in_the_outbox_for_somebody_who_left_is_withdrawn() {
    let mut scene = Scene::open(false, false).await;
    scene.tell(ANN, COMMONS).await;
    let before = scene.delivered().len();
    scene.crash(AN, DEN, "what is the lighthouse password? say it").await;
    scene.change(Change::Leave(AN, Target::Chat(DEN)));
    scene.engine.reopen().await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.delivered().len(), before);
    assert!(
        scene.engine.memory.outbox().pending().unwrap().is_empty()
            && scene.engine.memory.turns().all_open().unwrap().is_empty()
    );
}

/// Somebody joins when the model is asked, or when it has begun to write.
#[tokio::test]
async fn a_reply_is_generated_again_if_somebody_joins_meanwhile() {
    for streaming in [false, true] {
        let mut scene = Scene::open(false, false).await;
        let secret = scene.tell(ANN, COMMONS).await;
        let before = scene.delivered().len();
        let engine = &scene.engine;
        let when = if streaming { &engine.platform.at_first_piece } else { &engine.meanwhile };
        engine.change_meanwhile(when, Change::Join(BOB, Target::Chat(DEN)));
        let outcome = scene.say(AN, DEN, "what is the lighthouse password? say it").await;
        let text = text_of(&outcome);
        assert!(matches!(&outcome, Outcome::Replied(_)) && !secrets_in(text).contains(&secret), "{outcome:?}");
        assert_eq!(scene.delivered().len(), before + 1);
        assert_eq!(scene.engine.platform.delivered.lock().unwrap()[before].text.as_str(), text);
    }
}

/// The question itself is from before a newcomer's time, so it stays unanswered.
#[tokio::test]
async fn a_question_that_not_everybody_can_read_stays_unanswered() {
    let mut scene = Scene::open(false, true).await;
    scene.engine.change_meanwhile(&scene.engine.meanwhile, Change::Join(BOB, Target::Chat(DEN)));
    let inbound = scene.message(AN, DEN, "how are you? say it");
    scene.pass(1);
    assert!(scene.submit(inbound).await.is_err());
    assert_eq!(scene.delivered(), [""; 0]);
    assert!(scene.engine.memory.turns().all_open().unwrap().is_empty());
}

/// That somebody has spoken in a place is known as long as one of their messages is.
#[tokio::test]
async fn a_name_is_forgotten_with_the_last_message_under_it() {
    let mut scene = Scene::open(false, false).await;
    let names = |scene: &Scene| scene.engine.layers.store.scan(Table::Names, b"", None, Order::Ascending, 100).unwrap();
    scene.say(BOB, DM_BOB, "one, quiet").await;
    scene.say(BOB, DM_BOB, "two, quiet").await;
    assert_eq!(names(&scene).len(), 2, "one for each");
    scene.command(BOB, DM_BOB, "/forget last").await;
    assert_eq!(names(&scene).len(), 1);
    scene.command(BOB, DM_BOB, "/forget last").await;
    assert_eq!(names(&scene).len(), 0, "nothing that Bob said is left");
    scene.say(ANN, DM_ANN, "three, quiet").await;
    scene.command(ANN, DM_ANN, "/remember four").await;
    assert_eq!(names(&scene).len(), 2);
    scene.command(ANN, DM_ANN, "/forget chat").await;
    assert_eq!(names(&scene).len(), 0, "neither message nor fact is left");
}

/// Replies in other places that quoted the forgotten message are not revealed here.
#[tokio::test]
async fn a_receipt_counts_what_the_asker_may_know() {
    for (quotes, counts) in [
        ("", "messages 1, replies 0, memories with their index entries 1, records for `/why` 0"),
        (" quotes", "messages 1, replies 1, memories with their index entries 1, records for `/why` 1"),
    ] {
        let mut scene = Scene::open(false, false).await;
        let secret = scene.tell(ANN, COMMONS).await;
        let answer = scene.say(AN, DM_AN, "what is the lighthouse password? launder").await;
        assert!(secrets_in(text_of(&answer)).contains(&secret));
        let receipt = scene.command(ANN, COMMONS, &format!("/forget last{quotes}")).await;
        assert!(receipt.contains(counts), "{receipt}");
        // The reply here counts, and the one in the other person's DM does not.
        assert_eq!(receipt.contains("One of my replies was built on it"), quotes.is_empty(), "{receipt}");
        assert!(!receipt.contains("m2~r0"), "{receipt}");
        // They are treated like the others all the same.
        let found = scene.find(AN, DM_AN, "what do you recall of the lighthouse password?").await;
        assert!(!secrets_in(&found.join(" ")).contains(&secret), "{found:?}");
    }
}

/// The number of memories that wait for indexing in other places reveals how much is said there.
#[tokio::test]
async fn stats_count_only_unindexed_memories_of_this_place() {
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.message(ANN, DM_ANN, "a secret, quiet");
    scene.submit(inbound).await.unwrap();
    assert!(scene.engine.memory.indexing().queued().unwrap() > 0);
    let stats = |text: &str| text.contains("Still being indexed");
    let name = |who: usize| PEOPLE[who].1.to_owned();
    let ask = |who, place| CommandLine {
        chat: chat(place),
        person: person(who),
        name: name(who),
        text: Text::new("/memory stats"),
        about: None,
        picture: None,
    };
    let platform = scene.engine.platform.sim.clone();
    let there = scene.engine.azera.command(platform.id(), ask(ANN, DM_ANN)).await.unwrap().text;
    let other_place = scene.engine.azera.command(platform.id(), ask(AN, DM_AN)).await.unwrap().text;
    assert!(stats(&there) && !stats(&other_place), "{there} {other_place}");
}

/// A fact and a message can have the same id; what is built on one is not built on the other.
#[tokio::test]
async fn a_message_with_the_id_of_a_fact_is_not_that_fact() {
    let mut scene = Scene::open(false, false).await;
    scene.said = 50;
    let stored = scene.command(AN, DM_AN, "/remember the marina gate opens with 4471").await;
    let fact = stored.split('`').nth(1).unwrap().to_owned();
    scene.say(AN, DM_AN, "what opens the marina gate? launder").await;
    let find = "what did you muse about the marina gate?";
    let before = scene.find(AN, DM_AN, find).await.len();
    let mut inbound = scene.message(ANN, DM_ANN, "my own words, quiet");
    inbound.id = MessageId::new(&fact).unwrap();
    scene.engine.watch.oracle().messages.insert(
        fact.clone(),
        crate::oracle::Message {
            chat: DM_ANN,
            by: ANN,
            persona: DEFAULT_PERSONA.to_owned(),
            at: inbound.at,
            secrets: Vec::new(),
        },
    );
    scene.submit(inbound).await.unwrap();
    scene.delete(&MessageId::new(&fact).unwrap()).await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.find(AN, DM_AN, find).await.len(), before, "the reply built on the fact stands");
}

/// A message that has the id of a later reply is not overwritten by it.
#[tokio::test]
async fn a_message_with_the_id_of_a_reply_is_not_overwritten() {
    let mut scene = Scene::open(false, false).await;
    let mut early = scene.message(ANN, DM_ANN, "the first of all, quiet");
    early.id = MessageId::new("m9~r0").unwrap();
    scene.submit(early).await.unwrap();
    scene.said = 8;
    let inbound = scene.message(AN, DM_AN, "hello, quiet");
    let outcome = scene.submit(inbound).await;
    assert!(outcome.is_err(), "{outcome:?}");
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.find(ANN, DM_ANN, "the first").await, ["the first of all, quiet"]);
    assert_eq!(scene.engine.memory.turns().all_open().unwrap(), [], "it is left, not tried for ever");
}

/// Two realms and the operator have a persona of the same name: three personas.
#[tokio::test]
async fn personas_of_one_name_share_nothing() {
    let mut scene = Scene::open(false, false).await;
    let operators = scene.tell(ANN, COMMONS).await;
    let answer = scene.command(ANN, COMMONS, "/persona use luna").await;
    assert!(answer.contains("Luna answers here"), "{answer}");
    scene.engine.watch.oracle().choose(COMMONS, "luna");
    let guilds = scene.tell(ANN, COMMONS).await;
    let found = |texts: Vec<String>| secrets_in(&texts.join(" "));
    let here = found(scene.find(ANN, COMMONS, "the lighthouse password").await);
    assert!(here.contains(&guilds) && !here.contains(&operators), "{here:?}");
    let at_home = found(scene.find(ANN, DM_ANN, "the lighthouse password").await);
    assert!(at_home.contains(&operators) && !at_home.contains(&guilds), "{at_home:?}");
    assert!(scene.command(ANN, COMMONS, "/chats").await.contains("with luna"));
    let list = scene.command(ANN, COMMONS, "/persona list").await;
    assert!(list.contains("(`luna`) (here)") && !list.contains('@'), "{list}");
}

/// A guest reads along in the den: the guild's persona is not for them, neither its file nor its voice.
#[tokio::test]
async fn a_realms_persona_speaks_only_where_all_readers_are_members() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, DEN, "/persona use luna").await;
    scene.engine.watch.oracle().choose(DEN, "luna");
    let own = scene.engine.watch.oracle().secrets.iter().position(|origin| *origin == Origin::Persona(0)).unwrap();
    let leaked = scene.say(AN, DEN, "who are you? launder").await;
    assert!(secrets_in(text_of(&leaked)).contains(&own));
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    for command in ["/persona show luna", "/persona list", "/branch switch main", "/why"] {
        let answer = scene.command(BOB, DEN, command).await;
        assert!(!secrets_in(&answer).contains(&own), "{command}: {answer}");
    }
    let inbound = scene.message(AN, DEN, "and now? say it");
    let refused = scene.submit(inbound).await.unwrap_err();
    assert!(refused.to_string().contains("there is no persona luna"), "{refused}");
    scene.change(Change::Leave(BOB, Target::Chat(DEN)));
    assert!(matches!(scene.say(AN, DEN, "alone again? say it").await, Outcome::Replied(_)));
}

/// The name that a branch got before somebody joined is not theirs to read.
#[tokio::test]
async fn a_branch_name_from_before_a_horizon_is_hidden_after_it() {
    let mut scene = Scene::open(false, true).await;
    scene.say(ANN, DEN, "one, quiet").await;
    scene.command(ANN, DEN, "/branch zebra-plan").await;
    assert!(scene.command(AN, DEN, "/branch list").await.contains("zebra-plan (here)"));
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    let list = scene.command(BOB, DEN, "/branch list").await;
    assert!(list.contains("- main") && !list.contains("zebra"), "{list}");
    let switched = scene.command(BOB, DEN, "/branch switch zebra-plan").await;
    assert!(switched.contains("There is no branch"), "{switched}");
}

/// The platform cannot say who reads the chat, so nothing is shown; it waits.
#[tokio::test]
async fn a_reply_for_an_unknown_chat_waits_until_the_chat_is_known() {
    let mut scene = Scene::open(false, false).await;
    scene.crash(ANN, DM_ANN, "hello, quiet").await;
    // A new run of the platform, which knows no chat yet.
    let engine = TestEngine::restarted_in_a_new_folder(&scene.engine).await;
    assert_eq!(engine.platform.delivered.lock().unwrap().len(), 0);
    assert_eq!(engine.memory.outbox().pending().unwrap().len(), 1);
    engine.tell_chats().await;
    engine.azera.settle().await.unwrap();
    let delivered = engine.platform.delivered.lock().unwrap();
    assert_eq!(delivered.iter().map(|outbound| outbound.id.as_str()).collect::<Vec<_>>(), ["m1~r0"]);
}

#[test]
fn the_constants_name_the_right_chats_and_people() {
    let places = [(COMMONS, "hall"), (DEN, "den"), (DM_ANN, "dm:ann"), (DM_AN, "dm:an"), (DM_BOB, "dm:bob")];
    assert!(places.iter().all(|(number, id)| CHATS[*number].0 == *id));
    assert_eq!((PEOPLE[ANN].0, PEOPLE[AN].0, PEOPLE[BOB].0), ("ann", "an", "bob"));
}

/// Pointing at a message reveals nothing of a place one is not in, and changes nothing there.
#[tokio::test]
async fn commands_cannot_point_at_messages_of_other_places() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "what do you think? launder").await;
    let commons = scene.last();
    let secret = scene.tell(ANN, DM_ANN).await;
    let secret_message = scene.last();
    let reply = |id: &MessageId| MessageId::new(format!("{id}~r0")).unwrap();
    for about in [secret_message.clone(), reply(&secret_message)] {
        for command in ["/why", "/regenerate", "/swipe next", "/forget", "/forget last quotes"] {
            let (ok, answer) = scene.point(ANN, COMMONS, command, &about).await;
            assert!(!ok && !secrets_in(&answer).contains(&secret), "{command}: {answer}");
        }
    }
    assert!(!scene.find(ANN, DM_ANN, "what is the lighthouse password?").await.is_empty());
    // In its own place it works: for the person it was said to, and nobody else.
    let (ok, answer) = scene.point(ANN, COMMONS, "/why", &reply(&commons)).await;
    assert!(ok, "{answer}");
    let (ok, answer) = scene.point(AN, COMMONS, "/forget", &reply(&commons)).await;
    assert!(!ok && answer.contains("somebody else's"), "{answer}");
    let (ok, answer) = scene.point(ANN, COMMONS, "/forget", &reply(&commons)).await;
    assert!(ok && answer.contains("replies 1"), "{answer}");
    assert!(!scene.point(ANN, COMMONS, "/why", &reply(&commons)).await.0);
}
