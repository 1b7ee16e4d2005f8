//! The limit on the read rate.

use source::{PageSource, Throttled};

use crate::request::Request;

/// Runs `act` with pages that are read within the limit on the read rate.
pub fn throttled<R>(request: &Request, source: &dyn PageSource, act: impl FnOnce(&dyn PageSource) -> R) -> R {
    match request.run.io_limit {
        Some(limit) => act(&Throttled::new(source, limit)),
        None => act(source),
    }
}
