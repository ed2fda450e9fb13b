//! The pixels of a picture: fills shapes and blends their edges.

use std::io;

use crate::colours::{Colour, Colours};
use crate::png::{self, CHANNELS};

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The picture that is being drawn.
pub(crate) struct Canvas {
    width: u32,
    height: u32,
    /// Rows from the top; each pixel is red, green, blue.
    pixels: Vec<u8>,
    pub(crate) colours: Colours,
}

impl Canvas {
    pub(crate) fn new(width: u32, height: u32, colours: Colours) -> Self {
        Self { width, height, pixels: colours.background.repeat((width * height) as usize), colours }
    }

    /// Blends a pixel with a share of a colour; ignores positions outside.
    pub(crate) fn mix(&mut self, x: i32, y: i32, colour: Colour, share: f32) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return };
        if x >= self.width || y >= self.height {
            return;
        }
        let at = (y * self.width + x) as usize * CHANNELS;
        for (there, wanted) in self.pixels.iter_mut().skip(at).zip(colour) {
            let mixed = f32::from(*there) + (f32::from(wanted) - f32::from(*there)) * share.clamp(0.0, 1.0);
            *there = mixed.round() as u8;
        }
    }

    /// Fills a rectangle.
    pub(crate) fn fill(&mut self, at: Rect, colour: Colour) {
        for y in at.y..at.y + at.height {
            for x in at.x..at.x + at.width {
                self.mix(x as i32, y as i32, colour, 1.0);
            }
        }
    }

    /// Fills a rectangle with round ends. If it is narrower than high, only part of the round end is drawn.
    pub(crate) fn pill(&mut self, at: Rect, colour: Colour) {
        let radius = at.height as f32 / 2.0;
        let (left, right) = (at.x as f32 + radius, (at.x + at.width.max(at.height)) as f32 - radius);
        let middle = at.y as f32 + radius;
        for y in at.y..at.y + at.height {
            for x in at.x..at.x + at.width {
                let (to_x, to_y) = (x as f32 + 0.5, y as f32 + 0.5);
                let distance = (to_x - to_x.clamp(left, right)).hypot(to_y - middle);
                self.mix(x as i32, y as i32, colour, radius - distance + 0.5);
            }
        }
    }

    /// Draws a straight line with round ends between two points.
    pub(crate) fn line(&mut self, from: (u32, u32), to: (u32, u32), width: f32, colour: Colour) {
        let (x, y) = (from.0 as f32, from.1 as f32);
        let (dx, dy) = (to.0 as f32 - x, to.1 as f32 - y);
        let length = (dx * dx + dy * dy).max(1.0);
        let reach = width.ceil() as u32;
        for row in from.1.min(to.1).saturating_sub(reach)..=from.1.max(to.1) + reach {
            for column in from.0.min(to.0).saturating_sub(reach)..=from.0.max(to.0) + reach {
                let (px, py) = (column as f32 + 0.5 - x, row as f32 + 0.5 - y);
                let along = ((px * dx + py * dy) / length).clamp(0.0, 1.0);
                let distance = (px - along * dx).hypot(py - along * dy);
                self.mix(column as i32, row as i32, colour, width / 2.0 - distance + 0.5);
            }
        }
    }

    pub(crate) fn into_png(self) -> io::Result<Vec<u8>> {
        png::pack(self.width, self.height, &self.pixels)
    }
}
