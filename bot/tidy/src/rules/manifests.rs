use toml::Table;
use toml::Value;

use crate::{EDGES, Finding, HELD, Tree};

/// Checks the dependencies of each crate.
pub(crate) fn manifests(tree: &Tree, findings: &mut Vec<Finding>) {
    let root = "Cargo.toml";
    let mut report = |path: &str, line, rule, message| {
        findings.push(Finding { path: path.to_owned(), line, rule, message });
    };
    let Some(members) = tree.get(root).and_then(members) else {
        return report(root, 1, "manifest", "the root manifest has no list of members".to_owned());
    };
    for folder in members {
        let path = format!("{folder}/Cargo.toml");
        let text = tree.get(&path).unwrap_or_default();
        let manifest = text.parse::<Table>().ok();
        let package = manifest.as_ref().and_then(|manifest| manifest.get("package")?.get("name")?.as_str());
        let (Some(manifest), Some(package)) = (&manifest, package) else {
            report(&path, 1, "manifest", "no manifest, or one without a package name".to_owned());
            continue;
        };
        if manifest.get("lints").and_then(|lints| lints.get("workspace")) != Some(&Value::Boolean(true)) {
            report(&path, 1, "lints", "the workspace's lints must hold here too: [lints] workspace = true".to_owned());
        }
        let Some(edge) = EDGES.iter().find(|edge| edge.package == package) else {
            let message =
                format!("`{package}` has no row in EDGES of bot/tidy/src/layout.rs, which says what it may use");
            report(&path, 1, "edges", message);
            continue;
        };
        for dependency in dependencies(manifest) {
            let line = line_of(text, &dependency.name);
            let name = &dependency.name;
            let ours = name == "azera" || name.starts_with("azera-");
            // A crate's own tests may enable a feature of it that other crates do not.
            let itself = dependency.dev && name == package;
            if ours && !itself && !edge.uses.contains(&"*") && !edge.uses.contains(&name.as_str()) {
                let may = if edge.uses.is_empty() { "no other crate".to_owned() } else { edge.uses.join(", ") };
                report(&path, line, "edges", format!("`{package}` may not use `{name}`; it may use {may}"));
            }
            let held = HELD.iter().find(|(held, folders)| held == name && !folders.contains(&folder.as_str()));
            if let Some((_, folders)) = held.filter(|_| !dependency.dev) {
                report(&path, line, "edges", format!("`{name}` is for {} alone", folders.join(", ")));
            }
        }
    }
}

fn members(root: &str) -> Option<Vec<String>> {
    let table = root.parse::<Table>().ok()?;
    let members = table.get("workspace")?.get("members")?.as_array()?;
    Some(members.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

struct Dependency {
    /// The package's name, even if the manifest renames it.
    name: String,
    /// True if only tests use it.
    dev: bool,
}

/// Returns the dependencies of every kind, including those for certain targets.
fn dependencies(manifest: &Table) -> Vec<Dependency> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    let mut found = Vec::new();
    for table in tables {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for (key, value) in table.get(kind).and_then(Value::as_table).into_iter().flatten() {
                let name = value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned();
                found.push(Dependency { name, dev: kind == "dev-dependencies" });
            }
        }
    }
    found
}

/// Returns the first line that names a dependency, or 1.
fn line_of(text: &str, name: &str) -> usize {
    let named = |line: &str| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '='])) || line.contains(&format!("\"{name}\""))
    };
    text.lines().position(named).map_or(1, |index| index + 1)
}
