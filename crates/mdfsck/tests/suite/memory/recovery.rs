//! Recovery must keep to the memory grant, even if the log changes very many pages.

use std::fs;

use super::{check, least_grant};

#[test]
#[ignore = "full tier: takes seconds"]
fn pages_to_redo_take_no_more_memory_than_granted_and_give_the_same_answer() {
    let folder = tempfile::TempDir::new().unwrap();
    let description = lab::orders::orders(lab::Version::V904, 11, 48 << 20);
    let written = lab::write(&description, folder.path()).unwrap();
    let sound = check(folder.path(), &["--memory", "256MB"]).0;
    let in_use = lab::in_use::leave_in_use(&description, &written, 2, 1).unwrap();
    assert!(in_use.pages > 5_000 && in_use.records == 4 * in_use.pages, "{in_use:?}");
    let without_run = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    let least = least_grant(folder.path());
    for memory in [least.as_str(), "64MB", "512MB"] {
        let (text, [peak, granted, _, findings]) = check(folder.path(), &["--memory", memory]);
        let run: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!((findings, run["recovery"]["state"].as_str()), (0, Some("done")), "{memory}");
        assert_eq!(run["recovery"]["pages"].as_u64(), Some(in_use.pages), "{memory}: every page lacks its changes");
        assert!(peak <= granted + granted / 20, "{memory}: {peak} of {granted} bytes");
        // The log first changes each row and later reverses the change, so the results must equal those for the sound
        // database.
        assert_eq!(without_run(&text), without_run(&sound), "{memory}");
    }
    // The database is sound even without its log, because the log reverses all its own changes.
    let (_, [.., findings]) = check(folder.path(), &["--no-log"]);
    assert_eq!(findings, 0);
    assert!(fs::metadata(&in_use.log).unwrap().len() > 1 << 20);
}
