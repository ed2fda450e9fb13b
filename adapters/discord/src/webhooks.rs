//! Personas under their own names and faces: webhooks of the bot's own in the channels where it may make them.
//!
//! A webhook is found again by its name, which holds digests of the persona and of its picture; nothing of it is kept but in
//! memory. Its token lets anybody write in the channel: it goes into no log, and neither does an address that holds it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use azera_adapter::{Avatars, Picture, PlatformError};
use azera_types::PersonaId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serenity::all::{
    ApplicationId, ChannelId, EditWebhookMessage, ExecuteWebhook, Http, Message, MessageId, ModelError, Permissions,
    Webhook, WebhookId, WebhookType,
};
use serenity::json::json;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use crate::directory::Directory;
use crate::error::{Failure, failure, in_words, is_of_the_channel};

/// What the names of the bot's webhooks begin with.
const PREFIX: &str = "azera";

/// Letters of a digest in a webhook's name.
const DIGEST_LETTERS: usize = 16;

/// Webhooks of the bot's own in one channel; Discord allows 15 in all. Of more personas, the newest takes one over.
const MAX_HOOKS: usize = 8;

/// Characters of a name (<https://discord.com/developers/docs/resources/webhook#create-webhook>).
const NAME_CHARS: usize = 80;

/// Words of which Discord lets no webhook's name have one, in whatever case
/// (<https://discord.com/developers/docs/resources/webhook#create-webhook>).
const NOT_IN_NAMES: [&str; 2] = ["clyde", "discord"];

/// What the bot needs to speak through a webhook. Where it cannot read the history, it could not look for what it may have said
/// already, and nothing but that makes webhooks say a thing once.
const NEEDED: Permissions = Permissions::MANAGE_WEBHOOKS.union(Permissions::READ_MESSAGE_HISTORY);

/// Time for which a channel that refused is not asked again.
const SULK: Duration = Duration::from_secs(600);

/// Channels whose webhooks are remembered.
const MAX_CHANNELS: usize = 10_000;

/// Who says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) persona: PersonaId,
    pub(crate) name: String,
}

/// A webhook to speak through, and the name to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebhookIdentity {
    pub(crate) hook: WebhookId,
    pub(crate) name: String,
}

/// What is known of a channel.
#[derive(Default)]
struct Wardrobe {
    /// Its webhooks; `None` before they were asked for.
    hooks: Option<Vec<Webhook>>,
    /// When it was said that none can be made or used here.
    refused: Option<Instant>,
    /// When it was said that one persona's cannot.
    refused_to: HashMap<PersonaId, Instant>,
}

impl Wardrobe {
    /// Whether somebody was refused here lately.
    fn sulks(&self, speaker: &Speaker) -> bool {
        let lately = |since: &Instant| since.elapsed() < SULK;
        self.refused.as_ref().is_some_and(lately) || self.refused_to.get(&speaker.persona).is_some_and(lately)
    }

    /// Takes note of a refusal. Unless it is for the channel's sake, it is about this persona, and others may speak.
    fn heed(&mut self, home: ChannelId, speaker: &Speaker, error: &serenity::Error) {
        let (channel, error, now) = (is_of_the_channel(error), in_words(error), Instant::now());
        tracing::warn!(%home, persona = %speaker.persona, whole_channel = channel, error, "no webhook: spoken under the bot's name");
        if channel {
            self.refused = Some(now);
        } else {
            self.refused_to.retain(|_, since| since.elapsed() < SULK);
            self.refused_to.insert(speaker.persona.clone(), now);
        }
    }
}

/// The webhooks of all channels.
pub(crate) struct Webhooks {
    http: Arc<Http>,
    application: ApplicationId,
    directory: Arc<Directory>,
    avatars: Arc<OnceLock<Arc<dyn Avatars>>>,
    channels: Mutex<HashMap<ChannelId, Arc<AsyncMutex<Wardrobe>>>>,
}

impl Webhooks {
    pub(crate) fn new(
        http: Arc<Http>,
        application: ApplicationId,
        directory: Arc<Directory>,
        avatars: Arc<OnceLock<Arc<dyn Avatars>>>,
    ) -> Self {
        Self { http, application, directory, avatars, channels: Mutex::default() }
    }

