//! The JSON line about a check that is spread over several windows of time.

use serde::Serialize;

/// The results of one window of a check that is spread over several windows, and how long ago pages were read and
/// relations (links, keys and rows) were verified (`--window`, `--within`).
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
    /// Whether every page in use was read within the time span of `--within`.
    pub(crate) read: WindowPromise,
    /// Number of bytes in page ranges that are in use and were never read.
    pub(crate) never_read_bytes: u64,
    /// Whether all relations (links, keys and rows) were verified within the time span of `--within`.
    pub(crate) closed: WindowPromise,
    /// Number of heaps and indexes.
    pub(crate) units: u64,
    /// Number of heaps and indexes whose structure was sound when it was last checked.
    pub(crate) units_sound: u64,
    /// Number of indexes that have to be compared with their tables.
    pub(crate) pairs: u64,
    /// Number of indexes that agreed with their tables when last compared.
    pub(crate) pairs_sound: u64,
    /// Number of findings that were not known before.
    pub(crate) findings_new: u64,
    /// Number of known findings that were found again.
    pub(crate) findings_confirmed: u64,
    /// Number of known findings that were not found again.
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
    /// Number of page ranges that were read in the window.
    pub(crate) ranges: u64,
    /// Number of bytes in these page ranges.
    pub(crate) bytes: u64,
    /// The time (UTC) of the image. An image is the state of the database at one point in time, and may be read in
    /// several windows.
    pub(crate) image_taken_at: String,
    /// Size of the image in bytes.
    pub(crate) image_bytes: u64,
    /// Number of bytes of the image that have been read so far.
    pub(crate) image_bytes_done: u64,
    /// Whether the next window can continue reading this image, because the files do not change.
    pub(crate) is_fixed: bool,
    /// Whether the whole image was read. If so, the report before this line equals the report of a check without
    /// windows that has the same options.
    pub(crate) is_closed: bool,
    /// Whether a signal ended the window early.
    pub(crate) is_interrupted: bool,
    /// Number of further windows needed to read the rest of the image; null if unknown.
    pub(crate) windows_left: Option<u64>,
    /// Number of tables with pages, if the database changes between windows (`--keep-parts`); null otherwise.
    pub(crate) tables: Option<u64>,
    /// Number of these tables of which no page is left for later windows. Their relations were compared.
    pub(crate) tables_closed: Option<u64>,
}

/// Whether the time span of `--within` is kept, and the time of the oldest read or verification.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowPromise {
    /// `kept`, `broken`, or `cannot-be-kept` at the present speed. Null without `--within`. With `--physical-only`, the
    /// state of `closed` is null too.
    pub(crate) state: Option<&'static str>,
    /// For `read`: when the least recently read range was read. For `closed`: the time of the last image that was
    /// completely read and compared. Times are in UTC. Null if there is no such range or image.
    pub(crate) oldest_at: Option<String>,
}
