//! The vector index on a fake Qdrant server on loopback.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fake;
mod mirror;
mod points;
mod vectors;

use std::time::Duration;

use azera_breaker::Limits;
use azera_memory::conformance::DIMENSION;
use azera_memory::{Facet, IndexMetadata, Point, ReadScope, VectorIndex};
use azera_memory_qdrant::QdrantConfig;
use azera_memory_remote::RetryPolicy;
use azera_types::{ChatId, MemoryId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};

/// Retry policy of the tests: a server that hangs is noticed soon, and asked again with the next call.
const PATIENCE: RetryPolicy = RetryPolicy {
    foreground: Duration::from_secs(2),
    bulk: Duration::from_secs(30),
    retries: 1,
    retry_delay: Duration::from_millis(1),
    breaker: Limits { failures: u32::MAX, first_pause: Duration::ZERO, longest_pause: Duration::ZERO },
};

fn config(fake: &fake::FakeServer) -> QdrantConfig {
    QdrantConfig {
        url: fake.url(),
        key: fake.key(),
        collection: "azera".into(),
        dimension: DIMENSION,
        secret: "of this house".into(),
        patience: PATIENCE,
    }
}

fn point(id: u64, realm: &str, axis: usize) -> Point {
    let mut own = vec![0.0; DIMENSION];
    own[axis] = 1.0;
    let label = IndexMetadata {
        persona: PersonaId::new("azera").unwrap(),
        scope: Scope::Realm(RealmId::new(realm).unwrap()),
        at: Timestamp::UNIX_EPOCH,
    };
    Point { id: MemoryId(id), label, own, window: None }
}

/// Returns the hits of a search in a realm, nearest to an axis first.
fn found(index: &impl VectorIndex, realm: &str, axis: usize) -> Vec<u64> {
    let kind = PlaceKind::Public(RealmId::new(realm).unwrap());
    let place = Place { chat: ChatId::new("hall").unwrap(), kind, since: None };
    let read_scope = ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default());
    let hits = index.search(&read_scope, Facet::Own, &point(0, realm, axis).own, Timestamp::MAX, 10).unwrap();
    hits.iter().map(|hit| hit.id.0).collect()
}
