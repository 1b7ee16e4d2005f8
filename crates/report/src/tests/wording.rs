//! Tests that compare every message, letter by letter, with the texts of `sys.messages` and with lines that servers
//! printed.
//!
//! The texts are those of SQL Server 2022. Lines with other texts are listed in [`OTHER_FORMS`], with the reason.

mod pattern;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use catalog::UnitKind;
use findings::registry::{self, Check};
use findings::{ErrorCounts, Finding, Names, NotVerified, Owner, Scope, Value};
use format::{AllocUnitId, PageId};

use crate::errorlog::{self, Statement};
use crate::fixture::{report, service_broker};
use crate::message::{self, Message};

/// For each message of the registry or of a report: its number, and its text in `sys.messages`. The text of message
/// 8928 has two spaces in a row, as servers print it.
const SYS_MESSAGES: &str = include_str!("wording/sys_messages.tsv");

/// Lines that servers printed, each with its case and message number. A message that occurs several times in a case
/// with equal wording has only one line in the file (docs/format/cases.md).
const PRINTED: &str = include_str!("wording/printed.tsv");

/// Lines in the cases that differ from the lines of this program, with the reason.
const OTHER_FORMS: &[(&str, u16, &str)] = &[
    ("02", 8965, "the last is cut off where it was posted"),
    ("03", 8928, "broken into two lines where it was posted"),
    ("03", 8929, "broken into two lines where it was posted"),
    ("03", 8941, "broken into two lines where it was posted"),
    ("05", 8976, "cut off where it was posted"),
    ("06", 8928, "broken into two lines where it was posted"),
    ("07", 8941, "SQL Server 2000: no partition, no allocation unit"),
    ("07", 8942, "SQL Server 2000: no partition, no allocation unit"),
    ("09", 8914, "the last period was cut off where it was posted"),
    ("11", 2511, "SQL Server 2000: no partition, no allocation unit"),
    ("12", 8928, "SQL Server 2000: no partition, no allocation unit"),
    ("12", 8976, "SQL Server 2000: no partition, no allocation unit"),
    ("12", 8978, "SQL Server 2000: no partition, no allocation unit"),
    ("14", 2576, "SQL Server 2000: other wording"),
    ("23", 8928, "in Chinese"),
    ("23", 8939, "in Chinese"),
    ("27", 8946, "broken into two lines where it was posted"),
    ("28", 7995, "SQL Server 2000: names other tables"),
    ("28", 8946, "SQL Server 2000: other wording"),
    ("29", 8966, "SQL Server 2000: other wording"),
    ("34", 8992, "documentation with placeholders for values"),
    ("38", 2570, "documentation with placeholders for values"),
];

/// A message that has two spaces in a row. Web pages that quote this message show a single space.
const TWO_BLANKS: u16 = 8928;

