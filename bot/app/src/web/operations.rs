//! Measures the program for `/ready` and `/metrics`, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use azera_adapter_http::{LogLevel, LogLine, Operations, StoreError};
use azera_config::Config;
use azera_engine::{BUCKETS_MS, Engine, HistogramSnapshot, LearningSnapshot, MeasurementsSnapshot, StageSnapshot};
use azera_memory::Memory;
use azera_memory_backup::Folder;
use azera_model_api::ChatModel;
use tracing::Level;

use crate::bootstrap::App;
use crate::log_ring::{LogEntry, LogRing};
use crate::stores::OnServers;

/// Age up to which counts of the record are given out again. To count walks through every row.
const COUNTS_FOR: Duration = Duration::from_secs(60);

/// The parts that are measured.
pub struct AppOperations {
    engine: Engine,
    memory: Arc<Memory>,
    model: Arc<dyn ChatModel>,
    backups: Folder,
    servers: OnServers,
    backs_up: bool,
    log: Arc<LogRing>,
    counted: Mutex<Option<(Instant, Counts)>>,
}

/// What is counted in the record and in the backup folder.
#[derive(Debug, Clone, Default)]
struct Counts {
    rows: Vec<(&'static str, usize)>,
    queued: usize,
    files: (u64, u64),
    pictures_waiting: usize,
    outbox: usize,
    /// Whether the stores on servers have every change; `None` without servers.
    servers_current: Option<bool>,
    backups: usize,
    backup_bytes: u64,
    newest_backup_s: Option<i64>,
}

impl AppOperations {
    pub fn new(app: &App, config: &Config, log: Arc<LogRing>) -> Self {
        Self {
            engine: app.engine.clone(),
            memory: app.memory.clone(),
            model: app.model.clone(),
            backups: app.backups.folder().clone(),
            servers: app.servers.clone(),
            backs_up: config.backup.enabled,
            log,
            counted: Mutex::default(),
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let fresh = {
            let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
            counted.as_ref().filter(|(at, _)| at.elapsed() < COUNTS_FOR).map(|(_, counts)| counts.clone())
        };
        if let Some(counts) = fresh {
            return Ok(counts);
        }
        let (memory, backups, servers) = (self.memory.clone(), self.backups.clone(), self.servers.clone());
        let counted = tokio::task::spawn_blocking(move || count(&memory, &backups, &servers)).await;
        let counts = counted
            .map_err(|error| StoreError(error.to_string()))?
            .map_err(|error| StoreError(format!("{error:#}")))?;
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), counts.clone()));
        Ok(counts)
    }
}

fn count(memory: &Memory, backups: &Folder, servers: &OnServers) -> anyhow::Result<Counts> {
    let files = memory.files().totals()?;
    let made = backups.of(memory.record().identity())?;
    Ok(Counts {
        rows: memory.indexing().row_counts()?,
        queued: memory.indexing().queued()?,
        files: (u64::try_from(files.files)?, files.bytes),
        pictures_waiting: memory.pictures().waiting()?.len(),
        outbox: memory.outbox().pending()?.len(),
        servers_current: servers.wait(Duration::ZERO),
        backups: made.len(),
        backup_bytes: made.iter().map(|backup| backup.file_bytes).sum(),
        newest_backup_s: made.iter().map(|backup| backup.manifest.made_at.as_second()).max(),
    })
}

#[async_trait]
impl Operations for AppOperations {
    async fn trouble(&self) -> Option<String> {
        let memory = self.memory.clone();
        match tokio::task::spawn_blocking(move || memory.indexing().queued()).await {
            Ok(Ok(_)) => None,
            // The cause belongs in the log: who asks need not be an operator.
            Ok(Err(error)) => {
                tracing::warn!(%error, "the record cannot be read");
                Some("The record cannot be read.".to_owned())
            }
            Err(_) => Some("Azera is shutting down.".to_owned()),
        }
    }

    async fn metrics(&self) -> Result<String, StoreError> {
        let counts = self.counts().await?;
        Ok(exposition(&self.engine.measurements(), &counts, &self.model.info().name, self.backs_up))
    }

