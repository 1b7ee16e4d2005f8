//! The state of a database in one word, with a reason if the database is not sound. All outputs of the program take the
//! word from here.

use findings::registry::limits::{WINDOW_CONTAINER_OPEN, WINDOW_OPEN, WINDOW_TABLE_OPEN};
use rusqlite::Row;

/// A copy of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceRow {
    /// `files` or `backup`.
    pub kind: String,
    /// The machine or server that the copy belongs to.
    pub host: String,
    /// The path or URL of the copy, without secrets.
    pub location: String,
}

/// The state of a database, which is the state of its worst copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatabaseState {
    /// `corrupt` if the database has open findings, or the newest run over one of its copies had findings. `sound` if
    /// every copy was proven to be sound: the newest run that covered the whole copy in full depth was complete, or windows
    /// have closed each of its tables, and nothing later contradicts this. Otherwise `unknown`.
    pub word: &'static str,
    /// Why the word is `unknown`.
    pub why: Option<String>,
    /// The copy to which the word and the reason refer, if the database has several copies.
    pub copy: Option<SourceRow>,
}

/// The columns from which [`read`] reads a state. They come from `worst AS c` and the other tables in [`JOINS`], and
/// must be the first columns of the query.
pub(crate) const COLUMNS: &str = "c.rank, c.copies, substr(n.command, 1, 40), instr(n.options, '\"physical_only\":true') > 0,
    instr(n.options, '\"no_index\":true') > 0, substr(e.error, 1, 400), s.kind, substr(s.host, 1, 400), substr(s.location, 1, 400)";
/// The joins that provide [`COLUMNS`].
pub(crate) const JOINS: &str =
    "LEFT JOIN worst c ON c.database = d.id AND c.place = 1 LEFT JOIN source s ON s.id = c.source
    LEFT JOIN run n ON n.id = c.run LEFT JOIN run e ON e.id = c.failure";
/// SQL that converts the rank of the copy `c` to a class: 0 is corrupt, 1 unknown, 2 sound.
pub(crate) const CLASS: &str = "CASE c.rank WHEN 0 THEN 0 WHEN 9 THEN 2 ELSE 1 END";

/// SQL that tests whether the files of a run include the file `failed`.
fn has_file(run: &str, failed: &str) -> String {
    format!("instr(', ' || {run} || ', ', ', ' || {failed} || ', ') > 0")
}

/// SQL that tests whether the files of a run are the files `failed`, or are in the folder `failed`.
pub(crate) fn is_same_place(run: &str, failed: &str) -> String {
    let has_file = has_file(run, failed);
    format!("({has_file} OR substr({run}, 1, length({failed}) + 1) IN ({failed} || '/', {failed} || '\\'))")
}

