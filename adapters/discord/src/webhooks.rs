//! Personas under their own names and pictures, through webhooks that the bot creates where it may.
//!
//! A webhook is recognised by its name, which contains digests of the persona and of its picture. Webhooks are cached
//! in RAM only. A webhook's token lets anyone write in the channel, so neither the token nor a URL with it is ever
//! logged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use azera_adapter::{Avatars, Picture, PlatformError};
use azera_types::PersonaId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
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

/// Prefix of the names of the bot's webhooks.
const PREFIX: &str = "azera";

/// Length of a digest in a webhook's name.
const DIGEST_LETTERS: usize = 16;

/// The bot's webhooks in one channel; Discord allows 15 in total. Another persona takes over an existing one.
const MAX_HOOKS: usize = 8;

/// Longest name in characters (<https://discord.com/developers/docs/resources/webhook#create-webhook>).
const NAME_CHARS: usize = 80;

/// Words that Discord does not allow in a webhook's name, in any case
/// (<https://discord.com/developers/docs/resources/webhook#create-webhook>).
const NOT_IN_NAMES: [&str; 2] = ["clyde", "discord"];

/// Permissions needed for webhooks. The history is needed because the bot must search it to post through a webhook only
/// once.
const NEEDED: Permissions = Permissions::MANAGE_WEBHOOKS.union(Permissions::READ_MESSAGE_HISTORY);

/// Time after a refusal in which a channel is not asked again.
const REFUSAL_PAUSE: Duration = Duration::from_secs(600);

/// Most channels whose webhooks are cached.
const MAX_CHANNELS: usize = 10_000;

/// A persona that speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) persona: PersonaId,
    pub(crate) name: String,
}

/// A webhook, and the name to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebhookIdentity {
    pub(crate) hook: WebhookId,
    pub(crate) name: String,
}

/// The webhooks of a channel.
#[derive(Default)]
struct ChannelWebhooks {
    /// The bot's webhooks; `None` if they are unknown.
    hooks: Option<Vec<Webhook>>,
    /// Time of the last refusal for the whole channel.
    refused: Option<Instant>,
    /// Times of the last refusal for single personas.
    refused_to: HashMap<PersonaId, Instant>,
}

impl ChannelWebhooks {
    /// Returns true if the speaker was refused here recently.
    fn was_refused_recently(&self, speaker: &Speaker) -> bool {
        let lately = |since: &Instant| since.elapsed() < REFUSAL_PAUSE;
        self.refused.as_ref().is_some_and(lately) || self.refused_to.get(&speaker.persona).is_some_and(lately)
    }

    /// Records a refusal: for the whole channel if that is the reason, otherwise for this persona only.
    fn note_refusal(&mut self, home: ChannelId, speaker: &Speaker, error: &serenity::Error) {
        let (channel, error, now) = (is_of_the_channel(error), in_words(error), Instant::now());
        tracing::warn!(
            %home,
            persona = %speaker.persona,
            whole_channel = channel,
            error,
            "webhook refused; using the bot's own name"
        );
        if channel {
            self.refused = Some(now);
        } else {
            self.refused_to.retain(|_, since| since.elapsed() < REFUSAL_PAUSE);
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
    channels: Mutex<HashMap<ChannelId, Arc<AsyncMutex<ChannelWebhooks>>>>,
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

    /// Returns the webhook identity of a persona in a channel. Returns `None` if the bot must post under its own name:
    /// the persona has the bot's name or a forbidden one, or the bot may create no webhook there.
    pub(crate) async fn face(
        &self,
        channel: ChannelId,
        speaker: &Speaker,
    ) -> Result<Option<WebhookIdentity>, PlatformError> {
        let is_the_bots = speaker.name.eq_ignore_ascii_case(self.directory.cache.current_user().display_name());
        if is_the_bots || !is_allowed_name(&speaker.name) {
            return Ok(None);
        }
        let Some(home) = self.home(channel) else { return Ok(None) };
        if !self.directory.own_permissions(channel).contains(NEEDED) {
            return Ok(None);
        }
        let webhooks = self.webhooks(home);
        let mut webhooks = webhooks.lock_owned().await;
        if webhooks.was_refused_recently(speaker) {
            return Ok(None);
        }
        let error = match self.hook_for(home, speaker, &mut webhooks).await {
            Ok(hook) => {
                return Ok(Some(WebhookIdentity { hook, name: speaker.name.chars().take(NAME_CHARS).collect() }));
            }
            Err(error) => error,
        };
        // It is unknown whether a webhook was created or changed.
        webhooks.hooks = None;
        match failure(&error) {
            Failure::Refused => {
                webhooks.note_refusal(home, speaker, &error);
                Ok(None)
            }
            Failure::Gone | Failure::Token | Failure::Unknown => Err(PlatformError::Transient(in_words(&error))),
        }
    }

    /// Returns the persona's webhook, with its current picture.
    async fn hook_for(
        &self,
        home: ChannelId,
        speaker: &Speaker,
        webhooks: &mut ChannelWebhooks,
    ) -> serenity::Result<WebhookId> {
        let picture = match self.avatars.get() {
            Some(avatars) => avatars.picture(&speaker.persona).await,
            None => None,
        };
        let whose = format!("{PREFIX} {}", digest(speaker.persona.as_str().as_bytes()));
        let face = picture.as_ref().map_or_else(|| "plain".to_owned(), |picture| digest(&picture.bytes));
        let name = format!("{whose} {face}");
        let hooks = self.hooks(home, webhooks).await?;
        if let Some(known) = hooks.iter().find(|hook| hook.name.as_ref() == Some(&name)) {
            return Ok(known.id);
        }
        let described = json!({"name": name, "avatar": picture.as_ref().map(address)});
        let theirs = hooks.iter().position(|hook| hook.name.as_ref().is_some_and(|name| name.starts_with(&whose)));
        let taken_over = theirs.or_else(|| (hooks.len() >= MAX_HOOKS).then_some(0));
        let hook = match taken_over {
            // A webhook that was just taken over goes to the end of the list, so it is the last to be taken over again.
            Some(old) => self.http.edit_webhook(hooks.remove(old).id, &described, None).await?,
            None => self.http.create_webhook(home, &described, None).await?,
        };
        let id = hook.id;
        hooks.push(hook);
        Ok(id)
    }

    /// Returns the bot's own webhooks of a channel.
    async fn hooks<'a>(
        &self,
        home: ChannelId,
        webhooks: &'a mut ChannelWebhooks,
    ) -> serenity::Result<&'a mut Vec<Webhook>> {
        let known = match webhooks.hooks.take() {
            Some(known) => known,
            None => {
                let there = self.http.get_channel_webhooks(home).await?;
                let mut own: Vec<Webhook> = there.into_iter().filter(|hook| is_own(hook, self.application)).collect();
                own.sort_by_key(|hook| hook.id);
                own
            }
        };
        Ok(webhooks.hooks.insert(known))
    }

