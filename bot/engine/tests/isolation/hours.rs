//! When nothing is written, how often the model may be asked, and that nothing is dreamt twice.

use azera_config::BackgroundWriter;
use azera_memory::Kind;
use azera_types::Clock;
use jiff::tz::TimeZone;

use crate::findings::{AN, ANN, COMMONS, DM_ANN, Scene};
use crate::maintenance::DAY;
use crate::oracle::{secrets_in, word};

const HOUR: i64 = 3_600;

/// Every world begins in this hour of UTC.
const FIRST_HOUR: u32 = 15;

impl Scene {
    fn hour(&self) -> u32 {
        u32::try_from(self.engine.clock.now().to_zoned(TimeZone::UTC).hour()).unwrap()
    }
}

#[tokio::test]
async fn in_quiet_hours_nobody_dreams_and_behind_them_they_do() {
    let mut scene = Scene::open(false, false).await;
    assert_eq!(scene.hour(), FIRST_HOUR);
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(BackgroundWriter { quiet_from: FIRST_HOUR, quiet_to: FIRST_HOUR + 5, ..garden }).await;
    scene.tell(ANN, COMMONS).await;
    scene.tell(AN, COMMONS).await;
    scene.pass_time(4 * HOUR).await;
    assert_eq!(scene.hour(), FIRST_HOUR + 4);
    for kind in [Kind::Dream, Kind::Reflection, Kind::Piece] {
        assert_eq!(scene.written(ANN, COMMONS, kind).await, [], "{kind:?}");
    }
    scene.pass_time(3 * HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
}

/// Where the realm lies the night begins: it is midnight in Tokyo.
#[tokio::test]
async fn quiet_hours_are_those_of_the_realm() {
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(BackgroundWriter { quiet_from: 0, quiet_to: 5, ..garden }).await;
    scene.engine.says_its_zone("Asia/Tokyo");
    scene.tell(ANN, COMMONS).await;
    scene.tell(AN, COMMONS).await;
    scene.pass_time(4 * HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await, []);
    scene.pass_time(3 * HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    // A direct message lies in no realm: there it is afternoon.
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(BackgroundWriter { quiet_from: 0, quiet_to: 5, ..garden }).await;
    scene.engine.says_its_zone("Asia/Tokyo");
    scene.tell(ANN, DM_ANN).await;
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(2 * HOUR).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::Dream).await.len(), 1);
}

/// The model is asked so often on a day, whatever there would be to write, and on the next day again.
#[tokio::test]
async fn a_day_has_a_budget() {
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(BackgroundWriter { asks_per_day: 2, ..garden }).await;
    for _ in 0..9 {
        scene.tell(ANN, COMMONS).await;
    }
    let mut written = Vec::new();
    let mut count = async |scene: &Scene| {
        let mut count = 0;
        for kind in [Kind::Diary, Kind::Dream, Kind::Reflection, Kind::Piece, Kind::Note] {
            count += scene.written(ANN, COMMONS, kind).await.len();
        }
        written.push(count);
    };
    while scene.hour() != 23 {
        scene.pass_time(HOUR).await;
    }
    count(&scene).await;
    scene.pass_time(DAY).await;
    count(&scene).await;
    let [first, second] = written[..] else { panic!("{written:?}") };
    assert_eq!(first, 2, "there was more to write");
    assert!(second > first, "it went on the day after");
}

#[tokio::test]
async fn what_was_dreamt_before_is_not_dreamt_again() {
    let mut scene = Scene::open(false, false).await;
    let answer_text = [scene.tell(ANN, COMMONS).await, scene.tell(AN, COMMONS).await];
    scene.pass_time(HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    scene.pass_time(DAY).await;
    for secret in answer_text {
        scene.say(ANN, COMMONS, &format!("the lighthouse password is {} quiet", word(secret, false))).await;
    }
    scene.pass_time(DAY).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1, "it would be the same");
    let new = scene.tell(ANN, COMMONS).await;
    scene.pass_time(DAY).await;
    let dreams = scene.written(ANN, COMMONS, Kind::Dream).await;
    assert_eq!(dreams.len(), 2);
    assert!(dreams.iter().any(|dream| secrets_in(&dream.text).contains(&new)));
}

#[tokio::test]
async fn nobody_is_looked_in_on_outside_the_hours_for_it() {
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(BackgroundWriter { check_ins_from: 10, check_ins_to: 12, ..garden }).await;
    scene.command(ANN, DM_ANN, "/checkin on 2").await;
    scene.tell(ANN, DM_ANN).await;
    // Two days of silence are over in the afternoon.
    scene.pass_time(2 * DAY + 6 * HOUR).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    scene.pass_time(DAY).await;
    let question = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    let hours: Vec<i8> = question.iter().map(|question| question.at.to_zoned(TimeZone::UTC).hour()).collect();
    assert!(matches!(hours[..], [10 | 11]), "{hours:?}");
}
