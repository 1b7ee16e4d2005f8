//! Findings of a history on a page, by object and check.

use findings::registry::Check;
use history::query::FindingRow;
use serde::Serialize;

use super::date;
use crate::explain::Explained;
use crate::html::Budget;

/// Maximum number of characters of a message. The next constant is the maximum number of characters of a name.
const TEXT_CHARS: usize = 1200;
const NAME_CHARS: usize = 160;

/// The findings that are shown.
#[derive(Default, Serialize)]
pub(super) struct Findings {
    /// The number of findings, including those that are gone.
    count: u64,
    shown: Vec<Finding>,
    checks: Vec<Explained>,
}

#[derive(Serialize)]
struct Finding {
    key: i64,
    object: Option<String>,
    /// Number of the message.
    number: u16,
    check: Option<usize>,
    file: Option<u16>,
    page: Option<u32>,
    text: String,
    life: &'static str,
    first_seen: String,
    last_seen: String,
    last_looked: String,
    seen: u64,
    /// Who acknowledged the finding, the reason, and the end of the acknowledgment if it ends. `None` if the finding is
    /// not acknowledged.
    acknowledged: Option<(String, String, Option<String>)>,
}

/// The findings of `found` that fit into the text budget `room`. `count` is the number of all findings.
pub(super) fn findings(found: Vec<FindingRow>, count: u64, room: &mut Budget) -> Findings {
    let mut all = Findings { count, ..Findings::default() };
    let mut known: Vec<&'static str> = Vec::new();
    for row in found {
        let Some(text) = room.take(&row.text, TEXT_CHARS) else { break };
        let check = Check::find(&row.check_id).into_iter().find(|check| check.id == row.check_id);
        let check = check.map(|check| {
            known.iter().position(|id| *id == check.id).unwrap_or_else(|| {
                known.push(check.id);
                all.checks.push(Explained::of(check));
                known.len() - 1
            })
        });
        let acknowledged = row.ack_by.as_deref().map(|who| {
            let why = row.ack_text.as_deref().unwrap_or_default();
            let until = row.ack_until.as_deref().map(date);
            (room.take_or_cut(who, NAME_CHARS), room.take_or_cut(why, NAME_CHARS), until)
        });
        all.shown.push(Finding {
            key: row.id,
            object: row.object.as_deref().map(|object| room.take_or_cut(object, NAME_CHARS)),
            number: row.msg,
            check,
            file: row.file,
            page: row.page,
            text,
            life: match row.life.as_str() {
                "new" => "new",
                "gone" => "gone",
                _ => "confirmed",
            },
            first_seen: date(&row.first_seen),
            last_seen: date(&row.last_seen),
            last_looked: date(&row.last_looked),
            seen: row.seen,
            acknowledged,
        });
    }
    all
}
