//! The Model Context Protocol: the real binary with the official SDK for Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::web::{Running, web};
use crate::{azera, command};

/// Returns the folder of the `mcp` package, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn sdk() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MCP");
    dir.map(PathBuf::from).expect("AZERA_TEST_MCP names the folder of the mcp package; run `make test`")
}

/// Returns the folder of the SDK for TypeScript, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn typescript_sdk() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MCP_JS");
    dir.map(PathBuf::from).expect("AZERA_TEST_MCP_JS names the folder of the TypeScript SDK; run `make test`")
}

/// Returns the path of a script of the tests.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name)
}

/// Returns what the Python SDK's client hears when it does a job.
#[track_caller]
pub fn client(job: &Value) -> Vec<Value> {
    let mut python = Command::new("python3");
    heard(python.arg(script("mcp_client.py")).env("PYTHONPATH", sdk()).env("NO_PROXY", "*"), job)
}

/// Returns what the TypeScript SDK's client hears when it does a job.
#[track_caller]
fn typescript_client(job: &Value) -> Vec<Value> {
    let sdk = typescript_sdk();
    let mut node = Command::new(sdk.join("bin/node"));
    heard(node.arg(script("mcp_client.mjs")).env("AZERA_TEST_MCP_JS", &sdk).env("NO_PROXY", "*"), job)
}

/// Returns what a program answers to a job.
#[track_caller]
pub fn heard(program: &mut Command, job: &Value) -> Vec<Value> {
    let program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = crate::fed(program, &job.to_string());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let came = serde_json::from_slice(&output.stdout).expect("JSON");
    eprintln!("client: {errors}");
    came
}

/// A job over stdio: the binary with the environment of the tests.
pub fn stdio(home: &Path, arguments: &[&str], mode: &str, steps: &Value) -> Value {
    let binary = command(home, arguments);
    let words: Vec<&str> = std::iter::once(binary.get_program())
        .chain(binary.get_args())
        .map(|word| word.to_str().expect("a plain word"))
        .collect();
    let mut env = serde_json::Map::new();
    for (name, value) in binary.get_envs() {
        let value = value.and_then(|value| value.to_str()).unwrap_or_default();
        env.insert(name.to_str().expect("a plain name").to_owned(), value.into());
    }
    json!({"command": words, "env": env, "mode": mode, "steps": steps})
}

pub fn call(tool: &str, arguments: &Value) -> Value {
    json!(["call", {"tool": tool, "arguments": arguments}])
}

/// Returns the structured answer of a tool that worked.
#[track_caller]
pub fn good(answer: &Value) -> &Value {
    assert_ne!(answer["isError"], true, "{answer}");
    answer.get("structuredContent").unwrap_or_else(|| panic!("no structured answer: {answer}"))
}

fn tools(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"].as_array().expect("tools").iter();
    tools.map(|tool| tool["name"].as_str().expect("a name")).collect()
}

