//! The state of each finding: new, confirmed or gone. A finding that a run does not report becomes gone only if the run
//! looked for it. Otherwise, the finding keeps its state.

use std::collections::HashSet;

use findings::registry::{Basis, Check};
use findings::{Finding, Report};
use format::PageId;
use rusqlite::{OptionalExtension, Transaction, params};

use crate::doubts::Doubts;
use crate::held::Held;
use crate::identity::{Identity, Ids, storable};
use crate::outbox::Event;
use crate::scope::Asked;

/// The maximum number of findings that the history stores for one run.
const MOST_FINDINGS: usize = 100_000;
/// The maximum number of findings that the history stores for one place in one run. Findings at the same place are
/// distinguished only by their order.
const MOST_ALIKE: u32 = 1000;

/// The number of findings that changed to each state.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Changes {
    pub(crate) new: u64,
    pub(crate) confirmed: u64,
    pub(crate) gone: u64,
    pub(crate) not_looked_at: u64,
}

/// Writes the findings of a run, and updates the states of known findings.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    report: &Report,
    asked: &Asked,
    (ids, run): (Ids, i64),
    (identity, host, now): (&Identity, &str, &str),
) -> rusqlite::Result<(Changes, Vec<(Event, i64)>)> {
    let taken_at = identity.taken_at.as_str();
    let mut life = Life {
        transaction,
        ids,
        run,
        now,
        taken_at,
        options: asked.json(),
        // Only findings in data files can describe a past state. A backup does not change, so it still contains its
        // findings, even if a later backup does not.
        is_past: identity.kind == "files" && is_past(transaction, ids, taken_at)?,
        held: Held { transaction, identity, ids, host },
        changes: Changes::default(),
        events: Vec::new(),
        are_all_known: report.findings.len() <= MOST_FINDINGS,
    };
    life.held.forget_gone()?;
    let damaged = life.seen(report)?;
    life.not_seen(report, asked, &damaged)?;
    Ok((life.changes, life.events))
}

/// Whether a complete CHECKDB has already checked a later state of this copy. If so, the findings of this run describe
/// a past state of the copy.
fn is_past(transaction: &Transaction<'_>, ids: Ids, taken_at: &str) -> rusqlite::Result<bool> {
    transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM run r JOIN image i ON i.id = r.image
         WHERE i.source = ?1 AND i.taken_at > ?2 AND r.command = 'CHECKDB' AND r.complete = 1)",
        params![ids.source, taken_at],
        |row| row.get(0),
    )
}

struct Life<'a> {
    transaction: &'a Transaction<'a>,
    held: Held<'a>,
    ids: Ids,
    run: i64,
    now: &'a str,
    taken_at: &'a str,
    options: String,
    is_past: bool,
    changes: Changes,
    events: Vec<(Event, i64)>,
    are_all_known: bool,
}

/// A finding that the history already contains.
struct Known {
    id: i64,
    life: String,
    last_run: i64,
    /// Whether the finding was last seen in the image of this run or in an earlier image.
    is_before: bool,
}

/// A known finding that this run did not report.
struct Missing {
    id: i64,
    place: String,
    check: &'static Check,
    object_id: Option<i32>,
    index_id: Option<i32>,
    page: Option<PageId>,
    then: Asked,
    /// Whether the finding was last seen in a later state of the database than the state that this run checked.
    is_later: bool,
}

