use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::discord::Discord;
use crate::error::{Error, Origin, Problem};
use crate::gardener::Gardener;
use crate::hearth::Hearth;
use crate::http::Http;
use crate::images::Images;
use crate::known;
use crate::left_out::{LeftOut, is_optional};
use crate::matrix::Matrix;
use crate::mind::Mind;
use crate::projects::Projects;
use crate::read::Draft;
use crate::rerank::{RerankServer, Reranker};
use crate::sections::{
    Backup, Chat, ChatServer, Data, EmbeddingServer, Log, Memory, Models, Sampling, ServerApi, VectorServer,
    WorkingServer,
};
use crate::speech::{RecognitionServer, SpeechServer};
use crate::surroundings::{Surroundings, TerminalHints};
use crate::telemetry::Telemetry;
use crate::vault::Vault;
use crate::vision::VisionServer;
use crate::voice::Voice;

/// The most tokens in a reply where no number is set.
const REPLY_TOKENS: u32 = 512;

/// The room for a reply that a long prompt must leave where no number is set.
const LEAST_REPLY_TOKENS: u32 = 256;

/// The share of the context that an unset length of the reply may take, as a divisor.
const REPLY_OF_CONTEXT: u32 = 4;

/// The largest configuration file, in bytes. The complete example has a sixth of it.
pub const MAX_FILE_BYTES: u64 = 128 * 1024;

/// What follows the name of the data folder in the name of the vault's key file.
const VAULT_KEY: &str = ".vault-key";

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where Azera stores its data.
    pub data: Data,
    /// Which models run, and how.
    pub models: Models,
    /// A server whose model answers instead of a model on this machine. Azera sends it the conversations.
    pub chat_server: ChatServer,
    /// A server that computes embeddings instead of a model on this machine. Azera sends it every memory. After a
    /// change of model or server, Azera embeds all memories again.
    pub embedding_server: EmbeddingServer,
    /// A server with a model that reads a question and a memory together (a cross-encoder) and orders what recall found.
    /// Azera sends it questions and the best memories for them. While it does not answer, recall keeps its own order.
    pub rerank_server: RerankServer,
    /// The model on this machine that reads a question and a memory together (a cross-encoder) and orders what recall
    /// found. Azera uses one that is installed, and fetches none by itself.
    pub reranker: Reranker,
    /// How the next token is chosen. A key that is unset takes the measured value of the model's family.
    pub sampling: Sampling,
    /// What is remembered, and how it is found.
    pub memory: Memory,
    /// A Redis or Dragonfly server that stores working memory (the embeddings of the last days) instead of files on
    /// this machine. The operator of that server can guess much of a text from its embedding. While the server is
    /// unreachable, Azera uses the files.
    pub working_server: WorkingServer,
    /// A Qdrant server that holds a copy of the vector index and searches it. It receives numbers, times, vectors, and
    /// tokens that stand for personas and places, but no text and no id. The operator of that server can guess much of
    /// a text, including names, from its vector. While the server is unreachable, Azera searches its own index, which
    /// is always complete.
    pub vector_server: VectorServer,
    /// Conversations.
    pub chat: Chat,
    /// How a persona's mind changes: what tires it, how moods pass, when it dreams and reflects. Mood, energy, focus
    /// and sleep pressure go from 0 to 1. A persona has one mind for the public chats of a realm, and one for each
    /// private chat. A realm is a Discord server, a Matrix space or a Matrix room without a space.
    pub mind: Mind,
    /// What a persona writes between messages: its diary, its journal, its dreams and its notes. This asks the model
    /// only in quiet times; live chat goes first. Hours are those of `time_zone`. A range of hours includes its first
    /// and excludes its last; two equal hours make an empty range.
    pub gardener: Gardener,
    /// Coding sessions, project by project, as `azera hook` and `azera import` bring them.
    pub projects: Projects,
    /// Learning in the weights. At rest, personas train on what surprised them in a place, and then speak a little
    /// differently there. Only people who opted in (`/hearth opt-in`) are learned from. What a persona learns in a place
    /// is used only there.
    pub hearth: Hearth,
    /// Voice messages: heard where they are for a persona, and answered by voice.
    pub voice: Voice,
    /// A server that recognises speech instead of the model on this machine. Azera sends it what people say. While it
    /// does not answer, the model on this machine takes its place.
    pub recognition_server: RecognitionServer,
    /// A server that speaks instead of the voice on this machine. Azera sends it its replies, sentence by sentence.
    /// While it does not answer, the voice on this machine takes its place.
    pub speech_server: SpeechServer,
    /// Rooms on a Matrix homeserver. `azera run` serves them.
    pub matrix: Matrix,
    /// The bot on Discord. bot/docs/discord.md says how to get one.
    pub discord: Discord,
    /// The web of `azera run`: an HTTP server for browsers, programs and monitoring. bot/docs/web.md describes it.
    pub http: Http,
    /// A server that draws pictures for `/imagine` and for personas. Azera sends it the prompts. bot/docs/pictures.md
    /// says how to get one.
    pub images: Images,
    /// A server with a model that sees. Azera sends it the pictures that people show to a persona. Its
    /// answer counts as a guess.
    pub vision_server: VisionServer,
    /// Secrets that are encrypted at rest. Each secret in this file can be `"vault:NAME"`; `azera vault set NAME` stores it.
    pub vault: Vault,
    /// Backups of the memory. `azera restore` brings one back.
    pub backup: Backup,
    /// The log. It never contains what people say.
    pub log: Log,
    /// Traces for operators who run an OpenTelemetry collector: how long the stages of a turn, background jobs and
    /// requests take. They hold numbers and fixed words, and neither texts nor people.
    pub telemetry: Telemetry,
    #[serde(skip)]
    surroundings: Surroundings,
    #[serde(skip)]
    file: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) left_out: Vec<LeftOut>,
}

