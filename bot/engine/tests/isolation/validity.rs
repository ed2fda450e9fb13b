//! What somebody said instead of an older statement, and what they asked to keep: both are known at once, where they may
//! be shown.

use std::sync::Mutex;

use azera_adapter::{Holding, Host, InboundEvent, MemoryReader, Platform, Reading, Recorded, Removed};
use azera_memory::{Forget, Salience, Superseded};
use azera_types::{Clock, MessageId, Timestamp};

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, GUILD, LOBBY, Scene};
use crate::look::look_up_all;
use crate::passages::watching_model;
use crate::test_engine::{chat, person};
use crate::world::Change;

const OLD: &str = "my dentist appointment is on tuesday";
const NEW: &str = "the practice moved me to friday morning";

/// Notes that one message replaced another, as extraction of older versions did.
fn replace(scene: &Scene, old: &MessageId, new: &MessageId) {
    replace_worded(scene, old, new, None);
}

/// Notes the same, as extraction does, with the time of the newer text.
fn replace_worded(scene: &Scene, old: &MessageId, new: &MessageId, worded_at: Option<Timestamp>) {
    let superseded =
        Some(Superseded { by: new.clone(), at: scene.engine.clock.now(), worded_at, same: false, undone: false });
    let (kind, to) = ("plan".to_owned(), OLD.len());
    let salience = Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded, used: None };
    assert!(scene.engine.memory.memories().mark(old, &salience).unwrap());
}

/// Returns the prompt of the reply to a question.
async fn prompt_of(
    scene: &mut Scene,
    prompts: &Mutex<Vec<String>>,
    who: usize,
    place: usize,
    question: &str,
) -> String {
    prompts.lock().unwrap().clear();
    scene.say(who, place, question).await;
    let prompts = prompts.lock().unwrap();
    prompts.iter().find(|prompt| prompt.trim_end().ends_with(question)).unwrap().clone()
}

#[tokio::test]
async fn a_replaced_statement_is_shown_with_the_newer_one_before_it() {
    let mut scene = Scene::open(false, false).await;
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    scene.say(ANN, COMMONS, OLD).await;
    let old = scene.last();
    scene.say(ANN, COMMONS, NEW).await;
    let new = scene.last();
    replace(&scene, &old, &new);
    // No word of the question stands in the newer statement.
    let question = "which weekday is my dentist appointment?";
    let prompt = prompt_of(&mut scene, &prompts, ANN, DM_ANN, question).await;
    let line = |text: &str| prompt.lines().position(|line| line.contains(text));
    // The best line stands last, next to the question.
    let (was, is) = (line(OLD).unwrap(), line(NEW).unwrap());
    assert!(was < is, "{prompt}");
    assert!(prompt.lines().nth(was).unwrap().contains(", true until "), "{prompt}");
    assert!(!prompt.lines().nth(is).unwrap().contains(", true until "), "{prompt}");
    for command in ["/why", "/me", "/memory search dentist appointment"] {
        let answer = scene.command(ANN, DM_ANN, command).await;
        let old = answer.lines().find(|line| line.contains(OLD)).unwrap_or_else(|| panic!("{command}: {answer}"));
        assert!(old.contains(", until "), "{command}: {answer}");
    }
    // A question about then is answered with what held then.
    let prompt = prompt_of(&mut scene, &prompts, ANN, DM_ANN, "when was my dentist appointment originally?").await;
    let place = |text: &str| prompt.lines().position(|line| line.contains(text));
    assert!(place(OLD).is_some() && place(NEW).is_none_or(|new| Some(new) < place(OLD)), "{prompt}");
    // Without the newer statement, the older one holds again.
    scene.delete(&new).await;
    scene.engine.azera.settle().await.unwrap();
    let prompt = prompt_of(&mut scene, &prompts, ANN, DM_ANN, question).await;
    assert!(prompt.contains(OLD) && !prompt.contains("true until"), "{prompt}");
    assert!(!scene.command(ANN, DM_ANN, "/me").await.contains(", until "));
}

