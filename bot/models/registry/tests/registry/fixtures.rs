//! Small models, and registries that name them.

use std::{fs, path::Path};

use azera_model_registry::{Models, Options, Step};
use sha2::{Digest, Sha256};

/// The time of all installations.
pub const NOW: &str = "2031-05-06T07:08:09Z";

/// A progress callback that shows nothing.
pub fn quiet(_: Step<'_>) {}

pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Returns a GGUF file with `weights` f32 weights, written without the crate's own writer. `numbers` are additional
/// metadata.
pub fn gguf(architecture: &str, weights: usize, numbers: &[(&str, u32)]) -> Vec<u8> {
    gguf_with(architecture, ("output.weight", weights), &[], numbers)
}

/// Returns a GGUF file with one tensor, and a vocabulary if there are `tokens`.
pub fn gguf_with(
    architecture: &str,
    (tensor, weights): (&str, usize),
    tokens: &[&str],
    numbers: &[(&str, u32)],
) -> Vec<u8> {
    let texts =
        [("general.architecture", architecture), ("general.name", "Tiny"), ("tokenizer.chat_template", "{{ m }}")];
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    out.extend_from_slice(&1_u64.to_le_bytes());
    let lists = usize::from(!tokens.is_empty());
    out.extend_from_slice(&((texts.len() + numbers.len() + lists) as u64).to_le_bytes());
    for (key, text) in texts {
        put_text(&mut out, key);
        out.extend_from_slice(&8_u32.to_le_bytes());
        put_text(&mut out, text);
    }
    for (key, number) in numbers {
        put_text(&mut out, key);
        out.extend_from_slice(&4_u32.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
    }
    if !tokens.is_empty() {
        put_text(&mut out, "tokenizer.ggml.tokens");
        out.extend_from_slice(&9_u32.to_le_bytes());
        out.extend_from_slice(&8_u32.to_le_bytes());
        out.extend_from_slice(&(tokens.len() as u64).to_le_bytes());
        tokens.iter().for_each(|token| put_text(&mut out, token));
    }
    put_text(&mut out, tensor);
    out.extend_from_slice(&1_u32.to_le_bytes());
    out.extend_from_slice(&(weights as u64).to_le_bytes());
    out.extend_from_slice(&0_u32.to_le_bytes());
    out.extend_from_slice(&0_u64.to_le_bytes());
    out.resize(out.len().next_multiple_of(32), 0);
    for weight in 0..weights as u32 {
        out.extend_from_slice(&weight.wrapping_mul(2_654_435_761).to_le_bytes());
    }
    out
}

/// Returns a chat model of about 400 kB.
pub fn tiny() -> Vec<u8> {
    gguf("llama", 100_000, &[("llama.context_length", 128)])
}

/// Returns a registry entry for a chat model with these sources, as TOML.
pub fn entry(name: &str, sources: &[String]) -> String {
    let mut text = format!(
        "[[model]]\nname = \"{name}\"\nkind = \"chat\"\nfamily = \"generic\"\ntitle = \"Tiny\"\ndescription = \"\"\n\
         parameters = 100_000\nram_mib = 1\ndownload_mib = 1\nlicence = \"MIT\"\ncontext_length = 128\n"
    );
    for source in sources {
        text.push_str("[[model.sources]]\n");
        text.push_str(source);
        text.push('\n');
    }
    text
}

/// Returns a hub source; `pins` may add a checksum and a size.
pub fn hub_source(file: &str, pins: &str) -> String {
    format!("kind = \"hub\"\nrepo = \"owner/tiny\"\nfile = \"{file}\"\n{pins}\n")
}

/// Opens the models of `folder`, with `registry` as a person's additions.
pub fn open(folder: &Path, endpoint: &str, registry: &str) -> Models {
    fs::write(folder.join("ledger.toml"), registry).unwrap();
    Models::open(options(folder, endpoint)).unwrap()
}

pub fn options(folder: &Path, endpoint: &str) -> Options {
    Options {
        hub_endpoint: endpoint.to_owned(),
        hub_attempts: 0,
        python: vec!["no-python-in-this-test".to_owned()],
        ..Options::new(folder)
    }
}

/// Asserts that the error's text contains every part.
#[track_caller]
pub fn says(error: &azera_model_registry::Error, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} should say {part:?}");
    }
}
