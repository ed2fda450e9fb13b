//! `/privacy`: what is stored of what is said here, who may be shown it, and how it is forgotten.

use azera_adapter::{Access, CommandAnswer};
use azera_memory::{RetentionPreference, TrainingConsent};
use azera_types::{PlaceKind, PlatformId, Scope};

use super::{CommandContext, done, refused};
use crate::background::Background;
use crate::commands::Commands;
use crate::error::Error;

impl Commands {
    pub(super) async fn privacy_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let wanted = match arguments {
            "" => return self.show_privacy(at).await,
            "addressed" => RetentionPreference::Addressed,
            "everything" => RetentionPreference::Everything,
            _ => return Ok(refused("`/privacy`, `/privacy addressed` or `/privacy everything`.".into())),
        };
        let person = at.line.person.clone();
        self.services.blocking(move |memory| memory.consent().set_retention(&person, wanted)).await?;
        Ok(done(match wanted {
            RetentionPreference::Addressed => {
                "From now on I keep only what you say to me, in every place. I forget at once what you say to others. \
                 Your earlier messages stay until you forget them with `/forget me`."
                    .into()
            }
            RetentionPreference::Everything => {
                "From now on I also keep what you say to others where I can read it.".into()
            }
        }))
    }

    async fn show_privacy(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let (read_scope, person, scope) = (at.read_scope.clone(), at.line.person.clone(), at.place.scope());
        let (stats, salient, keeping, consent) = self
            .services
            .blocking(move |memory| {
                let salient = memory.memories().salient(&read_scope, &person, usize::MAX)?.len();
                Ok((
                    memory.stats(&read_scope)?,
                    salient,
                    memory.consent().retention(&person)?,
                    memory.consent().training(&person)?,
                ))
            })
            .await?;
        let here: usize = stats.counts.iter().filter(|(_, from, _)| *from == scope).map(|(.., count)| count).sum();
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        let posted = match self.background.journal_of(&home).await? {
            Some(chat) if chat == at.chat.id => "here",
            Some(_) => "in another channel",
            None => "nowhere",
        };
        let linked = match &at.place.kind {
            PlaceKind::Dm(person) => {
                let person = person.clone();
                self.services.blocking(move |memory| memory.links().of(&person)).await?.len()
            }
            PlaceKind::Public(_) | PlaceKind::Private { .. } => 0,
        };
        let mut text = format!(
            "- **This place:** {}\n- **What I keep of it:** every message that I can read here, with its files, and what I answered; {here} \
             memories of it may be shown here now. Of what you said, {salient} things that may be shown here seemed worth keeping: \
             `/me` lists them.\n- **Dreams and journal entries** made of what was said here are posted {posted}.\n",
            audience(&at.place.kind, &scope, linked),
        );
        text.push_str(match keeping {
            RetentionPreference::Everything => {
                "- **Of you** I keep all that I read; `/privacy addressed` has me keep only what you say to me.\n"
            }
            RetentionPreference::Addressed => {
                "- **Of you** I keep only what you say to me, as you wish; `/privacy everything` has me keep all that I read.\n"
            }
        });
        text.push_str(&self.learning_line(at.platform, consent));
        text.push_str(
            "- **You decide:** delete or change a message, and I follow. `/forget last`, `/forget m42` or `/forget me` forgets for \
             good, with a receipt; the bytes go from disk and backups within minutes. In a direct message `/memory export` gives you \
             everything I hold about you.\n",
        );
        if at.access >= Access::Admin && !matches!(at.place.kind, PlaceKind::Dm(_)) {
            text.push_str(
                "- **You manage this place:** `/forget chat` forgets all that was said in this chat, `/answer never` keeps me silent, \
                 and where I cannot read, I hear nothing.\n",
            );
        }
        text.push_str("I am an AI. My operator can read everything that I keep.");
        Ok(done(text))
    }

    /// Returns a line on whether training uses what the person says here; empty if training is off.
    fn learning_line(&self, platform: &PlatformId, consent: Option<TrainingConsent>) -> String {
        let Some(hearth) = self.learning.state.get().filter(|hearth| hearth.setup.trainer.is_some()) else {
            return String::new();
        };
        let line = if hearth.setup.barred.contains_key(platform) {
            "nothing that is said here changes my weights."
        } else if hearth.base_fingerprint(&self.services.model().info().name).is_none() {
            "the model that answers cannot learn here, so nothing that you say changes my weights."
        } else {
            match (consent, hearth.setup.transport.is_some()) {
                (None, _) => "nothing that you say changes my weights, unless you say `/hearth opt-in`.",
                (Some(consent), true) if !consent.offload => {
                    "I now learn on another machine, and you agreed to local training only. Your data stays here, and nothing new that you say \
                     changes my weights, unless you say `/hearth opt-in` again."
                }
                (Some(_), true) => {
                    "what you say to me may change my weights for the place where you say it, as you wish. It is learned on another machine: \
                     what is forgotten is unlearned here, and a copy that was left there is beyond my reach. `/hearth opt-out` ends it."
                }
                (Some(_), false) => {
                    "what you say to me may change my weights for the place where you say it (the public channels of a server are one), as you \
                     wish. What is forgotten is unlearned, and `/hearth opt-out` ends it."
                }
            }
        };
        format!("- **Learning:** {line}\n")
    }
}

fn audience(kind: &PlaceKind, scope: &Scope, linked: usize) -> String {
    match kind {
        PlaceKind::Public(_) => {
            "what is said here belongs to everybody in it: I may recall it in all public channels of this server, in private \
             ones that only its members read, and in direct messages with those who may read here."
                .into()
        }
        PlaceKind::Private { .. } => {
            format!(
                "private ({scope}): what is said here I recall only where everybody who reads along may read here, too."
            )
        }
        PlaceKind::Dm(_) if linked > 0 => {
            "between you and me: what you say here I recall in direct messages with the accounts that you linked (`/link list`) and \
             nowhere else, for nobody else."
                .into()
        }
        PlaceKind::Dm(_) => "between you and me: what you say here I recall nowhere else, for nobody else.".into(),
    }
}
