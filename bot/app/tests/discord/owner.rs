//! What the owner sees over the web: servers and channels by their names, and no direct messages.

use serde_json::{Value, json};

use crate::bot::Bot;
use crate::commands::give;
use crate::local_web::Web;
use crate::{answers, as_described, fake};

#[test]
fn the_owner_sees_servers_and_channels_and_counts_direct_messages() {
    let fake = fake();
    let (ann, bob) = fake.world(|world| (world.user("Ann"), world.user("Bob")));
    let (guild, square, den) = fake.world(|world| {
        let guild = world.guild(ann, &[bob]);
        let square = world.channel(guild, "square", Vec::new());
        (guild, square, world.private_channel(guild, "den", &[ann, bob]))
    });
    let dm = fake.world(|world| world.dm(bob));
    let mut bot = Bot::new(&fake, None).with("AZERA__HTTP__ENABLED", "true").with("AZERA__HTTP__LISTEN", "127.0.0.1:0");
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    for (channel, who) in [(square, ann), (den, bob), (dm, bob)] {
        let said = fake.world(|world| world.say(channel, who, "Azera, my secret word is heliotrope."));
        fake.wait("an answer", |world| (!answers(world, channel, said).is_empty()).then_some(()));
    }
    give(&fake, square, ann, "answer", "always", &[]);
    give(&fake, square, ann, "journal", "here", &[]);
    let web = Web::of(&bot.data());
    let owner = web.own();
    let (status, listed) = owner.send("GET", "/api/places", &Value::Null);
    assert_eq!(status, 200, "{listed}");
    let discord = &listed["items"][0];
    assert_eq!((&listed["total"], &discord["platform"]), (&json!(1), &json!("discord")));
    assert_eq!(
        (&discord["is_reachable"], &discord["direct"], &discord["unknown"]),
        (&json!(true), &json!(1), &json!(0))
    );
    let realm = &discord["realms"][0];
    assert_eq!(realm["id"], format!("discord:{guild}"));
    assert!(realm["name"].as_str().is_some_and(|name| !name.is_empty()), "{realm}");
    let place = |id: u64, name: &str, is_private: bool, answers: &str, journal: Value| {
        json!({
            "id": format!("discord:{id}"), "name": name, "is_private": is_private, "persona": "Azera", "invited": [],
            "answers": answers, "spoken_replies": "auto", "journal": journal,
        })
    };
    let want = json!([
        place(den, "den", true, "addressed", Value::Null),
        place(square, "square", false, "always", json!(format!("discord:{square}"))),
    ]);
    assert_eq!(realm["chats"], want);
    assert!(discord["since"].is_string() && discord["last_trouble"].is_null(), "{discord}");
    let link = discord["invitation"]["link"].as_str().expect("a link");
    assert!(link.starts_with("https://discord.com/oauth2/authorize?client_id="), "{link}");
    let change = |id: u64, changes: Value| owner.send("PUT", &format!("/api/places/discord:{id}"), &changes);
    let (status, changed) = change(den, json!({"answers": "always", "journal_here": true}));
    assert_eq!(status, 200, "{changed}");
    let unaddressed = fake.world(|world| world.say(den, bob, "The tide is high."));
    fake.wait("an answer to everything", |world| (!answers(world, den, unaddressed).is_empty()).then_some(()));
    assert_eq!(change(dm, json!({"answers": "never"})).0, 404, "nobody changes a direct message for another");
    assert!(!listed.to_string().contains("heliotrope") && !listed.to_string().contains("Bob"), "{listed}");
    bot.stop(&fake);
    as_described(&fake);
}
