//! Runs `mdfsck events` and `mdfsck checkpoints` on generated stories. A story is a list of events with known
//! checkpoints.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::events::{Story, TextEncoding, XmlForm};
use lab::{Version, orders};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs the command. Returns its exit status, stdout and stderr.
fn run(arguments: &[&str], paths: &[PathBuf]) -> (i32, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).args(paths).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["kind"] == kind)
}

/// The time of an event in the format of the JSON output.
fn time(ms: i64) -> String {
    let (hours, rest) = (3 + ms / 3_600_000, ms % 3_600_000);
    let (day, hour) = (9 + hours / 24, hours % 24);
    format!("2016-07-{day:02}T{hour:02}:{:02}:{:02}.{:03}Z", rest / 60_000, rest / 1000 % 60, rest % 1000)
}

struct Files {
    folder: TempDir,
    story: Story,
}

impl Files {
    fn new(seed: u64) -> Self {
        Self { folder: TempDir::new().unwrap(), story: Story::new(seed, 3, 60, true) }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes the events of the story to an event file.
    fn xel(&self) -> PathBuf {
        self.write("story.xel", self.story.event_file(0x1000))
    }
}

#[test]
fn checkpoints_are_those_of_the_story_in_every_form() {
    let files = Files::new(1);
    let truth: Vec<(Value, Value, f64)> = files
        .story
        .checkpoints
        .iter()
        .map(|one| (json!(one.database_id), json!(time(one.began_ms)), (one.ended_ms - one.began_ms) as f64))
        .collect();
    let xml = |form| files.write("story.txt", TextEncoding::Utf16Le.bytes(&files.story.xml(form)));
    for path in [files.xel(), xml(XmlForm::Rows), xml(XmlForm::Exported)] {
        let (status, text, errors) = run(&["checkpoints", "--json"], &[path]);
        assert_eq!((status, errors.as_str()), (0, ""));
        let lines = lines(&text);
        let found: Vec<(Value, Value, f64)> = of_kind(&lines, "checkpoint")
            .map(|line| {
                // The event file has times that are more precise than milliseconds. The story has only milliseconds.
                let began = line["began"].as_str().unwrap();
                let began = json!(format!("{}Z", &began[..23]));
                (line["database_id"].clone(), began, line["ms"].as_f64().unwrap().round())
            })
            .collect();
        assert_eq!(found, truth);
        let summary = lines.last().unwrap();
        assert_eq!(summary["pairs"], truth.len());
        assert_eq!(summary["unpaired_begins"], files.story.unpaired_begins);
        assert_eq!(summary["unpaired_ends"], files.story.unpaired_ends);
        let expected = 2 * truth.len() as u64 + files.story.unpaired_begins + files.story.unpaired_ends;
        assert_eq!((&summary["events"], &summary["complete"]), (&json!(expected), &json!(true)));
    }
}

#[test]
fn totals_are_of_the_whole_and_of_both_sides_of_a_change() {
    let files = Files::new(2);
    let change = 1_800_000;
    let argument = format!("--change=5={}", time(change));
    let path = files.write("story.xml", files.story.xml(XmlForm::Rows));
    let (status, text, _) = run(&["checkpoints", "--json", &argument], &[path]);
    assert_eq!(status, 0);
    let lines = lines(&text);
    let mut expected: BTreeMap<(u32, &str), (u64, i64, i64)> = BTreeMap::new();
    for one in &files.story.checkpoints {
        let side = if one.began_ms < change { "before" } else { "after" };
        for period in ["all", side].into_iter().take(if one.database_id == 5 { 2 } else { 1 }) {
            let totals = expected.entry((one.database_id, period)).or_default();
            let ms = one.ended_ms - one.began_ms;
            *totals = (totals.0 + 1, totals.1 + ms, totals.2.max(ms));
        }
    }
    let totals: Vec<&Value> = of_kind(&lines, "checkpoint_totals").collect();
    assert_eq!(totals.len(), expected.len());
    for line in totals {
        let (id, period) = (line["database_id"].as_u64().unwrap() as u32, line["period"].as_str().unwrap());
        let (count, total, max) = expected[&(id, period)];
        let found = ["count", "total_ms", "max_ms"].map(|name| line[name].as_f64().unwrap());
        assert_eq!(found, [count as f64, total as f64, max as f64], "{line}");
        assert!((line["avg_ms"].as_f64().unwrap() - total as f64 / count as f64).abs() < 1e-4);
        assert_eq!(line["change"], if period == "all" { Value::Null } else { json!(time(change)) });
    }
    let hours: u64 = of_kind(&lines, "checkpoint_hour").map(|line| line["count"].as_u64().unwrap()).sum();
    assert_eq!(hours, files.story.checkpoints.len() as u64);
}

#[test]
fn slow_checkpoints_of_error_logs_are_joined_with_the_events() {
    let files = Files::new(3);
    let log =
        |name: &str, offset| files.write(name, TextEncoding::Utf16Le.bytes(&files.story.error_log(15_000, offset)));
    let (status, text, errors) =
        run(&["checkpoints", "--json"], &[log("ERRORLOG", -480), files.xel(), log("ERRORLOG.1", -480)]);
    assert_eq!((status, errors.as_str()), (0, ""));
    let lines = lines(&text);
    let slow = files.story.checkpoints.iter().filter(|one| one.ended_ms - one.began_ms > 15_000);
    let mut expected: Vec<_> = slow.map(|one| (one.ended_ms / 10, one.database_id, one.began_ms)).collect();
    expected.sort_unstable();
    let flushes: Vec<&Value> = of_kind(&lines, "flush").collect();
    assert_eq!(flushes.len(), expected.len());
    for (line, (_, database_id, began)) in flushes.iter().zip(&expected) {
        assert_eq!(line["database_id"], *database_id);
        assert_eq!(line["checkpoint_began"].as_str().unwrap()[..23], time(*began)[..23]);
        assert!((line["checkpoint_ms"].as_f64().unwrap() - line["ms"].as_f64().unwrap()).abs() < 0.01);
        assert_eq!((&line["clock"], &line["avg_write_latency_ms"]), (&json!("utc"), &json!(15)));
    }
}

/// This test uses a real backup of a master database. It does nothing if the corpus lacks this backup.
#[test]
fn the_master_database_names_all_others() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let master = corpus.join("ayamita__api-test-net4/master.bak");
    if !master.is_file() {
        println!("skipped, no real database files in target/corpus");
        return;
    }
    let files = Files::new(4);
    let line = "2016-07-09 03:31:00.00 spid12s     FlushCache: cleaned up 1000 bufs with 500 writes in 2000 ms (avoided 0 new \
                dirty bufs) for db 4:0\r\n";
    let log = files.write("ERRORLOG", line);
    let (status, text, errors) = run(&["checkpoints", "--json"], &[master, log]);
    assert_eq!((status, errors.as_str()), (0, ""));
    let lines = lines(&text);
    let flush = of_kind(&lines, "flush").next().unwrap();
    assert_eq!((&flush["database_id"], &flush["database"]), (&json!(4), &json!("msdb")));
}

