//! Episodes of everyday conversations: what people left open, what became of it, and who may see it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod everyday;
mod long;

use std::collections::BTreeSet;
use std::sync::Arc;

use azera_memory::conformance::{self, record};
use azera_memory::{
    Calendar, ChatEpisode, EpisodeQuery, Forget, Limits, MatterState, Memory, NewChat, NewReply, Query, RamStore,
    ReadScope, Salience,
};
use azera_types::{
    ChatId, Inbound, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope,
    Text, TimeZone, Timestamp,
};
use proptest::prelude::*;

fn chat(name: &str) -> ChatId {
    ChatId::new(name).unwrap()
}

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn persona() -> PersonaId {
    PersonaId::new("azera").unwrap()
}

fn guild() -> RealmId {
    RealmId::new("guild").unwrap()
}

fn scope_of(name: &str) -> Scope {
    match name {
        "dm" => Scope::Dm(person("ann")),
        "cave" => Scope::Chat(chat("cave")),
        _ => Scope::Realm(guild()),
    }
}

fn in_hall() -> ReadScope {
    let place = Place { chat: chat("hall"), kind: PlaceKind::Public(guild()), since: None };
    ReadScope::in_place(persona(), &place, &ReadableScopes::default())
}

/// Ann's direct message, where she may read the realm, too.
fn in_dm() -> ReadScope {
    let place = Place { chat: chat("dm"), kind: PlaceKind::Dm(person("ann")), since: None };
    let reach = ReadableScopes { realms: vec![(guild(), None)], ..ReadableScopes::default() };
    ReadScope::in_place(persona(), &place, &reach)
}

fn in_cave() -> ReadScope {
    let kind = PlaceKind::Private { realm: Some(guild()), all_in_realm: true, realm_since: None };
    let place = Place { chat: chat("cave"), kind, since: None };
    ReadScope::in_place(persona(), &place, &ReadableScopes::default())
}

fn all() -> EpisodeQuery {
    EpisodeQuery { limit: 100, ..EpisodeQuery::default() }
}

/// A line of a conversation.
#[derive(Debug, Clone)]
struct Line {
    at: Timestamp,
    chat: String,
    who: String,
    text: String,
}

impl Line {
    fn parse(line: &str) -> Self {
        let (head, text) = line.split_once(": ").unwrap();
        let [day, time, chat, who] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let day = if day.len() == 2 { format!("03-{day}") } else { day.to_owned() };
        let at = format!("2026-{day}T{time}:00Z").parse().unwrap();
        Self { at, chat: chat.into(), who: who.into(), text: text.into() }
    }
}

/// A record of conversations.
struct World {
    memory: Memory,
    now: Timestamp,
}

impl World {
    fn told(lines: &[&str]) -> Self {
        let lines: Vec<Line> = lines.iter().map(|line| Line::parse(line)).collect();
        Self::of(&lines)
    }

    /// Lets people say some lines. The message of line 3 has the id `m3`. A line of `azera` answers the last line of its
    /// chat.
    fn of(lines: &[Line]) -> Self {
        let memory = record(Arc::new(RamStore::new()));
        let platform = PlatformId::new("test").unwrap();
        for name in ["hall", "den", "cave", "dm"] {
            let new = NewChat { id: chat(name), platform: platform.clone(), title: None, persona: persona() };
            memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
        }
        for (number, line) in lines.iter().enumerate() {
            let id = MessageId::new(format!("m{number}")).unwrap();
            if line.who == "azera" {
                let before =
                    lines[..number].iter().rposition(|before| before.chat == line.chat && before.who != "azera");
                memory.turns().reply(reply(&id, before.unwrap(), line)).unwrap();
                continue;
            }
            let (first, rest) = line.who.split_at(1);
            let name = first.to_uppercase() + rest;
            let inbound = Inbound {
                id: id.clone(),
                chat: chat(&line.chat),
                person: person(&line.who),
                name,
                text: Text::new(&line.text),
                at: line.at,
                parts: Vec::new(),
                mentions_bot: false,
                mentions: Vec::new(),
                reply_to: None,
            };
            memory.turns().receive(&platform, &inbound, scope_of(&line.chat), line.at).unwrap();
            let is_answered = lines[number + 1..].iter().find(|next| next.chat == line.chat);
            if is_answered.is_none_or(|next| next.who != "azera") {
                memory.turns().leave(&id).unwrap();
            }
        }
        let last = lines.iter().map(|line| line.at).max().unwrap();
        Self { memory, now: last + azera_types::Span::new().hours(24) }
    }

