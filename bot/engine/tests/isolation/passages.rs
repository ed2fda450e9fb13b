//! Long messages: a fact anywhere in one reaches the prompt, and nothing of its passages reaches others or stays.

use std::sync::{Arc, Mutex};

use azera_memory::{TextIndex, VectorIndex};
use azera_model_api::{ChatMessage, ScriptedModel};
use azera_types::MemoryId;

use crate::findings::{ANN, BOB, COMMONS, DEN, DM_ANN, GUILD, Scene};
use crate::world::Change;

/// Worlds in which facts are asked for.
const WORLDS: usize = 100;

/// Characters before each fact of a message.
const PLACES: [usize; 3] = [500, 1_500, 3_900];

const THINGS: [&str; 12] = [
    "locker", "kayak", "piano", "garden", "library", "bakery", "chapel", "garage", "orchard", "museum", "harbour",
    "workshop",
];

const ASPECTS: [&str; 7] = ["code", "keeper", "colour", "price", "address", "nickname", "birthday"];

const FILLER: [&str; 16] = [
    "yesterday",
    "slowly",
    "we",
    "walked",
    "past",
    "some",
    "quiet",
    "fields",
    "and",
    "talked",
    "until",
    "evening",
    "while",
    "clouds",
    "drifted",
    "over",
];

/// Numbers that depend on a seed only.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

struct Fact {
    thing: &'static str,
    aspect: &'static str,
    value: String,
}

impl Fact {
    fn sentence(&self) -> String {
        format!("The {} of the {} is {}.", self.aspect, self.thing, self.value)
    }

    fn question(&self) -> String {
        format!("what is the {} of the {}?", self.aspect, self.thing)
    }
}

/// Returns facts about different things, one for each of `PLACES`, and others as many times as `others` says.
fn facts(numbers: &mut Numbers, others: usize) -> Vec<Fact> {
    let (first, step) = (numbers.below(THINGS.len()), [1, 5, 7, 11][numbers.below(4)]);
    let fact = |number: usize| {
        let thing = THINGS[(first + number * step) % THINGS.len()];
        // The same thing has another aspect each time.
        let aspect = ASPECTS[(number / THINGS.len() + number) % ASPECTS.len()];
        Fact { thing, aspect, value: format!("value{number}x{}", numbers.below(100_000)) }
    };
    (0..PLACES.len() + others).map(fact).collect()
}

/// Returns a message with a fact behind each of the `PLACES`, among words and sentences about other things.
fn long_message(numbers: &mut Numbers, facts: &[Fact]) -> String {
    let mut text = String::new();
    for (fact, place) in facts.iter().zip(PLACES) {
        while text.len() < place {
            if numbers.below(12) == 0 {
                text.push_str(&format!(
                    "Nobody knew the {} of that {}. ",
                    numbers.pick(&ASPECTS),
                    numbers.pick(&FILLER)
                ));
            }
            text.push_str(numbers.pick(&FILLER));
            text.push(' ');
        }
        text.push_str(&fact.sentence());
        text.push(' ');
    }
    text.push_str("That was all.");
    text
}

/// Returns a model that says little, and the prompts that it was shown.
pub fn watching_model() -> (Arc<ScriptedModel>, Arc<Mutex<Vec<String>>>) {
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let seen = prompts.clone();
    let model = ScriptedModel::new(Arc::new(move |messages: &[ChatMessage]| {
        let prompt = messages.iter().map(|message| format!("{}\n", message.content)).collect();
        seen.lock().unwrap().push(prompt);
        "Noted.".to_owned()
    }));
    (Arc::new(model), prompts)
}

