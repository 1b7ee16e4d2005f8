//! The result of a check does not depend on how the check is made. The findings must be the same for any number of
//! threads, any memory grant, and any order of the given files and objects. After damage is undone, there must be no
//! finding.

pub mod damaged;
mod ways;

use std::path::PathBuf;

use check::Silent;
use findings::{Options, Report, Scope};
use format::PAGE_BYTES;
use libtest_mimic::{Failed, Trial};
use source::DataFiles;

use crate::Corpus;
use crate::damage::{REAL, subject};
use crate::image::Image;

pub use ways::trials as lab_trials;

/// Tests that check a damaged database with many different options, and a test with a database that was damaged and
/// then restored.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let trial = |name: &str, run: fn(&Corpus) -> Result<(), Failed>| {
        let corpus = corpus.clone();
        Trial::test(format!("invariance: {name}"), move || run(&corpus))
    };
    let mut trials = vec![
        trial("findings are the same with 1, 2, 3 and 8 threads and with any memory", threads_and_memory),
        trial("the order of files on the command line means nothing", file_order),
        trial("the order of objects in a scope means nothing", scope_order),
        trial("a database is sound again when its bytes are", mended),
    ];
    trials.extend(ways::trials());
    trials
}

/// A database with a changed byte on every seventh page, and with changed links on some leaf pages.
fn damaged(corpus: &Corpus) -> Image {
    let mut image = subject(corpus);
    let tree = image.tree(true);
    for page in (0..image.bytes.len() / PAGE_BYTES).skip(20).step_by(7) {
        image.bytes[page * PAGE_BYTES + 4000] ^= 0x10;
    }
    for (at, &leaf) in tree.leaves.iter().enumerate().filter(|(at, _)| at % 5 == 1) {
        image.edit(leaf, |bytes| bytes[if at % 2 == 0 { 8 } else { 16 }] ^= 1);
    }
    image
}

fn threads_and_memory(corpus: &Corpus) -> Result<(), Failed> {
    let image = damaged(corpus);
    let first = texts(&image.check_with(&Options { max_threads: 1, ..Options::default() }));
    if first.len() < 20 {
        return Err(format!("only {} findings: the test does not test", first.len()).into());
    }
    for threads in [1, 2, 3, 8] {
        for memory in [None, Some(1), Some(1 << 20), Some(64 << 20), Some(u64::MAX)] {
            let options = Options { max_threads: threads, memory_bytes: memory, ..Options::default() };
            if texts(&image.check_with(&options)) != first {
                return Err(format!("{threads} threads with {memory:?} bytes differ").into());
            }
        }
    }
    Ok(())
}

fn file_order(corpus: &Corpus) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (data, log) = (folder.path().join("a.mdf"), folder.path().join("b.ldf"));
    std::fs::write(&data, damaged(corpus).bytes)?;
    std::fs::copy(log_of(corpus)?, &log)?;
    let check = |paths: &[PathBuf]| -> Result<Vec<String>, Failed> {
        let files = DataFiles::open(paths)?;
        let database = catalog::load(&files);
        Ok(texts(&check::run(&files, &database, &Options::default(), &Silent)))
    };
    let first = check(&[data.clone(), log.clone()])?;
    for paths in [vec![log, data.clone()], vec![data], vec![folder.path().to_owned()]] {
        if check(&paths)? != first {
            return Err(format!("{paths:?} differs").into());
        }
    }
    Ok(())
}

/// A transaction log; its content does not matter.
fn log_of(corpus: &Corpus) -> Result<PathBuf, Failed> {
    let path = corpus.files.join(REAL[0]);
    let folder = path.parent().ok_or("no folder")?;
    let is_log = |path: &PathBuf| path.extension().is_some_and(|name| name.eq_ignore_ascii_case("ldf"));
    let mut beside: Vec<PathBuf> =
        std::fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path()).filter(is_log).collect();
    beside.sort();
    Ok(match beside.into_iter().next() {
        Some(log) => log,
        None => corpus.files.join("0xHamzaCakmak__Gorsel-Programlama2-sql/Database1_log.ldf"),
    })
}

fn scope_order(corpus: &Corpus) -> Result<(), Failed> {
    let image = damaged(corpus);
    let whole = image.check();
    let mut objects: Vec<i32> = whole.findings.iter().filter_map(|finding| finding.object_id()).collect();
    objects.sort_unstable();
    objects.dedup();
    if objects.len() < 3 {
        return Err("too few objects are damaged: the test does not test".into());
    }
    let of =
        |objects: Vec<i32>| texts(&image.check_with(&Options { scope: Scope::Tables(objects), ..Options::default() }));
    let ascending = of(objects.clone());
    let reversed = of(objects.iter().rev().copied().collect());
    let twice = of(objects.iter().chain(&objects).copied().collect());
    if ascending.is_empty() || ascending != reversed || ascending != twice {
        return Err("the order of the objects shows".into());
    }
    Ok(())
}

fn mended(corpus: &Corpus) -> Result<(), Failed> {
    for name in REAL {
        let original = Image::load(&corpus.files.join(name));
        let sound = texts(&original.check());
        let mut image = original.clone();
        for page in (0..image.bytes.len() / PAGE_BYTES).step_by(11) {
            image.bytes[page * PAGE_BYTES + 200] ^= 0xFF;
        }
        if image.check().findings.is_empty() {
            return Err(format!("{name}: the damage does not show").into());
        }
        for page in (0..image.bytes.len() / PAGE_BYTES).step_by(11) {
            image.bytes[page * PAGE_BYTES + 200] ^= 0xFF;
        }
        let report = image.check();
        if !report.findings.is_empty() || texts(&report) != sound {
            return Err(format!("{name}: something stayed behind").into());
        }
    }
    Ok(())
}

fn texts(report: &Report) -> Vec<String> {
    let mut texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    texts.extend(report.not_verified.iter().map(|entry| format!("{entry:?}")));
    texts.extend(report.rowsets.iter().map(|rowset| format!("{rowset:?}")));
    texts
}