    fn calendar(&self) -> Calendar {
        Calendar::new(self.now, TimeZone::UTC)
    }

    fn list(&self, read_scope: &ReadScope, query: &EpisodeQuery) -> Vec<ChatEpisode> {
        self.memory.episodes().list(read_scope, &self.calendar(), query).unwrap().episodes
    }

    fn mark(&self, message: &str, kind: &str, importance: f32, part: &str, text: &str) {
        let from = text.find(part).unwrap();
        let salience = Salience {
            kind: kind.into(),
            importance,
            from,
            to: from + part.len(),
            with: Vec::new(),
            superseded: None,
            used: None,
        };
        assert!(self.memory.memories().mark(&MessageId::new(message).unwrap(), &salience).unwrap());
    }
}

fn reply(id: &MessageId, to: usize, line: &Line) -> NewReply {
    let to = MessageId::new(format!("m{to}")).unwrap();
    NewReply { memorable: true, ..conformance::reply(id, &to, &person("ann"), &line.text, line.at) }
}

/// Returns everything that episodes say, as text.
fn shown(episodes: &[ChatEpisode]) -> String {
    let of_one = |one: &ChatEpisode| {
        let cause = one.cause.iter().map(|cause| &cause.said);
        let quotes = one.title.iter().chain(&one.why).chain(cause).map(|quote| quote.text.as_str().to_owned());
        let matters = one.matters.iter().map(|matter| format!("{} {:?}", matter.problem.text.as_str(), matter.state));
        let people = one.people.iter().map(|author| author.name().to_owned()).chain(one.names.clone());
        let all: Vec<String> = quotes.chain(matters).chain(people).collect();
        format!("{} {} {:?} {}", one.id, one.messages, one.continues, all.join(" | "))
    };
    episodes.iter().map(of_one).collect::<Vec<_>>().join("\n")
}

#[test]
fn conversations_end_as_people_would_say() {
    let mut wrong = Vec::new();
    let mut cases = 0;
    for case in include_str!("endings.txt").split("\n= ").skip(1) {
        let (head, told) = case.split_once('\n').unwrap();
        let (name, want) = head.rsplit_once(": ").unwrap();
        let lines: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
        let world = World::told(&lines);
        let read_scope = if told.contains(" dm ") { in_dm() } else { in_hall() };
        let mut endings: Vec<&str> = world.list(&read_scope, &all()).iter().map(ChatEpisode::ending).collect();
        endings.reverse();
        cases += 1;
        if endings.join(", ") != want {
            wrong.push(format!("{name}: {} instead of {want}", endings.join(", ")));
        }
    }
    assert!(cases >= 25 && wrong.is_empty(), "{wrong:#?}");
}

/// A reason names nothing from a place that may not be read, and a link goes with either of its messages.
#[test]
fn a_reason_points_only_at_what_may_be_read_and_goes_with_it() {
    let world = World::told(&[
        "10 10:00 dm ann: The boiler broke this morning.",
        "12 10:00 hall ann: We stayed at my mother's because the boiler broke.",
        "12 10:01 hall ben: The boiler broke, you say?",
        "14 10:00 hall ben: I am cold because the boiler broke.",
    ]);
    let cause = |read_scope: &ReadScope, episode: &str| {
        let found = world.list(read_scope, &all()).into_iter().find(|one| one.id.as_str() == episode);
        found.unwrap().cause.map(|cause| (cause.episode.to_string(), cause.said.message.to_string()))
    };
    let boiler = Some(("m0".to_owned(), "m0".to_owned()));
    assert_eq!(cause(&in_dm(), "m1"), boiler);
    assert_eq!(cause(&in_hall(), "m1"), None, "what Ann said in private is not named");
    assert_eq!(cause(&in_dm(), "m3"), None, "Ben asked, and Ann's words are no statement of his");
    world.memory.forgetting().forget(&Forget::Message(MessageId::new("m0").unwrap()), true).unwrap();
    assert_eq!(cause(&in_dm(), "m1"), None);
}

