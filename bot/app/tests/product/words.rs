//! Words of every language and script: memories that differ by one word stay apart, and each is found by its words.

use serde_json::{Value, json};

use super::{at, command, fed, of, replay};

/// Returns the events that open a hall, in which Ann speaks, and a porch, in which Ben asks.
fn hall() -> Vec<Value> {
    vec![
        json!({"type": "realm", "at": at(0), "realm": "guild", "members": ["ann", "ben", "cid"], "admins": ["ann"]}),
        json!({"type": "chat", "at": at(0), "realm": "guild", "chat": "hall", "kind": "public"}),
        json!({"type": "chat", "at": at(0), "realm": "guild", "chat": "porch", "kind": "public"}),
    ]
}

fn say(minute: usize, id: &str, text: &str) -> Value {
    json!({"type": "message", "at": at(minute), "id": id, "chat": "hall", "person": "ann", "name": "Ann", "text": text})
}

fn ask(minute: usize, query: &str) -> Value {
    json!({"type": "probe", "at": at(minute), "chat": "porch", "person": "ben", "query": query, "limit": 10})
}

/// Returns the message behind each hit of each search.
fn found(replayed: &[Value]) -> Vec<Vec<String>> {
    let sources = |hit: &Value| hit["sources"][0].as_str().unwrap_or_default().to_owned();
    let hits = |probe: &&Value| probe["hits"].as_array().expect("hits").iter().map(sources).collect();
    of(replayed, "probe").iter().map(hits).collect()
}

