//! Every JSON line of every command must match docs/json.schema.json. The tests must cover every kind of line in the
//! schema.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod schema;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use check::Silent;
use findings::Options;
use format::boot::status::CLEAN_SHUTDOWN;
use format::page::PAGE_BYTES;
use lab::backup::{BackupOptions, Base, Container, Set, backup};
use lab::damage::{Kind, damage};
use lab::description::{Column, Filter, Table, Values};
use lab::events::{Story, XmlForm};
use lab::log::LogFile;
use lab::specimens::specimen;
use lab::{PageVerify, SqlType, Version, orders};
use report::{Format, View};
use serde_json::{Value, json};
use source::DataFiles;
use tempfile::TempDir;

use self::schema::Schema;

/// Collects JSON lines, and validates each line against the schema.
struct Lines {
    schema: Schema,
    seen: Vec<Value>,
}

impl Lines {
    fn new() -> Self {
        Self { schema: Schema::published(), seen: Vec::new() }
    }

    /// Runs a command with JSON output. Returns its exit status.
    fn run(&mut self, arguments: &[&str], paths: &[PathBuf]) -> i32 {
        let output =
            Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).args(paths).output().expect("mdfsck runs");
        self.add(&output.stdout, &format!("{arguments:?} {paths:?}"));
        output.status.code().expect("no signal")
    }

    fn add(&mut self, output: &[u8], what: &str) {
        for line in std::str::from_utf8(output).expect("UTF-8").lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{what}: {error}: {line}"));
            let errors = self.schema.errors(&line);
            assert!(errors.is_empty(), "{what}:\n{}\n{line}", errors.join("\n"));
            self.seen.push(line);
        }
    }

    fn check(&mut self, options: &[&str], files: &[PathBuf]) -> i32 {
        self.run(&[&["check", "--format", "json"], options].concat(), files)
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.seen.iter().filter(move |line| line["kind"] == kind)
    }

    fn must_have(&self, kind: &str) {
        assert!(self.of_kind(kind).next().is_some(), "no line of kind {kind}");
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn small(folder: &Path) -> Vec<PathBuf> {
    lab::write(&orders::orders(Version::V904, 7, 2 << 20), folder).unwrap().files
}

/// Writes databases that together contain everything that the lab can write.
fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut description = specimen(Version::V957, PageVerify::Checksum, 1);
    description.tables.push(Table {
        name: "priced".to_owned(),
        columns: vec![
            Column::identity("id", SqlType::INT),
            Column::new("price", SqlType::INT, Values::Uniform { low: 1, high: 90 }),
        ],
        checks: vec![("CK_price".to_owned(), Filter::AtLeast(1, 0))],
        rows: 50,
        statistics: vec![1],
        ..Table::default()
    });
    lab::write(&description, folder).unwrap().files
}

fn edit(file: &Path, page: usize, change: impl FnOnce(&mut [u8])) {
    let mut bytes = fs::read(file).unwrap();
    let page: &mut [u8; PAGE_BYTES] =
        (&mut bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES]).try_into().expect("a whole page");
    change(page);
    let sum = format::protection::checksum(page);
    page[60..64].copy_from_slice(&sum.to_le_bytes());
    fs::write(file, bytes).unwrap();
}

/// Clears the bit in the boot page that shows a clean shutdown. The database then looks as if the server had been
/// killed.
fn make_dirty(primary: &Path) {
    edit(primary, 9, |page| {
        let status = u32::from_le_bytes([page[132], page[133], page[134], page[135]]) & !CLEAN_SHUTDOWN;
        page[132..136].copy_from_slice(&status.to_le_bytes());
    });
}

/// Checks sound databases. Uses all options that add lines to the output.
fn sound(lines: &mut Lines) {
    let at = folder();
    let files = everything(at.path());
    for options in [
        &["--constraints", "--identity", "--extended-logical-checks"][..],
        &["--physical-only", "--maxdop", "1"],
        &["--noindex"],
        &["--table", "wide"],
        &["--filegroup", "ARCHIVE"],
        &["--alloc"],
        &["--catalog"],
        &["--estimate-only"],
    ] {
        let status = lines.check(options, &files);
        assert!(status & !16 == 0, "{options:?}: {status}");
    }
    let commands = [
        &["info", "--json"][..],
        &["tables", "--json", "--all"],
        &["tables", "--json", "--statistics"],
        &["lint", "--json"],
    ];
    for command in commands {
        assert_eq!(lines.run(command, &files), 0, "{command:?}");
    }
    for page in 0..60 {
        lines.run(&["page", &format!("1:{page}"), "--json"], &files);
    }
    lines.must_have("estimate");
}

