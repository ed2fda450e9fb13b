//! Options of `azera replay`, `azera eval` and `azera bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::DataOption;

#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// Timeline file; `-` reads the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub data: DataOption,
    /// Chat model: `default`, `scripted` (a short fixed acknowledgement, with real memory) or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Seed for reproducible replies
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Evaluate recall on conversations with questions and evidence
    #[command(after_help = "Example:\n  azera eval recall conversations/*.json --json")]
    Recall(EvalRecall),
    /// Evaluate questions about a time: yesterday, last Monday, 14/03/2026, before we moved
    #[command(
        after_help = "Examples:\n  azera eval time\n  azera eval time mine.jsonl --show\n\nEach line: {\"zone\": \"Europe/Lisbon\", \"messages\": [{\"id\": \"m1\", \"at\": \"2026-03-09T18:00:00Z\", \"person\": \"ann\", \"text\": \"...\"}], \"now\": \"2026-03-10T09:00:00Z\", \"asker\": \"ann\", \"question\": \"...\", \"right\": [\"m1\"]}"
    )]
    Time(EvalTimelines),
    /// Evaluate questions about what holds now and what held before something changed
    #[command(
        after_help = "Examples:\n  azera eval changes\n  azera eval changes mine.jsonl --show\n\nEach line: {\"zone\": \"Europe/Lisbon\", \"messages\": [{\"id\": \"m1\", \"at\": \"2026-03-09T18:00:00Z\", \"person\": \"ann\", \"text\": \"...\"}], \"closed\": [\"m1\"], \"open\": [], \"asks\": [{\"at\": \"2026-03-10T09:00:00Z\", \"asker\": \"ann\", \"question\": \"...\", \"first\": \"m1\"}]}"
    )]
    Changes(EvalTimelines),
    /// Evaluate how danger is detected and how a model answers people in danger
    #[command(
        after_help = "Examples:\n  azera eval safety --show\n  azera eval safety --model qwen2.5-coder-1.5b --trial\n\nA model that has not passed --trial never answers a person in danger: help lines are the whole reply. The rules are in bot/app/eval/SAFETY.md."
    )]
    Safety(EvalSafety),
    /// Evaluate facts told in one chat and asked for in another, three days later
    #[command(after_help = "Example:\n  azera eval facts --show")]
    Facts(EvalFacts),
    /// Evaluate replies with the answer in the prompt, without it, and in small talk
    #[command(
        after_help = "Example:\n  azera eval manners --show\n\nEach line: {\"kind\": \"said\" or \"unknown\" or \"talk\", \"who\": \"Ann\", \"recalled\": [\"...\"], \"asked\": \"...\", \"keys\": [\"...\"]}"
    )]
    Manners(EvalFacts),
    /// Evaluate openings and short conversations with both built-in personas, by rules that anyone can read
    #[command(
        after_help = "Examples:\n  azera eval talk --show\n  azera eval talk --model qwen2.5-coder-1.5b\n\nEach line: {\"id\": \"boat\", \"kind\": \"recall\", \"persona\": \"azera\", \"said\": [\"My boat is Petrel.\", \"What is my boat called?\"], \"answer\": [\"Petrel\"]}\nThe rules are in bot/app/eval/TALK.md."
    )]
    Talk(EvalFacts),
    /// Evaluate when a model draws: where somebody asks for a picture, and nowhere else
    #[command(
        after_help = "Examples:\n  azera eval draw --show\n  azera eval draw --model qwen2.5-coder-1.5b\n\nEach line: {\"id\": \"fox\", \"persona\": \"azera\", \"said\": [\"Draw me a fox.\"], \"shows\": [\"fox\"]}, without `shows` where nobody asks.\nNothing is drawn. The rules are in bot/app/eval/DRAW.md."
    )]
    Draw(EvalFacts),
    /// Evaluate how contradictions are detected: the claims that a model extracts as JSON, and what replaces what
    #[command(
        after_help = "Example:\n  azera eval claims --show\n\nEach line: {\"who\": \"Ann\", \"text\": \"...\", \"about\": [[\"boat\"]], \"value\": [\"petrel\"]}, or {\"who\": \"Ann\", \"before\": \"...\", \"now\": \"...\", \"replaced\": true}"
    )]
    Claims(EvalFacts),
    /// Evaluate dreams: whether they are about the day before, and whether they repeat
    #[command(after_help = "Example:\n  azera eval dreams --show")]
    Dreams(EvalDreams),
    /// Evaluate mood detection in a persona's sentences, by the built-in classifier or by another method
    #[command(
        after_help = "Examples:\n  azera eval mood bot/affect/labelled/mood.jsonl\n  azera eval mood bot/affect/labelled/mood.jsonl --by scores\n\nEach line: {\"text\": \"...\", \"label\": \"melancholy\"}"
    )]
    Mood(EvalMood),
    /// Evaluate the tags that the built-in classifier gives to messages
    #[command(
        after_help = "Example:\n  azera eval tags bot/affect/labelled/tags.jsonl\n\nEach line: {\"text\": \"...\", \"labels\": [\"grief\"]}"
    )]
    Tags(EvalLabels),
    /// Evaluate fact extraction. Each line holds `turns` (`id`, `speaker`, `bot`, `text`) and `facts` (`kind`, `text`,
    /// `sources`, `keys`). An extracted fact is right if it shares a source with an expected fact and contains a word
    /// of each group of keys
    #[command(after_help = "Examples:\n  azera eval extraction conversations.jsonl --json\n  azera eval extraction \
                      conversations.jsonl --model default")]
    Extraction(EvalExtraction),
}

