//! The minds of all personas: what they feel, and how turns and background jobs change that.
//!
//! A mind belongs to one persona and one place: the public channels of a realm together, one private chat, or one
//! direct message. Bonds belong to the same places, so nothing told in private shows elsewhere.

mod exchanges;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_affect::{
    Activity, Bond, Effect, Event, Help, Layer, Listener, MatchedRules, Mind, MindId, MindParams, Mood, blend,
};
use azera_config::Tuning;
use azera_memory::{BondRow, MessageRow, MindRow};
use azera_personas::fill_placeholders;
use azera_types::{ChatId, PersonId, PersonaId, Place, Scope, Timestamp};

use crate::background::{Agenda, ChatActivity};
use crate::config::Garden;
use crate::error::Error;
use crate::overrides::OverrideCache;
use crate::services::Services;
use crate::turn::{Judgement, TurnContext, TurnRequest};

/// The minds and what places changed about them. `overrides` holds the methods about overrides.
pub(crate) struct MindService {
    pub(crate) services: Arc<Services>,
    pub(crate) states: Minds,
    /// Parameters of minds, where no place overrides them.
    pub(crate) params: Arc<MindParams>,
    /// The `[mind]` and `[gardener]` numbers that places start from.
    pub(crate) tuning: Tuning,
    /// Overrides by place.
    pub(crate) cache: OverrideCache,
    /// Conversations that background jobs have not handled yet.
    pub(crate) agenda: Agenda,
}

#[derive(Default)]
pub(crate) struct Minds(Mutex<azera_affect::Minds>);

impl Minds {
    fn awake(&self) -> MutexGuard<'_, azera_affect::Minds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the next mind has something due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.awake().next_due()
    }

    /// Returns the activity that is due for each mind by now.
    pub(crate) fn tick(&self, now: Timestamp) -> Vec<(MindId, Activity)> {
        let due = |effects: Vec<Effect>| {
            effects
                .into_iter()
                .find_map(|effect| if let Effect::Due(activity) = effect { Some(activity) } else { None })
        };
        self.awake().tick(now).into_iter().filter_map(|(id, effects)| Some((id, due(effects)?))).collect()
    }

    /// Returns how a persona feels in a place, if anything was said to it there.
    pub(crate) fn state(&self, persona: &PersonaId, place: &Scope, now: Timestamp) -> Option<azera_affect::State> {
        self.awake().state(&mind_id(persona, place), now)
    }

    /// Sets new parameters for all minds of a place, from `now` on.
    pub(crate) fn follow(&self, home: &Scope, params: &Arc<MindParams>, now: Timestamp) {
        let mut awake = self.awake();
        let ids: Vec<MindId> = awake.ids().filter(|id| id.place == *home).cloned().collect();
        for id in ids {
            awake.set_params(&id, now, params);
        }
    }

    /// Sets new parameters for the mind of one persona in a place, from `now` on.
    pub(crate) fn follows(&self, persona: &PersonaId, home: &Scope, params: &Arc<MindParams>, now: Timestamp) {
        self.awake().set_params(&mind_id(persona, home), now, params);
    }
}

