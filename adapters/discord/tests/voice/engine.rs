//! A minimal engine: it keeps what people said, and answers with fixed words.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use async_trait::async_trait;
use azera_adapter::{
    AutocompleteOption, AutocompleteRequest, CallManner, CallPersona, CallWish, CommandAnswer, CommandLine,
    ExpectedMessage, Host, HostError, InboundEvent, Making, Outbound, Outcome, Platform, Receipt, Recorded,
    SearchRequest, Searched, SkipReason, State, StreamEvent, VoiceError, VoiceHost,
};
use azera_adapter_discord::{Discord, Engines, Speech};
use azera_types::{ChatId, Inbound, MessageId, PersonId, PersonaId, Place, PlatformId, Text, Timestamp};
use azera_voice_api::{Style, VoiceActivity};
use azera_voice_engines::SileroVad;
use tokio::sync::Notify;

use crate::people::{Ears, VOICE, Voice, model};

/// What it keeps.
#[derive(Default)]
pub struct Kept {
    /// What people said, and the place in which they said it.
    pub said: Vec<(Inbound, Place)>,
    /// Whether people may be heard; `None` if they were asked.
    pub consent: HashMap<PersonId, Option<bool>>,
    /// What was heard of replies that were cut.
    pub cut: Vec<String>,
    /// Replies that went on and were heard to their end.
    pub whole: usize,
    /// What people seemed to be saying.
    pub expected: Vec<String>,
    /// The voice channels in which people were asked.
    pub asked: BTreeSet<ChatId>,
    /// What became of presses of buttons about captions.
    pub captioned: Vec<Result<(), VoiceError>>,
    /// What was forgotten.
    pub forgotten: Vec<MessageId>,
    /// A person about whom nothing is answered for now.
    pub held: Option<PersonId>,
    /// A person whose decision cannot be read for now.
    pub unreadable: Option<PersonId>,
    /// How often that decision was to be read.
    pub unread: usize,
    /// How the answers to questions fail, one after the other. After that, they work.
    pub failures: VecDeque<HostError>,
    /// True while each question is forgotten as soon as it is recorded.
    pub forgets: bool,
    /// True while it is not taken in how much of a reply was heard.
    pub holds_heard: bool,
    /// True while it is not recorded that people were asked.
    pub holds_asked: bool,
    /// How many of all these wait.
    pub waiting: usize,
}

pub struct Engine {
    kept: Mutex<Kept>,
    /// Pieces of the answer.
    answer: &'static [&'static str],
    discord: OnceLock<Arc<Discord>>,
    released: Notify,
}

impl Engine {
    pub fn new(answer: &'static [&'static str]) -> Self {
        Self { kept: Mutex::default(), answer, discord: OnceLock::new(), released: Notify::new() }
    }

    pub fn attach(&self, discord: Arc<Discord>) {
        assert!(self.discord.set(discord).is_ok(), "it is attached once");
    }

    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no test panics while it holds this")
    }

    fn discord(&self) -> &Discord {
        self.discord.get().expect("it is attached")
    }

    /// Answers everything again.
    pub fn release(&self) {
        self.kept().held = None;
        self.kept().holds_heard = false;
        self.kept().holds_asked = false;
        self.released.notify_waiters();
    }
}

/// A manner in which the same words always sound the same.
fn even() -> CallManner {
    CallManner { liveliness: Some(0.0), ..CallManner::default() }
}

#[async_trait]
impl VoiceHost for Engine {
    async fn call_persona(&self, _: &PlatformId, _: &ChatId) -> Result<CallPersona, HostError> {
        Ok(CallPersona { names: vec!["Azera".to_owned()], manner: even() })
    }

    async fn call_manner(&self, _: &PlatformId, _: &ChatId, _: &PersonaId) -> Result<CallManner, HostError> {
        Ok(even())
    }

    async fn may_be_heard(&self, _: &ChatId, person: &PersonId) -> Result<Option<bool>, HostError> {
        let released = self.released.notified();
        if self.kept().held.as_ref() == Some(person) {
            self.kept().waiting += 1;
            released.await;
        }
        if self.kept().unreadable.as_ref() == Some(person) {
            self.kept().unread += 1;
            return Err(HostError::Storage("the record cannot be read".into()));
        }
        Ok(self.kept().consent.get(person).map(|decision| *decision == Some(true)))
    }

    async fn was_asked(&self, chat: &ChatId, person: &PersonId) -> Result<(), HostError> {
        let released = self.released.notified();
        if self.kept().holds_asked {
            self.kept().waiting += 1;
            released.await;
        }
        self.kept().asked.insert(chat.clone());
        self.kept().consent.entry(person.clone()).or_default();
        Ok(())
    }

    async fn heard(&self, _: &MessageId, heard: Text, is_whole: bool) -> Result<(), HostError> {
        let released = self.released.notified();
        if self.kept().holds_heard {
            self.kept().waiting += 1;
            released.await;
        }
        let mut kept = self.kept();
        kept.cut.push(heard.as_str().to_owned());
        kept.whole += usize::from(is_whole);
        Ok(())
    }

    async fn stands(&self, message: &MessageId) -> Result<Option<bool>, HostError> {
        let kept = self.kept();
        let question = message.as_str().split('~').next().unwrap_or_default();
        let is_known = kept.said.iter().any(|(said, _)| said.id.as_str() == question);
        Ok(is_known.then(|| !kept.forgotten.contains(message)))
    }