#[test]
fn data_files_give_names_and_logs_times() {
    let files = Files::new(4);
    let folder = files.folder.path().join("data");
    fs::create_dir(&folder).unwrap();
    let database = orders::orders(Version::V904, 1, 0);
    let data = lab::write(&database, &folder).unwrap().files;
    let log = lab::log::LogFile {
        version: 904,
        has_checksum: true,
        vlf_bytes: 0x3_E000,
        vlfs: 4,
        first_sequence: 33,
        transactions: 500,
        leaves_open: false,
    };
    let log = files.write("orders_log.ldf", log.bytes(&database));
    let (status, text, errors) = run(&["checkpoints", "--json"], &[log, data[0].clone()]);
    assert_eq!((status, errors.as_str()), (0, ""));
    let lines = lines(&text);
    let database = of_kind(&lines, "database").next().unwrap();
    assert!(database["name"].is_string() && database["automatic"] == true);
    let checkpoints: Vec<&Value> = of_kind(&lines, "checkpoint").collect();
    assert!(!checkpoints.is_empty());
    for line in checkpoints {
        assert_eq!((&line["source"], &line["clock"]), (&json!("log"), &json!("local")));
        assert_eq!((&line["database"], &line["database_id"]), (&database["name"], &database["database_id"]));
        assert!(!line["began"].as_str().unwrap().ends_with('Z'));
    }
    let argument = format!("{}=2016-07-09T03:30Z", database["name"].as_str().unwrap());
    let (status, _, errors) =
        run(&["checkpoints", "--change", &argument], &[folder.clone(), files.folder.path().join("orders_log.ldf")]);
    assert_eq!(status, 16);
    assert!(errors.contains("cannot be compared with UTC"), "{errors}");
}

