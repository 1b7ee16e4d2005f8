//! Tests of the lines that each command prints for a sound database, and of the options that change these lines.

use findings::registry::{self, Check};
use findings::{FileTotals, Finding, Report, RowsetCounts, Scope, UnitFileTotals};
use format::PageId;

use super::{QUIET, TABLE};
use crate::fixture::{case_16, owner, report, rowset, service_broker, shown};
use crate::{Format, View};

const COMPLETED: &str =
    "DBCC execution completed. If DBCC printed error messages, contact your system administrator.\n";

fn sound() -> Report {
    let mut report = report("Shop", 5);
    let mut second = rowset("dbo", "Orders", 100, (5, 1));
    second.partition = 2;
    let mut nonclustered = rowset("dbo", "Orders", 100, (35, 4));
    nonclustered.index_id = 2;
    report.rowsets =
        vec![rowset("sys", "sysrscols", 3, (805, 9)), rowset("dbo", "Orders", 100, (30, 3)), second, nonclustered];
    report
}

fn text(change: impl FnOnce(&mut Report)) -> String {
    let mut report = sound();
    change(&mut report);
    shown(Format::Text, &report, View::default())
}

#[test]
fn checkdb_sums_partitions_and_leaves_out_nonclustered_indexes() {
    let expected = "DBCC results for 'Shop'.\n\
                    DBCC results for 'sys.sysrscols'.\n\
                    There are 805 rows in 9 pages for object \"sys.sysrscols\".\n\
                    DBCC results for 'Orders'.\n\
                    There are 35 rows in 4 pages for object \"Orders\".\n\
                    CHECKDB found 0 allocation errors and 0 consistency errors in database 'Shop'.\n";
    assert_eq!(text(|_| {}), format!("{expected}{COMPLETED}"));
}

#[test]
fn a_sound_database_prints_nothing_with_no_infomsgs() {
    assert_eq!(shown(Format::Text, &sound(), QUIET), "");
}

#[test]
fn physical_only_lists_no_objects() {
    let expected = "DBCC results for 'Shop'.\n\
                    CHECKDB found 0 allocation errors and 0 consistency errors in database 'Shop'.\n";
    assert_eq!(text(|report| report.options.physical_only = true), format!("{expected}{COMPLETED}"));
}

#[test]
fn noindex_warns_after_the_heading() {
    let text = text(|report| report.options.no_index = true);
    assert!(text.starts_with(
        "DBCC results for 'Shop'.\nWarning: NO_INDEX option of checkdb being used. Checks on non-system indexes will be \
         skipped.\nDBCC results for 'sys.sysrscols'.\n"
    ));
}

#[test]
fn checktable_has_no_summary_of_the_database() {
    let text = text(|report| {
        report.options.scope = Scope::Tables(vec![100]);
        report.rowsets.remove(0);
    });
    let expected = "DBCC results for 'Orders'.\nThere are 35 rows in 4 pages for object \"Orders\".\n";
    assert_eq!(text, format!("{expected}{COMPLETED}"));
    let mut damaged = case_16();
    damaged.options.scope = Scope::Tables(vec![901_578_250]);
    let text = shown(Format::Text, &damaged, QUIET);
    assert!(text.ends_with(
        "CHECKTABLE found 0 allocation errors and 3 consistency errors in table 'Customer' (object ID 901578250).\n\
         repair_allow_data_loss is the minimum repair level for the errors found by DBCC CHECKTABLE \
         (ExamplesDB_CorruptionCheckDB.dbo.Customer).\n"
    ));
}

