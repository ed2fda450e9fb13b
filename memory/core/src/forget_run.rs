//! One call of [`Forgetting::forget`]: its steps, and what it counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use azera_types::{Author, ChatId, MessageId};

use crate::domains::Forgetting;
use crate::forget_log::Forgotten;
use crate::rows::{MemoryRow, MessageRow};
use crate::{Batch, Entry, Error, Forget, ForgetReceipt, Order, ReadScope, Table, codec, keys};

/// Messages that one transaction forgets.
const PAGE: usize = 128;

/// How a call forgets, and what it removed so far.
pub(crate) struct ForgetRun<'a> {
    /// True if replies that were built on forgotten messages are forgotten, too.
    quotes: bool,
    /// True if an import is undone: its messages may be imported again.
    undoing: bool,
    /// What the receipt may tell of; `None` for everything.
    witness: Option<&'a ReadScope>,
    /// The messages that were found when the call began. The receipt tells of each of them.
    named: &'a HashSet<MessageId>,
    /// The messages that imported chats got since. The receipt tells of them, too.
    late: HashSet<MessageId>,
    pub(crate) receipt: ForgetReceipt,
    /// Counts removed items that the asker may not know about.
    unreported: ForgetReceipt,
}

impl<'a> ForgetRun<'a> {
    pub(crate) fn new(
        what: &Forget,
        quotes: bool,
        witness: Option<&'a ReadScope>,
        named: &'a HashSet<MessageId>,
    ) -> Self {
        let undoing = matches!(what, Forget::Import(_));
        let (receipt, unreported) = (ForgetReceipt::default(), ForgetReceipt::default());
        Self { quotes, undoing, witness, named, late: HashSet::new(), receipt, unreported }
    }

    fn may_report(&self, message: &MessageRow) -> bool {
        self.named.contains(&message.id)
            || self.late.contains(&message.id)
            || self
                .witness
                .is_none_or(|read_scope| read_scope.covers(&message.scope, &message.source_scopes, message.at))
    }

    fn tally(&mut self, reported: bool) -> &mut ForgetReceipt {
        if reported { &mut self.receipt } else { &mut self.unreported }
    }

    pub(crate) fn into_receipt(self) -> ForgetReceipt {
        let Self { mut receipt, unreported, .. } = self;
        receipt.quoted_by.sort();
        // A reply may rest both on messages that were found at first and on those that came late.
        receipt.quoted_by.dedup();
        receipt.retract.extend(unreported.retract);
        receipt.said.extend(unreported.said);
        receipt.touched.extend(unreported.touched);
        receipt
    }
}

/// Returns what tells whether the asker may know about a memory. Writings of other places that were built on forgotten
/// messages are forgotten, too; the asker may not know about them.
fn known_to(witness: Option<&ReadScope>) -> impl Fn(&MemoryRow) -> bool {
    move |memory: &MemoryRow| {
        !memory.kind.is_written()
            || witness.is_none_or(|read_scope| read_scope.covers(&memory.scope, &memory.source_scopes, memory.at))
    }
}