#[test]
fn every_template_is_the_text_of_sys_messages() {
    let mut wrong = Vec::new();
    for check in registry::ALL {
        let text = sample(check).text(&names("CHECKDB"));
        let wrapped = ["Check Catalog Msg ", "Service Broker Msg "].iter().find_map(|start| text.strip_prefix(start));
        let (number, text) = match wrapped.and_then(|rest| rest.split_once(", State 1: ")) {
            Some((number, inner)) => (number.parse().unwrap(), inner),
            None => (check.msg, text.as_str()),
        };
        match server_text(number) {
            Some(server) if is_of(server, text) => {}
            Some(server) => wrong.push(format!("{}\n  server {server}\n  here   {text}\n", check.id)),
            // CHECKDB has no message for a violation of a rule that only this program checks.
            None => assert!(check.is_beyond_checkdb(), "{}: no text of {number}", check.id),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
fn every_informational_message_is_the_text_of_sys_messages() {
    for Message { number, text } in informational() {
        // Message 7998 is not compared, because the line that DBCC CHECKIDENT prints is composed of several messages,
        // each in its own row of `sys.messages`.
        if number != 7998 {
            let server = server_text(number).unwrap();
            // In message 8957, a space separates the elapsed time from the text after it. The lines of this program may
            // lack that text and also the space.
            let is_server = is_of(server, &text) || number == 8957 && is_of(server, &format!("{text} "));
            assert!(is_server, "{number}\n  server {server}\n  here   {text}");
        }
    }
}

#[test]
fn lines_that_servers_printed_come_from_the_templates() {
    let rows = PRINTED.lines().map(|line| {
        let mut cells = line.splitn(3, '\t');
        let mut cell = || cells.next().unwrap();
        (cell(), cell().parse::<u16>().unwrap(), cell())
    });
    let mut forms = BTreeSet::new();
    for (case, number, text) in rows {
        assert_produced(case, number, text);
        forms.insert(number);
    }
    assert!(forms.len() > 25, "{forms:?}");
}

/// Tests all lines of the collected transcripts, if the transcripts are available.
#[test]
fn all_lines_of_all_cases_come_from_the_templates() {
    let Some(folder) = cases() else { return };
    let known = known_numbers();
    let mut needed = BTreeSet::new();
    let mut lines = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let case = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (number, text) in messages_of(&fs::read_to_string(&path).unwrap()) {
            if !known.contains(&number) {
                continue;
            }
            lines += 1;
            match OTHER_FORMS.iter().find(|(of, message, _)| *of == case && *message == number) {
                Some(form) if !is_produced(number, &text) => {
                    needed.insert((form.0, form.1));
                }
                _ => assert_produced(&case, number, &text),
            }
        }
    }
    assert!(lines > 100, "{lines}");
    let listed: BTreeSet<_> = OTHER_FORMS.iter().map(|form| (form.0, form.1)).collect();
    assert_eq!(listed, needed, "each other form must be met");
}

/// Whether `text` is the text `server` of `sys.messages` with values for its placeholders.
fn is_of(server: &str, text: &str) -> bool {
    let fits = |kind: &str, value: &str| match kind {
        "S_PGID" => page(value).is_some(),
        "d" | "ld" | "I64d" => value.parse::<i64>().is_ok(),
        "08x" | "x" | "lx" => i64::from_str_radix(value, 16).is_ok(),
        _ => true,
    };
    pattern::values(&pattern::of_server(server), text.trim_start(), &fits).is_some()
}

fn server_text(number: u16) -> Option<&'static str> {
    let number = number.to_string();
    SYS_MESSAGES.lines().filter_map(|line| line.split_once('\t')).find(|(of, _)| *of == number).map(|(_, text)| text)
}

fn known_numbers() -> BTreeSet<u16> {
    let informational = informational().into_iter().map(|message| message.number);
    let all = registry::ALL.iter().map(|check| check.msg).chain(informational);
    all.filter(|number| server_text(*number).is_some()).collect()
}

fn assert_produced(case: &str, number: u16, text: &str) {
    assert!(is_produced(number, text), "case {case}, message {number}: {text}");
}

/// Whether a check with this number, or an informational message, can produce exactly this text.
fn is_produced(number: u16, text: &str) -> bool {
    let of_check = |check: &&Check| check.msg == number && made_of(check, text).as_deref() == Some(text);
    let doubled = text.replace("processed. See", "processed.  See");
    registry::ALL.iter().copied().any(|check| of_check(&check))
        || (number == TWO_BLANKS && doubled != text && is_produced(number, &doubled))
        || informational().iter().any(|message| message.number == number && is_alike(&message.text, text))
}

/// Parses `text` with the template of a check, and returns the text that the template produces with the parsed values.
/// `None` if `text` does not match the template.
fn made_of(check: &Check, text: &str) -> Option<String> {
    let pieces = pattern::of_template(check.template);
    let values = pattern::values(&pieces, text, &|name, value| fits(name, value))?;
    let mut finding = Finding::new(find(check));
    let (mut database, mut database_id, mut command) = ("", 0, "");
    let mut owner = None;
    for (name, value) in values {
        match name {
            "owner" | "owner_lower" | "owner_au" | "owner_short" | "purity_owner" => owner = owner_of(value),
            "object_id" => owner.get_or_insert(nobody()).object_id = value.parse().ok()?,
            "index_id" => owner.get_or_insert(nobody()).index_id = value.parse().ok()?,
            "partition_id" => owner.get_or_insert(nobody()).partition_id = value.parse::<i64>().ok()?.cast_unsigned(),
            "alloc_unit_id" => owner.get_or_insert(nobody()).alloc_unit = unit(value)?,
            "alloc_type" => owner.get_or_insert(nobody()).kind = kind(value),
            "page" => finding.page = page(value),
            "ref_page" => finding.ref_page = page(value),
            "slot" => finding.slot = value.parse().ok(),
            "ref_slot" => finding.ref_slot = value.parse().ok(),
            "database" => database = value,
            "database_id" => database_id = value.parse().ok()?,
            "command" => command = value,
            _ => {
                let (name, is_hex) = name.strip_suffix(":x").map_or((name, false), |name| (name, true));
                let number = if is_hex { i64::from_str_radix(value, 16).ok() } else { None };
                let value = match (number, page(value), owner_of(value)) {
                    (Some(number), ..) => Value::Number(number),
                    (_, Some(page), _) => Value::Page(page),
                    (_, _, Some(owner)) => Value::Owner(owner),
                    _ => Value::Text(value.to_owned()),
                };
                let name = name.strip_suffix("_short").or(name.strip_suffix("_au")).unwrap_or(name);
                finding.evidence.push((static_name(check, name), value));
            }
        }
    }
    finding.owner = owner;
    Some(finding.text(&Names { database, database_id, command }))
}

/// Whether `value` is possible for the placeholder `name` of a template.
fn fits(name: &str, value: &str) -> bool {
    match name {
        "owner" | "owner_lower" | "owner_au" | "owner_short" | "purity_owner" => owner_of(value).is_some(),
        name if name.starts_with("other_owner") => owner_of(value).is_some(),
        "slot" | "ref_slot" | "object_id" | "index_id" | "partition_id" | "alloc_unit_id" | "database_id" => {
            value.parse::<i64>().is_ok()
        }
        name if is_page(name) => page(value).is_some(),
        name if name.ends_with(":x") => i64::from_str_radix(value, 16).is_ok(),
        _ => !value.is_empty(),
    }
}

fn is_page(name: &str) -> bool {
    name == "page" || name.ends_with("_page") || name.ends_with("_prev")
}

/// A finding of `check` with a value for each placeholder.
fn sample(check: &'static Check) -> Finding {
    let at = PageId::new(1, 7);
    let mut finding = Finding::new(check).owner(some_owner()).at(at, 3).ref_at(at, 4);
    for piece in pattern::of_template(check.template) {
        let pattern::Piece::Place(name) = piece else { continue };
        let name = name.strip_suffix(":x").unwrap_or(name);
        finding = match name {
            name if is_page(name) => finding.page_value(name, at),
            "other_owner" | "other_owner_au" | "other_owner_short" => finding.other_owner(some_owner()),
            "record" => finding.text_value(name, "(1:7:3)"),
            name => finding.number(name, 9),
        };
    }
    finding
}

fn some_owner() -> Owner {
    Owner { object_id: 5, index_id: 1, partition_id: 6, alloc_unit: AllocUnitId(8), kind: Some(UnitKind::InRow) }
}

fn nobody() -> Owner {
    Owner::unknown(AllocUnitId(0))
}

fn names(command: &str) -> Names<'_> {
    Names { database: "Shop", database_id: 5, command }
}