/// Checks damaged databases. Shows all findings in some runs, and only a part of the findings in others.
fn damaged(lines: &mut Lines) {
    for (seed, kind) in Kind::ALL.into_iter().enumerate() {
        let at = folder();
        let files = small(at.path());
        damage(&files, kind, seed as u64).unwrap();
        lines.check(&[], &files);
        lines.check(&["--max-findings", "1"], &files);
        lines.run(&["page", "1:200", "--json"], &files);
        compared(lines, at.path(), &files);
    }
    lines.must_have("compared");
    lines.must_have("finding");
}

/// Compares the files with results of a server in which one error is missing and another error has another page.
fn compared(lines: &mut Lines, folder: &Path, files: &[PathBuf]) {
    let result = folder.join("result.txt");
    let rows =
        Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(["check", "--format", "text"]).args(files).output().unwrap();
    let text =
        String::from_utf8(rows.stdout).unwrap().replacen("Msg 89", "Msg 7995, Level 16, State 1, Line 1\nMsg 89", 1);
    fs::write(&result, text.replacen("(1:", "(9:", 1)).unwrap();
    let result = result.to_str().expect("a name of UTF-8").to_owned();
    lines.run(&["compare-dbcc", "--json", &result], files);
}

/// Produces lines of the kind `demoted`. They are findings that the log may explain.
fn demoted(lines: &mut Lines) {
    let at = folder();
    let files = small(at.path());
    damage(&files, Kind::ZeroedExtent, 3).unwrap();
    make_dirty(&files[0]);
    assert_eq!(lines.check(&[], &files), 16);
    lines.must_have("demoted");
    let limits: BTreeSet<String> =
        lines.of_kind("not_verified").filter_map(|line| line["id"].as_str().map(str::to_owned)).collect();
    let allow: Vec<&str> = limits.iter().flat_map(|id| ["--allow", id.as_str()]).collect();
    lines.check(&allow, &files);
    assert!(lines.of_kind("not_verified").any(|line| line["allowed"] == true), "{limits:?}");
}

/// Checks files of which only a small part can be read, or nothing.
fn unreadable(lines: &mut Lines) {
    let at = folder();
    let files = small(at.path());
    let mut bytes = fs::read(&files[0]).unwrap();
    bytes[9 * PAGE_BYTES..10 * PAGE_BYTES].fill(0xAA);
    fs::write(&files[0], bytes).unwrap();
    lines.check(&[], &files);
    for command in ["info", "tables", "lint"] {
        lines.run(&[command, "--json"], &files);
    }
    let text = at.path().join("text.mdf");
    fs::write(&text, "no database").unwrap();
    let before = lines.seen.len();
    assert_eq!(lines.check(&[], &[text]), 4);
    let refused: Vec<&Value> = lines.seen.iter().skip(before).collect();
    assert!(refused.len() == 1 && refused[0]["kind"] == "error" && refused[0]["status"] == 4, "{refused:?}");
}

/// Checks a file for which reads fail at first and succeed later.
fn errors(lines: &mut Lines) {
    let at = folder();
    let files = small(at.path());
    let bytes = fs::read(&files[0]).unwrap();
    let source = DataFiles::open(&files).unwrap();
    let mut file = File::options().write(true).open(&files[0]).unwrap();
    file.set_len(12 * PAGE_BYTES as u64).unwrap();
    let database = catalog::load(&source);
    file.write_all(&bytes).unwrap();
    let report = check::run(&source, &database, &Options::default(), &Silent);
    let mut out = Vec::new();
    report::write(Format::Json, &report, View::default(), &mut out).unwrap();
    lines.add(&out, "a read error");
    lines.must_have("error");
}

/// Checks several databases, one of which cannot be checked.
fn several(lines: &mut Lines) {
    let (one, other, nothing) = (folder(), folder(), folder());
    let mut files = small(one.path());
    let copy = other.path().join("copy.mdf");
    fs::copy(&files[0], &copy).unwrap();
    files.push(copy);
    assert_eq!(lines.check(&[], &files), 0);
    let empty = nothing.path().join("empty.mdf");
    fs::write(&empty, b"").unwrap();
    files.push(empty);
    assert_eq!(lines.check(&["--physical-only"], &files), 4);
    lines.must_have("databases");
}

