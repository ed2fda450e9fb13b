//! The domains of the record: one small interface for each kind of data. A domain is a view of [`Memory`]; all of them write
//! through one [`Batch`](crate::Batch) to one store, so a change that spans domains is still one transaction.

use crate::Memory;

/// Accounts that platforms keep for people.
#[derive(Clone, Copy)]
pub struct Accounts<'a>(pub(crate) &'a Memory);

/// Chats: their settings and branches.
#[derive(Clone, Copy)]
pub struct Chats<'a>(pub(crate) &'a Memory);

/// Messages and replies, as a [`ReadScope`](crate::ReadScope) may see them.
#[derive(Clone, Copy)]
pub struct Messages<'a>(pub(crate) &'a Memory);

/// Turns: a message comes in, a reply goes out, each in one transaction.
#[derive(Clone, Copy)]
pub struct Turns<'a>(pub(crate) &'a Memory);

/// Replies that wait for delivery.
#[derive(Clone, Copy)]
pub struct Outbox<'a>(pub(crate) &'a Memory);

/// Personas, their versions and pictures.
#[derive(Clone, Copy)]
pub struct Personas<'a>(pub(crate) &'a Memory);

/// The states of minds, and bonds.
#[derive(Clone, Copy)]
pub struct Minds<'a>(pub(crate) &'a Memory);

/// What places and people set, and what is stored for a place.
#[derive(Clone, Copy)]
pub struct PlaceSettings<'a>(pub(crate) &'a Memory);

/// Memories: facts, chunks of files, marks and limits.
#[derive(Clone, Copy)]
pub struct Memories<'a>(pub(crate) &'a Memory);

/// What training in the weights may use.
#[derive(Clone, Copy)]
pub struct Training<'a>(pub(crate) &'a Memory);

/// Dreams, journal entries, garden pieces and notes.
#[derive(Clone, Copy)]
pub struct Writings<'a>(pub(crate) &'a Memory);

/// Conversations that people imported from other programs.
#[derive(Clone, Copy)]
pub struct Imports<'a>(pub(crate) &'a Memory);

/// What was learnt in coding sessions that people imported.
#[derive(Clone, Copy)]
pub struct Sessions<'a>(pub(crate) &'a Memory);

/// Episodes of everyday conversations.
#[derive(Clone, Copy)]
pub struct Episodes<'a>(pub(crate) &'a Memory);

/// Linked accounts of one human.
#[derive(Clone, Copy)]
pub struct Links<'a>(pub(crate) &'a Memory);

/// Forgetting: what is removed, and what must go with it.
#[derive(Clone, Copy)]
pub struct Forgetting<'a>(pub(crate) &'a Memory);

/// The queue of memories to index, and the upkeep of both indexes.
#[derive(Clone, Copy)]
pub struct Indexing<'a>(pub(crate) &'a Memory);

/// The cache of embedded texts.
#[derive(Clone, Copy)]
pub struct EmbeddingCache<'a>(pub(crate) &'a Memory);

/// Recall: finds the memories that help to answer a question.
#[derive(Clone, Copy)]
pub struct Recall<'a>(pub(crate) &'a Memory);

/// What people allow.
#[derive(Clone, Copy)]
pub struct Consent<'a>(pub(crate) &'a Memory);

/// How far background work is in a place.
#[derive(Clone, Copy)]
pub struct Progress<'a>(pub(crate) &'a Memory);

/// Files of messages: references to kept bytes, and what may be shown of them.
#[derive(Clone, Copy)]
pub struct Files<'a>(pub(crate) &'a Memory);

/// Pictures that people asked for: those that wait, and those that were drawn.
#[derive(Clone, Copy)]
pub struct Pictures<'a>(pub(crate) &'a Memory);

/// The knowledge graph: who and what people name, and how that belongs together.
#[derive(Clone, Copy)]
pub struct Graph<'a>(pub(crate) &'a Memory);

/// Themes: what is talked about most.
#[derive(Clone, Copy)]
pub struct Themes<'a>(pub(crate) &'a Memory);

/// Sealed vaults of people.
#[derive(Clone, Copy)]
pub struct Vaults<'a>(pub(crate) &'a Memory);

impl Memory {
    /// Accounts that platforms keep for people.
    pub fn accounts(&self) -> Accounts<'_> {
        Accounts(self)
    }

    /// Chats: their settings and branches.
    pub fn chats(&self) -> Chats<'_> {
        Chats(self)
    }

    /// Messages and replies, as a [`ReadScope`](crate::ReadScope) may see them.
    pub fn messages(&self) -> Messages<'_> {
        Messages(self)
    }

    /// Turns: a message comes in, a reply goes out, each in one transaction.
    pub fn turns(&self) -> Turns<'_> {
        Turns(self)
    }

    /// Replies that wait for delivery.
    pub fn outbox(&self) -> Outbox<'_> {
        Outbox(self)
    }

    /// Personas, their versions and pictures.
    pub fn personas(&self) -> Personas<'_> {
        Personas(self)
    }

    /// The states of minds, and bonds.
    pub fn minds(&self) -> Minds<'_> {
        Minds(self)
    }

    /// What places and people set, and what is stored for a place.
    pub fn places(&self) -> PlaceSettings<'_> {
        PlaceSettings(self)
    }

    /// Memories: facts, chunks of files, marks and limits.
    pub fn memories(&self) -> Memories<'_> {
        Memories(self)
    }

    /// What training in the weights may use.
    pub fn training(&self) -> Training<'_> {
        Training(self)
    }

    /// Dreams, journal entries, garden pieces and notes.
    pub fn writings(&self) -> Writings<'_> {
        Writings(self)
    }

    /// Conversations that people imported from other programs.
    pub fn imports(&self) -> Imports<'_> {
        Imports(self)
    }

    /// What was learnt in coding sessions that people imported.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions(self)
    }

    /// Episodes of everyday conversations.
    pub fn episodes(&self) -> Episodes<'_> {
        Episodes(self)
    }

    /// Linked accounts of one human.
    pub fn links(&self) -> Links<'_> {
        Links(self)
    }

    /// Forgetting: what is removed, and what must go with it.
    pub fn forgetting(&self) -> Forgetting<'_> {
        Forgetting(self)
    }

    /// The queue of memories to index, and the upkeep of both indexes.
    pub fn indexing(&self) -> Indexing<'_> {
        Indexing(self)
    }

    /// The cache of embedded texts.
    pub fn embeddings(&self) -> EmbeddingCache<'_> {
        EmbeddingCache(self)
    }

    /// Recall: finds the memories that help to answer a question.
    pub fn recall(&self) -> Recall<'_> {
        Recall(self)
    }

    /// What people allow.
    pub fn consent(&self) -> Consent<'_> {
        Consent(self)
    }

    /// How far background work is in a place.
    pub fn progress(&self) -> Progress<'_> {
        Progress(self)
    }

    /// Files of messages: references to kept bytes, and what may be shown of them.
    pub fn files(&self) -> Files<'_> {
        Files(self)
    }

    /// Pictures that people asked for: those that wait, and those that were drawn.
    pub fn pictures(&self) -> Pictures<'_> {
        Pictures(self)
    }

    /// The knowledge graph: who and what people name, and how that belongs together.
    pub fn graph(&self) -> Graph<'_> {
        Graph(self)
    }

    /// Themes: what is talked about most.
    pub fn themes(&self) -> Themes<'_> {
        Themes(self)
    }

    /// Sealed vaults of people.
    pub fn vaults(&self) -> Vaults<'_> {
        Vaults(self)
    }
}
