//! Finds the author that `--me` names, before anything is imported.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::ops::ControlFlow;

use anyhow::bail;
use azera_import::{Found, Role, Source, read};
use tokio_util::sync::CancellationToken;

/// Returns the id of the person whose id or account name is `me`; `None` if the file has no such person. Shown names do
/// not count, because everybody may choose any.
///
/// # Errors
///
/// Fails if `me` names two people.
pub fn author_named(
    source: &Source,
    input: impl BufRead,
    me: &str,
    stop: &CancellationToken,
) -> anyhow::Result<Option<String>> {
    let mut found = BTreeSet::new();
    let ended = read(source, input, &mut |one| {
        if let Found::Message(message) = one
            && message.role == Role::Person
            && (message.author.id == me || message.author.account.as_deref() == Some(me))
        {
            found.insert(message.author.id);
        }
        if found.len() > 1 || stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Err(error) = ended {
        // The import stops at the same place, and reports it.
        tracing::debug!(%error, "the file ends early");
    }
    let mut ids = found.into_iter();
    match (ids.next(), ids.next()) {
        (Some(one), Some(other)) => {
            bail!("--me {me} names two people of this file, with the ids {one} and {other}; nothing was imported")
        }
        (id, _) => Ok(id),
    }
}
