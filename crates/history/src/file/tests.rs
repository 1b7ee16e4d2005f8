use super::*;
use std::time::SystemTime;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn made(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("h.db");
    drop(History::open_or_create(&path).unwrap());
    path
}

/// Opens the file twice, once to answer queries and once to record runs. Both attempts must fail with the same error
/// and leave the file unchanged.
fn refused(path: &Path) -> HistoryError {
    let before = fs::read(path).unwrap();
    let asked = History::open(path).map(drop).unwrap_err();
    let recorded = History::open_or_create(path).map(drop).unwrap_err();
    assert_eq!(asked.to_string(), recorded.to_string());
    assert_eq!(fs::read(path).unwrap(), before, "{asked}");
    let text = asked.to_string();
    assert!(!text.contains('\n') && text.starts_with(&path.display().to_string()), "{text}");
    asked
}

#[test]
fn a_new_history_is_empty_and_in_the_newest_form() {
    let folder = folder();
    let path = made(&folder);
    let history = History::open(&path).unwrap();
    assert_eq!(history.version().unwrap(), schema::VERSION);
    assert!(history.runs(&crate::query::Filter::default()).unwrap().is_empty());
    drop(history);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["h.db"], "nothing is left beside it");
    let mode: String = Connection::open(&path).unwrap().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn what_is_no_history_is_refused_and_never_written_to() {
    let folder = folder();
    let path = folder.path().join("other");
    assert!(matches!(History::open(&path), Err(HistoryError::Missing { .. })));
    for bytes in [&b""[..], b"text", b"SQLite format 3\0", &[7; 5000]] {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(refused(&path), HistoryError::Foreign { .. }));
    }
    fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE run (a); INSERT INTO run VALUES (1)").unwrap();
    let error = refused(&path).to_string();
    assert!(error.contains("another program's SQLite database"), "{error}");
    assert!(matches!(History::open(folder.path()), Err(HistoryError::Foreign { .. })));
}

#[test]
fn a_newer_form_is_refused() {
    let folder = folder();
    let path = made(&folder);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", schema::VERSION + 1).unwrap();
    assert!(matches!(refused(&path), HistoryError::Newer { .. }));
}

#[test]
fn a_history_that_was_cut_anywhere_is_refused() {
    let folder = folder();
    let path = made(&folder);
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(1511) {
        fs::write(&path, &whole[..length]).unwrap();
        refused(&path);
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn bytes_that_were_changed_do_no_harm() {
    let folder = folder();
    let path = made(&folder);
    let whole = fs::read(&path).unwrap();
    let mut state = 7_u64;
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 20) as usize % bytes.len();
            bytes[at] = (state >> 12) as u8;
        }
        fs::write(&path, &bytes).unwrap();
        // The changed byte may make the history impossible to open. If not, the query may succeed or fail, but must not
        // panic.
        if let Ok(history) = History::open(&path) {
            let _ = history.runs(&crate::query::Filter::default());
            let _ = history.findings(&crate::query::Filter::default(), true);
            let _ = history.coverage(&crate::query::Filter::default(), None);
        } else {
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        let _ = fs::remove_file(beside(&path, "-wal"));
        let _ = fs::remove_file(beside(&path, "-shm"));
    }
}

#[test]
fn tables_views_and_triggers_of_others_are_refused() {
    let folder = folder();
    for change in [
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM finding; END",
        "CREATE VIEW v AS SELECT 1",
        "DROP VIEW v_last; CREATE VIEW v_last AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n FROM c) SELECT n FROM c",
        "ALTER TABLE run ADD COLUMN more TEXT",
        "DROP INDEX finding_at",
    ] {
        let path = folder.path().join("changed.db");
        let _ = fs::remove_file(&path);
        drop(History::open_or_create(&path).unwrap());
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        assert!(matches!(refused(&path), HistoryError::Damaged { .. }), "{change}");
    }
}

/// All migrations, and one more migration, to a version that does not exist yet.
const LATER: &[&str] = &[
    include_str!("../schema/v1.sql"),
    include_str!("../schema/v2.sql"),
    include_str!("../schema/v3.sql"),
    include_str!("../schema/v4.sql"),
    include_str!("../schema/v5.sql"),
    "ALTER TABLE run ADD COLUMN later INTEGER; CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT",
];