#[test]
fn checkcatalog_prints_its_messages_unwrapped_and_no_summary() {
    let mut report = report("Shop", 5);
    report.options.scope = Scope::Catalog;
    report.findings = vec![
        Finding::new(&registry::CATALOG_DANGLING)
            .text_value("attribute", "object_id=1977058079")
            .text_value("row", "object_id=1977058079,column_id=1")
            .text_value("table", "columns")
            .text_value("wanted", "object_id=1977058079")
            .text_value("referenced", "objects"),
    ]
    .into();
    let message = "Attribute (object_id=1977058079) of row (object_id=1977058079,column_id=1) in sys.columns does not have a \
                   matching row (object_id=1977058079) in sys.objects.\n";
    let expected = format!("Msg 3853, Level 16, State 1, Line 1\n{message}{COMPLETED}");
    assert_eq!(shown(Format::Text, &report, View::default()), expected);
    let rows = shown(TABLE, &report, View::default());
    assert!(rows.contains("\n3853,16,1,") && rows.lines().count() == 2, "{rows}");
    report.options.scope = Scope::Database;
    let wrapped = format!("Msg 8992, Level 16, State 1, Line 1\nCheck Catalog Msg 3853, State 1: {message}");
    assert!(shown(Format::Text, &report, View::default()).contains(&wrapped));
}

#[test]
fn service_broker_comes_after_the_heading_in_every_format() {
    let mut report = report("Shop", 5);
    report.service_broker = service_broker();
    let line = "Service Broker Msg 9675, State 1: Message Types analyzed: 14.";
    assert!(shown(Format::Text, &report, View::default()).starts_with(&format!("DBCC results for 'Shop'.\n{line}\n")));
    assert!(!shown(Format::Text, &report, QUIET).contains("Service Broker"));
    assert!(shown(TABLE, &report, View::default()).contains(&format!("\n8997,10,1,\"{line}\",,")));
    assert!(!shown(TABLE, &report, QUIET).contains("Service Broker"));
    assert!(shown(Format::Json, &report, QUIET).contains("\"analyzed\":{\"Message Types\":14,"));
}

#[test]
fn checkfilegroup_is_named_in_the_summary() {
    let text = text(|report| report.options.scope = Scope::Filegroup(1));
    let expected = "CHECKFILEGROUP found 0 allocation errors and 0 consistency errors in database 'Shop'.\n";
    assert!(text.ends_with(&format!("{expected}{COMPLETED}")));
}

#[test]
fn checkalloc_lists_units_and_files() {
    let text = text(|report| {
        report.options.scope = Scope::Allocation;
        report.rowsets.truncate(1);
        let of_index = report.rowsets.iter().map(|rowset| RowsetCounts { index_id: 2, ..rowset.clone() });
        let mut of_index: Vec<RowsetCounts> = of_index.collect();
        let of_file_3 = UnitFileTotals { file_id: 3, extents: 0, used_pages: 2, mixed_pages: 2 };
        of_index.iter_mut().flat_map(|rowset| &mut rowset.units).for_each(|unit| unit.files.push(of_file_3));
        report.rowsets.extend(of_index);
        report.file_totals = vec![
            FileTotals {
                file_id: 1,
                extents: 44,
                used_pages: 300,
                reserved_pages: 345,
                mixed_extents: 29,
                mixed_pages: 225,
            },
            FileTotals { file_id: 3, extents: 1, used_pages: 2, reserved_pages: 8, mixed_extents: 0, mixed_pages: 0 },
        ];
    });
    insta::assert_snapshot!(text);
}

#[test]
fn findings_of_the_pre_checks_stand_before_the_heading() {
    let text = text(|report| {
        let unreadable = &registry::PRIMITIVE_UNREADABLE;
        report.findings = vec![Finding::new(unreadable).owner(owner(3, 0, 0)).page(PageId::new(1, 17))].into();
    });
    assert!(text.starts_with("Msg 7985, Level 16, State 2, Line 1\nSystem table pre-checks: Object ID 3. "), "{text}");
    assert!(text.contains("\nDBCC results for 'Shop'.\n"));
}

#[test]
fn objects_that_only_findings_know_are_listed_too() {
    let lost: &'static Check = &registry::PAGE_UNPROCESSED;
    let text = text(|report| {
        report.findings = vec![Finding::new(lost).owner(owner(50, 1, 1)).page(PageId::new(1, 17))].into();
    });
    assert!(text.contains("DBCC results for 'object ID 50'.\nMsg 8928"), "{text}");
    assert!(text.contains("1 consistency errors in table 'object ID 50' (object ID 50).\n"), "{text}");
    let place = |name: &str| text.find(name).unwrap();
    assert!(place("sysrscols") < place("object ID 50") && place("object ID 50") < place("Orders"));
}
