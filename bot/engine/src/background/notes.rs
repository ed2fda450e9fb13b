//! Working notes: what a persona keeps in mind in one chat, about itself and about the other person. They are rewritten
//! every few turns.

use azera_memory::{Kind, MemoryRow};
use azera_types::{Text, Timestamp};

use super::agenda::{ChatActivity, PersonaPlace};
use super::draft::{ATTEMPTS, Draft, DraftRequest};
use super::material::{self, SourceLine};
use super::prompts::{Filling, NOTES_OTHER, NOTES_SELF, fill};
use crate::background::Background;
use crate::error::Error;

impl Background {
    /// Writes the notes of a chat, which replace the earlier ones.
    pub(super) async fn take_notes(&self, talk: &ChatActivity, now: Timestamp) -> Result<Option<MemoryRow>, Error> {
        let Some(at) = self.conversation(talk, None).await? else { return Ok(None) };
        let form = self.writing_form();
        let home =
            PersonaPlace { platform: talk.platform.clone(), place: at.place.scope(), persona: talk.persona.clone() };
        let notes_every = self.minds.overrides(&home.platform, &home.place).await?.garden.notes_every;
        let newest = 2 * notes_every.max(form.lines);
        let said: Vec<SourceLine> = at.said.iter().skip(at.said.len().saturating_sub(newest)).cloned().collect();
        let Some(partner) = Self::other(&said).cloned() else { return Ok(None) };
        let other = partner.name().to_owned();
        let of_partner = |said: &&SourceLine| said.author.person() == partner.person();
        let of_people: Vec<SourceLine> = said.iter().filter(of_partner).cloned().collect();
        let about = [
            (NOTES_OTHER, material::telling(of_people, form.lines), other.clone(), format!("About {other}: ")),
            (NOTES_SELF, material::telling(said, form.lines), "I".to_owned(), "About myself: ".to_owned()),
        ];
        let (mut notes, mut prompts, mut used, mut themes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut model = None;
        for (prompt, chosen, lead, heading) in about {
            let given = material::lines(&chosen);
            let Some(newest) = chosen.last().and_then(|said| said.sources.first()).cloned() else { continue };
            let mut found = None;
            for attempt in 0..ATTEMPTS {
                if self.budget_by_day(&home, now).await? == 0 {
                    break;
                }
                let filling = Filling { persona: &at.name, lines: &given, mood: None, other: &other };
                let messages = fill(prompt, &filling);
                let wanted = DraftRequest { messages, given: &given, lead: lead.clone(), about: &newest, attempt };
                let composed = self.compose(wanted).await;
                self.note_model_calls(&home, now, 1).await?;
                match composed? {
                    Ok(composed) => {
                        found = Some(composed);
                        break;
                    }
                    Err(flaw) => tracing::debug!(?flaw, "discarding a working note"),
                }
            }
            if let Some(composed) = found {
                notes.push(format!("{heading}{}", composed.text.as_str()));
                prompts.extend(composed.prompt.map(|prompt| prompt.as_str().to_owned()));
                themes.extend(composed.themes);
                model = composed.model.or(model);
                used.extend(chosen);
            }
        }
        if notes.is_empty() {
            return Ok(None);
        }
        let prompt = Some(Text::new(prompts.join("\n\n")));
        let composed = Draft { text: Text::new(notes.join("\n")), themes, prompt, model };
        self.keep_of(talk, Kind::Note, &used, composed, now, None).await
    }
}
