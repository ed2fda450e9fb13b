//! `azera eval`: evaluations that anyone can run again.
//!
//! Each module is one subcommand. `world` sets up the simulated platform for them, and `timelines` lets people live
//! through days before they ask.

mod changes;
mod claims;
mod draw;
mod dreams;
mod extraction;
mod facts;
mod labels;
mod manners;
mod moods;
mod recall;
mod safety;
mod safety_rules;
mod talk;
mod talk_language;
mod talk_phrases;
mod talk_rules;
mod time;
mod timelines;
pub mod world;

use std::process::ExitCode;

use azera_config::Config;

use crate::cli::EvalCommand;

/// Runs an evaluation.
pub async fn run(config: &Config, command: EvalCommand) -> anyhow::Result<ExitCode> {
    match command {
        EvalCommand::Recall(options) => recall::recall(config, options).await,
        EvalCommand::Time(options) => time::time(config, options).await,
        EvalCommand::Changes(options) => changes::changes(config, options).await,
        EvalCommand::Mood(options) => moods::mood(config, options).await,
        EvalCommand::Tags(options) => labels::tags(config, options).await,
        EvalCommand::Extraction(options) => extraction::extraction(config, options).await,
        EvalCommand::Dreams(options) => dreams::dreams(config, options).await,
        EvalCommand::Manners(options) => manners::manners(config, options).await,
        EvalCommand::Talk(options) => talk::talk(config, options).await,
        EvalCommand::Draw(options) => draw::draw(config, options).await,
        EvalCommand::Claims(options) => claims::claims(config, options).await,
        EvalCommand::Safety(options) => safety::safety(config, options).await,
        EvalCommand::Facts(options) => facts::facts(config, options).await,
    }
}
