//! The JSON line of a window, as types.

use serde::Serialize;

/// What a window of time got done, and how old what was read and proven is (`--window`, `--within`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Window<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// What the window got done; null without `--window`.
    pub(crate) done: Option<WindowDone>,
    /// The span of `--within`; null without it.
    pub(crate) within_seconds: Option<u64>,
    /// Windows that reading everything takes at the present speed; null if that is not known.
    pub(crate) cycle_windows: Option<u64>,
    /// The promise that every page in use was read within the span.
    pub(crate) read: WindowPromise,
    /// Bytes of ranges in use that were never read.
    pub(crate) never_read_bytes: u64,
    /// The promise that every relation was proven within the span.
    pub(crate) closed: WindowPromise,
    /// Heaps and indexes.
    pub(crate) units: u64,
    /// Those that were found sound in themselves when they were looked at last.
    pub(crate) units_sound: u64,
    /// Indexes that are compared with their tables.
    pub(crate) pairs: u64,
    /// Those that were found to agree with them when they were looked at last.
    pub(crate) pairs_sound: u64,
    /// Findings that were not there before.
    pub(crate) findings_new: u64,
    /// Findings that are still there.
    pub(crate) findings_confirmed: u64,
    /// Findings that are gone.
    pub(crate) findings_gone: u64,
}

/// What a window got done.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowDone {
    /// How long it took.
    pub(crate) used_seconds: f64,
    /// How long it was allowed to take.
    pub(crate) allowed_seconds: f64,
    /// Ranges that it read.
    pub(crate) ranges: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The moment whose state the image is (UTC).
    pub(crate) image_taken_at: String,
    /// Bytes of the image.
    pub(crate) image_bytes: u64,
    /// Those of them that are read by now.
    pub(crate) image_bytes_done: u64,
    /// Whether the next window can go on with this image.
    pub(crate) is_fixed: bool,
    /// Whether all of the image is read: then the report before this line is that of one check with the same options.
    pub(crate) is_closed: bool,
    /// Whether it was ended early by a signal.
    pub(crate) is_interrupted: bool,
    /// Windows until the image is closed; null if that is not known.
    pub(crate) windows_left: Option<u64>,
}

/// A promise.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowPromise {
    /// `kept`, `broken`, or `cannot-be-kept` at the present speed; null without `--within`, and for `closed` with `--physical-only`.
    pub(crate) state: Option<&'static str>,
    /// When the oldest range was read, or the moment of the last image that was closed (UTC); null if there is none.
    pub(crate) oldest_at: Option<String>,
}
