use std::sync::atomic::{AtomicBool, Ordering};

use azera_memory::Facet;
use azera_memory_remote::Failure;
use qdrant_client::qdrant::vectors_config::Config as VectorsKind;
use qdrant_client::qdrant::{
    CountPointsBuilder, CreateAliasBuilder, CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, Distance,
    FieldType, HnswConfigDiffBuilder, IntegerIndexParamsBuilder, KeywordIndexParamsBuilder, PointId, RetrievedPoint,
    ScrollPointsBuilder, UpsertPointsBuilder, VectorParamsBuilder, VectorsConfigBuilder,
};
use qdrant_client::{Qdrant, QdrantError};
use tonic::Code;

use crate::config::QdrantConfig;
use crate::points::{AT, PLACE, again, name};

/// Points read at a time without their vectors.
const PAGE_IDS: u32 = 10_000;

/// Points read and written at a time with their vectors. With two vectors of 1,536 numbers each, this stays below 4 MB,
/// the default limit of a gRPC server.
pub(crate) const PAGE_POINTS: usize = 256;

/// Links of each point in the graph of its scope (HNSW's M), as in the local index.
const GRAPH_LINKS: u64 = 16;

/// The collection of this installation on a server.
pub(crate) struct Collection {
    pub(crate) client: Qdrant,
    pub(crate) config: QdrantConfig,
    /// True once the server showed the collection with vectors of the right length.
    seen: AtomicBool,
}

/// Classifies an error of the client.
pub(crate) fn failure(error: QdrantError) -> Failure {
    let status = match error {
        QdrantError::ResponseError { status } | QdrantError::ResourceExhaustedError { status, .. } => status,
        other => return Failure::Refused(other.to_string()),
    };
    let message = status.message().to_owned();
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented => Failure::Refused(message),
        _ => Failure::Unavailable(if message.is_empty() { status.code().to_string() } else { message }),
    }
}

impl Collection {
    pub(crate) fn new(client: Qdrant, config: QdrantConfig) -> Self {
        Self { client, config, seen: AtomicBool::new(false) }
    }

    /// Returns the collection behind the alias. Refuses the collection of another installation, so that nothing in it
    /// is searched, replaced or removed.
    async fn behind(&self) -> Result<Option<String>, Failure> {
        let name = &self.config.collection;
        let listed = self.client.list_aliases().await.map_err(failure)?;
        let found = listed.aliases.into_iter().find(|alias| alias.alias_name == *name);
        match found.map(|alias| alias.collection_name) {
            Some(real) if self.number(&real).is_some() => Ok(Some(real)),
            Some(real) => Err(Failure::Refused(format!(
                "the name {name} there stands for {real}, which another data folder filled: choose another name for the \
                 collection, or remove that one from the server if nobody needs it"
            ))),
            None => {
                let listed = self.client.list_collections().await.map_err(failure)?;
                if listed.collections.iter().any(|collection| collection.name == *name) {
                    return Err(Failure::Refused(format!(
                        "a collection there is called {name}: choose another name for this one, or remove that one from the \
                         server if nobody needs it"
                    )));
                }
                Ok(None)
            }
        }
    }

