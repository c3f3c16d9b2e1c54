//! Ctrl-C and its relatives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Error;

/// A flag that SIGINT, SIGTERM and SIGHUP set. Long operations look at it several times a second, clean up and
/// return. A second signal ends the process at once; the kernel then kills its children.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the handlers. Call it once, early.
    ///
    /// # Errors
    /// [`Error::Signals`] when the system refuses.
    pub fn install() -> Result<Self, Error> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Registered first, so that it sees the flag as it was before this signal.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt.0))
                .map_err(Error::Signals)?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0)).map_err(Error::Signals)?;
        }
        Ok(interrupt)
    }

    /// A flag that only [`set`](Self::set) raises.
    #[must_use]
    pub fn never() -> Self {
        Self::default()
    }

    /// Raises it by hand.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it has been raised.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
