//! Tools about projects: `procedures` and `context_budget`.

use azera_adapter::ShownProcedure;
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

/// Returns how many tokens an answer may have.
pub(crate) fn tokens(asked: Option<usize>) -> Result<usize, Failure> {
    let tokens = asked.unwrap_or(TOKENS);
    match (1..=MAX_TOKENS).contains(&tokens) {
        true => Ok(tokens),
        false => Err(Failure::invalid(format!("{tokens} tokens: use 1 to {MAX_TOKENS}."))),
    }
}

/// Returns true if a text has every word that is looked for.
pub(crate) fn has_words(text: &str, wanted: Option<&str>) -> bool {
    let text = text.to_lowercase();
    wanted.is_none_or(|wanted| wanted.to_lowercase().split_whitespace().all(|word| text.contains(word)))
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

    pub(crate) async fn context_budget(&self, budget: Budget) -> Result<Quoting, Failure> {
        let tokens = tokens(budget.tokens)?;
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
