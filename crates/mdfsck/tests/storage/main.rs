//! Files in object storage must give the same results as files on disk, whatever the server answers. The program must
//! not print a secret.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod emulators;
#[path = "../../../remote/tests/server/mod.rs"]
mod server;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use lab::backup::{BackupOptions, Base, Container, Set, backup};
use lab::damage::{Kind, damage};
use lab::description::Filegroup;
use lab::{Version, orders};
use server::{Content, Line, Server};
use tempfile::TempDir;

/// A folder with a damaged database and backups of it in every form.
struct Sample {
    folder: TempDir,
    /// For each form of backup, the names of the files that are checked together.
    forms: Vec<(&'static str, Vec<String>)>,
}

impl Sample {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut description = orders::orders(Version::V904, 5, 4 << 20);
        description.filegroups = vec![Filegroup { name: "PRIMARY".to_owned(), files: 2 }];
        let sound = folder.path().join("sound");
        fs::create_dir(&sound).unwrap();
        let sound = lab::write(&description, &sound).unwrap().files;
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let copy = |file: &PathBuf| {
            let to = data.join(file.file_name().unwrap());
            fs::copy(file, &to).unwrap();
            to
        };
        let files: Vec<PathBuf> = sound.iter().map(copy).collect();
        damage(&files, Kind::KeyOrder, 3).unwrap();
        let base = Some(Base { files: &sound, step: 1 });
        let plain = BackupOptions { checksum: true, ..BackupOptions::default() };
        let packed = BackupOptions { container: Some(Container::Version2), ..plain };
        let write = |files: &[PathBuf], step, options, name: &str| {
            let written = backup(&[Set { files, step, options }], folder.path(), name).unwrap().files;
            written.iter().map(|path| name_below(folder.path(), path)).collect::<Vec<_>>()
        };
        let full = write(&sound, 1, plain, "full");
        let differential = write(&files, 2, BackupOptions { base, ..packed }, "diff");
        let forms = vec![
            ("data files", files.iter().map(|path| name_below(folder.path(), path)).collect()),
            ("backup", write(&files, 1, plain, "plain")),
            ("stripes", write(&files, 1, BackupOptions { stripes: 3, ..plain }, "stripes")),
            ("compressed", write(&files, 1, packed, "packed")),
            ("full and differential", [full, differential].concat()),
        ];
        Self { folder, forms }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The names of all files.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.forms.iter().flat_map(|(_, names)| names)
    }

    /// The output of a check of the files `names` on disk, without object storage.
    fn expected(&self, names: &[String], options: &[&str]) -> Output {
        let paths: Vec<String> = names.iter().map(|name| self.path(name).display().to_string()).collect();
        run(&["check"], &paths, options, &[])
    }

    /// Starts a server that has all files of the sample in the bucket `sql`, below `backups`.
    fn served(&self) -> Server {
        let server = Server::start();
        for name in self.names() {
            server.put(&format!("/sql/backups/{name}"), Content::Bytes(Arc::new(self.bytes(name))));
        }
        server
    }
}

fn name_below(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/")
}

/// Runs the program. Removes all variables for object storage from the program's environment, and then adds the
/// variables in `environment`.
fn run(command: &[&str], paths: &[String], options: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    for (name, _) in std::env::vars() {
        if ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|start| name.starts_with(start)) {
            program.env_remove(name);
        }
    }
    program
        .env("AWS_SHARED_CREDENTIALS_FILE", "none")
        .env("AWS_CONFIG_FILE", "none")
        .env("AWS_EC2_METADATA_DISABLED", "true");
    program.args(command).args(paths).args(options).envs(environment.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Fails unless both outputs are the same.
fn is_same(expected: &Output, found: &Output, what: &str) {
    assert_eq!(text(&found.stdout), text(&expected.stdout), "{what}: {}", text(&found.stderr));
    assert_eq!(found.status.code(), expected.status.code(), "{what}: {}", text(&found.stderr));
}

/// The exit status without bit 16, which means that something was not verified. These tests ignore this bit.
fn bits(done: &Output) -> i32 {
    done.status.code().unwrap() & !16
}

/// The environment variables that make the program use the server at `url` as S3.
fn s3(url: &str) -> [(&str, &str); 4] {
    [
        ("AWS_ENDPOINT_URL", url),
        ("AWS_ACCESS_KEY_ID", "AKIATESTKEY"),
        ("AWS_SECRET_ACCESS_KEY", "TOPSECRETKEY"),
        ("AWS_REGION", "eu-west-1"),
    ]
}

fn urls(start: &str, names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("{start}{name}")).collect()
}

