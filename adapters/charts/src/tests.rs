//! Tests of the drawn pictures.

use azera_adapter::{ChartLink, Theme};
use proptest::prelude::*;

use super::*;
use crate::colours::Colour;
use crate::png::tests::unpack;

/// A decoded picture.
struct Picture {
    height: u32,
    pixels: Vec<Colour>,
}

impl Picture {
    fn at(&self, x: u32, y: u32) -> Colour {
        self.pixels[(y * WIDTH + x) as usize]
    }
}

fn seen(chart: &Chart) -> Picture {
    let (width, height, pixels) = unpack(&draw(chart).unwrap());
    assert_eq!(width, WIDTH);
    Picture { height, pixels: pixels.as_chunks::<3>().0.to_vec() }
}

fn bar(percent: u8) -> Bar {
    Bar { label: "energy".into(), percent, value: format!("{percent} %") }
}

fn chart(theme: Theme) -> Chart {
    Chart {
        title: "Azera".into(),
        subtitle: "feels curious".into(),
        bars: vec![bar(0), bar(50), bar(100)],
        columns_title: "by week".into(),
        columns: [0, 1, 1_000].map(|value| Column { label: "9/7".into(), value }).to_vec(),
        theme,
        ..Chart::default()
    }
}

/// Returns the number of pixels of a colour along the middle of a bar.
fn filled(picture: &Picture, bar: u32, colour: Colour) -> u32 {
    let y = MARGIN + TITLE_LINE + SUBTITLE_LINE + GAP + bar * BAR_LINE + BAR_LINE / 2;
    let count = (MARGIN + BEFORE_BAR..WIDTH - MARGIN - BEHIND_BAR).filter(|x| picture.at(*x, y) == colour);
    u32::try_from(count.count()).unwrap()
}

#[test]
fn bars_are_as_long_as_their_share_in_both_themes() {
    for theme in Theme::ALL {
        let (picture, colours) = (seen(&chart(theme)), Colours::of(theme));
        let whole = WIDTH - 2 * MARGIN - BEFORE_BAR - BEHIND_BAR;
        assert_eq!(filled(&picture, 0, colours.accent), 0);
        assert!(filled(&picture, 1, colours.accent).abs_diff(whole / 2) <= 2);
        assert!(filled(&picture, 2, colours.accent) >= whole - 2);
        assert_eq!(picture.at(0, 0), colours.background);
        assert!(filled(&picture, 0, colours.track) >= whole - 2, "the track of an empty bar has the full width");
    }
}

#[test]
fn the_highest_column_is_full_and_a_tiny_one_is_visible() {
    let (picture, colours) = (seen(&chart(Theme::Dark)), Colours::of(Theme::Dark));
    let step = (WIDTH - 2 * MARGIN) / 3;
    let top = MARGIN + TITLE_LINE + SUBTITLE_LINE + GAP + 3 * BAR_LINE + GAP + LABEL_LINE;
    let height = |column: u32| {
        let x = MARGIN + column * step + step / 2;
        (top..top + COLUMNS).filter(|y| picture.at(x, *y) == colours.accent).count()
    };
    assert_eq!([0, 1, 2].map(height), [0, 2, COLUMNS as usize]);
}

#[test]
fn each_link_has_a_line_as_strong_as_its_share() {
    let link = |percent, is_plain| ChartLink { label: "Oslo".into(), words: "lives in".into(), percent, is_plain };
    let colours = Colours::of(Theme::Dark);
    let chart = Chart { title: "Ann".into(), links: vec![link(100, false), link(0, true)], ..Chart::default() };
    let picture = seen(&chart);
    let top = MARGIN + TITLE_LINE + SUBTITLE_LINE + GAP;
    // Halfway between the node of the title and the others.
    let drawn = |colour| (top..top + 2 * LINK_LINE).filter(|y| picture.at(MARGIN + 100, *y) == colour).count();
    assert!(drawn(colours.accent) >= 6, "{}", drawn(colours.accent));
    assert!((1..=3).contains(&drawn(colours.track)), "{}", drawn(colours.track));
    assert_eq!(picture.height, height(0, 2, false));
}

#[test]
fn more_text_draws_more_letters() {
    let letters = Colours::of(Theme::Dark).letters;
    let drawn = |title: &str| {
        let picture = seen(&Chart { title: title.into(), ..Chart::default() });
        picture.pixels.iter().filter(|pixel| **pixel == letters).count()
    };
    assert_eq!(drawn(""), 0);
    assert!(drawn("Azera") > 200);
    assert!(drawn("Azera of the lighthouse") > 2 * drawn("Azera"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_text_runs_over_the_edge(
        words in "\\PC{0,60}",
        bars in prop::collection::vec(any::<u8>(), 0..14),
        columns in prop::collection::vec(any::<usize>(), 0..40),
        links in prop::collection::vec(any::<u8>(), 0..15),
    ) {
        let label = |value: usize| Column { label: words.clone(), value };
        let chart = Chart {
            title: words.clone(),
            subtitle: words.repeat(4),
            bars: bars.into_iter().map(|percent| Bar { label: words.clone(), percent, value: words.clone() }).collect(),
            columns: columns.into_iter().map(label).collect(),
            links: links.into_iter().map(|percent| ChartLink {
                label: words.clone(),
                words: words.clone(),
                percent,
                is_plain: percent % 2 == 0,
            }).collect(),
            columns_title: words.clone(),
            ..Chart::default()
        };
        let (picture, background) = (seen(&chart), Colours::of(Theme::Dark).background);
        let edge = |x: u32, y: u32| x < MARGIN / 2 || y < MARGIN / 2 || x >= WIDTH - MARGIN / 2 || y >= picture.height - MARGIN / 4;
        for (x, y) in (0..picture.height).flat_map(|y| (0..WIDTH).map(move |x| (x, y))) {
            prop_assert!(!edge(x, y) || picture.at(x, y) == background, "{x} {y}");
        }
    }
}
