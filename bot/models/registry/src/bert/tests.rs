//! Tests of the conversion of BERT models, with tiny ones that are made here.

use std::collections::BTreeMap;

use safetensors::serialize;

use super::*;
use azera_model_gguf::GgufHeader;

/// Writes a BERT encoder with one layer of width 32, whose f16 weights count up. `more` are further tensors.
fn write_model(folder: &Path, more: &[(&str, &[usize])]) {
    let config = r#"{"model_type": "bert", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 2, "layer_norm_eps": 1e-12, "max_position_embeddings": 16, "type_vocab_size": 2,
        "vocab_size": 8}"#;
    fs::write(folder.join("config.json"), config).unwrap();
    fs::write(folder.join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\nhey\n##ho\n").unwrap();
    let mut shapes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut add = |name: &str, shape: &[usize]| shapes.insert(format!("bert.{name}"), shape.to_vec());
    add("embeddings.word_embeddings.weight", &[8, 32]);
    add("embeddings.position_embeddings.weight", &[16, 32]);
    add("embeddings.token_type_embeddings.weight", &[2, 32]);
    add("embeddings.LayerNorm.weight", &[32]);
    add("embeddings.LayerNorm.bias", &[32]);
    let layer = "encoder.layer.0";
    for part in ["query", "key", "value"] {
        add(&format!("{layer}.attention.self.{part}.weight"), &[32, 32]);
        add(&format!("{layer}.attention.self.{part}.bias"), &[32]);
    }
    for (part, rows, columns) in
        [("attention.output.dense", 32, 32), ("intermediate.dense", 64, 32), ("output.dense", 32, 64)]
    {
        add(&format!("{layer}.{part}.weight"), &[rows, columns]);
        add(&format!("{layer}.{part}.bias"), &[rows]);
    }
    for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
        add(&format!("{layer}.{part}.weight"), &[32]);
        add(&format!("{layer}.{part}.bias"), &[32]);
    }
    shapes.extend(more.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())));
    let bytes: Vec<u8> = (0..2_048_u16).flat_map(|i| f16::from_f32(f32::from(i) / 512.0 - 2.0).to_le_bytes()).collect();
    let views: Vec<(String, TensorView<'_>)> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let length = 2 * shape.iter().product::<usize>();
            (name, TensorView::new(Dtype::F16, shape, &bytes[..length]).unwrap())
        })
        .collect();
    fs::write(folder.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
}

fn write_tiny(folder: &Path) {
    write_model(folder, &[]);
}

/// The head of a cross-encoder, beside the encoder.
const HEAD: [(&str, &[usize]); 4] = [
    ("bert.pooler.dense.weight", &[32, 32]),
    ("bert.pooler.dense.bias", &[32]),
    ("classifier.weight", &[1, 32]),
    ("classifier.bias", &[1]),
];

#[test]
fn the_conversion_gives_exactly_these_bytes() {
    let folder = tempfile::tempdir().unwrap();
    write_tiny(folder.path());
    let target = folder.path().join("model.gguf");
    convert(folder.path(), &target, Task::Embed).unwrap();
    let bytes = fs::read(&target).unwrap();
    let header = GgufHeader::read(bytes.as_slice()).unwrap();
    assert_eq!(header.expected_bytes, bytes.len() as u64);
    assert_eq!((header.architecture.as_str(), header.quantization), ("bert", Some("Q8_0")));
    assert_eq!((header.context_length, header.embedding_length), (Some(16), Some(32)));
    // 8 words, 16 positions, 2 types and 5 norms of 32; 4 times 32 x 33, then 64 x 33 and 32 x 65.
    assert_eq!(header.parameters, (8 + 16 + 2 + 2 + 4) * 32 + 4 * 32 * 33 + 64 * 33 + 32 * 65);
    use sha2::{Digest as _, Sha256};
    let sha256 = format!("{:x}", Sha256::digest(&bytes));
    insta::assert_snapshot!(sha256, @"a4672c8db903dc18cfa48f2d0536d3b20fc66bb406c8f3d61eda00b993e8a9dc");
}

