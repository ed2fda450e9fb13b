//! An ONNX model, run with rten.

use std::path::Path;
use std::sync::Arc;

use rten::{Model, RunOptions, ThreadPool, Value, ValueOrView};

/// A loaded model and the threads that run it.
pub struct Graph {
    model: Model,
    threads: Arc<ThreadPool>,
}

impl Graph {
    /// Loads a model, to run on this many threads.
    pub fn open(path: &Path, threads: usize) -> Result<Self, String> {
        let model = Model::load_file(path).map_err(|error| error.to_string())?;
        Ok(Self { model, threads: Arc::new(ThreadPool::with_num_threads(threads.max(1))) })
    }

    /// Returns an entry of the model's metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.model.metadata().get(key)
    }

    /// Returns true if the model has an input or another value of this name.
    pub fn has(&self, name: &str) -> bool {
        self.model.find_node(name).is_some()
    }

    /// Computes outputs from inputs, both by name.
    pub fn run<const N: usize>(
        &self,
        inputs: Vec<(&str, ValueOrView<'_>)>,
        outputs: [&str; N],
    ) -> Result<[Value; N], String> {
        let node = |name: &str| self.model.node_id(name).map_err(|error| error.to_string());
        let inputs = inputs.into_iter().map(|(name, value)| Ok((node(name)?, value))).collect::<Result<_, String>>()?;
        let outputs = outputs.iter().map(|name| node(name)).collect::<Result<Vec<_>, _>>()?;
        let mut options = RunOptions::default();
        options.thread_pool = Some(Arc::clone(&self.threads));
        let values = self.model.run(inputs, &outputs, Some(options)).map_err(|error| error.to_string())?;
        values.try_into().map_err(|_| "the model gave another number of outputs".to_owned())
    }
}
