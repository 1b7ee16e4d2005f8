//! Tests with texts as people paste them. The texts about snapshots follow Microsoft's article on errors 17053 and 926.

use super::*;

/// An error log of a check whose hidden snapshot ran out of disk space.
const SNAPSHOT_FULL: &str = "\
2022-09-01 17:35:39.16 spid54      4 transactions rolled back in database 'Sales' (11). This is an informational message only.
2022-09-01 17:36:31.76 spid53      Error: 17053, Severity: 16, State: 1.
2022-09-01 17:36:31.76 spid53      E:\\SQLData\\Sales.mdf:MSSQL_DBCC11: Operating system error 112(There is not enough space on the disk.) encountered.
2022-09-01 17:36:31.80 spid54      DBCC CHECKDB (Sales) executed by DOM\\u found 0 errors and repaired 0 errors. Elapsed time: 0 hours 3 minutes 19 seconds.
2022-09-01 17:36:31.90 spid53      Error: 17053, Severity: 16, State: 1.
2022-09-01 17:36:31.90 spid53      E:\\SQLData\\Sales.mdf:MSSQL_DBCC11: Operating system error 112(There is not enough space on the disk.) encountered.
2022-09-01 17:36:32.30 spid54      Error: 926, Severity: 21, State: 6.
2022-09-01 17:36:32.30 spid54      Database 'Sales' cannot be opened. It has been marked SUSPECT by recovery. See the SQL Server errorlog for more information.
";

/// A disk that fails, and the database that becomes suspect.
const DISK_FAILS: &str = "\
2024-03-01 02:00:00.00 Server      SQL Server has encountered 7 occurrence(s) of I/O requests taking longer than 15 seconds to complete on file [D:\\Data\\Shop.mdf] in database [Shop] (5).
2024-03-01 02:10:11.33 spid51      Error: 823, Severity: 24, State: 2.
2024-03-01 02:10:11.33 spid51      The operating system returned error 1117(The request could not be performed because of an I/O device error.) to SQL Server during a read at offset 0x00000000072000 in file 'D:\\Data\\Shop.mdf'.
2024-03-01 02:11:00.00 spid20s     Error: 824, Severity: 24, State: 2.
2024-03-01 02:11:00.00 spid20s     SQL Server detected a logical consistency-based I/O error: incorrect checksum (expected: 0x1; actual: 0x2). It occurred during a read of page (1:57) in database ID 5 at offset 0x72000 in file 'D:\\Data\\Shop.mdf'.
2024-03-01 02:12:00.00 spid20s     Error: 3414, Severity: 21, State: 1.
2024-03-01 02:12:00.00 spid20s     An error occurred during recovery, preventing the database 'Shop' (database ID 5) from restarting.
2024-03-01 02:12:30.00 spid60      Error: 926, Severity: 14, State: 1.
2024-03-01 02:12:30.00 spid60      Database 'Shop' cannot be opened. It has been marked SUSPECT by recovery.
";

/// The output of DBCC CHECKDB as sqlcmd prints it.
const DBCC: &str = "\
DBCC results for 'Shop'.
Msg 8976, Level 16, State 1, Server S, Line 1
Table error: Object ID 245575913, index ID 1, partition ID 72057594038845440, alloc unit ID 72057594042974208 (type In-row data). Page (1:153) was not seen in the scan although its parent (1:154) and previous (1:152) refer to it. Check any previous errors.
Msg 8928, Level 16, State 1, Server S, Line 1
Object ID 245575913, index ID 1, partition ID 72057594038845440, alloc unit ID 72057594042974208 (type In-row data): Page (1:153) could not be processed.  See other errors for details.
Msg 8939, Level 16, State 98, Server S, Line 1
Table error: Object ID 245575913, index ID 1, partition ID 72057594038845440, alloc unit ID 72057594042974208 (type In-row data), page (1:153). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values are 12716041 and -4.
There are 1200 rows in 20 pages for object \"dbo.orders\".
CHECKDB found 0 allocation errors and 3 consistency errors in table 'dbo.orders' (object ID 245575913).
CHECKDB found 0 allocation errors and 3 consistency errors in database 'Shop'.
repair_allow_data_loss is the minimum repair level for the errors found by DBCC CHECKDB (Shop).
DBCC execution completed. If DBCC printed error messages, contact your system administrator.
";

