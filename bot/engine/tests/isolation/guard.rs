//! Checks that no way to show something is left out: it reads the source code for all ways there are, and compares them
//! with what the worlds really called.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use azera_engine::COMMANDS;
use quote::ToTokens;
use syn::{FnArg, ImplItem, Item, ReturnType, TraitItem, Visibility};

use crate::watch::{BY_A_LINK, Record};

/// Ways by which secrets must have been shown rightly; otherwise the worlds prove nothing.
pub const TELLING: [&str; 42] = [
    BY_A_LINK,
    "Receipt of a message",
    "Receipt of an edit",
    "Host::autocomplete",
    "Host::search",
    "Platform::deliver",
    "Platform::show_again",
    "Platform::post",
    "/dream",
    "/journal",
    "/garden",
    "Reader::find_chats",
    "Reader::messages",
    "Reader::writings",
    "MemoryReader::memory",
    "MemoryReader::memories_by_id",
    "MemoryReader::memories",
    "MemoryReader::entities",
    "MemoryReader::graph_names",
    "MemoryReader::themes",
    "Memory::memories().newest",
    "Memory::writings().list",
    "Memory::writings().notes",
    "Memory::writings().recent",
    "Streaming::event",
    "VoiceMessages::speak",
    "/memory",
    "/graph",
    "Memory::graph().about",
    "Memory::graph().names",
    "Memory::themes().list",
    "Memory::episodes().list",
    "SessionReader::conversations",
    "/why",
    "/branch",
    "/persona",
    "Memory::recall().find",
    "Memory::messages().history",
    "Memory::messages().why",
    "Memory::training().exchanges",
    "Memory::export",
    "Memory::files().get",
];

/// Ways that show background writings and nothing else.
pub const WRITTEN: [&str; 7] = [
    "Platform::post",
    "/dream",
    "/journal",
    "/garden",
    "Memory::writings().list",
    "Memory::writings().written",
    "Memory::writings().notes",
];

/// Functions of the memory that return something that could hold people's words, but show it to nobody. Turns,
/// deliveries and embeddings are the engine's own work, and their results are judged where they come out. None of these
/// functions takes a read scope.
const SHOWN_TO_NOBODY: [&str; 89] = [
    // Opening, and the settings of chats: no words that people said.
    "open",
    "config",
    "chats().get",
    "chats().list",
    "chats().list_under",
    "chats().chats_served_by",
    "chats().open",
    "chats().drop_voice",
    // Persona files are judged where commands show them; a picture was never said.
    "personas().picture",
    "personas().put",
    "personas().get",
    "personas().of",
    "personas().list",
    "personas().versions",
    // These return what was written, to the writer.
    "turns().receive",
    "turns().receive_for",
    "turns().reply",
    "turns().reply_with_pictures",
    "turns().edit",
    "turns().edit_with_parts",
    "turns().hear",
    "turns().see",
    // Which files of a message the engine fetches.
    "files().wanted",
    // Whether a message was forgotten, for captions that still show it and replies that it needs no more.
    "messages().stands",
    // Ids of forgotten replies, for the engine that retracts them.
    "forgetting().retractions_due",
    // Which persona a message is meant for, not what it says.
    "messages().owner",
    // The turn's own work.
    "turns().open",
    "turns().all_open",
    "turns().note_panic",
    "outbox().pending",
    // The files of a reply on its way, once it was judged that it may be shown.
    "outbox().files",
    // The queue of pictures is the engine's own work; commands show numbers of it alone, and posts are judged.
    "pictures().ask",
    "pictures().waiting",
    "pictures().tried",
    "pictures().cancel",
    "pictures().finish",
    "pictures().tell",
    "pictures().is_told",
    "pictures().keep_at_most",
    "pictures().served",
    "pictures().start_of",
    "pictures().let_start_go",
    // Words that a place forbids, and a switch.
    "pictures().wishes",
    // These return what was written to the writer, or look it up for a post.
    "writings().write",
    "writings().publish",
    "writings().posted_as",
    // Settings, times and counts; whom to ask about a chat.
    "places().journal_channel",
    "progress().get",
    "places().training_log",
    "consent().training",
    "consent().voice",
    "places().check_ins",
    "places().all_check_ins",
    "progress().diary_until",
    // The ids and names of one human's accounts, for that human; what links show is judged everywhere.
    "links().link",
    "links().of",
    // Numbers and rules; the commands that show them are judged.
    "places().overrides",
    "consent().retention",
    "progress().extraction_progress",
    "progress().active_chats",
    "messages().recent_speakers",
    // The engine itself fills the indexes and compares them with the record.
    "indexing().index_words",
    "indexing().indexed",
    // Which places are to be grouped.
    "themes().next_due",
    // Numbers, not words; what the turn makes of them stands in its reply's prompt.
    "minds().list",
    "minds().bond",
    // Whether something was imported, and for the person who imported it: names of files, counts, and realms.
    "imports().chat_state",
    "imports().message_state",
    "imports().add",
    "imports().ran",
    "imports().list",
    "imports().set_waiting",
    "imports().pending",
    "imports().projects_of",
    // Sealed bytes, and whose they are. What the engine shows of them is tested in hosts.rs.
    "vaults().sealed",
    "vaults().change",
    "record().any_vault",
    "record().reseal_vaults",
    // Which limit keeps a person from asking: a count.
    "pictures().limit",
    // Backups are files of the operator.
    // Numbers, and accounts for the platform that keeps them.
    "indexing().row_counts",
    "accounts().list",
    "record().of",
    "record().named",
    "record().with_blobs",
    "record().blob",
    "record().owned_blobs",
    "record().identity",
    "record().pending_backup_forgets",
    "record().backup_folders",
];

