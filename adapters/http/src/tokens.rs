//! Tokens for scripts: JSON Web Tokens (RFC 7519) that work for minutes. They are signed with HMAC-SHA256 and a key of this
//! web, and nothing else is accepted: the algorithm, the issuer and the audience are fixed, and a header with anything more is
//! refused.
//!
//! A token names the key or the session that made it, and works no longer than that. See `accounts::passes`.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use azera_types::{Span, Timestamp};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::{Error, private_file, secrets};

/// The file of the signing keys, in the data folder.
const FILE: &str = "web-tokens.json";

/// Who makes tokens, and for whom.
const ISSUER: &str = "azera";
const AUDIENCE: &str = "azera-web";

/// The one algorithm.
const ALGORITHM: &str = "HS256";
const TYPE: &str = "JWT";

/// Longest token that is looked at, in bytes.
const MAX_TOKEN_BYTES: usize = 2_048;

/// Longest life of a token, in minutes.
pub(crate) const MAX_MINUTES: u32 = 60;

/// Days after which another key signs. The one before verifies what it signed.
const KEY_DAYS: i64 = 30;

/// Seconds by which the clock may have been set back since a token was made.
const CLOCK_S: i64 = 60;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    iss: String,
    aud: String,
    /// The id of the account.
    pub(crate) sub: String,
    /// What it may do, separated by spaces.
    pub(crate) scope: String,
    /// The id of the key that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// The mark of the session that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    iat: i64,
    pub(crate) exp: i64,
    jti: String,
}

/// What a token says, and which key signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedClaims {
    pub(crate) claims: Claims,
    /// The id of the key.
    pub(crate) signed_by: String,
}

/// For whom a token is made, and what it may do.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) account: String,
    pub(crate) scope: String,
    pub(crate) key: Option<String>,
    pub(crate) session: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    typ: String,
    kid: String,
}

/// A key that signs tokens.
#[derive(Clone, Serialize, Deserialize)]
struct SigningKey {
    id: String,
    secret: String,
    made_at: Timestamp,
}

impl SigningKey {
    fn new(now: Timestamp) -> Result<Self, Error> {
        Ok(Self { id: secrets::id()?.simple().to_string(), secret: secrets::token()?, made_at: now })
    }

    fn mac(&self, signed: &str) -> Result<Hmac<Sha256>, Error> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes())
            .map_err(|error| Error::Setting(error.to_string()))?;
        mac.update(signed.as_bytes());
        Ok(mac)
    }

    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.made_at.checked_add(Span::new().hours(KEY_DAYS * 24)).unwrap_or(Timestamp::MAX)
    }
}

/// Makes and reads tokens.
pub(crate) struct Tokens {
    path: PathBuf,
    /// The key that signs, and the one before.
    keys: RwLock<Vec<SigningKey>>,
}

impl Tokens {
    pub(crate) fn new(folder: &std::path::Path) -> Self {
        Self { path: folder.join(FILE), keys: RwLock::default() }
    }

