//! Master keys. A master seals nothing but the data keys of vaults.

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::Error;
use crate::cipher::{KEY_BYTES, Key, new_key};

/// Bytes of a master's id.
pub(crate) const ID_BYTES: usize = 8;

/// Most retired masters that are kept, so that older backups can be opened.
const MAX_RETIRED: usize = 8;

/// What the id of a master is a digest of, besides the key.
const ID_CONTEXT: &[u8] = b"azera vault master";

/// The first words of a key file, before the number of its format.
const FORMAT: &str = "azera-vault-key";

/// The newest format of key files.
const VERSION: u32 = 1;

/// The beginning of a key file, for people.
const HEAD: &str = "\
# The key of Azera's vault. Whoever has this file and a backup can read the secrets in it.
# Keep a copy apart from your backups: without it nobody can open the vault. Mode 600.
";

/// Names a master without showing anything of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MasterId(pub(crate) [u8; ID_BYTES]);

impl fmt::Display for MasterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for MasterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl MasterId {
    /// Parses an id as `Display` writes it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok().map(Self)
    }
}

/// A master key.
#[derive(Clone)]
pub(crate) struct Master(Key);

impl Master {
    pub(crate) fn key(&self) -> &Key {
        &self.0
    }

    pub(crate) fn id(&self) -> MasterId {
        let digest = Sha256::new().chain_update(ID_CONTEXT).chain_update(self.0.as_slice()).finalize();
        let mut id = [0; ID_BYTES];
        id.iter_mut().zip(digest).for_each(|(byte, of)| *byte = of);
        MasterId(id)
    }
}

/// The master that seals now, and retired ones that only open.
#[derive(Clone)]
pub struct Masters {
    current: Master,
    /// The one that was retired last comes first.
    retired: Vec<Master>,
}

impl fmt::Debug for Masters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masters({}, {} retired)", self.current.id(), self.retired.len())
    }
}

impl Masters {
    /// Returns one new master.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn generate() -> Result<Self, Error> {
        Ok(Self { current: Master(new_key()?), retired: Vec::new() })
    }

    /// Returns the id of the master that seals now.
    pub fn current_id(&self) -> MasterId {
        self.current.id()
    }

    pub(crate) fn current(&self) -> &Master {
        &self.current
    }

    /// Returns the master of an id.
    pub(crate) fn find(&self, id: MasterId) -> Option<&Master> {
        std::iter::once(&self.current).chain(&self.retired).find(|master| master.id() == id)
    }

    /// Returns these masters with a new one that seals from now on. The oldest retired one goes if there are too many.
    pub(crate) fn with_a_new_one(&self) -> Result<Self, Error> {
        let mut retired = vec![self.current.clone()];
        retired.extend(self.retired.iter().take(MAX_RETIRED - 1).cloned());
        Ok(Self { current: Master(new_key()?), retired })
    }

    /// Returns the text of a key file.
    pub(crate) fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(format!("{HEAD}{FORMAT} {VERSION}\n"));
        for master in std::iter::once(&self.current).chain(&self.retired) {
            let key = Zeroizing::new(BASE64.encode(master.0.as_slice()));
            text.push_str(&master.id().to_string());
            text.push(' ');
            text.push_str(&key);
            text.push('\n');
        }
        text
    }

    /// Reads the text of a key file; `None` if it is damaged.
    ///
    /// # Errors
    /// [`Error::Newer`].
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Error> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let version = lines.next().and_then(|line| line.strip_prefix(FORMAT)?.trim().parse::<u32>().ok());
        match version {
            Some(VERSION) => {}
            Some(version) if version > VERSION => return Err(Error::Newer),
            _ => return Ok(None),
        }
        let masters: Option<Vec<Master>> = lines.map(master_in).collect();
        let Some(masters) = masters.filter(|masters| masters.len() <= 1 + MAX_RETIRED) else { return Ok(None) };
        let mut masters = masters.into_iter();
        Ok(masters.next().map(|current| Self { current, retired: masters.collect() }))
    }
}

/// Reads a line with the id and the key of a master. The id shows whether a character of the key was changed.
fn master_in(line: &str) -> Option<Master> {
    let (id, key) = line.trim_end().split_once(' ')?;
    let bytes = Zeroizing::new(BASE64.decode(key.as_bytes()).ok()?);
    let mut key: Key = Zeroizing::new([0; KEY_BYTES]);
    if bytes.len() != KEY_BYTES {
        return None;
    }
    key.copy_from_slice(&bytes);
    let master = Master(key);
    (Some(master.id()) == MasterId::parse(id)).then_some(master)
}
