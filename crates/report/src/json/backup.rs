//! The JSON lines of `mdfsck info` of backups. LSNs are decimal numbers, as RESTORE HEADERONLY prints
//! them, and strings.

use serde::Serialize;

/// The kind of a [`Media`] line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(inline))]
#[serde(rename_all = "snake_case")]
pub(crate) enum MediaKind {
    Backup,
}

/// A backup file (`mdfsck info` of backups).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Media<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// `backup`.
    pub(crate) kind: MediaKind,
    /// Path of the file.
    pub(crate) path: String,
    /// Id of the media set, all stripes together.
    pub(crate) media_set_id: Option<&'a str>,
    /// Name of the media set.
    pub(crate) media_name: &'a str,
    /// Description of the media set.
    pub(crate) media_description: &'a str,
    /// Number of stripes of the media set.
    pub(crate) families: u16,
    /// Number of this stripe, from 1.
    pub(crate) family: u16,
    /// Id of this stripe.
    pub(crate) family_id: u32,
    /// The program that wrote the backup.
    pub(crate) software: &'a str,
    /// When the media set was created.
    pub(crate) created: Option<&'a str>,
    /// Size of a block in bytes.
    pub(crate) block_size: u16,
    /// Whether the backup is compressed.
    pub(crate) compressed: bool,
    /// The backup sets in the file.
    pub(crate) sets: Vec<Set<'a>>,
    /// Damage of the container.
    pub(crate) damage: Vec<Damage>,
}

/// Damage of a backup's container.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Damage {
    /// Offset of the damage in the file, in bytes.
    pub(crate) position: u64,
    /// What is damaged.
    pub(crate) text: String,
}

/// A backup set.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Set<'a> {
    /// Its position in the file, from 1.
    pub(crate) position: u16,
    /// Type of the set, as RESTORE HEADERONLY numbers it; null if the type is unknown.
    #[serde(rename = "type")]
    pub(crate) type_number: Option<u8>,
    /// Type of the set, in words.
    pub(crate) type_description: &'static str,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its description.
    pub(crate) description: &'a str,
    /// The login that made the backup.
    pub(crate) user: &'a str,
    /// The server.
    pub(crate) server: &'a str,
    /// The machine.
    pub(crate) machine: &'a str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Internal version of the database.
    pub(crate) db_version: u16,
    /// The SQL Server release with that internal version.
    pub(crate) product: Option<&'static str>,
    /// The compatibility level.
    pub(crate) compatibility_level: u8,
    /// Major and minor version of the program.
    pub(crate) software_version: [u8; 2],
    /// When the database was created.
    pub(crate) database_created: Option<&'a str>,
    /// When the backup was started.
    pub(crate) started: Option<&'a str>,
    /// When the backup was finished.
    pub(crate) finished: Option<&'a str>,
    /// The date on its label.
    pub(crate) labelled: Option<&'a str>,
    /// LSN of the first log record in it.
    pub(crate) first_lsn: Option<String>,
    /// LSN of the log record after the last one in it.
    pub(crate) last_lsn: Option<String>,
    /// LSN of its checkpoint.
    pub(crate) checkpoint_lsn: Option<String>,
    /// LSN of the full backup before it.
    pub(crate) database_backup_lsn: Option<String>,
    /// Its size in bytes, uncompressed.
    pub(crate) size: u64,
    /// Bytes of log in it.
    pub(crate) log_bytes: u64,
    /// Whether it was made WITH CHECKSUM.
    pub(crate) checksums: bool,
    /// Whether it was made WITH COPY_ONLY.
    pub(crate) copy_only: bool,
    /// Whether it is encrypted.
    pub(crate) encrypted: bool,
    /// The locale.
    pub(crate) locale: u16,
    /// The binding id.
    pub(crate) binding_id: Option<&'a str>,
    /// The recovery fork.
    pub(crate) recovery_fork_id: Option<&'a str>,
    /// Id of the full backup that a differential is based on.
    pub(crate) differential_base_guid: Option<&'a str>,
    /// Id of the set.
    pub(crate) backup_set_guid: Option<&'a str>,
    /// The files of the database.
    pub(crate) files: Vec<SetFile<'a>>,
    /// The filegroups of the database.
    pub(crate) filegroups: Vec<Filegroup<'a>>,
}

/// A file of a database in a backup set.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetFile<'a> {
    /// Its number in page addresses.
    pub(crate) file_id: u16,
    /// `data`, `log` or `other`.
    #[serde(rename = "type")]
    pub(crate) type_name: &'static str,
    /// Its logical name.
    pub(crate) logical_name: &'a str,
    /// Path of the file on the server.
    pub(crate) physical_name: &'a str,
    /// Id of its filegroup.
    pub(crate) filegroup_id: u16,
    /// Name of its filegroup.
    pub(crate) filegroup: &'a str,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// Pages of a data file that the set contains.
    pub(crate) pages_copied: Option<u32>,
    /// LSN that a differential is based on.
    pub(crate) differential_base_lsn: Option<String>,
}

/// A filegroup.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Filegroup<'a> {
    /// Its id.
    pub(crate) id: u16,
    /// Its name.
    pub(crate) name: &'a str,
}
