use azera_types::{MemoryId, Scope};

use super::place::{at, label, public, realm, scopes, visible};
use crate::{Error, Facet, Found, Point, VectorIndex};

/// Length of the vectors that the suite uses.
pub const DIMENSION: usize = 8;

/// Checks every requirement of [`VectorIndex`] with vectors of [`DIMENSION`].
///
/// # Panics
///
/// Panics if the index breaks one.
pub fn vector<V: VectorIndex, O: FnMut() -> V>(mut fresh: impl FnMut() -> O) {
    finds_the_nearest(fresh()());
    keeps_to_the_scope(fresh()());
    refuses_what_is_no_vector(fresh()());
    replaces_and_removes(fresh());
    holds_many(fresh());
}

/// Returns a unit vector at `degrees` in the plane of the first and the last axis.
fn pointing(degrees: u32) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSION];
    let angle = (degrees as f32).to_radians();
    (vector[0], vector[DIMENSION - 1]) = (angle.cos(), angle.sin());
    vector
}

fn point(id: u64, scope: Scope, own: u32, window: Option<u32>) -> Point {
    Point { id: MemoryId(id), label: label("azera", scope, 50), own: pointing(own), window: window.map(pointing) }
}

fn search(index: &impl VectorIndex, facet: Facet, degrees: u32, limit: usize) -> Vec<Found> {
    let read_scope = public("azera", "guild", None);
    index.search(&read_scope, facet, &pointing(degrees), at(1_000), limit).expect("a search")
}

fn found(index: &impl VectorIndex, facet: Facet, degrees: u32, limit: usize) -> Vec<u64> {
    search(index, facet, degrees, limit).iter().map(|found| found.id.0).collect()
}

fn finds_the_nearest(index: impl VectorIndex) {
    assert_eq!(found(&index, Facet::Own, 0, 10), [0_u64; 0], "hits of an empty index");
    let guild = || Scope::Realm(realm("guild"));
    let points = vec![
        point(1, guild(), 0, Some(80)),
        point(2, guild(), 10, None),
        point(u64::MAX, guild(), 40, Some(10)),
        point(3, guild(), 90, Some(0)),
    ];
    index.upsert(points).expect("an insertion");
    assert_eq!(found(&index, Facet::Own, 0, 10), [1, 2, u64::MAX, 3], "nearest by own vector, best first");
    assert_eq!(found(&index, Facet::Window, 0, 10), [3, u64::MAX, 1], "nearest by window vector, if there is one");
    assert_eq!(found(&index, Facet::Own, 90, 2), [3, u64::MAX], "the limit");
    assert_eq!(found(&index, Facet::Own, 90, 0), [0_u64; 0], "a limit of zero");
    assert_eq!(found(&index, Facet::Own, 0, usize::MAX).len(), 4, "the largest limit");
    for hit in search(&index, Facet::Own, 0, 10) {
        let degrees: f32 = match hit.id.0 {
            1 => 0.0,
            2 => 10.0,
            3 => 90.0,
            _ => 40.0,
        };
        let want = degrees.to_radians().cos();
        assert!((hit.score - want).abs() < 1e-3, "{} scored {} instead of {want}", hit.id, hit.score);
    }
}

fn keeps_to_the_scope(index: impl VectorIndex) {
    let mut points = Vec::new();
    for (who, more) in [("azera", 0), ("areza", 100)] {
        for (id, scope) in scopes() {
            for (second, later) in [(50, 0), (150, 10)] {
                let label = label(who, scope.clone(), second);
                points.push(Point { id: MemoryId(more + later + id), label, own: pointing(0), window: None });
            }
        }
    }
    index.upsert(points).expect("an insertion");
    for (case, read_scope, until, want) in visible() {
        let hits = index.search(&read_scope, Facet::Own, &pointing(20), at(until), 100).expect("a search");
        let mut ids: Vec<u64> = hits.iter().map(|found| found.id.0).collect();
        ids.sort_unstable();
        assert_eq!(ids, want, "{case}");
    }
}

