//! The registry of checks, for people: `mdfsck explain` and docs/checks.md.

use std::fmt::Write as _;
use std::io;

use findings::registry::{ALL, Check, Class, LEVEL, Phase, Repair};
use serde::Serialize;

use crate::text_table::{TextTable, wrap};

/// Width of explanations, in columns.
const WIDTH: usize = 100;

/// The start of docs/checks.md.
const PREFACE: &str = "# The checks

For users with a finding: the rule that each check tests, the causes of a violation, and what to do. Generated from the registry
(`crates/findings/src/registry/table`) by `mdfsck explain --all --markdown`; do not edit.

Each check has an id that is never reused, and the number and text of the message by which DBCC CHECKDB reports the same
damage. `<...>` stands for a value that is inserted into the message. All findings have level 16.
";

/// The advice for findings in a backup, for which no repair is possible.
pub const IN_A_BACKUP: &str = "Check another copy of this backup, the database itself and older backups. Then restore from the newest backup that is sound.";

/// Writes the explanations of `checks`, one after another.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(checks: &[&Check], out: &mut dyn io::Write) -> io::Result<()> {
    for (position, check) in checks.iter().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}: Msg {}, Level {LEVEL}, State {}", check.id, check.msg, check.state)?;
        writeln!(out)?;
        for line in wrap(&message(check), WIDTH - 2) {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)?;
        for (name, text) in facts(check) {
            for (number, line) in wrap(&text, WIDTH - 18).iter().enumerate() {
                let name = if number == 0 { name } else { "" };
                writeln!(out, "  {name:<14}  {line}")?;
            }
        }
    }
    Ok(())
}

/// Writes one line for each check.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_index(out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[0]);
    table.row(["msg", "id", "what it reports"]);
    for check in ALL {
        table.row([&check.msg.to_string(), check.id, &fault(check)]);
    }
    table.write(0, out)
}

/// The text of docs/checks.md.
pub fn markdown() -> String {
    let mut text = PREFACE.to_owned();
    let mut phases: Vec<Phase> = ALL.iter().map(|check| check.phase).collect();
    phases.sort();
    phases.dedup();
    for phase in phases {
        let _ = write!(text, "\n## {}\n", capitalised(phase.name()));
        for check in ALL.iter().filter(|check| check.phase == phase) {
            let _ = write!(text, "\n### {} ({})\n\n> {}\n\n", check.id, check.msg, escaped(&message(check)));
            for (name, fact) in facts(check) {
                let _ = writeln!(text, "- **{}**: {}", capitalised(name), escaped(&fact));
            }
        }
    }
    text
}

/// The lines of a check's explanation, each as a label and a text.
fn facts(check: &Check) -> Vec<(&'static str, String)> {
    let counted = match check.class {
        Class::Allocation => "as an allocation error",
        Class::Consistency => "as a consistency error",
        Class::Uncounted => "not counted",
    };
    let repair = match check.repair {
        Repair::None => "none",
        Repair::Rebuild => "REPAIR_REBUILD",
        Repair::AllowDataLoss => "REPAIR_ALLOW_DATA_LOSS",
    };
    let physical_only = if check.physical_only { "checked" } else { "not checked" };
    let mut facts = vec![
        ("rule", check.invariant.to_owned()),
        ("cause", check.cause.to_owned()),
        ("what to do", check.action.to_owned()),
    ];
    if !check.is_of_container() {
        facts.push(("in a backup", IN_A_BACKUP.to_owned()));
    }
    facts.extend([
        ("counted", counted.to_owned()),
        ("minimum repair", repair.to_owned()),
        ("phase", check.phase.name().to_owned()),
        ("PHYSICAL_ONLY", physical_only.to_owned()),
    ]);
    facts
}

/// The explanation of a check, as an HTML page shows it.
#[derive(Serialize)]
pub(crate) struct Explained {
    id: &'static str,
    number: u16,
    message: String,
    /// The fault without page numbers and names. It is the heading above the findings of this check.
    fault: String,
    invariant: &'static str,
    cause: &'static str,
    action: &'static str,
}

impl Explained {
    pub(crate) fn of(check: &'static Check) -> Self {
        Self {
            id: check.id,
            number: check.msg,
            message: message(check),
            fault: fault(check),
            invariant: check.invariant,
            cause: check.cause,
            action: check.action,
        }
    }
}

