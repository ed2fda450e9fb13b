//! The simplest correct indexes: maps that are searched from end to end. A careless one does not filter, which proves
//! that the checks behind the indexes hold without them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use azera_memory::{
    Error, Facet, FacetWeights, Found, IndexMetadata, LexicalHits, Point, ReadScope, Stored, TextDocument, TextIndex,
    TextIndexKind, VectorIndex,
};
use azera_model_api::{Embedder, EmbedderInfo, Priority, Purpose};
use azera_types::{MemoryId, Timestamp};
use tokio::sync::Notify;

/// A search for this word panics, as one with a defect does.
pub const DEFECT: &str = "unlucky";

/// A text with this word is never embedded: the model says that it is busy.
pub const BUSY: &str = "overloaded";

/// The first request with this word never ends. Only one test uses it.
pub const STUCK: &str = "molasses";

/// Told when that request comes.
pub static IS_STUCK: Notify = Notify::const_new();

/// Most texts that wait to be embedded, as in the models that embed.
const EMBED_QUEUE: usize = 4_096;

/// Numbers in a vector.
pub const DIMENSION: usize = 48;

/// Returns whether a search may find an entry with this label.
fn visible(read_scope: &ReadScope, label: &IndexMetadata, until: Timestamp, careless: bool) -> bool {
    let granted = read_scope
        .grants()
        .iter()
        .any(|grant| grant.scope == label.scope && grant.since.is_none_or(|since| label.at >= since));
    careless || label.persona == *read_scope.persona() && granted && label.at <= until
}

fn best(mut found: Vec<Found>, limit: usize) -> Vec<Found> {
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    found.truncate(limit);
    found
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Embeds words as directions: texts that share words are near each other.
pub fn embed(text: &str) -> Vec<f32> {
    let mut vector = [0.0_f32; DIMENSION];
    vector[0] = 0.1;
    for word in words(text) {
        let hash = word
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        vector[1 + (hash >> 33) as usize % (DIMENSION - 1)] += 1.0;
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter().map(|value| value / length).collect()
}

pub struct WordEmbedder {
    info: EmbedderInfo,
    unavailable: Arc<AtomicBool>,
}

impl WordEmbedder {
    /// Creates an embedder that fails while `unavailable` is true.
    pub fn new(unavailable: Arc<AtomicBool>) -> Self {
        let info =
            EmbedderInfo { id: "words".into(), dimension: DIMENSION, similarity_floor: 0.1, asks_otherwise: false };
        Self { info, unavailable }
    }
}

#[async_trait]
impl Embedder for WordEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    async fn embed(
        &self,
        texts: Vec<String>,
        _: Purpose,
        _: Priority,
    ) -> Result<Vec<Vec<f32>>, azera_model_api::Error> {
        static WAS_STUCK: AtomicBool = AtomicBool::new(false);
        if self.unavailable.load(Ordering::SeqCst) {
            return Err(azera_model_api::Error::Unavailable("it is away".into()));
        }
        if texts.len() > EMBED_QUEUE || texts.iter().any(|text| text.contains(BUSY)) {
            return Err(azera_model_api::Error::Busy { waiting: EMBED_QUEUE });
        }
        if texts.iter().any(|text| text.contains(STUCK)) && !WAS_STUCK.swap(true, Ordering::SeqCst) {
            IS_STUCK.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(texts.iter().map(|text| embed(text)).collect())
    }
}

/// Points by id. A clone is another handle on the same points.
#[derive(Clone)]
pub struct Vectors {
    dimension: usize,
    careless: bool,
    points: Arc<Mutex<BTreeMap<MemoryId, Point>>>,
}

impl Vectors {
    pub fn new(dimension: usize, careless: bool) -> Self {
        Self { dimension, careless, points: Arc::default() }
    }

    fn check<'a>(&self, mut vectors: impl Iterator<Item = &'a Vec<f32>>) -> Result<(), Error> {
        let fits = |vector: &Vec<f32>| vector.len() == self.dimension && vector.iter().all(|value| value.is_finite());
        if vectors.all(fits) { Ok(()) } else { Err(Error::Invalid("no vector of this index".into())) }
    }

    fn points(&self) -> MutexGuard<'_, BTreeMap<MemoryId, Point>> {
        self.points.lock().unwrap()
    }
}

