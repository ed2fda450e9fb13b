//! Tests of reranking with a tiny cross-encoder of made-up weights, which is converted as a real one is.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use azera_model_api::{Error, Reranker};
use azera_model_llama::{LlamaReranker, LlamaRerankerConfig};
use azera_model_registry::{Kind, Models, Options};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

const WORDS: &str = "[PAD] [UNK] [CLS] [SEP] [MASK] what sleeps on the sofa ? grey cat . train to coast leaves at nine \
                     lamp ##s brass of harbour ! polish ##ed";
const CONFIG: &str = r#"{"architectures": ["BertForSequenceClassification"], "model_type": "bert", "hidden_size": 48,
    "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4, "layer_norm_eps": 1e-12,
    "max_position_embeddings": 64, "type_vocab_size": 2, "vocab_size": 28}"#;
const HIDDEN: usize = 48;
const INNER: usize = 80;

const QUESTION: &str = "What sleeps on the sofa?";
const CAT: &str = "The grey cat sleeps on the sofa.";
const TRAIN: &str = "The train to the coast leaves at nine.";

/// Draws the numbers that `bot/scripts/reference-reranker.py` draws.
struct Dice(u32);

impl Dice {
    fn draw(&mut self, shape: &[usize], scale: f32, around: f32) -> Vec<u8> {
        let number = |_| {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            around + scale * ((self.0 >> 8) as f32 / 16_777_216.0 - 0.5)
        };
        (0..shape.iter().product::<usize>()).map(number).flat_map(f32::to_le_bytes).collect()
    }
}

/// Returns the name, shape, scale and centre of each tensor, in the order in which they are drawn.
fn parts() -> Vec<(String, Vec<usize>, f32, f32)> {
    let mut parts = Vec::new();
    let mut add = |name: &str, shape: &[usize], scale, around| {
        parts.push((name.to_owned(), shape.to_vec(), scale, around));
    };
    add("bert.embeddings.word_embeddings.weight", &[28, HIDDEN], 1.0, 0.0);
    add("bert.embeddings.position_embeddings.weight", &[64, HIDDEN], 0.5, 0.0);
    add("bert.embeddings.token_type_embeddings.weight", &[2, HIDDEN], 1.0, 0.0);
    add("bert.embeddings.LayerNorm.weight", &[HIDDEN], 0.2, 1.0);
    add("bert.embeddings.LayerNorm.bias", &[HIDDEN], 0.2, 0.0);
    for layer in ["bert.encoder.layer.0", "bert.encoder.layer.1"] {
        for (part, rows, columns) in [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ] {
            add(&format!("{layer}.{part}.weight"), &[rows, columns], 0.5, 0.0);
            add(&format!("{layer}.{part}.bias"), &[rows], 0.2, 0.0);
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(&format!("{layer}.{part}.weight"), &[HIDDEN], 0.2, 1.0);
            add(&format!("{layer}.{part}.bias"), &[HIDDEN], 0.2, 0.0);
        }
    }
    add("bert.pooler.dense.weight", &[HIDDEN, HIDDEN], 0.5, 0.0);
    add("bert.pooler.dense.bias", &[HIDDEN], 0.2, 0.0);
    add("classifier.weight", &[1, HIDDEN], 2.0, 0.0);
    add("classifier.bias", &[1], 0.2, 0.0);
    parts
}

/// Writes the model in the form of the model hub.
fn write(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.json"), CONFIG).unwrap();
    fs::write(folder.join("vocab.txt"), WORDS.split(' ').collect::<Vec<_>>().join("\n")).unwrap();
    let mut dice = Dice(1);
    let drawn: Vec<(String, Vec<usize>, Vec<u8>)> = parts()
        .into_iter()
        .map(|(name, shape, scale, around)| {
            let numbers = dice.draw(&shape, scale, around);
            (name, shape, numbers)
        })
        .collect();
    let views =
        drawn.iter().map(|(name, shape, numbers)| (name, TensorView::new(Dtype::F32, shape.clone(), numbers).unwrap()));
    fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
}

/// Installs the model, and returns the path of its file.
async fn installed(folder: &Path) -> PathBuf {
    write(&folder.join("tiny"));
    let models = Models::open(Options::new(folder.join("models"))).unwrap();
    let imported = models.import(&folder.join("tiny"), "tiny", None, "2031-05-06T07:08:09Z", &|_| {}).await.unwrap();
    assert_eq!(imported.manifest.model.kind, Kind::Reranker);
    models.find("tiny").unwrap().unwrap().path
}

/// Returns the file of a test model.
#[expect(clippy::disallowed_methods, reason = "only the test runner can say where the models are")]
fn test_model(name: &str) -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MODELS")
        .expect("AZERA_TEST_MODELS must name the directory of the test models; `make test` sets it");
    PathBuf::from(dir).join(name).join("model.gguf")
}

fn config(path: PathBuf) -> LlamaRerankerConfig {
    LlamaRerankerConfig { wait: Duration::from_secs(300), ..LlamaRerankerConfig::new(path, "tiny") }
}

