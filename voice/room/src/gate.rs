//! Consent: whose sound may be decoded.

use std::collections::BTreeMap;

use azera_types::PersonId;

/// A packet of sound as it was captured. Nothing but a [`Gate`] can read what is in it, nor in a clone.
#[derive(Clone)]
pub struct SealedPacket {
    sequence: u16,
    timestamp: u32,
    payload: Vec<u8>,
}

impl SealedPacket {
    /// Seals a packet: its number, its time in samples at 48 kHz, and its Opus data.
    pub fn new(sequence: u16, timestamp: u32, payload: Vec<u8>) -> Self {
        Self { sequence, timestamp, payload }
    }
}

/// Leaves out what people said.
impl std::fmt::Debug for SealedPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SealedPacket[{} at {}, {} bytes]", self.sequence, self.timestamp, self.payload.len())
    }
}

/// A packet of a person who consented. A decoder takes no other packets.
pub struct Sound(SealedPacket);

impl Sound {
    /// Returns the packet's number.
    pub fn sequence(&self) -> u16 {
        self.0.sequence
    }

    /// Returns the packet's time in samples at 48 kHz.
    pub fn timestamp(&self) -> u32 {
        self.0.timestamp
    }

    /// Returns the Opus data.
    pub fn payload(&self) -> &[u8] {
        &self.0.payload
    }
}

/// Leaves out what people said.
impl std::fmt::Debug for Sound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Lets packets pass of the people who consented, and drops all others.
#[derive(Debug, Default)]
pub struct Gate {
    decisions: BTreeMap<PersonId, bool>,
    admitted: u64,
    dropped: u64,
}

impl Gate {
    /// Stores what a person decided; `None` if they did not decide.
    pub fn decide(&mut self, person: PersonId, decision: Option<bool>) {
        match decision {
            Some(decision) => self.decisions.insert(person, decision),
            None => self.decisions.remove(&person),
        };
    }

    /// Returns what a person decided.
    pub fn decision(&self, person: &PersonId) -> Option<bool> {
        self.decisions.get(person).copied()
    }

    /// Opens a packet if the person who speaks consented. A packet of an unknown person is dropped.
    pub fn admit(&mut self, person: Option<&PersonId>, packet: SealedPacket) -> Option<Sound> {
        if person.and_then(|person| self.decision(person)) == Some(true) {
            self.admitted += 1;
            Some(Sound(packet))
        } else {
            self.dropped += 1;
            None
        }
    }

    /// Returns how many packets passed.
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Returns how many packets were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_pass_only_with_the_consent_of_a_known_person() {
        let (ann, bob) = (PersonId::new("ann").unwrap(), PersonId::new("bob").unwrap());
        let packet = || SealedPacket::new(7, 960, vec![1, 2]);
        let mut gate = Gate::default();
        assert!(gate.admit(Some(&ann), packet()).is_none(), "nobody decided yet");
        gate.decide(ann.clone(), Some(true));
        gate.decide(bob.clone(), Some(false));
        let sound = gate.admit(Some(&ann), packet()).expect("Ann consented");
        assert_eq!((sound.sequence(), sound.timestamp(), sound.payload()), (7, 960, [1, 2].as_slice()));
        assert!(gate.admit(Some(&bob), packet()).is_none());
        assert!(gate.admit(None, packet()).is_none());
        gate.decide(ann.clone(), None);
        assert!(gate.admit(Some(&ann), packet()).is_none(), "consent was withdrawn");
        assert_eq!((gate.admitted(), gate.dropped()), (1, 4));
        assert!(!format!("{:?}", packet()).contains("[1, 2]"));
    }
}
