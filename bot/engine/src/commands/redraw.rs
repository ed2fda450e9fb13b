//! `/picture again`, `vary`, `upscale`, `edit` and `remix`: pictures that are made from other pictures.

use azera_adapter::{CommandAnswer, CommandForm, FormField};
use azera_memory::PictureRow;
use azera_model_image::MAX_PROMPT_CHARS;
use azera_pictures::{MAX_NEGATIVE_CHARS, Wish};
use azera_types::MessageId;

use super::pictures::{NO_SUCH, message_of};
use super::{CommandContext, Commands, done, refused};
use crate::error::Error;
use crate::pictures::{
    AS_LARGE_AS_CAN_BE, Base, Basis, PictureLook, REMIX_STRENGTH, Start, VARIATION_STRENGTH, is_suitable,
};

/// A drawn picture to make another one from.
struct Original {
    row: PictureRow,
    look: PictureLook,
    /// What the person wants to be different.
    changes: Wish,
}

impl Original {
    /// Returns the wish for another picture with this prompt: what the person wants, and the rest as before.
    fn wish(&self, prompt: String) -> Wish {
        self.look.wish(prompt, &self.changes)
    }

    /// Returns its prompt with the words that the person added.
    fn prompt_with_more(&self) -> String {
        match self.changes.prompt.as_str() {
            "" => self.row.prompt.as_str().to_owned(),
            more => format!("{}, {more}", self.row.prompt.as_str()),
        }
    }

    /// Returns what another picture is based on. With words of people in its prompt, it is no portrait any more.
    fn base(self, start: Option<Start>) -> Base {
        let portrait_of = self.look.portrait_of.filter(|_| self.changes.prompt.is_empty());
        Base { original: Some(Basis::drawn(&self.row)), start, portrait_of, ..Base::default() }
    }
}

impl Commands {
    /// Draws a picture again with another seed. It starts from what the picture started from.
    pub(super) async fn draw_again(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let original = match self.original(at, rest).await? {
            Ok(original) => original,
            Err(why) => return Ok(refused(why)),
        };
        let start = match self.start_as_before(at, &original).await? {
            Ok(start) => start,
            Err(why) => return Ok(refused(why)),
        };
        let mut wish = original.wish(original.prompt_with_more());
        wish.strength = wish.strength.or(original.look.strength);
        self.ask_for_picture(at, wish, original.base(start)).await
    }

    /// Draws a variation of a picture.
    pub(super) async fn draw_variation(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let original = match self.original(at, rest).await? {
            Ok(original) => original,
            Err(why) => return Ok(refused(why)),
        };
        let start = match self.start_of(at, original.row.message.clone()).await? {
            Ok(start) => start,
            Err(why) => return Ok(refused(why)),
        };
        let mut wish = original.wish(original.prompt_with_more());
        wish.strength = wish.strength.or(Some(VARIATION_STRENGTH));
        self.ask_for_picture(at, wish, original.base(Some(start))).await
    }

    /// Draws a picture larger.
    pub(super) async fn upscale_picture(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let original = match self.original(at, rest).await? {
            Ok(original) if original.changes == Wish::default() => original,
            Ok(_) => return Ok(refused("`/picture upscale` or `/picture upscale 7`; nothing else changes.".into())),
            Err(why) => return Ok(refused(why)),
        };
        let start = match self.start_of(at, original.row.message.clone()).await? {
            Ok(start) => start,
            Err(why) => return Ok(refused(why)),
        };
        let Some(wish) = original.look.wish_for_upscale(&original.row, start.size) else {
            return Ok(refused(AS_LARGE_AS_CAN_BE.into()));
        };
        let base = Base { is_upscaled: true, ..original.base(Some(start)) };
        self.ask_for_picture(at, wish, base).await
    }

    /// Draws a picture with another prompt and the same seed. Without a prompt, shows the present one to edit.
    pub(super) async fn edit_picture(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let original = match self.original(at, rest).await? {
            Ok(original) => original,
            Err(why) => return Ok(refused(why)),
        };
        if original.changes == Wish::default() {
            // The form shows the prompt.
            let rules = self.pictures.rules(at.adapter, &at.place).await?;
            let is_shown = is_suitable(&rules, &original.row);
            return Ok(if is_shown { to_edit(&original) } else { refused(NO_SUCH.to_owned()) });
        }
        let start = match self.start_as_before(at, &original).await? {
            Ok(start) => start,
            Err(why) => return Ok(refused(why)),
        };
        let prompt = match original.changes.prompt.as_str() {
            "" => original.row.prompt.as_str(),
            prompt => prompt,
        };
        let mut wish = original.wish(prompt.to_owned());
        wish.seed = wish.seed.or(Some(original.look.seed));
        wish.strength = wish.strength.or(original.look.strength);
        self.ask_for_picture(at, wish, original.base(start)).await
    }

    /// Draws something new that starts from a picture: the one that came with the command, the one of the number, the
    /// selected one, or else the newest of the chat that the person sent or that was drawn.
    pub(super) async fn remix_picture(&self, at: &CommandContext<'_>, rest: &str) -> Result<CommandAnswer, Error> {
        let mut wish = match Wish::parse(rest) {
            Ok(wish) => wish,
            Err(error) => return Ok(refused(error.to_string())),
        };
        let is_selected = at.line.picture.is_some() || at.line.about.is_some() || wish.from.is_some();
        if !is_selected {
            (wish.from, wish.prompt) = self.number_before(at, &wish.prompt).await?;
        }
        if wish.prompt.is_empty() {
            return Ok(refused("Say what to make of the picture: `/picture remix 7 as an oil painting`.".into()));
        }
        let start = match self.start_given(at, wish.from).await? {
            Ok(Some(start)) => Ok(start),
            Ok(None) if is_selected => Err(NO_SUCH.to_owned()),
            Ok(None) => self.newest_start(at).await?,
            Err(why) => Err(why),
        };
        let start = match start {
            Ok(start) => start,
            Err(why) => return Ok(refused(why)),
        };
        wish.strength = wish.strength.or(Some(REMIX_STRENGTH));
        self.ask_for_picture(at, wish, Base { start: Some(start), ..Base::default() }).await
    }

