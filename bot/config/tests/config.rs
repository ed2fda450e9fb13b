//! Tests of the configuration through its public interface: where it is read from, and what errors say.

use std::path::{Path, PathBuf};

use azera_config::{Answer, Config, Error, LogFormat, Secret, ServerApi};
use insta::assert_snapshot;
use proptest::prelude::*;

/// Loads a file with this text and these variables, from a folder that no message shows.
fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("azera.toml");
    std::fs::write(&file, text).expect("a file in it");
    Config::load(Some(&file), env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

/// Returns the error for a file with this text and these variables.
fn error_text(text: &str, env: &[(&str, &str)]) -> String {
    match load(text, env).expect_err("this configuration is wrong") {
        Error::Invalid(problems) => {
            let line = |problem: &azera_config::Problem| {
                let text = problem.to_string();
                let start = text.find("azera.toml").filter(|_| text.starts_with('/'));
                start.map_or(text.clone(), |start| text.chars().skip(start).collect())
            };
            problems.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        other => panic!("{other}"),
    }
}

/// Returns what is wrong in the sections that are left out.
fn left_out_text(text: &str, env: &[(&str, &str)]) -> String {
    let config = load(text, env).expect("everything else goes on");
    let line = |problem: &azera_config::Problem| {
        let text = problem.to_string();
        text.find("azera.toml").map_or(text.clone(), |start| text.chars().skip(start).collect())
    };
    let sections = config.left_out().iter();
    let texts =
        sections.map(|it| format!("[{}]\n{}", it.section, it.problems.iter().map(line).collect::<Vec<_>>().join("\n")));
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = load("", &[]).unwrap();
    assert_eq!(config.models, azera_config::Models::default());
    assert_eq!((config.models.slots, config.models.chat.as_deref()), (8, None));
    assert_eq!(config.chat.answer, Answer::Addressed);
    assert_eq!(config.memory.top_k, None);
}

#[test]
fn the_file_sets_and_the_environment_overrides() {
    let text = "[models]\nslots = 4\nchat = \"qwen3-4b\"\n[chat]\nwake_names = [\"az\"]\n[sampling]\ntemperature = 1\n";
    let env = [
        ("AZERA__MODELS__SLOTS", "2"),
        ("AZERA__MODELS__THINKING", "true"),
        ("AZERA__CHAT__WAKE_NAMES", "azera, hey az"),
        ("AZERA__CHAT__ANSWER", "never"),
        ("AZERA__SAMPLING__MIN_P", "0.1"),
        ("AZERA__LOG__FORMAT", "json"),
        ("AZERA__MODELS__CHAT", ""),
        ("AZERA__VOICE__UNLOAD_AFTER_S", "0"),
        ("PATH", "/bin"),
    ];
    let config = load(text, &env).unwrap();
    assert_eq!((config.models.slots, config.models.thinking), (2, true));
    assert_eq!(config.models.chat.as_deref(), Some("qwen3-4b"), "an empty variable counts as unset");
    assert_eq!(config.chat.wake_names, ["azera", "hey az"]);
    assert_eq!(config.chat.answer, Answer::Never);
    assert_eq!((config.sampling.temperature, config.sampling.min_p), (Some(1.0), Some(0.1)));
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.voice.unload_after_s, 0);
}

#[test]
fn errors_name_the_line_and_the_allowed_values() {
    let text = r#"[models]
slot = 8
slots = 900
chat = 7
thinking = "yes"
hub_endpoint = "ftp://somewhere"
temperature = 0.5

[memory]
near_duplicate = 0.2
top_k = "ten"
similarity_floor = nan

[chat]
answer = "sometimes"
wake_names = ["", 3]
queue_per_chat = -1
soup = "of the day"

[modles]
chat = "x"
"#;
    assert_snapshot!(error_text(text, &[]), @r#"
    azera.toml:2: there is no key `models.slot`; did you mean `slots`?
    azera.toml:3: `models.slots` must be a whole number from 1 to 64, not 900
    azera.toml:4: `models.chat` must be a text of 1 to 100 characters, not 7
    azera.toml:5: `models.thinking` must be true or false, not "yes"
    azera.toml:6: `models.hub_endpoint` must be an http or https address of at most 2048 characters, not "ftp://somewhere"
    azera.toml:7: there is no key `models.temperature`; it belongs into [sampling]
    azera.toml:10: `memory.near_duplicate` must be a number from 0.5 to 1, not 0.2
    azera.toml:11: `memory.top_k` must be a whole number from 0 to 50, not "ten"
    azera.toml:12: `memory.similarity_floor` must be a number from 0 to 1, not nan
    azera.toml:15: `chat.answer` must be one of "addressed", "always", "never", not "sometimes"
    azera.toml:16: `chat.wake_names` must be a list of at most 16 texts of 1 to 32 characters, not ["", 3]
    azera.toml:17: `chat.queue_per_chat` must be a whole number from 1 to 1000, not -1
    azera.toml:18: there is no key `chat.soup`; there are persona, user_persona, wake_names, answer, queue_per_chat, history_messages, prompt_tokens, locale
    azera.toml:20: there is no section `modles`; did you mean `models`?
    "#);
}

#[test]
fn a_key_outside_a_section_is_told_its_section() {
    assert_snapshot!(error_text("slots = 3\nmodels = 4\nsoup = 1\n", &[]), @r"
    azera.toml:1: there is no section `slots`; `slots` belongs into [models]
    azera.toml:2: `models` is a section, written [models] on a line of its own
    azera.toml:3: there is no section `soup`; there are data, models, chat_server, embedding_server, rerank_server, reranker, sampling, memory, working_server, vector_server, chat, mind, gardener, projects, hearth, voice, recognition_server, speech_server, matrix, discord, http, images, vision_server, vault, backup, log, telemetry
    ");
}

#[test]
fn errors_in_the_environment_name_the_variable() {
    let env = [
        ("AZERA__MODELS__SLOTS", "many"),
        ("AZERA__MODEL__SLOTS", "3"),
        ("AZERA__SLOTS", "3"),
        ("AZERA__LOG__LEVEL", "loud"),
        ("AZERA__MEMORY__MIN_AGE_S", "1.5"),
        ("AZERA__VOICE__UNLOAD_AFTER_S", "59"),
    ];
    assert_snapshot!(error_text("", &env), @r#"
    environment variable AZERA__LOG__LEVEL: `log.level` must be one of "off", "error", "warn", "info", "debug", "trace", not "loud"
    environment variable AZERA__MEMORY__MIN_AGE_S: `memory.min_age_s` must be a whole number from 0 to 86400, not "1.5"
    environment variable AZERA__MODELS__SLOTS: `models.slots` must be a whole number from 1 to 64, not "many"
    environment variable AZERA__MODEL__SLOTS: there is no section `model`; did you mean `models`?
    environment variable AZERA__SLOTS: an override is written AZERA__SECTION__KEY
    environment variable AZERA__VOICE__UNLOAD_AFTER_S: `voice.unload_after_s` must be 0, or a whole number from 60 to 86400, not 59
    "#);
}

#[test]
fn contradicting_values_are_rejected() {
    let check = |text: &str| error_text(text, &[]);
    assert_snapshot!(check("[models]\nmax_reply_tokens = 4096\n"), @"azera.toml:2: `models.max_reply_tokens` (4096) must be less than `models.context_tokens` (4096), or there is no room for a prompt");
    assert_snapshot!(check("[chat]\nprompt_tokens = 4000\n"), @"azera.toml:2: `chat.prompt_tokens` (4000) leaves no room for a reply of 256 tokens in `models.context_tokens` (4096): lower it, or raise the context");
    assert_snapshot!(check("[chat]\nprompt_tokens = 4000\n[models]\nmax_reply_tokens = 300\n"), @"azera.toml:2: `chat.prompt_tokens` (4000) and `models.max_reply_tokens` (300) together must not exceed `models.context_tokens` (4096)");
    assert!(load("[chat]\nprompt_tokens = 3840\n", &[]).is_ok(), "what just fits is allowed");
    let reply = |text: &str| load(text, &[]).unwrap().reply_tokens();
    assert_eq!((reply(""), reply("[chat]\nprompt_tokens = 3700\n")), (512, 396), "unless a number is set");
    assert_eq!(reply("[models]\ncontext_tokens = 512\n"), 128, "a quarter of a small context");
    let with_model = |text: &str, context: u32| load(text, &[]).unwrap().reply_tokens_in(context);
    assert_eq!(
        (with_model("", 1_024), with_model("", 512), with_model("", 32_768)),
        (256, 128, 512),
        "the model's own"
    );
    assert_eq!(with_model("[models]\nmax_reply_tokens = 300\n", 512), 300);
    assert_eq!(reply("[models]\nmax_reply_tokens = 900\n"), 900);
    assert_snapshot!(check("[gardener]\nsurprise = false\n[hearth]\nenabled = true\n"), @"azera.toml:2: `hearth.enabled` learns what surprised most, and with `gardener.surprise = false` nothing is measured: set that to true, or `hearth.enabled` to false");
    assert!(load("[gardener]\nenabled = false\n", &[]).is_ok(), "where nobody is to learn");
    let left_out = |text: &str| left_out_text(text, &[]);
    assert_snapshot!(left_out("[images]\nkind = \"automatic1111\"\nworkflow = \"a.json\"\n"), @r"
    [images]
    azera.toml:3: `images.workflow` is for ComfyUI alone
    ");
    assert!(load("[images]\nworkflow = \"a.json\"\n", &[]).is_ok(), "while nothing draws");
}

#[test]
fn numbers_of_the_mind_are_checked() {
    assert_snapshot!(error_text("[mind]\nnight_to_hour = 1\nnap_pressure = 0.4\n", &[]), @r"
    azera.toml:2: `mind.night_from_hour` and `mind.night_to_hour` are both 1: the night has no hours
    azera.toml:3: `mind.nap_pressure` (0.4) must not be less than `mind.dream_pressure` (0.5), or it would nap before it is tired enough to dream
    ");
    assert_snapshot!(error_text("[mind]\nnight_from_hour = 24\nmood_drift_per_s = nan\nenergy = 1\n", &[]), @r"
    azera.toml:2: `mind.night_from_hour` must be a whole number from 0 to 23, not 24
    azera.toml:3: `mind.mood_drift_per_s` must be a number from 0 to 1, not nan
    azera.toml:4: there is no key `mind.energy`; there are mood_drift_per_s, mood_weight, arousal_rest, energy_per_exchange, energy_per_picture, energy_recovery_per_s, energy_idle_s, energy_tired, focus_rest, focus_decay_per_s, focus_per_exchange, pressure_per_hour, pressure_per_exchange, dream_pressure, nap_pressure, dream_relief, nap_relief, dream_idle_s, night_from_hour, night_to_hour, dream_gap_hours, nap_gap_hours, dream_min_exchanges, reflection_hour, reflection_idle_s, reflection_gap_hours, reflection_min_exchanges, clarity_threshold, clarity_focus_weight, clarity_energy_weight, clarity_freshness_weight, retry_minutes, emotion_decay_rate, emotion_max_delta
    ");
    let config = load("[mind]\nnight_from_hour = 22\nenergy_per_exchange = 0\n", &[]).unwrap();
    assert_eq!((config.mind.night_from_hour, config.mind.energy_per_exchange), (22, 0.0));
}

#[test]
fn a_matrix_server_needs_an_account() {
    let check = |text: &str| error_text(text, &[]);
    assert_snapshot!(check("[matrix]\nhomeserver = \"matrix.org\"\n"), @"azera.toml:2: `matrix.user` must name the bot's account");
    assert_snapshot!(check("[matrix]\ninvites = \"users\"\n"), @"azera.toml:2: `matrix.invites_from` must name accounts, or the bot accepts no invitation");
}

#[test]
fn a_model_server_needs_an_address_and_a_model() {
    let check = |text: &str| error_text(text, &[]);
    assert_snapshot!(check("[chat_server]\napi = \"openai\"\n"), @r"
    azera.toml:2: `chat_server.model` must name a model of the server
    azera.toml:2: `chat_server.url` must be set: such a server can be anywhere
    ");
    assert_snapshot!(check("[models]\nchat = \"a\"\n[chat_server]\napi = \"ollama\"\nmodel = \"b\"\n"), @"azera.toml:2: `models.chat` and `chat_server.api` both choose the model; leave one out");
    let env = [
        ("AZERA__CHAT_SERVER__API", "ollama"),
        ("AZERA__CHAT_SERVER__MODEL", "qwen3:8b"),
        ("AZERA__CHAT_SERVER__KEY", "sk-hush"),
    ];
    let config = load("[embedding_server]\napi = \"llama-cpp\"\nmodel = \"x\"\n", &env).unwrap();
    assert_eq!((config.chat_server.api, config.embedding_server.api), (ServerApi::Ollama, ServerApi::LlamaCpp));
    assert!(config.chat_server.url.is_none() && !format!("{config:?}").contains("hush"));
}

#[test]
fn a_rerank_server_needs_what_its_interface_does_not_tell() {
    let check = |text: &str| left_out_text(text, &[]);
    assert_snapshot!(check("[rerank_server]\napi = \"cohere\"\n"), @r"
    [rerank_server]
    azera.toml:2: `rerank_server.model` must name a model of the server
    azera.toml:2: `rerank_server.url` must be set: such a server can be anywhere
    ");
    assert_snapshot!(check("[rerank_server]\napi = \"tei\"\n"), @r"
    [rerank_server]
    azera.toml:2: `rerank_server.url` must be set: such a server can be anywhere
    ");
    let env = [("AZERA__RERANK_SERVER__KEY", "sk-hush")];
    let config = load("[rerank_server]\napi = \"llama-cpp\"\ncandidates = 12\n", &env).unwrap();
    assert!(config.rerank_server.key.is_some() && !format!("{config:?}").contains("hush"));
    assert_eq!((config.rerank_server.candidates, config.rerank_server.timeout_ms), (12, 150));
}

#[test]
fn a_speech_server_needs_an_address_and_a_model() {
    let text = "[speech_server]\napi = \"openai\"\n[recognition_server]\napi = \"openai\"\n";
    assert_snapshot!(left_out_text(text, &[]), @r"
    [recognition_server]
    azera.toml:4: `recognition_server.model` must name a model of the server
    azera.toml:4: `recognition_server.url` must be set: such a server can be anywhere
    [speech_server]
    azera.toml:2: `speech_server.model` must name a model of the server
    azera.toml:2: `speech_server.url` must be set: such a server can be anywhere
    ");
    let env = [("AZERA__SPEECH_SERVER__KEY", "sk-hush")];
    let config = load("[speech_server]\napi = \"xtts\"\n[recognition_server]\napi = \"whisper-cpp\"\n", &env).unwrap();
    assert!(config.speech_server.key.is_some() && !format!("{config:?}").contains("hush"));
}

#[test]
fn broken_toml_names_the_line() {
    assert_snapshot!(error_text("[models]\nslots = = 3\n", &[]), @"azera.toml:2: this is not TOML: extra `=`, expected nothing");
    assert_snapshot!(error_text("[log]\nlevel = \"info\"\nlevel = \"warn\"\n", &[]), @"azera.toml:3: this is not TOML: duplicate key");
}

#[test]
fn a_secret_can_be_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let file = file.to_str().unwrap();
    let key = |env: &[(&str, &str)]| load("", env).unwrap().chat_server.key.map(|key| key.expose().to_owned());
    std::fs::write(file, "sk-hush\n").unwrap();
    assert_eq!(key(&[("AZERA__CHAT_SERVER__KEY_FILE", file)]).as_deref(), Some("sk-hush"));
    let both = [("AZERA__CHAT_SERVER__KEY_FILE", file), ("AZERA__CHAT_SERVER__KEY", "sk-other")];
    assert_snapshot!(error_text("", &both), @"environment variable AZERA__CHAT_SERVER__KEY_FILE: `chat_server.key` is set here and in a variable of its own");
    for wrong in ["sk\nhush", "", &"k".repeat(20_000)] {
        std::fs::write(file, wrong).unwrap();
        let reported = error_text("", &[("AZERA__CHAT_SERVER__KEY_FILE", file)]);
        assert!(reported.contains("AZERA__CHAT_SERVER__KEY_FILE") && !reported.contains("hush"), "{reported}");
    }
    assert!(error_text("", &[("AZERA__CHAT_SERVER__KEY_FILE", "/no/such/file")]).contains("cannot be read"));
    assert!(error_text("", &[("AZERA__MODELS__SLOTS_FILE", file)]).contains("there is no key"));
}

#[test]
fn a_secret_is_read_and_never_shown() {
    let config = load("", &[("AZERA__MODELS__HUB_TOKEN", "hf_hush")]).unwrap();
    assert_eq!(config.models.hub_token.as_ref().map(Secret::expose), Some("hf_hush"));
    let shown = [format!("{config:?}"), toml::to_string(&config).unwrap()];
    assert!(shown.iter().all(|shown| !shown.contains("hush") && shown.contains("[redacted]")), "{shown:?}");
    // Nor if the secret is wrong, nor if its line is not TOML.
    for text in [
        "[models]\nhub_token = [\"hf_hush\"]\n",
        "[models]\nhub_token = hf_hush\n",
        "[models]\nhub_token = \"hf_hush\n",
    ] {
        assert!(!error_text(text, &[]).contains("hush"), "{}", error_text(text, &[]));
    }
}

#[test]
fn paths_follow_the_environment() {
    let check = |text: &str, env: &[(&str, &str)], data: &str, models: &str| {
        let config = load(text, env).unwrap();
        assert_eq!(config.data_dir().unwrap(), Path::new(data), "{text} {env:?}");
        assert_eq!(config.models_dir().unwrap(), Path::new(models), "{text} {env:?}");
    };
    let home = ("HOME", "/home/me");
    check("", &[home], "/home/me/.local/share/azera", "/home/me/.cache/azera/models");
    check("", &[home, ("XDG_DATA_HOME", "/xdg")], "/xdg/azera", "/home/me/.cache/azera/models");
    check(
        "",
        &[home, ("XDG_DATA_HOME", "not/absolute")],
        "/home/me/.local/share/azera",
        "/home/me/.cache/azera/models",
    );
    check("[data]\ndir = \"/d\"\n[models]\ndir = \"~/m\"\n", &[home], "/d", "/home/me/m");
    check("[data]\ndir = \"/d\"\n", &[home, ("AZERA_DATA", "~/e")], "/home/me/e", "/home/me/.cache/azera/models");
    check("", &[("AZERA_DATA", "/short"), ("AZERA__DATA__DIR", "/long")], "/long", "/long/models");
    assert!(matches!(load("", &[]).unwrap().data_dir(), Err(Error::NoDataDir)));
}

#[test]
fn the_file_is_searched_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, slots: u32| -> PathBuf {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("[models]\nslots = {slots}\n")).unwrap();
        path
    };
    let given = write("given.toml", 1);
    let named = write("named.toml", 2);
    let usual = write("xdg/azera/azera.toml", 3);
    let xdg = ("XDG_CONFIG_HOME", folder.path().join("xdg"));
    let env = |pairs: &[(&str, PathBuf)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, path)| ((*name).to_owned(), path.to_str().unwrap().to_owned())).collect()
    };
    let check = |given: Option<&Path>, pairs: &[(&str, PathBuf)], slots: u32, file: Option<&Path>| {
        let config = Config::load(given, env(pairs)).unwrap();
        assert_eq!((config.models.slots, config.file()), (slots, file));
    };
    let named_by_env = ("AZERA_CONFIG", named.clone());
    check(Some(&given), &[named_by_env.clone(), xdg.clone()], 1, Some(&given));
    check(None, &[named_by_env, xdg.clone()], 2, Some(&named));
    check(None, &[xdg], 3, Some(&usual));
    check(None, &[("XDG_CONFIG_HOME", folder.path().join("empty"))], 8, None);
    let missing = folder.path().join("missing.toml");
    assert!(matches!(Config::load(None, env(&[("AZERA_CONFIG", missing.clone())])), Err(Error::Read { .. })));
    assert!(matches!(Config::load(Some(&missing), env(&[])), Err(Error::Read { .. })));
}

#[test]
fn the_log_and_colours_follow_the_environment() {
    let check = |text: &str, env: &[(&str, &str)], filter: &str, colour: bool| {
        let config = load(text, env).unwrap();
        assert_eq!((config.log_filter(), config.colour()), (filter, colour), "{text} {env:?}");
    };
    check("", &[], "info", true);
    check("[log]\nlevel = \"debug\"\n", &[("NO_COLOR", "")], "debug", true);
    check(
        "[log]\nlevel = \"debug\"\n",
        &[("AZERA_LOG", "warn,azera_engine=trace"), ("NO_COLOR", "0")],
        "warn,azera_engine=trace",
        false,
    );
    check("", &[("TERM", "dumb")], "info", false);
}

#[test]
fn the_assistant_names_the_folder_of_its_session() {
    let check = |env: &[(&str, &str)], folder: Option<&str>| {
        assert_eq!(load("", env).unwrap().assistant_project_dir(), folder.map(Path::new), "{env:?}");
    };
    check(&[], None);
    check(&[("CLAUDE_PROJECT_DIR", "/home/ann/gate")], Some("/home/ann/gate"));
    check(&[("CLAUDE_PROJECT_DIR", "")], None);
    check(&[("CLAUDE_PROJECT_DIR", "gate")], None);
}

#[test]
fn a_file_beyond_the_limit_is_rejected() {
    let limit = usize::try_from(azera_config::MAX_FILE_BYTES).unwrap();
    assert!(load(&"#".repeat(limit), &[]).is_ok());
    assert!(matches!(load(&"#".repeat(limit + 1), &[]), Err(Error::TooLong { .. })));
}

#[test]
fn the_example_equals_the_defaults() {
    let example = Config::example();
    assert_eq!(load(&example, &[]).unwrap().models, Config::default().models);
    let defaults = |config: Config| toml::to_string(&config).unwrap();
    assert_eq!(defaults(load(&example, &[]).unwrap()), defaults(Config::default()));
    // The commented-out keys are valid too.
    let all: String = example.lines().map(|line| format!("{}\n", uncommented(line))).collect();
    let config = load(&all, &[]).unwrap();
    assert_eq!((config.memory.top_k, config.models.gpu_layers), (Some(10), Some(20)));
    assert!(config.models.hub_token.is_some() && config.sampling.penalty_last_n.is_some());
}

/// Returns a commented-out key as it would be used, and any other line unchanged.
fn uncommented(line: &str) -> &str {
    line.strip_prefix('#').filter(|rest| rest.starts_with(char::is_lowercase)).unwrap_or(line)
}

#[test]
fn the_example_file_is_up_to_date() {
    let file = "../../azera.example.toml";
    let text = std::fs::read_to_string(file).unwrap_or_default();
    assert!(text == Config::example(), "azera.example.toml is out of date: cargo run -p azera-tidy -- bless");
}

proptest! {
    #[test]
    fn any_text_is_read_or_rejected_with_a_reason(text in "(\\[?(models|chat|log)?\\]?|slots|=|[0-9]|\"|\\n|\\PC){0,24}") {
        if let Err(Error::Invalid(problems)) = load(&text, &[]) {
            prop_assert!(!problems.is_empty() && problems.iter().all(|problem| !problem.message.is_empty()));
        }
    }

    #[test]
    fn an_integer_is_accepted_only_within_its_range(slots in -10_i64..100) {
        let in_file = load(&format!("[models]\nslots = {slots}\n"), &[]).ok().map(|config| i64::from(config.models.slots));
        let in_env = load("", &[("AZERA__MODELS__SLOTS", &slots.to_string())]).ok().map(|config| i64::from(config.models.slots));
        prop_assert_eq!(in_file, (1..=64).contains(&slots).then_some(slots));
        prop_assert_eq!(in_env, in_file);
    }
}
