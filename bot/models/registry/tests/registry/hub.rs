//! Tests of pulls from a model hub.

use std::{fs, path::Path, sync::Mutex, time::Duration};

use azera_model_registry::{CheckedAgainst, Error, Models, Options, State, Step};

use crate::{
    fixtures::{NOW, entry, gguf, hub_source, open, options, quiet, says, sha256, tiny},
    hub_server::{HubServer, Served},
};

fn unpinned() -> String {
    entry("tiny", &[hub_source("tiny.gguf", "")])
}

/// Returns the only failure of a pull with one source.
fn only_failure(error: Error) -> Error {
    match error {
        Error::PullFailed { mut failures, .. } if failures.len() == 1 => failures.remove(0).error,
        other => panic!("not one source's failure: {other}"),
    }
}

/// Asserts that the folder shows no trace of `tiny`.
fn assert_absent(models: &Models, folder: &Path) {
    assert!(!folder.join("tiny").exists());
    assert_eq!(models.find("tiny").unwrap(), None);
}

#[tokio::test]
async fn a_model_is_fetched_checked_and_installed() {
    let server = HubServer::start(Served::large(&tiny())).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ledger.toml"), unpinned()).unwrap();
    let options = Options { hub_token: Some("secret-token".to_owned()), ..options(folder.path(), &server.endpoint) };
    assert!(!format!("{options:?}").contains("secret-token"));
    let models = Models::open(options).unwrap();
    let steps = Mutex::new(Vec::new());
    let progress = |step: Step<'_>| steps.lock().unwrap().push(format!("{step:?}"));
    let manifest = models.pull("tiny", NOW, &progress).await.unwrap();

    assert_eq!(manifest.sha256, sha256(&tiny()));
    assert_eq!(manifest.size, tiny().len() as u64);
    assert_eq!(manifest.checked_against, CheckedAgainst::Hub);
    assert_eq!((manifest.source.as_str(), manifest.installed_at.as_str()), ("hub owner/tiny/tiny.gguf", NOW));
    let installed = models.find("tiny").unwrap().unwrap();
    assert_eq!(installed.manifest, manifest);
    assert_eq!(fs::read(&installed.path).unwrap(), tiny());
    assert_eq!(models.verify("tiny", &quiet).await.unwrap(), manifest);

    let steps = steps.into_inner().unwrap();
    let total = tiny().len();
    assert_eq!(steps.first().unwrap(), "Trying { source: \"hub owner/tiny/tiny.gguf\" }");
    assert!(steps.contains(&format!("Receiving {{ file: \"tiny.gguf\", received: {total}, total: Some({total}) }}")));
    assert!(steps.contains(&format!("Verifying {{ done: {total}, total: {total} }}")));
    assert_eq!(steps.last().unwrap(), "Installed");

    let requests = server.requests();
    assert!(requests.iter().filter(|requests| !requests.path.starts_with("/cdn")).all(|requests| {
        requests.path == "/owner/tiny/resolve/main/tiny.gguf"
            && requests.token.as_deref() == Some("Bearer secret-token")
    }));
    // An installed model is not requested again, by this process or the next.
    assert_eq!(models.pull("tiny", "later", &quiet).await.unwrap(), manifest);
    assert_eq!(server.requests(), requests);
}

#[tokio::test]
async fn small_files_are_served_by_the_hub_itself() {
    // Their ETag is not a SHA-256, so nobody vouches for them.
    let served = Served { large: false, etag: "9f86d081884c7d65".to_owned(), ..Served::large(&tiny()) };
    let server = HubServer::start(served).await;
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), &server.endpoint, &unpinned());
    let manifest = models.pull("tiny", NOW, &quiet).await.unwrap();
    assert_eq!(manifest.checked_against, CheckedAgainst::Nothing);
    assert_eq!(manifest.sha256, sha256(&tiny()));
}

