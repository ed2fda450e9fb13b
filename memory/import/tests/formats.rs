//! Every format, read from small samples, whole and broken.

use std::io::BufReader;
use std::ops::ControlFlow;

use azera_import::{Format, Found, HEAD_BYTES, ReadError, Role, Source, first_folder, read};
use azera_types::TimeZone;
use proptest::prelude::*;

fn source(format: Format) -> Source {
    Source { format, stem: "file".into(), zone: TimeZone::UTC }
}

/// Reads a file and returns a line for each thing found.
fn found(format: Format, text: &str) -> (Vec<String>, Result<(), ReadError>) {
    let mut found = Vec::new();
    // Small pieces, so that the cuts fall everywhere.
    let input = BufReader::with_capacity(5, text.as_bytes());
    let ended = read(&source(format), input, &mut |one| {
        found.push(match one {
            Found::Message(message) => format!(
                "{} {} {:?} {}/{} {}: {}",
                message.position,
                message.at.map_or("no time".into(), |at| at.to_string()),
                message.role,
                message.chat.id.replace('\n', "|"),
                message.id.replace('\n', "|"),
                message.author.name,
                message.text
            ),
            Found::Ran(ran) => {
                let commands = ran.commands.iter().map(|ran| match ran.worked {
                    Some(true) => format!("+{}", ran.text),
                    Some(false) => format!("-{}", ran.text),
                    None => format!("?{}", ran.text),
                });
                format!("ran for {}/{}: {}", ran.chat.id, ran.message, commands.collect::<Vec<_>>().join(" | "))
            }
            Found::LeftOut(why) => format!("- {why}"),
            Found::Flaw(flaw) => format!("{} ! {}", flaw.position, flaw.why),
        });
        ControlFlow::Continue(())
    });
    (found, ended)
}

#[track_caller]
fn check(format: Format, text: &str, want: &[&str]) {
    let (found, ended) = found(format, text);
    assert_eq!(found, want);
    ended.expect("the whole file");
    assert_eq!(Format::of(text.as_bytes()), Some(format), "it is recognised");
}

