use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;

use super::*;

fn course(samples: usize, cells: usize) -> Course {
    let sample = |at: usize| Sample {
        seconds: at as f64,
        bytes: 1 << 40,
        cpu_seconds: Some(at as f64 / 3.0),
        memory_bytes: Some(1 << 30),
        spilled_bytes: 7,
    };
    let states = [Swept::All, Swept::Some, Swept::Nothing];
    Course {
        identity: "F".to_owned(),
        name: "sales".to_owned(),
        phases: vec![("survey", 0.5), ("sweep", 1.25)],
        done: 100,
        pages: 4000,
        granted_bytes: Some(64 << 20),
        samples: (0..samples).map(sample).collect(),
        files: vec![SweptFile {
            file: 1,
            pages: cells as u32 * 128 - 5,
            cell_pages: 128,
            cells: (0..cells).map(|at| states[at % 3]).collect(),
        }],
    }
}

fn history(folder: &Path) -> History {
    let path = folder.join("h.db");
    drop(History::open_or_create(&path).unwrap());
    History::open_to_note(&path).unwrap()
}

fn begin(history: &mut History, path: &str, host: &str) -> i64 {
    history.begin_progress(&[PathBuf::from(path)], host, SystemTime::now()).unwrap()
}

#[test]
fn what_a_check_has_done_is_read_as_it_was_noted() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = history(folder.path());
    let id = begin(&mut history, "/data/a.mdf", "H");
    let largest = course(MOST_SAMPLES, MOST_CELLS);
    assert!(history.note_progress(id, &largest).unwrap());
    let check = history.running_checks(Which::Number(id), "H", 9).unwrap().remove(0);
    let third = |at: usize| (at as f64 / 3.0 * 100.0).round() / 100.0;
    for (at, (found, noted)) in check.course.samples.iter().zip(&largest.samples).enumerate() {
        assert_eq!((found.seconds, found.bytes, found.cpu_seconds), (noted.seconds, noted.bytes, Some(third(at))));
    }
    assert_eq!(check.course.samples.len(), MOST_SAMPLES);
    assert_eq!(Course { samples: Vec::new(), ..check.course }, Course { samples: Vec::new(), ..largest });
    assert_eq!((check.is_stopped, check.database, check.pid), (false, None, process::id()));
    let all = history.running_checks(Which::All, "H", 9).unwrap();
    assert!(all.len() == 1 && all[0].course.files.is_empty() && all[0].course.phases.len() == 2);
    assert_eq!(history.running_checks(Which::Database("F"), "H", 9).unwrap().len(), 1);
    assert!(history.running_checks(Which::Database(""), "H", 9).unwrap().is_empty());
    history.end_progress(id).unwrap();
    assert!(history.running_checks(Which::All, "H", 9).unwrap().is_empty());
    assert!(!history.note_progress(id, &course(1, 1)).unwrap(), "it is not there any more");
    assert!(begin(&mut history, "/data/a.mdf", "H") > id, "an address shows one check only");
}

