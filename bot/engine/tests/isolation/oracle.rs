//! The oracle works out who may read what, only from who joined and left. It knows no scopes: every secret is a word of
//! its own, and everybody who is shown one must be able to read, now, the place it was told in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azera_types::{MessageId, Timestamp};

use crate::world::{CHATS, Change, Founding, Kind, PEOPLE, PRIVATE, REALMS, Target, people};

/// Who is in a place, since when, and whether its past is hidden from newcomers.
#[derive(Clone, Default)]
struct Members {
    came: BTreeMap<usize, Timestamp>,
    joined: bool,
}

/// Where a secret comes from.
#[derive(Clone, PartialEq)]
pub enum Origin {
    /// Told in a chat, to the persona that answered there.
    Stated { chat: usize, at: Timestamp, by: usize, persona: String },
    /// Written in the file of a realm's persona.
    Persona(usize),
    /// Written in the file of the operator's persona.
    Operator,
}

/// A message, to find the place and the persona of its answer.
#[derive(Clone)]
pub struct Message {
    pub chat: usize,
    pub by: usize,
    pub persona: String,
    pub at: Timestamp,
    /// The secrets that it told, oldest first.
    pub secrets: Vec<usize>,
}

/// To whom something is shown, and by which persona.
pub struct Showing<'a> {
    /// The chat it is shown in.
    pub chat: usize,
    /// The person who asked, if it answers somebody.
    pub asker: Option<usize>,
    /// The persona whose memories are shown.
    pub persona: &'a str,
    /// Whether the asker may see their own words, wherever they were said.
    pub own_words: bool,
}

/// The made-up world as it is now.
pub struct Oracle {
    pub now: Timestamp,
    realms: Vec<(Members, BTreeSet<usize>)>,
    private: BTreeMap<usize, Members>,
    /// The persona that answers in each chat.
    personas: BTreeMap<usize, String>,
    /// Chats in which [`INVITED`] also answers when it is called.
    invited: BTreeSet<usize>,
    pub secrets: Vec<Origin>,
    /// Linked accounts, as sets of people that are one human.
    links: Vec<BTreeSet<usize>>,
    /// Secrets that were forgotten with everything that quoted them.
    gone: BTreeSet<usize>,
    /// Secrets that may have been forgotten without their quotes: later forgetting does not find those quotes.
    unquoted: BTreeSet<usize>,
    /// Secrets that are names of branches, which forgetting messages does not reach.
    pub names: BTreeSet<usize>,
    /// Forgotten secrets that may have left a mood in a place. Moods are forgotten with their place or, in direct
    /// messages, with the person.
    moods_left: BTreeSet<usize>,
    /// By chat, the secrets that everybody who read there could read at some time, or could have if they had not been
    /// forgotten and left a mood.
    seen: Vec<BTreeSet<usize>>,
    pub messages: HashMap<String, Message>,
    /// Ids of messages, oldest first.
    pub order: Vec<String>,
}

/// The persona that answers where nobody chose: the operator's, which has the same name as one of each realm.
pub const DEFAULT_PERSONA: &str = "luna";

/// The operator's persona that is invited besides those that answer.
pub const INVITED: &str = "azera";

impl Oracle {
    pub fn new(now: Timestamp, realms: &[Founding], private: &[Founding]) -> Self {
        let members = |it: &Founding, bits: u8| Members {
            came: people(bits).map(|person| (person, now)).collect(),
            joined: it.joined,
        };
        Self {
            now,
            realms: realms
                .iter()
                .map(|it| (members(it, it.members | it.admins), people(it.admins).collect()))
                .collect(),
            private: PRIVATE.zip(private).map(|(chat, it)| (chat, members(it, it.members))).collect(),
            personas: BTreeMap::new(),
            invited: BTreeSet::new(),
            secrets: Vec::new(),
            links: Vec::new(),
            gone: BTreeSet::new(),
            unquoted: BTreeSet::new(),
            names: BTreeSet::new(),
            moods_left: BTreeSet::new(),
            seen: vec![BTreeSet::new(); CHATS.len()],
            messages: HashMap::new(),
            order: Vec::new(),
        }
    }

