//! All texts of the commands in one place, so that a change of them is easy to review. After an intended change, run the
//! tests once with `INSTA_UPDATE=always`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use azera_adapter::{Access, SkipReason};
use azera_engine::COMMANDS;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;

use crate::findings::{ANN, COMMONS, DM_ANN, Scene};

/// Returns the Rust files of a folder, in order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "rs"));
    files.sort();
    files
}

fn is_test(item: &syn::Item) -> bool {
    matches!(item, syn::Item::Mod(module) if module.attrs.iter().any(|attr| attr.path().is_ident("cfg")))
}

/// Returns true if the tokens before a macro's arguments name a macro of the log.
fn is_log(before: &[TokenTree]) -> bool {
    before.iter().rev().take(5).any(|token| matches!(token, TokenTree::Ident(name) if name == "tracing"))
}

/// Collects the string literals with more than one word, in order. Attributes and log lines are no texts for people.
fn collect(stream: TokenStream, texts: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let before = &tokens[..at];
        match token {
            TokenTree::Group(group) => {
                let attribute = matches!(before.last(), Some(TokenTree::Punct(mark)) if mark.as_char() == '#');
                let macro_call = matches!(before.last(), Some(TokenTree::Punct(mark)) if mark.as_char() == '!');
                if !(attribute || macro_call && is_log(before)) {
                    collect(group.stream(), texts);
                }
            }
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string()).map(|text| text.value());
                let words =
                    |text: &String| text.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count();
                texts.extend(text.ok().filter(|text| words(text) > 1));
            }
            _ => {}
        }
    }
}

#[test]
fn the_texts_of_commands_are_known() {
    let mut shown = String::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for path in files(Path::new("src/commands")) {
        let file = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut texts = Vec::new();
        for item in file.items.iter().filter(|item| !is_test(item)) {
            collect(item.to_token_stream(), &mut texts);
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        seen.insert(name.clone(), texts.len());
        shown.push_str(&format!("\n== {name}\n"));
        texts.iter().for_each(|text| shown.push_str(&format!("{}\n", text.trim_end())));
    }
    assert!(seen["memory.rs"] > 20 && seen["declared.rs"] > 50, "{seen:?}");
    let reasons = [
        SkipReason::NotAddressed,
        SkipReason::MeantForAnother,
        SkipReason::Muted,
        SkipReason::Duplicate,
        SkipReason::Empty,
        SkipReason::Forgotten,
    ];
    shown.push_str("\n== why a message gets no reply\n");
    reasons.iter().for_each(|reason| shown.push_str(&format!("{}\n", reason.why())));
    insta::assert_snapshot!("texts_of_commands", shown.trim_start());
}

/// What every command says in a conversation that has just begun, and its help.
#[tokio::test]
async fn the_replies_of_commands_are_known() {
    let mut scene = Scene::open(false, false).await;
    scene.say(ANN, DM_ANN, "the spare key is under the blue pot, quiet").await;
    let mut shown = String::new();
    for command in COMMANDS.iter().filter(|command| !matches!(command.name, "quit" | "stats")) {
        let help = scene.command(ANN, DM_ANN, &format!("/help {}", command.name)).await;
        shown.push_str(&format!("\n== /{}\n{}\n", command.name, help.trim_end()));
        let bare = command.forms.iter().filter(|form| form.options.iter().all(|option| !option.required));
        for form in bare.filter(|form| form.access < Access::Operator) {
            let line = format!("/{} {}", command.name, form.word);
            let line = line.trim_end();
            let reply = scene.command(ANN, COMMONS, line).await;
            shown.push_str(&format!("> {line}\n{}\n", reply.trim_end()));
        }
    }
    insta::assert_snapshot!("replies_of_commands", shown.trim_start());
}
