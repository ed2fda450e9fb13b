use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use azera_model_api::Error;
use azera_model_gguf::{GgufFile, Skeleton, Tensor, TensorType, Value};
use llama_cpp_2::model::LlamaModel;
use tempfile::{NamedTempFile, TempPath};

use super::file::{A, ALPHA, ARCHITECTURE, B, GENERAL_TYPE, LORA_TYPE};
use crate::backend;

/// What the name of the file with a model's shape ends with, behind the model's own.
const SHAPE: &str = ".shape";

/// What adapters of a model must fit.
pub(super) struct BaseShape {
    pub(super) architecture: String,
    /// The weights that can be adapted, by their names: how many numbers each takes and gives.
    pub(super) weights: BTreeMap<String, [usize; 2]>,
    hull: Hull,
}

/// A file with the model without its words and its weights. It looks as large as the model, and takes no more than its header.
enum Hull {
    /// Beside the model, under a name that follows from the model's: also a process that is killed leaves one alone behind.
    Beside(PathBuf),
    /// A file of our own, where nothing can be written beside the model.
    Own(TempPath),
}

impl Hull {
    fn of(model: &Path, header: &[u8], file_bytes: u64) -> io::Result<Self> {
        let name = model.file_name().unwrap_or_default().to_string_lossy();
        let beside = model.with_file_name(format!("{name}{SHAPE}"));
        if is_hull(&beside, header, file_bytes) {
            return Ok(Self::Beside(beside));
        }
        let fill = |file: &mut NamedTempFile| {
            file.write_all(header)?;
            // The weights are never read from it, so none are written.
            file.as_file().set_len(file_bytes)
        };
        let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let put = NamedTempFile::new_in(folder).and_then(|mut file| {
            fill(&mut file)?;
            file.persist(&beside).map_err(|error| error.error)
        });
        match put {
            Ok(_) => Ok(Self::Beside(beside)),
            Err(_) => written(fill).map(Self::Own),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Beside(path) => path,
            Self::Own(path) => path,
        }
    }
}

/// Whether a file is what an earlier start made of that header.
fn is_hull(path: &Path, header: &[u8], file_bytes: u64) -> bool {
    let begins = |mut file: File| {
        let mut found = vec![0; header.len()];
        file.read_exact(&mut found)?;
        Ok::<_, io::Error>(file.metadata()?.len() == file_bytes && found == header)
    };
    File::open(path).and_then(begins).unwrap_or(false)
}

impl BaseShape {
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
        let hull = Hull::of(model, &header, file_bytes).map_err(|error| failed(&error))?;
        Ok(Self { architecture, weights, hull })
    }

    /// The model without its words and its weights, in llama.cpp. Adapters that are read for it fit the model itself,
    /// since llama.cpp looks them up by the names of weights; and they leave memory with it, for which its binding
    /// has no other way. It takes some hundred KB.
    pub(super) fn hull(&self, gpu_layers: Option<u32>) -> Result<LlamaModel, Error> {
        let params = backend::params(gpu_layers).with_no_alloc(true);
        LlamaModel::load_from_file(backend::backend()?, self.hull.path(), &params)
            .map_err(|_| Error::Load("llama.cpp cannot read the model's shape; its log says why".into()))
    }

    /// An adapter of rank 1 for every weight that does nothing.
    fn nothing(&self) -> GgufFile {
        let mut file = GgufFile::default();
        file.set(GENERAL_TYPE, Value::String("adapter".into()));
        file.set(ARCHITECTURE, Value::String(self.architecture.clone()));
        file.set(LORA_TYPE, Value::String("lora".into()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_stands_beside_its_model_once_or_elsewhere_where_it_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model.gguf");
        let beside = folder.path().join("model.gguf.shape");
        let all = || std::fs::read_dir(folder.path()).unwrap().count();
        for (header, bytes) in [(&b"one"[..], 5_000), (b"one", 5_000), (b"another", 7_000)] {
            let hull = Hull::of(&model, header, bytes).unwrap();
            assert_eq!(hull.path(), beside);
            drop(hull);
            assert!(is_hull(&beside, header, bytes) && !is_hull(&beside, header, bytes + 1));
            assert_eq!(all(), 1, "nothing else is left behind");
        }
        std::fs::remove_file(&beside).unwrap();
        std::fs::create_dir(&beside).unwrap();
        let hull = Hull::of(&model, b"one", 5_000).unwrap();
        let own = hull.path().to_owned();
        assert!(own != beside && is_hull(&own, b"one", 5_000) && all() == 1);
        drop(hull);
        assert!(!own.exists());
    }
}
