//! Codes: what a program gets first, through the person's browser. They live in memory, for a minute.

use azera_types::{Span, Timestamp};
use tokio::sync::{Mutex, MutexGuard};

use crate::accounts::Scope;
use crate::secrets::{digest, same};

/// Seconds for which a code works.
const CODE_S: i64 = 60;

/// Seconds for which a used code is remembered, so that a second use is noticed.
const KEPT_S: i64 = 600;

/// Most codes of one account.
const MAX_OF_ACCOUNT: usize = 20;

/// A code, and what it is for.
#[derive(Clone)]
pub(crate) struct Code {
    /// The account that allowed it.
    pub(crate) account: String,
    /// The id of the grant that the code becomes.
    pub(crate) grant: String,
    /// The client's id.
    pub(crate) client_id: String,
    /// The client's name.
    pub(crate) name: String,
    /// The address of its request.
    pub(crate) redirect_uri: String,
    /// The challenge of PKCE.
    pub(crate) challenge: String,
    /// What the person allowed.
    pub(crate) scopes: Vec<Scope>,
    /// What the tokens are for.
    pub(crate) resource: String,
    /// When it was made.
    pub(crate) made_at: Timestamp,
    /// Whether somebody used it, rightly or not.
    pub(crate) used: bool,
}

impl Code {
    fn is_older_than(&self, seconds: i64, now: Timestamp) -> bool {
        self.made_at.checked_add(Span::new().seconds(seconds)).is_ok_and(|end| now >= end)
    }

    /// Returns true if the code works no more because of its age.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.is_older_than(CODE_S, now)
    }
}

/// Every code with its digest, oldest first.
#[derive(Default)]
pub(crate) struct Codes(Mutex<Vec<(String, Code)>>);

/// The codes while one of them is made or used, or while what made them ends. Everything else about codes waits meanwhile, such
/// as a second use of the same one.
pub(crate) struct HeldCodes<'a>(MutexGuard<'a, Vec<(String, Code)>>);

impl Codes {
    /// Returns the codes once nobody else has them.
    pub(crate) async fn hold(&self) -> HeldCodes<'_> {
        HeldCodes(self.0.lock().await)
    }
}

impl HeldCodes<'_> {
    /// Keeps a code. An account with too many loses its oldest one.
    pub(crate) fn keep(&mut self, code: &str, of: Code) {
        let codes = &mut self.0;
        codes.retain(|(_, code)| !code.is_older_than(KEPT_S, of.made_at));
        let count = codes.iter().filter(|(_, held)| held.account == of.account).count();
        let oldest = codes.iter().position(|(_, held)| held.account == of.account);
        if let Some(oldest) = oldest.filter(|_| count >= MAX_OF_ACCOUNT) {
            codes.remove(oldest);
        }
        codes.push((digest(code), of));
    }

    /// Removes every code of an account.
    pub(crate) fn forget(&mut self, account: &str) {
        self.0.retain(|(_, code)| code.account != account);
    }

    /// Returns a code as it was before this use. From now on it counts as used.
    pub(crate) fn take(&mut self, code: &str) -> Option<Code> {
        let sent = digest(code);
        let (_, code) = self.0.iter_mut().find(|(known, _)| same(known, &sent))?;
        let before = code.clone();
        code.used = true;
        Some(before)
    }
}
