//! The answer does not depend on the way: same findings at any degree of parallelism and under any key of the hashes.

use check::{Options, Report};
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::damage::subject;
use crate::rows::Rows;

/// A damaged database checked with 1, 2, 3 and 8 threads, and under several keys.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    vec![threads(corpus.clone()), keys(corpus.clone())]
}

/// Rows without counterpart in an index and its table, which lie in different cells under different keys.
fn keys(corpus: Corpus) -> Trial {
    Trial::test("invariance: findings are the same under all keys of the hashes", move || {
        let mut image = subject(&corpus);
        let rows = Rows::of_table(&image, "SalesLT.SalesOrderDetail");
        for (number, at) in rows.at.iter().step_by(5).enumerate() {
            rows.write(&mut image, *at, rows.named("ProductID"), &(number as i32).to_le_bytes());
        }
        let check = |hash_seed, max_threads| {
            texts(&image.check_with(&Options { hash_seed, max_threads, ..Options::default() }))
        };
        let one = check(Some(1), 1);
        if one.iter().filter(|text| text.starts_with("Data row")).count() != rows.at.len().div_ceil(5) {
            return Err(Failed::from("not all rows were told: the test does not test"));
        }
        for (seed, threads) in [(Some(1), 2), (Some(2), 1), (None, 0), (None, 3)] {
            if check(seed, threads) != one {
                return Err(Failed::from(format!("seed {seed:?} with {threads} threads differs")));
            }
        }
        Ok(())
    })
}

fn threads(corpus: Corpus) -> Trial {
    Trial::test("invariance: findings are the same with 1, 2, 3 and 8 threads", move || {
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
    })
}

fn texts(report: &Report) -> Vec<String> {
    let mut texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    texts.extend(report.not_verified.iter().map(|entry| format!("{entry:?}")));
    texts.extend(report.rowsets.iter().map(|rowset| format!("{rowset:?}")));
    texts
}
