//! The JSON line about a window of time.

use serde::Serialize;

/// The results of a window of time, and how long ago pages were read and relations proven (`--window`, `--within`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Window<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The work done in the window; null without `--window`.
    pub(crate) done: Option<WindowDone>,
    /// Length of `--within` in seconds; null without `--within`.
    pub(crate) within_seconds: Option<u64>,
    /// Number of windows needed to read everything at the present speed; null if unknown.
    pub(crate) cycle_windows: Option<u64>,
    /// The promise that every page in use was read within the span of `--within`.
    pub(crate) read: WindowPromise,
    /// Number of bytes in ranges in use that were never read.
    pub(crate) never_read_bytes: u64,
    /// The promise that every relation was proven within the span of `--within`.
    pub(crate) closed: WindowPromise,
    /// Number of heaps and indexes.
    pub(crate) units: u64,
    /// Number of heaps and indexes with a structure that was sound when last checked.
    pub(crate) units_sound: u64,
    /// Number of indexes that have to be compared with their tables.
    pub(crate) pairs: u64,
    /// Number of indexes that agreed with their tables when last compared.
    pub(crate) pairs_sound: u64,
    /// Number of findings that were not known before.
    pub(crate) findings_new: u64,
    /// Number of known findings that were found again.
    pub(crate) findings_confirmed: u64,
    /// Number of known findings that are gone.
    pub(crate) findings_gone: u64,
}

/// The work done in a window of time.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowDone {
    /// Duration of the window in seconds.
    pub(crate) used_seconds: f64,
    /// Allowed duration of the window in seconds.
    pub(crate) allowed_seconds: f64,
    /// Number of ranges that the window read.
    pub(crate) ranges: u64,
    /// Number of bytes in these ranges.
    pub(crate) bytes: u64,
    /// The point in time of the database state in the image (UTC).
    pub(crate) image_taken_at: String,
    /// Size of the image in bytes.
    pub(crate) image_bytes: u64,
    /// Number of bytes of the image that have been read so far.
    pub(crate) image_bytes_done: u64,
    /// Whether the next window can continue with this image.
    pub(crate) is_fixed: bool,
    /// Whether the whole image was read. If so, the report before this line equals that of a single check with the same
    /// options.
    pub(crate) is_closed: bool,
    /// Whether a signal ended the window early.
    pub(crate) is_interrupted: bool,
    /// Number of further windows needed to close the image; null if unknown.
    pub(crate) windows_left: Option<u64>,
}

/// A promise about the age of reads or proofs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowPromise {
    /// State of the promise: `kept`, `broken`, or `cannot-be-kept` at the present speed. Null without `--within`, and
    /// for `closed` with `--physical-only`.
    pub(crate) state: Option<&'static str>,
    /// For `read`, when the least recently read range was read. For `closed`, the point in time of the last closed
    /// image. In UTC; null if there is no such time.
    pub(crate) oldest_at: Option<String>,
}
