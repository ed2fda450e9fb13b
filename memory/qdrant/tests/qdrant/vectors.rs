use azera_memory::conformance::{self, DIMENSION};
use azera_memory::{Error, VectorIndex};
use azera_memory_qdrant::{QdrantConfig, QdrantVectors};
use azera_types::MemoryId;
use tonic::Code;

use super::fake::FakeServer;
use super::{config, found, point};

/// The marker made from the tests' secret.
const INSTALLATION: &str = "ad44a77595bcea57";

fn open(fake: &FakeServer) -> QdrantVectors {
    QdrantVectors::new(config(fake)).unwrap()
}

#[test]
fn the_index_passes_the_conformance_suite() {
    conformance::vector(|| {
        let fake = FakeServer::start();
        move || open(&fake)
    });
}

#[test]
fn the_server_gets_only_ids_tokens_times_and_vectors() {
    let fake = FakeServer::start();
    let index = open(&fake);
    index.upsert(vec![point(1, "quokka-realm", 0), point(2, "quokka-realm", 1), point(3, "wombat-realm", 0)]).unwrap();
    let payloads: Vec<_> = fake.world(|world| {
        let collection = world.collection("azera").unwrap();
        assert_eq!(collection.indexed, ["place", "at"]);
        collection.points.values().map(|held| held.payload.clone()).collect()
    });
    let token = |number: usize| payloads[number]["place"].to_string();
    assert_eq!(token(0), token(1), "one place, one token");
    assert_ne!(token(0), token(2));
    for payload in &payloads {
        let mut fields: Vec<_> = payload.keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["at", "place"]);
        let text = payload["place"].as_str().unwrap();
        assert!(text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit()), "{text}");
    }
    assert_eq!(found(&index, "quokka-realm", 0), [1, 2]);
}

#[test]
fn another_installation_with_the_same_configuration_is_refused() {
    let fake = FakeServer::start();
    let index = open(&fake);
    index.upsert(vec![point(1, "guild", 0)]).unwrap();
    let other = QdrantVectors::new(QdrantConfig { secret: "of another".into(), ..config(&fake) }).unwrap();
    for refused in [
        other.upsert(vec![point(2, "guild", 0)]),
        other.remove(&[MemoryId(1)]),
        other.ids().map(drop),
        other.count().map(drop),
        other.rewrite(),
        other.clear(),
    ] {
        let error = refused.unwrap_err();
        assert!(!error.is_transient() && error.to_string().contains("another data folder"), "{error}");
    }
    assert_eq!((index.count().unwrap(), fake.points()), (Some(1), vec![1]));
}

#[test]
fn a_rewrite_and_a_clearing_leave_no_old_collection_behind() {
    let fake = FakeServer::start();
    let names = || fake.world(|world| world.collections.keys().cloned().collect::<Vec<_>>());
    let ours = |number: u32| format!("azera-{INSTALLATION}-{number}");
    let index = open(&fake);
    index.upsert((0..1_000).map(|id| point(id, "guild", 0)).collect()).unwrap();
    assert_eq!(names(), [ours(1)]);
    index.remove(&[MemoryId(7)]).unwrap();
    index.rewrite().unwrap();
    assert_eq!((names(), fake.points().len()), (vec![ours(2)], 999));
    // Remains of an interrupted rewrite, and collections of others.
    fake.world(|world| {
        for name in [ours(3), ours(9), "azera-0123456789abcdef-4".into(), "azera-more".into(), "azera2".into()] {
            world.collections.insert(name, Default::default());
        }
    });
    index.clear().unwrap();
    assert_eq!(names(), ["azera-0123456789abcdef-4".into(), ours(3), "azera-more".into(), "azera2".into()]);
    assert_eq!(index.ids().unwrap(), [MemoryId(0); 0]);
    assert_eq!(index.count().unwrap(), Some(0));
}

#[test]
fn failures_are_transient_and_mistakes_are_not() {
    let mut fake = FakeServer::with_key("sk-hush");
    let index = open(&fake);
    index.upsert(vec![point(1, "guild", 0)]).unwrap();
    let about = index.about().unwrap();
    assert_eq!((about.version.as_str(), about.points, about.readable), ("1.20.0", Some(1), false));
    for code in [Code::Unavailable, Code::ResourceExhausted, Code::Internal, Code::Unknown] {
        fake.refuse(Some(code));
        let error = index.upsert(vec![point(2, "guild", 0)]).unwrap_err();
        assert!(error.is_transient(), "{error}");
    }
    fake.refuse(Some(Code::InvalidArgument));
    let error = index.upsert(vec![point(2, "guild", 0)]).unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("not now"), "{error}");
    fake.refuse(None);
    let wrong = QdrantConfig { key: Some("sk-wrong".into()), ..config(&fake) };
    assert!(!format!("{wrong:?}").contains("sk-wrong") && !format!("{wrong:?}").contains("of this house"));
    let error = QdrantVectors::new(wrong).unwrap().about().unwrap_err();
    assert!(error.to_string().contains("API key") && !error.to_string().contains("sk-"), "{error}");
    let longer = QdrantConfig { dimension: DIMENSION + 1, ..config(&fake) };
    let error = QdrantVectors::new(longer).unwrap().ids().unwrap_err();
    assert!(matches!(&error, Error::Invalid(why) if why.contains("vectors of 8 numbers")), "{error}");

    fake.hang(true);
    let error = index.about().unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("said nothing for 2.0 s"), "{error}");
    fake.hang(false);
    fake.stop();
    let error = index.ids().unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("Qdrant at http://127.0.0.1"), "{error}");
    fake.again();
    assert_eq!(index.ids().unwrap(), [MemoryId(1)]);
}

#[test]
fn invalid_configurations_and_vectors_are_refused() {
    let fake = FakeServer::start();
    let refused = |config: QdrantConfig| matches!(QdrantVectors::new(config), Err(Error::Invalid(_)));
    for collection in ["", "a/b", "a b", &"a".repeat(65)] {
        assert!(refused(QdrantConfig { collection: collection.into(), ..config(&fake) }), "{collection}");
    }
    for url in ["", "http://", "localhost", "http://ann:hush@localhost:6334"] {
        assert!(refused(QdrantConfig { url: url.into(), ..config(&fake) }), "{url}");
    }
}
