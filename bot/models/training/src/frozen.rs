//! Training beside earlier LoRAs: those are added and stay unchanged, and the new LoRA reads only inputs that none of
//! them reads (O-LoRA, Wang et al. 2023). O-LoRA penalizes overlap; here it is removed: the rows of the new `A` are
//! projected on the orthogonal complement of all rows of the others.

use candle_core::Tensor;
use data_encoding::HEXLOWER;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::adamw::Recipe;
use crate::base::{BaseModel, PROJECTIONS};
use crate::error::{Error, Result};
use crate::lora::{Lora, LoraPair};
use crate::slice::{matrix, read};
use crate::span::OrthonormalBasis;

/// A row with at most this share outside of the rows before it depends on them, up to the rounding of 32-bit floats.
const DEPENDENT: f64 = 1e-6;

/// The LoRAs that stay unchanged during a training.
#[derive(Debug)]
pub(crate) struct FrozenLoras {
    /// The sum of the LoRAs, at the scale of the trained one.
    sum: Lora,
    /// For each projection, an orthonormal basis of the inputs that they read, directions by inputs.
    bases: Vec<Tensor>,
    identity: String,
}

impl FrozenLoras {
    /// Returns `None` if there are no LoRAs.
    pub(crate) fn new(base: &BaseModel, loras: &[Lora], recipe: &Recipe) -> Result<Option<Self>> {
        if loras.is_empty() {
            return Ok(None);
        }
        let like = Lora::zero(base.shape(), 1, 1.0);
        if let Some(place) = loras.iter().position(|lora| !lora.has_same_shape(&like)) {
            return Err(Error::Loras(format!("number {} is made for another model", place + 1)));
        }
        let sum = Lora::joined_at(recipe.alpha / recipe.rank as f32, loras)?;
        let bases = sum.pairs.par_iter().enumerate().map(|(index, pair)| basis(index, pair, recipe.rank));
        Ok(Some(Self { bases: bases.collect::<Result<_>>()?, sum, identity: identify(loras) }))
    }

    /// Returns the sum that is added to each projection.
    pub(crate) fn sum(&self) -> &Lora {
        &self.sum
    }

    /// Returns the SHA-256 of the LoRAs.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Removes what the frozen LoRAs read from the rows of `A`: `A - A Q^T Q` for a basis `Q`.
    pub(crate) fn project_out(&self, lora: &mut Lora) -> Result<()> {
        for (pair, basis) in lora.pairs.iter_mut().zip(&self.bases) {
            if basis.dim(0)? == 0 {
                continue;
            }
            let inside = pair.a.tensor()?.matmul(&basis.t()?)?.matmul(basis)?;
            read(&inside, |inside| pair.a.values.iter_mut().zip(inside).for_each(|(value, inside)| *value -= inside))?;
        }
        Ok(())
    }
}

fn basis(index: usize, pair: &LoraPair, rank: usize) -> Result<Tensor> {
    let inputs = pair.a.columns;
    let basis = OrthonormalBasis::of(pair.a.wide(), DEPENDENT).basis;
    if basis.len() + rank > inputs {
        let (layer, part) = (index / PROJECTIONS.len(), PROJECTIONS[index % PROJECTIONS.len()]);
        return Err(Error::Recipe(format!(
            "there is no room for rank {rank} in blk.{layer}.{part}: of its {inputs} inputs {} are taken",
            basis.len()
        )));
    }
    let values = basis.iter().flatten().map(|value| *value as f32).collect();
    matrix(values, basis.len(), inputs)
}

impl Lora {
    /// Returns a SHA-256 of the numbers, whatever file they come from.
    pub fn identity(&self) -> String {
        identify(std::slice::from_ref(self))
    }
}

/// Returns one SHA-256 of LoRAs in their order; empty if there are none.
pub(crate) fn identify(loras: &[Lora]) -> String {
    if loras.is_empty() {
        return String::new();
    }
    let mut hasher = Sha256::new();
    for lora in loras {
        hasher.update((lora.rank as u64).to_le_bytes());
        hasher.update(lora.alpha.to_le_bytes());
        lora.matrices().flat_map(|matrix| &matrix.values).for_each(|value| hasher.update(value.to_le_bytes()));
    }
    HEXLOWER.encode(&hasher.finalize())
}
