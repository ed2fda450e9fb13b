//! `azera bench`: measures the product's speed on made-up communities, through the product's own code.
//!
//! Each module is one subcommand, except `crowd`, which makes the communities up, and `loras`, a part of `inference`.

mod crowd;
mod fill;
mod graph;
mod inference;
mod inner;
mod loras;
mod recall;
mod turn;

use std::path::Path;
use std::process::ExitCode;

use azera_config::Config;

use crate::cli::BenchCommand;
use crate::hearth;

/// Runs a benchmark. `config_file` goes to the process that fills a folder.
pub async fn run(config: &Config, config_file: Option<&Path>, command: BenchCommand) -> anyhow::Result<ExitCode> {
    let (report, json) = match command {
        BenchCommand::Turn(options) => (turn::turn(config, config_file, &options).await?, options.json),
        BenchCommand::Recall(options) => (recall::recall(config, config_file, &options).await?, options.json),
        BenchCommand::Graph(options) => (graph::graph(config, &options).await?, options.json),
        BenchCommand::Inference(options) => (inference::inference(config, &options).await?, options.json),
        BenchCommand::Inner(options) => (inner::inner(config, &options).await?, options.json),
        BenchCommand::Hearth(options) => (hearth::bench(config, &options).await?, options.json),
        BenchCommand::Fill(options) => (fill::fill(config, &options).await?, true),
    };
    println!("{}", if json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

/// Rounds to three decimals; more digits are noise.
pub fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
