//! The table at the end of the output of `mdfsck info`: a line for each of several databases and backup sets.

use std::io;
use std::path::Path;

use catalog::Database;
use format::version;
use source::PageSource;
use source::backup::BackupMedia;

use crate::databases::size;
use crate::text_table::TextTable;

/// Maximum width of a table in terminal columns, unless long names need more.
const MOST_COLUMNS: usize = 80;

/// The lines of several databases and backups.
#[derive(Default)]
pub struct Table {
    databases: Vec<[String; 6]>,
    sets: Vec<[String; 6]>,
    refused: Vec<String>,
}

impl Table {
    /// Adds a database.
    pub fn database(&mut self, source: &dyn PageSource, database: &Database) {
        let bytes = source.files().iter().map(source::DataFile::bytes).sum();
        let file = source.files().first().map(|file| file_name(&file.path)).unwrap_or_default();
        let [name, product, state, last_good] = match &database.boot {
            Some(boot) => [
                boot.name.clone(),
                product(boot.version),
                state(database, boot.clean_shutdown()).to_owned(),
                day(boot.last_known_good.as_deref(), "none"),
            ],
            None => ["-", "-", "boot page damaged", "-"].map(str::to_owned),
        };
        self.databases.push([name, product, size(bytes), last_good, state, file]);
    }

    /// Adds the sets of backup files.
    pub fn backups(&mut self, media: &[BackupMedia]) {
        for media in media {
            let named = |rest: String| format!("{}{rest}", file_name(&media.path));
            let damaged = if media.damage.is_empty() { "" } else { ", damaged" };
            for set in &media.sets {
                let position = if media.sets.len() > 1 { format!(", set {}", set.position) } else { String::new() };
                self.sets.push([
                    set.config.database.clone(),
                    set.kind.name().to_owned(),
                    product(set.config.version),
                    size(set.config.bytes),
                    day(set.config.finished.as_deref(), "-"),
                    named(format!("{position}{damaged}")),
                ]);
            }
            if media.sets.is_empty() {
                let [none, unknown] = ["-", "no set"].map(str::to_owned);
                let cells = [none.clone(), unknown, none.clone(), none.clone(), none, named(damaged.to_owned())];
                self.sets.push(cells);
            }
        }
    }

    /// Adds a line for an input that cannot be shown, with the reason.
    pub fn refused(&mut self, why: &str) {
        self.refused.push(why.to_owned());
    }

    /// Writes the lines; writes nothing if there are fewer than two.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        if self.databases.len() + self.sets.len() + self.refused.len() < 2 {
            return Ok(());
        }
        if !self.databases.is_empty() {
            let mut table = TextTable::new(&[2]);
            table.row(["database", "product", "size", "last good", "state", "file"]);
            self.databases.iter().for_each(|cells| table.row(cells.clone()));
            writeln!(out)?;
            table.write_within(0, MOST_COLUMNS, out)?;
        }
        if !self.sets.is_empty() {
            let mut table = TextTable::new(&[3]);
            table.row(["backup of", "kind", "product", "size", "finished", "file"]);
            self.sets.iter().for_each(|cells| table.row(cells.clone()));
            writeln!(out)?;
            table.write_within(0, MOST_COLUMNS, out)?;
        }
        if !self.refused.is_empty() {
            writeln!(out)?;
            let line = |why: &String| writeln!(out, "NOT CHECKED: {}", crate::text_table::printable(why));
            self.refused.iter().try_for_each(line)?;
        }
        Ok(())
    }
}

fn product(number: u16) -> String {
    match version::product(number) {
        Some(product) => product.to_owned(),
        None => format!("version {number}"),
    }
}

fn state(database: &Database, is_clean: bool) -> &'static str {
    match (database.gaps.is_empty(), is_clean) {
        _ if database.is_encrypted => "encrypted (TDE)",
        (true, true) => "clean shutdown",
        (_, false) => "not shut down cleanly",
        (false, true) => "catalog damaged",
    }
}

/// The date in a timestamp; `none` if there is no timestamp.
fn day(moment: Option<&str>, none: &str) -> String {
    moment.map_or(none, |moment| moment.get(..10).unwrap_or(moment)).to_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
