//! Logging in and out, and the owner's first login.

use azera_types::{Span, Timestamp};

use super::account::{Account, Session};
use super::{Accounts, Caller, MAX_NAME_CHARS, Preferences, Role};
use crate::problem::Problem;
use crate::secrets::{PasswordHash, digest, same, token};

/// Days after which a session ends, however it was used.
pub(crate) const SESSION_DAYS: i64 = 30;

/// Days without a request after which a session ends.
const IDLE_DAYS: i64 = 7;

/// Hours after which a session gets a new token.
const RENEW_HOURS: i64 = 1;

/// Seconds for which the token before still works.
const GRACE_S: i64 = 60;

/// Seconds within which the time of the last use is not stored again.
const USED_S: i64 = 60;

/// Most sessions of one account; the one that was used least lately ends first.
const MAX_SESSIONS: usize = 20;

/// Shortest and longest password, in characters.
const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 10..=256;

/// The session of a request.
#[derive(Debug, Clone)]
pub(crate) struct OpenSession {
    /// Digest of the token in the request's cookie.
    digest: String,
    /// What the request must repeat in a header if it changes something.
    pub(crate) csrf: String,
    /// Whether the cookie should get a new token.
    pub(crate) is_due: bool,
}

fn later(from: Timestamp, span: Span) -> Timestamp {
    from.checked_add(span).unwrap_or(Timestamp::MAX)
}

fn hours(count: i64) -> Span {
    Span::new().hours(count)
}

impl Session {
    fn new(now: Timestamp) -> Result<(Self, String), Problem> {
        let token = token()?;
        let session = Self {
            token: digest(&token),
            before: None,
            csrf: crate::secrets::token()?,
            created_at: now,
            used_at: now,
            renewed_at: now,
        };
        Ok((session, token))
    }

    /// Gives the session another token, and returns it. Earlier ones no longer work.
    fn replace_token(&mut self, now: Timestamp) -> Result<String, Problem> {
        let token = token()?;
        (self.token, self.before) = (digest(&token), None);
        (self.renewed_at, self.used_at) = (now, now);
        Ok(token)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now >= later(self.created_at, hours(SESSION_DAYS * 24)) || now >= later(self.used_at, hours(IDLE_DAYS * 24))
    }

    fn has(&self, token: &str, now: Timestamp) -> bool {
        let before = self.before.as_ref().is_some_and(|(before, until)| same(before, token) && now < *until);
        (same(&self.token, token) || before) && !self.is_over(now)
    }
}

impl Account {
    /// Returns true if the session of a request goes on.
    pub(super) fn has_session(&self, open: &OpenSession, now: Timestamp) -> bool {
        self.sessions.iter().any(|session| session.has(&open.digest, now))
    }

    fn log_in(&mut self, now: Timestamp) -> Result<String, Problem> {
        self.sessions.retain(|session| !session.is_over(now));
        if self.sessions.len() >= MAX_SESSIONS {
            let oldest = self.sessions.iter().enumerate().min_by_key(|(_, session)| session.used_at);
            if let Some((oldest, _)) = oldest {
                self.sessions.remove(oldest);
            }
        }
        let (session, token) = Session::new(now)?;
        self.sessions.push(session);
        Ok(token)
    }
}

impl Accounts {
    /// Makes the owner's account with the token of the first start, and logs in. Returns the token of the session.
    pub(crate) async fn set_up(&self, code: &str, name: &str, password: &str) -> Result<String, Problem> {
        if !self.is_setup(code) {
            return Err(Problem::forbidden(
                "link_used",
                "This link does not work any more. `azera web` prints the one that does.",
            ));
        }
        let (account, token) = self.prepared(name, password, Role::Owner).await?;
        let _changing = self.changing.lock().await;
        // Two requests with the same link make one account.
        if !self.is_setup(code) {
            return Err(Problem::forbidden("link_used", "This link was used already."));
        }
        self.keep(account).await?;
        *self.setup.write().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
        Ok(token)
    }

