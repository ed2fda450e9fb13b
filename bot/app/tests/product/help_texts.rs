//! The help of every command in one place, so that a change of it is easy to review. After an intended change, run the test
//! once with `INSTA_UPDATE=always`.

use super::command;

/// Commands that the first help leaves out.
const HIDDEN: [&str; 4] = ["replay", "eval", "bench", "hearth"];

/// Returns the help of a command, and of those below it.
fn help(home: &std::path::Path, path: &[&str], shown: &mut String) -> usize {
    let arguments: Vec<&str> = path.iter().copied().chain(["--help"]).collect();
    let output = command(home, &arguments).env("COLUMNS", "100").output().expect("the binary starts");
    assert!(output.status.success(), "{path:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("a text");
    shown.push_str(&format!("$ azera {}\n{}\n", arguments.join(" "), text.trim_end()));
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Lines of a description that is wrapped stand further in.
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help");
    let hidden = if path.is_empty() { HIDDEN.as_slice() } else { &[] };
    names.chain(hidden.iter().copied()).map(|name| help(home, &[path, &[name]].concat(), shown)).sum::<usize>() + 1
}

#[test]
fn the_help_of_commands_is_known() {
    let home = tempfile::tempdir().expect("a folder");
    let mut shown = String::new();
    let commands = help(home.path(), &[], &mut shown);
    assert!(commands > 40, "{commands} commands");
    insta::assert_snapshot!("help", shown.trim_end());
}
