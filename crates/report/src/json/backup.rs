//! The JSON lines of `mdfsck info` of backups. An LSN is a string with one decimal number, as RESTORE HEADERONLY prints
//! it.

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
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Always `backup`.
    pub(crate) kind: MediaKind,
    /// Path of the file.
    pub(crate) path: String,
    /// Id of the media set, which is the same in all its stripes.
    pub(crate) media_set_id: Option<&'a str>,
    /// Name of the media set.
    pub(crate) media_name: &'a str,
    /// Description of the media set.
    pub(crate) media_description: &'a str,
    /// Number of stripes in the media set.
    pub(crate) families: u16,
    /// Number of the stripe in this file, from 1.
    pub(crate) family: u16,
    /// Id of the stripe in this file.
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
    /// Damage in the structure of the backup file.
    pub(crate) damage: Vec<Damage>,
}

/// Damage in the structure of a backup file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Damage {
    /// Offset of the damage in the file, in bytes.
    pub(crate) position: u64,
    /// A description of the damage.
    pub(crate) text: String,
}

/// A backup set.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Set<'a> {
    /// Position of the set in the file, from 1.
    pub(crate) position: u16,
    /// Type of the set, as RESTORE HEADERONLY numbers it; null if the type is unknown.
    #[serde(rename = "type")]
    pub(crate) type_number: Option<u8>,
    /// Type of the set, in words.
    pub(crate) type_description: &'static str,
    /// Name of the set.
    pub(crate) name: &'a str,
    /// Description of the set.
    pub(crate) description: &'a str,
    /// The login that made the backup.
    pub(crate) user: &'a str,
    /// Name of the server.
    pub(crate) server: &'a str,
    /// Name of the machine.
    pub(crate) machine: &'a str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Internal version of the database.
    pub(crate) db_version: u16,
    /// The SQL Server release of the internal version in `db_version`.
    pub(crate) product: Option<&'static str>,
    /// The compatibility level.
    pub(crate) compatibility_level: u8,
    /// Major and minor version of the program that wrote the backup.
    pub(crate) software_version: [u8; 2],
    /// When the database was created.
    pub(crate) database_created: Option<&'a str>,
    /// When the backup was started.
    pub(crate) started: Option<&'a str>,
    /// When the backup was finished.
    pub(crate) finished: Option<&'a str>,
    /// When the set was written, according to its label.
    pub(crate) labelled: Option<&'a str>,
    /// LSN of the first log record in the backup.
    pub(crate) first_lsn: Option<String>,
    /// LSN of the log record after the last record in the backup.
    pub(crate) last_lsn: Option<String>,
    /// LSN of the checkpoint that the backup made.
    pub(crate) checkpoint_lsn: Option<String>,
    /// LSN of the checkpoint of the latest full backup before this backup.
    pub(crate) database_backup_lsn: Option<String>,
    /// Size of the backup in bytes, uncompressed.
    pub(crate) size: u64,
    /// Bytes of log in the backup.
    pub(crate) log_bytes: u64,
    /// Whether the backup was made WITH CHECKSUM.
    pub(crate) checksums: bool,
    /// Whether the backup was made WITH COPY_ONLY.
    pub(crate) copy_only: bool,
    /// Whether the backup is encrypted.
    pub(crate) encrypted: bool,
    /// Locale id.
    pub(crate) locale: u16,
    /// Binding id of the database.
    pub(crate) binding_id: Option<&'a str>,
    /// Id of the recovery fork.
    pub(crate) recovery_fork_id: Option<&'a str>,
    /// Id of the full backup that is the base of a differential backup.
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
    /// Id of the file, as in page addresses.
    pub(crate) file_id: u16,
    /// Type of the file: `data`, `log` or `other`.
    #[serde(rename = "type")]
    pub(crate) type_name: &'static str,
    /// Logical name of the file.
    pub(crate) logical_name: &'a str,
    /// Path of the file on the server.
    pub(crate) physical_name: &'a str,
    /// Id of the file's filegroup.
    pub(crate) filegroup_id: u16,
    /// Name of the file's filegroup.
    pub(crate) filegroup: &'a str,
    /// Size of the file in bytes.
    pub(crate) size: u64,
    /// Number of pages of a data file that the set contains.
    pub(crate) pages_copied: Option<u32>,
    /// LSN of the base of a differential backup.
    pub(crate) differential_base_lsn: Option<String>,
}

/// A filegroup of a database in a backup set.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Filegroup<'a> {
    /// Id of the filegroup.
    pub(crate) id: u16,
    /// Name of the filegroup.
    pub(crate) name: &'a str,
}
