//! The results for several databases that were checked one after another: a line for each database, and a table of all
//! databases at the end.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use source::backup::UsedSet;

use crate::json::databases as lines;
use crate::json::lines::{self as check_lines, Line};
use crate::text_table::{padded, printable, width};

/// The result of checking one database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing is wrong, and everything requested was verified.
    Sound,
    /// Corruption was found.
    NotSound,
    /// Nothing was found, but not everything could be verified.
    Incomplete,
    /// The database could not be checked.
    NotChecked,
}

impl Verdict {
    /// The verdict from two bits of the check's exit status.
    pub fn of(is_corrupt: bool, is_incomplete: bool) -> Self {
        match (is_corrupt, is_incomplete) {
            (true, _) => Self::NotSound,
            (false, true) => Self::Incomplete,
            (false, false) => Self::Sound,
        }
    }

    /// The verdict as the table shows it; capitals mark problems.
    fn text(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::NotSound => "NOT SOUND",
            Self::Incomplete => "incomplete",
            Self::NotChecked => "NOT CHECKED",
        }
    }

    /// The verdict in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::NotSound => "not-sound",
            Self::Incomplete => "incomplete",
            Self::NotChecked => "not-checked",
        }
    }

    /// The escape sequence for the verdict's color on a terminal.
    fn color(self) -> &'static str {
        match self {
            Self::Sound => "\x1b[32m",
            Self::NotSound | Self::NotChecked => "\x1b[31m",
            Self::Incomplete => "\x1b[33m",
        }
    }
}

/// A row of the table: one checked database, from data files or restored from backups.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the database; empty if unknown.
    pub database: String,
    /// The data files or backups of the database.
    pub paths: Vec<PathBuf>,
    /// The backup sets that were restored.
    pub sets: Vec<UsedSet>,
    /// The result of the check.
    pub verdict: Verdict,
    /// Allocation and consistency errors.
    pub errors: u64,
    /// Things that could not be verified.
    pub not_verified: u64,
    /// Size of the data files in bytes; `None` if unknown.
    pub bytes: Option<u64>,
    /// Duration of the check; `None` if it did not run.
    pub seconds: Option<f64>,
    /// The last time CHECKDB found the database sound, in the local time of the server.
    pub last_good_check: Option<String>,
    /// Exit status of the check, as a combination of bits.
    pub status: u8,
    /// The reason why the database could not be checked.
    pub error: Option<String>,
}

/// The layout of the table.
#[derive(Clone, Copy, Default, Debug)]
pub struct TableView {
    /// Whether each verdict is colored.
    pub is_colored: bool,
    /// Whether the table shows the duration of each check, which differs in every run.
    pub has_times: bool,
}

/// Maximum width of the table, in terminal columns.
const MOST_COLUMNS: usize = 80;
/// Maximum number of paths named for one database.
const NAMED_PATHS: usize = 3;

/// The line that precedes the results of one of several databases.
pub fn heading(database: &str, paths: &[PathBuf], sets: &[UsedSet]) -> String {
    let kind = if sets.is_empty() { "Database" } else { "Backup of" };
    printable(&format!("{kind} '{database}': {}", files(paths, sets))).into_owned()
}

/// The files of a database, or its backup sets.
pub fn files(paths: &[PathBuf], sets: &[UsedSet]) -> String {
    if sets.is_empty() {
        return names(paths);
    }
    sets.iter().map(|set| format!("{}, set {}", names(&set.paths), set.position)).collect::<Vec<_>>().join("; ")
}

fn names(paths: &[PathBuf]) -> String {
    let more = if paths.len() > NAMED_PATHS { ", ..." } else { "" };
    let named: Vec<String> = paths.iter().take(NAMED_PATHS).map(|path| path.display().to_string()).collect();
    format!("{}{more}", named.join(", "))
}

