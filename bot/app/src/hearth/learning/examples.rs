//! Training examples as JSON lines: writing, reading and tokenizing them.

use std::path::Path;

use anyhow::Context;
use azera_model_api::{ChatMessage, Role};
use azera_model_dataset::{Kind, SHARES, SyntheticExample, synthetic_examples};
use azera_model_llama::LlamaVocabulary;
use azera_model_registry::Family;
use azera_model_training::TokenizedExample;
use serde::{Deserialize, Serialize};

use super::offload::write_whole;
use crate::cli::Curriculum;

/// One line of a file of training examples.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    kind: Kind,
    messages: Vec<Said>,
    reply: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Said {
    role: String,
    content: String,
}

/// Writes synthetic training examples to a file.
pub fn write(options: &Curriculum) -> anyhow::Result<()> {
    let path = &options.out;
    let shares = shares(&options.share)?;
    let mut rows = Vec::new();
    let parameters = options.weights.map(|millions| u64::from(millions) * 1_000_000);
    let model = (family(&options.family)?, parameters);
    for training_example in synthetic_examples(model, options.seed, options.count as usize, &shares) {
        let SyntheticExample { kind, messages, reply } = training_example;
        let said = |message: ChatMessage| Said { role: message.role.as_str().to_owned(), content: message.content };
        let row = Row { kind, messages: messages.into_iter().map(said).collect(), reply };
        serde_json::to_writer(&mut rows, &row)?;
        rows.push(b'\n');
    }
    write_whole(path, &rows).with_context(|| format!("writing {}", path.display()))?;
    println!("{} lessons are in {}", options.count, path.display());
    Ok(())
}

/// Returns the shares of the kinds, changed by options of the form `KIND=N`.
fn shares(wanted: &[String]) -> anyhow::Result<Vec<(usize, Kind)>> {
    let mut shares = SHARES.to_vec();
    let kinds = || SHARES.map(|(_, kind)| name(kind)).join(", ");
    for wanted in wanted {
        let said = wanted.split_once('=').and_then(|(kind, share)| Some((kind.trim(), share.trim().parse().ok()?)));
        let Some((kind, share)) = said else {
            anyhow::bail!("{wanted:?} is no share: write a kind and a number, as in near=20. Kinds: {}", kinds());
        };
        let Some(found) = shares.iter_mut().find(|(_, it)| name(*it) == kind) else {
            anyhow::bail!("there is no kind of lesson {kind:?}; there are {}", kinds());
        };
        found.0 = share;
    }
    anyhow::ensure!(shares.iter().any(|(share, _)| *share > 0), "all shares are 0, so there is nothing to write");
    Ok(shares)
}

/// Checks that a name is a chat model family. Examples in another family's prompt format teach nothing.
fn family(wanted: &str) -> anyhow::Result<&str> {
    const TALKING: [Family; 7] = [
        Family::Smollm2,
        Family::Qwen2,
        Family::Qwen3,
        Family::Llama3,
        Family::Gemma3,
        Family::Mistral,
        Family::Generic,
    ];
    let known = TALKING.map(name);
    anyhow::ensure!(
        known.iter().any(|it| it == wanted),
        "there is no family {wanted:?}; there are {}",
        known.join(", ")
    );
    Ok(wanted)
}

/// Returns the serialized name of a kind or family.
fn name(named: impl Serialize) -> String {
    serde_json::to_value(named).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Reads and tokenizes at most `limit` training examples. With `keep_prose`, examples without a prompt keep the model
/// as it is.
pub fn read(
    path: &Path,
    reader: &LlamaVocabulary,
    limit: usize,
    keep_prose: bool,
) -> anyhow::Result<Vec<TokenizedExample>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let rows = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).take(limit);
    let position = |index: usize| format!("line {} of {}", index + 1, path.display());
    rows.map(|(index, line)| example(line, reader, keep_prose).with_context(|| position(index))).collect()
}

fn example(line: &str, reader: &LlamaVocabulary, keep_prose: bool) -> anyhow::Result<TokenizedExample> {
    let row: Row = serde_json::from_str(line)?;
    let messages = row.messages.into_iter().map(|said| {
        let role = match said.role.as_str() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            other => anyhow::bail!("there is no role {other:?}"),
        };
        Ok(ChatMessage::new(role, said.content))
    });
    let messages = messages.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(TokenizedExample { keeps: keep_prose && messages.is_empty(), ..tokenize(reader, &messages, &row.reply)? })
}

/// Tokenizes a reply behind its prompt, or plain prose if there is no prompt.
pub fn tokenize(reader: &LlamaVocabulary, messages: &[ChatMessage], reply: &str) -> anyhow::Result<TokenizedExample> {
    if messages.is_empty() {
        // Nothing precedes the first token, so it cannot be predicted.
        return Ok(TokenizedExample::from_token(1, reader.text(reply)?));
    }
    let (tokens, start) = reader.exchange(messages, reply)?;
    Ok(TokenizedExample::from_token(start, tokens))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn a_wrong_option_leaves_the_old_file_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("lessons.jsonl");
        let options_for = |family: &str, share: &str| Curriculum {
            out: out.clone(),
            seed: 1,
            count: 3,
            share: vec![share.to_owned()],
            family: family.to_owned(),
            weights: None,
        };
        write(&options_for("smollm2", "talk=5")).unwrap();
        let before = std::fs::read(&out).unwrap();
        assert_eq!(before.iter().filter(|byte| **byte == b'\n').count(), 3);
        for (family, share, says) in [
            ("smollm2", "neer=20", "neer"),
            ("smolm2", "talk=5", "smollm2, qwen2, qwen3, llama3, gemma3, mistral, generic"),
        ] {
            let error = write(&options_for(family, share)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert_eq!(std::fs::read(&out).unwrap(), before);
        }
    }

    /// Fails if an example changes, because `make lora` would then train another LoRA than the bundled one.
    #[test]
    fn the_examples_match_the_checksums_on_the_loras_card() {
        let card = include_str!("../../../../models/registry/loras/README.md");
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("lessons.jsonl");
        let others = SHARES.iter().filter(|(_, kind)| *kind != Kind::Claim);
        let others: Vec<String> = others.map(|(_, kind)| format!("{}=0", name(*kind))).collect();
        for share in [vec!["claim=0".to_owned()], others] {
            let family = "smollm2".to_owned();
            write(&Curriculum { out: out.clone(), seed: 1, count: 4000, share: share.clone(), family, weights: None })
                .unwrap();
            let sha256 = Sha256::digest(std::fs::read(&out).unwrap());
            let sha256 = data_encoding::HEXLOWER.encode(&sha256);
            assert!(card.contains(&sha256), "{share:?}: {sha256}");
        }
    }

    #[test]
    fn shares_change_by_name_and_mistakes_are_reported() {
        let of = |wanted: &[&str]| shares(&wanted.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]).unwrap(), SHARES);
        let changed = of(&["near=20", "of_another = 0"]).unwrap();
        let of_kind =
            |shares: &[(usize, Kind)], kind| shares.iter().find(|(_, it)| *it == kind).map(|(share, _)| *share);
        let share = |kind| of_kind(&changed, kind);
        assert_eq!((share(Kind::Near), share(Kind::OfAnother)), (Some(20), Some(0)));
        assert_eq!(share(Kind::Plain), of_kind(&SHARES, Kind::Plain));
        for (wrong, says) in
            [("near", "as in near=20"), ("near=-1", "as in near=20"), ("soup=1", "there are recalled, told_apart")]
        {
            assert!(of(&[wrong]).unwrap_err().to_string().contains(says), "{wrong}");
        }
    }
}
