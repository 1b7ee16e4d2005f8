//! The reason why something was not verified, in the form that a page shows.

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
    /// The number of places that are not listed, because they are only consequences of this cause.
    pub(crate) follows: usize,
    /// Demoted findings, which are listed only here because this cause may explain them.
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