#[test]
fn every_form_of_a_database_gets_the_answer_that_it_gets_on_a_disk() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    for (form, names) in &sample.forms {
        for options in [&["--maxdop", "1"][..], &["--maxdop", "4", "--memory", "96MB"]] {
            let expected = sample.expected(names, options);
            assert_eq!(bits(&expected), 1, "{form}: {}", text(&expected.stderr));
            let objects = run(&["check"], &urls("s3://sql/backups/", names), options, &s3(&url));
            is_same(&expected, &objects, form);
            let links = urls(&format!("{url}/sql/backups/"), names);
            is_same(&expected, &run(&["check"], &links, options, &[]), form);
        }
    }
}

#[test]
fn a_server_that_is_busy_and_cuts_its_answers_changes_nothing() {
    let sample = Sample::new();
    let server = sample.served();
    server.set_line(Line { latency: Duration::from_millis(3), busy: 10, cut: 5, ..Line::default() });
    let url = server.url();
    for (form, names) in &sample.forms {
        let expected = sample.expected(names, &[]);
        is_same(&expected, &run(&["check"], &urls("s3://sql/backups/", names), &[], &s3(&url)), form);
    }
}

#[test]
fn other_commands_read_objects_too() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    let (_, data) = &sample.forms[0];
    let objects = urls("s3://sql/backups/", data);
    let local: Vec<String> = data.iter().map(|name| sample.path(name).display().to_string()).collect();
    for (command, options) in [(&["tables"][..], &[][..]), (&["page", "1:9"], &[]), (&["lint"], &[])] {
        let expected = run(command, &local, options, &[]);
        is_same(&expected, &run(command, &objects, options, &s3(&url)), command[0]);
    }
    let backup = urls("s3://sql/backups/", &["plain.bak".to_owned()]);
    let info = run(&["info"], &backup, &[], &s3(&url));
    let shown = text(&info.stdout);
    assert!(info.status.success() && shown.contains("s3://sql/backups/plain.bak"), "{shown} {}", text(&info.stderr));
    let out = tempfile::tempdir().unwrap();
    let into = |name: &str| out.path().join(name).display().to_string();
    let local = run(&["export"], &local, &["--output", &into("local")], &[]);
    let remote = run(&["export"], &objects, &["--output", &into("remote")], &s3(&url));
    assert_eq!(local.status.code(), remote.status.code(), "{}", text(&remote.stderr));
    let mut names: Vec<_> = fs::read_dir(into("local")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert!(names.len() > 2);
    for name in names {
        let read = |folder: &str| fs::read(out.path().join(folder).join(&name)).unwrap();
        if !name.to_string_lossy().ends_with(".json") {
            assert!(read("local") == read("remote"), "{name:?}");
        }
    }
}

#[test]
fn folders_of_objects_are_listed() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    // Stores a full backup and its differential in separate folders, as backup jobs do.
    let [full, differential] = ["full.bak", "diff.bak"].map(|name| Content::Bytes(Arc::new(sample.bytes(name))));
    server.put("/sql/jobs/full/a.bak", full);
    server.put("/sql/jobs/diff/b.bak", differential);
    server.put("/sql/jobs/notes.txt", Content::Bytes(Arc::new(b"hello".to_vec())));
    let chain = run(&["chain"], &["s3://sql/jobs".to_owned()], &[], &s3(&url));
    let shown = text(&chain.stdout);
    for name in ["s3://sql/jobs", "a.bak", "b.bak"] {
        assert!(chain.status.success() && shown.contains(name), "{shown} {}", text(&chain.stderr));
    }
    // The data files can be given by their folder, or by a pattern.
    let (_, data) = &sample.forms[0];
    let expected = sample.expected(data, &[]);
    for path in ["s3://sql/backups/data", "s3://sql/backups/data/", "s3://sql/backups/data/*df"] {
        is_same(&expected, &run(&["check"], &[path.to_owned()], &[], &s3(&url)), path);
    }
    // Checks all databases in a folder.
    let several = run(&["check"], &["s3://sql/backups".to_owned()], &["--format", "summary"], &s3(&url));
    assert!(bits(&several) == 1, "{} {}", text(&several.stdout), text(&several.stderr));
}