/// Finds the check in the registry that equals `check`, and returns a static reference to it.
fn find(check: &Check) -> &'static Check {
    registry::ALL.iter().copied().find(|other| *other == check).unwrap()
}

/// Finds the placeholder `name` in the template of a check, and returns its name as a static text.
fn static_name(check: &Check, name: &str) -> &'static str {
    let template = find(check).template;
    let start = template.find(&format!("{{{name}")).map_or(0, |at| at + 1);
    &template[start..start + name.len()]
}

/// The page in a text such as `(1:153)`. Servers print the page number as a signed number.
fn page(text: &str) -> Option<PageId> {
    let (file, page) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(':')?;
    Some(PageId::new(file.parse().ok()?, page.parse::<i32>().ok()?.cast_unsigned()))
}

fn unit(text: &str) -> Option<AllocUnitId> {
    text.parse::<i64>().ok().map(|id| AllocUnitId(id.cast_unsigned()))
}

fn kind(text: &str) -> Option<UnitKind> {
    [UnitKind::InRow, UnitKind::Lob, UnitKind::Overflow].into_iter().find(|kind| kind.message_name() == text)
}

/// The owner in a text, in any of the wordings of messages.
fn owner_of(text: &str) -> Option<Owner> {
    let wordings = [
        "bject ID {}, index ID {}, partition ID {}, alloc unit ID {} (type {})",
        "bject ID {}, index ID {}, partition ID {}, AU ID {} (type {})",
        "bject {}, index {}, partition {}, AU {} ({})",
    ];
    let rest = text.strip_prefix(['O', 'o'])?;
    let fits = |_: &str, value: &str| !value.is_empty();
    let found = wordings.iter().find_map(|wording| pattern::values(&pattern::of_template(wording), rest, &fits))?;
    let [object, index, partition, alloc_unit, kind_name] =
        found.iter().map(|(_, value)| *value).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let kind_name = kind_name.trim_matches('"');
    let kind = kind(kind_name);
    Some(Owner {
        object_id: object.parse().ok()?,
        index_id: index.parse().ok()?,
        partition_id: partition.parse::<i64>().ok()?.cast_unsigned(),
        alloc_unit: unit(alloc_unit)?,
        kind,
    })
    .filter(|_| kind.is_some() || kind_name == "Unknown")
}

