//! A fake server that speaks the part of Qdrant's gRPC protocol that the index needs, and refuses the rest.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use ::qdrant_client::qdrant::collections_server::{Collections, CollectionsServer};
use ::qdrant_client::qdrant::points_server::{Points, PointsServer};
use ::qdrant_client::qdrant::qdrant_server::{Qdrant, QdrantServer};
use ::qdrant_client::qdrant::*;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};

use super::points::World;

/// The server, as its gRPC services see it.
#[derive(Clone)]
struct Service(Arc<Inner>);

struct Inner {
    world: Mutex<World>,
    key: Option<String>,
    /// Number of requests by method.
    requests: Mutex<BTreeMap<&'static str, usize>>,
    /// Notified at every request.
    asking: Condvar,
    /// Replies wait while this is true.
    hangs: watch::Sender<bool>,
    /// The method to refuse (`None`: all methods), and the status code.
    refuses: Mutex<Option<(Option<&'static str>, Code)>>,
}

pub struct FakeServer {
    service: Service,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl FakeServer {
    pub fn start() -> Self {
        Self::start_with(None)
    }

    pub fn with_key(key: &str) -> Self {
        Self::start_with(Some(key.to_owned()))
    }

    fn start_with(key: Option<String>) -> Self {
        let inner = Inner {
            world: Mutex::default(),
            key,
            requests: Mutex::default(),
            asking: Condvar::new(),
            hangs: watch::channel(false).0,
            refuses: Mutex::default(),
        };
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut fake = Self { service: Service(Arc::new(inner)), address: any, runtime: None };
        fake.again();
        fake
    }

    /// Starts the server again at the same address with its data.
    pub fn again(&mut self) {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind(self.address)).unwrap();
        self.address = listener.local_addr().unwrap();
        let service = self.service.clone();
        runtime.spawn(
            Server::builder()
                .add_service(QdrantServer::new(service.clone()))
                .add_service(CollectionsServer::new(service.clone()))
                .add_service(PointsServer::new(service))
                .serve_with_incoming(TcpIncoming::from(listener)),
        );
        self.runtime = Some(runtime);
    }

    /// Stops the server and all its connections.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(std::time::Duration::from_secs(5));
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn key(&self) -> Option<String> {
        self.service.0.key.clone()
    }

