//! Checks that no way to show something is left out: it reads the source code for all ways there are, and compares them
//! with what the worlds really called.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use azera_engine::COMMANDS;
use quote::ToTokens;
use syn::{FnArg, ImplItem, Item, ReturnType, TraitItem, Visibility};

use crate::watch::{BY_A_LINK, Record};

/// Ways by which secrets must have been shown rightly; otherwise the worlds prove nothing.
pub const TELLING: [&str; 25] = [
    BY_A_LINK,
    "Host::message",
    "Host::edited",
    "Host::autocomplete",
    "Host::search",
    "Platform::deliver",
    "Platform::show_again",
    "Platform::post",
    "/dream",
    "/journal",
    "/garden",
    "Memory::writings",
    "Memory::notes",
    "Memory::recent",
    "Streaming::event",
    "/memory",
    "/why",
    "/branch",
    "/persona",
    "Memory::recall",
    "Memory::history",
    "Memory::why",
    "Memory::trainable_exchanges",
    "Memory::export",
    "Memory::file",
];

/// Ways that show background writings and nothing else.
pub const WRITTEN: [&str; 7] =
    ["Platform::post", "/dream", "/journal", "/garden", "Memory::writings", "Memory::written", "Memory::notes"];

/// Functions of the memory that return something that could hold people's words, but show it to nobody. Turns,
/// deliveries and embeddings are the engine's own work, and their results are judged where they come out. None of these
/// functions takes a read scope.
const SHOWN_TO_NOBODY: [&str; 44] = [
    // Opening, and the settings of chats: no words that people said.
    "open",
    "config",
    "chat",
    "chats",
    "open_chat",
    // Persona files are judged where commands show them; a picture was never said.
    "picture",
    "put_persona",
    "persona",
    "persona_of",
    "personas",
    "persona_versions",
    // These return what was written, to the writer.
    "receive",
    "receive_for",
    "reply",
    "edit",
    "edit_with_parts",
    // Which files of a message the engine fetches.
    "files_wanted",
    // Which persona a message is meant for, not what it says.
    "message_owner",
    // The turn's own work.
    "open_turn",
    "open_turns",
    "note_panic",
    "outbox",
    // These return what was written to the writer, or look it up for a post.
    "write",
    "publish",
    "posted_as",
    // Settings, times and counts; whom to ask about a chat.
    "journal_channel",
    "background_progress",
    "training_log",
    "training_consent",
    "check_ins",
    "all_check_ins",
    "diary_until",
    // The ids and names of one human's accounts, for that human; what links show is judged everywhere.
    "link",
    "linked",
    // Numbers and rules; the commands that show them are judged.
    "overrides",
    "retention",
    "extraction_progress",
    "active_chats",
    "recent_speakers",
    // The engine itself fills the indexes and compares them with the record.
    "index_words",
    "indexed",
    // Numbers, not words; what the turn makes of them stands in its reply's prompt.
    "minds",
    "bond",
    // Backups are files of the operator.
    "record",
];

/// Types that cannot hold people's words.
const HARMLESS: [&str; 14] = [
    "()",
    "bool",
    "usize",
    "u64",
    "MemoryId",
    "Audit",
    "CacheUse",
    "CheckReport",
    "FileTotals",
    "PruneReport",
    "ForgetReceipt",
    "Option < usize >",
    "Option < Vec < f32 > >",
    "Vec < IndexWork >",
];

/// Arguments without which nothing may be shown.
const SCOPES: [&str; 2] = ["ReadScope", "DataSubject"];

fn root() -> PathBuf {
    PathBuf::from("../..")
}

