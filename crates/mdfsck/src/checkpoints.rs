//! `mdfsck checkpoints`: shows how long checkpoints of a server took.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use events::checkpoints::{Checkpoint, MAX_MARKS, Mark, pair};
use events::{Clock, Kind, Moment, error_log};
use format::boot::Boot;
use format::bytes::{u32_at, utf16};
use format::file_header::FileHeader;
use format::log::LogTime;
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, Page, PageBytes, PageId};
use jobs::failure::Failure;
use jobs::folders;
use log::{EndReason, Event, History, Log, Walk};
use report::checkpoints::{CheckpointReport, DatabaseTarget, Group, SlowCheckpoint, Source};
use source::{FileKind, FromStart, PageSource, SharedFile, read_fully_at};

use crate::cli::CheckpointsArguments;
use crate::event_files::{Content, EventReader, content};
use crate::output::{self, Target};
use crate::speaker::warn;
use crate::values::Change;

/// The names of the events to read.
const EVENTS: [&str; 2] = ["checkpoint_begin", "checkpoint_end"];

pub(crate) fn run(arguments: &CheckpointsArguments) -> Result<u8, Failure> {
    // Ignores backups that are found in folders, since some have no boot page and reading them takes a long time.
    let is_wanted = |path: &Path| {
        let wanted = |kind: &FileKind| matches!(kind, FileKind::Log | FileKind::Data { file_id: 1, .. });
        content(path).is_ok_and(|content| match content {
            Content::Events(_) => true,
            Content::Database(kind) => wanted(&kind),
            Content::Other => false,
        })
    };
    let paths = folders::files(&arguments.paths, "file with data about checkpoints", is_wanted)?;
    let page = arguments.html.as_deref().map(|path| page_target(path, &paths)).transpose()?;
    let mut read = Read::default();
    for path in &paths {
        if let Err(failure) = read.file(path) {
            read.fail(failure);
        }
    }
    let logs = std::mem::take(&mut read.logs);
    for log in logs {
        let files: Vec<PathBuf> = log.files.into_values().collect();
        if let Err(failure) = read.log(log.binding, &files) {
            read.fail(failure);
        }
    }
    let (report, status) = read.report(&arguments.change);
    if let Some(target) = page {
        target.write(|out| out.write_all(report.html().as_bytes()))?;
    }
    output::print(|out| match arguments.json {
        true => report.write_json(out),
        false => report.write_text(out),
    })?;
    Ok(status)
}

/// The target of the HTML page, which must not be one of the input files.
fn page_target(path: &Path, inputs: &[PathBuf]) -> Result<Target, Failure> {
    let same = |input: &PathBuf| matches!((fs::canonicalize(input), fs::canonicalize(path)), (Ok(a), Ok(b)) if a == b);
    match inputs.iter().any(same) {
        true => Err(Failure::usage(format!("--html {}: is one of the files to be read", path.display()))),
        false => Target::at(path),
    }
}

/// The log files of one database, by file ID.
struct LogFiles {
    binding: [u8; 16],
    files: BTreeMap<u16, PathBuf>,
}

/// The data that was found in the files read so far.
#[derive(Default)]
struct Read {
    marks: Vec<Mark>,
    traced: BTreeMap<Clock, Vec<Mark>>,
    /// Name and ID of each database. The key is the binding GUID in the headers of the database's files. The value is
    /// `None` if several databases have the same GUID, for example because one is a copy of the other.
    bindings: BTreeMap<[u8; 16], Option<DatabaseTarget>>,
    logs: Vec<LogFiles>,
    of_logs: Vec<([u8; 16], Group)>,
    report: CheckpointReport,
    status: u8,
}

impl Read {
    fn fail(&mut self, failure: Failure) {
        self.report.counts.faults += 1;
        self.report.errors.push(failure.text.clone());
        self.status |= failure.report();
    }

