//! Pictures as sixels: bands of six rows, each painted once for every colour in it.

use std::collections::BTreeMap;
use std::ops::Range;

/// Levels of each of red, green and blue.
const LEVELS: usize = 6;

/// Rows of a band.
const BAND: usize = 6;

/// The thresholds of ordered dithering: a grid of 4 by 4 pixels, each from 0 to 15.
const DITHER: [[i32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// Returns pixels, three bytes each and row by row, as sixels in 216 colours.
pub(crate) fn encode(width: usize, height: usize, pixels: &[u8]) -> String {
    // The picture is transparent where nothing is painted, and its pixels are square.
    let mut out = format!("\u{1b}P0;1q\"1;1;{width};{height}");
    for colour in 0..LEVELS * LEVELS * LEVELS {
        let share = |level: usize| level * 100 / (LEVELS - 1);
        let (red, green, blue) = (colour / (LEVELS * LEVELS), colour / LEVELS % LEVELS, colour % LEVELS);
        out.push_str(&format!("#{colour};2;{};{};{}", share(red), share(green), share(blue)));
    }
    for top in (0..height).step_by(BAND) {
        band(&mut out, width, top..(top + BAND).min(height), pixels);
    }
    out.push_str("\u{1b}\\");
    out
}

/// Appends a band.
fn band(out: &mut String, width: usize, rows: Range<usize>, pixels: &[u8]) {
    let mut columns: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (bit, y) in rows.enumerate() {
        for x in 0..width {
            let colour = colour_at(x, y, width, pixels);
            let painted = columns.entry(colour).or_insert_with(|| vec![0; width]);
            if let Some(column) = painted.get_mut(x) {
                *column |= 1 << bit;
            }
        }
    }
    for (colour, painted) in columns {
        out.push_str(&format!("#{colour}"));
        runs(out, &painted);
        out.push('$');
    }
    out.push('-');
}

/// Appends columns, with runs of equal ones shortened.
fn runs(out: &mut String, columns: &[u8]) {
    for run in columns.chunk_by(|one, other| one == other) {
        let Some(column) = run.first() else { continue };
        let sign = char::from(b'?' + column);
        match run.len() {
            length @ 4.. => out.push_str(&format!("!{length}{sign}")),
            length => out.extend(std::iter::repeat_n(sign, length)),
        }
    }
}

/// Returns the colour of a pixel, dithered.
fn colour_at(x: usize, y: usize, width: usize, pixels: &[u8]) -> usize {
    let at = (y * width + x) * 3;
    let threshold = DITHER[y % 4][x % 4];
    let level = |channel: usize| {
        let value = i32::from(pixels.get(at + channel).copied().unwrap_or(0));
        // The distance between two levels is 51; the threshold moves a value by up to half of it.
        let moved = value + (threshold * 2 - 15) * 51 / 32;
        usize::try_from((moved + 25).clamp(0, 255) / 51).unwrap_or(0)
    };
    level(0) * LEVELS * LEVELS + level(1) * LEVELS + level(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_painted_once_for_each_colour() {
        let pixels: Vec<u8> = (0..8).flat_map(|x| if x < 5 { [255, 0, 0] } else { [0, 0, 255] }).collect();
        let out = encode(8, 1, &pixels);
        assert!(out.starts_with("\u{1b}P0;1q\"1;1;8;1#0;2;0;0;0#1;2;0;0;20"), "{out}");
        // Red is 180, blue 5; one row is the first bit.
        assert!(out.ends_with("#5!5?@@@$#180!5@???$-\u{1b}\\"), "{out}");
    }

    #[test]
    fn a_picture_has_a_band_for_every_six_rows() {
        let out = encode(2, 13, &[128; 2 * 13 * 3]);
        assert_eq!(out.matches('-').count(), 3);
        assert!(out.bytes().all(|byte| byte == 0x1b || (0x20..0x7f).contains(&byte)));
    }
}
