//! End-to-end encryption (DAVE, <https://daveprotocol.com>): the server proposes to add the people in a channel and the bot
//! to a group, one person commits, and everybody else is welcomed.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use davey::{DaveSession, MediaType, ProposalsOperationType};
use openmls::prelude::tls_codec::{DeserializeBytes as _, Serialize as _, VLBytes};
use openmls::prelude::{
    BasicCredential, ExternalProposal, ExternalSender, GroupEpoch, GroupId, KeyPackageIn, ProtocolVersion,
    SenderExtensionIndex, SignatureScheme,
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

    /// Returns the proposal to add somebody.
    fn add(&self, channel: u64, key_package: &[u8]) -> Option<Vec<u8>> {
        let provider = OpenMlsRustCrypto::default();
        let package = KeyPackageIn::tls_deserialize_exact_bytes(key_package).ok()?;
        let package = package.validate(provider.crypto(), ProtocolVersion::Mls10).ok()?;
        let (group, epoch) = (GroupId::from_slice(&channel.to_be_bytes()), GroupEpoch::from(0));
        let index = SenderExtensionIndex::new(0);
        let add = ExternalProposal::new_add::<OpenMlsRustCrypto>(package, group, epoch, &self.signer, index).ok()?;
        add.tls_serialize_detached().ok()
    }
}

/// The people of a channel in their group.
pub(crate) struct Group {
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
        let version = NonZeroU16::new(VERSION)?;
        let mut sessions = BTreeMap::new();
        for person in people {
            let mut session = DaveSession::new(version, *person, channel, None).ok()?;
            session.set_external_sender(&proposer.package).ok()?;
            sessions.insert(*person, session);
        }
        let (founder, mut others) = {
            let (_, founder) = sessions.pop_first()?;
            (founder, sessions)
        };
        let mut founder = founder;
        let mut proposals = proposer.add(channel, bots_key_package)?;
        for session in others.values_mut() {
            proposals.extend(proposer.add(channel, &session.create_key_package().ok()?)?);
        }
        let proposals = VLBytes::from(proposals).tls_serialize_detached().ok()?;
        let made = founder.process_proposals(ProposalsOperationType::APPEND, &proposals, None).ok()??;
        founder.process_commit(&made.commit).ok()?;
        let welcome = made.welcome?;
        for session in others.values_mut() {
            session.process_welcome(&welcome).ok()?;
        }
        others.insert(founder.user_id(), founder);
        Some((Self { people: others, is_ready: false }, welcome))
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
