//! Lorebooks as their writers mean them.

use azera_personas::limits::{MAX_LORE_ENTRIES, MAX_LORE_MATCHES};
use azera_personas::{ImportedCard, LoreEntry, Lorebook, Talk};
use serde_json::{Value, json};

use crate::cards::import;

fn with_book(book: &Value) -> ImportedCard {
    import(
        &json!({"spec": "chara_card_v2", "data": {"name": "Tarn", "description": "Mends nets.", "character_book": book}}),
    )
}

fn book(entries: Value) -> Lorebook {
    with_book(&json!({"entries": entries, "extensions": {}})).data.into_lorebook().expect("has a book")
}

fn texts(found: &[&LoreEntry]) -> Vec<String> {
    found.iter().map(|entry| entry.prompt_text()).collect()
}

/// An entry as SillyTavern exports it, with changes.
fn exported(content: &str, keys: &[&str], change: &[(&str, Value)]) -> Value {
    let mut entry = json!({"id": 1, "keys": keys, "secondary_keys": [], "comment": "", "content": content,
        "constant": false, "selective": false, "insertion_order": 100, "enabled": true, "position": "before_char",
        "use_regex": true, "extensions": {"position": 0, "exclude_recursion": false, "display_index": 0,
        "probability": 100, "useProbability": true, "depth": 4, "selectiveLogic": 0, "group": "",
        "group_override": false, "group_weight": 100, "prevent_recursion": false, "delay_until_recursion": false,
        "scan_depth": null, "match_whole_words": null, "use_group_scoring": false, "case_sensitive": null,
        "automation_id": "", "role": 0, "vectorized": false, "sticky": 0, "cooldown": 0, "delay": 0}});
    for (field, value) in change {
        let place = if entry.get(field).is_some() { &mut entry } else { &mut entry["extensions"] };
        place[*field] = value.clone();
    }
    entry
}

#[track_caller]
fn wakes(entry: &Value, text: &str, expected: bool) {
    let found = !book(json!([entry])).matching(text).is_empty();
    assert_eq!(found, expected, "{text:?} and {entry}");
}

#[test]
fn a_key_of_sillytavern_is_an_expression_only_between_slashes() {
    wakes(&exported("x", &["oat"], &[]), "a boat", false);
    wakes(&exported("x", &["F# (new)"], &[]), "we write f# (new) here", true);
    wakes(&exported("x", &["/gr[ae]y owl/i"], &[]), "a GREY OWL", true);
    wakes(&exported("x", &["/gr[ae]y owl/"], &[]), "a GREY OWL", false);
    wakes(&exported("x", &["/usr/lib/"], &[]), "it lies in /usr/lib/", true);
    wakes(&exported("x", &[], &[("constant", json!(true))]), "hello", true);
}

#[test]
fn expressions_of_other_writers_still_work() {
    let entry = |keys: Value| json!({"keys": keys, "content": "x", "use_regex": true, "enabled": true});
    wakes(&entry(json!(["cast(le|ing)"])), "a casting", true);
    wakes(&entry(json!(["/cast(le|ing)/i"])), "CASTING", true);
    wakes(&entry(json!(["("])), "(", false);
    wakes(&json!({"keys": ["/a b/i"], "content": "x"}), "A B", false);
}

#[test]
fn secondary_keys_decide_by_their_logic() {
    let entry = |logic: u64| {
        let secondary = json!(["wind", "rain"]);
        exported(
            "x",
            &["bell"],
            &[("selective", json!(true)), ("secondary_keys", secondary), ("selectiveLogic", json!(logic))],
        )
    };
    let cases = [
        ("the bell", [false, true, true, false]),
        ("the bell in the wind", [true, true, false, false]),
        ("the bell, wind and rain", [true, false, false, true]),
        ("wind and rain", [false; 4]),
    ];
    for (text, expected) in cases {
        for (logic, expected) in expected.into_iter().enumerate() {
            wakes(&entry(logic as u64), text, expected);
        }
    }
}

