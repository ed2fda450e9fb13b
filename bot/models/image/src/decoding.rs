//! One bound on the memory of everything that decodes pictures, wherever in the program that is.

use std::sync::{Arc, LazyLock};

use tokio::sync::Semaphore;

use crate::picture::{Picture, PictureLimits};

/// Megabytes for all pictures that are decoded at once. The largest that is decoded anywhere takes some 384.
const MEGABYTES: u32 = 400;

/// Bytes that decoding takes for each pixel: four channels of two bytes, and copies of one byte a channel.
const BYTES_PER_PIXEL: u64 = 16;

/// What is left of them.
static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MEGABYTES as usize)));

/// Does work that decodes a picture file, on a thread of its own and once there is memory for it: all such work together
/// takes at most some 400 MB, by what the files say about their size. Returns `None` if the work panicked.
pub async fn decode<T: Send + 'static>(file: Vec<u8>, work: impl FnOnce(Vec<u8>) -> T + Send + 'static) -> Option<T> {
    let permit = Arc::clone(&ROOM).acquire_many_owned(needed(&file)).await.ok()?;
    let done = tokio::task::spawn_blocking(move || {
        // Held until the work ends, even if nobody waits for it any more.
        let _permit = permit;
        work(file)
    });
    done.await.ok()
}

/// Returns the megabytes that decoding a file takes. One that cannot be read takes little.
fn needed(file: &[u8]) -> u32 {
    let any = PictureLimits { max_bytes: usize::MAX, max_side: u32::MAX, max_pixels: u64::MAX };
    let pixels = Picture::size_of(file, &any).map_or(0, |(width, height)| u64::from(width) * u64::from(height));
    let megabytes = pixels.saturating_mul(BYTES_PER_PIXEL) >> 20;
    u32::try_from(megabytes).unwrap_or(MEGABYTES).saturating_add(1).min(MEGABYTES)
}
