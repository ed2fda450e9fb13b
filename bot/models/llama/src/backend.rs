use std::path::Path;
use std::sync::OnceLock;

use azera_model_api::Error;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};

static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();

/// Returns llama.cpp, initialized once for the process. Its log lines go to `tracing`.
pub(crate) fn backend() -> Result<&'static LlamaBackend, Error> {
    let made = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default());
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    made.as_ref().map_err(|error| Error::Load(error.clone()))
}

/// Loads a GGUF file.
pub(crate) fn load(path: &Path, gpu_layers: Option<u32>) -> Result<LlamaModel, Error> {
    if !path.is_file() {
        return Err(Error::Load(format!("there is no file {}", path.display())));
    }
    LlamaModel::load_from_file(backend()?, path, &params(gpu_layers))
        .map_err(|_| Error::Load(format!("llama.cpp cannot read {}; its log says why", path.display())))
}

/// Loads only the vocabulary and template of a GGUF file.
pub(crate) fn vocabulary(path: &Path) -> Result<LlamaModel, Error> {
    let params = LlamaModelParams::default().with_vocab_only(true);
    LlamaModel::load_from_file(backend()?, path, &params)
        .map_err(|_| Error::Load(format!("llama.cpp cannot read {}; its log says why", path.display())))
}

/// Returns the parameters for loading models.
pub(crate) fn params(gpu_layers: Option<u32>) -> LlamaModelParams {
    let params = LlamaModelParams::default();
    match gpu_layers {
        Some(layers) => params.with_n_gpu_layers(layers),
        None => params,
    }
}

/// The niceness of background threads. If all cores are busy, such a thread still gets a third of one (nice(1)).
pub(crate) const BACKGROUND_NICENESS: i32 = 5;

/// Lowers the priority of this thread and of those that it starts.
pub(crate) fn give_way(niceness: i32) {
    // On systems other than Linux, this would slow down the whole process.
    #[cfg(target_os = "linux")]
    if niceness > 0
        && let Err(error) = rustix::process::setpriority_process(None, niceness)
    {
        tracing::debug!(%error, "cannot lower a thread's priority");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}

/// The most threads of an encoder. Its texts are short, and more threads wait longer for each other than they
/// save.
const EMBEDDING_THREADS: usize = 4;

/// Returns the number of threads: the requested one, or as many as this process may use.
pub(crate) fn threads(requested: Option<usize>) -> i32 {
    i32::try_from(requested.unwrap_or_else(cores).max(1)).unwrap_or(i32::MAX)
}

/// Returns the number of threads for embedding or reranking: at most half of the cores. Threads that compute together
/// wait for the slowest, so two models on all cores would delay each other: while one question is reranked, another
/// reply may be written.
pub(crate) fn embedding_threads(requested: Option<usize>) -> i32 {
    let most = (cores() / 2).clamp(1, EMBEDDING_THREADS);
    threads(Some(requested.unwrap_or(most).min(most)))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
