//! The data of the fake server and its answers: collections, aliases and points; a search compares all points.

use std::collections::{BTreeMap, HashMap};

use ::qdrant_client::qdrant::alias_operations::Action;
use ::qdrant_client::qdrant::condition::ConditionOneOf;
use ::qdrant_client::qdrant::r#match::MatchValue;
use ::qdrant_client::qdrant::point_id::PointIdOptions;
use ::qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use ::qdrant_client::qdrant::query::Variant as QueryVariant;
use ::qdrant_client::qdrant::value::Kind;
use ::qdrant_client::qdrant::vector_input::Variant;
use ::qdrant_client::qdrant::vectors::VectorsOptions;
use ::qdrant_client::qdrant::vectors_config::Config;
use ::qdrant_client::qdrant::with_payload_selector::SelectorOptions as WithPayload;
use ::qdrant_client::qdrant::with_vectors_selector::SelectorOptions as WithVectors;
use ::qdrant_client::qdrant::*;
use tonic::Status;

type Vectors = HashMap<String, Vec<f32>>;

#[derive(Clone)]
pub struct StoredPoint {
    pub payload: HashMap<String, Value>,
    pub vectors: Vectors,
}

#[derive(Clone, Default)]
pub struct Collection {
    params: HashMap<String, VectorParams>,
    pub indexed: Vec<String>,
    pub points: BTreeMap<u64, StoredPoint>,
}

#[derive(Default)]
pub struct World {
    pub collections: BTreeMap<String, Collection>,
    pub aliases: BTreeMap<String, String>,
}

fn number(id: Option<PointId>) -> Result<u64, Status> {
    match id.and_then(|id| id.point_id_options) {
        Some(PointIdOptions::Num(number)) => Ok(number),
        _ => Err(Status::invalid_argument("an id that is no number")),
    }
}

fn done() -> Result<CollectionOperationResponse, Status> {
    Ok(CollectionOperationResponse { result: true, time: 0.0 })
}

