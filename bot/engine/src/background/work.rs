//! What the Gardener writes for a home, and out of what.

use std::time::Duration;

use azera_memory::{BackgroundProgress, Kind};
use azera_types::Timestamp;

use super::prompts::{DREAM, PIECE, REFLECTION, REVIEW, SETBACK};

/// What a dream or a journal entry is about was said within this time before it: a day and the evening before.
const A_DAY: Duration = Duration::from_secs(36 * 3_600);

/// What a piece is about, and what a look at how it is doing counts.
pub(super) const A_WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What came back from another machine may come to nothing long after anybody spoke.
const A_MONTH: Duration = Duration::from_secs(31 * 24 * 3_600);

/// Something to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritingTask {
    /// A dream.
    Dream,
    /// An entry of the journal, about what was said.
    Reflection,
    /// An entry of the journal about how it is doing, made of numbers.
    Review,
    /// An entry of the journal about something learnt that came to nothing.
    Setback,
    /// Something made up.
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

    /// The first words, for models that need them.
    pub(super) fn lead(self) -> &'static str {
        match self {
            Self::Dream => "I dreamt that",
            Self::Reflection => "Today",
            Self::Review => "This week I",
            Self::Setback => "Tonight I",
            Self::Piece => "Once there was",
        }
    }

    /// How far back what it is about goes.
    pub(super) fn reach(self) -> Duration {
        match self {
            Self::Dream | Self::Reflection => A_DAY,
            Self::Review | Self::Piece => A_WEEK,
            Self::Setback => A_MONTH,
        }
    }

    /// Whether it is posted as it is written. Of pieces the best are, and later.
    pub(super) fn is_posted_at_once(self) -> bool {
        self != Self::Piece
    }

    /// Whether it must be another than those before. Journals may come back to the same matter.
    pub(super) fn must_be_new(self) -> bool {
        matches!(self, Self::Dream | Self::Piece)
    }

    /// When it was last done.
    pub(super) fn last(self, tended: &BackgroundProgress) -> Option<Timestamp> {
        match self {
            Self::Dream => tended.dreamt,
            Self::Reflection => tended.reflected,
            Self::Review => tended.reviewed,
            Self::Setback => tended.set_back,
            Self::Piece => tended.created,
        }
    }

    /// Notes that it was done.
    pub(super) fn did(self, tended: &mut BackgroundProgress, at: Timestamp) {
        let last = match self {
            Self::Dream => &mut tended.dreamt,
            Self::Reflection => &mut tended.reflected,
            Self::Review => &mut tended.reviewed,
            Self::Setback => &mut tended.set_back,
            Self::Piece => &mut tended.created,
        };
        *last = Some(at);
    }
}
