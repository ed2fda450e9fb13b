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

/// The suffix of the file with a model's shape, after the model's own name.
const SHAPE: &str = ".shape";

/// The shape that the LoRAs of a model must fit.
pub(super) struct BaseShape {
    pub(super) architecture: String,
    /// The weights that a LoRA can change, by name, with the lengths of their input and output.
    pub(super) weights: BTreeMap<String, [usize; 2]>,
    skeleton: SkeletonFile,
}

/// A file with the model without its vocabulary and weights. It looks as large as the model, and uses only the space of
/// its header.
enum SkeletonFile {
    /// Beside the model, under a name derived from the model's. So even a killed process leaves only one behind.
    Beside(PathBuf),
    /// A temporary file, if the model's folder cannot be written.
    Own(TempPath),
}

impl SkeletonFile {
    fn of(model: &Path, header: &[u8], file_bytes: u64) -> io::Result<Self> {
        let name = model.file_name().unwrap_or_default().to_string_lossy();
        let beside = model.with_file_name(format!("{name}{SHAPE}"));
        if is_skeleton(&beside, header, file_bytes) {
            return Ok(Self::Beside(beside));
        }
        let fill = |file: &mut NamedTempFile| {
            file.write_all(header)?;
            // The weights are never read from this file, so the rest stays sparse.
            file.as_file().set_len(file_bytes)
        };
        let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let put = NamedTempFile::new_in(folder).and_then(|mut file| {
            fill(&mut file)?;
            file.persist(&beside).map_err(|error| error.error)
        });
        match put {
            Ok(_) => Ok(Self::Beside(beside)),
            Err(_) => write_temp_file(fill).map(Self::Own),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Beside(path) => path,
            Self::Own(path) => path,
        }
    }
}

/// Returns true if a file is what an earlier start wrote for this header.
fn is_skeleton(path: &Path, header: &[u8], file_bytes: u64) -> bool {
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
        let skeleton = SkeletonFile::of(model, &header, file_bytes).map_err(|error| failed(&error))?;
        Ok(Self { architecture, weights, skeleton })
    }

    /// Loads the model without its vocabulary and weights into llama.cpp. LoRAs that are loaded for it also fit the
    /// model itself, because llama.cpp finds weights by name. They leave memory with it; the binding has no other way
    /// to free them. It takes some hundred KB.
    pub(super) fn skeleton(&self, gpu_layers: Option<u32>) -> Result<LlamaModel, Error> {
        let params = backend::params(gpu_layers).with_no_alloc(true);
        LlamaModel::load_from_file(backend::backend()?, self.skeleton.path(), &params)
            .map_err(|_| Error::Load("llama.cpp cannot read the model's shape; its log says why".into()))
    }

    /// Returns a LoRA of rank 1 for every weight that changes nothing.
    fn zero_lora(&self) -> GgufFile {
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

    /// Makes llama.cpp's graphs of a model large enough for one LoRA of any rank on every weight. llama.cpp counts the
    /// LoRAs that were loaded for a model before its context is created.
    pub(super) fn make_room(&self, model: &mut LlamaModel) -> Result<(), Error> {
        let failed =
            |error: &dyn std::error::Error| Error::Load(format!("no room for adapters could be made: {error}"));
        let path = write_temp_file(|file| self.zero_lora().write(file)).map_err(|error| failed(&error))?;
        model.lora_adapter_init(&path).map(|_| ()).map_err(|error| failed(&error))
    }
}

/// Returns true if llama.cpp looks for LoRAs of this weight. The token embedding is excluded: if a model's output
/// shares it, llama.cpp ends the process.
fn is_adaptable(name: &str) -> bool {
    name == "output.weight" || name.starts_with("blk.") && name.ends_with(".weight")
}

/// Writes a temporary file, which is deleted on drop.
pub(super) fn write_temp_file(write: impl FnOnce(&mut NamedTempFile) -> io::Result<()>) -> io::Result<TempPath> {
    let mut file = NamedTempFile::new()?;
    write(&mut file)?;
    file.as_file_mut().flush()?;
    Ok(file.into_temp_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skeleton_file_is_beside_the_model_or_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model.gguf");
        let beside = folder.path().join("model.gguf.shape");
        let all = || std::fs::read_dir(folder.path()).unwrap().count();
        for (header, bytes) in [(&b"one"[..], 5_000), (b"one", 5_000), (b"another", 7_000)] {
            let skeleton = SkeletonFile::of(&model, header, bytes).unwrap();
            assert_eq!(skeleton.path(), beside);
            drop(skeleton);
            assert!(is_skeleton(&beside, header, bytes) && !is_skeleton(&beside, header, bytes + 1));
            assert_eq!(all(), 1, "nothing else is left behind");
        }
        std::fs::remove_file(&beside).unwrap();
        std::fs::create_dir(&beside).unwrap();
        let skeleton = SkeletonFile::of(&model, b"one", 5_000).unwrap();
        let own = skeleton.path().to_owned();
        assert!(own != beside && is_skeleton(&own, b"one", 5_000) && all() == 1);
        drop(skeleton);
        assert!(!own.exists());
    }
}
