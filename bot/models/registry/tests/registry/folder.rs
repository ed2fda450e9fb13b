//! Tests of the models folder without a network.

use std::fs;

use azera_model_registry::{CheckedAgainst, Error, Family, Kind, Models, Pooling, State};

use crate::fixtures::{NOW, entry, gguf, gguf_with, hub_source, open, quiet, says, sha256, tiny};

const NO_HUB: &str = "http://127.0.0.1:9";

fn state(models: &Models, name: &str) -> State {
    models.list().unwrap().into_iter().find(|listed| listed.entry.name == name).unwrap().state
}

fn in_use(models: &Models) -> Vec<String> {
    let list = models.list().unwrap().into_iter().filter(|listed| listed.in_use);
    list.map(|listed| listed.entry.name).collect()
}

#[tokio::test]
async fn a_persons_own_file_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let file = folder.path().join("mine.gguf");
    fs::write(&file, gguf("qwen3", 64, &[("qwen3.context_length", 4096), ("general.file_type", 15)])).unwrap();
    let imported = models.import(&file, "mine", None, NOW, &quiet).await.unwrap();
    assert_eq!(imported.warnings, Vec::<String>::new());
    assert_eq!(imported.manifest.checked_against, CheckedAgainst::Nothing);
    let entry = &imported.manifest.model;
    assert_eq!((entry.kind, entry.family, entry.context_length), (Kind::Chat, Family::Qwen3, 4096));
    assert_eq!((entry.title.as_str(), entry.licence.as_str(), entry.parameters), ("Tiny", "unknown", 64));
    assert_eq!(entry.description, "Imported; architecture qwen3, Q4_K_M.");
    // The import is independent: another process knows it, and the original file may go.
    fs::remove_file(&file).unwrap();
    let again = open(folder.path(), NO_HUB, "");
    assert_eq!(again.find("mine").unwrap().unwrap().manifest, imported.manifest);
    assert_eq!(again.verify("mine", &quiet).await.unwrap(), imported.manifest);
    // It has no source, and a pull after its removal says so.
    assert_eq!(again.pull("mine", NOW, &quiet).await.unwrap(), imported.manifest);
    assert!(again.remove("mine", false).unwrap() > 64 * 4);
    assert_eq!(again.registry().unwrap().get("mine"), None);
}

#[tokio::test]
async fn an_embedding_file_is_recognized_by_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let file = folder.path().join("file");
    fs::write(&file, gguf("bert", 8, &[("bert.embedding_length", 12), ("bert.pooling_type", 2)])).unwrap();
    let imported = models.import(&file, "vectors", None, NOW, &quiet).await.unwrap();
    let embedding = imported.manifest.model.embedding.unwrap();
    assert_eq!((embedding.dimension, embedding.pooling, embedding.max_tokens), (12, Pooling::Cls, 2_048));
    assert_eq!(imported.warnings.len(), 2, "{:?}", imported.warnings);
    let error = models.import(&file, "chatty", Some(Kind::Chat), NOW, &quiet).await.unwrap_err();
    says(&error, &["architecture bert", "cannot be used as chat model"]);
}

#[tokio::test]
async fn a_rejected_import_is_explained() {
    async fn check(bytes: &[u8], name: &str, said: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file.gguf");
        fs::write(&file, bytes).unwrap();
        let pin = format!("sha256 = \"{}\"", "0".repeat(64));
        let models = open(folder.path(), NO_HUB, &entry("pinned", &[hub_source("m.gguf", &pin)]));
        let error = models.import(&file, name, None, NOW, &quiet).await.unwrap_err();
        says(&error, said);
        assert!(models.list().unwrap().iter().all(|listed| matches!(listed.state, State::Available)));
    }
    check(b"PK\x03\x04", "mine", &["file.gguf is not a usable GGUF model", "letters GGUF"]).await;
    check(&tiny()[..200], "mine", &["incomplete"]).await;
    check(&tiny()[..tiny().len() - 1], "mine", &["incomplete"]).await;
    check(&tiny(), "../mine", &["\"../mine\" cannot name a model"]).await;
    check(&gguf("llama", 4, &[("split.count", 3)]), "mine", &["one of 3 parts", "llama-gguf-split --merge"]).await;
    check(&tiny(), "pinned", &["SHA-256", &sha256(&tiny()), "was expected"]).await;
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let error = models.import(&folder.path().join("none.gguf"), "mine", None, NOW, &quiet).await.unwrap_err();
    says(&error, &["none.gguf"]);
    let empty = tempfile::tempdir().unwrap();
    let error = models.import(empty.path(), "mine", None, NOW, &quiet).await.unwrap_err();
    says(&error, &["config.json"]);
    assert!(!folder.path().join(".staging/mine/converted").exists());
    // A registry model keeps its kind.
    let file = folder.path().join("file.gguf");
    fs::write(&file, tiny()).unwrap();
    let error = models.import(&file, "qwen3-4b", Some(Kind::Embedding), NOW, &quiet).await.unwrap_err();
    says(&error, &["architecture llama", "cannot be used as embedding model"]);
}

