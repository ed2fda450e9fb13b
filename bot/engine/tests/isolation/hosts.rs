//! The interfaces for platforms with a screen: pictures, speech and moods, each for whom they are meant.

use std::sync::atomic::Ordering;

use azera_adapter::{
    AnswerMode, FileContent, GivenMood, Host, HostError, MoodHost, PictureAsked, PictureHost, PictureSearch,
    PictureStart, PictureState, PictureWish, PlaceChange, PlaceHost, Platform, Reader, Reading, ShownPicture,
    SpeechAnswer, SpeechHost, SpeechRequest, SpokenReplies, VaultHost, VaultValue, VoiceHost, WaitingPicture,
};
use azera_memory_vault::KeyFile;
use azera_model_image::{ImageSize, Picture};
use azera_types::{PersonId, PersonaId, PlatformId};

use crate::findings::{AN, ANN, BOB, COMMONS, DEN, DM_AN, DM_ANN, DM_BOB, Scene};
use crate::oracle::DEFAULT_PERSONA;
use crate::test_engine::{chat, person};

fn at(who: usize, place: usize) -> Reading {
    Reading { chat: chat(place), person: person(who) }
}

fn wish(prompt: &str) -> PictureWish {
    PictureWish { prompt: prompt.to_owned(), ..PictureWish::default() }
}

fn sim(scene: &Scene) -> PlatformId {
    scene.engine.platform.sim.id().clone()
}