#[test]
fn statements_that_differ_by_one_word_are_both_found_the_later_first() {
    let pairs = [
        (
            "Feed the parrot at 7 am, it screams otherwise.",
            "Feed the parrot at 7 pm, it screams otherwise.",
            "When is the parrot fed?",
        ),
        (
            "The crate for the market weighs 9 kg.",
            "The crate for the market weighs 9 lb.",
            "What does the crate for the market weigh?",
        ),
        ("Guests may use the sauna after ten.", "Guests may not use the sauna after ten.", "May guests use the sauna?"),
        (
            "Keep the heater in the shed on at night.",
            "Keep the heater in the shed off at night.",
            "What about the heater in the shed at night?",
        ),
        ("Su moto está en el garaje.", "Mi moto está en el garaje.", "¿Qué moto está en el garaje?"),
        ("Der Zug nach Bonn hält hier.", "Der Zug nach Bonn hält hier nie.", "Hält der Zug nach Bonn hier?"),
        (
            "Il faut arroser le figuier avant midi.",
            "Il faut arroser le figuier après midi.",
            "Quand faut-il arroser le figuier ?",
        ),
    ];
    let mut timeline = hall();
    for (number, (one, other, _)) in pairs.iter().enumerate() {
        timeline.push(say(1_440 * (2 * number + 1), &format!("a{number}"), one));
        timeline.push(say(1_440 * (2 * number + 2), &format!("b{number}"), other));
    }
    for (number, (.., question)) in pairs.iter().enumerate() {
        timeline.push(ask(1_440 * 20 + number, question));
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let found = found(&replay(&timeline, scratch.path(), "scripted"));
    for (number, hits) in found.iter().enumerate() {
        let place = |id: String| hits.iter().position(|hit| *hit == id);
        let (one, other) = (place(format!("a{number}")), place(format!("b{number}")));
        assert!(one.is_some() && other.is_some() && other < one, "{}: {hits:?}", pairs[number].2);
    }
}

#[test]
fn memories_in_scripts_without_spaces_are_found_by_their_words() {
    let said = [
        ("ja", "隣の犬の名前はハナです。", "隣の犬の名前は何ですか？"),
        ("zh", "我妹妹的乌龟叫小石。", "妹妹的乌龟叫什么名字？"),
        ("ko", "우리 거북이는 마당에서 산다.", "거북이가 어디에 살아?"),
        ("th", "เต่าของฉันชื่อมะนาว", "เต่าชื่ออะไร"),
        ("km", "អណ្តើករបស់ខ្ញុំឈ្មោះសុខា", "អណ្តើកឈ្មោះអ្វី?"),
        ("lo", "ເຕົ່າຂອງຂ້ອຍຊື່ດາວ", "ເຕົ່າຊື່ຫຍັງ?"),
        ("my", "ကျွန်တော့်လိပ်နာမည်ဖြူ", "လိပ်နာမည်ဘာလဲ"),
    ];
    let mut timeline = hall();
    for (number, (id, text, _)) in said.iter().enumerate() {
        timeline.push(say(200 * number + 1, id, text));
    }
    for (number, (.., question)) in said.iter().enumerate() {
        timeline.push(ask(3_000 + number, question));
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let replayed = replay(&timeline, scratch.path(), "scripted");
    for ((id, _, question), probe) in said.iter().zip(of(&replayed, "probe")) {
        let first = &probe["hits"][0];
        assert_eq!(first["sources"][0], *id, "{question}: {}", probe["hits"]);
        assert!(first["signals"].to_string().contains("lexical"), "{question}: {first}");
    }
}

/// The default embedding model knows no Japanese and no Chinese, and finds such texts alike.
#[test]
fn a_statement_in_another_language_is_no_newer_version() {
    let said = [
        ("ja", "うちの亀の名前はマルです。"),
        ("ja-read", "名前は何と書くのか、と先生に聞かれた。"),
        ("zh", "我家的乌龟叫豆豆。"),
        ("zh-forgot", "她叫什么名字，我不记得了。"),
        ("zh-work", "我什么工作都做过一点。"),
    ];
    let asked = [("うちの亀の名前は何ですか？", "ja"), ("我的乌龟叫什么名字？", "zh")];
    let mut timeline = hall();
    timeline.extend(said.iter().enumerate().map(|(number, (id, text))| say(1_440 * (number + 1), id, text)));
    timeline.extend(asked.iter().enumerate().map(|(number, (query, _))| ask(1_440 * 9 + number, query)));
    let scratch = tempfile::tempdir().expect("a folder");
    let replayed = replay(&timeline, scratch.path(), "scripted");
    for ((query, id), probe) in asked.iter().zip(of(&replayed, "probe")) {
        let first = &probe["hits"][0];
        assert_eq!(first["sources"][0], *id, "{query}: {}", probe["hits"]);
        assert!(first["signals"].to_string().contains("lexical"), "{query}: {first}");
    }
}

#[test]
fn every_spelling_of_a_name_or_word_finds_the_same() {
    let mut timeline = hall();
    let said = |minute: usize, id: &str, name: &str, text: &str| {
        json!({"type": "message", "at": at(minute), "id": id,
        "chat": "hall", "person": id, "name": name, "text": text})
    };
    timeline.push(json!({"type": "realm", "at": at(0), "realm": "guild", "members": ["ann", "ben", "m1", "m2", "m3"], "admins": ["ann"]}));
    timeline.push(said(1, "m1", "Zoe\u{308}", "The cafe\u{301} has a tin whale."));
    timeline.push(said(300, "m2", "Björn", "Die Stra\u{df}e hat einen Zirkus."));
    timeline.push(said(600, "m3", "IRMAK", "The tram stops in KADIKÖY near my card 2070."));
    let cases = [
        ("which caf\u{e9} has the tin whale", "m1"),
        ("what did Zo\u{eb} say about a whale?", "m1"),
        ("what did Zoe say about a whale?", "m1"),
        ("ZIRKUS STRASSE", "m2"),
        ("Bjorn, Zirkus", "m2"),
        ("kadıköy", "m3"),
        ("2070", "m3"),
    ];
    timeline.extend(cases.iter().enumerate().map(|(number, (query, _))| ask(2_000 + number, query)));
    let scratch = tempfile::tempdir().expect("a folder");
    let replayed = replay(&timeline, scratch.path(), "scripted");
    for ((query, id), probe) in cases.iter().zip(of(&replayed, "probe")) {
        let first = &probe["hits"][0];
        assert_eq!(first["sources"][0], *id, "{query}: {}", probe["hits"]);
        let signals = first["signals"].to_string();
        assert!(signals.contains("lexical") || signals.contains("speaker"), "{query}: {first}");
    }
}

#[test]
fn a_message_edited_to_nothing_is_deleted() {
    let mut timeline = vec![json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]})];
    let mine = |kind: &str, minute: usize, id: &str, text: &str| {
        json!({"type": kind, "at": at(minute), "id": id,
        "chat": "dm", "person": "ann", "text": text})
    };
    timeline.push(mine("message", 1, "m1", "the walrus sleeps under the pier"));
    timeline.push(json!({"type": "edit", "at": at(2), "id": "m1", "text": " \u{200b}\n"}));
    timeline.push(json!({"type": "edit", "at": at(3), "id": "nowhere", "text": ""}));
    timeline.push(
        json!({"type": "probe", "at": at(60), "chat": "dm", "person": "ann", "query": "where does the walrus sleep?"}),
    );
    timeline.push(json!({"type": "command", "at": at(61), "chat": "dm", "person": "ann", "text": "/memory stats"}));
    let scratch = tempfile::tempdir().expect("a folder");
    let replayed = replay(&timeline, scratch.path(), "scripted");
    let replies: Vec<&str> = of(&replayed, "reply").iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!(replies, ["m1~r0"], "only the first version is answered");
    assert_eq!(of(&replayed, "silent").len(), 1, "{replayed:?}");
    assert!(found(&replayed)[0].is_empty(), "{replayed:?}");
    assert!(
        of(&replayed, "command")[0]["text"].as_str().expect("a text").starts_with("There are no memories"),
        "{replayed:?}"
    );
}