#[test]
fn an_episode_says_who_where_when_what_and_why() {
    let world = World::told(&[
        "18 10:00 hall ann: hello there",
        "18 10:01 hall ann: I sold the boat to Miriam because it leaked.",
        "18 10:02 hall ben: the boat leaked all year, that boat",
        "18 23:40 hall ann: the moon is up",
        "19 00:20 hall ben: what a moon",
        "19 11:00 hall ben: new day",
    ]);
    let episodes = world.list(&in_hall(), &all());
    let spans: Vec<(usize, &str)> = episodes.iter().map(|one| (one.messages, one.id.as_str())).collect();
    assert_eq!(spans, [(1, "m5"), (2, "m3"), (3, "m0")], "a talk past midnight is one, the newest is first");
    let boat = &episodes[2];
    assert_eq!(boat.people.iter().map(|author| author.name()).collect::<Vec<_>>(), ["Ann", "Ben"]);
    assert_eq!(boat.names, ["Miriam"]);
    assert_eq!((boat.occasion.chat.as_str(), &boat.occasion.scope), ("hall", &scope_of("hall")));
    let title = boat.title.as_ref().unwrap();
    assert_eq!((title.text.as_str(), title.message.as_str()), ("I sold the boat to Miriam because it leaked.", "m1"));
    assert_eq!(boat.why.as_ref().unwrap().text.as_str(), "because it leaked.");
    assert!(boat.title.as_ref().unwrap().memory.is_some());
    let text = "the boat leaked all year, that boat";
    world.mark("m2", "event", 0.7, text, text);
    let marked = &world.list(&in_hall(), &all())[2];
    assert_eq!(marked.title.as_ref().unwrap().text.as_str(), text, "what is marked is the title");
}

#[test]
fn a_marked_plan_of_another_language_is_open() {
    let text = "Je passe mon permis demain.";
    let world = World::told(&[&format!("18 10:00 hall ann: {text}")]);
    assert_eq!(world.list(&in_hall(), &all())[0].ending(), "ended");
    world.mark("m0", "plan", 0.6, text, text);
    assert_eq!(world.list(&in_hall(), &all())[0].ending(), "open");
}

#[test]
fn a_later_episode_names_the_one_that_it_goes_on_with() {
    let world = World::told(&[
        "10 10:00 hall ann: I'm going to paint the fence on Saturday.",
        "11 10:00 den ben: we met Miriam at the pier",
        "12 10:00 hall ben: good soup today",
        "16 10:00 hall ann: I painted the fence.",
        "17 10:00 hall ben: I think Miriam was right",
    ]);
    let episodes = world.list(&in_hall(), &all());
    let continues: Vec<_> = episodes.iter().map(|one| one.continues.as_ref().map(MessageId::as_str)).collect();
    assert_eq!(continues, [Some("m1"), Some("m0"), None, None, None]);
    let MatterState::Resolved(report) = &episodes[4].matters[0].state else { panic!("{:?}", episodes[4].matters) };
    assert_eq!((report.text.as_str(), report.message.as_str()), ("I painted the fence.", "m3"));
}

#[test]
fn pages_words_people_and_open_ones() {
    let world = World::told(&[
        "16 10:00 hall ann: I'm going to paint the fence on Saturday.",
        "17 10:00 hall ben: good soup today",
        "18 10:00 den cid: soup again",
    ]);
    let ids = |query: EpisodeQuery| {
        let page = world.memory.episodes().list(&in_hall(), &world.calendar(), &query).unwrap();
        let ids: Vec<String> = page.episodes.iter().map(|one| one.id.to_string()).collect();
        format!("{} of {}", ids.join(" "), page.total)
    };
    assert_eq!(ids(EpisodeQuery { limit: 2, ..all() }), "m2 m1 of 3");
    assert_eq!(ids(EpisodeQuery { skip: 2, limit: 2, ..all() }), "m0 of 3");
    assert_eq!(ids(EpisodeQuery { words: "SOUP".into(), ..all() }), "m2 m1 of 2");
    assert_eq!(ids(EpisodeQuery { words: "soup ben".into(), ..all() }), "m1 of 1");
    assert_eq!(ids(EpisodeQuery { is_open: true, ..all() }), "m0 of 1");
    assert_eq!(ids(EpisodeQuery { words: "submarine".into(), ..all() }), " of 0");
    let day = |day: &str| format!("2026-03-{day}T00:00:00Z").parse().unwrap();
    assert_eq!(ids(EpisodeQuery { within: Some((day("17"), day("18"))), ..all() }), "m1 of 1");
}