impl Life<'_> {
    /// Writes the findings of the run. Returns the IDs of the objects that have a page with a finding about the page
    /// itself.
    fn seen(&mut self, report: &Report) -> rusqlite::Result<HashSet<i32>> {
        let mut find = self.transaction.prepare(
            "SELECT f.id, f.life, f.last_run, i.taken_at <= ?3 FROM finding f JOIN image i ON i.id = f.last_image
             WHERE f.source = ?1 AND f.place = ?2",
        )?;
        let mut damaged = HashSet::new();
        let mut last = (String::new(), 0);
        for finding in report.findings.iter().take(MOST_FINDINGS) {
            let base = place(&finding, self.ids);
            let mut number = if last.0 == base { last.1 + 1 } else { 1 };
            let known = loop {
                if number > MOST_ALIKE {
                    self.are_all_known = false;
                    break None;
                }
                let place = numbered(&base, number);
                let known = find.query_row(params![self.ids.source, place, self.taken_at], |row| {
                    Ok(Known { id: row.get(0)?, life: row.get(1)?, last_run: row.get(2)?, is_before: row.get(3)? })
                });
                match known.optional()? {
                    Some(known) if known.last_run == self.run => number += 1,
                    known => break Some((place, known)),
                }
            };
            if finding.check.is_about_its_page() {
                damaged.extend(finding.object_id());
            }
            last = (base, number);
            match known {
                None => {}
                Some((place, None)) => {
                    let key = self.insert(report, &finding, &place)?;
                    self.held.note(key)?;
                }
                Some((_, Some(known))) => {
                    self.update(report, &finding, &known)?;
                    self.held.note(known.id)?;
                }
            }
        }
        Ok(damaged)
    }

    fn insert(&mut self, report: &Report, finding: &Finding, place: &str) -> rusqlite::Result<i64> {
        let life = if self.is_past { "gone" } else { "new" };
        let owner = finding.owner.filter(|owner| owner.object_id != 0);
        let name = owner.and_then(|owner| name_of(report, owner.object_id));
        self.transaction
            .prepare_cached(
                "INSERT INTO finding (source, place, check_id, msg, state, class, object_id, index_id, object_name, file, page, slot,
                 text, life, first_seen, last_seen, last_looked, since, seen, options, last_run, last_image)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15, ?15, ?15, 1, ?16, ?17, ?18)",
            )?
            .execute(params![
                self.ids.source,
                place,
                finding.check.id,
                finding.check.msg,
                finding.state,
                format!("{:?}", finding.class()).to_lowercase(),
                owner.map(|owner| owner.object_id),
                owner.map(|owner| owner.index_id),
                name,
                finding.page.map(|page| page.file),
                finding.page.map(|page| page.page),
                finding.slot,
                storable(&finding.text(&report.names())),
                life,
                self.now,
                self.options,
                self.run,
                self.ids.image,
            ])?;
        let key = self.transaction.last_insert_rowid();
        if !self.is_past {
            self.change(key, "new")?;
            self.events.push((Event::FindingNew, key));
            self.changes.new += 1;
        }
        Ok(key)
    }

    fn update(&mut self, report: &Report, finding: &Finding, known: &Known) -> rusqlite::Result<()> {
        if !known.is_before && (known.life != "gone" || !self.held.are_backups()) {
            // The finding was last seen in a later state than the state that this run checked. This run proves nothing
            // about that later state.
            self.transaction
                .prepare_cached("UPDATE finding SET seen = seen + 1, last_run = ?2 WHERE id = ?1")?
                .execute(params![known.id, self.run])?;
            return Ok(());
        }
        let is_back = known.life == "gone";
        let life = if is_back { "new" } else { "confirmed" };
        self.transaction
            .prepare_cached(
                "UPDATE finding SET life = ?2, last_seen = ?3, last_looked = ?3, since = CASE WHEN ?4 THEN ?3 ELSE since END,
                 seen = seen + 1, options = ?5, last_run = ?6, last_image = ?7, text = ?8, state = ?9,
                 ack_by = CASE WHEN ?4 THEN NULL ELSE ack_by END, ack_text = CASE WHEN ?4 THEN NULL ELSE ack_text END,
                 ack_at = CASE WHEN ?4 THEN NULL ELSE ack_at END, ack_until = CASE WHEN ?4 THEN NULL ELSE ack_until END
                 WHERE id = ?1",
            )?
            .execute(params![
                known.id,
                life,
                self.now,
                is_back,
                self.options,
                self.run,
                self.ids.image,
                storable(&finding.text(&report.names())),
                finding.state,
            ])?;
        if is_back {
            self.change(known.id, "new")?;
            self.events.push((Event::FindingNew, known.id));
            self.changes.new += 1;
        } else {
            if known.life == "new" {
                self.events.push((Event::FindingConfirmed, known.id));
            }
            self.changes.confirmed += 1;
        }
        Ok(())
    }

    /// Decides which of the findings that the run did not report are gone.
    fn not_seen(&mut self, report: &Report, asked: &Asked, damaged: &HashSet<i32>) -> rusqlite::Result<()> {
        let missing = self.missing()?;
        if missing.is_empty() {
            return Ok(());
        }
        let proof = Proof::of(report, self.are_all_known, self.ids);
        for finding in missing {
            let is_gone = match &proof {
                Some(proof) => {
                    asked.asks_again(&finding.then, finding.check, finding.object_id, finding.index_id)
                        && !self.is_hidden(&finding, damaged)?
                        && proof.has_looked_at(&finding)
                }
                None => false,
            };
            // A finding about a backup file itself is gone when the file is gone.
            let is_lost = finding.check.is_of_container() && self.held.is_lost(finding.id)?;
            if !is_lost && (!is_gone || self.held.is_still_held(finding.id)?) {
                self.changes.not_looked_at += u64::from(!finding.is_later);
                continue;
            }
            self.transaction
                .prepare_cached("UPDATE finding SET life = 'gone', last_looked = ?2, since = ?2 WHERE id = ?1")?
                .execute(params![finding.id, self.now])?;
            self.change(finding.id, "gone")?;
            self.events.push((Event::FindingGone, finding.id));
            self.changes.gone += 1;
        }
        Ok(())
    }

    /// Whether a finding of this run may prevent the run from seeing the missing finding.
    fn is_hidden(&self, finding: &Missing, damaged: &HashSet<i32>) -> rusqlite::Result<bool> {
        let is_of_pages = finding.check.is_about_its_page();
        if !is_of_pages && finding.object_id.is_some_and(|id| damaged.contains(&id)) {
            return Ok(true);
        }
        let Some(page) = finding.page else { return Ok(false) };
        self.transaction
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM finding WHERE source = ?1 AND file = ?2 AND page = ?3 AND last_run = ?4)",
            )?
            .query_row(params![self.ids.source, page.file, page.page, self.run], |row| row.get(0))
    }

    /// Returns the open findings of this copy that the run did not report. Findings that were last seen in a later
    /// state than the state that the run checked are left out, unless they are recorded for the backup that the run
    /// read.
    fn missing(&self) -> rusqlite::Result<Vec<Missing>> {
        let mut find = self.transaction.prepare(
            "SELECT f.id, f.place, f.check_id, f.object_id, f.index_id, f.file, f.page, f.options, i.taken_at > ?3
             FROM finding f JOIN image i ON i.id = f.last_image
             WHERE f.source = ?1 AND f.life <> 'gone' AND f.last_run <> ?2
             AND (i.taken_at <= ?3 OR EXISTS (SELECT 1 FROM finding_file h WHERE h.finding = f.id AND h.image = ?4)) ORDER BY f.id",
        )?;
        let mut rows = find.query(params![self.ids.source, self.run, self.taken_at, self.ids.image])?;
        let mut missing = Vec::new();
        while let Some(row) = rows.next()? {
            let check: String = row.get(2)?;
            let options: String = row.get(7)?;
            // If this version of the program lacks the check that made the finding, a run cannot look for the finding
            // again.
            let Some(check) = Check::find(&check).into_iter().next() else { continue };
            let Some(then) = Asked::read(&options) else { continue };
            let (file, page): (Option<u16>, Option<u32>) = (row.get(5)?, row.get(6)?);
            missing.push(Missing {
                id: row.get(0)?,
                place: row.get(1)?,
                check,
                object_id: row.get(3)?,
                index_id: row.get(4)?,
                page: file.zip(page).map(|(file, page)| PageId::new(file, page)),
                then,
                is_later: row.get(8)?,
            });
        }
        Ok(missing)
    }

    fn change(&self, finding: i64, life: &str) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO finding_change (run, finding, life) VALUES (?1, ?2, ?3)")?
            .execute(params![self.run, finding, life])
            .map(drop)
    }
}

