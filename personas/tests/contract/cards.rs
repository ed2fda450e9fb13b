use azera_personas::{CardData, CardSpec, ImportedCard, import_card, parse};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::png::{compressed_text, international_text, picture, text};

pub(crate) fn v2() -> Value {
    json!({
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "name": "Captain Rook",
        "data": {
            "name": "Captain Rook",
            "description": "{{char}} sails the Gull.\n## Prime Directive\nShe trusts {{USER}}.",
            "personality": "MBTI: stormy\nbrave, curt",
            "scenario": "<USER> has come aboard the Gull.",
            "first_mes": "Ahoy, {{user}}.",
            "mes_example": "<START>\n{{user}}: How deep?\n{{char}}: Nine fathom.\nGive or take.\n<start>\nThe wind howls.\n{{char}}: ```\nlog\n```\n{{user}}: Ok",
            "creator_notes": "Made on a rainy day.",
            "system_prompt": "{{original}}Stay salty.<|im_end|>",
            "post_history_instructions": "Never break character.",
            "alternate_greetings": ["Who goes there?", ""],
            "tags": ["sea"],
            "creator": "someone",
            "character_version": "3",
            "extensions": {"depth": {"prompt": "x"}},
            "custom_field": 5,
            "character_book": {
                "name": "The Gull",
                "scan_depth": "4",
                "extensions": {"a": 1},
                "entries": [
                    {"keys": ["Gull", "ship"], "content": "The Gull has two masts.", "enabled": true, "insertion_order": 2,
                     "extensions": {}, "id": 7, "position": "after_char", "comment": "hull"},
                    {"keys": "mate, first mate", "content": "The mate is Oda.<|im_start|>", "insertion_order": 1, "selective": true,
                     "secondary_keys": ["name"], "enabled": true},
                    {"keys": [], "content": "Salt everywhere.", "constant": true, "enabled": true, "insertion_order": 3},
                    {"keys": ["off"], "content": "Never.", "enabled": false, "insertion_order": 0}
                ]
            }
        }
    })
}

pub(crate) fn import(card: &Value) -> ImportedCard {
    import_card(card.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}\n{card}"))
}

