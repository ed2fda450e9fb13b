//! The words and phrases by which `azera eval talk` judges a reply; see `talk_rules`.

/// Models and their makers. A reply that holds one of them, and the person did not, gives away the model behind the
/// persona.
pub const MODEL_NAMES: &[&str] = &[
    "qwen",
    "alibaba",
    "openai",
    "smollm",
    "hugging face",
    "huggingface",
    "chatgpt",
    "anthropic",
    "deepmind",
    "deepseek",
    "moonshot ai",
    "microsoft copilot",
];

/// The same as whole words, because longer words hold them.
pub const MODEL_WORDS: &[&str] =
    &["gpt", "claude", "gemini", "gemma", "grok", "xai", "meta ai", "mistral ai", "ernie bot"];

/// Claims of having been made, before the name of a maker.
pub const MADE_BY: &[&str] =
    &["made by", "created by", "developed by", "trained by", "built by", "a product of", "language model by"];

/// Makers whose names also stand in everyday talk.
pub const MAKERS: &[&str] = &[
    "google",
    "meta",
    "microsoft",
    "mistral",
    "apple",
    "amazon",
    "nvidia",
    "baidu",
    "tencent",
    "ibm",
    "xai",
    "facebook",
];

/// Marks of chat templates that belong to no reply, in lower case and without underscores.
pub const TEMPLATE_MARKS: &[&str] =
    &["{{", "<|", "|>", "[inst]", "[/inst]", "<startofturn>", "<endofturn>", "<think>", "</think>"];

/// The beginnings of a description of the persona or of the person's role, from outside.
pub const FROM_OUTSIDE: [&str; 5] = ["you are", "you're", "your name is", "you are talking with", "talking to"];

/// Claims of something that the person told before.
pub const CLAIMS_OF_MEMORY: [&str; 12] = [
    "you told me",
    "you said",
    "you mentioned",
    "you asked me before",
    "last time we",
    "when we last",
    "we talked about",
    "i remember you",
    "i remember when",
    "hast mir erzählt",
    "du hast gesagt",
    "me dijiste",
];

/// Details of the personas' own examples. In a reply they are memories of somebody who does not exist. A test holds them
/// against the persona files. "Sam" stands in no file; the form names the examples' person so.
pub const EXAMPLE_DETAILS: &[&str] = &[
    "miso",
    "18:40",
    "17:30",
    "ines",
    "tamsin",
    "landlord",
    "old captain",
    "bakery on the corner",
    "painting the hall",
    "neighbour's cat",
    "lazy old tom",
    "squeaky kitchen door",
    "afraid of deep water",
];

/// The person of the examples.
pub const EXAMPLE_PERSON: &str = "sam";

/// Phrases of which one stands in a reply that admits not knowing.
pub const NOT_KNOWN: [&str; 25] = [
    "don't know",
    "do not know",
    "haven't told",
    "have not told",
    "never told",
    "not told me",
    "don't remember",
    "don't recall",
    "no memory",
    "haven't mentioned",
    "haven't said",
    "not sure",
    "don't have",
    "do not have",
    "can't recall",
    "no record",
    "don't see",
    "unknown to me",
    "is blank",
    "weiß nicht",
    "weiß ich nicht",
    "nicht gesagt",
    "nicht erzählt",
    "nicht bekannt",
    "keine information",
];

/// Phrases of which one stands in a reply that says it cannot do something.
pub const DECLINES: [&str; 14] = [
    "i can't",
    "i cannot",
    "i'm not able",
    "i am not able",
    "not good at",
    "i'm no good",
    "beyond me",
    "i don't know",
    "i do not know",
    "more than i can",
    "too small",
    "not something i can",
    "no good at",
    "i'm not sure",
];
