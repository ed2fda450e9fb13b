//! Voice channels: the real binary hears and speaks over a fake voice server. People are spoken by the Piper voice, and
//! what the bot says is recognised by Whisper.

mod broken;
mod idle;
mod people;
mod personas;
mod recordings;
mod stages;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use azera_fake_discord::{FakeDiscord, Invoked, Network, VoicePacket, World};

use crate::bot::Bot;
use crate::commands::{answer_text, give};
use crate::model::Model;
use crate::voice::people::{Ears, Voice};
use crate::{as_described, fake, text};

/// The bot's answer in these tests.
const ANSWER: &str = "The last train leaves at six in the evening.";

/// Silence after which the bot has said everything.
const SILENCE: Duration = Duration::from_secs(2);

/// The share of the expected words that must be recognised.
const ENOUGH: f64 = 0.7;

/// What the bot logs.
const LOG: &str = "info,azera_adapter_discord=debug,azera_voice_call=debug,azera_engine::voice=debug,azera_engine::turn=debug,azera_model_llama=debug";

/// How long to ask again and again on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Asks until there is an answer.
#[track_caller]
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
    }
}

/// A model that gives one answer and keeps what it was asked. The second part of the answer waits for the model's gate.
fn model([first, second]: [&'static str; 2]) -> (Model, Arc<Mutex<Vec<String>>>) {
    let prompts = Arc::<Mutex<Vec<String>>>::default();
    let kept = prompts.clone();
    let model = Model::start(Arc::new(move |body| {
        kept.lock().expect("no test panics while it holds this").push(body["messages"].to_string());
        (first.to_owned(), second.to_owned())
    }));
    (model, prompts)
}

/// A server with a voice channel, and the bot in it with some people.
struct Room {
    fake: FakeDiscord,
    bot: Bot,
    people: Vec<u64>,
    square: u64,
    channel: u64,
    prompts: Arc<Mutex<Vec<String>>>,
    model: Option<Model>,
}

impl Room {
    /// Opens a room. The first person asks the bot in.
    fn open(names: &[&str], answer: &'static str) -> Self {
        Self::open_with(names, [answer, ""])
    }

    fn open_with(names: &[&str], answer: [&'static str; 2]) -> Self {
        let fake = fake();
        let (model, prompts) = model(answer);
        let bot = Bot::new(&fake, Some(&model)).with_even_voice();
        Self { prompts, model: Some(model), ..Self::begin(fake, bot, names) }
    }

    /// Opens a room where the default model answers.
    fn with_own_model(names: &[&str]) -> Self {
        let fake = fake();
        // As many threads as people have: what is measured is what they wait for.
        let bot = Bot::new(&fake, None).with_own_model().with("AZERA__MODELS__THREADS", "0");
        Self::begin(fake, bot, names)
    }

    fn begin(fake: FakeDiscord, bot: Bot, names: &[&str]) -> Self {
        let room = Self::outside(fake, bot, names);
        for person in 0..names.len() {
            room.enter(person);
        }
        room.join();
        room
    }

    /// Opens a room that nobody is in, and starts the bot.
    fn outside(fake: FakeDiscord, bot: Bot, names: &[&str]) -> Self {
        let (people, square, channel) = fake.world(|world| {
            let people: Vec<u64> = names.iter().map(|name| world.user(name)).collect();
            let guild = world.guild(people[0], &people[1..]);
            (people, world.channel(guild, "square", Vec::new()), world.voice_channel(guild, "parlour"))
        });
        let mut bot = bot.with("AZERA_LOG", LOG);
        bot.start(&fake);
        fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
        Self { fake, bot, people, square, channel, prompts: Arc::default(), model: None }
    }

    /// Lets the first person ask the bot in.
    fn join(&self) {
        until("the bot to see the person", || self.command(0, "join", &[]).contains("parlour").then_some(()));
        self.fake.wait("the call", |world| world.is_voice_ready(self.channel).then_some(()));
    }

    fn model(&self) -> &Model {
        self.model.as_ref().expect("a model of the test answers")
    }

    fn enter(&self, person: usize) {
        self.fake.world(|world| world.join_voice(self.channel, self.people[person]));
    }

    fn command(&self, person: usize, form: &str, values: &[(&str, &str)]) -> String {
        give(&self.fake, self.square, self.people[person], "voice", form, values)
    }

    /// Waits until the bot asks a person whether it may hear them, and presses a button below the question.
    #[track_caller]
    fn press(&self, person: usize, label: &str) -> String {
        let who = self.people[person];
        let (message, custom_id) = self.fake.wait("the question", |world| {
            let questions = world.bots_messages(self.channel);
            let question = questions.into_iter().find(|message| text(message).contains(&format!("<@{who}>")))?;
            let buttons = question["components"][0]["components"].as_array()?;
            let button = buttons.iter().find(|button| button["label"] == *label)?;
            let id = question["id"].as_str()?.parse::<u64>().ok()?;
            Some((id, button["custom_id"].as_str()?.to_owned()))
        });
        let pressed = self.fake.world(|world| world.invoke(self.channel, who, Invoked::Button { message, custom_id }));
        answer_text(&self.fake, pressed)
    }

    /// Lets a person say something, and waits until they said it. Returns how many packets that was, with the silence
    /// at the end.
    fn say(&self, voice: &Voice, person: usize, words: &str, network: Network) -> u64 {
        let packets = voice.say(words);
        let count = packets.len() as u64 + 5;
        self.fake.talk(self.people[person], packets, network);
        self.fake.wait("the person to finish", |world| (world.voice.talking == 0).then_some(()));
        count
    }

    /// Waits until the bot fell silent after it said these words, and returns all that it said since the packet `from`.
    /// It may fall silent before, because it opens the line and says "hmm" while it thinks.
    #[track_caller]
    fn hear(&self, ears: &Ears, from: usize, expected: &str) -> String {
        let (mut known, mut words) = (0, String::new());
        loop {
            let packets = self.fake.wait(&format!("{expected:?} to be said after {words:?}"), |world| {
                let heard = &world.voice.heard[from..];
                let is_over = heard.len() > known && heard.last().is_some_and(|last| last.at.elapsed() > SILENCE);
                is_over.then(|| heard.iter().map(|packet| packet.opus.clone()).collect::<Vec<_>>())
            });
            words = ears.recognise(&packets);
            if share(expected, &words) > ENOUGH {
                return words;
            }
            known = packets.len();
        }
    }

    /// Waits until the bot has spoken for two seconds. The silence of an open line does not count, and "hmm" is short.
    #[track_caller]
    fn wait_for_words(&self) {
        self.fake.wait("the bot to speak", |world| (sounds(&world.voice.heard).count() > 100).then_some(()));
    }

    /// Prints how long the answer took that begins with the packet `from`, for `--nocapture`.
    fn print_latency(&self, from: usize) {
        let waited = self.fake.world(|world| Some(world.voice.heard.get(from)?.at - world.voice.fell_silent?));
        println!("end of speech to the first packet of the answer: {waited:?}");
        let log = self.bot.log();
        for line in log.lines().filter(|line| line.contains("azera_voice_discord") && line.contains("ms=")) {
            println!("{line}");
        }
    }

    fn spoken(&self) -> usize {
        self.fake.world(|world| world.voice.heard.len())
    }

    /// Returns the counts of `/voice settings`: packets of people who agreed, decoded ones, and dropped ones.
    fn counts(&self, person: usize) -> [u64; 3] {
        let settings = self.command(person, "settings", &[]);
        let off = ["Captions are off: `/voice captions on`.", "Nothing is recorded: `/voice record on`."];
        assert!(off.iter().all(|line| settings.contains(line)), "{settings}");
        let numbers: Vec<u64> =
            settings.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        [numbers[1], numbers[2], numbers[3]]
    }
}

/// Returns the packets in which something sounds: a packet of silence has three bytes.
fn sounds(heard: &[VoicePacket]) -> impl DoubleEndedIterator<Item = &VoicePacket> {
    heard.iter().filter(|packet| packet.opus.len() > 3)
}

/// Returns the share of expected words that were recognised.
fn share(expected: &str, found: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let plain: String = text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || *c == ' ').collect();
        plain.split_whitespace().map(str::to_owned).collect()
    };
    let (expected, found) = (words(expected), words(found));
    let recognised = expected.iter().filter(|word| found.contains(word)).count();
    recognised as f64 / expected.len() as f64
}

