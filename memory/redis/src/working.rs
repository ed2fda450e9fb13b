use std::fmt;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use azera_memory::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Working};
use azera_memory_remote::{Deadline, Failure, RetryPolicy, Server};
use azera_types::Timestamp;
use data_encoding::HEXLOWER;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, ConnectionAddr, IntoConnectionInfo, Pipeline, RedisError, RedisResult, cmd};
use sha2::{Digest, Sha256};

use crate::remote::RemoteWorking;

/// Longest prefix in characters.
pub const MAX_PREFIX_CHARS: usize = 48;

/// How much longer than its lifetime the server keeps a value. This allows for different clocks; the local clock
/// decides when a value expires.
pub const EXPIRY_SLACK: Duration = Duration::from_secs(60);

/// Longest lifetime of a value on the server, including the slack: ten years. The server's own limit is near 300
/// million years.
pub const LONGEST_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Keys requested at a time when all keys are listed.
const PAGE_KEYS: usize = 1_000;

/// Bytes of the hashes in key names.
const TOKEN_BYTES: usize = 16;

/// Separates a secret from the text hashed with it.
const SEPARATOR: [u8; 1] = [0x1f];

/// Bytes of the expiry time at the beginning of a value.
const END_BYTES: usize = 8;

/// A server, and the keys of the installation on it.
#[derive(Clone)]
pub struct RedisConfig {
    /// Address: `redis://HOST:PORT/DATABASE`, or `rediss://` for TLS. It may contain a user name but no password.
    pub url: String,
    /// The password.
    pub password: Option<String>,
    /// Prefix of every key: letters, digits and `-_.:`, at most [`MAX_PREFIX_CHARS`]. All keys below it belong to the
    /// installation.
    pub prefix: String,
    /// Deadlines and retries of calls.
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

/// Information about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its kind and address.
    pub server: String,
    /// Its name and version.
    pub version: String,
    /// True if others could read the traffic: it is not encrypted and leaves this machine.
    pub readable: bool,
}

/// Working memory on a server. Calls fail with a transient error while the server is unavailable.
pub struct RedisWorking {
    // This field comes before `server`, so that it is dropped first: it uses the server's thread.
    connection: ConnectionManager,
    server: Server,
    place: String,
    prefix: String,
    names: RwLock<Names>,
    readable: bool,
}

/// Key names of the installation.
#[derive(Clone)]
struct Names {
    secret: String,
    /// Prefix of all its keys, in any space.
    installation: String,
    /// Prefix of its keys in the current space.
    space: String,
}

impl Names {
    fn new(prefix: &str, secret: &str, space: &str) -> Self {
        let installation = format!("{prefix}:{}:", token(secret, ""));
        Self { secret: secret.to_owned(), space: format!("{installation}{space}:"), installation }
    }

    /// Returns the key name: a hash with the secret. A plain hash of a text could be guessed.
    fn of(&self, key: &str) -> String {
        format!("{}{}", self.space, token(&self.secret, key))
    }
}

fn token(secret: &str, text: &str) -> String {
    let mut hash = Sha256::new();
    for part in [secret.as_bytes(), &SEPARATOR, text.as_bytes()] {
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize()[..TOKEN_BYTES])
}

impl RedisWorking {
    /// Returns working memory on a server, which need not be running yet.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the configuration is invalid.
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
        // [`Server`] has deadlines and retries of its own; so the connection makes each attempt once.
        let once = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(patience.foreground))
            .set_response_timeout(Some(patience.bulk));
        let server = Server::new(name, patience)?;
        let connection = server.make(|| ConnectionManager::new_lazy_with_config(client, once))?.map_err(wrong)?;
        let names = RwLock::new(Names::new(&prefix, "", ""));
        Ok(Self { server, connection, place, prefix, names, readable })
    }

    /// Asks the server for its version.
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

    /// Calls the server. The second argument of `work` is the prefix of all keys of the installation.
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
            // A server that refuses calls (wrong password, out of memory, still loading) counts as unavailable.
            async move { calls.await.map_err(|error| Failure::Unavailable(error.to_string())) }
        })
    }
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Removes the keys with `prefix` that `choose` selects, page by page; returns how many.
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

/// Returns those of `keys` whose values have expired.
async fn ended(mut redis: ConnectionManager, keys: Vec<String>, now: i64) -> RedisResult<Vec<String>> {
    if keys.is_empty() {
        return Ok(keys);
    }
    let mut pipe = Pipeline::with_capacity(keys.len());
    for key in &keys {
        pipe.cmd("GETRANGE").arg(key).arg(0).arg(END_BYTES - 1);
    }
    let ends: Vec<Vec<u8>> = pipe.query_async(&mut redis).await?;
    // An empty answer means that the value is gone already.
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

    /// Removes every key of the installation in all spaces. The server's own files lose the values with its next
    /// snapshot, or when it rewrites its log.
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

/// Splits a stored value into expiry time and content.
fn split(row: &[u8]) -> Option<(i64, &[u8])> {
    let (end, value) = row.split_first_chunk::<END_BYTES>()?;
    Some((i64::from_be_bytes(*end), value))
}