#[tokio::test]
async fn a_fact_anywhere_in_a_long_message_stands_in_the_prompt() {
    let (mut asked, mut shown) = (0, 0);
    for world in 0..WORLDS {
        let mut numbers = Numbers(world as u64);
        let facts = facts(&mut numbers, 9);
        let (told, others) = facts.split_at(PLACES.len());
        let mut scene = Scene::open(false, false).await;
        let (model, prompts) = watching_model();
        scene.engine.answered_by(model).await;
        let text = long_message(&mut numbers, told);
        for (number, other) in others.iter().enumerate() {
            if number == others.len() / 2 {
                scene.say(ANN, COMMONS, &text).await;
            }
            scene.say(ANN, COMMONS, &other.sentence()).await;
        }
        scene.pass(3_600);
        for fact in told {
            prompts.lock().unwrap().clear();
            scene.say(ANN, DM_ANN, &fact.question()).await;
            let prompts = prompts.lock().unwrap();
            // Others are about background writings.
            let prompt = prompts.iter().find(|prompt| prompt.trim_end().ends_with(&fact.question())).unwrap();
            asked += 1;
            shown += usize::from(prompt.contains(&fact.value));
            assert!(!prompt.contains(&text), "the prompt stays bounded");
        }
    }
    assert_eq!((asked, shown), (WORLDS * PLACES.len(), WORLDS * PLACES.len()));
}

/// Returns a message whose only mention of the zeppelin stands behind 1500 other characters.
fn about_a_zeppelin() -> String {
    format!("{}the zeppelin lands at noon, quiet", "we walked past some fields and talked. ".repeat(40))
}

#[tokio::test]
async fn a_passage_is_found_only_where_its_message_may_be_read() {
    let mut scene = Scene::open(true, false).await;
    scene.say(ANN, DEN, &about_a_zeppelin()).await;
    scene.change(Change::Join(BOB, GUILD));
    let find = "when does the zeppelin land?";
    let found = scene.find(ANN, DEN, find).await;
    assert!(found.iter().any(|text| text.contains("zeppelin")), "{found:?}");
    assert_eq!(scene.find(BOB, COMMONS, find).await, [""; 0]);
    assert_eq!(scene.find(ANN, COMMONS, find).await, [""; 0], "others read there");
    let why = scene.command(BOB, COMMONS, &format!("/memory search {find}")).await;
    assert!(!why.contains("zeppelin"), "{why}");
}

/// The guild hides its past from newcomers.
#[tokio::test]
async fn a_passage_from_before_a_horizon_is_not_found() {
    let mut scene = Scene::open(true, false).await;
    scene.pass(3 * 3_600);
    scene.say(ANN, COMMONS, &about_a_zeppelin()).await;
    scene.change(Change::Join(BOB, GUILD));
    let find = "when does the zeppelin land?";
    assert_eq!(scene.find(BOB, COMMONS, find).await, [""; 0]);
    scene.say(ANN, COMMONS, &about_a_zeppelin()).await;
    let found = scene.find(BOB, COMMONS, find).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("zeppelin"), "{found:?}");
}

#[tokio::test]
async fn forgetting_a_long_message_removes_its_passages() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, &about_a_zeppelin()).await;
    let entries = |scene: &Scene| -> Vec<MemoryId> {
        let held = scene.engine.vectors.ids().unwrap();
        assert_eq!(TextIndex::ids(scene.engine.layers.text.as_ref()).unwrap(), held);
        held
    };
    assert!(entries(&scene).len() > 5, "{:?}", entries(&scene));
    scene.command(ANN, DM_ANN, "/forget last").await;
    assert_eq!(entries(&scene), []);
    assert_eq!(scene.find(ANN, DM_ANN, "when does the zeppelin land?").await, [""; 0]);
}

/// The lists show the part that answers, too.
#[tokio::test]
async fn lists_show_the_passage_that_matched() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, COMMONS, &about_a_zeppelin()).await;
    scene.pass(3_600);
    let list = scene.command(ANN, COMMONS, "/memory search zeppelin").await;
    assert!(list.contains("the zeppelin lands at noon"), "{list}");
    scene.say(ANN, DM_ANN, "when does the zeppelin land?").await;
    let why = scene.command(ANN, DM_ANN, "/why").await;
    assert!(why.contains("the zeppelin lands at noon"), "{why}");
}
