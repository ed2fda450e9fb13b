use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// When the chat model extracts memories from conversations that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExtractWithModel {
    /// if it has 3 billion weights or more, or a server does not say how many
    Auto,
    /// whatever its size
    Always,
    /// only classifiers extract
    Never,
}

/// What a persona writes between messages: its diary, its journal, its dreams, its notes and its pieces. This asks the
/// model only in quiet times; live chat goes first. Hours are those of `time_zone`. A range of hours includes its first
/// and excludes its last; two equal hours make an empty range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gardener {
    /// Let personas write between messages.
    pub enabled: bool,
    /// Let personas dream about past conversations. The times of sleep are set in [mind].
    pub dreams: bool,
    /// Let personas write into their journal if people talked with them. The times of reflection are set in [mind].
    pub journal: bool,
    /// The least number of messages from people for a diary entry about a conversation that has ended; 0 for never.
    #[schemars(range(min = 0, max = 1000))]
    pub diary_messages: u32,
    /// Messages from people after which the working notes of a chat are rewritten; 0 for never. A persona may set its
    /// own.
    #[schemars(range(min = 0, max = 1000))]
    pub notes_every: u32,
    /// Days between two short pieces that a persona makes up from conversations and dreams; 0 for never.
    #[schemars(range(min = 0, max = 365))]
    pub piece_days: u32,
    /// Days between two pieces that are posted in the journal's channel or room; 0 for never. Each time the best piece so
    /// far is posted.
    #[schemars(range(min = 0, max = 365))]
    pub publish_days: u32,
    /// Let personas look back once a week at how they are doing, and write about it in their journal.
    pub reviews: bool,
    /// The first hour for check-ins with people who asked for them with `/checkin`.
    #[schemars(range(min = 0, max = 23))]
    pub check_ins_from: u32,
    /// The hour at which check-ins end. The same hour in both keys turns check-ins off.
    #[schemars(range(min = 0, max = 23))]
    pub check_ins_to: u32,
    /// Extract what is worth keeping from conversations that have ended. `/me` shows it, and the limits on memories
    /// remove it last. Imports are searched whatever this says.
    pub keep: bool,
    /// Let the chat model read conversations that have ended and quote what is worth keeping. Azera keeps only quotes that
    /// stand in the messages word for word. Without it, classifiers extract; they ask no model.
    pub extract_with_model: ExtractWithModel,
    /// Measure in quiet times how surprising people's messages are to the model, if it runs on this machine. Surprising
    /// messages matter more and fade later.
    pub surprise: bool,
    /// Minutes of silence after which a conversation has ended.
    #[schemars(range(min = 1, max = 10_080))]
    pub rest_minutes: u32,
    /// The first of the quiet hours, in which no dream or journal entry is written or posted.
    #[schemars(range(min = 0, max = 23))]
    pub quiet_from: u32,
    /// The hour at which the quiet hours end.
    #[schemars(range(min = 0, max = 23))]
    pub quiet_to: u32,
    /// Requests to the model per day, for one persona in one realm. Diary and notes may use at most half of them, so
    /// that some are left for the night.
    #[schemars(range(min = 1, max = 100_000))]
    pub asks_per_day: u32,
    /// The time zone of all days and hours, by its IANA name.
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
            extract_with_model: ExtractWithModel::Auto,
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
    /// Limits a place's values to what the installation's values `all` allow.
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