/// Returns the SQL common table expressions that follow WITH. The last one is `worst`, which lists the copies of each
/// database. Place 1 is the worst copy.
///
/// If a check is spread over several time windows, its runs do not count until the whole image is read, or until each
/// table was closed in one of them. However, a run that could not read something counts at once. A failed run makes the state of a copy worse if it was asked to check
/// the same files as the newest run of this copy, on the same machine. The failed run is ignored after a later full
/// check of the copy.
pub(crate) fn parts() -> String {
    let is_here = is_same_place("r.paths", "f.paths");
    let is_again = has_file("q.paths", "f.paths");
    // The IDs of the limits that a check reports for the ranges that it will read in later time windows.
    let [open, table_open, container_open] = [WINDOW_OPEN.id, WINDOW_TABLE_OPEN.id, WINDOW_CONTAINER_OPEN.id];
    let is_full = "r.command = 'CHECKDB' AND instr(r.options, '\"physical_only\":true') = 0
        AND instr(r.options, '\"no_index\":true') = 0";
    format!(
        "ended AS MATERIALIZED (
             SELECT r.id, i.source, r.complete, {is_full} AS is_full, r.complete = 0 AND r.exit_status & 4 = 0 AND EXISTS (
                 SELECT 1 FROM not_verified v WHERE v.run = r.id AND v.limit_id IN ('{open}', '{table_open}')
             ) AS is_open, NOT EXISTS (
                 SELECT 1 FROM not_verified v WHERE v.run = r.id AND v.limit_id NOT IN ('{table_open}', '{container_open}')
             ) AS is_by_table
             FROM run r JOIN image i ON i.id = r.image WHERE r.error IS NULL
         ),
         ran AS MATERIALIZED (
             SELECT source, max(id) AS newest, max(CASE WHEN complete = 0 AND NOT is_open THEN id END) AS incomplete,
                 max(CASE WHEN is_full AND NOT is_open THEN id END) AS whole,
                 max(CASE WHEN is_full AND is_open THEN id END) AS opened,
                 max(CASE WHEN is_full AND is_open AND is_by_table THEN id END) AS by_table
             FROM ended GROUP BY source
         ),
         newest AS MATERIALIZED (
             SELECT a.source, r.id, r.findings, a.whole, a.incomplete,
                 a.by_table = a.opened AND a.by_table > max(coalesce(a.whole, 0), coalesce(a.incomplete, 0)) AS is_by_table FROM ran a JOIN run r ON r.id = a.newest
         ),
         failed AS MATERIALIZED (
             SELECT host, id, paths FROM (
                 SELECT host, max(id) AS id, rtrim(substr(paths, 1, 4000), '/\\') AS paths FROM run
                 WHERE error IS NOT NULL AND id > (SELECT coalesce(min(whole), 0) FROM ran)
                 GROUP BY 1, 3 ORDER BY 2 DESC LIMIT 3000
             ) WHERE paths <> ''
         ),
         tied AS MATERIALIZED (
             SELECT n.source, max(f.id) AS failure
             FROM newest n JOIN run r ON r.id = n.id JOIN failed f ON f.host = r.host AND f.id > coalesce(n.whole, n.id) AND {is_here}
             WHERE NOT EXISTS (
                 SELECT 1 FROM newest m JOIN run q ON q.id = m.id WHERE m.source <> n.source AND q.host = f.host AND m.id > f.id
                     AND {is_again}
             )
             GROUP BY n.source
         ),
         unproven AS MATERIALIZED (
             SELECT n.source FROM newest n JOIN source s ON s.id = n.source WHERE n.is_by_table AND (EXISTS (
                 SELECT 1 FROM object o JOIN relation e ON e.object = o.id LEFT JOIN image i ON i.id = e.image
                 WHERE o.database = s.database AND (e.verdict <> 'sound' OR e.closed_at IS NULL OR i.source IS NOT s.id)
             ) OR EXISTS (
                 SELECT 1 FROM coverage c
                 WHERE c.database = s.database AND c.depth = 'full' AND c.pages_in_use > 0 AND c.read_at IS NULL
             ) OR NOT EXISTS (
                 SELECT 1 FROM object o JOIN relation e ON e.object = o.id WHERE o.database = s.database
             ))
         ),
         unsolved AS MATERIALIZED (SELECT source, count(*) AS findings FROM finding WHERE life <> 'gone' GROUP BY source),
         copy AS (
             SELECT s.database, s.id AS source, n.id AS run, t.failure, CASE
                 WHEN u.findings > 0 OR n.findings > 0 THEN 0
                 WHEN t.failure IS NOT NULL THEN 1
                 WHEN n.is_by_table AND n.source NOT IN (SELECT source FROM unproven) THEN 9
                 WHEN n.whole IS NULL AND n.is_by_table THEN 6
                 WHEN n.whole IS NULL THEN 2
                 WHEN w.complete = 0 THEN 3
                 WHEN n.incomplete > n.whole THEN 4
                 WHEN w.findings > 0 THEN 5
                 ELSE 9 END AS rank
             FROM source s LEFT JOIN newest n ON n.source = s.id LEFT JOIN unsolved u ON u.source = s.id
             LEFT JOIN tied t ON t.source = s.id LEFT JOIN run w ON w.id = n.whole
             WHERE n.id IS NOT NULL OR u.findings > 0
         ),
         worst AS MATERIALIZED (
             SELECT database, source, run, failure, rank, count(*) OVER (PARTITION BY database) AS copies,
                 row_number() OVER (PARTITION BY database ORDER BY rank, run DESC, source) AS place
             FROM copy
         )"
    )
}