/// Who may write the text of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The chat model.
    Model,
    /// A model that passed the safety check, whose reply is checked before it is shown. With any other model, this text
    /// is the reply.
    TrustedModel(&'static str),
    /// No model: this text is the reply.
    Nobody(&'static str),
}

/// How a message is to be answered.
pub(crate) struct ReplyStyle {
    /// Lines for the prompt, the most important first.
    pub(crate) lines: Vec<String>,
    /// Whether the reply is written without playing the persona's role.
    pub(crate) plainly: bool,
    /// The help lines below the reply, word for word.
    pub(crate) help: Vec<String>,
    /// Who may write the reply above them.
    pub(crate) writer: Writer,
    /// The person whom the bond is towards, and the bond after this message.
    towards: PersonId,
    bond: Bond,
}

impl ReplyStyle {
    /// Returns true if the message is about danger. Its reply is checked, shown only as a whole, and never remembered
    /// or trained on.
    pub(crate) fn is_in_danger(&self) -> bool {
        self.writer != Writer::Model
    }
}

pub(crate) fn mind_id(persona: &PersonaId, place: &Scope) -> MindId {
    MindId { persona: persona.clone(), place: place.clone() }
}

impl MindService {
    pub(crate) fn new(services: Arc<Services>, params: Arc<MindParams>) -> Self {
        let tuning = Tuning { mind: params.constants.clone(), gardener: services.config.garden.clone() };
        Self {
            services,
            states: Minds::default(),
            params,
            tuning,
            cache: OverrideCache::default(),
            agenda: Agenda::default(),
        }
    }

    /// Records that a message was heard, for the background jobs.
    pub(crate) fn heard(
        &self,
        platform: &azera_types::PlatformId,
        chat: &ChatId,
        persona: &PersonaId,
        scope: &Scope,
        notes_every: Option<usize>,
        garden: &Arc<Garden>,
    ) {
        let at = self.services.clock.now();
        let talk = ChatActivity { platform: platform.clone(), chat: chat.clone(), persona: persona.clone() };
        let heard =
            crate::background::HeardMessages { talk, scope: scope.clone(), at, notes_every, garden: garden.clone() };
        self.agenda.hear(heard, 1, at);
    }

    /// Loads the minds in the record, and drops those that are no longer in it.
    pub(crate) async fn wake(&self) -> Result<(), Error> {
        let rows = self.services.blocking(|memory| memory.minds().list()).await?;
        self.cache.clear();
        let mut awake = self.states.awake();
        let mut gone: HashSet<MindId> = awake.ids().cloned().collect();
        for row in rows {
            let id = mind_id(&row.persona, &row.scope);
            gone.remove(&id);
            if awake.get(&id).is_some() {
                continue;
            }
            match serde_json::from_value::<Mind>(row.mind) {
                Ok(mind) => awake.insert(id, mind, self.params.clone()),
                Err(error) => {
                    tracing::warn!(persona = %row.persona, scope = %row.scope, %error, "cannot read a mind; it starts afresh");
                }
            }
        }
        for id in gone {
            awake.remove(&id);
        }
        Ok(())
    }

    /// Decides how to answer a message, by its tags and the bond with the person. If the reply is generated again, the
    /// bond is the one that the first reply left.
    pub(crate) async fn reply_style(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        judgement: &Judgement,
    ) -> Result<ReplyStyle, Error> {
        let TurnContext { place, persona, overrides, .. } = context;
        let (message, towards, again) = (&request.message, request.addressee(), request.was_felt());
        let constants = &overrides.params.constants;
        let (of, person, scope) = (message.persona.clone(), towards.clone(), place.scope());
        let mut bond = self.bond(of, person, scope).await?;
        if !again {
            bond.learn(&judgement.tags);
        }
        let MatchedRules { endings, deltas, drop_act, help, .. } = overrides.rules.matching(&judgement.tags, &bond);
        if !again {
            bond.decay_turn(persona.memory.emotion_decay_rate.unwrap_or(constants.emotion_decay_rate));
            bond.apply(&deltas, constants.emotion_max_delta);
        }
        let mut lines = endings;
        if !drop_act {
            lines.extend(Some(bond.words()).filter(|words| !words.is_empty()));
            let sentiments = persona.style_blend.sentiment.as_ref().map(|layer| {
                let [primary, secondary] =
                    [&layer.primary, &layer.secondary].map(|name| persona.sentiment(name).unwrap_or_default());
                (layer, primary, secondary)
            });
            let other = match &persona.style_blend.persona {
                Some(layer) => Some((layer, self.directives(place, &layer.secondary).await?)),
                None => None,
            };
            // The prompt already holds the primary persona in full.
            let personas = other.iter().map(|(layer, secondary)| (*layer, &[][..], secondary.as_slice()));
            let sentiments = sentiments.iter().map(|(layer, primary, secondary)| (*layer, *primary, *secondary));
            let layers: Vec<Layer<'_>> = personas
                .chain(sentiments)
                .map(|(layer, primary, secondary)| Layer {
                    axis: layer.axis,
                    threshold: layer.threshold,
                    primary,
                    secondary,
                })
                .collect();
            lines.extend(blend(&layers, &bond).into_iter().map(str::to_owned));
            lines.extend(self.mood_words(message, place));
        }
        let name = message.author.name();
        let lines = lines.iter().map(|line| fill_placeholders(line, name, &persona.name).into_owned()).collect();
        let locale = overrides.locale(self.services.config.locale.as_deref());
        let language = judgement.found.language.or(judgement.earlier.language);
        let to = Listener { locale, language };
        let (writer, help) = safety(judgement, help, to, message.at, &mut bond);
        Ok(ReplyStyle { lines, plainly: drop_act, help, writer, towards: towards.clone(), bond })
    }

    /// Returns the directives of the persona that a style blend mixes in, as the realm of the place sees it. Returns
    /// none if there is no such persona.
    async fn directives(&self, place: &Place, id: &str) -> Result<Vec<String>, Error> {
        let Ok(id) = PersonaId::new(id) else { return Ok(Vec::new()) };
        let found = self.services.role(place.shared_realm(), &id).await?;
        Ok(found.map_or_else(Vec::new, |loaded| loaded.persona.directives()))
    }

    /// Returns the bond with a person in a place.
    pub(crate) async fn bond(&self, persona: PersonaId, person: PersonId, place: Scope) -> Result<Bond, Error> {
        let row = self.services.blocking(move |memory| memory.minds().bond(&persona, &person, &place)).await?;
        let read = row.map(|row| serde_json::from_value(row.bond)).transpose();
        Ok(read
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read a bond; it starts afresh");
                None
            })
            .unwrap_or_default())
    }

    /// Describes the mood in words, unless it is calm.
    fn mood_words(&self, message: &MessageRow, place: &Place) -> Option<String> {
        let state = self.states.state(&message.persona, &place.scope(), self.services.clock.now())?;
        (state.mood != Mood::Calm).then(|| format!("You feel {}.", state.mood))
    }

    /// Stores the mind and the bond as they are after a message's turn.
    pub(crate) async fn keep_state(&self, message: &MessageRow, place: &Place, style: &ReplyStyle) {
        let scope = place.scope();
        let id = mind_id(&message.persona, &scope);
        let mind = self.states.awake().get(&id).map(serde_json::to_value).and_then(Result::ok);
        let mind = mind.map(|mind| MindRow { persona: id.persona, scope, seq: message.seq, mind });
        let bond = serde_json::to_value(&style.bond).ok().map(|bond| BondRow {
            persona: message.persona.clone(),
            person: style.towards.clone(),
            scope: place.scope(),
            seq: message.seq,
            bond,
        });
        let message = message.clone();
        if let Err(error) = self.services.blocking(move |memory| memory.minds().put_state(&message, mind, bond)).await {
            tracing::warn!(%error, "cannot store a persona's state");
        }
    }

    /// Returns how stirred a persona is in a place: 0 at rest, 1 at most and -1 at least. It is given in fifths, so that a
    /// voice does not change all the time.
    pub(crate) fn stir(&self, persona: &PersonaId, place: &Scope) -> f32 {
        const STEPS: f64 = 5.0;
        let Some(state) = self.states.state(persona, place, self.services.clock.now()) else { return 0.0 };
        let rest = self.params.constants.arousal_rest;
        let above = state.arousal - rest;
        let most = if above > 0.0 { 1.0 - rest } else { rest };
        if most <= 0.0 { 0.0 } else { ((above / most).clamp(-1.0, 1.0) * STEPS).round() as f32 / STEPS as f32 }
    }

    /// Gives a persona a mood in one place.
    pub(crate) async fn give(&self, persona: &PersonaId, place: &Scope, mood: Mood, valence: f64) {
        let (id, now) = (mind_id(persona, place), self.services.clock.now());
        {
            let mut awake = self.states.awake();
            if awake.get(&id).is_none() {
                awake.insert(id.clone(), Mind::new(now, &self.params), self.params.clone());
            }
        }
        self.ended(&id, Event::Given { mood, valence }).await;
    }

    /// Applies an event to a mind, such as an activity that was done or postponed, and stores the mind.
    pub(crate) async fn ended(&self, id: &MindId, event: Event) {
        let mind = {
            let mut awake = self.states.awake();
            awake.apply(id, self.services.clock.now(), event);
            awake.get(id).map(serde_json::to_value)
        };
        let Some(Ok(mind)) = mind else { return };
        let MindId { persona, place } = id.clone();
        if let Err(error) = self.services.blocking(move |memory| memory.minds().put_mind(&persona, &place, mind)).await
        {
            tracing::warn!(%error, "cannot store a persona's state");
        }
    }
}

