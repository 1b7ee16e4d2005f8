//! Tests of DBCC's output other than its text: TABLERESULTS, the estimate, the line in the error log.

use findings::{Estimate, Finding, Report, Scope, registry};
use format::PageId;

use super::{QUIET, TABLE};
use crate::errorlog::{self, Statement};
use crate::fixture::{case_16, owner, page_io, report, rowset, shown};
use crate::{Columns, Format, View};

/// The cells of `columns` in each row with this message number.
fn cells(text: &str, number: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let names = rows.headers().unwrap().clone();
    let at: Vec<usize> = columns.iter().map(|name| names.iter().position(|other| other == *name).unwrap()).collect();
    let rows = rows.records().map(Result::unwrap).filter(|row| &row[0] == number);
    rows.map(|row| at.iter().map(|at| row[*at].to_owned()).collect()).collect()
}

/// A report about two damaged leaf pages of one index. The report has three findings for each leaf. One of the three
/// refers to the entry for this leaf on the parent page.
fn two_leaves() -> Report {
    let mut report = report("Shop", 5);
    let owner = owner(100, 7, 8);
    let page = |page| PageId::new(1, page);
    let of_leaf = |leaf: u32, slot: u16| {
        [
            page_io(owner, page(leaf), 133_129, -4),
            Finding::new(&registry::PAGE_UNPROCESSED).owner(owner).page(page(leaf)),
            Finding::new(&registry::TREE_CHILD_UNSEEN)
                .owner(owner)
                .page(page(leaf))
                .ref_at(page(90), slot)
                .page_value("other_page", page(leaf - 1)),
        ]
    };
    report.findings = [of_leaf(200, 3), of_leaf(300, 9)].concat().into();
    report
}

#[test]
fn the_row_of_8928_has_the_parent_of_its_page() {
    let columns = ["Page", "RefFile", "RefPage", "RefSlot"];
    let rows = cells(&shown(TABLE, &two_leaves(), QUIET), "8928", &columns);
    assert_eq!(rows, [["200", "1", "90", "3"], ["300", "1", "90", "9"]]);
    // The damaged page of case 16 is a root, which has no parent page, so the references are 0. Message 8939 refers to
    // no other page, so its references are 0 too.
    assert_eq!(cells(&shown(TABLE, &case_16(), QUIET), "8928", &columns), [["392", "0", "0", "0"]]);
    let rows = cells(&shown(TABLE, &two_leaves(), QUIET), "8939", &columns);
    assert_eq!(rows, [["200", "0", "0", "0"], ["300", "0", "0", "0"]]);
}