/// Not even the day may tell others that there is a newer statement.
#[tokio::test]
async fn a_newer_statement_that_may_not_be_read_changes_nothing() {
    let mut scene = Scene::open(false, false).await;
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    scene.say(ANN, COMMONS, OLD).await;
    let old = scene.last();
    scene.say(ANN, DM_ANN, NEW).await;
    let new = scene.last();
    replace(&scene, &old, &new);
    let question = "when is the dentist appointment of Ann?";
    let prompt = prompt_of(&mut scene, &prompts, AN, DEN, question).await;
    assert!(prompt.contains(OLD), "{prompt}");
    assert!(!prompt.contains(NEW) && !prompt.contains("true until"), "{prompt}");
    let answers = [
        scene.command(AN, COMMONS, "/memory search dentist appointment").await,
        scene.command(AN, DEN, "/why").await,
        scene.command(ANN, COMMONS, "/me").await,
    ];
    for answer in answers {
        assert!(answer.contains(OLD) && !answer.contains(", until "), "{answer}");
    }
}

#[tokio::test]
async fn what_somebody_asked_to_keep_is_known_at_once_and_only_there() {
    let mut scene = Scene::open(false, false).await;
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    let kept = "the spare key is under the blue pot";
    let question = "where is the spare key?";
    let asked = [scene.message(ANN, DM_ANN, question), scene.message(AN, COMMONS, question)];
    scene.command(ANN, DM_ANN, &format!("/remember {kept}")).await;
    for (asked, is_shown) in asked.into_iter().zip([true, false]) {
        prompts.lock().unwrap().clear();
        scene.submit(asked).await.unwrap();
        scene.engine.azera.settle().await.unwrap();
        let prompts = prompts.lock().unwrap();
        let prompt = prompts.iter().find(|prompt| prompt.trim_end().ends_with(question)).unwrap();
        assert_eq!(prompt.contains(kept), is_shown, "{prompt}");
    }
    let me = scene.command(ANN, DM_ANN, "/me").await;
    assert!(me.starts_with("What you asked me to keep:") && me.contains(kept), "{me}");
    for (who, place) in [(ANN, COMMONS), (AN, COMMONS)] {
        let me = scene.command(who, place, "/me").await;
        assert!(!me.contains(kept), "{me}");
    }
}

/// Returns the id that an answer names first.
fn id_in(answer: &str) -> String {
    answer
        .split('`')
        .find(|part| part.strip_prefix('m').is_some_and(|id| id.parse::<u64>().is_ok()))
        .unwrap()
        .to_owned()
}

/// People correct their own statements. The correction counts where it may be read, and can be taken back.
#[tokio::test]
async fn a_statement_is_replaced_by_its_person_alone_and_where_that_may_be_read() {
    let mut scene = Scene::open(false, false).await;
    scene.change(Change::Join(BOB, GUILD));
    scene.say(ANN, COMMONS, OLD).await;
    scene.engine.azera.settle().await.unwrap();
    let search = "/memory search dentist appointment";
    let old = id_in(&scene.command(ANN, COMMONS, search).await);
    let refused = scene.command(BOB, COMMONS, &format!("/memory update {old} it is on sunday")).await;
    assert!(refused.contains("no statement of yours"), "{refused}");
    let updated = scene.command(ANN, DM_ANN, &format!("/memory update {old} {NEW}")).await;
    let at = scene.engine.clock.now();
    assert!(updated.contains(&format!("in place of `{old}`")), "{updated}");
    let new = id_in(&updated);
    let (here, there) = (scene.command(ANN, DM_ANN, search).await, scene.command(AN, COMMONS, search).await);
    let line = |answer: &str, text: &str| answer.lines().position(|line| line.contains(text));
    assert!(line(&here, NEW) < line(&here, OLD) && here.contains(", until "), "{here}");
    assert!(there.contains(OLD) && !there.contains(NEW) && !there.contains(", until "), "{there}");
    let day = at.strftime("%F").to_string();
    let replaced =
        Holding { holds_since: None, held_until: Some(day), replaced_by: Some(new.clone().try_into().unwrap()) };
    assert_eq!(holdings(&scene, ANN, DM_ANN, &old).await, [replaced.clone(), replaced]);
    let holds = Holding::default();
    assert_eq!(holdings(&scene, AN, COMMONS, &old).await, [holds.clone(), holds.clone()]);
    assert_eq!(holdings(&scene, ANN, COMMONS, &old).await, [holds.clone(), holds]);
    let circle = scene.command(ANN, DM_ANN, &format!("/memory replace {new} {old}")).await;
    assert!(circle.contains("cannot replace it"), "{circle}");
    let again = scene.command(ANN, DM_ANN, &format!("/memory current {old}")).await;
    assert_eq!(again, format!("`{old}` holds again."));
    assert!(!scene.command(ANN, DM_ANN, search).await.contains(", until "));
    scene.command(ANN, DM_ANN, &format!("/memory replace {old} {new}")).await;
    assert!(scene.command(ANN, DM_ANN, search).await.contains(", until "));
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
    scene.command(ANN, DM_ANN, &format!("/forget {new}")).await;
    assert!(!scene.command(ANN, DM_ANN, search).await.contains(", until "), "it holds again");
}

