//! Storage snapshots of a database in use, each checked in some windows of time and as a whole.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use check::Silent;
use check::change::{NotByChange, differing_parts};
use findings::registry::limits;
use findings::{Change, Options, Report};
use format::allocation::FixedPage;
use format::page::PAGE_BYTES;
use jobs::change;
use jobs::failure::Failure;
use jobs::request::Request;
use jobs::version::BUILD;
use lab::workload::{Chain, ChainSnapshot};
use parts::Ledger;
use serde_json::Value;
use source::PageSource;
use trials::mutate::Random;

use super::night::{LARGE, Opened, Settings, of_state, opened, window};
use super::{Figures, windows};
use crate::outcome::Verdict;

/// Windows over data files that a chain of windows has proven by change.
pub(super) const PROVEN: &str = "snapshots: windows by change";
pub(super) const STATES: &str = "snapshots: states";
pub(super) const PARTS: &str = "snapshots: parts kept, each equal to a fresh sweep";
const ROT: &str = "snapshots: bytes that are bad in all of them";
/// The most bytes that are bad in all snapshots.
const MOST_ROT: usize = 3;

/// Bytes that the storage returns wrongly from the first snapshot on.
#[derive(Default)]
pub(super) struct Rot {
    seed: u64,
    /// File, offset and the bits that are wrong.
    places: Option<Vec<(usize, u64, u8)>>,
    count: usize,
}

impl Rot {
    pub(super) fn of(random: &mut Random) -> Self {
        let count = if random.below(3) == 0 { 1 + random.below(MOST_ROT) } else { 0 };
        Self { seed: random.number(), places: None, count }
    }

    /// Damages the data files of a snapshot.
    fn spoil(&mut self, files: &[PathBuf]) -> io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        let is_data = |path: &&PathBuf| path.extension().is_none_or(|extension| extension != "ldf");
        let data: Vec<&PathBuf> = files.iter().filter(is_data).collect();
        if self.places.is_none() {
            let mut random = Random::new(self.seed);
            let mut places = Vec::new();
            while places.len() < self.count {
                let file = random.below(data.len());
                let pages = std::fs::metadata(data[file])?.len() / PAGE_BYTES as u64;
                let page = random.below(pages as usize) as u32;
                if page >= 16 && FixedPage::at(format::PageId::new(1 + 2 * file as u16, page)).is_none() {
                    let at = u64::from(page) * PAGE_BYTES as u64 + random.below(PAGE_BYTES) as u64;
                    places.push((file, at, 1 << random.below(8)));
                }
            }
            self.places = Some(places);
        }
        for (file, at, bits) in self.places.iter().flatten() {
            let file = std::fs::File::options().read(true).write(true).open(data[*file])?;
            let mut byte = [0];
            // A file may have become shorter.
            if file.read_at(&mut byte, *at)? == 1 {
                file.write_at(&[byte[0] ^ bits], *at)?;
            }
        }
        Ok(())
    }
}

/// The snapshots of a database, which are checked one after another with the same ledger.
pub(super) struct Snapshots<'f> {
    history: PathBuf,
    settings: Settings,
    figures: &'f mut Figures,
}

impl<'f> Snapshots<'f> {
    pub(super) fn new(folder: &Path, settings: Settings, figures: &'f mut Figures) -> Self {
        Self { history: folder.join("snapshots.db"), settings, figures }
    }

    /// Checks all snapshots of a trial.
    pub(super) fn prove_all(&mut self, chain: &Chain, rot: &mut Rot) -> Result<(), Verdict> {
        self.count(ROT, rot.count as u64);
        for (number, snapshot) in chain.snapshots.iter().enumerate() {
            rot.spoil(&snapshot.files).map_err(|error| Verdict::Broke(error.to_string()))?;
            let is_last = number + 1 == chain.snapshots.len();
            self.prove(snapshot, rot.count == 0, is_last)
                .map_err(|verdict| of_state(verdict, &format!("in snapshot {}", number + 1)))?;
        }
        Ok(())
    }

