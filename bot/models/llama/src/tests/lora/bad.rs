use azera_model_gguf::{GgufFile, Tensor, TensorType, Value};

use super::*;

/// Returns the metadata of a LoRA file.
fn said(architecture: &str) -> GgufFile {
    let mut file = GgufFile::default();
    file.set("general.type", Value::String("adapter".into()));
    file.set("general.architecture", Value::String(architecture.into()));
    file.set("adapter.type", Value::String("lora".into()));
    file.set("adapter.lora.alpha", Value::F32(8.0));
    file
}

fn tensor(name: &str, dimensions: &[u64], number: f32) -> Tensor {
    let count = usize::try_from(dimensions.iter().product::<u64>()).unwrap();
    let data = number.to_le_bytes().repeat(count);
    Tensor { name: name.into(), dimensions: dimensions.to_vec(), tensor_type: TensorType::F32, data }
}

fn bytes(mut file: GgufFile, tensors: Vec<Tensor>) -> Vec<u8> {
    file.tensors = tensors;
    let mut bytes = Vec::new();
    file.write(&mut bytes).unwrap();
    bytes
}

const QUERY_A: &str = "blk.0.attn_q.weight.lora_a";
const QUERY_B: &str = "blk.0.attn_q.weight.lora_b";
const KEY_A: &str = "blk.0.attn_k.weight.lora_a";
const KEY_B: &str = "blk.0.attn_k.weight.lora_b";

/// Returns a pair of rank 2 for the first layer's queries.
fn pair() -> Vec<Tensor> {
    vec![tensor(QUERY_A, &[576, 2], 0.1), tensor(QUERY_B, &[2, 576], 0.1)]
}

#[tokio::test]
async fn a_bad_file_is_rejected_and_running_replies_continue() {
    let (engine, forge) = (adaptable_engine(), Forge::new());
    let good = forge.put("good", &bytes(said("llama"), pair()));
    ask(engine, digits("a number", 4, std::slice::from_ref(&good))).await;
    let mut running = engine.chat(ChatRequest { loras: vec![good.clone()], ..endless(200) }).await.unwrap();
    first_piece(&mut running).await;

    let with = |tensors: Vec<Tensor>| bytes(said("llama"), tensors);
    let key = |a: &[u64], b: &[u64]| with([pair(), vec![tensor(KEY_A, a, 0.1), tensor(KEY_B, b, 0.1)]].concat());
    let whole = with(pair());
    let mut undecided = said("llama");
    undecided.metadata.remove(0);
    let endless_alpha = {
        let mut file = said("llama");
        file.metadata.pop();
        file.set("adapter.lora.alpha", Value::F32(f32::INFINITY));
        file
    };
    let quantised = Tensor { tensor_type: TensorType::Q8_0, data: vec![0; 34 * 18], ..tensor(KEY_A, &[576, 1], 0.0) };
    for (file, reason) in [
        (b"no such thing".to_vec(), "GGUF"),
        (whole[..100].to_vec(), "ends too early"),
        (whole[..whole.len() - 300].to_vec(), "past the file's end"),
        (bytes(undecided, pair()), "it is no LoRA"),
        (fs::read(model("minilm-l6-v2")).unwrap(), "it is no LoRA"),
        (bytes(said("qwen3"), pair()), "`qwen3`, and this one is of `llama`"),
        (bytes(endless_alpha, pair()), "alpha"),
        (with(vec![]), "nothing in it"),
        (with(vec![tensor(QUERY_A, &[576, 2], 0.1)]), "blk.0.attn_q.weight.lora_b is missing"),
        (with(vec![tensor(QUERY_B, &[2, 576], 0.1)]), "blk.0.attn_q.weight.lora_a is missing"),
        (with([pair(), vec![tensor("blk.0.attn_norm.weight", &[576], 1.0)]].concat()), "no half of a low-rank pair"),
        (with([pair(), pair()].concat()), "twice"),
        (key(&[576, 2], &[2, 576]), "576 x 2 and 2 x 576, and the model's is 576 x 192"),
        (key(&[192, 2], &[2, 192]), "192 x 2 and 2 x 192"),
        (key(&[576, 2], &[3, 192]), "576 x 2 and 3 x 192"),
        (key(&[576, 2, 1], &[2, 192]), "is no matrix"),
        (with([pair(), vec![quantised, tensor(KEY_B, &[1, 192], 0.1)]].concat()), "another way than F32, F16 or BF16"),
        (with(vec![tensor(QUERY_A, &[576, 1], f32::NAN), tensor(QUERY_B, &[1, 576], 0.1)]), "no number"),
        (
            with(vec![
                tensor("blk.99.attn_q.weight.lora_a", &[576, 1], 0.1),
                tensor("blk.99.attn_q.weight.lora_b", &[1, 576], 0.1),
            ]),
            "has no blk.99.attn_q.weight",
        ),
        (
            with(vec![
                tensor("token_embd.weight.lora_a", &[2, 49_152], 0.1),
                tensor("token_embd.weight.lora_b", &[2, 576], 0.1),
            ]),
            "has no token_embd.weight to adapt",
        ),
    ] {
        refused(engine, forge.put("bad", &file), reason).await;
    }
    // A LoRA in memory needs no file.
    let nowhere = |id| Lora::new(id, forge.0.path().join("nowhere"));
    ask(engine, digits("a number", 4, &[nowhere(good.id)])).await;
    refused(engine, nowhere(LoraId::new([8; 32])), "cannot be read").await;
    refused(engine, Lora { id: LoraId::new([7; 32]), ..good.clone() }, "and 0707").await;

    assert_eq!(running.collect().await.unwrap().1.completion_tokens, 200);
    ask(engine, digits("a number", 4, &[good])).await;
}

async fn refused(engine: &LlamaChat, lora: Lora, expected: &str) {
    let path = lora.path.clone();
    match engine.chat(digits("a number", 4, &[lora])).await {
        Err(Error::Lora { path: named, reason }) => {
            assert_eq!(named, path);
            assert!(reason.contains(expected), "`{reason}` instead of `{expected}`");
        }
        other => panic!("{other:?} instead of `{expected}`"),
    }
}

#[tokio::test]
async fn a_model_is_not_loaded_with_a_bad_lora() {
    let forge = Forge::new();
    let loras = vec![forge.put("bad", &bytes(said("qwen3"), pair()))];
    let refused = LlamaChat::load(LlamaChatConfig { loras, ..config() });
    assert!(matches!(refused, Err(Error::Lora { .. })), "{refused:?}");
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let forge = Forge::new();
    let good = forge.put("good", &bytes(said("llama"), pair()));
    let check = async |engine: &LlamaChat, loras: Vec<Lora>| {
        let refused = engine.chat(digits("a number", 4, &loras)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    };
    check(adaptable_engine(), vec![Lora { scale: f32::NAN, ..good.clone() }]).await;
    check(adaptable_engine(), vec![good.clone(); azera_model_api::MAX_LORAS + 1]).await;
    // An engine without room for LoRAs rejects them.
    check(shared_engine(), vec![good]).await;
}