/// What is told in one session is recalled in the next, by the same person and persona alone. Both forms of the protocol
/// work: with a handshake, and without one.
#[test]
fn a_memory_is_shared_over_stdio_with_nobody_else() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, data) = (scratch.path(), scratch.path().join("data"));
    let mcp = |person, persona| ["mcp", "--data", data.to_str().expect("a path"), "--as", person, "--persona", persona];
    let keep = json!([
        ["list_tools", {}],
        call("remember", &json!({"text": "The lighthouse password is heliotrope."})),
        call("get", &json!({"id": "nonsense"})),
    ]);
    let came = client(&stdio(home, &mcp("Ann", "azera"), "legacy", &keep));
    let names = tools(&came[0]);
    assert!(names.contains(&"recall") && names.contains(&"why"), "{names:?}");
    assert!(!names.contains(&"create_reflection"), "no chat model is loaded: {names:?}");
    let id = good(&came[1])["id"].as_str().expect("an id").to_owned();
    assert_eq!(came[2]["isError"], true, "{}", came[2]);
    assert_eq!(came[3]["progress"], json!([0.0, 1.0, 0.0, 1.0]), "each call tells how far it is");
    let look = json!([
        call("recall", &json!({"query": "What is the password of the lighthouse?"})),
        call("list", &json!({})),
        ["read_resource", {"uri": format!("azera://memory/{id}")}],
        ["get_prompt", {"name": "what_you_know_about", "arguments": {"topic": "lighthouse"}}],
        call("forget", &json!({"id": id})),
    ]);
    for (person, persona, mode) in
        [("Bob", "azera", "auto"), ("Ann", "areza", "auto"), ("Ann", "azera", "auto"), ("Ann", "azera", "legacy")]
    {
        let came = client(&stdio(home, &mcp(person, persona), mode, &look));
        let is_hers = (person, persona, mode) == ("Ann", "azera", "auto");
        let seen = json!(came).to_string().contains("heliotrope");
        assert_eq!(seen, is_hers, "{person} with {persona}: {came:?}");
        if is_hers {
            let found = &good(&came[0])["memories"][0];
            assert_eq!((&found["id"], &found["author"]), (&json!(id), &json!("Ann")), "{came:?}");
            assert!(good(&came[4])["receipt"].as_str().expect("a receipt").contains("Forgotten"), "{came:?}");
        } else {
            assert!(came[2].get("raised").is_some() && came[4]["isError"] == true, "{person}: {came:?}");
        }
    }
    let listed = azera(home, &["memory", "stats", "--json", "--data", data.to_str().expect("a path")], "");
    let stats: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!((&stats["queued"], &stats["unaccounted"]), (&json!(0), &json!(0)), "nothing is left to do: {stats}");
}

/// Two accounts of one running Azera, with keys of several scopes, over HTTP and through `azera mcp`.
#[test]
fn a_key_opens_one_persons_memory_and_no_more() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let data = folder.to_str().expect("a path");
    let bot = Running::start(home, data);
    let ann = Browser::of_owner(&bot, home, data);
    let invited = ann.post(&bot, "/api/invitations", &json!({}));
    let guest = json!({"code": invited["code"], "name": "Bob", "password": "another long password"});
    let (_, head, session) = bot.send("POST", "/api/join", &[], &guest);
    let bob = Browser::of(&head, &session);
    let all = ["mcp", "chat", "memory:read", "memory:write"];
    let (anns, bobs) = (ann.key(&bot, &all), bob.key(&bot, &all));
    let url = format!("{}/mcp", bot.address);
    let over =
        |key: &str, mode: &str, steps: &Value| client(&json!({"url": url, "key": key, "mode": mode, "steps": steps}));

    let keep = call("remember", &json!({"text": "The lighthouse password is heliotrope."}));
    let came = over(&anns.0, "auto", &json!([["list_tools", {}], keep]));
    assert!(tools(&came[0]).contains(&"create_reflection"), "{came:?}");
    let id = good(&came[1])["id"].clone();
    let recall = call("recall", &json!({"query": "What is the password of the lighthouse?"}));
    let look =
        json!([recall, call("list", &json!({})), call("get", &json!({"id": id})), call("forget", &json!({"id": id}))]);
    let came = over(&bobs.0, "auto", &look);
    assert!(!json!(came).to_string().contains("heliotrope") && came[3]["isError"] == true, "{came:?}");
    let other = json!({"url": url, "key": anns.0, "persona": "areza", "mode": "auto", "steps": look});
    let came = client(&other);
    assert!(!json!(came).to_string().contains("heliotrope") && came[3]["isError"] == true, "{came:?}");
    for mode in ["legacy", "auto"] {
        let came = over(&anns.0, mode, &json!([recall]));
        assert_eq!(good(&came[0])["memories"][0]["id"], id, "{came:?}");
        assert_eq!(came[1]["progress"], json!([0.0, 1.0]), "{mode}");
    }
    let reading = ann.key(&bot, &["mcp", "memory:read"]);
    let came = over(&reading.0, "auto", &json!([["list_tools", {}], keep]));
    assert!(!tools(&came[0]).contains(&"remember") && came[1].get("raised").is_some(), "{came:?}");
    let without = ann.key(&bot, &["chat", "memory:read", "memory:write"]);
    for key in [without.0.as_str(), "azk_wrong_key"] {
        let came = over(key, "legacy", &json!([recall]));
        assert!(came[0].get("failed").is_some(), "{came:?}");
    }
    // Another process passes the same on, and needs the key.
    let mut passing = stdio(home, &["mcp", "--data", data], "auto", &json!([recall]));
    assert!(client(&passing)[0].get("failed").is_some(), "there is no key");
    let refused = azera(home, &["mcp", "--data", data], "");
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && says.contains("azera web key create"), "{says}");
    // An option that another process cannot grant says so.
    let mut asking = command(home, &["mcp", "--data", data, "--vault"]);
    let says = String::from_utf8(crate::fed(&mut asking, "").stderr).expect("a text");
    assert!(says.contains("with `--scope vault`"), "{says}");
    let passed = crate::fed(asking.env("AZERA_MCP_KEY", &anns.0), "");
    let says = String::from_utf8_lossy(&passed.stderr);
    assert!(passed.status.success() && says.contains("vault_get needs a key with `--scope vault`"), "{says}");
    passing["env"]["AZERA_MCP_KEY"] = anns.0.as_str().into();
    for mode in ["auto", "legacy"] {
        passing["mode"] = mode.into();
        let came = client(&passing);
        assert_eq!(good(&came[0])["memories"][0]["id"], id, "{came:?}");
    }
    ann.send(&bot, "DELETE", &format!("/api/keys/{}", anns.1), &Value::Null);
    assert!(over(&anns.0, "legacy", &json!([recall]))[0].get("failed").is_some(), "a revoked key opens nothing");
    bot.stop();
}