    fn is_setup(&self, code: &str) -> bool {
        let setup = self.setup.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        setup.as_ref().is_some_and(|wanted| same(wanted, &digest(code)))
    }

    /// Returns a new account that is logged in, and the token of its session. It is not stored yet.
    pub(super) async fn prepared(&self, name: &str, password: &str, role: Role) -> Result<(Account, String), Problem> {
        let name = checked_name(name)?;
        check_password(password)?;
        self.check_free(&name)?;
        let password = password.to_owned();
        let password = self.hash(move || PasswordHash::of(&password)).await??;
        let mut account = Account {
            id: crate::secrets::id()?.simple().to_string(),
            name,
            role,
            password,
            created_at: self.clock.now(),
            sessions: Vec::new(),
            keys: Vec::new(),
            grants: Vec::new(),
            invitations: Vec::new(),
            preferences: Preferences::default(),
        };
        let token = account.log_in(self.clock.now())?;
        Ok((account, token))
    }

    /// Fails if an account has this name.
    pub(super) fn check_free(&self, name: &str) -> Result<(), Problem> {
        match self.find(|account| account.is_named(name).then_some(())) {
            Some(()) => Err(Problem::new(axum::http::StatusCode::CONFLICT, "name_taken", "That name is taken.")),
            None => Ok(()),
        }
    }

    /// Logs in. Returns the token of a new session; an older token never becomes valid by a login.
    pub(crate) async fn log_in(&self, name: &str, password: &str) -> Result<String, Problem> {
        let known = self.find(|account| account.is_named(name).then(|| (account.id.clone(), account.password.clone())));
        let password = password.to_owned();
        let known = self
            .hash(move || match known {
                Some((id, hash)) => hash.matches(&password).then_some((id, hash)),
                // Unknown names take as long as wrong passwords.
                None => PasswordHash::of(&password).ok().and(None),
            })
            .await?;
        let wrong = || {
            let detail = "The name or the password is wrong.";
            Problem::new(axum::http::StatusCode::UNAUTHORIZED, "wrong_password", detail)
        };
        let (id, hash) = known.ok_or_else(wrong)?;
        let now = self.clock.now();
        // The password may have been changed since it was read.
        self.change(&id, |account| if account.password == hash { account.log_in(now) } else { Err(wrong()) }).await
    }

    /// Returns whom the token of a session stands for.
    pub(crate) fn by_session(&self, token: &str) -> Option<Caller> {
        let (wanted, now) = (digest(token), self.clock.now());
        self.find(|account| {
            let session = account.sessions.iter().find(|session| session.has(&wanted, now))?;
            let is_due = same(&session.token, &wanted) && now >= later(session.renewed_at, hours(RENEW_HOURS));
            let open = OpenSession { digest: wanted.clone(), csrf: session.csrf.clone(), is_due };
            Some(account.caller(None, Some(open), account.role.scopes()))
        })
    }

    /// Gives a session a new token, and returns it. The one before works for a minute more.
    pub(crate) async fn renew(&self, account: &str, open: &OpenSession) -> Result<Option<String>, Problem> {
        let (new, now) = (token()?, self.clock.now());
        self.change(account, |account| {
            let found = account.sessions.iter_mut().find(|session| same(&session.token, &open.digest));
            Ok(found.map(|session| {
                session.before = Some((session.token.clone(), later(now, Span::new().seconds(GRACE_S))));
                session.token = digest(&new);
                (session.renewed_at, session.used_at) = (now, now);
                new
            }))
        })
        .await
    }

