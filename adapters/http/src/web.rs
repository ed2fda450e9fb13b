//! The web as one object: the platform that the engine sees, and the server that people reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use azera_adapter::{Command, Host, KnownReader, MemoryReader, MoodHost, PictureHost, PlaceHost, Reader, SpeechHost};
use azera_types::{Clock, PersonId, PlatformId};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accounts::{Accounts, Caller};
use crate::connection::Places;
use crate::events::Events;
use crate::guard::Client;
use crate::limits::{FAILURES, GUESSES, MESSAGES, REQUESTS, RateLimit};
use crate::live::LiveReplies;
use crate::local::Local;
use crate::local_connection::Ends;
use crate::oauth::{ACCESS_PREFIX, Codes, Origin};
use crate::platform::{PLATFORM, account_of};
use crate::problem::Problem;
use crate::tokens::{self, Tokens};
use crate::{
    AccountStore, Backups, Error, LocalCommands, Mcp, Operations, PersonaStore, Settings, VoiceSamples, routes,
    secrets, serve,
};

/// The beginning of the key for commands on this machine.
const LOCAL_KEY: &str = "azl_";

/// What the web needs of the rest of the program.
pub struct Parts {
    /// Where accounts are stored.
    pub accounts: Arc<dyn AccountStore>,
    /// Lists of chats, messages and writings.
    pub reader: Arc<dyn Reader>,
    /// The pictures.
    pub pictures: Arc<dyn PictureHost>,
    /// What speaks.
    pub speech: Arc<dyn SpeechHost>,
    /// How personas feel.
    pub moods: Arc<dyn MoodHost>,
    /// What counts as known in a whole place.
    pub known: Arc<dyn KnownReader>,
    /// Whole memories, and the names in them.
    pub memories: Arc<dyn MemoryReader>,
    /// The places of other platforms.
    pub places: Arc<dyn PlaceHost>,
    /// Recordings of voices.
    pub samples: Arc<dyn VoiceSamples>,
    /// The state of the program.
    pub operations: Arc<dyn Operations>,
    /// The backups of the record.
    pub backups: Arc<dyn Backups>,
    /// The personas that everybody may use.
    pub personas: Arc<dyn PersonaStore>,
    /// What commands on this machine ask for.
    pub commands: Arc<dyn LocalCommands>,
    /// What answers at `/mcp`, if this build speaks the Model Context Protocol.
    pub mcp: Option<Arc<dyn Mcp>>,
}

/// What every request may use.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) platform: PlatformId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) accounts: Accounts,
    pub(crate) tokens: Tokens,
    pub(crate) live: Arc<LiveReplies>,
    pub(crate) events: Events,
    /// The codes of OAuth.
    pub(crate) codes: Codes,
    pub(crate) requests: RateLimit,
    /// Failures to log in, by address, and to confirm a password, by account.
    pub(crate) failures: RateLimit,
    /// Failures to log in, by name.
    pub(crate) guesses: RateLimit,
    pub(crate) messages: RateLimit,
    /// The commands that make sense here.
    pub(crate) commands: Vec<Command>,
    /// Cancelled when the web stops.
    pub(crate) stop: CancellationToken,
    /// The names, in lower case, by which this machine reaches the web.
    own_names: Vec<String>,
    /// Further names, in lower case, by which others reach it.
    public_names: Vec<String>,
    host: OnceLock<Arc<dyn Host>>,
    parts: OnceLock<Parts>,
    /// Digest of the key for commands on this machine, and the file that names it.
    local: OnceLock<(String, Local)>,
}

impl Shared {
    /// Returns the engine.
    pub(crate) fn host(&self) -> Result<&Arc<dyn Host>, Problem> {
        self.host.get().ok_or_else(|| Problem::from(azera_adapter::HostError::Stopping))
    }

    fn parts(&self) -> Result<&Parts, Problem> {
        self.parts.get().ok_or_else(|| Problem::from(azera_adapter::HostError::Stopping))
    }

    /// Returns the engine's lists.
    pub(crate) fn reader(&self) -> Result<&Arc<dyn Reader>, Problem> {
        Ok(&self.parts()?.reader)
    }

    /// Returns the pictures.
    pub(crate) fn pictures(&self) -> Result<&Arc<dyn PictureHost>, Problem> {
        Ok(&self.parts()?.pictures)
    }

    /// Returns what speaks.
    pub(crate) fn speech(&self) -> Result<&Arc<dyn SpeechHost>, Problem> {
        Ok(&self.parts()?.speech)
    }

