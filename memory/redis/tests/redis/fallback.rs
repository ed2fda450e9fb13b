use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azera_memory::{Error, RamWorking, Working, conformance};
use azera_memory_redis::{FallbackWorking, MAX_OWED_KEYS, RedisWorking};
use azera_types::Timestamp;
use tempfile::TempDir;

use super::server::RedisServer;
use super::{at, connect};

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
fn the_contract_is_kept_with_the_server_and_without() {
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
fn the_house_goes_on_without_the_server_and_comes_back_to_it() {
    let (dir, server, near) = (TempDir::new().unwrap(), RedisServer::start(), RamWorking::new());
    let working = open(&server, &near, dir.path());
    put(&working, "kept", "before");
    put(&working, "changed", "before");
    put(&working, "removed", "before");
    assert_eq!(get(&near, "kept"), None, "the server holds it, not this machine");

    server.pause();
    assert_eq!(get(&working, "kept"), None, "out of reach");
    put(&working, "changed", "meanwhile");
    working.remove("removed").unwrap();
    assert_eq!(get(&working, "changed").as_deref(), Some("meanwhile"));
    assert_eq!(get(&working, "removed"), None);
    assert_eq!(working.sweep(at(1)).unwrap(), 0);
    assert!(dir.path().join("owed").exists());

    server.resume();
    assert_eq!(get(&working, "kept").as_deref(), Some("before"), "the server is asked again");
    assert_ne!(get(&working, "changed").as_deref(), Some("before"), "a value older than the last one written");
    assert_eq!(get(&working, "removed"), None, "a value that was removed meanwhile");
    assert_eq!(get(&near, "changed"), None, "what stood in is empty again");
    assert!(!dir.path().join("owed").exists());
    put(&working, "changed", "after");
    assert_eq!(get(&connect(&server), "changed").as_deref(), Some("after"));
}

#[test]
fn what_is_cleared_while_the_server_is_away_is_cleared_there_before_it_is_asked() {
    let (dir, server, near) = (TempDir::new().unwrap(), RedisServer::start(), RamWorking::new());
    let working = open(&server, &near, dir.path());
    put(&working, "a", "secret");
    server.pause();
    working.clear().unwrap();
    // The process ends before the server is back.
    drop(working);
    server.resume();
    assert_eq!(get(&connect(&server), "a").as_deref(), Some("secret"), "the server could not be told");
    let working = open(&server, &near, dir.path());
    assert_eq!(get(&working, "a"), None);
    assert_eq!(get(&connect(&server), "a"), None, "it is gone there too");
}

/// Something far away that can be out of reach.
struct Far {
    held: RamWorking,
    away: Arc<AtomicBool>,
}

impl Far {
    fn reach(&self) -> Result<&RamWorking, Error> {
        let away = || Error::Backend { what: "asking", why: "away".into(), transient: true };
        if self.away.load(Ordering::SeqCst) { Err(away()) } else { Ok(&self.held) }
    }
}

impl Working for Far {
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        self.reach()?.get(key, now)
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        self.reach()?.put(key, value, ttl, now)
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        self.reach()?.remove(key)
    }

    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        self.reach()?.sweep(now)
    }

    fn clear(&self) -> Result<(), Error> {
        self.reach()?.clear()
    }
}

#[test]
fn many_changes_without_the_server_cost_all_it_holds() {
    let check = |changes: usize, kept: Option<&str>| {
        let (dir, held, away) = (TempDir::new().unwrap(), RamWorking::new(), Arc::new(AtomicBool::new(false)));
        let far = Far { held: held.clone(), away: away.clone() };
        let working = FallbackWorking::new(far, RamWorking::new(), dir.path().join("owed")).unwrap();
        put(&working, "kept", "before");
        away.store(true, Ordering::SeqCst);
        (0..changes).for_each(|number| put(&working, &number.to_string(), "meanwhile"));
        away.store(false, Ordering::SeqCst);
        assert_eq!(get(&working, "kept").as_deref(), kept, "after {changes} changes");
        assert_eq!(get(&held, "0"), None);
    };
    check(MAX_OWED_KEYS, Some("before"));
    check(MAX_OWED_KEYS + 1, None);
}

#[test]
fn what_this_machine_held_before_the_server_came_into_use_is_not_shown_later() {
    let (dir, server, near) = (TempDir::new().unwrap(), RedisServer::start(), RamWorking::new());
    put(&near, "a", "ages ago");
    let working = open(&server, &near, dir.path());
    server.pause();
    assert_eq!(get(&working, "a"), None);
}
