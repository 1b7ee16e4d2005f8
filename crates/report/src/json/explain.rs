//! The JSON lines of `mdfsck explain`, as types.

use serde::Serialize;

/// A line of `mdfsck explain`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ExplainLine {
    ExplainedCheck(ExplainedCheck),
    ExplainedMessage(ExplainedMessage),
    ExplainedLimit(ExplainedLimit),
    Listed(Listed),
}

/// The explanation of a check.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExplainedCheck {
    /// Its id.
    pub(crate) id: &'static str,
    /// The number of its message.
    pub(crate) number: u16,
    /// The text of its message, with `<...>` in place of inserted values.
    pub(crate) message: String,
    /// What must be true.
    pub(crate) must_be_true: &'static str,
    /// What breaks it.
    pub(crate) cause: &'static str,
    /// What to do.
    pub(crate) action: &'static str,
    /// `repair_rebuild` or `repair_allow_data_loss`; null if no repair exists.
    pub(crate) repair: Option<&'static str>,
    /// The phase of a run in which the check is made.
    pub(crate) phase: &'static str,
    /// Whether the check is also made with `--physical-only`.
    pub(crate) physical_only: bool,
}

/// The explanation of a message of SQL Server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExplainedMessage {
    /// Its number.
    pub(crate) number: u16,
    /// What it is about, in a few words.
    pub(crate) title: &'static str,
    /// What it means.
    pub(crate) meaning: &'static str,
    /// What to look at.
    pub(crate) look_at: &'static str,
    /// What to do.
    pub(crate) action: &'static str,
}

/// The explanation of a limit: a reason why something is not verified.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExplainedLimit {
    /// Its id.
    pub(crate) id: &'static str,
    /// `damaged`, `unreadable`, `not-given`, `in-flight`, `undocumented`, `unsupported`.
    pub(crate) kind_of: &'static str,
    /// Whether the limit is only a note, which leaves nothing unverified.
    pub(crate) is_note: bool,
    /// What is not verified.
    pub(crate) what: &'static str,
    /// The reason, with `<...>` in place of inserted values.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) action: &'static str,
}

/// A check, message or limit that can be explained.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Listed {
    /// Number of the message; null for a limit.
    pub(crate) number: Option<u16>,
    /// Id of the check or limit; null for a message that no check reports.
    pub(crate) id: Option<&'static str>,
    /// What it is about.
    pub(crate) title: String,
}
