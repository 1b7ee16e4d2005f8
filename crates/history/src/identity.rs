//! Identifies what a run checked: the database, the copy of the database, and the state of that copy at a point in
//! time.

use std::fs;
use std::path::{Path, PathBuf};

use catalog::Database;
use findings::DatabaseSummary;
use format::types::guid_text;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use source::PageSource;

/// Databases that every server has. These databases may have the same family GUID on different servers, although they
/// are different databases.
const OF_EVERY_SERVER: [&str; 5] = ["master", "model", "msdb", "tempdb", "mssqlsystemresource"];

/// Settings that determine how this machine identifies the databases that it checks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Naming {
    /// The name of this machine.
    pub host: String,
    /// The server to which data files belong; `None` if it is this machine. A backup contains the name of its own
    /// server.
    pub server: Option<String>,
    /// Whether all databases of one family are treated as one database, whatever their servers and names.
    pub are_replicas: bool,
    /// The original paths of the files, if the run checks a snapshot of them.
    pub originals: Originals,
}

/// The original paths of the files in a snapshot. The history records these paths, because each snapshot may be in
/// another folder, but all snapshots of a database are states of the same copy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Originals(Vec<(PathBuf, PathBuf)>);

impl Originals {
    /// Takes pairs of paths: a file or folder in the snapshot, and its original.
    pub fn new(pairs: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        // The longest path comes first, since the pair of a file is more exact than that of its folder.
        pairs.sort_by_key(|(copy, _)| std::cmp::Reverse(copy.components().count()));
        Self(pairs)
    }

    /// The original of `path`; `path` itself if it is not in a snapshot.
    pub fn of(&self, path: &Path) -> PathBuf {
        let original = self.0.iter().find_map(|(copy, original)| {
            let rest = path.strip_prefix(copy).ok()?;
            Some(if rest.as_os_str().is_empty() { original.clone() } else { original.join(rest) })
        });
        original.unwrap_or_else(|| path.to_owned())
    }
}

/// The database, copy and state that a run checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    /// The identity of the database: see [`identity_of`].
    pub(crate) database: String,
    /// The family: the database and all databases restored from its backups.
    pub(crate) family: String,
    /// The server of the database; empty if databases of one family count as one database, whatever their servers.
    pub(crate) server: String,
    pub(crate) name: String,
    /// `files` or `backup`.
    pub(crate) kind: &'static str,
    pub(crate) host: String,
    /// The path or URL of the copy, without secrets.
    pub(crate) location: String,
    /// The text that identifies the state of the copy.
    pub(crate) image: String,
    pub(crate) checkpoint_lsn: Option<String>,
    /// The time at which the database had this state. For data files, or if the time is unknown, this is the start of
    /// the run.
    pub(crate) taken_at: String,
    /// The paths of the files that were read.
    pub(crate) paths: String,
    /// The paths of the files that were read, as a JSON list.
    pub(crate) files: String,
    /// The positions of the backup sets that the run did not read, although its files contain them.
    pub(crate) other_sets: Vec<u16>,
}

/// Returns the text that identifies a database: its family, server and name. If `server` is empty, as it is when
/// databases of one family count as one database, the text is the family alone.
pub fn identity_of(family: &str, server: &str, name: &str) -> String {
    match server {
        "" => family.to_owned(),
        server => format!("{family} on {} as {name}", server.to_ascii_lowercase()),
    }
}

/// The row IDs of a database, its copy and the state of that copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    pub(crate) database: i64,
    pub(crate) source: i64,
    pub(crate) image: i64,
}

/// Returns the text that identifies a family: a database and all databases restored from its backups. The text is the
/// family GUID, except in two cases: some databases have no GUID, and databases that exist on every server may share
/// the GUID of their template. In these cases, the location of the copy, and its machine or server, are added. The
/// location of a backup is the name of its database, or the path of its first file if its label names no server.
pub fn family_of(guid: Option<&str>, name: &str, (host, location): (&str, &str)) -> String {
    let is_of_every_server = OF_EVERY_SERVER.iter().any(|known| name.eq_ignore_ascii_case(known));
    match guid {
        Some(guid) if !is_of_every_server => guid.to_owned(),
        known => format!("{} at {host}: {location}", known.unwrap_or(name)),
    }
}