#[tokio::test]
async fn a_broken_transfer_is_resumed_at_once() {
    let server = HubServer::start(Served { cuts: vec![100_000], ..Served::large(&tiny()) }).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ledger.toml"), unpinned()).unwrap();
    let models = Models::open(Options { hub_attempts: 1, ..options(folder.path(), &server.endpoint) }).unwrap();
    models.pull("tiny", NOW, &quiet).await.unwrap();
    assert_eq!(server.transfers(), [None, Some("bytes=100000-".to_owned())]);
    assert_eq!(fs::read(models.find("tiny").unwrap().unwrap().path).unwrap(), tiny());
}

#[tokio::test]
async fn a_later_pull_resumes_an_earlier_one() {
    let server = HubServer::start(Served { cuts: vec![150_000], ..Served::large(&tiny()) }).await;
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), &server.endpoint, &unpinned());
    let error = models.pull("tiny", NOW, &quiet).await.unwrap_err();
    assert!(error.is_transient());
    says(&error, &["tiny could not be fetched", "after 150000 of 400", "pull again to go on"]);
    assert_absent(&models, folder.path());
    let state =
        |models: &Models| models.list().unwrap().into_iter().find(|listed| listed.entry.name == "tiny").unwrap().state;
    let State::Partial { bytes } = state(&models) else { panic!("{:?}", state(&models)) };
    assert!((150_000..150_200).contains(&bytes), "{bytes}");

    let next_process = open(folder.path(), &server.endpoint, &unpinned());
    let first = Mutex::new(None);
    let progress = |step: Step<'_>| {
        if let Step::Receiving { received, .. } = step {
            first.lock().unwrap().get_or_insert(received);
        }
    };
    next_process.pull("tiny", NOW, &progress).await.unwrap();
    assert_eq!(server.transfers(), [None, Some("bytes=150000-".to_owned())]);
    assert_eq!(first.into_inner().unwrap(), Some(150_000));
    assert!(matches!(state(&models), State::Installed(_)));
}

#[tokio::test]
async fn parts_of_another_version_are_not_mixed_in() {
    let server = HubServer::start(Served { cuts: vec![150_000], ..Served::large(&tiny()) }).await;
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), &server.endpoint, &unpinned());
    models.pull("tiny", NOW, &quiet).await.unwrap_err();
    let newer = gguf("llama", 100_001, &[]);
    server.put("tiny.gguf", Served::large(&newer));
    assert_eq!(models.pull("tiny", NOW, &quiet).await.unwrap().sha256, sha256(&newer));
    assert_eq!(server.transfers(), [None, None]);
}

#[tokio::test]
async fn a_server_without_ranges_starts_again() {
    let server = HubServer::start(Served { cuts: vec![150_000], ranges: false, ..Served::large(&tiny()) }).await;
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), &server.endpoint, &unpinned());
    models.pull("tiny", NOW, &quiet).await.unwrap_err();
    assert_eq!(models.pull("tiny", NOW, &quiet).await.unwrap().sha256, sha256(&tiny()));
    assert_eq!(server.transfers(), [None, Some("bytes=150000-".to_owned())]);
}

