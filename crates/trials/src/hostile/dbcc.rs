//! The results of DBCC CHECKDB, which `mdfsck compare-dbcc` reads.

use findings::{Finding, Report, registry};
use format::PageId;
use report::comparison::{self, Results, State};

/// Reads results in any form, compares them with two reports, and writes both comparisons.
pub fn dbcc(bytes: &[u8]) {
    let Ok(results) = Results::read(bytes) else { return };
    assert!(results.messages <= bytes.len() as u64, "each message has a byte of its own");
    let finding = |check, page| Finding::new(check).page(PageId::new(1, page));
    let damaged = Report {
        findings: vec![
            finding(&registry::PAGE_UNPROCESSED, 153),
            finding(&registry::PAGE_HEADER, 153),
            finding(&registry::EXTENT_UNOWNED, 192),
        ]
        .into(),
        ..Report::default()
    };
    for report in [&Report::default(), &damaged] {
        let comparison = comparison::compare(&results, report);
        let of_server = comparison.entries.iter().filter(|entry| entry.server.is_some()).count();
        assert!(of_server as u64 <= results.messages, "{of_server}");
        let of_own = comparison.entries.iter().filter(|entry| entry.own.is_some()).count();
        assert_eq!(of_own, report.findings.len());
        let pairs = comparison.entries.iter().filter(|entry| entry.state == State::Both);
        for entry in pairs {
            let numbers = [&entry.server, &entry.own].map(|message| message.as_ref().map(|message| message.number));
            assert!(numbers[0].is_some() && numbers[0] == numbers[1], "{entry:?}");
        }
        let (mut text, mut json) = (Vec::new(), Vec::new());
        let _ = comparison::write_text(&results, report, &comparison, &mut text);
        let _ = comparison::write_json(&results, report, &comparison, &mut json);
        let lines = String::from_utf8_lossy(&json);
        assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");
        let control = |c: char| c != '\n' && report::steers(c);
        assert!(!String::from_utf8_lossy(&text).contains(control), "a character controls the terminal");
    }
}