/// The fault that a check finds, as a sentence without page numbers and names: "A page is not as it was written".
pub(crate) fn fault(check: &Check) -> String {
    let mut text = check.brief.trim_end_matches(": {header_page}").to_owned();
    for (places, words) in [
        ("{device}", "a backup file"),
        ("{name}", "an object"),
        ("{page_name} page {page}", "a page of the system"),
        ("{owner_name}", "an object"),
        ("pages {ref_page} and {page}", "pages"),
        ("pages {page} and {ref_page}", "pages"),
        ("slots {slot} and {ref_slot}", "its rows"),
        ("the next of {ref_page}", "the next of another"),
        ("points to a child {page}", "points to a child"),
        ("below {ref_page}", "below another"),
        ("page {ref_page} points", "a page points"),
        ("previous page {ref_page}", "previous page"),
        ("its parent {ref_page}", "its parent"),
        ("in parent {ref_page}", "in its parent"),
        ("page {page} of a critical", "a page of a critical"),
        ("a loop at {page}", "a loop"),
        ("sys.{table}", "the catalog"),
        ("IAM page {page}", "an IAM page"),
        ("PFS page {pfs_page}", "its PFS page"),
        ("data row {record}", "a data row"),
        ("index row {record}", "an index row"),
        ("columnstore index {index}", "a columnstore index"),
        ("CHECK constraint {constraint}", "a CHECK constraint"),
        ("FOREIGN KEY constraint {constraint}", "a FOREIGN KEY constraint"),
        ("bytes from {position} on", "bytes"),
    ] {
        text = text.replace(places, words);
    }
    // A noun and its placeholder become an article and the noun: "page {page}" becomes "a page".
    let mut said: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let place = word.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        match (place, said.last_mut()) {
            (Some((_, behind)), Some(noun)) => {
                let article = if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
                *noun = format!("{article} {noun}{behind}");
            }
            _ => said.push(word.to_owned()),
        }
    }
    capitalised(&said.join(" "))
}

/// The message with readable placeholders instead of the placeholders of the template.
pub(crate) fn message(check: &Check) -> String {
    let mut text = String::new();
    let mut rest = check.template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((place, behind)) = after.split_once('}') else { break };
        text.push_str(before);
        match place.strip_suffix(":x").unwrap_or(place) {
            "owner" => text.push_str("Object ID <n>, index ID <n>, partition ID <n>, alloc unit ID <n> (type <type>)"),
            "owner_lower" | "owner_au" | "owner_short" => text.push_str("<object, index, partition, alloc unit>"),
            "other_owner" | "other_owner_au" | "other_owner_short" => {
                text.push_str("<other object, index, partition, alloc unit>")
            }
            name => {
                let _ = write!(text, "<{}>", name.replace('_', " "));
            }
        }
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// The text with a capital first letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Escapes a text for Markdown, which reads `<name>` as a tag and `*` and `_` as emphasis.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*").replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_are_those_of_the_registry() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/checks.md");
        let found = std::fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
        assert!(
            found == markdown(),
            "docs/checks.md differs from the registry; regenerate it with\n  \
             cargo run -- explain --all --markdown > docs/checks.md"
        );
    }

    #[test]
    fn what_is_wrong_is_said_of_no_place_and_never_as_the_rule() {
        for check in ALL {
            let fault = fault(check);
            assert!(!fault.contains(['{', '}']) && !fault.contains("  ") && !fault.ends_with([' ', ':']), "{fault}");
            assert!(fault != check.invariant.trim_end_matches('.'), "{fault}");
        }
        let of = |id: &str| Check::find(id).first().map(|check| fault(check)).unwrap_or_default();
        assert_eq!(of("page.io"), "A page is not what was written (checksum, torn bits or page ID)");
        assert_eq!(of("index.row-surplus"), "An index has a row that the table does not have");
        assert_eq!(of("iam.unreadable"), "An IAM page cannot be read");
    }

    #[test]
    fn an_explanation_has_message_invariant_cause_and_action() {
        let mut out = Vec::new();
        write(&Check::find("8976"), &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    #[test]
    fn every_place_of_every_template_is_rendered() {
        for check in ALL {
            assert!(!message(check).contains(['{', '}']), "{}", check.id);
        }
    }
}
