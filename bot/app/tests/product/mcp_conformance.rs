//! The official conformance suite of the Model Context Protocol, against `/mcp` and the server of tokens.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::{Browser, heard, script};
use crate::ports;
use crate::web::Running;

/// Returns the folder of the suite, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn suite() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MCP_CONFORMANCE");
    dir.map(PathBuf::from)
        .expect("AZERA_TEST_MCP_CONFORMANCE names the folder of the conformance suite; run `make test`")
}

/// Runs commands of the suite, and fails with the output of the first that fails.
#[track_caller]
fn pass(job: &Value) {
    let dir = suite();
    let mut node = Command::new(dir.join("bin/node"));
    let node = node.arg(script("mcp_conformance.mjs")).env("AZERA_TEST_MCP_CONFORMANCE", &dir).env("NO_PROXY", "*");
    for run in heard(node, job) {
        let output = run["output"].as_str().expect("a text");
        assert_eq!(run["code"], 0, "{output}");
        eprintln!("{output}");
    }
}

/// Everything passes that both revisions of the protocol require, but for what `mcp_conformance.yaml` names with its reason.
/// The list must be exact: the suite also fails where something on it passes.
#[test]
fn the_server_does_what_both_revisions_of_the_protocol_require() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let data = folder.to_str().expect("a path");
    let bot = Running::start(home, data);
    let ann = Browser::of_owner(&bot, home, data);
    let key = ann.key(&bot, &["mcp", "chat", "memory:read", "memory:write"]).0;
    let known = script("mcp_conformance.yaml");
    let known = known.to_str().expect("a path");
    let required =
        |revision| json!(["server", "--url", "SERVER", "--requirements", revision, "--expected-failures", known]);
    // Scenarios that came after the revision, or that the suite still tries out.
    let single = |name| json!(["server", "--url", "SERVER", "--scenario", name]);
    let further = ["http-header-validation", "server-session-lifecycle"].map(single);
    let mut runs = vec![required("2025-11-25"), required("2026-07-28")];
    runs.extend(further);
    pass(&json!({"url": format!("{}/mcp", bot.address), "key": key, "runs": runs}));
    bot.stop();
}

/// The server of tokens describes itself, and gives a program a token after a person agreed.
#[test]
fn the_server_of_tokens_passes_the_suite() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let data = folder.to_str().expect("a path");
    let bot = Running::start(home, data);
    let ann = Browser::of_owner(&bot, home, data);
    let port = ports::reserved().to_string();
    let returns = format!("http://127.0.0.1:{port}/callback");
    let program = json!({"client_name": "The suite", "redirect_uris": [returns], "token_endpoint_auth_method": "none"});
    let (status, _, registered) = bot.send("POST", "/oauth/register", &[], &program);
    assert_eq!(status, 201, "{registered}");
    let (url, id) = (format!("{}/mcp", bot.address), registered["client_id"].as_str().expect("an id"));
    let person = json!({"headers": {"Cookie": ann.cookie, "X-CSRF-Token": ann.csrf}, "allow": ["mcp", "memory:read"]});
    let run = ["authorization", "--url", &bot.address, "--client-id", id, "--resource", &url, "--port", &port];
    pass(&json!({"url": url, "key": "", "person": person, "runs": [run]}));
    bot.stop();
}
