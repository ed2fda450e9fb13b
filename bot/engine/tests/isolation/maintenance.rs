//! What is looked after from time to time: pieces, how it is doing, people who want to be looked in on.

use azera_adapter::Platform;
use azera_affect::check_in_opening;
use azera_config::BackgroundWriter;
use azera_memory::{Kind, ReadScope, Salience};
use azera_types::{Clock, PersonaId, ReadableScopes, Timestamp};
use jiff::SignedDuration;

use crate::findings::{AN, ANN, COMMONS, DEN, DM_ANN, Scene};
use crate::oracle::{DEFAULT_PERSONA, secrets_in};
use crate::test_engine::{chat, person};
use crate::world::PEOPLE;

pub const DAY: i64 = 24 * 3_600;

/// Another public channel of the guild.
const SQUARE: usize = 1;

impl Scene {
    /// Time passes in steps of an hour, and what is due is done.
    pub async fn pass_time(&self, seconds: i64) {
        for _ in 0..seconds / 3_600 {
            self.wait(3_600).await;
        }
    }
}

#[tokio::test]
async fn somebody_who_asked_for_it_is_looked_in_on_once_until_they_answer() {
    let mut scene = Scene::open(false, false).await;
    let refused = scene.command(ANN, COMMONS, "/checkin on").await;
    assert!(refused.contains("in their direct messages"), "{refused}");
    let refused = scene.command(ANN, DM_ANN, "/checkin on 0").await;
    assert!(refused.contains("1 to 90 days"), "{refused}");
    assert!(scene.command(ANN, DM_ANN, "/checkin").await.contains("I do not look in on you"));
    assert!(scene.command(ANN, DM_ANN, "/checkin on").await.contains("for 2 days"));
    let answer_text = scene.tell(ANN, DM_ANN).await;
    scene.pass_time(DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    scene.pass_time(2 * DAY).await;
    let question = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    assert_eq!(question.len(), 1);
    assert_eq!(secrets_in(&question[0].text), [answer_text].into());
    let shown = |scene: &Scene| scene.delivered().into_iter().filter(|text| *text == *question[0].text).count();
    assert_eq!(shown(&scene), 1);
    // However long they are silent, and over a restart.
    scene.pass_time(3 * DAY).await;
    scene.engine.reopen().await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await.len(), 1);
    // Nobody else is asked, and nobody else sees it.
    assert_eq!(scene.written(AN, COMMONS, Kind::CheckIn).await, []);
    // Who deletes the question is not asked it again.
    scene.command(ANN, DM_ANN, &format!("/forget {}", question[0].id)).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await.len(), 1);
    // What was wanted is told with everything else, and ends when it is said.
    assert!(scene.command(ANN, DM_ANN, "/memory export").await.contains("\"days\": 2"));
    scene.command(ANN, DM_ANN, "/checkin off").await;
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await.len(), 1);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// Who spoke of harming themselves is not left alone with it, nor asked cheerfully in the voice of a persona.
#[tokio::test]
async fn who_was_in_danger_is_looked_in_on_plainly_with_help_lines_and_by_no_model() {
    const HARD: &str = "I don't want to live any more. I want to kill myself. quiet";
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, DM_ANN, "/checkin on 2").await;
    scene.say(ANN, DM_ANN, HARD).await;
    // It was not the last that she said, either.
    for _ in 0..10 {
        scene.tell(ANN, DM_ANN).await;
    }
    scene.pass_time(3 * DAY).await;
    let question = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    let plain = check_in_opening(PEOPLE[ANN].1, None);
    assert_eq!(question.iter().map(|question| question.text.as_str()).collect::<Vec<_>>(), [plain.as_str()]);
    assert!(plain.contains("findahelpline.com"), "{plain}");
    let shown = |scene: &Scene| scene.delivered().into_iter().filter(|text| *text == plain).count();
    assert_eq!(shown(&scene), 1);
    // Once, until she answers; and with the same care while it was not long ago.
    scene.pass_time(5 * DAY).await;
    assert_eq!(shown(&scene), 1);
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(shown(&scene), 2);
    // Weeks later it is a question like any other.
    scene.pass_time(10 * DAY).await;
    let answer_text = scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    let question = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    assert_eq!((question.len(), shown(&scene)), (3, 2));
    assert!(question.iter().any(|question| secrets_in(&question.text).contains(&answer_text)));
    // It says nothing of what was told, and goes with it.
    scene.command(ANN, DM_ANN, "/forget me").await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn a_piece_is_made_of_what_was_said_and_posted_once() {
    let mut scene = Scene::open(false, false).await;
    let refused = scene.command(AN, COMMONS, "/garden write").await;
    assert!(refused.contains("the admins'"), "{refused}");
    assert!(scene.command(ANN, COMMONS, "/garden write").await.contains("Nothing came of it"));
    let answer_text = scene.tell(ANN, COMMONS).await;
    let written = scene.command(ANN, COMMONS, "/garden write").await;
    assert!(written.contains("piece") && secrets_in(&written).contains(&answer_text), "{written}");
    let piece = scene.written(AN, COMMONS, Kind::Piece).await.remove(0);
    let shown = |scene: &Scene| scene.delivered().into_iter().filter(|text| *text == *piece.text).count();
    assert_eq!(shown(&scene), 0, "it is kept, and not posted yet");
    scene.pass_time(2 * DAY).await;
    assert_eq!(shown(&scene), 1, "the best there is goes to the journal's channel");
    let again = scene.command(ANN, COMMONS, "/garden publish 1").await;
    assert!(again.contains("published before"), "{again}");
    // It goes with what it is made of, and where it was posted.
    scene.command(ANN, COMMONS, "/forget me").await;
    assert_eq!(scene.written(AN, COMMONS, Kind::Piece).await, []);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn a_private_channel_keeps_its_pieces_from_the_journal_of_the_realm() {
    let mut scene = Scene::open(false, false).await;
    let answer_text = scene.tell(AN, DEN).await;
    let written = scene.command(ANN, DEN, "/garden write").await;
    assert!(secrets_in(&written).contains(&answer_text), "{written}");
    let refused = scene.command(ANN, DEN, "/garden publish 1").await;
    assert!(refused.contains("nowhere to publish it"), "{refused}");
    assert!(scene.command(ANN, COMMONS, "/garden list").await.contains("There are no pieces"));
    scene.pass_time(2 * DAY).await;
    assert!(scene.delivered().iter().all(|text| !text.starts_with("Once") || !secrets_in(text).contains(&answer_text)));
}

#[tokio::test]
async fn pieces_come_by_themselves_where_enough_was_said() {
    let mut scene = Scene::open(false, false).await;
    for _ in 0..5 {
        scene.tell(ANN, COMMONS).await;
    }
    scene.pass_time(2 * DAY).await;
    assert_eq!(scene.written(AN, COMMONS, Kind::Piece).await, [], "too little");
    for _ in 0..8 {
        scene.tell(AN, COMMONS).await;
    }
    scene.pass_time(DAY).await;
    assert_eq!(scene.written(AN, COMMONS, Kind::Piece).await.len(), 1);
    scene.pass_time(10 * DAY).await;
    assert_eq!(scene.written(AN, COMMONS, Kind::Piece).await.len(), 1, "of the same there is no other");
}

#[tokio::test]
async fn once_a_week_it_looks_at_how_it_is_doing() {
    let mut scene = Scene::open(false, false).await;
    scene.tell(ANN, COMMONS).await;
    scene.pass_time(DAY).await;
    for _ in 0..3 {
        scene.tell(ANN, COMMONS).await;
        scene.pass_time(2 * DAY).await;
    }
    scene.tell(ANN, COMMONS).await;
    scene.pass_time(DAY).await;
    let prompts = scene.command(ANN, COMMONS, "/journal export").await;
    assert!(prompts.contains("I heard 4 messages of 1 person in 1 conversation"), "{prompts}");
    assert!(prompts.contains("I can search my memory by meaning, all I heard is filed"), "{prompts}");
}

/// What is asked in private must not show in what is kept in public.
#[tokio::test]
async fn a_mark_fades_anew_once_a_reply_in_its_own_place_rests_on_it() {
    const STATED: &str = "the ferry to the island leaves at nine quiet";
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, STATED).await;
    let (kind, to) = ("fact".to_owned(), STATED.len());
    let salience = Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded: None, used: None };
    scene.engine.memory.mark(&scene.last(), &salience).unwrap();
    let sim = scene.engine.platform.sim.clone();
    let place = Platform::place(sim.as_ref(), &chat(COMMONS), &person(ANN)).await.unwrap().unwrap();
    let read_scope = ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &place, &ReadableScopes::default());
    let used = |scene: &Scene| {
        let retained = scene.engine.memory.salient_memories(&read_scope, &person(ANN), 10).unwrap();
        retained.into_iter().find(|row| *row.text == *STATED).and_then(|row| row.salience).unwrap().used
    };
    scene.pass(DAY);
    for (place, counts) in [(DM_ANN, false), (SQUARE, true)] {
        scene.say(ANN, place, "when does the ferry to the island leave? quiet").await;
        assert!(scene.command(ANN, place, "/why").await.contains("leaves at nine"), "it is not recalled");
        assert_eq!(used(&scene).is_some(), counts, "in chat {place}");
    }
}

