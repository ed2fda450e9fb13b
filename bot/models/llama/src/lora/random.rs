use std::io::{self, Write};
use std::path::Path;

use azera_model_api::Error;
use azera_model_gguf::{GgufFile, Tensor, TensorType, Value};
use half::f16;

use super::file::{A, ALPHA, ARCHITECTURE, B, GENERAL_TYPE, LORA_TYPE};
use super::shape::BaseShape;

/// An untrained LoRA of noise, to measure the cost of LoRAs and for tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomLora {
    /// The number of rows of each first matrix.
    pub rank: u16,
    /// The largest number in the second matrices. With 0 the LoRA changes nothing.
    pub noise: f32,
    /// Different seeds give different LoRAs.
    pub seed: u64,
}

impl RandomLora {
    /// Writes a LoRA for every weight of a model that can have one.
    ///
    /// # Errors
    /// [`Error::Load`] if the model's file cannot be read or `out` cannot be written.
    pub fn write(&self, model: &Path, out: &mut impl Write) -> Result<(), Error> {
        let failed = |error: io::Error| Error::Load(format!("the LoRA could not be written: {error}"));
        self.file(&BaseShape::read(model)?).write(out).map_err(failed)
    }

    fn file(&self, base: &BaseShape) -> GgufFile {
        let mut file = GgufFile::default();
        file.set(GENERAL_TYPE, Value::String("adapter".into()));
        file.set(ARCHITECTURE, Value::String(base.architecture.clone()));
        file.set(LORA_TYPE, Value::String("lora".into()));
        file.set(ALPHA, Value::F32(self.rank.into()));
        let mut state = self.seed;
        for (weight, [takes, gives]) in &base.weights {
            // Rows have a length of about 1, independent of their width.
            let narrow = (3.0 / *takes as f32).sqrt();
            let rank = usize::from(self.rank);
            for (suffix, [width, rows], most) in [(A, [*takes, rank], narrow), (B, [rank, *gives], self.noise)] {
                let mut data = Vec::with_capacity(width * rows * size_of::<f16>());
                for _ in 0..width * rows {
                    data.extend_from_slice(&f16::from_f32(most * draw(&mut state)).to_le_bytes());
                }
                let dimensions = vec![width as u64, rows as u64];
                let name = format!("{weight}{suffix}");
                file.tensors.push(Tensor { name, dimensions, tensor_type: TensorType::F16, data });
            }
        }
        file
    }
}

/// Draws a number from -1 to 1 (SplitMix64).
fn draw(state: &mut u64) -> f32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    // Single precision holds the upper 24 bits.
    (bits >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
}
