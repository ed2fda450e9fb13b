//! Maintenance: garden pieces, reviews, curation and check-ins.

use azera_adapter::Platform;
use azera_affect::check_in_opening;
use azera_config::Gardener;
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
    /// Lets time pass in steps of an hour, and runs everything that is due.
    pub async fn pass_time(&self, seconds: i64) {
        for _ in 0..seconds / 3_600 {
            self.wait(3_600).await;
        }
    }
}

#[tokio::test]
async fn a_check_in_is_sent_once_until_the_person_answers() {
    let mut scene = Scene::open(false, false).await;
    let refused = scene.command(ANN, COMMONS, "/checkin on").await;
    assert!(refused.contains("work in direct messages"), "{refused}");
    let refused = scene.command(ANN, DM_ANN, "/checkin on 0").await;
    assert!(refused.contains("1 to 90 days"), "{refused}");
    assert!(scene.command(ANN, DM_ANN, "/checkin").await.contains("Check-ins are off"));
    assert!(scene.command(ANN, DM_ANN, "/checkin on").await.contains("for 2 days"));
    let secret = scene.tell(ANN, DM_ANN).await;
    scene.pass_time(DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    scene.pass_time(2 * DAY).await;
    let question = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    assert_eq!(question.len(), 1);
    assert_eq!(secrets_in(&question[0].text), [secret].into());
    let shown = |scene: &Scene| scene.delivered().into_iter().filter(|text| *text == *question[0].text).count();
    assert_eq!(shown(&scene), 1);
    // Not even after long silence and a restart.
    scene.pass_time(3 * DAY).await;
    scene.engine.reopen().await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await.len(), 1);
    // Nobody else is asked, and nobody else sees it.
    assert_eq!(scene.written(AN, COMMONS, Kind::CheckIn).await, []);
    // Deleting a check-in does not bring another one.
    scene.command(ANN, DM_ANN, &format!("/forget {}", question[0].id)).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await.len(), 1);
    // The request is part of the export, and ends when the person says so.
    assert!(scene.command(ANN, DM_ANN, "/memory export").await.contains("\"days\": 2"));
    scene.command(ANN, DM_ANN, "/checkin off").await;
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await.len(), 1);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// Somebody who spoke of harming themselves is not left alone with it, and not asked cheerfully in a persona's voice.
#[tokio::test]
async fn after_danger_the_check_in_is_a_fixed_text_with_help_lines() {
    const HARD: &str = "I don't want to live any more. I want to kill myself. quiet";
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, DM_ANN, "/checkin on 2").await;
    scene.say(ANN, DM_ANN, HARD).await;
    // It need not be the last thing she said.
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
    // Once until she answers, and again with the same care while it was not long ago.
    scene.pass_time(5 * DAY).await;
    assert_eq!(shown(&scene), 1);
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    assert_eq!(shown(&scene), 2);
    // Weeks later it is a check-in like any other.
    scene.pass_time(10 * DAY).await;
    let secret = scene.tell(ANN, DM_ANN).await;
    scene.pass_time(3 * DAY).await;
    let question = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    assert_eq!((question.len(), shown(&scene)), (3, 2));
    assert!(question.iter().any(|question| secrets_in(&question.text).contains(&secret)));
    // It repeats nothing of her words, and is forgotten with them.
    scene.command(ANN, DM_ANN, "/forget me").await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn a_garden_piece_is_written_from_messages_and_posted_once() {
    let mut scene = Scene::open(false, false).await;
    let refused = scene.command(AN, COMMONS, "/garden write").await;
    assert!(refused.contains("Only admins"), "{refused}");
    assert!(scene.command(ANN, COMMONS, "/garden write").await.contains("I wrote nothing"));
    let secret = scene.tell(ANN, COMMONS).await;
    let written = scene.command(ANN, COMMONS, "/garden write").await;
    assert!(written.contains("piece") && secrets_in(&written).contains(&secret), "{written}");
    let piece = scene.written(AN, COMMONS, Kind::Piece).await.remove(0);
    let shown = |scene: &Scene| scene.delivered().into_iter().filter(|text| *text == *piece.text).count();
    assert_eq!(shown(&scene), 0, "it is kept, and not posted yet");
    scene.pass_time(2 * DAY).await;
    assert_eq!(shown(&scene), 1, "the best there is goes to the journal's channel");
    let again = scene.command(ANN, COMMONS, "/garden publish 1").await;
    assert!(again.contains("published before"), "{again}");
    // It is forgotten with its sources, and so is its post.
    scene.command(ANN, COMMONS, "/forget me").await;
    assert_eq!(scene.written(AN, COMMONS, Kind::Piece).await, []);
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

#[tokio::test]
async fn pieces_of_a_private_channel_stay_out_of_the_realms_journal() {
    let mut scene = Scene::open(false, false).await;
    let secret = scene.tell(AN, DEN).await;
    let written = scene.command(ANN, DEN, "/garden write").await;
    assert!(secrets_in(&written).contains(&secret), "{written}");
    let refused = scene.command(ANN, DEN, "/garden publish 1").await;
    assert!(refused.contains("nowhere to publish it"), "{refused}");
    assert!(scene.command(ANN, COMMONS, "/garden list").await.contains("There are no pieces"));
    scene.pass_time(2 * DAY).await;
    assert!(scene.delivered().iter().all(|text| !text.starts_with("Once") || !secrets_in(text).contains(&secret)));
}

#[tokio::test]
async fn pieces_are_written_where_enough_was_said() {
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
async fn a_review_is_written_once_a_week() {
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

/// Its end names what was learnt, so that everybody can open it. It rests on these messages, and goes with them.
#[tokio::test]
async fn a_review_names_what_was_learnt_with_its_sources() {
    const STATED: &str = "the ferry to the island leaves at nine quiet";
    const GRIM: [&str; 2] = ["my ferry ticket is in the drawer quiet", "I want to kill myself quiet"];
    let mut scene = Scene::open(false, false).await;
    scene.tell(ANN, COMMONS).await;
    scene.pass_time(DAY).await;
    let mark = |scene: &Scene, to: usize, importance: f32| {
        let kind = "fact".to_owned();
        let salience = Salience { kind, importance, from: 0, to, with: Vec::new(), superseded: None, used: None };
        scene.engine.memory.memories().mark(&scene.last(), &salience).unwrap();
    };
    scene.pass_time(DAY).await;
    scene.say(AN, SQUARE, GRIM[0]).await;
    mark(&scene, 32, 0.9);
    scene.say(AN, SQUARE, GRIM[1]).await;
    scene.say(ANN, SQUARE, STATED).await;
    mark(&scene, STATED.len(), 0.5);
    let stated = scene.last();
    scene.say(ANN, DM_ANN, "my password is lighthouse quiet").await;
    mark(&scene, 25, 0.9);
    for _ in 0..3 {
        scene.pass_time(2 * DAY).await;
        scene.tell(ANN, COMMONS).await;
    }
    scene.pass_time(DAY).await;
    let entries = scene.written(AN, COMMONS, Kind::Reflection).await;
    let review = entries.iter().find(|entry| entry.text.contains("What I learnt here:"));
    let review =
        review.unwrap_or_else(|| panic!("{:?}", entries.iter().map(|it| it.text.as_str()).collect::<Vec<_>>()));
    let line = review.text.lines().find(|line| line.contains("leaves at nine")).expect("the statement");
    assert!(line.contains(PEOPLE[ANN].1), "who said it: {line}");
    assert!(!review.text.contains("drawer") && !review.text.contains("password"), "{}", review.text.as_str());
    assert!(review.sources.contains(&stated), "it rests on the message");
    let id = line.split('`').nth(1).expect("a number");
    let opened = scene.command(AN, COMMONS, &format!("/why {id}")).await;
    assert!(opened.contains(STATED) && opened.contains(PEOPLE[ANN].1) && opened.contains("told"), "{opened}");
    let refused = scene.command(AN, COMMONS, "/why m99999").await;
    assert!(refused.contains("I remember no `m99999`"), "{refused}");
    // It is forgotten with what it names.
    scene.command(ANN, COMMONS, &format!("/forget {id}")).await;
    let entries = scene.written(AN, COMMONS, Kind::Reflection).await;
    assert!(entries.iter().all(|entry| !entry.text.contains("leaves at nine")), "the review is gone");
    assert!(scene.engine.memory.check().unwrap().is_sound());
}

/// A line about how something went quotes two messages. Neither may stand beside danger, and both have a speaker.
#[tokio::test]
async fn a_review_quotes_no_plan_that_was_made_beside_danger() {
    let mut scene = Scene::open(false, false).await;
    scene.tell(ANN, COMMONS).await;
    scene.pass_time(DAY).await;
    scene.say(ANN, SQUARE, "I'm going to paint the zeppelin tomorrow, quiet").await;
    scene.say(AN, SQUARE, "I'm going to paint the submarine tomorrow, quiet").await;
    scene.say(AN, SQUARE, "I want to kill myself quiet").await;
    scene.pass_time(2 * DAY).await;
    scene.say(ANN, SQUARE, "I painted the zeppelin in stripes, quiet").await;
    scene.say(AN, SQUARE, "I painted the submarine in dots, quiet").await;
    for _ in 0..3 {
        scene.pass_time(2 * DAY).await;
        scene.tell(ANN, COMMONS).await;
    }
    scene.pass_time(DAY).await;
    let entries = scene.written(AN, COMMONS, Kind::Reflection).await;
    let review = entries.iter().find(|entry| entry.text.contains("What I learnt here:")).expect("a review");
    let line = review.text.lines().find(|line| line.contains("zeppelin in stripes")).expect("how it went");
    let plan = format!("that was the plan of {}", PEOPLE[ANN].1);
    assert!(line.contains(&plan) && line.contains("zeppelin tomorrow"), "{line}");
    assert!(!review.text.contains("submarine tomorrow"), "{}", review.text.as_str());
}

/// A memory is opened by its number only where it may be shown.
#[tokio::test]
async fn a_number_opens_no_memory_of_another_place() {
    let mut scene = Scene::open(false, false).await;
    let secret = scene.tell(ANN, DM_ANN).await;
    let place =
        Platform::place(scene.engine.platform.sim.as_ref(), &chat(DM_ANN), &person(ANN)).await.unwrap().unwrap();
    let reads = ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &place, &ReadableScopes::default());
    let own = scene.engine.memory.messages().memory_of(&reads, &scene.last()).unwrap();
    let own = own.expect("it is remembered");
    let opened = scene.command(ANN, DM_ANN, &format!("/why {own}")).await;
    assert!(secrets_in(&opened).contains(&secret) && opened.contains("in direct messages"), "{opened}");
    for (who, place) in [(ANN, COMMONS), (AN, COMMONS), (AN, DEN)] {
        let refused = scene.command(who, place, &format!("/why {own}")).await;
        assert!(refused.contains("I remember no"), "{refused}");
    }
}

/// Questions in private must not change what is remembered in public.
#[tokio::test]
async fn a_memory_counts_as_used_only_by_replies_in_its_own_place() {
    const STATED: &str = "the ferry to the island leaves at nine quiet";
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, STATED).await;
    let (kind, to) = ("fact".to_owned(), STATED.len());
    let salience = Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded: None, used: None };
    scene.engine.memory.memories().mark(&scene.last(), &salience).unwrap();
    let sim = scene.engine.platform.sim.clone();
    let place = Platform::place(sim.as_ref(), &chat(COMMONS), &person(ANN)).await.unwrap().unwrap();
    let read_scope = ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &place, &ReadableScopes::default());
    let used = |scene: &Scene| {
        let salient = scene.engine.memory.memories().salient(&read_scope, &person(ANN), 10).unwrap();
        salient.into_iter().find(|row| *row.text == *STATED).and_then(|row| row.salience).unwrap().used
    };
    scene.pass(DAY);
    for (place, counts) in [(DM_ANN, false), (SQUARE, true)] {
        scene.say(ANN, place, "when does the ferry to the island leave? quiet").await;
        assert!(scene.command(ANN, place, "/why").await.contains("leaves at nine"), "it is not recalled");
        assert_eq!(used(&scene).is_some(), counts, "in chat {place}");
    }
}