/// The SDK finds the server of tokens, registers, has the person allow it, and uses what was allowed. Later it goes on with its
/// refresh token alone.
#[test]
fn the_sdk_connects_by_oauth() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let data = folder.to_str().expect("a path");
    let bot = Running::start(home, data);
    let ann = Browser::of_owner(&bot, home, data);
    let (url, tokens) = (format!("{}/mcp", bot.address), home.join("tokens.json"));
    let person = |allow: &[&str]| json!({"headers": {"Cookie": ann.cookie, "X-CSRF-Token": ann.csrf}, "allow": allow});
    let keep = call("remember", &json!({"text": "The lighthouse password is heliotrope."}));
    let steps =
        json!([["list_tools", {}], keep, call("recall", &json!({"query": "What is the lighthouse password?"}))]);
    let denied = client(&json!({"url": url, "person": person(&[]), "mode": "auto", "steps": steps}));
    assert!(denied[0].get("failed").is_some(), "{denied:?}");
    let job =
        |allow: &[&str]| json!({"url": url, "person": person(allow), "tokens": tokens, "mode": "auto", "steps": steps});
    let came = client(&job(&["mcp", "memory:read", "memory:write"]));
    let names = tools(&came[0]);
    assert!(names.contains(&"remember") && !names.contains(&"sessions") && !names.contains(&"vault_get"), "{names:?}");
    assert!(json!(good(&came[2])).to_string().contains("heliotrope"), "{came:?}");
    // Nobody is asked again while the tokens work. The refresh token works after the access token.
    for _ in 0..2 {
        let mut held: Value = serde_json::from_slice(&std::fs::read(&tokens).expect("tokens")).expect("JSON");
        held["tokens"]["access_token"] = json!("azo_old");
        held["tokens"]["expires_in"] = json!(-10);
        std::fs::write(&tokens, held.to_string()).expect("it is ours");
        let came = client(&job(&[]));
        assert!(json!(good(&came[2])).to_string().contains("heliotrope"), "{came:?}");
    }
    let listed = web(home, data, &["key", "list"]);
    assert!(listed.contains("The SDK") && listed.contains("mcp,memory:read,memory:write"), "{listed}");
    let id = listed.lines().find(|line| line.contains("The SDK")).and_then(|line| line.split(' ').next());
    let ended = web(home, data, &["key", "revoke", id.expect("an id")]);
    assert!(ended.contains("ended"), "{ended}");
    assert!(client(&job(&[]))[0].get("failed").is_some(), "the access is over");
    bot.stop();
}