/// Decides who may write the reply to a message, and which help lines stand below it. `at` is the message's time.
fn safety(
    judgement: &Judgement,
    mut help: Vec<Help>,
    to: Listener<'_>,
    at: Timestamp,
    bond: &mut Bond,
) -> (Writer, Vec<String>) {
    let (found, earlier) = (judgement.found, judgement.earlier);
    let in_crisis = help.contains(&Help::Crisis);
    let is_minor = bond.is_minor() || earlier.minor;
    let plays_minor = bond.keep_young_role(found.child_role || earlier.child_role, at);
    let is_intimate = found.sexualises_a_child() || found.is_intimate_with(is_minor, plays_minor);
    if is_intimate || (earlier.refused && !in_crisis) {
        // The person may be reporting what was done to them.
        let help = if in_crisis { Help::Crisis } else { Help::Danger };
        return (Writer::Nobody(to.refusal()), vec![help.text(to)]);
    }
    let asks_for_means = found.means && (judgement.amid_danger || help.contains(&Help::Crisis));
    if asks_for_means && !help.contains(&Help::Crisis) {
        help.insert(0, Help::Crisis);
    }
    if help.is_empty() {
        return (Writer::Model, Vec::new());
    }
    let in_full = bond.help(at);
    let mut texts: Vec<String> = help.iter().map(|help| if in_full { help.text(to) } else { help.short(to) }).collect();
    if is_minor {
        texts.push(to.under_age().to_owned());
    }
    let writer = match (asks_for_means, help.contains(&Help::Crisis)) {
        (true, _) => Writer::Nobody(to.no_means()),
        (false, true) => Writer::TrustedModel(to.plainly()),
        (false, false) => Writer::TrustedModel(""),
    };
    (writer, texts)
}

