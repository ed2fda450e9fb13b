//! What there is to choose from, for who types a command.

use azera_adapter::{CommandLine, MAX_OFFERED, OfferLine, Offered, OptionKind, Theme};
use azera_types::{PlatformId, Text};

use super::Setting;
use crate::azera::Azera;
use crate::error::Error;

/// Memories looked at for what is typed.
const LOOKED_AT: usize = 100;

/// Characters of a memory shown.
const GLIMPSE: usize = 80;

impl Azera {
    /// What may be meant, as far as it may be shown there to the person.
    pub(crate) async fn offers(&self, platform: &PlatformId, line: OfferLine) -> Result<Vec<Offered>, Error> {
        let adapter = self.platform(platform)?;
        let asked =
            CommandLine { chat: line.chat, person: line.person, name: line.name, text: Text::default(), about: None };
        let at = match self.setting_now(platform, adapter.as_ref(), &asked).await {
            Ok(at) => at,
            Err(Error::NotAllowed) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut offers = match line.kind {
            OptionKind::Persona => self.personas_to_offer(&at).await?,
            OptionKind::Model => self.models_to_offer(),
            OptionKind::Branch => self.branches_to_offer(&at).await?,
            OptionKind::Memory => self.memories_to_offer(&at).await?,
            OptionKind::Theme => themes(),
            OptionKind::Text
            | OptionKind::Word
            | OptionKind::Count
            | OptionKind::Flag
            | OptionKind::Page
            | OptionKind::File => Vec::new(),
        };
        let typed = line.typed.trim().to_lowercase();
        offers
            .retain(|offer| offer.label.to_lowercase().contains(&typed) || offer.value.to_lowercase().contains(&typed));
        offers.truncate(MAX_OFFERED);
        Ok(offers)
    }

    async fn personas_to_offer(&self, at: &Setting<'_>) -> Result<Vec<Offered>, Error> {
        let rows = self.personas_here(at).await?;
        let named = rows.into_iter().filter_map(|row| {
            let persona = azera_personas::parse(&row.markdown).ok()?;
            Some(Offered { label: persona.name, value: row.id.to_string() })
        });
        Ok(named.collect())
    }

    fn models_to_offer(&self) -> Vec<Offered> {
        let models = self.0.models.list().into_iter();
        models.map(|model| Offered { label: format!("{}: {}", model.name, model.title), value: model.name }).collect()
    }

    async fn branches_to_offer(&self, at: &Setting<'_>) -> Result<Vec<Offered>, Error> {
        let (right, chat) = (at.right.clone(), at.chat.id.clone());
        let branches = self.blocking(move |memory| memory.branches(&right, &chat)).await?;
        Ok(branches.into_iter().map(|branch| Offered { label: branch.name.clone(), value: branch.name }).collect())
    }

    async fn memories_to_offer(&self, at: &Setting<'_>) -> Result<Vec<Offered>, Error> {
        let (right, person) = (at.right.clone(), at.line.person.clone());
        let kept = self.blocking(move |memory| memory.kept(&right, &person, LOOKED_AT)).await?;
        let offered = kept.iter().map(|memory| {
            let glimpse: String = memory.gist().chars().take(GLIMPSE).collect();
            Offered { label: format!("{} {glimpse}", memory.id), value: memory.id.to_string() }
        });
        Ok(offered.collect())
    }
}

fn themes() -> Vec<Offered> {
    let offered = |theme: Theme| Offered { label: theme.as_str().to_owned(), value: theme.as_str().to_owned() };
    Theme::ALL.map(offered).to_vec()
}
