mod forget;

use azera_model_api::{Error, SessionKey};
use llama_cpp_2::token::LlamaToken;

use crate::disk::PrefixDisk;
use crate::kv::Kv;
use crate::lora::LoraSetKey;
use crate::prompt::{PrefixKey, Shared};
use crate::swap::{KvSwap, SwapKey, SwappedKv};

/// The most shared prefixes in the key-value cache.
pub const SHARED_PREFIXES: usize = 8;

/// The most tokens of resting conversations in the key-value cache while others run. Attention skips over every token
/// in the cache, whoever it belongs to, so the rest is swapped out to main memory, from where it returns in
/// milliseconds.
pub const RESTING_TOKENS: usize = 2_048;

/// A sequence in use, with the cells reserved for it.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) sequence: i32,
    base: Option<PrefixKey>,
    base_len: usize,
    /// The reserved cells, in addition to those of the base.
    reserved: usize,
}

/// A request for a lease.
pub(crate) struct Want<'a> {
    pub(crate) session: Option<&'a SessionKey>,
    pub(crate) prompt: &'a [LlamaToken],
    pub(crate) shared: Option<Shared>,
    /// The LoRAs of the request. Tokens that were evaluated under others cannot be used.
    pub(crate) set: Option<&'a LoraSetKey>,
    /// The most tokens in the sequence, `prompt` included.
    pub(crate) room: usize,
}

/// A conversation between two requests.
struct Resting {
    key: SessionKey,
    lease: Lease,
    tokens: Vec<LlamaToken>,
    set: Option<LoraSetKey>,
    used: u64,
}

impl Resting {
    fn cells(&self) -> usize {
        self.tokens.len() - self.lease.base_len
    }
}

struct Prefix {
    key: PrefixKey,
    sequence: i32,
    tokens: Vec<LlamaToken>,
    set: Option<LoraSetKey>,
    /// The number of leases and resting conversations that build on it. It stays in the cache while there are any.
    users: usize,
    used: u64,
    /// True if it must not be written any more: it is on disk, is not allowed there, or could not be written.
    settled: bool,
    /// True if it must be dropped with its last user.
    forgotten: bool,
}

/// Evaluated tokens to keep for a conversation.
pub(crate) struct Keep {
    pub(crate) session: SessionKey,
    pub(crate) tokens: Vec<LlamaToken>,
    pub(crate) set: Option<LoraSetKey>,
}

/// Decides what the key-value cache holds: running sequences, resting conversations, shared prefixes. Cells are
/// counted, so that a lease can always be filled.
pub(crate) struct Cache<'m> {
    pub(crate) kv: Kv<'m>,
    cells: usize,
    reserved: usize,
    resting: Vec<Resting>,
    prefixes: Vec<Prefix>,
    swap: KvSwap,
    disk: Option<PrefixDisk>,
    /// The LoRAs that the model was loaded with.
    own: Option<LoraSetKey>,
    /// False for models whose state cannot be cut back to an earlier token. Nothing is kept for them.
    cuttable: bool,
    clock: u64,
}

impl<'m> Cache<'m> {
    pub(crate) fn new(
        kv: Kv<'m>,
        cells: usize,
        parked_bytes: usize,
        disk: Option<PrefixDisk>,
        own: Option<LoraSetKey>,
        cuttable: bool,
    ) -> Self {
        Self {
            kv,
            cells,
            reserved: 0,
            resting: Vec::new(),
            prefixes: Vec::new(),
            swap: KvSwap::new(parked_bytes),
            disk,
            own,
            cuttable,
            clock: 0,
        }
    }

