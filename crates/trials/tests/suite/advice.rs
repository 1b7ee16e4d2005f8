//! Tests of `mdfsck advise`. The steps for each kind of damage are compared with committed tables, so that people can
//! review the steps. Further tests require that each step has the effect that it promises.

#![allow(clippy::unwrap_used, clippy::panic)]

mod backups;
mod carried_out;
#[path = "../../../mdfsck/tests/exports/environment.rs"]
mod environment;
mod kinds;
mod names;
mod parts;
mod structures;
mod tsql;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use advise::backups::Backups;
use advise::{Plan, Request, Step};
use check::Silent;
use findings::{Options, Report};
use format::page::PAGE_BYTES;
use format::{Page, PageBytes, PageId};
use script::{Definitions, Script};
use source::{MemoryFiles, PageSource};
use trials::mutate::seal;

/// The root folder of the workspace. The Python environment is in a folder below it.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Checks a database. Returns the report and the plan.
fn advice(source: &dyn PageSource, backups: Option<&Backups>) -> (Report, Plan) {
    let database = catalog::load(source);
    let report = check::run(source, &database, &Options { max_threads: 1, ..Options::default() }, &Silent);
    let definitions = Definitions::load(source, &database);
    let request = Request {
        report: &report,
        source,
        database: &database,
        script: Script::new(&database, &definitions),
        backups,
        paths: "a.mdf",
    };
    let plan = advise::plan(&request);
    (report, plan)
}

/// The backup sets in these files, by database.
fn backups(files: &[PathBuf]) -> Backups {
    let media: Vec<_> = files.iter().map(|path| source::backup::media(path).unwrap()).collect();
    Backups { databases: source::backup::chains(&media), memory_bytes: None }
}

/// Sets a database to the full recovery model, so that its log is kept for log backups
/// (docs/format/boot-and-file-headers.md#boot-page).
fn in_full_recovery(bytes: &mut [u8]) {
    const RECORD: usize = 96;
    let page: &mut PageBytes = (&mut bytes[9 * PAGE_BYTES..][..PAGE_BYTES]).try_into().unwrap();
    page[RECORD + 0x24] &= !0x8;
    let checkpoint: [u8; 10] = page[RECORD + 0x15C..][..10].try_into().unwrap();
    page[RECORD + 0x280..][..10].copy_from_slice(&checkpoint);
    seal(page);
}

/// Writes a lab database, and sets it to the full recovery model.
fn write(description: &lab::Description, folder: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let files = lab::write(description, folder).unwrap().files;
    let mut bytes = fs::read(&files[0]).unwrap();
    in_full_recovery(&mut bytes);
    fs::write(&files[0], bytes).unwrap();
    files
}

/// Opens data files in memory.
fn open(files: &[PathBuf]) -> MemoryFiles {
    MemoryFiles::open(files.iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()).unwrap()
}

/// The object and index to which a page belongs, according to its header; `None` if the catalog does not know the
/// allocation unit.
fn owner(source: &dyn PageSource, database: &catalog::Database, page: PageId) -> Option<(i32, i32)> {
    let bytes = source.read_page(page)?;
    let unit = database.unit_index(Page::new(&bytes).header().alloc_unit())?;
    let rowset = database.rowset_of(&database.units[unit])?;
    Some((rowset.object_id, rowset.index_id))
}

/// A step as one line: its action, its object and index, and its pages.
fn line(step: &Step) -> String {
    let about = [step.object.as_deref(), step.index.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let pages: Vec<String> = step.pages.iter().map(ToString::to_string).collect();
    format!("    {:<23} {about:<40} {}", step.action.name(), pages.join(" ")).trim_end().to_owned()
}

/// The actions of a plan, in order.
fn actions(plan: &Plan) -> Vec<&'static str> {
    plan.steps.iter().map(|step| step.action.name()).collect()
}

/// Compares a table with the committed file `name`. Overwrites the file first if MDFSCK_WRITE_BASELINE is set.
fn compare(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/advice").join(name);
    if std::env::var_os("MDFSCK_WRITE_BASELINE").is_some() {
        fs::write(&path, now).unwrap();
    }
    let then = fs::read_to_string(&path).unwrap_or_default();
    let lines: BTreeSet<&str> = then.lines().collect();
    let new: Vec<&str> = now.lines().filter(|line| !lines.contains(line)).collect();
    assert_eq!(then, now, "MDFSCK_WRITE_BASELINE=1 writes {name}; new lines: {new:#?}");
}
