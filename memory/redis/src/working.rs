use std::fmt;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use azera_memory::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Working};
use azera_memory_remote::{Deadline, Failure, RetryPolicy, Server};
use azera_types::Timestamp;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, ConnectionAddr, IntoConnectionInfo, Pipeline, RedisError, RedisResult, cmd};
use sha2::{Digest, Sha256};

use crate::remote::RemoteWorking;

/// Characters of a prefix.
pub const MAX_PREFIX_CHARS: usize = 48;

/// How much longer than its life the server keeps a value, so that clocks may differ and the house sweeps away what has
/// ended by its own.
pub const EXPIRY_SLACK: Duration = Duration::from_secs(60);

/// Life of a value on the server at most, slack included: ten years. The server's own limit is near 300 million years.
pub const LONGEST_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Keys asked for at once while all are gone through.
const PAGE_KEYS: usize = 1_000;

/// Bytes of the hashes that names on the server are made of.
const TOKEN_BYTES: usize = 16;

/// Stands between a secret and what is hashed with it.
const SEPARATOR: [u8; 1] = [0x1f];

/// Bytes of the end of a value's life before it.
const END_BYTES: usize = 8;

/// A server, and what the house's values are called on it.
#[derive(Clone)]
pub struct RedisConfig {
    /// Its address: `redis://HOST:PORT/DATABASE`, or `rediss://` for TLS; a user's name may stand in it, a password not.
    pub url: String,
    /// Its password.
    pub password: Option<String>,
    /// What every key begins with: letters, digits and `-_.:`, at most [`MAX_PREFIX_CHARS`]. All below it is the house's.
    pub prefix: String,
    /// How long it is waited for.
    pub patience: RetryPolicy,
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("prefix", &self.prefix)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its kind and address.
    pub server: String,
    /// Its version, with its name.
    pub version: String,
    /// Whether what is sent to it can be read on the way: it is neither encrypted nor stays on this machine.
    pub readable: bool,
}

/// Working memory on a server. Any call may fail with a transient error while the server is away.
pub struct RedisWorking {
    // Before the server, whose thread it lives on.
    connection: ConnectionManager,
    server: Server,
    place: String,
    prefix: String,
    names: RwLock<Names>,
    readable: bool,
}

/// What the house's values are called.
#[derive(Clone)]
struct Names {
    secret: String,
    /// What all of them begin with, in any space.
    installation: String,
    /// What those of the present space begin with.
    space: String,
}

impl Names {
    fn new(prefix: &str, secret: &str, space: &str) -> Self {
        let installation = format!("{prefix}:{}:", token(secret, ""));
        Self { secret: secret.to_owned(), space: format!("{installation}{space}:"), installation }
    }

    /// A key of the house is a hash over a text, which could be guessed; with the secret it cannot.
    fn of(&self, key: &str) -> String {
        format!("{}{}", self.space, token(&self.secret, key))
    }
}

