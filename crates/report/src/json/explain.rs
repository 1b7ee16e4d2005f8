//! The JSON lines of `mdfsck explain`, as types.

use serde::Serialize;

/// A line of `mdfsck explain`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ExplainLine<'a> {
    ExplainedCheck(ExplainedCheck),
    ExplainedMessage(ExplainedMessage),
    ExplainedLimit(ExplainedLimit),
    Listed(Listed),
    PastedEvent(PastedEvent<'a>),
    PastedCase(PastedCase<'a>),
    NextCommand(NextCommand),
    PastedSummary(PastedSummary),
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

/// Messages of a pasted text with the same number about the same object. Causes come before what follows from them.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PastedEvent<'a> {
    /// Number of the message, or of the operating system error inside a message.
    pub(crate) number: u16,
    /// The subject of the message, in a few words.
    pub(crate) title: String,
    /// The part of the server that the message is about, from the bottom up: `machine`, `storage`, `files`, `log`,
    /// `pages`, `findings`, `recovery`, `state`, `snapshot`, `backup`, `run`, `totals`, `repair`, `other`.
    pub(crate) layer: &'static str,
    /// Whether the message only follows from other messages.
    pub(crate) follows: bool,
    /// The database as the text names it; null if the text does not name it.
    pub(crate) database: Option<&'a str>,
    /// The table or other object; null if the messages name none.
    pub(crate) object: Option<&'a str>,
    /// The lowest index ID in the messages.
    pub(crate) index_id: Option<u32>,
    /// The first page that each message names, at most 200 pages.
    pub(crate) pages: Vec<String>,
    /// Names of files, without folders, at most three.
    pub(crate) files: Vec<&'a str>,
    /// The operating system error in the messages.
    pub(crate) os_error: Option<u32>,
    /// Number of messages.
    pub(crate) count: u64,
    /// Time of the first message, by the server's clock; null if the text has no times.
    pub(crate) first: Option<String>,
    /// Time of the last message.
    pub(crate) last: Option<String>,
}

/// A case in which one message of a pasted text changes the meaning of another message.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PastedCase<'a> {
    /// The meaning of the messages together.
    pub(crate) text: &'a str,
}

/// A step to do next.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NextCommand {
    /// Position of the step, from 1.
    pub(crate) n: usize,
    /// What to do and why.
    pub(crate) what: &'static str,
    /// The command to run. `FILES` stands for the data and log files, `BACKUPS` for the folder of the backups.
    pub(crate) command: Option<&'static str>,
}

/// The last line about a pasted text.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PastedSummary {
    /// Number of messages that were recognized.
    pub(crate) messages: u64,
    /// Numbers that cannot be explained.
    pub(crate) unknown: Vec<u32>,
    /// Whether all of the text was read and all of its messages are listed.
    pub(crate) complete: bool,
}