/// Checks backups in every form that the lab can write.
fn backups(lines: &mut Lines) {
    let at = folder();
    let data = folder();
    let files = small(data.path());
    let sum = BackupOptions { checksum: true, ..BackupOptions::default() };
    let packed = BackupOptions { container: Some(Container::Version2), stripes: 2, ..sum };
    let base = Some(Base { files: &files, step: 1 });
    let mut all = Vec::new();
    for (name, step, options) in [
        ("plain", 1, sum),
        ("packed", 1, packed),
        ("differential", 2, BackupOptions { base, ..BackupOptions::default() }),
    ] {
        let written = backup(&[Set { files: &files, step, options }], at.path(), name).unwrap().files;
        if options.base.is_none() {
            assert_eq!(lines.check(&[], &written), 0, "{name}");
        }
        assert_eq!(lines.run(&["info", "--json"], &written), 0, "{name}");
        all.extend(written);
    }
    lines.run(&["chain", "--json"], &all);
    let damaged = at.path().join("damaged.bak");
    let mut bytes = fs::read(&all[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0x55);
    bytes[middle + 70_000..].fill(0);
    fs::write(&damaged, bytes).unwrap();
    lines.check(&[], std::slice::from_ref(&damaged));
    lines.run(&["info", "--json"], &[damaged]);
    lines.must_have("backup");
    lines.must_have("chains");
}

/// Reads a log with many transactions, first intact and then damaged.
fn logs(lines: &mut Lines) {
    let folder = TempDir::new().unwrap();
    let database = orders::orders(Version::V904, 7, 2 << 20);
    let log = LogFile {
        version: 904,
        has_checksum: true,
        vlf_bytes: 0x3_E000,
        vlfs: 4,
        first_sequence: 33,
        transactions: 20_000,
        leaves_open: true,
    };
    let mut bytes = log.bytes(&database);
    let path = folder.path().join("sample_log.ldf");
    fs::write(&path, &bytes).unwrap();
    let paths = std::slice::from_ref(&path);
    assert_eq!(lines.run(&["log", "--json", "--transactions"], paths), 0);
    assert_eq!(lines.run(&["info", "--json"], paths), 0);
    let of_page = |line: &Value| line["kind"] == "record" && line["page"] == 110 && line["slot"].is_number();
    assert_eq!(lines.run(&["log", "--json", "--page", "1:110", "--to", "22:0:0"], paths), 0);
    assert!(lines.seen.iter().any(of_page));
    let open = |line: &&Value| line["state"] == "open";
    assert_eq!(lines.of_kind("transaction").filter(open).count(), 2, "the one that is open, in each of the two");
    assert!(lines.of_kind("vlf").any(|line| line["active"] == true));
    let begin = bytes.len() / 4;
    bytes[begin..begin + 512].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(lines.run(&["log", "--json"], paths), 16);
    assert!(lines.of_kind("summary").any(|line| line["end"] == "damaged" && line["complete"] == false));
}

/// Reads checkpoint events in both file formats, from complete and from truncated files.
fn events(lines: &mut Lines) {
    let folder = TempDir::new().unwrap();
    let story = Story::new(1, 3, 10, true);
    let (file, export) = (folder.path().join("a.xel"), folder.path().join("b.xml"));
    fs::write(&file, story.event_file(0x1000)).unwrap();
    fs::write(&export, story.xml(XmlForm::RingBuffer { truncated: true, dropped: 3 })).unwrap();
    assert_eq!(lines.run(&["events", "--name", "checkpoint_end"], &[file.clone(), export]), 0);
    let ends = story.checkpoints.len() + story.unpaired_ends as usize;
    assert_eq!(lines.of_kind("event").count(), 2 * ends);
    assert!(lines.of_kind("event").all(|line| line["fields"]["database_id"].is_number()));
    let log = folder.path().join("ERRORLOG");
    fs::write(&log, story.error_log(5000, 60)).unwrap();
    let paths = [file.clone(), log, small(folder.path())[0].clone()];
    assert_eq!(lines.run(&["checkpoints", "--json", "--change", "5=2016-07-09T03:10Z"], &paths), 0);
    for kind in ["flush", "database", "checkpoint_hour"] {
        lines.must_have(kind);
    }
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 100]).unwrap();
    assert_eq!(lines.run(&["checkpoints", "--json"], std::slice::from_ref(&file)), 16);
    assert_eq!(lines.run(&["events", "--json"], &[file]), 16);
    assert!(lines.of_kind("error").any(|line| line["text"].as_str().unwrap().contains("is cut off at byte")));
}

