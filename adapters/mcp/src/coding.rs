//! Tools about coding sessions: `procedures`, `cue_search`, `episode_chain` and `context_budget`.

use azera_adapter::{ShownEvidence, ShownProcedure, ShownSession};
use azera_types::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memories::Quoting;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;

/// Fewest tries unless given.
const TRIES: usize = 2;

/// Tokens of a project's context unless given, and at most.
const TOKENS: usize = 2_000;
const MAX_TOKENS: usize = 32_000;

/// Which procedures to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfProject {
    /// The name of a project. Leave it out for all projects of the person.
    #[serde(default)]
    project: Option<String>,
    /// Words that a command must contain, such as `test`.
    #[serde(default)]
    words: Option<String>,
    /// List only what was tried so often; 2 unless given.
    #[serde(default)]
    min_tries: Option<usize>,
    /// Most procedures of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    limit: Option<usize>,
    /// `next_cursor` of the page before, with the same arguments.
    #[serde(default)]
    cursor: Option<String>,
}

/// Commands that were run one after the other.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Procedure {
    /// The project.
    project: String,
    /// The commands in their order. `…` stands for what is not kept, such as a secret.
    steps: Vec<String>,
    /// How often the last step was run to a known end after all steps before it had worked.
    tries: usize,
    /// In how many of these tries it worked.
    successes: usize,
    /// How large a share of its tries works at least, with 95 % confidence, for the step that is least sure; 0 to 1.
    lower_bound: f64,
    /// When they were run first (RFC 3339).
    first_at: String,
    /// When they were run last (RFC 3339).
    last_at: String,
    /// The memories of the newest messages for which they were run.
    memories: Vec<String>,
}

impl From<ShownProcedure> for Procedure {
    fn from(shown: ShownProcedure) -> Self {
        Self {
            project: shown.project,
            steps: shown.steps,
            tries: shown.tries,
            successes: shown.worked,
            lower_bound: shown.sure,
            first_at: shown.span.0.to_string(),
            last_at: shown.span.1.to_string(),
            memories: shown.memories.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A page of procedures, the surest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Procedures {
    /// What the texts are.
    notice: &'static str,
    /// The procedures.
    procedures: Vec<Procedure>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    /// Without a known problem.
    Ended,
    /// With a problem that nothing shows to be solved.
    Open,
    /// With a problem that a later session went on with.
    Continued,
    /// With a problem that was solved.
    Resolved,
}

impl Ending {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Open => "open",
            Self::Continued => "continued",
            Self::Resolved => "resolved",
        }
    }
}

/// What is known of a session that is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cues {
    /// What it was about: words of its title.
    #[serde(default)]
    what: Option<String>,
    /// Where it was: the name of a project.
    #[serde(default)]
    project: Option<String>,
    /// Why it matters: words of its problem, such as a command that failed.
    #[serde(default)]
    why: Option<String>,
    /// How it ended.
    #[serde(default)]
    ending: Option<Ending>,
    /// Only sessions that ended at this time or later (RFC 3339).
    #[serde(default)]
    since: Option<String>,
    /// Only sessions that began before this time (RFC 3339).
    #[serde(default)]
    until: Option<String>,
    /// Most sessions of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    limit: Option<usize>,
    /// `next_cursor` of the page before, with the same arguments.
    #[serde(default)]
    cursor: Option<String>,
}

/// What shows a problem, or its end.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Evidence {
    /// What it is, such as `failing command`, `said to fail` or `solved`.
    kind: &'static str,
    /// The command, or the words.
    text: String,
    /// When it was seen (RFC 3339).
    at: String,
    /// The session in which it was seen.
    session: String,
    /// The memory that it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
}

impl From<ShownEvidence> for Evidence {
    fn from(shown: ShownEvidence) -> Self {
        Self {
            kind: shown.kind,
            text: shown.text,
            at: shown.at.to_string(),
            session: shown.session.to_string(),
            memory: shown.memory.map(|id| id.to_string()),
        }
    }
}

/// A coding session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CodingSession {
    /// Its id. `episode_chain` takes it.
    session: String,
    /// The project.
    project: String,
    /// What was asked first.
    title: String,
    /// When it began (RFC 3339).
    began_at: String,
    /// When its last message was said (RFC 3339).
    ended_at: String,
    /// Number of the person's messages.
    requests: usize,
    /// Number of commands that were run.
    commands: usize,
    /// `ended` without a known problem, `open`, `continued` in a later session, or `resolved`.
    ending: &'static str,
    /// The problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Evidence>,
    /// What shows that it is solved.
    #[serde(skip_serializing_if = "Option::is_none")]
    solved: Option<Evidence>,
    /// Other sessions about the same problem, the oldest first.
    linked: Vec<String>,
    /// The memory of its first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
}

impl From<ShownSession> for CodingSession {
    fn from(shown: ShownSession) -> Self {
        Self {
            session: shown.id.to_string(),
            project: shown.project,
            title: shown.title,
            began_at: shown.span.0.to_string(),
            ended_at: shown.span.1.to_string(),
            requests: shown.requests,
            commands: shown.commands,
            ending: shown.ending,
            problem: shown.problem.map(Evidence::from),
            solved: shown.solved.map(Evidence::from),
            linked: shown.linked.iter().map(ToString::to_string).collect(),
            memory: shown.memory.map(|id| id.to_string()),
        }
    }
}

