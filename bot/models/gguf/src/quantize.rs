//! Q8_0 quantization: blocks of 32 weights, stored as signed bytes with one 16-bit scale.

use half::f16;

/// The weights in one block.
pub const Q8_0_BLOCK: usize = 32;
/// The bytes of one block: the scale, then one byte per weight.
const BLOCK_BYTES: usize = 2 + Q8_0_BLOCK;
/// The largest magnitude of a byte. -128 is not used, so that the range is symmetric.
const LEVELS: f32 = 127.0;

/// Quantizes `weights` to Q8_0 blocks. The scale is max |w| / 127 as f16. Each byte is round(w / scale) with the scale
/// at full precision, half away from zero. This matches ggml's reference quantizer, so files are the same on every
/// machine.
///
/// The length must be a multiple of [`Q8_0_BLOCK`]; an incomplete last block is dropped.
pub fn quantize_q8_0(weights: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(weights.len() / Q8_0_BLOCK * BLOCK_BYTES);
    for block in weights.as_chunks::<Q8_0_BLOCK>().0 {
        let largest = block.iter().fold(0.0_f32, |max, w| max.max(w.abs()));
        let scale = largest / LEVELS;
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        bytes.extend_from_slice(&f16::from_f32(scale).to_le_bytes());
        // `as` saturates, and a NaN weight becomes 0, so a damaged weight cannot spoil its whole block.
        bytes.extend(block.iter().map(|w| ((w * inverse).round() as i8).to_le_bytes()[0]));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dequantize(bytes: &[u8]) -> Vec<f32> {
        bytes
            .chunks_exact(BLOCK_BYTES)
            .flat_map(|block| {
                let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
                block[2..].iter().map(move |b| f32::from(b.cast_signed()) * scale).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn known_blocks_have_these_bytes() {
        let mut ramp = [0.0_f32; Q8_0_BLOCK];
        ramp[0] = 127.0;
        ramp[1] = -127.0;
        ramp[2] = 0.5;
        ramp[3] = -0.5;
        let bytes = quantize_q8_0(&ramp);
        assert_eq!(&bytes[..6], &[0x00, 0x3C, 127, 129, 1, 255], "scale 1.0, halves away from zero");
        assert_eq!(quantize_q8_0(&[0.0; Q8_0_BLOCK]), vec![0; BLOCK_BYTES]);
    }

    proptest! {
        #[test]
        fn restored_weights_differ_by_at_most_half_a_step(weights in prop::collection::vec(-8.0_f32..8.0, Q8_0_BLOCK * 3)) {
            let back = dequantize(&quantize_q8_0(&weights));
            for (block, restored) in weights.chunks(Q8_0_BLOCK).zip(back.chunks(Q8_0_BLOCK)) {
                let largest = block.iter().fold(0.0_f32, |max, w| max.max(w.abs()));
                // Half a step of rounding, plus 127 times the rounding of the scale to 11 bits (or to a subnormal).
                let bound = largest / 127.0 * 0.501 + largest / 2048.0 + 127.0 * 6e-8;
                for (w, r) in block.iter().zip(restored) {
                    prop_assert!((w - r).abs() <= bound, "{w} came back as {r}, bound {bound}");
                }
            }
        }
    }
}
