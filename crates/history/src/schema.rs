//! The schema of a history. The form of a history is the version of its schema; migrations convert older forms to the
//! newest one.

use std::sync::OnceLock;

use rusqlite::Connection;

/// The application ID in the SQLite header that marks a file as a history: "mdfH".
pub(crate) const APPLICATION_ID: u32 = 0x6D64_6648;

/// For each version, the script that migrates a history from the preceding version. The first script starts with an
/// empty file. After a version was released, its script never changes.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/v1.sql"),
    include_str!("schema/v2.sql"),
    include_str!("schema/v3.sql"),
    include_str!("schema/v4.sql"),
    include_str!("schema/v5.sql"),
];

/// The version of the schema that this program writes.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// Migrates a history of version `from` to the version that the last of `migrations` creates. The caller begins and
/// commits the transaction.
pub(crate) fn migrate(connection: &Connection, from: i64, migrations: &[&str]) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or_default();
    for step in migrations.iter().skip(done) {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "user_version", migrations.len() as i64)
}

/// The name and the definition of each table, index and view, ordered by name.
pub(crate) fn definitions(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(
        "SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Returns the definitions that a history must have after the first `version` migrations. The definitions of the newest
/// version are computed once: a check opens its history several times, and each computation makes a whole database.
pub(crate) fn expected(version: i64, migrations: &[&str]) -> rusqlite::Result<Vec<(String, String)>> {
    static NEWEST: OnceLock<Vec<(String, String)>> = OnceLock::new();
    if version != VERSION || migrations != MIGRATIONS {
        return made(version, migrations);
    }
    if let Some(known) = NEWEST.get() {
        return Ok(known.clone());
    }
    let newest = made(version, migrations)?;
    Ok(NEWEST.get_or_init(|| newest).clone())
}

/// The definitions that a new database has after the first `version` migrations.
fn made(version: i64, migrations: &[&str]) -> rusqlite::Result<Vec<(String, String)>> {
    let connection = Connection::open_in_memory()?;
    let known = usize::try_from(version).unwrap_or_default();
    migrate(&connection, 0, migrations.get(..known).unwrap_or(migrations))?;
    definitions(&connection)
}