impl World {
    fn real(&self, name: &str) -> String {
        self.aliases.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    pub fn collection(&mut self, name: &str) -> Result<&mut Collection, Status> {
        let real = self.real(name);
        self.collections.get_mut(&real).ok_or_else(|| Status::not_found(format!("Collection `{name}` doesn't exist!")))
    }

    pub fn list(&mut self, _: ListCollectionsRequest) -> Result<ListCollectionsResponse, Status> {
        let collections = self.collections.keys().map(|name| CollectionDescription { name: name.clone() }).collect();
        Ok(ListCollectionsResponse { collections, time: 0.0 })
    }

    pub fn create(&mut self, requests: CreateCollection) -> Result<CollectionOperationResponse, Status> {
        let name = requests.collection_name;
        if self.collections.contains_key(&name) || self.aliases.contains_key(&name) {
            return Err(Status::already_exists(format!("Collection `{name}` already exists!")));
        }
        let Some(Config::ParamsMap(params)) = requests.vectors_config.and_then(|vectors| vectors.config) else {
            return Err(Status::invalid_argument("vectors without names"));
        };
        self.collections.insert(name, Collection { params: params.map, ..Collection::default() });
        done()
    }

    pub fn delete_collection(&mut self, requests: DeleteCollection) -> Result<CollectionOperationResponse, Status> {
        let result = self.collections.remove(&requests.collection_name).is_some();
        self.aliases.retain(|_, real| *real != requests.collection_name);
        Ok(CollectionOperationResponse { result, time: 0.0 })
    }

    pub fn update_aliases(&mut self, requests: ChangeAliases) -> Result<CollectionOperationResponse, Status> {
        for action in requests.actions.into_iter().filter_map(|action| action.action) {
            match action {
                Action::CreateAlias(new) => {
                    if self.collections.contains_key(&new.alias_name) {
                        return Err(Status::already_exists("a collection has that name"));
                    }
                    self.collection(&new.collection_name)?;
                    self.aliases.insert(new.alias_name, new.collection_name);
                }
                Action::DeleteAlias(old) => {
                    self.aliases.remove(&old.alias_name);
                }
                Action::RenameAlias(_) => return Err(Status::unimplemented("renaming")),
            }
        }
        done()
    }

    pub fn list_aliases(&mut self, _: ListAliasesRequest) -> Result<ListAliasesResponse, Status> {
        let one = |(alias, real): (&String, &String)| AliasDescription {
            alias_name: alias.clone(),
            collection_name: real.clone(),
        };
        Ok(ListAliasesResponse { aliases: self.aliases.iter().map(one).collect(), time: 0.0 })
    }

    pub fn info(&mut self, requests: GetCollectionInfoRequest) -> Result<GetCollectionInfoResponse, Status> {
        let map = self.collection(&requests.collection_name)?.params.clone();
        let vectors = VectorsConfig { config: Some(Config::ParamsMap(VectorParamsMap { map })) };
        let params = CollectionParams { vectors_config: Some(vectors), ..CollectionParams::default() };
        let config = CollectionConfig { params: Some(params), ..CollectionConfig::default() };
        let info = CollectionInfo { config: Some(config), ..CollectionInfo::default() };
        Ok(GetCollectionInfoResponse { result: Some(info), time: 0.0 })
    }

    pub fn index_field(&mut self, requests: CreateFieldIndexCollection) -> Result<PointsOperationResponse, Status> {
        self.collection(&requests.collection_name)?.indexed.push(requests.field_name);
        Ok(PointsOperationResponse::default())
    }

    pub fn upsert(&mut self, requests: UpsertPoints) -> Result<PointsOperationResponse, Status> {
        let collection = self.collection(&requests.collection_name)?;
        for point in requests.points {
            let Some(VectorsOptions::Vectors(named)) = point.vectors.and_then(|vectors| vectors.vectors_options) else {
                return Err(Status::invalid_argument("vectors without names"));
            };
            let mut vectors = Vectors::new();
            for (name, vector) in named.vectors {
                let size = collection.params.get(&name).map(|params| params.size as usize);
                let Some(vector::Vector::Dense(mut dense)) = vector.vector else {
                    return Err(Status::invalid_argument("a vector of another kind"));
                };
                if size != Some(dense.data.len()) {
                    return Err(Status::invalid_argument("Wrong input: Vector dimension error"));
                }
                let length = dense.data.iter().map(|value| value * value).sum::<f32>().sqrt();
                dense.data.iter_mut().for_each(|value| *value /= length);
                vectors.insert(name, dense.data);
            }
            collection.points.insert(number(point.id)?, StoredPoint { payload: point.payload, vectors });
        }
        Ok(PointsOperationResponse::default())
    }

    pub fn delete(&mut self, requests: DeletePoints) -> Result<PointsOperationResponse, Status> {
        let collection = self.collection(&requests.collection_name)?;
        let Some(PointsSelectorOneOf::Points(list)) = requests.points.and_then(|points| points.points_selector_one_of)
        else {
            return Err(Status::unimplemented("deleting by a filter"));
        };
        for id in list.ids {
            collection.points.remove(&number(Some(id))?);
        }
        Ok(PointsOperationResponse::default())
    }

    pub fn count(&mut self, requests: CountPoints) -> Result<CountResponse, Status> {
        let count = self.collection(&requests.collection_name)?.points.len() as u64;
        Ok(CountResponse { result: Some(CountResult { count }), ..CountResponse::default() })
    }

    pub fn get(&mut self, requests: GetPoints) -> Result<GetResponse, Status> {
        let collection = self.collection(&requests.collection_name)?;
        let mut result = Vec::new();
        for id in requests.ids {
            let id = number(Some(id))?;
            let point = collection.points.get(&id);
            result.extend(point.map(|point| retrieved(id, point, &requests.with_payload, &requests.with_vectors)));
        }
        Ok(GetResponse { result, ..GetResponse::default() })
    }

    pub fn scroll(&mut self, requests: ScrollPoints) -> Result<ScrollResponse, Status> {
        let collection = self.collection(&requests.collection_name)?;
        let from = requests.offset.map(|id| number(Some(id))).transpose()?.unwrap_or(0);
        let limit = requests.limit.unwrap_or(10) as usize;
        let mut rest = collection.points.range(from..);
        let page = rest.by_ref().take(limit);
        let result =
            page.map(|(id, point)| retrieved(*id, point, &requests.with_payload, &requests.with_vectors)).collect();
        let next_page_offset = rest.next().map(|(id, _)| PointId::from(*id));
        Ok(ScrollResponse { result, next_page_offset, ..ScrollResponse::default() })
    }

    pub fn query_batch(&mut self, requests: QueryBatchPoints) -> Result<QueryBatchResponse, Status> {
        let collection = self.collection(&requests.collection_name)?;
        let result =
            requests.query_points.into_iter().map(|query| collection.nearest(query)).collect::<Result<_, _>>()?;
        Ok(QueryBatchResponse { result, ..QueryBatchResponse::default() })
    }
}

impl Collection {
    fn nearest(&self, requests: QueryPoints) -> Result<BatchResult, Status> {
        let Some(QueryVariant::Nearest(VectorInput { variant: Some(Variant::Dense(vector)) })) =
            requests.query.and_then(|query| query.variant)
        else {
            return Err(Status::unimplemented("another query"));
        };
        let using = requests.using.unwrap_or_default();
        if self.params.get(&using).map(|params| params.size as usize) != Some(vector.data.len()) {
            return Err(Status::invalid_argument("Wrong input: Vector dimension error"));
        }
        let length = vector.data.iter().map(|value| value * value).sum::<f32>().sqrt();
        let mut hits = Vec::new();
        for (id, point) in &self.points {
            let Some(own) = point.vectors.get(&using) else { continue };
            if !requests.filter.as_ref().map_or(Ok(true), |filter| passes(filter, &point.payload))? {
                continue;
            }
            let score = own.iter().zip(&vector.data).map(|(one, two)| one * two).sum::<f32>() / length;
            hits.push(ScoredPoint { id: Some(PointId::from(*id)), score, ..ScoredPoint::default() });
        }
        hits.sort_by(|one, two| two.score.total_cmp(&one.score));
        hits.truncate(requests.limit.unwrap_or(10) as usize);
        Ok(BatchResult { result: hits })
    }
}

/// Returns true if a payload passes a filter. Unknown conditions are refused, so that none is ignored.
fn passes(filter: &Filter, payload: &HashMap<String, Value>) -> Result<bool, Status> {
    if !filter.should.is_empty() || !filter.must_not.is_empty() || filter.min_should.is_some() {
        return Err(Status::unimplemented("a filter with more than what must be"));
    }
    for condition in &filter.must {
        let Some(ConditionOneOf::Field(field)) = &condition.condition_one_of else {
            return Err(Status::unimplemented("another condition"));
        };
        let value = payload.get(&field.key).and_then(|value| value.kind.as_ref());
        let met = match (&field.r#match, &field.range, value) {
            (Some(Match { match_value: Some(MatchValue::Keyword(wanted)) }), None, Some(Kind::StringValue(is))) => {
                wanted == is
            }
            (None, Some(range), Some(Kind::IntegerValue(is))) => {
                let is = *is as f64;
                range.gte.is_none_or(|least| is >= least)
                    && range.lte.is_none_or(|most| is <= most)
                    && range.gt.is_none_or(|below| is > below)
                    && range.lt.is_none_or(|above| is < above)
            }
            (Some(_), None, _) | (None, Some(_), _) => false,
            _ => return Err(Status::unimplemented("another condition on a field")),
        };
        if !met {
            return Ok(false);
        }
    }
    Ok(true)
}

fn retrieved(
    id: u64,
    point: &StoredPoint,
    payload: &Option<WithPayloadSelector>,
    vectors: &Option<WithVectorsSelector>,
) -> RetrievedPoint {
    let wants_payload = payload.as_ref().and_then(|with| with.selector_options.clone());
    let wants_vectors = vectors.as_ref().and_then(|with| with.selector_options.clone());
    let vectors = point.vectors.iter().map(|(name, vector)| {
        let dense = vector_output::Vector::Dense(DenseVector { data: vector.clone() });
        (name.clone(), VectorOutput { vector: Some(dense), ..VectorOutput::default() })
    });
    let named = NamedVectorsOutput { vectors: vectors.collect() };
    RetrievedPoint {
        id: Some(PointId::from(id)),
        payload: match wants_payload {
            Some(WithPayload::Enable(true)) => point.payload.clone(),
            _ => HashMap::new(),
        },
        vectors: match wants_vectors {
            Some(WithVectors::Enable(true)) => {
                Some(VectorsOutput { vectors_options: Some(vectors_output::VectorsOptions::Vectors(named)) })
            }
            _ => None,
        },
        ..RetrievedPoint::default()
    }
}
