//! The facts of a database: `mdfsck info`.

mod left;
mod table;

use std::io;
use std::path::{Path, PathBuf};

use catalog::{Boot, Database, Found, IndexType, UnitKind};
use format::boot::status;
use format::collation::CollationId;
use format::{Lsn, version};
use source::{DataFile, PageSource};

use crate::json::catalog as lines;
use crate::json::lines::Line;
use crate::server_text::lsn_text;
use crate::text_table::TextTable;
pub use table::Table;

/// A log file. Its name is in the catalog, or was derived from the name of a data file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogFile {
    /// Name of the log file.
    pub name: String,
    /// Path of the log file; `None` if the file is not next to the data files.
    pub path: Option<PathBuf>,
}

/// Whether the files lack changes that are in the log, as far as the boot page and the headers of the log show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The database was shut down cleanly: the files contain everything.
    No,
    /// The database was not shut down cleanly.
    Yes,
    /// The boot page says that the database was shut down cleanly, but the log continues after the last checkpoint. The
    /// files may have been copied while in use.
    Perhaps,
}

/// The need for recovery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Whether the files lack changes that are in the log.
    pub need: Need,
    /// The LSN at which recovery starts to redo log records.
    pub from: Lsn,
    /// Why the log cannot be used; `None` if no problem is known.
    pub problem: Option<String>,
}

impl Recovery {
    fn text(&self) -> String {
        let from = lsn_text(self.from);
        let need = match self.need {
            Need::No => return "not needed".to_owned(),
            Need::Yes => format!("needed, from LSN {from}"),
            Need::Perhaps => {
                format!("may be needed, from LSN {from}: the log continues after the last checkpoint")
            }
        };
        match &self.problem {
            Some(problem) => format!("{need}; {problem}"),
            None => format!("{need}; its log was found"),
        }
    }
}

/// Writes the known facts about the database as text.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(
    source: &dyn PageSource,
    database: &Database,
    (logs, recovery): (&[LogFile], Option<&Recovery>),
    found: Option<&Found>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut facts = TextTable::new(&[]);
    match &database.boot {
        Some(boot) => {
            for (name, fact) in boot_facts(boot, source.snapshot().is_some()) {
                facts.row([name, &fact]);
                if let Some(recovery) = recovery.filter(|_| name == "state") {
                    facts.row(["recovery", &recovery.text()]);
                }
            }
        }
        None => {
            facts.row(["boot page", "damaged"]);
            if let Some(release) = found.and_then(Found::release) {
                facts.row(["written by", &format!("{release}, by the form of its system tables")]);
            }
        }
    }
    if database.is_encrypted {
        facts.row(["encryption", "TDE: only page headers can be read without the key"]);
    }
    let features = features(database);
    let listed: Vec<String> = features.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if !database.is_encrypted {
        facts.row(["special features", if listed.is_empty() { "none" } else { "" }]);
    }
    facts.write(0, out)?;
    for feature in listed {
        writeln!(out, "  {feature}")?;
    }
    // Without the boot page, no system table can be read along its pointers.
    if !database.gaps.is_empty() && found.is_none() {
        match database.is_recovered(source) {
            true => writeln!(out, "damaged")?,
            false => writeln!(
                out,
                "the database was not shut down cleanly, and its log was not applied, which may be the reason why"
            )?,
        }
        for gap in &database.gaps {
            writeln!(out, "  system table {} (object ID {}) cannot be read to its end", gap.table, gap.object_id)?;
        }
    }
    writeln!(out)?;
    files_table(source, database).write(0, out)?;
    if let Some(found) = found {
        left::write(database, found, out)?;
    }
    for log in logs {
        match &log.path {
            Some(path) => writeln!(out, "log file {}: {}", log.name, path.display())?,
            None => writeln!(out, "log file {}: not in the folder of the data files", log.name)?,
        }
    }
    Ok(())
}