const CLAUDE_CODE: &str = r#"{"type":"summary","summary":"Mending the gate","leafUuid":"u4"}
{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/home/ann/gate","message":{"role":"user","content":"The gate test fails.<system-reminder>Be brief.</system-reminder>"}}
{"type":"assistant","uuid":"u2","sessionId":"s1","timestamp":"2026-03-01T10:00:05Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I will look."}]}}
{"type":"assistant","uuid":"u3","sessionId":"s1","timestamp":"2026-03-01T10:00:06Z","message":{"role":"assistant","content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"u4","sessionId":"s1","timestamp":"2026-03-01T10:00:07Z","message":{"role":"user","content":[{"type":"tool_result","content":"gate.rs"}]}}
{"type":"user","uuid":"u5","sessionId":"s1","isMeta":true,"timestamp":"2026-03-01T10:00:08Z","message":{"role":"user","content":"Caveat: ..."}}
{"type":"user","uuid":"u6","sessionId":"s1","timestamp":"2026-03-01T10:00:09Z","message":{"role":"user","content":"<command-name>/clear</command-name><command-args></command-args>"}}
{"type":"assistant","uuid":"u7","sessionId":"s1","isSidechain":true,"timestamp":"2026-03-01T10:00:10Z","message":{"role":"assistant","content":[{"type":"text","text":"secret agent"}]}}
this is not JSON

{"type":"user","sessionId":"s1","message":{"role":"user","content":"no uuid"}}
{"type":"user","uuid":"u8","sessionId":"s1","timestamp":"2026-03-01T10:01:00Z","message":{"role":"user","content":[{"type":"text","text":"Thank you."},{"type":"image"}]}}
"#;

#[test]
fn a_transcript_of_claude_code_is_read() {
    let want = [
        "- notes of the program",
        "2 2026-03-01T10:00:00Z Owner s1/u1 User: The gate test fails.",
        "3 2026-03-01T10:00:05Z Assistant s1/u2 Claude: I will look.",
        "- calls of tools",
        "- calls of tools",
        "- texts of the program",
        "- texts of the program",
        "- talk between agents",
        "9 ! it is not JSON (column 2)",
        "11 ! the message has no uuid or no content",
        "12 2026-03-01T10:01:00Z Owner s1/u8 User: Thank you.",
    ];
    check(Format::ClaudeCode, CLAUDE_CODE, &want);
}

#[test]
fn a_session_began_in_the_first_folder_of_its_transcript() {
    let first = |text: &str| first_folder(BufReader::with_capacity(5, text.as_bytes()));
    let moved = r#"{"type":"user","uuid":"u9","sessionId":"s1","cwd":"/home/ann/boat","message":{"role":"user","content":"Go."}}"#;
    assert_eq!(first(&format!("{CLAUDE_CODE}{moved}\n")).as_deref(), Some("/home/ann/gate"));
    assert_eq!(first(moved).as_deref(), Some("/home/ann/boat"));
    let unnamed = "{\"cwd\":\"/\"}\n{\"cwd\":\"/home/..\"}\n{\"cwd\":\"ann/gate\"}\n";
    assert_eq!(first(&format!("{unnamed}{moved}\n")).as_deref(), Some("/home/ann/boat"));
    assert_eq!(first(unnamed), None);
    for nowhere in ["", "this is not JSON\n", "{\"cwd\":7}\n{\"cwd\":null}\n{}\n[]\n"] {
        assert_eq!(first(nowhere), None, "{nowhere}");
    }
}

/// Calls of tools in a session. Their outputs and their secrets are left out.
#[test]
fn what_an_assistant_ran_belongs_to_the_message_that_asked_for_it() {
    let line = |kind: &str, uuid: &str, content: serde_json::Value, more: serde_json::Value| {
        let mut line = serde_json::json!({
            "type": kind, "uuid": uuid, "sessionId": "s1", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/home/ann/gate",
            "message": {"role": kind, "content": content},
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let none = serde_json::json!({});
    let asks = |uuid: &str, text: &str| line("user", uuid, text.into(), none.clone());
    let bash = |id: &str, command: &str| {
        let call = serde_json::json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}]);
        line("assistant", &format!("c{id}"), call, none.clone())
    };
    let result = |id: &str, is_error: bool, output: &str, more: serde_json::Value| {
        let content = serde_json::json!([{"type": "text", "text": output}]);
        let block =
            serde_json::json!([{"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": content}]);
        line("user", &format!("r{id}"), block, more)
    };
    let other = serde_json::json!([
        {"type": "tool_use", "id": "t5", "name": "Read", "input": {"file_path": "/x"}},
        {"type": "tool_use", "id": "t6", "name": "mcp__azera__recall", "input": {"query": "tulip"}},
    ]);
    let text = [
        bash("t0", "make before"),
        asks("u1", "Mend the gate."),
        bash("t1", "cd /home/ann/gate && TOKEN=tulip cargo test 2>&1"),
        result("t1", true, "Exit code 101 tulip", none.clone()),
        bash("t2", "ls"),
        result("t2", false, "", none.clone()),
        bash("t3", "cargo test | tail -3"),
        result("t3", false, "test result: ok. 3 passed; tulip", none.clone()),
        asks("u2", "Go on."),
        bash("t4", "git commit -m 'tulip'"),
        result("t4", false, "", serde_json::json!({"toolUseResult": {"interrupted": true}})),
        line("assistant", "a5", other, none.clone()),
        result("t6", false, "tulip", none.clone()),
        bash("t7", "make last"),
    ];
    let (found, _) = found(Format::ClaudeCode, &text.join("\n"));
    let ran: Vec<&String> = found.iter().filter(|line| line.starts_with("ran")).collect();
    let want = [
        "ran for s1/u1: -cargo test | +cargo test",
        "ran for s1/u2: ?git commit -m | +mcp__azera__recall | ?make last",
    ];
    assert_eq!(ran, want);
    assert!(!found.iter().any(|line| line.contains("tulip")), "{found:?}");
}

const CHATGPT: &str = r#"[
{"title":"Boats","create_time":1709290000.5,"conversation_id":"c1","current_node":"n5","mapping":{
 "n1":{"id":"n1","parent":null,"message":null},
 "n2":{"id":"n2","parent":"n1","message":{"id":"m2","author":{"role":"system"},"create_time":null,"content":{"content_type":"text","parts":[""]}}},
 "n3":{"id":"n3","parent":"n2","message":{"id":"m3","author":{"role":"user"},"create_time":1709290001.0,"content":{"content_type":"multimodal_text","parts":[{"asset":1},"Which boat?"]},"recipient":"all"}},
 "n4":{"id":"n4","parent":"n3","message":{"id":"m4","author":{"role":"assistant"},"create_time":1709290002.0,"content":{"content_type":"text","parts":["The red one, at first."]},"recipient":"all"}},
 "n5":{"id":"n5","parent":"n3","message":{"id":"m5","author":{"role":"assistant"},"create_time":null,"content":{"content_type":"text","parts":["The blue one."]},"recipient":"all"}}}},
{"title":"Broken","mapping":{"a":3}},
{"title":"Circle","id":"c3","current_node":"a","mapping":{"a":{"parent":"b"},"b":{"parent":"a"}}},
{"title":"Tools","id":"c4","current_node":"b","mapping":{
 "a":{"parent":null,"message":{"author":{"role":"assistant"},"content":{"content_type":"code","text":"ls"},"recipient":"python"}},
 "b":{"parent":"a","message":{"author":{"role":"assistant"},"create_time":1709290009,"content":{"content_type":"text","parts":["Done."]}}}}}
]"#;

#[test]
fn the_current_branch_of_chatgpt_is_read() {
    let want = [
        "- texts of the program",
        "1 2024-03-01T10:46:41Z Owner c1/m3 User: Which boat?",
        "1 2024-03-01T10:46:41Z Assistant c1/m5 ChatGPT: The blue one.",
        "- other branches",
        "2 ! it lacks a field, or a field has another type than expected (column 34)",
        "3 ! the conversation has no current message, or its messages form a circle",
        "- calls of tools",
        "4 2024-03-01T10:46:49Z Assistant c4/b ChatGPT: Done.",
    ];
    check(Format::ChatGpt, CHATGPT, &want);
}

const CLAUDE: &str = r#"[{"uuid":"c1","name":"Bread","created_at":"2025-01-02T03:04:05.000000Z","chat_messages":[
 {"uuid":"m1","text":"How long does rye bread bake?","content":[{"type":"text","text":"How long does rye bread bake?"}],"sender":"human","created_at":"2025-01-02T03:04:06Z"},
 {"uuid":"m2","text":"","content":[{"type":"thinking","thinking":"..."},{"type":"text","text":"About an hour."},{"type":"tool_use","name":"x"}],"sender":"assistant","created_at":"2025-01-02T03:04:07Z"},
 {"uuid":"m3","text":"Old form.","sender":"human"},
 {"text":"lost","sender":"human"},
 {"uuid":"m5","text":" ","sender":"human"}]},
 {"name":"no id"}]"#;