/// Reads a state from a row that begins with [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<DatabaseState> {
    let rank: Option<i64> = row.get(0)?;
    let copies: Option<i64> = row.get(1)?;
    let word = match rank {
        Some(0) => "corrupt",
        Some(9) => "sound",
        _ => "unknown",
    };
    let why = match rank {
        Some(0 | 9) => None,
        None => Some("not checked yet".to_owned()),
        Some(1) => Some(format!(
            "a run after the last full check failed: {}",
            row.get::<_, Option<String>>(5)?.unwrap_or_default()
        )),
        Some(2) => {
            let command: Option<String> = row.get(2)?;
            let (is_physical, has_no_index): (Option<bool>, Option<bool>) = (row.get(3)?, row.get(4)?);
            Some(part_of(command.as_deref().unwrap_or_default(), is_physical == Some(true), has_no_index == Some(true)))
        }
        Some(3) => Some("the last full check was incomplete".to_owned()),
        Some(6) => Some("windows have not closed every table yet".to_owned()),
        Some(4) => Some("a run after the last full check was incomplete".to_owned()),
        Some(_) => Some("not checked in full since its last finding was gone".to_owned()),
    };
    let copy = match copies {
        Some(2..) => Some(SourceRow {
            kind: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
            host: row.get::<_, Option<String>>(7)?.unwrap_or_default(),
            location: row.get::<_, Option<String>>(8)?.unwrap_or_default(),
        }),
        _ => None,
    };
    Ok(DatabaseState { word, why, copy })
}

