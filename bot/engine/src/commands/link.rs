//! `/link`: links accounts of one human, by a code that is shown to one and entered by the other. `azera link` does the same
//! for a person at the machine, who has no chat with the running bot.

use azera_adapter::{Choice, CommandAnswer};
use azera_memory::{Account, LinkOutcome, MAX_LINKED};
use azera_types::{PersonId, PlaceKind, PlatformId};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;
use crate::links::{CodeOutcome, VALID_MINUTES, read};

/// Maximum number of characters shown of an account name.
const NAME_CHARS: usize = 64;

/// One step of linking accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkStep {
    /// Show a code for another account.
    Show,
    /// Enter the code that another account was shown. It is a question, and [`Self::Confirm`] answers it.
    Code(String),
    /// Link with the account whose code was entered.
    Confirm,
    /// List the linked accounts.
    List,
    /// Unlink the account with this id or name, this account if the name is empty, or `all`.
    Remove(String),
}

/// How a person gives these commands, for texts that name them.
struct Way {
    show: &'static str,
    enter: &'static str,
    confirm: &'static str,
    list: &'static str,
    remove: &'static str,
}

const IN_CHATS: Way = Way {
    show: "`/link`",
    enter: "`/link CODE`",
    confirm: "`/link confirm`",
    list: "`/link list`",
    remove: "`/link remove`",
};

const AT_THE_MACHINE: Way = Way {
    show: "`azera link`",
    enter: "`azera link CODE`",
    confirm: "`y`",
    list: "`azera link --list`",
    remove: "`azera link --remove`",
};

/// The account that links, and how its person does so.
struct Linking {
    account: Account,
    /// Whose wrong codes count together.
    counted: PersonId,
    way: &'static Way,
}

impl Commands {
    pub(super) async fn link_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        if !is_alone(at) {
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
        let step = match (verb, rest.trim()) {
            ("", _) => LinkStep::Show,
            ("list", "") => LinkStep::List,
            ("confirm", "") => LinkStep::Confirm,
            ("remove", name) => LinkStep::Remove(name.to_owned()),
            _ => LinkStep::Code(arguments.to_owned()),
        };
        let (account, counted) = (account_of(at.platform, &at.line.person, &at.line.name), at.line.person.clone());
        self.link(&Linking { account, counted, way: &IN_CHATS }, step).await
    }

    /// Links a person who works at the machine itself, and so with everything that is theirs alone.
    pub(crate) async fn link_at_the_machine(
        &self,
        platform: &PlatformId,
        person: &PersonId,
        name: &str,
        step: LinkStep,
    ) -> Result<CommandAnswer, Error> {
        // Whoever is there can take any name, so wrong codes count for all names together.
        let counted =
            PersonId::new(platform.as_str()).map_err(|error| azera_memory::Error::Invalid(error.to_string()))?;
        self.link(&Linking { account: account_of(platform, person, name), counted, way: &AT_THE_MACHINE }, step).await
    }

    async fn link(&self, with: &Linking, step: LinkStep) -> Result<CommandAnswer, Error> {
        match step {
            LinkStep::Show => self.show_code(with).await,
            LinkStep::List => self.list_links(with).await,
            LinkStep::Confirm => self.confirm_link(with).await,
            LinkStep::Remove(name) => self.remove_links(with, &name).await,
            LinkStep::Code(code) => match read(&code) {
                Some(code) => self.take_code(with, &code).await,
                None => {
                    let Way { show, enter, list, remove, .. } = with.way;
                    Ok(refused(format!(
                        "{show} shows a code for your other account, and {enter} says it there; {list}, {remove}."
                    )))
                }
            },
        }
    }

    /// Returns what a person who is forgotten should know of their other accounts; empty without any, and where others read it.
    pub(super) async fn what_stays_with_links(&self, at: &CommandContext<'_>) -> Result<String, Error> {
        if !is_alone(at) {
            return Ok(String::new());
        }
        let linked = self.linked(&at.line.person).await?;
        if linked.is_empty() {
            return Ok(String::new());
        }
        let mut text = String::from(
            "\nThis account is no longer linked. I still know what you told me with your other accounts; say `/forget me` there, too:\n",
        );
        for other in &linked {
            text.push_str(&format!("- {}\n", describe(other)));
        }
        text.push_str(
            "At the machine, `azera memory forget --person ID` does the same, also for what was imported there.",
        );
        Ok(text)
    }

    async fn linked(&self, person: &PersonId) -> Result<Vec<Account>, Error> {
        let person = person.clone();
        self.services.blocking(move |memory| memory.links().of(&person)).await
    }

