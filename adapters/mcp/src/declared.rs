//! The declarations of all tools. What a client sees and what a call may do come from them. `tools.rs` runs them.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::Value;

use crate::chats::{Conversations, OfChat, OfReply, Timeline};
use crate::checkpoints::{Checkpoints, Restored, Saved, ToList, ToRestore, ToSave};
use crate::coding::{Budget, OfProject, Procedures};
use crate::context::{Continued, OfQuestion, Optimized, ToContinue};
use crate::episodes::{Chain, Cues, Episodes, OfSession, TwoEpisodes};
use crate::graph::{Beginning, Entities, OfName, TwoNames};
use crate::known::{Counting, KnownPage, Knowns};
use crate::memories::{Counts, Listed, MemoryList, OfId, OneMemory, Quoting};
use crate::search::{AcrossProjects, Like, Results, Words};
use crate::session::Rights;
use crate::texts::QUOTES_DATA;
use crate::themes;
use crate::vault::{Deleted, OfEntry, Stored, ToStore, VaultList, VaultSecret};
use crate::writing::{Composed, Done, Feedback, Forgotten, Kept, ToForget, ToKeep, ToSupersede, ToUpdate};
use crate::writings::{Insights, Page, Writings};

/// What a tool does to the memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Adds,
    /// It can be taken back, and the same call twice changes nothing more.
    Changes,
    /// Adds something, or replaces what was there.
    Replaces,
    Removes,
}

/// A tool.
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    /// Whether it returns texts of memories.
    quotes: bool,
    needs: fn(Rights) -> bool,
    input: fn() -> JsonObject,
    output: fn() -> JsonObject,
}

/// No arguments.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

fn schema<T: JsonSchema>() -> JsonObject {
    match schemars::schema_for!(T).to_value() {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    }
}

const fn tool<I: JsonSchema, O: JsonSchema>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    needs: fn(Rights) -> bool,
) -> Declared {
    Declared { name, title, description, effect, quotes: true, needs, input: schema::<I>, output: schema::<O> }
}

const fn without_quotes(tool: Declared) -> Declared {
    Declared { quotes: false, ..tool }
}

const fn reads(rights: Rights) -> bool {
    rights.read
}

const fn writes(rights: Rights) -> bool {
    rights.write
}

const fn reads_chats(rights: Rights) -> bool {
    rights.chats
}

const fn explains(rights: Rights) -> bool {
    rights.read && rights.chats
}

const fn reads_vault(rights: Rights) -> bool {
    rights.vault
}

const fn lists_vault(rights: Rights) -> bool {
    rights.read || rights.vault
}

const fn reads_and_writes(rights: Rights) -> bool {
    rights.read && rights.write
}

const fn composes(rights: Rights) -> bool {
    rights.compose && rights.write && rights.read
}

