//! The turn: one inbound message answered once. This file is the order of its stages; each stage is a file of its own.
//!
//! | stage | file | does |
//! |---|---|---|
//! | ingest | `ingest.rs` | records the message, queues its turn |
//! | context | `context.rs` | loads place, persona, permissions, model, once |
//! | hear | `hearing.rs` | turns recordings into words |
//! | see | `seeing.rs` | turns pictures into descriptions |
//! | decide | `decide.rs`, `addressing.rs` (calls: `vocative.rs`, `unspaced.rs`, `speech.rs`) | answers it, or ends the turn |
//! | history | `history.rs` | measures what of the conversation fits |
//! | recall | `recall.rs` | finds memories |
//! | judge | `judge.rs`, `earlier.rs` | recognises danger and tags, before any word is generated |
//! | compose | `compose.rs`, `sources.rs` | writes the prompt |
//! | generate | `generate.rs`, `generation.rs` | streams the reply |
//! | commit | `commit.rs` | writes everything in one transaction |
//! | deliver | `deliver.rs` | shows it, if it still may be shown |
//! | speak | `spoken.rs` | adds the sound of the reply |
//! | rehearse | `rehearse.rs` | runs the stages up to the prompt while somebody still speaks |
//! | remember | `remember.rs`, `pictures.rs` | notes which memories the reply used, keeps the exchange for learning, queues pictures; writes no memory |

mod addressing;
mod brake;
mod broken_off;
mod commit;
mod compose;
mod context;
mod decide;
mod deliver;
mod earlier;
mod ending;
mod generate;
mod generation;
mod hearing;
mod history;
mod ingest;
mod judge;
mod leftovers;
mod overlap;
mod part_bytes;
mod pictures;
mod recall;
mod rehearse;
mod remember;
mod reply_id;
mod seeing;
mod shaping;
mod sources;
mod speech;
mod spoken;
mod unspaced;
mod vocative;

use azera_adapter::{Outcome, SkipReason, Turn};

pub use addressing::{Addressing, calls, decide};
pub(crate) use context::{TurnContext, TurnRequest};
#[cfg(test)]
pub(crate) use earlier::Earlier;
pub(crate) use generation::{any_seed, derived_seed};
pub(crate) use hearing::{heard_words, spoken_words};
pub(crate) use history::recalled_memory;
pub(crate) use ingest::Submitted;
pub(crate) use judge::{Judge, Judgement};
pub(crate) use rehearse::Rehearsals;
pub(crate) use spoken::SpokenReplies;

use crate::access::AccessControl;
use crate::error::Error;
use crate::files::FileFetcher;
use crate::forgetting::Forgetting;
use crate::hearth::Learning;
use crate::indexing::Indexer;
use crate::minds::MindService;
use crate::outbox::Outbox;
use crate::pictures::Pictures;
use crate::queue::Queues;
use crate::recall::{RecallService, Trace};
use crate::report::{hit, usage};
use crate::services::Services;
use crate::stage_timer::StageTimer;
use crate::surprise::SurpriseMeter;
use azera_memory::MessageRow;
use azera_types::{ChatId, MessageId};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Runs turns: every message once, one at a time in a chat.
pub(crate) struct Turns {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) minds: Arc<MindService>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) recall: Arc<RecallService>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) surprise: Arc<SurpriseMeter>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) forgetting: Arc<Forgetting>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) pictures: Arc<Pictures>,
    pub(crate) files: Arc<FileFetcher>,
    pub(crate) spoken: SpokenReplies,
    pub(crate) rehearsals: Rehearsals,
    pub(crate) queues: Queues,
    pub(crate) progress: TurnProgress,
}

