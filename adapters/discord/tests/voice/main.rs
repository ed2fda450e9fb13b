//! The adapter hears and speaks over a fake voice server. People are spoken by the Piper voice, and what the bot says is
//! recognised by Whisper. `bot/app` tests the whole product in the same way.
//!
//! Each test runs in a process of its own, because songbird trusts the certificates that `SSL_CERT_FILE` names.

mod captions;
mod code;
mod consent;
mod deafened;
mod encrypted;
mod engine;
mod help;
mod interruptions;
mod joining;
mod lost_gateway;
mod moderators;
mod people;
mod recordings;
mod soak;
mod stop;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{JoinedCall, MessageAction, Platform, VoiceChannels, VoiceError};
use azera_adapter_discord::{Discord, Limits, RecordingFolder, Settings};
use azera_fake_discord::{FakeDiscord, Fault, Invoked, Mode, Network, Scope};
use azera_types::{ChatId, MessageId, PersonId, SystemClock};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::engine::{Engine, OwnSpeech, since};
use crate::people::{Ears, Voice};

/// The bot's answer in most of these tests.
const ANSWER: &[&str] = &["The last ferry leaves ", "at six in the evening."];

/// Silence after which the bot has said everything.
const SILENCE: Duration = Duration::from_secs(2);

/// The menu of a message.
const ACTIONS: &[MessageAction] = &[MessageAction { name: "Forget this", line: "/forget", asks: None }];

/// The longest recording of a call.
const MOST_RECORDED: Duration = Duration::from_secs(600);

/// Set in the process of a test.
const OWN_PROCESS: &str = "SSL_CERT_FILE";