/// Azera closed a statement by itself. Its person knows better, and the same newer message closes it no more.
#[tokio::test]
async fn a_statement_that_azera_closed_holds_again_for_good_if_its_person_says_so() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, OLD).await;
    let old = scene.last();
    scene.say(ANN, COMMONS, NEW).await;
    let new = scene.last();
    let sent = scene.engine.watch.oracle().now;
    replace(&scene, &old, &new);
    scene.engine.azera.settle().await.unwrap();
    let search = "/memory search dentist appointment";
    let found = scene.command(ANN, COMMONS, search).await;
    let id = id_in(found.lines().find(|line| line.contains(OLD) && line.contains(", until ")).unwrap());
    let current = format!("/memory current {id}");
    assert_eq!(scene.command(ANN, COMMONS, &current).await, format!("`{id}` holds again."));
    assert!(!scene.command(ANN, COMMONS, search).await.contains(", until "));
    replace_worded(&scene, &old, &new, Some(sent));
    assert!(!scene.command(ANN, COMMONS, search).await.contains(", until "), "it stays so");
    let again = scene.command(ANN, COMMONS, &current).await;
    assert!(again.contains("holds already"), "{again}");
}

/// Otherwise two statements in place of one would both hold.
#[tokio::test]
async fn a_replaced_statement_is_updated_no_more() {
    let scene = Scene::open(false, false).await;
    let old = id_in(&scene.command(ANN, DM_ANN, &format!("/remember {OLD}")).await);
    let update = format!("/memory update {old}");
    let new = id_in(&scene.command(ANN, DM_ANN, &format!("{update} {NEW}")).await);
    let refused = scene.command(ANN, DM_ANN, &format!("{update} it is on sunday")).await;
    assert!(refused.contains(&format!("`{new}` replaced `{old}` already")), "{refused}");
    assert!(!scene.command(ANN, DM_ANN, "/me").await.contains("it is on sunday"));
    scene.command(ANN, DM_ANN, &format!("/forget {new}")).await;
    let updated = scene.command(ANN, DM_ANN, &format!("{update} it is on sunday")).await;
    assert!(updated.contains(&format!("in place of `{old}`")), "{updated}");
}

/// Returns from when until when a memory holds, as it is read by its number and as a search finds it.
async fn holdings(scene: &Scene, who: usize, place: usize, id: &str) -> [Holding; 2] {
    let at = Reading { chat: chat(place), person: person(who) };
    let platform = scene.engine.platform.sim.id();
    let read = scene.engine.azera.memory(platform, at, id.parse().unwrap()).await.unwrap().unwrap().holding;
    let found = scene.hits(who, place, "dentist appointment").await;
    let found = found.into_iter().find(|hit| hit.memory.0.to_string() == id).unwrap().holding;
    [read, found]
}

