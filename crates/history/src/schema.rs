//! The schema of a history. The form of a history is the version of its schema; migrations convert older forms to the
//! newest one.

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

/// Whether these definitions are those of the newest version. To make them anew, as [`expected`] does, takes longer than
/// all else that opening a history takes.
pub(crate) fn are_newest(definitions: &[(String, String)]) -> bool {
    // A name with a line break could pretend to be several definitions.
    let is_word = |(name, _): &(String, String)| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    definitions.len() == DEFINITIONS
        && definitions.iter().all(is_word)
        && text_of(definitions) == include_str!("schema/newest.sql")
}

/// The number of definitions of the newest version.
const DEFINITIONS: usize = 36;

/// Definitions as one text.
fn text_of(definitions: &[(String, String)]) -> String {
    definitions.iter().map(|(name, sql)| format!("-- {name}\n{sql};\n")).collect()
}

/// Returns the definitions that a history must have after the first `version` migrations.
pub(crate) fn expected(version: i64, migrations: &[&str]) -> rusqlite::Result<Vec<(String, String)>> {
    let connection = Connection::open_in_memory()?;
    let known = usize::try_from(version).unwrap_or_default();
    migrate(&connection, 0, migrations.get(..known).unwrap_or(migrations))?;
    definitions(&connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_definitions_are_those_that_the_migrations_make() {
        let made = expected(VERSION, MIGRATIONS).unwrap();
        assert_eq!(text_of(&made), include_str!("schema/newest.sql"), "schema/newest.sql must have this text");
        assert!(are_newest(&made));
        let mut other = made;
        other[0].1.push(' ');
        assert!(!are_newest(&other));
    }
}
