//! What a coding assistant passes to a hook.

use std::fs::File;
use std::io::{BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use azera_import::first_folder;
use serde::Deserialize;
use serde_json::json;

/// Most bytes that are read from the assistant.
const MAX_INPUT_BYTES: u64 = 1 << 20;

/// A session of a coding assistant, as it describes it.
#[derive(Debug, Default, Deserialize)]
pub struct Session {
    /// The transcript so far.
    pub transcript_path: Option<PathBuf>,
    /// The folder that the session works in now. A session changes it, such as when it enters a worktree.
    cwd: Option<PathBuf>,
    /// The event that the hook was called for.
    hook_event_name: Option<String>,
}

/// The project of a session.
pub struct Project {
    pub name: String,
    /// The names of the folders around the session's. The session may have begun in a project of such a name, while other
    /// folders had a `.git`.
    pub around: Vec<String>,
}

impl Session {
    /// Reads the session from the input. In a terminal there is none.
    pub fn read() -> anyhow::Result<Self> {
        let mut input = std::io::stdin();
        if input.is_terminal() {
            return Ok(Self::default());
        }
        let mut bytes = Vec::new();
        input.by_ref().take(MAX_INPUT_BYTES).read_to_end(&mut bytes).context("reading the input")?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        // The parser's message may quote the input, which holds what a person wrote.
        match serde_json::from_slice(&bytes) {
            Ok(session) => Ok(session),
            Err(error) => {
                bail!("the input is not the JSON of a hook (line {}, column {})", error.line(), error.column())
            }
        }
    }

    /// Returns the folder that the session began in: the one that the assistant's variable names, or else the first one
    /// in the transcript. The root of the file system names no project, so it counts in neither. The transcript must be a
    /// regular file, because reading another one may never end.
    pub fn began_in(&self, named: Option<&Path>) -> Option<PathBuf> {
        named.filter(|folder| has_name(folder)).map(Path::to_path_buf).or_else(|| {
            let transcript = File::open(self.transcript_path.as_ref()?).ok()?;
            first_folder(BufReader::new(transcript)).map(PathBuf::from)
        })
    }

    /// Returns the project: the given one, or that of the folder with the `.git` around `folder`, or that of `folder`
    /// itself. Without `folder`, or if that is the root of the file system, the one that the session works in now counts.
    pub fn project(&self, given: Option<&str>, folder: Option<&Path>) -> anyhow::Result<Project> {
        if let Some(given) = given {
            return Ok(Project { name: given.to_owned(), around: Vec::new() });
        }
        let here = match folder.filter(|folder| has_name(folder)).or(self.cwd.as_deref()) {
            Some(folder) => folder.to_path_buf(),
            None => std::env::current_dir().context("finding the current folder")?,
        };
        let name_of = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let root = project_folder(&here, |folder| folder.join(".git").exists());
        let name =
            name_of(root).with_context(|| format!("{} has no name; --project names the project", root.display()))?;
        let around = here.ancestors().filter_map(name_of).filter(|around| *around != name).collect();
        Ok(Project { name, around })
    }

    /// Returns the text in the form that the assistant takes.
    pub fn answer(&self, text: &str) -> String {
        match &self.hook_event_name {
            Some(event) => {
                json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}).to_string()
            }
            None => text.to_owned(),
        }
    }
}

fn has_name(folder: &Path) -> bool {
    folder.file_name().is_some()
}

/// Returns the nearest folder around `here` with a repository, or `here` itself. A repository in the root of the file system
/// names no project.
fn project_folder(here: &Path, has_repository: impl Fn(&Path) -> bool) -> &Path {
    here.ancestors().find(|&folder| has_name(folder) && has_repository(folder)).unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_the_root_belongs_to_the_folder_that_it_works_in() {
        let scratch = tempfile::tempdir().unwrap();
        let (app, transcript) = (scratch.path().join("app"), scratch.path().join("session.jsonl"));
        std::fs::create_dir_all(app.join(".git")).unwrap();
        std::fs::write(&transcript, "{\"cwd\":\"/\"}\n").unwrap();
        let root = Some(Path::new("/"));
        let session = |cwd: &Path| Session {
            transcript_path: Some(transcript.clone()),
            cwd: Some(cwd.to_path_buf()),
            ..Session::default()
        };
        let works = session(&app.join("src"));
        assert_eq!(works.began_in(root), None);
        for folder in [root, None] {
            assert_eq!(works.project(None, folder).unwrap().name, "app");
        }
        assert!(session(Path::new("/")).project(None, root).is_err(), "nothing names a project");
        // The first folder that the transcript names counts, wherever the session works later.
        let line = |folder: &Path| json!({ "cwd": folder }).to_string();
        let (boat, gate) = (scratch.path().join("boat"), scratch.path().join("gate"));
        std::fs::write(&transcript, format!("{}\n{}\n{}\n", line(Path::new("/")), line(&boat), line(&gate))).unwrap();
        for works_in in [&boat, &gate] {
            let stop = session(works_in);
            let began_in = stop.began_in(root);
            assert_eq!(began_in.as_ref(), Some(&boat));
            assert_eq!(stop.project(None, began_in.as_deref()).unwrap().name, "boat");
        }
    }

    #[test]
    fn a_repository_in_the_root_names_no_project() {
        let (here, around) = (Path::new("/home/boat"), Path::new("/home"));
        assert_eq!(project_folder(here, |folder| folder == Path::new("/")), here);
        assert_eq!(project_folder(here, |folder| folder != here), around);
    }
}