    /// Returns a sequence with as many tokens of the prompt as are kept anywhere, except its last, and the number of
    /// these tokens. `None` if there is no room now.
    pub(crate) fn acquire(&mut self, want: &Want<'_>) -> Result<Option<(Lease, usize)>, Error> {
        self.limit_resting(want.session)?;
        let limit = want.prompt.len().saturating_sub(1);
        let shared = want.shared.filter(|shared| self.cuttable && self.has_prefix(&shared.key));
        let shared_len = shared.map_or(0, |shared| shared.len.min(limit));
        if let Some(session) = want.session {
            if let Some(at) = self.resting.iter().position(|resting| resting.key == *session) {
                let resting = self.resting.remove(at);
                let common = match resting.set.as_ref() == want.set {
                    true => common(&resting.tokens, want.prompt).min(limit),
                    false => 0,
                };
                if common > 0 && common >= shared_len {
                    return self.reuse(resting, common, want.room);
                }
                self.drop_lease(resting.lease);
            }
            let key = SwapKey::Session(session.clone());
            if let Some(parked) = self.swap.take(&key).filter(|parked| parked.set.as_ref() == want.set) {
                let common = common(&parked.tokens, want.prompt).min(limit);
                if common > shared_len.max(parked.base_len) {
                    match self.swap_in(&parked, want.room)? {
                        SwapIn::Lease(mut lease) => {
                            self.cut(&mut lease, common, want.room)?;
                            return Ok(Some((lease, common)));
                        }
                        SwapIn::NoRoom => {
                            self.swap.put(key, parked);
                            return Ok(None);
                        }
                        SwapIn::Lost => {}
                    }
                }
            }
        }
        if let Some(shared) = shared {
            match self.bring_prefix(&shared.key, want.set, shared.len, want.room)? {
                Found::Here(at) => {
                    return Ok(self.build_on(at, shared_len, want.room)?.map(|lease| (lease, shared_len)));
                }
                Found::NoRoom => return Ok(None),
                Found::Lost => {}
            }
        }
        Ok(self.fresh(want.room)?.map(|lease| (lease, 0)))
    }

    /// Ends a lease. With `keep`, its tokens stay for their conversation.
    pub(crate) fn release(&mut self, lease: Lease, keep: Option<Keep>) {
        match keep.filter(|keep| self.cuttable && keep.tokens.len() > lease.base_len) {
            Some(Keep { session, tokens, set }) => {
                self.reserved -= lease.reserved;
                let used = self.tick();
                self.resting.push(Resting { key: session, lease: Lease { reserved: 0, ..lease }, tokens, set, used });
            }
            None => self.drop_lease(lease),
        }
    }

    /// Suspends a lease: its `tokens`, evaluated under `set`, leave the key-value cache.
    pub(crate) fn suspend(
        &mut self,
        lease: Lease,
        tokens: Vec<LlamaToken>,
        set: Option<LoraSetKey>,
    ) -> Result<Option<SwappedKv>, Error> {
        if !self.cuttable {
            self.drop_lease(lease);
            return Ok(None);
        }
        self.kv.trim(lease.sequence, tokens.len())?;
        self.swap_out(lease, tokens, set).map(Some)
    }

    /// Resumes a suspended sequence with room for `room` tokens. Returns it with the number of its evaluated tokens, or
    /// `None` if there is no room now.
    pub(crate) fn resume(&mut self, parked: &SwappedKv, room: usize) -> Result<Option<(Lease, usize)>, Error> {
        match self.swap_in(parked, room)? {
            SwapIn::Lease(lease) => Ok(Some((lease, parked.tokens.len()))),
            SwapIn::NoRoom => Ok(None),
            SwapIn::Lost => Ok(self.fresh(room)?.map(|lease| (lease, 0))),
        }
    }