#[test]
fn a_spoken_question_gets_a_spoken_answer() {
    let room = Room::open(&["Ann"], ANSWER);
    let (voice, ears) = (Voice::open(), Ears::open());
    // Without consent nothing is decoded.
    let sent = room.say(&voice, 0, "Azera, when does the train leave?", Network::default());
    let [heard, decoded, dropped] = until("all packets", || {
        let counts = room.counts(0);
        (counts[2] == sent).then_some(counts)
    });
    assert_eq!((heard, decoded), (0, 0));
    assert!(room.command(0, "settings", &[]).contains("I do not hear you: `/voice consent yes`"));
    assert!(room.press(0, "Hear me").starts_with("Thank you."));
    assert!(room.command(0, "settings", &[]).contains("I hear you: `/voice consent no`"));
    room.say(&voice, 0, "When does the last train leave today?", Network::default());
    room.hear(&ears, 0, ANSWER);
    room.print_latency(0);
    let prompts = room.prompts.lock().expect("no test panics while it holds this").clone();
    assert!(prompts.iter().any(|prompt| prompt.contains("train leave today")), "{prompts:?}");
    let transcript = room.command(0, "transcript", &[]);
    assert!(transcript.contains("**Ann:**") && transcript.contains(ANSWER), "{transcript}");
    // Nothing of it stands in a text chat.
    let shown = room.fake.world(|world| world.bots_messages(room.channel).len());
    assert_eq!(shown, 1, "only the question about consent");
    let [heard, decoded, after] = room.counts(0);
    assert!(heard > 50 && decoded == heard && after == dropped, "{heard} {decoded} {after}");
    as_described(&room.fake);
}