#[test]
fn two_people_with_one_name_are_told_apart_in_why() {
    let mut timeline = hall();
    let said = |minute: usize, id: &str, person: &str, text: &str| {
        json!({"type": "message", "at": at(minute), "id": id,
        "chat": "hall", "person": person, "name": "Alex", "text": text})
    };
    timeline.push(said(1, "m1", "ben", "the key to the boathouse hangs behind the clock"));
    timeline.push(said(200, "m2", "cid", "the key to the boathouse lies under the mat"));
    timeline
        .push(json!({"type": "message", "at": at(3_000), "id": "q", "chat": "porch", "person": "ann", "name": "Ann",
        "text": "where is the key to the boathouse?", "mentions_bot": true}));
    timeline.push(json!({"type": "command", "at": at(3_001), "chat": "porch", "person": "ann", "text": "/why"}));
    timeline.push(json!({"type": "command", "at": at(3_002), "chat": "porch", "person": "ann", "text": "/memory search boathouse key"}));
    let scratch = tempfile::tempdir().expect("a folder");
    let replayed = replay(&timeline, scratch.path(), "scripted");
    for answer in of(&replayed, "command") {
        let text = answer["text"].as_str().expect("a text");
        let name = |words: &str| {
            let line = text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{text}"));
            line.split("` ").nth(1).and_then(|rest| rest.split(',').next()).expect("a name").to_owned()
        };
        let (one, other) = (name("behind the clock"), name("under the mat"));
        assert!(one.starts_with("Alex (") && other.starts_with("Alex (") && one != other, "{text}");
        assert!(!text.contains("ben") && !text.contains("cid"), "{text}");
    }
}

/// The words of the text index were made in another way by an earlier version.
#[test]
fn an_index_with_older_words_is_rebuilt_at_the_start() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let folder = data.to_str().expect("a plain path");
    let chat = ["chat", "--data", folder, "--model", "scripted", "--as", "ann", "--json"];
    // Find new messages at once.
    let run = |arguments: &[&str], input: &str| {
        fed(command(home.path(), arguments).env("AZERA__MEMORY__MIN_AGE_S", "0"), input)
    };
    assert!(run(&chat, "うちの亀の名前はゲンブです\n").status.success());
    assert!(run(&["memory", "check", "--mend", "--data", folder], "").status.success());
    for index in ["chats", "memories"] {
        let meta = data.join("text").join(index).join("meta.json");
        let written = std::fs::read_to_string(&meta).expect("the index's description");
        let older = written.replace("\"words-2\"", "\"english\"");
        assert_ne!(written, older);
        std::fs::write(meta, older).expect("an older index");
    }
    let output = run(&chat, "hello\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let checked = run(&["memory", "check", "--deep", "--json", "--data", folder], "");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let search = ["memory", "search", "亀", "--as", "ann", "--json", "--data", folder];
    let output = run(&search, "");
    let hits = String::from_utf8_lossy(&output.stdout);
    assert!(hits.contains("ゲンブ") && hits.contains("lexical"), "{hits}{}", String::from_utf8_lossy(&output.stderr));
}
