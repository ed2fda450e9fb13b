use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azera_memory::conformance::{self, DIMENSION};
use azera_memory::{Error, Facet, Found, Point, PointSource, ReadScope, Stored, VectorIndex};
use azera_memory_qdrant::{MirroredVectors, QdrantConfig};
use azera_memory_vector::{EmbeddedVectors, VectorConfig};
use azera_types::{MemoryId, Timestamp};
use tempfile::TempDir;
use tonic::Code;

use super::fake::FakeServer;
use super::{config, found, point};

/// Limit for the server to catch up. It usually takes a few milliseconds, and after a failure a few hundred.
const SOON: Duration = Duration::from_secs(60);

/// An index in RAM that survives closing; a search compares all points.
#[derive(Clone, Default)]
struct Local {
    points: Arc<Mutex<Vec<Point>>>,
}

impl PointSource for Local {
    fn points(&self, ids: &[MemoryId]) -> Result<Vec<Point>, Error> {
        Ok(self.points.lock().unwrap().iter().filter(|point| ids.contains(&point.id)).cloned().collect())
    }
}

impl VectorIndex for Local {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        let wrong = |vector: &Vec<f32>| vector.len() != DIMENSION || vector.iter().any(|value| !value.is_finite());
        if points.iter().any(|point| wrong(&point.own) || point.window.as_ref().is_some_and(wrong)) {
            return Err(Error::Invalid("no vector".into()));
        }
        let ids: std::collections::BTreeSet<_> = points.iter().map(|point| point.id).collect();
        let mut held = self.points.lock().unwrap();
        held.retain(|point| !ids.contains(&point.id));
        held.extend(points);
        held.sort_by_key(|point| point.id);
        Ok(())
    }

    fn search(
        &self,
        read_scope: &ReadScope,
        facet: Facet,
        vector: &[f32],
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        if vector.len() != DIMENSION || vector.iter().any(|value| !value.is_finite()) {
            return Err(Error::Invalid("no vector".into()));
        }
        let held = self.points.lock().unwrap();
        let visible = held.iter().filter(|point| {
            point.label.at <= until && read_scope.allows(&point.label.persona, &point.label.scope, &[], point.label.at)
        });
        let mut hits: Vec<Found> = visible
            .filter_map(|point| {
                let own = if facet == Facet::Own { Some(&point.own) } else { point.window.as_ref() }?;
                let score = own.iter().zip(vector).map(|(one, two)| one * two).sum();
                Some(Found { id: point.id, score })
            })
            .collect();
        hits.sort_by(|one, two| two.score.total_cmp(&one.score));
        hits.truncate(limit);
        Ok(hits)
    }

    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        let stored = |point: Point| Stored { id: point.id, own: point.own, window: point.window };
        Ok(self.points(ids)?.into_iter().map(stored).collect())
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        self.points.lock().unwrap().retain(|point| !ids.contains(&point.id));
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    fn optimize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn clear(&self) -> Result<(), Error> {
        self.points.lock().unwrap().clear();
        Ok(())
    }

    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(self.points.lock().unwrap().iter().map(|point| point.id).collect())
    }
}

fn open(fake: &FakeServer, local: &Local, dir: &Path) -> MirroredVectors<Local> {
    MirroredVectors::open(local.clone(), config(fake), dir).unwrap()
}

/// Waits until the server is up to date; checks that it equals the local index and answers searches.
#[track_caller]
fn check_settled(fake: &FakeServer, index: &MirroredVectors<Local>, realm: &str) {
    assert!(index.wait(SOON), "the server did not catch up");
    let here: Vec<u64> = index.ids().unwrap().iter().map(|id| id.0).collect();
    assert_eq!(fake.points(), here);
    let before = fake.requests("query_batch");
    found(index, realm, 0);
    assert_eq!(fake.requests("query_batch"), before + 1, "the search went to the server");
}

