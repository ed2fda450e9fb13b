//! The style blend: as a feeling rises, more and more of a second style is mixed into the first.

use azera_types::Dimension;

use crate::bond::Bond;

/// One layer of a style blend from a persona file's `style_blend`, with its names resolved to directives.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    /// The feeling that drives the layer.
    pub axis: Dimension,
    /// The strength of the feeling from which the second style is mixed in, 0 to 1.
    pub threshold: f64,
    /// The directives that always apply.
    pub primary: &'a [String],
    /// The directives that are mixed in, the mildest first.
    pub secondary: &'a [String],
}

/// Returns the directives that apply towards somebody: all primary ones of every layer, then as many secondary ones of
/// each layer as its feeling calls for. At the threshold these are none, at 1 all, and a stronger feeling never removes
/// one. Directives keep their order, so that a prompt changes only at its end. Each directive appears once.
pub fn blend<'a>(layers: &[Layer<'a>], bond: &Bond) -> Vec<&'a str> {
    let primary = layers.iter().flat_map(|layer| layer.primary);
    let secondary = layers.iter().flat_map(|layer| {
        let mixed = mixed(bond.get(layer.axis), layer.threshold, layer.secondary.len());
        layer.secondary.iter().take(mixed)
    });
    let mut blended: Vec<&str> = Vec::new();
    for directive in primary.chain(secondary) {
        if !blended.contains(&directive.as_str()) {
            blended.push(directive);
        }
    }
    blended
}

/// Returns how many of `count` directives a feeling of this strength mixes in.
fn mixed(value: f64, threshold: f64, count: usize) -> usize {
    if value.is_nan() || value <= threshold {
        return 0;
    }
    let share = (value - threshold) / (1.0 - threshold);
    // The first directive applies as soon as the threshold is passed, the last in the last step.
    ((share * count as f64).ceil() as usize).min(count)
}
