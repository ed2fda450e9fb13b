//! Rules and numbers of a realm: who may change them, where they apply, and that they do.

use azera_adapter::{Host, Outcome};
use azera_memory::Kind;

use crate::findings::{AN, ANN, COMMONS, DEN, DM_ANN, Scene};

const HOUR: i64 = 3_600;

#[tokio::test]
async fn rules_apply_in_their_own_place_and_are_forgotten_with_their_owner() {
    let mut scene = Scene::open(false, false).await;
    let refused = scene.command(AN, COMMONS, "/rules list").await;
    assert!(refused.contains("Only admins"), "{refused}");
    let added = scene.command(ANN, DM_ANN, "/rules add vow joke,good_news warmth=0.1 Speak of the vow.").await;
    assert!(added.contains("`vow` holds from now on"), "{added}");
    assert!(
        scene
            .command(ANN, DM_ANN, "/rules list")
            .await
            .contains("`vow`, your own (joke, good_news): Speak of the vow.")
    );
    assert!(!scene.command(ANN, COMMONS, "/rules list").await.contains("vow"));
    for (line, want) in [
        ("/rules add vow soup Hm.", "names the tag \"soup\""),
        ("/rules add self_harm joke Laugh.", "`self_harm` is a safety rule"),
        ("/rules remove self_harm", "`self_harm` is a safety rule"),
        ("/rules remove nonsense", "no built-in rule `nonsense`"),
        ("/rules restore insult", "No built-in rule `insult` was removed"),
    ] {
        let refused = scene.command(ANN, DM_ANN, line).await;
        assert!(refused.contains(want), "{line}: {refused}");
    }
    assert!(scene.command(ANN, DM_ANN, "/rules remove insult").await.contains("`/rules restore insult`"));
    assert!(scene.command(ANN, DM_ANN, "/rules list").await.contains("Removed: insult."));
    assert!(scene.command(ANN, DM_ANN, "/rules restore insult").await.contains("holds again"));
    scene.engine.reopen().await;
    let removed = scene.command(ANN, DM_ANN, "/rules remove vow").await;
    assert!(removed.contains("It was: `/rules add vow joke,good_news warmth=0.1 Speak of the vow.`"), "{removed}");
    scene.command(ANN, DM_ANN, "/rules add vow joke Speak of the vow.").await;
    scene.command(ANN, DM_ANN, "/forget me").await;
    assert!(!scene.command(ANN, DM_ANN, "/rules list").await.contains("vow"));
}

/// The text of a rule occurs in prompts, and so reaches the person who is answered.
#[tokio::test]
async fn a_rule_of_the_realm_is_not_for_a_private_channel_nor_the_other_way_round() {
    let scene = Scene::open(false, false).await;
    for (place, name) in [(COMMONS, "open"), (DEN, "closed")] {
        let added = scene.command(ANN, place, &format!("/rules add {name} joke The vault code is 4471.")).await;
        assert!(added.contains("holds from now on"), "{added}");
    }
    let [open, closed] =
        [scene.command(ANN, COMMONS, "/rules list").await, scene.command(ANN, DEN, "/rules list").await];
    assert!(open.contains("`open`") && !open.contains("`closed`"), "{open}");
    assert!(closed.contains("`closed`") && !closed.contains("`open`"), "{closed}");
}

#[tokio::test]
async fn changed_numbers_apply_in_one_place_and_show_in_its_status() {
    let mut scene = Scene::open(false, false).await;
    assert!(scene.command(AN, COMMONS, "/tune energy_per_exchange 1").await.contains("Only admins"));
    for line in ["/tune energy_per_exchange 1", "/tune energy_recovery_per_s 0"] {
        let answer = scene.command(ANN, COMMONS, line).await;
        assert!(answer.contains("from now on"), "{answer}");
    }
    for (line, want) in [
        ("/tune energy_per_exchange 2", "must be a number from 0 to 1, not 2"),
        ("/tune energy_per_exchange much", "`/tune energy_per_exchange NUMBER`"),
        ("/tune soup 1", "there is no number `soup`"),
        ("/tune night_to_hour 0", "the night has no hours"),
        ("/tune energy_tired default", "is not tuned here"),
    ] {
        let refused = scene.command(ANN, COMMONS, line).await;
        assert!(refused.contains(want), "{line}: {refused}");
    }
    scene.tell(ANN, COMMONS).await;
    scene.tell(ANN, DM_ANN).await;
    let status = scene.command(AN, COMMONS, "/status").await;
    assert!(status.contains("energy     \u{2591}\u{2591}") && status.contains(" 0.00\n"), "{status}");
    assert!(!scene.command(ANN, DM_ANN, "/status").await.contains(" 0.00\n"));
    scene.engine.reopen().await;
    assert!(scene.command(ANN, COMMONS, "/tune").await.contains("(tuned here)"));
    assert!(!scene.command(ANN, DM_ANN, "/tune").await.contains("(tuned here)"));
    assert!(
        scene
            .command(ANN, COMMONS, "/tune energy_per_exchange default")
            .await
            .contains("has the configured value again")
    );
}