#[test]
fn a_v2_card_becomes_a_persona() {
    let card = import(&v2());
    assert_eq!(card.spec, CardSpec::V2);
    assert_eq!(card.avatar, None);
    assert_snapshot!(card.persona.to_markdown(), @r#"
    ---
    id: captain-rook
    name: Captain Rook
    kind: assistant
    ---

    # Captain Rook

    ## Intent

    Be Captain Rook, in character, in every conversation with {{user}}.

    ## Core Identity

    Captain Rook sails the Gull.
    #### Prime Directive
    She trusts {{user}}.

    ## Prime Directive

    ### Dynamic

    {{user}} has come aboard the Gull.

    ### Constraint

    Never break character.

    ### Instructions

    Stay salty.(im_end)

    ## Psychological Profile

    ### Personality

    MBTI: stormy
    brave, curt

    ## Example interaction

    ### Example 1

    **User:** How deep?

    **Captain Rook:** Nine fathom.
    Give or take.

    ### Example 2

    **Captain Rook:** The wind howls.

    **Captain Rook:**
    ```
    log
    ```

    **User:** Ok
    "#);
    let notes: Vec<_> = card.notes.iter().map(ToString::to_string).collect();
    assert_snapshot!(notes.join("\n"), @r#"
    name: became the name; the id is `captain-rook`
    name: people can call it by: Captain Rook
    description: became Core Identity
    personality: became Psychological Profile, Personality
    scenario: became Prime Directive, Dynamic
    system_prompt: had control tokens or hidden characters, which were defused
    system_prompt: became Prime Directive, Instructions
    post_history_instructions: became Prime Directive, Constraint
    mes_example: became 2 example(s)
    first_mes: 1 greeting(s) kept
    alternate_greetings: 1 greeting(s) kept
    character_book: 4 lorebook entries kept
    character_version: has no place in a persona; kept for export
    creator: has no place in a persona; kept for export
    creator_notes: has no place in a persona; kept for export
    custom_field: has no place in a persona; kept for export
    extensions: has no place in a persona; kept for export
    tags: has no place in a persona; kept for export
    description: a model below 3 billion weights sees these 24 words of the persona: "Captain Rook sails the Gull. #### Prime Directive She trusts {{user}}. MBTI: stormy brave, curt {{user}} has come aboard the Gull. Never break character."; a section *Brief* in its file says better what matters
    "#);
    assert_eq!(card.data.greetings, ["Ahoy, {{user}}.", "Who goes there?"]);
    for kept in ["character_version", "creator", "creator_notes", "custom_field", "extensions", "tags"] {
        assert_eq!(card.data.extras[kept], v2()["data"][kept]);
    }
}

#[test]
fn a_small_model_gets_the_description_of_a_card() {
    let ferryman = "{{char}} is a grumpy ferryman who counts every coin. ";
    let card = |description: &str| {
        import(&json!({"spec": "chara_card_v2", "data": {
            "name": "Bram", "description": description, "personality": "He hates small talk.",
            "scenario": "A foggy river.", "post_history_instructions": "Never row for free.",
        }}))
    };
    let short = card(ferryman);
    assert_eq!(
        short.persona.brief(),
        "Bram is a grumpy ferryman who counts every coin. He hates small talk. A foggy river. Never row for free."
    );
    let says_more =
        |card: &ImportedCard| card.notes.iter().any(|note| note.message.contains("below 3 billion weights"));
    assert!(!says_more(&short));
    let long = card(&ferryman.repeat(30));
    assert!(long.persona.brief().starts_with("Bram is a grumpy ferryman") && says_more(&long));
    assert!(
        long.persona.brief().ends_with("Never row for free.") && long.persona.brief().split_whitespace().count() <= 90
    );
}

#[test]
fn imported_personas_are_as_their_file_reads() {
    let card = import(&v2());
    assert_eq!(parse(&card.persona.to_markdown()), Ok(card.persona));
}

#[test]
fn lorebook_entries_are_all_kept_and_matched() {
    let book = import(&v2()).data.lorebook.expect("has a lorebook");
    assert_eq!(book.entries.len(), 4);
    assert_eq!(book.scan_depth, Some(4));
    assert_eq!(serde_json::to_value(&book).expect("serializes"), v2()["data"]["character_book"]);
    assert_eq!(book.entries[1].content, "The mate is Oda.(im_start)");
    let check = |text: &str, expected: &[&str]| {
        let found: Vec<_> = book.matching(text).iter().map(|entry| entry.prompt_text()).collect();
        assert_eq!(found, expected, "{text:?}");
    };
    check("hello", &["Salt everywhere."]);
    check("is this SHIP yours?", &["The Gull has two masts.", "Salt everywhere."]);
    check("the mate", &["Salt everywhere."]);
    check("the first mate's name, off", &["The mate is Oda.(im_start)", "Salt everywhere."]);
}

#[test]
fn v1_and_v3_cards_are_read() {
    let flat = json!({"name": "Ada", "description": "d", "personality": "", "scenario": "", "first_mes": "hi", "mes_example": ""});
    let card = import(&flat);
    assert_eq!((card.spec, card.persona.core_identity.as_str()), (CardSpec::V1, "d"));
    assert_eq!(card.data.greetings, ["hi"]);

    let v3 = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": "Ada Long", "nickname": "Ada", "description": "d", "group_only_greetings": ["all!"],
        "creator_notes_multilingual": {"de": "x"}, "source": ["https://example.org"], "creation_date": 5,
        "assets": [{"type": "icon", "uri": "ccdefault:", "name": "main", "ext": "png"}]}});
    let card = import(&v3);
    assert_eq!(card.spec, CardSpec::V3);
    assert_eq!(card.persona.wake_names, ["Ada"]);
    assert_eq!(card.data.group_greetings, ["all!"]);
    assert_eq!(card.data.extras["source"], json!(["https://example.org"]));
    assert_eq!(card.data.extras["creation_date"], json!(5));
}

#[test]
fn cards_in_pictures_are_read_whatever_the_chunk() {
    let json = v2().to_string();
    let v3 = json.replace("chara_card_v2", "chara_card_v3").replace("Captain Rook", "Captain Three");
    fn check(file: &[u8], name: &str) {
        let card = import_card(file).expect("is a card");
        assert_eq!(card.persona.name, name);
        let avatar = card.avatar.expect("has a picture");
        assert_eq!(avatar, picture(&[]), "the picture keeps no metadata");
    }
    check(&picture(&[text("chara", &json)]), "Captain Rook");
    check(&picture(&[text("chara", &json), text("ccv3", &v3)]), "Captain Three");
    check(&picture(&[compressed_text("chara", json.as_bytes())]), "Captain Rook");
    check(&picture(&[international_text("ccv3", &v3, true)]), "Captain Three");
    check(&picture(&[international_text("chara", &json, false)]), "Captain Rook");
    check(
        &picture(&[text("Comment", "x"), crate::png::chunk(b"eXIf", b"where"), text("chara", &json)]),
        "Captain Rook",
    );
    check(&[picture(&[text("chara", &json)]), b"PK trailing".to_vec()].concat(), "Captain Rook");
    let damaged = crate::png::chunk(b"tEXt", b"ccv3\0!!!");
    check(&picture(&[damaged, text("chara", &json)]), "Captain Rook");
}

#[test]
fn card_data_is_kept_by_serializing_it() {
    let data = import(&v2()).data;
    let stored = serde_json::to_string(&data).expect("serializes");
    assert_eq!(serde_json::from_str::<CardData>(&stored).expect("reads back"), data);
}
