//! `mdfsck export`: writes the rows of tables to files.

mod definitions;
pub(crate) mod memory;
mod plan;
mod salvage;

use std::path::{Path, PathBuf};

use ::export::{Destination, Form, TableSource, Written};
use ::rows::{MOST_LISTED, NoRows, ScanOptions, Table, Why};
use catalog::Database;
use check::Progress;
use format::PageId;
use jobs::failure::{Failure, report_faults};
use jobs::input::{Input, Reading};
use jobs::recover;
use jobs::recover::Outcome;
use jobs::request::{RecoveryOptions, StopOptions};
use jobs::spool::Spool;
use report::export::{Definition, Exported, MOST_PAGES};
use script::Definitions;
use source::PageSource;
use source::backup::Hints;

use self::plan::Plan;
use crate::cli::{DatabaseArguments, ExportArguments, ExportFormat, StopArguments};
use crate::lost_catalog::{self, Search};
use crate::progress::without_bar;
use crate::speaker::warn;
use crate::{output, progress};

/// Maximum size, in bytes, of the copy of a backup from standard input.
const SPOOL_BYTES: u64 = 100 << 30;

/// A recovered database whose rows can be read.
pub(crate) struct Opened<'a> {
    pub(crate) pages: &'a dyn PageSource,
    pub(crate) database: &'a Database,
    /// Memory that recovered pages use, in bytes.
    pub(crate) kept_bytes: u64,
}

/// Opens and recovers the database, and passes the database and the listener to `work`. `work` must drop the listener
/// before it prints.
pub(crate) fn with_database(
    options: &DatabaseArguments,
    (stop, carve): (&StopArguments, bool),
    lost: (&[PathBuf], Search),
    listener: Box<dyn Progress>,
    work: impl FnOnce(Opened<'_>, Box<dyn Progress>) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let (recovery, stop) = (RecoveryOptions::from(&options.recovery), StopOptions::from(stop));
    let reading = Reading {
        named: &options.paths,
        sets: &options.set,
        direct: false,
        carve,
        spool: Spool {
            directory: options.recovery.room.temp_dir.as_deref(),
            limit: SPOOL_BYTES,
            progress: listener.as_ref(),
        },
        memory: options.recovery.room.memory,
        stop: &stop,
        hints: Hints::default(),
    };
    let input = Input::open(&options.paths, &reading)?;
    let source = input.pages();
    listener.phase("load", 0);
    let as_stored = catalog::load(source);
    listener.phase("recover", 0);
    let mut recovered: Outcome<'_> = recover::of_input(&input, &options.paths, &recovery, &as_stored, || false, None)?;
    recovered.keep_at_most(memory::for_recovery(options.recovery.room.memory))?;
    let kept_bytes = recovered.kept_bytes();
    let (pages, database) = recovered.view(source, as_stored);
    let lacks_input = recover::warn_about_input(pages, &database, "read");
    let memory = lost_catalog::memory_for_search(options.recovery.room.memory);
    let database = lost_catalog::complete(pages, database, lost, memory, listener.as_ref())?;
    if database.boot.is_none() && database.rests_on.is_empty() {
        return Err(Failure::unable(recover::without_boot_page(pages)));
    }
    if database.is_encrypted {
        return Err(Failure::unable(
            "the database is encrypted (TDE): its rows cannot be read without the key; restore it on a server that has the certificate",
        ));
    }
    let rest = "tables, columns or rows may be missing";
    if database.rests_on.is_empty() {
        recover::catalog_gaps(&database, lacks_input, "cannot be read completely", rest).iter().for_each(warn);
    }
    let status = if database.gaps.is_empty() { 0 } else { Failure::INCOMPLETE };
    let status = status | work(Opened { pages, database: &database, kept_bytes }, listener)?;
    Ok(status | recover::report_doubts(&recovered) | report_faults(pages))
}

pub(crate) fn run(arguments: &ExportArguments) -> Result<u8, Failure> {
    let listener = progress::listener(arguments.progress.into(), None);
    let search = if arguments.damaged { Search::IfIncomplete } else { Search::IfNeeded };
    let lost = (arguments.like.like.as_slice(), search);
    with_database(&arguments.database, (&arguments.stop, arguments.carve.carve), lost, listener, |opened, listener| {
        let Opened { pages, database, kept_bytes } = opened;
        let needs_texts = arguments.definitions || arguments.format == ExportFormat::Sql;
        let texts = needs_texts.then(|| Definitions::load(pages, database));
        let fixed = kept_bytes + memory::fixed_bytes(arguments, pages, database, texts.as_ref());
        let (bytes_left, threads) = memory::grant(arguments, fixed)?;
        let plan = Plan::new(arguments, pages, database)?;
        let run = Run { arguments, pages, database, plan: &plan, texts: texts.as_ref(), bytes_left, threads };
        let (tables, definitions) = run.write(listener.as_ref())?;
        drop(listener);
        run.report(&tables, &definitions)
    })
}

struct Run<'a> {
    arguments: &'a ExportArguments,
    pages: &'a dyn PageSource,
    database: &'a Database,
    plan: &'a Plan,
    texts: Option<&'a Definitions>,
    /// The memory that remains after the fixed part is subtracted from the grant, in bytes.
    bytes_left: u64,
    threads: usize,
}

