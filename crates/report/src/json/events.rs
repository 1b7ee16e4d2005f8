//! The JSON lines of `mdfsck events`, as types.

use serde::Serialize;

use super::lines::{ErrorText, Named};

/// A line of `mdfsck events`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum EventLine<'a> {
    Event(EventRecord<'a>),
    Error(ErrorText<'a>),
    Summary(EventsSummary),
}

/// An event of Extended Events.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventRecord<'a> {
    /// The file that contains the event.
    pub(crate) file: &'a str,
    /// Name of the event, such as `checkpoint_begin`.
    pub(crate) name: &'a str,
    /// The package that defines the name; empty if the file does not contain the package.
    pub(crate) package: &'a str,
    /// When the event happened, in UTC; null if the file does not contain the time.
    pub(crate) at: Option<String>,
    /// The values of the event itself, by name.
    pub(crate) fields: Named<'a, EventValue>,
    /// The values that the session collected with the event, by name.
    pub(crate) actions: Named<'a, EventValue>,
}

/// A value of an event. 64-bit integers are strings; binary values are strings in hexadecimal.
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
    /// Any other value.
    Text(String),
}

/// The last line: totals.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventsSummary {
    /// Number of files that were read.
    pub(crate) files: u64,
    /// Number of events that were written.
    pub(crate) events: u64,
    /// Values that could not be decoded; they are shown in hexadecimal.
    pub(crate) undecoded_values: u64,
    /// Number of faults in the files. Each fault means that events are missing.
    pub(crate) faults: u64,
    /// Whether all events of all files were read, with all their values.
    pub(crate) complete: bool,
}