    fn log(&self, least: LogLevel, most: usize) -> Vec<LogLine> {
        let wanted = |level: &Level| level_of(*level) >= least;
        let shown = |entry: LogEntry| LogLine {
            at: entry.at,
            level: level_of(entry.level),
            target: entry.target,
            message: entry.message,
            fields: entry.fields,
        };
        self.log.newest(most, wanted).into_iter().map(shown).collect()
    }
}

fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// Writes metrics in Prometheus' text format.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if writeln!(self.0, "{line}").is_err() {
            tracing::debug!("a text takes no line");
        }
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    fn each(&mut self, name: &str, kind: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        self.head(name, kind, help);
        for (of, value) in values {
            self.line(format_args!("{name}{{{label}=\"{of}\"}} {value}"));
        }
    }

    /// Writes a histogram in seconds, the base unit of Prometheus.
    fn histogram(&mut self, name: &str, help: &str, histogram: &HistogramSnapshot) {
        self.head(name, "histogram", help);
        for (bound, count) in BUCKETS_MS.iter().zip(&histogram.up_to) {
            self.line(format_args!("{name}_bucket{{le=\"{}\"}} {count}", bound / 1_000.0));
        }
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {}", histogram.count));
        self.line(format_args!("{name}_sum {}", histogram.sum_ms / 1_000.0));
        self.line(format_args!("{name}_count {}", histogram.count));
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns a value of a label without what would end it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

fn exposition(turns: &MeasurementsSnapshot, counts: &Counts, model: &str, backs_up: bool) -> String {
    let mut text = Exposition::default();
    text.head("azera_info", "gauge", "The version and the chat model that was loaded at the start.");
    let version = env!("CARGO_PKG_VERSION");
    text.line(format_args!("azera_info{{version=\"{version}\",model=\"{}\"}} 1", label(model)));
    let outcomes = [("replied", turns.replied), ("skipped", turns.skipped), ("failed", turns.failed)];
    text.each("azera_turns_total", "counter", "Turns since the start, by their outcome.", "outcome", &outcomes);
    let tokens = [
        ("prompt", turns.prompt_tokens),
        ("prompt_cached", turns.cached_tokens),
        ("completion", turns.completion_tokens),
    ];
    text.each("azera_tokens_total", "counter", "Tokens of replies since the start.", "kind", &tokens);
    text.histogram(
        "azera_first_word_seconds",
        "Time from the request to the model to its first token.",
        &turns.first_word,
    );
    text.histogram("azera_recall_seconds", "Time of recall for a reply.", &turns.recall);
    learning(&mut text, &turns.learning);
    text.one(
        "azera_waiting_messages",
        "gauge",
        "Messages that wait for their turn or have it.",
        wide(turns.waiting_messages),
    );
    text.one("azera_busy_chats", "gauge", "Chats in which messages wait or are answered.", wide(turns.busy_chats));
    let rows: Vec<(&str, u64)> = counts.rows.iter().map(|(table, rows)| (*table, wide(*rows))).collect();
    text.each(
        "azera_record_rows",
        "gauge",
        "Rows of the record, by table. Counted at most once a minute.",
        "table",
        &rows,
    );
    text.one("azera_index_queue", "gauge", "Memories that the indexes do not contain yet.", wide(counts.queued));
    let help = "Pictures that wait or are being drawn.";
    text.one("azera_pictures_waiting", "gauge", help, wide(counts.pictures_waiting));
    let help = "Replies and posts that no platform has acknowledged yet.";
    text.one("azera_outbox_waiting", "gauge", help, wide(counts.outbox));
    if let Some(current) = counts.servers_current {
        let help = "1 if the stores on servers have every change of the record.";
        text.one("azera_store_servers_current", "gauge", help, u64::from(current));
    }
    text.one("azera_files", "gauge", "Kept files of messages.", counts.files.0);
    text.one("azera_files_bytes", "gauge", "Bytes of kept files.", counts.files.1);
    text.one("azera_backups_enabled", "gauge", "1 if backups are made on a schedule.", u64::from(backs_up));
    text.one("azera_backups", "gauge", "Backups of this record in the backup folder.", wide(counts.backups));
    text.one("azera_backups_bytes", "gauge", "Bytes of these backups.", counts.backup_bytes);
    if let Some(at) = counts.newest_backup_s {
        let help = "When the newest backup was made, in seconds since 1970.";
        text.one("azera_backup_newest_timestamp_seconds", "gauge", help, u64::try_from(at).unwrap_or(0));
    }
    text.0
}

/// Writes what happened after conversations.
fn learning(text: &mut Exposition, learning: &LearningSnapshot) {
    let name = "azera_learning_runs_total";
    text.head(name, "counter", "Runs of the stages of learning since the start, by stage and outcome.");
    for StageSnapshot { stage, done, failed, .. } in &learning.stages {
        let stage = stage.name();
        text.line(format_args!("{name}{{stage=\"{stage}\",outcome=\"done\"}} {done}"));
        text.line(format_args!("{name}{{stage=\"{stage}\",outcome=\"failed\"}} {failed}"));
    }
    let name = "azera_learning_seconds_total";
    text.head(name, "counter", "Time of these runs, by stage.");
    for StageSnapshot { stage, seconds, .. } in &learning.stages {
        text.line(format_args!("{name}{{stage=\"{}\"}} {seconds}", stage.name()));
    }
    let items = [
        ("found", learning.found),
        ("untraceable", learning.untraceable),
        ("repeated", learning.repeated),
        ("kept", learning.kept),
        ("duplicate", learning.duplicates),
        ("superseded", learning.superseded),
    ];
    let help = "Items that models listed, and statements that were marked, by what became of them.";
    text.each("azera_learning_items_total", "counter", help, "outcome", &items);
    text.one("azera_learning_chunks_total", "counter", "Parts of conversations for the model.", learning.chunks);
    let help = "Extractions that were postponed because a model was away.";
    text.one("azera_learning_retries_total", "counter", help, learning.retries);
    let help = "Parts of conversations that classifiers searched instead of the model.";
    text.one("azera_learning_fallbacks_total", "counter", help, learning.fallbacks);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use azera_engine::LearningStage;

    use super::*;

    #[test]
    fn metrics_have_the_form_that_prometheus_reads() {
        let histogram = HistogramSnapshot { up_to: vec![1; BUCKETS_MS.len()], count: 2, sum_ms: 70_005.0 };
        let stage = LearningStage::Extract;
        let learning = LearningSnapshot {
            stages: vec![StageSnapshot { stage, done: 3, failed: 1, seconds: 1.5 }],
            untraceable: 7,
            ..LearningSnapshot::default()
        };
        let turns =
            MeasurementsSnapshot { replied: 2, first_word: histogram, learning, ..MeasurementsSnapshot::default() };
        let counts = Counts { rows: vec![("messages", 4)], ..Counts::default() };
        let text = exposition(&turns, &counts, "a \"model\"", true);
        for line in [
            "azera_turns_total{outcome=\"replied\"} 2",
            "azera_first_word_seconds_bucket{le=\"0.005\"} 1",
            "azera_first_word_seconds_bucket{le=\"+Inf\"} 2",
            "azera_first_word_seconds_sum 70.005",
            "azera_record_rows{table=\"messages\"} 4",
            "azera_learning_runs_total{stage=\"extract\",outcome=\"failed\"} 1",
            "azera_learning_seconds_total{stage=\"extract\"} 1.5",
            "azera_learning_items_total{outcome=\"untraceable\"} 7",
            "azera_info{version=\"0.1.0\",model=\"a \\\"model\\\"\"} 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is missing in:\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn the_dashboard_shows_every_metric_and_no_other() {
        let dashboard = include_str!("../../../../docker/grafana-dashboard.json");
        serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
        let counts = Counts { servers_current: Some(true), newest_backup_s: Some(1), ..Counts::default() };
        let text = exposition(&MeasurementsSnapshot::default(), &counts, "a model", true);
        let served: BTreeSet<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let words = dashboard.split(|c| !is_name(c)).filter(|word| word.starts_with("azera_"));
        let shown: BTreeSet<&str> = words.map(|word| word.strip_suffix("_bucket").unwrap_or(word)).collect();
        assert_eq!(shown, served);
    }
}
