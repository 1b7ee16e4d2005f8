//! The reason why something was not verified, as a page shows it.

use std::borrow::Cow;

use serde::Serialize;

/// A reason why something was not verified.
#[derive(Serialize)]
pub(crate) struct Cause {
    pub(crate) kind: &'static str,
    pub(crate) reason: String,
    pub(crate) id: Cow<'static, str>,
    pub(crate) action: &'static str,
    pub(crate) is_allowed: bool,
    pub(crate) what: Vec<What>,
    /// The number of dependent places that are not listed.
    pub(crate) follows: usize,
    /// Findings that were demoted because this may be their cause.
    pub(crate) demoted: Vec<String>,
    pub(crate) more_demoted: u64,
}

/// Things of one kind that were not verified, with their places.
#[derive(Serialize)]
pub(crate) struct What {
    pub(crate) what: String,
    pub(crate) places: Vec<String>,
    pub(crate) more: usize,
}
