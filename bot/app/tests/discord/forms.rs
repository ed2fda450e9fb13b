//! Autocomplete, modals and user installs.

use azera_fake_discord::{FakeDiscord, Invoked};
use serde_json::json;

use crate::bot::Bot;
use crate::commands::{answer_text, ask, find, give, square};
use crate::model::Model;
use crate::{answered_for_good, as_described, fake};

/// Returns the autocomplete choices for what a person has typed so far.
/// `form` is empty for a command with one form.
#[track_caller]
pub fn suggestions(
    fake: &FakeDiscord,
    channel: u64,
    who: u64,
    command: &str,
    form: &str,
    (option, typed): (&str, &str),
) -> Vec<String> {
    let typed = json!([{"name": option, "type": 3, "value": typed, "focused": true}]);
    let options = if form.is_empty() { typed } else { json!([{"name": form, "type": 1, "options": typed}]) };
    let id =
        fake.world(|world| world.invoke(channel, who, Invoked::Autocomplete { name: command.to_owned(), options }));
    let first = fake.wait("an offer", |world| world.interaction(id).answer.first.clone());
    let choices = first["choices"].as_array().expect("choices").clone();
    choices.iter().map(|choice| choice["value"].as_str().expect("text").to_owned()).collect()
}

/// Returns the file of a new persona.
fn nix(fake: &FakeDiscord, channel: u64, who: u64) -> String {
    let template = give(fake, channel, who, "persona", "template", &[]).replacen("Here it is.", "", 1);
    template.replace("Name", "Nix").replacen("id: name", "id: nix", 1)
}

#[test]
fn autocomplete_offers_only_what_the_person_may_see() {
    let fake = fake();
    let ([ann, bob, cid], square) = square(&fake);
    let (other, dm_bob) = fake.world(|world| {
        let guild = world.guild(cid, &[]);
        (world.channel(guild, "elsewhere", Vec::new()), world.dm(bob))
    });
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let file = nix(&fake, square, ann);
    give(&fake, square, ann, "persona", "upload", &[("file", &file)]);
    give(&fake, square, ann, "persona", "confirm", &[]);
    assert_eq!(suggestions(&fake, square, bob, "persona", "use", ("name", "ni")), ["nix"]);
    assert!(suggestions(&fake, square, bob, "persona", "show", ("name", "")).contains(&"azera".to_owned()));
    assert!(suggestions(&fake, other, cid, "persona", "use", ("name", "ni")).is_empty(), "it is another server's");
    assert!(suggestions(&fake, dm_bob, bob, "persona", "use", ("name", "nix")).is_empty());
    let models = suggestions(&fake, square, bob, "model", "use", ("name", "qwen"));
    assert!(models.len() > 1 && models.iter().all(|name| name.contains("qwen")), "{models:?}");
    ask(&fake, square, bob);
    give(&fake, square, bob, "branch", "new", &[("name", "aside")]);
    assert_eq!(suggestions(&fake, square, bob, "branch", "switch", ("name", "as")), ["aside"]);
    as_described(&fake);
}

/// Opens a persona's form, submits it with a change, and returns the answer.
#[track_caller]
fn edit(fake: &FakeDiscord, channel: u64, who: u64, name: &str, change: &dyn Fn(String) -> String) -> String {
    let options = json!([{"name": "edit", "type": 1, "options": [{"name": "name", "type": 3, "value": name}]}]);
    let opened = fake.world(|world| {
        world.invoke(channel, who, Invoked::Command { name: "persona".to_owned(), kind: 1, options, target: None })
    });
    let form = fake.wait("a form", |world| {
        let answer = &world.interaction(opened).answer;
        (answer.kind == Some(9) || answer.message.is_some()).then(|| answer.clone())
    });
    if let Some(refused) = form.message {
        return refused["content"].as_str().unwrap_or_default().to_owned();
    }
    let form = form.first.expect("a form");
    let field = &form["components"][0]["components"][0];
    let fields = vec![("0".to_owned(), change(field["value"].as_str().expect("what stands there").to_owned()))];
    let custom_id = form["custom_id"].as_str().expect("an id").to_owned();
    let filled = fake.world(|world| world.invoke(channel, who, Invoked::Form { custom_id, fields }));
    answer_text(fake, filled)
}

