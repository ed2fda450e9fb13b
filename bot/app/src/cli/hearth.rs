//! Options of `azera hearth`: writing training examples, training LoRAs, merging and measuring them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum HearthCommand {
    /// Write training examples as JSON lines: a prompt and the reply to learn
    #[command(
        after_help = "Example:\n  azera hearth curriculum --seed 1 --count 4000 lessons.jsonl\n  azera hearth curriculum --share near=20 --share talk=15 lessons.jsonl"
    )]
    Curriculum(Curriculum),
    /// Train a LoRA on examples, or run a training job from another machine; Ctrl-C pauses, the same command resumes
    #[command(
        after_help = "Examples:\n  azera hearth train lessons.jsonl --out azera.gguf\n  azera hearth train lessons.jsonl --out azera.gguf --steps 400 --rate 4e-4\n\n  azera hearth train 5f0c9a2be17d4403.course --key key\n\nTraining saves its state beside the LoRA, as azera.checkpoint. It never changes the model's file.\n\nA training job (.course) brings its own settings: only --key, --out and --threads apply to it. It takes minutes, and an interrupted one starts from the beginning."
    )]
    Train(Train),
    /// Merge several LoRAs of one model into their mean: common changes stay, changes in only one become weaker
    #[command(
        after_help = "Example:\n  azera hearth train lessons.jsonl --out one.gguf\n  azera hearth train others.jsonl --out two.gguf\n  azera hearth merge one.gguf two.gguf --out azera.gguf\n\nPrints how much of the mean the rank keeps: 1 means that nothing is lost."
    )]
    Merge(Merge),
    /// Measure a model's loss on examples and its perplexity on plain text, without and with a LoRA
    #[command(after_help = "Example:\n  azera hearth measure --lora a.gguf --lessons others.jsonl --text README.md")]
    Measure(Measure),
    /// List the training jobs that wait for another machine, or copy them to a folder
    #[command(
        after_help = "Example:\n  azera hearth pack --to /media/stick\n\nWith hearth.elsewhere = true in the configuration, Azera puts sealed training jobs into the data folder. Anyone who has a job and the key can read the messages in it."
    )]
    Pack(Pack),
    /// Import the result of another machine; the running Azera evaluates the LoRA before it uses it
    #[command(after_help = "Example:\n  azera hearth install /media/stick/5f0c9a2be17d4403.learnt")]
    Install(Install),
}

/// Parses a number above 0 and at most 1.
fn parse_share(text: &str) -> Result<f32, String> {
    let share = text.parse().map_err(|_| "not a number".to_owned())?;
    if 0.0 < share && share <= 1.0 { Ok(share) } else { Err("must be greater than 0 and at most 1".to_owned()) }
}

fn parse_power(text: &str) -> Result<f32, String> {
    let power = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&power) { Ok(power) } else { Err("must be between 0 and 1".to_owned()) }
}

#[derive(Debug, Args)]
pub struct Pack {
    /// Copy the jobs to this folder
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Install {
    /// Files that `azera hearth train` wrote for a training job
    #[arg(value_name = "FILE", required = true)]
    pub learned: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Curriculum {
    /// File to write
    #[arg(value_name = "FILE")]
    pub out: PathBuf,
    /// Seed of the examples; another seed gives other examples
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of examples
    #[arg(long, value_name = "N", default_value_t = 4_500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// Share of one kind instead of its default; can be repeated
    #[arg(long, value_name = "KIND=N")]
    pub share: Vec<String>,
    /// Model family whose prompt format to use, as in `azera models list`
    #[arg(long, value_name = "NAME", default_value = "smollm2")]
    pub family: String,
    /// Millions of weights of the model, on which its prompt format depends, too; without it, the usual size of the family
    #[arg(long, value_name = "MILLIONS")]
    pub weights: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Train {
    /// Training examples from `azera hearth curriculum`, or a training job from `azera hearth pack`
    #[arg(value_name = "FILE")]
    pub lessons: PathBuf,
    /// LoRA to write, in llama.cpp's format; for a training job, the sealed result (default: beside the job)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Key file of the machine that the training job comes from
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Model to train: `default`, its name or a GGUF file; architectures llama, qwen2 and qwen3
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// LoRA of the same rank to continue from, instead of starting from zero
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Frozen LoRA that the new one is trained on top of; can be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub beside: Vec<PathBuf>,
    /// Seed of the initial weights and of the order of the examples
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Total number of steps
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub steps: usize,
    /// Examples per step
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub batch: usize,
    /// Weight of an example with n trained tokens is n^X: with 1 all tokens count alike, with 0 all examples
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_power)]
    pub length_power: f32,
    /// Keep prose as it is: on the prose among the examples, train towards the model without the LoRA
    #[arg(long)]
    pub keep_prose: bool,
    /// Peak learning rate
    #[arg(long, value_name = "X", default_value_t = 6e-4)]
    pub rate: f32,
    /// Scale of the written weights: less than 1 keeps more of the model's own style
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_share)]
    pub scale: f32,
    /// Rank of the LoRA; alpha is twice the rank
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub rank: usize,
    /// Tokens computed at once: more is faster and takes more memory
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub pass_tokens: usize,
    /// Number of threads; 0 uses every processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Start from the beginning even if there is a checkpoint
    #[arg(long)]
    pub anew: bool,
}

#[derive(Debug, Args)]
pub struct Merge {
    /// LoRAs to merge
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub loras: Vec<PathBuf>,
    /// LoRA to write, in llama.cpp's format
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Model that they belong to: `default`, its name or a GGUF file
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Rank of the result, at most the sum of the inputs' ranks; keeps the strongest part of the mean
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub rank: usize,
    /// Scale of the written weights: less than 1 keeps more of the model's own style
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_share)]
    pub scale: f32,
    /// Number of threads; 0 uses every processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct Measure {
    /// LoRA to measure
    #[arg(long, alias = "adapter", value_name = "FILE")]
    pub lora: PathBuf,
    /// Model: `default`, its name or a GGUF file
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Training examples; give these, a text, or both
    #[arg(long, value_name = "FILE", group = "what")]
    pub lessons: Option<PathBuf>,
    /// Plain text file
    #[arg(long, value_name = "FILE", group = "what")]
    pub text: Option<PathBuf>,
    /// Use only the first N examples
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub limit: usize,
    /// Number of threads; 0 uses every processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}
