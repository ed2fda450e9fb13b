//! Text in DejaVu Sans. The crate contains its Latin, Greek and Cyrillic letters (`fonts/`); others appear as an empty
//! box.

use ab_glyph::{Font, FontRef, InvalidFont, PxScale, ScaleFont, point};

use crate::canvas::Canvas;
use crate::colours::Colour;

/// Shown where a text was cut.
const ELLIPSIS: char = '\u{2026}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Plain,
    Bold,
}

pub(crate) struct Lettering {
    plain: FontRef<'static>,
    bold: FontRef<'static>,
}

impl Lettering {
    pub(crate) fn new() -> Result<Self, InvalidFont> {
        Ok(Self {
            plain: FontRef::try_from_slice(include_bytes!("../fonts/DejaVuSans.ttf"))?,
            bold: FontRef::try_from_slice(include_bytes!("../fonts/DejaVuSans-Bold.ttf"))?,
        })
    }

    /// Draws a line of text with its upper left corner at `at`, cut to `width`.
    #[expect(clippy::too_many_arguments, reason = "where and how, and each is something else")]
    pub(crate) fn write(
        &self,
        canvas: &mut Canvas,
        text: &str,
        weight: Weight,
        size: f32,
        at: (u32, u32),
        width: u32,
        colour: Colour,
    ) {
        let font = match weight {
            Weight::Plain => &self.plain,
            Weight::Bold => &self.bold,
        };
        let scaled = font.as_scaled(PxScale::from(size));
        let advance = |c: char| scaled.h_advance(scaled.glyph_id(c));
        let shown = fitting(text, width as f32, advance);
        let base = at.1 as f32 + scaled.ascent();
        let mut x = at.0 as f32;
        for letter in shown.chars() {
            let glyph = scaled.glyph_id(letter).with_scale_and_position(size, point(x, base));
            x += advance(letter);
            let Some(outline) = font.outline_glyph(glyph) else { continue };
            let bounds = outline.px_bounds();
            let (left, top) = (bounds.min.x as i32, bounds.min.y as i32);
            outline.draw(|x, y, share| canvas.mix(left + x as i32, top + y as i32, colour, share));
        }
    }
}

/// Returns the text on one line, without control characters, cut to `width`.
fn fitting(text: &str, width: f32, advance: impl Fn(char) -> f32) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let whole: f32 = line.chars().map(&advance).sum();
    if whole <= width {
        return line;
    }
    let mut left = width - advance(ELLIPSIS);
    let retained = line.chars().take_while(|c| {
        left -= advance(*c);
        left >= 0.0
    });
    let retained: String = retained.collect();
    format!("{}{ELLIPSIS}", retained.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_the_width() {
        let fit = |text: &str| fitting(text, 5.0, |_| 1.0);
        assert_eq!(fit("moon\n lit"), "moon\u{2026}");
        assert_eq!(fit("moons"), "moons");
        assert_eq!(fit("moonlit"), "moon\u{2026}");
        assert_eq!(fit(""), "");
    }

    #[test]
    fn the_fonts_contain_the_letters() {
        let letters = Lettering::new().unwrap();
        for font in [&letters.plain, &letters.bold] {
            for letter in "Azera 0123456789 %,.:-\u{2026} äöüßéñçøå Ωλ Жя".chars() {
                assert_ne!(font.glyph_id(letter).0, 0, "{letter}");
            }
        }
    }
}
