//! Songbird's driver of one call.

use std::sync::{Arc, Mutex, PoisonError};

use azera_voice_api::Error;
use songbird::{Config, Driver};
use tokio::runtime::{Builder, Runtime};

/// Songbird's driver of one call, on a runtime that lasts as long as the process.
///
/// If a runtime ends, the driver's tasks on it end, too. Songbird 0.6.1 then starts them again on the same runtime, over and
/// over, until the stack overflows and the process aborts.
#[derive(Clone)]
pub(crate) struct CallDriver {
    driver: Arc<Mutex<Driver>>,
    runtime: &'static Runtime,
}

impl CallDriver {
    /// Starts a driver.
    ///
    /// # Errors
    /// [`Error::Engine`] if the runtime of calls cannot be started.
    pub(crate) fn start(config: Config) -> Result<Self, Error> {
        let runtime = runtime()?;
        let driver = {
            let _entered = runtime.enter();
            Driver::new(config)
        };
        Ok(Self { driver: Arc::new(Mutex::new(driver)), runtime })
    }

    /// Asks the driver for something.
    pub(crate) fn drive<T>(&self, act: impl FnOnce(&mut Driver) -> T) -> T {
        let _entered = self.runtime.enter();
        act(&mut self.driver.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the runtime of all calls.
fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: Mutex<Option<&Runtime>> = Mutex::new(None);
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = *runtime {
        return Ok(runtime);
    }
    let built = Builder::new_multi_thread().worker_threads(1).thread_name("azera-calls").enable_all().build();
    let built = built.map_err(|error| Error::Engine { engine: "songbird".to_owned(), why: error.to_string() })?;
    Ok(runtime.insert(Box::leak(Box::new(built))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_can_end_after_the_runtime_that_began_it() {
        let began = Builder::new_current_thread().build().unwrap();
        let driver = began.block_on(async { CallDriver::start(Config::default()) }).unwrap();
        drop(began);
        driver.drive(|driver| driver.mute(true));
        driver.drive(Driver::leave);
        assert!(driver.drive(|driver| driver.is_mute()));
    }
}
