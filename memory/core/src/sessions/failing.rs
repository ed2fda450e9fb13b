//! The commands whose last run failed.

use super::command::{checks, shows_solved};
use super::topics::{Words, names, shares};
use super::{Problem, ProblemKind};

/// Most commands that are kept, the newest ones.
const MAX_FAILING: usize = 20;

/// The commands of a session whose last run in it failed, the newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct Failing(Vec<Problem>);

impl Failing {
    /// Notes a command that failed.
    pub(super) fn failed(&mut self, problem: Problem) {
        self.0.retain(|known| known.text != problem.text);
        self.0.push(problem);
        if self.0.len() > MAX_FAILING {
            // A command that checks nothing is given up first.
            let at = self.0.iter().position(|known| !checks(&known.text)).unwrap_or(0);
            self.0.remove(at);
        }
    }

    /// Notes a command that worked. Returns true if it shows that another one works now.
    pub(super) fn worked(&mut self, command: &str) -> bool {
        let known = self.0.len();
        self.0.retain(|failed| !shows_solved(command, &failed.text));
        self.0.len() < known
    }

    /// Notes that the person said that a problem is solved. A complaint that names nothing is about all of them.
    pub(super) fn settled(&mut self, problem: &Problem, telling: &Words) {
        if problem.kind == ProblemKind::Command {
            self.worked(&problem.text);
        } else if names(&problem.text).is_empty() {
            self.0.clear();
        } else {
            self.0.retain(|failed| !shares(&names(&failed.text), telling));
        }
    }

    pub(super) fn has(&self, command: &str) -> bool {
        self.0.iter().any(|failed| failed.text.as_str() == command)
    }

    /// Returns the newest command that tests, builds or checks something.
    pub(super) fn newest_check(&self) -> Option<&Problem> {
        self.0.iter().rev().find(|failed| checks(&failed.text))
    }
}