#[tokio::test]
async fn wrong_bytes_are_rejected_and_deleted() {
    /// Pulls a file that is served as `served` and pinned as `pins`. Nothing of it may remain.
    async fn check(served: Served, pins: &str, said: &[&str], transfers: usize) {
        let server = HubServer::start(served).await;
        let folder = tempfile::tempdir().unwrap();
        let models = open(folder.path(), &server.endpoint, &entry("tiny", &[hub_source("tiny.gguf", pins)]));
        let error = models.pull("tiny", NOW, &quiet).await.unwrap_err();
        assert!(!error.is_transient());
        says(&only_failure(error), said);
        assert_absent(&models, folder.path());
        let listed = models.list().unwrap().into_iter().find(|listed| listed.entry.name == "tiny").unwrap();
        assert_eq!(listed.state, State::Available, "nothing partial is left either");
        assert_eq!(server.transfers().len(), transfers);
    }
    let other = "0".repeat(64);
    // The hub offers another file: this is known before the transfer.
    let hash = format!("sha256 = \"{other}\"");
    check(Served::large(&tiny()), &hash, &["SHA-256", &sha256(&tiny()), &other, "not installed"], 0).await;
    check(Served::large(&tiny()), "size = 7", &["400", "bytes where 7 were expected"], 0).await;
    // The hub announces one file and sends another.
    let lying = Served { etag: other.clone(), ..Served::large(&tiny()) };
    check(lying.clone(), "", &["SHA-256", &sha256(&tiny()), &other], 1).await;
    // Nobody announces a checksum, and the file is not a model.
    let page = b"<html>Please log in</html>";
    let portal = Served { etag: "abc".to_owned(), ..Served::large(page) };
    check(portal, "", &["not a usable GGUF model", "letters GGUF"], 1).await;
    let cut = Served::large(&tiny()[..300_000]);
    check(cut, "", &["not a usable GGUF model", "incomplete"], 1).await;
}

#[tokio::test]
async fn errors_tell_what_to_do() {
    async fn check(prepare: impl Fn(&HubServer), said: &[&str], transient: bool) {
        let server = HubServer::start(Served::large(&tiny())).await;
        prepare(&server);
        let folder = tempfile::tempdir().unwrap();
        let registry = entry("tiny", &[hub_source("tiny.gguf", "")]);
        let error = open(folder.path(), &server.endpoint, &registry).pull("tiny", NOW, &quiet).await.unwrap_err();
        assert_eq!(error.is_transient(), transient, "{error}");
        says(&error, &["tiny could not be fetched", "hub owner/tiny/tiny.gguf: ", &server.endpoint]);
        says(&error, said);
    }
    check(|server| server.fail_with(404), &["no file tiny.gguf in owner/tiny at revision main"], false).await;
    check(|server| server.fail_with(401), &["set your hub token"], false).await;
    check(|server| server.fail_with(403), &["Accept its terms"], false).await;
    check(|server| server.fail_with(503), &["status 503", "later"], true).await;
    check(|server| server.fail_with(429), &["status 429"], true).await;
    let no_hub = |server: &HubServer| {
        server.put("tiny.gguf", Served { described: false, large: false, ..Served::large(&tiny()) });
    };
    check(no_hub, &["does not speak the hub's protocol", "Check the hub endpoint"], false).await;

    let folder = tempfile::tempdir().unwrap();
    let error = open(folder.path(), "http://127.0.0.1:9", "").pull("none", NOW, &quiet).await.unwrap_err();
    says(&error, &["no model called none", "smollm2-135m", "azera models import"]);
}

#[tokio::test]
async fn the_next_source_is_tried() {
    let server = HubServer::start(Served::large(&tiny())).await;
    let folder = tempfile::tempdir().unwrap();
    let sources = [hub_source("missing.gguf", ""), hub_source("tiny.gguf", ""), hub_source("never.gguf", "")];
    let models = open(folder.path(), &server.endpoint, &entry("tiny", &sources));
    let failed = Mutex::new(Vec::new());
    let progress = |step: Step<'_>| {
        if let Step::SourceFailed { source, .. } = step {
            failed.lock().unwrap().push(source.to_owned());
        }
    };
    assert_eq!(models.pull("tiny", NOW, &progress).await.unwrap().source, "hub owner/tiny/tiny.gguf");
    assert_eq!(failed.into_inner().unwrap(), ["hub owner/tiny/missing.gguf"]);
}