#[tokio::test]
async fn curation_keeps_the_richer_of_two_old_duplicates() {
    let mut scene = Scene::open(false, false).await;
    let statements = ["the ferry to the island leaves at nine", "the ferry to the island leaves early at nine"];
    let mut said = Vec::new();
    for text in statements {
        scene.say(ANN, DM_ANN, &format!("{text} quiet")).await;
        said.push((scene.last(), text));
    }
    scene.pass_time(DAY).await;
    // As if more had been said between the two than extraction compares.
    for (message, text) in said {
        let (kind, to) = ("fact".to_owned(), text.len());
        let salience = Salience { kind, importance: 0.5, from: 0, to, with: Vec::new(), superseded: None, used: None };
        scene.engine.memory.memories().mark(&message, &salience).unwrap();
    }
    let sim = &scene.engine.platform.sim;
    let place = Platform::place(sim.as_ref(), &chat(DM_ANN), &person(ANN)).await.unwrap().unwrap();
    let read_scope = ReadScope::in_place(PersonaId::new(DEFAULT_PERSONA).unwrap(), &place, &ReadableScopes::default());
    let ferries = |scene: &Scene| {
        let salient = scene.engine.memory.memories().salient(&read_scope, &person(ANN), 10).unwrap();
        salient.iter().filter(|row| row.text.contains("ferry")).map(|row| row.gist().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ferries(&scene).len(), 2);
    scene.say(ANN, DM_ANN, "and now the weather quiet").await;
    scene.pass_time(DAY).await;
    assert_eq!(ferries(&scene), [statements[1]], "the richer of the two");
}

/// Memories of one place reveal nothing of what was said in another, not even that they no longer hold.
#[tokio::test]
async fn contradictions_are_detected_within_one_place() {
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
    let answer = scene.command(ANN, DM_ANN, "/me").await;
    let line =
        |text: &str| answer.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {answer}"));
    assert!(line("dentist appointment is on tuesday").contains(", until "), "{answer}");
    for stands in ["dentist appointment is on thursday", "market stall is on tuesday", "on friday now"] {
        assert!(!line(stands).contains(", until "), "{answer}");
    }
}

#[tokio::test]
async fn no_check_in_comes_from_a_persona_that_no_longer_answers() {
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
    assert!(scene.command(ANN, DM_ANN, "/checkin").await.contains("Check-ins are off"));
    scene.pass_time(3 * DAY).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
}

#[tokio::test]
async fn a_realms_piece_cannot_be_published_in_a_private_channels_journal() {
    let mut scene = Scene::open(false, false).await;
    scene.command(ANN, DEN, "/journal channel here").await;
    scene.tell(ANN, DEN).await;
    scene.tell(ANN, COMMONS).await;
    scene.command(ANN, COMMONS, "/garden write").await;
    let piece = scene.written(AN, COMMONS, Kind::Piece).await.remove(0);
    let refused = scene.command(ANN, DEN, &format!("/garden publish {}", piece.id)).await;
    assert!(refused.contains("belongs to another place"), "{refused}");
    let answer = scene.command(ANN, COMMONS, "/garden publish 1").await;
    assert!(answer.contains("Published"), "{answer}");
}

/// Returns when memories were curated in each of the places, for those where they were.
async fn curated(scene: &Scene, places: &[usize]) -> Vec<Timestamp> {
    let (sim, persona) = (&scene.engine.platform.sim, PersonaId::new(DEFAULT_PERSONA).unwrap());
    let mut when = Vec::new();
    for place in places {
        let there = sim.place(&chat(*place), &person(ANN)).await.unwrap().unwrap();
        when.extend(scene.engine.memory.progress().get(sim.id(), &there.scope(), &persona).unwrap().curated);
    }
    when
}

/// With one place per round, an installation of thousands of places would get to each of them only once in many hours.
#[tokio::test]
async fn one_round_maintains_many_places() {
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

/// Other due work does not wait until all places are maintained.
#[tokio::test]
async fn a_round_of_maintenance_ends_when_it_takes_long() {
    let mut scene = Scene::open(false, false).await;
    let none =
        Gardener { dreams: false, journal: false, diary_messages: 0, notes_every: 0, ..scene.engine.garden.clone() };
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