    /// Loads the keys. Without a file, or with one that is damaged, there is no key until the first token is made.
    pub(crate) fn load(&self) {
        let read = std::fs::read(&self.path).map_err(|error| error.kind());
        let keys = match read.map(|bytes| serde_json::from_slice::<Vec<SigningKey>>(&bytes)) {
            Ok(Ok(keys)) => keys,
            Err(std::io::ErrorKind::NotFound) => Vec::new(),
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("the keys of the web's tokens cannot be read; tokens that were made so far do not work");
                Vec::new()
            }
        };
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Lets another key sign. With `all`, tokens that were made so far do not work any more.
    pub(crate) fn rotate(&self, all: bool, now: Timestamp) -> Result<(), Error> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        self.renew(&mut keys, all, now).map(drop)
    }

    /// Puts another key first, and stores the keys. Returns that key.
    fn renew(&self, keys: &mut Vec<SigningKey>, all: bool, now: Timestamp) -> Result<SigningKey, Error> {
        let new = SigningKey::new(now)?;
        let mut next = vec![new.clone()];
        next.extend(keys.first().filter(|_| !all).cloned());
        private_file::write(&self.path, &serde_json::to_vec(&next).unwrap_or_default())?;
        *keys = next;
        Ok(new)
    }

    /// Returns true if tokens of this key still count.
    pub(crate) fn has(&self, signed_by: &str) -> bool {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().any(|key| key.id == signed_by)
    }

    /// Makes a token. Returns it with the moment of its end.
    pub(crate) fn make(&self, grant: Grant, minutes: u32, now: Timestamp) -> Result<(String, Timestamp), Error> {
        let key = self.signing_key(now)?;
        let until = now.checked_add(Span::new().minutes(i64::from(minutes.clamp(1, MAX_MINUTES))));
        let until = until.unwrap_or(Timestamp::MAX);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: grant.account,
            scope: grant.scope,
            key: grant.key,
            session: grant.session,
            iat: now.as_second(),
            exp: until.as_second(),
            jti: secrets::id()?.simple().to_string(),
        };
        let header = Header { alg: ALGORITHM.to_owned(), typ: TYPE.to_owned(), kid: key.id.clone() };
        let signed = format!("{}.{}", encoded(&header), encoded(&claims));
        let signature = URL_SAFE_NO_PAD.encode(key.mac(&signed)?.finalize().into_bytes());
        Ok((format!("{signed}.{signature}"), until))
    }

    fn signing_key(&self, now: Timestamp) -> Result<SigningKey, Error> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.first().filter(|key| !key.is_due(now)) {
            return Ok(key.clone());
        }
        drop(keys);
        self.next_key(now)
    }

    /// Makes the next key. Another request may have made it since the key that signs was found to be due: then returns that one,
    /// because one more would push out the key before it.
    fn next_key(&self, now: Timestamp) -> Result<SigningKey, Error> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        match keys.first().filter(|key| !key.is_due(now)).cloned() {
            Some(key) => Ok(key),
            None => self.renew(&mut keys, false, now),
        }
    }

    /// Returns what a token says; `None` if this web did not make it, or if its time is over.
    pub(crate) fn read(&self, token: &str, now: Timestamp) -> Option<SignedClaims> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = decoded(header)?;
        if header.alg != ALGORITHM || header.typ != TYPE {
            return None;
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.iter().find(|key| key.id == header.kid)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // This takes the same time whatever the difference.
        key.mac(signed).ok()?.verify_slice(&signature).ok()?;
        let claims: Claims = decoded(claims)?;
        let now = now.as_second();
        let is_ours = claims.iss == ISSUER && claims.aud == AUDIENCE;
        let is_in_time = now < claims.exp && claims.iat <= now.saturating_add(CLOCK_S);
        let is_short = claims.exp.saturating_sub(claims.iat) <= i64::from(MAX_MINUTES) * 60;
        (is_ours && is_in_time && is_short).then_some(SignedClaims { claims, signed_by: header.kid })
    }
}

/// Returns true if a credential may be a token. Keys look otherwise.
pub(crate) fn is_token(credential: &str) -> bool {
    credential.split('.').count() == 3
}

fn encoded(value: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).unwrap_or_default())
}

