//! The vault of the real binary: what commands show, what settings take from it, and what a kill leaves.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::forgetting::{find_in_home, on_disk};
use crate::mcp::{call, client, good as answer, stdio};
use crate::{azera, command};

const SECRET: &str = "heliotrope-and-quagmire";

/// Runs `azera vault` on the data folder of a home.
fn vault(home: &Path, arguments: &[&str], input: &str) -> Output {
    let data = home.join("data");
    azera(home, &[&["vault"], arguments, &["--data", data.to_str().expect("a path")]].concat(), input)
}

#[track_caller]
fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("a text")
}

/// Returns what a command that fails says.
#[track_caller]
fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).expect("a text")
}

#[test]
fn a_secret_is_stored_listed_printed_and_deleted() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let stored = vault(home, &["set", "discord"], &format!("{SECRET}\n"));
    good(&stored);
    let says = String::from_utf8_lossy(&stored.stderr);
    assert!(says.contains("data.vault-key") && says.contains("Keep a copy"), "{says}");
    assert_eq!(good(&vault(home, &["get", "discord"], "")), SECRET, "the output is the value alone");
    let listed = vault(home, &["list"], "");
    assert!(good(&listed).starts_with("discord  changed "), "{listed:?}");
    let json: Value = serde_json::from_str(&good(&vault(home, &["list", "--json"], ""))).expect("JSON");
    assert_eq!(json["entries"][0]["name"], "discord");
    assert!(!format!("{listed:?} {json} {stored:?}").contains(SECRET));
    for file in ["data", "data.vault-key"] {
        let path = home.join(file);
        let found = if path.is_dir() { on_disk(&path, SECRET).or_else(|| on_disk(&path, "discord")) } else { None };
        assert_eq!(found, None, "neither the value nor the name is on disk in the clear");
    }
    good(&vault(home, &["delete", "discord"], ""));
    for arguments in [["get", "discord"], ["delete", "discord"]] {
        assert!(refusal(&vault(home, &arguments, "")).contains("no discord in the vault"), "{arguments:?}");
    }
    assert!(refusal(&vault(home, &["set", "a b"], SECRET)).contains("a-z"));
    let empty = refusal(&vault(home, &["set", "empty"], "\n"));
    assert!(empty.contains("1 to 16384 bytes"), "{empty}");
    let long = refusal(&vault(home, &["set", "long"], &SECRET.repeat(1_000)));
    assert!(long.contains("16384") && !long.contains(SECRET), "{long}");
}

#[test]
fn a_setting_takes_its_value_from_the_vault_and_no_output_shows_it() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    let run = |arguments: &[&str], value: &str| {
        let mut command = command(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat());
        command.env("AZERA__CHAT_SERVER__KEY", value).env("AZERA__DISCORD__TOKEN", value).env("AZERA_LOG", "trace");
        command.stdin(Stdio::null()).output().expect("the binary runs")
    };
    let said = |output: &Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    // A command that uses the setting names what is missing; another one does not need the Discord token.
    let missing = run(&["chat"], "vault:server");
    let says = refusal(&missing);
    assert!(
        says.contains("chat_server.key names the vault entry \"server\"") && says.contains("azera vault set server")
    );
    assert!(!says.contains("discord.token"), "{says}");
    let doctor = said(&run(&["doctor"], "vault:server"));
    assert!(doctor.contains("BAD   vault: ") && doctor.contains("discord.token"), "{doctor}");
    good(&vault(home, &["set", "server"], SECRET));
    let doctor = said(&run(&["doctor"], "vault:server"));
    assert!(doctor.contains("ok    vault: 1 entries"), "{doctor}");
    assert!(!doctor.contains(SECRET));
    // A value that the setting may not have is refused without being shown.
    good(&vault(home, &["set", "lines"], &format!("{SECRET}\nand more")));
    let says = refusal(&run(&["chat"], "vault:lines"));
    assert!(says.contains("its value must be a text of 1 to ") && !says.contains(SECRET), "{says}");
    let says = refusal(&run(&["chat"], "vault:not a name"));
    assert!(says.contains("a-z"), "{says}");
    // Without its key nothing is resolved, and nothing falls back to the name.
    std::fs::remove_file(home.join("data.vault-key")).expect("the key");
    let says = refusal(&run(&["chat"], "vault:server"));
    assert!(says.contains("key of the vault is missing"), "{says}");
}

