//! Memory: the record of all conversations, two search indexes over it, recall, forgetting and export.
//!
//! Begin with [`Memory`], the interface to everything stored; [`Recall::find`] finds memories, and [`ReadScope`]
//! decides who may see them. The traits [`Store`], [`BlobStore`], [`VectorIndex`], [`TextIndex`] and [`Working`] are what a storage
//! backend implements; backends are crates of their own. This crate calls no model (callers pass vectors) and knows no
//! platform.
//!
//! Invariants:
//! - The record is the source of truth; the vector and text indexes can be rebuilt from it at any time
//!   ([`Indexing::rebuild`]).
//! - Nothing is acknowledged before it is flushed.
//! - Every read that shows content takes a [`ReadScope`], which is made from the platform's answer at that moment. Text
//!   built on other places requires access to each of them.
//! - Personas never share memories.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

mod accounts;
mod audit;
mod backfill;
mod blobs;
mod chats;
mod check;
mod chunks;
mod codec;
mod comparable;
mod consent;
mod cut;
mod domains;
mod embeddings;
mod episodes;
mod error;
mod excerpt;
mod exif;
mod export;
mod export_files;
mod extraction_progress;
mod facts;
mod files;
mod forget;
mod forget_log;
mod forget_places;
mod forget_run;
mod gif;
mod graph;
mod history;
mod image_bounds;
mod image_metadata;
mod import_search;
mod imports;
mod index;
mod indexing;
mod kept;
mod keys;
mod known;
mod links;
mod listing;
mod memory;
mod migrate;
mod minds;
mod names;
mod newest;
mod outbox;
mod passages;
mod perceived;
mod personas;
mod picture_notices;
mod picture_order;
mod picture_pages;
mod picture_requests;
mod picture_starts;
mod pictures;
mod promoted;
mod prune;
mod ram;
mod ran_command;
mod ratings;
mod read_scope;
mod recall;
mod record;
mod relink;
mod remember;
mod retractions;
mod rows;
mod salience;
mod sessions;
mod settings;
mod stats;
mod store;
mod surprise;
mod themes;
mod trainable;
mod turns;
mod validity;
mod vaults;
mod when;
pub mod words;
mod working;
mod writings;

pub use accounts::ListedAccount;
pub use audit::Audit;
pub use blobs::{BlobStore, RamBlobs, blob_id, damaged_blob};
pub use chats::{ChatChange, MAX_BRANCH_NAME_CHARS, MAX_BRANCHES, NewChat};
pub use check::CheckReport;
pub use consent::VoiceConsent;
pub use domains::{
    Accounts, Chats, Consent, EmbeddingCache, Episodes, Files, Forgetting, Graph, Imports, Indexing, Links, Memories,
    Messages, Minds, Outbox, Personas, Pictures, PlaceSettings, Progress, Recall, Sessions, Themes, Training, Turns,
    Vaults, Writings,
};
pub use embeddings::CacheUse;
pub use episodes::{Cause, ChatEpisode, EpisodePage, EpisodeQuery, MAX_EPISODES, Matter, MatterState, Occasion, Quote};
pub use error::Error;
pub use excerpt::{Shown, excerpt, shortened, show};
pub use export::DataSubject;
pub use export_files::FilesPart;
pub use extraction_progress::ExtractionProgress;
pub use facts::{KeptPage, NewFact};
pub use files::{FileTotals, StoredFile, blob_of};
pub use forget::{Forget, ForgetReceipt};
pub use forget_log::{BackupCleaner, Forgotten, PendingBackupForgets};
pub use graph::{
    Entity, EntityKind, EntityLink, Label, MAX_LINKS, MAX_SUGGESTED, Names, NewName, NewNames,
    different as different_names, same as same_names,
};
pub use history::MAX_HISTORY;
pub use image_metadata::without_metadata;
pub use import_search::{PendingImport, UnsearchedPart};
pub use imports::{
    Import, ImportState, ImportSummary, ImportedChat, ImportedFile, MAX_IMPORTED_TITLE_CHARS, MAX_RAN, NewImported,
    project_name, project_owner, project_realm,
};
pub use index::{
    DEEPEST_SEARCH, Facet, FacetWeights, Found, IndexMetadata, LexicalHits, MAX_SEARCH_LIMIT, MIN_BEGINNING_CHARS,
    Point, PointSource, Stored, TextDocument, TextIndex, TextIndexKind, VectorIndex,
};
pub use indexing::{Embedded, IndexWork, TEXT_WINDOW, VECTOR_WINDOW, WINDOW_REACH, rebuild_wanted};
pub use links::{Account, LinkOutcome, MAX_LINKED};
pub use memory::{Layers, Memory, MemoryConfig};
pub use minds::{BondRow, MindRow};
pub use passages::LONG_TEXT_CHARS;
pub use personas::{MAX_PERSONA_VERSIONS, MAX_PERSONAS, MAX_PICTURE_BYTES, NewPersona, persona_file, persona_identity};
pub use picture_pages::{PicturePage, Pinned};
pub use pictures::{Asked, DrawnPicture, NewPicture, PictureOutcome, PictureQuota, PictureRow};
pub use promoted::Known;
pub use prune::PruneReport;
pub use ram::{RamStore, RamWorking};
pub use ratings::ReplyRating;
pub use read_scope::{Grant, ReadScope};
pub use recall::{
    Again, AskedEvent, AskedTalk, Hit, KNOWN_IN_CHATS, LexicalRecall, Limits, Opinion, Query, Question, Recalled,
    Shortlist, Speaker, chats_of,
};
pub use record::{Record, made_up_name, restore};
pub use relink::{RelinkReport, relink};
pub use retractions::Retraction;
pub use rows::{
    Answering, BranchRow, ChatRow, EvidenceKind, InboxRow, Kind, MAIN_BRANCH, MemoryRow, MessageRow, NOTES, OutboxRow,
    PersonaRow, Posted, RanCommand, SourceScope, VoiceReplies, WhyHit, WhyRow, WritingRow,
};
pub use salience::{Salience, Superseded};
pub use sessions::{Ending, Episode, Learnt, MAX_SESSIONS, Problem, ProblemKind, Procedure, Resolution};
pub use settings::{
    ActiveChat, BackgroundProgress, CheckInRequest, JournalChannel, RetentionPreference, TrainingConsent,
};
pub use stats::{Stats, week_begins, week_of};
pub use store::{Batch, Change, Durability, Entry, MAX_KEY_BYTES, MAX_VALUE_BYTES, Order, Store, Table};
pub use surprise::Surprise;
pub use themes::{NextPlace, Theme, ThemePage, ThemedPlace};
pub use trainable::{Provenance, TrainableExchange};
pub use turns::{MessageOwner, NewReply, Received};
pub use validity::{Newer, NotReplaced, ReplacedBy, Replacement, Stretch, Validity};
pub use vaults::{Reseal, VaultChange};
pub use when::{Calendar, Era, EventClause, Relation, TimeSpan, known_by};
pub use working::{EMBEDDING_TTL, Working};
pub use writings::{MAX_SOURCES, NewWriting, Publication};
