//! A made-up room with a clock.

mod barge_in;

use azera_types::{MessageId, Text};
use proptest::prelude::*;

use super::*;

/// A room whose recogniser knows what each person says.
struct MadeUp {
    room: Room,
    at: Duration,
    /// What the next recognition of each person gives.
    words: BTreeMap<PersonId, String>,
    /// How long recognition takes.
    takes: Duration,
    pending: Vec<(Duration, RecognitionId, String)>,
    said: Vec<Said>,
    expected: Vec<String>,
    log: Vec<&'static str>,
    /// How many replies there were.
    replies: usize,
}

const FRAME: Duration = crate::endpoint::FRAME;

fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

impl MadeUp {
    fn of(names: &[&str]) -> Self {
        let settings = Settings { names: vec!["Azera".to_owned()], ..Settings::default() };
        let mut made_up = Self {
            room: Room::new(settings),
            at: Duration::ZERO,
            words: BTreeMap::new(),
            takes: Duration::from_millis(100),
            pending: Vec::new(),
            said: Vec::new(),
            expected: Vec::new(),
            log: Vec::new(),
            replies: 0,
        };
        for name in names {
            made_up.join(name, Some(true));
        }
        made_up
    }

    fn join(&mut self, name: &str, decision: Option<bool>) {
        self.event(Event::Joined { person: person(name), name: name.to_owned(), decision });
    }

    fn event(&mut self, event: Event) {
        let whose = match &event {
            Event::Frame { person, .. } => Some(person.clone()),
            _ => None,
        };
        for action in self.room.on(self.at, event) {
            match action {
                Action::Recognise(id, audio) => {
                    assert!(audio.duration() <= Duration::from_secs(30));
                    // The level of the sound says whose it is.
                    let level = audio.samples.iter().fold(0.0_f32, |most, sample| most.max(*sample));
                    let speaker = self.words.keys().nth((level * 100.0).round() as usize - 1).cloned();
                    let speaker = speaker.or(whose.clone()).expect("somebody spoke");
                    self.pending.push((self.at + self.takes, id, self.words[&speaker].clone()));
                }
                Action::Cancel(id) => self.pending.retain(|(_, other, _)| *other != id),
                Action::Said(said) => self.said.push(said),
                Action::GoOn(said) => {
                    assert!(said.is_for_bot);
                    self.log.push("go on");
                }
                Action::Mute(is_muted) => self.log.push(if is_muted { "mute" } else { "unmute" }),
                Action::Expect(expected) => {
                    assert_eq!(expected.person.as_str(), expected.name);
                    self.expected.push(expected.text.as_str().to_owned());
                }
                Action::Pause => self.log.push("pause"),
                Action::Resume => self.log.push("resume"),
                Action::Cut => self.log.push("cut"),
                Action::Stop => self.log.push("stop"),
                Action::Leave => self.log.push("leave"),
            }
        }
    }

    /// Lets time pass, in which these people speak.
    fn pass(&mut self, ms: u64, speakers: &[&str]) {
        let until = self.at + Duration::from_millis(ms);
        while self.at < until {
            self.at += FRAME;
            for name in speakers {
                let number = self.words.keys().position(|known| *known == person(name)).unwrap();
                let samples = Box::new([(number + 1) as f32 / 100.0; FRAME_SAMPLES]);
                self.event(Event::Frame {
                    stream: StreamId(number as u64),
                    person: person(name),
                    samples,
                    probability: 0.9,
                });
            }
            let due: Vec<_> = self.pending.extract_if(.., |(at, ..)| *at <= self.at).collect();
            for (_, id, text) in due {
                let transcript =
                    Transcript { text: Text::new(text), words: Vec::new(), confidence: 0.9, no_speech: 0.0 };
                self.event(Event::Recognised(id, Some(transcript)));
            }
            self.event(Event::Tick);
        }
    }

    fn says(&mut self, name: &str, text: &str, ms: u64) {
        for other in ["ann", "bob", "cid", "dan"] {
            self.words.entry(person(other)).or_default();
        }
        self.words.insert(person(name), text.to_owned());
        self.pass(ms, &[name]);
    }

    /// Lets the bot begin to say a new reply, which answers the oldest question that has none.
    fn bot_says(&mut self, words: &str) {
        self.bot_answers(None, words);
    }

    /// Lets the bot begin to say a new reply to somebody.
    fn bot_answers(&mut self, asker: Option<&str>, words: &str) {
        self.replies += 1;
        let reply = id(&format!("r{}", self.replies));
        self.event(Event::Replying { reply: reply.clone(), asker: asker.map(person) });
        self.event(Event::Saying { reply: Some(reply), words: words.to_owned() });
    }