#[test]
fn an_export_of_claude_is_read() {
    let want = [
        "1 2025-01-02T03:04:06Z Owner c1/m1 User: How long does rye bread bake?",
        "1 2025-01-02T03:04:07Z Assistant c1/m2 Claude: About an hour.",
        "1 2025-01-02T03:04:07Z Owner c1/m3 User: Old form.",
        "1 ! a message has no uuid",
        "- messages without text",
        "2 ! it lacks a field, or a field has another type than expected (column 16)",
    ];
    check(Format::Claude, CLAUDE, &want);
}

const DISCORD: &str = r#"{"guild":{"id":"1","name":"The Club"},"channel":{"id":"77","type":"GuildTextChat","name":"kitchen"},"dateRange":{"after":null},"exportedAt":"2025-05-05T00:00:00Z",
"messages":[
 {"id":"500","type":"Default","timestamp":"2025-05-01T12:00:00+02:00","content":"Who has the key?","author":{"id":"9","name":"ann","nickname":"Ann L.","isBot":false},"attachments":[{"id":"1","fileName":"door.png"}]},
 {"id":"501","type":"Reply","timestamp":"2025-05-01T12:00:10+02:00","content":"beep","author":{"id":"8","name":"Bot","nickname":null,"isBot":true}},
 {"id":"502","type":"GuildMemberJoin","timestamp":"2025-05-01T12:01:00+02:00","content":"joined","author":{"id":"7","name":"cid"}},
 {"id":3},
 {"id":"504","type":"Default","timestamp":"2025-05-01T12:02:00+02:00","content":"","author":{"id":"7","name":"cid"}}
],"messageCount":5}"#;