    async fn forget_said(&self, person: &PersonId, said: &[MessageId]) -> Result<usize, HostError> {
        let mut kept = self.kept();
        let is_own = |message: &&MessageId| {
            let question = message.as_str().split('~').next().unwrap_or_default();
            kept.said.iter().any(|(said, _)| said.id.as_str() == question && said.person == *person)
        };
        let theirs: Vec<MessageId> = said.iter().filter(is_own).cloned().collect();
        let count = theirs.len();
        kept.forgotten.extend(theirs);
        Ok(count)
    }

    async fn expect(&self, _: &PlatformId, message: ExpectedMessage) {
        self.kept().expected.push(message.text.as_str().to_owned());
    }
}

impl Engine {
    /// Returns the answer to a message.
    pub fn answer_to(&self, id: &MessageId, chat: &ChatId) -> Outbound {
        Outbound {
            id: MessageId::new(format!("{id}~r0")).expect("an id"),
            chat: chat.clone(),
            persona: PersonaId::new("azera").expect("an id"),
            persona_name: "Azera".to_owned(),
            text: Text::new(self.answer.concat()),
            reply_to: Some(id.clone()),
            asker: None,
            state: State::default(),
            help: String::new(),
            files: Vec::new(),
            can_upscale: false,
        }
    }

    async fn answer(&self, inbound: Inbound) -> Result<Outcome, HostError> {
        let discord = self.discord();
        let place = discord.place(&inbound.chat, &inbound.person).await.map_err(|e| HostError::Internal(e.into()))?;
        let place = place.ok_or(HostError::NotAllowed)?;
        {
            let mut kept = self.kept();
            if kept.forgets {
                kept.forgotten.push(inbound.id.clone());
            }
            kept.said.push((inbound.clone(), place));
        }
        if !inbound.mentions_bot {
            return Ok(Outcome::Skipped(SkipReason::NotAddressed));
        }
        let failure = self.kept().failures.pop_front();
        if let Some(failure) = failure {
            return Err(failure);
        }
        let asker = Some(inbound.person.clone());
        let outbound = Outbound { asker, ..self.answer_to(&inbound.id, &inbound.chat) };
        let making = Making {
            chat: &inbound.chat,
            reply: &outbound.id,
            persona: &outbound.persona,
            persona_name: "Azera",
            asker: outbound.asker.as_ref(),
            is_help: false,
        };
        let streaming = discord.streaming().expect("Discord streams");
        for piece in self.answer {
            streaming.event(making, &StreamEvent::Content { text: (*piece).to_owned() }).await;
        }
        discord.deliver(&outbound).await.map_err(|error| HostError::Internal(error.into()))?;
        Ok(Outcome::Skipped(SkipReason::Empty))
    }
}

#[async_trait]
impl Host for Engine {
    async fn submit(&self, _: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        match event {
            InboundEvent::Message(inbound) => Ok(Receipt::new(Recorded::New, ready(self.answer(inbound).await))),
            _ => Ok(Receipt::unanswered(Recorded::New)),
        }
    }

    /// Takes the line of a button below a question about consent.
    async fn command(&self, _: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        let voice = self.discord().voice().expect("Discord has voice channels");
        let record = match line.text.as_str() {
            "/voice record no" => Some(CallWish::Refuse),
            text => text.strip_prefix("/voice record yes ").map(|name| CallWish::Agree(Some(name.to_owned()))),
        };
        if let Some(wish) = record {
            voice.record(&line.chat, &line.person, wish).await.expect("a recording");
            return Ok(CommandAnswer { ok: true, text: line.text.as_str().to_owned(), ..CommandAnswer::default() });
        }
        let wish = match line.text.as_str() {
            "/voice captions no" => Some(CallWish::Refuse),
            text => text.strip_prefix("/voice captions yes ").map(|name| CallWish::Agree(Some(name.to_owned()))),
        };
        if let Some(wish) = wish {
            let status = voice.captions(&line.chat, &line.person, wish).await;
            self.kept().captioned.push(status.map(drop));
        } else {
            let decision = line.text.as_str() != "/voice consent no";
            self.kept().consent.insert(line.person.clone(), Some(decision));
            let chat = voice.chat_of(&line.chat, &line.person).await.expect("a voice channel");
            voice.decided(&chat, &line.person, decision).await;
        }
        Ok(CommandAnswer { ok: true, text: line.text.as_str().to_owned(), ..CommandAnswer::default() })
    }

    async fn autocomplete(&self, _: &PlatformId, _: AutocompleteRequest) -> Result<Vec<AutocompleteOption>, HostError> {
        Ok(Vec::new())
    }

    async fn search(&self, _: &PlatformId, _: SearchRequest) -> Result<Searched, HostError> {
        Ok(Searched::default())
    }

    async fn settle(&self) -> Result<(), HostError> {
        Ok(())
    }
}

/// The engines of speech, in this process.
pub struct OwnSpeech(pub Engines);

impl OwnSpeech {
    pub fn of(voice: &Voice, ears: &Ears) -> Self {
        let activity = Mutex::new(SileroVad::open(&model("silero-vad", "onnx")).expect("a detector"));
        let open = move || -> Box<dyn VoiceActivity> {
            Box::new(activity.lock().expect("nobody panics while they hold this").for_another_stream())
        };
        let usual = Style { liveliness: 0.0, ..Style::of(VOICE) };
        Self(Engines::new(ears.engine(), voice.engine(), usual, Arc::new(open)))
    }
}

#[async_trait]
impl Speech for OwnSpeech {
    async fn engines(&self) -> Result<Engines, String> {
        Ok(self.0.clone())
    }
}

/// Returns the time from which all in the room heard everything.
pub fn since(place: &Place) -> Timestamp {
    place.since.expect("a room has a horizon")
}
