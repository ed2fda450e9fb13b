use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use azera_gguf::{GgufFile, Skeleton, Tensor, TensorType, Value};
use azera_model::Error;
use llama_cpp_2::model::LlamaModel;
use tempfile::{NamedTempFile, TempPath};

use super::lora::{A, ADAPTER_TYPE, ALPHA, ARCHITECTURE, B, GENERAL_TYPE};
use crate::backend;

/// What adapters of a model must fit.
pub(super) struct Base {
    pub(super) architecture: String,
    /// The weights that can be adapted, by their names: how many numbers each takes and gives.
    pub(super) weights: BTreeMap<String, [usize; 2]>,
    /// The model without its words and its weights.
    hull: TempPath,
}

impl Base {
    /// Reads the header of a model's file.
    pub(super) fn read(model: &Path) -> Result<Self, Error> {
        let failed = |error: &dyn std::error::Error| {
            Error::Load(format!("the model's shape could not be read from {}: {error}", model.display()))
        };
        let file = File::open(model).map_err(|error| failed(&error))?;
        let Skeleton { header, file_bytes, layout } = Skeleton::read(file).map_err(|error| failed(&error))?;
        let architecture = layout.texts.get(ARCHITECTURE).cloned().unwrap_or_default();
        let weights = layout.tensors.iter().filter_map(|tensor| {
            let name = std::str::from_utf8(&tensor.name).ok().filter(|name| is_adaptable(name))?;
            match tensor.dimensions.as_slice() {
                [takes, gives] => {
                    Some((name.to_owned(), [usize::try_from(*takes).ok()?, usize::try_from(*gives).ok()?]))
                }
                _ => None,
            }
        });
        let weights = weights.collect();
        let hull = written(|file| {
            file.write_all(&header)?;
            // The weights are never read from it, so none are written.
            file.as_file().set_len(file_bytes)
        });
        Ok(Self { architecture, weights, hull: hull.map_err(|error| failed(&error))? })
    }

    /// The model without its words and its weights, in llama.cpp. Adapters that are read for it fit the model itself,
    /// since llama.cpp looks them up by the names of weights; and they leave memory with it, for which its binding
    /// has no other way. It takes some hundred KB.
    pub(super) fn hull(&self, gpu_layers: Option<u32>) -> Result<LlamaModel, Error> {
        let params = backend::params(gpu_layers).with_no_alloc(true);
        LlamaModel::load_from_file(backend::backend()?, &self.hull, &params)
            .map_err(|_| Error::Load("llama.cpp cannot read the model's shape; its log says why".into()))
    }

    /// An adapter of rank 1 for every weight that does nothing.
    fn nothing(&self) -> GgufFile {
        let mut file = GgufFile::default();
        file.set(GENERAL_TYPE, Value::String("adapter".into()));
        file.set(ARCHITECTURE, Value::String(self.architecture.clone()));
        file.set(ADAPTER_TYPE, Value::String("lora".into()));
        file.set(ALPHA, Value::F32(1.0));
        for (weight, [takes, gives]) in &self.weights {
            for (suffix, shape) in [(A, [*takes, 1]), (B, [1, *gives])] {
                file.tensors.push(Tensor {
                    name: format!("{weight}{suffix}"),
                    dimensions: shape.map(|size| size as u64).to_vec(),
                    tensor_type: TensorType::F16,
                    data: vec![0; size_of::<u16>() * shape.into_iter().product::<usize>()],
                });
            }
        }
        file
    }

    /// Makes llama.cpp's graphs of a model large enough for one adapter of any rank on every weight: it counts what is
    /// read for a model before its context is made.
    pub(super) fn make_room(&self, model: &mut LlamaModel) -> Result<(), Error> {
        let failed =
            |error: &dyn std::error::Error| Error::Load(format!("no room for adapters could be made: {error}"));
        let path = written(|file| self.nothing().write(file)).map_err(|error| failed(&error))?;
        model.lora_adapter_init(&path).map(|_| ()).map_err(|error| failed(&error))
    }
}

/// Whether a weight is one that llama.cpp looks for adapters of. The token embedding is none: models whose output shares
/// it end the process.
fn is_adaptable(name: &str) -> bool {
    name == "output.weight" || name.starts_with("blk.") && name.ends_with(".weight")
}

/// A file of our own, gone when it is dropped.
pub(super) fn written(write: impl FnOnce(&mut NamedTempFile) -> io::Result<()>) -> io::Result<TempPath> {
    let mut file = NamedTempFile::new()?;
    write(&mut file)?;
    file.as_file_mut().flush()?;
    Ok(file.into_temp_path())
}
