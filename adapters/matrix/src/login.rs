//! The session: logs in once, and restores the session afterwards.

use std::path::Path;

use matrix_sdk::authentication::matrix::MatrixSession;
use matrix_sdk::config::RequestConfig;
use matrix_sdk::cross_process_lock::CrossProcessLockConfig;
use matrix_sdk::encryption::recovery::RecoveryState;
use matrix_sdk::encryption::{BackupDownloadStrategy, EncryptionSettings};
use matrix_sdk::ruma::{OwnedDeviceId, OwnedUserId, owned_device_id, owned_user_id};
use matrix_sdk::store::RoomLoadSettings;
use matrix_sdk::{Client, ClientBuilder, SessionMeta, SessionTokens, SqliteStoreConfig};
use matrix_sdk_base::crypto::{CollectStrategy, DecryptionSettings, TrustRequirement};

use crate::files::{Files, read, remove, write};
use crate::health::{self, Health};
use crate::{Error, Settings};

/// Name of the bot's device in the account's list of sessions.
const DEVICE: &str = "Azera";

/// Time limit of a request, without the sync's own waiting time.
const REQUEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Attempts of a request before its caller decides.
const ATTEMPTS: usize = 3;

/// Returns a client that is logged in.
pub(crate) async fn client(settings: &Settings) -> Result<Client, Error> {
    let files = Files(&settings.folder);
    files.make()?;
    let session = present_session(settings, &files)?;
    if session.is_none() {
        // The store of an interrupted login belongs to a device that nobody knows.
        remove(&files.store())?;
    }
    let key = store_key(&files.key())?;
    let built = builder(settings, &files.store(), &key).build().await;
    let client = built.map_err(|error| Error::Homeserver(Box::new(error)))?;
    match session {
        Some(session) => client.matrix_auth().restore_session(session, RoomLoadSettings::All).await?,
        None => {
            log_in(&client, settings).await?;
            let session = client.matrix_auth().session().ok_or(Error::LoggedOut)?;
            write(&files.session(), &serde_json::to_vec(&session)?)?;
        }
    }
    client.encryption().wait_for_e2ee_initialization_tasks().await;
    Ok(client)
}

/// The status without logging in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginStatus {
    /// True if there is a session or a way to log in.
    pub may_log_in: bool,
    /// Health of the running bot, or of its last run.
    pub health: Option<Health>,
    /// A description in words.
    pub what: String,
}

pub(crate) async fn look_now(settings: &Settings) -> Result<LoginStatus, Error> {
    let built = Client::builder().server_name_or_homeserver_url(&settings.homeserver);
    let client = built.build().await.map_err(|error| Error::Homeserver(Box::new(error)))?;
    let versions = client.fetch_server_versions(None).await?;
    let newest = versions.versions.last().map_or("no version", String::as_str).to_owned();
    let server = format!("{} speaks Matrix {newest}", client.homeserver());
    let files = Files(&settings.folder);
    let session = read(&files.session())?.and_then(|bytes| serde_json::from_slice::<MatrixSession>(&bytes).ok());
    let login = settings.login.password.is_some() || settings.login.token.is_some();
    let health = health::last_report(files.0)?.filter(|_| session.is_some());
    let what = match (&session, login) {
        (Some(session), _) => {
            let keys = if files.recovery().exists() { "keys can be recovered" } else { "no recovery key yet" };
            let rooms = health.as_ref().map_or(0, |health| health.rooms);
            let rooms = if rooms == 1 { "1 room".to_owned() } else { format!("{rooms} rooms") };
            format!("{server}; logged in as {} ({}), in {rooms}, {keys}", session.meta.user_id, session.meta.device_id)
        }
        (None, true) => format!("{server}; {} logs in at the first start", settings.login.user),
        (None, false) => format!("{server}; there is neither a session nor a password or token"),
    };
    Ok(LoginStatus { may_log_in: session.is_some() || login, health, what })
}

/// Returns the session of the last start, if it can be restored.
fn present_session(settings: &Settings, files: &Files<'_>) -> Result<Option<MatrixSession>, Error> {
    let Some(bytes) = read(&files.session())? else { return Ok(None) };
    let session: MatrixSession = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Damaged { path: files.session(), why: error.to_string() })?;
    let (found, wanted) = (&session.meta.user_id, settings.login.user.as_str());
    let named = if wanted.starts_with('@') { wanted == found.as_str() } else { wanted == found.localpart() };
    if !named {
        let (found, wanted) = (found.to_string(), wanted.to_owned());
        return Err(Error::AnotherAccount { folder: files.0.to_path_buf(), found, wanted });
    }
    if !files.store().join("matrix-sdk-crypto.sqlite3").exists() {
        // A device without its keys can neither read nor write, and others do not know that.
        tracing::warn!("the keys of the Matrix session are gone; logging in again");
        forget_session(&settings.folder)?;
        return Ok(None);
    }
    Ok(Some(session))
}

