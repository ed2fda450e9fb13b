//! Dreams and reflections: what a persona writes for a place.

use azera_memory::{JournalChannel, Kind, MemoryRow, NewWriting, Right, Tended};
use azera_mind::Mood;
use azera_types::{ChatId, Place, PlaceKind, Reach, Scope, Text, Timestamp};

use super::agenda::Home;
use super::compose::{ATTEMPTS, Composed, Wanted};
use super::material::{self, Said};
use super::prompts::{DREAM, Filling, REFLECTION, fill};
use crate::azera::Azera;
use crate::error::Error;

/// What a dream or a journal entry is about was said within this time before it, in hours: a day and the evening before.
const MATERIAL_HOURS: i64 = 36;

/// Lines looked at for it.
const MAX_MATERIAL: usize = 200;

/// Cosine similarity from which a dream is one dreamt before.
const SAME_DREAM: f32 = 0.85;

/// Earlier ones that a new one is compared with.
const COMPARED: usize = 64;

/// Where something is written for a home.
struct Setting {
    chat: ChatId,
    /// Whether it is posted there.
    posted: bool,
    place: Place,
    right: Right,
    name: String,
    /// The realm whose persona it is.
    owner: Option<Scope>,
}

impl Azera {
    /// Writes a dream or an entry of the journal for a home, out of what was said there lately; gives it, if one came that is
    /// worth telling. One at a time: whoever calls holds `writing`.
    pub(crate) async fn write_for(&self, home: &Home, kind: Kind, now: Timestamp) -> Result<Option<MemoryRow>, Error> {
        let mut asked = 0;
        let written = self.write_or_not(home, kind, now, &mut asked).await;
        // What was written was noted along with it.
        if !matches!(written, Ok(Some(_))) {
            self.note_asked(home, now, asked).await?;
        }
        written
    }

    async fn write_or_not(
        &self,
        home: &Home,
        kind: Kind,
        now: Timestamp,
        asked: &mut u32,
    ) -> Result<Option<MemoryRow>, Error> {
        let mood = self.mood_of(home, now).map(Mood::name);
        let Some(at) = self.setting_of(home).await? else { return Ok(None) };
        let since = now.checked_sub(azera_types::Span::new().hours(MATERIAL_HOURS)).unwrap_or(Timestamp::MIN);
        let right = at.right.clone();
        let recent = self.blocking(move |memory| memory.recent(&right, since, MAX_MATERIAL)).await?;
        let mut said: Vec<Said> = recent.iter().rev().filter(|row| row.kind == Kind::Message).map(Said::from).collect();
        // What was not taken up yet comes first; asked by hand, it may be the same day again.
        let tended = self.tended(home).await?;
        let last = if kind == Kind::Dream { tended.dreamt } else { tended.reflected };
        if said.iter().any(|said| last.is_some_and(|last| said.at > last)) {
            said.retain(|said| last.is_some_and(|last| said.at > last));
        }
        let (prompt, lead) = if kind == Kind::Dream { (DREAM, "I dreamt that") } else { (REFLECTION, "Today") };
        let budget = self.budget(home, now, self.0.config.garden.per_day).await?;
        for attempt in 0..ATTEMPTS {
            if *asked >= budget {
                break;
            }
            let chosen = material::some(&said, self.writing_form().lines, attempt);
            let Some(newest) = chosen.last().and_then(|said| said.sources.first()) else { return Ok(None) };
            let given = material::lines(&chosen);
            let messages = fill(prompt, &Filling { persona: &at.name, lines: &given, mood, other: "" });
            *asked += 1;
            let wanted = Wanted { messages, given: &given, lead: lead.to_owned(), about: newest, attempt };
            let composed = match self.compose(wanted).await? {
                Ok(composed) => composed,
                Err(flaw) => {
                    tracing::debug!(kind = kind.as_str(), ?flaw, "what was written is not kept");
                    continue;
                }
            };
            if kind == Kind::Dream && self.was_dreamt(&at.right, &composed.text).await? {
                tracing::debug!("the same dream again is not kept");
                continue;
            }
            let tended = self.tended_then(home, Some(kind), now, *asked).await?;
            return self.keep(home, &at, kind, &chosen, composed, mood, tended).await;
        }
        Ok(None)
    }

