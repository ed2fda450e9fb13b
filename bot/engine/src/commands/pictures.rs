//! `/imagine` and `/picture`: ask for pictures, draw one again, take one back, and what a place allows.

use azera_adapter::{Access, Choice, CommandAnswer};
use azera_memory::{Forget, PictureRow};
use azera_pictures::{MAX_FORBIDDEN_CHARS, Wish, forbidden_word};
use azera_types::{MessageId, PersonaId};

use super::mind::may_configure_place;
use super::{CommandContext, Commands, done, refused};
use crate::error::Error;
use crate::pictures::{NO_BACKEND, PictureLook, PictureRequest, Queued};

/// Most words that a place forbids.
const MAX_FORBIDDEN: usize = 200;

/// The name of every picture's message, before its number.
const POST: &str = "post~";

/// What a wanted picture is based on besides its prompt.
#[derive(Default)]
pub(super) struct Base {
    /// The picture whose prompt and settings it takes over.
    pub(super) original: Option<PictureRow>,
    /// True if the drawing starts from that picture.
    pub(super) is_varied: bool,
    /// The persona that it portrays.
    pub(super) portrait_of: Option<PersonaId>,
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
        match Wish::parse(arguments) {
            Ok(wish) => self.ask_for_picture(at, wish, Base::default()).await,
            Err(error) => Ok(refused(error.to_string())),
        }
    }

    pub(super) async fn picture_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let rest = rest.trim();
        match verb {
            "again" => self.draw_again(at, rest, false).await,
            "vary" => self.draw_again(at, rest, true).await,
            "delete" => self.delete_picture(at, rest).await,
            "cancel" => self.cancel_picture(at, rest).await,
            "queue" if rest.is_empty() => self.show_queue(at).await,
            "rules" if rest.is_empty() => self.show_picture_rules(at).await,
            "adult" | "forbid" | "permit" => self.change_picture_rules(at, verb, rest).await,
            _ => Ok(refused(
                "`/picture again 7`, `/picture vary 7 more fog`, `/picture delete 7`, `/picture cancel`, `/picture queue` \
                 or `/picture rules`. Admins: `/picture adult on`, `/picture forbid WORD` and `/picture permit WORD`."
                    .into(),
            )),
        }
    }

    pub(super) async fn ask_for_picture(
        &self,
        at: &CommandContext<'_>,
        wish: Wish,
        Base { original, is_varied, portrait_of }: Base,
    ) -> Result<CommandAnswer, Error> {
        let loaded = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?;
        let request = PictureRequest {
            platform: at.adapter,
            place: &at.place,
            persona: &at.chat.persona,
            persona_name: &loaded.persona.name,
            person: &at.line.person,
            day: at.day(self.services.clock.now()),
            wish,
            name: None,
            original,
            is_varied,
            uploaded: None,
            portrait_of,
            sources: Vec::new(),
            source_scopes: Vec::new(),
            from: self.services.clock.now(),
        };
        Ok(match self.pictures.ask(request).await? {
            Queued::Refused(why) | Queued::TooMany(why) => refused(why),
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

    /// Draws a picture again with another seed, or a variation of it.
    async fn draw_again(&self, at: &CommandContext<'_>, rest: &str, varied: bool) -> Result<CommandAnswer, Error> {
        let (row, rest) = match self.picture_named(at, rest).await? {
            Ok(found) => found,
            Err(why) => return Ok(refused(why)),
        };
        let Ok(look) = serde_json::from_value::<PictureLook>(row.settings.clone()) else {
            return Ok(refused("How that picture was made is no longer known.".into()));
        };
        let added = match Wish::parse(&rest) {
            Ok(wish) => wish,
            Err(error) => return Ok(refused(error.to_string())),
        };
        let prompt = match added.prompt.as_str() {
            "" => row.prompt.as_str().to_owned(),
            more => format!("{}, {more}", row.prompt.as_str()),
        };
        let wish = Wish {
            prompt,
            negative: added.negative.or(look.negative),
            size: added.size.or(Some((look.width, look.height))),
            // The same seed would draw the same picture.
            seed: added.seed,
            steps: added.steps.or(Some(look.steps)),
            guidance: added.guidance.or(Some(look.guidance)),
            sampler: added.sampler.or(look.sampler),
            strength: added.strength,
        };
        // With words of people in its prompt, it is no portrait any more.
        let portrait_of = look.portrait_of.filter(|_| added.prompt.is_empty());
        let base = Base { original: Some(row), is_varied: varied, portrait_of };
        self.ask_for_picture(at, wish, base).await
    }

    async fn delete_picture(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let row = match self.picture_named(at, rest).await? {
            Ok((row, _)) => row,
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

    async fn cancel_picture(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let number = match rest {
            "" => None,
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
        let forbidden = match wishes.forbidden.as_slice() {
            [] => "This place forbids no words.".to_owned(),
            words => format!("Words that this place forbids: {}.", words.join(", ")),
        };
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
                wishes.forbidden.retain(|known| *known != word);
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

    /// Returns the picture that a command is about, and the rest of its arguments: the one with the button, or the one of
    /// the number that the arguments begin with, or else the newest of the chat. The inner error says why there is none.
    pub(super) async fn picture_named(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<Result<(PictureRow, String), String>, Error> {
        let (first, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let numbered = first.parse::<u64>().ok().and_then(|number| MessageId::new(format!("{POST}{number}")).ok());
        let found = match (numbered, &at.line.about) {
            (Some(message), _) => self.picture(at, message).await?.map(|row| (row, rest.to_owned())),
            (None, Some(message)) => self.picture(at, message.clone()).await?.map(|row| (row, arguments.to_owned())),
            (None, None) => {
                let newest = self.pictures_here(at).await?.into_iter().find(|row| row.chat == at.chat.id);
                newest.map(|row| (row, arguments.to_owned()))
            }
        };
        Ok(found.ok_or_else(|| "There is no such picture that may be shown here; `/gallery` lists them.".to_owned()))
    }

    /// Returns a drawn picture that may be shown here.
    async fn picture(&self, at: &CommandContext<'_>, message: MessageId) -> Result<Option<PictureRow>, Error> {
        let read_scope = at.read_scope.clone();
        self.services.blocking(move |memory| memory.pictures().get(&read_scope, &message)).await
    }

    /// Returns the drawn pictures that may be shown here, newest first.
    pub(super) async fn pictures_here(&self, at: &CommandContext<'_>) -> Result<Vec<PictureRow>, Error> {
        let read_scope = at.read_scope.clone();
        self.services.blocking(move |memory| memory.pictures().list(&read_scope)).await
    }
}