fn explanations(lines: &mut Lines) {
    assert_eq!(lines.run(&["explain", "--json"], &[]), 0);
    assert_eq!(lines.run(&["explain", "--json", "8976", "2570", "823", "tree.compressed-entries"], &[]), 0);
    // The hidden snapshot of DBCC has failed, so 926 is not about the database.
    let pasted = "Msg 5128, Level 17, State 2, Line 1\nWrite to sparse file 'D:\\a.mdf:MSSQL_DBCC9' failed\n\n\
                  Msg 926, Level 21, State 6, Line 1\nDatabase 'a' cannot be opened\n\nMsg 14420, Level 16, State 1\n";
    let folder = folder();
    let path = folder.path().join("pasted.txt");
    fs::write(&path, pasted).unwrap();
    let mut explain = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    let output = explain.args(["explain", "-", "--json"]).stdin(File::open(path).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    lines.add(&output.stdout, "explain -");
    lines.must_have("pasted_case");
}

fn histories(lines: &mut Lines) {
    let folder = folder();
    let files = small(folder.path());
    let history = folder.path().join("h.db");
    let history = history.to_str().expect("a name of UTF-8");
    assert_eq!(lines.check(&["--history", history], &files), 0);
    let window = ["--history", history, "--window", "1h", "--range", "1MB"];
    assert_eq!(lines.check(&["--estimate-only", "--window", "1h"], &files), 0);
    assert_eq!(lines.check(&[&window[..], &["--most-ranges", "1", "--within", "14d"]].concat(), &files), 0);
    assert_eq!(lines.check(&window, &files), 0);
    assert_eq!(lines.check(&["--estimate-only", "--window", "1h", "--history", history], &files), 0);
    assert_eq!(lines.check(&["--within", "1d", "--history", history], &files), 0);
    lines.must_have("window");
    let full = [Set { files: &files, step: 1, options: BackupOptions::default() }];
    let full = backup(&full, folder.path(), "full").unwrap().files;
    let options = BackupOptions { base: Some(Base { files: &files, step: 1 }), ..BackupOptions::default() };
    let later = backup(&[Set { files: &files, step: 2, options }], folder.path(), "later").unwrap().files;
    assert_eq!(lines.check(&["--history", history, "--keep-parts", "1GB"], &full), 0);
    assert_eq!(lines.check(&["--history", history], &[full, later].concat()), 0);
    damage(&files, Kind::BitRot, 3).unwrap();
    assert_eq!(lines.check(&["--history", history], &files) & 1, 1);
    let bench =
        ["bench", "--repeat", "1", "--maxdop", "1", "--configurations", "full", "--history", history, "--save", "a"];
    let measured = Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(bench).args(&files).output().unwrap();
    assert!(measured.status.success());
    let ack = ["ack", "1", "--because", "x"];
    let verbs: [&[&str]; 11] = [
        &[],
        &["coverage"],
        &["runs"],
        &ack,
        &["findings"],
        &["objects"],
        &["tables"],
        &["diff"],
        &["baselines"],
        &["ledgers"],
        &["forget", "orders"],
    ];
    for verb in verbs {
        assert_eq!(lines.run(&[&["history", history, "--json"], verb].concat(), &[]), 0);
    }
}

fn plans(lines: &mut Lines) {
    let folder = folder();
    let files = small(folder.path());
    let plan = folder.path().join("plan");
    let plan = plan.to_str().expect("a name of UTF-8");
    assert_eq!(lines.run(&["plan", "--dir", plan, "--json"], &files), 0);
    assert_eq!(lines.run(&["plan", "--status", plan], &[]), 0);
    assert_eq!(lines.run(&["merge", plan, "--json"], &[]), 8);
    assert_eq!(lines.run(&["task", plan, "0"], &[]), 0);
    assert_eq!(lines.run(&["merge", plan, "--json"], &[]), 0);
    // If an index does not match its table, further tasks read the rows of the index and of the table again.
    damage(&files, Kind::LostWrite, 1).unwrap();
    let plan = folder.path().join("plan-of-hurt");
    let plan = plan.to_str().expect("a name of UTF-8");
    assert_eq!(lines.run(&["plan", "--dir", plan, "--json"], &files), 0);
    assert_eq!(lines.run(&["task", plan, "0"], &[]), 0);
    assert_eq!(lines.run(&["merge", plan, "--local-limit", "0"], &[]), 32);
    with_ledger(lines, folder.path());
}

/// The defaults of a machine, which are also in the first line of a check.
fn defaults(lines: &mut Lines) {
    let folder = folder();
    let (files, config) = (small(folder.path()), folder.path().join("own.toml"));
    std::fs::write(&config, "[check]\nmaxdop = 1\n[limits]\nmemory = \"1GB\"\n").unwrap();
    for (arguments, paths) in [(&["config", "--json"][..], &[][..]), (&["check", "--json"], &files[..])] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        let output = program.args(arguments).args(paths).env("MDFSCK_CONFIG", &config).output().expect("mdfsck runs");
        lines.add(&output.stdout, &format!("{arguments:?}"));
    }
    assert!(lines.of_kind("config").count() == 2 && lines.of_kind("run").any(|run| run["defaults"].is_array()));
}