/// A second official client, in another language: every tool, paging and cancelling, over both ways. It checks each answer
/// against the schema that the tool declares.
#[test]
fn the_typescript_sdk_uses_every_tool_over_both_ways() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let folders = [home.join("stdio"), home.join("http")];
    let [alone, served] = folders.each_ref().map(|folder| folder.to_str().expect("a path"));
    let bot = Running::start(home, served);
    let key =
        Browser::of_owner(&bot, home, served).key(&bot, &["mcp", "chat", "memory:read", "memory:write", "vault"]).0;
    let over_http =
        |steps: &Value| typescript_client(&json!({"url": format!("{}/mcp", bot.address), "key": key, "steps": steps}));
    let over_stdio = |steps: &Value| {
        let arguments = ["mcp", "--data", alone, "--as", "Ann", "--vault"];
        typescript_client(&stdio(home, &arguments, "auto", steps))
    };
    every_tool("stdio", &over_stdio);
    every_tool("HTTP", &over_http);
    bot.stop();
}

/// Returns steps that call no new tool: pages, a cancelled call, resources, prompts, and a tool that does not exist.
fn other_steps() -> Vec<Value> {
    vec![
        json!(["pages", {"tool": "list", "arguments": {"limit": 2}, "items": "memories"}]),
        json!(["cancel", {"tool": "recall", "arguments": {"query": "Where does Mia live?"}}]),
        call("stats", &json!({})),
        json!(["listResources", {}]),
        json!(["listPrompts", {}]),
        json!(["readResource", {"uri": "azera://stats"}]),
        json!(["readResource", {"uri": "azera://graph"}]),
        json!(["getPrompt", {"name": "what_you_know_about", "arguments": {"topic": "Mia"}}]),
        call("nonsense", &json!({})),
    ]
}