fn read(text: &str) -> Pasted {
    Pasted::read(text.as_bytes()).unwrap()
}

/// The numbers of each group, in order.
fn numbers(pasted: &Pasted) -> Vec<(Option<&str>, Vec<u16>)> {
    let of = |group: &Group| group.events.iter().map(|event| event.number).collect();
    pasted.groups.iter().map(|group| (group.database.as_deref(), of(group))).collect::<Vec<_>>()
}

fn commands(pasted: &Pasted) -> Vec<&'static str> {
    pasted.next_steps().iter().filter_map(|step| step.command).collect()
}

#[test]
fn a_suspect_snapshot_of_dbcc_is_no_suspect_database() {
    let pasted = read(SNAPSHOT_FULL);
    assert_eq!(numbers(&pasted), [(Some("Sales"), vec![112, 17053, 926, 8957])]);
    let cases = pasted.cases();
    assert!(cases.iter().any(|case| case.starts_with("926 is about the hidden snapshot")), "{cases:?}");
    assert!(cases.iter().any(|case| case.contains("0 errors proves nothing")), "{cases:?}");
    assert_eq!(commands(&pasted), ["mdfsck check BACKUPS"], "nothing is damaged, so nothing is restored");
}

#[test]
fn a_suspect_database_is_not_taken_for_a_snapshot() {
    let pasted = read(DISK_FAILS);
    assert_eq!(numbers(&pasted), [(Some("Shop"), vec![1117, 823, 833, 824, 3414, 926])]);
    assert!(pasted.cases().is_empty(), "{:?}", pasted.cases());
    let steps = pasted.next_steps();
    assert!(steps.first().is_some_and(|step| step.command.is_none() && step.what.contains("storage")), "{steps:?}");
    let expected =
        ["mdfsck info FILES", "mdfsck log FILES", "mdfsck check FILES", "mdfsck advise FILES --backups BACKUPS"];
    assert_eq!(commands(&pasted), expected);
}

#[test]
fn findings_are_named_and_ordered_by_cause() {
    let pasted = read(DBCC);
    assert_eq!(numbers(&pasted), [(Some("Shop"), vec![8939, 8928, 8976, 8990, 8989, 8958])]);
    let group = &pasted.groups[0];
    assert_eq!(group.events[0].object.as_deref(), Some("dbo.orders"));
    assert!(!group.events[0].rank.follows() && group.events[1].rank.follows());
    assert_eq!(group.events[2].seen.pages.iter().copied().collect::<Vec<_>>(), [PageId::new(1, 153)]);
    assert_eq!(commands(&pasted).last(), Some(&"mdfsck advise FILES --backups BACKUPS"));
}

#[test]
fn damage_of_nonclustered_indexes_alone_loses_no_row() {
    let harmless = DBCC.replace("index ID 1,", "index ID 3,");
    assert!(is_harmless(&harmless));
    assert!(read(DBCC).cases().is_empty());
    let end = "CHECKDB found 0 allocation errors and 3 consistency errors in database 'Shop'.\n";
    for more in [
        "Msg 8921, Level 16, State 1, Line 1\nCheck terminated.\n",
        "Msg 7928, Level 16, State 1, Line 1\nThe database snapshot for online checks could not be created.\n",
        "Msg 8986, Level 16, State 1, Line 1\nToo many errors found (201) for object ID 245575913.\n",
        "Msg 8909, Level 16, State 1, Line 1\nTable error: Object ID 0, index ID -1, page ID (1:5) contains an incorrect page ID.\n",
        "Msg 8964, Level 16, State 1, Line 1\nTable error: Object ID 245575913, index ID 255. The text is not referenced.\n",
        "Msg 8976, Level 16, State 1, Line 1\nTable error: Object ID 245575913, index ID 0, page (1:5).\n",
        "Msg 8976, Level 16, State 1, Line 1\nTable error: Page (1:5) of no index.\n",
        "Msg 823, Level 24, State 2, Line 1\nThe operating system returned error 23 to SQL Server in database 'Shop'.\n",
        "Msg 824, Level 24, State 2, Line 1\nIncorrect checksum of page (1:9).\n",
        "Msg 605, Level 21, State 3, Line 1\nAttempt to fetch logical page (1:9) in database 'Shop' failed.\n",
    ] {
        assert!(!is_harmless(&harmless.replace(end, &format!("{more}{end}"))), "{more}");
    }
    assert!(
        !is_harmless(&harmless.replace("and 3 consistency errors in", "and 44 consistency errors in")),
        "an excerpt"
    );
    assert!(!is_harmless(&harmless.lines().take(7).collect::<Vec<_>>().join("\n")), "the end is missing");
}

