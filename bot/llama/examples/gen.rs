use azera_llama::*;
use azera_model::*;
#[tokio::main]
async fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let greedy = std::env::args().nth(3).is_some();
    let config = LlamaChatConfig { context_tokens: 4096, cache_tokens: 16384, threads: Some(1), ..LlamaChatConfig::new(format!("{dir}/smollm2-135m/model.gguf"), "s", "smollm2") };
    let e = LlamaChat::load(config).unwrap();
    let mut rs = vec![];
    for i in 0..n { rs.push(e.chat(ChatRequest { sampling: if greedy { Sampling::greedy() } else { Sampling { seed: Some(1), ..Sampling::default() } }, max_tokens: 300, ..ChatRequest::new(vec![ChatMessage::new(Role::User, format!("{i} Tell me a very long story about the sea and a lighthouse, with many details."))]) }).await.unwrap()); }
    for r in rs { let (_, u) = r.collect().await.unwrap(); println!("{:?}", u.tokens_per_s); }
}
