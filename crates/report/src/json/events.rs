//! The JSON lines of `mdfsck events`, as types.

use serde::Serialize;

use super::lines::{ErrorText, Named};

/// A line of `mdfsck events`; its first field, `kind`, says which.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum EventLine<'a> {
    Event(EventRecord<'a>),
    Error(ErrorText<'a>),
    Summary(EventsSummary),
}

/// An event.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventRecord<'a> {
    /// The file that it is from.
    pub(crate) file: &'a str,
    /// Its name, as `checkpoint_begin`.
    pub(crate) name: &'a str,
    /// The package that its name is from; empty if the file does not say.
    pub(crate) package: &'a str,
    /// When it happened, in UTC; null if the file does not say.
    pub(crate) at: Option<String>,
    /// Its own values, by name.
    pub(crate) fields: Named<'a, EventValue>,
    /// What the session collected with it, by name.
    pub(crate) actions: Named<'a, EventValue>,
}

/// A value of an event: integers of 64 bits are strings, binary values hexadecimal.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum EventValue {
    /// An integer of at most 32 bits.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Anything else.
    Text(String),
}

/// The last line: totals.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventsSummary {
    /// Files that were read.
    pub(crate) files: u64,
    /// Events that were written.
    pub(crate) events: u64,
    /// Values that could not be decoded; they are shown in hexadecimal.
    pub(crate) undecoded_values: u64,
    /// Faults of the files: each costs events.
    pub(crate) faults: u64,
    /// Whether all events of all files were read, with all their values.
    pub(crate) complete: bool,
}
