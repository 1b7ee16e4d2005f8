//! Text as people post it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

#[test]
fn a_localized_server_is_compared_by_numbers() {
    // Case 23.
    let text = "tb 的 DBCC 结果。\n消息 8928，级别 16，状态 1，第 1 行\n对象 ID 2105058535，索引 ID 0，分区 ID 72057594037879808，分配单元 ID \
                72057594039697408 (类型为 In-row data): 无法处理页 (1:153)。有关详细信息，请参阅其他错误消息。\n\
                消息 8939，级别 16，状态 98，第 1 行\n表错误: 对象 ID 2105058535，索引 ID 0，分区 ID 72057594037879808，分配单元 ID \
                72057594039697408 (类型为 In-row data)，页 (1:153)。测试(IS_OFF (BUF_IOERR, pBUF->bstat))失败。值为 12716041 和 -4。\n";
    let results = read(text);
    assert!(results.is_localized && !results.is_whole(), "no line with the number of errors is known");
    assert!(texts(&results, &case_24()).0.contains("known only in English"));
    assert_eq!(entries(&results, &case_24()), [(State::Both, 8928, 8928), (State::Both, 8939, 8939)]);
    for heading in [
        "Meldung 8928, Ebene 16, Status 1, Zeile 1",
        "Mensaje 8928, Nivel 16, Estado 1, Línea 1",
        "Msg 8928, Niveau 16, État 1, Ligne 1",
        "メッセージ 8928、レベル 16、状態 1、行 1",
        "Сообщение 8928, уровень 16, состояние 1, строка 1",
        "Msg 8928, Level 16, State 1, Server HOST2\\X3, Procedure p, Line 5",
        "Server: Msg 8928, Level 16, State 1, Line 2",
    ] {
        let results = read(&format!("{heading}\n2105058535 (1:153)\n"));
        let messages: Vec<_> =
            results.findings.values().map(|message| (message.number, message.level, message.state)).collect();
        assert_eq!(messages, [(8928, 16, 1)], "{heading}");
    }
}

#[test]
fn a_heading_of_an_english_error_log_is_not_localized() {
    let results = read("Error: 8939, Severity: 16, State: 98.\nTable error: page (1:153).\n");
    let found: Vec<_> = results.findings.values().map(|message| (message.number, message.text.as_str())).collect();
    assert_eq!((found, results.is_localized), (vec![(8939, "Table error: page (1:153).")], false));
    assert!(read("Fehler: 8939, Schweregrad: 16, Status: 98.\n(1:153)\n").is_localized);
}

#[test]
fn the_total_of_a_localized_table_is_read_on_both_sides_of_the_name() {
    for total in
        ["CHECKDB 在数据库 'D2' 中发现 0 个分配错误和 1 个一致性错误。", "CHECKDB hat 0 und 1 Fehler in 'D2' gefunden."]
    {
        let text = |errors: u32| {
            let total = total.replace(" 1 ", &format!(" {errors} "));
            format!("Error,Level,State,MessageText\n8928,16,1,(1:5) x\n8989,10,1,{total}\n")
        };
        let results = read(&text(1));
        assert_eq!((results.total, results.database.as_deref()), (Some(1), Some("D2")), "{total}");
        assert!(results.is_whole() && !read(&text(2)).is_whole(), "{total}");
    }
}

#[test]
fn a_name_in_a_total_does_not_make_it_another_line() {
    let total =
        |name: &str| format!("CHECKDB found 0 allocation errors and 0 consistency errors in database '{name}'.");
    for name in ["a fixed b", "a consistency errors in table b", "a errors not associated with any single object"] {
        assert_eq!(lines::unheaded(&total(name)), Some(8989), "{name}");
        assert!(read(&total(name)).is_whole(), "{name}");
    }
    assert_eq!(lines::unheaded(&total("D").replace("found", "fixed")), Some(8912));
}