impl Forgetting<'_> {
    /// Removes memories that no message leads to.
    pub(crate) fn forget_loose(self, run: &mut ForgetRun<'_>, loose: &[MemoryRow]) -> Result<(), Error> {
        for page in loose.chunks(PAGE) {
            // The graph may be reading one of them.
            let _writing = self.0.writing_in(&page.iter().filter_map(|memory| memory.chat.clone()).collect())?;
            let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
            for memory in page {
                self.0.turns().remove_memory(&mut batch, memory)?;
                gone.memory(memory.id);
                run.receipt.memories += 1;
            }
            self.commit_forgetting(batch, gone)?;
        }
        Ok(())
    }

    /// Forgets messages, page by page.
    pub(crate) fn forget_messages<'m>(
        self,
        run: &mut ForgetRun<'_>,
        ids: impl IntoIterator<Item = &'m MessageId>,
    ) -> Result<(), Error> {
        let mut by_chat: HashMap<ChatId, Vec<(MessageId, bool)>> = HashMap::new();
        for id in ids {
            if let Some(message) = self.0.messages().raw_message(id)? {
                let reported = run.may_report(&message);
                by_chat.entry(message.chat).or_default().push((message.id, reported));
            }
        }
        let (known, undoing) = (known_to(run.witness), run.undoing);
        for (chat, ids) in by_chat {
            let memories = self.0.memories();
            let _writing = memories.writing_below(&chat, ids.iter().map(|(id, _)| id))?;
            for page in ids.chunks(PAGE) {
                let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
                // In the same transaction: afterwards nothing tells what the replies recalled.
                memories.forget_thumbs(&mut batch, &page.iter().map(|(id, _)| id.clone()).collect())?;
                for (id, reported) in page {
                    self.forget_message(&mut batch, id, &mut gone, run.tally(*reported), undoing, &known)?;
                }
                self.commit_forgetting(batch, gone)?;
            }
        }
        Ok(())
    }

    /// Forgets the messages that imported chats got since the call began, and the replies built on them. `seen` holds the
    /// last key of each chat's log that was read; reading goes on behind it.
    pub(crate) fn forget_late(
        self,
        run: &mut ForgetRun<'_>,
        chats: &BTreeSet<ChatId>,
        seen: &mut BTreeMap<ChatId, Vec<u8>>,
    ) -> Result<(), Error> {
        let mut late = HashSet::new();
        for chat in chats {
            loop {
                let entries = self.log_behind(chat, seen, PAGE)?;
                let Some((last, _)) = entries.last() else { break };
                seen.insert(chat.clone(), last.clone());
                for (_, value) in &entries {
                    let id: MessageId = codec::decode(Table::ChatLog, value)?;
                    if !run.named.contains(&id) {
                        late.insert(id);
                    }
                }
            }
        }
        run.late.extend(late.iter().cloned());
        self.forget_messages(run, &late)?;
        self.forget_built_on(run, &late)
    }

    /// Returns true if one of the chats got messages behind those that were read.
    pub(crate) fn has_late(self, chats: &BTreeSet<ChatId>, seen: &BTreeMap<ChatId, Vec<u8>>) -> Result<bool, Error> {
        for chat in chats {
            if !self.log_behind(chat, seen, 1)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn log_behind(self, chat: &ChatId, seen: &BTreeMap<ChatId, Vec<u8>>, limit: usize) -> Result<Vec<Entry>, Error> {
        let (log, after) = (keys::prefix(&[chat.as_str()]), seen.get(chat).map(Vec::as_slice));
        self.0.store.scan(Table::ChatLog, &log, after, Order::Ascending, limit)
    }

    /// Forgets the replies that were built on these messages, or stops recalling them.
    pub(crate) fn forget_built_on(self, run: &mut ForgetRun<'_>, messages: &HashSet<MessageId>) -> Result<(), Error> {
        let built_on = self.all_built_on(messages, &[])?;
        if run.quotes { self.forget_messages(run, &built_on) } else { self.stop_recalling(run, &built_on) }
    }

    /// Removes the memories of replies that stay, so that recall does not reveal what they took from forgotten messages.
    pub(crate) fn stop_recalling(self, run: &mut ForgetRun<'_>, replies: &HashSet<MessageId>) -> Result<(), Error> {
        let known = known_to(run.witness);
        for id in replies {
            let Some(reply) = self.0.messages().raw_message(id)?.filter(|reply| reply.author != Author::Forgotten)
            else {
                continue;
            };
            let reported = run.may_report(&reply);
            let tally = run.tally(reported);
            let _writing = self.0.writing(&reply.chat)?;
            let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
            gone.quoting(id.clone());
            tally.memories += self.unremember_for_good(&mut batch, id, &mut gone, &mut tally.touched, &known)?;
            self.commit_forgetting(batch, gone)?;
            tally.touched.insert((reply.chat, reply.persona));
            tally.quoted_by.push(reply.id);
        }
        Ok(())
    }
}