#[test]
fn words_and_case_are_compared_as_the_entry_says() {
    wakes(&exported("x", &["oat"], &[("match_whole_words", json!(false))]), "a boat", true);
    wakes(&exported("x", &["oat"], &[("match_whole_words", json!(true))]), "a boat", false);
    wakes(&exported("x", &["Oat"], &[("case_sensitive", json!(true))]), "an oat", false);
    wakes(&exported("x", &["Oat"], &[("case_sensitive", json!(false))]), "an oat", true);
}

#[test]
fn chance_is_the_same_for_the_same_message() {
    let entry = |percent: f64, counts: bool| {
        exported("x", &["oat"], &[("probability", json!(percent)), ("useProbability", json!(counts))])
    };
    wakes(&entry(0.0, true), "oat", false);
    wakes(&entry(0.0, false), "oat", true);
    let half = book(json!([entry(50.0, true)]));
    let found = (0..200).filter(|n| !half.matching(&format!("oat {n}")).is_empty()).count();
    assert!((60..140).contains(&found), "{found} of 200");
    for n in 0..20 {
        let text = format!("oat {n}");
        assert_eq!(half.matching(&text), half.matching(&text));
    }
}

/// Plays a conversation and returns at which of its messages the entry is active.
fn active_at(entry: Value, messages: &[&str]) -> Vec<usize> {
    let book = book(json!([entry]));
    let active = |end: &usize| {
        let messages = &messages[..*end];
        !book.matching_talk(&Talk { messages, count: *end as u64, ..Talk::default() }).is_empty()
    };
    (1..=messages.len()).filter(active).map(|end| end - 1).collect()
}

#[test]
fn entries_wait_stay_and_rest_by_messages() {
    let entry = |change: &[(&str, Value)]| exported("x", &["oat"], &[change, &[("scan_depth", json!(1))]].concat());
    let talk = ["oat", "oat", "-", "-", "-", "oat", "oat", "oat", "oat"];
    assert_eq!(active_at(entry(&[]), &talk), [0, 1, 5, 6, 7, 8]);
    assert_eq!(active_at(entry(&[("delay", json!(2))]), &talk), [1, 5, 6, 7, 8]);
    assert_eq!(active_at(entry(&[("sticky", json!(3))]), &talk), [0, 1, 2, 3, 5, 6, 7, 8]);
    assert_eq!(active_at(entry(&[("cooldown", json!(2))]), &talk), [0, 5, 8]);
    let all = [("delay", json!(2)), ("sticky", json!(3)), ("cooldown", json!(2))];
    assert_eq!(active_at(entry(&all), &talk), [1, 2, 3, 4, 7, 8]);
    let long = vec!["-"; 300].into_iter().chain(["oat", "-"]).collect::<Vec<_>>();
    assert_eq!(active_at(entry(&[("sticky", json!(1))]), &long), [300, 301]);
}

#[test]
fn an_entry_has_its_own_depth() {
    let talk = ["oat", "-", "-", "-", "-"];
    assert_eq!(active_at(exported("x", &["oat"], &[]), &talk), [0, 1, 2, 3], "the usual depth is 4");
    assert_eq!(active_at(exported("x", &["oat"], &[("scan_depth", json!(2))]), &talk), [0, 1]);
    assert_eq!(active_at(exported("x", &["oat"], &[("scan_depth", json!(0))]), &talk), [0; 0]);
}

#[test]
fn entries_may_search_the_persona_itself() {
    let talk = Talk { messages: &["hello"], count: 1, description: "likes oats", ..Talk::default() };
    let searched = |field: &str, talk: &Talk<'_>| {
        !book(json!([exported("x", &["oat"], &[(field, json!(true))])])).matching_talk(talk).is_empty()
    };
    assert!(searched("match_character_description", &talk));
    assert!(!searched("match_scenario", &talk));
    assert!(searched("match_scenario", &Talk { scenario: "an oat field", ..talk }));
    assert!(searched("match_persona_description", &Talk { user_persona: "oat farmer", ..talk }));
    let card =
        import(&json!({"data": {"name": "Tarn", "description": "d", "creator_notes": "about oats", "character_book":
        {"entries": [exported("x", &["oat"], &[("match_creator_notes", json!(true))])]}}}));
    let book = card.data.into_lorebook().expect("has a book");
    assert_eq!(book.matching_talk(&talk).len(), 1);
}

