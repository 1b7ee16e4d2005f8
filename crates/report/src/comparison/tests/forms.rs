//! The forms in which clients write TABLERESULTS.

use super::*;

/// The rows of case 16: number, level, state, repair level, and the columns before the text and after it.
const NAMES: &str = "Error,Level,State,MessageText,RepairLevel,Status,DbId,DbFragId,ObjectId,IndexId,PartitionId,AllocUnitId,RidDbId,\
                     RidPruId,File,Page,Slot,RefDbId,RefPruId,RefFile,RefPage,RefSlot,Allocation";
const OWNER: &str = "Object ID 901578250, index ID 1, partition ID 72057594045726720, alloc unit ID 72057594052476928 (type In-row data)";

/// The fields of the rows of case 16.
fn rows() -> Vec<Vec<String>> {
    let texts = [
        (
            8939,
            98,
            "repair_allow_data_loss",
            format!(
                "Table error: {OWNER}, page (1:392). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values are 133129 and -4."
            ),
        ),
        (
            8928,
            1,
            "repair_allow_data_loss",
            format!("{OWNER}: Page (1:392) could not be processed. See other errors for details."),
        ),
        (
            8980,
            1,
            "repair_rebuild",
            format!(
                "Table error: {OWNER}. Index node page (0:0), slot 0 refers to child page (1:392) and previous child (0:0), but they were not encountered."
            ),
        ),
    ];
    let place = "0,21,1,901578250,1,72057594045726720,72057594052476928,21,0,1,392,0,21,0,0,0,0,1";
    let mut rows: Vec<Vec<String>> = texts
        .into_iter()
        .map(|(number, state, repair, text)| {
            let first = [number.to_string(), "16".to_owned(), state.to_string(), text, repair.to_owned()];
            first.into_iter().chain(place.split(',').map(str::to_owned)).collect()
        })
        .collect();
    let total =
        "CHECKDB found 0 allocation errors and 3 consistency errors in database 'ExamplesDB_CorruptionCheckDB'.";
    let row = ["8989", "10", "1", total, "NULL", "0", "21", "1"].map(str::to_owned);
    rows.push(row.into_iter().chain((0..14).map(|_| "0".to_owned())).chain(["1".to_owned()]).collect());
    rows
}

fn joined(separator: &str, quote: &str) -> String {
    rows()
        .iter()
        .map(|row| {
            row.iter().map(|field| format!("{quote}{field}{quote}")).collect::<Vec<_>>().join(separator) + "\r\n"
        })
        .collect()
}

/// Columns of fixed width, as sqlcmd writes them by default.
fn fixed() -> String {
    let names: Vec<&str> = NAMES.split(',').collect();
    let widths: Vec<usize> = names.iter().map(|name| if *name == "MessageText" { 260 } else { 24 }).collect();
    let line = |cells: &[&str]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join(" ") + "\n"
    };
    let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = line(&names) + &dashes.join(" ") + "\n";
    for row in rows() {
        text.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    text + "\n(4 rows affected)\nDBCC execution completed. If DBCC printed error messages, contact your system administrator.\n"
}

/// The rows without the columns that only SQL Server 2012 and later have.
fn older() -> String {
    let newer = ["DbFragId", "RidDbId", "RidPruId", "RefDbId", "RefPruId"];
    let names: Vec<&str> = NAMES.split(',').collect();
    let keep = |row: &Vec<String>| {
        let fields = row.iter().zip(&names).filter(|(_, name)| !newer.contains(name)).map(|(field, _)| field.clone());
        fields.collect::<Vec<_>>().join(",") + "\n"
    };
    rows().iter().map(keep).collect()
}