#[tokio::test]
async fn a_cancelled_pull_leaves_no_half_model() {
    let server = HubServer::start(Served { cuts: vec![200_000], hang: true, ..Served::large(&tiny()) }).await;
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), &server.endpoint, &unpinned());
    let half = tokio::sync::Notify::new();
    let progress = |step: Step<'_>| {
        if matches!(step, Step::Receiving { received: 200_000.., .. }) {
            half.notify_one();
        }
    };
    tokio::select! {
        done = models.pull("tiny", NOW, &progress) => panic!("it cannot end: {done:?}"),
        () = half.notified() => {}
    }
    assert_absent(&models, folder.path());
    // The lock went with the pull, so the next one can start.
    let pulled = tokio::time::timeout(Duration::from_secs(60), models.pull("tiny", NOW, &quiet)).await;
    assert_eq!(pulled.unwrap().unwrap().sha256, sha256(&tiny()));
}

#[tokio::test]
async fn two_pulls_at_once_fetch_once() {
    let server = HubServer::start(Served::large(&tiny())).await;
    let folder = tempfile::tempdir().unwrap();
    let registry = unpinned();
    let (one, other) =
        (open(folder.path(), &server.endpoint, &registry), open(folder.path(), &server.endpoint, &registry));
    let waited = Mutex::new(0);
    let progress = |step: Step<'_>| *waited.lock().unwrap() += u32::from(step == Step::Waiting);
    let (first, second) = tokio::join!(one.pull("tiny", NOW, &progress), other.pull("tiny", NOW, &progress));
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(server.transfers(), [None]);
    assert!(waited.into_inner().unwrap() > 0, "one of them waited");
}

#[tokio::test]
async fn a_model_with_a_new_pin_is_fetched_again() {
    let server = HubServer::start(Served::large(&tiny())).await;
    let folder = tempfile::tempdir().unwrap();
    let pinned = |bytes: &[u8]| entry("tiny", &[hub_source("tiny.gguf", &format!("sha256 = \"{}\"", sha256(bytes)))]);
    let models = open(folder.path(), &server.endpoint, &pinned(&tiny()));
    assert_eq!(models.pull("tiny", NOW, &quiet).await.unwrap().checked_against, CheckedAgainst::Registry);
    let newer = gguf("llama", 5, &[]);
    server.put("tiny.gguf", Served::large(&newer));
    let models = open(folder.path(), &server.endpoint, &pinned(&newer));
    assert_eq!(models.pull("tiny", NOW, &quiet).await.unwrap().sha256, sha256(&newer));
    assert_eq!(fs::read(models.find("tiny").unwrap().unwrap().path).unwrap(), newer);
}

#[tokio::test]
async fn files_are_checked_before_their_conversion() {
    let server = HubServer::start(Served::large(&tiny())).await;
    let pinned = |path: &str, sha256: &str| {
        entry(
            "tiny",
            &[hub_source("tiny.gguf", &format!("convert = \"wide-gguf\"\ninputs = {{ \"{path}\" = \"{sha256}\" }}"))],
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), &server.endpoint, &pinned("tiny.gguf", &sha256(&tiny())));
    let manifest = models.pull("tiny", NOW, &quiet).await.unwrap();
    assert_eq!(manifest.checked_against, CheckedAgainst::Registry);

    let folder = tempfile::tempdir().unwrap();
    let models = open(folder.path(), &server.endpoint, &pinned("tiny.gguf", &sha256(b"another")));
    says(&models.pull("tiny", NOW, &quiet).await.unwrap_err(), &["SHA-256"]);
    assert!(models.find("tiny").unwrap().is_none());

    let folder = tempfile::tempdir().unwrap();
    for (path, sha256) in [("other.gguf", sha256(&tiny())), ("tiny.gguf", "0".repeat(63))] {
        std::fs::write(folder.path().join("ledger.toml"), pinned(path, &sha256)).unwrap();
        let opened = Models::open(options(folder.path(), &server.endpoint)).map(|_| ());
        says(&opened.unwrap_err(), &["inputs must hold the SHA-256 of each file that is converted"]);
    }
}
