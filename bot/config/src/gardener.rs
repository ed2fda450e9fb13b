use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The comments of these fields are also the comments of azera.example.toml: they speak to the operator.

/// What a persona writes between messages: its diary, its journal, its dreams, its notes, its pieces. It asks the model in quiet times
/// alone and gives way to whoever talks. Hours are those of a realm's own time zone, from the first up to and without the
/// second; from an hour to itself are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gardener {
    /// Let personas write between messages.
    pub enabled: bool,
    /// Let them dream of what was said. When they sleep stands in [mind].
    pub dreams: bool,
    /// Let them write into their journal, if something was said. When they reflect stands in [mind].
    pub journal: bool,
    /// Messages of people from which on a conversation gets an entry in the diary when it is over; 0 for never.
    #[schemars(range(min = 0, max = 1000))]
    pub diary_messages: u32,
    /// Messages of people after which working notes of a chat are made anew; 0 for never. A persona may set its own.
    #[schemars(range(min = 0, max = 1000))]
    pub notes_every: u32,
    /// Days between two little pieces that they make up out of what they heard and dreamt; 0 for never.
    #[schemars(range(min = 0, max = 365))]
    pub piece_days: u32,
    /// Days between two pieces that are posted where the journal is, each time the best one there is by then; 0 for never.
    #[schemars(range(min = 0, max = 365))]
    pub publish_days: u32,
    /// Let them look once a week at how they are doing, and write about it into their journal.
    pub reviews: bool,
    /// The hour from which on people are looked in on who asked for it with `/checkin`.
    #[schemars(range(min = 0, max = 23))]
    pub check_ins_from: u32,
    /// The hour from which on they are not. The same hour twice: never.
    #[schemars(range(min = 0, max = 23))]
    pub check_ins_to: u32,
    /// Look through conversations that are over for what is worth keeping: `/me` shows it, and bounds on memories take it last.
    /// No model is asked for it.
    pub keep: bool,
    /// Measure in quiet times how surprising what people say is to the model, where it runs on this machine: what surprises matters
    /// more, and fades later.
    pub surprise: bool,
    /// Minutes of silence after which a conversation counts as over.
    #[schemars(range(min = 1, max = 10_080))]
    pub rest_minutes: u32,
    /// The hour from which on no dream and no journal entry is written or posted.
    #[schemars(range(min = 0, max = 23))]
    pub quiet_from: u32,
    /// The hour from which on they are again.
    #[schemars(range(min = 0, max = 23))]
    pub quiet_to: u32,
    /// How often the model may be asked on a day for one persona in one realm. The diary and the notes take half of that at
    /// most, so that something is left for the night.
    #[schemars(range(min = 1, max = 100_000))]
    pub asks_per_day: u32,
    /// The time zone where a realm says none, by its IANA name.
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}

impl Default for Gardener {
    fn default() -> Self {
        Self {
            enabled: true,
            dreams: true,
            journal: true,
            diary_messages: 4,
            notes_every: 8,
            piece_days: 3,
            publish_days: 7,
            reviews: true,
            check_ins_from: 9,
            check_ins_to: 21,
            keep: true,
            surprise: true,
            rest_minutes: 30,
            quiet_from: 0,
            quiet_to: 0,
            asks_per_day: 60,
            time_zone: "UTC".into(),
        }
    }
}

impl Gardener {
    /// As much of it as a place may have where the installation has `all`.
    pub(crate) fn within(mut self, all: &Self) -> Self {
        let counts = [
            (&mut self.diary_messages, all.diary_messages),
            (&mut self.notes_every, all.notes_every),
            (&mut self.piece_days, all.piece_days),
            (&mut self.publish_days, all.publish_days),
        ];
        for (own, all) in counts {
            if all == 0 {
                *own = 0;
            }
        }
        if all.check_ins_from == all.check_ins_to {
            (self.check_ins_from, self.check_ins_to) = (all.check_ins_from, all.check_ins_to);
        }
        self.asks_per_day = self.asks_per_day.min(all.asks_per_day);
        self
    }
}