/// Writes the table as text.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(rows: &[Row], view: TableView, out: &mut dyn io::Write) -> io::Result<()> {
    let labels = labels(rows);
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, view)).collect();
    let mut header = vec!["verdict", "errors", "not verified", "size", "last good"];
    if view.has_times {
        header.insert(4, "time");
    }
    let of_column = |column: usize| cells.iter().filter_map(move |cells| cells.get(column)).map(|cell| width(cell));
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(column, name)| of_column(column).max().unwrap_or_default().max(name.len()))
        .collect();
    let figures: usize = widths.iter().map(|width| width + 2).sum();
    let widest = labels.iter().map(|label| width(label)).max().unwrap_or_default().max("database".len());
    let first = widest.min(MOST_COLUMNS.saturating_sub(figures).max("database".len()));
    let line = |cells: Vec<String>| cells.concat().trim_end().to_owned();
    let aligned = |column: usize, text: &str| {
        let columns = widths.get(column).copied().unwrap_or_default();
        match column {
            0 => format!("  {}", padded(text, columns)),
            _ if column + 1 == widths.len() => format!("  {text}"),
            _ => format!("  {}{text}", " ".repeat(columns.saturating_sub(width(text)))),
        }
    };
    let of_header = header.iter().enumerate().map(|(column, name)| aligned(column, name));
    writeln!(out, "{}", line(std::iter::once(padded("database", first)).chain(of_header).collect()))?;
    for ((row, label), cells) in rows.iter().zip(&labels).zip(&cells) {
        // A label that is too wide is written on a line of its own.
        let start = if width(label) > first {
            writeln!(out, "{label}")?;
            padded("", first)
        } else {
            padded(label, first)
        };
        let figures = cells.iter().enumerate().map(|(column, cell)| match (column, view.is_colored) {
            (0, true) => aligned(0, cell).replace(cell.as_str(), &format!("{}{cell}\x1b[0m", row.verdict.color())),
            _ => aligned(column, cell),
        });
        writeln!(out, "{}", line(std::iter::once(start).chain(figures).collect()))?;
    }
    writeln!(out, "{}", totals(rows))?;
    for (row, label) in rows.iter().zip(&labels) {
        match (&row.error, row.verdict) {
            (Some(error), _) => {
                // Drop the path from the error if the label already shows it.
                let path = names(&row.paths);
                let of_path = error.strip_prefix(&format!("{path}: ")).filter(|_| path.ends_with(label.as_str()));
                let (named, why) =
                    of_path.map_or((label.clone(), error.as_str()), |why| (printable(&path).into(), why));
                writeln!(out, "{named} was not checked: {}", printable(why))?;
            }
            (None, Verdict::NotSound) if *label != names(&row.paths) => {
                writeln!(out, "{label} is not sound: {}", printable(&names(&row.paths)))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn cells(row: &Row, view: TableView) -> Vec<String> {
    let checked = |text: String| if row.verdict == Verdict::NotChecked { "-".to_owned() } else { text };
    let last_good = row.last_good_check.as_deref().map(|moment| moment.get(..10).unwrap_or(moment).to_owned());
    let mut cells = vec![
        row.verdict.text().to_owned(),
        checked(row.errors.to_string()),
        checked(row.not_verified.to_string()),
        row.bytes.map_or_else(|| "-".to_owned(), size),
        checked(last_good.unwrap_or_else(|| "none".to_owned())),
    ];
    if view.has_times {
        cells.insert(4, row.seconds.map_or_else(|| "-".to_owned(), time));
    }
    cells
}

/// The number of databases with each verdict.
fn totals(rows: &[Row]) -> String {
    let counts = [
        (Verdict::Sound, "sound"),
        (Verdict::NotSound, "not sound"),
        (Verdict::Incomplete, "incomplete"),
        (Verdict::NotChecked, "not checked"),
    ];
    let counted =
        counts.into_iter().map(|(verdict, name)| (rows.iter().filter(|row| row.verdict == verdict).count(), name));
    let counted: Vec<String> =
        counted.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    format!("{} databases and backups: {}", rows.len(), counted.join(", "))
}

/// The label of each row: the first of the row's possible labels that no other row has. Possible labels are the name of
/// the database, the file name, the file name with the set's position, and the path.
fn labels(rows: &[Row]) -> Vec<String> {
    let forms: Vec<Vec<String>> = rows.iter().map(forms).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for forms in &forms {
        // A label that occurs several times among the possible labels of one row counts once.
        let mut own: Vec<&str> = forms.iter().map(String::as_str).collect();
        own.sort_unstable();
        own.dedup();
        own.into_iter().for_each(|form| *uses.entry(form).or_default() += 1);
    }
    let label = |forms: &Vec<String>| {
        let is_alone = |form: &&String| !form.is_empty() && uses.get(form.as_str()) == Some(&1);
        forms.iter().find(is_alone).or(forms.last()).cloned().unwrap_or_default()
    };
    forms.iter().map(label).map(|label| printable(&label).into_owned()).collect()
}

fn forms(row: &Row) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut forms = vec![row.database.clone()];
    forms.extend(row.paths.first().map(|path| name(path)));
    let last = row.sets.last().and_then(|set| Some((set.paths.first()?, set.position)));
    forms.extend(last.map(|(path, _)| name(path)));
    forms.extend(last.map(|(path, position)| format!("{}, set {position}", name(path))));
    forms.extend(row.paths.first().map(|path| path.display().to_string()));
    forms.extend(last.map(|(path, position)| format!("{}, set {position}", path.display())));
    forms
}

/// A size, rounded up, in the largest unit that gives a number of at least 10. If no unit does, the size is in
/// megabytes.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("TB", 40), ("GB", 30), ("MB", 20)];
    let (name, shift) = UNITS.into_iter().find(|(_, shift)| bytes >> shift >= 10).unwrap_or(("MB", 20));
    format!("{} {name}", bytes.div_ceil(1 << shift))
}

fn time(seconds: f64) -> String {
    match seconds {
        short if short < 9.95 => format!("{short:.1} s"),
        seconds if seconds < 600.0 => format!("{seconds:.0} s"),
        seconds if seconds < 36_000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

/// Writes the table as one line of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(rows: &[Row], passed_over: &[PathBuf], status: u8, out: &mut dyn io::Write) -> io::Result<()> {
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect();
    let rows = rows.iter().map(|row| lines::DatabaseRow {
        database: &row.database,
        paths: paths(&row.paths),
        sets: row.sets.iter().map(set_line).collect(),
        verdict: row.verdict.name(),
        errors: row.errors,
        not_verified: row.not_verified,
        bytes: row.bytes,
        seconds: row.seconds,
        last_good_check: row.last_good_check.as_deref(),
        exit_status: row.status,
        error: row.error.as_deref(),
    });
    let line = lines::Databases { databases: rows.collect(), passed_over: paths(passed_over), exit_status: status };
    crate::json::line(&Line::Databases(line), out)
}

/// Writes the lines that replace the results of a database that could not be checked.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_failure(paths: &[PathBuf], text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let file = paths.first().map(|path| path.display().to_string());
    crate::json::line(&Line::Error(check_lines::ErrorText { file, ..check_lines::ErrorText::of(text) }), out)?;
    crate::json::line(&Line::Summary(check_lines::Summary::default()), out)
}

pub(crate) fn set_line(set: &UsedSet) -> lines::SetLine<'_> {
    lines::SetLine {
        paths: set.paths.iter().map(|path| path.display().to_string()).collect(),
        position: set.position,
        backup_type: set.kind.name(),
        finished: set.finished.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(database: &str, path: &str, verdict: Verdict) -> Row {
        Row {
            database: database.to_owned(),
            paths: vec![path.into()],
            sets: Vec::new(),
            verdict,
            errors: 0,
            not_verified: 0,
            bytes: Some(41 << 30),
            seconds: Some(38.2),
            last_good_check: Some("2024-11-02 03:00:00.000".to_owned()),
            status: 0,
            error: None,
        }
    }

    fn text(rows: &[Row], view: TableView) -> String {
        let mut out = Vec::new();
        write(rows, view, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_bad_one_stands_out() {
        let mut rows = [
            row("Sales", "/data/sales.mdf", Verdict::Sound),
            Row { errors: 4, not_verified: 8, last_good_check: None, ..row("HR", "/data/hr.mdf", Verdict::NotSound) },
            row("", "/data/x.bak", Verdict::NotChecked),
        ];
        rows[2].error = Some("/data/x.bak: is empty".to_owned());
        let expected = "\
database  verdict      errors  not verified   size  last good
Sales     sound             0             0  41 GB  2024-11-02
HR        NOT SOUND         4             8  41 GB  none
x.bak     NOT CHECKED       -             -  41 GB  -
3 databases and backups: 1 sound, 1 not sound, 1 not checked
HR is not sound: /data/hr.mdf
/data/x.bak was not checked: is empty
";
        assert_eq!(text(&rows, TableView::default()), expected);
        let copies = [row("HR", "/a/hr.mdf", Verdict::NotSound), row("HR", "/b/hr.mdf", Verdict::NotSound)];
        assert!(!text(&copies, TableView::default()).contains("is not sound:"), "the labels are the paths");
        let colored = text(&rows, TableView { is_colored: true, has_times: true });
        assert!(colored.contains("\x1b[31mNOT SOUND\x1b[0m    "), "{colored}");
        assert!(colored.contains("  38 s  2024-11-02"), "{colored}");
    }

    #[test]
    fn rows_of_one_name_are_told_apart_by_their_files() {
        let mut rows = [
            row("Sales", "/a/sales.mdf", Verdict::Sound),
            row("Sales", "/b/sales.mdf", Verdict::Sound),
            row("Sales", "/b/sales.bak", Verdict::Sound),
            row("HR", "/b/hr.bak", Verdict::Sound),
        ];
        assert_eq!(labels(&rows), ["/a/sales.mdf", "/b/sales.mdf", "sales.bak", "HR"]);
        let set = |position| UsedSet {
            paths: vec!["/b/sales.bak".into()],
            position,
            kind: source::backup::SetKind::Full,
            finished: None,
            guid: None,
        };
        (rows[2].sets, rows[3]) = (vec![set(1)], Row { sets: vec![set(1), set(2)], ..rows[2].clone() });
        assert_eq!(labels(&rows)[2..], ["sales.bak, set 1", "sales.bak, set 2"]);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_because_of_its_figures() {
        let long = "WideWorldImporters_FULL_20240101_030000_with_a_long_name.bak";
        let rows = [row(long, "/b/x.bak", Verdict::Incomplete), row("a", "/b/y.bak", Verdict::NotSound)];
        for view in [TableView::default(), TableView { has_times: true, ..TableView::default() }] {
            let text = text(&rows, view);
            assert!(text.lines().all(|line| line.len() <= MOST_COLUMNS), "{text}");
            assert!(text.contains(&format!("{long}\n")), "{text}");
        }
    }

    #[test]
    fn nothing_in_a_name_steers_a_terminal() {
        let rows = [row("a\x1b[2J", "/b/\n.mdf", Verdict::NotSound), row("b", "/b/b.mdf", Verdict::Sound)];
        let text = text(&rows, TableView::default());
        assert!(!text.contains('\x1b') && text.lines().count() == 5, "{text}");
    }
}
