//! Tools about episodes, which are coding sessions and everyday conversations: `cue_search` and `episode_chain`. `links` has
//! `episode_link`, `chains` says which episodes belong together.

mod chains;
mod links;

use std::collections::{BTreeSet, HashMap};

use azera_adapter::{ShownConversation, ShownEvidence, ShownSession};
use azera_types::{MessageId, Timestamp, folded_project_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coding::has_words;
use crate::failure::Failure;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;

use chains::Chains;
use links::StatedCause;
pub(crate) use links::TwoEpisodes;

/// Which kind of episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A session with a coding assistant.
    Coding,
    /// An everyday conversation.
    Conversation,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Coding => "coding session",
            Self::Conversation => "conversation",
        }
    }
}

/// How an episode ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    /// Without anything that is known to be open.
    Ended,
    /// With a problem, plan or question that nothing shows to be settled.
    Open,
    /// With one that a later episode went on with.
    Continued,
    /// With one that was settled.
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

/// What is known of an episode that is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cues {
    /// What it was about: words of its title, or names of people and things in it.
    #[serde(default)]
    what: Option<String>,
    /// Which kind: coding sessions or everyday conversations. Leave it out for both.
    #[serde(default)]
    kind: Option<Kind>,
    /// Where it was: the name of a project. Conversations belong to none.
    #[serde(default)]
    project: Option<String>,
    /// Where a conversation was: words of the name of its chat.
    #[serde(default)]
    place: Option<String>,
    /// Why it matters: words of its problem, such as a command that failed or a plan, or of a reason that somebody gave.
    #[serde(default)]
    why: Option<String>,
    /// How it ended.
    #[serde(default)]
    ending: Option<Ending>,
    /// Only episodes that ended at this time or later (RFC 3339).
    #[serde(default)]
    since: Option<String>,
    /// Only episodes that began before this time (RFC 3339).
    #[serde(default)]
    until: Option<String>,
    /// Most episodes of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    limit: Option<usize>,
    /// `next_cursor` of the page before, with the same arguments.
    #[serde(default)]
    cursor: Option<String>,
}

/// What shows a problem, or its end.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Evidence {
    /// What it is, such as `failing command`, `plan`, `unanswered question`, `reason` or `solved`.
    kind: &'static str,
    /// The command, or the words.
    text: String,
    /// When it was seen (RFC 3339).
    at: String,
    /// The coding session or chat in which it was seen.
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

/// What the reason in a conversation points at.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CausedBy {
    /// The id of the earlier conversation.
    session: String,
    /// What the same person said there.
    said: Evidence,
}

/// A coding session, or a conversation between two quiet times.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Episode {
    /// Its id. `episode_chain` takes it.
    session: String,
    /// `coding session` or `conversation`.
    kind: &'static str,
    /// The project of a coding session.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// The name of the chat of a conversation, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// What was asked first, or what a conversation was about in somebody's own words.
    title: String,
    /// The people who spoke in a conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    people: Vec<String>,
    /// Other names that they mentioned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// When it began (RFC 3339).
    began_at: String,
    /// When its last message was said (RFC 3339).
    ended_at: String,
    /// Number of the person's messages in a coding session, and of all in a conversation.
    requests: usize,
    /// Number of commands that were run.
    commands: usize,
    /// `ended` without anything that is known to be open, `open`, `continued` in a later episode, or `resolved`.
    ending: &'static str,
    /// The problem, plan or question.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Evidence>,
    /// What shows that it is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    solved: Option<Evidence>,
    /// A reason that somebody gave in a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Evidence>,
    /// The earlier conversation that the reason points at.
    #[serde(skip_serializing_if = "Option::is_none")]
    caused_by: Option<CausedBy>,
    /// The earlier episodes that the person named as causes, with `episode_link`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stated_causes: Vec<StatedCause>,
    /// Other episodes about the same matter, the oldest first.
    linked: Vec<String>,
    /// The memory that the title stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
}

