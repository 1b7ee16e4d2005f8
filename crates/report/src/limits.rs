//! The registry of limits, for people: `mdfsck explain` and docs/limits.md.

use std::fmt::Write as _;
use std::io;

use findings::registry::limits::{ALL, Limit, LimitKind};

use crate::text_table::{TextTable, wrap};

/// Width of explanations, in columns.
const WIDTH: usize = 100;

/// The start of docs/limits.md.
const PREFACE: &str = "# The limits

For users whose check lists something as *not verified*: all reasons, and what to do about each of them. Generated from the registry
(`crates/findings/src/registry/limits/table.rs`) by `mdfsck explain --all --limits --markdown`; do not edit.

A limit is a reason why something is not verified. A limit is not a finding: the data that it names may be sound or damaged. A run
with limits sets bit 16 of the exit status, unless `--allow ID` accepts the limits. Ids are never reused. `<...>` stands for a value
that is inserted into the line. A limit that is marked as a note is worth knowing, but leaves nothing unverified.
";

/// Writes the explanations of `limits`, one after another.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(limits: &[&Limit], out: &mut dyn io::Write) -> io::Result<()> {
    for (position, limit) in limits.iter().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        let name = if limit.is_note() { "note" } else { "not verified" };
        writeln!(out, "{}: {name}, {}", limit.id, limit.kind.name())?;
        writeln!(out)?;
        for (name, text) in facts(limit) {
            for (number, line) in wrap(&text, WIDTH - 18).iter().enumerate() {
                let name = if number == 0 { name } else { "" };
                writeln!(out, "  {name:<14}  {line}")?;
            }
        }
    }
    Ok(())
}

/// Writes one line for each limit.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_index(out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[]);
    table.row(["kind", "id", "why"]);
    for limit in ALL {
        table.row([limit.kind.name().to_owned(), limit.id.to_owned(), reason(limit)]);
    }
    table.write(0, out)
}

/// The text of docs/limits.md.
pub fn markdown() -> String {
    let mut text = PREFACE.to_owned();
    let mut kinds: Vec<LimitKind> = ALL.iter().map(|limit| limit.kind).collect();
    kinds.sort();
    kinds.dedup();
    for kind in kinds {
        let _ = write!(text, "\n## {}\n\n{}\n", kind.name(), meaning(kind));
        for limit in ALL.iter().filter(|limit| limit.kind == kind) {
            let note = if limit.is_note() { " (note)" } else { "" };
            let _ = write!(text, "\n### {}{note}\n\n", limit.id);
            for (name, fact) in facts(limit) {
                let _ = writeln!(text, "- **{name}**: {}", crate::explain::escaped(&fact));
            }
        }
    }
    text
}

fn facts(limit: &Limit) -> [(&'static str, String); 3] {
    [("what", limit.what.to_owned()), ("why", reason(limit)), ("what to do", limit.action.to_owned())]
}

/// The reason, with a readable placeholder in place of each `{}`.
pub(crate) fn reason(limit: &Limit) -> String {
    match limit.reason {
        "{}" => "two values in the catalog contradict each other, or a value is unknown: the report names the values"
            .to_owned(),
        reason => reason.replace("{}", "<...>"),
    }
}

fn meaning(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Damaged => "Other data is damaged or contradicts itself; a finding may describe this damage.",
        LimitKind::Unreadable => "The operating system could not read the data.",
        LimitKind::NotGiven => {
            "Something that the check needs was not given: a file, a stripe, the log, a key, or space for temporary files."
        }
        LimitKind::InFlight => "A change was under way when the files or the backup were written.",
        LimitKind::Undocumented => "SQL Server does not document the values that this data must have.",
        LimitKind::Unsupported => "mdfsck does not make this check.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_are_those_of_the_registry() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
        let found = std::fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
        assert!(
            found == markdown(),
            "docs/limits.md differs from the registry; regenerate it with\n  \
             cargo run -p mdfsck -- explain --all --limits --markdown > docs/limits.md"
        );
    }

    #[test]
    fn an_explanation_says_what_why_and_what_to_do() {
        let mut out = Vec::new();
        write(&[&findings::registry::limits::TREE_COMPRESSED_ENTRIES], &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "tree.compressed-entries: not verified, undocumented\n\n  what            links and key bounds\n  \
             why             the form of child pointers in compressed non-leaf rows is undocumented; only\n                  \
             sibling links were checked\n  what to do      To check this part, run DBCC CHECKDB on a server.\n"
        );
    }
}
