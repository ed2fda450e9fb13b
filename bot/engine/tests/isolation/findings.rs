//! What was once shown and may not be, or was once lost, case by case.

use std::collections::BTreeSet;

use azera_adapter::{CommandLine, Host, Outcome, Platform, SearchRequest};
use azera_memory::{Order, Table};
use azera_types::{Clock, Inbound, MessageId, Text};

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

/// A world in which Ann and An are in the guild and its den, and what hides what from newcomers.
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

    /// A message of `who`; the model is spoken to. Its text is the oracle's business only in the other tests.
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
            mentions_bot: true,
            mentions: Vec::new(),
            reply_to: None,
        }
    }

    pub async fn say(&mut self, who: usize, place: usize, text: &str) -> Outcome {
        let inbound = self.message(who, place, text);
        let outcome = self.engine.azera.message(self.engine.platform.sim.id(), inbound).await.unwrap();
        self.engine.azera.settle().await.unwrap();
        outcome
    }

    /// A secret told in a chat, of which nothing is made.
    pub async fn tell(&mut self, who: usize, place: usize) -> usize {
        let secret = self.engine.watch.oracle().answer_text(place, who);
        self.say(who, place, &format!("the lighthouse password is {} quiet", word(secret, false))).await;
        secret
    }

    /// What a person finds.
    pub async fn find(&self, who: usize, place: usize, query: &str) -> Vec<String> {
        self.pass(90);
        let line = SearchRequest { chat: chat(place), person: person(who), query: Text::new(query), limit: Some(50) };
        let hits = self.engine.azera.search(self.engine.platform.sim.id(), line).await.unwrap();
        hits.iter().map(|hit| hit.text.as_str().to_owned()).collect()
    }

    pub async fn command(&self, who: usize, place: usize, text: &str) -> String {
        let answer = self.command_meanwhile(who, place, text).await;
        self.engine.azera.settle().await.unwrap();
        answer
    }

    /// The same while something else is under way, whose end is not waited for.
    pub async fn command_meanwhile(&self, who: usize, place: usize, text: &str) -> String {
        self.pass(90);
        let name = PEOPLE[who].1.to_owned();
        let line = CommandLine { chat: chat(place), person: person(who), name, text: Text::new(text), about: None };
        self.engine.azera.command(self.engine.platform.sim.id(), line).await.unwrap().text
    }

    /// The id of what was said last.
    pub fn last(&self) -> MessageId {
        MessageId::new(format!("m{}", self.said)).unwrap()
    }

    /// Gives a command about a message; whether it did what it was told, and what was answered.
    async fn point(&self, who: usize, place: usize, text: &str, about: &MessageId) -> (bool, String) {
        self.pass(90);
        let (name, about) = (PEOPLE[who].1.to_owned(), Some(about.clone()));
        let line = CommandLine { chat: chat(place), person: person(who), name, text: Text::new(text), about };
        let answer = self.engine.azera.command(self.engine.platform.sim.id(), line).await.unwrap();
        self.engine.azera.settle().await.unwrap();
        (answer.ok, answer.text)
    }

    /// A message whose reply is written and not delivered, for the machine stops.
    async fn crash(&mut self, who: usize, place: usize, text: &str) {
        let inbound = self.message(who, place, text);
        let platform = self.engine.platform.clone();
        *platform.hang.lock().unwrap() = Some(false);
        tokio::select! {
            outcome = self.engine.azera.message(platform.sim.id(), inbound) => panic!("{outcome:?}"),
            () = platform.hung.notified() => {}
        }
    }

    /// Texts delivered, in order.
    pub fn delivered(&self) -> Vec<String> {
        let delivered = self.engine.platform.delivered.lock().unwrap();
        delivered.iter().map(|outbound| outbound.text.as_str().to_owned()).collect()
    }
}

fn text_of(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Replied(turn) => &turn.text,
        Outcome::Skipped(_) => "",
    }
}