    /// Returns the drawn picture of this number, or else the picture that came with a command, or else the one in the
    /// message that it is about. The inner error says why a picture is not used.
    pub(super) async fn start_given(
        &self,
        at: &CommandContext<'_>,
        number: Option<u64>,
    ) -> Result<Result<Option<Start>, String>, Error> {
        if let Some(number) = number {
            let Some(message) = message_of(number) else { return Ok(Err(NO_SUCH.to_owned())) };
            return Ok(self.start_of(at, message).await?.map(Some));
        }
        if let Some(given) = &at.line.picture {
            let (place, day) = ((at.platform, at.place.scope()), at.day(self.services.clock.now()));
            return Ok(match self.pictures.obstacle(&at.line.person, place, day).await? {
                Some(why) => Err(why),
                None => self.pictures.start_of_upload(given).await?.map(Some),
            });
        }
        match &at.line.about {
            Some(message) => self.pictures.start_of_message(&at.read_scope, message.clone()).await,
            None => Ok(Ok(None)),
        }
    }

    async fn start_of(&self, at: &CommandContext<'_>, message: MessageId) -> Result<Result<Start, String>, Error> {
        let start = self.pictures.start_of_message(&at.read_scope, message).await?;
        Ok(start.and_then(|start| start.ok_or_else(|| NO_SUCH.to_owned())))
    }

    async fn newest_start(&self, at: &CommandContext<'_>) -> Result<Result<Start, String>, Error> {
        let (read_scope, chat, person) = (at.read_scope.clone(), at.chat.id.clone(), at.line.person.clone());
        let newest = move |memory: &azera_memory::Memory| memory.pictures().newest_shown(&read_scope, &chat, &person);
        match self.services.blocking(newest).await? {
            Some(message) => self.start_of(at, message).await,
            None => {
                Ok(Err("There is no picture to start from. Send one, reply to one, or name the number of one that \
                            `/gallery` lists."
                    .into()))
            }
        }
    }

    async fn start_as_before(
        &self,
        at: &CommandContext<'_>,
        original: &Original,
    ) -> Result<Result<Option<Start>, String>, Error> {
        let (row, look) = (&original.row, &original.look);
        if look.is_upscaled {
            // It started from the same picture.
            return Ok(Ok(None));
        }
        self.pictures.start_once_more(&at.read_scope, &at.line.person, row, look).await
    }

    /// Returns the drawn picture that a command is about. The inner error says why there is none.
    async fn original(&self, at: &CommandContext<'_>, rest: &str) -> Result<Result<Original, String>, Error> {
        let (row, rest) = match self.picture_named(at, rest).await? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let Ok(look) = serde_json::from_value::<PictureLook>(row.settings.clone()) else {
            return Ok(Err("How that picture was made is no longer known.".into()));
        };
        Ok(match Wish::parse(&rest) {
            Ok(Wish { from: Some(_), .. }) => Err("`--from` is for `/imagine` and `/picture remix`.".into()),
            Ok(changes) => Ok(Original { row, look, changes }),
            Err(error) => Err(error.to_string()),
        })
    }
}

/// Splits a number from the beginning of a text.
pub(super) fn split_number(text: &str) -> (Option<u64>, String) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match first.parse() {
        Ok(number) => (Some(number), rest.trim().to_owned()),
        Err(_) => (None, text.to_owned()),
    }
}

/// Returns the prompt of a picture to edit, as a form and as words.
fn to_edit(original: &Original) -> CommandAnswer {
    let number = original.row.number;
    let short = |text: &str| text.chars().take(MAX_PROMPT_CHARS).collect::<String>();
    let prompt = short(original.row.prompt.as_str());
    let negative = short(original.look.negative.as_deref().unwrap_or_default());
    let mut text = format!(
        "`/picture edit {number} NEW PROMPT` draws picture {number} with another prompt and the same seed. Its prompt:\n\
         > {prompt}"
    );
    if !negative.is_empty() {
        text.push_str(&format!("\n`--negative {}`", negative.replace('`', "'")));
    }
    let field = |name, label, value, max_chars, when_empty| FormField { name, label, value, max_chars, when_empty };
    let form = CommandForm {
        title: format!("Edit picture {number}"),
        line: format!("/picture edit {number}"),
        fields: vec![
            field("prompt", "What to draw", prompt, MAX_PROMPT_CHARS, None),
            field("negative", "What not to draw", negative, MAX_NEGATIVE_CHARS, Some("none")),
        ],
    };
    CommandAnswer { form: Some(form), ..done(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_told_from_a_prompt() {
        let check =
            |text: &str, number, rest: &str| assert_eq!(split_number(text), (number, rest.to_owned()), "{text}");
        check("7 as a knight", Some(7), "as a knight");
        check("as a knight", None, "as a knight");
        check("7", Some(7), "");
        check("7th heaven", None, "7th heaven");
    }
}
