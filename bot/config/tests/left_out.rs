//! A wrong value in the section of a server that Azera works without leaves that section out, and nothing else.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use azera_config::{Config, Error, ImagesKind};

fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, Error> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("azera.toml");
    std::fs::write(&file, text).unwrap();
    Config::load(Some(&file), env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn names(config: &Config) -> Vec<&str> {
    config.left_out().iter().map(|left_out| left_out.section).collect()
}

#[test]
fn a_wrong_value_leaves_its_section_out_as_a_whole() {
    let text = "[images]\nkind = \"sidecar\"\nsteps = -3\nqueue = \"many\"\n[models]\nslots = 3\n[speech_server]\napi = \"xtts\"\n";
    let config = load(text, &[("AZERA__RERANK_SERVER__API", "soup")]).unwrap();
    assert_eq!(names(&config), ["images", "rerank_server"]);
    assert_eq!((config.images.kind, config.models.slots), (ImagesKind::None, 3));
    assert!(config.left_out_named("speech_server").is_none());
    let why = config.left_out_named("images").unwrap().why();
    assert!(why.contains(":3: `images.steps`") && why.contains("; ") && why.contains(":4: `images.queue`"), "{why}");
    // What a missing value leads to is no mistake of its own.
    assert_eq!(names(&load("[images]\nkind = \"openai\"\nurl = 7\nmodel = \"x\"\n", &[]).unwrap()), ["images"]);
}

#[test]
fn a_secret_that_cannot_be_read_leaves_its_server_out() {
    let env = [("AZERA__IMAGES__KEY_FILE", "/no/such/file"), ("AZERA__IMAGES__KIND", "sidecar")];
    let config = load("", &env).unwrap();
    assert_eq!((names(&config), config.images.kind), (vec!["images"], ImagesKind::None));
}

#[test]
fn unknown_keys_and_wrong_values_elsewhere_stop_everything() {
    for text in [
        "[images]\nkidn = \"sidecar\"\n",
        "[vision_server]\nadress = \"http://127.0.0.1:1\"\n",
        "[image]\nkind = \"sidecar\"\n",
        "[chat_server]\napi = \"openai\"\n",
        "[working_server]\nurl = \"http://127.0.0.1:1\"\n",
    ] {
        assert!(load(text, &[]).is_err(), "{text}");
    }
    // One error lists every problem, those of sections that could be left out, too.
    let Err(Error::Invalid(problems)) = load("[images]\nsteps = -3\n[models]\nslots = 900\n", &[]) else { panic!() };
    assert_eq!(problems.len(), 2);
}

#[test]
fn nothing_is_drawn_while_what_checks_pictures_is_wrong() {
    let text = "[images]\nkind = \"sidecar\"\n[vision_server]\nurl = \"http://127.0.0.1:1/v1\"\ntimeout_s = 0\n";
    let config = load(text, &[]).unwrap();
    assert_eq!((names(&config), config.images.kind), (vec!["vision_server", "images"], ImagesKind::None));
    let images = config.left_out_named("images").unwrap();
    assert!(images.why().contains("looks at finished pictures") && images.cause == "vision_server");
    let config = load("[vision_server]\ntimeout_s = 0\n", &[]).unwrap();
    assert_eq!(names(&config), ["vision_server"], "nothing draws");
}
