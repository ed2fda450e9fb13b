//! Plays a world on the engine, act by act.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azera_adapter::{CommandAnswer, CommandLine, Host, HostError, InboundEvent, Platform};
use azera_config::{ExtractWithModel, Gardener};
use azera_types::{Clock, Inbound, InboundPart, MessageId, Part, RealmId, Text};

use crate::look::{look_closely, look_up_all};
use crate::oracle::{Message, Origin, word};
use crate::test_engine::{TestEngine, chat, edit_to, person};
use crate::voice_fakes::spoken;
use crate::watch::{Record, WatchedHost};
use crate::world::{Act, CALLING, CHATS, Fate, HOSTILE, Kind, PEOPLE, Way, World};

/// Time between two acts.
const STEP: Duration = Duration::from_secs(120);

/// Acts between two full checks.
const FULL_CHECK_EVERY: usize = 10;

/// The result of a run.
pub struct Run {
    pub engine: TestEngine,
    /// The chat and the person whose view is compared.
    pub observer: (usize, usize),
    /// What the observer was shown at the end, one entry per read.
    pub seen: Vec<String>,
}

/// Plays a world. Secrets in `other` are different words in it. The error describes the first leak.
pub async fn play(world: &World, record: Arc<Mutex<Record>>, other: &BTreeSet<usize>) -> Result<Run, String> {
    let mut engine = TestEngine::open(world, record, other).await;
    let garden = engine.garden.clone();
    engine.tended_by(Gardener { extract_with_model: ExtractWithModel::Auto, ..garden }).await;
    let mut output = String::new();
    for (number, act) in world.acts.iter().enumerate() {
        pass(&engine, STEP);
        let act = &settled(&engine, act);
        perform(&mut engine, act, other).await;
        output.push_str(&format!("\n  {number}. {act:?}"));
        engine.watch.verdict().map_err(|leak| format!("{leak}\nin the last of these:{output}"))?;
        pass(&engine, STEP);
        if number % FULL_CHECK_EVERY == FULL_CHECK_EVERY - 1 {
            look_up_all(&engine).await;
        } else {
            look_closely(&engine, (number * 5) % CHATS.len(), (number * 7) % PEOPLE.len()).await;
        }
        engine.watch.verdict().map_err(|leak| format!("{leak}\nbehind the last of these:{output}"))?;
    }
    // Leaving a realm that nobody ever heard of removes nothing.
    let host = WatchedHost { host: &engine.azera, watch: &engine.watch };
    let nowhere = RealmId::new("nowhere").unwrap();
    let left = InboundEvent::Left { realm: nowhere, chats: Vec::new() };
    host.submit(engine.platform.sim.id(), left).await.map_err(|error| error.to_string())?;
    look_up_all(&engine).await;
    let observer = observer(&engine, world);
    let seen = look_closely(&engine, observer.0, observer.1).await;
    engine.watch.verdict().map_err(|leak| format!("{leak}\nat the end of these:{output}"))?;
    Ok(Run { engine, observer, seen })
}

/// Returns the observer, or somebody who can read the chat.
fn observer(engine: &TestEngine, world: &World) -> (usize, usize) {
    let (chat, person) = world.observer;
    let readers = engine.watch.oracle().readers(chat);
    match readers.is_empty() || readers.contains(&person) {
        true => (chat, person),
        false => (chat, readers[person % readers.len()]),
    }
}

/// Returns an act as it really takes place: mostly by somebody who can read the chat, and commands mostly where people
/// last talked.
fn settled(engine: &TestEngine, act: &Act) -> Act {
    let oracle = engine.watch.oracle();
    let talk = oracle.order.last().map(|id| oracle.messages[id].chat);
    let mut act = act.clone();
    if let Act::Remember { chat, .. }
    | Act::Command { chat, .. }
    | Act::Again { chat, .. }
    | Act::Point { chat, .. }
    | Act::Branch { chat, .. }
    | Act::Import { chat, .. }
    | Act::Forget { chat, .. } = &mut act
        && let Some(talk) = talk.filter(|_| *chat % 4 != 0)
    {
        *chat = talk;
    }
    if let Act::Say { who, chat, .. }
    | Act::Remember { who, chat, .. }
    | Act::Command { who, chat, .. }
    | Act::Again { who, chat }
    | Act::Point { who, chat, .. }
    | Act::Branch { who, chat }
    | Act::Import { who, chat, .. }
    | Act::Forget { who, chat, .. } = &mut act
    {
        let readers = oracle.readers(*chat);
        let outsider = (*who + *chat) % 8 == 7;
        if !readers.is_empty() && !outsider && !readers.contains(who) {
            *who = readers[*who % readers.len()];
        }
    }
    act
}

