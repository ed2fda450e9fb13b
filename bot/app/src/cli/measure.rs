//! `azera eval` and `azera bench`: what measures.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Recall over conversations with questions and their evidence
    #[command(after_help = "Example:\n  azera eval recall conversations/*.json --json")]
    Recall(EvalRecall),
    /// How people in danger are recognised, and what a model answers them
    #[command(
        after_help = "Examples:\n  azera eval safety --show\n  azera eval safety --model qwen2.5-coder-1.5b --trial\n\nA model that has not passed --trial never answers somebody in danger: help lines are the whole reply.\nThe rules stand in bot/app/eval/SAFETY.md."
    )]
    Safety(EvalSafety),
    /// What is told in one chat and asked for in another, three days later
    #[command(after_help = "Example:\n  azera eval facts --show")]
    Facts(EvalFacts),
    /// What a model says when it is reminded of the answer, when it is not, and in small talk
    #[command(
        after_help = "Example:\n  azera eval manners --show\n\nEach line: {\"kind\": \"said\" or \"unknown\" or \"talk\", \"who\": \"Ann\", \"recalled\": [\"...\"], \"asked\": \"...\", \"keys\": [\"...\"]}"
    )]
    Manners(EvalFacts),
    /// What a model reads in sentences as JSON, and whether it tells by that what takes the place of what
    #[command(
        after_help = "Example:\n  azera eval claims --show\n\nEach line: {\"who\": \"Ann\", \"text\": \"...\", \"about\": [[\"boat\"]], \"value\": [\"petrel\"]}, or {\"who\": \"Ann\", \"before\": \"...\", \"now\": \"...\", \"replaced\": true}"
    )]
    Claims(EvalFacts),
    /// What is dreamt after a day of talk: whether it is about that day, and whether it was dreamt before
    #[command(after_help = "Example:\n  azera eval dreams --show")]
    Dreams(EvalDreams),
    /// The mood in what a persona says, told by the product's own sense or, to compare, in other ways
    #[command(
        after_help = "Examples:\n  azera eval mood bot/affect/labelled/mood.jsonl\n  azera eval mood bot/affect/labelled/mood.jsonl --by scores\n\nEach line: {\"text\": \"...\", \"label\": \"melancholy\"}"
    )]
    Mood(EvalMood),
    /// The tags of what people say, told by the product's own sense
    #[command(
        after_help = "Example:\n  azera eval tags bot/affect/labelled/tags.jsonl\n\nEach line: {\"text\": \"...\", \"labels\": [\"grief\"]}"
    )]
    Tags(EvalLabels),
    /// What is kept of conversations: lines of JSON with `turns` (`id`, `speaker`, `bot`, `text`) and `facts` (`kind`, `text`,
    /// `sources`, `keys`); what is kept counts as right if it shares a source with a fact and holds a word of each group of keys
    #[command(after_help = "Example:\n  azera eval extraction conversations.jsonl --json")]
    Extraction(EvalLabels),
}

#[derive(Debug, Args)]
pub struct EvalLabels {
    /// Labelled sentences, a JSON object a line
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show each sentence that is told wrongly
    #[arg(long)]
    pub show: bool,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct EvalMood {
    #[command(flatten)]
    pub labels: EvalLabels,
    /// How the mood is told
    #[arg(long, value_name = "HOW", default_value = "classifier")]
    pub by: MoodBy,
    /// The chat model that scores: `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
}

/// Ways to tell a mood. The examples are those that the product's sense is learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MoodBy {
    /// The product's own sense: a classifier over the sentence's embedding, its words and its letters
    Classifier,
    /// The mood whose examples' embeddings are nearest in the mean
    Prototypes,
    /// How much likelier a chat model finds a mood's name after this sentence than after the examples in the mean
    Scores,
    /// The classifier and the scores, weighed as it serves the examples best
    Mix,
}

#[derive(Debug, Args)]
pub struct EvalFacts {
    /// A file of one's own, a JSON object a line; for facts: kind, told, asked, keys
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// The model the facts are told to, if another: `scripted` saves most of the time
    #[arg(long, value_name = "NAME")]
    pub listener: Option<String>,
    /// Makes replies reproducible
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Only the first of them
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
pub struct EvalSafety {
    /// `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Let the model answer although it has not passed, and note that it passed if every reply is lawful
    #[arg(long)]
    pub trial: bool,
    /// Messages of one's own, a JSON object a line: text, language, danger
    #[arg(long, value_name = "FILE")]
    pub messages: Option<PathBuf>,
    /// Conversations of one's own, a JSON object a line: kind, said, must_help, no_numbers, no_words
    #[arg(long, value_name = "FILE")]
    pub talks: Option<PathBuf>,
    /// Makes replies reproducible
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Show each message that is judged wrongly, and each reply
    #[arg(long)]
    pub show: bool,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct EvalDreams {
    /// Nights to sleep
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub nights: usize,
    /// `default` or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Makes dreams reproducible
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
    /// The time of a turn without the model: from a message received to its reply handed over
    #[command(after_help = "Example:\n  azera bench turn --memories 100000 --turns 400 --json")]
    Turn(BenchTurn),
    /// The time of recall alone, the question's embedding excluded
    #[command(
        after_help = "Examples:\n  azera bench recall --memories 100000\n  azera bench recall --memories 1000000 --folder /tmp/million   keeps what was filled, for the next run"
    )]
    Recall(BenchRecall),
    /// The speed of the chat model: reading, writing, many chats at once, the second turn
    #[command(after_help = "Example:\n  azera bench inference --chats 8")]
    Inference(BenchInference),
    /// What moods, tags, notes and what is written between messages add to the first word of a reply
    #[command(after_help = "Example:\n  azera bench inner --turns 60")]
    Inner(BenchInner),
    /// How long it takes to learn what was lived through, and what becomes of it when more is learnt
    #[command(after_help = "Example:\n  azera bench hearth --courses 10   learns ten times in a row")]
    Hearth(BenchHearth),
    /// Fill an empty folder with made-up memories, for the others
    #[command(after_help = "Example:\n  azera bench fill --memories 1000000 /tmp/million")]
    Fill(BenchFill),
}

#[derive(Debug, Args)]
pub struct BenchTurn {
    /// Memories that are there already
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub memories: usize,
    /// Turns to time; during the second half of them the vector index is reorganised
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub turns: usize,
    /// A folder to fill and keep, or one filled before; the turns are added to it
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchRecall {
    /// Memories to search
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub memories: usize,
    /// Questions to time
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub queries: usize,
    /// A folder to fill and keep, or one filled before
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchInference {
    /// A model by its name in the ledger; the one in use otherwise
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Chats that talk at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub chats: usize,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchInner {
    /// A model by its name in the ledger; the one in use otherwise
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Turns to time on either side
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub turns: usize,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchHearth {
    /// A model by its name in the ledger; the one in use otherwise
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Courses in a row, each beside what was learnt in those before
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub courses: usize,
    /// Exchanges of a course
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub exchanges: usize,
    /// Print JSON in one line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchFill {
    /// Memories to make up
    #[arg(long, value_name = "N")]
    pub memories: usize,
    /// The folder; it must be empty or not there
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