    /// Lets others share the first tokens of a lease, which are all evaluated under `set`.
    pub(crate) fn publish(
        &mut self,
        lease: &mut Lease,
        key: PrefixKey,
        tokens: &[LlamaToken],
        set: Option<&LoraSetKey>,
    ) -> Result<(), Error> {
        if !self.cuttable || self.prefixes.iter().any(|prefix| prefix.key == key) {
            return Ok(());
        }
        if self.prefixes.len() >= SHARED_PREFIXES && !self.evict_prefix()? {
            return Ok(());
        }
        let Some(sequence) = self.kv.alloc() else { return Ok(()) };
        self.kv.share(lease.sequence, sequence, tokens.len())?;
        // Cells on an older prefix are counted twice until that prefix is dropped: too many, but never too few.
        let own = tokens.len() - lease.base_len;
        self.release_base(lease.base.replace(key));
        lease.base_len = tokens.len();
        lease.reserved -= own;
        self.reserved -= own;
        let used = self.tick();
        let settled = self.is_settled(&key, set);
        let (tokens, set) = (tokens.to_vec(), set.cloned());
        self.prefixes.push(Prefix { key, sequence, tokens, set, users: 1, used, settled, forgotten: false });
        Ok(())
    }

    /// Returns true if a shared prefix is kept anywhere.
    pub(crate) fn has_prefix(&self, key: &PrefixKey) -> bool {
        self.prefixes.iter().any(|prefix| prefix.key == *key)
            || self.swap.get(&SwapKey::Prefix(*key)).is_some()
            || self.disk.as_ref().is_some_and(|disk| disk.has(key))
    }

    /// Writes one shared prefix that is not on disk yet. Returns false if there is none.
    pub(crate) fn write_prefix(&mut self) -> bool {
        let Some(disk) = &self.disk else { return false };
        let Some(prefix) = self.prefixes.iter_mut().find(|prefix| !prefix.settled) else { return false };
        if let Err(error) = disk.save(&prefix.key, |path| self.kv.save_file(path, prefix.sequence, &prefix.tokens)) {
            tracing::warn!(%error, "cannot write a prefix; it stays in memory only");
        }
        // A prefix that cannot be written is not tried again.
        prefix.settled = true;
        true
    }

    /// Returns an empty sequence for tokens that the caller's lease has reserved.
    pub(crate) fn branch(&mut self) -> Result<Option<i32>, Error> {
        Ok(if self.make_room(0, 1)? { self.kv.alloc() } else { None })
    }

    fn reuse(&mut self, resting: Resting, common: usize, room: usize) -> Result<Option<(Lease, usize)>, Error> {
        let retained = common.min(resting.lease.base_len);
        if !self.make_room(room.max(resting.tokens.len()) - retained, 0)? {
            self.resting.push(resting);
            return Ok(None);
        }
        let mut lease = resting.lease;
        lease.reserved = 0;
        self.cut(&mut lease, common, room)?;
        Ok(Some((lease, common)))
    }

    /// Keeps the first `len` tokens of a lease, and reserves cells for `room`.
    fn cut(&mut self, lease: &mut Lease, len: usize, room: usize) -> Result<(), Error> {
        self.kv.trim(lease.sequence, len)?;
        lease.base_len = lease.base_len.min(len);
        let reserved = room - lease.base_len;
        self.reserved = self.reserved - lease.reserved + reserved;
        lease.reserved = reserved;
        Ok(())
    }

    fn fresh(&mut self, room: usize) -> Result<Option<Lease>, Error> {
        if !self.make_room(room, 1)? {
            return Ok(None);
        }
        Ok(self.kv.alloc().map(|sequence| {
            self.reserved += room;
            Lease { sequence, base: None, base_len: 0, reserved: room }
        }))
    }

    /// Returns a lease on top of a prefix in the cache.
    fn build_on(&mut self, at: usize, len: usize, room: usize) -> Result<Option<Lease>, Error> {
        let key = self.prefixes[at].key;
        self.prefixes[at].users += 1;
        let made = self.make_room(room - len, 1);
        // Making room may have moved the other prefixes.
        let Some(at) = self.prefixes.iter().position(|prefix| prefix.key == key) else { return Ok(None) };
        let sequence = match made {
            Ok(true) => self.kv.alloc(),
            Ok(false) => None,
            Err(error) => {
                self.prefixes[at].users -= 1;
                return Err(error);
            }
        };
        let Some(sequence) = sequence else {
            self.prefixes[at].users -= 1;
            return Ok(None);
        };
        self.kv.share(self.prefixes[at].sequence, sequence, len)?;
        self.prefixes[at].used = self.tick();
        self.reserved += room - len;
        Ok(Some(Lease { sequence, base: Some(key), base_len: len, reserved: room - len }))
    }

