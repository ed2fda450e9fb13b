//! The adapter between a fake Discord and a minimal engine. `bot/app` tests the whole product in the same way.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod broken_off;
mod commands;
mod files;
mod greeting;
mod host;
mod posts;
mod servers;
mod webhooks;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use azera_adapter::{Access, Avatars, Platform};
use azera_adapter_discord::{Discord, Limits, Settings};
use azera_fake_discord::{BOT, Bits, FakeDiscord, Fault, Overwrite, Scope, World};
use azera_types::{ChatId, PersonId, PlaceKind, SystemClock};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::host::{ACTIONS, COMMANDS, Core, LATE, Record};

/// Limit for calls to the engine.
const PATIENCE: Duration = Duration::from_secs(40);

/// A running bot.
struct Running {
    discord: Arc<Discord>,
    task: JoinHandle<()>,
}

fn record() -> Arc<Record> {
    record_of("Azera")
}

/// Returns an engine's data with this persona.
fn record_of(persona: &str) -> Arc<Record> {
    Arc::new(Record {
        persona: persona.to_owned(),
        answered: Mutex::default(),
        heard: Mutex::default(),
        begin: watch::channel(true).0,
        go_on: watch::channel(true).0,
        brought: watch::channel(0).0,
        left: watch::channel(0).0,
        late: Mutex::default(),
        forget: watch::channel(true).0,
    })
}

fn settings(fake: &FakeDiscord, folder: &Path, token: &str) -> Settings {
    let root = folder.join("root.pem");
    std::fs::write(&root, &fake.root_certificate).expect("a file");
    Settings {
        token: token.to_owned(),
        operators: Vec::new(),
        catch_up_hours: 24,
        limits: Limits { messages_per_person: 30, messages_per_server: 300 },
        keep_removed_days: 30,
        api_address: Some(fake.api),
        api_root_certificate: Some(root),
    }
}

async fn start(fake: &FakeDiscord, folder: &Path, record: &Arc<Record>) -> Running {
    start_with(fake, folder, record, None).await
}

async fn start_with(
    fake: &FakeDiscord,
    folder: &Path,
    record: &Arc<Record>,
    avatars: Option<Arc<dyn Avatars>>,
) -> Running {
    start_as(settings(fake, folder, &fake.token), folder, record, avatars).await
}

async fn start_as(
    settings: Settings,
    folder: &Path,
    record: &Arc<Record>,
    avatars: Option<Arc<dyn Avatars>>,
) -> Running {
    let discord = Arc::new(Discord::new(settings, folder, Arc::new(SystemClock), COMMANDS, ACTIONS).expect("settings"));
    if let Some(avatars) = avatars {
        discord.set_avatars(avatars);
    }
    discord.begin().await.expect("a connection");
    let core = Arc::new_cyclic(|myself| Core {
        record: record.clone(),
        taken: Mutex::default(),
        discord: OnceLock::from(discord.clone()),
        myself: myself.clone(),
    });
    let listening = discord.clone();
    let task = tokio::spawn(async move {
        listening.listen(core).await.expect("a connection");
    });
    Running { discord, task }
}