#[test]
fn a_command_needs_only_the_secrets_that_it_uses() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    let sections =
        ["CHAT_SERVER", "EMBEDDING_SERVER", "VECTOR_SERVER", "RECOGNITION_SERVER", "SPEECH_SERVER", "IMAGES"];
    let run = |arguments: &[&str]| {
        let mut command = command(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat());
        for section in sections {
            command.env(format!("AZERA__{section}__KEY"), "vault:gone");
        }
        command.env("AZERA__DISCORD__TOKEN", "vault:gone").env("AZERA__WORKING_SERVER__PASSWORD", "vault:gone");
        command.env("AZERA__MODELS__HUB_TOKEN", "vault:gone").stdin(Stdio::null()).output().expect("the binary runs")
    };
    let warnings = |output: &Output| {
        good(output);
        String::from_utf8_lossy(&output.stderr).matches("names the vault entry").count()
    };
    // What one needs on a new machine, where the backups are there and the vault is not.
    assert_eq!(warnings(&run(&["persona", "list"])), 4, "it opens the memory");
    assert_eq!(warnings(&run(&["backup"])), 0, "it asks no server");
    let restored = run(&["restore", "--replace"]);
    assert_eq!(warnings(&restored), 4, "it builds the indexes");
    let says = String::from_utf8_lossy(&restored.stderr);
    assert!(says.contains("embedding_server.key") && says.contains("azera vault set gone"), "{says}");
    assert!(!says.contains("discord.token") && !says.contains("images.key"), "{says}");
    assert_eq!(warnings(&run(&["memory", "stats"])), 4);
    let says = refusal(&run(&["chat"]));
    assert!(says.contains("chat_server.key") && says.contains("images.key"), "{says}");
    assert!(!says.contains("discord.token") && !says.contains("speech_server.key"), "{says}");
    let says = refusal(&run(&["voice"]));
    for used in ["chat_server.key", "embedding_server.key", "recognition_server.key", "speech_server.key"] {
        assert!(says.contains(used), "{used}: {says}");
    }
    assert!(!says.contains("discord.token"), "{says}");
    assert_eq!(warnings(&run(&["voice", "samples", "list"])), 0, "it asks no server");
    let says = refusal(&run(&["run"]));
    assert!(says.contains("discord.token") && says.contains("speech_server.key"), "{says}");
}

#[test]
fn a_key_inside_the_data_folder_or_readable_by_others_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    for inside in [data.join("vault.key"), data.join("backups").join("vault.key")] {
        let arguments = ["vault", "set", "x", "--data", data.to_str().expect("a path")];
        let mut command = command(home, &arguments);
        let command = command.env("AZERA__VAULT__KEY_FILE", &inside).stdin(Stdio::piped()).stderr(Stdio::piped());
        let says = refusal(&crate::fed(command, SECRET));
        assert!(says.contains("vault.key_file must not be in"), "{says}");
        assert!(!inside.exists());
    }
    good(&vault(home, &["set", "x"], SECRET));
    let key = home.join("data.vault-key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let says = refusal(&vault(home, &["get", "x"], ""));
    assert!(says.contains("chmod 600") && says.contains("644"), "{says}");
}

#[test]
fn a_rotation_that_is_killed_anywhere_loses_nothing() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    for number in 0..20 {
        good(&vault(home, &["set", &format!("entry-{number}")], &format!("{SECRET}-{number}")));
    }
    let key = home.join("data.vault-key");
    let master = || std::fs::read(data.join("vault/master")).expect("the id of the master");
    let mut before = master();
    // Kill it as soon as a file changes: the key file, the operator's vault, the noted id, or anything at all.
    let watched = [key.clone(), data.join("vault/operator.vault"), data.join("vault/master"), data.join("vault/lock")];
    for round in 0..12 {
        let state = |path: &Path| {
            std::fs::metadata(path).ok().map(|metadata| {
                use std::os::unix::fs::MetadataExt;
                (metadata.ino(), metadata.mtime_nsec())
            })
        };
        let path = &watched[round % watched.len()];
        let old = state(path);
        let arguments = ["vault", "rotate", "--data", data.to_str().expect("a path")];
        let mut command = command(home, &arguments);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
        while state(path) == old && child.try_wait().expect("a state").is_none() {
            std::thread::yield_now();
        }
        child.kill().ok();
        child.wait().expect("it ended");
        for number in 0..20 {
            let value = good(&vault(home, &["get", &format!("entry-{number}")], ""));
            assert_eq!(value, format!("{SECRET}-{number}"), "round {round}");
        }
    }
    good(&vault(home, &["rotate"], ""));
    assert_ne!(master(), before, "there is another master");
    before = master();
    good(&vault(home, &["rotate", "data-keys"], ""));
    assert_eq!(master(), before);
    assert_eq!(good(&vault(home, &["get", "entry-7"], "")), format!("{SECRET}-7"));
    assert!(std::fs::read_dir(data.join("vault")).expect("a folder").count() <= 3, "nothing half written is left");
}