    async fn show_code(&self, with: &Linking) -> Result<CommandAnswer, Error> {
        if self.linked(&with.account.person).await?.len() + 1 >= MAX_LINKED {
            return Ok(too_many(with.way));
        }
        let Some(code) = self.access.codes.show(&with.account, self.services.clock.now()) else {
            return Ok(refused("I cannot make a code now.".into()));
        };
        Ok(done(format!(
            "Write to me directly from your other account, and say there within {VALID_MINUTES} minutes:\n\n`/link {code}`\n\n\
             The code works once. Tell it to nobody: anyone who enters it and then `/link confirm` can read what you tell me in direct \
             messages. {} shows the linked accounts.",
            with.way.list
        )))
    }

    async fn take_code(&self, with: &Linking, code: &str) -> Result<CommandAnswer, Error> {
        let person = &with.account.person;
        let other = match self.access.codes.say(person, &with.counted, code, self.services.clock.now()) {
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
             read along.{more} {} within {VALID_MINUTES} minutes links them, and {} takes them apart.\n\n\
             If that account is somebody else's, do nothing: they would read what you tell me here.",
            describe(&other),
            with.way.confirm,
            with.way.remove,
        );
        Ok(CommandAnswer { choices, ..done(text) })
    }

    async fn confirm_link(&self, with: &Linking) -> Result<CommandAnswer, Error> {
        let Some(other) = self.access.codes.confirm(&with.account.person, self.services.clock.now()) else {
            return Ok(refused(format!(
                "There is no link to confirm. `/link` on one account shows a code; enter it on the other with {}.",
                with.way.enter
            )));
        };
        let (mine, theirs) = (with.account.clone(), other.clone());
        Ok(match self.services.blocking(move |memory| memory.links().link(&mine, &theirs)).await? {
            LinkOutcome::Now => done(format!(
                "Linked with {}. {} lists your accounts, {} takes this one out again.",
                describe(&other),
                with.way.list,
                with.way.remove
            )),
            LinkOutcome::Already => already(),
            LinkOutcome::TooMany => too_many(with.way),
        })
    }

    async fn list_links(&self, with: &Linking) -> Result<CommandAnswer, Error> {
        let Way { show, remove, .. } = with.way;
        let linked = self.linked(&with.account.person).await?;
        if linked.is_empty() {
            return Ok(done(format!("{}; {show} shows a code to link another.", alone())));
        }
        let mut text = String::from("This account is linked with:\n");
        for other in &linked {
            text.push_str(&format!("- {}\n", describe(other)));
        }
        let (of, all) = (named(remove, "NAME"), named(remove, "all"));
        text.push_str(&format!("{of} unlinks one of them, {remove} this one, and {all} all of them."));
        Ok(done(text))
    }

    async fn remove_links(&self, with: &Linking, name: &str) -> Result<CommandAnswer, Error> {
        let person = &with.account.person;
        // If somebody else knows an open code, it is useless to them from now on.
        self.access.codes.forget(person);
        let linked = self.linked(person).await?;
        if linked.is_empty() {
            return Ok(refused(format!("{}.", alone())));
        }
        // Anybody can choose any name, but not any id.
        let by_id: Vec<&Account> = linked.iter().filter(|other| other.person.as_str() == name).collect();
        let by_name = linked.iter().filter(|other| other.name.to_lowercase() == name.to_lowercase());
        let called = if by_id.is_empty() { by_name.collect() } else { by_id };
        let (out, text) = match name {
            "" => (vec![person.clone()], format!("{} any more.", alone())),
            "all" => {
                let all = linked.iter().map(|other| other.person.clone());
                (all.chain([person.clone()]).collect(), "None of your accounts are linked any more.".to_owned())
            }
            _ => match called.as_slice() {
                [other] => (
                    vec![other.person.clone()],
                    format!("{} is linked with none of your accounts any more.", describe(other)),
                ),
                [] => return Ok(refused(format!("There is no such account; {} lists them.", with.way.list))),
                more => {
                    let more: Vec<String> =
                        more.iter().map(|other| named(with.way.remove, other.person.as_str())).collect();
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
fn account_of(platform: &PlatformId, person: &PersonId, name: &str) -> Account {
    // The name appears in the other account's direct messages, so it must not contain markup.
    let plain = |c: char| if c.is_control() || "*_`~[]()<>|#\\".contains(c) { ' ' } else { c };
    let name: String = name.chars().map(plain).take(NAME_CHARS).collect();
    Account { platform: platform.clone(), person: person.clone(), name: name.trim().to_owned() }
}

/// Returns a command with a name behind it.
fn named(command: &str, name: &str) -> String {
    format!("{} {name}`", command.trim_end_matches('`'))
}

/// Whether nobody but the person reads an answer.
fn is_alone(at: &CommandContext<'_>) -> bool {
    matches!(&at.place.kind, PlaceKind::Dm(person) if *person == at.line.person)
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

fn too_many(way: &Way) -> CommandAnswer {
    let remove = named(way.remove, "NAME");
    refused(format!("{MAX_LINKED} accounts can be linked at most; {remove} takes one out."))
}
