//! Tests of a model whose voices come from elsewhere: from the hub, or from a package of npm.

use std::{fs, io::Write, path::Path};

use azera_model_registry::{Models, Options, State};
use flate2::{Compression, write::GzEncoder};

use crate::{
    fixtures::{NOW, options, quiet, says, sha256},
    hub_server::{HubServer, Served},
    wheel::{NO_HUB, python_with, write_named_wheel},
};

/// Bytes of a voice.
const VOICE: usize = 510 * 256 * 4;
/// The digest and the size of the model below with the voices `a` of zeros and `b` of ones.
const PREPARED: (&str, usize) = ("fa37cbfff3d40bcd138e8340e5a3fb17f26ad6f9d8b760a04b07cedf1209c026", 1_044_609);

/// Returns an ONNX model whose graph has nothing but the input `style`.
fn model() -> Vec<u8> {
    [b"\x3a\x09\x5a\x07\x0a\x05".as_slice(), b"style"].concat()
}

/// Writes an npm package with these voices as `npm pack` would leave it.
fn write_package(path: &Path, voices: &[(&str, u8)]) {
    let mut tar = Vec::new();
    for (name, byte) in voices {
        let mut header = [0_u8; 512];
        let file = format!("package/voices/{name}.bin");
        header[..file.len()].copy_from_slice(file.as_bytes());
        header[124..135].copy_from_slice(format!("{VOICE:011o}").as_bytes());
        tar.extend(header);
        tar.resize(tar.len() + VOICE, *byte);
    }
    tar.resize(tar.len() + 1_024, 0);
    let mut gzip = GzEncoder::new(fs::File::create(path).unwrap(), Compression::fast());
    gzip.write_all(&tar).unwrap();
    gzip.finish().unwrap();
}

/// Returns a registry with a model from two wheels, with voices of these sources.
fn registry(voices: &[&str]) -> String {
    let (sha256, size) = PREPARED;
    let mut text =
        "[[model]]\nname = \"tiny\"\nkind = \"voice\"\nfamily = \"generic\"\ntitle = \"Tiny\"\ndescription = \"\"\n\
                    parameters = 1\nram_mib = 1\ndownload_mib = 1\nlicence = \"MIT\"\nvoices = [\"a\", \"b\"]\n"
            .to_owned();
    for voices in voices {
        text += &format!(
            "[[model.sources]]\nkind = \"wheel\"\npackage = \"azera-tiny-part{{n}}\"\nversion = \"1.0\"\n\
             member = \"azera_tiny_part{{n}}/part.bin\"\nparts = 2\nconvert = \"kokoro-onnx\"\nsha256 = \"{sha256}\"\n\
             size = {size}\n[model.sources.voices]\n{voices}\n"
        );
    }
    text
}

const HUB: &str = "kind = \"hub\"\nrepo = \"owner/tiny\"\nfolder = \"voices\"";
const NPM: &str = "kind = \"npm\"\npackage = \"tiny-js\"\nversion = \"1.0\"\nfolder = \"package/voices\"";

/// Opens the models of a folder, with a pip that knows the two wheels and an npm that runs this line of a shell.
fn open(folder: &Path, endpoint: &str, npm: &str, registry: &str) -> Models {
    let wheels = folder.join("wheels");
    fs::create_dir_all(&wheels).unwrap();
    for (number, part) in (1..).zip([&model()[..4], &model()[4..]]) {
        let package = format!("azera_tiny_part{number}");
        write_named_wheel(&wheels, &package, &format!("{package}/part.bin"), part);
    }
    let dir = folder.join("models");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("ledger.toml"), registry).unwrap();
    let npm = ["sh", "-c", npm].map(str::to_owned).to_vec();
    Models::open(Options { python: python_with(&wheels), npm, ..options(&dir, endpoint) }).unwrap()
}

#[tokio::test]
async fn voices_of_an_npm_package_become_part_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("tiny.tgz");
    write_package(&package, &[("b", 1), ("a", 0)]);
    // npm works in the folder that it leaves the package in, and its last argument names the package.
    let npm = format!(
        "[ \"$0\" = pack ] && for last; do :; done; [ \"$last\" = tiny-js@1.0 ] && cp '{}' .",
        package.display()
    );
    let models = open(folder.path(), NO_HUB, &npm, &registry(&[HUB, NPM]));
    let manifest = models.pull("tiny", NOW, &quiet).await.unwrap();
    assert_eq!(manifest.source, "2 wheels azera-tiny-part1 1.0 with voices of npm package tiny-js 1.0");
    let installed = models.find("tiny").unwrap().unwrap();
    assert_eq!(installed.entry.voices, ["a", "b"]);
    let file = fs::read(&installed.path).unwrap();
    assert_eq!((sha256(&file).as_str(), file.len()), PREPARED);
    models.verify("tiny", &quiet).await.unwrap();
    let left = fs::read_dir(models.dir().join(".staging")).unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["tiny.lock"]);
}

#[tokio::test]
async fn voices_of_the_hub_make_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let server = HubServer::start(Served::large(&[0; VOICE])).await;
    server.put("voices/a.bin", Served::large(&[0; VOICE]));
    server.put("voices/b.bin", Served::large(&[1; VOICE]));
    let models = open(folder.path(), &server.endpoint, "false", &registry(&[HUB]));
    let manifest = models.pull("tiny", NOW, &quiet).await.unwrap();
    assert_eq!((manifest.sha256.as_str(), manifest.size as usize), PREPARED);
}

#[tokio::test]
async fn a_missing_npm_and_its_errors_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let pull = async |npm: &str| {
        open(folder.path(), NO_HUB, npm, &registry(&[NPM])).pull("tiny", NOW, &quiet).await.unwrap_err()
    };
    says(&pull("echo '404 Not Found' >&2; exit 1").await, &["npm could not fetch tiny-js@1.0: 404 Not Found"]);
    says(&pull("exit 0").await, &["it left no package"]);
    let package = folder.path().join("tiny.tgz");
    write_package(&package, &[("a", 0)]);
    let incomplete = pull(&format!("cp '{}' .", package.display())).await;
    says(&incomplete, &["tiny-js 1.0 is not as expected: it has no file package/voices/b.bin"]);
    // Another voice makes another model.
    write_package(&package, &[("a", 0), ("b", 2)]);
    says(&pull(&format!("cp '{}' .", package.display())).await, &["SHA-256", "not installed"]);
    let models = open(folder.path(), NO_HUB, "", &registry(&[NPM]));
    let models = Models::open(Options { npm: vec!["no-such-npm".to_owned()], ..options(models.dir(), NO_HUB) });
    let models = models.unwrap();
    let error = models.pull("tiny", NOW, &quiet).await.unwrap_err();
    says(&error, &["`no-such-npm` cannot be run", "Node.js"]);
    assert!(models.list().unwrap().iter().all(|listed| !matches!(listed.state, State::Installed(_))));
}
