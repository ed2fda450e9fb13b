use azera_memory::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Working, conformance};
use azera_memory_redis::{RedisConfig, RedisWorking};

use super::server::RedisServer;
use super::{at, config, connect};

#[test]
fn working_memory_passes_the_conformance_suite() {
    conformance::working(|| {
        let server = RedisServer::start();
        move || connect(&server)
    });
    let server = RedisServer::start();
    conformance::sweeping(&connect(&server));
}

#[test]
fn a_server_with_a_password_requires_it() {
    let server = RedisServer::with_password();
    let working = connect(&server);
    working.put("a", b"1", std::time::Duration::from_secs(9), at(0)).unwrap();
    assert_eq!(working.get("a", at(1)).unwrap().as_deref(), Some(&b"1"[..]));
    for password in [None, Some("wrong-and-secret".to_owned())] {
        let error =
            RedisWorking::new(RedisConfig { password, ..config(&server) }).unwrap().get("a", at(1)).unwrap_err();
        assert!(!error.to_string().contains("secret") && !error.to_string().contains("hush"), "{error}");
    }
    let server_state = format!("{:?}", config(&server));
    assert!(!server_state.contains("hush"), "{server_state}");
}

#[test]
fn keys_of_others_are_left_alone() {
    let server = RedisServer::start();
    let ours = connect(&server);
    let theirs = RedisWorking::new(RedisConfig { prefix: "azera2".into(), ..config(&server) }).unwrap();
    for working in [&ours, &theirs] {
        for number in 0..3_000 {
            working.put(&number.to_string(), b"x", std::time::Duration::from_secs(number % 2 * 100), at(0)).unwrap();
        }
    }
    assert_eq!(ours.sweep(at(50)).unwrap(), 1_500);
    assert_eq!(theirs.get("1", at(50)).unwrap().as_deref(), Some(&b"x"[..]));
    ours.clear().unwrap();
    assert_eq!(ours.get("1", at(50)).unwrap(), None);
    assert_eq!(theirs.sweep(at(500)).unwrap(), 3_000);
}

#[test]
fn invalid_configurations_are_refused() {
    let server = RedisServer::start();
    let refused = |config: RedisConfig| match RedisWorking::new(config) {
        Err(Error::Invalid(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken"),
    };
    let with = |url: &str| RedisConfig { url: url.into(), ..config(&server) };
    assert!(refused(with("http://127.0.0.1")).contains("no address"));
    let server_state = refused(with("redis://ann:hush@127.0.0.1"));
    assert!(server_state.contains("password") && !server_state.contains("hush"), "{server_state}");
    for prefix in ["", "a*", &"a".repeat(49)] {
        assert!(refused(RedisConfig { prefix: prefix.into(), ..config(&server) }).contains("prefix"));
    }
    let working = connect(&server);
    let life = std::time::Duration::from_secs(1);
    let long = "k".repeat(MAX_KEY_BYTES + 1);
    assert!(matches!(working.put(&long, b"", life, at(0)), Err(Error::Invalid(_))));
    assert!(matches!(working.put("k", &vec![0; MAX_VALUE_BYTES + 1], life, at(0)), Err(Error::Invalid(_))));
}

#[test]
fn the_server_reports_its_version_or_that_it_is_unavailable() {
    let mut server = RedisServer::start();
    let working = connect(&server);
    let about = working.about().unwrap();
    assert!(about.server.starts_with("Redis at 127.0.0.1:") && !about.readable, "{about:?}");
    assert!(about.version.contains("Redis ") || about.version.contains("Dragonfly "), "{about:?}");
    server.stop();
    let error = working.about().unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("Redis at 127.0.0.1"), "{error}");
    server.again();
    working.about().unwrap();
    server.pause();
    let error = working.about().unwrap_err();
    assert!(error.to_string().contains("said nothing for 2.0 s"), "{error}");
    server.resume();
    working.about().unwrap();
}