    /// Stores that a session was used, at most once a minute.
    pub(crate) async fn note_session(&self, account: &str, open: &OpenSession) -> Result<(), Problem> {
        let now = self.clock.now();
        let is_old = |session: &Session| now >= later(session.used_at, Span::new().seconds(USED_S));
        let stale = |account: &Account| account.sessions.iter().any(|one| one.has(&open.digest, now) && is_old(one));
        if !self.with(account, stale).unwrap_or(false) {
            return Ok(());
        }
        self.change(account, |account| {
            for session in account.sessions.iter_mut().filter(|session| session.has(&open.digest, now)) {
                session.used_at = now;
            }
            Ok(())
        })
        .await
    }

    /// Ends a session.
    pub(crate) async fn log_out(&self, account: &str, open: &OpenSession) -> Result<(), Problem> {
        let now = self.clock.now();
        self.change(account, |account| {
            account.sessions.retain(|session| !session.has(&open.digest, now));
            Ok(())
        })
        .await
    }

    /// Ends every session of the account and, with `keys`, revokes every key and invitation.
    pub(crate) async fn log_out_everywhere(&self, account: &str, keys: bool) -> Result<(), Problem> {
        self.change(account, |account| {
            account.sessions.clear();
            if keys {
                account.keys.clear();
                account.grants.clear();
                account.invitations.clear();
            }
            Ok(())
        })
        .await
    }

    /// Fails if this is not the password of the account.
    pub(crate) async fn confirm(&self, caller: &Caller, password: &str) -> Result<(), Problem> {
        let Some(known) = self.with(&caller.account, |account| account.password.clone()) else {
            return Err(Problem::unauthorized());
        };
        let password = password.to_owned();
        match self.hash(move || known.matches(&password)).await? {
            true => Ok(()),
            false => Err(Problem::forbidden("wrong_password", "The password is wrong.")),
        }
    }

    /// Changes a password, and ends every session but the one that asks. That one gets another token, which is returned:
    /// somebody else may have the old one.
    pub(crate) async fn change_password(
        &self,
        caller: &Caller,
        old: &str,
        new: &str,
    ) -> Result<Option<String>, Problem> {
        check_password(new)?;
        let Some(known) = self.with(&caller.account, |account| account.password.clone()) else {
            return Err(Problem::unauthorized());
        };
        let (old, new) = (old.to_owned(), new.to_owned());
        let hash = self.hash(move || known.matches(&old).then(|| PasswordHash::of(&new))).await?;
        let Some(hash) = hash else {
            return Err(Problem::forbidden("wrong_password", "The present password is wrong."));
        };
        let (hash, now) = (hash?, self.clock.now());
        let open = caller.session.as_ref().map(|open| open.digest.clone()).unwrap_or_default();
        self.change(&caller.account, |account| {
            account.password = hash;
            account.sessions.retain(|session| session.has(&open, now));
            account.sessions.iter_mut().map(|session| session.replace_token(now)).next_back().transpose()
        })
        .await
    }
}

/// Returns a name without surrounding spaces.
pub(crate) fn checked_name(name: &str) -> Result<String, Problem> {
    let name = azera_types::composed(name.trim()).into_owned();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(Problem::invalid(format!("A name has 1 to {MAX_NAME_CHARS} characters.")));
    }
    if let Some(hidden) = name.chars().find(|c| is_hidden(*c)) {
        let code = u32::from(hidden);
        let detail = format!("The name holds U+{code:04X}, which nobody sees, so that two names could look alike.");
        return Err(Problem::invalid(detail));
    }
    Ok(name)
}

/// Returns true for characters that nobody sees, or that change the order of others: controls, format characters, fillers,
/// variation selectors, private ones, and blanks other than the plain space.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{E000}'..='\u{F8FF}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}' | '\u{F0000}'..='\u{10FFFF}')
}

fn check_password(password: &str) -> Result<(), Problem> {
    if PASSWORD_CHARS.contains(&password.chars().count()) {
        return Ok(());
    }
    let (least, most) = (PASSWORD_CHARS.start(), PASSWORD_CHARS.end());
    Err(Problem::invalid(format!("A password has {least} to {most} characters.")))
}