/// Runs a test in a process of its own, with the path of a file for the certificate of the fake.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn in_own_process(name: &str, test: impl FnOnce(PathBuf)) {
    /// Says that this is the process of the test.
    const MARK: &str = "AZERA_TEST_VOICE_PROCESS";
    if std::env::var_os(MARK).is_some() {
        return test(std::env::var_os(OWN_PROCESS).map(PathBuf::from).expect("a file"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([name, "--exact", "--nocapture"]).env(MARK, "1").env(OWN_PROCESS, folder.path().join("root.pem"));
    let output = command.output().expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the test ran: {text}");
}

/// A voice channel with the bot and some people in it.
struct Room {
    fake: FakeDiscord,
    discord: Arc<Discord>,
    engine: Arc<Engine>,
    runtime: Runtime,
    people: Vec<u64>,
    channel: u64,
    voice: Voice,
    ears: Ears,
    recordings: RecordingFolder,
    folder: TempDir,
}

fn settings(fake: &FakeDiscord, root: &Path) -> Settings {
    std::fs::write(root, &fake.root_certificate).expect("a file");
    Settings {
        token: fake.token.clone(),
        operators: Vec::new(),
        catch_up_hours: 24,
        limits: Limits { messages_per_person: 30, messages_per_server: 300 },
        keep_removed_days: 30,
        api_address: Some(fake.api),
        api_root_certificate: Some(root.to_owned()),
    }
}

impl Room {
    /// Opens a room, and brings the bot into it.
    fn open(root: &Path, names: &[&str], modes: Vec<Mode>, answer: &'static [&'static str]) -> Self {
        let fake = FakeDiscord::start(None);
        fake.world(|world| world.voice.modes = modes);
        let (voice, ears) = (Voice::open(), Ears::open());
        let speech = OwnSpeech::of(&voice, &ears);
        Self::begin(root, fake, names, answer, (voice, ears, speech))
    }

    /// Brings the bot with its engines of speech into a room of a server.
    fn begin(
        root: &Path,
        fake: FakeDiscord,
        names: &[&str],
        answer: &'static [&'static str],
        (voice, ears, speech): (Voice, Ears, OwnSpeech),
    ) -> Self {
        let (people, channel) = fake.world(|world| {
            let people: Vec<u64> = names.iter().map(|name| world.user(name)).collect();
            let guild = world.guild(people[0], &people[1..]);
            (people, world.voice_channel(guild, "parlour"))
        });
        let folder = tempfile::tempdir().expect("a folder");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let engine = Arc::new(Engine::new(answer));
        let settings = settings(&fake, root);
        let discord = Discord::new(settings, folder.path(), Arc::new(SystemClock), &[], ACTIONS).expect("settings");
        let discord = Arc::new(discord);
        discord.set_speech(Arc::new(speech), engine.clone());
        let recordings = RecordingFolder::open(folder.path().join("calls"), 1 << 30).expect("a folder");
        discord.set_recordings(recordings.clone(), MOST_RECORDED);
        engine.attach(discord.clone());
        runtime.block_on(discord.begin()).expect("a connection");
        let (listening, host) = (discord.clone(), engine.clone());
        runtime.spawn(async move { listening.listen(host).await });
        let room = Self { fake, discord, engine, runtime, people, channel, voice, ears, recordings, folder };
        for person in &room.people {
            room.fake.world(|world| world.join_voice(channel, *person));
        }
        assert_eq!(room.join(), Ok("parlour".to_owned()));
        room.fake.wait("the call", |world| world.is_voice_ready(channel).then_some(()));
        room
    }

    fn engine_of_another_start(&self) -> Arc<Engine> {
        Arc::new(Engine::new(ANSWER))
    }

    /// Starts the bot anew with the same folder and another record.
    fn start_again(&self, root: &Path, engine: Arc<Engine>) {
        let settings = settings(&self.fake, root);
        let discord =
            Discord::new(settings, self.folder.path(), Arc::new(SystemClock), &[], ACTIONS).expect("settings");
        let discord = Arc::new(discord);
        discord.set_speech(Arc::new(OwnSpeech::of(&self.voice, &self.ears)), engine.clone());
        engine.attach(discord.clone());
        self.runtime.block_on(discord.begin()).expect("a connection");
        self.runtime.spawn(async move { discord.listen(engine).await });
    }

    fn channels(&self) -> &dyn VoiceChannels {
        self.discord.voice().expect("Discord has voice channels")
    }

    fn chat(&self) -> ChatId {
        ChatId::new(format!("discord:{}", self.channel)).expect("an id")
    }

    fn person(&self, number: usize) -> PersonId {
        PersonId::new(format!("discord:{}", self.people[number])).expect("an id")
    }

    /// Asks the bot in until it sees that the first person is in the channel.
    fn join(&self) -> Result<String, VoiceError> {
        self.join_and_ask().map(|joined| joined.name)
    }

    /// Does the same. Tells also whether the bot may ask people there.
    fn join_and_ask(&self) -> Result<JoinedCall, VoiceError> {
        self.until("the bot to see the person", || {
            match self.runtime.block_on(self.channels().join(&self.chat(), &self.person(0))) {
                Err(VoiceError::NotInChannel) => None,
                joined => Some(joined),
            }
        })
    }

    /// Asks again and again.
    #[track_caller]
    fn until<T>(&self, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
        const PATIENCE: Duration = Duration::from_secs(300);
        let begun = std::time::Instant::now();
        loop {
            if let Some(found) = ask() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
            // Others need the processor meanwhile.
            let mut has_looked = false;
            self.fake.wait(what, |_| std::mem::replace(&mut has_looked, true).then_some(()));
        }
    }

    /// Waits until the bot said more than so many packets since the packet `from`. Silence does not count.
    #[track_caller]
    fn speaks(&self, from: usize, packets: usize) {
        self.fake.wait("the bot to speak", |world| {
            // Packets of silence have three bytes.
            let said = world.voice.heard[from..].iter().filter(|packet| packet.opus.len() > 3);
            (said.count() > packets).then_some(())
        });
    }

    /// Waits until the bot asks a person whether it may hear them, and presses a button below the question.
    #[track_caller]
    fn press(&self, person: usize, label: &str) {
        let who = self.people[person];
        let (message, custom_id) = self.fake.wait("the question", |world| {
            let questions = world.bots_messages(self.channel);
            let content =
                |message: &&&Value| message["content"].as_str().is_some_and(|text| text.contains(&format!("<@{who}>")));
            let question = *questions.iter().find(content)?;
            let buttons = question["components"][0]["components"].as_array()?;
            let button = buttons.iter().find(|button| button["label"] == *label)?;
            Some((question["id"].as_str()?.parse::<u64>().ok()?, button["custom_id"].as_str()?.to_owned()))
        });
        let pressed = self.fake.world(|world| world.invoke(self.channel, who, Invoked::Button { message, custom_id }));
        self.fake.wait("the answer to the button", |world| world.interaction(pressed).answer.message.clone());
    }

    /// Lets a person say something, and waits until they said it. Returns how many packets that was, with the silence
    /// at the end.
    fn say(&self, person: usize, words: &str, network: Network) -> u64 {
        let packets = self.voice.say(words);
        let count = packets.len() as u64 + 5;
        self.fake.talk(self.people[person], packets, network);
        self.fake.wait("the person to finish", |world| (world.voice.talking == 0).then_some(()));
        count
    }

    /// Waits for the pause between two sentences.
    fn pause(&self) {
        const PAUSE: Duration = Duration::from_millis(1_200);
        self.fake.wait("a pause", |world| world.voice.fell_silent?.elapsed().checked_sub(PAUSE).map(drop));
    }

    /// Waits until the bot fell silent, and returns what it said from the packet `from` on.
    #[track_caller]
    fn hear(&self, from: usize) -> String {
        let mut silent = 25;
        loop {
            let packets = self.fake.wait("the bot to speak", |world| {
                let heard = &world.voice.heard[from..];
                let is_over = heard.len() > silent && heard.last().is_some_and(|last| last.at.elapsed() > SILENCE);
                is_over.then(|| heard.iter().map(|packet| packet.opus.clone()).collect::<Vec<_>>())
            });
            let words = self.ears.recognise(&packets);
            if !words.is_empty() {
                return words;
            }
            // The line was opened, and the answer is still to come.
            silent = packets.len();
        }
    }

    fn spoken(&self) -> usize {
        self.fake.world(|world| world.voice.heard.len())
    }

    /// Waits until somebody said so many things, and returns the last.
    #[track_caller]
    fn said(&self, count: usize) -> String {
        self.until("somebody to be understood", || {
            let kept = self.engine.kept();
            (kept.said.len() >= count).then(|| kept.said[count - 1].0.text.as_str().to_owned())
        })
    }

    fn counts(&self) -> [u64; 3] {
        let status = self.runtime.block_on(self.channels().status(&self.chat(), &self.person(0))).expect("a call");
        [status.packets_heard, status.packets_decoded, status.packets_dropped]
    }
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

#[track_caller]
fn check(expected: &str, found: &str) {
    assert!(share(expected, found) >= 0.7, "{expected:?} was recognised as {found:?}");
}

#[test]
fn a_spoken_question_gets_a_spoken_answer() {
    in_own_process("a_spoken_question_gets_a_spoken_answer", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        // Without consent nothing is decoded.
        let sent = room.say(0, "When does the ferry leave?", Network::default());
        let [heard, decoded, dropped] = room.until("all packets", || {
            let counts = room.counts();
            (counts[2] == sent).then_some(counts)
        });
        assert_eq!((heard, decoded), (0, 0));
        room.press(0, "Hear me");
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
        let waited = room.fake.world(|world| Some(world.voice.heard.first()?.at - world.voice.fell_silent?));
        println!("end of speech to the first packet of the answer: {waited:?}");
        check("when does the last ferry leave today", &room.said(1));
        let [heard, decoded, after] = room.counts();
        assert!(heard > 50 && decoded == heard && after == dropped, "{heard} {decoded} {after}");
        let shown = room.fake.world(|world| world.bots_messages(room.channel).len());
        assert_eq!(shown, 1, "only the question about consent");
        assert!(room.engine.kept().cut.is_empty(), "all of it was heard");
    });
}

