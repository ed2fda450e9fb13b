use std::time::Instant;
use azera_llama::*;
use azera_model::*;
#[tokio::main]
async fn main() {
    fn cpu() -> f64 { let s = std::fs::read_to_string("/proc/self/stat").unwrap(); let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect(); (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0 }
    let dir = std::env::args().nth(1).unwrap();
    let config = LlamaChatConfig { context_tokens: 4096, cache_tokens: 16384, slots: 16, threads: std::env::args().nth(2).map(|t| t.parse().unwrap()), ..LlamaChatConfig::new(format!("{dir}/smollm2-135m/model.gguf"), "s", "smollm2") };
    let t = Instant::now();
    let e = LlamaChat::load(config).unwrap();
    println!("load {:.2}s", t.elapsed().as_secs_f64());
    let long: String = (0..60).map(|i| format!("Line {i} of the story says that the harbour was calm and the gulls were loud. ")).collect();
    let samp = || Sampling { seed: Some(1), ..Sampling::default() };
    let req = |text: String, n: usize| ChatRequest { sampling: samp(), max_tokens: n, grammar: None, ..ChatRequest::new(vec![ChatMessage::new(Role::User, text)]) };
    for round in 0..3 {
        let c = cpu();
        let (_, u) = e.chat(req(format!("{round} {long}"), 1)).await.unwrap().collect().await.unwrap();
        println!("  cpu {:.1} tok/s", u.prompt_tokens as f64 / (cpu()-c)); println!("prompt {} tok: {:.0} tok/s", u.prompt_tokens, u.prompt_tokens as f64 / u.ttft_ms * 1000.0);
    }
    for round in 0..3 {
        let c = cpu();
        let (_, u) = e.chat(req(format!("{round} Tell me a very long story about the sea and a lighthouse, with many details."), 200)).await.unwrap().collect().await.unwrap();
        println!("  cpu {:.1} tok/s", u.completion_tokens as f64 / (cpu()-c)); println!("gen {} tok: {:.1} tok/s ttft {:.0}ms", u.completion_tokens, u.tokens_per_s, u.ttft_ms);
    }
    for n in [1usize, 8, 16, 1, 8, 16] {
        let t = Instant::now(); let c = cpu();
        let mut rs = vec![];
        for i in 0..n { rs.push(e.chat(req(format!("{i} Tell me a very long story about the sea and a lighthouse, with many details."), 128)).await.unwrap()); }
        let mut total = 0; let mut per = 0.0;
        for r in rs { let (_, u) = r.collect().await.unwrap(); total += u.completion_tokens; per += u.tokens_per_s; }
        let s = t.elapsed().as_secs_f64();
        println!("  cpu {:.1} tok/s", total as f64 / (cpu()-c)); println!("{n} chats: {total} tok in {s:.2}s = {:.1} tok/s total (sum of rates {:.1})", total as f64 / s, per);
    }
    // second turn
    let mut msgs = vec![ChatMessage::new(Role::System, long.clone()), ChatMessage::new(Role::User, "Hello, who are you?")];
    for turn in 0..4 {
        let (text, u) = e.chat(ChatRequest { shared_messages: 1, session: Some(SessionKey::new("a")), sampling: samp(), max_tokens: 60, ..ChatRequest::new(msgs.clone()) }).await.unwrap().collect().await.unwrap();
        println!("turn {turn}: prompt {} cached {} ({:.1}%) ttft {:.0}ms {:.1} tok/s", u.prompt_tokens, u.cached_tokens, 100.0 * u.cached_tokens as f64 / u.prompt_tokens as f64, u.ttft_ms, u.tokens_per_s);
        msgs.push(ChatMessage::new(Role::Assistant, text));
        msgs.push(ChatMessage::new(Role::User, format!("And what about the harbour number {turn}?")));
    }
    let m = LlamaEmbedder::load(LlamaEmbedderConfig::new(format!("{dir}/minilm-l6-v2/model.gguf"), "m")).unwrap();
    let t = Instant::now();
    for i in 0..50 { m.embed(vec![format!("note number {i} about the sea, the wind and the rocks at night")], Purpose::Document, Priority::Live).await.unwrap(); }
    println!("embed single: {:.1} texts/s", 50.0 / t.elapsed().as_secs_f64());
    let texts: Vec<String> = (0..1024).map(|i| format!("note number {i} about the sea, the wind and the rocks at night")).collect();
    let t = Instant::now();
    m.embed(texts, Purpose::Document, Priority::Background).await.unwrap();
    println!("embed batch: {:.1} texts/s", 1024.0 / t.elapsed().as_secs_f64());
}
