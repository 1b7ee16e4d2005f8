//! The answer does not depend on the way: same findings at any degree of parallelism.

use check::{Options, Report};
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::damage::subject;

/// A damaged database checked with 1, 2, 3 and 8 threads.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let corpus = corpus.clone();
    vec![Trial::test("invariance: findings are the same with 1, 2, 3 and 8 threads", move || {
        let mut image = subject(&corpus);
        for page in (0..image.bytes.len() / 8192).skip(20).step_by(7) {
            image.bytes[page * 8192 + 4000] ^= 0x10;
        }
        let one = texts(&image.check_with(&Options { max_threads: 1, ..Options::default() }));
        if one.len() < 20 {
            return Err(Failed::from(format!("only {} findings: the test does not test", one.len())));
        }
        for threads in [2, 3, 8] {
            if texts(&image.check_with(&Options { max_threads: threads, ..Options::default() })) != one {
                return Err(Failed::from(format!("{threads} threads differ")));
            }
        }
        Ok(())
    })]
}

fn texts(report: &Report) -> Vec<String> {
    let mut texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    texts.extend(report.not_verified.iter().map(|entry| format!("{entry:?}")));
    texts.extend(report.rowsets.iter().map(|rowset| format!("{rowset:?}")));
    texts
}