    fn texts(&self) -> Vec<(&str, &str, bool)> {
        self.said.iter().map(|said| (said.name.as_str(), said.text.as_str(), said.is_for_bot)).collect()
    }
}

#[test]
fn a_whole_sentence_ends_sooner_than_an_unfinished_one() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "When does the ferry leave?", 1_500);
    room.pass(400, &[]);
    assert_eq!(room.texts(), [("ann", "When does the ferry leave?", true)]);
    room.says("ann", "I thought that", 1_000);
    room.pass(700, &[]);
    assert_eq!(room.said.len(), 1, "she may go on");
    room.pass(300, &[]);
    assert_eq!(room.said.len(), 2);
}

#[test]
fn a_pause_within_a_sentence_does_not_end_it() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "I would like to", 1_000);
    room.pass(500, &[]);
    room.says("ann", "I would like to know when it leaves.", 1_000);
    room.pass(1_000, &[]);
    assert_eq!(room.texts(), [("ann", "I would like to know when it leaves.", true)]);
}

#[test]
fn what_was_understood_when_a_call_ends_is_said_and_the_rest_counts_as_lost() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, I thought that", 1_000);
    room.pass(300, &[]);
    room.says("bob", "And I never knew", 300);
    assert!(room.said.is_empty(), "both may go on");
    let (said, lost) = room.room.close(room.at);
    let texts: Vec<(&str, &str, bool)> =
        said.iter().map(|said| (said.name.as_str(), said.text.as_str(), said.is_for_bot)).collect();
    assert_eq!(texts, [("ann", "Azera, I thought that", true)], "it may be a cry for help");
    assert_eq!(lost, 1, "what Bob said");
    let shown = format!("{said:?}");
    assert!(!shown.contains("thought") && !shown.contains("ann"), "{shown}");
}

#[test]
fn what_was_understood_when_somebody_leaves_is_said_and_the_rest_counts_as_lost() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, I thought that", 1_000);
    room.pass(300, &[]);
    assert!(room.said.is_empty(), "she may go on");
    // Bob is deafened, so nobody hears the bot once she leaves.
    room.event(Event::Silenced(true));
    room.event(Event::Left(person("ann")));
    assert_eq!(room.texts(), [("ann", "Azera, I thought that", true)], "it may be a cry for help");
    room.says("bob", "And I never knew", 300);
    room.event(Event::Left(person("bob")));
    assert_eq!(room.room.close(room.at), (Vec::new(), 1), "what Bob said");
}

#[test]
fn no_reply_goes_on_for_somebody_who_left() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "", 0);
    room.bot_says("The ferry leaves at six.");
    room.says("ann", "Wait a second.", 700);
    room.pass(1_000, &[]);
    room.says("ann", "Please go on.", 700);
    room.pass(300, &[]);
    room.event(Event::Left(person("ann")));
    assert_eq!(room.texts(), [("ann", "Please go on.", true)]);
    assert_eq!(room.log, ["pause", "stop"]);
}

#[test]
fn coughs_and_silence_are_no_utterances() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "You", 100);
    room.pass(2_000, &[]);
    // The recogniser found no speech.
    room.says("ann", "", 600);
    room.pass(2_000, &[]);
    assert!(room.said.is_empty());
}

#[test]
fn a_turn_does_not_end_soon_while_somebody_else_speaks() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.words.insert(person("bob"), "I think it is rather late.".to_owned());
    room.pass(800, &["bob"]);
    assert!(room.said.is_empty(), "she may wait for Bob");
    room.pass(300, &["bob"]);
    assert_eq!(room.texts(), [("ann", "Azera, when does the ferry leave?", true)]);
}

#[test]
fn whoever_calls_it_ends_the_unfinished_turn_of_another() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "I thought that", 800);
    room.says("bob", "Azera, why?", 350);
    room.pass(380, &[]);
    assert_eq!(room.texts(), [("ann", "I thought that", false), ("bob", "Azera, why?", true)]);
}

#[test]
fn an_order_to_stop_is_no_message() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "", 0);
    room.bot_says("The ferry leaves at six.");
    room.says("ann", "Azera, stop.", 700);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "stop"]);
    assert!(room.said.is_empty());
}

#[test]
fn a_question_ends_sooner_than_a_statement() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "When does the ferry leave?", 1_500);
    room.pass(340, &[]);
    assert_eq!(room.said.len(), 1);
    room.says("ann", "It leaves at six.", 1_500);
    room.pass(340, &[]);
    assert_eq!(room.said.len(), 1, "she may go on");
    room.pass(100, &[]);
    assert_eq!(room.said.len(), 2);
}