/// A relation that ended says so, except to those who may not read what ended it.
#[tokio::test]
async fn a_relation_ends_where_the_newer_statement_may_be_read() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, "I live in Tallinn").await;
    scene.engine.azera.settle().await.unwrap();
    let old = id_in(&scene.command(ANN, COMMONS, "/memory search Tallinn").await);
    let new = id_in(&scene.command(ANN, DM_ANN, &format!("/memory update {old} I moved to Riga")).await);
    let here = scene.command(ANN, DM_ANN, "/graph Tallinn").await;
    assert!(here.contains("lives in Tallinn, until ") && here.contains("(said on "), "{here}");
    let read = async |scene: &Scene, who, place| {
        let at = Reading { chat: chat(place), person: person(who) };
        let platform = scene.engine.platform.sim.id();
        let found = scene.engine.azera.entities(platform, at, "Tallinn".into()).await.unwrap();
        let relations = found.into_iter().flat_map(|entity| entity.relations);
        relations.filter(|one| one.said.contains("lives in")).map(|one| one.until.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(read(&scene, ANN, DM_ANN).await, [true]);
    for (who, place) in [(AN, COMMONS), (ANN, COMMONS)] {
        let there = scene.command(who, place, "/graph Tallinn").await;
        assert!(there.contains("lives in Tallinn") && !there.contains("until"), "{there}");
        assert_eq!(read(&scene, who, place).await, [false]);
    }
    scene.command(ANN, DM_ANN, &format!("/forget {new}")).await;
    assert!(!scene.command(ANN, DM_ANN, "/graph Tallinn").await.contains("until"));
    assert_eq!(read(&scene, ANN, DM_ANN).await, [false]);
}

/// A rating moves a memory in the place where it was given, and in no other.
#[tokio::test]
async fn a_rating_counts_in_its_place_alone() {
    let mut scene = Scene::open(false, false).await;
    // Of two people, so that neither statement can be a change of the other.
    scene.say(ANN, COMMONS, "my sister keeps the boat key").await;
    scene.say(ANN, LOBBY, "my uncle paints the boat hull").await;
    scene.engine.azera.settle().await.unwrap();
    let places = [(ANN, DM_ANN), (ANN, COMMONS), (AN, COMMONS)];
    let [private, here, other] = scores(&scene, places).await;
    let (sister, uncle) = (private[0].0.clone(), private[1].0.clone());
    for _ in 0..3 {
        let rated = scene.command(ANN, DM_ANN, &format!("/memory rate {sister} helpful")).await;
        assert!(rated.contains("helps you here"), "{rated}");
    }
    scene.command(ANN, DM_ANN, &format!("/memory rate {uncle} unhelpful")).await;
    let [rated, here_then, other_then] = scores(&scene, places).await;
    assert!(rated[0].1 > private[0].1 && rated[1].1 < private[1].1, "{private:?}, then {rated:?}");
    assert_eq!((here_then, other_then), (here.clone(), other.clone()), "not in a channel, and not for others");
    scene.command(ANN, COMMONS, &format!("/memory rate {uncle} unhelpful")).await;
    let [_, here_then, other_then] = scores(&scene, places).await;
    assert!(here_then[1].1 < here[1].1, "{here:?}, then {here_then:?}");
    assert_eq!(other_then, other, "another member is told the same as before");
    scene.command(ANN, COMMONS, &format!("/memory rate {uncle} none")).await;
    for id in [&sister, &uncle] {
        scene.command(ANN, DM_ANN, &format!("/memory rate {id} none")).await;
    }
    assert_eq!(scores(&scene, places).await, [private, here, other], "it is taken back");
}

/// A thumb below a reply is an opinion on the memories behind it: of its person, in its place, no further than a rating, and
/// until it goes. It opens nothing to somebody who may not read the reply.
#[tokio::test]
async fn a_thumb_below_a_reply_rates_the_memories_behind_it() {
    let mut scene = Scene::open(false, false).await;
    let (sister, uncle) = ("my sister keeps the boat key", "my uncle paints the boat hull");
    scene.say(ANN, LOBBY, sister).await;
    scene.say(ANN, LOBBY, uncle).await;
    scene.say(ANN, COMMONS, "who keeps the boat key and paints the boat hull? quiet").await;
    let reply = MessageId::new(format!("{}~r0", scene.last())).unwrap();
    let scores = async |who: usize, place: usize| {
        let hits = scene.hits(who, place, "who keeps the boat key and paints the boat hull?").await;
        [sister, uncle].map(|said| hits.iter().find(|hit| *hit.text.as_str() == *said).expect("it is found").score)
    };
    let thumb = async |who: usize, place: usize, key: &str| {
        let line = azera_adapter::thumb_command(azera_adapter::thumb(key).unwrap(), key);
        scene.point(who, place, &line, &reply).await.0
    };
    let taken_back = async |who: usize, key: &str| {
        let is_up = azera_adapter::thumb(key).unwrap();
        let reactions = Removed::One { name: key.to_owned(), is_up };
        let (reply, person) = (reply.clone(), Some(person(who)));
        let event = InboundEvent::ReactionsRemoved { reply, person, reactions };
        scene.engine.azera.submit(scene.engine.platform.sim.id(), event).await.unwrap().recorded() == Recorded::New
    };
    let [here, private, other] = [scores(ANN, COMMONS).await, scores(ANN, DM_ANN).await, scores(AN, COMMONS).await];
    assert!(thumb(ANN, COMMONS, "👍").await);
    let up = scores(ANN, COMMONS).await;
    assert!(up[0] > here[0] && up[1] > here[1], "{here:?}, then {up:?}");
    assert!(thumb(ANN, COMMONS, "👍").await);
    assert_eq!(scores(ANN, COMMONS).await, up, "twice is no more than once");
    // The newest thumb counts, and when it goes, the one before.
    assert!(thumb(ANN, COMMONS, "👎").await && taken_back(ANN, "👎").await);
    assert_eq!(scores(ANN, COMMONS).await, up);
    assert!(thumb(ANN, COMMONS, "👎").await && taken_back(ANN, "👍").await && !taken_back(ANN, "👍").await);
    assert!(!taken_back(AN, "👎").await, "it is Ann's");
    let down = scores(ANN, COMMONS).await;
    assert!(down[0] < here[0] && down[1] < here[1], "{here:?}, then {down:?}");
    // What is said of a memory itself counts more.
    let id =
        scene.hits(ANN, COMMONS, sister).await.into_iter().find(|hit| *hit.text.as_str() == *sister).unwrap().memory;
    scene.command(ANN, COMMONS, &format!("/memory rate {} helpful", id.0)).await;
    let mixed = scores(ANN, COMMONS).await;
    assert!(mixed[0] > here[0] && mixed[1] < here[1], "{here:?}, then {mixed:?}");
    assert_eq!(
        [scores(ANN, DM_ANN).await, scores(AN, COMMONS).await],
        [private, other],
        "nobody else's answers change"
    );
    // Bob may not read the reply, neither where it stands nor elsewhere.
    assert!(!thumb(BOB, DM_BOB, "👍").await && !thumb(ANN, DM_ANN, "👍").await);
    assert!(taken_back(ANN, "👎").await);
    scene.command(ANN, COMMONS, &format!("/memory rate {} none", id.0)).await;
    assert_eq!(scores(ANN, COMMONS).await, here, "all of it is taken back");
    // A thumb goes with the memory, and with the person.
    assert!(thumb(ANN, COMMONS, "👍").await);
    scene.command(ANN, COMMONS, &format!("/forget {}", id.0)).await;
    assert!(scene.engine.memory.check().unwrap().is_sound());
    look_up_all(&scene.engine).await;
    scene.engine.watch.verdict().unwrap();
}

/// Returns how well the memories of a boat answer each of these people in these places, in the order of their numbers.
async fn scores(scene: &Scene, places: [(usize, usize); 3]) -> [Vec<(String, f32)>; 3] {
    let mut found = [const { Vec::new() }; 3];
    for (found, (who, place)) in found.iter_mut().zip(places) {
        let hits = scene.hits(who, place, "boat").await;
        *found = hits.iter().map(|hit| (hit.memory.0.to_string(), hit.score)).collect::<Vec<_>>();
        found.sort_by_key(|(id, _)| (id.len(), id.clone()));
        assert_eq!(found.len(), 2);
    }
    found
}

const HARBOUR: &str = "the harbour closes at nine";

const THREE_CHATS: [&str; 3] = ["import:one", "import:two", "import:three"];

impl Scene {
    /// Ann said one thing in three chats of one project.
    async fn tell_in_three_chats(&mut self) {
        for chat in THREE_CHATS {
            self.import_unsearched(ANN, chat, HARBOUR);
        }
        self.engine.azera.settle().await.unwrap();
    }

    /// It was found worth keeping.
    fn mark_in_three_chats(&self) {
        for chat in THREE_CHATS {
            let message = MessageId::new(format!("import:{chat}:one")).unwrap();
            let (kind, to) = ("fact".to_owned(), HARBOUR.len());
            let salience =
                Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded: None, used: None };
            assert!(self.engine.memory.memories().mark(&message, &salience).unwrap());
        }
    }
}

