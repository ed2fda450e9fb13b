use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azera_memory::{Error, RamWorking, Working, conformance};
use azera_memory_redis::{FallbackWorking, MAX_OWED_KEYS, RedisConfig, RedisWorking, RemoteWorking, leave};
use azera_memory_remote::RetryPolicy;
use azera_types::Timestamp;
use tempfile::TempDir;

use super::server::RedisServer;
use super::{PATIENCE, at, config, connect};

/// Limit for the server to be cleaned; it usually takes milliseconds.
const SOON: Duration = Duration::from_secs(60);

/// Longer than a test lasts.
const FOREVER: Duration = Duration::from_secs(3_600);

const DAY: Duration = Duration::from_secs(86_400);

fn open(server: &RedisServer, near: &RamWorking, dir: &Path) -> FallbackWorking<RedisWorking, RamWorking> {
    FallbackWorking::new(connect(server), near.clone(), dir.join("owed")).unwrap()
}

fn get(working: &impl Working, key: &str) -> Option<String> {
    working.get(key, at(1)).unwrap().map(|value| String::from_utf8(value).unwrap())
}

fn put(working: &impl Working, key: &str, value: &str) {
    working.put(key, value.as_bytes(), DAY, at(0)).unwrap();
}

#[test]
fn working_memory_passes_the_conformance_suite_with_and_without_the_server() {
    for there in [true, false] {
        conformance::working(|| {
            let (dir, mut server) = (TempDir::new().unwrap(), RedisServer::start());
            if !there {
                server.stop();
            }
            let near = RamWorking::new();
            move || open(&server, &near, dir.path())
        });
    }
}

#[test]
fn working_memory_works_without_the_server_and_returns_to_it() {
    let (dir, server, near) = (TempDir::new().unwrap(), RedisServer::start(), RamWorking::new());
    let working = open(&server, &near, dir.path());
    put(&working, "kept", "before");
    put(&working, "changed", "before");
    put(&working, "removed", "before");
    assert_eq!(get(&near, "kept"), None, "the value is on the server only");

    server.pause();
    assert_eq!(get(&working, "kept"), None, "the server is unavailable");
    put(&working, "changed", "meanwhile");
    working.remove("removed").unwrap();
    assert_eq!(get(&working, "changed").as_deref(), Some("meanwhile"));
    assert_eq!(get(&working, "removed"), None);
    assert_eq!(working.sweep(at(1)).unwrap(), 0);
    assert!(!working.wait(SOON), "changes are pending");

    server.resume();
    assert_eq!(get(&working, "kept").as_deref(), Some("before"), "values are read from the server again");
    assert_ne!(get(&working, "changed").as_deref(), Some("before"), "a value older than the last one written");
    assert_eq!(get(&working, "removed"), None, "a value that was removed meanwhile");
    assert_eq!(get(&near, "changed"), None, "the local values were removed");
    assert!(working.wait(SOON));
    put(&working, "changed", "after");
    drop(working);
    assert_eq!(
        get(&open(&server, &near, dir.path()), "changed").as_deref(),
        Some("after"),
        "the value is on the server"
    );
}

#[test]
fn values_cleared_without_the_server_are_never_read_from_it_again() {
    let (dir, server, near) = (TempDir::new().unwrap(), RedisServer::start(), RamWorking::new());
    let working = open(&server, &near, dir.path());
    put(&working, "a", "secret");
    assert!(working.wait(SOON));
    server.pause();
    working.clear().unwrap();
    // The process ends before the server is back.
    drop(working);
    server.resume();
    assert_eq!(server.keys(), 1, "the server missed the clearing");
    let working = open(&server, &near, dir.path());
    assert_eq!(get(&working, "a"), None);
    assert!(working.wait(SOON));
    assert_eq!(server.keys(), 0, "the value is removed from the server, too");
}

#[test]
fn a_clearing_waits_for_no_server_and_leaves_nothing_there() {
    let (dir, server, near) = (TempDir::new().unwrap(), RedisServer::start(), RamWorking::new());
    // Whoever waits for the server waits until it is back.
    let patience = RetryPolicy { foreground: FOREVER, bulk: FOREVER, ..PATIENCE };
    let far = RedisWorking::new(RedisConfig { patience, ..config(&server) }).unwrap();
    let working = FallbackWorking::new(far, near.clone(), dir.path().join("owed")).unwrap();
    (0..3_000).for_each(|number| put(&working, &number.to_string(), "x"));
    assert!(working.wait(SOON));
    server.pause();
    let (done, cleared) = channel();
    let is_cleared = std::thread::scope(|scope| {
        scope.spawn(|| done.send(working.clear()));
        let is_cleared = cleared.recv_timeout(SOON);
        server.resume();
        is_cleared
    });
    is_cleared.expect("clearing waits for no server").unwrap();
    assert_eq!(get(&working, "7"), None);
    put(&working, "7", "new");
    assert!(working.wait(SOON));
    assert_eq!((get(&working, "7").as_deref(), server.keys()), (Some("new"), 1));
}

