//! Task behaviours: reads them, and chooses the one for a message.

use crate::cues::{LOSS, built_in_cues, is_code_task};
use crate::limits::{MAX_CUE_CHARS, MAX_CUE_SCAN_CHARS, MAX_CUES, MAX_TASKS};
use crate::lines::{Line, fence_delimiter, heading, join, scan};
use crate::parts::{Part, label_of, split_at_headings, take_labelled};
use crate::persona::{Persona, TaskBehaviour};
use crate::problem::Problems;
use crate::words::{Inflection, contains_phrase};

/// Reads the section's lines: `### If coding` blocks, or `- **If coding:** ...` bullets.
pub(crate) fn read_tasks(lines: &[Line<'_>], problems: &mut Problems) -> Vec<TaskBehaviour> {
    let (lead, blocks) = split_at_headings(lines, 3, problems);
    let (lead, mut parts) = take_labelled(&lead, |name| strip_condition(name).is_some(), problems);
    if let Some(line) = lead.iter().find(|line| !line.text.trim().is_empty()) {
        problems.error(line.number, "this belongs to no task; begin it with `### If coding` or the like");
    }
    parts.extend(blocks.iter().map(|block| Part {
        title: block.title.to_owned(),
        line: block.line,
        text: join(&block.lines),
    }));
    if parts.len() > MAX_TASKS {
        let line = parts.get(MAX_TASKS).map_or(1, |part| part.line);
        problems.error(line, format!("there are {} task behaviours; at most {MAX_TASKS} are allowed", parts.len()));
        parts.truncate(MAX_TASKS);
    }
    let mut tasks: Vec<TaskBehaviour> = Vec::new();
    for part in parts {
        let task = task_name(&part.title);
        let (cues, text) = take_cues(&part.text, part.line, problems);
        if task.is_empty() {
            problems.error(part.line, "this task has no name; write it as in `### If coding`");
        } else if text.is_empty() {
            problems.error(part.line, format!("`If {task}` says nothing; write what the persona does then"));
        } else if tasks.iter().any(|known| known.task.to_lowercase() == task.to_lowercase()) {
            problems.error(part.line, format!("`If {task}` is given twice; join the two"));
        } else {
            tasks.push(TaskBehaviour { task, cues, text });
        }
    }
    tasks
}

fn strip_condition(title: &str) -> Option<&str> {
    let (word, rest) = title.split_once(char::is_whitespace)?;
    ["if", "when"].iter().any(|known| known.eq_ignore_ascii_case(word)).then_some(rest)
}

fn task_name(title: &str) -> String {
    let name = strip_condition(title).unwrap_or(title).trim().trim_end_matches([':', ' ']);
    // Read like a heading, so that the normal form means the same.
    heading(&format!("# {name}")).map_or(name, |(_, name)| name).to_owned()
}

/// Takes `Cues: ...` lines from the beginning of a task's text.
fn take_cues(text: &str, line: usize, problems: &mut Problems) -> (Vec<String>, String) {
    let scanned = scan(text, line + 1);
    let mut lines = scanned.lines.as_slice();
    let mut cues: Vec<String> = Vec::new();
    while let Some((first, rest)) = lines.split_first() {
        if first.text.trim().is_empty() {
            lines = rest;
            continue;
        }
        let Some(label) = label_of(first).filter(|label| label.name.eq_ignore_ascii_case("cues")) else { break };
        for cue in label.rest.split(',') {
            let unquoted = |c: char| c.is_whitespace() || "\"'`“”‘’".contains(c);
            let cue = cue.trim_matches(unquoted).to_lowercase();
            if cue.chars().count() > MAX_CUE_CHARS {
                problems.error(line, format!("a cue is longer than {MAX_CUE_CHARS} characters; use a word or two"));
            } else if !cue.is_empty() && !cues.contains(&cue) {
                cues.push(cue);
            }
        }
        lines = rest;
    }
    if cues.len() > MAX_CUES {
        problems.error(line, format!("there are {} cues; at most {MAX_CUES} are allowed", cues.len()));
    }
    (cues, join(lines))
}

/// Returns true if a message speaks of the loss of somebody.
pub fn speaks_of_loss(message: &str) -> bool {
    let words = message.chars().take(MAX_CUE_SCAN_CHARS).collect::<String>().to_lowercase();
    LOSS.iter().any(|cue| contains_phrase(&words, cue, Inflection::Verb))
}

impl Persona {
    /// Returns the task behaviour for a message: the one with most points for its cues in the message, the first in the
    /// file among equals. A cue counts as many points as it has words. For tasks about code, a code block counts three,
    /// and inline code one. `None` if no task has a point.
    pub fn task_behaviour_for(&self, message: &str) -> Option<&TaskBehaviour> {
        if self.task_behaviours.is_empty() {
            return None;
        }
        let head: String = message.chars().take(MAX_CUE_SCAN_CHARS).collect();
        let code_block = head.lines().any(|line| fence_delimiter(line).is_some());
        let code_in_line = head.matches('`').count() >= 2;
        let words = head.to_lowercase();
        let mut best: Option<(usize, &TaskBehaviour)> = None;
        for task in &self.task_behaviours {
            let own = task.cues.iter().map(String::as_str);
            let mut score: usize = own
                .chain(built_in_cues(&task.task).iter().copied().filter(|cue| !task.cues.iter().any(|own| own == cue)))
                .filter(|cue| contains_phrase(&words, cue, Inflection::Verb))
                .map(|cue| cue.split_whitespace().count())
                .sum();
            if is_code_task(&task.task) {
                score += usize::from(code_block) * 3 + usize::from(code_in_line);
            }
            if score > best.map_or(0, |(score, _)| score) {
                best = Some((score, task));
            }
        }
        best.map(|(_, task)| task)
    }
}