fn builder(settings: &Settings, store: &Path, key: &[u8; 32]) -> ClientBuilder {
    let builder = Client::builder();
    let builder = if settings.homeserver.contains("://") {
        builder.homeserver_url(&settings.homeserver)
    } else {
        builder.server_name_or_homeserver_url(&settings.homeserver)
    };
    let builder = builder
        .sqlite_store_with_config_and_cache_path(
            SqliteStoreConfig::with_low_memory_config(store).key(Some(key)),
            None::<&Path>,
        )
        .cross_process_store_config(CrossProcessLockConfig::SingleProcess)
        .request_config(RequestConfig::new().timeout(REQUEST_TIMEOUT).retry_limit(ATTEMPTS))
        .with_encryption_settings(EncryptionSettings {
            auto_enable_cross_signing: true,
            auto_enable_backups: true,
            backup_download_strategy: BackupDownloadStrategy::AfterDecryptionFailure,
        });
    if settings.strict {
        builder.with_room_key_recipient_strategy(CollectStrategy::IdentityBasedStrategy).with_decryption_settings(
            DecryptionSettings { sender_device_trust_requirement: TrustRequirement::CrossSigned },
        )
    } else {
        builder
    }
}

async fn log_in(client: &Client, settings: &Settings) -> Result<(), Error> {
    let refused = |error: matrix_sdk::Error| match error.client_api_error_kind() {
        Some(_) => Error::Login(error.to_string()),
        None => Error::Sdk(error),
    };
    if let Some(password) = &settings.login.password {
        let login = client.matrix_auth().login_username(&settings.login.user, password);
        login.initial_device_display_name(DEVICE).send().await.map_err(refused)?;
        return Ok(());
    }
    let Some(token) = &settings.login.token else { return Err(Error::NoCredentials) };
    let tokens = SessionTokens { access_token: token.clone(), refresh_token: None };
    let (user_id, device_id) = owner(client, &tokens).await?;
    let Some(device_id) = device_id else {
        return Err(Error::Login("the token belongs to no device; take one of a login".into()));
    };
    if read(&Files(&settings.folder).lost())?.is_some_and(|lost| lost == device_id.as_str().as_bytes()) {
        return Err(Error::Login("the keys of the token's device are lost; take a token of another login".into()));
    }
    let session = MatrixSession { meta: SessionMeta { user_id, device_id }, tokens };
    client.matrix_auth().restore_session(session, RoomLoadSettings::All).await.map_err(refused)
}

/// Returns account and device of a token, which only the homeserver knows. Uses a temporary client without an identity.
async fn owner(client: &Client, tokens: &SessionTokens) -> Result<(OwnedUserId, Option<OwnedDeviceId>), Error> {
    let asking = Client::new(client.homeserver()).await.map_err(|error| Error::Homeserver(Box::new(error)))?;
    let nobody = SessionMeta { user_id: owned_user_id!("@nobody:localhost"), device_id: owned_device_id!("NOBODY") };
    let session = MatrixSession { meta: nobody, tokens: tokens.clone() };
    asking.matrix_auth().restore_session(session, RoomLoadSettings::All).await?;
    let who = asking.whoami().await.map_err(|error| match error.client_api_error_kind() {
        Some(_) => Error::Login(error.to_string()),
        None => Error::from(error),
    })?;
    Ok((who.user_id, who.device_id))
}

/// Makes the account's keys recoverable, or recovers them with `recovery.key` in the folder. Call it after the first
/// sync.
pub(crate) async fn make_recoverable(client: &Client, folder: &Path) -> Result<(), Error> {
    let file = Files(folder).recovery();
    let recovery = client.encryption().recovery();
    let failed = |error: matrix_sdk::encryption::recovery::RecoveryError| Error::Login(error.to_string());
    match (recovery.state(), read(&file)?) {
        (RecoveryState::Enabled, _) => {}
        (RecoveryState::Disabled, None) => {
            let key = recovery.enable().wait_for_backups_to_upload().await.map_err(failed)?;
            write(&file, key.as_bytes())?;
            tracing::info!(
                file = %file.display(),
                "backed up the account's keys; this file restores them: keep a copy"
            );
        }
        (_, Some(key)) => {
            recovery.recover(String::from_utf8_lossy(&key).trim()).await.map_err(failed)?;
            tracing::info!("recovered the account's keys");
        }
        (state, None) => {
            tracing::warn!(
                ?state, file = %file.display(),
                "the account has keys that this device lacks: write the account's recovery key into that file and start again"
            );
        }
    }
    Ok(())
}

/// Removes a session that cannot be restored and marks its store as lost; the next start logs in.
pub(crate) fn forget_session(folder: &Path) -> Result<(), Error> {
    let files = Files(folder);
    if let Some(session) = read(&files.session())? {
        let device = serde_json::from_slice::<MatrixSession>(&session).map(|session| session.meta.device_id);
        write(&files.lost(), device.as_ref().map_or("", |device| device.as_str()).as_bytes())?;
    }
    remove(&files.session())?;
    remove(&files.store())
}

/// Returns true if the store was lost and its contents must be restored.
pub(crate) fn was_lost(folder: &Path) -> Result<bool, Error> {
    Ok(read(&Files(folder).lost())?.is_some())
}

/// Removes the marker of a lost store after its contents were restored.
pub(crate) fn found_again(folder: &Path) -> Result<(), Error> {
    remove(&Files(folder).lost())
}

/// Returns the store's key, and creates it at the first start.
fn store_key(path: &Path) -> Result<[u8; 32], Error> {
    if let Some(bytes) = read(path)? {
        let why = || Error::Damaged { path: path.to_path_buf(), why: format!("it has {} bytes, not 32", bytes.len()) };
        return bytes.as_slice().try_into().map_err(|_| why());
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(Error::Random)?;
    write(path, &key)?;
    Ok(key)
}