    pub fn change(&mut self, change: Change) {
        match change {
            Change::Join(who, Target::Realm(realm)) => {
                self.realms[realm].0.came.entry(who).or_insert(self.now);
            }
            Change::Join(who, Target::Chat(chat)) => {
                if let Some(members) = self.private.get_mut(&chat) {
                    members.came.entry(who).or_insert(self.now);
                }
            }
            Change::Leave(who, Target::Realm(realm)) => {
                let was_there = self.realms[realm].0.came.remove(&who).is_some();
                self.realms[realm].1.remove(&who);
                // Leaving a realm also leaves its private chats; a guest who was never in the realm stays.
                for (chat, members) in &mut self.private {
                    if was_there && CHATS[*chat].1 == Kind::Private(Some(realm)) {
                        members.came.remove(&who);
                    }
                }
            }
            Change::Leave(who, Target::Chat(chat)) => {
                if let Some(members) = self.private.get_mut(&chat) {
                    members.came.remove(&who);
                }
            }
            Change::Appoint(realm, admins) => {
                let (members, held) = &mut self.realms[realm];
                *held = people(admins).collect();
                for person in people(admins) {
                    members.came.entry(person).or_insert(self.now);
                }
            }
        }
        self.note_seen();
    }

    /// Returns the members and admins of a realm, for the platform.
    pub fn realm(&self, realm: usize) -> (Vec<usize>, Vec<usize>, bool) {
        let (members, admins) = &self.realms[realm];
        (members.came.keys().copied().collect(), admins.iter().copied().collect(), members.joined)
    }

    /// Returns the members of a private chat, for the platform.
    pub fn room(&self, chat: usize) -> (Vec<usize>, bool) {
        let members = &self.private[&chat];
        (members.came.keys().copied().collect(), members.joined)
    }

    /// Returns everybody who can read a chat.
    pub fn readers(&self, chat: usize) -> Vec<usize> {
        (0..PEOPLE.len()).filter(|person| self.can_read(*person, chat)).collect()
    }

    pub fn can_read(&self, person: usize, chat: usize) -> bool {
        match CHATS[chat].1 {
            Kind::Dm(owner) => owner == person,
            Kind::Public(_) | Kind::Private(_) => {
                self.surroundings(chat).is_some_and(|it| it.came.contains_key(&person))
            }
        }
    }

    /// Returns the members that decide who reads a chat; `None` for a DM.
    fn surroundings(&self, chat: usize) -> Option<&Members> {
        match CHATS[chat].1 {
            Kind::Public(realm) => Some(&self.realms[realm].0),
            Kind::Private(_) => self.private.get(&chat),
            Kind::Dm(_) => None,
        }
    }

    /// Returns whether a person can now read what was said in a chat at `then`.
    fn can_read_back(&self, person: usize, chat: usize, then: Timestamp) -> bool {
        let hidden = self
            .surroundings(chat)
            .is_some_and(|members| members.joined && members.came.get(&person).is_none_or(|came| then < *came));
        self.can_read(person, chat) && !hidden
    }

    /// Returns whether everybody who reads a chat belongs to a realm.
    fn all_in(&self, chat: usize, realm: usize) -> bool {
        !matches!(CHATS[chat].1, Kind::Dm(_))
            && self.readers(chat).iter().all(|person| self.realms[realm].0.came.contains_key(person))
    }

    /// Links two people, with everybody that either was linked with.
    pub fn link(&mut self, one: usize, other: usize) {
        let mut human = BTreeSet::from([one, other]);
        self.links.retain(|known| {
            let same = !known.is_disjoint(&human);
            human.extend(known.iter().filter(|_| same));
            !same
        });
        self.links.push(human);
        self.note_seen();
    }

    /// Unlinks one person.
    pub fn unlink(&mut self, who: usize) {
        for human in &mut self.links {
            human.remove(&who);
        }
    }

    /// Unlinks a person and everybody linked with them.
    pub fn part(&mut self, who: usize) {
        self.links.retain(|human| !human.contains(&who));
    }

    /// Returns the people linked with a person.
    pub fn linked(&self, who: usize) -> BTreeSet<usize> {
        let humans = self.links.iter().filter(|human| human.contains(&who));
        humans.flatten().copied().filter(|other| *other != who).collect()
    }

    /// Returns everybody whose messages a person may read in a chat: with links in their own direct messages, and
    /// otherwise only themselves.
    fn eyes(&self, person: usize, chat: usize) -> BTreeSet<usize> {
        let mut eyes = BTreeSet::from([person]);
        if CHATS[chat].1 == Kind::Dm(person) {
            eyes.extend(self.linked(person));
        }
        eyes
    }

    /// Returns the persona that answers in a chat.
    pub fn persona(&self, chat: usize) -> String {
        self.personas.get(&chat).cloned().unwrap_or_else(|| DEFAULT_PERSONA.to_owned())
    }