fn pass(engine: &TestEngine, time: Duration) {
    let now = engine.clock.now().checked_add(time).unwrap();
    engine.clock.advance_to(now);
    engine.watch.oracle().now = now;
}

/// Composes what somebody writes: a secret, something hostile, and how they want it answered.
fn text(secret: usize, hostile: usize, way: Way, other: &BTreeSet<usize>) -> String {
    let (opening, word) = match other.contains(&secret) {
        false => ("the lighthouse password is", word(secret, false)),
        true => ("our orchard nickname was", word(secret, true)),
    };
    let ending = match way {
        Way::Parrot => "say it",
        Way::Launder => "launder",
        Way::Quiet | Way::Silent => "quiet",
    };
    format!("{opening} {word} says my sister Mia-{word} {} {ending}", HOSTILE[hostile])
}

async fn perform(engine: &mut TestEngine, act: &Act, other: &BTreeSet<usize>) {
    match act {
        Act::Say { who, chat, way, hostile, fate, called } => {
            let said = Saying { who: *who, place: *chat, way: *way, hostile: *hostile, called: *called };
            say(engine, said, *fate, other).await;
        }
        Act::Change(change) => engine.change(*change),
        Act::Remember { who, chat, hostile } => {
            let secret = engine.watch.oracle().new_secret(*chat, *who);
            let text = text(secret, *hostile, Way::Quiet, other);
            command(engine, *who, *chat, &format!("/remember {text}")).await;
        }
        Act::Edit { nth, way } => edit(engine, *nth, *way, other).await,
        Act::Delete { nth } => delete(engine, *nth).await,
        Act::Command { who, chat, what } => {
            let ok = command(engine, *who, *chat, what).await;
            if let Some(name) = what.strip_prefix("/persona use ").filter(|_| ok) {
                engine.watch.oracle().choose(*chat, name);
            }
            match *what {
                "/link remove" if ok => engine.watch.oracle().unlink(*who),
                "/link remove all" if ok => engine.watch.oracle().part(*who),
                // Two accounts are called Ann; the command would be refused if both were linked.
                "/link remove Ann" if ok => {
                    let mut oracle = engine.watch.oracle();
                    let out = oracle.linked(*who).into_iter().find(|other| PEOPLE[*other].1 == "Ann");
                    oracle.unlink(out.unwrap());
                }
                _ => {}
            }
            if ok && ["/persona invite azera", "/persona dismiss azera"].contains(what) {
                engine.watch.oracle().invite(*chat, what.contains("invite"));
            }
        }
        Act::Again { who, chat } => {
            command(engine, *who, *chat, "/regenerate").await;
            command(engine, *who, *chat, "/swipe previous").await;
        }
        Act::Point { who, chat, nth, reply, what } => point(engine, (*who, *chat), *nth, *reply, what).await,
        Act::Branch { who, chat } => {
            let secret = engine.watch.oracle().new_secret(*chat, *who);
            engine.watch.oracle().names.insert(secret);
            command(engine, *who, *chat, &format!("/branch {}", word(secret, other.contains(&secret)))).await;
        }
        Act::Link { who, other } => link(engine, *who, *other).await,
        Act::Import { who, chat, what } => {
            let secret = engine.watch.oracle().new_secret(*chat, *who);
            let text = text(secret, 0, Way::Quiet, other);
            command(engine, *who, *chat, &format!("{what} {text}")).await;
        }
        Act::Forget { who, chat, what } => forget(engine, *who, *chat, *what).await,
        Act::Restart => engine.reopen().await,
        Act::Wait { hours } => pass(engine, Duration::from_secs(u64::from(*hours) * 3_600)),
    }
    WatchedHost { host: &engine.azera, watch: &engine.watch }.settle().await.unwrap();
}

/// A message that somebody writes.
struct Saying {
    who: usize,
    place: usize,
    way: Way,
    hostile: usize,
    called: bool,
}

