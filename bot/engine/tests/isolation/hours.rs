//! Quiet hours, the daily number of requests to the model, and that no dream is repeated.

use azera_config::Gardener;
use azera_memory::{Kind, week_begins, week_of};
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
async fn nothing_is_written_in_quiet_hours_and_dreams_come_after_them() {
    let mut scene = Scene::open(false, false).await;
    assert_eq!(scene.hour(), FIRST_HOUR);
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(Gardener { quiet_from: FIRST_HOUR, quiet_to: FIRST_HOUR + 5, ..garden }).await;
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

/// Weeks begin on Mondays in UTC, when it is still Sunday in New York.
#[tokio::test]
async fn weeks_begin_on_the_day_of_the_realms_time_zone() {
    let mut scene = Scene::open(false, false).await;
    scene.engine.says_its_zone("America/New_York");
    scene.tell(ANN, COMMONS).await;
    let begins = week_begins(week_of(scene.engine.clock.now()));
    let day = begins.to_zoned(TimeZone::get("America/New_York").unwrap()).strftime("%A %F").to_string();
    let first = day.strip_prefix("Sunday ").unwrap();
    let stats = scene.command(ANN, COMMONS, "/memory stats").await;
    assert!(stats.contains(&format!("By week, from {first} on: ")), "{stats}");
}

/// It is midnight in Tokyo, where the realm is, so its night begins.
#[tokio::test]
async fn quiet_hours_follow_the_realms_time_zone() {
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(Gardener { quiet_from: 0, quiet_to: 5, ..garden }).await;
    scene.engine.says_its_zone("Asia/Tokyo");
    scene.tell(ANN, COMMONS).await;
    scene.tell(AN, COMMONS).await;
    scene.pass_time(4 * HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await, []);
    scene.pass_time(3 * HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    // A direct message has no realm: there it is afternoon.
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(Gardener { quiet_from: 0, quiet_to: 5, ..garden }).await;
    scene.engine.says_its_zone("Asia/Tokyo");
    scene.tell(ANN, DM_ANN).await;
    scene.tell(ANN, DM_ANN).await;
    scene.pass_time(2 * HOUR).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::Dream).await.len(), 1);
}

/// The number of requests per day limits what is written, and starts again the next day.
#[tokio::test]
async fn requests_per_day_are_limited() {
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(Gardener { asks_per_day: 2, ..garden }).await;
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
async fn a_dream_that_repeats_an_earlier_one_is_discarded() {
    let mut scene = Scene::open(false, false).await;
    let secrets = [scene.tell(ANN, COMMONS).await, scene.tell(AN, COMMONS).await];
    scene.pass_time(HOUR).await;
    assert_eq!(scene.written(ANN, COMMONS, Kind::Dream).await.len(), 1);
    scene.pass_time(DAY).await;
    for secret in secrets {
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
async fn check_ins_are_sent_only_within_their_hours() {
    let mut scene = Scene::open(false, false).await;
    let garden = scene.engine.garden.clone();
    scene.engine.tended_by(Gardener { check_ins_from: 10, check_ins_to: 12, ..garden }).await;
    scene.command(ANN, DM_ANN, "/checkin on 2").await;
    scene.tell(ANN, DM_ANN).await;
    // Two days of silence end in the afternoon.
    scene.pass_time(2 * DAY + 6 * HOUR).await;
    assert_eq!(scene.written(ANN, DM_ANN, Kind::CheckIn).await, []);
    scene.pass_time(DAY).await;
    let check_ins = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    let hours: Vec<i8> = check_ins.iter().map(|check_ins| check_ins.at.to_zoned(TimeZone::UTC).hour()).collect();
    assert!(matches!(hours[..], [10 | 11]), "{hours:?}");
}