#[test]
fn old_values_of_a_server_that_missed_changes_are_not_used() {
    // Meanwhile the configuration named another server, or none.
    for between in [true, false] {
        let (dir, one, other) = (TempDir::new().unwrap(), RedisServer::start(), RedisServer::start());
        let near = RamWorking::new();
        let working = open(&one, &near, dir.path());
        put(&working, "a", "before");
        put(&working, "b", "before");
        drop(working);
        if between {
            let working = open(&other, &near, dir.path());
            assert_eq!(get(&working, "a"), None);
            working.clear().unwrap();
        } else {
            leave(dir.path().join("owed")).unwrap();
        }
        let working = open(&one, &near, dir.path());
        assert_eq!(get(&working, "a"), None);
        assert!(working.wait(SOON));
        assert_eq!(one.keys(), 0);
    }
}

#[test]
fn installations_with_one_prefix_share_nothing_and_key_names_reveal_nothing() {
    let (ours, theirs, server) = (TempDir::new().unwrap(), TempDir::new().unwrap(), RedisServer::start());
    let open = |dir: &TempDir| open(&server, &RamWorking::new(), dir.path());
    let (ours, theirs) = (open(&ours), open(&theirs));
    put(&ours, "quokka", "ours");
    put(&theirs, "quokka", "theirs");
    assert_eq!((get(&ours, "quokka").as_deref(), get(&theirs, "quokka").as_deref()), (Some("ours"), Some("theirs")));
    let names = server.ask("KEYS *");
    assert!(names.contains("azera:") && !names.contains("quokka"), "{names}");
    let tokens: std::collections::BTreeSet<&str> =
        names.lines().filter(|line| line.starts_with("azera:")).filter_map(|line| line.rsplit(':').next()).collect();
    assert_eq!(tokens.len(), 2, "two installations use the same name for a key: {names}");
    theirs.clear().unwrap();
    assert!(theirs.wait(SOON));
    assert_eq!(get(&ours, "quokka").as_deref(), Some("ours"));
}

/// A remote working memory that can be made unavailable.
struct UnavailableWorking {
    held: RamWorking,
    unavailable: Arc<AtomicBool>,
    space: Mutex<String>,
}

impl UnavailableWorking {
    fn name(&self, key: &str) -> String {
        format!("{} {key}", self.space.lock().unwrap())
    }

    fn reach(&self) -> Result<&RamWorking, Error> {
        let unavailable = || Error::Backend { what: "asking", why: "away".into(), transient: true };
        if self.unavailable.load(Ordering::SeqCst) { Err(unavailable()) } else { Ok(&self.held) }
    }
}

impl Working for UnavailableWorking {
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        self.reach()?.get(&self.name(key), now)
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        self.reach()?.put(&self.name(key), value, ttl, now)
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        self.reach()?.remove(&self.name(key))
    }

    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        self.reach()?.sweep(now)
    }

    fn clear(&self) -> Result<(), Error> {
        self.reach()?.clear()
    }
}

impl RemoteWorking for UnavailableWorking {
    fn place(&self) -> String {
        "far away".into()
    }

    fn begin(&self, _secret: &str, space: &str) {
        space.clone_into(&mut self.space.lock().unwrap());
    }

    fn remove_older(&self) -> Result<(), Error> {
        self.reach().map(drop)
    }

    fn remove_all(&self, keys: &[String]) -> Result<(), Error> {
        keys.iter().try_for_each(|key| self.remove(key))
    }

    fn stop(&self) {}
}

#[test]
fn too_many_changes_without_the_server_give_up_all_its_values() {
    let check = |changes: usize, retained: Option<&str>| {
        let (dir, held, unavailable) = (TempDir::new().unwrap(), RamWorking::new(), Arc::new(AtomicBool::new(false)));
        let far = UnavailableWorking { held: held.clone(), unavailable: unavailable.clone(), space: Mutex::default() };
        let working = FallbackWorking::new(far, RamWorking::new(), dir.path().join("owed")).unwrap();
        put(&working, "kept", "before");
        unavailable.store(true, Ordering::SeqCst);
        (0..changes).for_each(|number| put(&working, &number.to_string(), "meanwhile"));
        unavailable.store(false, Ordering::SeqCst);
        assert_eq!(get(&working, "kept").as_deref(), retained, "after {changes} changes");
        assert_eq!(get(&working, &(changes - 1).to_string()), None);
        unavailable.store(true, Ordering::SeqCst);
        assert_eq!(get(&working, &(changes - 1).to_string()), None, "no local value is left");
    };
    check(MAX_OWED_KEYS, Some("before"));
    check(MAX_OWED_KEYS + 1, None);
}

#[test]
fn local_values_from_before_the_server_are_not_shown_later() {
    let (dir, server, near) = (TempDir::new().unwrap(), RedisServer::start(), RamWorking::new());
    put(&near, "a", "ages ago");
    let working = open(&server, &near, dir.path());
    server.pause();
    assert_eq!(get(&working, "a"), None);
}