impl From<ShownSession> for Episode {
    fn from(shown: ShownSession) -> Self {
        Self {
            session: shown.id.to_string(),
            kind: Kind::Coding.as_str(),
            project: Some(shown.project),
            place: None,
            title: shown.title,
            people: Vec::new(),
            names: Vec::new(),
            began_at: shown.span.0.to_string(),
            ended_at: shown.span.1.to_string(),
            requests: shown.requests,
            commands: shown.commands,
            ending: shown.ending,
            problem: shown.problem.map(Evidence::from),
            solved: shown.solved.map(Evidence::from),
            why: None,
            caused_by: None,
            stated_causes: Vec::new(),
            linked: shown.linked.iter().map(ToString::to_string).collect(),
            memory: shown.memory.map(|id| id.to_string()),
        }
    }
}

impl From<ShownConversation> for Episode {
    fn from(shown: ShownConversation) -> Self {
        // The newest matter that the ending is about.
        let matter = shown.matters.into_iter().rev().find(|matter| matter.state == shown.ending);
        let (problem, solved) = matter.map_or((None, None), |matter| (Some(matter.evidence), matter.solved));
        Self {
            session: shown.id.to_string(),
            kind: Kind::Conversation.as_str(),
            project: None,
            place: shown.place,
            title: shown.title,
            people: shown.people,
            names: shown.names,
            began_at: shown.span.0.to_string(),
            ended_at: shown.span.1.to_string(),
            requests: shown.messages,
            commands: 0,
            ending: shown.ending,
            problem: problem.map(Evidence::from),
            solved: solved.map(Evidence::from),
            why: shown.why.map(Evidence::from),
            caused_by: shown.cause.map(|(id, said)| CausedBy { session: id.to_string(), said: said.into() }),
            stated_causes: Vec::new(),
            linked: Vec::new(),
            memory: shown.memory.map(|id| id.to_string()),
        }
    }
}

/// An episode with its time, by which both kinds are put in one order.
struct Timed {
    span: (Timestamp, Timestamp),
    episode: Episode,
}

/// A page of episodes, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Episodes {
    /// What the texts are.
    notice: &'static str,
    /// The episodes.
    sessions: Vec<Episode>,
    /// True if only the newest links that the person stated were read. Older ones may be missing.
    links_cut: bool,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An episode whose chain to follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfSession {
    /// The id of an episode, from `cue_search`.
    session: String,
}

/// Episodes about one matter, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Chain {
    /// What the texts are.
    notice: &'static str,
    /// The episodes.
    sessions: Vec<Episode>,
    /// True if only the newest links that the person stated were read. Older ones may be missing.
    links_cut: bool,
}

fn moment(name: &str, given: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let parse = |text: &str| {
        let wrong = |_| Failure::invalid(format!("`{name}` is no time. Write it like 2026-03-01T10:00:00Z."));
        text.trim().parse::<Timestamp>().map_err(wrong)
    };
    given.map(parse).transpose()
}

impl Cues {
    fn list(&self) -> List {
        let asked = [&self.what, &self.project, &self.place, &self.why, &self.since, &self.until];
        let mut asked: Vec<&str> = asked.iter().map(|cue| cue.as_deref().unwrap_or_default()).collect();
        asked.push(self.ending.map_or("", Ending::as_str));
        asked.push(self.kind.map_or("", Kind::as_str));
        List::new("cue_search", &asked)
    }