#[test]
fn the_older_columns_have_the_same_values() {
    let newer = shown(TABLE, &two_leaves(), QUIET);
    let older = shown(Format::TableResults(Columns::Older), &two_leaves(), QUIET);
    assert_eq!(
        older.lines().next().unwrap(),
        "Error,Level,State,MessageText,RepairLevel,Status,DbId,Id,IndId,PartitionId,AllocUnitId,File,Page,Slot,RefFile,RefPage,\
         RefSlot,Allocation"
    );
    let same = ["State", "MessageText", "RepairLevel", "Status", "DbId", "PartitionId", "AllocUnitId", "File", "Page"];
    let same = [&same[..], &["Slot", "RefFile", "RefPage", "RefSlot", "Allocation"]].concat();
    for number in ["8928", "8939", "8976", "8989"] {
        let of = |text, ids: [&'static str; 2]| cells(text, number, &[&same[..], &ids].concat());
        assert_eq!(of(&older, ["Id", "IndId"]), of(&newer, ["ObjectId", "IndexId"]), "{number}");
        assert!(!of(&older, ["Id", "IndId"]).is_empty());
    }
}

#[test]
fn null_is_an_empty_cell_and_cells_are_quoted_where_they_must_be() {
    let mut report = case_16();
    report.rowsets = vec![rowset("dbo", "a \"b\", c", 901_578_250, (0, 0))];
    let text = shown(TABLE, &report, View::default());
    assert_eq!(cells(&text, "8989", &["RepairLevel"]), [[""]]);
    assert_eq!(
        cells(&text, "2593", &["MessageText"]),
        [["There are 0 rows in 0 pages for object \"a \"b\", c\"."]],
        "{text}"
    );
    assert!(text.contains("\"There are 0 rows in 0 pages for object \"\"a \"\"b\"\", c\"\".\""), "{text}");
}

#[test]
fn an_estimate_is_one_line_of_dbcc_and_the_rest_is_said_elsewhere() {
    let estimate =
        Estimate { read_bytes: 8192, memory_bytes: 2_000_000, minimum_memory_bytes: 1_000_000, temp_bytes: 5000 };
    let text = |format, view| {
        let mut out = Vec::new();
        crate::estimate::write((format, view), (estimate, None), &Scope::Database, "Shop", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let quiet = "Estimated TEMPDB space (in KB) needed for CHECKDB on database Shop = 5.\n";
    assert_eq!(text(Format::Text, QUIET), quiet);
    let needs = "Estimated memory (in KB) needed = 1954, at least 977 (--memory); reading (in KB) = 8.";
    assert_eq!(crate::estimate::needs(estimate), needs);
    let last = "DBCC execution completed. If DBCC printed error messages, contact your system administrator.\n";
    assert_eq!(text(Format::Text, View::default()), format!("{quiet}{last}"));
    let rows = text(TABLE, View::default());
    assert_eq!(rows.lines().count(), 2, "{rows}");
    assert_eq!(cells(&rows, "5281", &["RepairLevel"]), [[""]]);
}

#[test]
fn the_line_of_the_error_log_says_who_what_and_how_long() {
    let mut report = case_16();
    report.statistics.seconds = 3723.9;
    let quiet = Statement { who: r"DOM\dba", no_infomsgs: true, data_purity: false };
    let lines = |report: &Report, statement| errorlog::lines(report, statement);
    assert_eq!(
        lines(&report, quiet),
        [
            r"DBCC CHECKDB (ExamplesDB_CorruptionCheckDB) WITH no_infomsgs executed by DOM\dba found 3 errors and repaired 0 errors. Elapsed time: 1 hours 2 minutes 3 seconds."
        ]
    );
    report.options.no_index = true;
    report.options.physical_only = true;
    report.read_errors = vec!["a.mdf: cannot read".to_owned()];
    let [line] = &lines(&report, Statement { data_purity: true, no_infomsgs: false, ..quiet })[..] else { panic!() };
    assert!(line.starts_with(
        "DBCC CHECKDB (ExamplesDB_CorruptionCheckDB, noindex) WITH physical_only, data_purity executed by"
    ));
    assert!(line.ends_with(" 3 seconds. Reads that failed: 1."), "{line}");
}

#[test]
fn errors_that_stop_a_check_are_errors_in_the_line_of_the_error_log() {
    let mut report = crate::fixture::report("a", 5);
    let loops = Finding::new(&registry::PRIMITIVE_LOOP).number("object_id", 5_u32).page(PageId::new(1, 16));
    report.findings = vec![loops].into();
    let lines = errorlog::lines(&report, Statement { who: "sa", no_infomsgs: false, data_purity: false });
    assert!(lines[0].contains(" found 1 errors and repaired 0 errors."), "{lines:?}");
}

#[test]
fn each_table_of_checktable_has_its_line_and_an_incomplete_run_says_so() {
    let mut report = case_16();
    report.rowsets.push(rowset("Sales", "a\nb", 5, (1, 1)));
    report.options.scope = Scope::Tables(vec![5, 901_578_250]);
    report.not_verified = vec![super::not_verified("key order", "dbo.Customer.IX_Name", 12)];
    let lines = errorlog::lines(&report, Statement { who: "sa", no_infomsgs: false, data_purity: false });
    let [first, second] = &lines[..] else { panic!("{lines:?}") };
    assert!(
        first
            .starts_with(r"DBCC CHECKTABLE (ExamplesDB_CorruptionCheckDB.Sales.a\u{a}b) executed by sa found 0 errors")
    );
    assert!(second.contains("CorruptionCheckDB.dbo.Customer) executed by sa found 3 errors and repaired 0 errors."));
    assert!(second.contains("0 seconds. Incomplete: one thing asked for could not be verified."), "{second}");
}

#[test]
fn violations_are_listed_as_checkconstraints_lists_them() {
    let mut report = report("Shop", 5);
    report.options.constraints = true;
    report.rowsets = vec![rowset("dbo", "Orders", 100, (5, 1)), rowset("Sales", "Items", 101, (5, 1))];
    let violation = |check, (table, id): (&str, i32), place: &str| {
        Finding::new(check)
            .owner(owner(id, 7, 8))
            .at(PageId::new(1, 200), 3)
            .text_value("table", table)
            .text_value("constraint", "CK]1")
            .text_value("standing", "not trusted")
            .text_value("record", "(1:200:3)")
            .text_value("where", place)
            .number("rows", 2)
            .text_value("referenced", "Parents")
    };
    report.findings = vec![
        violation(&registry::CHECK_VIOLATED, ("Orders", 100), "[Qty] = '-1'"),
        violation(&registry::FOREIGN_KEY_VIOLATED, ("Sales.Items", 101), "[Order] = '7' AND [Line] IS NULL"),
    ]
    .into();
    let text = shown(Format::Text, &report, QUIET);
    let rows = "Table            Constraint  Where\n\
                [dbo].[Orders]   [CK]]1]     [Qty] = '-1'\n\
                [Sales].[Items]  [CK]]1]     [Order] = '7' AND [Line] IS NULL\n";
    assert!(text.contains(rows), "{text}");
    assert!(text.contains("of table 'Orders' is not trusted, but its condition is false for row (1:200:3)"), "{text}");
    let first = shown(Format::Text, &report, View { max_findings: Some(1), ..QUIET });
    assert!(first.contains("[dbo].[Orders]") && !first.contains("[Sales].[Items]"), "{first}");
}

#[test]
fn a_run_that_lost_facts_says_so_before_its_summary_and_counts_no_error() {
    let mut report = report("Shop", 5);
    assert!(!shown(Format::Text, &report, View::default()).contains("Msg "));
    let limit = &registry::limits::TREE_KEY_BOUNDS_LOST;
    report.not_verified = vec![findings::NotVerified { limit, ..super::not_verified("key bounds", "database", 12) }];
    let text = shown(Format::Text, &report, View::default());
    let lines = "Msg 8921, Level 16, State 1, Line 1\nCheck terminated. A failure was detected while collecting facts. Possibly \
                 tempdb out of space or a system table is inconsistent. Check previous errors.\nCHECKDB found 0 allocation errors \
                 and 0 consistency errors in database 'Shop'.\n";
    assert!(text.contains(lines), "{text}");
    assert_eq!(cells(&shown(TABLE, &report, QUIET), "8921", &["Level", "ObjectId", "RepairLevel"]), [["16", "0", ""]]);
}
