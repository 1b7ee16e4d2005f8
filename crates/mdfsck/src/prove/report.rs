//! The summary of a run of the kit: a table per kind of damage, and the page.

use std::fs;
use std::path::{Path, PathBuf};

use jobs::failure::Failure;
use serde_json::Value;

use super::listing::Listing;
use super::{page, read};
use crate::output;

/// How a copy ended: the fourth column of cases.tsv.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Server and mdfsck agree.
    Agree,
    /// They differ.
    Differ,
    /// There is no result to compare: the server gave none, or only a part, or mdfsck could not compare it.
    Refused,
    /// The database has no place for this kind of damage.
    NotOffered,
    /// The kit stopped, for example because its disk is full.
    Stopped,
}

impl Verdict {
    const ALL: [Self; 5] = [Self::Agree, Self::Differ, Self::Refused, Self::NotOffered, Self::Stopped];

    /// The name in cases.tsv.
    fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::Refused => "refused",
            Self::NotOffered => "not-offered",
            Self::Stopped => "stopped",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::Refused => "no result to compare",
            Self::NotOffered => "no place for this damage",
            Self::Stopped => "stopped",
        }
    }
}

/// The numbers of messages of one or more copies.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    pub(super) both: u64,
    pub(super) server: u64,
    pub(super) mdfsck: u64,
    pub(super) other_number: u64,
    /// Messages that only one prints for a known reason.
    pub(super) explained: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.both += other.both;
        self.server += other.server;
        self.mdfsck += other.mdfsck;
        self.other_number += other.other_number;
        self.explained += other.explained;
    }

    pub(super) fn cells(self) -> [String; 5] {
        [self.both, self.server, self.mdfsck, self.other_number, self.explained].map(|count| count.to_string())
    }
}

/// A copy: a line of cases.tsv, and its comparison.
pub(super) struct Case {
    pub(super) number: String,
    pub(super) kind: String,
    pub(super) seed: String,
    pub(super) verdict: Verdict,
    /// How the server got the files, if not simply attached.
    pub(super) way: String,
    pub(super) text: String,
    pub(super) counts: Counts,
    /// Whether the server's results have all that it found.
    is_whole: bool,
}

impl Case {
    /// Whether there are two results that were compared.
    fn is_compared(&self) -> bool {
        matches!(self.verdict, Verdict::Agree | Verdict::Differ)
    }

    /// The folder with the results of this copy, within the folder of the run.
    pub(super) fn folder(&self) -> String {
        format!("cases/{}-{}", self.number, self.kind)
    }
}

/// All copies with one kind of damage.
pub(super) struct OfKind {
    pub(super) kind: String,
    pub(super) copies: usize,
    /// The numbers of copies by verdict, in the order of `Verdict::ALL`.
    verdicts: [usize; Verdict::ALL.len()],
    pub(super) counts: Counts,
}

impl OfKind {
    pub(super) fn cells(&self) -> Vec<String> {
        let [agree, differ, refused, not_offered, stopped] = self.verdicts;
        let numbers = [self.copies, agree, differ, refused + stopped, not_offered].map(|count| count.to_string());
        std::iter::once(self.kind.clone()).chain(numbers).chain(self.counts.cells()).collect()
    }
}

/// The names of the columns of `OfKind::cells`.
pub(super) const COLUMNS: [&str; 11] = [
    "kind",
    "copies",
    "agree",
    "differ",
    "no result",
    "not offered",
    "found by both",
    "server alone",
    "mdfsck alone",
    "other number",
    "explained",
];