#[test]
fn an_edited_persona_keeps_the_fields_of_its_card() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let model = Model::telling_everything();
    let mut bot = Bot::new(&fake, Some(&model));
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let entry = json!({"keys": ["harbour"], "content": "The zeppelin lands at the harbour.", "extensions": {},
        "enabled": true, "insertion_order": 1});
    let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Nix Ferry",
        "description": "Nix Ferry steers the ferry.", "personality": "calm", "scenario": "", "first_mes": "",
        "mes_example": "", "creator_notes": "", "system_prompt": "", "post_history_instructions": "",
        "alternate_greetings": [], "tags": [], "creator": "", "character_version": "", "extensions": {},
        "character_book": {"extensions": {}, "entries": [entry]}}});
    give(&fake, square, ann, "persona", "upload", &[("file", &card.to_string())]);
    give(&fake, square, ann, "persona", "confirm", &[]);
    give(&fake, square, ann, "persona", "use", &[("name", "Nix Ferry")]);
    let asks = || {
        let question = fake.world(|world| world.say(square, bob, "Nix Ferry, what lands at the harbour?"));
        answered_for_good(&fake, square, question, "I know: zeppelin.");
    };
    asks();
    let preview = edit(&fake, square, ann, "Nix Ferry", &|text| format!("{text}\n## Likes\n\nThe sea.\n"));
    assert!(preview.contains("replaces version 1"), "{preview}");
    let taken = give(&fake, square, ann, "persona", "confirm", &[]);
    assert!(taken.contains("version 2"), "{taken}");
    asks();
    as_described(&fake);
}

#[test]
fn a_persona_is_edited_in_a_form_and_taken_back() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let file = nix(&fake, square, ann);
    give(&fake, square, ann, "persona", "upload", &[("file", &file)]);
    give(&fake, square, ann, "persona", "confirm", &[]);
    let edit = |who: u64, change: &dyn Fn(String) -> String| edit(&fake, square, who, "nix", change);
    let refused = edit(bob, &|text| text);
    assert!(refused.contains("Only admins"), "{refused}");
    let wrong = edit(ann, &|text| text.replacen("id: nix", "id: fay", 1));
    assert!(wrong.contains("another `id`"), "{wrong}");
    // The form puts the id before the name, whatever the order in the file.
    let wrong = edit(ann, &|text| text.replacen("id: nix", "id: NOT AN ID", 1));
    assert!(wrong.contains("line 2"), "{wrong}");
    let preview = edit(ann, &|text| format!("{text}\n## Likes\n\nThe sea.\n"));
    assert!(preview.contains("replaces version 1"), "{preview}");
    let taken = give(&fake, square, ann, "persona", "confirm", &[]);
    assert!(taken.contains("version 2"), "{taken}");
    assert!(give(&fake, square, bob, "persona", "show", &[("name", "nix")]).contains("The sea."));
    let back = give(&fake, square, ann, "persona", "rollback", &[("name", "nix")]);
    assert!(back.contains("version 1"), "{back}");
    assert!(!give(&fake, square, bob, "persona", "show", &[("name", "nix")]).contains("The sea."));
    as_described(&fake);
}

#[test]
fn a_persona_with_a_line_too_long_for_a_form_needs_a_file() {
    let fake = fake();
    let ([ann, ..], square) = square(&fake);
    let mut bot = Bot::new(&fake, None);
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let file = format!("{}\n## Likes\n\n{}\n", nix(&fake, square, ann), "the sea and ".repeat(400));
    give(&fake, square, ann, "persona", "upload", &[("file", &file)]);
    give(&fake, square, ann, "persona", "confirm", &[]);
    let refused = give(&fake, square, ann, "persona", "edit", &[("name", "nix")]);
    assert!(refused.contains("too long") && refused.contains("`/persona upload`"), "{refused}");
    as_described(&fake);
}

#[test]
fn a_user_install_answers_as_in_direct_messages() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let dm = fake.world(|world| world.dm(bob));
    let mut bot = Bot::new(&fake, None).recalling_at_once();
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    give(&fake, dm, bob, "remember", "", &[("text", "the password is heliotrope")]);
    find(&fake, dm, bob, "password heliotrope", "heliotrope");
    let by_user_install = |who: u64| {
        let options = json!([{"name": "search", "type": 1, "options": [
            {"name": "words", "type": 3, "value": "password heliotrope"}]}]);
        let what = Invoked::Command { name: "memory".to_owned(), kind: 1, options, target: None };
        let question = fake.world(|world| world.invoke_by_user_install(square, who, what));
        answer_text(&fake, question)
    };
    assert!(by_user_install(bob).contains("heliotrope"), "only Bob sees it");
    assert!(!by_user_install(ann).contains("heliotrope"));
    as_described(&fake);
}
