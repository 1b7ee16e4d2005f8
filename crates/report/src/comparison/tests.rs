//! Comparisons with excerpts of real output (docs/format/cases.md).

use std::collections::BTreeMap;

use findings::registry::{self, limits};
use findings::{Finding, Owner, Report};
use format::{AllocUnitId, PageId};

use super::*;
use crate::fixture::{case_16, owner, page_io, report, rowset, service_broker};
use crate::tests::transcripts::{CASE_17, case_17};

mod cases;
mod forms;
mod many;

fn read(text: &str) -> Results {
    Results::read(text.as_bytes()).unwrap()
}

/// The states of the entries, with the numbers of both messages.
fn entries(results: &Results, report: &Report) -> Vec<(State, u32, u32)> {
    let comparison = compare(results, report);
    let number = |message: &Option<Message>| message.as_ref().map_or(0, |message| message.number);
    comparison.entries.iter().map(|entry| (entry.state, number(&entry.server), number(&entry.own))).collect()
}

fn reasons(results: &Results, report: &Report) -> BTreeMap<&'static str, Vec<u32>> {
    let comparison = compare(results, report);
    comparison.reasons.iter().map(|(reason, numbers)| (reason.id, numbers.keys().copied().collect())).collect()
}

fn texts(results: &Results, report: &Report) -> (String, String) {
    let comparison = compare(results, report);
    let (mut text, mut json) = (Vec::new(), Vec::new());
    write_text(results, report, &comparison, &mut text).unwrap();
    write_json(results, report, &comparison, &mut json).unwrap();
    (String::from_utf8(text).unwrap(), String::from_utf8(json).unwrap())
}

/// Case 24: a page of a heap that was edited.
const CASE_24: &str = "\
Msg 8928, Level 16, State 1, Line 1
Object ID 2105058535, index ID 0, partition ID 72057594037879808, alloc unit ID 72057594039697408 (type In-row data): Page (1:153) could not be processed. See other errors for details.
Msg 8939, Level 16, State 98, Line 1
Table error: Object ID 2105058535, index ID 0, partition ID 72057594037879808, alloc unit ID 72057594039697408 (type In-row data), page (1:153). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values are 12716041 and -4.
";

fn heap() -> Owner {
    Owner { index_id: 0, ..owner(2_105_058_535, 72_057_594_037_879_808, 72_057_594_039_697_408) }
}

/// The findings that this program has about case 24.
fn case_24() -> Report {
    let mut report = report("TestPageLevelRestore", 7);
    let page = PageId::new(1, 153);
    let io = page_io(heap(), page, 133_129, -4);
    report.findings = vec![io, Finding::new(&registry::PAGE_UNPROCESSED).owner(heap()).page(page)].into();
    report
}

#[test]
fn all_messages_of_case_17_are_found_by_both() {
    let results = read(CASE_17);
    let (report, all) = (case_17(), entries(&results, &case_17()));
    assert_eq!((all.len(), results.total, results.errors), (8, Some(8), 8));
    assert!(all.iter().all(|(state, server, own)| *state == State::Both && server == own), "{all:?}");
    let comparison = compare(&results, &report);
    let equal = comparison.counted.iter().filter(|counted| counted.state == State::Both).count();
    assert_eq!((equal, comparison.counted.len()), (12, 12), "{:?}", comparison.counted);
    assert!(!comparison.differs() && results.is_whole());
    let explained = reasons(&results, &report);
    assert_eq!(explained["repair-level"], [8958]);
    assert_eq!(explained["totals"], [8954, 8989, 8990]);
    assert_eq!(explained["heading"], [2528, 2536]);
}

#[test]
fn what_only_one_side_finds_is_a_difference() {
    let results = read(CASE_24);
    let sound = report("TestPageLevelRestore", 7);
    assert_eq!(entries(&results, &sound), [(State::ServerOnly, 8928, 0), (State::ServerOnly, 8939, 0)]);
    assert_eq!(entries(&read(""), &case_24()), [(State::MdfsckOnly, 0, 8928), (State::MdfsckOnly, 0, 8939)]);
    assert!(compare(&results, &sound).differs() && compare(&read(""), &case_24()).differs());
    assert!(!compare(&read(""), &sound).differs() && !compare(&results, &case_24()).differs());
}