impl Identity {
    pub(crate) fn of(
        summary: &DatabaseSummary,
        source: &dyn PageSource,
        database: &Database,
        (naming, now): (&Naming, &str),
    ) -> Self {
        let host = naming.host.as_str();
        let boot = database.boot.as_ref();
        let label = source.backup().map(|backup| backup.set());
        // The name of the database is taken from the label of the backup, because watchers take it from there too.
        let name = match label {
            Some(label) if !label.database.is_empty() => storable(&label.database),
            _ => storable(&summary.name),
        };
        let (kind, host, location) = match label {
            // A backup belongs to the server that made it, even if the file is stored on another machine.
            Some(label) if !label.server.is_empty() => ("backup", storable(&label.server), storable(&label.database)),
            Some(_) => ("backup", host.to_owned(), first_path(source, &naming.originals)),
            None => ("files", host.to_owned(), first_path(source, &naming.originals)),
        };
        let server = match (naming.are_replicas, &naming.server) {
            (true, _) => String::new(),
            (false, Some(server)) if kind == "files" => storable(server),
            (false, _) => host.clone(),
        };
        let guid = boot.map(|boot| boot.family_guid).filter(|guid| guid.iter().any(|byte| *byte != 0));
        // If the boot page is damaged, the family GUID is taken from the label of the backup.
        let of_label = || label.filter(|_| boot.is_none()).and_then(|label| label.lasting_id.clone());
        let guid = guid.map(guid_text).or_else(of_label);
        let family = family_of(guid.as_deref(), &name, (&host, &location));
        let database = identity_of(&family, &server, &name);
        let lsn = boot.map(|boot| boot.checkpoint_lsn.to_string());
        let image = match label {
            Some(_) if source.backup().is_some_and(|backup| !backup.has_one_moment()) => {
                let sets = source.backup().map(|backup| backup.sets()).unwrap_or_default();
                let one = |set: &source::backup::UsedSet| {
                    let (guid, finished) = (set.guid.as_deref(), set.finished.as_deref());
                    format!("{} {} {}", guid.unwrap_or_default(), set.position, finished.unwrap_or_default())
                };
                sets.iter().map(one).collect::<Vec<_>>().join(" + ")
            }
            Some(label) => {
                let sets = source.backup().map(|backup| backup.sets()).unwrap_or_default();
                let positions: Vec<String> = sets.iter().map(|set| set.position.to_string()).collect();
                let finished = label.finished.clone().unwrap_or_default();
                format!("{} {} {finished}", label.guid.clone().unwrap_or_default(), positions.join("+"))
            }
            None => {
                let pages: u64 = source.files().iter().map(|file| u64::from(file.pages)).sum();
                let modified = boot.and_then(|boot| boot.modified.clone()).unwrap_or_default();
                format!("{} {modified} {pages}", lsn.clone().unwrap_or_default())
            }
        };
        // The label contains the local time of the server, which may be hours ahead of UTC. So the time is limited to
        // the present time.
        let finished = label.and_then(|label| crate::time::seconds(label.finished.as_deref()?));
        let taken_at = finished.map_or_else(|| now.to_owned(), crate::time::text_of_seconds).min(now.to_owned());
        let sets = summary.sets.iter().flat_map(|set| &set.paths);
        let files = summary.files.iter().map(|file| &file.path);
        let paths: Vec<String> = match summary.sets.is_empty() {
            true => files.map(|path| whole(&naming.originals.of(path))).collect(),
            false => sets.map(|path| whole(&naming.originals.of(path))).collect(),
        };
        let files = serde_json::to_string(&paths).unwrap_or_default();
        let other_sets = source.backup().map(|backup| backup.other_sets().to_vec()).unwrap_or_default();
        Self {
            database,
            family,
            server,
            name,
            kind,
            host,
            location,
            image,
            checkpoint_lsn: lsn,
            taken_at,
            paths: paths.join(", "),
            files,
            other_sets,
        }
    }

    /// The row ID of the copy; `None` if the history does not contain the copy.
    pub(crate) fn source(&self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        let query = "SELECT s.id FROM source s JOIN database d ON d.id = s.database
             WHERE d.identity = ?1 AND s.kind = ?2 AND s.host = ?3 AND s.location = ?4";
        let values = params![self.database, self.kind, self.host, self.location];
        connection.query_row(query, values, |row| row.get(0)).optional()
    }