fn refuses_what_is_no_vector(index: impl VectorIndex) {
    let refused = |own: Vec<f32>, window: Option<Vec<f32>>| {
        let global = || label("azera", Scope::Global, 50);
        let good = Point { id: MemoryId(1), label: global(), own: pointing(0), window: None };
        let bad = Point { id: MemoryId(2), label: global(), own, window };
        let answer = index.upsert(vec![good, bad]);
        assert!(matches!(answer, Err(Error::Invalid(_))), "an invalid point was accepted: {answer:?}");
        assert_eq!(index.ids().expect("ids"), [MemoryId(0); 0], "half of a refused insertion was stored");
    };
    let mut infinite = pointing(0);
    infinite[3] = f32::INFINITY;
    let mut nothing = pointing(0);
    nothing[3] = f32::NAN;
    refused(vec![0.5; DIMENSION - 1], None);
    refused(Vec::new(), None);
    refused(infinite.clone(), None);
    refused(pointing(0), Some(nothing.clone()));
    refused(pointing(0), Some(vec![0.5; DIMENSION + 1]));
    for vector in [infinite, nothing, vec![0.5; DIMENSION + 1]] {
        let answer = index.search(&public("azera", "guild", None), Facet::Own, &vector, at(1_000), 10);
        assert!(matches!(answer, Err(Error::Invalid(_))), "an invalid query vector was accepted: {answer:?}");
    }
}

fn replaces_and_removes<V: VectorIndex>(mut open: impl FnMut() -> V) {
    let guild = || Scope::Realm(realm("guild"));
    let index = open();
    index
        .upsert(vec![point(1, guild(), 0, Some(0)), point(2, guild(), 45, None), point(3, guild(), 90, None)])
        .expect("an insertion");
    index.upsert(vec![point(1, guild(), 80, None)]).expect("a replacement");
    assert_eq!(found(&index, Facet::Own, 0, 10), [2, 1, 3], "a replaced point is found at its new vector");
    assert_eq!(found(&index, Facet::Window, 0, 10), [0_u64; 0], "a replacement without a window kept the old window");
    index.upsert(vec![point(2, Scope::Realm(realm("other")), 45, None)]).expect("a replacement");
    assert_eq!(found(&index, Facet::Own, 0, 10), [1, 3], "a point that moved to another realm");

    index.remove(&[MemoryId(3), MemoryId(99)]).expect("a removal");
    index.remove(&[]).expect("a removal of nothing");
    index.upsert(Vec::new()).expect("an insertion of nothing");
    assert_eq!(found(&index, Facet::Own, 0, 10), [1], "a removed point");
    let vectors = index.vectors(&[MemoryId(3), MemoryId(1), MemoryId(99)]).expect("vectors");
    assert_eq!(vectors.len(), 1, "vectors of existing points");
    assert_eq!(vectors[0].id, MemoryId(1));
    let far = vectors[0].own.iter().zip(pointing(80)).map(|(is, want)| (is - want).abs()).fold(0.0, f32::max);
    assert!(far < 1e-3, "a stored vector is {far} off");
    index.flush().expect("a flush");
    drop(index);

    let index = open();
    assert_eq!(index.ids().expect("ids"), [MemoryId(1), MemoryId(2)], "ids after reopening");
    assert_eq!(found(&index, Facet::Own, 0, 10), [1], "hits after reopening");
    index.upsert(vec![point(1, guild(), 20, None), point(4, guild(), 10, None)]).expect("an insertion");
    index.remove(&[MemoryId(2)]).expect("a removal");
    assert_eq!(found(&index, Facet::Own, 0, 10), [4, 1], "changes after reopening");
    index.rewrite().expect("a rewrite");
    assert_eq!(index.ids().expect("ids"), [MemoryId(1), MemoryId(4)], "ids after a rewrite");
    assert_eq!(found(&index, Facet::Own, 0, 10), [4, 1], "hits after a rewrite");
    index.upsert(vec![point(5, guild(), 0, None)]).expect("an insertion");
    index.remove(&[MemoryId(4)]).expect("a removal");
    index.flush().expect("a flush");
    drop(index);

    let index = open();
    assert_eq!(found(&index, Facet::Own, 0, 10), [5, 1], "hits after a rewrite and reopening");
    index.clear().expect("a clearing");
    assert_eq!(index.ids().expect("ids"), [MemoryId(0); 0], "ids of a cleared index");
    index.upsert(vec![point(1, guild(), 30, None)]).expect("an insertion");
    index.flush().expect("a flush");
    drop(index);
    assert_eq!(found(&open(), Facet::Own, 0, 10), [1], "hits after a clearing and reopening");
}