#[test]
fn another_page_or_object_is_another_message() {
    for (from, to) in [("(1:153)", "(1:154)"), ("2105058535", "2105058536")] {
        let all = entries(&read(&CASE_24.replace(from, to)), &case_24());
        assert_eq!(all.iter().filter(|(state, ..)| *state == State::ServerOnly).count(), 2, "{to}: {all:?}");
        assert_eq!(all.iter().filter(|(state, ..)| *state == State::MdfsckOnly).count(), 2, "{to}: {all:?}");
    }
}

#[test]
fn related_messages_about_one_page_are_found_under_another_number() {
    let mut own = case_24();
    let record = Finding::new(&registry::RECORD_AUDIT).owner(heap()).at(PageId::new(1, 153), 4);
    own.findings =
        vec![record, Finding::new(&registry::PAGE_UNPROCESSED).owner(heap()).page(PageId::new(1, 153))].into();
    assert_eq!(entries(&read(CASE_24), &own), [(State::OtherNumber, 8939, 8944), (State::Both, 8928, 8928)]);
    assert!(compare(&read(CASE_24), &own).differs());
}

#[test]
fn messages_without_metadata_are_those_with_metadata() {
    let server = "Msg 5233, Level 16, State 98, Line 1\nTable error: alloc unit ID 72057594039697408, page (1:153). The test \
                  (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. The values are 133129 and -4.\n";
    let mut own = case_24();
    own.findings = vec![page_io(heap(), PageId::new(1, 153), 133_129, -4)].into();
    assert_eq!(entries(&read(server), &own), [(State::Explained, 5233, 8939)]);
    assert_eq!(reasons(&read(server), &own)["no-metadata"], [8939]);
}

#[test]
fn a_run_that_gave_up_explains_what_it_did_not_look_for() {
    // Case 28: a damaged PFS page ends the run.
    let server = "Msg 8946, Level 16, State 12, Line 2\n\
                  Table error: Allocation page (1:8088) has invalid PFS_PAGE header values. Type is 0. Check type, object ID, and page \
                  ID on the page.\n\
                  Msg 7995, Level 16, State 1, Line 1\n\
                  Database 'D' consistency errors in sysobjects, sysindexes, syscolumns, or systypes prevent further CHECKDB \
                  processing.\n";
    let mut own = case_24();
    let mut findings: Vec<Finding> = own.findings.iter().map(|finding| finding.into_owned()).collect();
    findings
        .push(Finding::new(&registry::MAP_PAGE_INVALID).page(PageId::new(1, 8088)).text_value("page_name", "PFS_PAGE"));
    findings.push(Finding::new(&registry::EXTENT_UNOWNED).page(PageId::new(1, 192)));
    own.findings = findings.into();
    let all = entries(&read(server), &own);
    let expected = [
        (State::ServerOnly, 7995, 0),
        (State::MdfsckOnly, 0, 8905),
        (State::Explained, 0, 8928),
        (State::Explained, 0, 8939),
        (State::Both, 8946, 8946),
    ];
    assert_eq!(all, expected, "the allocation was checked before the run ended");
    let ended =
        read("Msg 8921, Level 16, State 1, Line 1\nCheck terminated. A failure was detected while collecting facts.\n");
    assert!(entries(&ended, &own).iter().all(|(state, ..)| *state == State::Explained));
    assert!(!ended.is_whole() && !compare(&ended, &own).differs());
}

#[test]
fn messages_about_the_snapshot_are_explained() {
    // Case 37: the disk of the snapshot is full.
    let server = "Msg 1823, Level 16, State 1, Line 5\nA database snapshot cannot be created because it failed to start.\n\
                  Msg 7928, Level 16, State 1, Line 1\nThe database snapshot for online checks could not be created.\n\
                  Msg 5128, Level 17, State 2, Line 1\nWrite to sparse file 'C:\\D.mdf:MSSQL_DBCC20' failed due to lack of disk space.\n\
                  Msg 0, Level 20, State 0, Line 0\nA severe error occurred on the current command.\n";
    let results = read(server);
    assert_eq!(reasons(&results, &report("D", 5))["snapshot"], [1823, 5128, 7928]);
    assert!(!compare(&results, &report("D", 5)).differs() && !results.is_whole());
    // Case 36: a page of the snapshot reads as zeros.
    let page = "8909 16 1\nTable error: Object ID 0, index ID -1, partition ID 0, alloc unit ID 0 (type Unknown), page ID (6:8040) \
                contains an incorrect page ID in its page header. The PageId in the page header = (0:0).\n";
    assert_eq!(entries(&read(page), &report("D", 5)), [(State::ServerOnly, 8909, 0)]);
    assert_eq!(entries(&read(&format!("{server}{page}")), &report("D", 5)), [(State::Explained, 8909, 0)]);
}