    /// Ensures that a prefix is in the cache, with room for `room` tokens on top of it.
    fn bring_prefix(
        &mut self,
        key: &PrefixKey,
        set: Option<&LoraSetKey>,
        len: usize,
        room: usize,
    ) -> Result<Found, Error> {
        if let Some(at) = self.prefixes.iter().position(|prefix| prefix.key == *key) {
            return Ok(Found::Here(at));
        }
        if self.prefixes.len() >= SHARED_PREFIXES && !self.evict_prefix()? || !self.make_room(room.max(len), 2)? {
            return Ok(Found::NoRoom);
        }
        let Some(sequence) = self.kv.alloc() else { return Ok(Found::NoRoom) };
        match self.read_prefix(key, sequence, len) {
            Some(tokens) => {
                let (used, settled, set) = (self.tick(), self.is_settled(key, set), set.cloned());
                let prefix = Prefix { key: *key, sequence, tokens, set, users: 0, used, settled, forgotten: false };
                self.prefixes.push(prefix);
                Ok(Found::Here(self.prefixes.len() - 1))
            }
            None => {
                self.kv.release(sequence);
                Ok(Found::Lost)
            }
        }
    }

    /// Returns true if a prefix must not be written to disk: there is no disk, it is there already, or it was evaluated
    /// under LoRAs that a request named. Those may have been trained on people's messages.
    fn is_settled(&self, key: &PrefixKey, set: Option<&LoraSetKey>) -> bool {
        self.disk.as_ref().is_none_or(|disk| set != self.own.as_ref() || disk.has(key))
    }

    /// Fills an empty sequence with a prefix from main memory or disk.
    fn read_prefix(&mut self, key: &PrefixKey, sequence: i32, len: usize) -> Option<Vec<LlamaToken>> {
        if let Some(parked) = self.swap.take(&SwapKey::Prefix(*key)) {
            let loaded = parked.tail.as_ref().map(|tail| self.kv.load_tail(tail, sequence));
            if let Some(Ok(())) = loaded {
                return Some(parked.tokens);
            }
        }
        let disk = self.disk.as_ref()?;
        let path = disk.find(key)?;
        match self.kv.load_file(&path, sequence, len) {
            Ok(tokens) if tokens.len() == len => Some(tokens),
            Ok(_) | Err(_) => {
                tracing::warn!(path = %path.display(), "a prefix file does not match this model; it will be written again");
                disk.discard(key);
                None
            }
        }
    }

    /// Brings swapped-out tokens back. `room` counts from the first token.
    fn swap_in(&mut self, parked: &SwappedKv, room: usize) -> Result<SwapIn, Error> {
        let room = room.max(parked.tokens.len());
        let lease = match &parked.base {
            Some(key) => match self.bring_prefix(key, parked.set.as_ref(), parked.base_len, room)? {
                Found::Here(at) => self.build_on(at, parked.base_len, room)?,
                Found::NoRoom => None,
                Found::Lost => return Ok(SwapIn::Lost),
            },
            None => self.fresh(room)?,
        };
        let Some(lease) = lease else { return Ok(SwapIn::NoRoom) };
        if let Some(tail) = &parked.tail
            && let Err(error) = self.kv.load_tail(tail, lease.sequence)
        {
            tracing::warn!(%error, "cannot bring swapped-out tokens back");
            self.drop_lease(lease);
            return Ok(SwapIn::Lost);
        }
        Ok(SwapIn::Lease(lease))
    }