    /// Keeps what was written, and posts it, if everybody who would read it may read what it rests on by now.
    #[expect(clippy::too_many_arguments, reason = "each is a part of what is kept")]
    async fn keep(
        &self,
        home: &Home,
        at: &Setting,
        kind: Kind,
        chosen: &[Said],
        composed: Composed,
        mood: Option<&str>,
        tended: Tended,
    ) -> Result<Option<MemoryRow>, Error> {
        let now = self.0.clock.now();
        // People may have come and gone while it was written.
        let Some(setting) = self.setting_of(home).await?.filter(|setting| setting.chat == at.chat) else {
            return Ok(None);
        };
        let (scope, needs) = (setting.place.scope(), material::needs(chosen, setting.owner.as_ref(), now));
        if !setting.right.allows(&home.persona, &scope, &needs, now) {
            return Ok(None);
        }
        let new = NewWriting {
            persona: home.persona.clone(),
            persona_name: setting.name,
            kind,
            chat: setting.chat,
            scope,
            needs,
            sources: material::sources(chosen),
            text: composed.text,
            at: now,
            prompt: Some(composed.prompt),
            model: Some(composed.model),
            title: None,
            themes: composed.themes,
            mood: mood.map(str::to_owned),
            imported_by: None,
            post: setting.posted.then(|| home.platform.clone()),
            tended: Some((home.platform.clone(), home.place.clone(), tended)),
        };
        let written = self.blocking(move |memory| memory.write(new)).await?;
        self.0.index_wanted.notify_one();
        let Some((memory, post)) = written else { return Ok(None) };
        if post.is_some() {
            // What cannot be shown now stays in the outbox.
            if let Err(error) = self.deliver_outbox().await {
                tracing::warn!(%error, "what was written waits in the outbox");
            }
        }
        Ok(Some(memory))
    }

    /// Where a persona writes for a home: the journal's channel, or the chat in which everybody there talked last.
    async fn setting_of(&self, home: &Home) -> Result<Option<Setting>, Error> {
        let Ok(platform) = self.platform(&home.platform) else { return Ok(None) };
        let channel = self.journal_of(home).await?;
        let posted = channel.is_some();
        let Some(chat) = channel.or_else(|| self.0.agenda.open_chat(home)) else { return Ok(None) };
        let known = {
            let chat = chat.clone();
            self.blocking(move |memory| memory.chat(&chat)).await?.is_some()
        };
        if !known {
            return Ok(None);
        }
        let Some(place) = self.place_unasked(platform.as_ref(), &chat).await? else { return Ok(None) };
        // A realm's journal may stand in a private channel of it; another place's is not this one's.
        let realm = match &place.kind {
            PlaceKind::Private { realm: Some(realm), .. } => Some(Scope::Realm(realm.clone())),
            _ => None,
        };
        if place.scope() != home.place && realm.as_ref() != Some(&home.place) {
            return Ok(None);
        }
        let played = match self.persona(place.shared_realm(), &home.persona).await {
            Ok(played) => played,
            Err(Error::NoPersona(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        // A person's own dreams are of what was said there, not of all that they may read elsewhere.
        let right = Right::in_place(home.persona.clone(), &place, &Reach::default());
        let owner = played.owner.map(Scope::Realm);
        Ok(Some(Setting { chat, posted, place, right, name: played.persona.name, owner }))
    }

    /// The channel of a home's journal: what somebody said by command, or else the platform's own setting.
    pub(crate) async fn journal_of(&self, home: &Home) -> Result<Option<ChatId>, Error> {
        let (platform, place) = (home.platform.clone(), home.place.clone());
        let said = self.blocking(move |memory| memory.journal_channel(&platform, &place)).await?;
        match (said, &home.place) {
            (Some(JournalChannel { chat }), _) => Ok(chat),
            (None, Scope::Realm(realm)) => Ok(self.platform(&home.platform)?.realm(realm).await?.journal),
            (None, _) => Ok(None),
        }
    }

    /// Whether a dream is one that may be seen there already.
    async fn was_dreamt(&self, right: &Right, text: &Text) -> Result<bool, Error> {
        let right = right.clone();
        let earlier = self.blocking(move |memory| memory.writings(&right, &[Kind::Dream], COMPARED)).await?;
        if earlier.is_empty() {
            return Ok(false);
        }
        let texts = std::iter::once(text).chain(earlier.iter().map(|(memory, _)| &memory.text));
        let vectors = self.embed(texts.map(|text| text.as_str().to_owned()).collect()).await?;
        let Some((new, earlier)) = vectors.split_first() else { return Ok(false) };
        let cosine = |other: &Vec<f32>| new.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
        Ok(earlier.iter().any(|other| cosine(other) >= SAME_DREAM))
    }

    /// What a chat is for all who read it, by the platform's word or, where that speaks to people alone, by what it says to
    /// those who spoke there lately.
    pub(crate) async fn place_unasked(
        &self,
        platform: &dyn azera_adapter::Platform,
        chat: &ChatId,
    ) -> Result<Option<Place>, Error> {
        if let Some(place) = platform.place_for_all(chat).await? {
            return Ok(Some(place));
        }
        let of = chat.clone();
        for person in self.blocking(move |memory| memory.spoke_in(&of)).await? {
            if let Some(place) = platform.place(chat, &person).await? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The home of a place for a persona.
    pub(crate) fn home(platform: &azera_types::PlatformId, place: &Place, persona: &azera_types::PersonaId) -> Home {
        Home { platform: platform.clone(), place: place.scope(), persona: persona.clone() }
    }
}