#[test]
fn rows_without_a_partner_are_told_by_the_message_after_them() {
    // Case 8.
    let head = "Msg 8951, Level 16, State 1, Line 1\nTable error: table 'Customers' (ID 453576654). Data row does not have a matching \
                index row in the index 'CustomerName' (ID 2). Possible missing or invalid keys for the index row matching:\n\
                Msg 8955, Level 16, State 1, Line 1\n";
    let server = format!(
        "{head}Data row (1:45:28) identified by (CustomerID = 29) with index values 'LastName = 'Adams' and CustomerID = 29'.\n\
         {head}Data row (1:180:164) identified by (CustomerID = 2118) with index values 'LastName = 'Adams' and CustomerID = 2118'.\n"
    );
    let results = read(&server);
    let mut own = report("DemoNCIndex", 7);
    let index = Owner { index_id: 2, ..owner(453_576_654, 1, 1) };
    let row = |check, page, slot| Finding::new(check).owner(index).at(PageId::new(1, page), slot);
    own.findings = vec![
        row(&registry::INDEX_ROW_MISSING, 45, 28).text_value("table", "Customers").text_value("index", "CustomerName"),
        row(&registry::INDEX_ROW_MISSING_DETAIL, 45, 28),
        row(&registry::INDEX_ROW_MISSING, 180, 163)
            .text_value("table", "Customers")
            .text_value("index", "CustomerName"),
        row(&registry::INDEX_ROW_MISSING_DETAIL, 180, 163),
    ]
    .into();
    let expected = [(State::ServerOnly, 8951, 0), (State::MdfsckOnly, 0, 8951), (State::Both, 8951, 8951)];
    assert_eq!(entries(&results, &own), expected);
    assert_eq!(reasons(&results, &own)["detail"], [8955]);
    let damaged = CASE_24.replace("2105058535", "453576654");
    assert_eq!(reasons(&read(&damaged), &own)["index-match-skipped"], [8951]);
}

#[test]
fn a_contradiction_that_is_no_proof_is_explained_with_its_limit() {
    let mut own = report("TestPageLevelRestore", 7);
    let mut doubted: Vec<Finding> = case_24().findings.iter().map(|finding| finding.into_owned()).collect();
    for finding in &mut doubted {
        finding.demoted_by = Some(&limits::DEMOTED_LOG);
    }
    own.demoted = doubted.into();
    let comparison = compare(&read(CASE_24), &own);
    assert!(!comparison.differs());
    let limits: Vec<_> = comparison.entries.iter().map(|entry| entry.limit.map(|limit| limit.id)).collect();
    assert_eq!(limits, [Some("demoted.log"); 2]);
    assert_eq!(reasons(&read(CASE_24), &own)["not-proven"], [8928, 8939]);
}

#[test]
fn checks_that_checkdb_does_not_make_are_explained() {
    let mut own = report("D", 7);
    own.findings = vec![Finding::new(&registry::LOG_LOST_WRITE).owner(heap()).page(PageId::new(1, 153))].into();
    assert_eq!(entries(&read(""), &own), [(State::Explained, 0, 824)]);
    assert_eq!(reasons(&read(""), &own)["beyond-checkdb"], [824]);
}