    /// Posts a message through a webhook.
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
        self.check_gone(channel, said).await?.ok_or(serenity::Error::Other("Discord did not say what was said"))
    }

    /// Edits a webhook's message.
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
        self.check_gone(channel, changed).await.map(drop)
    }

    /// Deletes a webhook's message. If the webhook is gone, the bot itself may delete it with the permission to delete
    /// messages.
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
        match self.check_gone(channel, gone).await {
            Err(error) if failure(&error) != Failure::Unknown => self.http.delete_message(channel, message, None).await,
            done => done,
        }
    }

    /// Passes on the result of a request. If something was not found, the webhook may be gone, so the webhooks are
    /// fetched again next time.
    async fn check_gone<T>(&self, channel: ChannelId, done: serenity::Result<T>) -> serenity::Result<T> {
        let gone = done.as_ref().is_err_and(|error| failure(error) == Failure::Gone);
        if let Some(home) = self.home(channel).filter(|_| gone) {
            self.webhooks(home).lock().await.hooks = None;
        }
        done
    }

    async fn hook(&self, channel: ChannelId, hook: WebhookId) -> serenity::Result<Webhook> {
        let home = self.home(channel).ok_or(ModelError::NoTokenSet)?;
        let webhooks = self.webhooks(home);
        let mut webhooks = webhooks.lock().await;
        let hooks = self.hooks(home, &mut webhooks).await?;
        let known = hooks.iter().find(|known| known.id == hook).cloned();
        known.ok_or(serenity::Error::Model(ModelError::NoTokenSet))
    }

    /// Returns the URL of the question, because a webhook's message cannot be a reply.
    pub(crate) fn link(&self, channel: ChannelId, question: MessageId) -> Option<String> {
        let guild = self.directory.locate(channel)?.guild;
        Some(question.link(channel, Some(guild)))
    }

    /// Records that a webhook was refused.
    pub(crate) async fn refused(&self, channel: ChannelId, speaker: &Speaker, error: serenity::Error) {
        if let Some(home) = self.home(channel) {
            self.webhooks(home).lock().await.note_refusal(home, speaker, &error);
        }
    }

    /// Returns true if the bot may read the channel's history.
    pub(crate) fn reads_history(&self, channel: ChannelId) -> bool {
        self.directory.own_permissions(channel).contains(Permissions::READ_MESSAGE_HISTORY)
    }

    /// Returns the channel that owns the webhooks; `None` in a DM.
    fn home(&self, channel: ChannelId) -> Option<ChannelId> {
        self.directory.locate(channel).map(|at| at.channel.id)
    }

    fn thread(&self, channel: ChannelId) -> Option<ChannelId> {
        self.home(channel).filter(|home| *home != channel).map(|_| channel)
    }

    fn webhooks(&self, home: ChannelId) -> Arc<AsyncMutex<ChannelWebhooks>> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if channels.len() >= MAX_CHANNELS && !channels.contains_key(&home) {
            channels.clear();
        }
        channels.entry(home).or_default().clone()
    }
}

/// Returns true if Discord allows this name for a webhook.
fn is_allowed_name(name: &str) -> bool {
    let name = name.to_lowercase();
    NOT_IN_NAMES.iter().all(|word| !name.contains(word))
}

/// Returns true if the bot created the webhook and can post through it.
fn is_own(hook: &Webhook, application: ApplicationId) -> bool {
    let named = hook.name.as_ref().is_some_and(|name| name.starts_with(PREFIX));
    named && hook.kind == WebhookType::Incoming && hook.application_id == Some(application) && hook.token.is_some()
}

fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes)).chars().take(DIGEST_LETTERS).collect()
}

/// Returns a picture as a `data:` URL.
fn address(picture: &Picture) -> String {
    format!("data:{};base64,{}", picture.media_type, STANDARD.encode(&picture.bytes))
}
