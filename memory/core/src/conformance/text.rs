use azera_types::{MemoryId, Scope};

use super::place::{at, label, public, realm, scopes, visible};
use crate::{Facet, FacetWeights, Found, TextDocument, TextIndex, TextIndexKind};

/// Checks every requirement of [`TextIndex`].
///
/// # Panics
///
/// Panics if the index breaks one.
pub fn text<T: TextIndex, O: FnMut() -> T>(mut fresh: impl FnMut() -> O) {
    finds_words(fresh()());
    finds_words_of_every_script(fresh()());
    takes_words_and_never_syntax(fresh()());
    finds_the_newest_with_every_word(fresh()());
    keeps_to_the_scope(fresh()());
    replaces_and_removes(fresh());
}

fn doc(id: u64, text_index: TextIndexKind, own: &str, window: &str) -> TextDocument {
    let label = label("azera", Scope::Realm(realm("guild")), 50);
    TextDocument { id: MemoryId(id), text_index, label, own: own.to_owned(), window: window.to_owned() }
}

fn search(index: &impl TextIndex, text_index: TextIndexKind, facet: Facet, query: &str, limit: usize) -> Vec<Found> {
    let read_scope = public("azera", "guild", None);
    index.search(&read_scope, text_index, query, only(facet), at(1_000), limit).expect("a search").found
}

/// Returns weights that count the text of one facet only.
fn only(facet: Facet) -> FacetWeights {
    match facet {
        Facet::Own => FacetWeights { own: 1.0, window: 0.0 },
        Facet::Window => FacetWeights { own: 0.0, window: 1.0 },
    }
}

fn found(index: &impl TextIndex, text_index: TextIndexKind, facet: Facet, query: &str) -> Vec<u64> {
    search(index, text_index, facet, query, 100).iter().map(|found| found.id.0).collect()
}

fn finds_words(index: impl TextIndex) {
    assert_eq!(found(&index, TextIndexKind::Chats, Facet::Own, "anything"), [0_u64; 0], "hits of an empty index");
    index
        .upsert(vec![
            doc(1, TextIndexKind::Chats, "The lighthouse keeper sings", "storms at night"),
            doc(2, TextIndexKind::Chats, "Keepers of bees and of a lighthouse, a lighthouse by the sea", "honey"),
            doc(3, TextIndexKind::Chats, "A quiet evening", "the keeper sang"),
            doc(4, TextIndexKind::Memories, "The lighthouse is locked with 7731", ""),
            doc(u64::MAX, TextIndexKind::Chats, "Smörgåsbord im Café", ""),
        ])
        .expect("an insertion");
    index.commit().expect("a commit");
    let own = |query| found(&index, TextIndexKind::Chats, Facet::Own, query);
    assert_eq!(own("lighthouse"), [2, 1], "more occurrences score higher");
    assert_eq!(own("LIGHTHOUSES"), [2, 1], "case and plural make no difference");
    assert_eq!(own("keepers"), [1, 2], "with one occurrence each, the shorter text comes first");
    assert_eq!(own("singing"), [1], "another form of the word");
    assert_eq!(own("sing bee"), [1, 2], "any of the words");
    assert_eq!(own("cafe smorgasbord"), [u64::MAX], "accents make no difference");
    assert_eq!(own("the of and a"), [0_u64; 0], "stop words find nothing");
    assert_eq!(own("honey"), [0_u64; 0], "a word of the window text");
    assert_eq!(found(&index, TextIndexKind::Chats, Facet::Window, "honey"), [2], "a word of the window text");
    assert_eq!(found(&index, TextIndexKind::Memories, Facet::Own, "lighthouse 7731"), [4], "the other index");
    assert_eq!(own("7731"), [0_u64; 0], "a word of the other index");
    let hits = search(&index, TextIndexKind::Chats, Facet::Own, "lighthouse keeper", 1);
    assert_eq!(hits.len(), 1, "the limit");
    assert!(hits[0].score > 0.0, "a score");
    assert!(search(&index, TextIndexKind::Chats, Facet::Own, "lighthouse", 0).is_empty(), "a limit of zero");
    assert_eq!(
        search(&index, TextIndexKind::Chats, Facet::Own, "lighthouse", usize::MAX).len(),
        2,
        "the largest limit"
    );
}

