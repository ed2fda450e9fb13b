//! `/garden`: the persona's garden pieces, as far as they may be shown here.

use azera_adapter::CommandAnswer;
use azera_memory::Kind;

use super::mind::may_configure_place;
use super::writings::WritingFilter;
use super::{CommandContext, done, refused};
use crate::background::Background;
use crate::background::Unpublished;
use crate::commands::Commands;
use crate::error::Error;

const PIECES: WritingFilter =
    WritingFilter { command: "garden", name: "pieces", one: "piece", kinds: &[Kind::Piece], imported: Kind::Piece };

impl Commands {
    pub(super) async fn garden_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        if let Some(answer) = self.writings_command(at, PIECES, arguments).await? {
            return Ok(answer);
        }
        match arguments.split_once(char::is_whitespace).map_or((arguments, ""), |(verb, rest)| (verb, rest.trim())) {
            ("write", "") => self.garden_write(at).await,
            ("publish", which) if !which.is_empty() => self.garden_publish(at, which).await,
            _ => Ok(refused(
                "`/garden list`, `/garden show 1`, `/garden search WORDS`, `/garden write`, `/garden publish 1`, \
                 `/garden import TEXT` or `/garden export`."
                    .into(),
            )),
        }
    }

    async fn garden_write(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can ask for that here, because several people read this place.".into()));
        }
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        let Some(written) = self.background.make_up_now(&home).await? else {
            return Ok(refused("I wrote nothing: there is too little to write about, or I found no words.".into()));
        };
        self.show_written(at, written.id).await
    }

    async fn garden_publish(&self, at: &CommandContext<'_>, which: &str) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Several people read this place, so only admins can publish here.".into()));
        }
        let Some((memory, _)) = self.find_writing(at, PIECES, which).await? else {
            return Ok(refused("There is no piece with that number here; `/garden list` shows the numbers.".into()));
        };
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        Ok(match self.background.publish_now(&home, &memory).await? {
            Ok(()) => done("Published where the journal is.".into()),
            Err(why) => refused(
                match why {
                    Unpublished::NoChannel => {
                        "There is nowhere to publish it: `/journal channel here` says where the journal is posted."
                    }
                    Unpublished::OtherPlace => "It belongs to another place, and is published there.",
                    Unpublished::NotForAll => {
                        "Not everybody who reads the journal's channel may read what this was made of."
                    }
                    Unpublished::AgainstTheRules => "A rule of this place forbids what it says.",
                    Unpublished::NotLearnedYet => "I am still learning to classify texts. Try again in a minute.",
                    Unpublished::Gone => "It was published before.",
                }
                .into(),
            ),
        })
    }
}
