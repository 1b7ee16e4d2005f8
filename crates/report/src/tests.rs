//! Tests of whole reports in every format. The cases are those of docs/format/cases.md, which have published output of
//! real servers.

mod commands;
mod forms;
pub(crate) mod transcripts;
mod wording;

use findings::NotVerified;
use findings::registry::limits;

use crate::fixture::{case_16, report, rowset, shown};
use crate::{Columns, Format, View};

const TABLE: Format = Format::TableResults(Columns::Newer);
const QUIET: View = View { no_infomsgs: true, findings_only: false, max_findings: None, defaults: &[] };

#[test]
fn json_lines_of_case_16() {
    let mut report = case_16();
    report.read_errors = vec!["a.mdf: cannot read at byte 8192: I/O error".to_owned()];
    report.not_verified = vec![not_verified("key order", "dbo.Customer.IX_Name", 12)];
    let text = shown(Format::Json, &report, View::default());
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn an_incomplete_run_says_what_where_how_many_and_why() {
    let mut report = report("Shop", 5);
    report.rowsets = vec![rowset("dbo", "Orders", 5, (2, 1))];
    report.not_verified = vec![
        not_verified("key order", "dbo.Orders.IX_1", 12),
        not_verified("key order", "dbo.Orders.IX_2", 3),
        not_verified("data purity", "database", 0),
    ];
    let text = shown(Format::Text, &report, QUIET);
    assert_eq!(
        text,
        "\nIncomplete: 3 things asked for could not be verified. 'mdfsck explain ID' says more.\n  \
         Because mdfsck does not make this check:\n    \
         collation not supported (tree.key-order-collation)\n      \
         key order: dbo.Orders.IX_1 (12), dbo.Orders.IX_2 (3)\n      \
         data purity: database\n"
    );
}

#[test]
fn an_allowed_limit_is_reported_as_allowed() {
    let mut report = report("Shop", 5);
    report.not_verified = vec![not_verified("key order", "dbo.Orders.IX_1", 12)];
    report.options.allowed = vec![&findings::registry::limits::TREE_KEY_ORDER_COLLATION];
    let text = shown(Format::Text, &report, QUIET);
    assert!(text.contains("(tree.key-order-collation, allowed)") && text.contains("(--allow accepts it)"), "{text}");
    assert!(shown(Format::Json, &report, QUIET).contains("\"allowed\":true"));
}

#[test]
fn a_demoted_finding_keeps_all_that_it_says_in_every_format() {
    let mut report = report("Shop", 5);
    let limit = &findings::registry::limits::DEMOTED_LOG;
    let found: Vec<findings::Finding> = case_16().findings.iter().map(|finding| finding.into_owned()).collect();
    report.demoted = found
        .iter()
        .map(|finding| findings::Finding { demoted_by: Some(limit), ..finding.clone() })
        .collect::<Vec<_>>()
        .into();
    report.not_verified = vec![NotVerified { limit, ..not_verified("message 8939", "database", 1) }];
    let text = shown(Format::Text, &report, View::default());
    for finding in &found {
        let expected =
            format!("\n        {}, state {}: {}\n", finding.check.msg, finding.state, finding.text(&report.names()));
        assert!(text.contains(&expected), "{expected}{text}");
    }
    assert!(!text.contains("Msg 8939, Level 16"), "a script would take it for a finding");
    let json = shown(Format::Json, &report, View::default());
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let demoted: Vec<_> = lines.iter().filter(|line| line["kind"] == "demoted").collect();
    assert_eq!(demoted.len(), found.len());
    assert_eq!(
        (&demoted[0]["limit"], &demoted[0]["msg"], &demoted[0]["page"]),
        (&"demoted.log".into(), &8939.into(), &392.into())
    );
    assert!(lines.iter().all(|line| line["kind"] != "finding"));
}

#[test]
fn notes_are_separate_and_informational() {
    let mut report = report("Shop", 5);
    let limit = &findings::registry::limits::COUNTS_ROWS_MORE;
    report.notes = vec![NotVerified { limit, ..not_verified("row count", "dbo.Orders", 0) }];
    let text = shown(Format::Text, &report, View::default());
    assert!(report.complete() && text.contains("\nNotes:\n") && text.contains("(counts.rows-more)"), "{text}");
    assert_eq!(shown(Format::Text, &report, QUIET), "");
    assert!(shown(Format::Json, &report, QUIET).contains("\"kind\":\"note\""));
}

#[test]
fn memory_optimized_tables_are_named_as_left_out() {
    let mut report = report("Shop", 5);
    let in_memory = findings::RowsetCounts { memory_optimized: true, ..rowset("dbo", "Session", 901_578_250, (0, 0)) };
    report.rowsets = vec![in_memory];
    let line = "Object ID 901578250 (object 'Session'): The operation is not supported with memory optimized tables. This \
                object has been skipped and will not be processed.";
    let text = shown(Format::Text, &report, View::default());
    assert!(text.contains(line) && !text.contains("There are"), "{text}");
    assert!(shown(TABLE, &report, View::default()).contains(&format!("5296,10,1,{line}")));
}

#[test]
fn findings_beyond_the_limit_are_counted_not_shown() {
    let report = case_16();
    let view = View { max_findings: Some(1), ..QUIET };
    let text = shown(Format::Text, &report, view);
    assert_eq!(text.matches("Msg ").count(), 1);
    assert!(text.contains("3 consistency errors in database"), "{text}");
    assert!(text.ends_with("2 more findings are counted but not shown (--max-findings).\n"), "{text}");
    assert_eq!(shown(TABLE, &report, view).lines().count(), 1 + 1 + 2);
    let json = shown(Format::Json, &report, view);
    assert_eq!(json.matches("\"kind\":\"finding\"").count(), 1);
    assert!(json.contains("\"findings\":3,\"findings_hidden\":2"), "{json}");
}

#[test]
fn names_from_the_file_cannot_break_lines() {
    let mut report = report("a\nb", 5);
    report.rowsets = vec![rowset("dbo", "x\u{1b}[2J", 5, (0, 0))];
    let text = shown(Format::Text, &report, View::default());
    assert!(text.starts_with("DBCC results for 'a\\u{a}b'.\nDBCC results for 'x\\u{1b}[2J'.\n"), "{text}");
}

#[test]
fn what_follows_from_a_missing_stripe_is_one_line_of_text_and_all_of_json() {
    let mut report = report("Shop", 5);
    let of = |limit, what| NotVerified { limit, ..not_verified(what, "dbo.Orders", 1) };
    report.not_verified = vec![
        of(&limits::PAGES_UNREADABLE, "pages"),
        of(&limits::INDEX_DAMAGED, "index rows against table rows"),
        of(&limits::COLUMN_XML_OFF_ROW, "column values"),
        of(&limits::BACKUP_STRIPES, "stripes"),
    ];
    let text = shown(Format::Text, &report, QUIET);
    let (stripes, other) = (text.find("(backup.stripes)").unwrap(), text.find("(column.xml-off-row)").unwrap());
    assert!(
        stripes < other && text.contains("other entries that depend on these pages: 2 (--format json lists all)"),
        "{text}"
    );
    assert!(!text.contains("index.damaged") && !text.contains("pages.unreadable"), "{text}");
    assert_eq!(shown(Format::Json, &report, QUIET).matches("\"kind\":\"not_verified\"").count(), 4);
    // With findings in the report, damage may be the reason for the entry `index.damaged`, so this entry must now be
    // shown. The entry `pages.unreadable` follows from the missing stripe and must stay hidden.
    report.findings = case_16().findings;
    let text = shown(Format::Text, &report, QUIET);
    assert!(text.contains("index.damaged") && !text.contains("pages.unreadable"), "{text}");
}

#[test]
fn what_is_missing_comes_before_what_follows_from_it() {
    let mut report = report("Shop", 5);
    let of = |limit, what| NotVerified { limit, ..not_verified(what, "file 3 (orders_2)", 0) };
    report.not_verified = vec![
        of(&limits::TREE_IAM_CHAIN, "index"),
        of(&limits::PAGES_FILE_NOT_GIVEN, "pages"),
        of(&limits::FILE_NOT_GIVEN, "file"),
    ];
    let text = shown(Format::Text, &report, QUIET);
    let at = |id: &str| text.find(id).unwrap();
    assert!(at("(file.not-given)") < at("(pages.file-not-given)"), "{text}");
    assert!(at("(pages.file-not-given)") < at("(tree.iam-chain)"), "{text}");
}

fn not_verified(what: &str, scope: &str, count: u64) -> NotVerified {
    let limit = &findings::registry::limits::TREE_KEY_ORDER_COLLATION;
    NotVerified {
        what: what.to_owned(),
        scope: scope.to_owned(),
        reason: "collation not supported".to_owned(),
        count,
        limit,
        objects: Vec::new(),
    }
}
