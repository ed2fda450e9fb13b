//! Lexical search among 20,000 turns.

use std::hint::black_box;

use azera_memory::{FacetWeights, IndexMetadata, ReadScope, TextDocument, TextIndex, TextIndexKind};
use azera_memory_text::TantivyText;
use azera_types::{ChatId, MemoryId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};
use criterion::{Criterion, criterion_group, criterion_main};

const TURNS: u64 = 20_000;

const WORDS: [&str; 16] = [
    "harbour", "lantern", "orchard", "copper", "ladder", "gravel", "tide", "walnut", "window", "garden", "letter",
    "bridge", "winter", "kitchen", "train", "violin",
];

/// Returns the words of a turn, which depend on its number.
fn said(turn: u64) -> String {
    let word = |step: u64| WORDS[(turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (step * 7)) as usize % WORDS.len()];
    (0..8).map(|step| word(step).to_owned() + " ").collect::<String>() + &format!("number{turn}")
}

fn searching(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a folder");
    let index = TantivyText::open(dir.path()).expect("an index");
    let (persona, realm) = (PersonaId::new("azera").expect("an id"), RealmId::new("guild").expect("an id"));
    let docs = (0..TURNS).map(|turn| {
        let label = IndexMetadata {
            persona: persona.clone(),
            scope: Scope::Realm(realm.clone()),
            at: Timestamp::from_second(turn.cast_signed()).expect("a time"),
        };
        TextDocument {
            id: MemoryId(turn),
            text_index: TextIndexKind::Chats,
            label,
            own: said(turn),
            window: said(turn.saturating_sub(1)),
        }
    });
    index.upsert(docs.collect()).expect("an insertion");
    index.commit().expect("a commit");
    let place = Place { chat: ChatId::new("hall").expect("an id"), kind: PlaceKind::Public(realm), since: None };
    let read_scope = ReadScope::in_place(persona, &place, &ReadableScopes::default());
    let weights = FacetWeights { own: 0.75, window: 2.0 };
    for question in ["violin", "which lantern hung in the orchard by the bridge", "number17 copper"] {
        criterion.bench_function(&format!("search/{question}"), |bench| {
            bench.iter(|| {
                index
                    .search(&read_scope, TextIndexKind::Chats, black_box(question), weights, Timestamp::MAX, 100)
                    .expect("a search")
            });
        });
    }
}

criterion_group!(benches, searching);
criterion_main!(benches);