    /// Gives access to the data on the server.
    pub fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.service.0.world.lock().unwrap())
    }

    /// Returns the numbers of the points in the installation's collection, ascending.
    pub fn points(&self) -> Vec<u64> {
        self.world(|world| {
            world.collection("azera").map(|held| held.points.keys().copied().collect()).unwrap_or_default()
        })
    }

    pub fn requests(&self, what: &str) -> usize {
        self.service.0.requests.lock().unwrap().get(what).copied().unwrap_or(0)
    }

    /// Waits until a method was called this often.
    pub fn wait_for(&self, what: &str, times: usize) {
        let requests = self.service.0.requests.lock().unwrap();
        drop(
            self.service
                .0
                .asking
                .wait_while(requests, |requests| requests.get(what).is_none_or(|is| *is < times))
                .unwrap(),
        );
    }

    pub fn hang(&self, hangs: bool) {
        self.service.0.hangs.send_replace(hangs);
    }

    pub fn refuse(&self, code: Option<Code>) {
        *self.service.0.refuses.lock().unwrap() = code.map(|code| (None, code));
    }

    /// Refuses one method only.
    pub fn refuse_to(&self, what: &'static str, code: Code) {
        *self.service.0.refuses.lock().unwrap() = Some((Some(what), code));
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Service {
    async fn answer<A, B>(
        &self,
        what: &'static str,
        request: Request<A>,
        answer: impl FnOnce(&mut World, A) -> Result<B, Status>,
    ) -> Result<Response<B>, Status> {
        let key = request.metadata().get("api-key").and_then(|key| key.to_str().ok());
        let admitted = self.0.key.is_none() || key == self.0.key.as_deref();
        let mut hangs = self.0.hangs.subscribe();
        hangs.wait_for(|hangs| !hangs).await.ok();
        let refused = *self.0.refuses.lock().unwrap();
        *self.0.requests.lock().unwrap().entry(what).or_default() += 1;
        self.0.asking.notify_all();
        if !admitted {
            return Err(Status::unauthenticated("Must provide an API key"));
        }
        if let Some((_, code)) = refused.filter(|(only, _)| only.is_none_or(|only| only == what)) {
            return Err(Status::new(code, "not now"));
        }
        answer(&mut self.0.world.lock().unwrap(), request.into_inner()).map(Response::new)
    }
}

/// Implements a service: each method by a method of [`World`], and the rest by a refusal.
macro_rules! service {
    ($service:ident: $($does:ident($ask:ident) -> $answer:ident by $by:expr;)* $(- $not:ident($asks:ident) -> $answers:ident;)*) => {
        #[tonic::async_trait]
        impl $service for Service {
            $(async fn $does(&self, request: Request<$ask>) -> Result<Response<$answer>, Status> {
                self.answer(stringify!($does), request, $by).await
            })*
            $(async fn $not(&self, _: Request<$asks>) -> Result<Response<$answers>, Status> {
                Err(Status::unimplemented(stringify!($not)))
            })*
        }
    };
}

service! { Qdrant:
    health_check(HealthCheckRequest) -> HealthCheckReply by |_, _| {
        Ok(HealthCheckReply { title: "peer".into(), version: "1.20.0".into(), commit: None })
    };
}

service! { Collections:
    get(GetCollectionInfoRequest) -> GetCollectionInfoResponse by World::info;
    list(ListCollectionsRequest) -> ListCollectionsResponse by World::list;
    create(CreateCollection) -> CollectionOperationResponse by World::create;
    delete(DeleteCollection) -> CollectionOperationResponse by World::delete_collection;
    update_aliases(ChangeAliases) -> CollectionOperationResponse by World::update_aliases;
    list_aliases(ListAliasesRequest) -> ListAliasesResponse by World::list_aliases;
    - update(UpdateCollection) -> CollectionOperationResponse;
    - list_collection_aliases(ListCollectionAliasesRequest) -> ListAliasesResponse;
    - collection_cluster_info(CollectionClusterInfoRequest) -> CollectionClusterInfoResponse;
    - collection_exists(CollectionExistsRequest) -> CollectionExistsResponse;
    - update_collection_cluster_setup(UpdateCollectionClusterSetupRequest) -> UpdateCollectionClusterSetupResponse;
    - create_shard_key(CreateShardKeyRequest) -> CreateShardKeyResponse;
    - delete_shard_key(DeleteShardKeyRequest) -> DeleteShardKeyResponse;
    - list_shard_keys(ListShardKeysRequest) -> ListShardKeysResponse;
}

service! { Points:
    upsert(UpsertPoints) -> PointsOperationResponse by World::upsert;
    delete(DeletePoints) -> PointsOperationResponse by World::delete;
    get(GetPoints) -> GetResponse by World::get;
    create_field_index(CreateFieldIndexCollection) -> PointsOperationResponse by World::index_field;
    scroll(ScrollPoints) -> ScrollResponse by World::scroll;
    count(CountPoints) -> CountResponse by World::count;
    query_batch(QueryBatchPoints) -> QueryBatchResponse by World::query_batch;
    - update_vectors(UpdatePointVectors) -> PointsOperationResponse;
    - delete_vectors(DeletePointVectors) -> PointsOperationResponse;
    - set_payload(SetPayloadPoints) -> PointsOperationResponse;
    - overwrite_payload(SetPayloadPoints) -> PointsOperationResponse;
    - delete_payload(DeletePayloadPoints) -> PointsOperationResponse;
    - clear_payload(ClearPayloadPoints) -> PointsOperationResponse;
    - delete_field_index(DeleteFieldIndexCollection) -> PointsOperationResponse;
    - create_vector_name(CreateVectorNameRequest) -> PointsOperationResponse;
    - delete_vector_name(DeleteVectorNameRequest) -> PointsOperationResponse;
    - search(SearchPoints) -> SearchResponse;
    - search_batch(SearchBatchPoints) -> SearchBatchResponse;
    - search_groups(SearchPointGroups) -> SearchGroupsResponse;
    - recommend(RecommendPoints) -> RecommendResponse;
    - recommend_batch(RecommendBatchPoints) -> RecommendBatchResponse;
    - recommend_groups(RecommendPointGroups) -> RecommendGroupsResponse;
    - discover(DiscoverPoints) -> DiscoverResponse;
    - discover_batch(DiscoverBatchPoints) -> DiscoverBatchResponse;
    - update_batch(UpdateBatchPoints) -> UpdateBatchResponse;
    - query(QueryPoints) -> QueryResponse;
    - query_groups(QueryPointGroups) -> QueryGroupsResponse;
    - facet(FacetCounts) -> FacetResponse;
    - search_matrix_pairs(SearchMatrixPoints) -> SearchMatrixPairsResponse;
    - search_matrix_offsets(SearchMatrixPoints) -> SearchMatrixOffsetsResponse;
}
