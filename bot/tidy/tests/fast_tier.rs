//! Checks that `make check` runs no test that needs a model or a server, because a fresh clone has neither.

use std::collections::BTreeSet;
use std::path::Path;

use azera_tidy::Tree;

/// Settings of `make test` without which a test fails.
const NEEDED: [&str; 3] = ["AZERA_TEST_MODELS", "AZERA_TEST_REDIS", "AZERA_TEST_SYNAPSE"];

/// This file names the settings and needs none of them.
const THIS_FILE: &str = "bot/tidy/tests/fast_tier.rs";

/// Returns the name of the package that a source file belongs to.
fn package(tree: &Tree, source: &str) -> String {
    let mut folders = Path::new(source).ancestors().skip(1);
    let manifest = folders.find_map(|folder| tree.get(&format!("{}/Cargo.toml", folder.display()))).expect(source);
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect(source);
    name.trim_matches('"').to_owned()
}

#[test]
fn the_fast_tier_leaves_out_exactly_the_crates_whose_tests_need_more() {
    let tree = Tree::read(Path::new("../..")).unwrap();
    let needs = |text: &str| NEEDED.iter().any(|setting| text.contains(setting));
    let needing: BTreeSet<String> = tree
        .sources()
        .filter(|(path, text)| *path != THIS_FILE && needs(text))
        .map(|(path, _)| package(&tree, path))
        .collect();
    let script = std::fs::read_to_string("../scripts/make.sh").unwrap();
    let check =
        script.split_once("\ncheck() {").and_then(|(_, rest)| rest.split_once("\n}")).expect("a task `check`").0;
    let excluded = check.split("--exclude ").skip(1).filter_map(|rest| rest.split_whitespace().next());
    let excluded: BTreeSet<String> = excluded.map(str::to_owned).collect();
    assert_eq!(excluded, needing, "the crates that `check` of bot/scripts/make.sh excludes");
}