#[test]
fn what_is_said_to_the_bot_is_expected_before_it_is_whole() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "When does the", 2_000);
    assert_eq!(room.expected, ["", "When does the"]);
    room.says("ann", "When does the last ferry leave?", 1_500);
    room.pass(280, &[]);
    assert_eq!(room.expected[2..], ["When does the last ferry leave?"; 2], "a part of it, and all of it");
    assert!(room.said.is_empty());
    room.pass(200, &[]);
    assert_eq!(room.texts(), [("ann", "When does the last ferry leave?", true)]);
    // People who talk with each other are recognised at the end alone.
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Bob, when does the last ferry leave?", 5_000);
    room.pass(1_000, &[]);
    assert_eq!((room.expected.len(), room.said.len()), (0, 1));
}

#[test]
fn a_reply_that_was_stopped_goes_on_when_asked() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "", 0);
    room.bot_says("The ferry leaves at six.");
    room.says("ann", "Wait a second.", 700);
    room.pass(1_000, &[]);
    room.says("ann", "Please go on.", 700);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "stop", "go on"]);
    // Long afterwards it is a message like others.
    room.pass(120_000, &[]);
    room.says("ann", "Please go on.", 700);
    room.pass(1_000, &[]);
    assert_eq!(room.texts(), [("ann", "Please go on.", true)]);
}

#[test]
fn it_is_quiet_from_the_order_on_until_it_may_talk_again() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Mute yourself.", 900);
    room.pass(1_000, &[]);
    assert_eq!((room.log.len(), room.said.len()), (0, 1), "she said it to Bob");
    room.says("ann", "Azera, mute yourself.", 900);
    room.pass(1_000, &[]);
    room.says("ann", "Azera, when does the ferry leave?", 1_500);
    room.pass(1_000, &[]);
    assert_eq!(room.texts()[1..], [("ann", "Azera, when does the ferry leave?", false)]);
    room.says("bob", "Azera, you can talk again.", 1_500);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["mute", "unmute"]);
    room.says("bob", "And when does it leave?", 1_500);
    room.pass(1_000, &[]);
    assert_eq!(room.texts()[2..], [("bob", "And when does it leave?", true)]);
}

#[test]
fn its_own_words_from_a_loudspeaker_are_not_heard() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "", 0);
    room.bot_says("The ferry leaves at six in the evening.");
    room.says("ann", "leaves at six in the evening", 1_000);
    room.pass(1_000, &[]);
    assert_eq!(room.log, ["pause", "resume"]);
    assert!(room.said.is_empty());
}

#[test]
fn nobody_is_heard_without_consent() {
    /// Returns who of Ann, Bob, Cid and Eve is decoded.
    fn decoded(room: &mut MadeUp) -> [bool; 4] {
        let packet = || SealedPacket::new(1, 1, vec![0xf8]);
        ["ann", "bob", "cid", "eve"].map(|name| room.room.admit(Some(&person(name)), packet()).is_some())
    }
    let mut room = MadeUp::of(&["ann"]);
    room.join("bob", None);
    room.join("cid", Some(false));
    // To be told twice that Bob is there is no consent.
    room.join("bob", None);
    assert_eq!(decoded(&mut room), [true, false, false, false], "Eve is not in the room");
    room.says("bob", "Can you hear me?", 1_000);
    room.says("cid", "And me?", 1_000);
    room.pass(1_500, &[]);
    assert!(room.said.is_empty());
    room.event(Event::Decided(person("bob"), true));
    // What is told of his consent may be older than his decision.
    room.join("bob", None);
    assert_eq!(decoded(&mut room), [true, true, false, false]);
    room.says("bob", "Azera, can you hear me?", 1_000);
    room.pass(1_500, &[]);
    assert_eq!(room.texts(), [("bob", "Azera, can you hear me?", true)]);
    assert_eq!((room.room.gate().admitted(), room.room.gate().dropped()), (3, 5));
}

#[test]
fn withdrawn_consent_drops_what_was_being_said() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, my password is", 1_000);
    room.event(Event::Decided(person("ann"), false));
    room.pass(2_000, &[]);
    assert!(room.said.is_empty() && room.pending.is_empty());
}

#[test]
fn a_stream_is_never_given_to_another_person() {
    let mut room = MadeUp::of(&["ann", "bob"]);
    room.says("ann", "Azera, this is Ann.", 500);
    let number = room.words.keys().position(|known| *known == person("ann")).unwrap();
    // Frames of the same stream that claim to be Bob's.
    for _ in 0..30 {
        room.at += FRAME;
        let samples = Box::new([0.5; FRAME_SAMPLES]);
        room.event(Event::Frame { stream: StreamId(number as u64), person: person("bob"), samples, probability: 0.9 });
    }
    room.pass(2_000, &[]);
    assert_eq!(room.texts(), [("ann", "Azera, this is Ann.", true)]);
}