fn finds_words_of_every_script(index: impl TextIndex) {
    let texts = [
        "うちの犬の名前はモモです",
        "我家的狗叫豆豆",
        "강아지는 마당에서 잔다",
        "หมาของเราชื่อส้ม",
        "ឆ្កែរបស់ខ្ញុំឈ្មោះដារ៉ា",
        "ໝາຂອງຂ້ອຍຊື່ດາວ",
        "ကျွန်တော့်ခွေးနာမည်ဖြူ",
        "Zoe\u{308} wohnt in der Hauptstraße",
        "Ο Οδυσσέας μένει στην ΟΔΟΣ",
        "Diyarbakır'da IRMAK kıyısı",
        "Το σκυλί και ο कुत्ता",
    ];
    let docs = texts.iter().zip(1..).map(|(text, id)| doc(id, TextIndexKind::Chats, text, "")).collect();
    index.upsert(docs).expect("an insertion");
    index.commit().expect("a commit");
    let cases: [(&str, &[u64]); 16] = [
        ("犬", &[1]),
        ("モモ", &[1]),
        ("狗", &[2]),
        ("豆豆", &[2]),
        ("강아지", &[3]),
        ("마당", &[3]),
        ("หมา", &[4]),
        ("ឆ្កែ", &[5]),
        ("ໝາ", &[6]),
        ("ခွေး", &[7]),
        ("Zo\u{eb}", &[8]),
        ("zoe HAUPTSTRASSE", &[8]),
        ("οδός", &[9]),
        ("diyarbakir", &[10]),
        ("ırmak", &[10]),
        ("कुत्ता", &[11]),
    ];
    for (query, want) in cases {
        assert_eq!(found(&index, TextIndexKind::Chats, Facet::Own, query), want, "{query:?}");
    }
}

fn takes_words_and_never_syntax(index: impl TextIndex) {
    index
        .upsert(vec![doc(1, TextIndexKind::Chats, "plain apples", ""), doc(2, TextIndexKind::Chats, "pears", "")])
        .expect("an insertion");
    index.commit().expect("a commit");
    let long = format!("{} apples", "filler ".repeat(50_000));
    let cases: [(&str, &[u64]); 11] = [
        ("", &[]),
        ("   \n\t", &[]),
        ("?!\"'()[]{}:;*~^-+\\/&&||", &[]),
        ("own:apples", &[1]),
        ("NOT apples", &[1]),
        ("-apples +pears", &[1, 2]),
        ("\"apples plain\"~2", &[1]),
        ("appl*", &[1]),
        ("* [a TO z]", &[]),
        ("apples\0\u{202e}\u{1f}pears", &[1, 2]),
        ("persona\u{1f}realm:guild", &[]),
    ];
    for (query, want) in cases {
        let mut ids = found(&index, TextIndexKind::Chats, Facet::Own, query);
        ids.sort_unstable();
        assert_eq!(ids, want, "{query:?}");
    }
    // The index answers queries of any length. It may limit how many of their words count.
    search(&index, TextIndexKind::Chats, Facet::Own, &long, 10);
    search(&index, TextIndexKind::Chats, Facet::Own, &"x".repeat(1_000_000), 10);
    index
        .upsert(vec![doc(3, TextIndexKind::Chats, &format!("{} plums", "y".repeat(100_000)), "")])
        .expect("a very long word");
    index.commit().expect("a commit");
    assert_eq!(found(&index, TextIndexKind::Chats, Facet::Own, "plum"), [3], "a word next to a very long one");
}

fn finds_the_newest_with_every_word(index: impl TextIndex) {
    let said = |id: u64, second: i64, text: &str| TextDocument {
        label: label("azera", Scope::Realm(realm("guild")), second),
        ..doc(id, TextIndexKind::Chats, text, "a lighthouse")
    };
    index
        .upsert(vec![
            said(1, 10, "The lighthouse keeper sings"),
            said(2, 30, "Keepers of lighthouses are singing"),
            said(3, 20, "A lighthouse without anybody"),
            said(4, 40, "Theatre in the harbour"),
            said(5, 50, "灯台の番人"),
            doc(6, TextIndexKind::Memories, "a lighthouse keeper", ""),
        ])
        .expect("an insertion");
    index.commit().expect("a commit");
    let first = |query: &str, until: i64, limit: usize| -> Vec<u64> {
        let read_scope = public("azera", "guild", None);
        let found = index.containing(&read_scope, TextIndexKind::Chats, query, at(until), limit).expect("a search");
        found.into_iter().map(|id| id.0).collect()
    };
    let cases: [(&str, &[u64]); 12] = [
        ("lighthouse", &[2, 3, 1]),
        ("lighthouse keeper", &[2, 1]),
        ("KEEPERS lighthous", &[2, 1]),
        ("keep sing ligh", &[2, 1]),
        ("keeper harbour", &[]),
        ("in the", &[4]),
        ("the lighthouse", &[2, 3, 1]),
        ("番人", &[5]),
        ("li", &[]),
        ("", &[]),
        ("  *?", &[]),
        ("lighthouse owl", &[]),
    ];
    for (query, want) in cases {
        assert_eq!(first(query, 1_000, 100), want, "{query:?}");
    }
    assert_eq!(first("lighthouse", 25, 100), [3, 1], "nothing newer");
    assert_eq!(first("lighthouse", 1_000, 1), [2], "the limit");
    assert_eq!(first("lighthouse", 1_000, 0), [0_u64; 0], "a limit of zero");
    first(&"lighthouse ".repeat(50_000), 1_000, 10);
}