/// Whether the answer says that the text shows only damage of nonclustered indexes.
fn is_harmless(text: &str) -> bool {
    read(text).cases().iter().any(|case| case.contains("only nonclustered indexes"))
}

#[test]
fn each_of_several_checks_must_have_its_findings_and_its_end() {
    let harmless = DBCC.replace("index ID 1,", "index ID 3,");
    let totals: String =
        harmless.lines().filter(|line| line.starts_with("CHECKDB")).flat_map(|line| [line, "\n"]).collect();
    assert!(is_harmless(&format!("{harmless}{harmless}")));
    assert!(!is_harmless(&format!("{harmless}{totals}")), "the second run has no findings");
    let log = "2024-03-01 02:10:00.00 spid51 DBCC CHECKDB (Shop) executed by X found 4 errors and repaired 0 errors.\n";
    assert!(!is_harmless(&format!("{harmless}{log}")), "the run of the log had another finding");
    assert!(is_harmless(&format!("{harmless}{}", log.replace('4', "3"))));

    let table = |id: u32, findings: usize| {
        let finding = format!(
            "Msg 8976, Level 16, State 1, Line 1\nTable error: Object ID {id}, index ID 2, partition ID 3. Page (1:153) was not seen.\n"
        );
        format!(
            "DBCC results for 'T{id}'.\n{}CHECKTABLE found 0 allocation errors and 2 consistency errors in table 'T{id}' (object ID {id}).\n",
            finding.repeat(findings)
        )
    };
    assert!(is_harmless(&(table(5, 2) + &table(6, 2))));
    assert!(!is_harmless(&(table(5, 2) + &table(6, 0))), "the second table has no findings");
    let cut = table(5, 2).replace("CHECKTABLE", "CHECKDB");
    assert!(!is_harmless(&cut), "the run was cut off behind this table");
    let other = "CHECKDB found 0 allocation errors and 1 consistency errors not associated with any single object.\n";
    assert!(!is_harmless(&(other.to_owned() + &table(5, 2))), "an error of no object is not here");
}

#[test]
fn rows_that_an_index_lacks_are_damage_of_the_index_alone() {
    let missing = "\
Msg 8951, Level 16, State 1, Line 1
Table error: table 'index ID 1' (ID 453576654). Data row does not have a matching index row in the index 'CustomerName' (ID 2). Possible missing or invalid keys for the index row matching:
Msg 8955, Level 16, State 1, Line 1
Data row (1:45:28) identified by (CustomerID = 29) with index values 'LastName = 'Adams' and CustomerID = 29'.
";
    let end = "CHECKDB found 0 allocation errors and 1 consistency errors in database 'Shop'.\n";
    let text = format!("{missing}{end}");
    assert!(is_harmless(&text));
    assert!(read(&text).events().any(|event| event.number == 8951 && event.seen.index == Some(2)));
    assert!(!is_harmless(&format!("{missing}{}", end.replace("and 1", "and 2"))), "8955 is no finding of its own");
    assert!(!is_harmless(&text.replace(" (ID 2)", "")), "the index is unknown");
    let surplus = text.replace("8951", "8952").replace("8955", "8956").replace("Data row does", "Index row does");
    assert!(!is_harmless(&surplus), "the table may have lost the row");
}

