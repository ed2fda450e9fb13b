//! `azera replay`: plays a timeline on the simulated platform with a virtual clock. Everything else is the real
//! product.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use azera_adapter::Host;
use azera_config::Config;
use azera_fake_sim::{Session, SessionError, SimPlatform, Timeline, replay};
use azera_types::{ManualClock, Timestamp};

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::ReplayOptions;
use crate::stores;

/// Virtual time after which a job that stays due runs again. A real clock retries every few seconds, which would only
/// take long here.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(5 * 60);

pub async fn run(config: &Config, options: ReplayOptions) -> anyhow::Result<ExitCode> {
    let timeline = if options.file.as_os_str() == "-" {
        Timeline::read(std::io::stdin().lock())?
    } else {
        let file = std::fs::File::open(&options.file);
        let file = file.with_context(|| format!("opening {}", options.file.display()))?;
        Timeline::read(std::io::BufReader::new(file)).with_context(|| options.file.display().to_string())?
    };
    play(config, &timeline, options.data.data.as_deref(), &options.model, options.seed, &mut std::io::stdout()).await?;
    Ok(ExitCode::SUCCESS)
}

/// Plays a timeline. Without a data folder, it leaves no files behind.
pub async fn play(
    config: &Config,
    timeline: &Timeline,
    data: Option<&Path>,
    model: &str,
    seed: u64,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let mut stage = Stage::open(config, data, model, seed, timeline.start()).await?;
    let played = stage.play(timeline, out).await;
    stage.close().await;
    played
}

/// Plays timelines, one after the other.
pub struct Stage {
    platform: Arc<SimPlatform>,
    session: VirtualSession,
    /// Deleted with the stage.
    _scratch: Option<tempfile::TempDir>,
}

impl Stage {
    /// Opens the product at the time `start`, in the given data folder or in a temporary one.
    pub async fn open(
        config: &Config,
        data: Option<&Path>,
        model: &str,
        seed: u64,
        start: Option<Timestamp>,
    ) -> anyhow::Result<Self> {
        let scratch = match data {
            Some(_) => None,
            None => Some(tempfile::tempdir().context("making a folder for the replay")?),
        };
        let config = match (data, &scratch) {
            (None, Some(scratch)) => stores::scratch_config(config, scratch.path()),
            (data, _) => {
                let mut config = config.clone();
                config.data.dir = data.map(Path::to_path_buf);
                config
            }
        };
        let answers = ModelChoice::named(model);
        let clock = ManualClock::new(start.unwrap_or(Timestamp::UNIX_EPOCH));
        let platform = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
        let mut session = VirtualSession { config, answers, seed, clock, platform: platform.clone(), app: None };
        session.open().await?;
        Ok(Self { platform, session, _scratch: scratch })
    }

    /// Plays a timeline after the earlier ones.
    pub async fn play(&mut self, timeline: &Timeline, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
        replay(timeline, &self.platform, &mut self.session, out).await?;
        Ok(())
    }

    pub async fn close(mut self) {
        self.session.close().await;
    }
}

/// The product on a clock that the timeline moves.
struct VirtualSession {
    config: Config,
    answers: ModelChoice,
    seed: u64,
    clock: ManualClock,
    platform: Arc<SimPlatform>,
    app: Option<App>,
}

impl VirtualSession {
    async fn open(&mut self) -> anyhow::Result<()> {
        let opening = BootstrapOptions {
            answers: self.answers.clone(),
            clock: Arc::new(self.clock.clone()),
            seed: Some(self.seed),
            on_trial: false,
        };
        let app = bootstrap::open(&self.config, opening).await?;
        app.engine.attach(self.platform.clone());
        app.engine.start().await?;
        self.app = Some(app);
        Ok(())
    }

    async fn close(&mut self) {
        if let Some(app) = self.app.take() {
            app.engine.stop().await;
        }
    }
}

#[async_trait]
impl Session for VirtualSession {
    fn host(&self) -> Arc<dyn Host> {
        // A failed reopening ends the replay, so nobody calls this while nothing is open.
        let app = self.app.as_ref().expect("the app is open whenever a line is played");
        Arc::new(app.engine.clone())
    }

    async fn advance_to(&mut self, to: Timestamp) -> Result<(), SessionError> {
        if let Some(app) = &self.app {
            let mut last_run: Option<Timestamp> = None;
            while let Some(due) = app.engine.next_due() {
                // A job that is still due has been tried. Run it again a while later, along with whatever is due by
                // then.
                let at = match last_run {
                    Some(last_run) if due <= last_run => last_run.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX),
                    _ => due,
                };
                if at > to {
                    break;
                }
                self.clock.advance_to(at);
                app.engine.run_jobs().await;
                last_run = Some(at);
            }
        }
        self.clock.advance_to(to);
        Ok(())
    }

    async fn reopen(&mut self) -> Result<(), SessionError> {
        self.close().await;
        self.open().await.map_err(|error| format!("{error:#}").into())
    }
}