    fn fits(&self, found: &Timed, since: Option<Timestamp>, until: Option<Timestamp>) -> bool {
        let one = &found.episode;
        let about = format!("{} {} {}", one.title, one.people.join(" "), one.names.join(" "));
        let reasons: Vec<&str> = one.problem.iter().chain(&one.why).map(|it| it.text.as_str()).collect();
        // Projects are named in this form.
        let project = self.project.as_deref().map(folded_project_name);
        has_words(&about, self.what.as_deref())
            && self.kind.is_none_or(|kind| kind.as_str() == one.kind)
            && (project.is_none() || project == one.project)
            && (self.place.is_none() || has_words(one.place.as_deref().unwrap_or_default(), self.place.as_deref()))
            && (self.why.is_none() || !reasons.is_empty() && has_words(&reasons.join(" "), self.why.as_deref()))
            && self.ending.is_none_or(|ending| ending.as_str() == one.ending)
            && since.is_none_or(|since| found.span.1 >= since)
            && until.is_none_or(|until| found.span.0 < until)
    }
}

/// Names in each conversation the others that it goes on with or whose reason it points at, and those that do so with it.
fn with_links(conversations: Vec<ShownConversation>) -> Vec<Timed> {
    let mut chains = Chains::default();
    {
        let numbers: HashMap<&MessageId, usize> =
            conversations.iter().enumerate().map(|(number, one)| (&one.id, number)).collect();
        for (number, one) in conversations.iter().enumerate() {
            // A conversation may go on with one and have its reason in another. Each may be one that is not listed.
            let cause = one.cause.as_ref().map(|(earlier, _)| earlier);
            let earlier = one.continues.iter().chain(cause).filter_map(|earlier| numbers.get(earlier));
            earlier.for_each(|earlier| chains.join(number, *earlier));
        }
    }
    let timed = |one: ShownConversation| Timed { span: one.span, episode: Episode::from(one) };
    let mut found: Vec<Timed> = conversations.into_iter().map(timed).collect();
    let all = 0..found.len();
    chains.name_in(&mut found, all);
    found
}

impl Caller {
    /// Returns the episodes that may be read, the newest first, and whether stated links may be missing. An episode may be
    /// linked with any other, so all are read.
    async fn all_episodes(&self) -> Result<(Vec<Timed>, bool), Failure> {
        let (reader, platform) = (&self.engine.sessions, &self.session.platform);
        let sessions = reader.coding_sessions(platform, self.begin().await?, None).await?.into_iter();
        let mut found: Vec<Timed> = sessions.map(|one| Timed { span: one.span, episode: Episode::from(one) }).collect();
        found.extend(with_links(reader.conversations(platform, self.begin().await?).await?));
        // The sort keeps the order among equals.
        found.sort_by_key(|one| std::cmp::Reverse(one.span.1));
        let is_cut = self.add_stated_links(&mut found).await?;
        Ok((found, is_cut))
    }

    pub(crate) async fn cue_search(&self, cues: Cues) -> Result<Episodes, Failure> {
        let (since, until) = (moment("since", cues.since.as_deref())?, moment("until", cues.until.as_deref())?);
        let list = cues.list();
        let (after, limit) = (list.after(cues.cursor.as_deref())?, paging::limit(cues.limit)?);
        let (mut found, links_cut) = self.all_episodes().await?;
        found.retain(|one| cues.fits(one, since, until));
        let (page, next_cursor) = paging::page(&list, found, after, limit, |one: &Timed| one.episode.session.clone())?;
        let sessions = page.into_iter().map(|one| one.episode).collect();
        Ok(Episodes { notice: QUOTED, sessions, links_cut, next_cursor })
    }

    pub(crate) async fn episode_chain(&self, of: OfSession) -> Result<Chain, Failure> {
        let (mut all, links_cut) = self.all_episodes().await?;
        let unknown = || Failure::refused(format!("There is no episode {:?}. `cue_search` lists them.", of.session));
        let first = all.iter().find(|one| one.episode.session == of.session).ok_or_else(unknown)?;
        let mut wanted: BTreeSet<String> = first.episode.linked.iter().cloned().collect();
        wanted.insert(of.session);
        all.retain(|one| wanted.contains(&one.episode.session));
        all.reverse();
        Ok(Chain { notice: QUOTED, sessions: all.into_iter().map(|one| one.episode).collect(), links_cut })
    }
}