fn parsed(path: &Path) -> syn::File {
    syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns what should have been called and was not, and what is listed and does not exist.
pub fn missed(record: &Record) -> Vec<String> {
    let mut missed = Vec::new();
    let adapter = root().join("adapters/api/src");
    for (file, name) in [("host.rs", "Host"), ("platform.rs", "Platform"), ("platform.rs", "Streaming")] {
        let methods = trait_methods(&parsed(&adapter.join(file)), name);
        assert!(!methods.is_empty(), "there is no trait {name} in {file}");
        missed.extend(methods.into_iter().map(|method| format!("{name}::{method}")).filter(|path| !record.has(path)));
    }
    for command in COMMANDS {
        let path = format!("/{}", command.name);
        let arguments = command.arguments();
        let verbs = verbs(&arguments).map(|verb| format!("{path} {verb}"));
        missed.extend(std::iter::once(path.clone()).chain(verbs).filter(|path| !record.has(path)));
    }
    let excused: BTreeSet<&str> = SHOWN_TO_NOBODY.into();
    let mut there = BTreeSet::new();
    for method in memory_methods() {
        let name = method.name.as_str();
        let path = format!("Memory::{name}");
        if excused.contains(name) && method.takes_a_scope {
            missed.push(format!("{path} takes a right, and is listed as showing nobody anything"));
        } else if (method.takes_a_scope || !method.harmless) && !record.has(&path) && !excused.contains(name) {
            missed.push(path);
        }
        there.insert(method.name);
    }
    let stale = excused.iter().filter(|name| !there.contains(**name));
    missed.extend(stale.map(|name| format!("Memory::{name} is listed, and is not there")));
    missed
}

fn trait_methods(file: &syn::File, name: &str) -> Vec<String> {
    let mut methods = Vec::new();
    for item in &file.items {
        if let Item::Trait(found) = item
            && found.ident == name
        {
            methods.extend(found.items.iter().filter_map(|item| match item {
                TraitItem::Fn(method) => Some(method.sig.ident.to_string()),
                _ => None,
            }));
        }
    }
    methods
}

/// Returns the words that a command's arguments begin with; capitals stand for the person's own words.
fn verbs(arguments: &str) -> impl Iterator<Item = &str> {
    let words = arguments.split(['[', '|', ']']).filter_map(|part| part.split_whitespace().next());
    words.filter(|word| word.chars().all(|c| c.is_ascii_lowercase()))
}

/// A public function of `Memory`.
struct Method {
    name: String,
    takes_a_scope: bool,
    harmless: bool,
}

fn memory_methods() -> Vec<Method> {
    let mut methods = Vec::new();
    let mut folders = vec![root().join("memory/core/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                methods.extend(methods_in(&parsed(&entry)));
            }
        }
    }
    assert!(methods.iter().any(|method| method.name == "recall"), "memory is somewhere else");
    methods
}

fn methods_in(file: &syn::File) -> Vec<Method> {
    let mut methods = Vec::new();
    for item in &file.items {
        let Item::Impl(block) = item else { continue };
        if block.trait_.is_some() || block.self_ty.to_token_stream().to_string() != "Memory" {
            continue;
        }
        for item in &block.items {
            let ImplItem::Fn(method) = item else { continue };
            if !matches!(method.vis, Visibility::Public(_)) {
                continue;
            }
            let takes = |argument: &FnArg| match argument {
                FnArg::Typed(typed) => names_any(&typed.ty, &SCOPES),
                FnArg::Receiver(_) => false,
            };
            methods.push(Method {
                name: method.sig.ident.to_string(),
                takes_a_scope: method.sig.inputs.iter().any(takes),
                harmless: is_harmless(&method.sig.output),
            });
        }
    }
    methods
}

fn names_any(ty: &syn::Type, names: &[&str]) -> bool {
    let text = ty.to_token_stream().to_string();
    text.split(|c: char| !c.is_alphanumeric()).any(|word| names.contains(&word))
}

fn is_harmless(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else { return true };
    let text = ty.to_token_stream().to_string();
    let inner = text.strip_prefix("Result < ").and_then(|rest| rest.strip_suffix(" , Error >")).unwrap_or(&text);
    HARMLESS.contains(&inner)
}

#[test]
fn an_unlisted_way_is_reported() {
    let missed = missed(&Record::default());
    for way in
        ["Host::search", "Platform::deliver", "/memory search", "/forget quotes", "Memory::recall", "Memory::why"]
    {
        assert!(missed.iter().any(|missed| missed == way), "{way} is not looked for: {missed:?}");
    }
    let file = syn::parse_str(
        "impl Memory {
            pub fn summary(&self, id: &ChatId) -> Result<Option<Text>, Error> { }
            pub fn count(&self, right: &ReadScope) -> Result<usize, Error> { }
            pub fn flush(&self) -> Result<(), Error> { }
            fn own(&self) -> Text { }
        }",
    )
    .unwrap();
    let found: Vec<_> =
        methods_in(&file).into_iter().map(|method| (method.name, method.takes_a_scope || !method.harmless)).collect();
    assert_eq!(found, [("summary".to_owned(), true), ("count".to_owned(), true), ("flush".to_owned(), false)]);
}

#[test]
fn verbs_are_parsed_from_the_declared_arguments() {
    let read = |arguments| verbs(arguments).collect::<Vec<_>>();
    assert_eq!(read("[list | use NAME | show NAME]"), ["list", "use", "show"]);
    assert_eq!(read("[last | mNUMBER | me | chat] [quotes]"), ["last", "me", "chat", "quotes"]);
    assert!(read("TEXT").is_empty());
}