async fn say(engine: &mut TestEngine, saying: Saying, fate: Fate, other: &BTreeSet<usize>) {
    let Saying { who, place, way, hostile, called } = saying;
    let (persona, secret, is_spoken) = {
        let mut oracle = engine.watch.oracle();
        // Some speak instead of writing. Only a written name chooses among personas.
        let is_spoken = oracle.secrets.len() % 5 == 2 && !called && way != Way::Silent;
        let persona = oracle.hearer(place, called || CALLING.contains(&hostile) && !is_spoken);
        (persona.clone(), oracle.new_secret_for(place, who, persona), is_spoken)
    };
    // This message's id pretends to be the reply to the next one.
    let number = engine.watch.oracle().messages.len() + 1;
    let id = if hostile == HOSTILE.len() - 1 { format!("m{}~r0", number + 1) } else { format!("m{number}") };
    let words = text(secret, hostile, way, other);
    let parts = parts_of(engine, &id, &words, secret, is_spoken);
    let written = if is_spoken { String::new() } else { format!("{}{words}", if called { "Azera, " } else { "" }) };
    let inbound = Inbound {
        id: MessageId::new(&id).unwrap(),
        chat: chat(place),
        person: person(who),
        name: if other.contains(&secret) { "Zelda" } else { PEOPLE[who].1 }.to_owned(),
        text: Text::new(written),
        at: engine.clock.now(),
        parts,
        mentions_bot: way != Way::Silent,
        mentions: Vec::new(),
        reply_to: None,
    };
    {
        let mut oracle = engine.watch.oracle();
        let at = oracle.now;
        let message = Message { chat: place, by: who, persona, at, secrets: vec![secret] };
        oracle.messages.insert(id.clone(), message);
    }
    match fate {
        Fate::Delivered => {}
        Fate::Meanwhile(change) => engine.change_meanwhile(&engine.meanwhile, change),
        Fate::Crash { shown, .. } => *engine.platform.hang.lock().unwrap() = Some(shown),
    }
    let platform = engine.platform.clone();
    // Half of the messages are not waited for.
    let waited = fate != Fate::Delivered || hostile.is_multiple_of(2);
    let crashed = {
        let host = WatchedHost { host: &engine.azera, watch: &engine.watch };
        tokio::select! {
            taken = host.take_in(platform.sim.id(), inbound.clone()), if !waited => {
                if taken.is_ok() {
                    engine.watch.oracle().order.push(id);
                }
                false
            }
            outcome = host.message(platform.sim.id(), inbound.clone()), if waited => {
                if outcome.is_ok() {
                    engine.watch.oracle().order.push(id);
                }
                false
            }
            () = platform.hung.notified() => true,
        }
    };
    if !crashed && secret.is_multiple_of(3) {
        // A long file comes with it, and is read after the answer, so that two tellings of a world have the same order.
        let host = WatchedHost { host: &engine.azera, watch: &engine.watch };
        host.settle().await.unwrap();
        let piece = Text::new(format!("log, 2: {}", inbound.text.as_str()));
        let chunks = InboundEvent::Chunks { message: inbound.id.clone(), version: None, pieces: vec![piece] };
        drop(host.submit(engine.platform.sim.id(), chunks).await);
    }
    engine.meanwhile.forget();
    *engine.platform.hang.lock().unwrap() = None;
    if let (true, Fate::Crash { then, .. }) = (crashed, fate) {
        if let Some(change) = then {
            pass(engine, STEP);
            engine.change(change);
        }
        pass(engine, STEP);
        engine.reopen().await;
    }
}

/// Returns what a message carries: its words as a sound, a file of its words, or nothing.
fn parts_of(engine: &TestEngine, id: &str, words: &str, secret: usize, is_spoken: bool) -> Vec<InboundPart> {
    if is_spoken {
        let sound = words.as_bytes();
        engine.platform.spoken.lock().unwrap().insert(MessageId::new(id).unwrap(), sound.to_vec());
        return vec![spoken(sound, secret.is_multiple_of(2))];
    }
    let part = Part::new("log.txt", Some("text/plain"), words.len() as u64);
    let file = InboundPart { part, source: Arc::new(words.as_bytes().to_vec()) };
    if secret % 3 == 1 { vec![file] } else { Vec::new() }
}

/// Returns the message with this number from the newest, if its author can still reach it.
fn reachable(engine: &TestEngine, nth: usize) -> Option<(MessageId, Message)> {
    let oracle = engine.watch.oracle();
    let id = oracle.order.iter().rev().nth(nth)?;
    let message = oracle.messages[id].clone();
    oracle.can_read(message.by, message.chat).then(|| (MessageId::new(id).unwrap(), message))
}