#[test]
fn nothing_of_a_place_that_may_not_be_read_is_shown_or_counts() {
    let world = World::told(&[
        "18 10:00 hall ann: I have an exam on Friday.",
        "18 10:01 cave ann: Miriam drowned the submarine because of a whale",
        "20 18:00 cave ann: The exam went badly, I failed.",
    ]);
    let hall = world.list(&in_hall(), &all());
    assert_eq!((hall.len(), hall[0].ending()), (1, "open"));
    let text = shown(&hall);
    for secret in ["Miriam", "submarine", "whale", "failed", "badly"] {
        assert!(!text.contains(secret), "{text}");
    }
    let cave = world.list(&in_cave(), &all());
    assert_eq!(cave.iter().map(ChatEpisode::ending).collect::<Vec<_>>(), ["ended", "ended", "resolved"]);
    let other = PersonaId::new("areza").unwrap();
    let place = Place { chat: chat("hall"), kind: PlaceKind::Public(guild()), since: None };
    assert_eq!(world.list(&ReadScope::in_place(other, &place, &ReadableScopes::default()), &all()), []);
}

#[test]
fn forgetting_a_message_takes_its_part_along() {
    let world = World::told(&[
        "18 10:00 hall ann: I'm going to paint the fence on Saturday.",
        "18 10:01 hall ann: because it is grey",
        "18 10:02 hall ben: Miriam has green paint",
        "23 10:00 hall ann: I painted the fence.",
    ]);
    let forget = |message: &str| {
        let forget = Forget::Message(MessageId::new(message).unwrap());
        world.memory.forgetting().forget(&forget, true).unwrap();
        world.list(&in_hall(), &all())
    };
    assert_eq!(world.list(&in_hall(), &all())[1].ending(), "resolved");
    let episodes = forget("m3");
    assert_eq!((episodes.len(), episodes[0].ending()), (1, "open"), "the report is gone");
    assert!(!shown(&episodes).contains("painted"));
    let episodes = forget("m1");
    assert_eq!((episodes[0].messages, &episodes[0].why), (2, &None));
    let episodes = forget("m0");
    assert_eq!((episodes[0].ending(), episodes[0].id.as_str()), ("ended", "m2"));
    assert!(!shown(&episodes).contains("fence"));
    assert_eq!(forget("m2"), []);
}

#[test]
fn a_horizon_hides_what_was_said_before_it() {
    let world = World::told(&[
        "16 10:00 hall ann: I'm going to paint the fence on Saturday.",
        "18 10:00 hall ben: good soup today",
    ]);
    let since = "2026-03-17T00:00:00Z".parse().ok();
    let place = Place { chat: chat("hall"), kind: PlaceKind::Public(guild()), since };
    let read_scope = ReadScope::in_place(persona(), &place, &ReadableScopes::default());
    let ids: Vec<String> = world.list(&read_scope, &all()).iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids, ["m1"]);
}

/// Returns the messages that recall brings for a question, and what it found them by. Nothing is indexed here.
fn recalled(world: &World, read_scope: &ReadScope, question: &str, exclude: &[&str]) -> Vec<String> {
    let recall = world.memory.recall();
    let calendar = world.calendar();
    let question = recall.question(read_scope, &Text::new(question), &person("ann"), "Azera", &calendar).unwrap();
    let query = Query {
        question,
        vector: None,
        event_vector: None,
        asker: None,
        now: world.now,
        include_latest: true,
        exclude: exclude.iter().map(|id| MessageId::new(*id).unwrap()).collect(),
        limits: Limits::default(),
        results: 10,
    };
    let hits = recall.find(read_scope, &query).unwrap().hits;
    assert!(hits.iter().all(|hit| hit.signals == ["episode"] && !hit.snippet.is_empty()));
    hits.iter().map(|hit| hit.memory.sources[0].to_string()).collect()
}