/// Writes the known facts about the database as one JSON object.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(
    source: &dyn PageSource,
    database: &Database,
    (logs, recovery): (&[LogFile], Option<&Recovery>),
    found: Option<&Found>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let boot = database.boot.as_ref();
    let files = source.files().iter().map(|file| lines::DataFile {
        file_id: file.file_id,
        logical_name: &file.logical_name,
        filegroup_id: file.filegroup,
        filegroup: filegroup_name(database, file),
        pages: file.pages,
        header_pages: file.header_pages,
        tail_bytes: file.tail_bytes,
        path: file.path.display().to_string(),
        left: found.and_then(|found| left::line(found, file.file_id)),
    });
    let log_files = logs
        .iter()
        .map(|log| lines::LogFile { name: &log.name, path: log.path.as_ref().map(|path| path.display().to_string()) });
    let gap = |gap: &catalog::Gap| lines::Gap { object_id: gap.object_id, table: gap.table };
    let value = Line::Info(Box::new(lines::Database {
        v: crate::json::VERSION,
        database: boot.map(|boot| boot.name.as_str()),
        db_version: boot.map(|boot| boot.version),
        product: boot.and_then(|boot| version::product(boot.version)),
        create_version: boot.map(|boot| boot.create_version),
        created_by: boot.and_then(|boot| version::product(boot.create_version)),
        engine_build: boot.map(engine_build),
        database_id: boot.map(|boot| boot.database_id),
        clean_shutdown: boot.map(Boot::clean_shutdown),
        recovery: recovery.map(|recovery| lines::RecoveryNeed {
            needed: match recovery.need {
                Need::No => "no",
                Need::Yes => "yes",
                Need::Perhaps => "perhaps",
            },
            from_lsn: lsn_text(recovery.from),
            problem: recovery.problem.as_deref(),
        }),
        last_good_check: boot.and_then(|boot| boot.last_known_good.as_deref()),
        created: boot.and_then(|boot| boot.created.as_deref()),
        modified: boot.and_then(|boot| boot.modified.as_deref()),
        checkpoint_lsn: boot.map(|boot| boot.checkpoint_lsn.to_string()),
        recovery_model: boot.map(recovery_model),
        page_verify: boot.map(page_verify),
        encrypted: database.is_encrypted,
        read_only: boot.map(|boot| boot.status & status::READ_ONLY != 0),
        data_purity_by_default: boot.map(|boot| boot.data_purity),
        compatibility_level: boot.map(|boot| boot.compatibility_level),
        collation_id: boot.map(|boot| boot.collation),
        collation: boot.and_then(|boot| CollationId(boot.collation).name()),
        features: features(database).into_iter().collect(),
        files: files.collect(),
        log_files: log_files.collect(),
        unreadable_system_tables: database.gaps.iter().map(gap).collect(),
    }));
    crate::json::line(&value, out)
}

/// Writes the facts about log files that were given without data files: their size, and the command that reads them.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_logs(logs: &[(&Path, u64)], out: &mut dyn io::Write) -> io::Result<()> {
    let mut facts = TextTable::new(&[]);
    for (path, bytes) in logs {
        facts.row(["file".to_owned(), path.display().to_string()]);
        facts.row(["kind", "transaction log file of SQL Server"]);
        facts.row(["size".to_owned(), format!("{bytes} bytes")]);
    }
    facts.row(["contents", "'mdfsck log' shows its checkpoints, transactions and records"]);
    facts.write(0, out)
}

/// Writes the facts of [`write_logs`] as one JSON object per file.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_logs_json(logs: &[(&Path, u64)], out: &mut dyn io::Write) -> io::Result<()> {
    for (path, bytes) in logs {
        let value = lines::LogFileInfo { v: crate::json::VERSION, path: path.display().to_string(), bytes: *bytes };
        crate::json::line(&Line::LogFile(value), out)?;
    }
    Ok(())
}

fn boot_facts(boot: &Boot, is_snapshot: bool) -> Vec<(&'static str, String)> {
    let product = |number| match version::product(number) {
        Some(product) => format!("{product} (internal version {number})"),
        None if number > version::NEWEST => {
            format!("newer than all releases that mdfsck knows (internal version {number})")
        }
        None => format!("internal version {number}"),
    };
    let or = |date: &Option<String>, none: &str| date.clone().unwrap_or_else(|| none.to_owned());
    let state = match boot.clean_shutdown() {
        _ if is_snapshot => "a database snapshot, combined with its database: recovered when it was created",
        true => "clean shutdown: the log has no changes that the data files lack",
        false => "not shut down cleanly: the log may hold changes that the data files lack",
    };
    let purity = match boot.data_purity {
        true => "DBCC CHECKDB checks the purity of data by default",
        false => "DBCC CHECKDB checks the purity of data only WITH DATA_PURITY; mdfsck always checks it",
    };
    let (id, collation) = (format!("0x{:08x}", boot.collation), CollationId(boot.collation).name());
    vec![
        ("database", boot.name.clone()),
        ("product", product(boot.version)),
        ("created by", product(boot.create_version)),
        ("engine build", engine_build(boot)),
        ("database ID", boot.database_id.to_string()),
        ("state", state.to_owned()),
        ("last good check", or(&boot.last_known_good, "never, or not recorded")),
        ("created", or(&boot.created, "not recorded")),
        ("modified", or(&boot.modified, "not recorded")),
        ("checkpoint LSN", boot.checkpoint_lsn.to_string()),
        ("recovery model", recovery_model(boot).to_owned()),
        ("page verify", page_verify(boot).to_owned()),
        ("access", if boot.status & status::READ_ONLY != 0 { "read-only" } else { "read-write" }.to_owned()),
        ("data purity", purity.to_owned()),
        ("compatibility", boot.compatibility_level.to_string()),
        ("collation", collation.map_or_else(|| format!("ID {id}"), |name| format!("{name} (ID {id})"))),
    ]
}

fn engine_build(boot: &Boot) -> String {
    let (major, minor, build) = boot.engine_build;
    format!("{major}.{minor}.{build}")
}