    /// Returns the places of other platforms.
    pub(crate) fn places(&self) -> Result<&Arc<dyn PlaceHost>, Problem> {
        Ok(&self.parts()?.places)
    }

    /// Returns the backups of the record.
    pub(crate) fn backups(&self) -> Result<&Arc<dyn Backups>, Problem> {
        Ok(&self.parts()?.backups)
    }

    /// Returns how personas feel.
    pub(crate) fn moods(&self) -> Result<&Arc<dyn MoodHost>, Problem> {
        Ok(&self.parts()?.moods)
    }

    /// Returns what counts as known.
    pub(crate) fn known(&self) -> Result<&Arc<dyn KnownReader>, Problem> {
        Ok(&self.parts()?.known)
    }

    /// Returns whole memories, and the names in them.
    pub(crate) fn memories(&self) -> Result<&Arc<dyn MemoryReader>, Problem> {
        Ok(&self.parts()?.memories)
    }

    /// Returns the recordings of voices.
    pub(crate) fn samples(&self) -> Result<&Arc<dyn VoiceSamples>, Problem> {
        Ok(&self.parts()?.samples)
    }

    /// Returns the state of the program.
    pub(crate) fn operations(&self) -> Result<&Arc<dyn Operations>, Problem> {
        Ok(&self.parts()?.operations)
    }

    /// Returns the personas that everybody may use.
    pub(crate) fn persona_store(&self) -> Result<&Arc<dyn PersonaStore>, Problem> {
        Ok(&self.parts()?.personas)
    }

    /// Returns what does what commands on this machine ask for.
    pub(crate) fn commands_here(&self) -> Result<&Arc<dyn LocalCommands>, Problem> {
        Ok(&self.parts()?.commands)
    }

    /// Returns what speaks the Model Context Protocol.
    pub(crate) fn mcp(&self) -> Result<&Arc<dyn Mcp>, Problem> {
        let missing = || Problem::missing("mcp_unavailable", "This build does not speak the Model Context Protocol.");
        self.parts()?.mcp.as_ref().ok_or_else(missing)
    }

    /// Returns true if a person has an account.
    pub(crate) fn has(&self, person: &PersonId) -> bool {
        account_of(person).is_some_and(|account| self.accounts.role_of(account).is_some())
    }

    /// Returns true if this is a name of this server. Another site that resolves its own name to this machine is refused.
    pub(crate) fn serves(&self, name: &str) -> bool {
        self.is_own_name(name) || self.public_names.contains(&plain_name(name))
    }

    /// Returns true if this is a name by which this machine reaches the web.
    pub(crate) fn is_own_name(&self, name: &str) -> bool {
        self.own_names.contains(&plain_name(name))
    }

    /// Writes the file for commands on this machine again, without the link that was used.
    pub(crate) fn forget_setup_link(&self) -> Result<(), Error> {
        match self.local.get() {
            Some((_, local)) => Local { setup: None, ..local.clone() }.write(&self.settings.folder),
            None => Ok(()),
        }
    }

    /// Returns true if this is the key of this machine's commands, which works only from this machine.
    pub(crate) fn is_of_machine(&self, key: &str, client: &Client) -> bool {
        client.is_local && self.local.get().is_some_and(|(local, _)| secrets::same(local, &secrets::digest(key)))
    }

    /// Returns the proof for a command of this machine that this web is the one that wrote the file; see [`Local::proof`].
    pub(crate) fn proof(&self, challenge: &str, on: Ends) -> Option<String> {
        self.local.get().and_then(|(_, local)| local.proof(challenge, on))
    }

    /// Returns whom a key or a token stands for. The key of this machine's commands works only from this machine.
    pub(crate) fn by_token(&self, key: &str, client: &Client, origin: &Origin) -> Option<Caller> {
        if key.starts_with(LOCAL_KEY) {
            let owner = self.is_of_machine(key, client).then(|| self.accounts.owner()).flatten()?;
            // It makes keys, and does nothing else for the owner.
            return Some(Caller { is_local: true, scopes: Vec::new(), ..owner });
        }
        if tokens::is_token(key) {
            return self.accounts.by_claims(self.tokens.read(key, self.clock.now())?);
        }
        if key.starts_with(ACCESS_PREFIX) {
            return self.accounts.by_access_token(key, &origin.resource());
        }
        self.accounts.by_key(key)
    }

    /// Returns true if what a request carried still counts. Long answers ask again.
    pub(crate) fn is_current(&self, caller: &Caller) -> bool {
        let is_signed = caller.pass.as_ref().is_none_or(|pass| self.tokens.has(&pass.signed_by));
        is_signed && self.accounts.is_current(caller)
    }
}