#[test]
fn a_question_about_a_conversation_brings_what_was_said_in_it() {
    // It is asked on Saturday the 21st.
    let world = World::told(&[
        "17 10:00 hall ann: I'm going to paint the fence on Saturday.",
        "17 10:01 hall ben: lol",
        "18 10:00 hall cid: the soup had leeks",
        "19 10:00 dm ann: I dreamt of a whale",
        "19 11:00 cave ben: Miriam has a submarine",
        "20 10:00 hall ben: the whale was a soup",
        "20 10:00 dm ann: the lamp flickers",
    ]);
    let ask = |question: &str| recalled(&world, &in_hall(), question, &[]);
    assert_eq!(ask("What did we talk about last Tuesday?"), ["m0", "m1"]);
    assert_eq!(ask("what did we talk about yesterday?"), ["m5"]);
    assert_eq!(ask("Worüber haben wir am Mittwoch geredet?"), ["m2"]);
    assert_eq!(ask("What did you discuss with Cid?"), ["m2"]);
    assert_eq!(ask("what is still open with Ann?"), ["m0"]);
    assert_eq!(
        ask("What did we talk about on Thursday?"),
        [""; 0],
        "the cave and the direct message are not read here"
    );
    assert_eq!(ask("What did we talk about in 2019?"), [""; 0]);
    assert_eq!(
        recalled(&world, &in_hall(), "what did we talk about yesterday?", &["m5"]),
        [""; 0],
        "the prompt has it"
    );
    let dm = |question: &str| recalled(&world, &in_dm(), question, &[]);
    assert_eq!(dm("what did we talk about yesterday?"), ["m6"], "what was said here comes before other places");
    assert_eq!(dm("what did we talk about last Tuesday?"), ["m0", "m1"]);
    world.memory.forgetting().forget(&Forget::Message(MessageId::new("m5").unwrap()), true).unwrap();
    assert_eq!(ask("what did we talk about yesterday?"), [""; 0]);
}

/// What people may say.
const SAYINGS: [&str; 9] = [
    "I'm going to paint the fence on Saturday.",
    "I painted the fence.",
    "I have an exam on Friday.",
    "The exam went well because Miriam helped",
    "It went well!",
    "My bike is broken.",
    "I fixed the bike",
    "Does anyone know a dentist near the harbour?",
    "good morning",
];

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (0..3_usize, 0..2_usize, 0..SAYINGS.len(), 1..2_000_i64);
    prop::collection::vec(line, 1..14).prop_map(|all| {
        let mut at: Timestamp = "2026-03-01T08:00:00Z".parse().unwrap();
        let tell = |(place, who, saying, minutes): (usize, usize, usize, i64)| {
            at += azera_types::Span::new().minutes(minutes);
            let chat = ["hall", "den", "cave"][place].to_owned();
            Line { at, chat, who: ["ann", "ben"][who].to_owned(), text: SAYINGS[saying].to_owned() }
        };
        all.into_iter().map(tell).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Two records that differ only in what the reader may not read show the same.
    #[test]
    fn what_is_shown_depends_on_what_may_be_read_alone(lines in lines(), other in "[a-z]{3,20}") {
        let changed: Vec<Line> = lines
            .iter()
            .map(|line| match line.chat.as_str() {
                "cave" => Line { text: other.clone(), ..line.clone() },
                _ => line.clone(),
            })
            .collect();
        let (one, two) = (World::of(&lines), World::of(&changed));
        prop_assert_eq!(one.list(&in_hall(), &all()), two.list(&in_hall(), &all()));
    }

    /// Each message belongs to one episode, and words that are shown were said in a message that may be read.
    #[test]
    fn every_message_is_in_one_episode_and_nothing_is_invented(lines in lines()) {
        let world = World::of(&lines);
        let episodes = world.list(&in_cave(), &all());
        prop_assert_eq!(episodes.iter().map(|one| one.messages).sum::<usize>(), lines.len());
        let ids: BTreeSet<&MessageId> = episodes.iter().map(|one| &one.id).collect();
        prop_assert_eq!(ids.len(), episodes.len());
        for quote in episodes.iter().flat_map(|one| one.title.iter().chain(&one.why)) {
            prop_assert!(lines.iter().any(|line| line.text.contains(quote.text.as_str())), "{:?}", quote.text.as_str());
        }
        for matter in episodes.iter().flat_map(|one| &one.matters) {
            prop_assert!(lines.iter().any(|line| line.text.contains(matter.problem.text.as_str())));
            if let MatterState::Resolved(report) = &matter.state {
                prop_assert!(report.at >= matter.problem.at && report.message != matter.problem.message);
            }
        }
    }
}