#[test]
fn a_cross_encoder_gets_its_head_and_a_vocabulary_for_each_segment() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), &HEAD);
    let target = folder.path().join("model.gguf");
    convert(folder.path(), &target, Task::Rank).unwrap();
    let header = GgufHeader::read(fs::read(&target).unwrap().as_slice()).unwrap();
    assert_eq!((header.architecture.as_str(), header.pooling_type), ("bert", Some(4)));
    assert!(header.has_score_head);
    // Beside the encoder's: 8 more words, a pooler of 32 x 33, and one output.
    let encoder = (8 + 16 + 2 + 2 + 4) * 32 + 4 * 32 * 33 + 64 * 33 + 32 * 65;
    assert_eq!(header.parameters, encoder + 8 * 32 + 32 * 33 + 33);

    let model = config_and_weights(folder.path());
    let weights = SafeTensors::deserialize(&model.1).unwrap();
    let once = token_table(&model.0, &weights, false).unwrap();
    let twice = token_table(&model.0, &weights, true).unwrap();
    assert_eq!((once.dimensions.as_slice(), twice.dimensions.as_slice()), (&[32, 8][..], &[32, 16][..]));
    assert!(twice.data.starts_with(&once.data), "the first segment's tokens stay as they are");
    // The made-up vectors of both segments differ by 32 / 512 in each component.
    let words = values(&weights, "embeddings.word_embeddings.weight", &[8, 32]).unwrap();
    let shifted: Vec<f32> = words.iter().map(|value| value + 0.0625).collect();
    assert_eq!(twice.data[once.data.len()..], quantize_q8_0(&shifted)[..]);
}

fn config_and_weights(folder: &Path) -> (Config, Vec<u8>) {
    (parse_json(&folder.join("config.json")).unwrap(), fs::read(folder.join("model.safetensors")).unwrap())
}

#[test]
fn a_cross_encoder_without_exactly_one_score_is_rejected() {
    fn check(head: &[(&str, &[usize])], said: &str) {
        let folder = tempfile::tempdir().unwrap();
        write_model(folder.path(), head);
        let error = convert(folder.path(), &folder.path().join("model.gguf"), Task::Rank).unwrap_err().to_string();
        assert!(error.contains(said), "{error:?} should say {said:?}");
    }
    check(&[], "no tensor pooler.dense.weight");
    check(&HEAD[..2], "no tensor classifier.weight");
    let [weight, bias, ..] = HEAD;
    check(&[weight, bias, ("classifier.weight", &[3, 32]), ("classifier.bias", &[3])], "has shape [3, 32]");
}

#[test]
fn tokens_are_marked_for_gguf() {
    fn check(word: &str, token: &str, kind: i32) {
        assert_eq!((gguf_token(word).as_str(), token_type(word)), (token, kind), "{word}");
    }
    check("hey", "\u{2581}hey", TOKEN_NORMAL);
    check("##ho", "ho", TOKEN_NORMAL);
    check("[", "\u{2581}[", TOKEN_NORMAL);
    check("[unused7]", "[unused7]", TOKEN_NORMAL);
    check("[CLS]", "[CLS]", TOKEN_CONTROL);
    check("[UNK]", "[UNK]", TOKEN_UNKNOWN);
}

#[test]
fn an_unsupported_model_is_rejected_with_a_reason() {
    fn check(file: &str, change: impl Fn(String) -> String, said: &str) {
        let folder = tempfile::tempdir().unwrap();
        write_tiny(folder.path());
        let path = folder.path().join(file);
        // Each byte becomes a Latin-1 letter, so that weights can be changed like text.
        let text: String = fs::read(&path).unwrap().into_iter().map(char::from).collect();
        fs::write(&path, change(text).chars().map(|c| c as u8).collect::<Vec<_>>()).unwrap();
        let error = convert(folder.path(), &folder.path().join("model.gguf"), Task::Embed).unwrap_err().to_string();
        assert!(error.contains(said), "{error:?} should say {said:?}");
    }
    check("config.json", |text| text.replace("\"bert\"", "\"t5\""), "only plain BERT encoders");
    check("config.json", |text| text.replace("\"hidden_size\": 32", "\"hidden_size\": 64"), "has shape [8, 32]");
    check("config.json", |text| text.replace("_layers\": 1", "_layers\": 2"), "no tensor encoder.layer.1");
    check("config.json", |text| text.replace("_layers\": 1", "_layers\": 999"), "999 layers");
    check("config.json", |_| "{".to_owned(), "config.json: EOF");
    check("vocab.txt", |text| text.replace("hey\n", ""), "7 words in vocab.txt");
    check("vocab.txt", |text| text.replace("[MASK]", "[MASQ]"), "no [MASK] in vocab.txt");
    check("vocab.txt", |text| text.replace("##ho", "hey"), "the token \"\u{2581}hey\" twice in vocab.txt");
    // What starts a word and what continues one are other tokens.
    let folder = tempfile::tempdir().unwrap();
    write_tiny(folder.path());
    fs::write(folder.path().join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\nhey\n##hey\n").unwrap();
    convert(folder.path(), &folder.path().join("model.gguf"), Task::Embed).unwrap();
    check("model.safetensors", |text| text.replacen("F16", "I16", 1), "holds I16 values");
    check("model.safetensors", |text| text.chars().take(500).collect(), "unreadable weights");
}
