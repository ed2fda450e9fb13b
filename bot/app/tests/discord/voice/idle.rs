//! A call in which nobody speaks has no model of speech in memory. With `AZERA_SOAK_IDLE_SECONDS` of 60 or more it is also
//! measured for so long what it costs: the processor and the memory of the whole process, in the call and before.

use std::sync::mpsc::channel;
use std::time::Duration;

use azera_fake_discord::Network;

use super::people::{Ears, Voice};
use super::{ANSWER, Room, fake, model, sounds};
use crate::bot::Bot;

/// People in the channel. Half of them agree to be heard.
const PEOPLE: usize = 20;

/// The most memory that the call may take, in KiB.
const MOST_KIB: u64 = 30 * 1024;

/// The most of one core that the call may take, in percent.
const MOST_PERCENT: f64 = 1.0;

/// The shortest time over which is measured. The kernel counts hundredths of a second.
const JUDGED: Duration = Duration::from_secs(60);

/// What the log says when a model comes into memory, and when it goes.
const LOADED: &str = "a model of speech is loaded";
const UNLOADED: &str = "a model of speech is unloaded";

/// How long a model may take to go; it is unloaded after 60 to 75 seconds.
const GOES: Duration = Duration::from_secs(180);

/// Ticks of the kernel's clock in a second.
const TICKS: f64 = 100.0;

/// Returns how long is measured; `None` if it is not. `make soak` asks for two minutes.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn measured() -> Option<Duration> {
    let seconds = std::env::var("AZERA_SOAK_IDLE_SECONDS").ok().and_then(|text| text.parse().ok());
    seconds.map(Duration::from_secs).filter(|time| *time >= JUDGED)
}

/// What a process took.
struct Taken {
    /// Share of one core, in percent.
    percent: f64,
    /// All memory, and what of it is no file, in KiB.
    all: u64,
    anonymous: u64,
}

/// Returns the ticks that a process ran, all threads together.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process runs");
    // The name of the process may hold spaces. After it come the state and ten more, and then the times.
    let rest = stat.rsplit(") ").next().expect("a name");
    let times: Vec<u64> = rest.split(' ').skip(11).take(2).map(|time| time.parse().expect("a number")).collect();
    times.iter().sum()
}

fn memory(process: u32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("a line of it");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Watches a process for some time.
fn watch(what: &str, process: u32, time: Duration) -> Taken {
    let before = ticks(process);
    let (_silent, never) = channel::<()>();
    never.recv_timeout(time).ok();
    let percent = (ticks(process) - before) as f64 / TICKS / time.as_secs_f64() * 100.0;
    let taken = Taken { percent, all: memory(process, "VmRSS"), anonymous: memory(process, "RssAnon") };
    println!(
        "{what}, {time:?}: {:.2} % of a core, {} MB, of which {} MB are no file",
        taken.percent,
        taken.all / 1024,
        taken.anonymous / 1024
    );
    taken
}

#[test]
fn a_call_with_twenty_silent_people_costs_little() {
    let fake = fake();
    let (model, _) = model([ANSWER, ""]);
    let bot = Bot::new(&fake, Some(&model)).with_even_voice().with("AZERA__VOICE__UNLOAD_AFTER_S", "60");
    let names: Vec<String> = (0..PEOPLE).map(|number| format!("Person {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let room = Room { model: Some(model), ..Room::outside(fake, bot, &names) };
    // The text bot answered once, so that it has all that it needs in memory.
    let question = room.fake.world(|world| world.say(room.square, room.people[0], "Azera, when does the train leave?"));
    crate::answered(&room.fake, room.square, question, ANSWER);
    (0..PEOPLE).for_each(|person| room.enter(person));
    let process = room.bot.process_id();
    let text_bot = measured().map(|time| watch("the text bot", process, time));
    room.join();
    (0..PEOPLE / 2).for_each(|person| drop(room.press(person, "Hear me")));
    if let (Some(time), Some(text_bot)) = (measured(), &text_bot) {
        let idle = watch("in the call, before anybody spoke", process, time);
        let grown = idle.all.saturating_sub(text_bot.all);
        let percent = idle.percent - text_bot.percent;
        println!("the call takes {percent:.2} % of a core and {} MB", grown / 1024);
        assert!(grown <= MOST_KIB, "{grown} KiB");
        assert!(percent <= MOST_PERCENT, "{percent} %");
    }
    assert!(!room.bot.log().contains(LOADED), "nobody spoke");
    // Somebody speaks, and the models come into memory and go.
    (1..PEOPLE).for_each(|person| room.fake.world(|world| world.leave_voice(room.people[person])));
    let (voice, ears) = (Voice::open(), Ears::open());
    room.say(&voice, 0, "Azera, when does the last train leave today?", Network::default());
    room.fake.wait("the bot to speak", |world| (sounds(&world.voice.heard).count() > 60).then_some(()));
    let talking = memory(process, "VmRSS");
    room.hear(&ears, 0, ANSWER);
    room.print_latency(0);
    assert_eq!(room.bot.log().matches(LOADED).count(), 2, "one that hears and one that speaks");
    room.bot.logs_times(UNLOADED, 2, GOES);
    if let (Some(time), Some(text_bot)) = (measured(), &text_bot) {
        let after = watch("in the call, after the models were unloaded", process, time);
        println!("while it talked: {} MB more than the text bot", talking.saturating_sub(text_bot.all) / 1024);
        println!("afterwards: {} MB more than the text bot", after.all.saturating_sub(text_bot.all) / 1024);
        assert!(after.all < talking, "{} of {talking} KiB are left", after.all);
    }
    // It hears again.
    let spoken = room.spoken();
    room.say(&voice, 0, "When does the last train leave tomorrow?", Network::default());
    room.hear(&ears, spoken, ANSWER);
    assert_eq!(room.bot.log().matches(LOADED).count(), 4);
    room.print_latency(spoken);
}
