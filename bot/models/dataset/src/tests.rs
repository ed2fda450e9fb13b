use std::collections::{BTreeMap, BTreeSet};

use azera_model_api::Role;

use crate::seeds::{SAYINGS, SEEDS};
use crate::{Kind, SHARES, SyntheticExample, synthetic_examples};

/// The default model.
const SMOLLM2: (&str, Option<u64>) = ("smollm2", None);

const EVALUATIONS: [&str; 3] = [
    include_str!("../eval/manners.jsonl"),
    include_str!("../../../app/eval/facts.jsonl"),
    include_str!("../../../app/eval/claims.jsonl"),
];

fn words(text: &str) -> Vec<String> {
    let letters = |c: char| !c.is_alphanumeric() && c != '\'';
    text.to_lowercase().split(letters).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the seeds, and the examples that they give.
fn taught() -> String {
    let made: String = sample().iter().map(text).collect();
    format!("{made}{SEEDS:?}{:?}", *SAYINGS)
}

fn sample() -> Vec<SyntheticExample> {
    synthetic_examples(SMOLLM2, 7, 3000, &SHARES)
}

/// Returns an example's own part of the prompt, and its reply.
fn text(example: &SyntheticExample) -> String {
    let said = example.messages.last().map_or("", |message| &message.content);
    format!("{said}\n{}\n", example.reply)
}

#[test]
fn no_wording_of_the_evaluation_is_taught() {
    let taught = taught();
    // A text is what stands in quotation marks or on a line of its own.
    let texts = |text: &str| text.split(['"', '\n']).map(words).collect::<Vec<_>>();
    let taught = texts(&taught);
    let runs: BTreeSet<&[String]> = taught.iter().flat_map(|words| words.windows(6)).collect();
    for text in EVALUATIONS.iter().flat_map(|file| texts(file)) {
        let shared = text.windows(6).find(|run| runs.contains(*run));
        assert!(shared.is_none(), "{shared:?} of {text:?} is taught");
    }
}

#[test]
fn no_name_of_the_evaluation_is_taught() {
    let taught: BTreeSet<String> = words(&taught()).into_iter().collect();
    for name in ["wren", "tobias", "lucia", "okon", "yusra", "harriet", "magnus", "soraya", "bela", "quentin"] {
        assert!(EVALUATIONS[0].to_lowercase().contains(name) && !taught.contains(name), "{name}");
    }
    for name in ["pickle", "bruno", "ottilie", "anselm", "jovan", "abernathy", "halden", "clementine"] {
        assert!(EVALUATIONS[1].to_lowercase().contains(name) && !taught.contains(name), "{name}");
    }
    for name in ["imke", "dov", "paloma", "renzo", "bartholdy", "vandermeer", "wiebke", "annelie", "radek", "oduya"] {
        assert!(EVALUATIONS[2].to_lowercase().contains(name) && !taught.contains(name), "{name}");
    }
}

/// Words of any question, whatever its subject.
const COMMON: &str = "a about again all am an and any are as at be been before being between big by called came can cold come could day \
    days did do does don't end every for form from get give go going good had has have having hey how i i'm if in is it it's just keep kind \
    know last left like live long make man many me mine much must my myself name need new no not now number of on one open or our \
    out over past pay place play please put really remember say see should show sign so start still supposed take tell that the \
    their them these they this through time to today too two up us want was way we what what's when where which who whom whose \
    why will with word words work would write year you your";

/// Returns the subjects of a question: its words without common ones and without endings.
fn subjects(question: &str) -> BTreeSet<String> {
    let common: BTreeSet<&str> = COMMON.split_whitespace().collect();
    let stem = |word: String| {
        let bare = word.trim_end_matches("'s").to_owned();
        let endings = ["ing", "ed", "s"].into_iter().filter_map(|ending| bare.strip_suffix(ending));
        endings.filter(|stem| stem.len() > 2).map(str::to_owned).next().unwrap_or(bare)
    };
    words(question).into_iter().filter(|word| !common.contains(word.as_str())).map(stem).collect()
}

#[derive(serde::Deserialize)]
struct ManneredMessage {
    #[serde(rename = "asked")]
    questions: String,
    #[serde(default)]
    keys: Vec<String>,
}

fn evaluated() -> Vec<ManneredMessage> {
    lines_of(&EVALUATIONS[..2])
}

/// A sentence with its subject and its value, or a pair of sentences, which has neither.
#[derive(serde::Deserialize)]
struct StatedFact {
    #[serde(default)]
    about: Vec<Vec<String>>,
    #[serde(default)]
    value: Vec<String>,
    #[serde(default)]
    before: String,
    #[serde(default)]
    now: String,
}

fn lines_of<T: serde::de::DeserializeOwned>(files: &[&str]) -> Vec<T> {
    let lines = files.iter().flat_map(|file| file.lines()).filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Words from small sets that everybody uses: days, months, numbers.
const COUNTED: &str = "tuesday wednesday thursday february may october four six nine ten light lift";

#[test]
fn no_topic_of_the_evaluation_is_taught() {
    let questions = SEEDS.facts.iter().flat_map(|fact| fact.questions.iter().chain(&fact.near));
    let said = SEEDS.talk.iter().map(|exchange| &exchange.said);
    let whole = questions.chain(said).map(|text| (*text).to_owned());
    let of_things = SAYINGS.iter().flat_map(|saying| {
        let blank = crate::sampler::slots(saying.about).next().unwrap_or_default();
        let question_of = |word: &&&str| !saying.off_topic.contains(*word);
        let words = saying.words.get(blank).into_iter().flatten().filter(question_of);
        words.flat_map(move |word| saying.questions.iter().map(move |text| text.replace(&format!("{{{blank}}}"), word)))
    });
    let taught: Vec<(String, BTreeSet<String>)> = whole
        .chain(of_things)
        .map(|text| {
            let about = subjects(&text);
            (text, about)
        })
        .collect();
    assert!(taught.len() > 3000, "{}", taught.len());
    let mut alike = Vec::new();
    for ManneredMessage { questions, .. } in evaluated() {
        let about = subjects(&questions);
        for (text, subjects) in &taught {
            let same = about.intersection(subjects).count() > 1 || about == *subjects && !about.is_empty();
            if same {
                alike.push(format!("{text:?} asks what {questions:?} asks"));
            }
        }
    }
    assert!(alike.is_empty(), "{alike:#?}");
}

#[test]
fn no_answer_of_the_evaluation_is_taught() {
    let values: String =
        SEEDS.slots.values().flatten().map(|value| format!("\n{}\n", words(value).join(" "))).collect();
    // The values of remarks are longer, so they must not contain an answer either.
    let said = SAYINGS.iter().flat_map(|saying| saying.words.iter().filter(|(name, _)| saying.value.contains(**name)));
    let said: String = said.flat_map(|(_, all)| all).map(|value| format!(" {} \n", words(value).join(" "))).collect();
    let claimed = lines_of::<StatedFact>(&EVALUATIONS[2..]).into_iter().flat_map(|it| it.value);
    let mut alike = Vec::new();
    for key in evaluated().into_iter().flat_map(|it| it.keys).chain(claimed) {
        let key = key.trim().to_lowercase();
        let counted = key.chars().all(|c| !c.is_alphabetic()) || COUNTED.split(' ').any(|word| word == key);
        assert!(counted || !values.contains(&format!("\n{key}\n")), "{key}");
        if !counted && said.contains(&format!(" {key} ")) {
            alike.push(key);
        }
    }
    assert!(alike.is_empty(), "{alike:?} are said");
}

/// Words that can be said of anything.
const SAID_OF: &str = "price cost date colour size code age address temperature length weight old";

#[test]
fn no_subject_of_the_evaluation_is_in_a_claim_example() {
    let common: Vec<&str> = SAID_OF.split(' ').chain(COMMON.split_whitespace()).collect();
    let tells_nothing = |key: &str| {
        let bare = |word: &str| word.trim_end_matches('s').to_owned();
        common.iter().any(|word| bare(word) == bare(key) || key.len() > 2 && word.starts_with(key))
    };
    let stated = SEEDS.facts.iter().filter(|fact| !fact.not_read).map(|fact| fact.about.to_owned());
    let said = SAYINGS.iter().flat_map(|saying| {
        let blank = ["thing", "meal"].into_iter().find(|blank| saying.about.contains(blank));
        let words = blank.and_then(|blank| saying.words.get(blank)).cloned().unwrap_or_else(|| vec![""]);
        let about = blank.map_or_else(|| saying.about.to_owned(), |blank| saying.about.replace(blank, "thing"));
        words.into_iter().map(move |word| about.replace("{thing}", word))
    });
    let taught: Vec<(String, Vec<String>)> = stated.chain(said).map(|about| (about.clone(), words(&about))).collect();
    assert!(taught.len() > 1000, "{}", taught.len());
    let about_what = |text: &str| {
        let mut all = subjects(text);
        all.retain(|word| !SAID_OF.split(' ').any(|common| common == word));
        all
    };
    let taught_of: Vec<(&str, BTreeSet<String>)> =
        taught.iter().map(|(about, _)| (about.as_str(), about_what(about))).collect();
    let mut alike = Vec::new();
    for StatedFact { about: groups, before, now, .. } in lines_of::<StatedFact>(&EVALUATIONS[2..]) {
        for (about, of_it) in &taught_of {
            for text in [&before, &now] {
                if !of_it.is_empty() && of_it.is_subset(&subjects(text)) {
                    alike.push(format!("{about:?} is what {text:?} is about"));
                }
            }
        }
        let telling = groups.iter().flatten().any(|key| !tells_nothing(key));
        for (about, words) in taught.iter().filter(|_| telling) {
            let has = |key: &String| words.iter().any(|word| word.starts_with(key));
            let same = groups.iter().all(|group| group.iter().any(has));
            let by_a_telling_word = groups.iter().flatten().any(|key| !tells_nothing(key) && has(key));
            if same && by_a_telling_word {
                alike.push(format!("{about:?} is what {groups:?} is"));
            }
        }
    }
    assert!(alike.is_empty(), "{alike:#?}");
}

#[test]
fn remarks_have_enough_words_and_contain_their_value() {
    for saying in SAYINGS.iter() {
        let known = |slot: &str| saying.words.get(slot).or_else(|| SEEDS.slots.get(slot)).map_or(0, Vec::len);
        let value = saying.value.trim_matches(['{', '}']);
        assert!(saying.value == format!("{{{value}}}") && !saying.stated.is_empty(), "{saying:?}");
        for text in saying.stated.iter().chain([&saying.about]) {
            for slot in crate::sampler::slots(text) {
                let other = slot.strip_suffix('0').filter(|_| !saying.words.contains_key(slot));
                let drawn = matches!(slot, "n2" | "n3" | "n4") || known(slot) > 0;
                assert!(drawn || other.is_some_and(|slot| known(slot) > 1), "{slot:?} of {text:?} stands for nothing");
            }
        }
        assert!(saying.stated.iter().all(|text| text.contains(saying.value)), "{saying:?}");
        if saying.questions.is_empty() {
            continue;
        }
        // One for the question, two others, and one more that a text may name.
        for slot in
            crate::sampler::slots(saying.about).chain([value]).filter(|slot| !matches!(*slot, "n2" | "n3" | "n4"))
        {
            let words = saying.words.get(slot).or_else(|| SEEDS.slots.get(slot)).into_iter().flatten();
            let left = words.filter(|word| !saying.off_topic.contains(word)).count();
            assert!(left > 4, "{slot:?} of {:?} runs out", saying.name);
        }
    }
}

#[test]
fn examples_are_varied_and_complete() {
    let examples = sample();
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut replies = BTreeSet::new();
    let mut prompts = BTreeSet::new();
    for example in &examples {
        *counts.entry(example.kind).or_default() += 1;
        let whole = text(example);
        if example.kind == Kind::Claim {
            let said = &example.messages.last().unwrap().content;
            let claim = azera_engine::Claim::read(&example.reply, said).expect("a claim about what is said");
            assert!(!format!("{said}{}{}", claim.about, claim.value).contains(['{', '}']), "{whole}");
            let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let parts: Vec<&str> = said.split(&claim.value).collect();
            let whole_words = |pair: &[&str]| !inside(pair[0].chars().last()) && !inside(pair[1].chars().next());
            assert!(parts.windows(2).any(whole_words), "a part of a word in {whole}");
            prompts.insert(whole);
            replies.insert(example.reply.clone());
            continue;
        }
        assert!(!whole.contains(['{', '}']), "a blank is left in {whole}");
        assert!(example.reply.ends_with(['.', '!', '?', '*', '"']), "{}", example.reply);
        if example.kind == Kind::Plain {
            assert!(example.messages.is_empty() && example.reply.len() < 1200, "{}", example.reply);
            continue;
        }
        assert!(example.reply.len() < 300, "{}", example.reply);
        assert_eq!(example.messages.last().unwrap().role, Role::User);
        replies.insert(example.reply.clone());
        prompts.insert(whole);
    }
    let questions = examples.len() - counts[&Kind::Plain];
    assert_eq!(counts.len(), 14, "{counts:?}");
    assert!(counts.values().all(|count| *count >= 40), "{counts:?}");
    assert!(prompts.len() * 100 > questions * 97, "{} of {questions} are alike", questions - prompts.len());
    assert!(replies.len() * 2 > questions, "{} replies to {questions} lessons", replies.len());
}

#[test]
fn the_same_seed_gives_the_same_examples() {
    let replies =
        |seed| synthetic_examples(SMOLLM2, seed, 60, &SHARES).into_iter().map(|it| text(&it)).collect::<Vec<_>>();
    assert_eq!(replies(3), replies(3));
    assert_ne!(replies(3), replies(4));
}

#[test]
fn held_out_prose_is_never_an_example() {
    let held_out = crate::prose_held_out();
    assert!(held_out.len() >= 8 && held_out.iter().all(|prose| prose.reply.len() > 400));
    let prose = [(1, Kind::Plain)];
    let taught = synthetic_examples(SMOLLM2, 1, 20 * SEEDS.plain.len(), &prose);
    assert!(held_out.iter().all(|prose| !taught.contains(prose)));
}

#[test]
fn other_shares_give_other_examples() {
    let of = |shares: &[(usize, Kind)]| synthetic_examples(SMOLLM2, 7, 40, shares);
    assert!(of(&[(1, Kind::Near), (0, Kind::Talk)]).iter().all(|example| example.kind == Kind::Near));
    assert_eq!(of(&[(0, Kind::Talk)]).len(), 0);
}

#[test]
fn a_reply_contains_nothing_that_the_prompt_does_not() {
    // Small talk uses general knowledge ("what's 12 times 12"), and prose has no prompt.
    for example in sample().into_iter().filter(|example| !matches!(example.kind, Kind::Plain | Kind::Talk)) {
        let prompt: String = example.messages.last().unwrap().content.to_lowercase();
        let numbers = example.reply.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() > 2);
        let history: String = example.messages.iter().map(|message| message.content.to_lowercase()).collect();
        for number in numbers {
            assert!(history.contains(number), "{number} of {:?} is made up", example.reply);
        }
        if example.kind == Kind::Recalled {
            let lines: Vec<&str> = prompt.lines().filter(|line| line.starts_with("- ")).collect();
            let recalled = words(&lines.join(" "));
            let telling = |word: &String| word.len() > 1 || word.chars().any(|c| c.is_ascii_digit());
            let held = words(&example.reply).iter().filter(|word| telling(word) && recalled.contains(word)).count();
            assert!(held > 0, "{:?} has nothing of {lines:?}", example.reply);
        }
    }
}