#[test]
fn the_other_encryption_and_a_bad_network_do_no_harm() {
    in_own_process("the_other_encryption_and_a_bad_network_do_no_harm", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::XChaCha20Poly1305], ANSWER);
        room.press(0, "Hear me");
        room.say(
            0,
            "When does the last ferry leave today?",
            Network { loss: 5, jitter_ms: 50, twice: 10, replayed: 5 },
        );
        check(&ANSWER.concat(), &room.hear(0));
        check("when does the last ferry leave today", &room.said(1));
    });
}

#[test]
fn what_was_said_before_somebody_came_is_not_for_them() {
    in_own_process("what_was_said_before_somebody_came_is_not_for_them", |root| {
        let room = Room::open(&root, &["Ann", "Bob"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.fake.world(|world| world.leave_voice(room.people[1]));
        room.say(0, "The password of the lighthouse is banana.", Network::default());
        room.said(1);
        let (first, alone) = room.engine.kept().said[0].clone();
        assert!(since(&alone) <= first.at, "Ann was there all the time");
        // Bob is not in the room, and reads nothing of it.
        let place = |person: usize| {
            room.runtime.block_on(room.discord.place(&first.chat, &room.person(person))).expect("an answer")
        };
        let scopes = |person: usize| {
            room.runtime.block_on(room.discord.readable_scopes(&room.person(person))).expect("an answer").private_chats
        };
        assert!(place(1).is_none() && scopes(1).iter().all(|(chat, _)| *chat != first.chat));
        assert!(
            scopes(0).iter().any(|(chat, since)| *chat == first.chat && since.is_some_and(|since| since <= first.at))
        );
        // He comes, and everything before is out of reach for the room.
        room.fake.world(|world| world.join_voice(room.channel, room.people[1]));
        let both = room.until("Bob to be seen", || place(1));
        assert!(since(&both) > first.at);
        assert_eq!(place(0).map(|place| since(&place) > first.at), Some(true));
        // When he leaves, Ann may be reminded of it again, and he may not.
        room.fake.world(|world| world.leave_voice(room.people[1]));
        room.until("Bob to be gone", || place(1).is_none().then_some(()));
        assert_eq!(place(0).map(|place| since(&place) <= first.at), Some(true));
        room.until("Bob to have missed something", || {
            scopes(1).iter().all(|(chat, _)| *chat != first.chat).then_some(())
        });
    });
}

#[test]
fn a_muted_bot_that_is_moved_stays_quiet() {
    in_own_process("a_muted_bot_that_is_moved_stays_quiet", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        assert_eq!(room.runtime.block_on(room.channels().mute(&room.chat(), &room.person(0), true)), Ok(()));
        room.fake.wait("the bot to show it", |world| world.voice.is_bot_muted.then_some(()));
        let cellar = room.fake.world(|world| {
            let guild = world.channels[&room.channel].guild.expect("a channel of a server");
            let cellar = world.voice_channel(guild, "cellar");
            world.join_voice(cellar, room.people[0]);
            world.drag_bot(cellar);
            cellar
        });
        room.fake.wait("the call there", |world| world.is_voice_ready(cellar).then_some(()));
        // Whoever decides to answer, it is not heard.
        let chat = ChatId::new(format!("discord:voice:{cellar}")).expect("an id");
        let answer = room.engine.answer_to(&MessageId::new("m").expect("an id"), &chat);
        room.runtime.block_on(room.discord.deliver(&answer)).expect("a call");
        assert_eq!(room.until("the refusal", || room.engine.kept().cut.first().cloned()), "");
        assert_eq!(room.spoken(), 0);
    });
}

#[test]
fn it_speaks_on_request_follows_a_new_server_and_leaves() {
    in_own_process("it_speaks_on_request_follows_a_new_server_and_leaves", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        let (chat, ann) = (room.chat(), room.person(0));
        let say = |text: &str| room.runtime.block_on(room.channels().say(&chat, &ann, text)).expect("a call");
        say("Good morning, and welcome to the garden.");
        check("good morning and welcome to the garden", &room.hear(0));
        room.fake.world(|world| world.change_voice_server());
        room.fake.wait("the new server", |world| {
            (world.voice.connected >= 2 && world.is_voice_ready(room.channel)).then_some(())
        });
        let spoken = room.spoken();
        say("Here I am again, in the same place.");
        check("here I am again in the same place", &room.hear(spoken));
        assert_eq!(room.runtime.block_on(room.channels().leave(&chat, &ann)), Ok(()));
        room.fake.wait("it to leave", |world| (!world.is_voice_ready(room.channel)).then_some(()));
        assert_eq!(room.runtime.block_on(room.channels().stop(&chat, &ann)), Err(VoiceError::NotThere));
    });
}