/// What is known about turns that wait, run, or failed.
#[derive(Default)]
pub(crate) struct TurnProgress {
    /// Messages whose turns are waiting or in progress.
    under_way: Mutex<HashSet<MessageId>>,
    /// Edited versions of messages that are being answered now.
    changed_amid: Mutex<HashMap<MessageId, MessageRow>>,
    /// Whether a turn failed for a reason that may pass.
    stranded: AtomicBool,
    retry_wanted: Notify,
    /// Held while the outbox is delivered, so that no reply is delivered twice.
    delivering: tokio::sync::Mutex<()>,
    /// Messages whose people were told that the reply failed. Their turns may be tried again.
    told_failed: Mutex<HashSet<MessageId>>,
    /// Chats that were told since the start that a picture was not seen.
    told_unseen: Mutex<HashSet<ChatId>>,
    /// The day of the newest of those: chats that were told why a reply's picture is not drawn, and the reasons.
    told_undrawn: Mutex<(String, HashSet<(ChatId, String)>)>,
}

/// Most chats or messages that are remembered because something was told there. With more, some are told again.
const MAX_TOLD: usize = 10_000;

impl TurnProgress {
    /// Returns true if a chat was not told yet that a picture was not seen. From now on it was.
    fn tell_unseen(&self, chat: &ChatId) -> bool {
        let mut told = self.told_unseen.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        told.insert(chat.clone())
    }

    /// Returns true if a chat was not told yet that day why a reply's picture is not drawn. From now on it was.
    fn tell_undrawn(&self, chat: &ChatId, reason: &str, day: &str) -> bool {
        let mut told = self.told_undrawn.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0 != day || told.1.len() >= MAX_TOLD {
            *told = (day.to_owned(), HashSet::new());
        }
        told.1.insert((chat.clone(), reason.to_owned()))
    }
}

/// Attempts per turn. Membership changes can invalidate each attempt; after the last, the turn fails.
const ATTEMPTS: usize = 3;

impl Turns {
    /// Decides on a message and answers it if it is to be answered. Runs when it is the message's turn in its chat.
    pub(crate) async fn take_turn(self: &Arc<Self>, mut request: TurnRequest) -> Result<Outcome, Error> {
        let _foreground = self.services.foreground.enter();
        self.rehearsals.end(&request.message.chat);
        for _ in 0..ATTEMPTS {
            if let Some(reason) = self.reload_message(&mut request).await? {
                return Ok(Outcome::Skipped(reason));
            }
            let mut timer = StageTimer::start(request.platform.id().as_str());
            (request.missed, request.replied) = (None, None);
            let context = match self.load_context(&request).await {
                Ok(Some(context)) => context,
                Ok(None) => return Ok(Outcome::Skipped(SkipReason::NotAddressed)),
                Err(error) => {
                    if matches!(error, Error::NotAllowed) && request.inbox.mentions_bot {
                        let (platform, text) = (request.platform.as_ref(), request.message.text.as_str());
                        self.help_without_turn(platform, request.asked(), text).await;
                    }
                    return Err(error);
                }
            };
            timer.end("context");
            if !self.hear_recordings(&mut request, &context).await? {
                continue;
            }
            timer.end("hear");
            if !self.see_pictures(&mut request, &context).await? {
                continue;
            }
            timer.end("see");
            let skipped = self.skip_reason(&request, &context).await?;
            timer.end("decide");
            if let Some(reason) = skipped {
                timer.outcome("skipped");
                let remembered = self.end_unanswered(&request).await?;
                self.end_turn(&request, &context, remembered);
                return Ok(Outcome::Skipped(reason));
            }
            let turn = self.answer(&mut request, &context, &mut timer).await?;
            self.end_turn(&request, &context, turn.is_some());
            if let Some(turn) = turn {
                self.answer_if_changed(&request);
                timer.reply(&turn);
                tracing::debug!(reply = %turn.reply, %timer, "a turn is over");
                return Ok(Outcome::Replied(Box::new(turn)));
            }
        }
        Err(Error::NotAllowed)
    }

