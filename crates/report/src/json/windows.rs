//! The JSON line of a window, as types.

use serde::Serialize;

/// What a window of time achieved, and how long ago pages were read and relations proven (`--window`, `--within`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Window<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// What the window achieved; null without `--window`.
    pub(crate) done: Option<WindowDone>,
    /// The span of `--within` in seconds; null without it.
    pub(crate) within_seconds: Option<u64>,
    /// Number of windows needed to read everything at the present speed; null if unknown.
    pub(crate) cycle_windows: Option<u64>,
    /// The promise that every page in use was read within the span.
    pub(crate) read: WindowPromise,
    /// Bytes of ranges in use that were never read.
    pub(crate) never_read_bytes: u64,
    /// The promise that every relation was proven within the span.
    pub(crate) closed: WindowPromise,
    /// Number of heaps and indexes.
    pub(crate) units: u64,
    /// Heaps and indexes whose own structure was sound when last checked.
    pub(crate) units_sound: u64,
    /// Number of indexes that are compared with their tables.
    pub(crate) pairs: u64,
    /// Indexes that agreed with their tables when last compared.
    pub(crate) pairs_sound: u64,
    /// Findings that were not there before.
    pub(crate) findings_new: u64,
    /// Findings that are still there.
    pub(crate) findings_confirmed: u64,
    /// Findings that are gone.
    pub(crate) findings_gone: u64,
}

/// What a window achieved.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowDone {
    /// Duration of the window in seconds.
    pub(crate) used_seconds: f64,
    /// Allowed duration in seconds.
    pub(crate) allowed_seconds: f64,
    /// Number of ranges that it read.
    pub(crate) ranges: u64,
    /// Bytes of these ranges.
    pub(crate) bytes: u64,
    /// The point in time whose state the image has (UTC).
    pub(crate) image_taken_at: String,
    /// Bytes of the image.
    pub(crate) image_bytes: u64,
    /// Bytes of the image that have been read so far.
    pub(crate) image_bytes_done: u64,
    /// Whether the next window can continue with this image.
    pub(crate) is_fixed: bool,
    /// Whether all of the image is read. If so, the report before this line is that of one check with the same options.
    pub(crate) is_closed: bool,
    /// Whether a signal ended the window early.
    pub(crate) is_interrupted: bool,
    /// Number of windows until the image is closed; null if unknown.
    pub(crate) windows_left: Option<u64>,
}

/// A promise about the age of reads or proofs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowPromise {
    /// `kept`, `broken`, or `cannot-be-kept` at the present speed; null without `--within`, and for `closed` with `--physical-only`.
    pub(crate) state: Option<&'static str>,
    /// When the oldest range was read, or the point in time of the last image that was closed (UTC); null if there is
    /// none.
    pub(crate) oldest_at: Option<String>,
}