impl Config {
    /// Reads the configuration of this process with [`Config::load`].
    ///
    /// # Errors
    /// Those of [`Config::load`], and [`Error::NotUnicode`] for an `AZERA` variable that is not UTF-8.
    pub fn from_process_env(path: Option<&Path>) -> Result<Self, Error> {
        let mut env = HashMap::new();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => {
                    env.insert(name, value);
                }
                Err(_) if name.starts_with("AZERA") => return Err(Error::NotUnicode { name }),
                // Another program's variable, or a HOME that Azera could not show in a path.
                Err(_) => {}
            }
        }
        Self::load(path, env)
    }

    /// Reads the file, then the overrides `AZERA__SECTION__KEY` from the environment.
    ///
    /// The file is `path`, or else the one that `AZERA_CONFIG` names; either must exist. Without both it is
    /// `azera/azera.toml` in the XDG configuration folder. If that does not exist either, the defaults apply.
    ///
    /// # Errors
    /// [`Error`] if the file cannot be read, or if a key or value in the file or the environment is unknown or not
    /// allowed. One error lists every problem. Only values of sections that [`Config::left_out`] can hold are no error.
    pub fn load(path: Option<&Path>, env: impl IntoIterator<Item = (String, String)>) -> Result<Self, Error> {
        let env: HashMap<String, String> = env.into_iter().collect();
        let surroundings = Surroundings::read(&env);
        let file = match path.map(Path::to_path_buf).or_else(|| surroundings.config.clone()) {
            Some(file) => Some(surroundings.expand(&file)),
            None => surroundings.usual_file().filter(|file| file.exists()),
        };
        let mut draft = Draft::default();
        if let Some(file) = &file {
            draft.read_file(&read_text(file)?, file);
        }
        draft.read_env(&env);
        let mut config: Self = match serde_json::from_value(draft.values()) {
            Ok(config) => config,
            // Each value was checked against the schema of these same types, so only a mismatch between the two gets
            // here.
            Err(error) => {
                draft.report(Origin::Default, error.to_string());
                Self::default()
            }
        };
        let mut optional = std::mem::take(&mut draft.optional);
        if draft.problems.is_empty() {
            let found = config.contradictions(&draft).into_iter();
            let (more, problems): (Vec<_>, Vec<_>) = found.partition(|(section, _)| is_optional(section));
            // A section of which a value is missing contradicts itself.
            let is_known = |section: &str| optional.iter().any(|(known, _)| *known == section);
            let more: Vec<_> = more.into_iter().filter(|(section, _)| !is_known(section)).collect();
            optional.extend(more);
            draft.problems = problems.into_iter().map(|(_, problem)| problem).collect();
        }
        if !draft.problems.is_empty() {
            draft.problems.extend(optional.into_iter().map(|(_, problem)| problem));
            draft.problems.sort();
            return Err(Error::Invalid(draft.problems));
        }
        config.leave_out(optional);
        config.surroundings = surroundings;
        config.file = file;
        Ok(config)
    }

    /// Returns the most tokens in a reply of a model that has the whole configured context.
    pub fn reply_tokens(&self) -> u32 {
        self.reply_tokens_in(u32::MAX)
    }

    /// Returns the most tokens in a reply of a model with this context: those that are set, or 512 where the context
    /// has room for them. A prompt needs most of a small one.
    pub fn reply_tokens_in(&self, context_tokens: u32) -> u32 {
        let context = self.models.context_tokens.min(context_tokens);
        let beside_prompt = context.saturating_sub(self.chat.prompt_tokens.unwrap_or(0));
        let fitting = REPLY_TOKENS.min(context / REPLY_OF_CONTEXT).min(beside_prompt.max(LEAST_REPLY_TOKENS));
        self.models.max_reply_tokens.unwrap_or(fitting)
    }

    /// Returns values that are each allowed, but not together, each with its section.
    fn contradictions(&self, draft: &Draft) -> Vec<(&'static str, Problem)> {
        let mut problems = Vec::new();
        let mut report = |keys: [(&'static str, &str); 2], message: String| {
            let [(section, _), _] = keys;
            let origins = keys.map(|(section, key)| draft.origin(section, key));
            let origin = origins.into_iter().find(|origin| *origin != Origin::Default).unwrap_or(Origin::Default);
            problems.push((section, Problem { origin, message }));
        };
        if let Some((keys, message)) = self.room_for_replies() {
            report(keys, message);
        }
        for (section, key, message) in known::unknown(self) {
            report([(section, key), (section, key)], message);
        }
        for (keys, message) in self.mind.contradictions() {
            report(keys.map(|key| ("mind", key)), message);
        }
        if let Some((key, message)) = self.hearth_without_surprise() {
            report([("gardener", key), ("hearth", "enabled")], message);
        }
        for (keys, message) in self.images.contradictions() {
            report(keys.map(|key| ("images", key)), message);
        }
        for (keys, message) in self.matrix.contradictions() {
            report(keys.map(|key| ("matrix", key)), message);
        }
        for (key, message) in self.http.contradictions() {
            report([("http", key), ("http", key)], message);
        }
        let (chat, embedding) = (&self.chat_server, &self.embedding_server);
        for (section, rival, api, url, model, local) in [
            ("chat_server", "chat", chat.api, &chat.url, &chat.model, &self.models.chat),
            ("embedding_server", "embedding", embedding.api, &embedding.url, &embedding.model, &self.models.embedding),
        ] {
            if api == ServerApi::None {
                continue;
            }
            if model.is_none() {
                report(
                    [(section, "api"), (section, "model")],
                    format!("`{section}.model` must name a model of the server"),
                );
            }
            if url.is_none() && api == ServerApi::OpenAi {
                let message = format!("`{section}.url` must be set: such a server can be anywhere");
                report([(section, "api"), (section, "url")], message);
            }
            if local.is_some() {
                let message = format!("`models.{rival}` and `{section}.api` both choose the model; leave one out");
                report([("models", rival), (section, "api")], message);
            }
        }
        let (hearing, speaking) = (&self.recognition_server, &self.speech_server);
        for (section, missing) in [
            ("rerank_server", self.rerank_server.missing()),
            ("recognition_server", hearing.missing()),
            ("speech_server", speaking.missing()),
        ] {
            for (key, message) in missing {
                report([(section, "api"), (section, key)], message);
            }
        }
        problems
    }

    /// Returns the keys that leave no room for a reply or a prompt, and the message about them.
    fn room_for_replies(&self) -> Option<([(&'static str, &'static str); 2], String)> {
        let (context, reply) = (self.models.context_tokens, self.reply_tokens());
        if reply >= context {
            let message = format!(
                "`models.max_reply_tokens` ({reply}) must be less than `models.context_tokens` ({context}), or there is \
                 no room for a prompt"
            );
            return Some(([("models", "max_reply_tokens"), ("models", "context_tokens")], message));
        }
        let prompt = self.chat.prompt_tokens?;
        if u64::from(prompt) + u64::from(reply) <= u64::from(context) {
            return None;
        }
        let message = match self.models.max_reply_tokens {
            Some(_) => format!(
                "`chat.prompt_tokens` ({prompt}) and `models.max_reply_tokens` ({reply}) together must not exceed \
                 `models.context_tokens` ({context})"
            ),
            None => format!(
                "`chat.prompt_tokens` ({prompt}) leaves no room for a reply of {reply} tokens in \
                 `models.context_tokens` ({context}): lower it, or raise the context"
            ),
        };
        Some(([("chat", "prompt_tokens"), ("models", "context_tokens")], message))
    }

    /// Returns the key of `[gardener]` that keeps the Hearth from learning, if one does.
    fn hearth_without_surprise(&self) -> Option<(&'static str, String)> {
        if !self.hearth.enabled || (self.gardener.enabled && self.gardener.surprise) {
            return None;
        }
        let key = if self.gardener.enabled { "surprise" } else { "enabled" };
        let message = format!(
            "`hearth.enabled` learns what surprised most, and with `gardener.{key} = false` nothing is measured: set that to \
             true, or `hearth.enabled` to false"
        );
        Some((key, message))
    }

    /// Returns the file that was read, if any.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the default path of the configuration file, or `None` without a home folder.
    pub fn usual_file(&self) -> Option<PathBuf> {
        self.surroundings.usual_file()
    }

    /// Returns the folder of everything Azera stores. It need not exist yet.
    ///
    /// # Errors
    /// [`Error::NoDataDir`] if neither the configuration nor the environment names one.
    pub fn data_dir(&self) -> Result<PathBuf, Error> {
        match &self.data.dir {
            Some(dir) => Ok(self.surroundings.expand(dir)),
            None => self.surroundings.usual_data_dir().ok_or(Error::NoDataDir),
        }
    }

    /// Returns the folder of the backups. It need not exist yet.
    ///
    /// # Errors
    /// [`Error::NoDataDir`] if neither the configuration nor the environment names one.
    pub fn backup_dir(&self) -> Result<PathBuf, Error> {
        match &self.backup.dir {
            Some(dir) => Ok(self.surroundings.expand(dir)),
            None => Ok(self.data_dir()?.join("backups")),
        }
    }

    /// Returns the file with the vault's key. It need not exist yet.
    ///
    /// # Errors
    /// [`Error::NoDataDir`] if neither the configuration nor the environment names a place.
    pub fn vault_key_file(&self) -> Result<PathBuf, Error> {
        match &self.vault.key_file {
            Some(file) => Ok(self.surroundings.expand(file)),
            None => {
                let data = self.data_dir()?;
                let mut name = data.file_name().unwrap_or_default().to_owned();
                name.push(VAULT_KEY);
                Ok(data.with_file_name(name))
            }
        }
    }

    /// Returns the folder of the model files. It need not exist yet.
    ///
    /// # Errors
    /// [`Error::NoDataDir`] if neither the configuration nor the environment names one.
    pub fn models_dir(&self) -> Result<PathBuf, Error> {
        match &self.models.dir {
            Some(dir) => Ok(self.surroundings.expand(dir)),
            None => match self.surroundings.usual_models_dir() {
                Some(dir) => Ok(dir),
                None => Ok(self.data_dir()?.join("models")),
            },
        }
    }

    /// Returns the directives for the log filter: `AZERA_LOG` if set (such as `warn,azera_engine=debug`), else the
    /// level.
    pub fn log_filter(&self) -> &str {
        self.surroundings.log.as_deref().unwrap_or(self.log.level.as_str())
    }

    /// Returns the key by which `azera mcp` uses a running Azera: `AZERA_MCP_KEY`.
    pub fn mcp_key(&self) -> Option<&str> {
        self.surroundings.mcp_key.as_ref().map(crate::Secret::expose)
    }

    /// Returns the folder in which the coding assistant that calls `azera hook` began its session: `CLAUDE_PROJECT_DIR`.
    pub fn assistant_project_dir(&self) -> Option<&Path> {
        self.surroundings.assistant_project_dir.as_deref()
    }

    /// Returns true if a terminal may be written to in colour. This does not check whether there is a terminal.
    pub fn colour(&self) -> bool {
        !self.surroundings.colourless
    }

    /// Returns what the environment says about the terminal. This does not check whether there is one.
    pub fn terminal(&self) -> &TerminalHints {
        &self.surroundings.terminal
    }

    /// Returns true if this process runs in continuous integration, where nobody answers a question.
    pub fn in_ci(&self) -> bool {
        self.surroundings.in_ci
    }
}

fn read_text(path: &Path) -> Result<String, Error> {
    let fail = |source: io::Error| Error::Read { path: path.to_path_buf(), source };
    let mut bytes = Vec::new();
    // Reading one byte beyond the limit distinguishes a file that is too long from one that just fits.
    File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)).map_err(fail)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLong { path: path.to_path_buf() });
    }
    String::from_utf8(bytes).map_err(|error| fail(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error())))
}