async fn asked(scene: &Scene, who: usize, place: usize, wish: PictureWish) -> u64 {
    scene.pass(90);
    match scene.engine.azera.ask(&sim(scene), at(who, place), wish).await.unwrap() {
        PictureAsked::Waits(number) => number,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_picture_is_shown_to_those_who_may_read_its_place_and_to_nobody_else() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    let mut wanted = wish("a heliotrope lighthouse");
    (wanted.seed, wanted.size, wanted.name) = (Some(7), Some((128, 64)), Some("Tower".into()));
    let number = asked(&scene, ANN, DM_ANN, wanted).await;
    scene.settled().await;
    {
        let requests = painter.asked.lock().unwrap();
        assert_eq!((requests[0].seed, requests[0].size), (7, ImageSize { width: 128, height: 64 }));
    }
    let listed = azera.pictures(&sim, at(ANN, DM_ANN), &PictureSearch::default()).await.unwrap();
    assert_eq!((listed.len(), listed[0].number, listed[0].prompt.as_str()), (1, number, "a heliotrope lighthouse"));
    assert_eq!((listed[0].width, listed[0].height, listed[0].seed), (8, 8, 7), "the size is that of the file");
    let (_, file) = azera.picture(&sim, at(ANN, DM_ANN), number).await.unwrap().unwrap();
    assert!(file.0.starts_with(b"\x89PNG"));
    let state = azera.picture_state(&sim, at(ANN, DM_ANN), number).await.unwrap();
    assert_eq!(state, Some(PictureState::Drawn(ShownPicture { place: None, ..listed[0].clone() })));
    let (picture, small) = azera.thumbnail(&sim, at(ANN, DM_ANN), number).await.unwrap().unwrap();
    assert!(picture.number == number && small.0.starts_with(b"\xff\xd8"), "a JPEG file");
    let search =
        |words: &str, by: &str, place: &str| PictureSearch { words: words.into(), by: by.into(), place: place.into() };
    for (search, is_found) in [
        (search("LIGHTHOUSE heliotrope", "", ""), true),
        (search("tower", "me", ""), true),
        (search("boat", "", ""), false),
        (search("", "somebody else", ""), false),
        (search("", "", "no such place"), false),
    ] {
        let found = azera.pictures(&sim, at(ANN, DM_ANN), &search).await.unwrap();
        assert_eq!(!found.is_empty(), is_found, "{} {} {}", search.words, search.by, search.place);
    }
    for (who, place) in [(AN, DM_AN), (BOB, DM_BOB), (AN, COMMONS), (ANN, COMMONS), (ANN, DEN), (AN, DM_ANN)] {
        assert!(
            azera.pictures(&sim, at(who, place), &PictureSearch::default()).await.unwrap().is_empty(),
            "{who} in {place}"
        );
        let found = azera.pictures(&sim, at(who, place), &search("lighthouse", "", "")).await.unwrap();
        assert!(found.is_empty(), "{who} in {place}");
        assert!(azera.picture(&sim, at(who, place), number).await.unwrap().is_none(), "{who} in {place}");
        assert!(azera.thumbnail(&sim, at(who, place), number).await.unwrap().is_none(), "{who} in {place}");
        assert!(azera.picture_state(&sim, at(who, place), number).await.unwrap().is_none(), "{who} in {place}");
    }
    let stolen = PictureWish { start: Some(PictureStart::Drawn(number)), ..wish("the same in fog") };
    let refused = azera.ask(&sim, at(AN, DM_AN), stolen).await.unwrap();
    assert!(matches!(refused, PictureAsked::Refused(_)), "{refused:?}");
    assert!(matches!(azera.ask(&sim, at(AN, DM_ANN), wish("x")).await, Err(HostError::NotAllowed)));
}

#[tokio::test]
async fn a_waiting_picture_is_followed_by_the_person_who_asked() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    painter.hangs.store(true, Ordering::SeqCst);
    let number = asked(&scene, ANN, COMMONS, wish("a boat")).await;
    let watching = async {
        painter.begun.notified().await;
        let own = azera.picture_state(&sim, at(ANN, COMMONS), number).await.unwrap();
        assert_eq!(own, Some(PictureState::Drawing { step: 1, steps: 2, preview: None }));
        assert_eq!(azera.picture_state(&sim, at(AN, COMMONS), number).await.unwrap(), None);
        let listed = azera.waiting_pictures(&sim, &at(ANN, COMMONS).person).await.unwrap();
        let state = PictureState::Drawing { step: 1, steps: 2, preview: None };
        let drawn = WaitingPicture { chat: at(ANN, COMMONS).chat, number, prompt: "a boat".into(), state };
        assert_eq!(listed, std::slice::from_ref(&drawn));
        // The next one is the first of those that wait. All are listed, for who asked alone.
        let next = asked(&scene, ANN, DM_ANN, wish("a heliotrope ship")).await;
        let (chat, state) = (at(ANN, DM_ANN).chat, PictureState::Waits { place: 1 });
        assert_eq!(azera.picture_state(&sim, at(ANN, DM_ANN), next).await.unwrap(), Some(state.clone()));
        let waits = WaitingPicture { chat, number: next, prompt: "a heliotrope ship".into(), state };
        let listed = azera.waiting_pictures(&sim, &at(ANN, COMMONS).person).await.unwrap();
        assert_eq!(listed, [drawn, waits]);
        assert_eq!(azera.waiting_pictures(&sim, &at(AN, COMMONS).person).await.unwrap(), []);
        scene.command_meanwhile(ANN, DM_ANN, "/picture cancel").await;
        scene.command_meanwhile(ANN, COMMONS, "/picture cancel").await
    };
    let (settled, _) = tokio::join!(azera.settle(), watching);
    settled.unwrap();
    assert_eq!(azera.picture_state(&sim, at(ANN, COMMONS), number).await.unwrap(), None, "it was taken back");
    assert_eq!(azera.waiting_pictures(&sim, &at(ANN, COMMONS).person).await.unwrap(), []);
    painter.hangs.store(false, Ordering::SeqCst);
    painter.failures.store(100, Ordering::SeqCst);
    let number = asked(&scene, ANN, COMMONS, wish("a ship")).await;
    for _ in 0..4 {
        scene.settled().await;
    }
    let state = azera.picture_state(&sim, at(ANN, COMMONS), number).await.unwrap();
    assert!(matches!(&state, Some(PictureState::Failed(why)) if why.contains("I could not draw that")), "{state:?}");
}

