//! What a person allowed a program, and the tokens that stand for it. Tokens are random; only their digests are stored, with the
//! account.

use azera_types::{Span, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Code, OAuthError};
use crate::accounts::{Account, Accounts, Caller, Scope};
use crate::problem::Problem;
use crate::secrets::{digest, id, same, token};

/// The beginning of access tokens.
pub(crate) const ACCESS_PREFIX: &str = "azo_";

/// The beginning of refresh tokens.
const REFRESH_PREFIX: &str = "azr_";

/// Seconds for which an access token works.
pub(crate) const ACCESS_S: i64 = 3_600;

/// Days without a refresh after which a grant ends.
const IDLE_DAYS: i64 = 30;

/// Most grants of one account. The one that was used least lately ends first.
const MAX_GRANTS: usize = 50;

/// Access tokens of one grant that work at once. Requests that are under way still carry an older one.
const MAX_ACCESS: usize = 3;

/// Seconds within which the time of the last use is not stored again.
const USED_S: i64 = 60;

/// An access token, as it is stored.
#[derive(Clone, Serialize, Deserialize)]
struct Access {
    token: String,
    scopes: Vec<Scope>,
    until: Timestamp,
}

/// What a person allowed a program, as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Grant {
    id: String,
    /// Digest of the client's id.
    client: String,
    name: String,
    scopes: Vec<Scope>,
    resource: String,
    created_at: Timestamp,
    used_at: Option<Timestamp>,
    access: Vec<Access>,
    /// Digest of what is random in every refresh token of this grant. It tells a used one from a guess, however old it is.
    #[serde(default)]
    family: String,
    /// Digest of the secret of the refresh token that works, and until when.
    refresh: String,
    until: Timestamp,
}

/// A grant without its tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GrantInfo {
    /// Its id.
    pub(crate) id: String,
    /// The name that the program gave itself.
    pub(crate) name: String,
    /// What it may do.
    pub(crate) scopes: Vec<Scope>,
    /// When the person allowed it (RFC 3339).
    pub(crate) created_at: String,
    /// When it was last used, to the minute.
    pub(crate) used_at: Option<String>,
}

/// Tokens that were just made.
pub(crate) struct Issued {
    pub(crate) access: String,
    pub(crate) refresh: String,
    pub(crate) scopes: Vec<Scope>,
}

/// What a program wants for a refresh token.
pub(crate) struct TokenWish<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) resource: Option<&'a str>,
    /// Fewer scopes than before; `None` for the same ones.
    pub(crate) scopes: Option<Vec<Scope>>,
}

fn later(from: Timestamp, span: Span) -> Timestamp {
    from.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// Splits a token into the account, the grant and the secret.
fn parts<'a>(text: &'a str, prefix: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (account, rest) = text.strip_prefix(prefix)?.split_once('_')?;
    let (grant, secret) = rest.split_once('_')?;
    Some((account, grant, secret))
}

/// A refresh token in its parts, as it was sent.
struct Sent<'a> {
    account: &'a str,
    grant: &'a str,
    family: &'a str,
    /// Digest of the secret.
    secret: String,
}

impl<'a> Sent<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (account, grant, rest) = parts(text, REFRESH_PREFIX)?;
        let (family, secret) = rest.split_once('_')?;
        Some(Self { account, grant, family, secret: digest(secret) })
    }
}

impl Grant {
    /// Makes tokens, and returns them. The refresh token before works no more.
    fn issue(&mut self, account: &str, family: &str, scopes: Vec<Scope>, now: Timestamp) -> Result<Issued, Problem> {
        let (access, refresh) = (token()?, token()?);
        self.access.retain(|access| now < access.until);
        self.access.truncate(MAX_ACCESS - 1);
        let until = later(now, Span::new().seconds(ACCESS_S));
        self.access.insert(0, Access { token: digest(&access), scopes: scopes.clone(), until });
        self.refresh = digest(&refresh);
        self.until = later(now, Span::new().hours(IDLE_DAYS * 24));
        self.used_at = Some(now);
        let id = &self.id;
        Ok(Issued {
            access: format!("{ACCESS_PREFIX}{account}_{id}_{access}"),
            refresh: format!("{REFRESH_PREFIX}{account}_{id}_{family}_{refresh}"),
            scopes,
        })
    }

    /// Makes tokens for a refresh token.
    fn renew(
        &mut self,
        sent: &Sent<'_>,
        client: &str,
        wish: TokenWish<'_>,
        now: Timestamp,
    ) -> Result<Issued, OAuthError> {
        if !same(&self.client, client) || self.is_over(now) {
            return Err(OAuthError::grant());
        }
        if wish.resource.is_some_and(|resource| resource != self.resource) {
            return Err(OAuthError::new("invalid_target", format!("This token is for {} alone.", self.resource)));
        }
        let scopes = wish.scopes.unwrap_or_else(|| self.scopes.clone());
        if scopes.iter().any(|scope| !self.scopes.contains(scope)) {
            return Err(OAuthError::new("invalid_scope", "The person did not allow that. Ask them again."));
        }
        Ok(self.issue(sent.account, sent.family, scopes, now)?)
    }

    fn info(&self) -> GrantInfo {
        GrantInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            created_at: self.created_at.to_string(),
            used_at: self.used_at.map(|at| at.to_string()),
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.until
    }

    /// Returns true if this is the grant's id.
    pub(crate) fn is(&self, id: &str) -> bool {
        self.id == id
    }
}

/// What a refresh token of a grant turned out to be.
enum Refreshed {
    Issued(Issued),
    /// It was used before, so somebody else has it: the grant is gone.
    Reused,
}

