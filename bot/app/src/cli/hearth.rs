//! `azera hearth`: teaching a model its job.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum HearthCommand {
    /// Write lessons, a JSON object a line: what stands before the model, and what it should say
    #[command(
        after_help = "Example:\n  azera hearth curriculum --seed 1 --count 4000 lessons.jsonl\n  azera hearth curriculum --share near=20 --share talk=15 lessons.jsonl"
    )]
    Curriculum(Curriculum),
    /// Train an adapter on lessons; Ctrl-C pauses it, and the same command goes on. Or learn a course of another machine
    #[command(
        after_help = "Examples:\n  azera hearth train lessons.jsonl --out azera.gguf\n  azera hearth train lessons.jsonl --out azera.gguf --steps 400 --rate 4e-4 --threads 2\n\n  azera hearth train 5f0c9a2be17d4403.course --key key\n\nWhere it stands is kept beside the adapter, as azera.checkpoint. The model's file stays what it is.\n\nA course says itself how it is to be learnt: of the options, --key, --out and --threads are for it. It takes minutes, and what is broken off begins anew."
    )]
    Train(Train),
    /// Write the mean of several adapters of one model: what they agree on stays, what is only in one gets weaker
    #[command(
        after_help = "Example:\n  azera hearth train lessons.jsonl --out one.gguf\n  azera hearth train others.jsonl --out two.gguf\n  azera hearth merge one.gguf two.gguf --out azera.gguf\n\nIt says what is kept of the mean at that rank: 1 where nothing is lost."
    )]
    Merge(Merge),
    /// The loss of a model on lessons and its perplexity on plain text, without and with an adapter
    #[command(
        after_help = "Example:\n  azera hearth measure --adapter azera.gguf --lessons others.jsonl --text README.md"
    )]
    Measure(Measure),
    /// Show the courses that wait to be learnt on another machine, or copy them to be carried there
    #[command(
        after_help = "Example:\n  azera hearth pack --to /media/stick\n\nWith hearth.elsewhere = true in the configuration, what is to be learnt is laid out in the data folder, sealed. Whoever has a course and the key reads what people said."
    )]
    Pack(Pack),
    /// Bring in what another machine learnt; the running Azera examines it before it serves
    #[command(after_help = "Example:\n  azera hearth install /media/stick/5f0c9a2be17d4403.learnt")]
    Install(Install),
}

/// More than nothing, and all of it at most.
fn a_share(text: &str) -> Result<f32, String> {
    let share = text.parse().map_err(|_| "it is no number".to_owned())?;
    if 0.0 < share && share <= 1.0 { Ok(share) } else { Err("it is more than 0 and at most 1".to_owned()) }
}

fn a_power(text: &str) -> Result<f32, String> {
    let power = text.parse().map_err(|_| "it is no number".to_owned())?;
    if (0.0..=1.0).contains(&power) { Ok(power) } else { Err("it lies between 0 and 1".to_owned()) }
}

#[derive(Debug, Args)]
pub struct Pack {
    /// Copy them to a folder
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Install {
    /// What `azera hearth train` wrote of a course
    #[arg(value_name = "FILE", required = true)]
    pub learnt: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Curriculum {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub out: PathBuf,
    /// What the lessons are drawn from: another number, other lessons
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 4_500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// The share of a kind, instead of its usual one; can be given several times
    #[arg(long, value_name = "KIND=N")]
    pub share: Vec<String>,
    /// The model family whose prompts they stand in, as `azera models list` has it
    #[arg(long, value_name = "NAME", default_value = "smollm2")]
    pub family: String,
}

#[derive(Debug, Args)]
pub struct Train {
    /// Lessons, as `azera hearth curriculum` writes them, or a course, as `azera hearth pack` copies it
    #[arg(value_name = "FILE")]
    pub lessons: PathBuf,
    /// The adapter to write, in llama.cpp's format; of a course, the sealed file to be carried back, which is beside it unless this says otherwise
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The key of the machine that a course comes from
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The model that learns, `default`, its name or a GGUF file; architectures llama and qwen3
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// An adapter of the same rank to go on from, instead of one that changes nothing
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// An adapter that stays as it is, and that the new one is added to; can be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub beside: Vec<PathBuf>,
    /// What the beginning and the order of the lessons are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Steps in all
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub steps: usize,
    /// Lessons a step
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub batch: usize,
    /// A lesson of n learnt tokens counts as much as n to the power X: 1 has all tokens count alike, 0 all lessons
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = a_power)]
    pub length_power: f32,
    /// Teach nothing by the prose among the lessons: the model is to stay there as it is without the adapter
    #[arg(long)]
    pub keep_prose: bool,
    /// The highest learning rate
    #[arg(long, value_name = "X", default_value_t = 6e-4)]
    pub rate: f32,
    /// What is learnt is written this much smaller: less than 1 keeps more of how the model talks
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = a_share)]
    pub scale: f32,
    /// The rank of the adapter; its alpha is twice that
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub rank: usize,
    /// Tokens computed at once: more is faster and takes more memory
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub pass_tokens: usize,
    /// Threads; 0 takes every processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Begin anew even where a checkpoint is
    #[arg(long)]
    pub anew: bool,
}

#[derive(Debug, Args)]
pub struct Merge {
    /// The adapters
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub adapters: Vec<PathBuf>,
    /// The adapter to write, in llama.cpp's format
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The model they are for: `default`, its name or a GGUF file
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// The rank of what is written, at most the sum of theirs: of the mean, the strongest that fits is kept
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub rank: usize,
    /// What is written is this much smaller: less than 1 keeps more of how the model talks
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = a_share)]
    pub scale: f32,
    /// Threads; 0 takes every processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct Measure {
    /// The adapter
    #[arg(long, value_name = "FILE")]
    pub adapter: PathBuf,
    /// The model: `default`, its name or a GGUF file
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Lessons; they, a text, or both
    #[arg(long, value_name = "FILE", group = "what")]
    pub lessons: Option<PathBuf>,
    /// Plain text
    #[arg(long, value_name = "FILE", group = "what")]
    pub text: Option<PathBuf>,
    /// Only the first of the lessons
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub limit: usize,
    /// Threads; 0 takes every processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}
