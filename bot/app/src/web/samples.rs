//! Recordings of voices for the web: the folder of `azera voice samples`.

use std::path::Path;

use async_trait::async_trait;
use azera_adapter_http::{KeptSample, ListedSample, NewSample, SampleError, StoreError, VoiceSamples};
use azera_voice_samples::{FolderError, SampleFolder, StoredSample, prepare};
use sha2::{Digest, Sha256};

use crate::bootstrap::now_text;
use crate::speech_servers;

/// Bytes of the digest that ends a sample's name.
const DIGEST_BYTES: usize = 4;

/// The samples in the data folder.
pub struct FolderSamples(SampleFolder);

impl FolderSamples {
    pub fn new(data: &Path) -> Self {
        Self(speech_servers::samples_in(data))
    }

    /// Works on the folder on a blocking thread.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SampleFolder) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let folder = self.0.clone();
        tokio::task::spawn_blocking(move || work(&folder)).await.map_err(|error| StoreError(error.to_string()))
    }
}

fn add(folder: &SampleFolder, new: NewSample) -> Result<KeptSample, SampleError> {
    let refused = |why: String| SampleError::Refused(format!("I cannot keep that: {why}."));
    let digest: Vec<u8> = Sha256::digest(&new.bytes).into_iter().take(DIGEST_BYTES).collect();
    let name = format!("{}-{}", new.name, data_encoding::HEXLOWER.encode(&digest));
    let sample = prepare(new.bytes).map_err(|error| refused(error.to_string()))?;
    match folder.add(&name, &new.consent, &sample, &now_text()) {
        // The name says which recording it is.
        Ok(_) | Err(FolderError::Exists(_)) => Ok(KeptSample { bytes: sample.wav.len(), name }),
        Err(error @ FolderError::Io { .. }) => Err(StoreError(error.to_string()).into()),
        Err(error) => Err(refused(error.to_string())),
    }
}

#[async_trait]
impl VoiceSamples for FolderSamples {
    async fn add(&self, sample: NewSample) -> Result<KeptSample, SampleError> {
        self.work(move |folder| add(folder, sample)).await?
    }

    async fn list(&self) -> Result<Vec<ListedSample>, StoreError> {
        let listed = self.work(SampleFolder::list).await?.map_err(|error| StoreError(error.to_string()))?;
        let shown = |sample: StoredSample| {
            let StoredSample { name, consent, seconds, added_at } = sample;
            ListedSample { name, consent, seconds, added_at }
        };
        Ok(listed.into_iter().map(shown).collect())
    }

    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        match self.work(move |folder| folder.remove(&name)).await? {
            Ok(()) => Ok(true),
            Err(FolderError::Missing(_) | FolderError::Name) => Ok(false),
            Err(error) => Err(StoreError(error.to_string())),
        }
    }

    async fn wav(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let name = name.to_owned();
        match self.work(move |folder| folder.wav(&name)).await? {
            Ok(wav) => Ok(Some(wav)),
            Err(FolderError::Missing(_) | FolderError::Name) => Ok(None),
            Err(error) => Err(StoreError(error.to_string())),
        }
    }
}