    /// Creates the collection if it does not exist. Asks the server only once.
    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        if self.seen.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.behind().await? {
            Some(real) => self.check_dimension(&real).await,
            None => {
                let real = self.make(None).await?;
                self.take_place(None, &real).await
            }
        }
    }

    /// Returns the exact number of points; `None` without a collection.
    pub(crate) async fn count(&self) -> Result<Option<u64>, Failure> {
        let Some(real) = self.behind().await? else {
            self.seen.store(false, Ordering::Relaxed);
            return Ok(None);
        };
        self.check_dimension(&real).await?;
        let counted = self.client.count(CountPointsBuilder::new(real).exact(true)).await.map_err(failure)?;
        Ok(Some(counted.result.map_or(0, |result| result.count)))
    }

    /// Replaces the collection with an empty one.
    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        let old = self.behind().await?;
        let new = self.make(old.as_deref()).await?;
        self.take_place(old, &new).await
    }

    /// Creates an empty collection to copy all points into. Returns the old and the new name; `None` if there is no
    /// collection.
    pub(crate) async fn begin_copy(&self) -> Result<Option<(String, String)>, Failure> {
        let Some(old) = self.behind().await? else { return Ok(None) };
        let new = self.make(Some(&old)).await?;
        Ok(Some((old, new)))
    }

    /// Copies a page of points; returns the start of the next page, if there is one.
    pub(crate) async fn copy_page(
        &self,
        from: &str,
        to: &str,
        offset: Option<PointId>,
    ) -> Result<Option<PointId>, Failure> {
        let (page, next) = self.page(from, offset, PAGE_POINTS as u32, true).await?;
        let points: Vec<_> = page.into_iter().map(again).collect();
        if !points.is_empty() {
            let upsert = UpsertPointsBuilder::new(to, points).wait(true);
            self.client.upsert_points(upsert).await.map_err(failure)?;
        }
        Ok(next)
    }

    /// Returns the ids of all points in ascending order.
    pub(crate) async fn ids(&self) -> Result<Vec<PointId>, Failure> {
        let (mut ids, mut offset) = (Vec::new(), None);
        loop {
            let (page, next) = self.page(&self.config.collection, offset, PAGE_IDS, false).await?;
            ids.extend(page.into_iter().filter_map(|point| point.id));
            if next.is_none() {
                return Ok(ids);
            }
            offset = next;
        }
    }

    async fn page(
        &self,
        collection: &str,
        offset: Option<PointId>,
        limit: u32,
        whole: bool,
    ) -> Result<(Vec<RetrievedPoint>, Option<PointId>), Failure> {
        let mut scroll = ScrollPointsBuilder::new(collection).limit(limit).with_payload(whole).with_vectors(whole);
        if let Some(offset) = offset {
            scroll = scroll.offset(offset);
        }
        let page = self.client.scroll(scroll).await.map_err(failure)?;
        Ok((page.result, page.next_page_offset))
    }

    async fn check_dimension(&self, real: &str) -> Result<(), Failure> {
        let info = self.client.collection_info(real).await.map_err(failure)?;
        let vectors = info.result.and_then(|info| info.config?.params?.vectors_config?.config);
        let found = match vectors {
            Some(VectorsKind::ParamsMap(map)) => map.map.get(name(Facet::Own)).map_or(0, |own| own.size),
            _ => 0,
        };
        let wanted = self.config.dimension;
        if found != wanted as u64 {
            return Err(Failure::Invalid(format!(
                "the collection {real} holds vectors of {found} numbers and the embedding model makes {wanted}"
            )));
        }
        self.seen.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Creates an empty collection with the number after that of `old`. Removes the remains of an interrupted attempt.
    async fn make(&self, old: Option<&str>) -> Result<String, Failure> {
        let number = old.and_then(|old| self.number(old)).unwrap_or(0);
        let new = format!("{}{}", self.first_part(), number + 1);
        self.client.delete_collection(&new).await.map_err(failure)?;
        let mut vectors = VectorsConfigBuilder::default();
        for facet in [Facet::Own, Facet::Window] {
            let vector = VectorParamsBuilder::new(self.config.dimension as u64, Distance::Cosine).on_disk(true);
            vectors.add_named_vector_params(name(facet), vector);
        }
        // There is one graph for each scope, and none over all, because no search may see all scopes.
        let graph = HnswConfigDiffBuilder::default().m(0).payload_m(GRAPH_LINKS).on_disk(true);
        let create =
            CreateCollectionBuilder::new(&new).vectors_config(vectors).hnsw_config(graph).on_disk_payload(true);
        self.client.create_collection(create).await.map_err(failure)?;
        let place = CreateFieldIndexCollectionBuilder::new(&new, PLACE, FieldType::Keyword)
            .field_index_params(KeywordIndexParamsBuilder::default().is_tenant(true).on_disk(true))
            .wait(true);
        self.client.create_field_index(place).await.map_err(failure)?;
        let at = CreateFieldIndexCollectionBuilder::new(&new, AT, FieldType::Integer)
            .field_index_params(IntegerIndexParamsBuilder::new(false, true).on_disk(true))
            .wait(true);
        self.client.create_field_index(at).await.map_err(failure)?;
        Ok(new)
    }

    /// Replaces one collection with another, and removes the old one and the remains of interrupted attempts. In
    /// between, the alias is missing for a moment; only this installation uses it.
    pub(crate) async fn take_place(&self, old: Option<String>, new: &str) -> Result<(), Failure> {
        let alias = &self.config.collection;
        self.seen.store(false, Ordering::Relaxed);
        if old.is_some() {
            self.client.delete_alias(alias.as_str()).await.map_err(failure)?;
        }
        self.client.create_alias(CreateAliasBuilder::new(new, alias)).await.map_err(failure)?;
        let listed = self.client.list_collections().await.map_err(failure)?;
        for collection in listed.collections {
            if collection.name != new && self.number(&collection.name).is_some() {
                self.client.delete_collection(collection.name).await.map_err(failure)?;
            }
        }
        self.seen.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of a collection of this installation.
    fn number(&self, collection: &str) -> Option<u64> {
        collection.strip_prefix(&self.first_part())?.parse().ok()
    }

    /// Returns the prefix of this installation's collection names.
    fn first_part(&self) -> String {
        format!("{}-{}-", self.config.collection, self.config.installation_marker())
    }
}
