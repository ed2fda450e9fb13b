use azera_memory::{Batch, Error};

/// Bytes of batches recorded while a copy is made. A conversation writes kilobytes a second.
const RECORDED_BYTES: usize = 64 * 1024 * 1024;

/// What is applied to the store while a copy of it is made, to be done again on the copy.
#[derive(Default)]
pub(crate) enum Recording {
    /// No copy is being made.
    #[default]
    Off,
    /// Batches with their numbers, in the order in which they were applied.
    On {
        /// Since the last time they were taken.
        batches: Vec<(u64, Batch)>,
        /// Of their keys and values.
        bytes: usize,
    },
    /// There was more than [`RECORDED_BYTES`].
    Overflow,
}

impl Recording {
    /// Starts with nothing.
    pub(crate) fn start(&mut self) {
        *self = Self::On { batches: Vec::new(), bytes: 0 };
    }

    /// Records a batch, if any are recorded.
    pub(crate) fn add(&mut self, number: u64, batch: Batch) {
        if let Self::On { batches, bytes } = self {
            *bytes += batch.bytes();
            batches.push((number, batch));
            if *bytes > RECORDED_BYTES {
                *self = Self::Overflow;
            }
        }
    }

    /// Takes what was recorded and goes on recording.
    pub(crate) fn take(&mut self) -> Result<Vec<(u64, Batch)>, Error> {
        match self {
            Self::On { batches, bytes } => {
                *bytes = 0;
                Ok(std::mem::take(batches))
            }
            Self::Off | Self::Overflow => {
                let why = "more was written meanwhile than is kept track of".to_owned();
                Err(Error::Backend { what: "copying the store", why, transient: true })
            }
        }
    }
}
