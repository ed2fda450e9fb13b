//! `/hearth`: whether a persona is trained in its weights, on whom, and with what result.

use std::sync::Arc;

use azera_adapter::CommandAnswer;
use azera_memory::TrainingConsent;

use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::background::Background;
use crate::background::PersonaPlace;
use crate::commands::Commands;
use crate::error::Error;
use crate::hearth::{HearthState, TrainingLogEntry, TrainingOutcome};

/// What people read where another machine trains.
const OFFLOAD_NOTICE: &str = "I learn on another machine. My operator carries the training data there, encrypted. \
                         If you forget something later, I reject what was learned from it, but I cannot delete a copy on that machine.";

/// What people also read if they consented before that.
const NOT_OFFLOADED: &str =
    "You agreed to local training only. Your data stays here unless you say `/hearth opt-in` again.";

/// Number of log entries shown.
const SHOWN: usize = 10;

impl Commands {
    pub(super) async fn hearth_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        match arguments {
            // Opting out works everywhere, even where nothing is trained.
            "opt-out" => return self.opt_out(at).await,
            "rollback" if !may_configure_place(at) => {
                return Ok(refused("Only admins can undo what I learned in a shared place.".into()));
            }
            "" | "status" | "opt-in" | "history" | "rollback" => {}
            _ => {
                return Ok(refused(
                    "`/hearth status`, `/hearth opt-in`, `/hearth opt-out`, `/hearth history` or `/hearth rollback`."
                        .into(),
                ));
            }
        }
        let Some(hearth) = self.learning.state.get().filter(|hearth| hearth.setup.trainer.is_some()) else {
            return Ok(refused("Training is off here (`hearth.enabled`). I still remember what you say.".into()));
        };
        if let Some(why) = hearth.setup.barred.get(at.platform).filter(|_| arguments != "history") {
            return Ok(refused(format!("I learn nothing in my weights from what is said here. {why}")));
        }
        match arguments {
            "opt-in" => self.opt_in(at, hearth.setup.transport.is_some()).await,
            "history" => self.show_training_log(at, &home).await,
            "rollback" => match self.learning.roll_back(&home).await {
                Some(number) => Ok(done(format!(
                    "I removed training {number} and answer as I did before it. I will not learn the same things again."
                ))),
                None => Ok(refused("I have learned nothing here.".into())),
            },
            _ => self.show_hearth(at, hearth, &home).await,
        }
    }

    async fn opt_in(&self, at: &CommandContext<'_>, offload: bool) -> Result<CommandAnswer, Error> {
        let (person, now) = (at.line.person.clone(), self.services.clock.now());
        let since = self
            .services
            .blocking(move |memory| {
                // Consent counts from the first time, so that what was trained since then stays.
                let before = memory.consent().training(&person)?;
                let since = before.map(|before| before.since).filter(|since| *since <= now).unwrap_or(now);
                let offload = offload || before.is_some_and(|before| before.offload);
                memory.consent().set_training(&person, Some(TrainingConsent { since, offload }))?;
                Ok(since)
            })
            .await?;
        let from = if since == now { "From now on".to_owned() } else { format!("Since {}", at.day(since)) };
        let offload = if offload { format!("\n\n{OFFLOAD_NOTICE}") } else { String::new() };
        Ok(done(format!(
            "{from}, what you say to me may change how I speak, slowly and at rest. What I learn in a place stays in that place: \
             from our direct messages only in those, from a private channel only there, from the public ones of a server only in those. \
             Where several people talk, I learn only from messages whose authors all opted in.\n\n\
             If you forget something, I remove what I learned from it and train again without it. `/hearth opt-out` ends it and removes \
             everything that I learned from you.{offload}"
        )))
    }

    async fn opt_out(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let person = at.line.person.clone();
        let before = self
            .services
            .blocking(move |memory| {
                let before = memory.consent().training(&person)?.is_some();
                memory.consent().set_training(&person, None)?;
                Ok(before)
            })
            .await?;
        let all_gone = self.learning.withdraw_unfounded(None).await;
        if !all_gone {
            return Ok(refused(
                "I no longer learn from you, and I no longer use what I learned from you. Some files could not be deleted yet; \
                 the log says why."
                    .into(),
            ));
        }
        Ok(done(if before {
            "I no longer learn from you, here and everywhere. I removed what I had learned from you.".into()
        } else {
            "I learn nothing from you: you had not opted in.".into()
        }))
    }

    async fn show_hearth(
        &self,
        at: &CommandContext<'_>,
        hearth: &Arc<HearthState>,
        home: &PersonaPlace,
    ) -> Result<CommandAnswer, Error> {
        let person = at.line.person.clone();
        let consent = self.services.blocking(move |memory| memory.consent().training(&person)).await?;
        let mut text = String::from(if consent.is_some() {
            "- **You** want me to learn from what you say; `/hearth opt-out` ends that.\n"
        } else {
            "- **You** did not say that I may learn from what you say, so I do not; `/hearth opt-in` says so.\n"
        });
        let model = self.services.model().info().name.clone();
        let Some(base_fingerprint) = hearth.base_fingerprint(&model) else {
            text.push_str(&format!("- **Learning:** the model that answers, {model}, cannot learn here.\n"));
            return Ok(done(text));
        };
        if hearth.setup.transport.is_some() {
            let not_theirs = consent.is_some_and(|consent| !consent.offload);
            let theirs = if not_theirs { format!(" {NOT_OFFLOADED}") } else { String::new() };
            text.push_str(&format!("- **Where:** {OFFLOAD_NOTICE}{theirs}\n"));
        }
        if let Some(since) = hearth.offloaded_since(home) {
            text.push_str(&format!(
                "- **Away:** a training job has waited for that machine since {}.\n",
                at.day(since)
            ));
        }
        text.push_str(&match hearth.lora_store.serving(&at.read_scope, &base_fingerprint) {
            Some(learned) => format!(
                "- **Learned:** training {} with {} exchanges has been in use here since {}; `/hearth rollback` undoes it.\n",
                learned.number,
                learned.said.len(),
                at.day(learned.at)
            ),
            None => "- **Learned:** nothing yet.\n".into(),
        });
        if self.learning.is_held_up(hearth, home).await? {
            text.push_str(
                "- **Held up:** what I learned here includes data of somebody who agreed to local training only. I learn nothing more here \
                 until they opt in again, or until `/hearth rollback` removes it.\n",
            );
        }
        let of = Arc::clone(hearth);
        if tokio::task::spawn_blocking(move || of.is_full()).await.unwrap_or(false) {
            text.push_str(
                "- **Full:** what I learned takes all the room that `hearth.max_disk_mb` allows. I delete earlier versions first, \
                 and then I stop learning.\n",
            );
        }
        let waiting = self.learning.waiting_to_be_learned(home).await?;
        let wanted = hearth.setup.exchanges;
        text.push_str(&format!(
            "- **Waiting:** {waiting} exchanges that surprised me. I train on {wanted} of them once there are about {}, when I am tired or it is \
             night, and nobody talks.\n",
            wanted + wanted.div_ceil(8)
        ));
        Ok(done(text))
    }

    async fn show_training_log(&self, at: &CommandContext<'_>, home: &PersonaPlace) -> Result<CommandAnswer, Error> {
        let entries = self.learning.training_log_of(home).await?;
        if entries.is_empty() {
            return Ok(done("I have learned nothing here yet.".into()));
        }
        let mut text = String::from("What I learned here, the newest first:\n");
        for entry in entries.iter().rev().take(SHOWN) {
            let TrainingLogEntry { number, exchanges, learned, .. } = entry;
            let result = match entry.outcome {
                TrainingOutcome::Serving => "kept".to_owned(),
                TrainingOutcome::Dropped(fault) => format!("dropped, because it {}", fault.in_words()),
                TrainingOutcome::Failed => "it failed; the log says why".to_owned(),
                TrainingOutcome::Offloaded => "waits for another machine".to_owned(),
                TrainingOutcome::Lost => "nothing of use came back from the other machine".to_owned(),
                TrainingOutcome::TooLittle => "too little of it was left to learn it again".to_owned(),
                TrainingOutcome::RolledBack => "taken back by command".to_owned(),
                TrainingOutcome::Withdrawn => "dropped, because something that it rested on was forgotten".to_owned(),
            };
            let loss = learned.map_or_else(String::new, |it| format!(" (loss {:.2}, then {:.2})", it.before, it.after));
            text.push_str(&format!(
                "- {}: training {number}, {exchanges} exchanges: {result}{loss}\n",
                at.day(entry.at)
            ));
        }
        Ok(done(text))
    }
}