#[test]
fn matching_entries_activate_others_only_if_enabled() {
    let activated = |recursive: bool, change: &[(&str, Value)]| {
        let entries = json!([
            exported("The keep has a moat.", &["keep"], change),
            exported("The moat has eels.", &["moat"], &[]),
        ]);
        let book = json!({"entries": entries, "recursive_scanning": recursive});
        texts(&with_book(&book).data.into_lorebook().expect("has a book").matching("the keep")).len()
    };
    assert_eq!(activated(false, &[]), 1);
    assert_eq!(activated(true, &[]), 2);
    assert_eq!(activated(true, &[("prevent_recursion", json!(true))]), 1);
    let entries = |change: &[(&str, Value)]| {
        let entries = json!([exported("a moat", &["keep"], &[]), exported("eels", &["moat"], change)]);
        let book = with_book(&json!({"entries": entries, "recursive_scanning": true}));
        let book = book.data.into_lorebook().expect("has a book");
        (book.matching("the keep").len(), book.matching("the moat").len())
    };
    assert_eq!(entries(&[("exclude_recursion", json!(true))]), (1, 1));
    assert_eq!(entries(&[("delay_until_recursion", json!(true))]), (2, 0));
}

#[test]
fn decorators_are_followed_and_do_not_reach_the_prompt() {
    let entry = |content: &str, keys: &[&str]| json!({"content": content, "keys": keys});
    wakes(&entry("@@dont_activate\nx", &["castle"]), "castle", false);
    wakes(&entry("@@activate\nx", &[]), "anything", true);
    wakes(&entry("@@exclude_keys ruin, wreck\nx", &["castle"]), "a castle in ruin", false);
    wakes(&entry("@@additional_keys moat\nx", &["castle"]), "a castle", false);
    wakes(&entry("@@additional_keys moat\nx", &["castle"]), "a castle with a moat", true);
    let found = book(json!([entry("@@depth 4\n@@@role system\n\nThe keep.", &["x"])]));
    assert_eq!(texts(&found.matching("x")), ["The keep."]);
}

#[test]
fn macros_do_not_reach_the_prompt() {
    let found = book(
        json!([{"keys": ["x"], "content": "{{random::{{char}}::b}} is {{// no }}{{roll:d6}}<BOT>'s {{wild thing}}"}]),
    );
    assert_eq!(texts(&found.matching("x")), ["{{char}} is {{char}}'s wild thing"]);
}

#[test]
fn world_info_fields_are_read() {
    let native = json!({"entries": {"0": {"uid": 0, "key": ["bell"], "keysecondary": ["wind"], "content": "x", "order": 5,
        "disable": false, "selective": true, "selectiveLogic": 2, "matchWholeWords": false}, "1": {"key": ["bell"],
        "keysecondary": [], "content": "y", "disable": true}}});
    let book = with_book(&native).data.into_lorebook().expect("has a book");
    assert_eq!(texts(&book.matching("doorbells")), ["x"]);
    assert!(book.matching("a bell in the wind").is_empty());
}

#[test]
fn the_import_names_what_has_no_effect() {
    let entries = json!([
        exported(
            "x",
            &["a", "/(?=b)c/"],
            &[("group", json!("weather")), ("position", json!(4)), ("vectorized", json!(true))]
        ),
        exported("@@depth 3\ny", &["b"], &[("position", json!("after_char"))]),
        exported("z", &["c"], &[("group", json!("weather"))]),
    ]);
    let mut entries = entries;
    entries[0]["extensions"]["position"] = json!(4);
    entries[0]["position"] = json!("after_char");
    let notes: Vec<_> = with_book(&json!({"entries": entries})).notes.iter().map(ToString::to_string).collect();
    let notes = notes.join("\n");
    let lost = "@@depth (1), expression /(?=b)c/ (1), group (2), position (1), vectorized (1)";
    assert!(notes.contains(lost), "{notes}");
    let plain = with_book(&json!({"entries": [exported("x", &["a"], &[])]}));
    assert!(plain.notes.iter().all(|note| !note.message.contains("without effect")), "{:?}", plain.notes);
}