    fn prove(&mut self, snapshot: &ChainSnapshot, is_sound: bool, is_last: bool) -> Result<(), Verdict> {
        let mut request = Request::of_paths(snapshot.files.clone());
        request.run.maxdop = self.settings.threads;
        let broke = |failure: Failure| Verdict::Broke(failure.text);
        let mut whole = opened(&request, |opened, _| {
            jobs::judge::check_pages(opened.request, opened.what, opened.source(), opened.prepared, &Silent)
        })
        .map_err(broke)?;
        forget_audit(&mut whole);
        if let Some(finding) = whole.findings.iter().next().filter(|_| is_sound) {
            return Err(Verdict::FalseAlarm(format!("{} {}", finding.check.id, finding.text(&whole.names()))));
        }
        self.count(STATES, 1);
        // Short windows, so that the next ones have something left to keep. The last one reads everything that is left.
        let short = 1 + self.settings.windows.1 % 16;
        let lengths = std::iter::repeat_n(short, 1 + self.settings.windows.0).chain(is_last.then_some(u64::MAX));
        for most_ranges in lengths {
            let request = self.window_request(&request, most_ranges);
            let (mut report, parts) =
                opened(&request, |opened, _| Ok((window(opened)?, self.compare_parts(opened)))).map_err(broke)?;
            self.count(PARTS, parts.map_err(Verdict::Differs)?);
            forget_audit(&mut report);
            if report.notes.iter().any(|note| note.limit == &limits::CHANGE_UNTRUSTED) {
                return Err(Verdict::FalseAlarm(format!("{:?}", report.notes)));
            }
            windows::compare(&whole, &report, self.figures)?;
            match &report.change {
                Some(Change::Proven(change)) => {
                    self.count(PROVEN, 1);
                    self.count("snapshots: windows that kept parts of others", u64::from(change.bytes_kept > 0));
                    self.count("snapshots: bytes kept", change.bytes_kept);
                    self.count("snapshots: bytes read", change.bytes_read);
                    for (reason, count) in &change.reasons {
                        self.count(&format!("snapshots: ranges swept: {reason}"), *count);
                    }
                    if change.bytes_open == 0 {
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
        }
        if is_last { Err(Verdict::Broke("the last window leaves something".to_owned())) } else { Ok(()) }
    }

    fn window_request(&self, request: &Request, most_ranges: u64) -> Request {
        let mut request = request.clone();
        request.results.history = Some(self.history.clone());
        request.keep_parts = Some(LARGE);
        request.part_pages = Some(self.settings.part_pages);
        request.windows.window = Some(Duration::from_secs(3600));
        request.windows.most_ranges = Some(most_ranges);
        request
    }

    /// Compares each part that the next window would use with a fresh sweep of its range. Returns the number of parts.
    fn compare_parts(&self, opened: &Opened<'_>) -> Result<u64, String> {
        let Ok((source, path)) = change::in_window(opened.input.pages(), opened.prepared, &self.history) else {
            return Ok(0);
        };
        if !path.is_file() {
            return Ok(0);
        }
        let ledger: Ledger<Value> = Ledger::open(&path, &BUILD).map_err(|error| error.to_string())?;
        let options = Options { hash_key: Some(ledger.key()), ..opened.prepared.options.clone() };
        match differing_parts(&source as &dyn PageSource, &opened.prepared.database, &options, &ledger) {
            Ok((count, differing)) if differing.is_empty() => Ok(count),
            Ok((count, differing)) => Err(format!(
                "{} of {count} parts are not what a sweep gives, first {:?}",
                differing.len(),
                differing.first()
            )),
            Err(NotByChange::Database(_)) => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }

    fn count(&mut self, name: &str, count: u64) {
        *self.figures.entry(name.to_owned()).or_default() += count;
    }
}

/// Removes what the audit says about its own work: in a window, it compares fewer pages.
fn forget_audit(report: &mut Report) {
    report.notes.retain(|note| note.limit != &limits::AUDIT_UNCHANGED);
    report.options.log_audit = None;
}