/// Calls every tool in one session, and compares the list with what was called.
#[track_caller]
fn every_tool(way: &str, session: &dyn Fn(&Value) -> Vec<Value>) {
    let mut steps = vec![json!(["listTools", {}])];
    let facts: Vec<Value> = (0..7)
        .map(|number| call("remember", &json!({"text": format!("My sister Mia lives in house {number} of Oslo.")})))
        .collect();
    steps.extend(facts);
    let kept = session(&json!(steps));
    let declared = tools(&kept[0]);
    let id = |number: usize| good(&kept[number + 1])["id"].clone();
    let calls = [
        ("recall", json!({"query": "Where does Mia live?"})),
        ("hybrid_search", json!({"query": "Where does Mia live?"})),
        ("search", json!({"query": "Oslo"})),
        ("similar", json!({"id": id(0)})),
        ("get", json!({"id": id(0)})),
        ("list", json!({})),
        ("core_memory", json!({})),
        ("relations", json!({"name": "Mia"})),
        ("graph_explore", json!({"name": "Mia"})),
        ("relate", json!({"name": "Mia", "other": "Oslo"})),
        ("unrelate", json!({"name": "Mia", "other": "Oslo"})),
        ("themes", json!({})),
        ("known", json!({})),
        ("raptor_status", json!({})),
        ("reflection_insights", json!({})),
        ("optimize_context", json!({"query": "Where does Mia live?", "tokens": 300})),
        ("episodes", json!({})),
        ("reflections", json!({})),
        ("sessions", json!({})),
        ("stats", json!({})),
        ("save", json!({"text": "Mia likes tea."})),
        ("forget", json!({"id": id(5)})),
        ("delete", json!({"id": id(6)})),
        ("vault_store", json!({"name": "code", "value": "heliotrope"})),
        ("vault_list", json!({})),
        ("vault_get", json!({"name": "code"})),
        ("vault_delete", json!({"name": "code"})),
        ("update", json!({"id": id(0), "text": "My sister Mia lives in house 9 of Oslo."})),
        ("supersede", json!({"older": id(1), "newer": id(2)})),
        ("search_feedback", json!({"id": id(3), "rating": "helpful"})),
        ("procedures", json!({})),
        ("cue_search", json!({"ending": "resolved"})),
        ("cross_project", json!({"query": "Where does Mia live?", "project": "boat"})),
        ("checkpoint_save", json!({"title": "Move the boat", "project": "boat", "state": "Next: the mast."})),
        ("checkpoint_list", json!({"project": "boat"})),
        ("checkpoint_restore", json!({"project": "boat"})),
        ("raptor_rebuild", json!({})),
        // Nobody has talked or imported a session yet, so these say what to do instead.
        ("context_budget", json!({"project": "boat", "tokens": 300})),
        ("episode_chain", json!({"session": "import:2"})),
        ("episode_link", json!({"session": "import:2", "caused_by": "import:1"})),
        ("timeline", json!({})),
        ("compact_restore", json!({})),
        ("why", json!({})),
        // It was said in one chat alone.
        ("set_known", json!({"id": id(4), "counts": false})),
    ];
    let refused =
        ["set_known", "compact_restore", "context_budget", "episode_chain", "episode_link", "timeline", "why"];
    let mut steps: Vec<Value> = calls.iter().map(|(tool, arguments)| call(tool, arguments)).collect();
    steps.extend(other_steps());
    // The client knows the schemas of the answers once it has listed the tools.
    steps.insert(0, json!(["listTools", {}]));
    let came = session(&json!(steps));
    for ((tool, _), answer) in calls.iter().zip(&came[1..]) {
        assert_eq!(answer["isError"] == true, refused.contains(tool), "{way}, {tool}: {answer}");
        assert!(answer.get("raised").is_none(), "{way}, {tool}: {answer}");
    }
    let rest = &came[1 + calls.len()..];
    let texts: std::collections::BTreeSet<String> =
        rest[0]["items"].as_array().expect("items").iter().map(|memory| memory["text"].to_string()).collect();
    assert_eq!(texts.len(), 10, "{way}: each memory stands on one page: {rest:?}");
    assert!(rest[1].get("raised").is_some(), "{way}: a cancelled call has no answer: {}", rest[1]);
    assert_eq!(good(&rest[2])["total"], 10, "{way}: and the session goes on");
    assert!(rest[3..8].iter().all(|answer| answer.get("raised").is_none()), "{way}: {rest:?}");
    assert!(rest[6].to_string().contains("azera://graph/Mia"), "{way}: the graph names her: {}", rest[6]);
    assert!(rest[8].get("raised").is_some() || rest[8]["isError"] == true, "{way}: {}", rest[8]);
    let called: std::collections::BTreeSet<&str> = calls.iter().map(|(tool, _)| *tool).chain(["remember"]).collect();
    let left: Vec<&&str> = declared.iter().filter(|tool| !called.contains(**tool)).collect();
    // It has the model write, which takes minutes here; tests of the adapter call it.
    assert!(left.iter().all(|tool| ***tool == *"create_reflection"), "{way}: {left:?} were not called");
}

/// A login.
pub struct Browser {
    pub cookie: String,
    pub csrf: String,
}

impl Browser {
    /// Makes the owner's account, Ann's, with the link of the first start.
    pub fn of_owner(bot: &Running, home: &Path, data: &str) -> Self {
        let code = web(home, data, &[]).rsplit_once('=').expect("a link with a code").1.to_owned();
        let owner = json!({"code": code, "name": "Ann", "password": "correct horse battery"});
        let (_, head, session) = bot.send("POST", "/api/setup", &[], &owner);
        Self::of(&head, &session)
    }

    fn of(head: &str, session: &Value) -> Self {
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Self { cookie, csrf: session["csrf"].as_str().expect("a token").to_owned() }
    }

    #[track_caller]
    fn send(&self, bot: &Running, method: &str, path: &str, body: &Value) -> Value {
        let headers = [("Cookie", self.cookie.as_str()), ("X-CSRF-Token", self.csrf.as_str())];
        let (status, _, answer) = bot.send(method, path, &headers, body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    #[track_caller]
    fn post(&self, bot: &Running, path: &str, body: &Value) -> Value {
        self.send(bot, "POST", path, body)
    }

    /// Makes a key. Returns the key and its id.
    #[track_caller]
    pub fn key(&self, bot: &Running, scopes: &[&str]) -> (String, String) {
        let made = self.post(bot, "/api/keys", &json!({"name": "program", "scopes": scopes}));
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        (text("key"), text("id"))
    }
}
