//! Decoding is bounded as a whole. This is a program of its own, because it measures the memory of the process.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use azera_model_image::{Picture, PictureLimits, decode};

/// The most megabytes that all of them may take together.
const MOST: u64 = 512;

/// Returns a picture file of this size, with four channels of two bytes for each pixel.
fn large((width, height): (u32, u32)) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Sixteen);
    let mut writer = encoder.write_header().unwrap();
    let mut rows = writer.stream_writer().unwrap();
    for _ in 0..height {
        std::io::Write::write_all(&mut rows, &vec![0x40; width as usize * 8]).unwrap();
    }
    rows.finish().unwrap();
    writer.finish().unwrap();
    file
}

/// Returns the most megabytes that this process has held so far.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() / 1_024
}

#[tokio::test(flavor = "multi_thread")]
async fn large_pictures_that_are_decoded_at_once_stay_within_512_megabytes() {
    let before = peak();
    // As many pixels as a drawn picture may have, and as many as one that somebody shows.
    for (size, at_once) in [((4_096, 2_048), 20), ((6_000, 4_000), 3)] {
        let file = large(size);
        let small = |file: Vec<u8>| {
            Picture::read(&file, &PictureLimits::of_photos()).unwrap().thumbnail(256).to_jpeg().unwrap()
        };
        let work: Vec<_> = (0..at_once).map(|_| tokio::spawn(decode(file.clone(), small))).collect();
        for one in work {
            assert!(one.await.unwrap().unwrap().starts_with(b"\xff\xd8"));
        }
    }
    let taken = peak() - before;
    println!("decoding took {taken} MB");
    assert!(taken > 50, "the measurement measures nothing: {taken} MB");
    assert!(taken < MOST, "{taken} MB");
}

#[tokio::test]
async fn work_that_panics_gives_its_memory_back() {
    let file = large((4_096, 2_048));
    // There is room for three of these at once.
    for _ in 0..5 {
        assert_eq!(decode(file.clone(), |_| -> u8 { panic!("as it should") }).await, None);
    }
    assert_eq!(decode(file, |file| file.len() > 1).await, Some(true));
}