/// A run of the kit.
pub(super) struct Run {
    pub(super) server: String,
    pub(super) cases: Vec<Case>,
    /// The name of each command that the sound copy got in addition, and what it printed, or why there is nothing to
    /// compare.
    pub(super) listings: Vec<(&'static str, Result<Listing, String>)>,
}

impl Run {
    fn load(dir: &Path) -> Result<Self, Failure> {
        let lines = read(&dir.join("cases.tsv"))?;
        let cases: Vec<Case> = lines.lines().map(|line| case(dir, line)).collect::<Result<_, _>>()?;
        let server = read(&dir.join("run.tsv")).unwrap_or_default();
        let server = server.lines().find_map(|line| line.strip_prefix("server\t")).unwrap_or("unknown").to_owned();
        let mut listings = Vec::new();
        if let Some(sound) = cases.iter().find(|case| case.kind == "sound") {
            let folder = dir.join(sound.folder());
            for (command, name) in [("CHECKALLOC", "checkalloc"), ("CHECKCATALOG", "checkcatalog")] {
                // They may have run even if CHECKDB has no comparison, and must have run if it has one.
                let has_run = ["txt", "reason"].iter().any(|end| folder.join(format!("{name}.{end}")).exists());
                if has_run || sound.is_compared() {
                    listings.push((command, listing(&folder, name)));
                }
            }
        }
        Ok(Self { server, cases, listings })
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// The kinds, in the order of the copies.
    pub(super) fn kinds(&self) -> Vec<OfKind> {
        let mut kinds: Vec<OfKind> = Vec::new();
        for case in &self.cases {
            let at = kinds.iter().position(|of| of.kind == case.kind).unwrap_or_else(|| {
                let kind = case.kind.clone();
                kinds.push(OfKind { kind, copies: 0, verdicts: Default::default(), counts: Counts::default() });
                kinds.len() - 1
            });
            let Some(of) = kinds.get_mut(at) else { continue };
            of.copies += 1;
            for (count, verdict) in of.verdicts.iter_mut().zip(Verdict::ALL) {
                *count += usize::from(case.verdict == verdict);
            }
            of.counts.add(case.counts);
        }
        kinds
    }

    fn status(&self) -> u8 {
        let listings = || self.listings.iter().map(|(_, listing)| listing);
        let differs = self.count(Verdict::Differ) > 0 || listings().flatten().any(|listing| !listing.is_equal());
        let is_complete =
            self.cases.iter().all(|case| case.is_compared() && case.is_whole) && listings().all(Result::is_ok);
        (u8::from(differs) * Failure::CORRUPT) | (u8::from(!is_complete) * Failure::INCOMPLETE)
    }
}

pub(super) fn run(dir: &Path) -> Result<u8, Failure> {
    let run = Run::load(dir)?;
    let path: PathBuf = dir.join("index.html");
    fs::write(&path, page::page(&run)).map_err(|cause| Failure::unable(format!("{}: {cause}", path.display())))?;
    output::print(|out| write!(out, "{}", text(&run)))?;
    Ok(run.status())
}

/// The comparison of what a command printed for the sound copy, or why there is none.
fn listing(folder: &Path, name: &str) -> Result<Listing, String> {
    let of = |name: String| read(&folder.join(name)).map_err(|failure| failure.text);
    match of(format!("{name}.reason")) {
        Ok(reason) => Err(reason.trim().to_owned()),
        Err(_) => Ok(Listing::of(&of(format!("{name}.txt"))?, &of(format!("mdfsck-{name}.txt"))?)),
    }
}

fn case(dir: &Path, line: &str) -> Result<Case, Failure> {
    let broken = || Failure::unable(format!("{}: not a line of the kit: {line}", dir.join("cases.tsv").display()));
    let mut cells = line.splitn(6, '\t').map(str::to_owned);
    let mut cell = || cells.next().ok_or_else(broken);
    let (number, kind, seed, verdict) = (cell()?, cell()?, cell()?, cell()?);
    let (way, text) = (cell()?, cell()?);
    let verdict = Verdict::ALL.into_iter().find(|known| known.name() == verdict).ok_or_else(broken)?;
    let mut case = Case { number, kind, seed, verdict, way, text, counts: Counts::default(), is_whole: true };
    if !case.is_compared() {
        return Ok(case);
    }
    let path = dir.join(case.folder()).join("compare.json");
    let compared = read(&path).ok().and_then(|lines| counts(&lines));
    let why = match &compared {
        Some((_, true)) => None,
        Some((_, false)) => Some("the results are not whole".to_owned()),
        None => Some(format!("{}: no comparison is in this file", path.display())),
    };
    (case.counts, case.is_whole) = compared.unwrap_or_default();
    if let Some(why) = why {
        case.text = if case.text.is_empty() { why } else { format!("{why}; {}", case.text) };
        // What the server did not print is no agreement, but what it printed may be a difference.
        if case.verdict == Verdict::Agree {
            case.verdict = Verdict::Refused;
        }
    }
    Ok(case)
}

/// The counts in the JSON lines of `mdfsck compare-dbcc`, and whether the results of both sides were compared whole.
fn counts(lines: &str) -> Option<(Counts, bool)> {
    let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of_kind = |kind: &str| lines.iter().find(|line| line.get("kind").and_then(Value::as_str) == Some(kind));
    let (head, summary) = (of_kind("comparison")?, of_kind("summary")?);
    let count = |name: &str| summary.get(name)?.as_u64();
    let counts = Counts {
        both: count("both")?,
        server: count("server_only")?,
        mdfsck: count("mdfsck_only")?,
        other_number: count("other_number")?,
        explained: count("explained")?,
    };
    let is_hidden = head.get("hidden").and_then(Value::as_u64).is_some_and(|hidden| hidden > 0);
    Some((counts, head.get("whole")?.as_bool()? && !is_hidden))
}

/// The summary as text: a table per kind, and a line for each command that only the sound copy got.
fn text(run: &Run) -> String {
    let rows: Vec<Vec<String>> =
        std::iter::once(COLUMNS.map(str::to_owned).to_vec()).chain(run.kinds().iter().map(OfKind::cells)).collect();
    let width = |at: usize| rows.iter().filter_map(|row| Some(row.get(at)?.len())).max().unwrap_or(0);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().enumerate().map(|(at, cell)| match at {
            0 => format!("{cell:<0$}", width(at)),
            _ => format!("{cell:>0$}", width(at)),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    for (command, listing) in &run.listings {
        let of = match listing {
            Ok(listing) => format!(
                "{} lines in both, {} of the server alone, {} of mdfsck alone",
                listing.both,
                listing.server.len(),
                listing.mdfsck.len()
            ),
            Err(reason) => format!("no result to compare: {}", report::printable(reason)),
        };
        text.push_str(&format!("{command} of the sound copy: {of}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A run with a sound copy and one damaged copy, in which server and mdfsck agree.
    fn sound_run() -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["000-sound", "001-bit-rot"] {
            let folder = dir.path().join("cases").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("compare.json"), comparison(true)).unwrap();
        }
        fs::write(dir.path().join("cases.tsv"), "000\tsound\t0\tagree\t\t\n001\tbit-rot\t1\tagree\t\t\n").unwrap();
        let sound = dir.path().join("cases/000-sound");
        for name in ["checkalloc.txt", "mdfsck-checkalloc.txt", "checkcatalog.txt", "mdfsck-checkcatalog.txt"] {
            fs::write(sound.join(name), "Table sys.x\n").unwrap();
        }
        dir
    }

    fn comparison(whole: bool) -> String {
        format!(
            "{{\"kind\":\"comparison\",\"whole\":{whole}}}\n{{\"kind\":\"summary\",\"both\":3,\"server_only\":0,\
             \"mdfsck_only\":0,\"other_number\":0,\"explained\":0}}\n"
        )
    }

    /// The exit status and the text of the report, which is there whatever is missing in the run.
    fn reported(dir: &TempDir) -> (u8, String) {
        let run = Run::load(dir.path()).unwrap_or_else(|failure| panic!("{}", failure.text));
        (run.status(), text(&run) + &page::page(&run))
    }

    #[test]
    fn results_that_are_not_whole_are_no_agreement() {
        let dir = sound_run();
        assert_eq!(reported(&dir).0, 0);
        let comparison_of = dir.path().join("cases/001-bit-rot/compare.json");
        fs::write(&comparison_of, comparison(false)).unwrap();
        let (status, said) = reported(&dir);
        assert!(status == Failure::INCOMPLETE && said.contains("results are not whole"), "{status} {said}");
        // So many messages that some were not compared.
        fs::write(&comparison_of, comparison(true).replacen("\"whole\"", "\"hidden\":20,\"whole\"", 1)).unwrap();
        assert_eq!(reported(&dir).0, Failure::INCOMPLETE);
        fs::remove_file(&comparison_of).unwrap();
        let (status, said) = reported(&dir);
        assert!(status == Failure::INCOMPLETE && said.contains("no comparison is in this file"), "{status} {said}");
        // A difference stays one.
        fs::write(&comparison_of, comparison(false)).unwrap();
        fs::write(dir.path().join("cases.tsv"), "001\tbit-rot\t1\tdiffer\t\tsee x\n").unwrap();
        assert_eq!(reported(&dir).0, Failure::INCOMPLETE | Failure::CORRUPT);
    }

    #[test]
    fn a_command_without_a_listing_is_no_difference_and_loses_no_report() {
        let dir = sound_run();
        let sound = dir.path().join("cases/000-sound");
        fs::write(sound.join("checkalloc.txt"), "The database could not be opened.\n").unwrap();
        assert_eq!(reported(&dir).0, Failure::CORRUPT);
        fs::write(sound.join("checkalloc.reason"), "CHECKALLOC gave no result: Msg 926\n").unwrap();
        let (status, said) = reported(&dir);
        assert_eq!(status, Failure::INCOMPLETE);
        assert!(
            said.contains("CHECKALLOC of the sound copy: no result to compare: CHECKALLOC gave no result"),
            "{said}"
        );
        for name in ["mdfsck-checkcatalog.txt", "checkcatalog.txt"] {
            fs::remove_file(sound.join(name)).unwrap();
            let (status, said) = reported(&dir);
            assert!(status == Failure::INCOMPLETE && said.contains(name), "{status} {said}");
        }
    }

    #[test]
    fn the_listings_are_in_the_report_even_if_checkdb_has_no_comparison() {
        let dir = sound_run();
        fs::write(dir.path().join("cases.tsv"), "000\tsound\t0\trefused\t\tx\n").unwrap();
        let sound = dir.path().join("cases/000-sound");
        let (status, said) = reported(&dir);
        assert!(
            status == Failure::INCOMPLETE && said.contains("CHECKALLOC of the sound copy: 1 lines"),
            "{status} {said}"
        );
        fs::write(sound.join("checkalloc.txt"), "Table sys.y\n").unwrap();
        assert_eq!(reported(&dir).0, Failure::INCOMPLETE | Failure::CORRUPT);
        fs::remove_file(sound.join("checkalloc.txt")).unwrap();
        fs::write(sound.join("checkalloc.reason"), "CHECKALLOC gave no result: Msg 926\n").unwrap();
        assert!(reported(&dir).1.contains("CHECKALLOC of the sound copy: no result to compare: CHECKALLOC gave"));
        for name in ["checkalloc.reason", "checkcatalog.txt"] {
            fs::remove_file(sound.join(name)).unwrap();
        }
        let said = reported(&dir).1;
        assert!(!said.contains("of the sound copy: ") && said.contains("were not run on it"), "{said}");
    }
}