fn recovery_model(boot: &Boot) -> &'static str {
    match boot.status & (status::SIMPLE | status::BULK_LOGGED) {
        0 => "full",
        status::BULK_LOGGED => "bulk-logged",
        _ => "simple",
    }
}

pub(crate) fn page_verify(boot: &Boot) -> &'static str {
    match boot.status & (status::CHECKSUM | status::TORN_PAGE) {
        0 => "none",
        status::TORN_PAGE => "torn page detection",
        _ => "checksum",
    }
}

/// Unusual features of the database, each with the number of times it occurs. System tables are not counted.
fn features(database: &Database) -> Vec<(&'static str, usize)> {
    let is_user = |object_id: i32| {
        let code = database.objects.get(&object_id).map(|object| object.type_code.as_str());
        matches!(code, Some("U" | "V" | "TF"))
    };
    let rowsets = || database.rowsets.iter().filter(|rowset| is_user(rowset.object_id));
    let indexes = || database.indexes.values().filter(|index| is_user(index.object_id));
    let columns = || database.columns.iter().filter(|(id, _)| is_user(**id)).flat_map(|(_, columns)| columns);
    let units = |kind: UnitKind| {
        let of_user =
            |unit: &&catalog::AllocUnit| database.rowset_of(unit).is_some_and(|rowset| is_user(rowset.object_id));
        database.units.iter().filter(of_user).filter(|unit| unit.kind == kind && !unit.first_iam.is_none()).count()
    };
    let compressed = |code: u8| rowsets().filter(|rowset| rowset.compression == code).count();
    let typed = |wanted: IndexType| indexes().filter(|index| index.index_type == wanted).count();
    let of_view = |object_id: i32| database.objects.get(&object_id).is_some_and(|object| object.type_code == "V");
    let counted = [
        ("user tables", database.objects.values().filter(|object| object.type_code == "U").count()),
        ("row-compressed partitions", compressed(1)),
        ("page-compressed partitions", compressed(2)),
        ("columnstore indexes", indexes().filter(|index| index.index_type.is_columnstore()).count()),
        ("partitions beyond the first", rowsets().filter(|rowset| rowset.partition > 1).count()),
        ("computed columns", columns().filter(|column| column.is_computed()).count()),
        ("sparse columns", columns().filter(|column| column.is_sparse()).count()),
        ("filtered indexes", indexes().filter(|index| index.is_filtered()).count()),
        ("disabled indexes", indexes().filter(|index| index.is_disabled()).count()),
        ("indexed views", indexes().filter(|index| index.index_id == 1 && of_view(index.object_id)).count()),
        ("XML indexes", typed(IndexType::Xml)),
        ("spatial indexes", typed(IndexType::Spatial)),
        ("hash indexes of memory-optimized tables", typed(IndexType::Hash)),
        ("LOB units with pages", units(UnitKind::Lob)),
        ("row-overflow units with pages", units(UnitKind::Overflow)),
        ("FILESTREAM or memory-optimized containers", database.files.iter().filter(|f| f.file_type == 2).count()),
    ];
    counted.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn filegroup_name(database: &Database, file: &DataFile) -> Option<String> {
    let found = database.filegroups.iter().find(|group| group.id == file.filegroup).map(|group| group.name.clone());
    found.or_else(|| (file.filegroup == 1).then(|| "PRIMARY".to_owned()))
}

/// The file's name from its header. In old files the header has no name, and the catalog's name is used.
fn logical_name(database: &Database, file: &DataFile) -> String {
    let row = || database.files.iter().find(|row| row.file_type == 0 && row.file_id == file.file_id);
    if file.logical_name.is_empty() {
        row().map_or_else(String::new, |row| row.logical_name.clone())
    } else {
        file.logical_name.clone()
    }
}

fn files_table(source: &dyn PageSource, database: &Database) -> TextTable {
    let mut table = TextTable::new(&[0, 3, 4]);
    table.row(["file", "name", "filegroup", "pages", "bytes", "path"]);
    for file in source.files() {
        let filegroup = filegroup_name(database, file).unwrap_or_else(|| file.filegroup.to_string());
        let mut path = file.path.display().to_string();
        if let Some(claimed) = file.header_pages.filter(|&claimed| claimed != file.pages) {
            path.push_str(&format!("  (its header says {claimed} pages)"));
        }
        if !file.header_is_sound {
            path.push_str("  (its header page is damaged)");
        }
        table.row([
            file.file_id.to_string(),
            logical_name(database, file),
            filegroup,
            file.pages.to_string(),
            file.bytes().to_string(),
            path,
        ]);
    }
    let given = |id: u16| source.file(id).is_some();
    for row in database.files.iter().filter(|row| row.file_type == 0 && !given(row.file_id)) {
        let cells = [&row.file_id.to_string(), &row.logical_name, "", "", "", "not given"];
        table.row(cells.map(str::to_owned));
    }
    table
}