    /// Identifies a file by its content and reads it. Log files are only collected here, and read later.
    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        match content(path)? {
            Content::Events(Kind::ErrorLog) => self.error_log(path),
            Content::Events(kind) => self.events(path, kind),
            Content::Database(FileKind::Log) => self.log_file(path),
            Content::Database(FileKind::Data { file_id: 1, .. }) => self.data_file(path),
            Content::Database(FileKind::Data { .. }) => {
                warn(format!(
                    "{}: is a secondary data file, which has no data about checkpoints; give the primary data file",
                    path.display()
                ));
                Ok(())
            }
            Content::Database(_) => self.backup(path),
            Content::Other => Err(Failure::unable(format!(
                "{}: has no data about checkpoints; give event files (.xel), exports of events as XML, error logs, logs, or \
                 data files",
                path.display()
            ))),
        }
    }

    /// Adds a log file to the other log files of its database. If a file with the same file ID was already added, the
    /// new file is a copy, and is treated as a separate log.
    fn log_file(&mut self, path: &Path) -> Result<(), Failure> {
        let (binding, file_id) = header(path)?;
        let is_one_of = |log: &&mut LogFiles| log.binding == binding && !log.files.contains_key(&file_id);
        match self.logs.iter_mut().find(is_one_of) {
            Some(log) => drop(log.files.insert(file_id, path.to_owned())),
            None => self.logs.push(LogFiles { binding, files: [(file_id, path.to_owned())].into() }),
        }
        Ok(())
    }

    fn events(&mut self, path: &Path, kind: Kind) -> Result<(), Failure> {
        let mut reader = EventReader::open(path, kind, &EVENTS.map(str::to_owned))?;
        let (marks, counts, errors) = (&mut self.marks, &mut self.report.counts, &mut self.report.errors);
        let each = |event: events::Event| {
            match Mark::of(&event) {
                Some(_) if marks.len() == MAX_MARKS => {
                    return Err(std::io::Error::other(format!(
                        "{}: more than {MAX_MARKS} begins and ends of checkpoints; give fewer files at a time",
                        path.display()
                    )));
                }
                Some(mark) => marks.push(mark),
                None if EVENTS.contains(&&*event.name) => counts.unusable += 1,
                None => {}
            }
            Ok(())
        };
        let read = reader.each(each, |text| errors.push(text.to_owned()));
        let (faults, ring) = (reader.faults(), reader.ring_buffer());
        counts.faults += faults;
        counts.dropped_events += ring.dropped;
        counts.truncated |= ring.is_truncated;
        self.status |= if faults > 0 { Failure::INCOMPLETE } else { 0 };
        read.map_err(Failure::unable)
    }

    fn error_log(&mut self, path: &Path) -> Result<(), Failure> {
        let unable = |cause| Failure::unable(format!("{}: cannot be read: {cause}", path.display()));
        let found = error_log::read(BufReader::new(SharedFile::open(path).map(FromStart::new).map_err(unable)?))
            .map_err(unable)?;
        let clock = found.clock;
        self.report.counts.unclear_lines += found.unclear;
        self.report.flushes.extend(found.flushes.into_iter().map(|flush| SlowCheckpoint { flush, clock }));
        let marks = found.traced.into_iter().map(|traced| Mark {
            database_id: traced.database_id,
            activity: None,
            at: traced.at,
            is_end: traced.is_end,
        });
        self.traced.entry(clock).or_default().extend(marks);
        Ok(())
    }

    /// Reads the database's name, ID and target recovery time from the boot page of a primary data file.
    fn data_file(&mut self, path: &Path) -> Result<(), Failure> {
        let (binding, _) = header(path)?;
        let boot = page(path, 9)?.and_then(target);
        let Some(target) = boot else { return Err(no_boot_page(path)) };
        if is_master(&target) {
            self.names(source::open(&[path.to_owned()], &[], false)?.as_ref());
        }
        self.database(binding, target);
        Ok(())
    }

    fn backup(&mut self, path: &Path) -> Result<(), Failure> {
        let pages = source::open(&[path.to_owned()], &[], false)?;
        let binding = pages.files().iter().find_map(|file| file.binding_guid).unwrap_or_default();
        let boot = pages.read_page(PageId::new(1, 9)).and_then(|page| target(*page));
        let Some(target) = boot else { return Err(no_boot_page(path)) };
        if is_master(&target) {
            self.names(pages.as_ref());
        }
        self.database(binding, target);
        Ok(())
    }

    /// Reads the names of all databases of a server from its master database.
    fn names(&mut self, master: &dyn PageSource) {
        /// The object ID of the base table sys.sysdbreg.
        const DATABASES: i32 = 28;
        /// A limit above the number of databases that a server can have.
        const MOST: usize = 32_768;
        let names = &mut self.report.names;
        let add = |_, row: &[Option<&[u8]>]| {
            if let [Some(id), Some(name)] = row
                && let Some(id) = u32_at(id, 0).filter(|_| names.len() < MOST)
            {
                names.insert(id, utf16(name));
            }
        };
        if catalog::read_base_table(master, &catalog::load(master), DATABASES, &["id", "name"], add).is_err() {
            warn("the list of databases in the master database cannot be read in full; some names may be missing");
        }
    }

    fn database(&mut self, binding: [u8; 16], target: DatabaseTarget) {
        self.report.databases.push(target.clone());
        if binding != [0; 16] {
            let known = self.bindings.entry(binding).or_insert_with(|| Some(target.clone()));
            *known = known.take().filter(|known| *known == target);
        }
    }

    /// Reads the log files of one database.
    fn log(&mut self, binding: [u8; 16], files: &[PathBuf]) -> Result<(), Failure> {
        let log = Log::open(files)?;
        let path = files.first().map(|path| path.display().to_string()).unwrap_or_default();
        let (mut walk, mut history) = (Walk::new(&log), History::new());
        let (mut checkpoints, mut unended, mut untimed) = (Vec::new(), 0, 0);
        let mut add = |event| {
            let Event::Checkpoint(found) = event else { return };
            let moment = |time: Option<LogTime>| time.and_then(|time| Moment::of_datetime(time.ticks, time.days));
            match (found.end, moment(found.began), moment(found.ended)) {
                (None, ..) => unended += 1,
                (Some(_), Some(began), Some(ended)) => {
                    checkpoints.push(Checkpoint { database_id: None, began, ended, activity: None });
                }
                _ => untimed += 1,
            }
        };
        let read = loop {
            match walk.next_block() {
                Ok(Some(block)) => history.block(&block, &mut add),
                Ok(None) => break Ok(()),
                Err(error) => break Err(Failure::from(error)),
            }
        };
        history.finish(&mut add);
        let counts = &mut self.report.counts;
        counts.events += 2 * (checkpoints.len() as u64 + untimed) + unended;
        counts.unpaired_begins += unended;
        counts.unusable += untimed;
        if !checkpoints.is_empty() {
            checkpoints.sort_unstable();
            let (source, clock) = (Source::Log(path.clone()), Clock::Local);
            let group = Group { source, clock, database_id: None, database: None, checkpoints, changes: Vec::new() };
            self.of_logs.push((binding, group));
        }
        let is_damaged = walk.end().is_some_and(|end| matches!(end.reason, EndReason::Damaged { .. }));
        if read.is_ok() && (is_damaged || walk.lost_bytes() > 0 || history.encrypted_blocks() > 0) {
            let text = format!(
                "{path}: part of the log is damaged or encrypted, and checkpoints may be missing; 'mdfsck log' shows where"
            );
            warn(&text);
            self.report.errors.push(text);
            self.report.counts.faults += 1;
            self.status |= Failure::INCOMPLETE;
        }
        read
    }

    /// Pairs the begin and end events of all checkpoints, and groups the checkpoints.
    fn report(mut self, changes: &[Change]) -> (CheckpointReport, u8) {
        self.report.databases.sort_unstable();
        self.report.databases.dedup();
        if self.report.counts.unusable > 0 {
            self.status |= Failure::INCOMPLETE;
        }
        let events = std::mem::take(&mut self.marks);
        self.add(Source::Events, Clock::Utc, events);
        for (clock, marks) in std::mem::take(&mut self.traced) {
            self.add(Source::ErrorLog, clock, marks);
        }
        for (binding, mut group) in std::mem::take(&mut self.of_logs) {
            let target = self.bindings.get(&binding).and_then(Option::as_ref);
            group.database_id = target.map(|target| target.database_id);
            group.database = target.map(|target| target.name.clone());
            self.report.groups.push(group);
        }
        let order =
            |slow: &SlowCheckpoint| (slow.clock, slow.flush.at, slow.flush.database_id, slow.flush.bufs, slow.flush.ms);
        self.report.flushes.sort_by_key(order);
        // Removes duplicates: a slow checkpoint may be both in an error log and in an export of this error log.
        self.report.flushes.dedup();
        for change in changes {
            self.change(change);
        }
        for group in &mut self.report.groups {
            group.changes.sort_unstable();
            group.changes.dedup();
        }
        (self.report, self.status)
    }

    fn add(&mut self, source: Source, clock: Clock, marks: Vec<Mark>) {
        let counts = &mut self.report.counts;
        counts.events += marks.len() as u64;
        let paired = pair(marks);
        counts.unpaired_begins += paired.unpaired_begins;
        counts.unpaired_ends += paired.unpaired_ends;
        counts.repeated += paired.repeated;
        for checkpoints in paired.checkpoints.chunk_by(|one, next| one.database_id == next.database_id) {
            let database_id = checkpoints.first().and_then(|checkpoint| checkpoint.database_id);
            let database = self.report.database_name(database_id).map(str::to_owned);
            self.report.groups.push(Group {
                source: source.clone(),
                clock,
                database_id,
                database,
                checkpoints: checkpoints.to_vec(),
                changes: Vec::new(),
            });
        }
    }

    /// Adds a change to each group of checkpoints of the changed database.
    fn change(&mut self, change: &Change) {
        let is_meant = |group: &&mut Group| {
            let by_name = group.database.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&change.database));
            by_name || group.database_id.is_some_and(|id| id.to_string() == change.database)
        };
        let (mut compared, mut local) = (false, false);
        for group in self.report.groups.iter_mut().filter(is_meant) {
            match group.clock {
                Clock::Utc => group.changes.push(change.at),
                Clock::Local => local = true,
            }
            compared |= group.clock == Clock::Utc;
        }
        let why = match (compared, local) {
            (true, _) => return,
            (false, true) => {
                "the times of its checkpoints are local times of the server, which cannot be compared with UTC; give event files"
            }
            (false, false) => {
                "no checkpoint of this database was found; if the events have only database IDs, use the database ID, or also give the primary data file of the database or of master"
            }
        };
        self.fail(Failure::incomplete(format!("--change {}: {why}", change.database)));
    }
}

