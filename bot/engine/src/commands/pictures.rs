//! `/imagine` and `/picture`: ask for pictures, draw one again, take one back, and what a place allows.

use azera_adapter::{Access, Choice, CommandAnswer};
use azera_memory::{Forget, Memory, PictureRow, Pinned};
use azera_pictures::{MAX_FORBIDDEN_CHARS, Wish, forbidden_word};
use azera_types::MessageId;

use super::mind::may_configure_place;
use super::redraw::split_number;
use super::{CommandContext, Commands, done, refused};
use crate::error::Error;
use crate::pictures::{Base, NO_BACKEND, PictureRequest, Queued, REMIX_STRENGTH, Writer, is_suitable, style_of};

/// Most words that a place forbids.
const MAX_FORBIDDEN: usize = 200;

/// Most pictures that a place pins.
const MAX_PINNED: usize = 50;

/// Said about a picture that does not exist, or that may not be shown.
pub(super) const NO_SUCH: &str = "There is no such picture that may be shown here; `/gallery` lists them.";

/// Said if nothing is left to draw, because the last option takes all words behind it.
const PROMPT_FIRST: &str = "Say what to draw before the options: the names behind `--model`, `--sampler` and `--negative` \
                            go on to the next option. `/imagine a boat --model NAME`.";

/// Returns the message of the picture of this number.
pub(super) fn message_of(number: u64) -> Option<MessageId> {
    MessageId::new(format!("post~{number}")).ok()
}

/// Returns the number of the picture of this message.
fn number_of(message: &MessageId) -> Option<u64> {
    let number = message.as_str().rsplit_once('~')?.1.parse().ok()?;
    (message_of(number).as_ref() == Some(message)).then_some(number)
}

/// Returns true if what follows a number cannot make it a part of a prompt.
fn is_number_alone(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with("--")
}

impl Commands {
    /// Returns true if a command about a reply is about a picture.
    pub(super) async fn is_about_a_picture(&self, at: &CommandContext<'_>) -> Result<bool, Error> {
        Ok(match &at.line.about {
            Some(message) => self.picture(at, message.clone()).await?.is_some(),
            None => false,
        })
    }