#[cfg(test)]
mod tests {
    use azera_affect::{Danger, RealmRules, Rules, Tag};

    use super::*;
    use crate::turn::Earlier;

    fn judged(tags: &[Tag], found: Danger, amid_danger: bool) -> (Writer, Vec<String>) {
        let judgement = Judgement { tags: tags.to_vec(), found, amid_danger, earlier: Earlier::default() };
        judged_at(&judgement, Timestamp::UNIX_EPOCH, &mut Bond::new())
    }

    fn judged_at(judgement: &Judgement, at: Timestamp, bond: &mut Bond) -> (Writer, Vec<String>) {
        bond.learn(&judgement.tags);
        let help = Rules::with(&RealmRules::default()).unwrap().matching(&judgement.tags, bond).help;
        safety(judgement, help, Listener::default(), at, bond)
    }

    #[test]
    fn a_role_under_18_stays_in_force_for_as_long_as_the_conversation_lasts() {
        let at = |hours: i64| Timestamp::from_second(hours * 3_600).unwrap();
        let found = |child_role, romance| Danger { child_role, romance, ..Danger::default() };
        let judgement = |found| Judgement { found, ..Judgement::default() };
        let refusal = Writer::Nobody(Listener::default().refusal());
        let mut bond = Bond::new();
        let mut writer = |child_role, romance, hours| {
            let judged = judged_at(&judgement(found(child_role, romance)), at(hours), &mut bond);
            bond = serde_json::from_value(serde_json::to_value(&bond).unwrap()).unwrap();
            judged.0
        };
        assert_eq!(writer(false, true, 1), Writer::Model, "romance among adults");
        assert_eq!(writer(true, false, 2), Writer::Model, "a story with a child in it");
        for hours in [3, 25, 48] {
            assert_eq!(writer(false, false, hours), Writer::Model);
        }
        assert_eq!(writer(false, true, 60), refusal);
        assert_eq!(writer(false, true, 85), Writer::Model, "another conversation, a day later");
    }