    /// Loads the message as it is now: while it waited, it may have been changed, forgotten or answered. Returns why its turn
    /// is over, if it is.
    async fn reload_message(&self, request: &mut TurnRequest) -> Result<Option<SkipReason>, Error> {
        let id = request.message.id.clone();
        self.changed_amid().remove(&id);
        if request.again {
            return Ok(None);
        }
        let found =
            self.services.blocking(move |memory| Ok((memory.turns().open(&id)?, memory.messages().stands(&id)?)));
        match found.await? {
            (Some(message), _) => {
                request.message = message;
                Ok(None)
            }
            (None, Some(true)) => Ok(Some(SkipReason::Duplicate)),
            (None, _) => Ok(Some(SkipReason::Forgotten)),
        }
    }

    /// Runs the stages of a reply. Returns `None` if readers changed and the reply was cancelled or withdrawn, or if its
    /// message was forgotten meanwhile.
    async fn answer(
        self: &Arc<Self>,
        request: &mut TurnRequest,
        context: &TurnContext,
        timer: &mut StageTimer,
    ) -> Result<Option<Turn>, Error> {
        let history = self.load_history(request, context).await?;
        timer.end("history");
        let changes_before = self.surprise.exchanges.changes();
        let recall = self.recall_for_turn(request, context, &history, Trace::Cached).await?;
        timer.end("recall");
        self.services.measurements.note_recall(recall.took_ms);
        let judgement = self.judge.judge(&request.message, &context.recent, &recall, Trace::Cached).await;
        let style = self.minds.reply_style(request, context, &judgement).await?;
        timer.end("judge");
        let composition = self.compose_prompt(request, context, history, recall, style)?;
        timer.end("compose");
        let Some(draft) = self.generate_reply(request, context, &composition).await? else {
            let help = composition.style.help.join("\n\n");
            self.help_without_reply(request.platform.as_ref(), request.asked(), &help).await;
            return Ok(None);
        };
        timer.end("generate");
        let Some(committed) = self.commit(request, context, &composition, &draft).await? else { return Ok(None) };
        timer.end("commit");
        let delivered = self.deliver_reply(request, context, &composition, &draft, &committed).await;
        // What was queued with the reply is drawn even if the turn ends here.
        if !delivered.inspect_err(|_| self.pictures.begin())? {
            return Ok(None);
        }
        timer.end("deliver");
        self.speak_reply(request, context, &composition, &committed);
        self.remember(request, context, &composition, &draft, &committed, changes_before).await;
        self.draw_tags(request, context, &composition, &draft, &committed).await;
        Ok(Some(Turn {
            reply: committed.reply.id,
            to: request.message.id.clone(),
            chat: request.message.chat.clone(),
            persona: request.message.persona.clone(),
            text: committed.reply.text,
            state: committed.state,
            usage: usage(&draft.generated.usage),
            recalled: composition.memories().into_iter().map(|found| hit(found, &context.calendar.zone)).collect(),
        }))
    }

    /// Tells background work what a turn left behind.
    fn end_turn(&self, request: &TurnRequest, context: &TurnContext, remembered: bool) {
        let memory = &context.persona.memory;
        if remembered {
            let every = memory.working_notes_every_n_turns.map(|every| usize::try_from(every).unwrap_or(usize::MAX));
            let (chat, persona) = (&request.message.chat, &request.message.persona);
            let garden = &context.overrides.garden;
            self.minds.heard(request.platform.id(), chat, persona, &context.scope, every, garden);
        }
        self.indexer.bound(request.message.persona.clone(), memory.prune_keep);
        self.indexer.wake();
    }

    /// Answers a message anew that was edited while its reply was made.
    fn answer_if_changed(self: &Arc<Self>, request: &TurnRequest) {
        let changed = self.changed_amid().remove(&request.message.id);
        if let Some(message) = changed.filter(|message| message.text != request.message.text) {
            self.answer_what_it_says_now(request, message);
        }
    }
}
