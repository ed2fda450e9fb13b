//! The [`PlaceHost`] interface: the shared places of all platforms, for the operator. It reads settings of chats and names
//! that the platforms give, no messages and no memories.

use std::collections::BTreeMap;

use async_trait::async_trait;
use azera_adapter::{
    AnswerMode, ChatPlace, HostError, PlaceChange, PlaceChanged, PlaceHost, PlaceNames, Platform, PlatformPlaces,
    RealmPlaces, SpokenReplies,
};
use azera_memory::{Answering, ChatRow, VoiceReplies};
use azera_types::{ChatId, PersonId, Place, PlaceKind, PlatformId, RealmId, Scope};

use crate::background::Background;
use crate::engine::Engine;
use crate::error::Error;
use crate::reading::MAX_LISTED;

/// The journal channels of places, so that each is looked up once.
type Journals = BTreeMap<Scope, Option<ChatId>>;

fn mode(answering: Answering) -> AnswerMode {
    match answering {
        Answering::Addressed => AnswerMode::Addressed,
        Answering::Always => AnswerMode::Always,
        Answering::Never => AnswerMode::Never,
    }
}

fn spoken(replies: VoiceReplies) -> SpokenReplies {
    match replies {
        VoiceReplies::Auto => SpokenReplies::Auto,
        VoiceReplies::Always => SpokenReplies::Always,
        VoiceReplies::Never => SpokenReplies::Never,
    }
}

/// Returns the realm of a shared place; `None` for a direct message.
fn realm_of(place: &Place) -> Option<(Option<RealmId>, bool)> {
    match &place.kind {
        PlaceKind::Public(realm) => Some((Some(realm.clone()), false)),
        PlaceKind::Private { realm, .. } => Some((realm.clone(), true)),
        PlaceKind::Dm(_) => None,
    }
}

impl Engine {
    async fn list_places(&self, but: &PlatformId) -> Result<Vec<PlatformPlaces>, Error> {
        let mut ids = self.0.services.platform_ids();
        ids.retain(|id| id != but);
        ids.sort();
        let mut listed = Vec::new();
        for id in ids {
            listed.push(self.places_on(&id).await?);
        }
        Ok(listed)
    }

    async fn places_on(&self, id: &PlatformId) -> Result<PlatformPlaces, Error> {
        let services = &self.0.services;
        let (platform, of) = (services.platform(id)?, id.clone());
        let mut rows = services.blocking(move |memory| memory.chats().list(&of)).await?;
        // The chats in which somebody talked last, if there are too many.
        rows.sort_by_key(|row| std::cmp::Reverse(row.last_at));
        let (mut realms, mut journals) = (BTreeMap::<Option<RealmId>, Vec<ChatPlace>>::new(), Journals::new());
        let (mut direct, mut unknown) = (0, 0);
        for row in rows.into_iter().take(MAX_LISTED) {
            let Ok(Some(place)) = platform.place_for_all(&row.id).await else {
                unknown += 1;
                continue;
            };
            match realm_of(&place) {
                None => direct += 1,
                Some((realm, is_private)) => {
                    let chat = self.chat_place(platform.as_ref(), row, &place, is_private, &mut journals).await?;
                    realms.entry(realm).or_default().push(chat);
                }
            }
        }
        let names = platform.place_names();
        let (is_reachable, invitation) = match names {
            Some(names) => (Some(names.is_reachable().await), names.invitation().await),
            None => (None, None),
        };
        let mut found = Vec::new();
        for (realm, mut chats) in realms {
            chats.sort_by(|a, b| (&a.name, &a.chat).cmp(&(&b.name, &b.chat)));
            let name = match (&realm, names) {
                (Some(realm), Some(names)) => names.realm_name(realm).await,
                _ => None,
            };
            found.push(RealmPlaces { realm, name, chats });
        }
        found.sort_by(|a, b| (&a.name, &a.realm).cmp(&(&b.name, &b.realm)));
        let connection = names.map(PlaceNames::history);
        Ok(PlatformPlaces {
            platform: id.clone(),
            is_reachable,
            connection,
            invitation,
            realms: found,
            direct,
            unknown,
        })
    }

    async fn chat_place(
        &self,
        platform: &dyn Platform,
        row: ChatRow,
        place: &Place,
        is_private: bool,
        journals: &mut Journals,
    ) -> Result<ChatPlace, Error> {
        let services = &self.0.services;
        let shared = place.shared_realm();
        let mut names = Vec::new();
        for identity in std::iter::once(&row.persona).chain(&row.invited) {
            names.push(match services.persona(shared, identity).await {
                Ok(loaded) => loaded.persona.name,
                // A persona that was removed answers no more, and still stands in the settings.
                Err(Error::NoPersona(name)) => name,
                Err(error) => return Err(error),
            });
        }
        let scope = place.scope();
        let journal = match journals.get(&scope) {
            Some(known) => known.clone(),
            None => {
                let home = Background::home(platform.id(), place, &row.persona);
                let found = self.0.background.journal_of(&home).await?;
                journals.insert(scope, found.clone());
                found
            }
        };
        let own = match platform.place_names() {
            Some(names) => names.chat_name(&row.id).await,
            None => None,
        };
        let mut names = names.into_iter();
        Ok(ChatPlace {
            name: own.or(row.title),
            chat: row.id,
            is_private,
            persona: names.next().unwrap_or_default(),
            invited: names.collect(),
            answers: mode(services.config.answering_in(place, row.answering)),
            spoken: spoken(row.voice_replies.unwrap_or(services.voice().replies)),
            journal,
        })
    }
}

#[async_trait]
impl PlaceHost for Engine {
    async fn places(&self, but: &PlatformId) -> Result<Vec<PlatformPlaces>, HostError> {
        self.for_adapter(self.list_places(but).await)
    }

    async fn change_place(
        &self,
        operator: &PersonId,
        chat: &ChatId,
        changes: Vec<PlaceChange>,
    ) -> Result<PlaceChanged, HostError> {
        self.for_adapter(self.0.commands.change_place(operator, chat, changes).await)
    }
}
