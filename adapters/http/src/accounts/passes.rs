//! What a token for scripts stands for: a part of what the key or the session may do that made it, and no longer than that.

use azera_types::Timestamp;

use super::account::Account;
use super::{Accounts, Caller, Scope};
use crate::problem::Problem;
use crate::secrets::{digest, same};
use crate::tokens::{Grant, SignedClaims};

/// The token of a request.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    /// The mark of the session that made it; `None` if a key did.
    session: Option<String>,
    /// The id of the key that signed it.
    pub(crate) signed_by: String,
    /// When its time is over.
    until: Timestamp,
}

impl Account {
    /// Returns what names a session in a token. Nobody learns its secrets from it, and it is another one with another password.
    fn mark(&self, csrf: &str) -> String {
        digest(&format!("{csrf}.{}", self.password.hash()))
    }

    fn has_marked(&self, wanted: &str, now: Timestamp) -> bool {
        self.sessions.iter().any(|session| same(&self.mark(&session.csrf), wanted) && !session.is_over(now))
    }

    /// Returns true if the time of a token goes on, and the key or the session that made it is still there.
    pub(super) fn has_pass(&self, pass: &Pass, key: Option<&str>, now: Timestamp) -> bool {
        let stands = match (&pass.session, key) {
            (Some(session), _) => self.has_marked(session, now),
            (None, Some(key)) => self.has_key(key),
            (None, None) => false,
        };
        stands && now < pass.until
    }
}

impl Accounts {
    /// Returns what a token of the caller may hold: the wanted scopes, or all that the caller has.
    pub(crate) fn token_claims(&self, caller: &Caller, wanted: Option<Vec<Scope>>) -> Result<Grant, Problem> {
        let wanted = wanted.unwrap_or_else(|| caller.scopes.clone());
        if wanted.is_empty() {
            return Err(Problem::invalid("A token needs at least one scope."));
        }
        if let Some(scope) = wanted.iter().find(|scope| !caller.scopes.contains(scope)) {
            let detail = format!("Your session or key does not have the scope {}.", scope.as_str());
            return Err(Problem::forbidden("scope", detail));
        }
        let scopes = Scope::ALL.into_iter().filter(|scope| wanted.contains(scope));
        let open = caller.session.as_ref();
        let session = open.and_then(|open| self.with(&caller.account, |account| account.mark(&open.csrf)));
        Ok(Grant {
            account: caller.account.clone(),
            scope: scopes.map(Scope::as_str).collect::<Vec<_>>().join(" "),
            key: caller.key.clone(),
            session,
        })
    }

    /// Returns whom a token stands for. A key that has fewer scopes by now allows no more.
    pub(crate) fn by_claims(&self, SignedClaims { claims, signed_by }: SignedClaims) -> Option<Caller> {
        let until = Timestamp::from_second(claims.exp).ok()?;
        let (now, pass) = (self.clock.now(), Pass { session: claims.session.clone(), signed_by, until });
        let named: Vec<Scope> =
            Scope::ALL.into_iter().filter(|scope| claims.scope.split(' ').any(|name| name == scope.as_str())).collect();
        self.with(&claims.sub, |account| {
            if !account.has_pass(&pass, claims.key.as_deref(), now) {
                return None;
            }
            let may = match &claims.key {
                Some(id) => account.keys.iter().find(|key| key.id == *id)?.scopes.clone(),
                None => account.role.scopes(),
            };
            let scopes = named.iter().copied().filter(|scope| may.contains(scope)).collect();
            let caller = account.caller(claims.key.clone(), None, scopes);
            Some(Caller { pass: Some(pass.clone()), ..caller })
        })
        .flatten()
    }
}