impl VectorIndex for Vectors {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        self.check(points.iter().flat_map(|point| [Some(&point.own), point.window.as_ref()]).flatten())?;
        self.points().extend(points.into_iter().map(|point| (point.id, point)));
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
        self.check([vector.to_vec()].iter())?;
        let score = |point: &Point| {
            let stored = match facet {
                Facet::Own => Some(&point.own),
                Facet::Window => point.window.as_ref(),
            };
            stored.map(|stored| stored.iter().zip(vector).map(|(a, b)| a * b).sum())
        };
        let points = self.points();
        let seen = points.values().filter(|point| visible(read_scope, &point.label, until, self.careless));
        Ok(best(seen.filter_map(|point| Some(Found { id: point.id, score: score(point)? })).collect(), limit))
    }

    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        let points = self.points();
        let stored = |point: &Point| Stored { id: point.id, own: point.own.clone(), window: point.window.clone() };
        Ok(ids.iter().filter_map(|id| points.get(id)).map(stored).collect())
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        self.points().retain(|id, _| !ids.contains(id));
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    fn optimize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn clear(&self) -> Result<(), Error> {
        self.points().clear();
        Ok(())
    }

    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(self.points().keys().copied().collect())
    }
}

type Docs = BTreeMap<MemoryId, TextDocument>;

/// Documents by id; searches use those of the last commit. How rare a word is depends only on visible documents.
#[derive(Clone, Default)]
pub struct Words {
    careless: bool,
    docs: Arc<Mutex<(Docs, Docs)>>,
}

impl Words {
    pub fn new(careless: bool) -> Self {
        Self { careless, ..Self::default() }
    }
}

impl TextIndex for Words {
    fn upsert(&self, docs: Vec<TextDocument>) -> Result<(), Error> {
        self.docs.lock().unwrap().0.extend(docs.into_iter().map(|doc| (doc.id, doc)));
        Ok(())
    }

    fn search(
        &self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        weights: FacetWeights,
        until: Timestamp,
        limit: usize,
    ) -> Result<LexicalHits, Error> {
        assert!(!query.contains(DEFECT), "a defect in an index");
        let guard = self.docs.lock().unwrap();
        let seen: Vec<(&TextDocument, Vec<String>, Vec<String>)> = guard
            .1
            .values()
            .filter(|doc| doc.text_index == text_index && visible(read_scope, &doc.label, until, self.careless))
            .map(|doc| (doc, words(&doc.own), words(&doc.window)))
            .collect();
        let question: BTreeSet<String> = words(query).into_iter().collect();
        let mut scores: BTreeMap<MemoryId, f32> = BTreeMap::new();
        let mut idfs = Vec::new();
        for word in &question {
            let count = |text: &[String]| text.iter().filter(|other| *other == word).count() as f32;
            let holding = seen.iter().filter(|(_, own, _)| own.contains(word)).count() as f32;
            let idf = (1.0 + (seen.len() as f32 - holding + 0.5) / (holding + 0.5)).ln();
            idfs.push(idf);
            for (doc, own, window) in &seen {
                let gain = |text| count(text) / (count(text) + 1.2) * 2.2 * idf;
                let score = weights.own * gain(own) + weights.window * gain(window);
                if score > 0.0 {
                    *scores.entry(doc.id).or_default() += score;
                }
            }
        }
        let found = scores.into_iter().map(|(id, score)| Found { id, score }).collect();
        // Sorted, so that the sum's last bit does not reveal which word of the query occurs in a text that the record
        // hides.
        idfs.sort_by(f32::total_cmp);
        Ok(LexicalHits { found: best(found, limit), idf: idfs.iter().sum() })
    }

    fn containing(
        &self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<MemoryId>, Error> {
        let (guard, sought) = (self.docs.lock().unwrap(), words(query));
        let holds = |doc: &TextDocument| {
            let own = words(&doc.own);
            sought.iter().all(|word| own.iter().any(|other| other.starts_with(word.as_str())))
        };
        let mut found: Vec<&TextDocument> = guard
            .1
            .values()
            .filter(|doc| doc.text_index == text_index && visible(read_scope, &doc.label, until, self.careless))
            .filter(|doc| !sought.is_empty() && holds(doc))
            .collect();
        found.sort_by_key(|doc| std::cmp::Reverse((doc.label.at, doc.id)));
        Ok(found.into_iter().take(limit).map(|doc| doc.id).collect())
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        self.docs.lock().unwrap().0.retain(|id, _| !ids.contains(id));
        Ok(())
    }

    fn commit(&self) -> Result<(), Error> {
        let mut docs = self.docs.lock().unwrap();
        docs.1 = docs.0.clone();
        Ok(())
    }

    fn clear(&self) -> Result<(), Error> {
        *self.docs.lock().unwrap() = Default::default();
        Ok(())
    }

    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(self.docs.lock().unwrap().0.keys().copied().collect())
    }
}