#[test]
fn the_mirror_passes_the_conformance_suite_with_and_without_the_server() {
    for there in [true, false] {
        conformance::vector(|| {
            let (dir, local, mut fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
            if !there {
                fake.stop();
            }
            move || open(&fake, &local, dir.path())
        });
    }
}

#[test]
fn the_mirror_over_the_local_index_passes_the_conformance_suite() {
    conformance::vector(|| {
        let (dir, fake) = (TempDir::new().unwrap(), FakeServer::start());
        move || {
            let local = EmbeddedVectors::open(dir.path().join("local"), VectorConfig::new(DIMENSION)).unwrap();
            MirroredVectors::open(local, config(&fake), dir.path().join("server")).unwrap()
        }
    });
}

#[test]
fn the_server_is_filled_updated_and_searched() {
    let (dir, local, fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    // Memories from before there was a server.
    local.upsert((0..1_000).map(|id| point(id, "guild", 0)).collect()).unwrap();
    let index = open(&fake, &local, dir.path());
    check_settled(&fake, &index, "guild");
    index.upsert(vec![point(5, "guild", 1), point(2_000, "guild", 1)]).unwrap();
    index.remove(&[MemoryId(7), MemoryId(99_999)]).unwrap();
    assert!(found(&index, "guild", 1).starts_with(&[5, 2_000]), "changes are found at once, in either index");
    index.flush().unwrap();
    check_settled(&fake, &index, "guild");
    assert!(found(&index, "guild", 1).starts_with(&[5, 2_000]));
    index.rewrite().unwrap();
    check_settled(&fake, &index, "guild");
    assert!(fake.world(|world| world.collections.keys().all(|name| name.as_str() == world.aliases["azera"])));
    drop(index);
    // A start without pending changes sends nothing.
    let before = fake.requests("upsert");
    let index = open(&fake, &local, dir.path());
    check_settled(&fake, &index, "guild");
    assert_eq!(fake.requests("upsert"), before);
    index.clear().unwrap();
    check_settled(&fake, &index, "guild");
}

#[test]
fn the_mirror_works_without_the_server_which_catches_up_later() {
    let (dir, local, mut fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    let index = open(&fake, &local, dir.path());
    index.upsert((0..10).map(|id| point(id, "guild", 0)).collect()).unwrap();
    check_settled(&fake, &index, "guild");

    fake.stop();
    assert_eq!(found(&index, "guild", 0).len(), 10, "the search used the local index");
    index.upsert(vec![point(10, "guild", 1), point(3, "guild", 1)]).unwrap();
    index.remove(&[MemoryId(0)]).unwrap();
    index.flush().unwrap();
    assert_eq!(&found(&index, "guild", 1)[..2], [3, 10]);
    fake.again();
    check_settled(&fake, &index, "guild");

    // The process ends before the server is back.
    fake.stop();
    index.remove(&[MemoryId(3)]).unwrap();
    index.upsert(vec![point(11, "guild", 1)]).unwrap();
    drop(index);
    fake.again();
    assert!(fake.points().contains(&3), "the server missed the removal");
    let index = open(&fake, &local, dir.path());
    assert_eq!(&found(&index, "guild", 1)[..2], [10, 11]);
    check_settled(&fake, &index, "guild");
    assert_eq!(&found(&index, "guild", 1)[..2], [10, 11]);
}

#[test]
fn a_server_with_other_data_is_refilled() {
    let (dir, local, mut fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    let index = open(&fake, &local, dir.path());
    index.upsert((0..300).map(|id| point(id, "guild", 0)).collect()).unwrap();
    check_settled(&fake, &index, "guild");

    // The server lost its disk, or somebody deleted the collection, while it was running.
    fake.world(|world| *world = Default::default());
    assert_eq!(found(&index, "guild", 0).len(), 10, "the empty collection is not searched");
    check_settled(&fake, &index, "guild");

    // The server came back with old data.
    fake.stop();
    assert_eq!(found(&index, "guild", 0).len(), 10);
    fake.world(|world| world.collection("azera").unwrap().points.retain(|id, _| *id < 100));
    fake.again();
    check_settled(&fake, &index, "guild");

    // The data disappeared while nothing ran.
    drop(index);
    fake.world(|world| world.collection("azera").unwrap().points.clear());
    let index = open(&fake, &local, dir.path());
    assert_eq!(found(&index, "guild", 0).len(), 10);
    check_settled(&fake, &index, "guild");
    drop(index);

    // The collection is rebuilt for vectors of another length.
    let about = dir.path().join("about.json");
    let before = std::fs::read_to_string(&about).unwrap();
    std::fs::write(&about, before.replace("\"dimension\": 8", "\"dimension\": 9")).unwrap();
    let (index, makings) = (open(&fake, &local, dir.path()), fake.requests("create"));
    check_settled(&fake, &index, "guild");
    assert_eq!((fake.requests("create"), found(&index, "guild", 0).len()), (makings + 1, 10));
}

#[test]
fn a_scratch_folder_of_the_same_configuration_leaves_the_servers_collection_alone() {
    let (dir, local, fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    let index = open(&fake, &local, dir.path());
    index.upsert((0..10).map(|id| point(id, "guild", 0)).collect()).unwrap();
    check_settled(&fake, &index, "guild");
    let (other_place, other) = (TempDir::new().unwrap(), Local::default());
    let requests = fake.requests("list_aliases");
    let scratch = open(&fake, &other, other_place.path());
    scratch.upsert(vec![point(77, "guild", 0)]).unwrap();
    fake.wait_for("list_aliases", requests + 2);
    assert_eq!(found(&scratch, "guild", 0), [77], "the mirror continues on its own");
    drop(scratch);
    check_settled(&fake, &index, "guild");
}

#[test]
fn failures_during_an_update_lose_nothing() {
    let (dir, local, fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    let index = open(&fake, &local, dir.path());
    assert!(index.wait(SOON));
    fake.refuse(Some(Code::Unavailable));
    index.upsert((0..2_000).map(|id| point(id, "guild", 0)).collect()).unwrap();
    index.remove(&(500..700).map(MemoryId).collect::<Vec<_>>()).unwrap();
    assert_eq!(found(&index, "guild", 0).len(), 10);
    fake.refuse(None);
    check_settled(&fake, &index, "guild");
    // A permanent refusal causes a refill.
    let (upserts, makings) = (fake.requests("upsert"), fake.requests("create"));
    fake.refuse(Some(Code::InvalidArgument));
    index.upsert(vec![point(1, "guild", 2)]).unwrap();
    fake.wait_for("upsert", upserts + 1);
    fake.refuse(None);
    check_settled(&fake, &index, "guild");
    assert!(fake.requests("create") > makings);
}

#[test]
fn a_server_that_counts_well_and_searches_badly_is_rarely_searched() {
    let (dir, local, fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    let index = open(&fake, &local, dir.path());
    index.upsert((0..20).map(|id| point(id, "guild", 0)).collect()).unwrap();
    check_settled(&fake, &index, "guild");
    let before = fake.requests("query_batch");
    fake.refuse_to("query_batch", Code::Unavailable);
    for _ in 0..100 {
        assert_eq!(found(&index, "guild", 0).len(), 10);
        index.wait(Duration::from_millis(20));
    }
    let requests = fake.requests("query_batch") - before;
    assert!((1..=50).contains(&requests), "{requests} requests for 100 searches");
    fake.refuse(None);
    check_settled(&fake, &index, "guild");
}

#[test]
fn closing_does_not_wait_for_a_server_that_hangs() {
    let (dir, local, fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    let patience = azera_memory_remote::RetryPolicy { bulk: Duration::from_secs(3_600), ..super::PATIENCE };
    let index = MirroredVectors::open(local.clone(), QdrantConfig { patience, ..config(&fake) }, dir.path()).unwrap();
    assert!(index.wait(SOON));
    fake.hang(true);
    index.upsert(vec![point(1, "guild", 0)]).unwrap();
    drop(index);
    fake.hang(false);
    let index = open(&fake, &local, dir.path());
    check_settled(&fake, &index, "guild");
    assert_eq!(fake.points(), [1]);
}

#[test]
fn a_server_that_was_not_used_for_a_while_is_refilled() {
    let (dir, local, fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    MirroredVectors::<Local>::leave(dir.path()).unwrap();
    let index = open(&fake, &local, dir.path());
    index.upsert((0..10).map(|id| point(id, "guild", 0)).collect()).unwrap();
    check_settled(&fake, &index, "guild");
    drop(index);
    // The configuration names no server for a while. The number of points is the same as before, so counting does not
    // show the difference.
    MirroredVectors::<Local>::leave(dir.path()).unwrap();
    local.remove(&[MemoryId(3)]).unwrap();
    local.upsert(vec![point(10, "guild", 0)]).unwrap();
    MirroredVectors::<Local>::leave(dir.path()).unwrap();
    let index = open(&fake, &local, dir.path());
    check_settled(&fake, &index, "guild");
}

#[test]
fn a_foreign_collection_of_the_configured_name_is_left_alone_and_reported() {
    let (dir, local, fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    fake.world(|world| world.collections.insert("azera".into(), Default::default()));
    let error = azera_memory_qdrant::QdrantVectors::new(config(&fake)).unwrap().clear().unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("choose another name"), "{error}");
    let requests = fake.requests("list_aliases");
    let index = open(&fake, &local, dir.path());
    index.upsert(vec![point(1, "guild", 0)]).unwrap();
    fake.wait_for("list_aliases", requests + 2);
    assert_eq!(found(&index, "guild", 0), [1]);
    drop(index);
    assert_eq!(fake.world(|world| world.collections.keys().cloned().collect::<Vec<_>>()), ["azera"]);
}

#[test]
fn an_interrupted_refill_continues() {
    let (dir, local, mut fake) = (TempDir::new().unwrap(), Local::default(), FakeServer::start());
    local.upsert((0..2_000).map(|id| point(id, "guild", 0)).collect()).unwrap();
    let index = open(&fake, &local, dir.path());
    fake.wait_for("upsert", 2);
    let makings = fake.requests("create");
    fake.stop();
    // The process ends, too.
    drop(index);
    fake.again();
    let index = open(&fake, &local, dir.path());
    check_settled(&fake, &index, "guild");
    assert_eq!(fake.requests("create"), makings, "the refill did not start again");
}