#[tokio::test]
async fn what_was_told_twice_is_kept_once_however_long_ago() {
    let mut scene = Scene::open(false, false).await;
    let answer_text = ["the ferry to the island leaves at nine", "the ferry to the island leaves early at nine"];
    let mut said = Vec::new();
    for text in answer_text {
        scene.say(ANN, DM_ANN, &format!("{text} quiet")).await;
        said.push((scene.last(), text));
    }
    scene.pass_time(DAY).await;
    // As if more had been said between the two than one conversation is compared with.
    for (message, text) in said {
        let (kind, to) = ("fact".to_owned(), text.len());
        let salience = Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded: None, used: None };
        scene.engine.memory.mark(&message, &salience).unwrap();
    }
    let sim = &scene.engine.platform.sim;
    let place = Platform::place(sim.as_ref(), &chat(DM_ANN), &person(ANN)).await.unwrap().unwrap();
    let read_scope = ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &place, &ReadableScopes::default());
    let retained = |scene: &Scene| {
        let retained = scene.engine.memory.salient_memories(&read_scope, &person(ANN), 10).unwrap();
        retained.iter().filter(|row| row.text.contains("ferry")).map(|row| row.gist().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(salient_memories(&scene).len(), 2);
    scene.say(ANN, DM_ANN, "and now the weather quiet").await;
    scene.pass_time(DAY).await;
    assert_eq!(salient_memories(&scene), [answer_text[1]], "the richer of the two");
}

/// What is kept in one place says nothing of what was said in another, not even that it holds no more.
#[tokio::test]
async fn what_holds_no_more_is_told_by_what_is_claimed_in_the_same_place() {
    let mut scene = Scene::open(false, false).await;
    for (place, text) in [
        (DM_ANN, "my dentist appointment is on thursday"),
        (COMMONS, "my dentist appointment is on tuesday"),
        (COMMONS, "my market stall is on tuesday"),
    ] {
        scene.say(ANN, place, &format!("{text}. quiet")).await;
    }
    scene.pass_time(DAY).await;
    scene.say(ANN, COMMONS, "my dentist appointment is on friday now. quiet").await;
    scene.pass_time(DAY).await;
    let answer_text = scene.command(ANN, DM_ANN, "/me").await;
    let line = |text: &str| {
        answer_text.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {answer_text}"))
    };
    assert!(line("dentist appointment is on tuesday").contains(", until "), "{answer_text}");
    for stands in ["dentist appointment is on thursday", "market stall is on tuesday", "on friday now"] {
        assert!(!line(stands).contains(", until "), "{answer_text}");
    }
}

#[tokio::test]
async fn nobody_is_looked_in_on_by_who_is_not_spoken_to_any_more_or_while_they_talk_elsewhere() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, DM_ANN, "/checkin on 1").await;
    scene.tell(ANN, DM_ANN).await;
    scene.command(ANN, DM_ANN, "/persona use azera").await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    let shown = scene.command(ANN, DM_ANN, "/checkin").await;
    assert!(shown.contains(&format!("`{DEFAULT_PERSONA}`, after a day of silence")), "{shown}");
    scene.command(ANN, DM_ANN, "/checkin off").await;
    scene.command(ANN, DM_ANN, &format!("/persona use {DEFAULT_PERSONA}")).await;
    assert!(scene.command(ANN, DM_ANN, "/checkin").await.contains("I do not look in on you"));
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
}

