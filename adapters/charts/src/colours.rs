//! Colours of the two themes. The contrast of letters to their background is at least 4.5 to 1, that of bars to their
//! tracks at least 3 to 1 (<https://www.w3.org/TR/WCAG22/#contrast-minimum>).

use azera_adapter::Theme;

/// Red, green and blue.
pub(crate) type Colour = [u8; 3];

/// The colours of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Colours {
    pub(crate) background: Colour,
    pub(crate) letters: Colour,
    /// Colour of less important text.
    pub(crate) quiet: Colour,
    /// Colour of the filled part of a bar.
    pub(crate) accent: Colour,
    /// Colour of the empty part of a bar.
    pub(crate) track: Colour,
}

impl Colours {
    pub(crate) fn of(theme: Theme) -> Self {
        match theme {
            Theme::Dark => Self {
                background: [0x1e, 0x1f, 0x22],
                letters: [0xf2, 0xf3, 0xf5],
                quiet: [0xb5, 0xba, 0xc1],
                accent: [0x9d, 0xb2, 0xff],
                track: [0x3a, 0x3c, 0x43],
            },
            Theme::Light => Self {
                background: [0xff, 0xff, 0xff],
                letters: [0x1e, 0x1f, 0x22],
                quiet: [0x4e, 0x50, 0x58],
                accent: [0x3b, 0x56, 0xc9],
                track: [0xdf, 0xe1, 0xe6],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the relative luminance (<https://www.w3.org/TR/WCAG22/#dfn-relative-luminance>).
    fn luminance(channels: Colour) -> f64 {
        let linear = channels.map(|channel| {
            let share = f64::from(channel) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(one: Colour, other: Colour) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn colours_have_enough_contrast() {
        for theme in Theme::ALL {
            let it = Colours::of(theme);
            assert!(contrast(it.letters, it.background) >= 7.0, "{theme:?}");
            assert!(contrast(it.quiet, it.background) >= 4.5, "{theme:?}");
            assert!(contrast(it.accent, it.track) >= 3.0, "{theme:?}: {}", contrast(it.accent, it.track));
            assert!(contrast(it.accent, it.background) >= 3.0, "{theme:?}");
        }
    }
}