#[tokio::test]
async fn what_counts_as_known_is_listed_with_its_sources_and_its_speaker_can_take_that_back() {
    let mut scene = Scene::open(false, false).await;
    scene.tell_in_three_chats().await;
    scene.mark_in_three_chats();
    scene.say(ANN, DEN, HARBOUR).await;
    scene.engine.azera.settle().await.unwrap();
    let known = scene.command(ANN, DM_ANN, "/memory known").await;
    assert!(known.contains(HARBOUR) && known.contains("in 3 chats of") && known.contains("(also `m"), "{known}");
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, DEN), (AN, COMMONS), (AN, DM_AN)] {
        let nothing = scene.command(who, place, "/memory known").await;
        assert!(nothing.starts_with("Nothing that may be shown here"), "{nothing}");
    }
    let id = known.split('`').nth(1).unwrap().to_owned();
    let off = format!("/memory known {id} off");
    for (who, place) in [(AN, COMMONS), (AN, DM_AN), (ANN, COMMONS)] {
        let refused = scene.command(who, place, &off).await;
        assert!(refused.contains("is nothing of yours that counts as known here"), "{refused}");
    }
    let search = "/memory search when does the harbour close";
    assert!(scene.command(ANN, DM_ANN, search).await.contains("said in 3 chats"));
    assert!(scene.command(ANN, DM_ANN, &off).await.contains("now count only where you said them"));
    assert!(!scene.command(ANN, DM_ANN, search).await.contains("said in"));
    assert!(
        scene
            .command(ANN, DM_ANN, "/memory known")
            .await
            .contains("; does not count, because its speakers took it back; your own words do not count")
    );
    scene.command(ANN, DM_ANN, &format!("/memory known {id} on")).await;
    assert!(scene.command(ANN, DM_ANN, search).await.contains("said in 3 chats"));
    scene.command(ANN, DM_ANN, &format!("/forget {id}")).await;
    let nothing = scene.command(ANN, DM_ANN, "/memory known").await;
    assert!(nothing.starts_with("Nothing that may be shown here"), "two are left: {nothing}");
}