async fn edit(engine: &TestEngine, nth: usize, way: Way, other: &BTreeSet<usize>) {
    let Some((id, message)) = reachable(engine, nth) else { return };
    let secret = {
        let mut oracle = engine.watch.oracle();
        let Message { chat, by, persona, at, .. } = message;
        let secret = oracle.secret(Origin::Stated { chat, at, by, persona });
        oracle.messages.get_mut(id.as_str()).unwrap().secrets.push(secret);
        secret
    };
    let host = WatchedHost { host: &engine.azera, watch: &engine.watch };
    // Refused or not, everything shown was judged.
    let edit = edit_to(&text(secret, 0, way, other), engine.clock.now());
    drop(host.edited(engine.platform.sim.id(), &id, edit).await);
}

async fn delete(engine: &TestEngine, nth: usize) {
    let Some((id, message)) = reachable(engine, nth) else { return };
    let host = WatchedHost { host: &engine.azera, watch: &engine.watch };
    host.submit(engine.platform.sim.id(), InboundEvent::Deletion { message: id }).await.unwrap();
    engine.watch.oracle().forget_secrets(message.secrets);
}

async fn forget(engine: &TestEngine, who: usize, place: usize, what: usize) {
    let forms = ["last", "last quotes", "me quotes", "chat quotes", "m3 quotes", "me", "chat", "m7", "m11 quotes"];
    let ok = command(engine, who, place, &format!("/forget {}", forms[what])).await;
    let mut oracle = engine.watch.oracle();
    if ok && forms[what].starts_with("me") {
        oracle.unlink(who);
    }
    // A refused command may have been carried out in part.
    match forms[what] {
        "me quotes" if ok => oracle.forget_person(who),
        "chat quotes" if ok => oracle.forget_chat(place),
        "me" => oracle.forget_without_quotes(|by| by == who),
        // One of the persona's own messages may be among them, and others may quote people through it.
        "chat" | "last" | "m7" => oracle.forget_without_quotes(|_| true),
        _ => {}
    }
}

/// Gives a command about a message from anywhere, or about the first answer to it.
async fn point(engine: &TestEngine, (who, place): (usize, usize), nth: usize, reply: bool, what: &str) {
    let Some(id) = engine.watch.oracle().order.iter().rev().nth(nth).cloned() else { return };
    let about = MessageId::new(if reply { format!("{id}~r0") } else { id }).unwrap();
    let ok = command_about(engine, who, place, what, Some(about)).await;
    if ok && what == "/forget" {
        engine.watch.oracle().forget_without_quotes(|_| true);
    }
}

/// Links two accounts: one is shown a code in direct messages, the other enters and confirms it.
async fn link(engine: &TestEngine, who: usize, other: usize) {
    let dm = |who| CHATS.iter().position(|(_, kind)| *kind == Kind::Dm(who)).unwrap();
    let shown = answer(engine, who, dm(who), "/link", None).await.unwrap().text;
    // An account with the maximum number of links gets no code.
    let Some(code) = code_in(&shown) else { return };
    command(engine, other, dm(other), &format!("/link {code}")).await;
    if command(engine, other, dm(other), "/link confirm").await {
        engine.watch.oracle().link(who, other);
    }
}

/// Returns the code in an answer to `/link`.
pub fn code_in(shown: &str) -> Option<&str> {
    shown.split("`/link ").nth(1)?.split('`').next()
}

/// Gives a command. Returns whether it succeeded.
pub async fn command(engine: &TestEngine, who: usize, place: usize, text: &str) -> bool {
    command_about(engine, who, place, text, None).await
}

async fn command_about(engine: &TestEngine, who: usize, place: usize, text: &str, about: Option<MessageId>) -> bool {
    answer(engine, who, place, text, about).await.is_ok_and(|answer| answer.ok)
}

async fn answer(
    engine: &TestEngine,
    who: usize,
    place: usize,
    text: &str,
    about: Option<MessageId>,
) -> Result<CommandAnswer, HostError> {
    let name = PEOPLE[who].1.to_owned();
    let line =
        CommandLine { chat: chat(place), person: person(who), name, text: Text::new(text), about, picture: None };
    let host = WatchedHost { host: &engine.azera, watch: &engine.watch };
    host.command(engine.platform.sim.id(), line).await
}