#[test]
fn captions_stand_in_a_thread_until_they_are_forgotten() {
    let room = Room::open(&["Ann"], ANSWER);
    let (voice, ears) = (Voice::open(), Ears::open());
    room.press(0, "Hear me");
    let answer = room.command(0, "captions", &[("choice", "on")]);
    let thread: u64 = answer.split(['#', '>']).nth(1).and_then(|id| id.parse().ok()).expect("a link to a thread");
    room.hear(&ears, 0, "stands in a text channel");
    let spoken = room.spoken();
    room.say(&voice, 0, "When does the last train leave today?", Network::default());
    room.hear(&ears, spoken, ANSWER);
    let shown = |world: &World| {
        let messages = world.bots_messages(thread);
        messages.into_iter().map(text).collect::<Vec<_>>().join("\n")
    };
    let captions = room.fake.wait("the captions", |world| Some(shown(world)).filter(|shown| shown.contains(ANSWER)));
    assert!(captions.contains("**Ann:**") && captions.contains(&format!("**Azera:** {ANSWER}")), "{captions}");
    give(&room.fake, room.square, room.people[0], "forget", "me", &[("quotes", "true")]);
    let left = room.fake.wait("the captions to go", |world| Some(shown(world)).filter(|it| !it.contains("train")));
    assert!(left.contains("Ann turned them on"), "{left}");
    room.fake.world(|world| world.leave_voice(room.people[0]));
    room.command(0, "leave", &[]);
    as_described(&room.fake);
}

#[test]
fn nobody_reads_what_was_said_before_they_came() {
    let room = Room::open(&["Ann", "Bob"], ANSWER);
    room.fake.world(|world| world.leave_voice(room.people[1]));
    let (voice, ears) = (Voice::open(), Ears::open());
    room.press(0, "Hear me");
    room.say(&voice, 0, "The password of the lighthouse is zeppelin.", Network::default());
    room.hear(&ears, 0, ANSWER);
    assert!(room.command(0, "transcript", &[]).contains("lighthouse"));
    // Somebody who is not in the room is shown nothing.
    assert!(!room.command(1, "transcript", &[]).contains("lighthouse"));
    room.enter(1);
    let shown = until("Bob to be in the room", || {
        let shown = room.command(1, "transcript", &[]);
        (!shown.starts_with("I am not") && !shown.starts_with("You are in no")).then_some(shown)
    });
    assert!(!shown.contains("lighthouse"), "{shown}");
    // And nothing of it reaches the model while he listens.
    let (asked, spoken) = (room.prompts.lock().expect("no test panics while it holds this").len(), room.spoken());
    room.say(&voice, 0, "Azera, what is the weather like?", Network::default());
    room.hear(&ears, spoken, ANSWER);
    let prompts = room.prompts.lock().expect("no test panics while it holds this")[asked..].to_vec();
    assert!(prompts.iter().any(|prompt| prompt.contains("weather")), "{prompts:?}");
    assert!(!prompts.iter().any(|prompt| prompt.contains("lighthouse")), "{prompts:?}");
}