impl Run<'_> {
    /// Writes the files of all tables and definitions.
    fn write(&self, progress: &dyn Progress) -> Result<(Vec<Exported>, Vec<Definition>), Failure> {
        let print_line = |table: &Exported| {
            let mut printed = Ok(());
            without_bar(|| printed = output::print(|out| report::export::write_json(table, out)));
            printed
        };
        progress.phase("export", self.plan.pages(self.database));
        let (mut tables, mut left_out, mut listed) = (Vec::new(), Vec::new(), 0);
        for planned in &self.plan.tables {
            // Builds the description of each table here and not in the plan: the descriptions of thousands of tables
            // would need much more memory than the table names in the plan.
            let (exported, mut pages) = match Table::of(self.database, planned.object_id) {
                Ok(table) => self.table(&table, &planned.destination, progress)?,
                Err(why) => (nothing(planned.object_id, &planned.name, &why), LeftOut::default()),
            };
            // Limits the list of damaged pages to `MOST_LISTED` pages for all tables together.
            pages.cut_to(MOST_LISTED - listed);
            listed += pages.listed.len();
            if pages.is_cut {
                let name = &planned.name;
                warn(format!(
                    "{name}: too many pages are damaged to list them all: rows of the unlisted pages are not salvaged"
                ));
            }
            left_out.push(pages.listed);
            if self.arguments.json && !self.arguments.damaged {
                print_line(&exported)?;
            }
            tables.push(exported);
        }
        if self.arguments.damaged {
            progress.phase("salvage", 0);
            salvage::salvage(self, self.bytes_left, &left_out, &mut tables)?;
            if self.arguments.json {
                tables.iter().try_for_each(print_line)?;
            }
        }
        let definitions = match (self.arguments.definitions, self.texts) {
            (true, Some(texts)) => definitions::write(self.pages, self.database, texts, self.plan)?,
            _ => Vec::new(),
        };
        self.foreign_keys()?;
        Ok((tables, definitions))
    }

    /// Writes the rows of a table to its file. Also returns the damaged pages, whose rows are not in the file.
    fn table(
        &self,
        table: &Table,
        destination: &Destination,
        progress: &dyn Progress,
    ) -> Result<(Exported, LeftOut), Failure> {
        let form = self.form(table)?;
        let source = TableSource { pages: self.pages, database: self.database, table, options: ScanOptions::default() };
        let written = ::export::write_table(source, form, destination, self.threads, &|pages| progress.advance(pages));
        let mut written = written.map_err(|cause| output::unwritable(&destination.rows, &cause))?;
        let shown = written.counts.damaged_pages.iter().take(MOST_PAGES);
        let shown = shown.map(|(page, why)| (*page, why.to_string())).collect();
        let rests_on = self.database.rests_on.get(&table.object_id).map(ToString::to_string);
        let left_out = match self.arguments.damaged {
            true => LeftOut {
                listed: std::mem::take(&mut written.counts.damaged_pages),
                is_cut: written.counts.is_list_cut,
            },
            false => LeftOut::default(),
        };
        Ok((Exported { rests_on, ..exported(table, destination, written, shown) }, left_out))
    }

    fn form(&self, table: &Table) -> Result<Form, Failure> {
        Ok(match self.arguments.format {
            ExportFormat::Csv => Form::Csv,
            ExportFormat::Jsonl => Form::JsonLines,
            #[cfg(feature = "parquet")]
            ExportFormat::Parquet => Form::Parquet,
            ExportFormat::Sql => {
                let frame = self.texts.and_then(|texts| ::export::frame(self.database, texts, table));
                let missing = || {
                    let name = table.full_name();
                    Failure::unable(format!(
                        "{name}: the catalog has no columns of this table, which a script needs; use csv or jsonl"
                    ))
                };
                Form::Sql(frame.ok_or_else(missing)?)
            }
        })
    }

    /// Writes the script that adds the foreign keys of all tables. The user runs it after the rows are loaded.
    fn foreign_keys(&self) -> Result<(), Failure> {
        let (Some(path), Some(texts)) = (&self.plan.foreign_keys, self.texts) else { return Ok(()) };
        let tables: Vec<i32> = self.plan.tables.iter().map(|planned| planned.object_id).collect();
        let text = ::export::foreign_keys(self.database, texts, &tables);
        if text.is_empty() { Ok(()) } else { definitions::write_file(path, self.plan.replaces, &text) }
    }

    fn report(&self, tables: &[Exported], definitions: &[Definition]) -> Result<u8, Failure> {
        let is_complete = tables.iter().all(Exported::is_complete)
            && definitions.iter().all(|definition| definition.file.is_ok())
            && self.database.gaps.is_empty();
        let folder = self.arguments.output.display().to_string();
        output::print(|out| match self.arguments.json {
            true => {
                report::export::write_definitions_json(definitions, out)?;
                report::export::write_summary_json(tables, is_complete, out)
            }
            false => report::export::write_text(tables, definitions, &folder, out),
        })?;
        let missing = check::not_given(self.pages, self.database, &findings::Scope::Database, "read");
        for warning in missing.iter().filter(|_| !is_complete) {
            warn(format!(
                "incomplete: rows are missing, because parts of the database were not given: {}",
                warning.text
            ));
        }
        let not_found: u64 = tables.iter().map(|table| table.pages_not_given).sum();
        if not_found > 0 && self.pages.carved().is_some() {
            warn(format!("incomplete: {not_found} pages of these tables were not found in the image"));
        }
        if tables.iter().any(|table| table.pages_left_out > table.pages_not_given) {
            let salvage = if self.arguments.damaged { "" } else { "; --damaged salvages the rows that are left" };
            warn(format!(
                "incomplete: the rows of some pages were not exported; 'mdfsck check' reports what is wrong with these pages{salvage}"
            ));
        }
        Ok(if is_complete { 0 } else { Failure::INCOMPLETE })
    }
}

