//! `/link`: links accounts of one human, by a code that is shown to one and entered by the other.

use azera_adapter::{Choice, CommandAnswer};
use azera_memory::{Account, LinkOutcome, MAX_LINKED};
use azera_types::{PersonId, PlaceKind};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;
use crate::links::{CodeOutcome, VALID_MINUTES, read};

/// Maximum number of characters shown of an account name.
const NAME_CHARS: usize = 64;

impl Commands {
    pub(super) async fn link_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let alone = matches!(&at.place.kind, PlaceKind::Dm(person) if *person == at.line.person);
        if !alone {
            if let Some(code) = read(arguments) {
                self.access.codes.spoil(&code);
            }
            return Ok(refused(
                "Accounts are linked in direct messages: write to me directly. A code that was shown in a shared place no longer works; \
                 `/link` there shows a new one."
                    .into(),
            ));
        }
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, rest.trim()) {
            ("", _) => self.show_code(at).await,
            ("list", "") => self.list_links(at).await,
            ("confirm", "") => self.confirm_link(at).await,
            ("remove", name) => self.remove_links(at, name).await,
            _ => match read(arguments) {
                Some(code) => self.take_code(at, &code).await,
                None => Ok(refused(
                    "`/link` shows a code for your other account, and `/link CODE` says it there; `/link list`, `/link remove`."
                        .into(),
                )),
            },
        }
    }

    async fn linked(&self, person: &PersonId) -> Result<Vec<Account>, Error> {
        let person = person.clone();
        self.services.blocking(move |memory| memory.links().of(&person)).await
    }

    async fn show_code(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if self.linked(&at.line.person).await?.len() + 1 >= MAX_LINKED {
            return Ok(too_many());
        }
        let Some(code) = self.access.codes.show(&account(at), self.services.clock.now()) else {
            return Ok(refused("I cannot make a code now.".into()));
        };
        Ok(done(format!(
            "Write to me directly from your other account, and say there within {VALID_MINUTES} minutes:\n\n`/link {code}`\n\n\
             The code works once. Tell it to nobody: anyone who enters it and then `/link confirm` can read what you tell me in direct \
             messages. `/link list` shows the linked accounts.",
        )))
    }

    async fn take_code(&self, at: &CommandContext<'_>, code: &str) -> Result<CommandAnswer, Error> {
        let person = &at.line.person;
        let other = match self.access.codes.say(person, code, self.services.clock.now()) {
            CodeOutcome::Of(other) => other,
            CodeOutcome::Own => return Ok(refused("That code is for your other account: say it there.".into())),
            CodeOutcome::Wrong(left) => {
                return Ok(refused(format!(
                    "That code is wrong or has expired. `/link` from your other account shows a new one. You have \
                     {left} more tries within {VALID_MINUTES} minutes.",
                )));
            }
            CodeOutcome::TooOften => {
                return Ok(refused(format!("Too many codes were wrong; try again in {VALID_MINUTES} minutes.")));
            }
        };
        let mine = self.linked(person).await?;
        if mine.iter().any(|known| known.person == other.person) {
            return Ok(already());
        }
        let theirs = self.linked(&other.person).await?;
        let more: Vec<String> = theirs.iter().chain(&mine).map(describe).collect();
        let more = match more.as_slice() {
            [] => String::new(),
            more => {
                format!(" The same holds for every account that either is linked with by now: {}.", more.join(", "))
            }
        };
        let choices = vec![Choice { label: "Link them".into(), line: "/link confirm".into() }];
        let text = format!(
            "{} asks to be linked with this account.\n\nIf both are yours: I then show in direct messages with either what you \
             told me in direct messages with the other, and what the other can read elsewhere. Nothing changes where others \
             read along.{more} `/link confirm` within {VALID_MINUTES} minutes links them, and `/link remove` takes them apart.\n\n\
             If that account is somebody else's, do nothing: they would read what you tell me here.",
            describe(&other),
        );
        Ok(CommandAnswer { choices, ..done(text) })
    }

    async fn confirm_link(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let Some(other) = self.access.codes.confirm(&at.line.person, self.services.clock.now()) else {
            return Ok(refused(
                "There is no link to confirm. `/link` on one account shows a code; enter it on the other with `/link CODE`.".into(),
            ));
        };
        let (mine, theirs) = (account(at), other.clone());
        Ok(match self.services.blocking(move |memory| memory.links().link(&mine, &theirs)).await? {
            LinkOutcome::Now => done(format!(
                "Linked with {}. `/link list` lists your accounts, `/link remove` takes this one out again.",
                describe(&other)
            )),
            LinkOutcome::Already => already(),
            LinkOutcome::TooMany => too_many(),
        })
    }

    async fn list_links(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let linked = self.linked(&at.line.person).await?;
        if linked.is_empty() {
            return Ok(done(format!("{}; `/link` shows a code to link another.", alone())));
        }
        let mut text = String::from("This account is linked with:\n");
        for other in &linked {
            text.push_str(&format!("- {}\n", describe(other)));
        }
        text.push_str(
            "`/link remove NAME` unlinks one of them, `/link remove` this one, and `/link remove all` all of them.",
        );
        Ok(done(text))
    }

    async fn remove_links(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        // If somebody else knows an open code, it is useless to them from now on.
        self.access.codes.forget(&at.line.person);
        let linked = self.linked(&at.line.person).await?;
        if linked.is_empty() {
            return Ok(refused(format!("{}.", alone())));
        }
        // Anybody can choose any name, but not any id.
        let by_id: Vec<&Account> = linked.iter().filter(|other| other.person.as_str() == name).collect();
        let by_name = linked.iter().filter(|other| other.name.to_lowercase() == name.to_lowercase());
        let called = if by_id.is_empty() { by_name.collect() } else { by_id };
        let (out, text) = match name {
            "" => (vec![at.line.person.clone()], format!("{} any more.", alone())),
            "all" => {
                let all = linked.iter().map(|other| other.person.clone());
                (all.chain([at.line.person.clone()]).collect(), "None of your accounts are linked any more.".to_owned())
            }
            _ => match called.as_slice() {
                [other] => (
                    vec![other.person.clone()],
                    format!("{} is linked with none of your accounts any more.", describe(other)),
                ),
                [] => return Ok(refused("There is no such account; `/link list` lists them.".into())),
                more => {
                    let more: Vec<String> =
                        more.iter().map(|other| format!("`/link remove {}`", other.person)).collect();
                    return Ok(refused(format!("Several are called so: {}.", more.join(" or "))));
                }
            },
        };
        self.services
            .blocking(move |memory| out.iter().try_for_each(|person| memory.links().unlink(person).map(drop)))
            .await?;
        // The old bytes are overwritten like those of forgotten messages.
        self.indexer.wake();
        Ok(done(format!("{text} What I answered out of what you told me from there, I show no more, either.")))
    }
}

/// Returns the account that a command is given from.
fn account(at: &CommandContext<'_>) -> Account {
    // The name appears in the other account's direct messages, so it must not contain markup.
    let plain = |c: char| if c.is_control() || "*_`~[]()<>|#\\".contains(c) { ' ' } else { c };
    let name: String = at.line.name.chars().map(plain).take(NAME_CHARS).collect();
    Account { platform: at.platform.clone(), person: at.line.person.clone(), name: name.trim().to_owned() }
}

/// Describes an account. Anybody can choose any name, so the id follows it.
fn describe(account: &Account) -> String {
    format!("**{}** on {} (`{}`)", account.name, account.platform, account.person)
}

fn alone() -> &'static str {
    "This account is linked with no other"
}

fn already() -> CommandAnswer {
    refused("These accounts are linked already.".into())
}

fn too_many() -> CommandAnswer {
    refused(format!("{MAX_LINKED} accounts can be linked at most; `/link remove NAME` takes one out."))
}