    /// The row IDs of the database, the copy and its state. Missing rows are inserted.
    pub(crate) fn ids(&self, transaction: &Transaction<'_>, now: &str) -> rusqlite::Result<Ids> {
        transaction.execute(
            "INSERT INTO database (identity, family, server, name, first_seen) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (identity) DO UPDATE SET name = excluded.name",
            params![self.database, self.family, self.server, self.name, now],
        )?;
        let database = id(transaction, "SELECT id FROM database WHERE identity = ?1", params![self.database])?;
        transaction.execute(
            "INSERT INTO source (database, kind, host, location) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            params![database, self.kind, self.host, self.location],
        )?;
        let source = id(
            transaction,
            "SELECT id FROM source WHERE database = ?1 AND kind = ?2 AND host = ?3 AND location = ?4",
            params![database, self.kind, self.host, self.location],
        )?;
        transaction.execute(
            "INSERT INTO image (source, identity, checkpoint_lsn, taken_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (source, identity) DO UPDATE SET taken_at = CASE WHEN ?5 THEN excluded.taken_at ELSE taken_at END",
            params![source, self.image, self.checkpoint_lsn, self.taken_at, self.kind == "files"],
        )?;
        let image =
            id(transaction, "SELECT id FROM image WHERE source = ?1 AND identity = ?2", params![source, self.image])?;
        Ok(Ids { database, source, image })
    }
}

fn id(transaction: &Transaction<'_>, query: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<i64> {
    transaction.query_row(query, values, |row| row.get(0)).optional()?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// The canonical path of the first file, or of its original.
fn first_path(source: &dyn PageSource, originals: &Originals) -> String {
    let Some(file) = source.files().first() else { return String::new() };
    let path = originals.of(&file.path);
    shown(&fs::canonicalize(&path).unwrap_or(path))
}

/// Returns the absolute path without secrets. Paths are stored in this form, because an absolute path does not depend
/// on the current folder.
pub(crate) fn whole(path: &Path) -> String {
    let is_other = path.as_os_str() == "-" || path.to_string_lossy().contains("://");
    let whole = if is_other { None } else { std::path::absolute(path).ok() };
    shown(whole.as_deref().unwrap_or(path))
}

/// A path with possible secrets removed.
pub(crate) fn shown(path: &Path) -> String {
    without_secrets(&storable(&path.to_string_lossy()))
}

/// Removes the query and the user information from a URL. They may contain a signature or a password.
fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (server, path) = rest.split_once('/').map_or((rest, None), |(server, path)| (server, Some(path)));
    let server = server.rsplit('@').next().unwrap_or_default();
    path.map_or_else(|| format!("{scheme}://{server}"), |path| format!("{scheme}://{server}/{path}"))
}

/// Returns the text in the form in which it is stored. NUL characters are replaced, because other tools that read the
/// history would cut the text at the first NUL.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_urls_are_not_kept() {
        let url = "https://who:pass@account.blob.core.windows.net/backups/a.bak?sig=SECRET&se=2026";
        assert_eq!(without_secrets(url), "https://account.blob.core.windows.net/backups/a.bak");
        assert_eq!(without_secrets("s3://bucket"), "s3://bucket");
        assert_eq!(without_secrets("/data/what?is@this.mdf"), "/data/what?is@this.mdf");
    }

    #[test]
    fn a_file_of_a_snapshot_has_the_path_of_its_original() {
        let path = |text: &str| PathBuf::from(text);
        let originals = Originals::new([
            (path("/snap/1"), path("/data")),
            (path("/snap/1/log.ldf"), path("/log/sales.ldf")),
            (path("/snap/2.ndf"), path("/more/2.ndf")),
        ]);
        for (copy, original) in [
            ("/snap/1/sales.mdf", "/data/sales.mdf"),
            ("/snap/1", "/data"),
            ("/snap/1/log.ldf", "/log/sales.ldf"),
            ("/snap/2.ndf", "/more/2.ndf"),
            ("/snap/12/x.mdf", "/snap/12/x.mdf"),
            ("/data/sales.mdf", "/data/sales.mdf"),
        ] {
            assert_eq!(originals.of(Path::new(copy)), Path::new(original), "{copy}");
        }
    }

    #[test]
    fn a_text_with_a_nul_is_kept_whole() {
        assert_eq!(storable("a\0b\u{202e}'\";--"), "a\u{2400}b\u{202e}'\";--");
    }
}
