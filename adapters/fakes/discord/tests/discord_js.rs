//! Checks the fake with discord.js, an independent library that uses it like the real Discord.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use azera_fake_discord::{FakeDiscord, Invoked};
use serde_json::json;

/// A bot that is killed when this is dropped.
struct Bot(Child);

impl Drop for Bot {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns the path in a variable, if it exists: of discord.js, or of Discord's API description.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.exists())
}

#[test]
fn discord_js_logs_in_talks_uploads_and_runs_a_command() {
    let Some(library) = variable("AZERA_TEST_DISCORD_JS") else {
        println!("AZERA_TEST_DISCORD_JS names no folder: discord.js has not tried this peer");
        return;
    };
    let fake = FakeDiscord::start(variable("AZERA_DISCORD_OPENAPI").as_deref());
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root.pem");
    std::fs::write(&root, &fake.root_certificate).unwrap();
    let ann = fake.world(|world| world.user("Ann"));
    let square = fake.world(|world| {
        let guild = world.guild(ann, &[]);
        world.channel(guild, "square", Vec::new())
    });
    let mut node = Command::new("node");
    node.arg("tests/bot.mjs").stdin(Stdio::null());
    node.env("AZERA_TEST_DISCORD_JS", library).env("NODE_EXTRA_CA_CERTS", root);
    node.env("PEER_API", format!("https://{}/api", fake.api)).env("PEER_TOKEN", &fake.token);
    let _bot = Bot(node.spawn().expect("node runs"));
    fake.wait("the command", |world| (!world.commands.is_empty()).then_some(()));

    let answer = |requests: &str, with: &str| {
        let requests = fake.world(|world| world.say(square, ann, requests));
        fake.wait(&format!("{with:?}"), |world| {
            let answers = world.answers(square, requests);
            answers.into_iter().find(|answer| answer["content"] == *with).cloned()
        })
    };
    let replied = answer("hello", "You said: hello");
    assert_eq!(replied["author"]["bot"], true);
    assert!(answer("change", "second, in #square")["edited_timestamp"].is_string());
    assert_eq!(answer("file", "here")["attachments"][0]["filename"], "note.txt");

    let invoked = fake.world(|world| {
        let options = json!([{"name": "text", "type": 3, "value": "again"}]);
        world.invoke(square, ann, Invoked::Command { name: "echo".to_owned(), kind: 1, options, target: None })
    });
    let found = fake.wait("an answer", |world| {
        let found = world.interaction(invoked);
        found.answer.message.is_some().then(|| found.answer.clone())
    });
    assert_eq!((found.kind, found.ephemeral), (Some(5), true));
    assert_eq!(found.message.unwrap()["content"], "ann: again");

    // A broken connection is resumed, and missed events are sent.
    fake.world(|world| world.drop_sockets());
    answer("are you there?", "You said: are you there?");
    let (resumed, violations) = fake.world(|world| (world.resumed, world.violations.clone()));
    assert_eq!(resumed, 1);
    assert!(violations.is_empty(), "{violations:#?}");
}
