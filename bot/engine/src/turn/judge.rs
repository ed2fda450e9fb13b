//! Stage *judge*: what a message is, before any word of an answer is generated.
//!
//! Two judges stand beside each other: the classifiers, which are learned with the embedding model, and the lexical safety net,
//! which needs no model. A turn waits for the classifiers while they are being learned. Where they cannot judge, the net decides
//! on the safe side: any word of death or harm counts as danger then.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use azera_affect::{Classifiers, Danger, DangerLexicon, DetectedMood, Harm, Reading, Tag};
use azera_memory::MessageRow;
use azera_model_api::Purpose;

use super::earlier::{Earlier, Lately};
use crate::classifiers::LazyClassifiers;
use crate::error::Error;
use crate::recall::{Recall, RecallService, Trace};
use crate::services::Services;

/// Judges messages and other texts.
pub(crate) struct Judge {
    services: Arc<Services>,
    recall: Arc<RecallService>,
    /// The classifiers of moods, tags and salience.
    pub(crate) classifiers: LazyClassifiers,
}

/// How long a turn waits for the classifiers. Learning them takes most of a minute of a core.
const CLASSIFIERS_WAIT: Duration = Duration::from_secs(120);

/// Words below which what is left beside harmless talk says nothing of its own.
const LEAST_WORDS: usize = 3;

/// What a message is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judgement {
    /// Its tags.
    pub(crate) tags: Vec<Tag>,
    /// What the lexical net found.
    pub(crate) found: Danger,
    /// Somebody in the conversation spoke of harming themselves lately.
    pub(crate) amid_danger: bool,
    /// What was said before.
    pub(crate) earlier: Earlier,
}

impl Judge {
    pub(crate) fn new(services: Arc<Services>, recall: Arc<RecallService>) -> Self {
        Self { services, recall, classifiers: LazyClassifiers::default() }
    }

    /// Learns the classifiers in the background, again and again until it succeeds. Turns that begin meanwhile wait for the first
    /// try, and [`azera_adapter::Host::settle`] does too.
    pub(crate) fn learn<E: Display, F>(self: &Arc<Self>, learn: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<Arc<Classifiers>, E>> + Send,
    {
        if !self.classifiers.begin() {
            return;
        }
        let judge = Arc::clone(self);
        self.services.tasks.spawn(async move { judge.classifiers.learn(learn, &judge.services.stopping).await });
    }

    /// Returns the mood in a reply; `None` as long as the classifiers are not there, or the embedding model is away.
    pub(crate) async fn felt(&self, reply: &str) -> Option<DetectedMood> {
        let classifiers = self.classifiers.now()?;
        match self.recall.embed_foreground(reply, Purpose::Document).await {
            Ok(vector) => Some(classifiers.mood.classify(reply, &vector)),
            Err(error) => {
                tracing::warn!(%error, "a reply's mood is not known");
                None
            }
        }
    }

    /// Returns what a message is. `recent` are the messages before it in the conversation.
    pub(crate) async fn judge(
        &self,
        message: &MessageRow,
        recent: &[MessageRow],
        recall: &Recall,
        trace: Trace,
    ) -> Judgement {
        let text = message.text.as_str();
        // Recall's vector leaves names out of questions, and the classifiers were learned with them. Where the embedding model is
        // away, they judge by the words alone.
        let vector = match &recall.vector {
            Some(vector) if recall.plain => vector.clone(),
            Some(_) => self.vector_or_none(text, trace).await,
            None => Vec::new(),
        };
        let (mut tags, found) = self.judge_text(text, &vector, trace).await;
        let lately = Lately::of(recent, message.at);
        let earlier = Earlier::of(message, &lately);
        earlier.add_to(&mut tags);
        Judgement { tags, found, amid_danger: lately.has_self_harm(), earlier }
    }

    /// Returns the tags of a text by itself, judged as a message would be.
    ///
    /// # Errors
    /// If the embedding model is away.
    pub(crate) async fn tags_of(&self, text: &str) -> Result<Vec<Tag>, Error> {
        let vector = self.recall.embed_foreground(text, Purpose::Document).await?;
        Ok(self.judge_text(text, &vector, Trace::Cached).await.0)
    }

    async fn judge_text(&self, text: &str, vector: &[f32], trace: Trace) -> (Vec<Tag>, Danger) {
        let reading = DangerLexicon::builtin().read(text);
        let found = reading.danger();
        let mut tags = match self.classifiers.wait(CLASSIFIERS_WAIT).await {
            Some(classifiers) => self.classified(&classifiers, (text, vector), &reading, found, trace).await,
            None if reading.is_wary() => vec![Tag::SelfHarm],
            None => Vec::new(),
        };
        add_found(&mut tags, found);
        (tags, found)
    }

    /// What the classifiers say of a text.
    async fn classified(
        &self,
        classifiers: &Classifiers,
        (text, vector): (&str, &[f32]),
        reading: &Reading,
        found: Danger,
        trace: Trace,
    ) -> Vec<Tag> {
        let mut tags = classifiers.tags.classify(text, vector);
        if found.self_harm || found.threat {
            return tags;
        }
        for (tag, harm) in [(Tag::SelfHarm, Harm::ToSelf), (Tag::Threat, Harm::ByOthers)] {
            // An idiom raised the alarm ("I nearly died of embarrassment"), or talk about a game: what stands beside it decides.
            if tags.contains(&tag)
                && let Some(rest) = reading.without_harmless(harm)
                && !self.holds(classifiers, tag, &rest, trace).await
            {
                tags.retain(|other| *other != tag);
            }
        }
        tags
    }

    /// Whether the classifiers find a tag in what is left of a text.
    async fn holds(&self, classifiers: &Classifiers, tag: Tag, rest: &str, trace: Trace) -> bool {
        rest.split_whitespace().count() >= LEAST_WORDS
            && classifiers.tags.classify(rest, &self.vector_or_none(rest, trace).await).contains(&tag)
    }

    async fn vector_or_none(&self, text: &str, trace: Trace) -> Vec<f32> {
        self.recall.embed(text, Purpose::Document, trace).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a message is judged by its words alone");
            Vec::new()
        })
    }

    /// Returns what a text is, whose vector it is, outside a turn. As long as the classifiers are not there, the lexical net alone
    /// tells.
    pub(crate) fn tags(&self, text: &str, vector: &[f32]) -> Vec<Tag> {
        let mut tags =
            self.classifiers.now().map_or_else(Vec::new, |classifiers| classifiers.tags.classify(text, vector));
        add_found(&mut tags, DangerLexicon::builtin().find(text));
        tags
    }
}

fn add_found(tags: &mut Vec<Tag>, found: Danger) {
    let found = [(found.self_harm, Tag::SelfHarm), (found.threat, Tag::Threat), (found.minor, Tag::Minor)];
    for (_, tag) in found.into_iter().filter(|(found, _)| *found) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
}