/// A newcomer looks for the words of a turn before their time: they must not bring up what was said behind it.
#[tokio::test]
async fn what_stood_before_a_horizon_finds_nothing_after_it() {
    let mut scene = Scene::open(true, false).await;
    // Ann came with the guild itself; windows count again when none can reach behind that.
    scene.pass(3 * 3_600);
    scene.say(ANN, COMMONS, "the zeppelin lands at noon, quiet").await;
    scene.change(Change::Join(BOB, GUILD));
    scene.say(ANN, COMMONS, "bring a hat, quiet").await;
    assert_eq!(scene.find(BOB, DM_BOB, "when does the zeppelin land?").await, [""; 0]);
    assert_eq!(scene.find(BOB, DM_BOB, "who brings a hat?").await, ["bring a hat, quiet"]);
    // Who was there finds it, and what was said behind it.
    assert_eq!(scene.find(ANN, DM_ANN, "when does the zeppelin land?").await.len(), 2);
}

/// A fact was indexed behind what had been said before it, and kept these words when they were forgotten.
#[tokio::test]
async fn a_fact_is_not_found_by_what_was_said_before_it_and_is_forgotten() {
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

/// A reply in the den is built on the guild's past; then somebody comes to both who cannot read that past.
#[tokio::test]
async fn a_reply_is_hidden_from_who_cannot_read_as_far_back_as_it_was_built() {
    let mut scene = Scene::open(true, false).await;
    let early = scene.tell(ANN, COMMONS).await;
    scene.pass(3_600);
    // Bob is in the guild before the reply, and in the den after it.
    scene.change(Change::Join(BOB, GUILD));
    let reply = scene.say(ANN, DEN, "what is the lighthouse password? launder").await;
    assert!(secrets_in(text_of(&reply)).contains(&early));
    scene.pass(3_600);
    let find = "what do you recall of the lighthouse password?";
    assert!(secrets_in(&scene.find(AN, DEN, find).await.join(" ")).contains(&early));
    scene.change(Change::Join(BOB, Target::Chat(DEN)));
    assert!(!secrets_in(&scene.find(AN, DEN, find).await.join(" ")).contains(&early));
}

/// A reply waits in the outbox, the machine stops, and a guest comes who is not of the realm it was built on.
#[tokio::test]
async fn a_reply_left_over_is_shown_only_to_who_may_read_its_sources_by_then() {
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
        assert!(scene.engine.memory.outbox().unwrap().is_empty());
        // What was withdrawn is in nobody's history.
        let history = scene.command(AN, DEN, "/branch switch main").await;
        assert_eq!(secrets_in(&history).contains(&secret), !guest, "{history}");
    }
}

/// Nobody is left who asked: what was left over goes, and nothing is made anew.
#[tokio::test]
async fn a_reply_left_over_for_somebody_who_left_is_withdrawn() {
    let mut scene = Scene::open(false, false).await;
    scene.tell(ANN, COMMONS).await;
    let before = scene.delivered().len();
    scene.crash(AN, DEN, "what is the lighthouse password? say it").await;
    scene.change(Change::Leave(AN, Target::Chat(DEN)));
    scene.engine.reopen().await;
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.delivered().len(), before);
    assert!(scene.engine.memory.outbox().unwrap().is_empty() && scene.engine.memory.open_turns().unwrap().is_empty());
}