/// Damaged pages of a table. Their rows are not in the file of the table, but may be salvaged.
#[derive(Default)]
struct LeftOut {
    listed: Vec<(PageId, Why)>,
    /// Whether pages are missing from the list because of its limit.
    is_cut: bool,
}

impl LeftOut {
    fn cut_to(&mut self, most: usize) {
        self.is_cut |= self.listed.len() > most;
        self.listed.truncate(most);
    }
}

fn exported(table: &Table, destination: &Destination, written: Written, left_out: Vec<(PageId, String)>) -> Exported {
    let counts = written.counts;
    Exported {
        object: table.full_name(),
        object_id: table.object_id,
        file: Ok(file_name(&destination.rows)),
        rows: written.rows,
        doubtful: 0,
        rebuilt: 0,
        known_lost: 0,
        bytes: written.bytes,
        order: written.order.to_string(),
        computed_columns: ::export::Layout::of(table).computed,
        unreadable_values: written.unreadable_values,
        unreadable_file: file_name(&destination.unreadable),
        altered_texts: counts.altered_texts,
        values_as_stored: counts.values_as_stored,
        pages_left_out: counts.pages_left_out,
        pages_not_given: counts.pages_not_given,
        left_out,
        records_left_out: counts.skipped_slots,
        rests_on: None,
    }
}

/// The entry in the report for a table without a file.
fn nothing(object_id: i32, name: &str, why: &NoRows) -> Exported {
    Exported {
        object: name.to_owned(),
        object_id,
        file: Err(why.to_string()),
        rows: 0,
        doubtful: 0,
        rebuilt: 0,
        known_lost: 0,
        bytes: 0,
        order: String::new(),
        computed_columns: Vec::new(),
        unreadable_values: 0,
        unreadable_file: String::new(),
        altered_texts: 0,
        values_as_stored: 0,
        pages_left_out: 0,
        pages_not_given: 0,
        left_out: Vec::new(),
        records_left_out: 0,
        rests_on: None,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