/// Describes which part of a copy was checked if the copy was never checked in full.
fn part_of(command: &str, is_physical: bool, has_no_index: bool) -> String {
    match command {
        "CHECKTABLE" => "the last run checked only some tables, and there was no full check yet".to_owned(),
        "CHECKFILEGROUP" => "the last run checked only some filegroups, and there was no full check yet".to_owned(),
        "CHECKDB" if is_physical => "pages only: links, keys and rows were not checked".to_owned(),
        "CHECKDB" if has_no_index => "nonclustered indexes were skipped".to_owned(),
        "CHECKDB" => "not read completely yet".to_owned(),
        _ => format!("only {command} was run"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, params};

    use crate::History;
    use crate::query::Filter;

    const FULL: &str = r#"{"command":"CHECKDB","physical_only":false,"no_index":false}"#;
    const PHYSICAL: &str = r#"{"command":"CHECKDB","physical_only":true,"no_index":false}"#;
    const NO_INDEX: &str = r#"{"command":"CHECKDB","physical_only":false,"no_index":true}"#;

    /// Makes a history with one database that has two copies: source 1 is in /data, source 2 in /copy.
    fn history(folder: &Path) -> Connection {
        let path = folder.join("h.db");
        drop(History::open_or_create(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "INSERT INTO database VALUES (1, 'F on h as sales', 'sales', '2026-01-01T00:00:00Z', 'F', 'H');
                 INSERT INTO source VALUES (1, 1, 'files', 'H', '/data/a.mdf'), (2, 1, 'files', 'H', '/copy/a.mdf');
                 INSERT INTO image VALUES (1, 1, 'a', NULL, '2026-01-01T00:00:00Z', NULL), (2, 2, 'a', NULL, '2026-01-01T00:00:00Z', NULL);",
            )
            .unwrap();
        connection
    }

    fn run(connection: &Connection, source: i64, (command, options): (&str, &str), complete: bool, findings: i64) {
        let paths = if source == 1 { "/data/a.mdf, /data/a.ldf" } else { "/copy/a.mdf" };
        connection
            .execute(
                "INSERT INTO run (database, image, started, ended, host, version, command, options, paths, exit_status, complete,
                 findings, findings_new, findings_gone, allocation_errors, consistency_errors, not_verified, pages_in_use, pages_read,
                 bytes_read, rows, seconds, spilled_bytes)
                 VALUES (1, ?1, '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'H', '1', ?2, ?3, ?4, 0, ?5, ?6, 0, 0, 0, 0, 0, 1, 1, 1,
                 1, 1.0, 0)",
                params![source, command, options, paths, complete, findings],
            )
            .unwrap();
    }

    fn fails(connection: &Connection, host: &str, paths: &str) {
        connection
            .execute(
                "INSERT INTO run (started, ended, host, version, command, options, paths, exit_status, complete, error, findings,
                 findings_new, findings_gone, allocation_errors, consistency_errors, not_verified, pages_in_use, pages_read,
                 bytes_read, rows, seconds, spilled_bytes)
                 VALUES ('2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', ?1, '1', '', '{}', ?2, 4, 0, 'no boot page', 0, 0, 0, 0, 0, 0,
                 0, 0, 0, 0, 0.0, 0)",
                [host, paths],
            )
            .unwrap();
    }

    /// Returns the word and the reason of the database's state, and the location of the copy. Asserts that the row in
    /// the overview, the row of the database and the counts agree.
    fn state(folder: &Path) -> (&'static str, String, Option<String>) {
        let history = History::open(&folder.join("h.db")).unwrap();
        let mut rows = Vec::new();
        let counts = history
            .estate(&Filter::default(), 5, |row| {
                rows.push(row);
                true
            })
            .unwrap();
        let row = history.database_row(1, 5).unwrap().unwrap();
        assert_eq!(rows.first(), Some(&row));
        let counted = match row.state.word {
            "corrupt" => counts.corrupt,
            "sound" => counts.sound,
            _ => counts.unknown,
        };
        assert_eq!(counted, 1);
        (row.state.word, row.state.why.unwrap_or_default(), row.state.copy.map(|copy| copy.location))
    }

    #[test]
    fn only_a_whole_check_in_full_depth_that_is_complete_makes_a_database_sound() {
        let folder = tempfile::tempdir().unwrap();
        let connection = history(folder.path());
        let table = ("CHECKTABLE", r#"{"command":"CHECKTABLE","tables":[5],"physical_only":false,"no_index":false}"#);
        assert_eq!(state(folder.path()).1, "not checked yet");
        run(&connection, 1, table, true, 0);
        assert_eq!(
            state(folder.path()),
            ("unknown", "the last run checked only some tables, and there was no full check yet".to_owned(), None)
        );
        run(&connection, 1, ("CHECKDB", PHYSICAL), true, 0);
        assert!(state(folder.path()).1.starts_with("pages only"));
        run(&connection, 1, ("CHECKDB", NO_INDEX), true, 0);
        assert_eq!(state(folder.path()).1, "nonclustered indexes were skipped");
        run(&connection, 1, ("CHECKDB", FULL), false, 0);
        run(&connection, 1, table, true, 0);
        assert_eq!(state(folder.path()), ("unknown", "the last full check was incomplete".to_owned(), None));
        run(&connection, 1, ("CHECKDB", FULL), true, 0);
        assert_eq!(state(folder.path()), ("sound", String::new(), None));
        run(&connection, 1, table, true, 0);
        assert_eq!(state(folder.path()).0, "sound", "a part that is sound, too, takes nothing away");
        run(&connection, 1, table, false, 0);
        assert_eq!(state(folder.path()).1, "a run after the last full check was incomplete");
        run(&connection, 1, ("CHECKDB", FULL), true, 3);
        assert_eq!(state(folder.path()).0, "corrupt");
        run(&connection, 1, table, true, 0);
        assert_eq!(state(folder.path()).0, "unknown", "its findings are gone, and nobody looked at the rest again");
    }

    #[test]
    fn a_window_that_is_open_leaves_a_database_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let connection = history(folder.path());
        let window = || {
            run(&connection, 1, ("CHECKDB", FULL), false, 0);
            let left = "INSERT INTO not_verified SELECT max(id), 'window.open', 'ranges', '', 'not given', 7 FROM run";
            connection.execute(left, []).unwrap();
        };
        window();
        assert_eq!(state(folder.path()), ("unknown", "not read completely yet".to_owned(), None));
        run(&connection, 1, ("CHECKDB", FULL), true, 0);
        window();
        assert_eq!(state(folder.path()), ("sound", String::new(), None));
        connection.execute("UPDATE run SET exit_status = 4 WHERE id = (SELECT max(id) FROM run)", []).unwrap();
        assert_eq!(state(folder.path()).0, "unknown", "the window could not read something");
        run(&connection, 1, ("CHECKDB", FULL), true, 0);
        assert_eq!(state(folder.path()).0, "sound");
        run(&connection, 1, ("CHECKDB", FULL), false, 0);
        window();
        assert_eq!(state(folder.path()).1, "the last full check was incomplete");
    }

    #[test]
    fn a_database_of_which_windows_have_closed_every_table_is_sound() {
        let folder = tempfile::tempdir().unwrap();
        let connection = history(folder.path());
        let window = |also: &[&str]| {
            run(&connection, 1, ("CHECKDB", FULL), false, 0);
            for limit in [&["window.table-open", "window.container-open"], also].concat() {
                let left = "INSERT INTO not_verified SELECT max(id), ?1, 'pages', '', 'not given', 7 FROM run";
                connection.execute(left, [limit]).unwrap();
            }
        };
        let change = |sql: &str| connection.execute_batch(sql).unwrap();
        const SOUND: &str = "sound";
        const OPEN: &str = "windows have not closed every table yet";
        let said = || {
            let (word, why, _) = state(folder.path());
            if word == SOUND { SOUND.to_owned() } else { why }
        };
        window(&[]);
        assert_eq!(said(), OPEN, "nothing is listed");
        change(
            "INSERT INTO object VALUES (1, 1, 5, 1, 1, 'U', 'dbo', 'a', ''), (2, 1, 5, 2, 1, 'U', 'dbo', 'a', 'i');
             INSERT INTO relation (object, kind, looked_at, closed_at, image, verdict) VALUES
                 (1, 'unit', '2026-01-01', '2026-01-01', 1, 'sound'), (2, 'unit', '', NULL, 1, 'not verified');
             INSERT INTO coverage (database, file, first, depth, pages, pages_in_use, read_at, image, evidence)
                 VALUES (1, 1, 0, 'full', 9, 9, '2026-01-01', 1, 'read')",
        );
        assert_eq!(said(), OPEN, "one of two is closed");
        change("UPDATE relation SET verdict = 'sound', closed_at = '2026-01-02' WHERE object = 2");
        assert_eq!(said(), SOUND);
        change("UPDATE coverage SET read_at = NULL");
        assert_eq!(said(), OPEN, "some pages were never read");
        change("UPDATE coverage SET read_at = '2026-01-01'; UPDATE relation SET image = 2 WHERE object = 1");
        assert_eq!(said(), OPEN, "the table of another copy was closed");
        change("UPDATE relation SET image = 1 WHERE object = 1");
        window(&["catalog.gap"]);
        assert_eq!(said(), "not read completely yet", "the window could not verify something else");
        window(&[]);
        assert_eq!(said(), SOUND);
        run(&connection, 1, ("CHECKDB", FULL), false, 0);
        assert_eq!(said(), "the last full check was incomplete");
        window(&[]);
        assert_eq!(said(), SOUND, "every table was closed, and the windows have gone on");
        run(&connection, 1, ("CHECKDB", FULL), true, 2);
        assert_eq!(state(folder.path()).0, "corrupt");
    }

    #[test]
    fn a_database_is_as_its_worst_copy() {
        let folder = tempfile::tempdir().unwrap();
        let connection = history(folder.path());
        run(&connection, 1, ("CHECKDB", FULL), true, 2);
        run(&connection, 2, ("CHECKDB", FULL), true, 0);
        assert_eq!(state(folder.path()), ("corrupt", String::new(), Some("/data/a.mdf".to_owned())));
        run(&connection, 1, ("CHECKDB", FULL), true, 0);
        assert_eq!(state(folder.path()).0, "sound");
        run(&connection, 2, ("CHECKDB", FULL), false, 0);
        let (word, why, copy) = state(folder.path());
        assert_eq!((word, copy.as_deref()), ("unknown", Some("/copy/a.mdf")));
        assert_eq!(why, "the last full check was incomplete");
    }

    #[test]
    fn a_run_that_failed_makes_a_sound_database_unknown_until_a_later_run() {
        let folder = tempfile::tempdir().unwrap();
        let connection = history(folder.path());
        let failed = || History::open(&folder.path().join("h.db")).unwrap().failed_runs(9).unwrap().len();
        run(&connection, 1, ("CHECKDB", FULL), true, 0);
        for (host, paths) in [("OTHER", "/data/a.mdf"), ("H", "/data/a"), ("H", "/"), ("H", "/dat")] {
            fails(&connection, host, paths);
            assert_eq!(state(folder.path()).0, "sound", "{host} {paths}");
        }
        assert_eq!(failed(), 4);
        for paths in ["/data/a.mdf", "/data", "/data/", "/data/a.mdf, /data/a.ldf"] {
            fails(&connection, "H", paths);
            assert_eq!(
                state(folder.path()),
                ("unknown", "a run after the last full check failed: no boot page".to_owned(), None),
                "{paths}"
            );
            assert_eq!(failed(), 5, "{paths}");
            // A check of one table does not cover the whole database, so the failed run still counts after it.
            run(&connection, 1, ("CHECKTABLE", FULL), true, 0);
            assert_eq!(state(folder.path()).0, "unknown", "{paths}");
            run(&connection, 1, ("CHECKDB", FULL), true, 0);
            assert_eq!(state(folder.path()).0, "sound", "{paths}");
            assert_eq!(failed(), 4, "{paths}");
        }
    }
}
