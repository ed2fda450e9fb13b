//! `/checkin`: turns check-ins on and off.

use azera_adapter::CommandAnswer;
use azera_memory::CheckInRequest;
use azera_types::PlaceKind;

use super::{CommandContext, done, refused};
use crate::background::Background;
use crate::background::PersonaPlace;
use crate::commands::Commands;
use crate::error::Error;

/// Days of silence before a check-in, if the person gives no number.
const CHECK_IN_DAYS: u32 = 2;

/// Maximum number of days that a person can choose.
const MAX_CHECK_IN_DAYS: u32 = 90;

impl Commands {
    pub(super) async fn checkin_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        if !matches!(at.place.kind, PlaceKind::Dm(_)) {
            return Ok(refused("Check-ins work in direct messages. Write `/checkin` to me there.".into()));
        }
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        let overrides = self.overrides_of(at).await?;
        let (from, to) = overrides.garden.check_in_hours;
        let there = self.background.check_ins_in(at.platform, &at.place.scope()).await?;
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, rest.trim()) {
            ("", "") => {
                let listed: Vec<String> = there
                    .iter()
                    .map(|(persona, wanted)| format!("`{persona}`, after {} of silence", days(wanted.days)))
                    .collect();
                Ok(done(match listed.as_slice() {
                    [] => "Check-ins are off. With `/checkin on` I ask how you are after days of silence.".into(),
                    listed => {
                        format!("These ask how you are: {}. `/checkin off` ends that.", listed.join(" and by "))
                    }
                }))
            }
            ("on", _) if from == to => Ok(refused("Check-ins are off: my settings leave no hours for them.".into())),
            ("on", count) => {
                let count = if count.is_empty() { Ok(CHECK_IN_DAYS) } else { count.parse::<u32>() };
                let Some(count) = count.ok().filter(|count| (1..=MAX_CHECK_IN_DAYS).contains(count)) else {
                    return Ok(refused(format!(
                        "`/checkin on DAYS`, with 1 to {MAX_CHECK_IN_DAYS} days of silence after which I ask."
                    )));
                };
                let before = there.iter().find(|(persona, _)| *persona == home.persona).map(|(_, before)| before);
                let wanted = CheckInRequest {
                    chat: at.chat.id.clone(),
                    days: count,
                    since: self.services.clock.now(),
                    tried: None,
                    last: before.and_then(|before| before.last),
                };
                self.background.want_check_ins(&home, Some(wanted)).await?;
                let zone = overrides.params.zone.iana_name().unwrap_or("my own time").to_owned();
                Ok(done(format!(
                    "When I have not heard from you for {}, I ask how things are, here and between {from} and {to} o'clock ({zone}); \
                     once, until you answer. `/checkin off` ends that.",
                    days(count)
                )))
            }
            ("off", "") => {
                for (persona, _) in there {
                    self.background.want_check_ins(&PersonaPlace { persona, ..home.clone() }, None).await?;
                }
                Ok(done("I no longer ask how you are.".into()))
            }
            _ => Ok(refused("`/checkin`, `/checkin on`, `/checkin on DAYS` or `/checkin off`.".into())),
        }
    }
}

fn days(count: u32) -> String {
    if count == 1 { "a day".into() } else { format!("{count} days") }
}