#[test]
fn a_check_that_was_killed_is_stopped_until_its_files_are_checked_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = history(folder.path());
    let (killed, alive) = (begin(&mut history, "/data/a.mdf", "H"), begin(&mut history, "/data/a.mdf", "H"));
    let path = folder.path().join("h.db");
    let set = |change: &str| Connection::open(&path).unwrap().execute_batch(change).unwrap();
    let ago = |seconds: u64| time::text(SystemTime::now() - Duration::from_secs(seconds));
    let stopped = |history: &History, own: &str| -> Vec<bool> {
        history.running_checks(Which::All, own, 9).unwrap().iter().map(|check| check.is_stopped).collect()
    };
    // No process has this ID.
    set(&format!("UPDATE progress SET pid = 4194305 WHERE id = {killed}"));
    assert_eq!(stopped(&history, "H"), [false, false], "it was seen just now");
    set(&format!("UPDATE progress SET heartbeat = '{}'", ago(20)));
    assert_eq!(stopped(&history, "H"), [false, cfg!(target_os = "linux")], "its process is gone");
    assert_eq!(stopped(&history, "OTHER"), [false, false], "processes of another machine are not seen");
    set(&format!("UPDATE progress SET heartbeat = '{}' WHERE id = {killed}", ago(200)));
    assert_eq!(stopped(&history, "OTHER"), [false, true]);
    set(&format!(
        "UPDATE progress SET identity = 'F', started = '2026-01-01T00:00:00Z' WHERE id = {killed};
         INSERT INTO database VALUES (1, 'F', 'sales', '2026-01-01T00:00:00Z', 'F', '')"
    ));
    let run = |started: &str| {
        set(&format!(
            "INSERT INTO run (database, started, ended, host, version, command, options, paths, exit_status, complete, findings,
                 findings_new, findings_gone, allocation_errors, consistency_errors, not_verified, pages_in_use, pages_read,
                 bytes_read, rows, seconds, spilled_bytes)
             VALUES (1, '{started}', '{started}', 'H', '1', 'CHECKDB', '{{}}', '', 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1.0, 0)"
        ));
    };
    run("2025-12-31T00:00:00Z");
    assert_eq!(history.running_checks(Which::Number(killed), "H", 9).unwrap()[0].database, Some(1));
    run("2026-01-01T00:00:00Z");
    assert_eq!(stopped(&history, "H"), [false, true], "a run of the same second may have been before");
    run("2026-01-01T00:00:01Z");
    assert_eq!(stopped(&history, "H"), [false], "the database was checked since");
    let next = begin(&mut history, "/data/a.mdf", "H");
    let left: Vec<i64> = history.running_checks(Which::All, "H", 9).unwrap().iter().map(|check| check.id).collect();
    assert_eq!(left, [next, alive]);
}

#[test]
fn there_is_never_more_than_a_bounded_number_of_checks() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = history(folder.path());
    for number in 0..MOST_CHECKS + 20 {
        begin(&mut history, &format!("/data/{number}.mdf"), "H");
    }
    assert_eq!(history.running_checks(Which::All, "H", u32::MAX).unwrap().len(), MOST_CHECKS as usize);
}

#[test]
fn lists_that_somebody_has_changed_are_empty() {
    for text in [
        "",
        "{}",
        "[1]",
        "[[1,2]]",
        "[[1,9,1,\"3\",5]]",
        "[[9,9,9,9,9],[1,1,1,1,1]]",
        "[[1e999,1,1,1,1]]",
        &format!("[{}[1,1,1,1,1]]", "[1,1,1,1,1],".repeat(MOST_SAMPLES)),
        &"[".repeat(60_000),
    ] {
        assert!(samples_of(text).is_empty(), "{}", &text[..text.len().min(40)]);
    }
    for text in [
        "[[1,1000,0,\"\"]]",
        "[[1,1000,128,\"0\"]]",
        "[[1,4294967295,1,\"0\"]]",
        &format!("[[1,{},8,\"{}\"]]", MOST_CELLS * 8 + 8, "2".repeat(MOST_CELLS + 1)),
        "[[70000,8,8,\"0\"]]",
    ] {
        assert!(files_of(text).is_empty(), "{}", &text[..text.len().min(40)]);
    }
    assert_eq!(phases_of("[[\"sweep\",1],[\"</script>\",2],[\"compare\",-3]]"), [("sweep", 1.0), ("compare", 0.0)]);
    assert_eq!(phases_of(&phases_text(&[("merge", 0.126)])), [("merge", 0.13)]);
}

#[test]
fn a_history_that_another_writes_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = history(folder.path());
    let id = begin(&mut history, "/data/a.mdf", "H");
    let other = Connection::open(folder.path().join("h.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    assert!(matches!(history.note_progress(id, &course(9, 9)), Err(crate::HistoryError::Busy { .. })));
    // Noting progress must wait for a shorter time than recording a run, which waits for `PATIENCE`.
    assert!(begun.elapsed() < crate::file::PATIENCE, "{:?}", begun.elapsed());
}
