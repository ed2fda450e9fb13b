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
const OFFLOAD_NOTICE: &str = "Whoever runs me has me learn on another machine: what is to be learnt goes there sealed, and is opened there. \
                         What is forgotten later is not taken in from there, but a copy that was left there is beyond my reach.";

/// What people also read if they consented before that.
const NOT_OFFLOADED: &str =
    "You agreed before that was so, and nothing of yours goes there unless you say `/hearth opt-in` once more.";

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
                return Ok(refused("In a place of many, what I learnt there is the admins' to take back.".into()));
            }
            "" | "status" | "opt-in" | "history" | "rollback" => {}
            _ => {
                return Ok(refused(
                    "`/hearth status`, `/hearth opt-in`, `/hearth opt-out`, `/hearth history` or `/hearth rollback`."
                        .into(),
                ));
            }
        }
        let Some(hearth) = self.learning.state.get().filter(|hearth| hearth.hearth.trainer.is_some()) else {
            return Ok(refused(
                "Whoever runs me has not let me learn in my weights: I remember, and that is all. (`hearth.enabled` in my settings.)"
                    .into(),
            ));
        };
        if let Some(why) = hearth.hearth.barred.get(at.platform).filter(|_| arguments != "history") {
            return Ok(refused(format!("I learn nothing in my weights from what is said here. {why}")));
        }
        match arguments {
            "opt-in" => self.opt_in(at, hearth.hearth.transport.is_some()).await,
            "history" => self.show_training_log(at, &home).await,
            "rollback" => match self.learning.roll_back(&home).await {
                Some(number) => Ok(done(format!(
                    "I let go of lesson {number}, and answer as I did before it. What it taught me I do not learn over again."
                ))),
                None => Ok(refused("There is nothing that I learnt here.".into())),
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
             Where others speak along, I learn from what rests on people alone who want it, too.\n\n\
             What is forgotten is unlearnt: I drop what rests on it and learn again without it. `/hearth opt-out` ends it and takes back \
             all that I learnt from you.{offload}"
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
                "I learn from you no more, and use nothing of what I learnt from you. Some of it could not be removed from disk yet: \
                 whoever runs me finds the reason in the log."
                    .into(),
            ));
        }
        Ok(done(if before {
            "I learn from you no more, here and everywhere. What I had learnt from you I dropped.".into()
        } else {
            "I learn nothing from you; it stays so.".into()
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
        if hearth.hearth.transport.is_some() {
            let not_theirs = consent.is_some_and(|consent| !consent.offload);
            let theirs = if not_theirs { format!(" {NOT_OFFLOADED}") } else { String::new() };
            text.push_str(&format!("- **Where:** {OFFLOAD_NOTICE}{theirs}\n"));
        }
        if let Some(since) = hearth.offloaded_since(home) {
            text.push_str(&format!(
                "- **Away:** a lesson waits to be learnt on that machine, since {}.\n",
                at.day(since)
            ));
        }
        text.push_str(&match hearth.lora_store.serving(&at.read_scope, &base_fingerprint) {
            Some(learnt) => format!(
                "- **Learnt:** lesson {} serves here, of {} exchanges, since {}; `/hearth rollback` takes it back.\n",
                learnt.number,
                learnt.said.len(),
                at.day(learnt.at)
            ),
            None => "- **Learnt:** nothing serves here.\n".into(),
        });
        if self.learning.is_held_up(hearth, home).await? {
            text.push_str(
                "- **Held up:** lessons go on from what serves here, and somebody whom that is learnt from did not agree to the other \
                 machine. Until they do, or it is taken back, I learn nothing more here.\n",
            );
        }
        let of = Arc::clone(hearth);
        if tokio::task::spawn_blocking(move || of.is_full()).await.unwrap_or(false) {
            text.push_str(
                "- **Full:** what was learnt takes all the room that whoever runs me gave it (`hearth.max_disk_mb`); earlier versions make \
                 way, and then I learn nothing more.\n",
            );
        }
        let waiting = self.learning.waiting_to_be_learnt(home).await?;
        let wanted = hearth.hearth.exchanges;
        text.push_str(&format!(
            "- **Waiting:** {waiting} exchanges that surprised me; from about {} on I learn {wanted} of them when I am tired or it is \
             night, and nobody talks.\n",
            wanted + wanted.div_ceil(8)
        ));
        Ok(done(text))
    }

    async fn show_training_log(&self, at: &CommandContext<'_>, home: &PersonaPlace) -> Result<CommandAnswer, Error> {
        let entries = self.learning.training_log_of(home).await?;
        if entries.is_empty() {
            return Ok(done("I have learnt nothing here yet.".into()));
        }
        let mut text = String::from("What I learnt here, the newest first:\n");
        for entry in entries.iter().rev().take(SHOWN) {
            let TrainingLogEntry { number, exchanges, learnt, .. } = entry;
            let result = match entry.outcome {
                TrainingOutcome::Serving => "kept".to_owned(),
                TrainingOutcome::Dropped(fault) => format!("dropped, for it {}", fault.in_words()),
                TrainingOutcome::Failed => {
                    "it could not be done; whoever runs me finds the reason in the log".to_owned()
                }
                TrainingOutcome::Offloaded => "laid out to be learnt on another machine".to_owned(),
                TrainingOutcome::Lost => "nothing of use came back from the other machine".to_owned(),
                TrainingOutcome::TooLittle => "too little of it was left to learn it again".to_owned(),
                TrainingOutcome::RolledBack => "taken back by command".to_owned(),
                TrainingOutcome::Withdrawn => "dropped, for something that it rested on is gone".to_owned(),
            };
            let loss = learnt.map_or_else(String::new, |it| format!(" (loss {:.2}, then {:.2})", it.before, it.after));
            text.push_str(&format!("- {}: lesson {number}, {exchanges} exchanges: {result}{loss}\n", at.day(entry.at)));
        }
        Ok(done(text))
    }
}