#[test]
fn when_nothing_can_be_decrypted_it_connects_anew() {
    in_own_process("when_nothing_can_be_decrypted_it_connects_anew", |root| {
        let room = Room::open(&root, &["Ann"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.fake.world(|world| world.voice.is_garbled = true);
        room.say(0, "Can you hear me?", Network::default());
        room.fake.wait("a new connection", |world| {
            (world.voice.connected >= 2 && world.is_voice_ready(room.channel)).then_some(())
        });
        room.fake.world(|world| world.voice.is_garbled = false);
        room.told("anew", 1);
        room.say(0, "When does the last ferry leave today?", Network::default());
        check(&ANSWER.concat(), &room.hear(0));
        let notices = room.fake.world(|world| {
            let messages = world.bots_messages(room.channel);
            messages.iter().filter(|message| message["content"].as_str().is_some_and(|it| it.contains("anew"))).count()
        });
        assert_eq!(notices, 1);
    });
}

#[test]
fn in_a_group_only_those_who_agreed_are_heard() {
    in_own_process("in_a_group_only_those_who_agreed_are_heard", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.press(1, "No");
        let [_, before, _] = room.counts();
        room.say(1, "I am talking about something private.", Network::default());
        assert_eq!(room.counts()[1], before, "nothing of it is decoded");
        room.say(0, "Robert, I was at the market yesterday.", Network::default());
        check("I was at the market yesterday", &room.said(1));
        let (inbound, _) = room.engine.kept().said[0].clone();
        assert!(!inbound.mentions_bot && inbound.person == room.person(0), "it was for Robert");
        assert_eq!(room.spoken(), 0, "nobody asked the bot");
    });
}

#[test]
fn a_slow_question_of_one_person_delays_nobody_else() {
    in_own_process("a_slow_question_of_one_person_delays_nobody_else", |root| {
        let room = Room::open(&root, &["Ann", "Robert"], vec![Mode::Aes256Gcm], ANSWER);
        room.press(0, "Hear me");
        room.press(1, "Hear me");
        // Discord takes long to show the question to somebody who comes, and the record to tell what Ann decided.
        room.fake.world(|world| {
            let path = format!("/channels/{}/messages", room.channel);
            world.order(Fault::limited("POST", &path, Scope::Shared, Duration::from_secs(120)));
            let late = world.user("Dot");
            world.invite(world.channels[&room.channel].guild.expect("a channel of a server"), late);
            world.join_voice(room.channel, late);
        });
        room.engine.kept().held = Some(room.person(0));
        room.say(0, "Robert, the first boat is green.", Network::default());
        room.pause();
        room.say(0, "Robert, the second boat is yellow.", Network::default());
        room.say(1, "Ann, I was at the market yesterday.", Network::default());
        check("I was at the market yesterday", &room.said(1));
        assert_eq!(room.engine.kept().said[0].0.person, room.person(1), "Ann's words wait");
        room.engine.release();
        check("the first boat is green", &room.said(2));
        check("the second boat is yellow", &room.said(3));
    });
}
