//! Pictures that people send, on their whole way: what is kept of them is within limits, holds no metadata, and stays as it
//! is. What is decoded, to be seen or to start a drawing from, is within limits, whatever the bytes say, and what is
//! written anew is a picture without anything else.
#![no_main]

use azera_memory::without_metadata;
use azera_model_image::{Picture, PictureLimits};
use azera_types::Part;
use libfuzzer_sys::fuzz_target;

/// The longest side of a picture that is written anew.
const SIDE: u32 = 64;

fuzz_target!(|bytes: &[u8]| {
    let part = Part::new("x.png", Some("image/png"), bytes.len() as u64);
    let kept = without_metadata(&part, bytes.to_vec());
    if let Some(kept) = &kept {
        assert!(kept.len() <= bytes.len());
        assert!(!kept.windows(6).any(|six| six == b"Exif\0\0") || bytes.windows(6).any(|six| six == b"Exif\0\0"));
        assert_eq!(without_metadata(&part, kept.clone()).as_ref(), Some(kept), "nothing more is removed");
    }
    // Small limits, so that a case takes no longer than its bytes are worth.
    let limits = PictureLimits { max_pixels: 1 << 18, ..PictureLimits::default() };
    for bytes in [Some(bytes), kept.as_deref()].into_iter().flatten() {
        let size = Picture::size_of(bytes, &limits);
        let Ok(picture) = Picture::read(bytes, &limits) else { continue };
        assert_eq!(size, Ok((picture.width(), picture.height())), "the header says what is decoded");
        assert!(u64::from(picture.width()) * u64::from(picture.height()) <= limits.max_pixels);
        let small = picture.thumbnail(SIDE);
        assert!(small.width().max(small.height()) <= SIDE.max(1));
        let written = small.to_png(&[]).expect("pixels are written");
        assert_eq!(Picture::read(&written, &limits).as_ref(), Ok(&small));
        assert_eq!(without_metadata(&part, written.clone()), Some(written), "nothing but pixels is written");
    }
});