    /// How a persona shows itself in a channel; `None` if that is a plain message of the bot's: because it is called like the
    /// bot or as no webhook may be, or the bot may make none there.
    pub(crate) async fn face(
        &self,
        channel: ChannelId,
        speaker: &Speaker,
    ) -> Result<Option<WebhookIdentity>, PlatformError> {
        let is_the_bots = speaker.name.eq_ignore_ascii_case(self.directory.cache.current_user().display_name());
        if is_the_bots || !may_be_called(&speaker.name) {
            return Ok(None);
        }
        let Some(home) = self.home(channel) else { return Ok(None) };
        if !self.directory.own_permissions(channel).contains(NEEDED) {
            return Ok(None);
        }
        let wardrobe = self.wardrobe(home);
        let mut wardrobe = wardrobe.lock_owned().await;
        if wardrobe.sulks(speaker) {
            return Ok(None);
        }
        let error = match self.hook_for(home, speaker, &mut wardrobe).await {
            Ok(hook) => {
                return Ok(Some(WebhookIdentity { hook, name: speaker.name.chars().take(NAME_CHARS).collect() }));
            }
            Err(error) => error,
        };
        // Whether one was made or changed is not known.
        wardrobe.hooks = None;
        match failure(&error) {
            Failure::Refused => {
                wardrobe.heed(home, speaker, &error);
                Ok(None)
            }
            Failure::Gone | Failure::Token | Failure::Unknown => Err(PlatformError::Transient(in_words(&error))),
        }
    }

    /// The persona's webhook, with its picture of now.
    async fn hook_for(
        &self,
        home: ChannelId,
        speaker: &Speaker,
        wardrobe: &mut Wardrobe,
    ) -> serenity::Result<WebhookId> {
        let portrait = match self.avatars.get() {
            Some(avatars) => avatars.picture(&speaker.persona).await,
            None => None,
        };
        let whose = format!("{PREFIX} {}", digest(speaker.persona.as_str().as_bytes()));
        let face = portrait.as_ref().map_or_else(|| "plain".to_owned(), |picture| digest(&picture.bytes));
        let name = format!("{whose} {face}");
        let hooks = self.hooks(home, wardrobe).await?;
        if let Some(known) = hooks.iter().find(|hook| hook.name.as_ref() == Some(&name)) {
            return Ok(known.id);
        }
        let described = json!({"name": name, "avatar": portrait.as_ref().map(address)});
        let theirs = hooks.iter().position(|hook| hook.name.as_ref().is_some_and(|name| name.starts_with(&whose)));
        let taken_over = theirs.or_else(|| (hooks.len() >= MAX_HOOKS).then_some(0));
        let hook = match taken_over {
            // The one taken over last is taken over last again.
            Some(old) => self.http.edit_webhook(hooks.remove(old).id, &described, None).await?,
            None => self.http.create_webhook(home, &described, None).await?,
        };
        let id = hook.id;
        hooks.push(hook);
        Ok(id)
    }

