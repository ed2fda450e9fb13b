//! A fake Discord on loopback for tests: the API over TLS as `discord.com`, the gateway, channels with enforced
//! permissions, webhooks and interactions, and injected faults. Begin with [`FakeDiscord`]; [`World`] is its data.
//!
//! It is independent of any client. If Discord's API description is given, requests are checked against it. Answers
//! follow Discord's reference.

mod changes;
#[cfg(feature = "openapi")]
mod check;
#[cfg(not(feature = "openapi"))]
#[path = "check_left_out.rs"]
mod check;
mod faults;
mod gateway;
mod interactions;
mod permissions;
mod reactions;
mod rest;
mod server;
mod voice;
mod webhooks;
mod world;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use faults::{Fault, Scope};
pub use interactions::{Answer, Answered, Interaction, Invoked};
pub use permissions::{Bits, Overwrite};
pub use voice::{Mode, Network, Voice, VoicePacket};
pub use world::{APPLICATION, BOT, Channel, Guild, Kind, Member, RecordedRequest, World};

/// Limit for waiting before a test fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often to look without a change.
const LOOK: Duration = Duration::from_millis(20);

/// A running fake Discord.
pub struct FakeDiscord {
    shared: Arc<Shared>,
    /// Address of the API.
    pub api: SocketAddr,
    /// Certificate (PEM) of the authority that signed the API's certificate.
    pub root_certificate: String,
    /// The bot's token.
    pub token: String,
    runtime: Option<tokio::runtime::Runtime>,
    /// Carries the sound of people to the bot.
    udp: Arc<tokio::net::UdpSocket>,
}

impl Drop for FakeDiscord {
    fn drop(&mut self) {
        // An asynchronous test must not block on a runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) struct Shared {
    world: Mutex<World>,
    changed: Condvar,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the world and wakes waiting tests.
    pub(crate) fn change<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let done = act(&mut self.lock());
        self.changed.notify_all();
        done
    }
}

impl FakeDiscord {
    /// Starts a fake Discord; `description` is the file with Discord's API description, if there is one.
    pub fn start(description: Option<&Path>) -> Self {
        // In a thread of its own, because a runtime must not block on another.
        std::thread::scope(|scope| scope.spawn(|| Self::begin(description)).join().expect("the peer starts"))
    }

    fn begin(description: Option<&Path>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let check = description.map(check::Description::read);
        let shared = Arc::new(Shared { world: Mutex::new(World::new()), changed: Condvar::new() });
        let gateway = runtime.block_on(gateway::listen(shared.clone()));
        let token = shared.change(|world| {
            world.gateway = format!("ws://{gateway}");
            world.token.clone()
        });
        let (api, root_certificate) = runtime.block_on(server::listen(shared.clone(), check));
        let udp = runtime.block_on(voice::listen(shared.clone()));
        shared.change(|world| world.voice.endpoint = api.to_string());
        Self { shared, api, root_certificate, token, runtime: Some(runtime), udp }
    }

    /// Lets a person say Opus packets of 20 ms in real time. [`Voice::talking`] counts who still talks.
    pub fn talk(&self, user: u64, packets: Vec<Vec<u8>>, network: Network) {
        self.shared.change(|world| world.voice.talking += 1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(voice::talk(self.shared.clone(), self.udp.clone(), user, packets, network));
        }
    }

    /// Reads or changes the world.
    pub fn world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        self.shared.change(act)
    }

    /// Waits until `look` returns a value. It looks at every change, and now and then, because time is one, too.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, mut look: impl FnMut(&mut World) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut world = self.shared.lock();
        loop {
            if let Some(found) = look(&mut world) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "timeout while waiting for {what}; the last requests: {}", world.last_requests());
            world = self.shared.changed.wait_timeout(world, left.min(LOOK)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
