//! Checkpoints say where the person stands in a piece of work: `checkpoint_save` keeps one as a statement of the person,
//! `checkpoint_list` lists them, `checkpoint_restore` returns one, and `forget` removes one.

use azera_adapter::{Reading, ShownMemory};
use azera_types::{MemoryId, folded_project_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memories::parse_id;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::statements::{is_kept_by, name, stating};
use crate::texts::QUOTED;
use crate::writing::kept;

/// Most characters of a title, and of the name of a project.
const MAX_NAME_CHARS: usize = 200;

/// Replaced checkpoints of one title and project that are kept: the newest ones. A longer past is forgotten.
const MAX_REPLACED: usize = 10;

/// Most replaced checkpoints that one call forgets.
const MAX_FORGOTTEN: usize = 20;

/// Most bytes of a state.
const MAX_STATE_BYTES: usize = 32 * 1024;

/// The word that a statement begins with, what its first line begins with, and what stands before the name of the project.
const LABEL: &str = "Checkpoint";
const MARK: &str = "Checkpoint \"";
const OF_PROJECT: &str = "\" of the project \"";

/// A checkpoint to keep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToSave {
    /// What it is about, such as `Move the gate to SQLite`; at most 200 characters. One with the same title and project is
    /// replaced.
    title: String,
    /// What is done, what is next, and what to know for it: at most 32,768 bytes. No secrets. Blank space at its end is left
    /// out.
    state: String,
    /// The name of the project.
    #[serde(default)]
    project: Option<String>,
}

/// A checkpoint that was kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Saved {
    /// Its id. `forget` takes it.
    id: String,
    /// The older checkpoint that it replaces. It holds again if the new one is forgotten. It is missing if the newest one had
    /// the same state already: then nothing is stored, and `id` is its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
    /// The checkpoints of the same title and project that were forgotten: those beyond the ten newest replaced ones.
    forgotten: Vec<String>,
    /// True if the search for an older checkpoint stopped early. An older one may then still hold beside this one.
    is_cut: bool,
}

/// Which checkpoints to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToList {
    /// The name of a project. Leave it out for all.
    #[serde(default)]
    project: Option<String>,
    /// True to list those that newer ones replaced, too.
    #[serde(default)]
    replaced: bool,
    /// Most checkpoints of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    limit: Option<usize>,
    /// `next_cursor` of the page before, with the same arguments.
    #[serde(default)]
    cursor: Option<String>,
}

/// A checkpoint without its state.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checkpoint {
    /// Its id. `checkpoint_restore` and `forget` take it.
    id: String,
    /// What it is about.
    title: String,
    /// The name of its project, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// When it was saved (RFC 3339).
    at: String,
    /// The size of its state.
    bytes: usize,
    /// The newer checkpoint that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<String>,
}

/// A page of checkpoints, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checkpoints {
    /// What the texts are.
    notice: &'static str,
    /// The checkpoints. A page may have fewer than asked for, and still not be the last one.
    checkpoints: Vec<Checkpoint>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Which checkpoint to return. Without an id, the newest one that fits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToRestore {
    /// The id of a checkpoint.
    #[serde(default)]
    id: Option<String>,
    /// Its title.
    #[serde(default)]
    title: Option<String>,
    /// The name of its project.
    #[serde(default)]
    project: Option<String>,
}

/// A whole checkpoint.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Restored {
    /// What the text is.
    notice: &'static str,
    /// The checkpoint.
    checkpoint: Checkpoint,
    /// What was saved, as quoted data.
    state: String,
}

/// Returns the statement that a checkpoint is.
fn statement(title: &str, project: Option<&str>, state: &str) -> String {
    let project = project.map(|project| format!("{OF_PROJECT}{project}")).unwrap_or_default();
    format!("{MARK}{title}{project}\"\n{state}")
}

/// Reads a statement. Returns the checkpoint and its state.
fn parse(fact: &ShownMemory) -> Option<(Checkpoint, String)> {
    let (head, state) = fact.text.strip_prefix(MARK)?.split_once("\"\n")?;
    // Neither a title nor the name of a project has a quotation mark.
    let (title, project) = head.split_once(OF_PROJECT).map_or((head, None), |(title, of)| (title, Some(of)));
    let checkpoint = Checkpoint {
        id: fact.id.to_string(),
        title: title.to_owned(),
        project: project.map(str::to_owned),
        at: fact.at.to_string(),
        bytes: state.len(),
        replaced_by: fact.holding.replaced_by.map(|by| by.0.to_string()),
    };
    Some((checkpoint, state.to_owned()))
}

/// What a checkpoint must have.
struct Wanted {
    title: Option<String>,
    /// The folded name of its project.
    project: Option<String>,
    /// True if it must hold still.
    holds: bool,
}

impl Wanted {
    fn new(title: Option<&str>, project: Option<&str>, holds: bool) -> Result<Self, Failure> {
        let title = title.map(|title| name(title, "title", MAX_NAME_CHARS)).transpose()?;
        let project = project.map(|project| name(project, "project", MAX_NAME_CHARS)).transpose()?;
        let project = project.as_deref().map(folded_project_name);
        Ok(Self { title, project, holds })
    }

    fn parse(&self, fact: &ShownMemory) -> Option<(Checkpoint, String)> {
        let holds = fact.holding.held_until.is_none() && fact.holding.replaced_by.is_none();
        parse(fact).filter(|(one, _)| {
            self.title.as_ref().is_none_or(|title| *title == one.title)
                && self
                    .project
                    .as_ref()
                    .is_none_or(|wanted| one.project.as_deref().map(folded_project_name).as_ref() == Some(wanted))
                && (holds || !self.holds)
        })
    }
}