fn no_boot_page(path: &Path) -> Failure {
    Failure::unable(format!(
        "{}: its boot page (1:9) is damaged or missing; 'mdfsck check' reports more",
        path.display()
    ))
}

/// Reads the database's name, ID and target recovery time from a boot page.
fn target(mut page: PageBytes) -> Option<DatabaseTarget> {
    undo_torn_bits(&mut page);
    let page = Page::new(&page);
    let boot = Boot::read(page).filter(|_| page.header().page_id() == PageId::new(1, 9))?;
    Some(DatabaseTarget {
        database_id: boot.database_id().into(),
        name: boot.name(),
        target_recovery_seconds: boot.target_recovery_seconds(),
    })
}

/// Whether a database is the master database, which lists all databases of the server.
fn is_master(target: &DatabaseTarget) -> bool {
    target.database_id == 1 && target.name == "master"
}

/// Reads a page of a file; `None` if the page is beyond the end of the file.
fn page(path: &Path, number: u64) -> Result<Option<PageBytes>, Failure> {
    let failed = |cause| Failure::unable(format!("{}: cannot be read: {cause}", path.display()));
    let mut page = [0; PAGE_BYTES];
    let file = SharedFile::open(path).map_err(failed)?;
    let read = read_fully_at(&file, &mut page, number * PAGE_BYTES as u64).map_err(failed)?;
    Ok((read == PAGE_BYTES).then_some(page))
}

/// Reads the file header page. Returns the binding GUID, which identifies the database, and the file ID. Both values
/// are zero if the page is damaged.
fn header(path: &Path) -> Result<([u8; 16], u16), Failure> {
    let Some(mut page) = page(path, 0)? else { return Ok(Default::default()) };
    undo_torn_bits(&mut page);
    Ok(FileHeader::read(Page::new(&page)).map(|header| (header.binding_guid(), header.file_id())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crate::values::change;

    #[test]
    fn a_change_is_a_database_and_a_time_in_utc() {
        let found = change("a=b=2016-07-09T05:30+02:00").unwrap();
        assert_eq!((found.database.as_str(), found.at.to_string().as_str()), ("a=b", "2016-07-09 03:30:00.000"));
        for text in ["Sales", "Sales=2016-07-09T03:30", "=2016-07-09T03:30Z", "Sales=yesterday"] {
            assert!(change(text).is_err(), "{text}");
        }
    }
}