    /// Records that somebody chose a persona. Where everybody belongs to the realm, its own `luna` comes first.
    pub fn choose(&mut self, chat: usize, name: &str) {
        let surroundings = match CHATS[chat].1 {
            Kind::Public(realm) | Kind::Private(Some(realm)) => Some(realm),
            Kind::Private(None) | Kind::Dm(_) => None,
        };
        let own = surroundings.filter(|realm| name == "luna" && self.all_in(chat, *realm));
        let whole = own.map_or_else(|| name.to_owned(), |realm| format!("{name} of {}", REALMS[realm]));
        if whole == INVITED {
            self.invited.remove(&chat);
        }
        self.personas.insert(chat, whole);
        self.note_seen();
    }

    /// Records that somebody invited [`INVITED`] to a chat, or dismissed it.
    pub fn invite(&mut self, chat: usize, comes: bool) {
        match comes {
            true => self.invited.insert(chat),
            false => self.invited.remove(&chat),
        };
        self.note_seen();
    }

    /// Returns the persona that a message is meant for; `called` says whether the message calls [`INVITED`].
    pub fn hearer(&self, chat: usize, called: bool) -> String {
        if called && self.invited.contains(&chat) { INVITED.to_owned() } else { self.persona(chat) }
    }

    /// Returns the persona that a command is about: that of the message it points at, as long as it answers there.
    pub fn spoken_of(&self, chat: usize, about: Option<&MessageId>) -> String {
        let message = about.and_then(|about| {
            let question = || self.messages.get(azera_adapter::answered(about)?.as_str());
            self.messages.get(about.as_str()).or_else(question)
        });
        let to_invited = message.is_some_and(|message| message.chat == chat && message.persona == INVITED);
        self.hearer(chat, to_invited)
    }

    /// Adds a secret. Returns its number.
    pub fn secret(&mut self, origin: Origin) -> usize {
        self.secrets.push(origin);
        self.note_seen();
        self.secrets.len() - 1
    }

    fn note_seen(&mut self) {
        for chat in 0..CHATS.len() {
            for persona in [self.persona(chat), self.hearer(chat, true)] {
                let showing = Showing { chat, asker: None, persona: &persona, own_words: false };
                let shows = |secret: &usize| match self.moods_left.contains(secret) {
                    true => self.allow(*secret, &showing).is_ok(),
                    false => self.judge(*secret, &showing).is_ok(),
                };
                let mut seen: BTreeSet<usize> = (0..self.secrets.len()).filter(shows).collect();
                self.seen[chat].append(&mut seen);
            }
        }
    }

    /// Adds a secret told in a chat now.
    pub fn new_secret(&mut self, chat: usize, by: usize) -> usize {
        self.new_secret_for(chat, by, self.persona(chat))
    }

    /// Adds a secret told to a persona in a chat now.
    pub fn new_secret_for(&mut self, chat: usize, by: usize, persona: String) -> usize {
        self.secret(Origin::Stated { chat, at: self.now, by, persona })
    }

    /// Returns whether a secret may be shown only because people are linked.
    pub fn is_by_a_link(&self, secret: usize, showing: &Showing<'_>) -> bool {
        let alone = |person, _| BTreeSet::from([person]);
        self.judge(secret, showing).is_ok() && self.allow_by(secret, showing, alone).is_err()
    }

    /// Checks whether a secret may be shown; the error is the reason why not.
    pub fn judge(&self, secret: usize, showing: &Showing<'_>) -> Result<(), String> {
        if self.gone.contains(&secret) {
            return Err("it was forgotten".into());
        }
        self.allow(secret, showing)
    }

    /// Checks the same, whether it was forgotten or not.
    fn allow(&self, secret: usize, showing: &Showing<'_>) -> Result<(), String> {
        self.allow_by(secret, showing, |person, chat| self.eyes(person, chat))
    }