#[tokio::test]
async fn the_journal_of_a_private_channel_uses_up_no_piece_of_the_realm() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, DEN, "/journal channel here").await;
    scene.tell(ANN, DEN).await;
    scene.tell(ANN, COMMONS).await;
    scene.command(ANN, COMMONS, "/garden write").await;
    let piece = scene.written(AN, COMMONS, Kind::Piece).await.remove(0);
    let refused = scene.command(ANN, DEN, &format!("/garden publish {}", piece.id)).await;
    assert!(refused.contains("belongs to another place"), "{refused}");
    let answer_text = scene.command(ANN, COMMONS, "/garden publish 1").await;
    assert!(answer_text.contains("Published"), "{answer_text}");
}

/// When marks were gone through in each of the places, of those where they were.
async fn curated(scene: &Scene, places: &[usize]) -> Vec<Timestamp> {
    let (sim, persona) = (&scene.engine.platform.sim, PersonaId::new(DEFAULT_PERSONA).unwrap());
    let mut when = Vec::new();
    for place in places {
        let there = sim.place(&chat(*place), &person(ANN)).await.unwrap().unwrap();
        when.extend(scene.engine.memory.background_progress(sim.id(), &there.scope(), &persona).unwrap().curated);
    }
    when
}

/// With one home a look, an installation of thousands would come round to each of them once in many hours.
#[tokio::test]
async fn one_look_is_enough_for_many_homes() {
    let mut scene = Scene::open(false, false).await;
    let places = [COMMONS, DEN, DM_ANN];
    for place in places {
        scene.tell(ANN, place).await;
    }
    assert_eq!(curated(&scene, &places).await, []);
    scene.pass(3_700);
    scene.engine.azera.run_jobs().await;
    assert_eq!(curated(&scene, &places).await.len(), places.len());
}

/// Whatever else is due does not wait until all homes are looked after.
#[tokio::test]
async fn a_look_at_homes_ends_when_it_takes_long() {
    let mut scene = Scene::open(false, false).await;
    let none = BackgroundWriter {
        dreams: false,
        journal: false,
        diary_messages: 0,
        notes_every: 0,
        ..scene.engine.garden.clone()
    };
    scene.engine.tended_by(none).await;
    let places = [COMMONS, DEN, DM_ANN];
    for place in places {
        for _ in 0..8 {
            scene.tell(ANN, place).await;
        }
    }
    scene.pass(3_700);
    // The first piece takes the model ten seconds.
    let clock = scene.engine.clock.clone();
    scene.engine.meanwhile.set(move || clock.advance_to(clock.now() + SignedDuration::from_secs(10)));
    scene.engine.azera.run_jobs().await;
    assert_eq!(curated(&scene, &places).await.len(), 1);
    scene.engine.azera.run_jobs().await;
    assert_eq!(curated(&scene, &places).await.len(), places.len());
}
