//! Lines from the title's node to the nodes around it.

use azera_adapter::ChartLink;

use crate::canvas::Rect;
use crate::lettering::Weight;
use crate::{Drawing, LABEL, MARGIN, SMALL, WIDTH};

/// Most links that are drawn.
pub(crate) const MAX_LINKS: usize = 12;

/// Height of a link with its two lines of text.
pub(crate) const LINK_LINE: u32 = 72;

/// Radius of the node of the title, and of the others.
const CENTRE: u32 = 22;
const NODE: u32 = 9;

/// Where the nodes on the right stand.
const NODES_AT: u32 = MARGIN + 170;

/// Width of the thinnest and of the thickest line, in pixels.
const THIN: f32 = 2.0;
const THICK: f32 = 8.0;

impl Drawing {
    /// Draws links from one node on the left to one node for each of them on the right.
    pub(crate) fn links(&mut self, links: &[ChartLink]) {
        let count = u32::try_from(links.len()).unwrap_or(0);
        let colours = self.canvas.colours;
        let centre = (MARGIN + CENTRE, self.y + count * LINK_LINE / 2);
        for (number, link) in (0..count).zip(links) {
            let node = (NODES_AT, self.y + number * LINK_LINE + LINK_LINE / 2);
            let width = THIN + (THICK - THIN) * f32::from(link.percent.min(100)) / 100.0;
            let colour = if link.is_plain { colours.track } else { colours.accent };
            self.canvas.line(centre, node, width, colour);
        }
        self.dot(centre, CENTRE);
        for (number, link) in (0..count).zip(links) {
            let top = self.y + number * LINK_LINE;
            self.dot((NODES_AT, top + LINK_LINE / 2), NODE);
            let (left, letters, quiet) = (NODES_AT + 2 * NODE + 8, colours.letters, colours.quiet);
            let room = WIDTH - MARGIN - left;
            self.letters.write(&mut self.canvas, &link.label, Weight::Bold, LABEL, (left, top + 4), room, letters);
            self.letters.write(&mut self.canvas, &link.words, Weight::Plain, SMALL, (left, top + 40), room, quiet);
        }
        self.y += count * LINK_LINE;
    }

    fn dot(&mut self, centre: (u32, u32), radius: u32) {
        let at = Rect { x: centre.0 - radius, y: centre.1 - radius, width: 2 * radius, height: 2 * radius };
        self.canvas.pill(at, self.canvas.colours.accent);
    }
}