/// A long answer, which can be interrupted.
const LONG: &str = "First you walk along the harbor to the old lighthouse. Then you take the narrow path up the hill behind \
                    the church. At the top there is a bench with a view of the whole bay. From there it is only a short way down \
                    to the beach. There you will find a small cafe.";

/// How it begins.
const BEGINNING: &str = "First you walk along";

#[test]
fn talk_interrupts_it_and_only_what_was_heard_stays() {
    let room = Room::open(&["Ann"], LONG);
    let (voice, ears) = (Voice::open(), Ears::open());
    room.press(0, "Hear me");
    room.say(&voice, 0, "How do I get to the beach?", Network::default());
    room.wait_for_words();
    room.say(&voice, 0, "Stop talking.", Network::default());
    let said = room.hear(&ears, 0, BEGINNING);
    let until_silent = room.fake.world(|world| {
        let began = world.voice.began?;
        Some(sounds(&world.voice.heard).next_back()?.at - began)
    });
    println!("beginning of speech to silence: {until_silent:?}");
    assert!(!said.contains("cafe"), "{said}");
    let transcript = until("the cut", || {
        let transcript = room.command(0, "transcript", &[]);
        transcript.contains('\u{2026}').then_some(transcript)
    });
    assert!(transcript.contains("First you") && !transcript.contains("cafe"), "{transcript}");
}

#[test]
fn what_is_cut_before_the_model_is_done_never_comes() {
    let end = " There you will find a small cafe with a yellow door.";
    let room = Room::open_with(&["Ann"], [LONG, end]);
    let (voice, ears) = (Voice::open(), Ears::open());
    room.press(0, "Hear me");
    // The model stops in the middle, so nothing is stored yet.
    room.model().close();
    room.say(&voice, 0, "How do I get to the beach?", Network::default());
    room.wait_for_words();
    room.say(&voice, 0, "Please stop talking.", Network::default());
    let transcript = until("the cut", || {
        let transcript = room.command(0, "transcript", &[]);
        transcript.contains('\u{2026}').then_some(transcript)
    });
    assert!(transcript.contains("First you") && !transcript.contains("beach. There"), "{transcript}");
    // The next question is answered, although the model never ended the first reply.
    let (spoken, asked) = (room.spoken(), room.prompts.lock().expect("no test panics while it holds this").len());
    room.say(&voice, 0, "Where is the lighthouse?", Network::default());
    room.hear(&ears, spoken, BEGINNING);
    let prompts = room.prompts.lock().expect("no test panics while it holds this")[asked..].to_vec();
    assert!(prompts.iter().any(|prompt| prompt.contains("First you")), "{prompts:?}");
    assert!(!prompts.iter().any(|prompt| prompt.contains("down to the beach. There")), "{prompts:?}");
    room.model().open();
}

#[test]
fn help_for_somebody_in_danger_is_written_and_not_said() {
    let room = Room::open(&["Ann"], ANSWER);
    let (voice, ears) = (Voice::open(), Ears::open());
    room.press(0, "Hear me");
    room.say(&voice, 0, "I want to kill myself.", Network::default());
    let written = room.fake.wait("the direct message", |world| {
        let direct = world.dm(room.people[0]);
        world.bots_messages(direct).first().map(|message| text(message))
    });
    assert!(azera_affect::Help::Crisis.stands_in(&written), "{written}");
    let said = room.hear(&ears, 0, "I wrote you a direct message Please read it now");
    assert!(said.split_whitespace().count() < 14, "{said}");
    let shown = room.fake.world(|world| world.bots_messages(room.channel).len());
    assert_eq!(shown, 1, "the channel shows nothing but the question about consent");
    // The room's record holds what the room heard.
    let transcript = room.command(0, "transcript", &[]);
    assert!(transcript.contains("I wrote you a direct message."), "{transcript}");
    assert!(!azera_affect::Help::Crisis.stands_in(&transcript) && !transcript.contains(ANSWER), "{transcript}");
}