impl Running {
    async fn stop(self) {
        self.task.abort();
        self.discord.leave().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn fake() -> FakeDiscord {
    let description = std::env::var_os("AZERA_DISCORD_OPENAPI").map(std::path::PathBuf::from);
    FakeDiscord::start(description.filter(|path| path.exists()).as_deref())
}

fn square(fake: &FakeDiscord) -> (u64, u64, u64) {
    fake.world(|world| {
        let ann = world.user("Ann");
        let guild = world.guild(ann, &[]);
        (guild, world.channel(guild, "square", Vec::new()), ann)
    })
}

fn texts(world: &World, channel: u64, requests: u64) -> Vec<String> {
    let answers = world.answers(channel, requests);
    answers.iter().map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[track_caller]
fn answered(fake: &FakeDiscord, channel: u64, requests: u64, with: &str) {
    fake.wait(&format!("{with:?} in answer to {requests}"), |world| {
        texts(world, channel, requests).contains(&with.to_owned()).then_some(())
    });
}

const WHOLE: &str = "Half and half.";

#[track_caller]
fn once_each(fake: &FakeDiscord, channel: u64, requests: &[u64]) {
    fake.world(|world| {
        for requests in requests {
            assert_eq!(texts(world, channel, *requests), [WHOLE], "answers to {requests}");
        }
        assert_eq!(world.bots_messages(channel).len(), requests.len());
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bot_talks_in_channels_threads_and_dms() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let (thread, dm) = fake.world(|world| (world.thread(square, "a thread", None), world.dm(ann)));
    let bot = start(&fake, folder.path(), &record).await;
    for channel in [square, thread, dm] {
        let requests = fake.world(|world| {
            world.say(channel, ann, "nothing for anybody else");
            world.say(channel, ann, &format!("<@{BOT}> hello"))
        });
        answered(&fake, channel, requests, WHOLE);
    }
    bot.stop().await;
    fake.world(|world| {
        assert_eq!([square, thread, dm].map(|channel| world.bots_messages(channel).len()), [1, 1, 2]);
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_engine_cannot_receive_now_is_submitted_again() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let say = || fake.world(|world| world.say(square, ann, &format!("Azera, am I {LATE}?")));
    let bot = start(&fake, folder.path(), &record).await;
    let live = say();
    answered(&fake, square, live, WHOLE);
    bot.stop().await;
    let missed = say();
    let bot = start(&fake, folder.path(), &record).await;
    answered(&fake, square, missed, WHOLE);
    bot.stop().await;
    assert_eq!(record.late.lock().unwrap().len(), 2, "each failed once");
    once_each(&fake, square, &[live, missed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typing_indicator_shows_until_text_is_visible() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    record.begin.send_replace(false);
    let requests = fake.world(|world| world.say(square, ann, &format!("<@{BOT}> hello")));
    fake.wait("the sign", |world| world.typing.contains(&square).then_some(()));
    record.begin.send_replace(true);
    answered(&fake, square, requests, WHOLE);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_messages_are_answered_once_and_older_ones_are_not() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let dm = fake.world(|world| world.dm(ann));
    let before = fake.world(|world| world.say(square, ann, "Azera, hello?"));
    let bot = start(&fake, folder.path(), &record).await;
    let mut requests = vec![fake.world(|world| world.say(square, ann, "Azera, one"))];
    let mut direct = vec![fake.world(|world| world.say(dm, ann, "one"))];
    answered(&fake, square, requests[0], WHOLE);
    answered(&fake, dm, direct[0], WHOLE);
    bot.stop().await;
    fake.world(|world| {
        requests.extend((0..3).map(|n| world.say(square, ann, &format!("Azera, missed {n}"))));
        direct.push(world.say(dm, ann, "missed"));
    });
    let bot = start(&fake, folder.path(), &record).await;
    for id in &requests {
        answered(&fake, square, *id, WHOLE);
    }
    answered(&fake, dm, direct[1], WHOLE);
    bot.stop().await;
    fake.world(|world| assert!(texts(world, square, before).is_empty()));
    once_each(&fake, square, &requests);
    once_each(&fake, dm, &direct);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_reply_is_finished() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    record.go_on.send_replace(false);
    let requests = fake.world(|world| world.say(square, ann, "Azera, tell me"));
    answered(&fake, square, requests, "Half");
    bot.stop().await;
    // The interrupted reply belongs to a process that is gone; another engine answers.
    let again = self::record();
    let bot = start(&fake, folder.path(), &again).await;
    answered(&fake, square, requests, WHOLE);
    bot.stop().await;
    once_each(&fake, square, &[requests]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_the_gateway_breaks() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let say = |text: &str| fake.world(|world| world.say(square, ann, &format!("Azera, {text}")));
    fake.world(|world| world.tell_twice(2));
    let mut requests = vec![say("twice")];
    answered(&fake, square, requests[0], WHOLE);
    fake.world(World::tell_out_of_order);
    requests.extend([say("behind"), say("before")]);
    type Break = fn(&mut World);
    let breaks: [(Break, &str); 3] = [
        (|world| world.drop_sockets(), "dropped"),
        (|world| world.ask_to_reconnect(), "op 7"),
        (|world| world.close(4000), "closed"),
    ];
    for (resumed, (breaks, how)) in breaks.into_iter().enumerate() {
        fake.world(breaks);
        requests.push(say(how));
        fake.wait(how, |world| (world.resumed > resumed).then_some(()));
    }
    // The session is over, so this message is in the history only.
    fake.world(World::invalidate);
    requests.push(say("op 9"));
    for id in &requests {
        answered(&fake, square, *id, WHOLE);
    }
    bot.stop().await;
    once_each(&fake, square, &requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_the_api_fails() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let path = format!("/channels/{square}/messages");
    let wait = Duration::from_millis(200);
    let faults = [
        Fault::limited("POST", &path, Scope::User, wait),
        Fault::limited("POST", &path, Scope::Shared, wait),
        Fault::limited("POST", &path, Scope::Global, wait),
        Fault::fails("POST", &path, 500).times(3),
        Fault::done_but_fails("POST", &path, 500).times(2),
        Fault::fails("PATCH", &path, 502).times(2),
        Fault::done_but_fails("PATCH", &path, 500),
    ];
    let mut requests = Vec::new();
    for fault in faults {
        let id = fake.world(|world| {
            world.order(fault);
            world.say(square, ann, "Azera, and now?")
        });
        answered(&fake, square, id, WHOLE);
        requests.push(id);
    }
    bot.stop().await;
    once_each(&fake, square, &requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_has_the_audience_of_its_current_permissions() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (guild, open, ann) = square(&fake);
    let (bob, stranger) = fake.world(|world| (world.user("Bob"), world.user("Stranger")));
    let (den, muted, dm) = fake.world(|world| {
        world.guilds.get_mut(&guild).unwrap().members.insert(bob, Default::default());
        let den = world.private_channel(guild, "den", &[bob]);
        let role = world.role(guild, Bits::default());
        let excluded = Overwrite { id: role, user: false, allow: Bits::default(), deny: Bits::VIEW };
        (den, world.channel(guild, "not for all", vec![excluded]), world.dm(ann))
    });
    let bot = start(&fake, folder.path(), &record).await;
    let discord = bot.discord.clone();
    let kind = async |channel: u64, who: u64| {
        let (chat, who) = (format!("discord:{channel}"), format!("discord:{who}"));
        let place = discord.place(&ChatId::new(chat).unwrap(), &PersonId::new(who).unwrap()).await.unwrap();
        match place.map(|place| place.kind) {
            None => "none",
            Some(PlaceKind::Public(_)) => "public",
            Some(PlaceKind::Private { .. }) => "private",
            Some(PlaceKind::Dm(_)) => "dm",
        }
    };
    assert_eq!(kind(open, bob).await, "public");
    assert_eq!(kind(open, stranger).await, "none");
    assert_eq!(kind(den, bob).await, "private");
    assert_eq!(kind(muted, bob).await, "private", "a member is excluded from the channel");
    assert_eq!(kind(dm, ann).await, "dm");
    assert_eq!(kind(dm, bob).await, "none");
    let readable_scopes = async |who: u64| {
        let reach = discord.readable_scopes(&PersonId::new(format!("discord:{who}")).unwrap()).await.unwrap();
        let mut chats: Vec<String> = reach.private_chats.iter().map(|(chat, _)| chat.to_string()).collect();
        chats.sort();
        (reach.realms.len(), chats)
    };
    let all = |channels: &[u64]| channels.iter().map(|id| format!("discord:{id}")).collect::<Vec<_>>();
    assert_eq!(readable_scopes(bob).await, (1, all(&[den, muted])));
    assert_eq!(readable_scopes(stranger).await, (0, Vec::new()));
    // A change counts once Discord sends it; an answer to a later message shows that it was sent.
    let change = |act: &dyn Fn(&mut World)| {
        let requests = fake.world(|world| {
            act(world);
            world.say(open, ann, "Azera?")
        });
        answered(&fake, open, requests, WHOLE);
    };
    change(&|world| {
        let hidden = Overwrite { id: guild, user: false, allow: Bits::default(), deny: Bits::VIEW };
        world.set_overwrites(den, vec![hidden]);
    });
    assert_eq!(kind(den, bob).await, "none");
    let admin = fake.world(|world| world.role(guild, Bits::ADMINISTRATOR));
    change(&|world| world.set_roles(guild, bob, vec![admin]));
    assert_eq!(kind(den, bob).await, "private");
    let chat = ChatId::new(format!("discord:{den}")).unwrap();
    let person = PersonId::new(format!("discord:{bob}")).unwrap();
    assert_eq!(discord.access(&chat, &person).await.unwrap(), Access::Admin);
    change(&|world| world.set_roles(guild, bob, Vec::new()));
    assert_eq!(kind(den, bob).await, "none");
    assert_eq!(discord.access(&chat, &person).await.unwrap(), Access::Member);
    change(&|world| world.leave(guild, bob));
    assert_eq!(readable_scopes(bob).await, (0, Vec::new()));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_words_appear_while_the_reply_is_written() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    for n in 0..20 {
        record.go_on.send_replace(false);
        // A different channel each time: a person's limit is per minute, and no reply waits for another.
        let dm = fake.world(|world| {
            let person = world.user(&format!("Person {n}"));
            world.dm(person)
        });
        let person = fake.world(|world| world.channels[&dm].people[0]);
        let requests = fake.world(|world| world.say(dm, person, "hello"));
        let first = fake.wait("first words", |world| texts(world, dm, requests).first().cloned());
        assert!(first.starts_with("Half") && first != WHOLE, "{first}");
        record.go_on.send_replace(true);
        answered(&fake, dm, requests, WHOLE);
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_token_is_reported_and_not_shown() {
    let (fake, folder) = (fake(), tempfile::tempdir().unwrap());
    let settings = settings(&fake, folder.path(), "a-wrong-secret");
    let discord = Discord::new(settings, folder.path(), Arc::new(SystemClock), COMMANDS, ACTIONS).unwrap();
    let error = discord.begin().await.unwrap_err();
    assert!(!error.is_transient());
    assert!(error.to_string().contains("AZERA__DISCORD__TOKEN"), "{error}");
    assert!(!format!("{error:?}{error}").contains("a-wrong-secret"));
}
