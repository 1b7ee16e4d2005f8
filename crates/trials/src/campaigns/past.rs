//! Takes real databases at rest back along their logs, to earlier points in time at which they were in use. Recovery
//! must then restore the state of the chosen point in time. Some trials also damage a page: they remove its last
//! changes or change a byte. In these trials, the comparison of the pages with the log must report the damage.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use format::log::change::Change;
use format::record::status;
use format::{Page, PageBytes, PageId};
use source::{MemoryFiles, PageSource};
use trials::in_use::{differences, recover};
use trials::mutate::{Random, seal};

use super::Bench;
use super::crashes::{GRANTS, same_pages};
use crate::outcome::{Outcome, Verdict};
use crate::real_pairs::{self, Moment, Pair};
use crate::subject::{check_pages, folder};

/// The number of consecutive trials that use the same database.
const TRIALS_PER_PAIR: u64 = 10;
/// Of eight trials, on average this many damage a page.
const PLANTED_OF_EIGHT: usize = 3;
/// The maximum number of attempts to find a page that can be damaged.
const TRIES: usize = 200;

/// The most recently used databases with their logs.
#[derive(Default)]
pub(crate) struct Pairs(Mutex<Vec<(usize, Option<Arc<Pair>>)>>);

impl Pairs {
    fn of(&self, seed: u64) -> Option<Arc<Pair>> {
        let files = real_pairs::files();
        let number = (seed / TRIALS_PER_PAIR) as usize % files.len().max(1);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pair)) = kept.iter().find(|(own, _)| *own == number) {
            return pair.clone();
        }
        let pair = files.get(number).and_then(|(data, log)| Pair::open(data, log)).map(Arc::new);
        kept.push((number, pair.clone()));
        if kept.len() > 4 {
            kept.remove(0);
        }
        pair
    }
}

/// A page that was damaged, and its content after the damage.
struct Planted {
    kind: &'static str,
    page: PageId,
    bytes: PageBytes,
}

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let Some(pair) = bench.pairs.of(seed) else { return Outcome::new("no such pair", "", Verdict::Kept) };
    let moment = pair.moment(&mut random);
    let Some((moment, truth)) = moment.and_then(|moment| pair.truth(&moment).map(|truth| (moment, truth))) else {
        return Outcome::new("moment not known", &pair.name, Verdict::Kept);
    };
    let Some(mut source) = pair.on_disk(&truth, &moment, &mut random) else {
        return Outcome::new("moment not known", &pair.name, Verdict::Kept);
    };
    let wanted = random.below(8) < PLANTED_OF_EIGHT;
    let planted = wanted.then(|| plant(&pair, &moment, &truth, &source, &mut random)).flatten();
    if let Some(planted) = &planted
        && let Ok(changed) = source.with_pages([(planted.page, planted.bytes)])
    {
        source = changed;
    }
    let (name, log) = pair.log(&moment);
    bench.keep(|| vec![pair.contents(&source), (name.clone(), log.clone())]);
    let folder = folder();
    let log_path = folder.path().join(name);
    let written = std::fs::write(&log_path, log);
    let has_open = pair.has_open(&moment);
    let what = format!("{} at {}, redo from {}", pair.name, moment.end, moment.redo_from());
    let (kind, verdict) = match (written, &planted) {
        (Err(error), _) => ("no disk", Verdict::Broke(error.to_string())),
        (Ok(()), Some(planted)) => (planted.kind, audited(&source, &log_path, planted.page)),
        (Ok(()), None) => {
            let verdict =
                recovered(&source, &log_path, (!has_open).then_some(&truth), seed).unwrap_or_else(|verdict| verdict);
            (if has_open { "open transactions" } else { "nothing open" }, verdict)
        }
    };
    let page = planted.map_or(String::new(), |planted| format!(", {}", planted.page));
    Outcome::new(kind, what + &page, verdict)
}

