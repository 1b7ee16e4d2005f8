//! Tests of pages in flight, which are pages that the log of a backup still changes. A fault that a page in flight may
//! explain is listed as not verified, and is never a finding.

use std::fs;
use std::path::PathBuf;

use format::PageId;
use format::bytes::{u16_at, u32_at};
use format::page::PAGE_BYTES;
use libtest_mimic::{Failed, Trial};
use source::BackupPages;
use tempfile::TempDir;

use super::run;
use crate::Corpus;
use crate::image::{put_page, put16, seal};

/// A backup whose log contains log records about many pages. Each of these log records is older than the copy of its
/// page in the backup.
const SUBJECT: &str =
    "Apress__pro-sql-server-2012-bi-solutions/_BookFiles/Chapter07Files/FilledDWPubsSalesDB/DWPubsSales_AfterETL.bak";
/// Offset of the first page in this backup.
const FIRST_PAGE: usize = 7680;

pub(super) fn trials(corpus: &Corpus) -> Vec<Trial> {
    let file = corpus.files.join(SUBJECT);
    vec![Trial::test("backups: damage on pages in flight is not verified, elsewhere it is found", move || {
        damage(&file)
    })]
}

struct Lab {
    folder: TempDir,
    bytes: Vec<u8>,
}

impl Lab {
    /// Changes the page at `at` and corrects its protection.
    fn edit(&self, at: usize, change: impl FnOnce(&mut [u8; PAGE_BYTES])) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let page = bytes[at..].first_chunk_mut::<PAGE_BYTES>().expect("page");
        change(page);
        seal(page);
        bytes
    }

    fn open(&self, bytes: &[u8]) -> Result<BackupPages, Failed> {
        let file: PathBuf = self.folder.path().join("a.bak");
        fs::write(&file, bytes)?;
        BackupPages::open(&[file], &[]).map_err(|error| error.to_string().into())
    }
}

/// Lowers the LSN of a page, so that the page is older than the last log record about it.
fn age(page: &mut [u8; PAGE_BYTES]) {
    let slot = u16_at(page, 48).unwrap_or_default();
    put16(page, 48, slot.saturating_sub(1));
}

fn damage(file: &PathBuf) -> Result<(), Failed> {
    let lab = Lab { folder: TempDir::new()?, bytes: fs::read(file)? };
    let mut tried = 0;
    for at in (FIRST_PAGE..lab.bytes.len() - PAGE_BYTES).step_by(PAGE_BYTES) {
        let page = &lab.bytes[at..at + PAGE_BYTES];
        let id = PageId::new(u16_at(page, 36).unwrap_or_default(), u32_at(page, 32).unwrap_or_default());
        let is_leaf = page[0] == 1 && matches!(page[1], 1 | 2) && page[3] == 0 && u16_at(page, 22) > Some(1);
        if !is_leaf || id.file != 1 {
            continue;
        }
        let aged = lab.open(&lab.edit(at, age))?;
        if aged.in_flight() != Some(&[id]) {
            continue;
        }
        tried += 1;
        let report = run(&aged);
        if !report.findings.is_empty() {
            return Err(format!("{id} in flight: {:?}", report.findings.first()).into());
        }
        // Writes a link to a page that cannot be a neighbor. This must be a finding if the changed page is not in
        // flight. If the page is in flight, there must be no finding.
        let break_link = |page: &mut [u8; PAGE_BYTES]| put_page(page, 16, PageId::new(1, 9));
        let settled = run(&lab.open(&lab.edit(at, break_link))?);
        if settled.findings.is_empty() {
            return Err(format!("{id}: a broken link is not found").into());
        }
        let aged = lab.open(&lab.edit(at, |page| {
            age(page);
            break_link(page);
        }))?;
        let report = run(&aged);
        if let Some(finding) = report.findings.first() {
            return Err(format!("{id} in flight, yet {finding:?}").into());
        }
        if !report.not_verified.iter().any(|entry| entry.reason.starts_with("in flight")) {
            return Err(format!("{id}: what is in flight is not reported").into());
        }
    }
    if tried == 0 { Err("no page is touched by the log: the test does not test".into()) } else { Ok(()) }
}
