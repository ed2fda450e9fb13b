//! Commands: each is given by people who are permitted to and by people who are not. Also the commands on a message.

use std::time::{Duration, Instant};

use azera_fake_discord::{FakeDiscord, Invoked, World};
use serde_json::{Value, json};

use crate::bot::Bot;
use crate::{answered_for_good, answers, as_described, fake};

/// The rank that a command needs in a channel with several people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rank {
    Members,
    Admins,
    Operators,
}

use Rank::{Admins, Members, Operators};

/// A command in one of its forms, with valid options.
type Form = (&'static str, &'static str, &'static [(&'static str, &'static str)], Rank);

const WORDS: &[(&str, &str)] = &[("words", "lighthouse")];
const FIRST: &[(&str, &str)] = &[("number", "1")];
const DREAM: &[(&str, &str)] = &[("text", "I dreamt that the lighthouse walked into the sea.")];

/// All forms, with the destructive ones last.
const FORMS: &[Form] = &[
    ("help", "", &[], Members),
    ("persona", "list", &[], Members),
    ("persona", "show", &[("name", "azera")], Members),
    ("persona", "export", &[("name", "azera")], Members),
    ("persona", "template", &[], Members),
    ("persona", "use", &[("name", "azera")], Admins),
    ("persona", "invite", &[("name", "areza")], Admins),
    ("persona", "dismiss", &[("name", "areza")], Admins),
    ("persona", "upload", &[("file", "no persona")], Admins),
    ("persona", "edit", &[("name", "azera")], Admins),
    ("persona", "confirm", &[], Admins),
    ("persona", "cancel", &[], Admins),
    ("persona", "rollback", &[("name", "nobody")], Admins),
    ("persona", "remove", &[("name", "nobody")], Admins),
    ("persona", "portrait", &[("name", "nobody")], Admins),
    ("persona", "face", &[("number", "987654")], Admins),
    ("why", "", &[], Members),
    ("why", "", &[("id", "m999999")], Members),
    ("branch", "new", &[("name", "aside")], Members),
    ("branch", "list", &[], Members),
    ("branch", "switch", &[("name", "main")], Members),
    ("swipe", "next", &[], Members),
    ("swipe", "previous", &[], Members),
    ("remember", "", &[("text", "the lighthouse is closed on Mondays")], Members),
    ("me", "", &[], Members),
    ("memory", "search", WORDS, Members),
    ("memory", "stats", &[], Members),
    ("memory", "pin", &[("id", "m999999")], Members),
    ("memory", "update", &[("id", "m999999"), ("text", "the soup is cold")], Members),
    ("memory", "replace", &[("id", "m999999"), ("newer", "m999998")], Members),
    ("memory", "current", &[("id", "m999999")], Members),
    ("memory", "rate", &[("id", "m999999"), ("rating", "helpful")], Members),
    ("memory", "learnt", &[], Members),
    ("memory", "known", &[], Members),
    ("memory", "known-off", &[("id", "m999999"), ("counts", "off")], Members),
    ("memory", "themes", &[], Members),
    ("memory", "episodes", &[("words", "lighthouse"), ("page", "1")], Members),
    ("memory", "open", &[], Members),
    ("memory", "files", &[], Members),
    ("memory", "file", &[("id", "nothing.txt")], Members),
    ("graph", "list", &[], Members),
    ("graph", "show", &[("name", "lighthouse")], Members),
    ("graph", "merge", &[("names", "Ann = Annie")], Members),
    ("graph", "split", &[("names", "Ann = Annie")], Members),
    ("dream", "list", &[], Members),
    ("dream", "show", FIRST, Members),
    ("dream", "search", WORDS, Members),
    ("dream", "import", DREAM, Admins),
    ("dream", "export", &[], Members),
    ("journal", "list", &[], Members),
    ("journal", "show", FIRST, Members),
    ("journal", "search", WORDS, Members),
    ("journal", "import", DREAM, Admins),
    ("journal", "export", &[], Members),
    ("journal", "trigger", &[], Admins),
    ("journal", "where", &[], Members),
    ("journal", "here", &[], Admins),
    ("journal", "off", &[], Admins),
    ("garden", "list", &[], Members),
    ("garden", "show", FIRST, Members),
    ("garden", "search", WORDS, Members),
    ("garden", "import", DREAM, Admins),
    ("garden", "export", &[], Members),
    ("garden", "write", &[], Admins),
    ("garden", "publish", FIRST, Admins),
    ("imagine", "", &[("prompt", "a lighthouse"), ("size", "wide"), ("negative", "fog, people")], Members),
    ("picture", "again", &[], Members),
    ("picture", "vary", FIRST, Members),
    ("picture", "upscale", FIRST, Members),
    ("picture", "pin", FIRST, Members),
    ("picture", "unpin", FIRST, Members),
    ("picture", "edit", FIRST, Members),
    ("picture", "remix", &[("prompt", "a castle"), ("from", "1")], Members),
    ("picture", "delete", FIRST, Members),
    ("picture", "cancel", &[], Members),
    ("picture", "queue", &[], Members),
    ("picture", "rules", &[], Members),
    ("picture", "adult", &[("choice", "off")], Admins),
    ("picture", "forbid", &[("word", "soup")], Admins),
    ("picture", "permit", &[("word", "soup")], Admins),
    ("gallery", "list", &[], Members),
    ("gallery", "pinned", &[], Members),
    ("gallery", "show", FIRST, Members),
    ("gallery", "by", &[("name", "me")], Members),
    ("gallery", "in", &[("channel", "here")], Members),
    ("gallery", "search", WORDS, Members),
    // Nobody can use these in a channel, and everyone is told why.
    ("checkin", "show", &[], Members),
    ("checkin", "on", &[], Members),
    ("checkin", "off", &[], Members),
    ("hearth", "status", &[], Members),
    ("hearth", "opt-in", &[], Members),
    ("hearth", "opt-out", &[], Members),
    ("hearth", "history", &[], Members),
    ("hearth", "rollback", &[], Admins),
    ("link", "new", &[], Members),
    ("link", "code", &[("code", "00000000")], Members),
    ("link", "confirm", &[], Members),
    ("link", "list", &[], Members),
    ("link", "remove", &[], Members),
    ("notes", "", &[], Members),
    ("tag", "list", &[], Members),
    ("tag", "add", &[("tag", "old")], Admins),
    ("tag", "find", &[("tag", "old")], Members),
    ("tag", "remove", &[("tag", "old")], Admins),
    ("group", "join", &[("name", "lamps")], Admins),
    ("group", "list", &[], Members),
    ("group", "leave", &[], Admins),
    ("privacy", "show", &[], Members),
    ("privacy", "addressed", &[], Members),
    ("privacy", "everything", &[], Members),
    ("settings", "show", &[], Members),
    ("settings", "locale", &[("locale", "none")], Admins),
    ("status", "", &[], Members),
    ("rules", "list", &[], Admins),
    ("rules", "test", &[("text", "you are an idiot")], Admins),
    ("rules", "add", &[("rule", "jokes joke Laugh along.")], Admins),
    ("rules", "remove", &[("name", "jokes")], Admins),
    ("rules", "restore", &[("name", "jokes")], Admins),
    ("tune", "", &[], Admins),
    ("tune", "", &[("name", "no-such-number"), ("value", "1")], Admins),
    ("answer", "show", &[], Admins),
    ("answer", "addressed", &[], Admins),
    ("answer", "always", &[], Admins),
    ("answer", "never", &[], Admins),
    ("model", "show", &[], Members),
    ("model", "list", &[], Members),
    ("model", "use", &[("name", "no-such-model")], Operators),
    ("model", "pull", &[("name", "no-such-model")], Operators),
    ("model", "remove", &[("name", "no-such-model")], Operators),
    // Nobody is in a voice channel, and everyone is told so.
    ("voice", "settings", &[], Members),
    ("voice", "join", &[], Members),
    ("voice", "leave", &[], Members),
    ("voice", "say", &[("text", "something")], Members),
    ("voice", "stop", &[], Members),
    ("voice", "mute", &[], Members),
    ("voice", "unmute", &[], Members),
    ("voice", "consent", &[("choice", "yes")], Members),
    ("voice", "captions", &[("choice", "on")], Members),
    ("voice", "record", &[("choice", "on")], Members),
    ("voice", "recordings", &[("what", "get"), ("number", "4711")], Members),
    ("voice", "transcript", &[], Members),
    ("voice", "replies", &[], Members),
    ("voice", "samples", &[], Members),
    ("voice", "sample-add", &[("name", "ann")], Members),
    ("voice", "sample-use", &[("name", "default")], Admins),
    ("voice", "sample-remove", &[("name", "nobody")], Members),
    // Whether these are allowed depends on the person's own messages. Other tests check that.
    ("regenerate", "", &[], Members),
    ("memory", "export", &[], Members),
    ("memory", "export-files", &[("which", "files")], Members),
    ("forget", "last", &[], Members),
    ("forget", "memory", &[("id", "m999999")], Members),
    ("forget", "me", &[], Members),
    ("forget", "chat", &[], Admins),
];

/// Returns true if an answer refuses the command.
fn is_refusal(answer_text: &str) -> bool {
    ["for admins", "Only admins", "only admins", "for the operator", "Only the operator"]
        .iter()
        .any(|words| answer_text.contains(words))
}

/// Returns a command's options, as a person's client sends them.
fn options(world: &mut World, name: &str, form: &str, values: &[(&str, &str)]) -> Value {
    let command = world.commands.iter().find(|command| command["name"] == *name).expect("it is declared");
    let declared = command["options"].as_array().cloned().unwrap_or_default();
    let declared = match declared.iter().find(|option| option["type"] == 1 && option["name"] == *form) {
        Some(sub) => sub["options"].as_array().cloned().unwrap_or_default(),
        None => declared,
    };
    let given = values.iter().map(|(name, value)| {
        let kind = &declared.iter().find(|option| option["name"] == *name).expect("it is declared")["type"];
        let value = match kind.as_u64() {
            Some(4) => json!(value.parse::<u64>().expect("a number")),
            Some(5) => json!(*value == "true"),
            Some(11) => json!(world.hand_in("persona.md", value.as_bytes())),
            _ => json!(value),
        };
        json!({"name": name, "type": kind, "value": value})
    });
    let given: Vec<Value> = given.collect();
    if form.is_empty() { json!(given) } else { json!([{"name": form, "type": 1, "options": given}]) }
}

/// The interaction answer type of a modal.
const MODAL: u64 = 9;

/// Returns the answer to a command, or the form that it opens.
#[track_caller]
pub fn answer_text(fake: &FakeDiscord, id: u64) -> String {
    let answer = fake.wait("a command's answer", |world| {
        let answer = &world.interaction(id).answer;
        (answer.message.is_some() || answer.kind == Some(MODAL)).then(|| answer.clone())
    });
    if answer.kind == Some(MODAL) {
        return answer.first.unwrap_or_default().to_string();
    }
    assert!(answer.ephemeral, "everybody sees it");
    let message = answer.message.unwrap_or_default();
    format!("{}{}", message["content"].as_str().unwrap_or_default(), message["file_text"].as_str().unwrap_or_default())
}

/// Gives a command and waits for the answer.
#[track_caller]
pub fn give(fake: &FakeDiscord, channel: u64, who: u64, name: &str, form: &str, values: &[(&str, &str)]) -> String {
    let id = fake.world(|world| {
        let options = options(world, name, form, values);
        world.invoke(channel, who, Invoked::Command { name: name.to_owned(), kind: 1, options, target: None })
    });
    answer_text(fake, id)
}

/// Asks for a kept file; returns its name and its bytes.
pub fn kept_file(fake: &FakeDiscord, channel: u64, who: u64, which: &str) -> Option<(String, Vec<u8>)> {
    let id = fake.world(|world| {
        let options = options(world, "memory", "file", &[("id", which)]);
        world.invoke(channel, who, Invoked::Command { name: "memory".to_owned(), kind: 1, options, target: None })
    });
    answer_text(fake, id);
    let files = fake.world(|world| {
        let files = world.interaction(id).answer.files.iter().map(|file| (file.name.clone(), file.bytes.clone()));
        files.collect::<Vec<_>>()
    });
    files.into_iter().next()
}

/// Chooses a command from the menu of a message.
fn choose_from_menu(fake: &FakeDiscord, channel: u64, who: u64, name: &str, target: u64) -> u64 {
    let what = Invoked::Command { name: name.to_owned(), kind: 3, options: json!([]), target: Some(target) };
    fake.world(|world| world.invoke(channel, who, what))
}

/// Creates a server that Ann owns, with Bob and Cid in it, and a channel.
pub fn square(fake: &FakeDiscord) -> ([u64; 3], u64) {
    fake.world(|world| {
        let people = ["Ann", "Bob", "Cid"].map(|name| world.user(name));
        let guild = world.guild(people[0], &people[1..]);
        (people, world.channel(guild, "square", Vec::new()))
    })
}

/// How long a search may fail to find a new message, which must be embedded first.
pub const SEARCH_TIMEOUT: Duration = Duration::from_secs(300);

/// Searches memory until a word is found, because indexing takes a moment. The bot must recall new memories at once.
#[track_caller]
pub fn find(fake: &FakeDiscord, channel: u64, who: u64, words: &str, word: &str) {
    let until = Instant::now() + SEARCH_TIMEOUT;
    while !give(fake, channel, who, "memory", "search", &[("words", words)]).contains(word) {
        assert!(Instant::now() < until, "{word} is not found in {channel}");
    }
}

#[track_caller]
pub fn ask(fake: &FakeDiscord, channel: u64, who: u64) -> u64 {
    let question = fake.world(|world| world.say(channel, who, "Azera, what of the lighthouse?"));
    answered_for_good(fake, channel, question, "Noted.");
    question
}

#[test]
fn every_command_is_obeyed_or_refused_by_rank() {
    let fake = fake();
    let ([ann, bob, cid], square) = square(&fake);
    let mut bot = Bot::new(&fake, None).with("AZERA__DISCORD__OPERATORS", &cid.to_string());
    bot.start(&fake);
    let declared = fake.wait("the commands", |world| (!world.commands.is_empty()).then(|| world.commands.clone()));
    for command in declared.iter().filter(|command| command["type"] == 1) {
        let forms = command["options"].as_array().into_iter().flatten().filter(|option| option["type"] == 1);
        let mut forms: Vec<&str> = forms.filter_map(|form| form["name"].as_str()).collect();
        if forms.is_empty() {
            forms.push("");
        }
        for form in forms {
            let name = command["name"].as_str().expect("a name");
            let tried = FORMS.iter().any(|(command, tried, ..)| (*command, *tried) == (name, form));
            assert!(tried, "/{name} {form} is declared, and nobody tries it");
        }
    }
    ask(&fake, square, bob);
    for (name, form, values, who) in FORMS {
        for (person, rank) in [(bob, Members), (ann, Admins), (cid, Operators)] {
            let answer_text = give(&fake, square, person, name, form, values);
            assert_eq!(is_refusal(&answer_text), rank < *who, "/{name} {form} by one of the {rank:?}: {answer_text}");
        }
    }
    as_described(&fake);
}

#[test]
fn people_can_show_and_forget_only_what_is_their_own() {
    let fake = fake();
    let ([ann, bob, cid], square) = square(&fake);
    let dm = fake.world(|world| world.dm(bob));
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    ask(&fake, square, bob);
    let refused = give(&fake, square, cid, "regenerate", "", &[]);
    assert!(refused.contains("Only the person I answered"), "{refused}");
    assert_eq!(give(&fake, square, bob, "regenerate", "", &[]), "Done.");
    assert_eq!(give(&fake, square, ann, "regenerate", "", &[]), "Done.");
    // Bob's secret from a direct message stays his own in every search.
    give(&fake, dm, bob, "remember", "", &[("text", "the password is heliotrope")]);
    for who in [ann, bob, cid] {
        let found = give(&fake, square, who, "memory", "search", &[("words", "password heliotrope")]);
        assert!(!found.contains("heliotrope"), "{found}");
    }
    let refused = give(&fake, square, bob, "memory", "export", &[]);
    assert!(refused.contains("direct message"), "{refused}");
    assert!(give(&fake, dm, bob, "memory", "export", &[]).contains("heliotrope"));
    // Bob's fact from the channel is found there, and only he can forget it.
    let kept = give(&fake, square, bob, "remember", "", &[("text", "the ferry leaves at nine")]);
    let id = kept.split('`').nth(1).expect("its id").to_owned();
    let refused = give(&fake, square, cid, "forget", "memory", &[("id", &id)]);
    assert!(refused.contains("somebody else's"), "{refused}");
    let receipt = give(&fake, square, bob, "forget", "memory", &[("id", &id)]);
    assert!(receipt.starts_with("Forgotten"), "{receipt}");
    as_described(&fake);
}

#[test]
fn a_command_from_a_messages_menu_concerns_that_message() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the menus", |world| (!world.commands.is_empty()).then_some(()));
    let first = ask(&fake, square, bob);
    ask(&fake, square, ann);
    let reply = |question: u64| {
        let id = fake.world(|world| world.answers(square, question)[0]["id"].clone());
        id.as_str().and_then(|id| id.parse::<u64>().ok()).expect("an id")
    };
    let why = answer_text(&fake, choose_from_menu(&fake, square, ann, "Why?", reply(first)));
    assert!(why.contains("Prompt in tokens"), "{why}");
    let refused = answer_text(&fake, choose_from_menu(&fake, square, ann, "Remember this", first));
    assert!(refused.contains("somebody else's"), "{refused}");
    let kept = answer_text(&fake, choose_from_menu(&fake, square, bob, "Remember this", first));
    assert!(kept.starts_with("Kept as"), "{kept}");
    // The branch begins at the chosen message, not at the end.
    let form = choose_from_menu(&fake, square, bob, "Branch from here", reply(first));
    let custom_id = fake.wait("a form", |world| {
        let form = world.interaction(form).answer.first.as_ref()?;
        form["custom_id"].as_str().map(str::to_owned)
    });
    let fields = vec![("name".to_owned(), "elsewhere".to_owned())];
    let branched = fake.world(|world| world.invoke(square, bob, Invoked::Form { custom_id, fields }));
    let branched = answer_text(&fake, branched);
    assert!(branched.contains("elsewhere") && branched.contains("Azera: \"Noted.\""), "{branched}");
    let refused = answer_text(&fake, choose_from_menu(&fake, square, bob, "Forget this", ask(&fake, square, ann)));
    assert!(!refused.starts_with("Forgotten"), "an owner's words are not Bob's: {refused}");
    let receipt = answer_text(&fake, choose_from_menu(&fake, square, bob, "Forget this", first));
    assert!(receipt.starts_with("Forgotten") && receipt.contains("built on it"), "{receipt}");
    let receipt = answer_text(&fake, choose_from_menu(&fake, square, ann, "Forget this", reply(first)));
    assert!(receipt.starts_with("Forgotten"), "{receipt}");
    fake.wait("the reply to go", |world| answers(world, square, first).is_empty().then_some(()));
    as_described(&fake);
}