/// A plan that leaves out what has not changed.
fn with_ledger(lines: &mut Lines, folder: &Path) {
    let chain = folder.join("chain");
    std::fs::create_dir(&chain).unwrap();
    let spec = lab::workload::Spec { transactions: 40, ..lab::workload::Spec::default() };
    let kinds = [lab::workload::SetKind::Full, lab::workload::SetKind::Differential];
    let made = lab::workload::Workload::new(spec).unwrap().chain(&kinds, Default::default(), &chain).unwrap();
    let files: Vec<_> = made.sets.iter().flat_map(|set| set.files.clone()).collect();
    let (history, plan) = (folder.join("ledgers.db"), folder.join("left-out"));
    let [history, plan] = [&history, &plan].map(|path| path.to_str().expect("a name of UTF-8"));
    lines.run(&["check", "--json", "--history", history, "--keep-parts", "1GB", "--part-pages", "8"], &files[..1]);
    assert_eq!(lines.run(&["plan", "--dir", plan, "--history", history, "--json"], &files), 0);
    assert!(lines.seen.iter().any(|line| line["bytes_left_out"].as_u64().is_some_and(|bytes| bytes > 0)));
    assert_eq!(lines.run(&["plan", "--status", plan], &[]), 0);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_line_is_as_the_published_schema_says_and_every_kind_is_met() {
    let mut lines = Lines::new();
    sound(&mut lines);
    damaged(&mut lines);
    demoted(&mut lines);
    unreadable(&mut lines);
    errors(&mut lines);
    several(&mut lines);
    plans(&mut lines);
    defaults(&mut lines);
    backups(&mut lines);
    logs(&mut lines);
    events(&mut lines);
    explanations(&mut lines);
    histories(&mut lines);
    let met: BTreeSet<&str> = lines.seen.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(met, lines.schema.kinds());
}

#[test]
fn an_unknown_a_missing_and_a_wrong_field_do_not_pass() {
    let schema = Schema::published();
    let note = json!({"kind": "note", "what": "a", "scope": "b", "reason": "c", "count": 1, "id": "d", "kind_of": "e"});
    assert_eq!(schema.errors(&note), Vec::<String>::new());
    for (name, value, word) in [
        ("extra", json!(1), "unknown field"),
        ("count", json!("1"), "not of type"),
        ("count", json!(-1), "too small"),
        ("kind", json!("notes"), "missing field"),
    ] {
        let mut wrong = note.clone();
        wrong[name] = value;
        let errors = schema.errors(&wrong).join("; ");
        assert!(errors.contains(word), "{name}: {errors}");
    }
    let mut short = note.clone();
    short.as_object_mut().unwrap().remove("reason");
    assert!(schema.errors(&short).join("; ").contains("missing field"));
    // Unknown fields must also be found in nested objects and in lists.
    let gap = json!({"object_id": 1, "table": "sysrscols", "extra": 1});
    let text = json!({"kind": "service_broker", "analyzed": {"Services": "three"}});
    assert!(schema.errors(&text).join("; ").contains("not of type"));
    assert!(!schema.errors(&gap).is_empty());
}