    fn allow_by(
        &self,
        secret: usize,
        showing: &Showing<'_>,
        eyes: impl Fn(usize, usize) -> BTreeSet<usize>,
    ) -> Result<(), String> {
        let Some(origin) = self.secrets.get(secret) else { return Err("nobody ever told it".into()) };
        let mut audience = self.readers(showing.chat);
        audience.extend(showing.asker.filter(|asker| !audience.contains(asker)));
        match origin {
            Origin::Operator => Ok(()),
            Origin::Persona(realm) => {
                let stranger = audience.iter().find(|person| !self.realms[*realm].0.came.contains_key(person));
                stranger.map_or(Ok(()), |person| {
                    Err(format!("{} does not belong to {}, whose persona's it is", PEOPLE[*person].0, REALMS[*realm]))
                })
            }
            Origin::Stated { by, .. } if showing.own_words && showing.asker == Some(*by) => Ok(()),
            // The name of a branch belongs to the chat, whichever persona answers; no persona is told it.
            Origin::Stated { persona, .. } if persona != showing.persona && !self.names.contains(&secret) => {
                Err(format!("it was told to {persona}, and this is {}", showing.persona))
            }
            Origin::Stated { chat, at, .. } => {
                let stranger = audience.iter().find(|person| {
                    eyes(**person, showing.chat).into_iter().all(|eyes| !self.can_read_back(eyes, *chat, *at))
                });
                stranger.map_or(Ok(()), |person| {
                    Err(format!("{} cannot read what was said in {} at {at}", PEOPLE[*person].0, CHATS[*chat].0))
                })
            }
        }
    }

    /// Records that everything a person said was forgotten with its quotes, and with the mood of their direct messages.
    pub fn forget_person(&mut self, who: usize) {
        let said = self.said(|_, by| by == who);
        let in_dms = |secret: &usize| match &self.secrets[*secret] {
            Origin::Stated { chat, .. } => matches!(CHATS[*chat].1, Kind::Dm(_)),
            Origin::Persona(_) | Origin::Operator => false,
        };
        let (in_dms, outside_dms): (Vec<usize>, Vec<usize>) = said.into_iter().partition(in_dms);
        self.forget_secrets(outside_dms);
        self.gone.extend(in_dms.into_iter().filter(|secret| !self.unquoted.contains(secret)));
    }

    /// Records that everything said in a chat was forgotten with its quotes.
    pub fn forget_chat(&mut self, place: usize) {
        let said = self.said(|chat, _| chat == place);
        self.forget_secrets(said);
    }

    /// Records that secrets were forgotten with their quotes, but not the moods that they left.
    pub fn forget_secrets(&mut self, secrets: Vec<usize>) {
        self.moods_left.extend(&secrets);
        self.gone.extend(secrets.into_iter().filter(|secret| !self.unquoted.contains(secret)));
    }

    /// Records that everything said by such people may have been forgotten, while its quotes stay.
    pub fn forget_without_quotes(&mut self, so: impl Fn(usize) -> bool) {
        let said = self.said(|_, by| so(by));
        self.unquoted.extend(said);
    }

    /// Returns the secrets told in such a chat by such a person; names of branches are not messages.
    fn said(&self, so: impl Fn(usize, usize) -> bool) -> Vec<usize> {
        let matching = |(secret, origin): (usize, &Origin)| match origin {
            Origin::Stated { chat, by, .. } if so(*chat, *by) && !self.names.contains(&secret) => Some(secret),
            _ => None,
        };
        self.secrets.iter().enumerate().filter_map(matching).collect()
    }

    /// Returns the secrets that could never be shown in a chat: nothing there can have come from them.
    pub fn never_seen(&self, chat: usize) -> BTreeSet<usize> {
        (0..self.secrets.len()).filter(|secret| !self.seen[chat].contains(secret)).collect()
    }
}

/// Returns the word of a secret. In a second telling of the same world, hidden secrets are other words.
pub fn word(secret: usize, other: bool) -> String {
    format!("{}{secret}v", if other { "zx" } else { "zq" })
}

/// Longest run of letters, digits and signs of Base64 that is text. A longer one is a file's bytes, which hold any short word
/// by chance.
const LONGEST_RUN: usize = 256;

/// Returns the secrets whose words occur in a text, however it was cut.
pub fn secrets_in(text: &str) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let is_coded = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    for run in text.split(|c| !is_coded(c)).filter(|run| run.len() <= LONGEST_RUN) {
        for start in run.match_indices(['z']).map(|(at, _)| at) {
            let Some(rest) = run.get(start + 1..).and_then(|rest| rest.strip_prefix(['q', 'x'])) else { continue };
            let Some((number, _)) = rest.split_once('v') else { continue };
            found.extend(number.parse::<usize>());
        }
    }
    found
}

#[test]
fn a_secret_is_found_by_its_word_anywhere_in_a_text() {
    let text = format!("{}, \"{}\"{}, zq1, zqv, zebra v", word(7, false), word(12, true), word(3, false));
    assert_eq!(secrets_in(&text), BTreeSet::from([3, 7, 12]));
    let picture = format!("{{\"bytes\": \"{}zq9v{}\"}}", "A/+b".repeat(40), "Zm9v".repeat(40));
    assert_eq!(secrets_in(&picture), BTreeSet::new());
}