const TOOLS: &[Declared] = &[
    tool::<Words, Results>(
        "recall",
        "Recall",
        "Finds memories that help with a question: by meaning, words, names, dates and what was talked about. Use it before \
         answering something that the person may have told earlier.",
        Effect::Reads,
        reads,
    ),
    without_quotes(tool::<ToKeep, Kept>(
        "remember",
        "Remember",
        "Keeps a statement for good as a memory of this person. Use it only for what the person said or wants kept.",
        Effect::Adds,
        writes,
    )),
    without_quotes(tool::<ToForget, Forgotten>(
        "forget",
        "Forget",
        "Forgets one memory for good, with the message it comes from, and returns a receipt. This cannot be undone: ask the \
         person first.",
        Effect::Removes,
        writes,
    )),
    tool::<OfReply, Quoting>(
        "why",
        "Why",
        "Explains a reply of the persona: which memories were in its prompt, with scores and signals, and which model wrote \
         it.",
        Effect::Reads,
        explains,
    ),
    tool::<Words, Results>(
        "hybrid_search",
        "Hybrid search",
        "The same as recall: searches by meaning and words together.",
        Effect::Reads,
        reads,
    ),
    tool::<Words, Results>(
        "search",
        "Search by words",
        "Finds memories with the words of the query. Use it for exact names, codes and quotes.",
        Effect::Reads,
        reads,
    ),
    tool::<AcrossProjects, Results>(
        "cross_project",
        "Search across projects",
        "The same as recall, in the memories of the person's projects alone: what was said in coding sessions and other \
         conversations that were imported into projects.",
        Effect::Reads,
        reads,
    ),
    tool::<Like, Results>(
        "similar",
        "Similar",
        "Finds memories with a meaning like that of one memory.",
        Effect::Reads,
        reads,
    ),
    tool::<OfId, OneMemory>("get", "Get", "Returns one whole memory by its id.", Effect::Reads, reads),
    tool::<Listed, MemoryList>("list", "List", "Lists whole memories, newest first.", Effect::Reads, reads),
    without_quotes(tool::<ToKeep, Kept>("save", "Save", "The same as remember.", Effect::Adds, writes)),
    without_quotes(tool::<ToUpdate, Kept>(
        "update",
        "Update",
        "Keeps what holds now in place of an older statement of the person. The older one stays, with the day until which it \
         held. Forgetting the new one lets the older one hold again.",
        Effect::Adds,
        writes,
    )),
    without_quotes(tool::<ToSupersede, Done>(
        "supersede",
        "Supersede",
        "Lets a newer statement of the person hold in place of an older one, both by their ids. Without the newer one, the older \
         one holds again, also if Azera had found by itself that it no longer holds.",
        Effect::Changes,
        writes,
    )),
    without_quotes(tool::<Feedback, Done>(
        "search_feedback",
        "Feedback on a search",
        "Notes whether a memory that was found helped. It moves the memory a little forward or back in what the person finds \
         and is told in all their direct messages with this persona, this session included, and nowhere else.",
        Effect::Changes,
        writes,
    )),
    without_quotes(tool::<ToForget, Forgotten>(
        "delete",
        "Delete",
        "The same as forget: one memory is gone for good.",
        Effect::Removes,
        writes,
    )),
    tool::<Nothing, Quoting>(
        "core_memory",
        "Core memory",
        "Returns what the persona keeps in mind about the person, in the person's own words.",
        Effect::Reads,
        reads,
    ),
    tool::<OfName, Entities>(
        "relations",
        "Relations",
        "Returns how people said that somebody or something belongs together with others, when they first said it, and in which memories.",
        Effect::Reads,
        reads,
    ),
    tool::<Beginning, Entities>(
        "graph_explore",
        "Explore the graph",
        "Follows relations from a name, step by step: who and what belongs together over several memories.",
        Effect::Reads,
        reads,
    ),
    without_quotes(tool::<TwoNames, Done>(
        "relate",
        "Say that two names mean the same",
        "States that two names mean the same person, place or thing, as a memory of the person. Their relations then count \
         together. The answer tells how to undo it. Use it only if the person said so.",
        Effect::Adds,
        writes,
    )),
    without_quotes(tool::<TwoNames, Done>(
        "unrelate",
        "Say that two names mean different ones",
        "States that two names do not mean the same person, place or thing, as a memory of the person. The newest statement \
         counts. The answer tells how to undo it.",
        Effect::Adds,
        writes,
    )),
    tool::<themes::Asked, themes::Themes>(
        "themes",
        "Themes",
        "Lists what is talked about most: groups of memories that are alike, each with its words, a typical memory and the newest \
         one, since when and how often.",
        Effect::Reads,
        reads,
    ),
    tool::<KnownPage, Knowns>(
        "known",
        "Known statements",
        "Lists what counts as known in a whole place, because it was said in three or more chats of it, with the memories \
         that it rests on.",
        Effect::Reads,
        reads,
    ),
    without_quotes(tool::<Counting, Done>(
        "set_known",
        "Let a statement count",
        "Says whether the person's own words count towards what is known in the whole place, or only where they were said.",
        Effect::Changes,
        writes,
    )),
    tool::<Page, Writings>(
        "episodes",
        "Episodes",
        "Lists the diary, newest first: what the persona wrote at the end of each conversation.",
        Effect::Reads,
        reads,
    ),
    without_quotes(tool::<Nothing, themes::Status>(
        "raptor_status",
        "State of the themes",
        "Tells how many themes there are, of how many parts and memories they are made, and how many memories wait for them.",
        Effect::Reads,
        reads,
    )),
    without_quotes(tool::<Nothing, themes::Rebuilt>(
        "raptor_rebuild",
        "Rebuild the themes",
        "Groups the memories that this session may read into themes again, wherever anything is new. Azera does that by itself in \
         quiet times, so it is needed only if `themes` lacks what was said just now.",
        Effect::Changes,
        reads_and_writes,
    )),
    tool::<Page, Insights>(
        "reflection_insights",
        "Insights of reflections",
        "Lists the words that the persona's reflections took up most, each with the entries that hold it.",
        Effect::Reads,
        reads,
    ),
    tool::<Page, Writings>(
        "reflections",
        "Reflections",
        "Lists what the persona wrote at the end of each day, newest first.",
        Effect::Reads,
        reads,
    ),
    tool::<Nothing, Composed>(
        "create_reflection",
        "Create a reflection",
        "Has the persona write a journal entry now. It may take minutes.",
        Effect::Adds,
        composes,
    ),
    tool::<Page, Conversations>(
        "sessions",
        "Sessions",
        "Lists the person's conversations with this persona, newest first.",
        Effect::Reads,
        reads_chats,
    ),
    tool::<OfChat, Timeline>(
        "timeline",
        "Timeline",
        "Returns the messages of a conversation, newest first.",
        Effect::Reads,
        reads_chats,
    ),
    tool::<OfProject, Procedures>(
        "procedures",
        "Procedures",
        "Lists commands that were run one after the other in coding sessions, with how often they worked. Use it before \
         running or recommending a build, a test or a deployment in a project.",
        Effect::Reads,
        reads,
    ),
    tool::<Cues, Episodes>(
        "cue_search",
        "Search episodes",
        "Finds coding sessions and everyday conversations by what they were about, in which project, when, by the problem, \
         plan or question, and by how they ended. With `ending` as `open` it lists what nothing shows to be settled.",
        Effect::Reads,
        reads,
    ),
    tool::<OfSession, Chain>(
        "episode_chain",
        "Chain of episodes",
        "Returns all episodes about the same matter, from the first to the one that settled it.",
        Effect::Reads,
        reads,
    ),
    without_quotes(tool::<TwoEpisodes, Kept>(
        "episode_link",
        "Link two episodes",
        "States that one episode came from an earlier one, as a memory of the person. `episode_chain` then returns both. `forget` \
         with the id in the answer undoes it. Use it only if the person said so, or the episodes show it.",
        Effect::Adds,
        reads_and_writes,
    )),
    without_quotes(tool::<ToSave, Saved>(
        "checkpoint_save",
        "Save a checkpoint",
        "Keeps where a piece of work stands, so that a later session can go on with it. It is a memory of the person. One with \
         the same title and project no longer holds then; the ten newest replaced ones are kept, and older ones are forgotten. \
         If that one has the same state, nothing is stored. \
         `forget` removes one, and the older one holds again: to remove all, list with `replaced: true` and forget each.",
        Effect::Replaces,
        reads_and_writes,
    )),
    tool::<ToList, Checkpoints>(
        "checkpoint_list",
        "List checkpoints",
        "Lists what was kept with `checkpoint_save`, newest first, without the states.",
        Effect::Reads,
        reads,
    ),
    tool::<ToRestore, Restored>(
        "checkpoint_restore",
        "Restore a checkpoint",
        "Returns where a piece of work stands, as it was kept with `checkpoint_save`: one by its id, or the newest of a title \
         or project.",
        Effect::Reads,
        reads,
    ),
    tool::<Budget, Quoting>(
        "context_budget",
        "Context of a project",
        "Returns what is remembered of a project within a number of tokens: open problems, commands that work, conventions, \
         preferences, decisions, plans, and how the last sessions ended. Use it when a session in a project begins.",
        Effect::Reads,
        reads,
    ),
    tool::<OfQuestion, Optimized>(
        "optimize_context",
        "Context for a question",
        "Returns the memories that help most with a question, as many as fit into a number of tokens.",
        Effect::Reads,
        reads,
    ),
    tool::<ToContinue, Continued>(
        "compact_restore",
        "Continue a conversation",
        "Returns the newest messages of a conversation, as many as fit into a number of tokens. Use it to go on with one that is \
         no longer in the context.",
        Effect::Reads,
        reads_chats,
    ),
    without_quotes(tool::<Nothing, Counts>(
        "stats",
        "Statistics",
        "Counts the memories by kind.",
        Effect::Reads,
        reads,
    )),
    without_quotes(tool::<ToStore, Stored>(
        "vault_store",
        "Store a secret",
        "Keeps a secret of the person, such as a token or a password, encrypted under a name. It replaces an older value of that \
         name. Secrets are never part of memories: use this instead of remember.",
        Effect::Replaces,
        writes,
    )),
    without_quotes(tool::<Nothing, VaultList>(
        "vault_list",
        "List secrets",
        "Lists the names of the person's secrets, without the values.",
        Effect::Reads,
        lists_vault,
    )),
    without_quotes(tool::<OfEntry, VaultSecret>(
        "vault_get",
        "Get a secret",
        "Returns the value of one of the person's secrets. Use it only for what the person asked for, and repeat it nowhere else.",
        Effect::Reads,
        reads_vault,
    )),
    without_quotes(tool::<OfEntry, Deleted>(
        "vault_delete",
        "Delete a secret",
        "Deletes one of the person's secrets for good, also from backups. This cannot be undone: ask the person first.",
        Effect::Removes,
        writes,
    )),
];

/// Returns the tools that a session may use.
pub(crate) fn allowed(rights: Rights) -> impl Iterator<Item = &'static Declared> {
    TOOLS.iter().filter(move |tool| (tool.needs)(rights))
}

/// Returns true if there is such a tool and a call of it changes something.
pub(crate) fn changes(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name && tool.changes())
}

impl Declared {
    /// Returns the tool as clients see it.
    pub(crate) fn shown(&self) -> Tool {
        let quotes = if self.quotes { QUOTES_DATA } else { "" };
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(self.effect == Effect::Reads)
            .destructive(matches!(self.effect, Effect::Replaces | Effect::Removes))
            .idempotent(self.effect != Effect::Adds)
            .open_world(false);
        Tool::new(self.name, format!("{}{quotes}", self.description), Arc::new((self.input)()))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new((self.output)()))
            .with_annotations(annotations)
    }

    /// Returns true if a call changes something, so it must not be left half done.
    pub(crate) fn changes(&self) -> bool {
        self.effect != Effect::Reads
    }
}