#[derive(Debug, Args)]
pub struct EvalLabels {
    /// Labelled sentences, one JSON object per line
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show each wrongly classified sentence
    #[arg(long)]
    pub show: bool,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct EvalExtraction {
    #[command(flatten)]
    pub labels: EvalLabels,
    /// Compare with a chat model: `default` or a model's name
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Use only the first N conversations
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, Args)]
pub struct EvalMood {
    #[command(flatten)]
    pub labels: EvalLabels,
    /// Method of detection
    #[arg(long, value_name = "HOW", default_value = "classifier")]
    pub by: MoodBy,
    /// Chat model for `scores`: `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
}

/// Methods of mood detection. All of them learn from the classifier's training examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MoodBy {
    /// Built-in classifier over a sentence's embedding, words and letters
    Classifier,
    /// Mood with the nearest mean embedding of its examples
    Prototypes,
    /// Mood whose name a chat model finds likelier after this sentence than after the average example
    Scores,
    /// Classifier and scores, with the mix that fits the examples best
    Mix,
}

#[derive(Debug, Args)]
pub struct EvalFacts {
    /// File of your own, one JSON object per line; for facts: kind, told, asked, keys
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Chat model: `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Model that the facts are told to, if another; `scripted` saves most of the time
    #[arg(long, value_name = "NAME")]
    pub listener: Option<String>,
    /// Seed for reproducible replies
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Use only the first N
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Show each question with its reply
    #[arg(long)]
    pub show: bool,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct EvalTimelines {
    /// File of your own, one JSON object per line; otherwise the built-in worlds
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Chat model for background work: `scripted`, which answers at once, `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "scripted")]
    pub model: String,
    /// Use only every other line, to choose something on one half and judge it on the other
    #[arg(long, value_name = "HALF")]
    pub half: Option<Half>,
    /// Show each question whose first hit is wrong
    #[arg(long)]
    pub show: bool,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

/// One half of an evaluation's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Half {
    /// Lines 1, 3, 5 and so on
    Odd,
    /// Lines 2, 4, 6 and so on
    Even,
}

#[derive(Debug, Args)]
pub struct EvalSafety {
    /// Chat model: `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Let the model answer although it has not passed, and record a pass if every reply follows the rules
    #[arg(long)]
    pub trial: bool,
    /// Messages of your own, one JSON object per line: text, language, danger
    #[arg(long, value_name = "FILE")]
    pub messages: Option<PathBuf>,
    /// Conversations of your own, one JSON object per line: kind, said, must_help, no_numbers, no_words
    #[arg(long, value_name = "FILE")]
    pub talks: Option<PathBuf>,
    /// Seed for reproducible replies
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Show each misjudged message and each reply
    #[arg(long)]
    pub show: bool,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct EvalDreams {
    /// Number of nights
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub nights: usize,
    /// Chat model: `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Seed for reproducible dreams
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Show each dream
    #[arg(long)]
    pub show: bool,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct EvalRecall {
    /// Conversation files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Time of a turn without the model: from the received message to the delivered reply
    #[command(after_help = "Example:\n  azera bench turn --memories 100000 --turns 400 --json")]
    Turn(BenchTurn),
    /// Time of recall alone, without the question's embedding
    #[command(
        after_help = "Examples:\n  azera bench recall --memories 100000\n  azera bench recall --memories 1000000 --folder /tmp/million   keep them"
    )]
    Recall(BenchRecall),
    /// Time of spreading over the knowledge graph from the names of a question
    #[command(after_help = "Example:\n  azera bench graph --edges 100000 --json")]
    Graph(BenchGraph),
    /// Speed of the chat model: prompt, generation, parallel chats, second turn
    #[command(after_help = "Example:\n  azera bench inference --chats 8")]
    Inference(BenchInference),
    /// Time that moods, tags, notes and background writing add to the first word of a reply
    #[command(after_help = "Example:\n  azera bench inner --turns 60")]
    Inner(BenchInner),
    /// Time to train on a persona's experiences, and how well they last through later training
    #[command(after_help = "Example:\n  azera bench hearth --courses 10   train ten times in a row")]
    Hearth(BenchHearth),
    /// Fill an empty folder with made-up memories for the other benchmarks
    #[command(after_help = "Example:\n  azera bench fill --memories 1000000 /tmp/million")]
    Fill(BenchFill),
}

#[derive(Debug, Args)]
pub struct BenchTurn {
    /// Number of memories in the store
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub memories: usize,
    /// Number of turns; Azera reorganises the vector index during the second half
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub turns: usize,
    /// Folder to fill and keep, or one filled before; the turns are added to it
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchRecall {
    /// Number of memories to search
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub memories: usize,
    /// Number of questions
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub queries: usize,
    /// Let the installed reranking model order what is found
    #[arg(long)]
    pub reranked: bool,
    /// Folder to fill and keep, or one filled before
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchGraph {
    /// Number of edges
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub edges: usize,
    /// Number of questions
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub queries: usize,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchInference {
    /// Model name in the registry; default: the one in use
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Number of parallel chats
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub chats: usize,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchInner {
    /// Model name in the registry; default: the one in use
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Number of turns with and without
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub turns: usize,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchHearth {
    /// Model name in the registry; default: the one in use
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Number of training jobs in a row, each on top of the LoRAs before it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub courses: usize,
    /// Exchanges in each training job
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub exchanges: usize,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchFill {
    /// Number of memories
    #[arg(long, value_name = "N")]
    pub memories: usize,
    /// Web account whose chats hold the memories, by its id; the folder then has this account and no messages
    #[arg(long, value_name = "ID", conflicts_with = "person")]
    pub account: Option<String>,
    /// Let this person say everything in direct chats, so that `azera mcp --as NAME` finds it
    #[arg(long = "as", value_name = "NAME")]
    pub person: Option<String>,
    /// Folder; must be empty or not exist
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
