use azera_memory::Error;

/// Bytes of batches recorded while a copy is made. A conversation writes kilobytes a second.
const RECORDED_BYTES: usize = 64 * 1024 * 1024;

/// What is applied to the store while a copy of it is made, to be done again on the copy.
#[derive(Default)]
pub(crate) enum Recording {
    /// No copy is being made.
    #[default]
    Off,
    /// Batches in the order in which they were applied.
    On {
        /// Since the last time they were taken.
        batches: Vec<sled::Batch>,
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

    /// Whether batches are recorded.
    pub(crate) fn is_on(&self) -> bool {
        matches!(self, Self::On { .. })
    }

    /// Records a batch with so many bytes of keys and values.
    pub(crate) fn add(&mut self, batch: sled::Batch, more: usize) {
        if let Self::On { batches, bytes } = self {
            *bytes += more;
            batches.push(batch);
            if *bytes > RECORDED_BYTES {
                *self = Self::Overflow;
            }
        }
    }

    /// Takes what was recorded and goes on recording.
    pub(crate) fn take(&mut self) -> Result<Vec<sled::Batch>, Error> {
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