#[test]
fn an_object_that_is_overwritten_during_the_check_is_an_error() {
    let sample = Sample::new();
    let mut count = 0;
    for name in ["plain.bak", "packed.bak"] {
        for after in [1, 2, 3, 5] {
            let server = Server::start();
            let path = format!("/sql/{name}");
            let bytes = sample.bytes(name);
            server.put(&path, Content::Bytes(Arc::new(bytes.clone())));
            server.overwrite_after(after, &path, Content::Bytes(Arc::new(bytes)));
            let url = format!("{}{path}", server.url());
            let done = run(&["check"], std::slice::from_ref(&url), &["--memory", "80MB"], &[]);
            let (status, stderr) = (done.status.code().unwrap(), text(&done.stderr));
            // The check may have ended with so few requests that the server never overwrote the object.
            if server.requests().len() <= after {
                continue;
            }
            count += 1;
            assert!(
                status & 4 != 0 && stderr.contains("was overwritten while it was read"),
                "{name} {after}: {status} {stderr}"
            );
            assert!(
                !text(&done.stdout).contains("Table error"),
                "nothing is said of a mixture: {}",
                text(&done.stdout)
            );
        }
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn no_output_has_a_secret_in_it() {
    let sample = Sample::new();
    let server = sample.served();
    server.require("sig=TOPSECRETSIG");
    let out = tempfile::tempdir().unwrap();
    let history = out.path().join("history.db").display().to_string();
    let good = format!("{}/sql/backups/plain.bak?sv=1&sig=TOPSECRETSIG", server.url());
    let results = out.path().join("results.txt").display().to_string();
    for (command, url, options, status) in [
        (&["check"][..], &good, &["--format", "summary"][..], Some(1)),
        (&["check"], &good, &["--format", "json", "--progress", "json"], Some(1)),
        (&["check"], &good, &["--format", "tableresults", "--history", &history], Some(1)),
        (&["check"], &good, &["--output", &results, "--progress", "lines"], Some(1)),
        (&["check"], &good, &["--no-such-option"], Some(8)),
        (&["check"], &good, &["--table", "nothing"], Some(8)),
        (&["info"], &good, &["--json"], Some(0)),
        (&["info"], &good.replace("plain", "none"), &[], Some(4)),
        (&["check"], &good.replace("TOPSECRETSIG", "OTHERTOPSECRET"), &[], Some(4)),
        (&["check"], &good.replace("127.0.0.1", "127.0.0.1.invalid"), &[], Some(4)),
        (&["chain"], &good, &[], Some(0)),
        (&["advise"], &good, &["--json"], None),
        (&["nothing"], &good, &[], Some(8)),
    ] {
        let done = run(command, std::slice::from_ref(url), options, &[]);
        let printed = format!("{}{}", text(&done.stdout), text(&done.stderr));
        if let Some(status) = status {
            assert_eq!(bits(&done), status, "{command:?} {options:?}: {printed}");
        }
        assert!(!printed.contains("TOPSECRET") && !printed.contains("sig="), "{command:?} {options:?}: {printed}");
    }
    // The environment contains the key. If the server denies access, the message must not contain the key.
    let denied = run(&["check"], &["s3://sql/backups/plain.bak".to_owned()], &[], &s3(&server.url()));
    assert!(denied.status.code() == Some(4) && !text(&denied.stderr).contains("TOPSECRET"), "{}", text(&denied.stderr));
    for entry in fs::read_dir(out.path()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(9).any(|part| part == b"TOPSECRET"));
    }
}

#[test]
fn what_is_wrong_with_a_url_is_one_line_and_a_status() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    for (path, status, said) in [
        (
            "ftp://host/x.bak".to_owned(),
            8,
            "ftp://host/x.bak: this kind of URL is not supported; URLs begin with s3://",
        ),
        (
            "s3://sql/backups/none.bak".to_owned(),
            4,
            "s3://sql/backups/none.bak: cannot be opened: no object has this name",
        ),
        ("s3://sql/none*.bak".to_owned(), 4, "s3://sql/none*.bak: nothing matches this pattern"),
        (
            "s3://localhost:1/".to_owned(),
            4,
            "s3://localhost:1/: cannot be opened: the URL names a server but no bucket",
        ),
        (format!("{url}/sql/none.bak"), 4, "/sql/none.bak: cannot be opened: no object has this name"),
    ] {
        let done = run(&["check"], &[path], &[], &s3(&url));
        let stderr = text(&done.stderr);
        assert!(done.status.code() == Some(status) && done.stdout.is_empty(), "{stderr}");
        assert!(stderr.contains(said) && stderr.trim_end().lines().count() == 1, "{stderr}");
    }
}

