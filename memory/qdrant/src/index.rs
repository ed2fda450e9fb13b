use std::sync::Arc;
use std::time::Duration;

use azera_memory::{DEEPEST_SEARCH, Error, Facet, Found, Point, ReadScope, Stored, VectorIndex};
use azera_memory_remote::{Deadline, Failure, Server};
use azera_types::{MemoryId, Timestamp};
use qdrant_client::Qdrant;
use qdrant_client::qdrant::{
    DeletePointsBuilder, GetPointsBuilder, PointId, PointsIdsList, QueryBatchPointsBuilder, UpsertPointsBuilder,
};

use crate::collection::{Collection, PAGE_POINTS, failure};
use crate::config::{QdrantConfig, ServerInfo};
use crate::points::{found, number, query, stored, to_server};

/// Ids in one request.
const PAGE_NAMED: usize = 10_000;

/// The vector index on a server. Calls fail with a transient error while the server is unavailable. Changes are durable
/// once the server acknowledges them.
pub struct QdrantVectors {
    server: Server,
    collection: Arc<Collection>,
}

impl QdrantVectors {
    /// Returns the index on a server, which need not be running yet. The first call that finds no collection creates
    /// it.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the configuration is invalid.
    pub fn new(config: QdrantConfig) -> Result<Self, Error> {
        config.check()?;
        let patience = config.patience;
        let client = Qdrant::from_url(&config.url)
            .api_key(config.key.clone())
            .connect_timeout(patience.foreground)
            .timeout(patience.bulk)
            // Otherwise the client prints a warning about the server's version to standard output.
            .skip_compatibility_check()
            .build()
            .map_err(|error| Error::Invalid(format!("this is no address of a Qdrant server: {error}")))?;
        let server = Server::new(format!("Qdrant at {}", config.url), patience)?;
        Ok(Self { server, collection: Arc::new(Collection::new(client, config)) })
    }

    /// Asks the server for its version and contents.
    pub fn about(&self) -> Result<ServerInfo, Error> {
        let health =
            self.ask("asking the server of the vector index", Deadline::Foreground, |collection| async move {
                collection.client.health_check().await.map_err(failure)
            })?;
        Ok(ServerInfo {
            server: self.server.name().to_owned(),
            version: health.version,
            points: self.count()?,
            readable: self.collection.config.is_readable(),
        })
    }

    /// Returns the exact number of points; `None` without a collection.
    pub fn count(&self) -> Result<Option<u64>, Error> {
        self.ask("counting the points of the vector index", Deadline::Foreground, |collection| async move {
            collection.count().await
        })
    }

    /// Returns how long the circuit breaker still blocks calls, if it does.
    pub fn breaker_pause(&self) -> Option<Duration> {
        self.server.breaker_pause()
    }

    /// Ends all calls in progress and refuses further ones.
    pub(crate) fn stop(&self) {
        self.server.stop();
    }

    fn ask<T, F>(
        &self,
        what: &'static str,
        deadline: Deadline,
        mut work: impl FnMut(Arc<Collection>) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let collection = self.collection.clone();
        self.server.call(what, deadline, move || work(collection.clone()))
    }
}

fn ids_list(ids: &[MemoryId]) -> Vec<PointId> {
    ids.iter().map(|id| PointId::from(id.0)).collect()
}

