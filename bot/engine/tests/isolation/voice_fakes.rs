//! A listener and a speaker for whom sound is the bytes of the words.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azera_engine::Voice;
use azera_memory::VoiceReplies;
use azera_types::{FetchError, Fetching, InboundPart, Part, PartSource, Text, VoiceNote};
use azera_voice_api::{HearError, Heard, Listener, Manner, Recorded, SpeakError, Speaker};

/// Hears the words in the bytes, and counts how often it listens.
#[derive(Default)]
pub struct Ear(pub AtomicUsize);

#[async_trait]
impl Listener for Ear {
    fn max_bytes(&self) -> u64 {
        10_000
    }

    async fn hear(&self, file: Vec<u8>, _: &str) -> Result<Heard, HearError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match String::from_utf8(file) {
            Ok(words) => Ok(Heard { text: Text::new(words) }),
            Err(_) => Err(HearError::Unreadable("it is no sound".to_owned())),
        }
    }
}

/// Speaks words as their bytes.
pub struct Mouth;

#[async_trait]
impl Speaker for Mouth {
    async fn speak(&self, text: &str, _: &Manner) -> Result<VoiceNote, SpeakError> {
        Ok(VoiceNote { bytes: text.as_bytes().to_vec(), duration: Duration::from_secs(1), waveform: vec![0, 255] })
    }

    async fn record(&self, text: &str, _: &Manner) -> Result<Recorded, SpeakError> {
        Ok(Recorded { wav: text.as_bytes().to_vec(), duration: Duration::from_secs(1) })
    }
}

pub fn voice(ear: &Arc<Ear>) -> Voice {
    Voice { listener: Some(ear.clone()), speaker: Some(Arc::new(Mouth)), replies: VoiceReplies::Auto }
}

/// A file that cannot be fetched any more.
struct Expired;

impl PartSource for Expired {
    fn fetch(&self, _: u64) -> Fetching<'_> {
        Box::pin(std::future::ready(Err(FetchError::Failed("its address has expired".to_owned()))))
    }
}

/// Returns a voice message. `expired` ones can only be had from the platform.
pub fn spoken(words: &[u8], expired: bool) -> InboundPart {
    let part = Part::new("voice-message.ogg", Some("audio/ogg"), words.len() as u64).spoken(Some(1_000));
    let source: Arc<dyn PartSource> = if expired { Arc::new(Expired) } else { Arc::new(words.to_vec()) };
    InboundPart { part, source }
}