impl Accounts {
    /// Turns a code into a grant with tokens.
    pub(crate) async fn grant(&self, code: Code) -> Result<Issued, Problem> {
        let (now, family) = (self.now(), id()?.simple().to_string());
        let mut grant = Grant {
            id: code.grant,
            client: digest(&code.client_id),
            name: code.name,
            scopes: code.scopes.clone(),
            resource: code.resource,
            created_at: now,
            used_at: None,
            access: Vec::new(),
            family: digest(&family),
            refresh: String::new(),
            until: now,
        };
        let issued = grant.issue(&code.account, &family, code.scopes, now)?;
        self.change(&code.account, |account| {
            account.grants.retain(|grant| !grant.is_over(now));
            while account.grants.len() >= MAX_GRANTS {
                let idle = account.grants.iter().enumerate().min_by_key(|(_, grant)| grant.used_at);
                let Some((idle, _)) = idle else { break };
                account.grants.remove(idle);
            }
            account.grants.push(grant);
            Ok(())
        })
        .await?;
        Ok(issued)
    }

    /// Makes new tokens for a refresh token, which works no more then. A refusal stores nothing.
    pub(crate) async fn refresh(&self, text: &str, wish: TokenWish<'_>) -> Result<Issued, OAuthError> {
        let sent = Sent::of(text).ok_or_else(OAuthError::grant)?;
        let (family, client, now) = (digest(sent.family), digest(wish.client_id), self.now());
        if self.with(sent.account, |_| ()).is_none() {
            return Err(OAuthError::grant());
        }
        let outcome = self.change_or(sent.account, |stored| {
            let is_of = |grant: &Grant| grant.is(sent.grant) && same(&grant.family, &family);
            let place = stored.grants.iter().position(is_of).ok_or_else(OAuthError::grant)?;
            let grant = &mut stored.grants[place];
            if same(&grant.refresh, &sent.secret) {
                return grant.renew(&sent, &client, wish, now).map(Refreshed::Issued);
            }
            // Only an earlier token of this grant holds the family.
            stored.grants.remove(place);
            Ok(Refreshed::Reused)
        });
        match outcome.await? {
            Refreshed::Issued(issued) => Ok(issued),
            Refreshed::Reused => {
                tracing::warn!("a refresh token was used twice, so the access of its program was revoked");
                Err(OAuthError::grant())
            }
        }
    }

    /// Returns whom an access token stands for, if it is for this resource.
    pub(crate) fn by_access_token(&self, text: &str, resource: &str) -> Option<Caller> {
        let (account, id, secret) = parts(text, ACCESS_PREFIX)?;
        let (sent, now) = (digest(secret), self.now());
        self.with(account, |account| {
            let grant = account.grants.iter().find(|grant| grant.is(id) && grant.resource == resource)?;
            let access = grant.access.iter().find(|access| same(&access.token, &sent) && now < access.until)?;
            let caller = account.caller(None, None, access.scopes.clone());
            Some(Caller { grant: Some(grant.id.clone()), ..caller })
        })
        .flatten()
    }

    /// Returns the grants of an account, newest first.
    pub(crate) fn grants(&self, caller: &Caller) -> Vec<GrantInfo> {
        let now = self.now();
        let infos = |account: &Account| -> Vec<GrantInfo> {
            account.grants.iter().rev().filter(|grant| !grant.is_over(now)).map(Grant::info).collect()
        };
        self.with(&caller.account, infos).unwrap_or_default()
    }

    /// Ends a grant of an account. Its tokens work no more.
    pub(crate) async fn revoke_grant(&self, account: &str, id: &str) -> Result<(), Problem> {
        self.change(account, |account| {
            let before = account.grants.len();
            account.grants.retain(|grant| !grant.is(id));
            if account.grants.len() == before { Err(Problem::not_found("program with access")) } else { Ok(()) }
        })
        .await
    }

    /// Ends the grant of a token that a program gives back (RFC 7009). An unknown token is none of its own, and no error.
    pub(crate) async fn give_back(&self, text: &str, client_id: &str) -> Result<(), Problem> {
        // A program that lost the answer to its last refresh has an older token of the family. It means the same grant.
        let of_refresh = || Sent::of(text).map(|sent| (sent.account, sent.grant, sent.family));
        let Some((account, id, secret)) = parts(text, ACCESS_PREFIX).or_else(of_refresh) else {
            return Ok(());
        };
        let (sent, client) = (digest(secret), digest(client_id));
        let is_theirs = |account: &Account| {
            account.grants.iter().any(|grant| {
                let known = match text.starts_with(REFRESH_PREFIX) {
                    true => same(&grant.family, &sent),
                    false => grant.access.iter().any(|access| same(&access.token, &sent)),
                };
                grant.is(id) && same(&grant.client, &client) && known
            })
        };
        if self.with(account, is_theirs).unwrap_or(false) {
            self.revoke_grant(account, id).await?;
        }
        Ok(())
    }

    /// Stores that a grant was used, at most once a minute.
    pub(crate) async fn note_grant(&self, account: &str, id: &str) -> Result<(), Problem> {
        let now = self.now();
        let is_old = |at: Timestamp| now >= later(at, Span::new().seconds(USED_S));
        let stale = |grant: &Grant| grant.is(id) && grant.used_at.is_none_or(is_old);
        if !self.with(account, |account| account.grants.iter().any(stale)).unwrap_or(false) {
            return Ok(());
        }
        self.change(account, |account| {
            for grant in account.grants.iter_mut().filter(|grant| grant.is(id)) {
                grant.used_at = Some(now);
            }
            Ok(())
        })
        .await
    }
}
