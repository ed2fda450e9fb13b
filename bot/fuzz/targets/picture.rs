//! Pictures that people send: what is kept of them is within limits, holds no metadata, and stays as it is; what is
//! decoded is within limits, whatever the bytes say.
#![no_main]

use azera_memory::without_metadata;
use azera_model_image::{Picture, PictureLimits};
use azera_types::Part;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let part = Part::new("x.png", Some("image/png"), bytes.len() as u64);
    if let Some(kept) = without_metadata(&part, bytes.to_vec()) {
        assert!(kept.len() <= bytes.len());
        assert!(!kept.windows(6).any(|six| six == b"Exif\0\0") || bytes.windows(6).any(|six| six == b"Exif\0\0"));
        assert_eq!(without_metadata(&part, kept.clone()).as_ref(), Some(&kept), "nothing more is removed");
    }
    let limits = PictureLimits { max_pixels: 1 << 20, ..PictureLimits::default() };
    if let Ok(picture) = Picture::read(bytes, &limits) {
        assert!(u64::from(picture.width()) * u64::from(picture.height()) <= limits.max_pixels);
    }
});
