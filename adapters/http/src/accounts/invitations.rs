//! Invitations: codes by which owners let others make an account.

use azera_types::{Span, Timestamp};

use super::account::{Account, Invitation};
use super::{Accounts, Caller, Role};
use crate::problem::Problem;
use crate::secrets::{digest, same, token};

/// Days for which an invitation works.
const DAYS: i64 = 7;

/// Most open invitations of one account.
const MAX_INVITATIONS: usize = 50;

impl Accounts {
    /// Makes an invitation. Returns its code, and until when it works.
    pub(crate) async fn invite(&self, caller: &Caller) -> Result<(String, Timestamp), Problem> {
        let (code, now) = (token()?, self.clock.now());
        let until = now.checked_add(Span::new().hours(DAYS * 24)).unwrap_or(Timestamp::MAX);
        let invitation = Invitation { code: digest(&code), until };
        self.change(&caller.account, |account| {
            account.invitations.retain(|one| one.until > now);
            if account.invitations.len() >= MAX_INVITATIONS {
                return Err(Problem::invalid(format!("At most {MAX_INVITATIONS} invitations may be open.")));
            }
            account.invitations.push(invitation);
            Ok(())
        })
        .await?;
        Ok((code, until))
    }

    /// Makes a guest's account with an invitation, and logs in. Returns the token of the session. The invitation works
    /// once.
    pub(crate) async fn join(&self, code: &str, name: &str, password: &str) -> Result<String, Problem> {
        let unusable = || Problem::forbidden("link_used", "This invitation was used already, or is too old.");
        let (wanted, now) = (digest(code), self.clock.now());
        let inviter = self.inviter(&wanted, now).ok_or_else(unusable)?;
        if self.is_full() {
            return Err(Problem::forbidden("full", "There are as many accounts as this Azera takes."));
        }
        let (account, token) = self.prepared(name, password, Role::Guest).await?;
        let _changing = self.changing.lock().await;
        self.check_free(&account.name)?;
        let mut inviter = self.with(&inviter, Account::clone).ok_or_else(unusable)?;
        let before = inviter.invitations.len();
        inviter.invitations.retain(|one| !same(&one.code, &wanted));
        if inviter.invitations.len() == before {
            return Err(unusable());
        }
        // The invitation goes first: after a crash in between, it makes no second account.
        self.keep(inviter).await?;
        self.keep(account).await?;
        Ok(token)
    }

    fn inviter(&self, code: &str, now: Timestamp) -> Option<String> {
        self.find(|account| {
            let open = account.invitations.iter().any(|one| same(&one.code, code) && now < one.until);
            open.then(|| account.id.clone())
        })
    }
}
