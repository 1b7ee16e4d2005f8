//! Results with more messages than are compared, or with many of them about one place.

use super::*;

#[test]
fn more_messages_than_fit_are_counted_as_not_compared() {
    let message = |page| format!("Msg 8939, Level 16, State 1, Line 1\nTable error: page (1:{page}).\n");
    let text: String = (1..MOST_MESSAGES + 11).map(message).collect();
    let results = read(&text);
    assert_eq!((results.findings.len(), results.hidden), (MOST_MESSAGES, 10));
    let mut own = report("D", 7);
    own.findings = (1..MOST_MESSAGES as u32 + 11)
        .map(|page| {
            Finding::new(&registry::PAGE_HEADER).owner(Owner::unknown(AllocUnitId(0))).page(PageId::new(1, page))
        })
        .collect::<Vec<_>>()
        .into();
    let comparison = compare(&results, &own);
    assert_eq!((comparison.hidden, comparison.count(State::Both)), (20, MOST_MESSAGES));
    let (text, json) = texts(&results, &own);
    assert!(text.contains("\n20 errors or counts were not compared: there are more than 1000.\n"), "{text}");
    assert!(json.lines().next().is_some_and(|head| head.contains("\"hidden\":20,")), "{json}");
}

#[test]
fn what_may_be_among_the_errors_that_are_not_compared_is_no_difference() {
    let message = |page| format!("Msg 8939, Level 16, State 1, Line 1\nTable error: page (1:{page}).\n");
    let finding =
        |page| Finding::new(&registry::PAGE_HEADER).owner(Owner::unknown(AllocUnitId(0))).page(PageId::new(1, page));
    let many = 1..MOST_MESSAGES as u32 + 2;
    let last = MOST_MESSAGES as u32 + 1;
    let mut own = report("D", 7);
    // The server's message about the last page is hidden.
    own.findings = vec![finding(last)].into();
    let comparison = compare(&read(&many.clone().map(message).collect::<String>()), &own);
    assert_eq!(comparison.count(State::MdfsckOnly), 0);
    assert_eq!(comparison.reasons[&kinds::TOO_MANY], BTreeMap::from([(8939, 1)]));
    // The finding about the last page is hidden.
    own.findings = many.map(finding).collect::<Vec<_>>().into();
    let comparison = compare(&read(&message(last)), &own);
    assert_eq!((comparison.count(State::ServerOnly), comparison.hidden), (0, 1));
    assert_eq!(comparison.reasons[&kinds::TOO_MANY], BTreeMap::from([(8939, 1)]));
}

#[test]
fn another_number_is_no_difference_if_the_same_number_may_be_hidden() {
    let unknown = || Owner::unknown(AllocUnitId(0));
    let last = MOST_MESSAGES as u32;
    let message =
        |number: u32, page: u32| format!("Msg {number}, Level 16, State 1, Line 1\nTable error: page (1:{page}).\n");
    let finding = |page| Finding::new(&registry::PAGE_HEADER).owner(unknown()).page(PageId::new(1, page));
    let record = |owner: Owner| Finding::new(&registry::RECORD_AUDIT).owner(owner).at(PageId::new(1, 1), 4);
    let numbers = |text: &str, findings: Vec<Finding>| {
        let mut own = report("D", 7);
        own.findings = findings.into();
        entries(&read(text), &own).into_iter().find(|(_, server, own)| *server > 0 && *own > 0)
    };
    let few = message(8939, 1);
    assert_eq!(numbers(&few, vec![record(unknown())]), Some((State::OtherNumber, 8939, 8944)));
    // The server's 8944 about the page is hidden.
    let many: String = (1..=last).map(|page| message(8939, page)).collect();
    let many = many + &message(8944, 1);
    assert_eq!(numbers(&many, vec![record(unknown())]), Some((State::Explained, 8939, 8944)));
    // The own 8944 about the page is hidden.
    let findings = (1..=last).map(finding).chain([record(heap())]).collect();
    assert_eq!(numbers(&message(8944, 1), findings), Some((State::Explained, 8944, 8939)));
}

#[test]
fn doubted_findings_beyond_the_limit_count_as_not_compared() {
    let last = MOST_MESSAGES as u32 + 1;
    let doubted = |page| Finding {
        demoted_by: Some(&limits::DEMOTED_LOG),
        ..Finding::new(&registry::PAGE_HEADER).owner(Owner::unknown(AllocUnitId(0))).page(PageId::new(1, page))
    };
    let mut own = report("D", 7);
    own.demoted = (1..=last).map(doubted).collect::<Vec<_>>().into();
    let server = format!("Msg 8939, Level 16, State 1, Line 1\nTable error: page (1:{last}).\n");
    let comparison = compare(&read(&server), &own);
    assert_eq!((comparison.hidden, comparison.count(State::ServerOnly)), (1, 0));
    assert_eq!(comparison.reasons[&kinds::TOO_MANY], BTreeMap::from([(8939, 1)]));
}

#[test]
fn each_of_many_messages_about_one_page_finds_its_partner() {
    let message = |slot| {
        format!(
            "Msg 8941, Level 16, State 1, Line 1\nTable error: {}, page (1:153). Test (sorted [i].offset >= PAGEHEADSIZE) failed. Slot {slot}, offset 0x1 is invalid.\n",
            "Object ID 2105058535, index ID 0, partition ID 72057594037879808, alloc unit ID 72057594039697408 (type In-row data)"
        )
    };
    let results = read(&(0..500).map(message).collect::<String>());
    let mut own = report("D", 7);
    let record = |slot| Finding::new(&registry::RECORD_AUDIT).owner(heap()).at(PageId::new(1, 153), slot);
    own.findings = (0..500).map(record).collect::<Vec<_>>().into();
    assert_eq!(compare(&results, &own).count(State::OtherNumber), 500);
}

#[test]
fn pages_between_two_damaged_maps_are_looked_up_in_ranges_without_overlap() {
    let ranges = merged(vec![(1, 500, 600), (3, 1, 2), (1, 0, 99), (1, 100, 120), (1, 90, 110)]);
    assert_eq!(ranges, [(1, 0, 120), (1, 500, 600), (3, 1, 2)]);
    let results = read("");
    let excuses = Excuses { intervals: ranges, ..Excuses::of(&results) };
    for (file, page, expected) in
        [(1, 0, true), (1, 120, true), (1, 121, false), (1, 499, false), (1, 600, true), (2, 1, false), (3, 3, false)]
    {
        assert_eq!(excuses.is_in_interval(PageId::new(file, page)), expected, "({file}:{page})");
    }
}