/// What a run proves about the findings that it did not report.
struct Proof<'a> {
    report: &'a Report,
    doubts: Doubts,
    /// The places of demoted findings. A finding is demoted if it is a contradiction that may be due to a place that
    /// the run could not verify.
    demoted: HashSet<String>,
    demoted_pages: HashSet<PageId>,
    image: i64,
}

impl<'a> Proof<'a> {
    /// Returns `None` if the run cannot prove that a finding is gone, because it ended early, its findings cannot be
    /// read, it read no heap or index, or it had more findings than the history stores.
    fn of(report: &'a Report, are_all_known: bool, ids: Ids) -> Option<Self> {
        let has_ended_early = report.findings.groups().iter().any(|group| group.is_primitive);
        let is_unread = report.findings.error().is_some() || report.demoted.error().is_some();
        let has_looked = !report.rowsets.is_empty() || !report.options.scope.reads_pages();
        if !are_all_known || has_ended_early || is_unread || !has_looked || report.demoted.len() > MOST_FINDINGS {
            return None;
        }
        Some(Self {
            report,
            doubts: Doubts::of(report),
            demoted: report.demoted.iter().map(|finding| place(&finding, ids)).collect(),
            demoted_pages: report.demoted.iter().filter_map(|finding| finding.page).collect(),
            image: ids.image,
        })
    }