#[test]
fn odd_books_and_entries_cost_only_themselves() {
    for (odd, noted) in
        [(json!([]), true), (json!(""), true), (json!("text"), true), (json!(7), true), (Value::Null, false)]
    {
        let card = with_book(&odd);
        assert_eq!(card.data.lorebook, None, "{odd}");
        assert_eq!(card.notes.iter().any(|note| note.field == "character_book"), noted, "{odd}");
        assert_eq!(card.persona.core_identity, "Mends nets.");
    }
    let good = json!({"keys": ["net"], "content": "Nets dry on Fridays."});
    let odd = json!({"entries": [null, 5, [], good, {"keys": [null, "rope", {}], "content": "Rope."}, {"keys": 4, "content": []}]});
    let card = with_book(&odd);
    let notes = format!("{:?}", card.notes);
    assert!(notes.contains("3 of its entries are no objects") && notes.contains("3 of its keys"), "{notes}");
    let book = card.data.into_lorebook().expect("has a book");
    assert_eq!(texts(&book.matching("a net and a rope")), ["Nets dry on Fridays.", "Rope."]);
    assert_eq!(with_book(&json!([good])).data.into_lorebook().map(|book| book.entries.len()), Some(1));
    assert_eq!(with_book(&json!({"entries": 5})).data.into_lorebook().map(|book| book.entries.len()), Some(0));
}

#[test]
fn too_many_entries_keep_the_first() {
    let entries: Vec<_> =
        (0..MAX_LORE_ENTRIES + 5).map(|n| json!({"keys": [format!("k{n}q")], "content": "c"})).collect();
    let card = with_book(&json!({"entries": entries}));
    assert!(
        card.notes.iter().any(|note| note.message.contains("4101 entries; only the first 4096")),
        "{:?}",
        card.notes
    );
    assert_eq!(
        serde_json::to_value(&card.data.lorebook).expect("serializes")["entries"],
        json!(entries),
        "all are kept"
    );
    let book = card.data.into_lorebook().expect("has a book");
    assert_eq!((book.matching("k4095q").len(), book.matching("k4096q").len()), (1, 0));
}

#[test]
fn a_hostile_lorebook_takes_bounded_time() {
    let keys: Vec<_> = (0..64).map(|n| format!("absent {n}")).collect();
    let mut entries = vec![json!({"keys": keys, "content": "silent", "sticky": 9}); 4096];
    entries[0] = json!({"keys": ["k"], "content": "early"});
    // Stored books are read without the limit of an upload.
    let stored =
        |entries: Vec<Value>| serde_json::from_value::<Lorebook>(json!({"entries": entries})).expect("reads back");
    assert_eq!(texts(&stored(entries).matching(&"k ".repeat(100_000))), ["early"]);
    let patterns = vec![exported("x", &["/(a|b|ab)*c(\\w{50}){20}/i"], &[]); 4096];
    assert_eq!(stored(patterns).matching(&"ab".repeat(10_000)).len(), 0);
}

#[test]
fn entries_of_the_lowest_priority_are_left_out() {
    let entries: Vec<_> = (0..100)
        .map(|n| json!({"keys": ["k"], "content": format!("entry {n}"), "insertion_order": n, "priority": n % 50}))
        .collect();
    let found = book(json!(entries));
    let found = found.matching("k");
    assert_eq!(found.len(), MAX_LORE_MATCHES);
    assert!(found.iter().all(|entry| entry.priority >= Some(38.0)));
    assert!(found.is_sorted_by(|a, b| a.insertion_order <= b.insertion_order));
    let tight = with_book(&json!({"entries": entries, "token_budget": 4})).data.into_lorebook().expect("has a book");
    assert_eq!(tight.matching("k").len(), 2);
}

/// Books stored by earlier versions are read as before.
#[test]
fn books_stored_before_are_read() {
    let stored = json!({"name": "The Gull", "scan_depth": 4, "entries": [{"keys": ["gull"], "content": "It has two masts.",
        "enabled": true, "insertion_order": 2.0, "case_sensitive": false, "use_regex": false, "constant": false,
        "selective": false, "secondary_keys": [], "id": 7, "extensions": {}}]});
    let book: Lorebook = serde_json::from_value(stored).expect("reads back");
    assert_eq!((book.scan_depth, texts(&book.matching("the gull"))), (Some(4), vec!["It has two masts.".to_owned()]));
}