#[test]
fn a_channel_of_discord_is_read() {
    let want = [
        "1 2025-05-01T10:00:00Z Person 77/500 Ann L.: Who has the key?\n[file: door.png]",
        "2 2025-05-01T10:00:10Z Assistant 77/501 Bot: beep",
        "- events of the channel",
        "4 ! it lacks a field, or a field has another type than expected (column 7)",
        "- messages without text",
    ];
    check(Format::Discord, DISCORD, &want);
}

const SILLYTAVERN: &str = r#"{"user_name":"Ann","character_name":"Mira","create_date":"2024-3-1@12h34m56s","chat_metadata":{}}
{"name":"Mira","is_user":false,"is_system":false,"send_date":"March 1, 2024 12:34pm","mes":"Hello.","swipes":["Hello.","Hi."]}
{"name":"Ann","is_user":true,"send_date":"March 1, 2024 12:35pm","mes":"Hello!"}
{"name":"Ann","is_user":true,"send_date":"March 1, 2024 12:35pm","mes":"How are you?"}
{"name":"Note","is_user":false,"is_system":true,"send_date":"March 1, 2024 12:35pm","mes":"hidden"}
{"is_user":true,"mes":"nameless"}
"#;

#[test]
fn a_chat_of_sillytavern_is_read() {
    let chat = "Ann|Mira|2024-3-1@12h34m56s";
    let want = [
        &*format!("2 2024-03-01T12:34:00Z Assistant {chat}/Mira|March 1, 2024 12:34pm|1 Mira: Hello."),
        &*format!("3 2024-03-01T12:35:00Z Owner {chat}/Ann|March 1, 2024 12:35pm|1 Ann: Hello!"),
        &*format!("4 2024-03-01T12:35:00Z Owner {chat}/Ann|March 1, 2024 12:35pm|2 Ann: How are you?"),
        "- texts of the program",
        "6 ! the message has no name or no text",
    ];
    check(Format::SillyTavern, SILLYTAVERN, &want);
}

#[test]
fn reading_stops_when_asked_and_a_cut_file_keeps_its_beginning() {
    let mut messages = 0;
    let taken = read(&source(Format::Discord), DISCORD.as_bytes(), &mut |_| {
        messages += 1;
        ControlFlow::Break(())
    });
    assert!(taken.is_ok() && messages == 1);
    for (format, text) in [(Format::ChatGpt, CHATGPT), (Format::Claude, CLAUDE), (Format::Discord, DISCORD)] {
        let cut = text.trim_end().get(..text.trim_end().rfind(']').unwrap()).unwrap();
        let (whole, cut) = (found(format, text), found(format, cut));
        assert!(cut.1.is_err() && cut.0 == whole.0, "{format}: {cut:?}");
    }
}

#[test]
fn other_files_are_not_recognised() {
    for text in ["", "hello", "{}", "[]", "[1,2]", "{\"messages\": []}", "<html>", "PK\u{3}\u{4}"] {
        assert_eq!(Format::of(text.as_bytes()), None, "{text}");
    }
    assert!("excel".parse::<Format>().is_err());
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
}

