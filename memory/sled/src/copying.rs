//! Copies the store while others read and write.

use std::collections::HashSet;
use std::sync::atomic::Ordering as Atomic;
use std::sync::{Arc, MutexGuard};

use azera_memory::{Batch, Error, Table};

use crate::database::{Database, Row};
use crate::recording::Recording;
use crate::store::{SledStore, hold, rows};

/// Recorded batches few enough to make writers wait until they are copied.
const LAST_RECORDED: usize = 64;

/// Rounds after which writers wait in any case, because some write as fast as the copy runs.
const ROUNDS: usize = 4;

/// A part of the store on its way into a copy.
enum Piece {
    /// Rows that were read while others wrote.
    Page(Vec<Row>),
    /// A batch applied during the copy, with its number. Applied after all pages, in order, these batches bring the
    /// copy up to date.
    Batch(u64, Batch),
}

impl SledStore {
    /// Copies all rows into an empty database and makes them durable there. The copy has the state at the return of
    /// this call; no batch is applied until the returned guard is dropped.
    pub(crate) fn copy_to(&self, copy: &Database) -> Result<MutexGuard<'_, Recording>, Error> {
        let writing = self.hand_on(&mut |piece| {
            let batch = match piece {
                Piece::Page(page) => page.into_iter().fold(sled::Batch::default(), |mut batch, (key, value)| {
                    batch.insert(key, value);
                    batch
                }),
                Piece::Batch(number, batch) => rows(&batch, number),
            };
            copy.run("copying the store", |db| db.apply_batch(batch))
        })?;
        copy.flush(&mut HashSet::new())?;
        Ok(writing)
    }

    /// Passes everything to `take`; returns the number of the last batch included.
    pub(crate) fn hand_out(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        let _copying = hold(&self.copying);
        let _writing = self.hand_on(&mut |piece| match piece {
            Piece::Batch(_, batch) => take(batch),
            Piece::Page(page) => {
                let mut batch = Batch::new();
                for (key, value) in page {
                    // Keys outside all tables belong to the store itself.
                    if let Some((number, key)) = key.split_first()
                        && let Some(table) = Table::from_number(*number)
                    {
                        batch.put(table, key, value.as_ref());
                    }
                }
                take(batch)
            }
        })?;
        Ok(self.applied.load(Atomic::Acquire))
    }

    /// Passes everything to `take`, in the state at the return of this call. No batch is applied until the returned
    /// guard is dropped. The caller holds `copying`.
    fn hand_on(&self, take: &mut dyn FnMut(Piece) -> Result<(), Error>) -> Result<MutexGuard<'_, Recording>, Error> {
        hold(&self.writing).start();
        let done = self.hand_on_recorded(take);
        match done {
            Ok(mut recording) => {
                *recording = Recording::Off;
                Ok(recording)
            }
            Err(error) => {
                *hold(&self.writing) = Recording::Off;
                Err(error)
            }
        }
    }

    fn hand_on_recorded(
        &self,
        take: &mut dyn FnMut(Piece) -> Result<(), Error>,
    ) -> Result<MutexGuard<'_, Recording>, Error> {
        let database = Arc::clone(&self.read().database);
        database.for_each_page(|page| take(Piece::Page(page)))?;
        let mut round = 0;
        loop {
            round += 1;
            let mut recording = hold(&self.writing);
            let batches = recording.take()?;
            let last = batches.len() <= LAST_RECORDED || round >= ROUNDS;
            let retained = last.then_some(recording);
            for (number, batch) in batches {
                take(Piece::Batch(number, batch))?;
            }
            if let Some(recording) = retained {
                return Ok(recording);
            }
        }
    }
}