#[tokio::test]
async fn a_registry_model_can_be_imported_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("download (1).gguf");
    fs::write(&file, tiny()).unwrap();
    let pin = format!("sha256 = \"{}\"", sha256(&tiny()));
    let models = open(folder.path(), NO_HUB, &entry("pinned", &[hub_source("m.gguf", &pin)]));
    let imported = models.import(&file, "pinned", None, NOW, &quiet).await.unwrap();
    assert_eq!(imported.manifest.checked_against, CheckedAgainst::Registry);
    assert_eq!(Some(&imported.manifest.model), models.registry().unwrap().get("pinned"));
    assert_eq!(imported.warnings, Vec::<String>::new());
    let error = models.import(&file, "pinned", None, NOW, &quiet).await.unwrap_err();
    says(&error, &["already a model called pinned"]);
    // Without a pinned SHA-256 the file is accepted, with a warning that nobody vouches for it.
    let imported = models.import(&file, "qwen3-4b", None, NOW, &quiet).await.unwrap();
    assert_eq!(imported.manifest.checked_against, CheckedAgainst::Nothing);
    assert!(imported.warnings[0].contains("pins no SHA-256 for qwen3-4b"), "{:?}", imported.warnings);
}

#[tokio::test]
async fn one_model_of_each_kind_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let defaults = ["smollm2-135m", "minilm-l6-v2", "whisper-base", "piper-en-us-joe", "silero-vad"];
    assert_eq!(in_use(&models), defaults);
    let file = folder.path().join("tiny.gguf");
    fs::write(&file, tiny()).unwrap();
    models.import(&file, "tiny", None, NOW, &quiet).await.unwrap();
    says(&models.select("qwen3-4b").unwrap_err(), &["azera models pull qwen3-4b"]);
    assert_eq!(models.select("tiny").unwrap().name, "tiny");
    let next_process = open(folder.path(), NO_HUB, "");
    assert_eq!(next_process.selected(Kind::Chat).unwrap().unwrap().name, "tiny");
    let others = ["minilm-l6-v2", "whisper-base", "piper-en-us-joe", "silero-vad", "tiny"];
    assert_eq!(in_use(&next_process), others);

    let error = models.remove("tiny", false).unwrap_err();
    assert!(matches!(error, Error::InUse { kind: Kind::Chat, .. }));
    says(&error, &["tiny is the chat model in use", "--force"]);
    fs::remove_file(&file).unwrap();
    assert!(models.remove("tiny", true).unwrap() > tiny().len() as u64);
    assert_eq!(in_use(&models), defaults);
    says(&models.remove("smollm2-135m", true).unwrap_err(), &["not on this machine"]);
    says(&models.remove("tiny", true).unwrap_err(), &["no model called tiny"]);
}

#[cfg(unix)]
#[tokio::test]
async fn an_import_shares_its_bytes_with_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let file = folder.path().join("tiny.gguf");
    fs::write(&file, tiny()).unwrap();
    let link = folder.path().join("link.gguf");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    models.import(&link, "tiny", None, NOW, &quiet).await.unwrap();
    let installed = models.find("tiny").unwrap().unwrap().path;
    assert!(fs::symlink_metadata(&installed).unwrap().is_file(), "the file is shared, not the link");
    // A sparse file looks as large as a model and uses almost no space.
    fs::File::create(installed.with_file_name("model.gguf.shape")).unwrap().set_len(1 << 30).unwrap();
    // Only the manifest's bytes become free while the original file exists.
    assert!(models.remove("tiny", false).unwrap() < 10_000);
    assert_eq!(fs::read(&file).unwrap(), tiny());
}

#[tokio::test]
async fn damage_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let file = folder.path().join("tiny.gguf");
    fs::write(&file, tiny()).unwrap();
    models.import(&file, "tiny", None, NOW, &quiet).await.unwrap();
    let path = models.find("tiny").unwrap().unwrap().path;
    let mut bytes = tiny();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(state(&models, "tiny"), State::Installed(_)), "its length is right");
    let error = models.verify("tiny", &quiet).await.unwrap_err();
    says(&error, &["the file of tiny is damaged", "SHA-256", "azera models pull tiny"]);
    fs::write(&path, &bytes[1..]).unwrap();
    assert!(matches!(state(&models, "tiny"), State::Damaged { .. }));
    assert_eq!(models.find("tiny").unwrap(), None);
    // An unreadable manifest affects no other model.
    fs::write(path.with_file_name("manifest.toml"), "size = [").unwrap();
    assert!(models.list().unwrap().len() >= 8);
    assert!(models.remove("tiny", false).unwrap() > 0);
    assert!(!folder.path().join("tiny").exists());
}