/// The place's own night brings the dream, and not the machine's; the persona has slept then.
#[tokio::test]
async fn a_mind_dreams_in_the_night_of_its_place() {
    let mut scene = Scene::open(false, false).await;
    // The world begins at six minutes past three in the afternoon.
    scene.command(ANN, COMMONS, "/tune night_from_hour 3").await;
    scene.command(ANN, COMMONS, "/tune night_to_hour 5").await;
    scene.tell(ANN, COMMONS).await;
    scene.tell(AN, COMMONS).await;
    let dreams = |scene: &Scene| {
        let all = scene.delivered();
        all.into_iter().filter(|text| text.starts_with("Somewhere")).count()
    };
    scene.pass(8 * HOUR);
    scene.engine.azera.settle().await.unwrap();
    let before = dreams(&scene);
    scene.pass(4 * HOUR);
    scene.engine.azera.settle().await.unwrap();
    assert_eq!(dreams(&scene), before + 1, "one dream, in the night");
    let status = scene.command(ANN, COMMONS, "/status").await;
    assert!(status.contains("Last slept"), "{status}");
    assert_eq!(scene.engine.memory.check().unwrap().broken, Default::default());
}

/// Settings of background writings belong to one place, too, as far as the operator allows.
#[tokio::test]
async fn settings_of_background_writings_apply_in_one_place_at_once() {
    let mut scene = Scene::open(false, false).await;
    for (line, want) in [
        ("/tune notes_every 0", "from now on"),
        ("/tune quiet_from 15", "from now on"),
        ("/tune quiet_to 20", "from now on"),
        ("/tune asks_per_day 10001", "the configuration allows 10000"),
        ("/tune asks_per_day 0", "must be a whole number from 1 to 100000"),
        ("/tune dreams 0", "there is no number `dreams`"),
        ("/tune quiet_from", "A whole number from 0 to 23."),
    ] {
        let answer = scene.command(ANN, COMMONS, line).await;
        assert!(answer.contains(want), "{line}: {answer}");
    }
    for place in [COMMONS, DM_ANN] {
        for _ in 0..3 {
            scene.tell(ANN, place).await;
        }
    }
    scene.wait(2 * HOUR).await;
    for kind in [Kind::Note, Kind::Dream] {
        assert_eq!(scene.written(ANN, COMMONS, kind).await, [], "{kind:?}");
        assert_eq!(scene.written(ANN, DM_ANN, kind).await.len(), 1, "{kind:?}");
    }
    for name in ["notes_every", "quiet_from", "quiet_to"] {
        let answer = scene.command(ANN, COMMONS, &format!("/tune {name} default")).await;
        assert!(answer.contains("has the configured value again"), "{answer}");
    }
    scene.wait(HOUR).await;
    for kind in [Kind::Note, Kind::Dream] {
        assert_eq!(scene.written(ANN, COMMONS, kind).await.len(), 1, "{kind:?}");
    }
    assert!(scene.command(ANN, COMMONS, "/tune").await.contains("The configuration sets for all places"));
}

/// Help lines follow the country that a place chose, below replies and in check-ins.
#[tokio::test]
async fn a_place_chooses_the_country_of_its_help_lines() {
    const HARD: &str = "I don't want to live any more. I want to kill myself. quiet";
    let mut scene = Scene::open(false, false).await;
    for (place, who, line, want) in [
        (COMMONS, AN, "/settings locale en-GB", "Only admins"),
        (COMMONS, ANN, "/settings locale xx", "I know no help lines for that"),
        (COMMONS, ANN, "/settings locale en-GB please", "`/settings locale LOCALE`"),
        (COMMONS, ANN, "/settings soup", "`/settings locale LOCALE`"),
        (COMMONS, AN, "/settings locale", "in any country here."),
        (COMMONS, ANN, "/settings locale de", "the help lines of Germany here from now on"),
        (DM_ANN, ANN, "/settings locale en-GB", "the help lines of the United Kingdom"),
    ] {
        let answer = scene.command(who, place, line).await;
        assert!(answer.contains(want), "{line}: {answer}");
    }
    scene.engine.reopen().await;
    let shown = async |scene: &mut Scene, place| match scene.say(ANN, place, HARD).await {
        Outcome::Replied(turn) => turn.text.as_str().to_owned(),
        Outcome::Skipped(why) => panic!("silent: {}", why.why()),
    };
    let [commons, own, den] =
        [shown(&mut scene, COMMONS).await, shown(&mut scene, DM_ANN).await, shown(&mut scene, DEN).await];
    assert!(commons.contains("In Germany:"), "{commons}");
    assert!(own.contains("In the United Kingdom:"), "{own}");
    assert!(den.contains("Help lines by country"), "{den}");
    assert!(scene.command(AN, COMMONS, "/settings").await.contains("the help lines of Germany"));
    // A check-in holds the help lines of the person's own direct messages.
    scene.command(ANN, DM_ANN, "/checkin on 1").await;
    for _ in 0..3 {
        scene.wait(24 * HOUR).await;
    }
    let question = scene.written(ANN, DM_ANN, Kind::CheckIn).await;
    assert!(question.first().is_some_and(|question| question.text.contains("In the United Kingdom:")), "{question:?}");
    for (locale, want) in [("none", "in any country"), ("default", "in any country"), ("de-AT", "Austria")] {
        let answer = scene.command(ANN, COMMONS, &format!("/settings locale {locale}")).await;
        assert!(answer.contains(want), "{answer}");
    }
}
