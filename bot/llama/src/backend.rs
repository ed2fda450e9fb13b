use std::path::Path;
use std::sync::OnceLock;

use azera_model::Error;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};

static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();

/// llama.cpp, initialised once for the process; its log lines go to `tracing`.
pub(crate) fn backend() -> Result<&'static LlamaBackend, Error> {
    let made = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default());
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    made.as_ref().map_err(|error| Error::Load(error.clone()))
}

/// Opens a GGUF file.
pub(crate) fn load(path: &Path, gpu_layers: Option<u32>) -> Result<LlamaModel, Error> {
    if !path.is_file() {
        return Err(Error::Load(format!("there is no file {}", path.display())));
    }
    let mut params = LlamaModelParams::default();
    if let Some(layers) = gpu_layers {
        params = params.with_n_gpu_layers(layers);
    }
    LlamaModel::load_from_file(backend()?, path, &params)
        .map_err(|_| Error::Load(format!("llama.cpp cannot read {}; its log says why", path.display())))
}

/// Opens a GGUF file for its vocabulary and template alone.
pub(crate) fn vocabulary(path: &Path) -> Result<LlamaModel, Error> {
    let params = LlamaModelParams::default().with_vocab_only(true);
    LlamaModel::load_from_file(backend()?, path, &params)
        .map_err(|_| Error::Load(format!("llama.cpp cannot read {}; its log says why", path.display())))
}

/// Threads an embedding model takes at most: its texts are short, and more threads wait longer for one another than
/// they save.
const EMBEDDING_THREADS: usize = 4;

/// Threads to compute with: what was asked for, or what this process may use.
pub(crate) fn threads(asked: Option<usize>) -> i32 {
    i32::try_from(asked.unwrap_or_else(cores).max(1)).unwrap_or(i32::MAX)
}

/// Threads to embed with: half of the cores at most. Threads that compute together wait for the slowest of them, so two
/// models on all cores would each wait for the other's.
pub(crate) fn embedding_threads(asked: Option<usize>) -> i32 {
    let most = (cores() / 2).clamp(1, EMBEDDING_THREADS);
    threads(Some(asked.unwrap_or(most).min(most)))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