#[test]
fn an_older_form_becomes_the_newest_after_a_copy() {
    let folder = folder();
    let path = made(&folder);
    let mut history = History::open(&path).unwrap();
    history.save_baseline("before", "{}").unwrap();
    drop(history);
    let migrated = History::open_for(&path, Purpose::Record, LATER).unwrap();
    assert_eq!((migrated.version().unwrap(), migrated.baseline("before").unwrap().as_deref()), (6, Some("{}")));
    drop(migrated);
    let copy = History::open(&beside(&path, ".bak-v5")).unwrap();
    assert_eq!((copy.version().unwrap(), copy.baseline("before").unwrap().as_deref()), (5, Some("{}")));
    assert!(matches!(refused(&path), HistoryError::Newer { .. }), "the older program leaves it alone");
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let folder = folder();
    let path = made(&folder);
    let broken: &[&str] = &[
        LATER[0],
        LATER[1],
        LATER[2],
        LATER[3],
        LATER[4],
        "CREATE TABLE later (id INTEGER PRIMARY KEY); CREATE TABLE run (a)",
    ];
    // The last migration fails, because the table `run` already exists. So opening must fail, and the file must keep
    // its version.
    assert!(History::open_for(&path, Purpose::Record, broken).is_err());
    assert_eq!(History::open(&path).unwrap().version().unwrap(), schema::VERSION);
}

/// Reads a history of the first released version, with a row in every table. The file `v1.sql` never changes.
#[test]
fn a_history_of_version_1_is_read_for_ever() {
    let folder = folder();
    let path = folder.path().join("v1.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(include_str!("../../tests/v1.sql")).unwrap();
    connection.close().unwrap();
    let history = History::open_or_create(&path).unwrap();
    let filter = crate::query::Filter::default();
    assert_eq!(history.version().unwrap(), schema::VERSION);
    let runs = history.runs(&filter).unwrap();
    assert_eq!((runs.len(), runs[0].verdict(), runs[0].findings), (2, "corrupt", 2));
    let findings = history.findings(&filter, true).unwrap();
    let lives: Vec<&str> = findings.iter().map(|finding| finding.life.as_str()).collect();
    assert_eq!((lives.as_slice(), findings[0].ack_by.as_deref()), (&["confirmed", "gone"][..], Some("dba")));
    let coverage = &history.coverage(&filter, None).unwrap()[0];
    assert_eq!((coverage.pages_in_use, coverage.never, coverage.relations), (900, 100, 2));
    assert_eq!(history.objects(&filter).unwrap()[0].last, (20, 3));
    assert_eq!(history.baseline("before").unwrap().as_deref(), Some("{}"));
}

/// Up to version 3, all databases of a family were stored as one database. This history has such a database. Its parts
/// are PROD, the copy of PROD on DEV, and data files on a third machine.
#[test]
fn an_older_history_tells_a_restored_copy_from_its_original() {
    let folder = folder();
    let path = folder.path().join("v3.db");
    let mut connection = Connection::open(&path).unwrap();
    let transaction = connection.transaction().unwrap();
    transaction.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    schema::migrate(&transaction, 0, &MIGRATIONS[..3]).unwrap();
    let run = |id: i64, image: i64| {
        format!(
            "INSERT INTO run (id, database, image, started, ended, host, version, command, options, paths, exit_status, complete, findings,
             findings_new, findings_gone, allocation_errors, consistency_errors, not_verified, pages_in_use, pages_read, bytes_read, rows,
             seconds, spilled_bytes) VALUES ({id}, 1, {image}, '2026-11-20', '2026-11-20', 'H', '1', 'CHECKDB', '{{}}', 'p', 0, 1, 0, 0, 0, 0,
             0, 0, 9, 9, 9, 9, 1.0, 0);"
        )
    };
    let rows = format!(
        "INSERT INTO database VALUES (1, 'F', 'Sales', '2026-11-20T22:00:00Z');
         INSERT INTO source VALUES (1, 1, 'backup', 'PROD', 'Sales'), (2, 1, 'backup', 'DEV', 'Sales_dev'),
             (3, 1, 'files', 'H', '/data/sales.mdf'), (4, 1, 'files', 'H', '/other/sales.mdf');
         INSERT INTO image SELECT id, id, 'i', NULL, '2026-11-20T22:00:00Z', NULL FROM source;
         {}{}{}
         INSERT INTO coverage VALUES (1, 1, 0, 'full', 500, 400, '2026-11-20T22:00:00Z', 1, 'read', NULL),
             (1, 1, 500, 'full', 500, 300, '2026-11-21T22:00:00Z', 2, 'read', NULL);
         INSERT INTO object VALUES (1, 1, 5, 1, 1, 'U', 'dbo', 'T', 'PK'), (2, 1, 6, 1, 1, 'U', 'dbo', 'T2', 'PK');
         INSERT INTO object_count VALUES (1, 1, 10, 2), (1, 2, 20, 3);
         INSERT INTO relation VALUES (1, 'unit', '2026-11-20', '2026-11-20', NULL, 1, 'sound'), (2, 'unit', '2026-11-21', '2026-11-21', NULL,
             2, 'sound');
         INSERT INTO alarm VALUES ('F', 'promise-broken', 'watch 60', '2026-11-20', '2026-11-20');",
        run(1, 1),
        run(2, 2),
        run(3, 4)
    );
    transaction.execute_batch(&rows).unwrap();
    transaction.commit().unwrap();
    connection.close().unwrap();
    let history = History::open(&path).unwrap();
    let all = crate::query::Filter::default();
    let named: Vec<(String, String, String, u64, u64, u64)> = history
        .coverage(&all, None)
        .unwrap()
        .into_iter()
        .map(|one| (one.database, one.server, one.family, one.pages_in_use, one.pages_within, one.relations))
        .collect();
    let of = |name: &str, server: &str, within, relations| {
        (name.to_owned(), server.to_owned(), "F".to_owned(), 700, within, relations)
    };
    assert_eq!(named, [of("Sales", "PROD", 400, 1), of("Sales", "H", 0, 0), of("Sales_dev", "DEV", 300, 1)]);
    let runs: Vec<_> = history.runs(&all).unwrap().into_iter().map(|run| (run.id, run.server.unwrap())).collect();
    assert_eq!(runs, [(3, "H".to_owned()), (2, "DEV".to_owned()), (1, "PROD".to_owned())]);
    assert_eq!(history.objects(&all).unwrap().iter().map(|object| object.last.0).collect::<Vec<_>>(), [10, 20]);
    let alarms = "SELECT group_concat(identity, ', ') FROM (SELECT identity FROM alarm ORDER BY 1)";
    let alarms: String = history.connection().query_row(alarms, [], |row| row.get(0)).unwrap();
    assert_eq!(alarms, "F on dev as Sales_dev, F on h as Sales, F on prod as Sales");
    let one = crate::query::Filter { database: Some("sales on prod".to_owned()), since: None };
    assert_eq!(history.database_names(&one).unwrap(), ["Sales"]);
}

