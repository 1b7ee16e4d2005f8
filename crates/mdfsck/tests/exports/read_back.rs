//! Reads the values of an export with other programs (`read_back.py`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::{Version, every_type, histories};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::json;

use crate::{corpus, counts, ensure, environment, export, skipped};

const OF_LAB: &str = "read back: every type in every version and compression is the lab's truth";
const OF_SAMPLE: &str = "read back: real databases, by all readers the same";
const OF_ALL: &str = "read back: every real database, by all readers the same";
const FORMATS: [&str; 4] = ["csv", "jsonl", "parquet", "sql"];
const SEED: u64 = 3;
/// The name of the tables with large values. Only one database version has these tables, because large values are
/// stored the same way in all versions.
const LONG_VALUES: &str = "long_values";
const VERSION_OF_LONG_VALUES: Version = Version::V852;

/// A real database that contains most types. Reading its exported files takes a few seconds.
const SAMPLE: [&str; 1] = ["jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf"];

pub(crate) fn trials(arguments: &Arguments) -> Vec<Trial> {
    let is_wanted = |name: &str| arguments.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    // The Python environment is installed only if a test needs it.
    let python = match arguments.list || ![OF_LAB, OF_SAMPLE, OF_ALL].into_iter().any(is_wanted) {
        true => PathBuf::new(),
        false => match environment::python() {
            Ok(python) => python,
            Err(why) => return [OF_LAB, OF_SAMPLE].map(|name| without_python(name, &why)).into(),
        },
    };
    let of_lab = python.clone();
    let mut trials = vec![Trial::test(OF_LAB, move || types(&of_lab))];
    if let Some((files, lists)) = corpus() {
        let (of_sample, all_files) = (python.clone(), files.clone());
        let sample = move || real(&of_sample, &files, SAMPLE.map(str::to_owned).into());
        trials.push(Trial::test(OF_SAMPLE, sample));
        let all = move || {
            let lists = counts::LISTS.iter().map(|list| counts::expected(&lists.join(list)));
            real(&python, &all_files, lists.flat_map(|files| files.into_keys()).collect())
        };
        // This test takes minutes, so it runs only if the test filter names it.
        if arguments.filter.as_deref().is_some_and(|filter| OF_ALL.contains(filter)) {
            trials.push(Trial::test(OF_ALL, all));
        }
    } else {
        trials.push(skipped("read back: skipped, no real database files in target/corpus"));
    }
    trials
}

/// A test that cannot run without Python. It is ignored with a reason, or it fails if the Python environment is
/// required.
fn without_python(name: &str, why: &str) -> Trial {
    let outcome = trials::tools::without(&[environment::TOOL], why);
    Trial::ignorable_test(name, move || Ok(Completion::ignored_with(outcome?)))
}

fn types(python: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut databases = Vec::new();
    let schemas = |version| [every_type::types(version, SEED), histories::histories(version, SEED)];
    for (version, description) in Version::ALL.into_iter().flat_map(|version| schemas(version).map(|of| (version, of)))
    {
        let source = folder.path().join(format!("{} {version:?}", description.name));
        fs::create_dir(&source)?;
        lab::write(&description, &source)?;
        let exported = folder.path().join(format!("{} of {version:?}", description.name));
        fs::create_dir(&exported)?;
        let mut truth = fs::File::create(exported.join("truth.jsonl"))?;
        let mut options = Vec::new();
        for table in lab::truth::truth(&description) {
            if table.table.starts_with(LONG_VALUES) && version != VERSION_OF_LONG_VALUES {
                continue;
            }
            writeln!(truth, "{}", json!({"table": table.table, "columns": table.columns, "rows": table.rows}))?;
            options.extend(["--table".to_owned(), table.table]);
        }
        export_all(&source, &exported, &options)?;
        databases.push(exported);
    }
    read(python, &databases)
}

/// Exports real databases, and reads the exported files with other programs.
fn real(python: &Path, files: &Path, paths: Vec<String>) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut databases = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
        let exported = folder.path().join(format!("{number} {name}"));
        export_all(&files.join(path), &exported, &[])?;
        // The export of a database without tables has no files to read.
        if fs::read_dir(exported.join("csv"))?.next().is_some() {
            databases.push(exported);
        }
    }
    read(python, &databases)
}

fn export_all(source: &Path, to: &Path, options: &[String]) -> Result<(), Failed> {
    for format in FORMATS {
        let options = ["--format", format].into_iter().chain(options.iter().map(String::as_str)).collect::<Vec<_>>();
        let output = export(source, &to.join(format), &options);
        // A T-SQL script cannot express some values. The export lists these values, and its exit status is 16.
        let is_written = matches!(output.status.code(), Some(0 | 16));
        ensure(is_written, format!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr)))?;
    }
    Ok(())
}

fn read(python: &Path, databases: &[PathBuf]) -> Result<(), Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports/read_back.py");
    let output = Command::new(python).arg(script).args(databases).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    ensure(output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}