/// Somebody comes when the model is asked, or when it has begun to write.
#[tokio::test]
async fn a_reply_written_while_somebody_came_is_made_again_for_those_who_read_now() {
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

/// The question itself is older than a newcomer's sight: it is left.
#[tokio::test]
async fn a_question_that_not_everybody_can_read_any_more_is_left() {
    let mut scene = Scene::open(false, true).await;
    scene.engine.change_meanwhile(&scene.engine.meanwhile, Change::Join(BOB, Target::Chat(DEN)));
    let inbound = scene.message(AN, DEN, "how are you? say it");
    scene.pass(1);
    assert!(scene.engine.azera.message(scene.engine.platform.sim.id(), inbound).await.is_err());
    assert_eq!(scene.delivered(), [""; 0]);
    assert!(scene.engine.memory.open_turns().unwrap().is_empty());
}

/// Who has spoken somewhere is known as long as something of theirs is.
#[tokio::test]
async fn a_name_goes_with_the_last_that_was_said_under_it() {
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

/// Replies elsewhere that quoted what is forgotten are nobody's business here.
#[tokio::test]
async fn a_receipt_counts_what_the_asker_may_know() {
    for (quotes, counts) in [
        ("", "messages 1, replies 0, memories with their index entries 1, notes on what stood behind replies 0"),
        (" quotes", "messages 1, replies 1, memories with their index entries 1, notes on what stood behind replies 1"),
    ] {
        let mut scene = Scene::open(false, false).await;
        let secret = scene.tell(ANN, COMMONS).await;
        let answer = scene.say(AN, DM_AN, "what is the lighthouse password? launder").await;
        assert!(secrets_in(text_of(&answer)).contains(&secret));
        let receipt = scene.command(ANN, COMMONS, &format!("/forget last{quotes}")).await;
        assert!(receipt.contains(counts), "{receipt}");
        // The one here, and not the one in the other's DM.
        assert_eq!(receipt.contains("1 of my replies were built on it"), quotes.is_empty(), "{receipt}");
        assert!(!receipt.contains("m2~r0"), "{receipt}");
        // They are treated like the others all the same.
        let found = scene.find(AN, DM_AN, "what do you recall of the lighthouse password?").await;
        assert!(!secrets_in(&found.join(" ")).contains(&secret), "{found:?}");
    }
}

/// What waits to be indexed elsewhere says how much is said elsewhere.
#[tokio::test]
async fn stats_count_what_waits_here() {
    let mut scene = Scene::open(false, false).await;
    let inbound = scene.message(ANN, DM_ANN, "a secret, quiet");
    scene.engine.azera.message(scene.engine.platform.sim.id(), inbound).await.unwrap();
    assert!(scene.engine.memory.queued().unwrap() > 0);
    let stats = |text: &str| text.contains("still being indexed");
    let name = |who: usize| PEOPLE[who].1.to_owned();
    let ask = |who, place| CommandLine {
        chat: chat(place),
        person: person(who),
        name: name(who),
        text: Text::new("/memory stats"),
        about: None,
    };
    let platform = scene.engine.platform.sim.clone();
    let there = scene.engine.azera.command(platform.id(), ask(ANN, DM_ANN)).await.unwrap().text;
    let other_place = scene.engine.azera.command(platform.id(), ask(AN, DM_AN)).await.unwrap().text;
    assert!(stats(&there) && !stats(&other_place), "{there} {other_place}");
}

/// A fact and a message can be called alike; what is built on one is not built on the other.
#[tokio::test]
async fn a_message_called_like_a_fact_is_not_it() {
    let mut scene = Scene::open(false, false).await;
    scene.said = 50;
    let retained = scene.command(AN, DM_AN, "/remember the marina gate opens with 4471").await;
    let fact = retained.split('`').nth(1).unwrap().to_owned();
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
    scene.engine.azera.message(scene.engine.platform.sim.id(), inbound).await.unwrap();
    scene.engine.azera.deleted(scene.engine.platform.sim.id(), &MessageId::new(&fact).unwrap()).await.unwrap();
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.find(AN, DM_AN, find).await.len(), before, "the reply built on the fact stands");
}

/// A message that is called as a reply will be is not written over by it.
#[tokio::test]
async fn a_message_called_like_a_reply_stays() {
    let mut scene = Scene::open(false, false).await;
    let mut early = scene.message(ANN, DM_ANN, "the first of all, quiet");
    early.id = MessageId::new("m9~r0").unwrap();
    scene.engine.azera.message(scene.engine.platform.sim.id(), early).await.unwrap();
    scene.said = 8;
    let inbound = scene.message(AN, DM_AN, "hello, quiet");
    let outcome = scene.engine.azera.message(scene.engine.platform.sim.id(), inbound).await;
    assert!(outcome.is_err(), "{outcome:?}");
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(scene.find(ANN, DM_ANN, "the first").await, ["the first of all, quiet"]);
    assert_eq!(scene.engine.memory.open_turns().unwrap(), [], "it is left, not tried for ever");
}

/// Two realms and the operator have a persona of one name: three personas.
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
async fn a_realms_persona_is_for_its_realm_alone() {
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
    let refused = scene.engine.azera.message(scene.engine.platform.sim.id(), inbound).await.unwrap_err();
    assert!(refused.to_string().contains("there is no persona luna"), "{refused}");
    scene.change(Change::Leave(BOB, Target::Chat(DEN)));
    assert!(matches!(scene.say(AN, DEN, "alone again? say it").await, Outcome::Replied(_)));
}

/// What a branch was called before somebody came is not theirs to read.
#[tokio::test]
async fn a_branch_named_before_a_horizon_is_not_named_after_it() {
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

/// The platform cannot say who reads, so nobody is shown anything; it waits.
#[tokio::test]
async fn what_waits_for_a_chat_that_is_not_known_yet_is_shown_when_it_is() {
    let mut scene = Scene::open(false, false).await;
    scene.crash(ANN, DM_ANN, "hello, quiet").await;
    // The world of another run of the platform, which has not heard of anything yet.
    let engine = TestEngine::restarted_in_a_new_folder(&scene.engine).await;
    assert_eq!(engine.platform.delivered.lock().unwrap().len(), 0);
    assert_eq!(engine.memory.outbox().unwrap().len(), 1);
    engine.tell_chats().await;
    engine.azera.settle().await.unwrap();
    let delivered = engine.platform.delivered.lock().unwrap();
    assert_eq!(delivered.iter().map(|outbound| outbound.id.as_str()).collect::<Vec<_>>(), ["m1~r0"]);
}

#[test]
fn the_places_here_are_those_they_are_called_by() {
    let places = [(COMMONS, "hall"), (DEN, "den"), (DM_ANN, "dm:ann"), (DM_AN, "dm:an"), (DM_BOB, "dm:bob")];
    assert!(places.iter().all(|(number, id)| CHATS[*number].0 == *id));
    assert_eq!((PEOPLE[ANN].0, PEOPLE[AN].0, PEOPLE[BOB].0), ("ann", "an", "bob"));
}

/// Pointing at a message asks nothing of a place one is not in, and takes nothing away there.
#[tokio::test]
async fn what_is_pointed_at_elsewhere_is_not_there() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "what do you think? launder").await;
    let commons = scene.last();
    let secret = scene.tell(ANN, DM_ANN).await;
    let answer_text = scene.last();
    let reply = |id: &MessageId| MessageId::new(format!("{id}~r0")).unwrap();
    for about in [answer_text.clone(), reply(&answer_text)] {
        for command in ["/why", "/regenerate", "/swipe next", "/forget", "/forget last quotes"] {
            let (ok, answer) = scene.point(ANN, COMMONS, command, &about).await;
            assert!(!ok && !secrets_in(&answer).contains(&secret), "{command}: {answer}");
        }
    }
    assert!(!scene.find(ANN, DM_ANN, "what is the lighthouse password?").await.is_empty());
    // Where it stands, it does: for whom it was said to, and nobody else.
    let (ok, answer) = scene.point(ANN, COMMONS, "/why", &reply(&commons)).await;
    assert!(ok, "{answer}");
    let (ok, answer) = scene.point(AN, COMMONS, "/forget", &reply(&commons)).await;
    assert!(!ok && answer.contains("somebody else's"), "{answer}");
    let (ok, answer) = scene.point(ANN, COMMONS, "/forget", &reply(&commons)).await;
    assert!(ok && answer.contains("replies 1"), "{answer}");
    assert!(!scene.point(ANN, COMMONS, "/why", &reply(&commons)).await.0);
}
