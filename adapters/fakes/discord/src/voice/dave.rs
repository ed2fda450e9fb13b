//! End-to-end encryption (DAVE, <https://daveprotocol.com>): the server proposes to add the people in a channel and the bot
//! to a group, one person commits, and everybody else is welcomed. When somebody comes or leaves, it proposes that, and the
//! group goes on with other keys.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use davey::{DaveSession, MediaType, ProposalsOperationType};
use openmls::prelude::tls_codec::{DeserializeBytes as _, Serialize as _, VLBytes};
use openmls::prelude::{
    BasicCredential, ExternalProposal, ExternalSender, GroupEpoch, GroupId, KeyPackageIn, LeafNodeIndex,
    ProtocolVersion, SenderExtensionIndex, SignatureScheme,
};
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::OpenMlsRustCrypto;
use openmls_traits::OpenMlsProvider as _;

use crate::world::BOT;

/// The version of the protocol.
pub(crate) const VERSION: u16 = 1;

/// The end of an encrypted packet.
const MARKER: [u8; 2] = [0xfa, 0xfa];

/// The voice server as a member of no group, which proposes whom to add.
pub(crate) struct Proposer {
    signer: SignatureKeyPair,
    /// Its key and credential, as clients get them.
    pub(crate) package: Vec<u8>,
}

impl Proposer {
    pub(crate) fn new() -> Self {
        let signer = SignatureKeyPair::new(SignatureScheme::ECDSA_SECP256R1_SHA256).expect("a key");
        let credential = BasicCredential::new(b"voice server".to_vec());
        let sender = ExternalSender::new(signer.public().into(), credential.into());
        let package = sender.tls_serialize_detached().expect("it can be written");
        Self { signer, package }
    }

    /// Returns the proposal to add somebody to the group in an epoch of it.
    fn add(&self, channel: u64, epoch: u64, key_package: &[u8]) -> Option<Vec<u8>> {
        let provider = OpenMlsRustCrypto::default();
        let package = KeyPackageIn::tls_deserialize_exact_bytes(key_package).ok()?;
        let package = package.validate(provider.crypto(), ProtocolVersion::Mls10).ok()?;
        let (group, epoch) = (GroupId::from_slice(&channel.to_be_bytes()), GroupEpoch::from(epoch));
        let index = SenderExtensionIndex::new(0);
        let add = ExternalProposal::new_add::<OpenMlsRustCrypto>(package, group, epoch, &self.signer, index).ok()?;
        add.tls_serialize_detached().ok()
    }

    /// Returns the proposal to remove the member at a place of the group.
    fn remove(&self, channel: u64, epoch: u64, leaf: LeafNodeIndex) -> Option<Vec<u8>> {
        let (group, epoch) = (GroupId::from_slice(&channel.to_be_bytes()), GroupEpoch::from(epoch));
        let index = SenderExtensionIndex::new(0);
        let remove = ExternalProposal::new_remove::<OpenMlsRustCrypto>(leaf, group, epoch, &self.signer, index).ok()?;
        remove.tls_serialize_detached().ok()
    }
}

/// What the bot is told when the group changes.
pub(crate) struct Change {
    /// The proposals, as clients get them.
    pub(crate) proposals: Vec<u8>,
    /// The commit that takes them over.
    pub(crate) commit: Vec<u8>,
}

/// Returns a person who is in no group yet.
fn session(proposer: &Proposer, channel: u64, person: u64) -> Option<DaveSession> {
    let mut session = DaveSession::new(NonZeroU16::new(VERSION)?, person, channel, None).ok()?;
    session.set_external_sender(&proposer.package).ok()?;
    Some(session)
}

/// The people of a channel in their group.
pub(crate) struct Group {
    channel: u64,
    people: BTreeMap<u64, DaveSession>,
    /// True once the bot said that it is ready.
    pub(crate) is_ready: bool,
}

impl Group {
    /// Founds the group of a channel with these people and the bot. Returns it with the bot's welcome; `None` if a key
    /// package is wrong, or if nobody is there.
    pub(crate) fn found(
        proposer: &Proposer,
        channel: u64,
        people: &[u64],
        bots_key_package: &[u8],
    ) -> Option<(Self, Vec<u8>)> {
        let mut sessions = BTreeMap::new();
        for person in people {
            sessions.insert(*person, session(proposer, channel, *person)?);
        }
        let (founder, mut others) = {
            let (_, founder) = sessions.pop_first()?;
            (founder, sessions)
        };
        let mut founder = founder;
        let mut proposals = proposer.add(channel, 0, bots_key_package)?;
        for session in others.values_mut() {
            proposals.extend(proposer.add(channel, 0, &session.create_key_package().ok()?)?);
        }
        let proposals = VLBytes::from(proposals).tls_serialize_detached().ok()?;
        let made = founder.process_proposals(ProposalsOperationType::APPEND, &proposals, None).ok()??;
        founder.process_commit(&made.commit).ok()?;
        let welcome = made.welcome?;
        for session in others.values_mut() {
            session.process_welcome(&welcome).ok()?;
        }
        others.insert(founder.user_id(), founder);
        Some((Self { channel, people: others, is_ready: false }, welcome))
    }

    /// Returns the channel of the group.
    pub(crate) fn channel(&self) -> u64 {
        self.channel
    }

    /// Adds a person to the group.
    pub(crate) fn add(&mut self, proposer: &Proposer, person: u64) -> Option<Change> {
        let mut newcomer = session(proposer, self.channel, person)?;
        let proposal = proposer.add(self.channel, self.epoch()?, &newcomer.create_key_package().ok()?)?;
        let (change, welcome) = self.change(proposal)?;
        newcomer.process_welcome(&welcome?).ok()?;
        self.people.insert(person, newcomer);
        Some(change)
    }

    /// Removes a person from the group; `None` if they were not in it or were the last.
    pub(crate) fn remove(&mut self, proposer: &Proposer, person: u64) -> Option<Change> {
        let leaf = self.people.remove(&person)?.own_leaf_index()?;
        let proposal = proposer.remove(self.channel, self.epoch()?, leaf)?;
        Some(self.change(proposal)?.0)
    }

    fn epoch(&self) -> Option<u64> {
        Some(self.people.values().next()?.epoch()?.as_u64())
    }

    /// Lets everybody commit to a proposal. The first commit counts. Returns it with the welcome of a newcomer.
    fn change(&mut self, proposal: Vec<u8>) -> Option<(Change, Option<Vec<u8>>)> {
        let proposals = VLBytes::from(proposal).tls_serialize_detached().ok()?;
        let mut first = None;
        for session in self.people.values_mut() {
            let made = session.process_proposals(ProposalsOperationType::APPEND, &proposals, None).ok()??;
            first.get_or_insert(made);
        }
        let made = first?;
        for session in self.people.values_mut() {
            session.process_commit(&made.commit).ok()?;
        }
        Some((Change { proposals, commit: made.commit }, made.welcome))
    }

    /// Encrypts a packet of a person.
    pub(crate) fn encrypt(&mut self, person: u64, opus: &[u8]) -> Option<Vec<u8>> {
        Some(self.people.get_mut(&person)?.encrypt_opus(opus).ok()?.into_owned())
    }

    /// Decrypts a packet of the bot, as one of the people does. Packets of silence are not encrypted.
    pub(crate) fn decrypt(&mut self, packet: Vec<u8>) -> Option<Vec<u8>> {
        if !packet.ends_with(&MARKER) {
            return Some(packet);
        }
        self.people.values_mut().next()?.decrypt(BOT, MediaType::AUDIO, &packet).ok()
    }
}
