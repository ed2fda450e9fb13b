//! How a manner shifts under pressure: more and more of a second style mixed into the first.

use azera_types::Dimension;

use crate::bond::Bond;

/// One layer of a style blend, as a persona file's `style_blend` has it, with the directives its names stand for.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    /// The feeling that drives it.
    pub axis: Dimension,
    /// How strong that must be before anything is mixed in, 0 to 1.
    pub threshold: f64,
    /// What always holds.
    pub primary: &'a [String],
    /// What is mixed in, the mildest first.
    pub secondary: &'a [String],
}

/// The directives that hold towards somebody: those of every layer's primary, whole; then of each secondary as many as the feeling
/// calls for. At the threshold there are none of these, at 1 there are all, and a stronger feeling never takes one away. They keep
/// their order, so that a prompt changes at its end alone. A directive is told once.
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

/// How many of `count` directives a feeling of this strength mixes in.
fn mixed(value: f64, threshold: f64, count: usize) -> usize {
    if value.is_nan() || value <= threshold {
        return 0;
    }
    let share = (value - threshold) / (1.0 - threshold);
    // The first comes as soon as the threshold is passed, the last in the last step.
    ((share * count as f64).ceil() as usize).min(count)
}