/// A statement that was made in three chats counts as known in their realm. What was said in private adds to no count.
#[tokio::test]
async fn what_was_said_in_three_chats_is_counted_where_all_of_them_may_be_read() {
    let mut scene = Scene::open(false, false).await;
    let (said, search) = (HARBOUR, "/memory search when does the harbour close");
    scene.tell_in_three_chats().await;
    let found = scene.command(ANN, DM_ANN, search).await;
    assert!(!found.contains("said in"), "nothing tells that it is more than a greeting: {found}");
    scene.mark_in_three_chats();
    let (model, prompts) = watching_model();
    scene.engine.answered_by(model).await;
    scene.say(ANN, DEN, said).await;
    scene.say(ANN, COMMONS, said).await;
    scene.engine.azera.settle().await.unwrap();
    let found = scene.command(ANN, DM_ANN, search).await;
    assert_eq!(found.matches("said in 3 chats (also `m").count(), 1, "her project alone: {found}");
    let prompt = prompt_of(&mut scene, &prompts, ANN, DM_ANN, "when does the harbour close?").await;
    assert!(prompt.contains(said), "{prompt}");
    assert!(!prompt.contains("in 3 conversations"), "the number is no source of the reply: {prompt}");
    let why = scene.command(ANN, DM_ANN, "/why").await;
    assert!(why.contains("said in 3 chats (also `m"), "{why}");
    for (who, place) in [(ANN, COMMONS), (AN, DEN), (AN, COMMONS)] {
        let found = scene.command(who, place, search).await;
        assert!(!found.contains("said in"), "{found}");
    }
    scene.engine.memory.forgetting().forget(&Forget::Import("of-import:one".into()), true).unwrap();
    scene.engine.azera.settle().await.unwrap();
    assert!(!scene.command(ANN, DM_ANN, search).await.contains("said in"), "two are left");
}

