use std::sync::{Arc, OnceLock};

use azera_model_api::{Embedder, Error, Priority, Purpose};

use crate::{EMBED_STEP_TEXTS, LlamaEmbedder, LlamaEmbedderConfig};

fn config() -> LlamaEmbedderConfig {
    LlamaEmbedderConfig { similarity_floor: 0.3, ..LlamaEmbedderConfig::new(super::model("minilm-l6-v2"), "minilm") }
}

fn embedder() -> &'static LlamaEmbedder {
    static EMBEDDER: OnceLock<Arc<LlamaEmbedder>> = OnceLock::new();
    EMBEDDER.get_or_init(|| LlamaEmbedder::load(config()).unwrap())
}

async fn embed(texts: &[&str]) -> Vec<Vec<f32>> {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    embedder().embed(texts, Purpose::Document, Priority::Foreground).await.unwrap()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The expected cosines were computed once from the original weights in single precision, with numpy.
#[tokio::test]
async fn cosines_match_the_reference() {
    let texts = [
        "The passphrase for the lighthouse is blue heron.",
        "What was that passphrase I told you about the lighthouse?",
        "My dog is called Biscuit.",
        "What is my dog called?",
        "We moved the meeting to Thursday at half past nine.",
        "Où as-tu caché la clé du grenier ? Café, naïve, Ångström.",
        "Locker code 4417, third row.",
        "I prefer oat milk in my coffee, never soy.",
        "She sails to the harbour of Rostock in June.",
        "Unbelievably long-winded: antidisestablishmentarianism!",
    ];
    let reference = [
        [1.000, 0.703, 0.057, 0.076, 0.070, -0.074, 0.151, -0.077, 0.181, 0.133],
        [0.703, 1.000, 0.002, 0.086, 0.084, 0.043, 0.131, -0.028, 0.176, 0.211],
        [0.057, 0.002, 1.000, 0.682, -0.004, 0.062, 0.040, 0.103, -0.012, 0.145],
        [0.076, 0.086, 0.682, 1.000, -0.057, -0.001, 0.092, -0.012, 0.006, 0.166],
        [0.070, 0.084, -0.004, -0.057, 1.000, -0.003, 0.200, -0.030, 0.038, 0.038],
        [-0.074, 0.043, 0.062, -0.001, -0.003, 1.000, 0.017, 0.076, 0.037, 0.118],
        [0.151, 0.131, 0.040, 0.092, 0.200, 0.017, 1.000, -0.006, 0.020, -0.017],
        [-0.077, -0.028, 0.103, -0.012, -0.030, 0.076, -0.006, 1.000, -0.023, -0.011],
        [0.181, 0.176, -0.012, 0.006, 0.038, 0.037, 0.020, -0.023, 1.000, 0.013],
        [0.133, 0.211, 0.145, 0.166, 0.038, 0.118, -0.017, -0.011, 0.013, 1.000],
    ];
    let vectors = embed(&texts).await;
    assert_eq!(embedder().info().dimension, 384);
    for (i, row) in reference.iter().enumerate() {
        assert_eq!(vectors[i].len(), 384);
        for (j, expected) in row.iter().enumerate() {
            let found = cosine(&vectors[i], &vectors[j]);
            assert!((found - expected).abs() < 0.02, "{i} and {j}: {found} instead of {expected}");
        }
    }
}

#[tokio::test]
async fn a_vector_does_not_depend_on_its_batch() {
    let texts: Vec<String> =
        (0..3 * EMBED_STEP_TEXTS).map(|i| format!("note {i}{}", " and more".repeat(i % 40))).collect();
    let together = embedder().embed(texts.clone(), Purpose::Document, Priority::Background).await.unwrap();
    assert_eq!(together.len(), texts.len());
    for at in [0, 39, EMBED_STEP_TEXTS, 3 * EMBED_STEP_TEXTS - 1] {
        let alone = embed(&[&texts[at]]).await;
        assert!(cosine(&alone[0], &together[at]) > 0.999, "text {at}");
        let length = cosine(&alone[0], &alone[0]);
        assert!((length - 1.0).abs() < 1e-4);
    }
}

#[tokio::test]
async fn texts_of_any_length_have_a_vector() {
    let long = "the sea is wide ".repeat(1_000);
    let longer = "the sea is wide ".repeat(2_000);
    let vectors = embed(&["", &long, &longer, "\0", "🦊"]).await;
    assert!(cosine(&vectors[1], &vectors[2]) > 0.999, "what exceeds the window is cut off");
    assert!(vectors.iter().all(|vector| (cosine(vector, vector) - 1.0).abs() < 1e-4));
    assert!(embed(&[]).await.is_empty());
}

#[tokio::test]
async fn a_query_gets_the_query_prefix() {
    let config = LlamaEmbedderConfig { query_prefix: "search for: ".into(), queue: 2, ..config() };
    let embedder = LlamaEmbedder::load(config).unwrap();
    let embed = |text: &str, purpose| embedder.embed(vec![text.to_owned()], purpose, Priority::Foreground);
    let query = embed("a boat", Purpose::Query).await.unwrap();
    let document = embed("search for: a boat", Purpose::Document).await.unwrap();
    assert!(cosine(&query[0], &document[0]) > 0.9999);

    let busy = embedder.embed(vec![String::new(); 3], Purpose::Query, Priority::Foreground).await;
    assert!(matches!(busy, Err(Error::Busy { .. })));
}
