use std::collections::HashSet;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use azera_memory::{Error, TextDocument};
use azera_types::MemoryId;
use tantivy::directory::MmapDirectory;
use tantivy::directory::error::OpenWriteError;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyError};

use crate::schema::{Fields, tokenizers};

/// Bytes of documents that an index collects before it writes a segment on its own; tantivy's minimum.
const WRITER_BYTES: usize = 15_000_000;

/// Share of deleted documents above which a merge rewrites a segment.
const DELETED_SHARE: f32 = 0.3;

/// A tantivy index in a directory of its own.
pub(crate) struct Segments {
    pub(crate) fields: Fields,
    index: Index,
    reader: IndexReader,
    writing: Mutex<Writing>,
    /// Held by searches, so that they do not keep old files from being removed.
    searching: RwLock<()>,
}

#[derive(Default)]
struct Writing {
    /// Created on demand and dropped after a failure, because a tantivy writer cannot recover.
    writer: Option<IndexWriter>,
    /// Ids added since the last commit.
    added: HashSet<MemoryId>,
    /// True if there is something to commit.
    changed: bool,
    /// True if a failure lost changes and no caller knows yet.
    lost: bool,
}

impl Segments {
    /// Opens the index in `dir`, or creates it.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(dir).map_err(Error::io("making the text index"))?;
        let fields = Fields::new();
        let opened = guarded("opening the text index", || {
            let index = Index::builder()
                .schema(fields.schema.clone())
                .settings(IndexSettings::default())
                .tokenizers(tokenizers())
                .open_or_create(MmapDirectory::open(dir)?)?;
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            Ok((index, reader))
        });
        let (index, reader) = opened.map_err(|error| match error {
            Error::Backend { what, why, transient } => {
                let why = format!("{why}; `azera memory rebuild` makes it anew from the record");
                Error::Backend { what, why, transient }
            }
            other => other,
        })?;
        Ok(Self { fields, index, reader, writing: Mutex::default(), searching: RwLock::new(()) })
    }

    /// Compares every file with its checksum.
    pub(crate) fn verify(&self) -> Result<(), Error> {
        let what = "checking the text index";
        match guarded(what, || self.index.validate_checksum())?.len() {
            0 => Ok(()),
            count => Err(Error::Backend { what, why: format!("{count} files are damaged"), transient: false }),
        }
    }

    /// Runs `work` on the committed state.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Searcher) -> tantivy::Result<T>) -> Result<T, Error> {
        let _searching = self.searching.read().unwrap_or_else(PoisonError::into_inner);
        guarded("searching the text index", || work(&self.reader.searcher()))
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the writer. If it fails, all uncommitted changes are lost, and the next commit reports that.
    fn write<T>(
        &self,
        writing: &mut Writing,
        what: &'static str,
        work: impl FnOnce(&mut IndexWriter) -> tantivy::Result<T>,
    ) -> Result<T, Error> {
        let answer = guarded(what, || {
            let mut writer = match writing.writer.take() {
                Some(writer) => writer,
                None => self.new_writer()?,
            };
            let answer = work(&mut writer)?;
            writing.writer = Some(writer);
            Ok(answer)
        });
        if answer.is_err() {
            writing.lost |= writing.changed;
            writing.changed = false;
            writing.added.clear();
        }
        answer
    }

    fn new_writer(&self) -> tantivy::Result<IndexWriter> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(WRITER_BYTES)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter = self.index.writer_with_options(options)?;
        let mut merging = LogMergePolicy::default();
        merging.set_del_docs_ratio_before_merge(DELETED_SHARE);
        writer.set_merge_policy(Box::new(merging));
        Ok(writer)
    }

    /// Adds a document and replaces one with the same id.
    pub(crate) fn add(&self, doc: &TextDocument) -> Result<(), Error> {
        let mut writing = self.writing();
        self.write(&mut writing, "adding to the text index", |writer| {
            writer.delete_term(self.fields.id_term(doc.id));
            writer.add_document(self.fields.document(doc))
        })?;
        writing.changed = true;
        writing.added.insert(doc.id);
        Ok(())
    }

    /// Removes the documents with these ids, if they exist.
    pub(crate) fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        let mut writing = self.writing();
        for id in ids {
            let term = self.fields.id_term(*id);
            if !writing.added.contains(id) && self.read(|searcher| searcher.doc_freq(&term))? == 0 {
                continue;
            }
            self.write(&mut writing, "removing from the text index", |writer| Ok(writer.delete_term(term)))?;
            writing.changed = true;
        }
        Ok(())
    }

    /// Makes all earlier changes durable and searchable.
    pub(crate) fn commit(&self) -> Result<(), Error> {
        let mut writing = self.writing();
        self.commit_held(&mut writing)
    }

    fn commit_held(&self, writing: &mut Writing) -> Result<(), Error> {
        if std::mem::take(&mut writing.lost) {
            let why = "an earlier failure took changes with it; they have to be made again".to_owned();
            return Err(Error::Backend { what: "committing to the text index", why, transient: true });
        }
        if !writing.changed {
            return Ok(());
        }
        self.write(writing, "committing to the text index", |writer| {
            writer.commit()?;
            self.reader.reload()
        })?;
        writing.changed = false;
        writing.added.clear();
        Ok(())
    }

    /// Removes all documents and their files.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let mut writing = self.writing();
        self.write(&mut writing, "clearing the text index", |writer| {
            writer.rollback()?;
            writer.delete_all_documents()?;
            writer.commit()?;
            Ok(())
        })?;
        *writing = Writing { writer: writing.writer.take(), ..Writing::default() };
        self.remove_files(&mut writing)
    }

    /// Rewrites each segment with deleted documents, without them and their words.
    pub(crate) fn rewrite(&self) -> Result<(), Error> {
        let mut writing = self.writing();
        self.commit_held(&mut writing)?;
        // A segment in a running merge cannot be merged again. So this waits, and then prevents other merges.
        self.write(&mut writing, "rewriting the text index", |writer| {
            writer.set_merge_policy(Box::new(NoMergePolicy));
            Ok(())
        })?;
        if let Some(writer) = writing.writer.take() {
            guarded("rewriting the text index", || writer.wait_merging_threads())?;
        }
        self.write(&mut writing, "rewriting the text index", |writer| {
            writer.set_merge_policy(Box::new(NoMergePolicy));
            for segment in self.index.searchable_segment_metas()? {
                if segment.has_deletes() {
                    writer.merge(&[segment.id()]).wait()?;
                }
            }
            Ok(())
        })?;
        self.remove_files(&mut writing)?;
        // The next writer merges as usual.
        writing.writer = None;
        Ok(())
    }

    /// Removes the files of segments that are no longer part of the index.
    fn remove_files(&self, writing: &mut Writing) -> Result<(), Error> {
        let _nobody_searching = self.searching.write().unwrap_or_else(PoisonError::into_inner);
        self.write(writing, "removing files of the text index", |writer| {
            self.reader.reload()?;
            writer.garbage_collect_files().wait().map(drop)
        })
    }
}

fn guarded<T>(what: &'static str, work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, Error> {
    let why = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) if is_full(&error) => return Err(Error::Full { what }),
        Ok(Err(TantivyError::LockFailure(..))) => "the index is in use by another Azera".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its files are damaged: tantivy gave up".to_owned(),
    };
    Err(Error::Backend { what, why, transient: false })
}

/// Returns true if the disk was full.
fn is_full(error: &TantivyError) -> bool {
    let full = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
    };
    match error {
        TantivyError::IoError(error) => full(error),
        TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, .. }) => full(io_error),
        // An error in a background thread comes as a message only.
        TantivyError::ErrorInThread(why) => {
            ["StorageFull", "QuotaExceeded", "FileTooLarge"].iter().any(|kind| why.contains(kind))
        }
        _ => false,
    }
}