/// Types that cannot hold people's words.
const HARMLESS: [&str; 15] = [
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
    "Pinned",
    "Option < usize >",
    "Option < Vec < f32 > >",
    "Vec < IndexWork >",
];

/// Arguments without which nothing may be shown.
const SCOPES: [&str; 2] = ["ReadScope", "DataSubject"];

fn root() -> PathBuf {
    PathBuf::from("../..")
}

pub fn parsed(path: &Path) -> syn::File {
    syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns what should have been called and was not, and what is listed and does not exist.
pub fn missed(record: &Record) -> Vec<String> {
    let mut missed = Vec::new();
    let adapter = root().join("adapters/api/src");
    let traits = [
        ("host.rs", "Host"),
        ("reader.rs", "Reader"),
        ("memories.rs", "MemoryReader"),
        ("sessions.rs", "SessionReader"),
        ("pictures.rs", "PictureHost"),
        ("places.rs", "PlaceHost"),
        ("platform.rs", "Platform"),
        ("platform.rs", "Streaming"),
        ("questions.rs", "Questions"),
        ("voice_messages.rs", "VoiceMessages"),
    ];
    for (file, name) in traits {
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

pub fn trait_methods(file: &syn::File, name: &str) -> Vec<String> {
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

/// A public function of `Memory` or of one of its domains.
struct Method {
    /// Its name, after the domain that it belongs to: `stats`, or `messages().history`.
    name: String,
    takes_a_scope: bool,
    harmless: bool,
}

fn memory_methods() -> Vec<Method> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("memory/core/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                files.push(parsed(&entry));
            }
        }
    }
    let domains: BTreeMap<String, String> = files.iter().flat_map(domains_in).collect();
    let methods: Vec<Method> = files.iter().flat_map(|file| methods_in(file, &domains)).collect();
    assert!(methods.iter().any(|method| method.name == "recall().find"), "memory is somewhere else");
    methods
}

/// Returns the public functions of a type, with the type's name.
fn public_functions(file: &syn::File) -> impl Iterator<Item = (String, &syn::ImplItemFn)> {
    let blocks = file.items.iter().filter_map(|item| match item {
        Item::Impl(block) if block.trait_.is_none() => Some(block),
        _ => None,
    });
    blocks.flat_map(|block| {
        let name = type_name(&block.self_ty);
        block.items.iter().filter_map(move |item| match item {
            ImplItem::Fn(method) if matches!(method.vis, Visibility::Public(_)) => Some((name.clone(), method)),
            _ => None,
        })
    })
}

/// Returns the name of a type without its lifetimes.
fn type_name(ty: &syn::Type) -> String {
    ty.to_token_stream().to_string().split_whitespace().next().unwrap_or_default().to_owned()
}

/// Returns the domains of the memory, each type with the function that returns it.
fn domains_in(file: &syn::File) -> Vec<(String, String)> {
    let functions = public_functions(file).filter(|(of, _)| of == "Memory");
    functions
        .filter_map(|(_, method)| match &method.sig.output {
            ReturnType::Type(_, ty) if ty.to_token_stream().to_string().ends_with("< '_ >") => {
                Some((type_name(ty), method.sig.ident.to_string()))
            }
            _ => None,
        })
        .collect()
}

fn methods_in(file: &syn::File, domains: &BTreeMap<String, String>) -> Vec<Method> {
    let mut methods = Vec::new();
    for (of, method) in public_functions(file) {
        let name = method.sig.ident.to_string();
        let name = match domains.get(&of) {
            Some(domain) => format!("{domain}().{name}"),
            None if of == "Memory" && !domains.values().any(|domain| *domain == name) => name,
            None => continue,
        };
        let takes = |argument: &FnArg| match argument {
            FnArg::Typed(typed) => names_any(&typed.ty, &SCOPES),
            FnArg::Receiver(_) => false,
        };
        methods.push(Method {
            name,
            takes_a_scope: method.sig.inputs.iter().any(takes),
            harmless: is_harmless(&method.sig.output),
        });
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
    for way in [
        "Host::search",
        "Platform::deliver",
        "/memory search",
        "/forget quotes",
        "Memory::recall().find",
        "Memory::messages().why",
    ] {
        assert!(missed.iter().any(|missed| missed == way), "{way} is not looked for: {missed:?}");
    }
    let file = syn::parse_str(
        "impl Memory {
            pub fn summary(&self, id: &ChatId) -> Result<Option<Text>, Error> { }
            pub fn count(&self, right: &ReadScope) -> Result<usize, Error> { }
            pub fn flush(&self) -> Result<(), Error> { }
            pub fn notes(&self) -> Notes<'_> { }
            fn own(&self) -> Text { }
        }
        impl Notes<'_> {
            pub fn first(self, id: &ChatId) -> Result<Option<Text>, Error> { }
        }",
    )
    .unwrap();
    let found = methods_in(&file, &domains_in(&file).into_iter().collect());
    let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.takes_a_scope || !it.harmless)).collect();
    assert_eq!(found, [("summary", true), ("count", true), ("flush", false), ("notes().first", true)]);
}

#[test]
fn verbs_are_parsed_from_the_declared_arguments() {
    let read = |arguments| verbs(arguments).collect::<Vec<_>>();
    assert_eq!(read("[list | use NAME | show NAME]"), ["list", "use", "show"]);
    assert_eq!(read("[last | mNUMBER | me | chat] [quotes]"), ["last", "me", "chat", "quotes"]);
    assert!(read("TEXT").is_empty());
}