#[test]
fn an_argument_that_dbcc_refuses_is_no_check_that_was_cut_off() {
    let harmless = DBCC.replace("index ID 1,", "index ID 3,");
    for refused in [
        "Msg 2501, Level 16, State 45, Line 1\nCannot find a table or object with the name \"x\". Check the system catalog.\n",
        "Msg 8985, Level 16, State 1, Line 1\nCould not locate file 'x' for database 'Shop' in sys.database_files.\n",
        "Msg 5253, Level 10, State 1, Line 1\nThe check statement was aborted. DBCC CHECKALLOC cannot be run on TEMPDB.\n",
    ] {
        assert!(!commands(&read(refused)).contains(&"mdfsck check BACKUPS"), "{refused}");
        assert!(is_harmless(&format!("{harmless}{refused}")), "{refused}");
    }
}

#[test]
fn a_name_with_the_words_of_a_total_hides_no_total() {
    let cases = read(&SNAPSHOT_FULL.replace("Sales", "a found b")).cases();
    assert!(cases.iter().any(|case| case.contains("0 errors proves nothing")), "{cases:?}");
}

#[test]
fn a_lack_of_space_is_no_fault_of_the_storage() {
    let log = |error: &str| {
        format!(
            "2024-03-01 02:10:00.00 spid51      Error: 17053, Severity: 16, State: 1.\n\
             2024-03-01 02:10:00.00 spid51      D:\\Shop.mdf: Operating system error {error} encountered.\n"
        )
    };
    let is_storage = |text: &str| read(text).next_steps().iter().any(|step| step.what.contains("storage examined"));
    for shortage in ["112(There is not enough space on the disk.)", "665(x)", "1450(x)", "1130(x)"] {
        assert!(!is_storage(&log(shortage)), "{shortage}");
        // The worst of the errors of one event counts.
        for worse in ["23(Data error.)", "without a number"] {
            assert!(is_storage(&format!("{}{}", log(shortage), log(worse))), "{shortage}, {worse}");
            assert!(is_storage(&format!("{}{}", log(worse), log(shortage))), "{worse}, {shortage}");
        }
    }
    assert!(is_storage(&log("1117(The request could not be performed.)")));
    assert!(is_storage(&log("23(Data error.)")));
}

#[test]
fn a_process_with_a_long_name_keeps_its_messages() {
    let source = format!("{}é", "s".repeat(31));
    let log = format!(
        "2024-03-01 02:10:00.00 {source} Error: 824, Severity: 24, State: 2.\n\
         2024-03-01 02:10:00.00 s Something else in database 'Other'.\n\
         2024-03-01 02:10:00.00 {source} It occurred during a read of page (1:57) in database 'Shop'.\n"
    );
    let pasted = read(&log);
    assert_eq!(numbers(&pasted), [(Some("Shop"), vec![824])]);
    assert_eq!(pasted.groups[0].events[0].seen.pages.len(), 1);
}

#[test]
fn the_order_and_the_form_of_an_export_do_not_matter() {
    let newest_first: Vec<&str> = DISK_FAILS.lines().rev().collect();
    let (first, second) = (read(DISK_FAILS), read(&newest_first.join("\r\n")));
    assert_eq!(numbers(&first), numbers(&second));
    let pages = |pasted: &Pasted| pasted.events().map(|event| event.seen.pages.clone()).collect::<Vec<_>>();
    assert_eq!(pages(&first), pages(&second));
    let utf16: Vec<u8> = DISK_FAILS.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(numbers(&Pasted::read(&utf16[..]).unwrap()), numbers(&first));
}