/// How a sealed vault begins in the record: the first bytes in base64.
const SEALED: &str = "QVpWQVVMV";

#[test]
fn a_persons_vault_is_sealed_on_disk_and_in_backups_and_forgotten_with_the_person() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let data = folder.to_str().expect("a path");
    let mcp = |person: &'static str, more: &[&'static str]| {
        let arguments = [&["mcp", "--data", data, "--as", person][..], more].concat();
        move |steps: &Value| client(&stdio(home, &arguments, "auto", steps))
    };
    let store = |name: &str, value: &str| call("vault_store", &json!({"name": name, "value": value}));
    mcp("Ann", &[])(&json!([store("lighthouse", SECRET), store("cellar", "quagmire-and-obsidian")]));
    mcp("Bob", &[])(&json!([store("lighthouse", "zeppelin-and-marzipan")]));
    // Values need a wish of their own, and belong to one person.
    let get = json!([["list_tools", {}], call("vault_get", &json!({"name": "lighthouse"}))]);
    let without = mcp("Ann", &[])(&get);
    assert!(without[1].get("raised").is_some() && !json!(without).to_string().contains(SECRET), "{without:?}");
    assert_eq!(answer(&mcp("Ann", &["--vault"])(&get)[1])["value"], SECRET);
    assert_eq!(answer(&mcp("Bob", &["--vault"])(&get)[1])["value"], "zeppelin-and-marzipan");
    let run = |arguments: &[&str]| {
        let output = azera(home, &[arguments, &["--data", data]].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("a text")
    };
    run(&["backup"]);
    for word in [SECRET, "quagmire", "zeppelin", "lighthouse", "cellar"] {
        assert_eq!(find_in_home(home, word), None, "{word} is on disk in the clear");
    }
    let people = |backup: &str| {
        let rows: Value = serde_json::from_str(backup).expect("JSON");
        rows[0]["manifest"]["rows"]["vaults"].clone()
    };
    assert_eq!(people(&run(&["backup", "list", "--json"])), 2);
    // A backup holds the vaults and not the key: with the key, everything comes back.
    run(&["restore", "--replace"]);
    assert_eq!(answer(&mcp("Ann", &["--vault"])(&get)[1])["value"], SECRET);
    // New keys open the same secrets, and the old sealed bytes leave the disk.
    let before = std::fs::read(home.join("data.vault-key")).expect("the key");
    run(&["vault", "rotate"]);
    assert_ne!(std::fs::read(home.join("data.vault-key")).expect("the key"), before);
    assert_eq!(answer(&mcp("Bob", &["--vault"])(&get)[1])["value"], "zeppelin-and-marzipan");
    let exported = run(&["memory", "export", "--person", "console:ann"]);
    assert!(exported.contains("lighthouse") && exported.contains("cellar") && !exported.contains(SECRET), "{exported}");
    // A deleted entry leaves older backups, with the vault that held it.
    let deleted = mcp("Ann", &[])(&json!([call("vault_delete", &json!({"name": "cellar"}))]));
    assert_eq!(answer(&deleted[0])["deleted"], true);
    assert_eq!(people(&run(&["backup", "list", "--json"])), 1, "Bob's");
    run(&["backup"]);
    assert!(find_in_home(home, SEALED).is_some(), "what this test looks for is there");
    run(&["memory", "forget", "--person", "console:ann", "--yes"]);
    assert_eq!(people(&run(&["backup", "list", "--json"])), 1);
    run(&["memory", "forget", "--person", "console:bob", "--yes"]);
    assert_eq!(find_in_home(home, SEALED), None, "no byte of a vault is left");
}

