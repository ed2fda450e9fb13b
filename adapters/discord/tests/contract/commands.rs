//! Commands, buttons and menus.

use azera_fake_discord::Invoked;
use serde_json::json;

use crate::{WHOLE, answered, fake, record, square, start, texts};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_answered_while_the_model_is_busy_and_only_the_person_sees_it() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    // The model is busy.
    record.go_on.send_replace(false);
    let long = fake.world(|world| world.say(square, ann, "Azera, take your time"));
    let why = || Invoked::Command { name: "why".to_owned(), kind: 1, options: json!([]), target: None };
    for _ in 0..100 {
        let id = fake.world(|world| world.invoke(square, ann, why()));
        let answer = fake.wait("an answer", |world| {
            let found = world.interaction(id);
            found.answer.message.is_some().then(|| found.clone())
        });
        assert_eq!((answer.answer.kind, answer.answer.ephemeral), (Some(5), true));
        assert_eq!(answer.answer.message.unwrap()["content"], "/why by Ann");
        assert!(answer.acknowledged.is_some(), "before its answer");
    }
    fake.world(|world| assert!(!texts(world, square, long).contains(&WHOLE.to_owned()), "the model is still busy"));
    record.go_on.send_replace(true);
    answered(&fake, square, long, WHOLE);
    bot.stop().await;
    fake.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_acts_on_the_reply_above_it_even_after_a_restart() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    let requests = fake.world(|world| world.say(square, ann, "Azera?"));
    let (message, buttons) = fake.wait("buttons", |world| {
        let answers = world.answers(square, requests);
        let message = answers.first()?;
        let buttons = message["components"][0]["components"].as_array()?.clone();
        let id = message["id"].as_str()?.parse::<u64>().ok()?;
        (buttons.len() > 1).then_some((id, buttons))
    });
    bot.stop().await;
    std::fs::remove_file(folder.path().join("discord.json")).unwrap();
    let bot = start(&fake, folder.path(), &record).await;
    for (button, line) in buttons.iter().zip(["/regenerate", "/swipe previous", "/swipe next", "/why", "/forget"]) {
        let custom_id = button["custom_id"].as_str().unwrap().to_owned();
        let id = fake.world(|world| world.invoke(square, ann, Invoked::Button { message, custom_id }));
        let answer = fake.wait("an answer", |world| world.interaction(id).answer.message.clone());
        assert_eq!(answer["content"], format!("{line} by Ann about discord:{requests}~r0"));
    }
    bot.stop().await;
    fake.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_menu_acts_on_the_message_it_was_opened_on() {
    let (fake, folder, record) = (fake(), tempfile::tempdir().unwrap(), record());
    let (_, square, ann) = square(&fake);
    let bot = start(&fake, folder.path(), &record).await;
    fake.wait("the menus", |world| (!world.commands.is_empty()).then_some(()));
    let requests = fake.world(|world| world.say(square, ann, "Azera?"));
    answered(&fake, square, requests, WHOLE);
    let reply = fake.world(|world| world.answers(square, requests)[0]["id"].as_str().unwrap().parse::<u64>().unwrap());
    let choose = |name: &str, target: u64| {
        let what = Invoked::Command { name: name.to_owned(), kind: 3, options: json!([]), target: Some(target) };
        fake.world(|world| world.invoke(square, ann, what))
    };
    let said = |id: u64| {
        let message = fake.wait("an answer", |world| world.interaction(id).answer.message.clone());
        message["content"].as_str().unwrap().to_owned()
    };
    let id = choose("Why?", requests);
    assert_eq!(said(id), format!("/why by Ann about discord:{requests}"));
    let id = choose("Why?", reply);
    assert_eq!(said(id), format!("/why by Ann about discord:{requests}~r0"));
    let id = choose("Branch from here", reply);
    let form = fake.wait("a form", |world| world.interaction(id).answer.first.clone());
    let custom_id = form["custom_id"].as_str().unwrap().to_owned();
    let fields = vec![("name".to_owned(), "elsewhere".to_owned())];
    let id = fake.world(|world| world.invoke(square, ann, Invoked::Form { custom_id, fields }));
    assert_eq!(said(id), format!("/branch elsewhere by Ann about discord:{requests}~r0"));
    bot.stop().await;
    fake.world(|world| assert!(world.violations.is_empty(), "{:#?}", world.violations));
}
