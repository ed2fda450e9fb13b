use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::Secret;

/// The environment variables that are no overrides of keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Surroundings {
    /// HOME.
    home: Option<PathBuf>,
    /// XDG_DATA_HOME, or the default that the XDG specification gives.
    data_home: Option<PathBuf>,
    /// XDG_CONFIG_HOME, or the default that the XDG specification gives.
    config_home: Option<PathBuf>,
    /// XDG_CACHE_HOME, or the default that the XDG specification gives.
    cache_home: Option<PathBuf>,
    /// AZERA_CONFIG.
    pub(crate) config: Option<PathBuf>,
    /// AZERA_LOG.
    pub(crate) log: Option<String>,
    /// AZERA_MCP_KEY.
    pub(crate) mcp_key: Option<Secret>,
    /// CLAUDE_PROJECT_DIR.
    pub(crate) assistant_project_dir: Option<PathBuf>,
    /// True if NO_COLOR is set or the terminal has no colours.
    pub(crate) colourless: bool,
    /// True if CI is set: nobody answers a question.
    pub(crate) in_ci: bool,
    /// What is known about the terminal.
    pub(crate) terminal: TerminalHints,
}

/// What the environment says about the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalHints {
    /// TERM.
    pub term: String,
    /// TERM_PROGRAM, or LC_TERMINAL.
    pub program: String,
    /// True if TMUX or STY is set.
    pub is_multiplexed: bool,
}

impl Surroundings {
    /// Reads the variables. An empty one counts as unset, because shells and compose files often leave empty ones.
    pub(crate) fn read(env: &HashMap<String, String>) -> Self {
        let text = |name: &str| env.get(name).filter(|value| !value.is_empty());
        // The XDG base directory specification says to ignore a relative path.
        let folder = |name: &str| text(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME");
        let in_home = |path: &str| home.as_ref().map(|home| home.join(path));
        Self {
            data_home: folder("XDG_DATA_HOME").or_else(|| in_home(".local/share")),
            config_home: folder("XDG_CONFIG_HOME").or_else(|| in_home(".config")),
            cache_home: folder("XDG_CACHE_HOME").or_else(|| in_home(".cache")),
            config: text("AZERA_CONFIG").map(PathBuf::from),
            log: text("AZERA_LOG").cloned(),
            mcp_key: text("AZERA_MCP_KEY").cloned().map(Secret::new),
            assistant_project_dir: folder("CLAUDE_PROJECT_DIR"),
            // As no-color.org asks, any non-empty value counts.
            colourless: text("NO_COLOR").is_some() || text("TERM").is_some_and(|term| term == "dumb"),
            in_ci: text("CI").is_some(),
            terminal: TerminalHints {
                term: text("TERM").cloned().unwrap_or_default(),
                program: text("TERM_PROGRAM").or_else(|| text("LC_TERMINAL")).cloned().unwrap_or_default(),
                is_multiplexed: text("TMUX").or_else(|| text("STY")).is_some(),
            },
            home,
        }
    }

    /// Returns the default path of the configuration file.
    pub(crate) fn usual_file(&self) -> Option<PathBuf> {
        self.config_home.as_ref().map(|folder| folder.join("azera/azera.toml"))
    }

    /// Returns the default data folder.
    pub(crate) fn usual_data_dir(&self) -> Option<PathBuf> {
        self.data_home.as_ref().map(|folder| folder.join("azera"))
    }

    /// Returns the default folder of the models.
    pub(crate) fn usual_models_dir(&self) -> Option<PathBuf> {
        self.cache_home.as_ref().map(|folder| folder.join("azera/models"))
    }

    /// Returns the path with a leading `~` replaced by the home folder, if there is one.
    pub(crate) fn expand(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_path_buf(),
        }
    }
}

/// Returns true if the environment sets a variable that a library reads by itself.
pub fn is_in_environment(name: &str) -> bool {
    std::env::vars_os().any(|(key, value)| key == name && !value.is_empty())
}