#[test]
fn every_client_gives_the_same_comparison() {
    let dashes = NAMES.split(',').map(|_| "-----------").collect::<Vec<_>>().join(",");
    let forms = [
        ("sqlcmd -s,", format!("{NAMES}\r\n{dashes}\r\n{}\r\n(4 rows affected)\r\n", joined(",", ""))),
        ("without names", joined(",", "")),
        (
            "quoted",
            format!("#TYPE System.Data.DataRow\r\n\"{}\"\r\n{}", NAMES.replace(',', "\",\""), joined(",", "\"")),
        ),
        ("tabs", format!("{}\r\n{}", NAMES.replace(',', "\t"), joined("\t", ""))),
        ("semicolons", joined(";", "")),
        ("fixed width", fixed()),
        ("2008 without names", older()),
    ];
    for (form, text) in forms {
        for bytes in [text.as_bytes().to_vec(), utf16(&text)] {
            let results = Results::read(&bytes).unwrap_or_else(|refused| panic!("{form}: {refused}"));
            assert_eq!(results.form, Form::Table, "{form}");
            assert_eq!(results.not_understood, 0, "{form}: {:?}", results.example);
            let all = entries(&results, &case_16());
            assert_eq!(all, [8928, 8939, 8980].map(|number| (State::Both, number, number)), "{form}");
            assert!(results.is_whole() && !compare(&results, &case_16()).differs(), "{form}");
            assert!(results.findings.values().all(|message| message.columns.is_some()), "{form}");
            assert_eq!(results.database.as_deref(), Some("ExamplesDB_CorruptionCheckDB"), "{form}");
        }
    }
}

fn utf16(text: &str) -> Vec<u8> {
    [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn columns_tell_the_place_where_the_text_is_localized() {
    let text = joined(",", "")
        .replace("Table error: ", "Tabellenfehler: ")
        .replace("Object ID", "Objekt-ID")
        .replace("index ID", "Index-ID");
    let results = read(&text);
    assert_eq!(entries(&results, &case_16()), [8928, 8939, 8980].map(|number| (State::Both, number, number)));
    let other = read(&text.replace("392", "393"));
    assert!(entries(&other, &case_16()).iter().all(|(state, ..)| *state != State::Both));
}

#[test]
fn a_table_of_this_program_is_read_too() {
    let view = crate::View::default();
    let table = crate::fixture::shown(crate::Format::TableResults(crate::Columns::Newer), &case_17(), view);
    let results = read(&table);
    assert_eq!((results.form, results.errors, results.total), (Form::Table, 8, Some(8)));
    assert!(entries(&results, &case_17()).iter().all(|(state, ..)| *state == State::Both));
}

#[test]
fn a_table_of_too_many_columns_is_none() {
    let names = |more: usize| format!("{NAMES}{}\n", ",x".repeat(more));
    let row = |more: usize| joined(",", "").lines().next().unwrap().to_owned() + &",1".repeat(more) + "\n";
    let most = 64 - 23;
    let results = read(&(names(most) + &row(most)));
    assert_eq!((results.form, results.errors), (Form::Table, 1));
    assert_eq!(Results::read((names(most + 1) + "what,is,this\n").as_bytes()).unwrap_err(), Refused::NoResults);
    let dashes = format!("{}\n{}\n", "Error Level State MessageText ".repeat(20), "- ".repeat(80));
    assert_eq!(Results::read(dashes.as_bytes()).unwrap_err(), Refused::NoResults);
}

#[test]
fn a_level_that_no_message_has_makes_a_row_no_message() {
    let results = read(&format!("{NAMES}\n{}", joined(",", "").replace(",16,98,", ",9,98,")));
    assert_eq!((results.errors, results.not_understood), (2, 1));
}

#[test]
fn rows_that_are_no_messages_make_the_results_incomplete() {
    let results = read(&format!("{NAMES}\n{}what is this,16\n", joined(",", "")));
    assert_eq!((results.not_understood, results.example.as_deref()), (1, Some("what is this 16")));
    assert!(!results.is_whole());
}

#[test]
fn the_columns_of_a_case_without_separators_are_read_as_text() {
    // Case 21.
    let text = format!(
        "Error   Level   State   MessageText\n2593    10      1       There are 0 rows in 0 pages for object \"tblWhoops\".\n\
         8939    16      98      Table error: {OWNER}, page (1:392). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values are 133129 \
         and -4.\n8928    16      1       {OWNER}: Page (1:392) could not be processed.  See other errors for details.\n"
    );
    let results = read(&text);
    assert_eq!((results.form, results.errors, results.counted.len()), (Form::Text, 2, 1));
    let all = entries(&results, &case_16());
    assert_eq!(all, [(State::MdfsckOnly, 0, 8980), (State::Both, 8928, 8928), (State::Both, 8939, 8939)]);
}
