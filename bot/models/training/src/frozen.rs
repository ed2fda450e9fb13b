//! Learning beside what was learnt before: the adapters of earlier times are added and stay as they are, and what is learnt
//! reads only what none of them reads (O-LoRA, Wang et al. 2023). Where O-LoRA punishes overlap, here it is taken away: the
//! rows of the new `A` are projected on the orthogonal complement of all rows of the others.

use candle_core::Tensor;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::adamw::Recipe;
use crate::base::{BaseModel, PROJECTIONS};
use crate::error::{Error, Result};
use crate::lora::{Lora, LoraPair};
use crate::slice::{matrix, read};
use crate::span::OrthonormalBasis;

/// A row of which no more than this share lies outside of those before is one of them, rounded to 32-bit floats.
const DEPENDENT: f64 = 1e-6;

/// What stays as it is while something is learnt beside it.
#[derive(Debug)]
pub(crate) struct FrozenLoras {
    /// The sum of the adapters, at the scale of the one that learns.
    sum: Lora,
    /// For each projection an orthonormal basis of what they read, directions by inputs.
    bases: Vec<Tensor>,
    identity: String,
}

impl FrozenLoras {
    /// None for no adapters.
    pub(crate) fn new(base: &BaseModel, loras: &[Lora], recipe: &Recipe) -> Result<Option<Self>> {
        if loras.is_empty() {
            return Ok(None);
        }
        let like = Lora::zero(base.shape(), 1, 1.0);
        if let Some(place) = loras.iter().position(|lora| !lora.goes_with(&like)) {
            return Err(Error::Loras(format!("number {} is made for another model", place + 1)));
        }
        let sum = Lora::joined_at(recipe.alpha / recipe.rank as f32, loras)?;
        let bases = sum.pairs.par_iter().enumerate().map(|(index, pair)| basis(index, pair, recipe.rank));
        Ok(Some(Self { bases: bases.collect::<Result<_>>()?, sum, identity: identify(loras) }))
    }

    /// What is added to each projection besides.
    pub(crate) fn sum(&self) -> &Lora {
        &self.sum
    }

    /// The SHA-256 of the adapters.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Takes from the rows of `A` what the adapters read: `A - A Q^T Q` for a basis `Q`.
    pub(crate) fn leave(&self, lora: &mut Lora) -> Result<()> {
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
    /// A SHA-256 of its numbers, whatever file it comes from.
    pub fn identity(&self) -> String {
        identify(std::slice::from_ref(self))
    }
}

/// Names adapters by one SHA-256, in their order; nothing for none.
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
    crate::checkpoint::hex(&hasher.finalize())
}