#[test]
fn headings_are_found_inside_lines() {
    // Case 3: the lines were broken at other places. One message was printed twice.
    let owner = "Object ID 2101582525, index ID 0, partition ID 137729312358400, alloc unit ID 137729312358400 (type In-row data)";
    let slot = "page (1:75023). Test (sorted [i].offset <= m_freeData) failed. Slot 1, offset 0xffff is invalid.";
    let text = format!(
        "DBCC results for 'table_a'.\nMsg 8928, Level 16, State 1, Line 1\n{owner}:\n\
         Page (1:75023) could not be processed. See other errors for details. Msg 8941, Level 16, State 2, Line 1 Table error:\n\
         {owner}, {slot}\nMsg 8941, Level 16, State 2, Line 1 Table error:\n{owner}, {slot}\n\
         Msg 8929, Level 16, State 1, Line 1 {owner}:\nErrors found in off-row data with ID 75574870016 owned by data record \
         identified by RID = (1:80165:3) Msg 8964, Level 16, State 1, Line 1 Table error:\nObject ID 2101582525, index ID 0"
    );
    let results = read(&text);
    let places: Vec<(u32, String)> =
        results.findings.values().map(|message| (message.number, message.place.to_string())).collect();
    assert_eq!(results.errors, 5);
    let expected = [
        (8964, "object 2101582525, index 0"),
        (8928, "object 2101582525, index 0, page (1:75023)"),
        (8941, "object 2101582525, index 0, page (1:75023), slot 1"),
        (8929, "object 2101582525, index 0, page (1:80165), slot 3"),
    ];
    assert_eq!(places, expected.map(|(number, place)| (number, place.to_owned())));
}

#[test]
fn each_heading_of_a_line_begins_a_message() {
    let (one, other) = ("Msg 8928, Level 16, State 1, Line 1", "Msg 8941, Level 16, State 2, Line 1");
    for text in [
        format!("{one} Page (1:5) is bad. {other} Page (1:6) is bad."),
        format!("Server: {one} Page (1:5) is bad. Server: {other} Page (1:6) is bad."),
        format!("8928 16 1 Page (1:5) is bad. {other} Page (1:6) is bad."),
    ] {
        let results = read(&text);
        let found: Vec<_> =
            results.findings.values().map(|message| (message.number, message.place.to_string())).collect();
        assert_eq!(found, [(8928, "page (1:5)".to_owned()), (8941, "page (1:6)".to_owned())], "{text}");
    }
    let adjacent = read(&format!("{one} {other} Page (1:6) is bad."));
    assert_eq!(adjacent.findings.values().map(|message| message.number).collect::<Vec<_>>(), [8928, 8941]);
}

#[test]
fn the_owner_of_a_page_is_no_heading() {
    for owner in ["index ID -1, partition ID 0", "index ID 1, partition ID 0"] {
        let text = format!(
            "Msg 8909, Level 16, State 1, Line 1\nObject ID 0, {owner}, page ID (1:5) contains an incorrect page ID.\n"
        );
        let results = read(&text);
        assert_eq!((results.errors, results.messages), (1, 1), "{owner}");
        assert!(results.gave_up.is_empty(), "{owner}: message 0 ends a run");
    }
}

#[test]
fn rows_of_localized_messages_are_told_by_the_message_after_them() {
    let head = "Tabellenfehler: Tabelle 'Customers' (ID 453576654). Für die Datenzeile ist keine entsprechende Indexzeile im Index \
                'CustomerName' (ID 2) vorhanden.";
    let text = format!(
        "Meldung 8951, Ebene 16, Status 1, Zeile 1\n{head}\nMeldung 8955, Ebene 16, Status 1, Zeile 1\n\
         Datenzeile (1:45:28) identifiziert durch (CustomerID = 29) mit Indexwerten 'LastName = 'Adams''.\n\
         Meldung 8951, Ebene 16, Status 1, Zeile 1\n{head}\nMeldung 8955, Ebene 16, Status 1, Zeile 1\n\
         Datenzeile (1:45:29) identifiziert durch (CustomerID = 30) mit Indexwerten 'LastName = 'Adams''.\n\
         メッセージ 8952、レベル 16、状態 1、行 1\nテーブル エラー: テーブル 'Customers' (ID 453576654)。インデックス 'CustomerName' (ID 2) の行。\n\
         メッセージ 8956、レベル 16、状態 1、行 1\n(HEAP RID = (1:45:30)) の行 (1:99:7) です。\n"
    );
    let results = read(&text);
    let places: Vec<(u32, String)> =
        results.findings.values().map(|message| (message.number, message.place.to_string())).collect();
    let expected = [(8951, "page (1:45), slot 28"), (8951, "page (1:45), slot 29"), (8952, "page (1:99), slot 7")];
    assert_eq!(places, expected.map(|(number, row)| (number, format!("object 453576654, index 2, {row}"))));
    let mut own = report("D", 7);
    let index = Owner { index_id: 2, ..owner(453_576_654, 1, 1) };
    let row = |check, page, slot| Finding::new(check).owner(index).at(PageId::new(1, page), slot);
    own.findings = vec![
        row(&registry::INDEX_ROW_MISSING, 45, 28),
        row(&registry::INDEX_ROW_MISSING, 45, 30),
        row(&registry::INDEX_ROW_SURPLUS, 99, 7),
    ]
    .into();
    let both = [(State::Both, 8951, 8951), (State::Both, 8952, 8952)];
    assert_eq!(
        entries(&results, &own),
        [&[(State::ServerOnly, 8951, 0), (State::MdfsckOnly, 0, 8951)], &both[..]].concat()
    );
}