/// Returns a pseudo-random vector. Every tenth is one of seven that recur, as the vectors of "yes" and "thanks" do.
fn scattered(number: u64) -> Vec<f32> {
    let mut state =
        if number.is_multiple_of(10) { number / 10 % 7 } else { number }.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    };
    let vector: Vec<f32> = (0..DIMENSION).map(|_| next()).collect();
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter().map(|number| number / length).collect()
}

/// Stores enough points to make an index reorganise itself during use, in one large realm and one small realm.
fn holds_many<V: VectorIndex>(mut open: impl FnMut() -> V) {
    const MANY: u64 = 33_000;
    const QUERIES: u64 = 20;
    const LIMIT: usize = 10;
    let realm_of = |id: u64| {
        if id.is_multiple_of(100) {
            "small"
        } else if id.is_multiple_of(3) {
            "guild"
        } else {
            "other"
        }
    };
    let points: Vec<Point> = (0..MANY)
        .map(|id| {
            let label = label("azera", Scope::Realm(realm(realm_of(id))), 50);
            Point { id: MemoryId(id), label, own: scattered(id), window: None }
        })
        .collect();
    let index = open();
    for part in points.chunks(4_000) {
        index.upsert(part.to_vec()).expect("an insertion");
    }

    let nearest = |place: &str, query: &[f32]| {
        let dot = |point: &Point| point.own.iter().zip(query).map(|(one, two)| one * two).sum::<f32>();
        let mut scores: Vec<f32> = points.iter().filter(|point| realm_of(point.id.0) == place).map(dot).collect();
        scores.sort_unstable_by(|one, two| two.total_cmp(one));
        scores[LIMIT - 1]
    };
    let questions: Vec<(&str, Vec<f32>, f32)> = (0..QUERIES)
        .flat_map(|number| ["small", "guild", "other"].map(|place| (place, scattered(MANY + 10 * number + 3))))
        .map(|(place, query)| (place, query.clone(), nearest(place, &query)))
        .collect();
    let check = |index: &V, moment: &str| {
        let mut allowed = 0;
        for (place, query, worst) in &questions {
            let read_scope = public("azera", place, None);
            let hits = index.search(&read_scope, Facet::Own, query, at(1_000), LIMIT).expect("a search");
            assert_eq!(hits.len(), LIMIT, "hits {moment}");
            assert!(hits.iter().all(|found| realm_of(found.id.0) == *place), "a hit from another realm {moment}");
            assert!(hits.is_sorted_by(|one, two| one.score >= two.score), "hits out of order {moment}");
            allowed += hits.iter().filter(|found| found.score >= worst - 1e-4).count();
        }
        // An index may be approximate, but at least 97 % of its hits must be right.
        let all = questions.len() * LIMIT;
        assert!(allowed * 100 >= all * 97, "{allowed} of {all} hits are among the nearest {moment}");
    };
    check(&index, "before optimizing");
    std::thread::scope(|scope| {
        let optimizing = scope.spawn(|| index.optimize());
        while !optimizing.is_finished() {
            check(&index, "while optimizing");
        }
        optimizing.join().expect("no panic").expect("an optimization");
    });
    check(&index, "after optimizing");
    index.flush().expect("a flush");
    drop(index);
    let index = open();
    check(&index, "after reopening");
    let want: Vec<MemoryId> = (0..MANY).map(MemoryId).collect();
    assert!(index.ids().expect("ids") == want, "ids of many points");
}