/// Judges the recovery of the pages; returns an error if the recovery failed. `truth` is the state of the pages at the
/// point in time to which the log leads, or `None` if a transaction was open at that time.
fn recovered(source: &MemoryFiles, log: &Path, truth: Option<&MemoryFiles>, seed: u64) -> Result<Verdict, Verdict> {
    let broke = |text: String| Verdict::Broke(text);
    let [one, other] = GRANTS.map(|grant| recover(source, log, grant));
    let recovered = match one {
        Err(refusal) if refusal.contains("upgrade") => return Ok(Verdict::Refused),
        one => one.map_err(|refusal| broke(format!("refused: {refusal}")))?,
    };
    let with_less = other.map_err(|refusal| broke(format!("refused with less memory: {refusal}")))?;
    same_pages(&recovered, &with_less)?;
    if !recovered.audit.findings.is_empty() {
        return Err(Verdict::FalseAlarm(format!("against the log: {:?}", recovered.audit.findings)));
    }
    let report = check_pages(&recovered.pages, seed);
    if let Some(finding) = report.findings.first() {
        return Err(Verdict::FalseAlarm(finding.text(&report.names())));
    }
    let Some(truth) = truth else {
        return Ok(if recovered.doubt().is_some() { Verdict::NotVerified } else { Verdict::Kept });
    };
    // The trial may use an earlier checkpoint than a server would have in the boot page. The log then contains
    // checkpoints that the boot page does not know, and recovery is right to report a doubt.
    let is_expected = |doubt: &String| doubt.contains("checkpoints that the boot page does not know");
    if let Some(doubt) = recovered.doubt().filter(|doubt| !is_expected(doubt)) {
        return Err(broke(format!("not recovered: {doubt}")));
    }
    match differences(&recovered.pages, truth).first() {
        Some(page) => Err(broke(format!("wrong: {page} is not as it was"))),
        None => Ok(Verdict::Kept),
    }
}

/// Judges the audit of a damaged page.
fn audited(source: &MemoryFiles, log: &Path, page: PageId) -> Verdict {
    let Ok(recovered) = recover(source, log, GRANTS[0]) else { return Verdict::Refused };
    let audit = &recovered.audit;
    if audit.findings.iter().any(|finding| finding.page == Some(page)) {
        return Verdict::Right;
    }
    match audit.findings.first() {
        Some(finding) => Verdict::Elsewhere(format!("{finding:?}")),
        None if audit.doubts.is_empty() && recovered.doubt().is_none() => Verdict::Silent,
        None => Verdict::NotVerified,
    }
}

/// Makes damage that no checksum reveals: a page without its last changes, a page from a later time, or a page with a
/// wrong byte.
fn plant(
    pair: &Pair,
    moment: &Moment,
    truth: &MemoryFiles,
    source: &MemoryFiles,
    random: &mut Random,
) -> Option<Planted> {
    let pages = pair.pages();
    let kind = random.below(3);
    (0..TRIES).find_map(|_| {
        let page = *random.pick(&pages)?;
        let is_eligible = page != PageId::BOOT && page.page != 0 && trials::in_use::is_allocated(truth, page);
        if !is_eligible {
            return None;
        }
        let (kind, bytes) = match kind {
            0 => ("lost write", pair.before_redo(page, moment, random)?),
            1 => ("changed image", changed_image(pair, moment, page, source, random)?),
            // If a transaction is open, recovery may roll back the allocation of the page, and then the page's content
            // does not matter.
            _ if pair.has_open(moment) => return None,
            _ => ("page of the future", pair.after(page, moment, random)?),
        };
        Some(Planted { kind, page, bytes })
    })
}

/// Changes one byte of a page, within the bytes that the last log record of the page wrote. The page must already
/// contain the change of this record, because the audit compares a page with the log only if the page contains all its
/// logged changes.
fn changed_image(
    pair: &Pair,
    moment: &Moment,
    page: PageId,
    source: &MemoryFiles,
    random: &mut Random,
) -> Option<PageBytes> {
    let mut bytes = source.read_page(page)?;
    let (lsn, record) = pair.last_record(page, moment)?;
    if lsn != Page::new(&bytes).header().lsn() {
        return None;
    }
    let (at, length) = match record.change()? {
        Change::Insert { images, over_ghost: false } if images.len() == 1 => (0, images.first()?.len()),
        Change::ModifyRow(piece) => (usize::from(piece.new_offset), piece.after.len()),
        _ => return None,
    };
    let row = usize::from(Page::new(&bytes).slot_offset(record.on_page()?.slot)?);
    // SQL Server does not log version tags, so the log does not describe a row with a version tag completely.
    if bytes.get(row)? & status::VERSION_TAG != 0 {
        return None;
    }
    // Skips the bytes that give the length of the row, because the page must stay readable.
    let at = (at.max(4)..at + length).nth(random.below(length.saturating_sub(4).max(1)))?;
    *bytes.get_mut(row + at)? ^= 1 << random.below(8);
    format::protection::undo_torn_bits(&mut bytes);
    seal(&mut bytes);
    Some(*bytes)
}