#[test]
fn a_long_line_is_cut_between_characters() {
    // The first letter has one byte, and each other letter has two, so that each cut is inside a letter.
    let text = format!("Msg 8928, Level 16, State 1, Line 1\n(1:5) x{}\n", "é".repeat(5000));
    let mut texts = 0;
    lines::read(&format!("{text}{}", " é".repeat(30_000)), |piece| {
        if let lines::Piece::Message(message) = piece {
            texts += 1;
            assert_eq!((message.text.len(), message.place.to_string().as_str()), (479, "page (1:5)"));
        }
    });
    assert_eq!(texts, 1);
}

#[test]
fn the_number_of_a_text_without_heading_is_that_of_its_wording() {
    // Case 30, whose message has two lines.
    let text = "Table error: Object ID 1234567, index ID 1, partition ID 987654321, alloc unit ID 123123123123 (type LOB data). \n\
                The off-row data node at page (1:12345678), slot 0, text ID 7766554433 does not match its reference from page \
                (1:978563412), slot 1.\n";
    let results = read(text);
    let found: Vec<_> = results.findings.values().map(|message| (message.number, message.place.to_string())).collect();
    assert_eq!(found, [(8961, "object 1234567, index 1, page (1:12345678), slot 0".to_owned())]);
    assert!(results.findings.values().all(|message| message.is_number_inferred));
}

#[test]
fn catalog_messages_are_the_same_with_and_without_their_wrapper() {
    let inner = "Attribute (owning_principal_id=7) of row (principal_id=5) in sys.database_principals does not have a matching row \
                 (principal_id=7) in sys.database_principals.";
    let mut own = report("D", 5);
    let finding = Finding::new(&registry::CATALOG_DANGLING)
        .text_value("attribute", "owning_principal_id=7")
        .text_value("row", "principal_id=5")
        .text_value("table", "database_principals")
        .text_value("wanted", "principal_id=7")
        .text_value("referenced", "database_principals");
    own.findings = vec![finding].into();
    for text in [
        format!("Msg 8992, Level 16, State 1, Line 1\nCheck Catalog Msg 3853, State 1: {inner}\n"),
        format!("Msg 3853, Level 16, State 1, Line 1\n{inner}\n"),
        // Another release names other columns.
        format!("Msg 3853, Level 16, State 1, Line 1\n{}\n", inner.replace("principal_id=5", "principal_id=5,type=R")),
    ] {
        assert_eq!(entries(&read(&text), &own), [(State::Both, 8992, 8992)], "{text}");
    }
    let other = inner.replace("sys.database_principals does", "sys.schemas does");
    let all = entries(&read(&format!("Msg 3853, Level 16, State 1, Line 1\n{other}\n")), &own);
    assert_eq!(all, [(State::ServerOnly, 8992, 0), (State::MdfsckOnly, 0, 8992)]);
}

/// Reads all collected transcripts, if they are available. The numbers in the head of a transcript must be found.
#[test]
fn the_messages_of_all_cases_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/cases");
    let Ok(files) = fs::read_dir(folder) else { return };
    let mut cases = 0;
    for path in files.map(|file| file.unwrap().path()) {
        let text = fs::read_to_string(&path).unwrap();
        let head = text.lines().find_map(|line| line.strip_prefix("# messages: ")).unwrap_or_default();
        let output: String = text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
        let results =
            Results::read(output.as_bytes()).unwrap_or_else(|refused| panic!("{}: {refused}", path.display()));
        let found: BTreeSet<u32> = results
            .findings
            .values()
            .map(|message| message.number)
            .chain(results.explained.values().flat_map(|numbers| numbers.keys().copied()))
            .collect();
        let wanted = head.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u32>().ok());
        let wanted = wanted.filter(|number| crate::parity::is_message_of_checkdb(*number) && *number != 2593);
        // The heads of some cases also have messages that the excerpt does not contain.
        let is_shown =
            |number: &u32| output.contains(&format!("Msg {number}")) || output.contains(&format!("\n{number} "));
        let missing: Vec<u32> =
            wanted.filter(is_shown).filter(|number| !found.contains(number) && !is_inner(*number)).collect();
        assert!(missing.is_empty(), "{}: {missing:?} of {found:?}", path.display());
        cases += 1;
    }
    assert!(cases > 30, "{cases} cases");
}

/// Whether the message is printed inside a wrapper.
fn is_inner(number: u32) -> bool {
    (3851..=3859).contains(&number) || (9600..9700).contains(&number)
}