    fn has_looked_at(&self, finding: &Missing) -> bool {
        let base = finding.place.split(" #").next().unwrap_or_default();
        let is_demoted =
            self.demoted.contains(base) || finding.page.is_some_and(|page| self.demoted_pages.contains(&page));
        // A finding about a backup file itself concerns one image. If this run read a different image, it proves
        // nothing about that file.
        let is_other_container = finding.check.is_of_container() && !base.ends_with(&format!(" image {}", self.image));
        !is_demoted
            && !is_other_container
            && finding.page.is_none_or(|page| self.has_read(page))
            && !self.doubts.concern(finding.check.basis(), finding.object_id)
    }

    /// Whether the run read a page, or the page is beyond the end of its file.
    fn has_read(&self, page: PageId) -> bool {
        let Some(file) = self.report.database.files.iter().find(|file| file.file_id == page.file) else { return false };
        if !self.report.read_errors.is_empty() && self.report.ranges.is_empty() {
            return false;
        }
        let is_in = |range: &&findings::RangeRead| {
            range.file_id == page.file && range.first <= page.page && page.page - range.first < range.pages
        };
        page.page >= file.pages || self.report.ranges.iter().find(is_in).is_none_or(|range| range.is_read)
    }
}

/// Returns a text that identifies a finding by its place. The values in the message of the finding are in general not
/// part of the place, because they may differ from run to run.
fn place(finding: &Finding, ids: Ids) -> String {
    let mut text = finding.check.id.to_owned();
    if let Some(owner) = finding.owner {
        let (partition, unit) = (owner.partition_id.cast_signed(), owner.alloc_unit);
        text.push_str(&format!(" {}.{}.{partition}.{unit}", owner.object_id, owner.index_id));
    }
    for (page, slot) in [(finding.page, finding.slot), (finding.ref_page, finding.ref_slot)] {
        match (page, slot) {
            (Some(page), Some(slot)) => text.push_str(&format!(" {page}:{slot}")),
            (Some(page), None) => text.push_str(&format!(" {page}")),
            (None, _) => text.push_str(" -"),
        }
    }
    if finding.check.is_of_container() {
        text.push_str(&format!(" image {}", ids.image));
    } else if finding.check.basis() == Basis::Catalog && finding.page.is_none() {
        // Only the values in the message show which rows of the catalog the finding is about, so they are added to the
        // place.
        let values = finding.evidence.iter().map(|(name, value)| format!(" {name}={value:?}"));
        text.push_str(&values.collect::<String>().replace('#', "\\u{23}"));
    }
    storable(&text)
}

fn numbered(base: &str, number: u32) -> String {
    if number == 1 { base.to_owned() } else { format!("{base} #{number}") }
}

fn name_of(report: &Report, object_id: i32) -> Option<String> {
    let at = report.rowsets.binary_search_by_key(&object_id, |rowset| rowset.object_id).ok()?;
    let rowset = report.rowsets.get(at)?;
    (!rowset.name.is_empty()).then(|| storable(&format!("{}.{}", rowset.schema, rowset.name)))
}
