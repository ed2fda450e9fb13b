use azera_memory::{Batch, Error};

/// Most bytes of batches recorded during a copy. A conversation writes kilobytes per second.
const RECORDED_BYTES: usize = 64 * 1024 * 1024;

/// Batches applied to the store during a copy, to be repeated on the copy.
#[derive(Default)]
pub(crate) enum Recording {
    /// No copy is running.
    #[default]
    Off,
    /// Batches with their numbers, in the order they were applied.
    On {
        /// Batches since they were last taken.
        batches: Vec<(u64, Batch)>,
        /// Bytes of their keys and values.
        bytes: usize,
    },
    /// More than [`RECORDED_BYTES`] were recorded.
    Overflow,
}

impl Recording {
    /// Starts an empty recording.
    pub(crate) fn start(&mut self) {
        *self = Self::On { batches: Vec::new(), bytes: 0 };
    }

    /// Records a batch, if a copy is running.
    pub(crate) fn add(&mut self, number: u64, batch: Batch) {
        if let Self::On { batches, bytes } = self {
            *bytes += batch.bytes();
            batches.push((number, batch));
            if *bytes > RECORDED_BYTES {
                *self = Self::Overflow;
            }
        }
    }

    /// Takes the recorded batches and continues recording.
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
