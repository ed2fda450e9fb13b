//! `/privacy`: what is kept of what is said here, who may be shown it, and how it is forgotten.

use azera_adapter::{Access, CommandAnswer};
use azera_types::{PlaceKind, Scope};

use super::{Setting, done};
use crate::azera::Azera;
use crate::error::Error;

impl Azera {
    pub(super) async fn privacy_command(&self, at: &Setting<'_>) -> Result<CommandAnswer, Error> {
        let (right, person, scope) = (at.right.clone(), at.line.person.clone(), at.place.scope());
        let (stats, kept) = self
            .blocking(move |memory| Ok((memory.stats(&right)?, memory.kept(&right, &person, usize::MAX)?.len())))
            .await?;
        let here: usize = stats.counts.iter().filter(|(_, from, _)| *from == scope).map(|(.., count)| count).sum();
        let home = Self::home(at.platform, &at.place, &at.chat.persona);
        let posted = match self.journal_of(&home).await? {
            Some(chat) if chat == at.chat.id => "here",
            Some(_) => "in another channel",
            None => "nowhere",
        };
        let mut text = format!(
            "- **This place:** {}\n- **What I keep of it:** every message that I can read here, and what I answered; {here} \
             memories of it may be shown here now. Of what you said, {kept} things that may be shown here seemed worth keeping: \
             `/me` lists them.\n- **Dreams and journal entries** made of what was said here are posted {posted}.\n",
            audience(&at.place.kind, &scope),
        );
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
        text.push_str("I am an AI. Who runs me can read what I keep.");
        Ok(done(text))
    }
}

fn audience(kind: &PlaceKind, scope: &Scope) -> String {
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
        PlaceKind::Dm(_) => "between you and me: what you say here I recall nowhere else, for nobody else.".into(),
    }
}
