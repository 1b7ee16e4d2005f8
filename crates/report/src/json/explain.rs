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
    /// Id of the check.
    pub(crate) id: &'static str,
    /// Number of the check's message.
    pub(crate) number: u16,
    /// Text of the message, with `<...>` in place of inserted values.
    pub(crate) message: String,
    /// The rule that the check verifies.
    pub(crate) must_be_true: &'static str,
    /// Possible causes of a violation of the rule.
    pub(crate) cause: &'static str,
    /// The recommended action.
    pub(crate) action: &'static str,
    /// `repair_rebuild` or `repair_allow_data_loss`; null if no repair exists.
    pub(crate) repair: Option<&'static str>,
    /// The phase of a run to which the check belongs.
    pub(crate) phase: &'static str,
    /// Whether the check also runs with `--physical-only`.
    pub(crate) physical_only: bool,
}

/// The explanation of a message of SQL Server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExplainedMessage {
    /// Number of the message.
    pub(crate) number: u16,
    /// The subject of the message, in a few words.
    pub(crate) title: &'static str,
    /// The meaning of the message.
    pub(crate) meaning: &'static str,
    /// Where to look next.
    pub(crate) look_at: &'static str,
    /// The recommended action.
    pub(crate) action: &'static str,
}

/// The explanation of a limit: a reason why something is not verified.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExplainedLimit {
    /// Id of the limit.
    pub(crate) id: &'static str,
    /// Kind of the limit: `damaged`, `unreadable`, `not-given`, `in-flight`, `undocumented`, `unsupported`.
    pub(crate) kind_of: &'static str,
    /// Whether the limit is only a note. A note leaves nothing unverified.
    pub(crate) is_note: bool,
    /// The things that are not verified.
    pub(crate) what: &'static str,
    /// The reason why they are not verified, with `<...>` in place of inserted values.
    pub(crate) reason: String,
    /// The recommended action.
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
    /// The subject of the entry, in a few words.
    pub(crate) title: String,
}