impl VectorIndex for QdrantVectors {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        let config = &self.collection.config;
        for point in &points {
            config.check_vector(&point.own)?;
            point.window.as_deref().map_or(Ok(()), |window| config.check_vector(window))?;
        }
        let mut points = points.into_iter().map(|point| to_server(config, point));
        loop {
            let part: Vec<_> = points.by_ref().take(PAGE_POINTS).collect();
            if part.is_empty() {
                return Ok(());
            }
            self.ask("adding to the vector index", Deadline::Bulk, move |collection| {
                let part = part.clone();
                async move {
                    collection.ready().await?;
                    let upsert = UpsertPointsBuilder::new(&collection.config.collection, part).wait(true);
                    collection.client.upsert_points(upsert).await.map(drop).map_err(failure)
                }
            })?;
        }
    }

    fn search(
        &self,
        read_scope: &ReadScope,
        facet: Facet,
        vector: &[f32],
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        let config = &self.collection.config;
        config.check_vector(vector)?;
        let limit = limit.min(DEEPEST_SEARCH);
        if limit == 0 {
            return Ok(Vec::new());
        }
        // Each scope has a graph of its own and is searched separately, all in one request.
        let places = read_scope.grants().iter();
        let queries: Vec<_> =
            places.map(|grant| query(config, read_scope.persona(), grant, facet, vector, until, limit)).collect();
        let places = self.ask("searching the vector index", Deadline::Foreground, move |collection| {
            let queries = queries.clone();
            async move {
                collection.ready().await?;
                let batch = QueryBatchPointsBuilder::new(&collection.config.collection, queries);
                collection.client.query_batch(batch).await.map_err(failure)
            }
        })?;
        let hits = places.result.into_iter().flat_map(|place| place.result);
        let mut hits: Vec<Found> = hits.filter_map(found).collect();
        hits.sort_unstable_by(|one, two| two.score.total_cmp(&one.score).then(one.id.cmp(&two.id)));
        hits.dedup_by_key(|found| found.id);
        hits.truncate(limit);
        Ok(hits)
    }

    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        let mut found = Vec::with_capacity(ids.len());
        for part in ids.chunks(PAGE_POINTS) {
            let part = ids_list(part);
            let got = self.ask("reading the vector index", Deadline::Foreground, move |collection| {
                let part = part.clone();
                async move {
                    collection.ready().await?;
                    let get = GetPointsBuilder::new(&collection.config.collection, part).with_vectors(true);
                    collection.client.get_points(get.with_payload(false)).await.map_err(failure)
                }
            })?;
            found.extend(got.result.into_iter().filter_map(stored));
        }
        Ok(found)
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        for part in ids.chunks(PAGE_NAMED) {
            let part = ids_list(part);
            self.ask("removing from the vector index", Deadline::Bulk, move |collection| {
                let ids = PointsIdsList { ids: part.clone() };
                async move {
                    collection.ready().await?;
                    let delete = DeletePointsBuilder::new(&collection.config.collection).points(ids).wait(true);
                    collection.client.delete_points(delete).await.map(drop).map_err(failure)
                }
            })?;
        }
        Ok(())
    }

    /// Does nothing: the server acknowledges only durable changes.
    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Does nothing: the server reorganises itself.
    fn optimize(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Replaces the collection with an empty one; the server deletes the old one from its disk.
    fn clear(&self) -> Result<(), Error> {
        self.ask("clearing the vector index", Deadline::Bulk, |collection| async move { collection.clear().await })
    }

    /// Replaces the collection with a copy; the server deletes the old one from its disk.
    fn rewrite(&self) -> Result<(), Error> {
        const WHAT: &str = "rewriting the vector index";
        let begun = self.ask(WHAT, Deadline::Bulk, |collection| async move { collection.begin_copy().await })?;
        let Some((old, new)) = begun else { return Ok(()) };
        let mut offset = None;
        loop {
            let (from, to) = (old.clone(), new.clone());
            let next = self.ask(WHAT, Deadline::Bulk, move |collection| {
                let (from, to, offset) = (from.clone(), to.clone(), offset.clone());
                async move { collection.copy_page(&from, &to, offset).await }
            })?;
            if next.is_none() {
                break;
            }
            offset = next;
        }
        self.ask(WHAT, Deadline::Bulk, move |collection| {
            let (old, new) = (old.clone(), new.clone());
            async move { collection.take_place(Some(old), &new).await }
        })
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        let ids = self.ask("reading the vector index", Deadline::Bulk, |collection| async move {
            collection.ready().await?;
            collection.ids().await
        })?;
        Ok(ids.into_iter().filter_map(|id| number(Some(id))).collect())
    }
}