#[test]
fn two_processes_do_not_work_on_one_database() {
    let folder = folder();
    let path = made(&folder);
    let (mut one, mut other) = (History::open(&path).unwrap(), History::open(&path).unwrap());
    let lease = one.lease(1, "HOST1").unwrap();
    let error = other.lease(1, "HOST2").unwrap_err();
    assert!(error.to_string().contains("HOST1") && !error.is_usage(), "{error}");
    let whole = other.lease(0, "HOST2").map(drop).unwrap_err();
    assert!(matches!(whole, HistoryError::Leased { .. }));
    let second = other.lease(2, "HOST2").unwrap();
    one.renew(&lease).unwrap();
    one.release(&lease).unwrap();
    other.release(&second).unwrap();
    let whole = other.lease(0, "HOST2").unwrap();
    assert!(one.lease(1, "HOST1").is_err(), "who has all has each");
    // A process that has not renewed its lease for an hour counts as ended.
    let old = crate::time::text(SystemTime::now() - Duration::from_secs(3600));
    one.connection().execute("UPDATE lease SET heartbeat = ?1", [old]).unwrap();
    let taken = one.lease(0, "HOST1").unwrap();
    assert!(other.renew(&whole).is_err(), "another has it now");
    one.release(&taken).unwrap();
}

#[test]
fn a_history_that_another_writes_is_busy() {
    let folder = folder();
    let path = made(&folder);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut history = History::open(&path).unwrap();
    history.connection().busy_timeout(Duration::from_millis(50)).unwrap();
    assert!(matches!(history.save_baseline("a", "{}"), Err(HistoryError::Busy { .. })));
}