    fn swap_out(&mut self, lease: Lease, tokens: Vec<LlamaToken>, set: Option<LoraSetKey>) -> Result<SwappedKv, Error> {
        let (base, base_len) = (lease.base.filter(|_| lease.base_len > 0), lease.base_len);
        let tail = (tokens.len() > base_len).then(|| self.kv.save_tail(lease.sequence, base_len)).transpose();
        self.drop_lease(lease);
        Ok(SwappedKv { tokens, set, base, base_len, tail: tail? })
    }

    /// Swaps out resting conversations except `session`, until at most [`RESTING_TOKENS`] of their tokens are left.
    fn limit_resting(&mut self, session: Option<&SessionKey>) -> Result<(), Error> {
        loop {
            let others = self.resting.iter().filter(|resting| Some(&resting.key) != session);
            if others.map(Resting::cells).sum::<usize>() <= RESTING_TOKENS || !self.swap_out_resting(session)? {
                return Ok(());
            }
        }
    }

    /// Swaps out the least recently used resting conversation. Returns false if there is none.
    fn swap_out_resting(&mut self, except: Option<&SessionKey>) -> Result<bool, Error> {
        let candidates = self.resting.iter().enumerate().filter(|(_, resting)| Some(&resting.key) != except);
        let Some((at, _)) = candidates.min_by_key(|(_, resting)| resting.used) else { return Ok(false) };
        let resting = self.resting.remove(at);
        let parked = self.swap_out(resting.lease, resting.tokens, resting.set)?;
        self.swap.put(SwapKey::Session(resting.key), parked);
        Ok(true)
    }

    /// Removes the least recently used of the unused prefixes from the cache. Returns false if there is none.
    fn evict_prefix(&mut self) -> Result<bool, Error> {
        let unused = self.prefixes.iter().enumerate().filter(|(_, prefix)| prefix.users == 0);
        let Some((at, _)) = unused.min_by_key(|(_, prefix)| prefix.used) else { return Ok(false) };
        let prefix = self.prefixes.remove(at);
        if !self.disk.as_ref().is_some_and(|disk| disk.has(&prefix.key)) {
            let tail = self.kv.save_tail(prefix.sequence, 0)?;
            let parked =
                SwappedKv { tokens: prefix.tokens, set: prefix.set, base: None, base_len: 0, tail: Some(tail) };
            self.swap.put(SwapKey::Prefix(prefix.key), parked);
        }
        self.kv.release(prefix.sequence);
        Ok(true)
    }

    /// Frees cells and sequences by swapping out resting conversations and unused prefixes. Returns false if running
    /// leases hold too many.
    fn make_room(&mut self, cells: usize, sequences: usize) -> Result<bool, Error> {
        loop {
            if self.used() + cells <= self.cells && self.kv.free_sequences() >= sequences {
                return Ok(true);
            }
            if !self.swap_out_resting(None)? && !self.evict_prefix()? {
                return Ok(false);
            }
        }
    }

    fn used(&self) -> usize {
        self.reserved
            + self.resting.iter().map(Resting::cells).sum::<usize>()
            + self.prefixes.iter().map(|prefix| prefix.tokens.len()).sum::<usize>()
    }

    fn drop_lease(&mut self, lease: Lease) {
        self.reserved -= lease.reserved;
        self.release_base(lease.base);
        self.kv.release(lease.sequence);
    }

    fn release_base(&mut self, base: Option<PrefixKey>) {
        if let Some(prefix) = base.and_then(|key| self.prefixes.iter_mut().find(|prefix| prefix.key == key)) {
            prefix.users -= 1;
        }
        self.drop_forgotten();
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

enum Found {
    Here(usize),
    NoRoom,
    Lost,
}

enum SwapIn {
    Lease(Lease),
    NoRoom,
    Lost,
}

/// Returns the length of the common beginning of two sequences.
fn common(a: &[LlamaToken], b: &[LlamaToken]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