impl Caller {
    pub(crate) async fn checkpoint_save(&self, save: ToSave) -> Result<Saved, Failure> {
        let title = name(&save.title, "title", MAX_NAME_CHARS)?;
        let wanted = Wanted::new(Some(&title), save.project.as_deref(), true)?;
        let state = save.state.trim_end();
        if state.is_empty() || state.len() > MAX_STATE_BYTES {
            let size = state.len();
            return Err(Failure::invalid(format!("`state` has {size} bytes: use 1 to {MAX_STATE_BYTES}.")));
        }
        let _one = stating(&self.session.person).await;
        let at = self.begin().await?;
        let same = |fact: &ShownMemory| wanted.parse(fact).filter(|(one, _)| one.project == wanted.project);
        let mut walk = self.walk(&at, LABEL, None);
        let newest = walk.next(same).await?;
        // A client may send a call again whose answer it lost. That must not push out older states. Stored texts have
        // composed letters.
        let composed = azera_types::Text::new(state);
        if let Some((fact, _)) = newest.as_ref().filter(|(_, (_, stored))| stored == composed.as_str()) {
            return Ok(Saved { id: fact.id.to_string(), replaced: None, forgotten: Vec::new(), is_cut: false });
        }
        let older = newest.map(|(fact, _)| fact.id);
        let is_cut = older.is_none() && walk.rest().is_some();
        let text = statement(&title, wanted.project.as_deref(), state);
        let line = match older {
            Some(older) => format!("/memory update {older} {text}"),
            None => format!("/remember {text}"),
        };
        let id = kept(self.command(&line).await?)?.id;
        let forgotten = match older {
            Some(older) => self.forget_past(&at, older, &wanted).await?,
            None => Vec::new(),
        };
        Ok(Saved { id, replaced: older.map(|id| id.to_string()), forgotten, is_cut })
    }

    /// Forgets the oldest replaced checkpoints of a title and project, behind the one that was replaced just now. Returns
    /// their ids. What cannot be forgotten now is left for the next time.
    async fn forget_past(&self, at: &Reading, newest: MemoryId, of: &Wanted) -> Result<Vec<String>, Failure> {
        let past = Wanted { title: of.title.clone(), project: of.project.clone(), holds: false };
        let replaced = |fact: &ShownMemory| {
            fact.holding.replaced_by?;
            past.parse(fact).filter(|(one, _)| one.project == past.project)
        };
        let (mut walk, mut ids) = (self.walk(at, LABEL, Some(newest)), Vec::new());
        while ids.len() < MAX_REPLACED - 1 + MAX_FORGOTTEN {
            let Some((fact, _)) = walk.next(replaced).await? else { break };
            ids.push(fact.id);
        }
        let mut forgotten = Vec::new();
        // The oldest first: the one that a forgotten one replaced would hold again.
        for id in ids.into_iter().skip(MAX_REPLACED - 1).rev() {
            match self.command(&format!("/forget {id}")).await {
                Ok(_) => forgotten.push(id.to_string()),
                Err(_) => break,
            }
        }
        Ok(forgotten)
    }

    pub(crate) async fn checkpoint_list(&self, of: ToList) -> Result<Checkpoints, Failure> {
        let wanted = Wanted::new(None, of.project.as_deref(), !of.replaced)?;
        let kind = if of.replaced { "all" } else { "holding" };
        let list = List::new("checkpoint_list", &[wanted.project.as_deref().unwrap_or_default(), kind]);
        let before = list.after(of.cursor.as_deref())?.map(parse_id).transpose()?;
        let limit = paging::limit(of.limit)?;
        let at = self.begin().await?;
        let (mut walk, mut checkpoints) = (self.walk(&at, LABEL, before), Vec::new());
        while checkpoints.len() < limit {
            let Some((_, (checkpoint, _))) = walk.next(|fact| wanted.parse(fact)).await? else { break };
            checkpoints.push(checkpoint);
        }
        let next_cursor = walk.rest().map(|last| list.cursor(&last.to_string()));
        Ok(Checkpoints { notice: QUOTED, checkpoints, next_cursor })
    }

    pub(crate) async fn checkpoint_restore(&self, of: ToRestore) -> Result<Restored, Failure> {
        let wanted = Wanted::new(of.title.as_deref(), of.project.as_deref(), of.id.is_none())?;
        let unknown = || Failure::refused("There is no such checkpoint of this person. `checkpoint_list` lists them.");
        let beyond = || {
            Failure::refused(
                "The newest statements have no such checkpoint, and older ones are too many to look through at once. \
                 `checkpoint_list` goes on with `next_cursor`; then restore by the id.",
            )
        };
        let id = of.id.as_deref().map(parse_id).transpose()?;
        let at = self.begin().await?;
        let (checkpoint, state) = match id {
            Some(id) => {
                let fact = self.shown(&at, id).await?.ok_or_else(unknown)?;
                let is_own = is_kept_by(&fact, &self.session.person);
                wanted.parse(&fact).filter(|_| is_own).ok_or_else(unknown)?
            }
            None => {
                let mut walk = self.walk(&at, LABEL, None);
                let found = walk.next(|fact| wanted.parse(fact)).await?;
                found.ok_or_else(|| if walk.rest().is_some() { beyond() } else { unknown() })?.1
            }
        };
        Ok(Restored { notice: QUOTED, checkpoint, state })
    }
}
