//! What the interface does is what it declares: schemathesis makes requests from the description, right and wrong ones, and
//! checks every answer.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::painter::Painter;
use crate::web::{Running, web};

/// Cases for each of the operations, about five hundred together.
const CASES: &str = "7";

/// The limit of rate of one address is 20 a second.
const RATE: &str = "18/s";

/// The one operation that is left out, because its stream does not end.
const ENDLESS: &str = "/api/events";

/// No answer with a status of 500 or more, and none with a status, media type, header or body that is not declared.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

/// Returns the folder of the `schemathesis` package, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn schemathesis() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_SCHEMATHESIS");
    dir.map(PathBuf::from).expect("AZERA_TEST_SCHEMATHESIS names the folder of the package; run `make test`")
}

#[test]
fn every_answer_is_declared_and_none_is_a_server_error() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, data) = (scratch.path(), scratch.path().join("data"));
    let data = data.to_str().expect("a path");
    let painter = Painter::start();
    let settings = [("AZERA__IMAGES__KIND", "automatic1111"), ("AZERA__IMAGES__URL", painter.url.as_str())];
    let bot = Running::with(home, data, &["--model", "scripted"], &settings);
    bot.own();
    let scopes =
        ["chat", "memory:read", "memory:write", "admin", "mcp", "vault"].map(|scope| ["--scope", scope]).concat();
    let key = web(home, data, &[&["key", "create", "schemathesis"][..], scopes.as_slice()].concat());
    let report = home.join("report.json");
    let mut checking = Command::new("python3");
    checking.args(["-m", "schemathesis.cli", "run", "--no-color", "--phases", "fuzzing", "--continue-on-failure"]);
    checking.args(["--max-examples", CASES, "--rate-limit", RATE, "--checks", CHECKS, "--generation-deterministic"]);
    checking.args(["--no-shrink", "--suppress-health-check", "all"]);
    checking.args(["--exclude-path", ENDLESS]);
    checking.args(["--report", "json", "--report-json-path"]).arg(&report);
    checking.arg("--header").arg(format!("Authorization: Bearer {key}"));
    checking.arg(format!("{}/api/openapi.json", bot.address));
    checking.env("PYTHONPATH", schemathesis()).env("NO_PROXY", "*").current_dir(home);
    let output = checking.stdin(Stdio::null()).output().expect("Python runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("JSON");
    let count = |name: &str| report["operations"][name].as_u64().expect("a number");
    assert_eq!((count("tested"), count("tested") + 1), (count("selected"), count("total")), "{report}");
    let cases = &report["test_cases"];
    assert!(cases["generated"].as_u64() > Some(400) && cases["with_failures"] == 0, "{report}");
    bot.stop();
}
