use std::path::Path;
use std::sync::OnceLock;

use azera_model_api::Error;
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
    LlamaModel::load_from_file(backend()?, path, &params(gpu_layers))
        .map_err(|_| Error::Load(format!("llama.cpp cannot read {}; its log says why", path.display())))
}

/// Opens a GGUF file for its vocabulary and template alone.
pub(crate) fn vocabulary(path: &Path) -> Result<LlamaModel, Error> {
    let params = LlamaModelParams::default().with_vocab_only(true);
    LlamaModel::load_from_file(backend()?, path, &params)
        .map_err(|_| Error::Load(format!("llama.cpp cannot read {}; its log says why", path.display())))
}

/// How models are opened.
pub(crate) fn params(gpu_layers: Option<u32>) -> LlamaModelParams {
    let params = LlamaModelParams::default();
    match gpu_layers {
        Some(layers) => params.with_n_gpu_layers(layers),
        None => params,
    }
}

/// How much a thread that nobody waits for gives way to others: a third of a core is left to it, if all cores are wanted
/// (nice(1)).
pub(crate) const BACKGROUND_NICENESS: i32 = 5;

/// Makes this thread, and those it starts, give way to others who want the processor.
pub(crate) fn give_way(niceness: i32) {
    // Elsewhere than on Linux this would slow down the whole process.
    #[cfg(target_os = "linux")]
    if niceness > 0
        && let Err(error) = rustix::process::setpriority_process(None, niceness)
    {
        tracing::debug!(%error, "a thread cannot give way to others");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}

/// Threads an embedding model takes at most: its texts are short, and more threads wait longer for one another than
/// they save.
const EMBEDDING_THREADS: usize = 4;

/// Threads to compute with: what was asked for, or what this process may use.
pub(crate) fn threads(requested: Option<usize>) -> i32 {
    i32::try_from(requested.unwrap_or_else(cores).max(1)).unwrap_or(i32::MAX)
}

/// Threads to embed with: half of the cores at most. Threads that compute together wait for the slowest of them, so two
/// models on all cores would each wait for the other's.
pub(crate) fn embedding_threads(requested: Option<usize>) -> i32 {
    let most = (cores() / 2).clamp(1, EMBEDDING_THREADS);
    threads(Some(requested.unwrap_or(most).min(most)))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