/// What was known in a place and then replaced is known no longer, until the newer statement is forgotten.
#[tokio::test]
async fn what_was_replaced_no_longer_counts_as_known() {
    let mut scene = Scene::open(false, false).await;
    scene.tell_in_three_chats().await;
    scene.mark_in_three_chats();
    let search = "/memory search when does the harbour close";
    let known = scene.command(ANN, DM_ANN, "/memory known").await;
    assert!(known.contains(HARBOUR), "{known}");
    let learnt = scene.command(ANN, DM_ANN, "/memory learnt").await;
    assert!(learnt.contains("Now known in a whole place:\n- `m") && learnt.contains("in 3 chats: "), "{learnt}");
    let raised = scene.hits(ANN, DM_ANN, "when does the harbour close").await[0].score;
    let old = id_in(&scene.command(ANN, DM_ANN, search).await);
    let new = id_in(&scene.command(ANN, DM_ANN, &format!("/memory update {old} the harbour closes at ten")).await);
    let nothing = scene.command(ANN, DM_ANN, "/memory known").await;
    assert!(nothing.starts_with("Nothing that may be shown here"), "{nothing}");
    let hits = scene.hits(ANN, DM_ANN, "when does the harbour close").await;
    let before = hits.iter().find(|hit| hit.memory.0.to_string() == old).unwrap().score;
    assert!(before < raised, "{before}, and {raised} before");
    scene.command(ANN, DM_ANN, &format!("/forget {new}")).await;
    assert!(scene.command(ANN, DM_ANN, "/memory known").await.contains(HARBOUR), "it holds again");
}

/// One repeat in the place of another tidies up, and takes nothing back.
#[tokio::test]
async fn what_is_replaced_by_a_repeat_of_it_still_counts_as_known() {
    let mut scene = Scene::open(false, false).await;
    scene.tell_in_three_chats().await;
    scene.mark_in_three_chats();
    let known = scene.command(ANN, DM_ANN, "/memory known").await;
    let is_id = |part: &&str| part.strip_prefix('m').is_some_and(|id| id.parse::<u64>().is_ok());
    let ids: Vec<&str> = known.split('`').filter(is_id).collect();
    let (newer, older) = (ids[0], ids[ids.len() - 1]);
    assert_ne!(newer, older, "{known}");
    scene.command(ANN, DM_ANN, &format!("/memory replace {older} {newer}")).await;
    let listed = scene.command(ANN, DM_ANN, "/memory known").await;
    assert!(listed.contains(HARBOUR) && listed.contains("in 3 chats of"), "{listed}");
    // Something else takes all of them back.
    scene.command(ANN, DM_ANN, &format!("/memory update {newer} the harbour closes at ten")).await;
    let nothing = scene.command(ANN, DM_ANN, "/memory known").await;
    assert!(nothing.starts_with("Nothing that may be shown here"), "{nothing}");
}
