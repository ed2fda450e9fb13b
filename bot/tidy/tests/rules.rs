//! Checks of this checkout, and of small made-up checkouts that break each rule.

use std::path::Path;

use azera_tidy::{Tree, check};

/// A checkout with one crate that breaks no rule.
const HEALTHY: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\nmembers = [\"bot/models/api\"]\n"),
    (
        "bot/models/api/Cargo.toml",
        "[package]\nname = \"azera-model-api\"\n[lints]\nworkspace = true\n[dependencies]\nazera-types.workspace = true\n",
    ),
    ("bot/models/api/src/lib.rs", "//! Contracts.\npub fn two() -> u8 { 2 }\n"),
];

/// Checks the healthy checkout with these files added or replaced. Returns the findings as `path:line rule`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let tree: Tree = HEALTHY.iter().chain(files).map(|(path, text)| (*path, *text)).collect();
    check(&tree).iter().map(|finding| format!("{}:{} {}", finding.path, finding.line, finding.rule)).collect()
}

/// Asserts the findings for this text after the `//!` line of a library's `lib.rs`.
fn check_code(text: &str, expected: &[&str]) {
    check_file("bot/models/api/src/lib.rs", text, expected);
}

/// Asserts the findings for this text after the `//!` line of the file at `path`.
fn check_file(path: &str, text: &str, expected: &[&str]) {
    let expected: Vec<_> = expected.iter().map(|found| format!("{path}:{found}")).collect();
    assert_eq!(found(&[(path, &format!("//! Docs.\n{text}\n"))]), expected, "{path}: {text}");
}

#[test]
fn this_checkout_breaks_no_rule() {
    let tree = Tree::read(Path::new("../..")).unwrap();
    let findings: Vec<_> = check(&tree).iter().map(|finding| format!("\n{finding}")).collect();
    assert!(findings.is_empty(), "{}", findings.concat());
}

#[test]
fn the_healthy_checkout_has_no_findings() {
    assert_eq!(found(&[]), [""; 0]);
}

#[test]
fn crates_use_only_the_crates_they_may_use() {
    let head = "[package]\nname = \"azera-model-api\"\n[lints]\nworkspace = true\n";
    let check = |rest: &str, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|found| format!("bot/models/api/Cargo.toml:{found}")).collect();
        assert_eq!(found(&[("bot/models/api/Cargo.toml", &format!("{head}{rest}"))]), expected, "{rest}");
    };
    check("[dependencies]\nserde.workspace = true\nazera-types = { path = \"x\" }\n", &[]);
    check("[dependencies]\nserde.workspace = true\nazera-memory.workspace = true\n", &["7 edges"]);
    check("[dev-dependencies]\nazera-engine = { path = \"x\" }\n", &["6 edges"]);
    check("[dev-dependencies]\nazera-model-api = { path = \"x\", features = [\"more\"] }\n", &[]);
    check("[dependencies]\nazera-model-api = { path = \"x\" }\n", &["2 edges"]);
    check("[target.'cfg(unix)'.dependencies]\nazera-model-llama = { path = \"x\" }\n", &["6 edges"]);
    check("[dependencies]\nbrain = { package = \"azera-model-llama\", path = \"x\" }\n", &["6 edges"]);
    check("[dependencies]\nllama-cpp-2.workspace = true\n", &["6 edges"]);
    check("[dependencies]\nazera = { path = \"x\" }\n", &["6 edges"]);
    check("[dev-dependencies]\nanyhow.workspace = true\n", &[]);
}

#[test]
fn the_binary_may_use_everything() {
    let manifest = "[package]\nname = \"azera\"\n[lints]\nworkspace = true\n[dependencies]\nazera-model-llama.workspace = true\nanyhow.workspace = true\n";
    let root = "[workspace]\nmembers = [\"bot/app\"]\n";
    assert_eq!(found(&[("Cargo.toml", root), ("bot/app/Cargo.toml", manifest)]), [""; 0]);
}

#[test]
fn manifests_have_a_name_an_edge_and_the_lints() {
    let check =
        |text: &str, expected: &str| assert_eq!(found(&[("bot/models/api/Cargo.toml", text)]), [expected], "{text}");
    check("[package]\nname = \"azera-model-api\"\n", "bot/models/api/Cargo.toml:1 lints");
    check("[package]\nname = \"azera-attic\"\n[lints]\nworkspace = true\n", "bot/models/api/Cargo.toml:1 edges");
    check("not toml", "bot/models/api/Cargo.toml:1 manifest");
    assert_eq!(found(&[("Cargo.toml", "[workspace]\n")]), ["Cargo.toml:1 manifest"]);
}

#[test]
fn the_core_names_no_platform() {
    check_code("// as on Discord", &["2 platforms"]);
    check_code("pub struct MatrixRoom;", &["2 platforms"]);
    check_file("adapters/discord/src/event.rs", "pub struct Discord;", &[]);
}

