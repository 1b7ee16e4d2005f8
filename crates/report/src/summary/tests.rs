//! Tests of whole summaries, at two widths.

use catalog::UnitKind;
use findings::registry::{self, limits};
use findings::{BackupSummary, Finding, NotVerified, Owner, Report, RowsetCounts, Warning};
use format::{AllocUnitId, PageId};

use super::{Commands, Style, write};
use crate::View;
use crate::fixture::{case_16, owner, page_io, report, rowset};

fn written(report: &Report, view: View, style: Style, status: u8) -> String {
    let commands = Commands { paths: "sales.mdf", command: "check", arguments: "sales.mdf", status };
    let mut out = Vec::new();
    write(report, view, style, commands, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The summary at 80 columns, followed by the summary at 50 columns. No line may be wider unless it is a command or a
/// single word.
fn at_both_widths(report: &Report, status: u8) -> String {
    let at = |columns: usize| {
        let text = written(report, View::default(), Style { columns, has_color: false }, status);
        for line in text.lines().filter(|line| !line.trim_start().starts_with("mdfsck ")) {
            let is_one_word = line.split_whitespace().count() == 1;
            assert!(unicode_width::UnicodeWidthStr::width(line) <= columns || is_one_word, "{columns}: {line}");
        }
        text
    };
    format!("{}\n{}\n{}", at(80), "=".repeat(50), at(50))
}

/// A database with tables, rows and pages.
fn shop() -> Report {
    let mut report = report("Shop", 5);
    report.database.clean_shutdown = Some(true);
    report.rowsets = vec![
        rowset("dbo", "Customer", 5, (1200, 20)),
        rowset("sales", "Order", 6, (94_763, 2700)),
        RowsetCounts {
            index_id: 2,
            index_name: "IX_Order_Date".to_owned(),
            ..rowset("sales", "Order", 6, (94_763, 300))
        },
    ];
    report.statistics.rows = 95_963;
    report.statistics.pages_read = 2786;
    report.statistics.pages_allocated = 2786;
    report.statistics.seconds = 83.2;
    report
}

fn of_index(object_id: i32, index_id: i32) -> Owner {
    Owner { object_id, index_id, partition_id: 1, alloc_unit: AllocUnitId(2), kind: Some(UnitKind::InRow) }
}

fn not_verified(limit: &'static limits::Limit, scope: &str) -> NotVerified {
    NotVerified {
        what: limit.what.to_owned(),
        scope: scope.to_owned(),
        reason: limit.reason.to_owned(),
        count: 1,
        limit,
        objects: Vec::new(),
    }
}

#[test]
fn sound() {
    insta::assert_snapshot!(at_both_widths(&shop(), 0));
}

#[test]
fn one_finding() {
    let mut report = shop();
    let key = Finding::new(&registry::KEY_ORDER).owner(of_index(6, 2)).at(PageId::new(1, 153), 4);
    report.findings = vec![key.ref_at(PageId::new(1, 153), 5)].into();
    insta::assert_snapshot!(at_both_widths(&report, 1));
}

/// A cause must be listed before its consequences, even if the consequences are in another object or index. The
/// consequences must only be counted.
#[test]
fn causes_come_first() {
    let mut report = case_16();
    report.rowsets.extend(shop().rowsets);
    let page = PageId::new(1, 77);
    let mut findings: Vec<Finding> = report.findings.iter().map(|finding| finding.into_owned()).collect();
    findings.insert(0, Finding::new(&registry::PAGE_ID).page(page).page_value("header_page", PageId::new(0, 0)));
    let unseen = Finding::new(&registry::TREE_CHILD_UNSEEN).owner(of_index(6, 1)).page(page);
    findings.push(unseen.ref_page(PageId::new(1, 70)));
    let next = Finding::new(&registry::TREE_PREV_UNSEEN).owner(of_index(6, 1)).page(PageId::new(1, 78));
    findings.push(next.ref_page(page));
    report.findings = findings.into();
    insta::assert_snapshot!(at_both_widths(&report, 1));
}

#[test]
fn incomplete_by_cause() {
    let mut report = shop();
    for number in 1..=30 {
        report.not_verified.push(not_verified(&limits::TREE_KEY_ORDER_COLLATION, &format!("sales.Order.IX_{number}")));
    }
    report.not_verified.push(not_verified(&limits::INDEX_DAMAGED, "sales.Order.IX_Order_Date"));
    insta::assert_snapshot!(at_both_widths(&report, 16));
}

#[test]
fn allocation_errors() {
    let mut report = shop();
    let extent = |page| Finding::new(&registry::EXTENT_UNOWNED).page(PageId::new(1, page));
    report.findings = vec![extent(816), extent(824)].into();
    insta::assert_snapshot!(at_both_widths(&report, 1));
}

#[test]
fn catalog_damage_has_no_names() {
    let mut report = report("Shop", 5);
    let owner = owner(901_578_250, 72_057_594_045_726_720, 72_057_594_052_476_928);
    report.findings = vec![page_io(owner, PageId::new(1, 392), 133_129, -4)].into();
    report.not_verified = vec![not_verified(&limits::CATALOG_BOOT_PAGE, "database")];
    report.database.version = 0;
    insta::assert_snapshot!(at_both_widths(&report, 17));
}

#[test]
fn a_file_that_was_cut() {
    let mut report = shop();
    let text = "shop.mdf: has 8192000 bytes, but its header says 2000 pages (16384000 bytes): the file was cut; copy or \
                restore it again";
    report.warnings = vec![Warning { id: limits::PAGES_BEYOND_END.id, text: text.to_owned() }];
    report.read_errors = vec![text.to_owned()];
    report.not_verified = vec![not_verified(&limits::PAGES_BEYOND_END, "file 1")];
    insta::assert_snapshot!(at_both_widths(&report, 20));
}

#[test]
fn a_missing_file() {
    let mut report = shop();
    let text = "orders.mdf is 1 of 3 data files; give orders_2.ndf and orders_3.ndf too".to_owned();
    report.warnings = vec![Warning { id: limits::FILE_NOT_GIVEN.id, text }];
    report.not_verified = vec![
        not_verified(&limits::INDEX_FILE_NOT_GIVEN, "sales.Order.IX_Order_Date"),
        not_verified(&limits::FILE_NOT_GIVEN, "file 3 (orders_2)"),
        not_verified(&limits::FILE_NOT_GIVEN, "file 4 (orders_3)"),
    ];
    insta::assert_snapshot!(at_both_widths(&report, 16));
}

#[test]
fn a_backup_without_a_stripe() {
    let mut report = shop();
    report.database.clean_shutdown = Some(false);
    let finished = Some("2014-03-02 11:20:07".to_owned());
    report.database.backup = Some(BackupSummary { kind: "Database", set: 1, finished });
    let text =
        "stripe 2 of 2 is missing: only the pages in the files given are checked; give all stripes of the backup";
    report.warnings = vec![Warning { id: limits::BACKUP_STRIPES.id, text: text.to_owned() }];
    report.not_verified = vec![
        not_verified(&limits::INDEX_DAMAGED, "sales.Order.IX_Order_Date"),
        not_verified(&limits::PAGES_UNREADABLE, "sales.Order"),
        not_verified(&limits::BACKUP_STRIPES, "backup"),
    ];
    insta::assert_snapshot!(at_both_widths(&report, 16));
}

#[test]
fn a_damaged_backup() {
    let mut report = case_16();
    report.database.backup = Some(BackupSummary { kind: "Database Differential", set: 3, finished: None });
    insta::assert_snapshot!(at_both_widths(&report, 1));
}

#[test]
fn findings_that_the_log_may_explain() {
    let mut report = shop();
    report.database.clean_shutdown = Some(false);
    let limit = &limits::DEMOTED_LOG;
    let of = |page| Finding {
        demoted_by: Some(limit),
        ..Finding::new(&registry::KEY_ORDER).owner(of_index(6, 2)).at(PageId::new(1, page), 4)
    };
    report.demoted = (150..158).map(of).collect::<Vec<_>>().into();
    report.not_verified = vec![NotVerified { what: "message 2511".to_owned(), ..not_verified(limit, "sales.Order") }];
    insta::assert_snapshot!(at_both_widths(&report, 16));
}

#[test]
fn more_findings_than_are_shown() {
    let mut report = shop();
    let of = |object, index, page| {
        Finding::new(&registry::KEY_ORDER).owner(of_index(object, index)).at(PageId::new(1, page), 4)
    };
    report.findings =
        (0..25).map(|page| of(5, 1, page)).chain((0..7).map(|page| of(6, 2, page))).collect::<Vec<_>>().into();
    let style = Style { columns: 80, has_color: false };
    let text = written(&report, View::default(), style, 1);
    assert_eq!(text.matches("\n  2511  ").count(), super::MOST_FINDINGS, "{text}");
    assert!(text.contains("... and 5 more findings"), "{text}");
    assert!(text.contains("... and 7 findings in 1 more object or index"), "{text}");
    let text = written(&report, View { max_findings: Some(3), ..View::default() }, style, 1);
    assert_eq!(text.matches("\n  2511  ").count(), 3, "{text}");
    // With a limit of 0, only the counts are shown.
    let text = written(&report, View { max_findings: Some(0), ..View::default() }, style, 1);
    assert!(text.contains("32 consistency errors") && !text.contains("\n  2511  "), "{text}");
}

#[test]
fn one_of_several_databases_has_no_commands_as_their_table_follows() {
    let mut report = case_16();
    report.not_verified = vec![not_verified(&limits::INDEX_DAMAGED, "dbo.T")];
    let mut out = Vec::new();
    super::write_verdict(&report, View::default(), Style { columns: 80, has_color: false }, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("NOT SOUND   3 consistency errors") && text.contains("  8939  page (1:392)"), "{text}");
    assert!(
        text.contains("Not verified   1 thing\n  the table or the index itself is damaged (index.damaged)"),
        "{text}"
    );
    assert!(!text.contains("mdfsck check") && text.ends_with("\n\n"), "{text}");
}

#[test]
fn only_the_verdict_has_a_color() {
    let with_color = Style { columns: 80, has_color: true };
    let mut unverified = shop();
    unverified.not_verified = vec![not_verified(&limits::INDEX_DAMAGED, "dbo.T")];
    for (report, status, expected) in [
        (shop(), 0, "\u{1b}[1m\u{1b}[32mSOUND\u{1b}[0m   no errors"),
        (case_16(), 1, "\u{1b}[1m\u{1b}[31mNOT SOUND\u{1b}[0m   3 consistency errors"),
        (unverified, 16, "\u{1b}[1m\u{1b}[33mINCOMPLETE\u{1b}[0m   no errors found"),
    ] {
        let colored = written(&report, View::default(), with_color, status);
        assert!(colored.contains(expected) && colored.matches('\u{1b}').count() == 3, "{colored:?}");
        let plain = written(&report, View::default(), Style { columns: 80, has_color: false }, status);
        let removed = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"]
            .iter()
            .fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(plain, removed);
    }
}

#[test]
fn names_from_the_file_cannot_steer_the_terminal() {
    let mut report = case_16();
    report.database.name = "a\u{1b}[2J\nb".to_owned();
    report.rowsets.iter_mut().for_each(|rowset| rowset.name = "x\u{1b}]0;\u{7}".to_owned());
    report.not_verified = vec![not_verified(&limits::INDEX_DAMAGED, "t\u{1b}[1m")];
    let text = written(&report, View::default(), Style { columns: 80, has_color: false }, 17);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
}

#[test]
fn what_is_allowed_is_sound_and_named() {
    let mut report = shop();
    report.not_verified = vec![not_verified(&limits::INDEX_DAMAGED, "dbo.T")];
    report.options.allowed = vec![&limits::INDEX_DAMAGED];
    let text = written(&report, View::default(), Style { columns: 80, has_color: false }, 0);
    assert!(text.contains("SOUND   no errors; not verified: 1 thing that --allow accepts"), "{text}");
    assert!(text.contains("(index.damaged, allowed)"), "{text}");
}