#[test]
fn a_restored_backup_without_its_key_says_which_one_it_needs() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let data = folder.to_str().expect("a path");
    let steps = json!([call("vault_store", &json!({"name": "code", "value": SECRET}))]);
    let mcp = |steps: &Value| client(&stdio(home, &["mcp", "--data", data, "--as", "Ann", "--vault"], "auto", steps));
    answer(&mcp(&steps)[0]);
    let run = |arguments: &[&str]| azera(home, &[arguments, &["--data", data]].concat(), "");
    good(&run(&["backup"]));
    // The disk is lost, with the key. Only the backups are left.
    let backups = home.join("backups");
    std::fs::rename(folder.join("backups"), &backups).expect("it moves");
    std::fs::remove_dir_all(&folder).expect("it goes");
    let key = home.join("data.vault-key");
    let kept = home.join("kept");
    std::fs::rename(&key, &kept).expect("it moves");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::rename(&backups, folder.join("backups")).expect("it moves");
    let restored = run(&["restore"]);
    let says = good(&restored);
    assert!(says.contains("vault") && says.contains("data.vault-key"), "{says}");
    let get =
        json!([call("vault_get", &json!({"name": "code"})), call("vault_store", &json!({"name": "x", "value": "y"}))]);
    let came = mcp(&get);
    assert!(came[0]["isError"] == true && came[1]["isError"] == true, "{came:?}");
    let doctor = run(&["doctor"]);
    let says = String::from_utf8_lossy(&doctor.stdout);
    assert!(says.contains("BAD   vault: the key of the vault is missing"), "{says}");
    // Neither the restored folder nor the record alone lets the operator make another key.
    for is_noted in [true, false] {
        if !is_noted {
            std::fs::remove_dir_all(folder.join("vault")).expect("the note goes");
        }
        let says = refusal(&vault(home, &["set", "discord"], SECRET));
        assert!(says.contains("key of the vault is missing"), "{says}");
        assert!(refusal(&vault(home, &["rotate"], "")).contains("key of the vault is missing"));
    }
    assert!(!key.exists(), "no other key is made");
    std::fs::rename(&kept, &key).expect("it moves");
    good(&vault(home, &["set", "discord"], SECRET));
    assert_eq!(answer(&mcp(&get)[0])["value"], SECRET);
}

#[test]
fn a_vault_that_nobody_uses_stops_nothing_wherever_its_key_would_lie() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    let run = |arguments: &[&str]| {
        let mut command = command(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat());
        // The key would lie beside the data folder.
        command.env("AZERA__BACKUP__DIR", home).stdin(Stdio::null()).output().expect("the binary runs")
    };
    good(&run(&["memory", "search", "harbour"]));
    assert!(String::from_utf8_lossy(&run(&["doctor"]).stdout).contains("ok    vault: empty"));
    // Even vaults do not keep a record from coming back.
    let steps = json!([call("vault_store", &json!({"name": "code", "value": SECRET}))]);
    let arguments = ["mcp", "--data", data.to_str().expect("a path"), "--as", "Ann"];
    answer(&client(&stdio(home, &arguments, "auto", &steps))[0]);
    good(&run(&["backup"]));
    let restored = run(&["restore", "--replace"]);
    assert!(good(&restored).contains("azera restore --undo"), "{restored:?}");
    let mut set = command(home, &["vault", "set", "x", "--data", data.to_str().expect("a path")]);
    let says = refusal(&crate::fed(set.env("AZERA__BACKUP__DIR", home), SECRET));
    assert!(says.contains("vault.key_file must not be in"), "{says}");
}

#[test]
fn rotating_without_any_vault_says_that_there_is_nothing_to_rotate() {
    let scratch = tempfile::tempdir().expect("a folder");
    let rotated = vault(scratch.path(), &["rotate"], "");
    good(&rotated);
    assert!(String::from_utf8_lossy(&rotated.stderr).contains("nothing to rotate"), "{rotated:?}");
    assert!(!scratch.path().join("data.vault-key").exists(), "no key is made");
}

#[test]
fn a_full_disk_takes_no_secret_and_deletes_one() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let data = folder.to_str().expect("a path");
    let mcp = |floor_mb: &str, steps: &Value| {
        let mut job = stdio(home, &["mcp", "--data", data, "--as", "Ann"], "auto", steps);
        job["env"]["AZERA__DATA__MIN_FREE_MB"] = floor_mb.into();
        client(&job)
    };
    let store = |name: &str| call("vault_store", &json!({"name": name, "value": SECRET}));
    answer(&mcp("0", &json!([store("code")]))[0]);
    let delete = call("vault_delete", &json!({"name": "code"}));
    let came = mcp("1000000", &json!([store("more"), delete, call("vault_list", &json!({}))]));
    assert!(came[0].to_string().contains("no room left on the disk"), "{came:?}");
    assert_eq!(answer(&came[1])["deleted"], true);
    assert!(!came[2].to_string().contains("more"), "{came:?}");
}