#[tokio::test]
async fn the_rules_and_the_limits_of_the_command_hold() {
    let (scene, painter) = Scene::with_painter(|settings| settings.per_person = 1).await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    for (prompt, part) in [("a nude schoolgirl", "under 18"), (" ", "Say what to draw"), (&"x".repeat(2_001), "2000")] {
        let refused = azera.ask(&sim, at(ANN, DM_ANN), wish(prompt)).await.unwrap();
        assert!(matches!(&refused, PictureAsked::Refused(why) if why.contains(part)), "{prompt}: {refused:?}");
    }
    asked(&scene, ANN, DM_ANN, wish("a boat")).await;
    let second = azera.ask(&sim, at(ANN, DM_ANN), wish("a boat")).await.unwrap();
    assert!(matches!(second, PictureAsked::TooMany(_)), "{second:?}");
    scene.settled().await;
    assert_eq!(painter.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_uploaded_picture_is_for_its_person_until_they_forget_it() {
    let (scene, painter) = Scene::with_painter(|_| {}).await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    let secret = "heliotrope";
    let png = Picture::from_rgb(9, 7, vec![120; 9 * 7 * 3]).unwrap().to_png(&[("place", secret)]).unwrap();
    let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
    assert!(holds(&png), "the test tests nothing");
    let keep = async |who, place, bytes: &[u8]| {
        azera.keep_reference(&sim, at(who, place), FileContent(bytes.to_vec())).await.unwrap()
    };
    let id = keep(ANN, DM_ANN, &png).await.unwrap();
    assert!(keep(ANN, DM_ANN, b"<svg onload=alert(1)>").await.is_err());
    let kept = azera.reference(&sim, at(ANN, DM_ANN), &id).await.unwrap().unwrap();
    assert!(kept.0.starts_with(b"\x89PNG") && !holds(&kept.0), "it is written anew without metadata");
    assert!(azera.reference(&sim, at(AN, DM_AN), &id).await.unwrap().is_none());
    let start = |strength| PictureWish {
        start: Some(PictureStart::Uploaded(id.clone())),
        strength: Some(strength),
        ..wish("a boat")
    };
    let stolen = azera.ask(&sim, at(AN, DM_AN), start(0.5)).await.unwrap();
    assert!(matches!(stolen, PictureAsked::Refused(_)), "{stolen:?}");
    asked(&scene, ANN, DM_ANN, start(0.25)).await;
    scene.settled().await;
    {
        let requests = painter.asked.lock().unwrap();
        let reference = requests[0].reference.as_ref().unwrap();
        assert_eq!((reference.png.as_slice(), reference.strength), (kept.0.as_slice(), 0.25));
    }
    scene.command(ANN, DM_ANN, "/forget me").await;
    assert!(azera.reference(&sim, at(ANN, DM_ANN), &id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_text_is_spoken_for_those_who_may_be_there() {
    let scene = Scene::open(false, false).await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    let request = SpeechRequest { text: "Good morning.".into(), persona: None, voice: None };
    let said = azera.say(&sim, at(ANN, DM_ANN), request.clone()).await.unwrap();
    assert!(matches!(&said, SpeechAnswer::Sound { wav, .. } if wav.0 == b"Good morning."), "{said:?}");
    assert!(matches!(azera.say(&sim, at(AN, DM_ANN), request).await, Err(HostError::NotAllowed)));
}

#[tokio::test]
async fn a_mood_is_given_in_ones_own_place_alone() {
    let scene = Scene::open(false, false).await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    let happy = GivenMood { name: "happy", value: 0.75 };
    let feels = async |who, place| azera.mind(&sim, at(who, place)).await.unwrap().map(|mind| mind.state);
    assert!(azera.give_mood(&sim, at(ANN, DM_ANN), happy.clone()).await.unwrap());
    let state = feels(ANN, DM_ANN).await.unwrap();
    assert_eq!((state.mood.as_deref(), state.mood_value), (Some("happy"), Some(0.75)));
    for (who, place) in [(AN, DM_AN), (ANN, COMMONS)] {
        assert_eq!(feels(who, place).await.unwrap().mood, None, "{who} in {place}");
    }
    assert!(!azera.give_mood(&sim, at(ANN, DM_ANN), GivenMood { name: "furious", value: 0.0 }).await.unwrap());
    // An is no admin of the guild, and Ann is.
    assert!(matches!(azera.give_mood(&sim, at(AN, COMMONS), happy.clone()).await, Err(HostError::NotAllowed)));
    assert!(azera.give_mood(&sim, at(ANN, COMMONS), happy.clone()).await.unwrap());
    assert!(matches!(azera.give_mood(&sim, at(BOB, DM_ANN), happy).await, Err(HostError::NotAllowed)));
    // It fades like every other mood.
    scene.pass(86_400);
    assert_eq!(feels(ANN, DM_ANN).await.unwrap().mood.as_deref(), Some("calm"));
}

#[tokio::test]
async fn a_mood_changes_how_a_persona_speaks_where_it_is_felt() {
    let scene = Scene::open(false, false).await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    let persona = PersonaId::new(DEFAULT_PERSONA).unwrap();
    let manner = async |place| {
        let manner = azera.call_manner(&sim, &chat(place), &persona).await.unwrap();
        (manner.pace, manner.liveliness)
    };
    assert_eq!(manner(DM_ANN).await, (None, None));
    assert!(azera.give_mood(&sim, at(ANN, DM_ANN), GivenMood { name: "excited", value: 0.9 }).await.unwrap());
    let (pace, liveliness) = manner(DM_ANN).await;
    assert!(pace.is_some_and(|pace| pace > 1.03 && pace <= 1.08), "{pace:?}");
    assert!(liveliness.is_some_and(|liveliness| liveliness > 1.1 && liveliness <= 1.2), "{liveliness:?}");
    assert_eq!(manner(DM_AN).await, (None, None), "nobody hears what it feels elsewhere");
    assert!(azera.give_mood(&sim, at(ANN, DM_ANN), GivenMood { name: "calm", value: 0.5 }).await.unwrap());
    assert!(manner(DM_ANN).await.0.is_some_and(|pace| pace < 1.0));
}

#[tokio::test]
async fn the_operator_sees_shared_places_and_neither_direct_messages_nor_what_is_said() {
    let mut scene = Scene::open(false, false).await;
    for (who, place) in [(ANN, DM_ANN), (AN, DM_AN), (ANN, COMMONS), (ANN, DEN)] {
        scene.say(who, place, "Azera, my secret word is heliotrope.").await;
    }
    scene.command(ANN, COMMONS, "/answer always").await;
    scene.command(ANN, COMMONS, "/journal channel here").await;
    let (azera, sim) = (&scene.engine.azera, sim(&scene));
    let listed = azera.places(&PlatformId::new("web").unwrap()).await.unwrap();
    let [found] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((&found.platform, found.direct, found.unknown), (&sim, 5, 0));
    let told = format!("{listed:?}");
    for hidden in ["heliotrope", chat(DM_ANN).as_str(), chat(DM_AN).as_str(), chat(DM_BOB).as_str()] {
        assert!(!told.contains(hidden), "{hidden}: {told}");
    }
    let place = |wanted| found.realms.iter().flat_map(|realm| &realm.chats).find(|place| place.chat == chat(wanted));
    let (commons, den) = (place(COMMONS).unwrap(), place(DEN).unwrap());
    assert_eq!(
        (commons.is_private, commons.answers, &commons.journal),
        (false, AnswerMode::Always, &Some(chat(COMMONS)))
    );
    assert_eq!((den.is_private, den.answers, &den.journal), (true, AnswerMode::Addressed, &None));
    assert_eq!((commons.persona.as_str(), commons.invited.len()), ("Luna", 0));
    assert!(azera.places(&sim).await.unwrap().is_empty(), "a platform can leave itself out");
}

fn vault_keys(folder: &std::path::Path) -> std::sync::Arc<KeyFile> {
    std::sync::Arc::new(KeyFile::new(folder.join("vault.key"), folder.join("data").join("vault")))
}

#[tokio::test]
async fn a_vault_is_read_by_its_person_in_their_own_direct_chat_alone() {
    let scene = Scene::open(false, false).await;
    let scratch = tempfile::tempdir().unwrap();
    scene.engine.azera.give_vault_keys(vault_keys(scratch.path()));
    let (azera, sim) = (scene.engine.azera.clone(), sim(&scene));
    let value = || VaultValue("heliotrope".into());
    let stored = azera.vault_store(&sim, at(ANN, DM_ANN), "lighthouse".into(), value()).await.unwrap();
    assert!(!stored, "nothing was replaced");
    let names = async |who, place| {
        let listed = azera.vault_entries(&sim, at(who, place)).await;
        listed.map(|entries| entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>())
    };
    assert_eq!(names(ANN, DM_ANN).await.unwrap(), ["lighthouse"]);
    let read = azera.vault_value(&sim, at(ANN, DM_ANN), "lighthouse".into()).await.unwrap();
    assert_eq!(read, Some(value()));
    for (who, place) in [(AN, DM_AN), (BOB, DM_BOB)] {
        assert!(names(who, place).await.unwrap().is_empty(), "{who}");
        assert_eq!(azera.vault_value(&sim, at(who, place), "lighthouse".into()).await.unwrap(), None);
        assert!(!azera.vault_delete(&sim, at(who, place), "lighthouse".into()).await.unwrap());
    }
    // In a place that others read, and in the chat of somebody else, nobody has a vault.
    for (who, place) in [(ANN, COMMONS), (ANN, DEN), (AN, COMMONS), (AN, DM_ANN), (BOB, DM_ANN)] {
        assert!(matches!(names(who, place).await, Err(HostError::NotAllowed)), "{who} in {place}");
        let read = azera.vault_value(&sim, at(who, place), "lighthouse".into()).await;
        assert!(matches!(read, Err(HostError::NotAllowed)), "{who} in {place}");
        let stored = azera.vault_store(&sim, at(who, place), "other".into(), value()).await;
        assert!(matches!(stored, Err(HostError::NotAllowed)), "{who} in {place}");
        let deleted = azera.vault_delete(&sim, at(who, place), "lighthouse".into()).await;
        assert!(matches!(deleted, Err(HostError::NotAllowed)), "{who} in {place}");
    }
    let refused = azera.vault_store(&sim, at(ANN, DM_ANN), "a b".into(), value()).await.unwrap_err();
    assert!(refused.in_words().contains("a-z") && !refused.in_words().contains("heliotrope"), "{refused}");
    // What is said of memories never holds it: not searches, not the export, which names it, and not the person's prompt.
    for (place, command) in [(DM_ANN, "/me"), (DM_ANN, "/memory search blue"), (DM_ANN, "/memory export")] {
        let answer = scene.command(ANN, place, command).await;
        assert!(!answer.contains("heliotrope"), "{command}: {answer}");
        assert_eq!(answer.contains("lighthouse"), command == "/memory export", "{command}: {answer}");
    }
}

#[tokio::test]
async fn a_vault_is_forgotten_with_its_person() {
    let scene = Scene::open(false, false).await;
    let scratch = tempfile::tempdir().unwrap();
    scene.engine.azera.give_vault_keys(vault_keys(scratch.path()));
    let (azera, sim) = (scene.engine.azera.clone(), sim(&scene));
    for (who, place) in [(ANN, DM_ANN), (BOB, DM_BOB)] {
        let value = VaultValue(format!("secret {who}"));
        azera.vault_store(&sim, at(who, place), "code".into(), value).await.unwrap();
    }
    scene.command(ANN, DM_ANN, "/forget me").await;
    assert!(azera.vault_entries(&sim, at(ANN, DM_ANN)).await.unwrap().is_empty());
    assert_eq!(azera.vault_entries(&sim, at(BOB, DM_BOB)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn without_its_key_a_vault_is_neither_read_nor_replaced() {
    let scene = Scene::open(false, false).await;
    let (azera, sim) = (scene.engine.azera.clone(), sim(&scene));
    let none = azera.vault_entries(&sim, at(ANN, DM_ANN)).await.unwrap_err();
    assert!(none.in_words().contains("keeps no vaults"), "{none}");
    let scratch = tempfile::tempdir().unwrap();
    let keys = vault_keys(scratch.path());
    azera.give_vault_keys(keys.clone());
    azera.vault_store(&sim, at(ANN, DM_ANN), "code".into(), VaultValue("heliotrope".into())).await.unwrap();
    let (kept, folder) = (std::fs::read(keys.path()).unwrap(), scratch.path().join("data"));
    std::fs::remove_file(keys.path()).unwrap();
    // Not even a folder says any more that a key was made; the vaults in the record do.
    std::fs::remove_dir_all(&folder).unwrap();
    for (who, place) in [(ANN, DM_ANN), (BOB, DM_BOB)] {
        let stored = azera.vault_store(&sim, at(who, place), "code".into(), VaultValue("x".into())).await;
        assert!(matches!(stored, Err(HostError::Storage(_))), "{who}: {stored:?}");
    }
    assert!(!keys.path().exists(), "no other key is made");
    assert!(azera.vault_value(&sim, at(ANN, DM_ANN), "code".into()).await.is_err());
    let options = {
        use std::os::unix::fs::OpenOptionsExt;
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(keys.path())
    };
    std::io::Write::write_all(&mut options.unwrap(), &kept).unwrap();
    let read = azera.vault_value(&sim, at(ANN, DM_ANN), "code".into()).await.unwrap();
    assert_eq!(read, Some(VaultValue("heliotrope".into())));
}

#[tokio::test]
async fn the_operator_changes_shared_places_by_the_rules_of_the_commands_and_no_direct_message() {
    let mut scene = Scene::open(false, false).await;
    for (who, place) in [(ANN, DM_ANN), (ANN, COMMONS)] {
        scene.say(who, place, "Azera, my secret word is heliotrope.").await;
    }
    let operator = PersonId::new("web:owner").unwrap();
    let change = async |place, changes: Vec<PlaceChange>| {
        scene.engine.azera.change_place(&operator, &chat(place), changes).await
    };
    let made = change(
        COMMONS,
        vec![
            PlaceChange::Answers(AnswerMode::Never),
            PlaceChange::Journal(true),
            PlaceChange::Spoken(SpokenReplies::Always),
            PlaceChange::Persona("nobody".into()),
            PlaceChange::Answers(AnswerMode::Always),
        ],
    )
    .await
    .unwrap();
    assert_eq!(made.done.len(), 3, "{made:?}");
    assert_eq!(made.refused.as_deref(), Some("There is no persona nobody; `/persona list` names them."));
    let listed = scene.engine.azera.places(&PlatformId::new("web").unwrap()).await.unwrap();
    let places = listed[0].realms.iter().flat_map(|realm| &realm.chats);
    let commons = places.into_iter().find(|place| place.chat == chat(COMMONS)).unwrap();
    assert_eq!(
        (commons.answers, commons.spoken, &commons.journal),
        (AnswerMode::Never, SpokenReplies::Always, &Some(chat(COMMONS)))
    );
    assert!(!format!("{made:?}").contains("heliotrope"));
    for place in [DM_ANN, DM_BOB] {
        let refused = change(place, vec![PlaceChange::Answers(AnswerMode::Never)]).await;
        assert!(matches!(refused, Err(HostError::NotAllowed)), "{refused:?}");
    }
    let nowhere = azera_types::ChatId::new("nowhere").unwrap();
    let refused = scene.engine.azera.change_place(&operator, &nowhere, Vec::new()).await;
    assert!(matches!(refused, Err(HostError::NotAllowed)), "{refused:?}");
}