fn decoded<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn grant() -> Grant {
        Grant { account: "ann".into(), scope: "chat".into(), key: Some("k1".into()), session: None }
    }

    /// Returns a token with other parts, signed by the key that signs.
    fn signed(tokens: &Tokens, header: &Value, claims: &Value) -> String {
        let key = tokens.signing_key(at(1_000)).unwrap();
        let signed = format!("{}.{}", encoded(header), encoded(claims));
        let signature = URL_SAFE_NO_PAD.encode(key.mac(&signed).unwrap().finalize().into_bytes());
        format!("{signed}.{signature}")
    }

    #[test]
    fn a_token_is_read_until_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(folder.path());
        let (token, until) = tokens.make(grant(), 15, at(1_000)).unwrap();
        assert_eq!(until, at(1_900));
        let SignedClaims { claims, .. } = tokens.read(&token, at(1_899)).unwrap();
        assert_eq!((claims.sub.as_str(), claims.scope.as_str(), claims.key.as_deref()), ("ann", "chat", Some("k1")));
        assert_eq!(tokens.read(&token, at(1_900)), None, "its time is over");
        assert_eq!(tokens.read(&token, at(900)), None, "it comes from the future");
        let (longest, until) = tokens.make(grant(), u32::MAX, at(1_000)).unwrap();
        assert_eq!(until, at(1_000 + 3_600));
        assert!(is_token(&longest) && !is_token("azk_1_2"));
    }

    #[test]
    fn only_what_this_web_signed_in_its_one_form_is_read() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (tokens, others) = (Tokens::new(folder.path()), Tokens::new(other.path()));
        let (token, _) = tokens.make(grant(), 15, at(1_000)).unwrap();
        let kid = tokens.signing_key(at(1_000)).unwrap().id;
        let header = json!({"alg": "HS256", "typ": "JWT", "kid": kid});
        let claims = json!({
            "iss": "azera", "aud": "azera-web", "sub": "ann", "scope": "chat", "key": "k1", "iat": 1_000, "exp": 1_900,
            "jti": "1",
        });
        let with = |of: &Value, name: &str, value: Value| {
            let mut changed = of.clone();
            changed[name] = value;
            changed
        };
        assert!(tokens.read(&signed(&tokens, &header, &claims), at(1_001)).is_some(), "the test signs as the web does");
        for (name, value) in [
            ("alg", json!("none")),
            ("alg", json!("hs256")),
            ("alg", json!("HS512")),
            ("alg", json!("RS256")),
            ("typ", json!("JOSE")),
            ("kid", json!("other")),
            ("crit", json!(["b64"])),
            ("jwk", json!({"kty": "oct"})),
        ] {
            let changed = signed(&tokens, &with(&header, name, value.clone()), &claims);
            assert_eq!(tokens.read(&changed, at(1_001)), None, "{name}: {value}");
        }
        for (name, value) in [
            ("iss", json!("other")),
            ("aud", json!("azera-mcp")),
            ("aud", json!(["azera-web"])),
            ("exp", json!(1_001)),
            ("exp", json!(1_000 + 3_601)),
            ("exp", json!(i64::MAX)),
            ("exp", json!("1900")),
            ("iat", json!(1_100)),
            ("iat", json!(i64::MIN)),
            ("admin", json!(true)),
        ] {
            let changed = signed(&tokens, &header, &with(&claims, name, value.clone()));
            assert_eq!(tokens.read(&changed, at(1_001)), None, "{name}: {value}");
        }
        let (foreign, _) = others.make(grant(), 15, at(1_000)).unwrap();
        assert_eq!(tokens.read(&foreign, at(1_001)), None);
        let (whole, signature) = token.rsplit_once('.').unwrap();
        let (head, body) = whole.split_once('.').unwrap();
        let none = encoded(&json!({"alg": "none", "typ": "JWT", "kid": kid}));
        let admin = encoded(&with(&claims, "scope", json!("admin")));
        for tampered in [
            format!("{head}.{admin}.{signature}"),
            format!("{none}.{body}."),
            format!("{head}.{body}."),
            format!("{head}.{body}"),
            format!("{head}.{body}.{signature}A"),
            format!("{head}.{body}.{}", signature.get(1..).unwrap()),
            format!("{whole}.{signature}="),
            format!("{whole} .{signature}"),
            "x".repeat(MAX_TOKEN_BYTES + 1),
            String::new(),
            "..".to_owned(),
        ] {
            assert_eq!(tokens.read(&tampered, at(1_001)), None, "{tampered}");
        }
    }

    #[test]
    fn requests_at_once_change_the_key_once() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(folder.path());
        tokens.make(grant(), 60, at(1_000)).unwrap();
        let month = 1_000 + KEY_DAYS * 86_400;
        let (last, _) = tokens.make(grant(), 60, at(month - 1)).unwrap();
        // Both saw that the key is due.
        let next = [(); 2].map(|()| tokens.next_key(at(month)).unwrap().id);
        assert_eq!(next[0], next[1]);
        assert!(tokens.read(&last, at(month)).is_some(), "the key before still verifies");
    }

    #[test]
    fn keys_are_kept_and_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(folder.path());
        let (token, _) = tokens.make(grant(), 60, at(1_000)).unwrap();
        let again = Tokens::new(folder.path());
        again.load();
        assert!(again.read(&token, at(1_001)).is_some(), "a restart changes nothing");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "nobody else reads the keys");
        }
        let month = 1_000 + KEY_DAYS * 86_400;
        let (old, _) = again.make(grant(), 60, at(month - 1)).unwrap();
        let (new, _) = again.make(grant(), 60, at(month + 1)).unwrap();
        assert_ne!(old.split('.').next(), new.split('.').next(), "another key signs");
        assert!(again.read(&old, at(month + 2)).is_some() && again.read(&new, at(month + 2)).is_some());
        again.rotate(true, at(month + 3)).unwrap();
        assert!(again.read(&old, at(month + 4)).is_none() && again.read(&new, at(month + 4)).is_none());
        std::fs::write(folder.path().join(FILE), "[{").unwrap();
        again.load();
        assert!(again.make(grant(), 1, at(month + 5)).is_ok(), "a damaged file is replaced");
    }
}