async fn reranker(change: impl Fn(LlamaRerankerConfig) -> LlamaRerankerConfig) -> Arc<LlamaReranker> {
    let folder = tempfile::tempdir().unwrap();
    LlamaReranker::load(change(config(installed(folder.path()).await))).unwrap()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The expected scores are those of `python3 bot/scripts/reference-reranker.py tiny FOLDER`, which computes the same
/// model with numpy in double precision.
#[tokio::test]
async fn scores_match_the_reference() {
    let reranker = reranker(|config| config).await;
    let long = "the harbour lamp ".repeat(60);
    let texts = texts(&[CAT, TRAIN, "Somebody polished the lamps of brass!", "", &long]);
    let scores = reranker.rerank(QUESTION, &texts).await.unwrap();
    let reference = [2.9206, 3.8160, 2.5227, 1.0388, 3.3478];
    assert_eq!(scores.len(), reference.len());
    for ((score, expected), text) in scores.iter().zip(reference).zip(&texts) {
        assert!((score - expected).abs() < 0.01, "{text:?}: {score} instead of {expected}");
    }
    // Each pair is read alone, whatever else is in its step.
    for (text, together) in texts.iter().zip(&scores) {
        let alone = reranker.rerank(QUESTION, std::slice::from_ref(text)).await.unwrap();
        assert!((alone[0] - together).abs() < 0.01, "{text:?}: {} instead of {together}", alone[0]);
    }
    // The question is the first segment and the text the second: the other way round is another pair.
    let turned = reranker.rerank(CAT, &[QUESTION.to_owned()]).await.unwrap();
    assert!((turned[0] - scores[0]).abs() > 0.05, "{turned:?}");
}

#[tokio::test]
async fn limits_are_kept() {
    let reranker = reranker(|config| LlamaRerankerConfig { candidates: 3, ..config }).await;
    assert_eq!(reranker.info().candidates, 3);
    assert_eq!(reranker.rerank(QUESTION, &[]).await.unwrap(), [0.0; 0]);
    let error = reranker.rerank(QUESTION, &texts(&[CAT; 4])).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    let long = "what sleeps on the sofa ".repeat(100);
    let scores = reranker.rerank(&long, &texts(&[CAT, TRAIN, &long])).await.unwrap();
    assert!(scores.iter().all(|score| score.is_finite()), "{scores:?}");
    // A control token's name is a text like any other.
    let named = reranker.rerank(QUESTION, &texts(&["[SEP] [CLS] [second 5]", "<s></s>"])).await.unwrap();
    assert!(named.iter().all(|score| score.is_finite()), "{named:?}");
}

#[tokio::test]
async fn a_late_answer_is_dropped_and_a_model_that_is_always_late_is_left_alone() {
    let reranker = reranker(|config| LlamaRerankerConfig { wait: Duration::ZERO, ..config }).await;
    let mut said = Vec::new();
    for _ in 0..6 {
        let error = reranker.rerank(QUESTION, &texts(&[CAT, TRAIN])).await.unwrap_err();
        assert!(matches!(error, Error::TooSlow(_)), "{error}");
        said.push(error.to_string());
    }
    assert!(said[..5].iter().all(|said| said.contains("no answer within 0 ms")), "{said:?}");
    assert!(said[5].contains("failed several times, and is left alone"), "{said:?}");
}

#[tokio::test]
async fn only_a_cross_encoder_is_loaded() {
    for other in ["minilm-l6-v2", "smollm2-135m"] {
        let error = LlamaReranker::load(config(test_model(other))).unwrap_err();
        assert!(error.to_string().contains("no cross-encoder"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let small = LlamaRerankerConfig { window_tokens: 52, ..config(installed(folder.path()).await) };
    assert!(LlamaReranker::load(small).unwrap_err().to_string().contains("window_tokens"));
}

/// Where a file holds the number of its tensors, and that of its metadata pairs.
const TENSOR_COUNT: usize = 8;
const PAIR_COUNT: usize = 16;

fn find(file: &[u8], name: &str) -> usize {
    // A length stands before each name.
    let named = [&(name.len() as u64).to_le_bytes(), name.as_bytes()].concat();
    file.windows(named.len()).position(|part| part == named).unwrap()
}

/// Returns a file without a part of its header that holds `parts` tensors or metadata pairs.
fn without(file: &[u8], part: Range<usize>, count_at: usize, parts: u64) -> Vec<u8> {
    // The last tensor has one dimension.
    let last = "cls.output.bias";
    let end = find(file, last) + 8 + last.len() + 4 + 8 + 4 + 8;
    let mut changed = [&file[..part.start], &file[part.end..end]].concat();
    let count = u64::from_le_bytes(file[count_at..count_at + 8].try_into().unwrap()) - parts;
    changed[count_at..count_at + 8].copy_from_slice(&count.to_le_bytes());
    changed.resize(changed.len().next_multiple_of(32), 0);
    changed.extend(&file[end.next_multiple_of(32)..]);
    changed
}

#[tokio::test]
async fn a_head_makes_a_cross_encoder_and_not_a_pooling_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = installed(folder.path()).await;
    let file = fs::read(&path).unwrap();
    let load = |name: &str, file: Vec<u8>| {
        let path = folder.path().join(name);
        fs::write(&path, file).unwrap();
        LlamaReranker::load(config(path))
    };
    let texts = texts(&[CAT, TRAIN]);
    let scores = load("whole.gguf", file.clone()).unwrap().rerank(QUESTION, &texts).await.unwrap();

    // A pair is a name, a type and a number. Many files of rerankers lack this one.
    let (pooling, name) = (find(&file, "bert.pooling_type"), "bert.pooling_type".len());
    let silent = without(&file, pooling..pooling + 8 + name + 4 + 4, PAIR_COUNT, 1);
    let silent = load("silent.gguf", silent).unwrap().rerank(QUESTION, &texts).await.unwrap();
    assert_eq!(silent, scores);

    let head = find(&file, "cls.output.weight");
    let end = find(&file, "cls.output.bias") + 8 + "cls.output.bias".len() + 4 + 8 + 4 + 8;
    let error = load("headless.gguf", without(&file, head..end, TENSOR_COUNT, 2)).unwrap_err();
    assert!(error.to_string().contains("no cross-encoder"), "{error}");
}