fn keeps_to_the_scope(index: impl TextIndex) {
    let mut docs = Vec::new();
    for (who, more) in [("azera", 0), ("areza", 100)] {
        for (id, scope) in scopes() {
            for (second, later) in [(50, 0), (150, 10)] {
                let id = MemoryId(more + later + id);
                let label = label(who, scope.clone(), second);
                let (own, window) = ("a password".to_owned(), "the password is swordfish".to_owned());
                docs.push(TextDocument { id, text_index: TextIndexKind::Memories, label, own, window });
            }
        }
    }
    index.upsert(docs).expect("an insertion");
    index.commit().expect("a commit");
    for (case, read_scope, until, want) in visible() {
        for facet in [Facet::Own, Facet::Window] {
            let hits = index
                .search(&read_scope, TextIndexKind::Memories, "passwords", only(facet), at(until), 100)
                .expect("a search");
            let mut ids: Vec<u64> = hits.found.iter().map(|found| found.id.0).collect();
            ids.sort_unstable();
            assert_eq!(ids, want, "{case}, {facet:?}");
            let equal = hits.found.iter().all(|found| (found.score - hits.found[0].score).abs() < 1e-6);
            assert!(equal, "{case}: the filter changed scores");
        }
        let holding = index
            .containing(&read_scope, TextIndexKind::Memories, "passw", at(until), 100)
            .expect("a search for a beginning");
        let mut ids: Vec<u64> = holding.iter().map(|id| id.0).collect();
        ids.sort_unstable();
        assert_eq!(ids, want, "{case}, every word");
    }
}

fn replaces_and_removes<T: TextIndex>(mut open: impl FnMut() -> T) {
    let index = open();
    let own = |index: &T, query| found(index, TextIndexKind::Chats, Facet::Own, query);
    index
        .upsert(vec![
            doc(1, TextIndexKind::Chats, "a kestrel", ""),
            doc(2, TextIndexKind::Chats, "two kestrels", ""),
            doc(3, TextIndexKind::Memories, "owls", ""),
            doc(1, TextIndexKind::Chats, "a heron", ""),
        ])
        .expect("an insertion");
    index.commit().expect("a commit");
    assert_eq!(own(&index, "kestrel"), [2], "the later of two documents with one id");
    index
        .upsert(vec![doc(2, TextIndexKind::Chats, "a wren", ""), doc(3, TextIndexKind::Chats, "a raven", "")])
        .expect("a replacement");
    index.commit().expect("a commit");
    assert_eq!(own(&index, "kestrel heron wren raven").len(), 3, "replaced documents");
    assert_eq!(
        found(&index, TextIndexKind::Memories, Facet::Own, "owl"),
        [0_u64; 0],
        "a document that moved to the other index"
    );
    index.remove(&[MemoryId(1), MemoryId(99)]).expect("a removal");
    index.remove(&[]).expect("a removal of nothing");
    index.commit().expect("a commit");
    index.commit().expect("a commit of nothing");
    assert_eq!(own(&index, "heron"), [0_u64; 0], "a removed document");
    index.upsert(vec![doc(4, TextIndexKind::Memories, "an uncommitted finch", "")]).expect("an insertion");
    drop(index);

    let index = open();
    assert_eq!(index.ids().expect("ids"), [MemoryId(2), MemoryId(3)], "ids after reopening");
    assert_eq!(own(&index, "wrens"), [2], "hits after reopening");
    index.upsert(vec![doc(5, TextIndexKind::Memories, "a magpie", "")]).expect("an insertion");
    index.remove(&[MemoryId(3)]).expect("a removal");
    index.commit().expect("a commit");
    index.rewrite().expect("a rewrite");
    assert_eq!(index.ids().expect("ids"), [MemoryId(2), MemoryId(5)], "ids of both indexes after a rewrite");
    assert_eq!(own(&index, "wren raven"), [2], "hits after a rewrite");
    index.upsert(vec![doc(6, TextIndexKind::Chats, "a swift", "")]).expect("an insertion");
    index.commit().expect("a commit");
    drop(index);

    let index = open();
    assert_eq!(own(&index, "wren swift").len(), 2, "hits after a rewrite and reopening");
    index.clear().expect("a clearing");
    assert_eq!(index.ids().expect("ids"), [MemoryId(0); 0], "ids of a cleared index");
    assert_eq!(own(&index, "wren swift"), [0_u64; 0], "hits of a cleared index");
    index.upsert(vec![doc(6, TextIndexKind::Chats, "a swallow", "")]).expect("an insertion");
    index.commit().expect("a commit");
    drop(index);
    assert_eq!(own(&open(), "swallow swift"), [6], "hits after a clearing and reopening");
}