#[test]
fn a_lease_that_was_renewed_in_the_future_is_in_nobodys_way() {
    let folder = folder();
    let path = made(&folder);
    let (mut one, mut other) = (History::open_or_create(&path).unwrap(), History::open_or_create(&path).unwrap());
    one.lease(1, "HOST1").unwrap();
    let at = |seconds: u64| crate::time::text(SystemTime::now() + Duration::from_secs(seconds));
    one.connection().execute("UPDATE lease SET heartbeat = ?1", [at(60)]).unwrap();
    assert!(other.lease(1, "HOST2").is_err(), "clocks differ a little");
    one.connection().execute("UPDATE lease SET heartbeat = ?1", [at(86_400)]).unwrap();
    other.lease(1, "HOST2").unwrap();
}

/// When SQLite closes a history and finds no other connection to the file, it deletes the write-ahead log. If another
/// connection exists but has lost its locks, SQLite does not find it, and the later writes of this connection are lost.
/// So opening the history again must not release the locks of this process.
#[test]
#[cfg(unix)]
fn opening_a_history_again_leaves_the_locks_of_this_process() {
    let folder = folder();
    let path = made(&folder);
    let mut one = History::open_or_create(&path).unwrap();
    assert!(is_open(&path));
    drop(History::open_or_create(&path).unwrap());
    one.save_baseline("a", "{}").unwrap();
    let read = |path: &Path| {
        let script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM baseline').fetchone())";
        std::process::Command::new("python3").args(["-c", script]).arg(path).output()
    };
    // Python opens and closes the history in another process, which has its own locks. Python uses an older SQLite,
    // which deletes the write-ahead log if the locks of this process are lost. The SQLite of this crate would not, so
    // it could not show the fault.
    let Ok(output) = read(&path) else { return trials::tools::skip("python3", "not on the PATH") };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "(1,)", "{}", String::from_utf8_lossy(&output.stderr));
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    assert!(Path::new(&log).exists(), "the log of a history that is in use stays");
    drop(one);
    assert!(!is_open(&path));
}

/// A history of version 1, as the first release wrote it.
fn of_version_1(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("v1.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(include_str!("../../tests/v1.sql")).unwrap();
    connection.close().unwrap();
    path
}

#[test]
fn an_older_form_that_cannot_be_written_is_read_from_a_copy() {
    let folder = folder();
    let path = of_version_1(&folder);
    let before = fs::read(&path).unwrap();
    let older = History::open_for(&path, Purpose::Ask, &MIGRATIONS[..1]).unwrap();
    let mut copy = older.into_copy(1, MIGRATIONS).unwrap();
    assert_eq!((copy.version().unwrap(), copy.is_copy(), copy.path()), (schema::VERSION, true, path.as_path()));
    assert_eq!(copy.runs(&crate::query::Filter::default()).unwrap().len(), 2);
    let place = copy.copy.as_ref().unwrap().path().to_owned();
    assert!(matches!(copy.save_baseline("a", "{}"), Err(HistoryError::Unwritable { .. })), "it would be lost");
    drop(copy);
    assert!(!place.exists());
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_copy_that_was_not_finished_is_not_taken_for_one() {
    let folder = folder();
    let path = of_version_1(&folder);
    let killed = beside(&path, ".bak-v1");
    fs::write(&killed, "SQLite for").unwrap();
    drop(History::open(&path).unwrap());
    let copy = Connection::open(beside(&path, ".bak-v1-2")).unwrap();
    let runs: i64 = copy.query_row("SELECT count(*) FROM run", [], |row| row.get(0)).unwrap();
    assert_eq!((runs, fs::read(&killed).unwrap()), (2, b"SQLite for".to_vec()));
    drop(copy);
    // If a migration fails, the copy of the history in its older form is deleted.
    let path = made(&folder);
    let broken: &[&str] =
        &[MIGRATIONS[0], MIGRATIONS[1], MIGRATIONS[2], MIGRATIONS[3], MIGRATIONS[4], "CREATE TABLE run (a)"];
    let mut history = History::open(&path).unwrap();
    assert!(history.migrate(schema::VERSION, broken).is_err());
    assert!(!beside(&path, ".bak-v5").exists());
}
