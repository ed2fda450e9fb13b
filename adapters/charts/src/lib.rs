//! Draws charts as PNG pictures of one width, with letters large enough for a phone. Begin with [`draw`]; the numbers
//! come from `azera_adapter::Chart`.

mod canvas;
mod colours;
mod lettering;
mod links;
mod png;

use azera_adapter::{Bar, Chart, Column};
use thiserror::Error;

use crate::canvas::{Canvas, Rect};
use crate::colours::Colours;
use crate::lettering::{Lettering, Weight};
use crate::links::{LINK_LINE, MAX_LINKS};

/// Width of a picture in pixels: twice the width on a phone.
pub const WIDTH: u32 = 720;

/// Margin around the picture in pixels.
const MARGIN: u32 = 40;

/// Letter sizes of the title, the subtitle and labels.
const TITLE: f32 = 44.0;
const SUBTITLE: f32 = 30.0;
const LABEL: f32 = 28.0;
/// Letter size below columns, so that eight labels fit side by side.
const SMALL: f32 = 22.0;

/// Line heights of those letters.
const TITLE_LINE: u32 = 56;
const SUBTITLE_LINE: u32 = 44;
const LABEL_LINE: u32 = 40;

/// A bar: its height, its line height, and the space for labels before and after it.
const BAR: u32 = 24;
const BAR_LINE: u32 = 52;
const BEFORE_BAR: u32 = 210;
const BEHIND_BAR: u32 = 110;

/// Columns: the height of the highest, and the gap between columns.
const COLUMNS: u32 = 150;
const COLUMN_GAP: u32 = 4;

/// Pixels between two parts of a chart.
const GAP: u32 = 20;

/// Most bars and columns that are drawn.
const MAX_BARS: usize = 10;
const MAX_COLUMNS: usize = 16;

/// Why nothing was drawn.
#[derive(Debug, Error)]
pub enum Error {
    /// The fonts in this crate cannot be read.
    #[error("the font cannot be used: {0}")]
    Font(#[from] ab_glyph::InvalidFont),
    /// The picture could not be compressed.
    #[error("the picture could not be made: {0}")]
    Picture(#[from] std::io::Error),
}

/// Draws a chart and returns a PNG file, [`WIDTH`] pixels wide and as high as needed. Text that does not fit ends with
/// an ellipsis. At most the first 10 bars, the first 12 links and the last 16 columns are drawn.
///
/// # Errors
///
/// Fails if the font or the compression fails, which does not depend on the chart.
pub fn draw(chart: &Chart) -> Result<Vec<u8>, Error> {
    let bars = chart.bars.get(..MAX_BARS).unwrap_or(&chart.bars);
    let links = chart.links.get(..MAX_LINKS).unwrap_or(&chart.links);
    let columns = chart.columns.get(chart.columns.len().saturating_sub(MAX_COLUMNS)..).unwrap_or_default();
    let mut drawing = Drawing {
        canvas: Canvas::new(WIDTH, height(bars.len(), links.len(), !columns.is_empty()), Colours::of(chart.theme)),
        letters: Lettering::new()?,
        y: MARGIN,
    };
    drawing.head(chart);
    bars.iter().for_each(|bar| drawing.bar(bar));
    drawing.links(links);
    if !columns.is_empty() {
        drawing.columns(&chart.columns_title, columns);
    }
    Ok(drawing.canvas.into_png()?)
}

fn height(bars: usize, links: usize, columns: bool) -> u32 {
    let bars = u32::try_from(bars).unwrap_or(0) * BAR_LINE;
    let links = u32::try_from(links).unwrap_or(0) * LINK_LINE;
    let below = if columns { GAP + LABEL_LINE + COLUMNS + LABEL_LINE } else { 0 };
    MARGIN + TITLE_LINE + SUBTITLE_LINE + GAP + bars + links + below + MARGIN
}

/// A picture in progress, drawn from top to bottom.
struct Drawing {
    canvas: Canvas,
    letters: Lettering,
    y: u32,
}

impl Drawing {
    fn head(&mut self, chart: &Chart) {
        let (width, colours) = (WIDTH - 2 * MARGIN, self.canvas.colours);
        self.letters.write(
            &mut self.canvas,
            &chart.title,
            Weight::Bold,
            TITLE,
            (MARGIN, self.y),
            width,
            colours.letters,
        );
        self.y += TITLE_LINE;
        self.letters.write(
            &mut self.canvas,
            &chart.subtitle,
            Weight::Plain,
            SUBTITLE,
            (MARGIN, self.y),
            width,
            colours.quiet,
        );
        self.y += SUBTITLE_LINE + GAP;
    }

    fn bar(&mut self, bar: &Bar) {
        let colours = self.canvas.colours;
        // The label's capitals are centred on the bar.
        let text = (MARGIN, self.y + (BAR_LINE - LABEL as u32) / 2);
        self.letters.write(&mut self.canvas, &bar.label, Weight::Plain, LABEL, text, BEFORE_BAR - GAP, colours.letters);
        let whole = WIDTH - 2 * MARGIN - BEFORE_BAR - BEHIND_BAR;
        let at = Rect { x: MARGIN + BEFORE_BAR, y: self.y + (BAR_LINE - BAR) / 2, width: whole, height: BAR };
        self.canvas.pill(at, colours.track);
        let filled = whole * u32::from(bar.percent.min(100)) / 100;
        self.canvas.pill(Rect { width: filled, ..at }, colours.accent);
        let value = (at.x + whole + GAP, text.1);
        self.letters.write(&mut self.canvas, &bar.value, Weight::Bold, LABEL, value, BEHIND_BAR - GAP, colours.letters);
        self.y += BAR_LINE;
    }

    fn columns(&mut self, title: &str, columns: &[Column]) {
        let (room, colours) = (WIDTH - 2 * MARGIN, self.canvas.colours);
        self.y += GAP;
        self.letters.write(&mut self.canvas, title, Weight::Plain, LABEL, (MARGIN, self.y), room, colours.quiet);
        self.y += LABEL_LINE;
        let count = u32::try_from(columns.len()).unwrap_or(1).max(1);
        let step = room / count;
        let highest = columns.iter().map(|column| column.value).max().unwrap_or(0).max(1);
        for (number, column) in (0..count).zip(columns) {
            let x = MARGIN + number * step;
            let share = column.value as f32 / highest as f32;
            // Values above zero are always visible.
            let height = ((COLUMNS as f32 * share) as u32).max(u32::from(column.value > 0) * 2);
            let colour = if column.value > 0 { colours.accent } else { colours.track };
            let height = height.max(2);
            let at = Rect { x: x + COLUMN_GAP / 2, y: self.y + COLUMNS - height, width: step - COLUMN_GAP, height };
            self.canvas.fill(at, colour);
            self.letters.write(
                &mut self.canvas,
                &column.label,
                Weight::Plain,
                SMALL,
                (x, self.y + COLUMNS + (LABEL_LINE - SMALL as u32) / 2),
                WIDTH - MARGIN - x,
                colours.quiet,
            );
        }
        self.y += COLUMNS + LABEL_LINE;
    }
}

#[cfg(test)]
mod tests;