    #[test]
    fn the_writer_of_a_reply_follows_from_the_message() {
        let to = Listener::default();
        let (writer, help) = judged(&[Tag::Joke], Danger::default(), false);
        assert_eq!((writer, help.len()), (Writer::Model, 0));
        let (writer, help) = judged(&[Tag::SelfHarm], Danger::default(), false);
        assert_eq!((writer, help), (Writer::TrustedModel(to.plainly()), vec![Help::Crisis.text(to)]));
        let (writer, help) = judged(&[Tag::SelfHarm, Tag::Minor], Danger::default(), false);
        assert_eq!((writer, help.len()), (Writer::TrustedModel(to.plainly()), 2));
        let (writer, help) = judged(&[Tag::Threat], Danger::default(), false);
        assert_eq!((writer, help.len()), (Writer::TrustedModel(""), 1));
    }

    #[test]
    fn no_model_answers_a_question_about_means_amid_danger() {
        let means = Danger { means: true, ..Danger::default() };
        let (writer, help) = judged(&[], means, false);
        assert_eq!((writer, help.len()), (Writer::Model, 0), "a question about a prescription");
        let (writer, help) = judged(&[], means, true);
        assert_eq!((writer, help.len()), (Writer::Nobody(Listener::default().no_means()), 1));
        let (writer, _) = judged(&[Tag::SelfHarm], means, false);
        assert_eq!(writer, Writer::Nobody(Listener::default().no_means()));
    }

    #[test]
    fn nothing_sexual_is_written_about_or_with_a_child() {
        let refused = Writer::Nobody(Listener::default().refusal());
        let about = Danger { sexual: true, child: true, ..Danger::default() };
        let danger = vec![Help::Danger.text(Listener::default())];
        assert_eq!(judged(&[], about, false), (refused.clone(), danger.clone()));
        let with = Danger { sexual: true, ..Danger::default() };
        assert_eq!(judged(&[Tag::Minor], with, false), (refused.clone(), danger.clone()));
        assert_eq!(judged(&[], with, false).0, Writer::Model);
        let flirt = Danger { romance: true, ..Danger::default() };
        assert_eq!(judged(&[Tag::Minor], flirt, false), (refused.clone(), danger));
        assert_eq!(judged(&[], flirt, false).0, Writer::Model);
        let (writer, help) = judged(&[Tag::Minor, Tag::SelfHarm], flirt, false);
        assert_eq!((writer, help), (refused, vec![Help::Crisis.text(Listener::default())]));
    }

    #[test]
    fn help_lines_stand_in_full_once_per_conversation() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut bond = Bond::new();
        let judgement = Judgement { tags: vec![Tag::SelfHarm], ..Judgement::default() };
        let mut shown = |second| {
            let (_, help) = safety(&judgement, vec![Help::Crisis], Listener::default(), at(second), &mut bond);
            help == [Help::Crisis.text(Listener::default())]
        };
        assert!(shown(1_000));
        assert!(shown(1_000), "the same message made anew");
        assert!(!shown(2_000));
        assert!(shown(1_000 + 7 * 3_600), "another conversation");
    }
}