/// Each informational message, with a value for each placeholder.
fn informational() -> Vec<Message> {
    let mut report = report("Shop", 5);
    let counts = ErrorCounts { allocation: 1, consistency: 2 };
    let level = registry::Repair::AllowDataLoss;
    let mut all = vec![
        message::results_for("Orders"),
        message::no_index("CHECKDB"),
        message::rows_in_pages((1, 2), "Orders"),
        message::memory_optimized(5, "Orders"),
        message::found_unattributed("CHECKDB", counts),
        message::found_in_table("CHECKDB", counts, "Orders", 5),
        message::found_in_database(&report),
        message::repair_level(&report, level, None).unwrap(),
        message::estimated("CHECKDB", "Shop", 7),
        message::completed(),
    ];
    report.database.catalog_updated = Some("2011-03-10 08:09:00.000".to_owned());
    all.extend(message::catalog_updated(&report));
    report.options.scope = Scope::Catalog;
    all.extend(message::catalog_updated(&report));
    report.options.scope = Scope::Database;
    let limit = &registry::limits::TREE_KEY_BOUNDS_LOST;
    report.not_verified = vec![NotVerified { limit, ..super::not_verified("key bounds", "database", 1) }];
    all.extend(message::facts_lost(&report));
    report.not_verified.clear();
    let asked = Statement { who: "sa", no_infomsgs: true, data_purity: false };
    all.push(errorlog::finished(&report, asked, None, counts));
    report.options.no_index = true;
    report.read_errors = vec!["x".to_owned()];
    all.push(errorlog::finished(&report, asked, None, counts));
    all.extend(message::repair_level(&report, level, None));
    all.extend(service_broker().iter().map(message::broker_count));
    all
}

/// Whether two texts differ only in numbers, quoted names, text in parentheses, and the command.
fn is_alike(ours: &str, printed: &str) -> bool {
    let shape = |text: &str| {
        let mut shape = String::new();
        let mut quote = None;
        for c in text.chars() {
            match (quote, c) {
                (None, '\'' | '"' | '(') => quote = Some(if c == '(' { ')' } else { c }),
                (Some(end), c) if c == end => quote = None,
                (Some(_), _) => continue,
                (None, c) if c.is_ascii_digit() => {
                    if !shape.ends_with('0') {
                        shape.push('0');
                    }
                    continue;
                }
                _ => {}
            }
            shape.push(c);
        }
        shape.replace("CHECKTABLE", "CHECKDB")
    };
    shape(ours) == shape(printed)
}

/// The folder of the collected transcripts, if there is one.
fn cases() -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|folder| folder.join("shared/reference/cases")).find(|folder| folder.is_dir())
}

/// The numbered messages in a transcript, and the informational lines (level 10), which have no number in the
/// transcript.
fn messages_of(case: &str) -> Vec<(u16, String)> {
    let (_, output) = case.split_once("---- verbatim output").unwrap();
    let mut lines = output.lines().skip(1).map(str::trim_end).filter(|line| !line.is_empty()).peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some((number, behind)) = header(line) {
            let text = if behind.is_empty() { lines.next().unwrap_or_default() } else { behind };
            found.push((number, text.to_owned()));
        } else if let Some((number, text)) = row(line) {
            let is_text = text.starts_with(|c: char| c.is_ascii_uppercase()) && !text.starts_with("NULL");
            let text = if is_text { text } else { lines.find(|line| *line != "MessageText:").unwrap_or_default() };
            found.push((number, text.to_owned()));
        } else if let Some(number) = number_of_informational(line) {
            found.push((number, line.to_owned()));
        }
    }
    found
}

/// Splits a line such as `Msg 8928, Level 16, State 1, Line 1`, in any language of the transcripts, into its number and
/// the text after it. `None` if the line has another form.
fn header(line: &str) -> Option<(u16, &str)> {
    let line = line.strip_prefix("Server: ").unwrap_or(line);
    let rest = ["Msg ", "\u{6d88}\u{606f} "].iter().find_map(|start| line.strip_prefix(start))?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = rest.split_at(end);
    let behind = rest.split_once("Line ").map_or("", |(_, line)| line.split_once(' ').map_or("", |(_, text)| text));
    Some((number.parse().ok()?, behind))
}

/// Splits a row of TABLERESULTS into its number and the text after number, level and state. `None` if the row does not
/// begin with three numbers.
fn row(line: &str) -> Option<(u16, &str)> {
    let mut rest = line;
    let mut next = || {
        let (cell, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind.trim_start();
        cell.parse::<u16>().ok()
    };
    let (number, _, _) = (next()?, next()?, next()?);
    Some((number, rest))
}

/// The message number of an informational line (level 10), if the line is a summary or a count.
fn number_of_informational(line: &str) -> Option<u16> {
    let starts = [
        ("DBCC results for '", 2536),
        ("There are ", 2593),
        ("Service Broker Msg ", 8997),
        ("DBCC execution completed", 2528),
    ];
    let contents = [
        ("not associated with any single object", 8954),
        ("consistency errors in table '", 8990),
        ("consistency errors in database '", 8989),
        ("is the minimum repair level", 8958),
    ];
    let is_fixed = line.contains(" fixed ");
    starts
        .iter()
        .find(|(start, _)| line.starts_with(start))
        .or_else(|| contents.iter().find(|(content, _)| line.contains(content) && !is_fixed))
        .map(|(_, number)| *number)
}
