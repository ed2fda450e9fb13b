//! What an export writes, above all of a card that was imported.

use azera_personas::limits::MAX_CARD_FIELD_BYTES;
use azera_personas::{CardData, CardSpec, Persona, Speaker, import_card, to_card};
use serde_json::{Value, json};

use crate::cards::{import, v2};

#[test]
fn a_card_survives_export_and_import() {
    for spec in [CardSpec::V2, CardSpec::V3] {
        let first = import(&v2());
        let exported = to_card(&first.persona, &first.data, spec);
        let second = import(&exported);
        assert_eq!(second.spec, spec);
        assert_eq!(second.data.greetings, first.data.greetings);
        assert_eq!(second.data.lorebook, first.data.lorebook);
        assert_eq!(second.data.extras, first.data.extras);
        assert_eq!(second.persona.prime_directive, first.persona.prime_directive);
        assert_eq!(second.persona.psychological_profile, first.persona.psychological_profile);
        assert_eq!(second.persona.examples, first.persona.examples);
        assert_eq!(second.persona.core_identity, first.persona.core_identity);
    }
}

#[test]
fn built_in_personas_can_be_exported() {
    let azera = azera_personas::built_in("azera").expect("built in");
    let card = to_card(&azera, &CardData::default(), CardSpec::V2);
    assert_eq!(card["spec"], "chara_card_v2");
    let again = import(&card).persona;
    assert_eq!(again.name, "Azera");
    let said = |persona: &azera_personas::Persona| -> Vec<String> {
        let turns = persona.examples.iter().flat_map(|example| example.turns.clone());
        turns.filter(|turn| turn.speaker != Speaker::Memory).map(|turn| turn.text).collect()
    };
    assert_eq!(said(&again), said(&azera));
    assert!(again.core_identity.contains("The bottom line comes first"));

    let flat = to_card(&azera, &CardData::default(), CardSpec::V1);
    assert_eq!(import(&flat).spec, CardSpec::V1);
}

/// Imports a card, stores it as the host does, and exports it.
fn there_and_back(card: &Value) -> Value {
    let imported = import(card);
    let markdown = imported.persona.to_markdown();
    let stored = serde_json::to_string(&imported.data).expect("serializes");
    let persona: Persona = azera_personas::parse(&markdown).expect("an imported persona");
    to_card(&persona, &serde_json::from_str(&stored).expect("reads back"), CardSpec::V3)
}

#[track_caller]
fn keeps_every_field(card: &Value) {
    let exported = there_and_back(card);
    let fields = card.get("data").unwrap_or(card).as_object().expect("an object");
    for (field, value) in fields {
        assert_eq!(&exported["data"][field], value, "{field} of {card}");
    }
}

#[test]
fn every_field_of_a_card_comes_back_as_it_was() {
    keeps_every_field(&v2());
    let mut odd = v2();
    for field in [
        "description",
        "personality",
        "scenario",
        "first_mes",
        "mes_example",
        "system_prompt",
        "creator",
        "post_history_instructions",
        "alternate_greetings",
        "group_only_greetings",
        "nickname",
        "tags",
        "extensions",
    ] {
        for value in [json!(["a", 1]), json!({"a": null}), Value::Null, json!(7), json!(true), json!("  {{time}} \r\n")]
        {
            odd["data"][field] = value;
            keeps_every_field(&odd);
        }
    }
    let long = "word ".repeat(MAX_CARD_FIELD_BYTES);
    keeps_every_field(&json!({"name": " Ada  Long ", "description": long, "personality": long, "mes_example": long}));
    keeps_every_field(&json!({"data": {"name": "<|x|>", "description": "", "first_mes": "{{random::a::b}}",
        "alternate_greetings": ["{{// x}}", 5, null, "b"], "character_book": []}}));
    keeps_every_field(&json!({"data": {"name": "Ada", "character_book": {"entries": [null, {"keys": null}]}}}));
}

#[test]
fn an_odd_field_does_not_cost_the_others() {
    let mut card = v2();
    card["data"]["personality"] = json!({"traits": ["calm"]});
    card["data"]["alternate_greetings"] = json!(["Who goes there?", {"text": "odd"}]);
    let imported = import(&card);
    assert_eq!(imported.data.greetings, ["Ahoy, {{user}}.", "Who goes there?"]);
    assert!(imported.persona.core_identity.contains("sails the Gull"));
    let exported = there_and_back(&card);
    assert_eq!(exported["data"]["personality"], card["data"]["personality"]);
    assert_eq!(exported["data"]["alternate_greetings"], card["data"]["alternate_greetings"]);
    assert_eq!(exported["data"]["first_mes"], "Ahoy, {{user}}.");
}

#[test]
fn fields_beside_data_come_back() {
    let mut card = v2();
    card["description"] = card["data"]["description"].clone();
    card["fav"] = json!(false);
    card["avatar"] = json!("none");
    card["personality"] = json!("another");
    let exported = there_and_back(&card);
    for field in ["name", "description", "fav", "avatar", "personality"] {
        assert_eq!(exported[field], card[field], "{field}");
    }
}

#[test]
fn an_edited_text_is_exported_as_it_is_now() {
    let imported = import(&v2());
    let mut persona = imported.persona.clone();
    persona.prime_directive.dynamic = "{{user}} has left the Gull.".to_owned();
    let exported = to_card(&persona, &imported.data, CardSpec::V3);
    assert_eq!(exported["data"]["scenario"], "{{user}} has left the Gull.");
    assert_eq!(exported["data"]["description"], v2()["data"]["description"], "it was not edited");
    persona.brief = "You are Rook.".to_owned();
    let exported = to_card(&persona, &imported.data, CardSpec::V3);
    assert_eq!(exported["data"]["description"], v2()["data"]["description"]);
}

/// An earlier version kept only the fields without a place, and whole texts that were cut.
#[test]
fn data_stored_before_is_exported() {
    let imported = import(&v2());
    let stored =
        json!({"greetings": ["Ahoy."], "group_greetings": [], "extras": {"tags": ["sea"], "personality": ["odd"]}});
    let data: CardData = serde_json::from_value(stored).expect("reads back");
    let mut persona = imported.persona;
    persona.psychological_profile.other.clear();
    let exported = to_card(&persona, &data, CardSpec::V3);
    assert_eq!(exported["data"]["first_mes"], "Ahoy.");
    assert_eq!(exported["data"]["personality"], json!(["odd"]));
    assert!(import_card(exported.to_string().as_bytes()).is_ok());
}