fn token(secret: &str, text: &str) -> String {
    let mut hash = Sha256::new();
    for part in [secret.as_bytes(), &SEPARATOR, text.as_bytes()] {
        hash.update(part);
    }
    hash.finalize().iter().take(TOKEN_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

impl RedisWorking {
    /// Working memory on a server, which need not be there yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the configuration cannot be.
    pub fn new(config: RedisConfig) -> Result<Self, Error> {
        let RedisConfig { url, password, prefix, patience } = config;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if prefix.is_empty() || prefix.len() > MAX_PREFIX_CHARS || !prefix.chars().all(plain) {
            return Err(Error::Invalid(
                "the prefix of keys on a Redis server holds letters, digits and -_.: alone".into(),
            ));
        }
        let wrong = |why: RedisError| Error::Invalid(format!("this is no address of a Redis server: {why}"));
        let info = url.as_str().into_connection_info().map_err(wrong)?;
        let mut settings = info.redis_settings().clone();
        if settings.password().is_some() {
            return Err(Error::Invalid("the address of a Redis server must hold no password".into()));
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        let readable = match info.addr() {
            ConnectionAddr::Tcp(host, _) => !is_here(host),
            _ => false,
        };
        let name = format!("Redis at {}", info.addr());
        let place = format!("{name}, database {}, keys {prefix}:*", settings.db());
        let client = Client::open(info.set_redis_settings(settings)).map_err(wrong)?;
        // Calls have deadlines and retries of their own; here each try is short and made once.
        let once = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(patience.foreground))
            .set_response_timeout(Some(patience.bulk));
        let server = Server::new(name, patience)?;
        let connection = server.make(|| ConnectionManager::new_lazy_with_config(client, once))?.map_err(wrong)?;
        let names = RwLock::new(Names::new(&prefix, "", ""));
        Ok(Self { server, connection, place, prefix, names, readable })
    }

    /// Asks the server what it is.
    pub fn about(&self) -> Result<ServerInfo, Error> {
        let info: String = self.ask("asking the server of working memory", |mut redis, _| async move {
            cmd("INFO").arg("server").query_async(&mut redis).await
        })?;
        let field =
            |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let version = match (field("dragonfly_version"), field("redis_version")) {
            (Some(version), _) => format!("Dragonfly {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => "a server that does not tell its version".to_owned(),
        };
        Ok(ServerInfo { server: self.server.name().to_owned(), version, readable: self.readable })
    }

    fn names(&self) -> Names {
        self.names.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn key(&self, key: &str) -> String {
        self.names().of(key)
    }

    /// Asks the server; the second argument of `work` is what every key of the house begins with.
    fn ask<T, F>(
        &self,
        what: &'static str,
        work: impl FnMut(ConnectionManager, String) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = RedisResult<T>> + Send + 'static,
    {
        self.ask_within(what, Deadline::Foreground, work)
    }

    fn ask_within<T, F>(
        &self,
        what: &'static str,
        deadline: Deadline,
        mut work: impl FnMut(ConnectionManager, String) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = RedisResult<T>> + Send + 'static,
    {
        let (connection, prefix) = (self.connection.clone(), self.names().installation);
        self.server.call(what, deadline, move || {
            let calls = work(connection.clone(), prefix.clone());
            // Whatever it refuses (no password, no memory left, still loading) keeps it from being of use.
            async move { calls.await.map_err(|error| Failure::Unavailable(error.to_string())) }
        })
    }
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Goes through all keys that begin with `prefix` and removes those of each page that `choose` picks; gives how many.
async fn remove_chosen<F>(
    mut redis: ConnectionManager,
    prefix: String,
    mut choose: impl FnMut(ConnectionManager, Vec<String>) -> F,
) -> RedisResult<usize>
where
    F: Future<Output = RedisResult<Vec<String>>>,
{
    let (mut cursor, mut removed) = (0_u64, 0);
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(PAGE_KEYS);
        let (next, keys): (u64, Vec<String>) = scan.query_async(&mut redis).await?;
        let chosen = choose(redis.clone(), keys).await?;
        if !chosen.is_empty() {
            removed += cmd("UNLINK").arg(&chosen).query_async::<usize>(&mut redis).await?;
        }
        if next == 0 {
            return Ok(removed);
        }
        cursor = next;
    }
}

/// Those of `keys` whose values have ended.
async fn ended(mut redis: ConnectionManager, keys: Vec<String>, now: i64) -> RedisResult<Vec<String>> {
    if keys.is_empty() {
        return Ok(keys);
    }
    let mut pipe = Pipeline::with_capacity(keys.len());
    for key in &keys {
        pipe.cmd("GETRANGE").arg(key).arg(0).arg(END_BYTES - 1);
    }
    let ends: Vec<Vec<u8>> = pipe.query_async(&mut redis).await?;
    // An empty one is gone already.
    let over = |end: &[u8]| !end.is_empty() && split(end).is_none_or(|(end, _)| end <= now);
    Ok(keys.into_iter().zip(ends).filter(|(_, end)| over(end)).map(|(key, _)| key).collect())
}

impl Working for RedisWorking {
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        let key = self.key(key);
        let row: Option<Vec<u8>> = self.ask("reading working memory", move |mut redis, _| {
            let key = key.clone();
            async move { cmd("GET").arg(key).query_async(&mut redis).await }
        })?;
        let living = row.as_deref().and_then(split).filter(|(end, _)| now.as_microsecond() < *end);
        Ok(living.map(|(_, value)| value.to_vec()))
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        if key.len() > MAX_KEY_BYTES || value.len() > MAX_VALUE_BYTES {
            let (key, value) = (key.len(), value.len());
            return Err(Error::Invalid(format!("a key of {key} bytes with a value of {value} in working memory")));
        }
        let end = now.saturating_add(ttl).map_err(|why| Error::Invalid(why.to_string()))?.as_microsecond();
        let row = [&end.to_be_bytes(), value].concat();
        let life = ttl.saturating_add(EXPIRY_SLACK).min(LONGEST_LIFE).as_secs();
        let key = self.key(key);
        self.ask("writing to working memory", move |mut redis, _| {
            let mut set = cmd("SET");
            set.arg(&key).arg(&row).arg("EX").arg(life);
            async move { set.query_async(&mut redis).await }
        })
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        let key = self.key(key);
        self.ask("writing to working memory", move |mut redis, _| {
            let key = key.clone();
            async move { cmd("UNLINK").arg(key).query_async(&mut redis).await }
        })
    }

    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        let now = now.as_microsecond();
        self.ask_within("sweeping working memory", Deadline::Bulk, move |redis, prefix| {
            remove_chosen(redis, prefix, move |redis, keys| ended(redis, keys, now))
        })
    }

    /// Removes every key of the house, in all its spaces. What the server has written to its own disk goes with its next snapshot or when it
    /// rewrites its log.
    fn clear(&self) -> Result<(), Error> {
        self.ask_within("clearing working memory", Deadline::Bulk, |redis, prefix| {
            remove_chosen(redis, prefix, |_, keys| async move { Ok(keys) })
        })
        .map(drop)
    }
}

impl RemoteWorking for RedisWorking {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn begin(&self, secret: &str, space: &str) {
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = Names::new(&self.prefix, secret, space);
    }

    fn remove_older(&self) -> Result<(), Error> {
        let present = self.names().space;
        self.ask_within("removing what was cleared from working memory", Deadline::Bulk, move |redis, prefix| {
            let present = present.clone();
            remove_chosen(redis, prefix, move |_, keys| {
                let older = keys.into_iter().filter(|key| !key.starts_with(&present)).collect();
                async move { Ok(older) }
            })
        })
        .map(drop)
    }

    fn remove_all(&self, keys: &[String]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let names = self.names();
        let keys: Vec<String> = keys.iter().map(|key| names.of(key)).collect();
        self.ask("writing to working memory", move |mut redis, _| {
            let keys = keys.clone();
            async move { cmd("UNLINK").arg(keys).query_async(&mut redis).await }
        })
    }

    fn stop(&self) {
        self.server.stop();
    }
}

/// The end of a row's life and its value.
fn split(row: &[u8]) -> Option<(i64, &[u8])> {
    let (end, value) = row.split_first_chunk::<END_BYTES>()?;
    Some((i64::from_be_bytes(*end), value))
}
