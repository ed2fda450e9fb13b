//! What the Gardener writes for a place, and from what.

use std::time::Duration;

use azera_memory::{BackgroundProgress, Kind};
use azera_types::Timestamp;

use super::prompts::{DREAM, PIECE, REFLECTION, REVIEW, SETBACK};

/// How far back a dream or a journal entry looks: a day and the evening before.
pub(super) const A_DAY: Duration = Duration::from_secs(36 * 3_600);

/// How far back a garden piece or a review looks.
pub(super) const A_WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How far back a report of failed training looks: a result from another machine may fail long after anybody spoke.
const A_MONTH: Duration = Duration::from_secs(31 * 24 * 3_600);

/// A text to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritingTask {
    /// A dream.
    Dream,
    /// A journal entry about what was said.
    Reflection,
    /// A journal entry that reviews the week in numbers.
    Review,
    /// A journal entry about failed training.
    Setback,
    /// A garden piece.
    Piece,
}

impl WritingTask {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Dream => Kind::Dream,
            Self::Reflection | Self::Review | Self::Setback => Kind::Reflection,
            Self::Piece => Kind::Piece,
        }
    }

    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Dream => DREAM,
            Self::Reflection => REFLECTION,
            Self::Review => REVIEW,
            Self::Setback => SETBACK,
            Self::Piece => PIECE,
        }
    }

    /// Returns the first words, for models that need them.
    pub(super) fn lead(self) -> &'static str {
        match self {
            Self::Dream => "I dreamt that",
            Self::Reflection => "Today",
            Self::Review => "This week I",
            Self::Setback => "Tonight I",
            Self::Piece => "Once there was",
        }
    }

    /// Returns how far back its sources go.
    pub(super) fn reach(self) -> Duration {
        match self {
            Self::Dream | Self::Reflection => A_DAY,
            Self::Review | Self::Piece => A_WEEK,
            Self::Setback => A_MONTH,
        }
    }

    /// Returns true if it is posted as soon as it is written. Of garden pieces only the best are posted, and later.
    pub(super) fn is_posted_at_once(self) -> bool {
        self != Self::Piece
    }

    /// Returns true if it must differ from earlier ones. Journal entries may return to the same topic.
    pub(super) fn must_be_new(self) -> bool {
        matches!(self, Self::Dream | Self::Piece)
    }

    /// Returns when it was last written.
    pub(super) fn last(self, progress: &BackgroundProgress) -> Option<Timestamp> {
        match self {
            Self::Dream => progress.dreamt,
            Self::Reflection => progress.reflected,
            Self::Review => progress.reviewed,
            Self::Setback => progress.set_back,
            Self::Piece => progress.created,
        }
    }

    /// Records that it was written.
    pub(super) fn did(self, progress: &mut BackgroundProgress, at: Timestamp) {
        let last = match self {
            Self::Dream => &mut progress.dreamt,
            Self::Reflection => &mut progress.reflected,
            Self::Review => &mut progress.reviewed,
            Self::Setback => &mut progress.set_back,
            Self::Piece => &mut progress.created,
        };
        *last = Some(at);
    }
}