#[test]
fn tests_are_not_ignored() {
    check_code("#[cfg(test)]\nmod tests {\n#[test]\n#[ignore]\nfn slow() {}\n}", &["5 ignore"]);
    check_code("#[cfg(test)]\nmod tests {\n#[test]\n#[ignore = \"slow\"]\nfn slow() {}\n}", &["5 ignore"]);
    check_code("#[cfg_attr(unix, ignore)]\nfn slow() {}", &["2 ignore"]);
    check_code("/// Those that ignore `#[ignore]`.\nfn told() {}", &[]);
}

#[test]
fn nothing_is_left_unfinished() {
    check_code("fn later() { todo!() }", &["2 unfinished"]);
    check_code("fn never() {\n    unimplemented!(\"no\")\n}", &["3 unfinished"]);
    check_code("fn fine(todo: u8) -> bool { todo != 3 } // todo!()", &[]);
}

#[test]
fn libraries_do_not_print() {
    check_code("fn loud() { println!(\"hello\") }", &["2 print"]);
    check_code("fn loud() { std::eprint!(\"hello\") }", &["2 print"]);
    check_code("fn quiet() -> &'static str { \"println!(x)\" }", &[]);
    check_code("#[cfg(test)]\nmod tests {\n#[test]\nfn loud() { println!() }\n}", &[]);
    check_code("#[cfg(test)]\nmod tests {}\nfn after() { println!() }", &["4 print"]);
    check_code("#[cfg(not(test))]\nfn loud() { println!() }", &["3 print"]);
    check_file("bot/app/src/show.rs", "fn loud() { println!() }", &[]);
    check_file("bot/tidy/src/main.rs", "fn main() { println!() }", &[]);
}

#[test]
fn tests_do_not_sleep() {
    check_code("fn slow() { std::thread::sleep(d) }", &[]);
    check_code("#[cfg(test)]\nmod tests {\nfn slow() { std::thread::sleep(d) }\n}", &["4 sleep"]);
    check_code("#[tokio::test(start_paused = true)]\nasync fn slow() { sleep(d).await }", &["3 sleep"]);
    check_code("#[test]\nfn driven() { clock.sleep(d) }", &[]);
    check_file("bot/models/api/tests/turn.rs", "async fn slow() { tokio::time::sleep(d).await }", &["2 sleep"]);
    let module = ("bot/models/api/src/turn.rs", "#[cfg(test)]\nmod checks;\n");
    let inner = ("bot/models/api/src/turn/checks.rs", "fn slow() { std::thread::sleep(d) }\n");
    assert_eq!(found(&[module, inner]), ["bot/models/api/src/turn/checks.rs:1 sleep"]);
    assert_eq!(found(&[("bot/models/api/src/turn.rs", "mod checks;\n"), inner]), [""; 0]);
}

#[test]
fn awaited_results_are_not_dropped() {
    check_code("async fn lose() { let _ = store.put(a(1)).await; }", &["2 dropped"]);
    check_code("async fn start() { let _ = spawn(async { store.put().await }); keep().await }", &[]);
    check_code("async fn heed() -> R { let _ = store.put().await?; Ok(()) }", &[]);
    check_code("async fn keep() { let _guard = lock.lock().await; }", &[]);
}

#[test]
fn the_environment_is_read_in_one_place() {
    check_code("fn peek() { std::env::vars(); }", &["2 environment"]);
    check_code("use std::env; fn peek() { env::var_os(\"HOME\"); env::args(); }", &["2 environment"]);
    check_file("bot/config/src/read.rs", "fn peek() { std::env::vars_os(); }", &[]);
}

#[test]
fn pure_crates_do_no_io() {
    check_file("bot/types/src/id.rs", "use std::fs::File;", &["2 pure"]);
    check_file("personas/src/load.rs", "async fn load() { tokio::fs::read(p).await }", &["2 pure"]);
    check_file("personas/src/load.rs", "#[cfg(test)]\nmod tests { use std::fs; }", &[]);
    check_code("use std::fs::File;", &[]);
}

#[test]
fn files_are_short_named_and_explained() {
    check_code(&"\n".repeat(498), &[]);
    check_code(&"\n".repeat(499), &["501 length"]);
    check_file("bot/models/api/src/utils.rs", "", &["1 name"]);
    check_file("bot/models/api/src/helpers/words.rs", "", &["1 name"]);
    let first_line = |text: &str| found(&[("bot/models/api/src/lib.rs", text)]);
    assert_eq!(first_line("pub fn two() -> u8 { 2 }\n"), ["bot/models/api/src/lib.rs:1 docs"]);
    assert_eq!(first_line("#![allow(dead_code)]\n//! Contracts.\n"), [""; 0]);
    assert_eq!(found(&[("bot/app/src/main.rs", "fn main() {}\n")]), ["bot/app/src/main.rs:1 docs"]);
    assert_eq!(
        found(&[("bot/models/api/src/main.rs", "fn main() {}\n")]),
        [""; 0],
        "the library's page stands for both"
    );
}

#[test]
fn a_file_that_is_not_rust_is_reported() {
    assert_eq!(found(&[("bot/models/api/src/half.rs", "fn half( {\n")]), ["bot/models/api/src/half.rs:1 code"]);
}
