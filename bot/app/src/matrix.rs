//! Connects the Matrix adapter to the configuration.

use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use azera_adapter::{Avatars, Host, Platform};
use azera_adapter_matrix::{Invites, Limits, Login, Matrix, Settings};
use azera_config::{Config, MatrixInvites};
use azera_engine::COMMANDS;
use tokio_util::sync::CancellationToken;

use crate::doctor::Found;
use crate::run::Connection;

/// Returns the adapter's settings; `None` if no homeserver is configured.
fn settings(config: &Config) -> anyhow::Result<Option<Settings>> {
    let matrix = &config.matrix;
    let (Some(homeserver), Some(user)) = (&matrix.homeserver, &matrix.user) else { return Ok(None) };
    Ok(Some(Settings {
        homeserver: homeserver.clone(),
        login: Login {
            user: user.clone(),
            password: matrix.password.as_ref().map(|password| password.expose().to_owned()),
            token: matrix.token.as_ref().map(|token| token.expose().to_owned()),
        },
        folder: config.data_dir()?.join("matrix"),
        invites: match matrix.invites {
            MatrixInvites::Anyone => Invites::Anyone,
            MatrixInvites::Servers => Invites::Servers(matrix.invites_from.clone()),
            MatrixInvites::Users => Invites::Users(matrix.invites_from.clone()),
        },
        strict: matrix.strict,
        prefix: matrix.prefix.clone(),
        commands: COMMANDS,
        limits: Limits { person_per_minute: matrix.person_per_minute, room_per_minute: matrix.room_per_minute },
    }))
}

/// Logs in or resumes the session; `None` if no homeserver is configured.
pub async fn connect(config: &Config) -> anyhow::Result<Option<Arc<dyn Connection>>> {
    let Some(settings) = settings(config)? else { return Ok(None) };
    let matrix = Matrix::connect(settings).await.context("Matrix")?;
    Ok(Some(Arc::new(Connected(matrix))))
}

/// Runs Matrix's check of `azera doctor`. Asks the homeserver and reads the session without using it, because two
/// clients of one device would take each other's messages.
pub async fn check(config: &Config) -> Found {
    let settings = match settings(config) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Found::Good("not configured".into()),
        Err(error) => return Found::Bad(format!("{error:#}"), "see [matrix] in the configuration".into()),
    };
    match azera_adapter_matrix::look(&settings).await {
        Ok(look) if look.may_log_in => match look.health.and_then(|health| health.trouble()) {
            None => Found::Good(look.what),
            Some(trouble) => Found::Note(format!("{}; {trouble}", look.what)),
        },
        Ok(look) => Found::Bad(
            look.what,
            "set AZERA__MATRIX__PASSWORD for the first start, or AZERA__MATRIX__TOKEN with an access token".into(),
        ),
        Err(error) => Found::Bad(error.to_string(), "see [matrix] in the configuration".into()),
    }
}

struct Connected(Arc<Matrix>);

#[async_trait]
impl Connection for Connected {
    fn platform(&self) -> Arc<dyn Platform> {
        self.0.clone()
    }

    fn set_avatars(&self, avatars: Arc<dyn Avatars>) {
        self.0.set_avatars(avatars);
    }

    async fn begin(&self) -> anyhow::Result<()> {
        Ok(self.0.begin().await?)
    }

    async fn listen(&self, host: Arc<dyn Host>, stop: CancellationToken) -> anyhow::Result<()> {
        Ok(self.0.listen(host, stop).await?)
    }
}