#[test]
fn an_invalid_registry_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ledger.toml"), "[[model]]\nname = 7\n").unwrap();
    let error = Models::open(azera_model_registry::Options::new(folder.path())).unwrap_err();
    says(&error, &["ledger.toml is not usable", "line 2", "Correct it"]);
}

#[tokio::test]
async fn a_busy_model_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let file = folder.path().join("tiny.gguf");
    fs::write(&file, tiny()).unwrap();
    models.import(&file, "tiny", None, NOW, &quiet).await.unwrap();
    let lock = fs::File::open(folder.path().join(".staging/tiny.lock")).unwrap();
    lock.lock().unwrap();
    let error = models.remove("tiny", false).unwrap_err();
    assert!(error.is_transient());
    says(&error, &["another process is fetching or changing tiny"]);
    lock.unlock().unwrap();
    models.remove("tiny", false).unwrap();
}

#[tokio::test]
async fn an_installed_reranker_is_in_use_without_a_choice() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    assert_eq!(models.selected(Kind::Reranker).unwrap(), None, "none is fetched by itself");
    let file = folder.path().join("ranker.gguf");
    let head = ("cls.output.weight", 4);
    let ranker = |tokens| gguf_with("bert", head, &[], &[("bert.pooling_type", 4), ("bert.context_length", tokens)]);
    for (name, tokens) in [("one", 512), ("other", 256)] {
        fs::write(&file, ranker(tokens)).unwrap();
        let imported = models.import(&file, name, None, NOW, &quiet).await.unwrap();
        assert_eq!((imported.manifest.model.kind, imported.manifest.model.context_length), (Kind::Reranker, tokens));
    }
    let selected = || models.selected(Kind::Reranker).unwrap().map(|entry| entry.name);
    assert_eq!(selected().as_deref(), Some("one"));
    models.select("other").unwrap();
    assert_eq!(selected().as_deref(), Some("other"));
    models.remove("other", true).unwrap();
    assert_eq!(selected().as_deref(), Some("one"));
    models.remove("one", true).unwrap();
    assert_eq!(selected(), None);
    // What scores pairs makes no vectors, and a model that writes scores no pairs in one step.
    fs::write(&file, ranker(512)).unwrap();
    let error = models.import(&file, "one", Some(Kind::Embedding), NOW, &quiet).await.unwrap_err();
    says(&error, &["cannot be used as embedding model"]);
    fs::write(&file, gguf("qwen3", 4, &[("qwen3.pooling_type", 4)])).unwrap();
    let error = models.import(&file, "one", None, NOW, &quiet).await.unwrap_err();
    says(&error, &["architecture qwen3", "cannot be used as reranker model"]);
}

#[tokio::test]
async fn a_reranker_is_known_by_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let file = folder.path().join("ranker.gguf");
    let head = ("cls.output.weight", 4);
    // Many files of rerankers have no pooling type.
    fs::write(&file, gguf_with("bert", head, &["a", "b"], &[])).unwrap();
    let imported = models.import(&file, "silent", None, NOW, &quiet).await.unwrap();
    assert_eq!(imported.manifest.model.kind, Kind::Reranker);
    let error = models.import(&file, "vectors", Some(Kind::Embedding), NOW, &quiet).await.unwrap_err();
    says(&error, &["cannot be used as embedding model"]);
    // A file that only says that it scores has worthless scores.
    fs::write(&file, gguf("bert", 4, &[("bert.pooling_type", 4)])).unwrap();
    for kind in [None, Some(Kind::Reranker)] {
        let error = models.import(&file, "headless", kind, NOW, &quiet).await.unwrap_err();
        says(&error, &["cannot be used as reranker model"]);
    }
    // One that says how it makes vectors can make them.
    fs::write(&file, gguf_with("bert", head, &[], &[("bert.pooling_type", 2)])).unwrap();
    let imported = models.import(&file, "both", Some(Kind::Embedding), NOW, &quiet).await.unwrap();
    assert_eq!(imported.manifest.model.kind, Kind::Embedding);
}

#[tokio::test]
async fn a_file_with_a_token_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), NO_HUB, "");
    let file = folder.path().join("twice.gguf");
    for (architecture, tensor) in [("bert", "cls.output.weight"), ("bert", "output.weight"), ("llama", "output.weight")]
    {
        fs::write(&file, gguf_with(architecture, (tensor, 4), &["a", "b", "a"], &[])).unwrap();
        let error = models.import(&file, "twice", None, NOW, &quiet).await.unwrap_err();
        says(&error, &["twice.gguf has the token \"a\" twice", "choose another file"]);
    }
    assert!(models.find("twice").unwrap().is_none(), "nothing is installed");
}