#[test]
fn counts_of_sound_objects_must_be_equal() {
    let mut own = report("Shop", 5);
    own.rowsets = vec![rowset("dbo", "Orders", 100, (35, 4))];
    own.service_broker = service_broker();
    let server = |rows| {
        format!(
            "Service Broker Msg 9675, State 1: Message Types analyzed: 14.\n\
             There are {rows} rows in 4 pages for object \"Orders\".\nThere are 0 rows in 0 pages for object \"sys.other\".\n\
             CHECKDB found 0 allocation errors and 0 consistency errors in database 'Shop'.\n"
        )
    };
    assert!(!compare(&read(&server(35)), &own).differs());
    assert!(compare(&read(&server(36)), &own).differs());
    let (text, json) = texts(&read(&server(36)), &own);
    assert!(text.contains("Orders  36 rows, 4 pages  35 rows, 4 pages"), "{text}");
    assert!(json.contains("\"state\":\"differs\",\"msg\":2593,\"object\":\"Orders\",\"server_rows\":36"), "{json}");
    own.findings = vec![page_io(Owner { object_id: 100, ..heap() }, PageId::new(1, 9), 1, -4)].into();
    let counted = compare(&read(&server(36)), &own).counted;
    assert_eq!(counted.iter().filter(|counted| counted.state == State::Explained).count(), 1, "{counted:?}");
}

#[test]
fn an_excerpt_and_the_results_of_another_run_are_no_whole_results() {
    let line = "CHECKDB found 0 allocation errors and 2 consistency errors in database 'D'.\n";
    assert!(!read(CASE_24).is_whole(), "no line counts the errors");
    assert!(read(&format!("{CASE_24}{line}")).is_whole());
    assert!(!read(&format!("{CASE_24}{}", line.replace('2', "3"))).is_whole());
    assert!(read("").is_whole() && read(&line.replace('2', "0")).is_whole());
    assert!(read("Commands completed successfully.\r\n").is_whole());
    assert_eq!(Results::read(b"Dear all,\nplease find the report.\n").unwrap_err(), Refused::NoResults);
    let two = format!("{line}{}", line.replace("'D'", "'E'"));
    assert_eq!(Results::read(two.as_bytes()).unwrap_err(), Refused::SeveralDatabases("D".to_owned(), "E".to_owned()));
}

#[test]
fn the_output_names_places_numbers_and_reasons() {
    let mut own = case_24();
    own.findings = vec![Finding::new(&registry::PAGE_UNPROCESSED).owner(heap()).page(PageId::new(1, 153))].into();
    let (text, json) = texts(&read(CASE_24), &own);
    insta::assert_snapshot!("text", text);
    insta::assert_snapshot!("json", json);
}

#[test]
fn only_pages_that_read_as_zeros_are_excused_by_a_snapshot_that_lost_pages() {
    let lost = "Msg 5128, Level 17, State 2, Line 1\nWrite to sparse file 'C:\\D.mdf:MSSQL_DBCC20' failed due to lack of disk space.\n";
    let owner = "Object ID 0, index ID -1, partition ID 0, alloc unit ID 0 (type Unknown)";
    let page_id = |header: &str| {
        format!(
            "Msg 8909, Level 16, State 1, Line 1\nTable error: {owner}, page ID (1:40) contains an incorrect page ID in its page \
             header. The PageId in the page header = {header}.\n"
        )
    };
    let unprocessed = "Msg 8928, Level 16, State 1, Line 1\nObject ID 7, index ID 0, partition ID 3, alloc unit ID 4 (type In-row data): \
                       Page (1:40) could not be processed.  See other errors for details.\n";
    let test = |test: &str| {
        format!(
            "Msg 8939, Level 16, State 1, Line 1\nTable error: {owner}, page (1:40). Test ({test}) failed. Values are 0 and 1.\n"
        )
    };
    let states = |text: String| -> Vec<State> {
        entries(&read(&format!("{lost}{text}")), &report("D", 5)).iter().map(|(state, ..)| *state).collect()
    };
    assert_eq!(states(page_id("(0:0)") + unprocessed), [State::Explained; 2]);
    assert_eq!(states(test("m_headerVersion == HEADER_7_0") + unprocessed), [State::Explained; 2]);
    assert_eq!(states(page_id("(1:41)") + unprocessed), [State::ServerOnly; 2]);
    assert_eq!(states(test("m_freeCnt == freeCnt")), [State::ServerOnly]);
    assert_eq!(states(unprocessed.to_owned()), [State::ServerOnly]);
}