    /// The bot's own webhooks of a channel.
    async fn hooks<'a>(&self, home: ChannelId, wardrobe: &'a mut Wardrobe) -> serenity::Result<&'a mut Vec<Webhook>> {
        let known = match wardrobe.hooks.take() {
            Some(known) => known,
            None => {
                let there = self.http.get_channel_webhooks(home).await?;
                let mut own: Vec<Webhook> = there.into_iter().filter(|hook| is_own(hook, self.application)).collect();
                own.sort_by_key(|hook| hook.id);
                own
            }
        };
        Ok(wardrobe.hooks.insert(known))
    }

    /// Says something through a webhook.
    pub(crate) async fn say(
        &self,
        channel: ChannelId,
        face: &WebhookIdentity,
        message: ExecuteWebhook,
    ) -> serenity::Result<Message> {
        let hook = self.hook(channel, face.hook).await?;
        let message = message.username(&face.name);
        let message = match self.thread(channel) {
            Some(thread) => message.in_thread(thread),
            None => message,
        };
        let said = hook.execute(&self.http, true, message).await;
        self.heed(channel, said).await?.ok_or(serenity::Error::Other("Discord did not say what was said"))
    }

    /// Changes what was said through a webhook.
    pub(crate) async fn change(
        &self,
        channel: ChannelId,
        hook: WebhookId,
        message: MessageId,
        edit: EditWebhookMessage,
    ) -> serenity::Result<()> {
        let hook = self.hook(channel, hook).await?;
        let edit = match self.thread(channel) {
            Some(thread) => edit.in_thread(thread),
            None => edit,
        };
        let changed = hook.edit_message(&self.http, message, edit).await;
        self.heed(channel, changed).await.map(drop)
    }

    /// Takes back what was said through a webhook. Where that is gone, the bot itself may if it may delete messages.
    pub(crate) async fn take_back(
        &self,
        channel: ChannelId,
        hook: WebhookId,
        message: MessageId,
    ) -> serenity::Result<()> {
        let gone = match self.hook(channel, hook).await {
            Ok(hook) => hook.delete_message(&self.http, self.thread(channel), message).await,
            Err(error) => Err(error),
        };
        match self.heed(channel, gone).await {
            Err(error) if failure(&error) != Failure::Unknown => self.http.delete_message(channel, message, None).await,
            done => done,
        }
    }

    /// What came of a request. Where something was not there, the webhook itself may be gone, and is looked for anew.
    async fn heed<T>(&self, channel: ChannelId, done: serenity::Result<T>) -> serenity::Result<T> {
        let gone = done.as_ref().is_err_and(|error| failure(error) == Failure::Gone);
        if let Some(home) = self.home(channel).filter(|_| gone) {
            self.wardrobe(home).lock().await.hooks = None;
        }
        done
    }

    async fn hook(&self, channel: ChannelId, hook: WebhookId) -> serenity::Result<Webhook> {
        let home = self.home(channel).ok_or(ModelError::NoTokenSet)?;
        let wardrobe = self.wardrobe(home);
        let mut wardrobe = wardrobe.lock().await;
        let hooks = self.hooks(home, &mut wardrobe).await?;
        let known = hooks.iter().find(|known| known.id == hook).cloned();
        known.ok_or(serenity::Error::Model(ModelError::NoTokenSet))
    }

    /// What was asked, as an address: what a webhook says cannot be a reply.
    pub(crate) fn link(&self, channel: ChannelId, question: MessageId) -> Option<String> {
        let guild = self.directory.locate(channel)?.guild;
        Some(question.link(channel, Some(guild)))
    }

    /// Takes note that a webhook was not let speak.
    pub(crate) async fn refused(&self, channel: ChannelId, speaker: &Speaker, error: serenity::Error) {
        if let Some(home) = self.home(channel) {
            self.wardrobe(home).lock().await.heed(home, speaker, &error);
        }
    }

    /// Whether the bot may read what was said in a channel before.
    pub(crate) fn reads_history(&self, channel: ChannelId) -> bool {
        self.directory.own_permissions(channel).contains(Permissions::READ_MESSAGE_HISTORY)
    }

    /// The channel whose webhooks speak there; none in a DM.
    fn home(&self, channel: ChannelId) -> Option<ChannelId> {
        self.directory.locate(channel).map(|at| at.channel.id)
    }

    fn thread(&self, channel: ChannelId) -> Option<ChannelId> {
        self.home(channel).filter(|home| *home != channel).map(|_| channel)
    }

    fn wardrobe(&self, home: ChannelId) -> Arc<AsyncMutex<Wardrobe>> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if channels.len() >= MAX_CHANNELS && !channels.contains_key(&home) {
            channels.clear();
        }
        channels.entry(home).or_default().clone()
    }
}

/// Whether Discord lets a webhook speak under that name.
fn may_be_called(name: &str) -> bool {
    let name = name.to_lowercase();
    NOT_IN_NAMES.iter().all(|word| !name.contains(word))
}

/// Whether a webhook is one that the bot made and can speak through.
fn is_own(hook: &Webhook, application: ApplicationId) -> bool {
    let named = hook.name.as_ref().is_some_and(|name| name.starts_with(PREFIX));
    named && hook.kind == WebhookType::Incoming && hook.application_id == Some(application) && hook.token.is_some()
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().chars().take(DIGEST_LETTERS).collect()
}

/// A picture as an address that holds it.
fn address(picture: &Picture) -> String {
    format!("data:{};base64,{}", picture.media_type, STANDARD.encode(&picture.bytes))
}
