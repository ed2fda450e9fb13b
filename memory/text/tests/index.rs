//! The text indexes on tantivy, through their trait.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use azera_memory::{
    Error, FacetWeights, IndexMetadata, ReadScope, TextDocument, TextIndex, TextIndexKind, conformance,
};
use azera_memory_text::TantivyText;
use azera_types::{ChatId, MemoryId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};
use tempfile::TempDir;

fn doc(id: u64, realm: &str, own: &str) -> TextDocument {
    let label = IndexMetadata {
        persona: PersonaId::new("azera").unwrap(),
        scope: Scope::Realm(RealmId::new(realm).unwrap()),
        at: Timestamp::UNIX_EPOCH,
    };
    TextDocument {
        id: MemoryId(id),
        text_index: TextIndexKind::Chats,
        label,
        own: own.to_owned(),
        window: String::new(),
    }
}

fn scores(index: &TantivyText, realm: &str, query: &str, limit: usize) -> Vec<f32> {
    let kind = PlaceKind::Public(RealmId::new(realm).unwrap());
    let place = Place { chat: ChatId::new("hall").unwrap(), kind, since: None };
    let read_scope = ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default());
    let hits = index
        .search(&read_scope, TextIndexKind::Chats, query, FacetWeights { own: 1.0, window: 0.0 }, Timestamp::MAX, limit)
        .unwrap();
    hits.found.iter().map(|found| found.score).collect()
}

#[test]
fn the_index_passes_the_conformance_suite() {
    conformance::text(|| {
        let dir = TempDir::new().unwrap();
        move || TantivyText::open(dir.path()).unwrap()
    });
}

#[test]
fn a_limited_search_returns_the_first_of_all_hits_in_places_of_any_size() {
    let dir = TempDir::new().unwrap();
    let index = TantivyText::open(dir.path()).unwrap();
    let words = ["apple", "river", "stone", "cloud", "lantern", "harbour", "violin"];
    let text = |id: u64| {
        let mut state = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut text = String::new();
        for _ in 0..=state % 13 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(words[(state >> 33) as usize % words.len()]);
            text.push(' ');
        }
        text
    };
    for part in 0..3_u64 {
        let docs = (0..1_500).map(|number| {
            let id = part * 1_500 + number;
            let realm = if number % 50 == 0 { "small" } else { "large" };
            doc(id, realm, &text(id))
        });
        index.upsert(docs.collect()).unwrap();
        index.remove(&[MemoryId(part * 1_500 + 50), MemoryId(part * 1_500 + 51)]).unwrap();
        index.commit().unwrap();
    }
    for realm in ["small", "large"] {
        for query in ["apple", "apple river", "violin lantern harbour cloud", "stone nothing"] {
            let all = scores(&index, realm, query, 1_000);
            assert!(all.is_sorted_by(|one, two| one >= two), "{realm} {query}");
            for limit in [1, 3, 10] {
                assert_eq!(scores(&index, realm, query, limit), all[..limit], "{realm} {query} {limit}");
            }
        }
    }
}

/// Returns every word in the dictionaries on disk. A dictionary is an automaton, so its bytes cannot be searched for a
/// word; this parses them. With `settled`, also checks that there are no other files.
fn words_on_disk(dir: &Path, settled: bool) -> Vec<String> {
    let index = tantivy::Index::open_in_dir(dir.join("chats")).unwrap();
    let field = index.schema().get_field("own").unwrap();
    let searcher = index.reader().unwrap().searcher();
    let mut words = Vec::new();
    let mut files = vec![".managed.json".to_owned(), "meta.json".to_owned()];
    for segment in searcher.segment_readers() {
        let dictionary = segment.inverted_index(field).unwrap();
        let mut terms = dictionary.terms().stream().unwrap();
        while terms.advance() {
            words.push(String::from_utf8(terms.key().to_vec()).unwrap());
        }
    }
    words.sort();
    if !settled {
        return words;
    }
    files.extend(index.searchable_segment_ids().unwrap().iter().map(|id| id.uuid_string()));
    for entry in fs::read_dir(dir.join("chats")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = name.ends_with(".lock") || files.iter().any(|file| name.starts_with(file.as_str()));
        assert!(known, "{name} was not removed");
    }
    words
}

#[test]
fn a_rewrite_leaves_no_word_of_removed_documents() {
    let dir = TempDir::new().unwrap();
    let index = TantivyText::open(dir.path()).unwrap();
    // One of four documents is replaced below. With a larger share, a merge in the background might remove its words
    // before the rewrite.
    let wombats = (2..=4).map(|id| doc(id, "guild", "wombat"));
    index.upsert(wombats.chain([doc(1, "guild", "quokka zebra")]).collect()).unwrap();
    index.commit().unwrap();
    index.upsert(vec![doc(1, "guild", "yak zebra")]).unwrap();
    index.commit().unwrap();
    assert_eq!(words_on_disk(dir.path(), false), ["quokka", "wombat", "yak", "zebra", "zebra"]);
    index.rewrite().unwrap();
    assert_eq!(words_on_disk(dir.path(), true), ["wombat", "yak", "zebra"]);
    index.remove(&[1, 2, 3, 4].map(MemoryId)).unwrap();
    index.rewrite().unwrap();
    assert_eq!(words_on_disk(dir.path(), true), [""; 0]);
    index.upsert(vec![doc(3, "guild", "wombat")]).unwrap();
    index.commit().unwrap();
    assert_eq!(words_on_disk(dir.path(), false), ["wombat"]);
    index.clear().unwrap();
    assert_eq!(words_on_disk(dir.path(), true), [""; 0]);
}

#[test]
fn the_error_about_damage_names_the_remedy() {
    let check = |moment: &str, damage: fn(&Path)| {
        let dir = TempDir::new().unwrap();
        let index = TantivyText::open(dir.path()).unwrap();
        index.upsert(vec![doc(1, "guild", "a word")]).unwrap();
        index.commit().unwrap();
        drop(index);
        damage(&dir.path().join("chats"));
        let refused = TantivyText::open(dir.path()).err().expect(moment);
        let named = matches!(&refused, Error::Backend { why, .. } if why.contains("azera memory rebuild"));
        assert!(named, "{moment}: {refused}");
    };
    check("half a list of segments", |dir| fs::write(dir.join("meta.json"), b"{\"segments\":").unwrap());
    check("a segment that is gone", |dir| {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "term" || kind == "fast") {
                fs::remove_file(path).unwrap();
            }
        }
    });
}

#[test]
fn an_index_of_another_analyzer_is_refused() {
    let dir = TempDir::new().unwrap();
    let index = TantivyText::open(dir.path()).unwrap();
    index.upsert(vec![doc(1, "guild", "a word")]).unwrap();
    index.commit().unwrap();
    drop(index);
    let meta = dir.path().join("chats").join("meta.json");
    let written = fs::read_to_string(&meta).unwrap();
    assert!(written.contains("\"words-2\""), "{written}");
    // As the version before the first one with a number wrote it.
    fs::write(&meta, written.replace("\"words-2\"", "\"english\"")).unwrap();
    let refused = TantivyText::open(dir.path()).err().expect("an index with other words");
    assert!(matches!(&refused, Error::Backend { why, .. } if why.contains("azera memory rebuild")), "{refused}");
}