/// The web: a platform, and an HTTP server.
pub struct Web {
    pub(crate) shared: Arc<Shared>,
    listener: std::sync::Mutex<Option<TcpListener>>,
    address: SocketAddr,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Web({})", self.address)
    }
}

fn plain_name(name: &str) -> String {
    name.trim_end_matches('.').to_lowercase()
}

/// Returns an address by which this machine reaches a server that listens on `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the names by which a server at this address is reached on its own machine.
fn own_names(address: IpAddr) -> Vec<String> {
    let literal = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let mut names = vec!["localhost".to_owned(), literal(Ipv4Addr::LOCALHOST.into()), "[::1]".to_owned()];
    if !address.is_unspecified() {
        names.push(literal(address));
    }
    names
}

impl Web {
    /// Takes the address. Nothing is served before [`Web::listen`].
    ///
    /// # Errors
    /// The address is taken or cannot be used.
    pub async fn bind(settings: Settings, clock: Arc<dyn Clock>) -> Result<Arc<Self>, Error> {
        let wanted = settings.listen;
        let listener = TcpListener::bind(wanted).await.map_err(|source| match source.kind() {
            std::io::ErrorKind::AddrInUse => Error::Taken { address: wanted, source },
            _ => Error::Listen { address: wanted, source },
        })?;
        let address = listener.local_addr().map_err(|source| Error::Listen { address: wanted, source })?;
        let platform = PlatformId::new(PLATFORM).map_err(|error| Error::Setting(error.to_string()))?;
        let shared = Shared {
            own_names: own_names(address.ip()),
            public_names: settings.allowed_hosts.iter().map(|name| plain_name(name)).collect(),
            platform,
            accounts: Accounts::new(clock.clone()),
            tokens: Tokens::new(&settings.folder),
            clock,
            live: Arc::default(),
            events: Events::default(),
            codes: Codes::default(),
            requests: RateLimit::new(REQUESTS),
            failures: RateLimit::new(FAILURES),
            guesses: RateLimit::new(GUESSES),
            messages: RateLimit::new(MESSAGES),
            commands: settings.commands.iter().filter(|command| !command.terminal).copied().collect(),
            stop: CancellationToken::new(),
            host: OnceLock::new(),
            parts: OnceLock::new(),
            local: OnceLock::new(),
            settings,
        };
        Ok(Arc::new(Self { shared: Arc::new(shared), listener: std::sync::Mutex::new(Some(listener)), address }))
    }

    /// Returns the address by which this machine reaches the web.
    pub fn address(&self) -> SocketAddr {
        reachable(self.address)
    }

    /// Sets what the web needs. Call it once, before [`Web::begin`].
    pub fn open(&self, parts: Parts) {
        self.shared.accounts.set_store(parts.accounts.clone());
        self.shared.parts.get_or_init(|| parts);
    }

    /// Loads the accounts. Returns the link that makes the owner's account, if there is none yet.
    ///
    /// # Errors
    /// The accounts cannot be read, or the system gives no random numbers.
    pub async fn begin(&self) -> Result<Option<String>, Error> {
        let address = format!("http://{}", self.address());
        self.shared.tokens.load();
        // What stands after `#` is sent to no server, so it is in no log.
        let setup = self.shared.accounts.load().await?.map(|token| format!("{address}/#setup={token}"));
        let key = format!("{LOCAL_KEY}{}", secrets::token()?);
        let local = Local { address, setup: setup.clone(), key };
        self.shared.local.get_or_init(|| (secrets::digest(&local.key), local));
        Ok(setup)
    }

    /// Writes the file by which commands on this machine find the web. Call it right before [`Web::listen`], so that no
    /// command waits for a web that does not answer yet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn announce(&self) -> Result<(), Error> {
        match self.shared.local.get() {
            Some((_, local)) => local.write(&self.shared.settings.folder),
            None => Ok(()),
        }
    }

    /// Serves until `stop` is cancelled.
    pub async fn listen(&self, host: Arc<dyn Host>, stop: CancellationToken) {
        self.shared.host.get_or_init(|| host);
        let listener = self.listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(listener) = listener {
            let ending = self.shared.stop.clone();
            let places = Places::new(&self.shared.settings.trusted_proxies);
            let served = serve::serve(listener, routes::router(&self.shared), places, ending.clone());
            tokio::select! {
                () = served => {}
                () = async { stop.cancelled().await; ending.cancel(); std::future::pending::<()>().await } => {}
            }
        }
        Local::remove(&self.shared.settings.folder);
    }
}