    pub(super) async fn imagine_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let mut wish = match Wish::parse(arguments) {
            Ok(wish) => wish,
            Err(error) => return Ok(refused(error.to_string())),
        };
        if wish.prompt.is_empty() && (wish.model.is_some() || wish.sampler.is_some() || wish.negative.is_some()) {
            return Ok(refused(PROMPT_FIRST.into()));
        }
        let start = match self.start_given(at, wish.from).await? {
            Ok(start) => start,
            Err(why) => return Ok(refused(why)),
        };
        if start.is_some() {
            wish.strength = wish.strength.or(Some(REMIX_STRENGTH));
        }
        self.ask_for_picture(at, wish, Base { start, ..Base::default() }).await
    }

    pub(super) async fn picture_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let rest = rest.trim();
        match verb {
            "again" => self.draw_again(at, rest).await,
            "vary" => self.draw_variation(at, rest).await,
            "upscale" => self.upscale_picture(at, rest).await,
            "edit" => self.edit_picture(at, rest).await,
            "remix" => self.remix_picture(at, rest).await,
            "delete" => self.delete_picture(at, rest).await,
            "pin" | "unpin" => self.pin_picture(at, rest, verb == "pin").await,
            "cancel" => self.cancel_picture(at, rest).await,
            "queue" if rest.is_empty() => self.show_queue(at).await,
            "rules" if rest.is_empty() => self.show_picture_rules(at).await,
            "adult" | "forbid" | "permit" => self.change_picture_rules(at, verb, rest).await,
            _ => Ok(refused(
                "`/picture again 7`, `/picture vary 7 more fog`, `/picture edit 7 NEW PROMPT`, `/picture remix 7 PROMPT`, \
                 `/picture upscale 7`, `/picture pin 7`, `/picture delete 7`, `/picture cancel`, `/picture queue` or `/picture rules`. Admins: `/picture adult on`, `/picture forbid WORD` and `/picture permit WORD`."
                    .into(),
            )),
        }
    }

    pub(super) async fn ask_for_picture(
        &self,
        at: &CommandContext<'_>,
        wish: Wish,
        Base { name, original, start, is_upscaled, portrait_of }: Base,
    ) -> Result<CommandAnswer, Error> {
        let loaded = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?;
        let request = PictureRequest {
            platform: at.adapter,
            place: &at.place,
            persona: &at.chat.persona,
            persona_name: &loaded.persona.name,
            // The prompt of a portrait says already how the persona looks.
            style: match &portrait_of {
                Some(_) => loaded.persona.pictures.clone(),
                None => style_of(&loaded.persona, &wish.prompt, Writer::Person),
            },
            person: &at.line.person,
            by: Some(&at.line.name),
            day: at.day(self.services.clock.now()),
            wish,
            name,
            original,
            start,
            is_upscaled,
            portrait_of,
            sources: Vec::new(),
            source_scopes: Vec::new(),
            from: self.services.clock.now(),
        };
        Ok(match self.pictures.ask(request).await? {
            Queued::Refused(why) | Queued::TooMany(why) => refused(why),
            Queued::Unknown(unknown) => refused(unknown.why),
            Queued::Forbidden(refusal) => refused(refusal.to_string()),
            Queued::Waits(row, position) => {
                let when = match position {
                    1 => "I begin now".to_owned(),
                    place => format!("It is number {place} of those that wait"),
                };
                let text = format!("{when}: picture {}. `/picture cancel {}` takes it back.", row.number, row.number);
                let line = format!("/picture cancel {}", row.number);
                CommandAnswer { choices: vec![Choice { label: "Cancel".into(), line }], ..done(text) }
            }
        })
    }

    async fn delete_picture(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let row = match self.picture_alone(at, rest).await? {
            Ok(row) => row,
            Err(why) => return Ok(refused(why)),
        };
        // An admin manages the pictures of this place, not everything that may be shown here.
        let manages = at.access >= Access::Admin && row.scope == at.place.scope();
        if row.person != at.line.person && !manages {
            return Ok(refused("Only the person who asked for it, or an admin, can delete it.".into()));
        }
        let what = Forget::Message(row.message);
        self.forgetting.forget(what, true, Some(at.read_scope.clone())).await?;
        Ok(done(format!("Picture {} is deleted.", row.number)))
    }

    /// Pins a picture, so that its file is removed after others, or lets it go.
    async fn pin_picture(&self, at: &CommandContext<'_>, rest: &str, pins: bool) -> Result<CommandAnswer, Error> {
        let row = match self.picture_alone(at, rest).await? {
            Ok(row) => row,
            Err(why) => return Ok(refused(why)),
        };
        let manages = at.access >= Access::Admin && row.scope == at.place.scope();
        if row.person != at.line.person && !manages {
            return Ok(refused("Only the person who asked for it, or an admin, can pin it.".into()));
        }
        let number = row.number;
        let pin = move |memory: &Memory| memory.pictures().pin(&row.message, pins, MAX_PINNED);
        Ok(match self.services.blocking(pin).await? {
            Pinned::Done if pins => {
                done(format!("📌 Picture {number} is pinned: other files of this place go before it."))
            }
            Pinned::Done => done(format!("Picture {number} is pinned no more.")),
            Pinned::NoSuch => refused(NO_SUCH.to_owned()),
            Pinned::Gone => {
                refused(format!("The file of picture {number} is not kept any more, so it cannot be pinned."))
            }
            Pinned::Full => refused(format!(
                "This place has pinned {MAX_PINNED} pictures of all its personas, and that is the most. `/picture unpin \
                 NUMBER` lets one go; `/gallery pinned` lists those of this persona that may be shown here."
            )),
        })
    }

    async fn cancel_picture(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let number = match rest {
            // The button below the progress of a picture is about that picture.
            "" => at.line.about.as_ref().and_then(number_of),
            text => match text.parse() {
                Ok(number) => Some(number),
                Err(_) => return Ok(refused("`/picture cancel` or `/picture cancel 7`.".into())),
            },
        };
        let (chat, person, of_all) = (&at.chat.id, &at.line.person, at.access >= Access::Admin);
        Ok(match self.pictures.cancel(at.adapter, chat, person, number, of_all).await? {
            Some(number) => done(format!("Picture {number} is cancelled.")),
            None => refused("You have no such picture waiting here.".into()),
        })
    }

    async fn show_queue(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if self.pictures.settings().is_none() {
            return Ok(refused(NO_BACKEND.into()));
        }
        let queue = self.pictures.queue().await?;
        let own = queue.iter().enumerate().filter(|(_, row)| row.chat == at.chat.id && row.person == at.line.person);
        let own: Vec<String> =
            own.map(|(place, row)| format!("- picture {}: number {}", row.number, place + 1)).collect();
        let total = match queue.len() {
            0 => "No pictures are waiting.".to_owned(),
            1 => "1 picture is waiting.".to_owned(),
            more => format!("{more} pictures are waiting."),
        };
        Ok(done(if own.is_empty() { total } else { format!("{total} Yours here:\n{}", own.join("\n")) }))
    }

    async fn show_picture_rules(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let wishes = self.pictures.wishes(at.platform, &at.place.scope()).await?;
        let rules = self.pictures.rules(at.adapter, &at.place).await?;
        let adult = match (rules.allows_adult, wishes.adult) {
            (true, _) => "Nudity and sex are allowed here.",
            (false, true) => "Nudity and sex are not drawn here: the platform does not mark this place for adults.",
            (false, false) => "Nudity and sex are not drawn here.",
        };
        let mut forbidden = match wishes.forbidden.as_slice() {
            [] => "This place forbids no words.".to_owned(),
            words => format!("Words that this place forbids: {}.", words.join(", ")),
        };
        let by_server = self.pictures.forbidden_by_server(at.adapter, &at.place).await?;
        if !by_server.is_empty() {
            forbidden.push_str(&format!(" Words that its server forbids: {}.", by_server.join(", ")));
        }
        Ok(done(format!("{adult} Anything sexual with somebody under 18 is never drawn anywhere. {forbidden}")))
    }

    async fn change_picture_rules(
        &self,
        at: &CommandContext<'_>,
        verb: &str,
        rest: &str,
    ) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can change what is drawn in a shared place.".into()));
        }
        let home = at.place.scope();
        let mut wishes = self.pictures.wishes(at.platform, &home).await?;
        match (verb, rest) {
            ("adult", "on") => wishes.adult = true,
            ("adult", "off") => wishes.adult = false,
            ("adult", _) => return Ok(refused("`/picture adult on` or `/picture adult off`.".into())),
            _ => {
                let Some(word) = forbidden_word(rest) else {
                    return Ok(refused(format!("Name a word or a few, at most {MAX_FORBIDDEN_CHARS} characters.")));
                };
                let was_known = wishes.forbidden.contains(&word);
                wishes.forbidden.retain(|known| *known != word);
                if verb == "permit" && !was_known {
                    let by_server = self.pictures.forbidden_by_server(at.adapter, &at.place).await?;
                    if by_server.contains(&word) {
                        return Ok(refused(format!(
                            "The server forbids `{word}`, so it holds here, too. `/picture permit {word}` in an open \
                             channel of the server permits it."
                        )));
                    }
                }
                if verb == "forbid" {
                    if wishes.forbidden.len() >= MAX_FORBIDDEN {
                        return Ok(refused(format!("A place can forbid {MAX_FORBIDDEN} words.")));
                    }
                    wishes.forbidden.push(word);
                    wishes.forbidden.sort();
                }
            }
        }
        self.pictures.set_wishes(at.platform, &home, &wishes).await?;
        self.show_picture_rules(at).await
    }

    /// Returns the picture that a command is about, and the rest of its arguments: the one of the number that the arguments
    /// begin with, or else the one with the button or the reply, or else the newest of the chat. Before words, see
    /// [`Commands::number_before`]. The inner error says why there is none.
    pub(super) async fn picture_named(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<Result<(PictureRow, String), String>, Error> {
        let selected = match &at.line.about {
            Some(message) => self.picture(at, message.clone()).await?,
            None => None,
        };
        let (number, rest) = match &selected {
            None => self.number_before(at, arguments).await?,
            // Words behind the number of another picture are a prompt for the selected one.
            Some(row) => match split_number(arguments) {
                (Some(number), rest) if number == row.number || is_number_alone(&rest) => (Some(number), rest),
                _ => (None, arguments.to_owned()),
            },
        };
        let found = match (number, selected) {
            (Some(number), _) => match message_of(number) {
                Some(message) => self.picture(at, message).await?,
                None => None,
            },
            (None, Some(row)) => Some(row),
            (None, None) if at.line.about.is_some() => None,
            (None, None) => {
                let (read_scope, chat) = (at.read_scope.clone(), at.chat.id.clone());
                let newest = move |memory: &Memory| memory.pictures().page(&read_scope, (0, 1), |row| row.chat == chat);
                self.services.blocking(newest).await?.rows.pop()
            }
        };
        Ok(found.map(|row| (row, rest)).ok_or_else(|| NO_SUCH.to_owned()))
    }

    /// Returns the picture that a command takes no further words about.
    pub(super) async fn picture_alone(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<Result<PictureRow, String>, Error> {
        Ok(self.picture_named(at, arguments).await?.and_then(|(row, rest)| match rest.as_str() {
            "" => Ok(row),
            _ => Err("Name the number of one picture, such as `7`, and nothing else.".to_owned()),
        }))
    }

    /// Splits the number of a picture from the beginning of a text. Before words it counts only if such a picture may be
    /// shown here: `3 cats in a boat` may be a prompt.
    pub(super) async fn number_before(
        &self,
        at: &CommandContext<'_>,
        text: &str,
    ) -> Result<(Option<u64>, String), Error> {
        let (number, rest) = split_number(text);
        let Some(message) = number.and_then(message_of).filter(|_| !is_number_alone(&rest)) else {
            return Ok((number, rest));
        };
        let shown = match self.picture(at, message).await? {
            Some(row) => is_suitable(&self.pictures.rules(at.adapter, &at.place).await?, &row),
            None => false,
        };
        Ok(if shown { (number, rest) } else { (None, text.to_owned()) })
    }

    /// Returns a drawn picture that may be shown here.
    pub(super) async fn picture(
        &self,
        at: &CommandContext<'_>,
        message: MessageId,
    ) -> Result<Option<PictureRow>, Error> {
        let read_scope = at.read_scope.clone();
        self.services.blocking(move |memory| memory.pictures().get(&read_scope, &message)).await
    }
}