/// Makes a plan in the folder `name` below `out`, runs its tasks, and merges the parts.
fn spread(paths: &[String], out: &Path, name: &str, environment: &[(&str, &str)]) -> Output {
    let folder = out.join(name).display().to_string();
    let planned = run(&["plan"], paths, &["--dir", &folder, "--task-size", "4MB"], environment);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    for task in ["0", "1-2"] {
        let done = run(&["task"], &[folder.clone(), task.to_owned()], &[], environment);
        // The plan of a small backup may have only one or two tasks. A request for a later task must then be refused.
        let is_beyond = text(&done.stderr).contains("the plan has");
        assert!(done.status.success() || is_beyond, "{}", text(&done.stderr));
    }
    let missing = run(&["plan", "--status", "--missing"], std::slice::from_ref(&folder), &[], environment);
    let left = text(&missing.stdout).trim().to_owned();
    if !left.is_empty() {
        let done = run(&["task"], &[folder.clone(), left], &[], environment);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let merged = run(&["merge"], std::slice::from_ref(&folder), &[], environment);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.is_dir() || !windows::has_secret(&path), "{}", path.display());
    }
    merged
}

#[test]
fn a_check_of_objects_is_spread_over_tasks_and_a_plan_holds_no_secret() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    let out = tempfile::tempdir().unwrap();
    for (number, (form, names)) in sample.forms.iter().enumerate() {
        let expected = sample.expected(names, &[]);
        let merged = spread(&urls("s3://sql/backups/", names), out.path(), &format!("plan {number}"), &s3(&url));
        is_same(&expected, &merged, form);
    }
    // The query of the link (its part after `?`) is stored in a file. The plan and each task read it from there.
    server.require("sig=TOPSECRETSIG");
    let plain = format!("{url}/sql/backups/plain.bak");
    let links = out.path().join("links");
    fs::write(&links, format!("\n{plain}?sv=1&sig=TOPSECRETSIG\n")).unwrap();
    let links = links.display().to_string();
    let merged = spread(std::slice::from_ref(&plain), out.path(), "linked", &[("MDFSCK_SAS_FILE", &links)]);
    is_same(&sample.expected(&["plain.bak".to_owned()], &[]), &merged, "a link");
    let denied = run(&["check"], std::slice::from_ref(&plain), &[], &[]);
    assert!(text(&denied.stderr).contains("access is denied"), "{}", text(&denied.stderr));
}

#[test]
fn an_object_that_was_overwritten_since_the_plan_was_made_is_refused() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("plan").display().to_string();
    let backup = ["s3://sql/backups/plain.bak".to_owned()];
    assert!(run(&["plan"], &backup, &["--dir", &folder], &s3(&url)).status.success());
    // Writes the object again with the same bytes. A task of the old plan must report that the object was overwritten.
    server.put("/sql/backups/plain.bak", Content::Bytes(Arc::new(sample.bytes("plain.bak"))));
    let task = run(&["task"], &[folder, "0".to_owned()], &[], &s3(&url));
    assert!(task.status.code() == Some(4), "{}", text(&task.stderr));
    assert!(text(&task.stderr).contains("has been overwritten since the plan was made"), "{}", text(&task.stderr));
}

#[test]
fn a_file_of_links_that_cannot_be_used_is_one_line_without_its_content() {
    let out = tempfile::tempdir().unwrap();
    let links = out.path().join("links").display().to_string();
    let check = || run(&["check"], &["https://host/x.bak".to_owned()], &[], &[("MDFSCK_SAS_FILE", &links)]);
    let missing = check();
    assert!(missing.status.code() == Some(4) && text(&missing.stderr).contains("MDFSCK_SAS_FILE names it"));
    fs::write(&links, "https://host/x.bak?sig=TOPSECRET\nTOPSECRET\n").unwrap();
    let wrong = check();
    let stderr = text(&wrong.stderr);
    assert!(wrong.status.code() == Some(8) && stderr.contains("line 2 is not a URL with a query"), "{stderr}");
    assert!(!stderr.contains("TOPSECRET") && stderr.trim_end().lines().count() == 1, "{stderr}");
}
