//! Forgetting: what remains of people, chats, realms and imports after their messages are gone.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::{Author, ChatId, RealmId, Scope};

use crate::domains::Forgetting;
use crate::forget_log::Forgotten;
use crate::forget_run::ForgetRun;
use crate::imports::ImportedChat;
use crate::minds::ForgottenScope;
use crate::rows::ChatRow;
use crate::{Batch, Error, Forget, ForgetReceipt, Table, codec, keys};

/// Imported chats that one transaction removes.
const PAGE: usize = 128;

impl Forgetting<'_> {
    /// Removes what remains of a person, a chat, a realm or an import.
    pub(crate) fn remove_places(self, what: &Forget, run: &mut ForgetRun<'_>) -> Result<(), Error> {
        let forgotten = ImportedChat::Forgotten;
        match what {
            Forget::Person(person) => {
                self.0.minds().forget_states(&ForgottenScope::Person(person))?;
                self.0.vaults().forget_person(person)?;
                self.remove_imported(self.0.imports().chats_of_person(person)?, &forgotten, run)
            }
            Forget::Chat(chat) => match self.0.chats().get(chat)? {
                // No platform has an imported chat, so nothing of it needs to stay.
                Some(row) if matches!(row.imported, Some(ImportedChat::Kept { .. })) => {
                    self.remove_imported(vec![row], &forgotten, run)
                }
                _ => self.remove_chat(chat, false, &mut run.receipt),
            },
            Forget::Realm(realm, private) => {
                self.remove_realm(realm)?;
                private.iter().try_for_each(|chat| self.remove_chat(chat, true, &mut run.receipt))?;
                self.remove_imported(self.0.imports().chats_of_realm(realm)?, &forgotten, run)
            }
            Forget::Import(id) => {
                let chats = self.0.imports().chats_of_import(id)?;
                self.remove_imported(chats, &ImportedChat::Undone, run)
            }
            Forget::Message(_) | Forget::Memory(_) | Forget::Span { .. } => Ok(()),
        }
    }

    fn remove_realm(self, realm: &RealmId) -> Result<(), Error> {
        self.0.minds().forget_states(&ForgottenScope::Realm(realm))?;
        let mut gone = Forgotten::default();
        gone.realm(realm.clone(), self.0.next_number()?);
        self.commit_forgetting(Batch::new(), gone)
    }

    /// Removes imported chats with everything that is known of them, and the projects in which nothing is left. Only a
    /// mark stays, which says whether the conversation may be imported again.
    fn remove_imported(self, chats: Vec<ChatRow>, mark: &ImportedChat, run: &mut ForgetRun<'_>) -> Result<(), Error> {
        let mut realms: BTreeSet<RealmId> = BTreeSet::new();
        for page in chats.chunks(PAGE) {
            let ids: BTreeSet<ChatId> = page.iter().map(|chat| chat.id.clone()).collect();
            let mut seen = BTreeMap::new();
            loop {
                // An import may have added to the chats since their messages were listed. Before the mark, so that another
                // call finds what a crash leaves of that.
                self.forget_late(run, &ids, &mut seen)?;
                let _writing = self.0.writing_in(&ids)?;
                // No import adds anything after the mark.
                if !self.has_late(&ids, &seen)? {
                    self.mark_imported(ids, mark, run, &mut realms)?;
                    break;
                }
            }
        }
        for realm in realms {
            if self.0.imports().chats_of_realm(&realm)?.is_empty() {
                self.remove_realm(&realm)?;
            }
        }
        Ok(())
    }

    /// Leaves only the mark of imported chats, and adds their projects to `realms`. The caller holds the locks of the chats.
    fn mark_imported(
        self,
        chats: BTreeSet<ChatId>,
        mark: &ImportedChat,
        run: &mut ForgetRun<'_>,
        realms: &mut BTreeSet<RealmId>,
    ) -> Result<(), Error> {
        let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
        for id in chats {
            let Some(chat) = self.0.chats().get(&id)? else { continue };
            if let Some(ImportedChat::Kept { scope: Scope::Realm(realm), .. }) = &chat.imported {
                realms.insert(realm.clone());
            }
            run.receipt.touched.insert((id.clone(), chat.persona.clone()));
            run.receipt.chats += 1;
            gone.chat(id.clone(), self.0.next_number()?, true);
            if *mark == ImportedChat::Undone {
                gone.undone_chat(id.clone());
            }
            let emptied = ChatRow { imported: Some(mark.clone()), ..chat.emptied(None, true) };
            codec::put(&mut batch, Table::Chats, keys::chat(&id), &emptied)?;
        }
        self.commit_forgetting(batch, gone)
    }

    /// Empties a chat. With its realm (`with_realm`), its title and its invitations are removed, too.
    fn remove_chat(self, chat: &ChatId, with_realm: bool, receipt: &mut ForgetReceipt) -> Result<(), Error> {
        self.0.minds().forget_states(&ForgottenScope::Chat(chat))?;
        let _writing = self.0.writing(chat)?;
        let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
        gone.chat(chat.clone(), self.0.next_number()?, with_realm);
        for (table, key) in self.rows_under(Table::Branches, &keys::prefix(&[chat.as_str()]))? {
            batch.remove(table, key);
        }
        if let Some(row) = self.0.chats().get(chat)? {
            let head = row.head.clone().map(|id| self.0.messages().raw_message(&id)).transpose()?.flatten();
            let head = head.filter(|message| message.author != Author::Forgotten).map(|message| message.id);
            receipt.touched.insert((chat.clone(), row.persona.clone()));
            codec::put(&mut batch, Table::Chats, keys::chat(chat), &row.emptied(head, with_realm))?;
            receipt.chats += 1;
        }
        self.commit_forgetting(batch, gone)
    }
}
