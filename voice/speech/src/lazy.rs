//! An engine that is opened when it is first needed.

use std::sync::{Arc, Mutex, PoisonError};

use azera_voice_api::Error;

/// Opens an engine: reads its model, which takes up to two seconds.
pub type Open<T> = Box<dyn Fn() -> Result<Arc<T>, Error> + Send + Sync>;

/// An engine that may not be open yet. A failed opening is tried again at the next call.
pub(crate) struct Lazy<T: ?Sized> {
    open: Open<T>,
    engine: Mutex<Option<Arc<T>>>,
}

impl<T: ?Sized> Lazy<T> {
    pub(crate) fn new(open: Open<T>) -> Self {
        Self { open, engine: Mutex::new(None) }
    }

    /// Returns the engine, and opens it first if that was not done.
    pub(crate) fn get(&self) -> Result<Arc<T>, Error> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = engine.as_ref() {
            return Ok(Arc::clone(engine));
        }
        let opened = (self.open)()?;
        *engine = Some(Arc::clone(&opened));
        Ok(opened)
    }
}
