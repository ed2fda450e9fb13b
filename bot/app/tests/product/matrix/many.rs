//! Many rooms at once, and the bot's memory use.

use super::*;

/// Number of rooms.
const ROOMS: usize = 100;

/// Maximum memory of its own of a bot in that many rooms at rest, without models, in bytes. About 100 MB more of the program's
/// file are in memory, as the system sees fit: their number differs by 8 MB from run to run.
const MEMORY: u64 = 128 << 20;

/// Returns the number of messages to each room; `make soak` asks for more.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn messages() -> usize {
    let given = std::env::var("AZERA_SOAK_MESSAGES").ok();
    given.map_or(1, |given| given.parse().expect("AZERA_SOAK_MESSAGES is a number"))
}

/// Each message is answered once, in its room and in order.
#[test]
fn many_rooms_are_answered_once_and_in_order() {
    let messages = messages();
    let more = [
        ("MATRIX__PERSON_PER_MINUTE", "10000"),
        // Embeddings also come from a server, so that the process holds no model.
        ("EMBEDDING_SERVER__API", "openai"),
        ("EMBEDDING_SERVER__MODEL", "embedder"),
    ];
    let scratch = tempfile::tempdir().expect("a folder");
    let (homeserver, model) = (Homeserver::start(scratch.path()), Model::start());
    let mut more = settings(&more);
    more.push(("EMBEDDING_SERVER__URL", Some(model.url.clone())));
    let bot = Bot::start(&homeserver, scratch.path(), &model, more);
    let mut ann = Person::enter(&homeserver, scratch.path(), "ann");
    let rooms: Vec<Room> = (0..ROOMS)
        .map(|_| Room {
            id: ann.room_with(BOT, json!({"direct": true, "preset": "trusted_private_chat"})),
            encrypted: false,
        })
        .collect();
    let ids: Vec<&str> = rooms.iter().map(|room| room.id.as_str()).collect();
    let at_rest = bot.memory();
    let sent = ann.act(json!({"do": "send_many", "rooms": ids, "count": messages}));
    for room in &rooms {
        // Made-up vectors may look like an alarm, so help lines may follow the answer.
        let whole = answer_to(messages - 1);
        ann.until_said(room, BOT, &whole, |body| body.starts_with(&whole));
    }
    let seconds = sent["seconds"].as_f64().expect("a number");
    println!(
        "{ROOMS} rooms, {messages} messages to each within {seconds:.0} s; at rest {} MB, afterwards {} MB",
        at_rest >> 20,
        bot.memory() >> 20
    );
    for room in &rooms {
        assert_eq!(ann.answers(room), (0..messages).collect::<Vec<_>>(), "{}", room.id);
    }
    assert!(at_rest < MEMORY, "{} MB", at_rest >> 20);
}