#[test]
fn it_leaves_when_everybody_left() {
    let mut room = MadeUp::of(&["ann"]);
    room.pass(120_000, &[]);
    assert!(room.log.is_empty());
    room.event(Event::Left(person("ann")));
    room.pass(59_000, &[]);
    room.join("ann", Some(true));
    room.pass(60_000, &[]);
    room.event(Event::Left(person("ann")));
    assert!(room.log.is_empty());
    room.pass(61_000, &[]);
    assert_eq!(room.log, ["leave"]);
}

#[test]
fn a_long_utterance_is_recognised_in_parts_and_answered_once() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "One.", 28_000);
    room.says("ann", "Two.", 28_000);
    room.says("ann", "Three.", 4_000);
    room.pass(2_000, &[]);
    let [said] = room.said.as_slice() else { panic!("{:?}", room.said) };
    assert_eq!(said.text.as_str(), "One. Two. Three.");
    assert_eq!(said.began, FRAME);
    assert!(room.pending.is_empty());
    // What is recognised late is waited for.
    room.takes = Duration::from_secs(5);
    room.says("ann", "Four.", 30_000);
    room.pass(12_000, &[]);
    assert_eq!(room.said.len(), 2);
    assert_eq!(room.said[1].text.as_str(), "Four. Four.");
}

#[test]
fn silence_behind_a_long_utterance_is_no_part_of_it() {
    let mut room = MadeUp::of(&["ann"]);
    room.takes = Duration::from_secs(40);
    room.says("ann", "One.", 27_500);
    // Her microphone stays open.
    let stream = StreamId(0);
    for _ in 0..2_000 {
        room.at += FRAME;
        let samples = Box::new([0.01; FRAME_SAMPLES]);
        room.event(Event::Frame { stream, person: person("ann"), samples, probability: 0.0 });
    }
    room.pass(100, &[]);
    assert_eq!(room.said.len(), 1);
    assert_eq!(room.said[0].text.as_str(), "One.");
}

#[test]
fn an_utterance_without_end_comes_in_several() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "I go on.", 600_000);
    room.pass(2_000, &[]);
    let parts: usize = room.said.iter().map(|said| said.text.matches("I go on.").count()).sum();
    assert_eq!((room.said.len(), parts), (3, 22), "28 seconds in each part, and each is heard once");
    assert!(room.said.is_sorted_by(|one, next| one.ended <= next.began));
}

#[test]
fn the_parts_of_a_long_utterance_that_are_known_stay_if_somebody_leaves() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "One.", 30_000);
    room.event(Event::Left(person("ann")));
    let [said] = room.said.as_slice() else { panic!("{:?}", room.said) };
    assert_eq!((said.text.as_str(), said.name.as_str(), said.is_for_bot), ("One.", "ann", true));
}

#[test]
fn the_parts_of_a_long_utterance_that_are_known_stay_if_the_call_ends() {
    let mut room = MadeUp::of(&["ann"]);
    room.says("ann", "One.", 30_000);
    room.takes = Duration::from_secs(60);
    room.says("ann", "Two.", 28_000);
    let (said, lost) = room.room.close(room.at);
    assert_eq!(lost, 1, "the second part and the rest");
    let [said] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!((said.text.as_str(), said.is_for_bot), ("One.", true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// However people talk at the same time, every utterance is given to the person who said it.
    #[test]
    fn overlapping_speakers_keep_their_words(
        talk in prop::collection::vec((0_usize..4, 200_u64..3_000, 0_u64..2_000, any::<bool>()), 1..25),
    ) {
        let names = ["ann", "bob", "cid", "dan"];
        let mut room = MadeUp::of(&names);
        for name in names {
            room.words.insert(person(name), format!("I am {name}."));
        }
        for (who, lasts, pause, together) in talk {
            let other = names[(who + 1) % 4];
            let speakers = if together { vec![names[who], other] } else { vec![names[who]] };
            room.pass(lasts, &speakers);
            room.pass(pause, &[]);
        }
        room.pass(3_000, &[]);
        prop_assert!(!room.said.is_empty());
        for said in &room.said {
            prop_assert_eq!(said.text.as_str(), format!("I am {}.", said.person.as_str()));
            prop_assert!(said.began <= said.ended);
        }
    }
}