#[test]
fn a_person_never_said_what_the_program_inserted() {
    let (found, _) = found(
        Format::ClaudeCode,
        r#"{"type":"user","uuid":"a","sessionId":"s","message":{"content":"before <ide_selection file=\"x\">inside</ide_selection> after <system-reminder>cut off"}}"#,
    );
    assert_eq!(found, ["1 no time Owner s/a User: before  after"]);
}

/// Returns a text without what the program inserted, by the plain definition: as long as an element opens, it goes with
/// everything up to its end.
fn without_inserted(written: &str) -> String {
    let mut text = written.to_owned();
    let mut from = 0;
    loop {
        let tags = ["bash-input", "command-args", "system-reminder"];
        let opens = tags.iter().filter_map(|tag| Some((from + text.get(from..)?.find(&format!("<{tag}"))?, tag))).min();
        let Some((start, tag)) = opens else { return text.trim().to_owned() };
        let close = format!("</{tag}>");
        let end = text.get(start..).expect("a boundary").find(&close).map_or(text.len(), |at| start + at + close.len());
        text.replace_range(start..end, "");
        from = start;
    }
}

#[test]
fn many_inserted_elements_are_removed() {
    let read_text = |text: &str| {
        let line = serde_json::json!({"type": "user", "uuid": "a", "sessionId": "s", "message": {"content": text}});
        found(Format::ClaudeCode, &line.to_string()).0
    };
    let many = "<system-reminder>x</system-reminder>".repeat(200_000);
    assert_eq!(read_text(&format!("one{many}two")), ["1 no time Owner s/a User: onetwo"]);
    let open = "<".repeat(1_000_000);
    assert_eq!(read_text(&format!("{open}<bash-input>{open}")), [format!("1 no time Owner s/a User: {open}")]);
}

proptest! {
    #[test]
    fn inserted_elements_go_and_everything_else_stays(pieces in proptest::collection::vec(prop_oneof![
        Just("<"), Just(">"), Just("</"), Just("ä"), Just(" word "), Just("<bash-input"), Just("<system-reminder>"),
        Just("</bash-input>"), Just("</system-reminder>"), Just("<command-args a=\"1\">"), Just("</command-args>"),
        Just("bash-"), Just("input>"), Just("</bash-input"), Just("<system-reminder/>"), Just("<b>"),
    ], 0..24)) {
        let written = pieces.concat();
        let line = serde_json::json!({"type": "user", "uuid": "a", "sessionId": "s", "message": {"content": written}});
        let text = without_inserted(&written);
        let want = match (text.is_empty(), written.trim().is_empty()) {
            (true, true) => "- calls of tools".to_owned(),
            (true, false) => "- texts of the program".to_owned(),
            (false, _) => format!("1 no time Owner s/a User: {text}"),
        };
        prop_assert_eq!(found(Format::ClaudeCode, &line.to_string()).0, [want]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Made-up input and damaged samples never panic, and what is read never carries a role that the input denies.
    #[test]
    fn damaged_files_are_read_without_a_panic(at in 0_usize..4000, byte in any::<u8>(), cut in 0_usize..4000) {
        for (format, text) in [
            (Format::ClaudeCode, CLAUDE_CODE), (Format::ChatGpt, CHATGPT), (Format::Claude, CLAUDE),
            (Format::Discord, DISCORD), (Format::SillyTavern, SILLYTAVERN),
        ] {
            let mut bytes = text.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(1 + cut % bytes.len());
            let recognised = Format::of(&bytes[..bytes.len().min(HEAD_BYTES)]);
            prop_assert!(recognised.is_none_or(|format| Format::ALL.contains(&format)));
            let mut of_program = 0;
            // Only whether it ends matters here.
            if read(&source(format), bytes.as_slice(), &mut |one| {
                if let Found::Message(message) = one {
                    of_program += usize::from(message.role == Role::Owner && message.text == "I will look.");
                }
                ControlFlow::Continue(())
            }).is_err() {
                prop_assert!(matches!(format, Format::ChatGpt | Format::Claude | Format::Discord));
            }
            prop_assert_eq!(of_program, 0);
        }
    }
}