#[test]
fn a_localized_log_is_understood_by_its_numbers() {
    let german = "\
2024-03-01 02:11:00.00 spid20s     Fehler: 824, Schweregrad: 24, Status: 2.
2024-03-01 02:11:00.00 spid20s     Von SQL Server wurde ein auf logischer Konsistenz basierender E/A-Fehler entdeckt. Seite (1:57)
Meldung 8939, Ebene 16, Status 98, Zeile 1
Tabellenfehler: Objekt-ID 5, Seite (1:58).
";
    let pasted = read(german);
    assert_eq!(pasted.events().map(|event| event.number).collect::<Vec<_>>(), [824, 8939]);
    assert!(pasted.events().all(|event| event.seen.pages.len() == 1));
}

#[test]
fn a_text_without_messages_is_empty() {
    for text in ["", "\n\n", "hello", "Msg 1, Level 15, State 1, Line 1\nSyntax error", "\u{FFFD}\0\0"] {
        assert!(read(text).is_empty(), "{text:?}");
    }
    assert_eq!(read("Msg 14420, Level 16, State 1, Line 1").unknown().collect::<Vec<_>>(), [14420]);
}

#[test]
fn each_number_is_explained_once_and_names_are_escaped() {
    let hostile = DISK_FAILS.replace("Shop'", "Sh\u{1b}[31mop\u{202e}'").repeat(3);
    let pasted = read(&hostile);
    let (mut text, mut json) = (Vec::new(), Vec::new());
    pasted.write(&mut text).unwrap();
    pasted.write_json(&mut json).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("Sh\\u{1b}[31mop\\u{202e}"), "{text}");
    assert_eq!(text.matches("Msg 824: ").count(), 1, "{text}");
    assert!(text.contains("(3 times)") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let kinds = ["pasted_event", "explained_message", "next_command", "pasted_summary"];
    let json = String::from_utf8(json).unwrap();
    assert!(kinds.iter().all(|kind| json.contains(&format!("\"kind\":\"{kind}\""))), "{json}");
}

/// Pseudo-random numbers, the same in every run (a linear congruential generator).
fn random(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 40).unwrap()
}

#[test]
fn damaged_texts_do_no_harm() {
    let mut seed = 45;
    for text in [SNAPSHOT_FULL, DISK_FAILS, DBCC] {
        for _ in 0..60 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random(&mut seed) % 8 {
                let at = random(&mut seed) % bytes.len();
                match random(&mut seed) % 3 {
                    0 => bytes[at] = u8::try_from(random(&mut seed) % 256).unwrap(),
                    1 => drop(bytes.drain(at..(at + random(&mut seed) % 40).min(bytes.len()))),
                    _ => bytes.extend_from_within(at..(at + 60).min(bytes.len())),
                }
                if bytes.is_empty() {
                    bytes.push(0);
                }
            }
            let pasted = Pasted::read(&bytes[..]).unwrap();
            pasted.write(&mut std::io::sink()).unwrap();
            assert!(!pasted.next_steps().is_empty());
        }
    }
}

#[test]
fn any_number_of_messages_fits_into_bounded_memory() {
    let messages = (0..10_500u32).map(|id| format!("Msg 8928, Level 16, State 1\nObject ID {}, (1:{id})\n\n", id + 1));
    let pasted = read(&messages.collect::<String>());
    assert_eq!(pasted.events().count(), MOST_EVENTS);
    assert_eq!(pasted.dropped, 500);
    let same = "Msg 8928, Level 16, State 1\nObject ID 5, page (1:7)\n\n".repeat(500);
    assert_eq!(read(&same).events().map(|event| event.seen.count).sum::<u64>(), 500);
    let long = format!("Msg 824, Level 16, State 1 {}\n", "((((database [Msg ".repeat(1000));
    assert_eq!(read(&long).events().count(), 1);
}

#[test]
fn a_text_longer_than_the_limit_is_cut_and_that_is_written() {
    let line = b"Msg 824, Level 24, State 2, Line 1\n";
    let endless = std::io::repeat(b'\n');
    let pasted = Pasted::read_start(std::io::Read::chain(&line[..], endless), 100_000).unwrap();
    assert!(pasted.is_cut && pasted.events().count() == 1);
    let mut text = Vec::new();
    pasted.write(&mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("Only the first 64 MB"));
}
