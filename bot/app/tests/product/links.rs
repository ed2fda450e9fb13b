//! `azera link`: a person of this machine is linked with their account on the web, beside a running Azera.

use std::path::Path;

use serde_json::{Value, json};

use crate::azera;
use crate::imports::{SAID, chatgpt, import, run};
use crate::web::Running;

/// Returns the error of a command that is refused.
fn refused(home: &Path, arguments: &[&str]) -> String {
    let data = home.join("data");
    let output = azera(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat(), "");
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What Ann imported is hers on the web once she linked her account there, and until she unlinks it. Ben's stays his.
#[test]
fn a_person_of_the_machine_is_linked_beside_a_running_azera() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let ann = ["--as", "Ann"];
    std::fs::write(home.join("chat.json"), chatgpt(&SAID)).expect("a file");
    import(home, "chat.json", &ann);
    let why = refused(home, &["link", "K7M29QXA"]);
    assert!(why.contains("no Azera runs") && why.contains("azera run") && why.contains("`/link`"), "{why}");
    let bot = Running::with(home, home.join("data").to_str().expect("a path"), &["--model", "scripted"], &[]);
    let session = bot.own();
    let headers: Vec<(&str, &str)> = session.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let say = |line: &str| {
        let (status, _, answer) =
            bot.send("POST", "/api/chat", &headers, &json!({"session_id": "desk", "message": line}));
        assert_eq!(status, 200, "{answer}");
        answer.to_string()
    };
    let finds = || {
        let found = bot.send("POST", "/api/search", &headers, &json!({"query": "What is my boat called?"})).2;
        found["results"].to_string().contains("heliotrope")
    };
    let show = || say("/link").split("`/link ").nth(1).and_then(|rest| rest.get(..8)).expect("a code").to_owned();
    assert!(!finds(), "nothing is linked yet");
    let code = show();
    let unanswered = refused(home, &["link", &code, "--as", "Ann"]);
    assert!(unanswered.contains("--yes"), "{unanswered}");
    let wrong = refused(home, &["link", "00000000", "--as", "Ann", "--yes"]);
    assert!(wrong.contains("wrong or has expired") && wrong.contains("4 more tries"), "{wrong}");
    let linked = run(home, &["link", &code, "--as", "Ann", "--yes"]);
    assert!(linked.starts_with("Linked with Ann on web (`web:") && linked.contains("azera link --remove"), "{linked}");
    assert!(finds(), "what Ann imported is hers here, too");
    let used = refused(home, &["link", &code, "--as", "Ben", "--yes"]);
    assert!(used.contains("3 more tries"), "wrong codes of all names count together: {used}");
    let listed = run(home, &["link", "--list", "--as", "Ann"]);
    assert!(listed.contains("Ann on web (`web:") && listed.contains("`azera link --remove NAME`"), "{listed}");
    assert!(run(home, &["link", "--list", "--as", "Ben"]).contains("linked with no other"));
    assert!(say("/link list").contains("(`console:ann`)"));
    assert!(run(home, &["link", "--remove", "--as", "Ann"]).contains("linked with no other any more"));
    assert!(!finds() && say("/link list").contains("linked with no other"));
    // The other way round: the web says the code that the machine shows.
    let shown = run(home, &["link", "--as", "Ann"]);
    let code = shown.split("`/link ").nth(1).and_then(|rest| rest.get(..8)).expect("a code");
    assert!(say(&format!("/link {code}")).contains("(`console:ann`)"));
    assert!(say("/link confirm").contains("Linked with") && finds());
    bot.stop();
    let list: Value = serde_json::from_str(&run(home, &["import", "--list", "--json", "--as", "Ann"])).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(1), "a link moves nothing: {list}");
}