#[test]
fn the_order_of_files_does_not_matter() {
    let files = Files::new(5);
    let export = files.write("b.xml", files.story.xml(XmlForm::RingBuffer { truncated: true, dropped: 7 }));
    let log = files.write("ERRORLOG", files.story.error_log(9000, 60));
    let paths = [files.xel(), export, log];
    for arguments in
        [&["checkpoints"][..], &["checkpoints", "--json"], &["checkpoints", "--change", "5=2016-07-09T04:00Z"]]
    {
        let (status, expected, errors) = run(arguments, &paths);
        assert_eq!(status, 0);
        assert!(errors.contains("the ring buffer was truncated when it was read and dropped 7 events"), "{errors}");
        let mut turned = paths.to_vec();
        turned.reverse();
        assert_eq!(run(arguments, &turned).1, expected);
        assert_eq!(run(arguments, &[files.folder.path().to_owned()]).1, expected);
    }
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_kept() {
    let files = Files::new(6);
    let other = files.write("notes.txt", "nothing of interest");
    let missing = files.folder.path().join("missing.xel");
    let (status, text, errors) = run(&["checkpoints", "--json"], &[other.clone(), missing.clone(), files.xel()]);
    assert_eq!((status, errors.lines().count()), (4, 2));
    assert!(errors.contains("notes.txt: has no data about checkpoints; give event files"), "{errors}");
    let lines_of_text = lines(&text);
    assert_eq!(of_kind(&lines_of_text, "checkpoint").count(), files.story.checkpoints.len());
    assert_eq!(of_kind(&lines_of_text, "error").count(), 2);
    assert_eq!(lines_of_text.last().unwrap()["complete"], false);
    let bytes = files.story.event_file(0x200);
    let cut = files.write("cut.xel", &bytes[..bytes.len() / 2]);
    let (status, text, errors) = run(&["checkpoints", "--json"], &[cut]);
    let found = of_kind(&lines(&text), "checkpoint").count();
    assert!(status == 16 && found > 0 && found < files.story.checkpoints.len());
    assert!(errors.contains("is cut off at byte"), "{errors}");
    let (status, text, errors) = run(&["events"], &[other, missing]);
    assert_eq!((status, lines(&text).len(), errors.lines().count()), (4, 1, 2));
    let empty = files.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(run(&["events"], &[empty]).0, 4);
    assert_eq!(run(&["checkpoints", "--change", "5=yesterday"], &[files.xel()]).0, 8);
    let (status, text, errors) = run(&["checkpoints", "--change", "77=2016-07-09T04:00Z"], &[files.xel()]);
    assert!(
        status == 16 && text.contains("Checkpoints by events") && errors.contains("no checkpoint of this database")
    );
}

#[test]
fn events_of_the_story_as_a_table() {
    let files = Files::new(7);
    let export = files.write("b.xml", files.story.xml(XmlForm::Rows));
    for path in [files.xel(), export] {
        let (status, text, _) = run(&["events", "--format", "csv", "--name", "checkpoint_end"], &[path]);
        assert_eq!(
            (status, text.lines().count()),
            (0, 1 + files.story.checkpoints.len() + files.story.unpaired_ends as usize)
        );
        assert!(text.lines().next().unwrap().starts_with("at,event,database_id,"));
        assert!(text.lines().skip(1).all(|line| line.contains("Z,checkpoint_end,")));
    }
}

#[test]
fn the_page_is_written_whole_and_never_over_an_input() {
    let files = Files::new(8);
    let (xel, page) = (files.xel(), files.folder.path().join("page.html"));
    let argument = format!("--html={}", page.display());
    let (status, _, errors) =
        run(&["checkpoints", "--change=5=2016-07-09T03:30Z", &argument], std::slice::from_ref(&xel));
    assert_eq!((status, errors.as_str()), (0, ""));
    let html = fs::read_to_string(&page).unwrap();
    // Each of the three databases has a chart and a heat map.
    assert_eq!((html.matches("<svg").count(), html.matches("</svg>").count()), (3, 3));
    assert_eq!(html.matches("<figure class=heat>").count(), 3);
    assert!(
        html.contains(">Before and after a change</h2>") && html.contains("<title>change: 2016-07-09 03:30:00.000")
    );
    let before = fs::read(&xel).unwrap();
    let (status, _, errors) = run(&["checkpoints", &format!("--html={}", xel.display())], std::slice::from_ref(&xel));
    assert!(status == 8 && errors.contains("is one of the files to be read"), "{errors}");
    assert_eq!(fs::read(&xel).unwrap(), before);
    let nowhere = format!("--html={}/missing/page.html", files.folder.path().display());
    assert_eq!(run(&["checkpoints", &nowhere], &[xel]).0, 4);
}

#[test]
fn text_is_for_people() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("one.xml");
    let event = |name: &str, id: u32, at: &str| {
        format!(
            "<event name='{name}' package='sqlserver' timestamp='2016-07-09T{at}Z'><data name='database_id'><value>{id}</value></data></event>"
        )
    };
    let text = [
        event("checkpoint_begin", 5, "03:00:00.000"),
        event("checkpoint_end", 5, "03:00:01.500"),
        event("checkpoint_begin", 5, "04:00:00.000"),
        event("checkpoint_end", 5, "04:00:00.500"),
        event("checkpoint_begin", 12, "03:30:00.000"),
    ];
    fs::write(&path, text.concat()).unwrap();
    let expected = "\
Checkpoints by events, times in UTC
  database    id  checkpoints  first                    last                     avg ms  max ms  total ms  per hour
  database 5   5            2  2016-07-09 03:00:00.000  2016-07-09 04:00:00.000  1000.0  1500.0    2000.0       1.0

Before and after a change
  database    change (UTC)                     checkpoints  avg ms  max ms  total ms  per hour
  database 5  2016-07-09 04:00:00.000  before            1  1500.0  1500.0    1500.0
  database 5  2016-07-09 04:00:00.000  after             1   500.0   500.0     500.0

Checkpoint begins without an end: 1
";
    assert_eq!(run(&["checkpoints", "--change", "5=2016-07-09T04:00Z"], &[path]).1, expected);
}