#[test]
fn the_catalog_that_the_server_did_not_check_is_explained() {
    let line = "DBCC CHECKDB will not check SQL Server catalog or Service Broker consistency because a database snapshot could not \
                be created or because WITH TABLOCK was specified.\nDBCC results for 'D'.\nCHECKDB found 0 allocation errors and 0 \
                consistency errors in database 'D'.\n";
    let mut own = report("D", 5);
    own.findings =
        vec![Finding::new(&registry::CATALOG_DANGLING), Finding::new(&registry::BROKER_QUEUE_MISSING)].into();
    let results = read(line);
    assert_eq!(entries(&results, &own), [(State::Explained, 0, 8992), (State::Explained, 0, 8997)]);
    assert_eq!(reasons(&results, &own)["skipped"], [5232, 8992, 8997]);
    assert!(results.is_whole());
    let without = line.split_once('\n').map(|(_, rest)| rest).unwrap();
    assert!(entries(&read(without), &own).iter().all(|(state, ..)| *state == State::MdfsckOnly));
}

#[test]
fn a_message_about_damage_that_is_not_looked_for_names_the_limit() {
    let server = "Msg 7904, Level 16, State 2, Line 1\nTable error: Cannot find the FILESTREAM file \"a\" for column ID 2 in object ID 7.\n\
                  Msg 8997, Level 16, State 1, Line 1\nService Broker Msg 9680, State 1: The conversation endpoint is missing.\n\
                  Msg 8939, Level 16, State 1, Line 1\nTable error: page (1:5).\n";
    let comparison = compare(&read(server), &report("D", 5));
    let limits: Vec<_> = comparison
        .entries
        .iter()
        .map(|entry| (entry.server.as_ref().map(|message| message.number), entry.limit.map(|limit| limit.id)))
        .collect();
    let expected =
        [(Some(8997), Some("broker.not-followed")), (Some(8939), None), (Some(7904), Some("filestream.files"))];
    assert_eq!(limits, expected);
    assert_eq!(comparison.count(State::ServerOnly), 3);
}

#[test]
fn a_message_that_mdfsck_never_prints_is_explained_by_the_one_in_its_place() {
    let server = CASE_24.replace("Msg 8939", "Msg 8919");
    assert_eq!(entries(&read(&server), &case_24()), [(State::Explained, 8919, 8939), (State::Both, 8928, 8928)]);
    assert_eq!(reasons(&read(&server), &case_24())["own-number"], [8939]);
}

#[test]
fn only_the_total_of_the_database_or_of_checktable_ends_a_run() {
    let of_table = "found 0 allocation errors and 2 consistency errors in table 'T' (object ID 2105058535).\n";
    assert!(!read(&format!("{CASE_24}CHECKDB {of_table}")).is_whole(), "the run was cut off behind this table");
    assert!(read(&format!("{CASE_24}CHECKTABLE {of_table}")).is_whole());
    let counts = |objects: &[&str]| {
        objects.iter().map(|name| format!("There are 1 rows in 1 pages for object \"{name}\".\n")).collect::<String>()
    };
    assert!(read(&counts(&["T"])).is_whole(), "CHECKTABLE without an error prints no total");
    assert!(!read(&counts(&["T", "U"])).is_whole());
    assert!(read(&format!("{}DBCC execution completed.\n", counts(&["T", "U"]))).is_whole());
    assert!(!read("DBCC results for 'D'.\n").is_whole());
}

#[test]
fn a_text_that_only_mentions_a_command_is_no_result() {
    for text in [
        "GO\n",
        "Please run\nDBCC CHECKDB (Shop)\nGO\nand tell us.\n",
        "DBCC CHECKDB(N'Shop') WITH NO_INFOMSGS\n",
        "(5 rows affected)\n",
        "Changed database context to 'Shop'.\nname\n----\nOrders\n(1 rows affected)\n",
        "Msg 208, Level 16, State 1, Line 1\nInvalid object name 'T'.\n",
        "Msg 102, Level 15, State 1, Line 1\nIncorrect syntax.\nCommands completed successfully.\n",
    ] {
        assert_eq!(Results::read(text.as_bytes()).unwrap_err(), Refused::NoResults, "{text}");
    }
    for text in [
        "Changed database context to 'Shop'.\n",
        "DBCC CHECKDB (Shop) WITH NO_INFOMSGS\nGO\nCommands completed successfully.\n\nCompletion time: 2024-03-01\n",
    ] {
        assert!(read(text).is_whole(), "{text}");
    }
}