/// A page of sessions, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CodingSessions {
    /// What the texts are.
    notice: &'static str,
    /// The sessions.
    sessions: Vec<CodingSession>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A session whose chain to follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfSession {
    /// The id of a coding session, from `cue_search`.
    session: String,
}

/// Sessions about one problem, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Chain {
    /// What the texts are.
    notice: &'static str,
    /// The sessions.
    sessions: Vec<CodingSession>,
}

/// A project, and how much to tell of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    /// The name of the project.
    project: String,
    /// About how many tokens to return at most, up to 32,000; 2,000 unless given.
    #[serde(default)]
    tokens: Option<usize>,
}

/// Returns true if a text has every word that is looked for.
fn has_words(text: &str, wanted: Option<&str>) -> bool {
    let text = text.to_lowercase();
    wanted.is_none_or(|wanted| wanted.to_lowercase().split_whitespace().all(|word| text.contains(word)))
}

fn moment(name: &str, given: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let parse = |text: &str| {
        let wrong = |_| Failure::invalid(format!("`{name}` is no time. Write it like 2026-03-01T10:00:00Z."));
        text.trim().parse::<Timestamp>().map_err(wrong)
    };
    given.map(parse).transpose()
}

impl Caller {
    pub(crate) async fn procedures(&self, of: OfProject) -> Result<Procedures, Failure> {
        let tries = of.min_tries.unwrap_or(TRIES);
        let asked = [of.project.as_deref(), of.words.as_deref()].map(Option::unwrap_or_default);
        let list = List::new("procedures", &[asked[0], asked[1], &tries.to_string()]);
        let (after, limit) = (list.after(of.cursor.as_deref())?, paging::limit(of.limit)?);
        let at = self.begin().await?;
        let mut found = self.engine.sessions.procedures(&self.session.platform, at, of.project).await?;
        found.retain(|one| one.tries >= tries && has_words(&one.steps.join(" "), of.words.as_deref()));
        let key = |one: &ShownProcedure| format!("{}\n{}", one.project, one.steps.join("\n"));
        let (page, next_cursor) = paging::page(&list, found, after, limit, key)?;
        Ok(Procedures { notice: QUOTED, procedures: page.into_iter().map(Procedure::from).collect(), next_cursor })
    }

    pub(crate) async fn cue_search(&self, cues: Cues) -> Result<CodingSessions, Failure> {
        let (since, until) = (moment("since", cues.since.as_deref())?, moment("until", cues.until.as_deref())?);
        let asked = [&cues.what, &cues.project, &cues.why, &cues.since, &cues.until];
        let mut asked: Vec<&str> = asked.iter().map(|cue| cue.as_deref().unwrap_or_default()).collect();
        asked.push(cues.ending.map_or("", Ending::as_str));
        let list = List::new("cue_search", &asked);
        let (after, limit) = (list.after(cues.cursor.as_deref())?, paging::limit(cues.limit)?);
        let at = self.begin().await?;
        let found = self.engine.sessions.coding_sessions(&self.session.platform, at, cues.project.clone()).await?;
        let fits = |one: &ShownSession| {
            let problem = one.problem.as_ref().map_or("", |problem| &problem.text);
            has_words(&one.title, cues.what.as_deref())
                && (cues.why.is_none() || one.problem.is_some() && has_words(problem, cues.why.as_deref()))
                && cues.ending.is_none_or(|ending| ending.as_str() == one.ending)
                && since.is_none_or(|since| one.span.1 >= since)
                && until.is_none_or(|until| one.span.0 < until)
        };
        let found = found.into_iter().filter(fits).collect();
        let (page, next_cursor) = paging::page(&list, found, after, limit, |one: &ShownSession| one.id.to_string())?;
        Ok(CodingSessions {
            notice: QUOTED,
            sessions: page.into_iter().map(CodingSession::from).collect(),
            next_cursor,
        })
    }

    pub(crate) async fn episode_chain(&self, of: OfSession) -> Result<Chain, Failure> {
        let at = self.begin().await?;
        let mut all = self.engine.sessions.coding_sessions(&self.session.platform, at, None).await?;
        let unknown =
            || Failure::refused(format!("There is no coding session {:?}. `cue_search` lists them.", of.session));
        let first = all.iter().find(|one| one.id.as_str() == of.session).ok_or_else(unknown)?;
        let (id, linked) = (first.id.clone(), first.linked.clone());
        all.retain(|one| one.id == id || linked.contains(&one.id));
        all.reverse();
        Ok(Chain { notice: QUOTED, sessions: all.into_iter().map(CodingSession::from).collect() })
    }

    pub(crate) async fn context_budget(&self, budget: Budget) -> Result<Quoting, Failure> {
        let tokens = budget.tokens.unwrap_or(TOKENS);
        if !(1..=MAX_TOKENS).contains(&tokens) {
            return Err(Failure::invalid(format!("{tokens} tokens: use 1 to {MAX_TOKENS}.")));
        }
        let at = self.begin().await?;
        let project = budget.project.clone();
        let text = self.engine.sessions.project_context(&self.session.platform, at, project, tokens).await?;
        let unknown = || {
            Failure::refused(format!(
                "There is no project {:?} that this session may read. `azera import --project` and `azera hook` make them.",
                budget.project
            ))
        };
        Ok(Quoting { notice: QUOTED, text: text.ok_or_else(unknown)? })
    }
}
