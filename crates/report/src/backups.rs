//! The contents of a backup file: `mdfsck info` for backups, like RESTORE LABELONLY, HEADERONLY and FILELISTONLY.

use std::collections::HashMap;
use std::io;

use format::{Lsn, version};
use source::backup::{BackupFile, BackupMedia, BackupSet, Damage, DamageKind};

use crate::json::backup as lines;
use crate::text_table::TextTable;

/// Writes the labels of `media` as text.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(media: &[BackupMedia], out: &mut dyn io::Write) -> io::Result<()> {
    for (number, media) in media.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let mut facts = TextTable::new(&[]);
        for (name, fact) in label(media) {
            facts.row([name, &fact]);
        }
        facts.write(0, out)?;
        for set in &media.sets {
            writeln!(out)?;
            write_set(set, out)?;
        }
        if !media.damage.is_empty() {
            writeln!(out, "\ndamaged")?;
            for damage in &media.damage {
                writeln!(out, "  byte {}: {}", damage.at, describe(damage))?;
            }
        }
    }
    Ok(())
}

/// Writes the labels of `media` as JSON, one object per file.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(media: &[BackupMedia], out: &mut dyn io::Write) -> io::Result<()> {
    media.iter().try_for_each(|media| crate::json::line(&line_of(media), out))
}

fn label(media: &BackupMedia) -> Vec<(&'static str, String)> {
    let named = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let stripes = match media.families {
        1 => "one file".to_owned(),
        families => format!("stripe {} of {families}", media.family),
    };
    vec![
        ("backup file", media.path.display().to_string()),
        ("media set", media.media_set.clone().unwrap_or_else(|| "not known".to_owned())),
        ("media name", named(&media.name)),
        ("stripes", stripes),
        ("written by", media.software.clone()),
        ("created", media.created.clone().unwrap_or_else(|| "not recorded".to_owned())),
        ("compressed", if media.is_compressed { "yes" } else { "no" }.to_owned()),
        ("sets", media.sets.len().to_string()),
    ]
}

fn write_set(set: &BackupSet, out: &mut dyn io::Write) -> io::Result<()> {
    let config = &set.config;
    let or = |text: Option<&String>| text.cloned().unwrap_or_else(|| "not recorded".to_owned());
    let lsn = |lsn: Option<Lsn>| lsn.map_or_else(|| "none".to_owned(), |lsn| format!("{lsn}  {}", decimal(lsn)));
    let product = match version::product(config.version) {
        Some(product) => format!("{product} (internal version {})", config.version),
        None => format!("internal version {}", config.version),
    };
    let mut facts = TextTable::new(&[]);
    let copy_only = if set.is_copy_only { ", copy-only" } else { "" };
    facts.row([format!("set {}", set.position), format!("{}{copy_only}", set.kind.name())]);
    facts.row(["  database", &config.database]);
    facts.row(["  server", &config.server]);
    facts.row(["  machine", &set.machine]);
    facts.row(["  product", &product]);
    facts.row(["  name", &set.name]);
    if !set.description.is_empty() {
        facts.row(["  description", &set.description]);
    }
    facts.row(["  user", &set.user]);
    facts.row(["  started", &or(config.started.as_ref())]);
    facts.row(["  finished", &or(config.finished.as_ref())]);
    facts.row(["  first LSN", &lsn(config.first_lsn)]);
    facts.row(["  last LSN", &lsn(config.last_lsn)]);
    facts.row(["  checkpoint LSN", &lsn(config.checkpoint_lsn)]);
    facts.row(["  database backup LSN", &lsn(config.database_backup_lsn)]);
    facts.row(["  size in bytes", &config.bytes.to_string()]);
    facts.row(["  checksums", if set.has_checksums { "yes" } else { "no" }]);
    facts.row(["  encrypted", if set.is_encrypted { "yes" } else { "no" }]);
    facts.write(0, out)?;
    let mut files = TextTable::new(&[0, 4, 5]);
    files.row(["file", "type", "name", "filegroup", "bytes", "pages copied", "path"]);
    let filegroups = filegroups(set);
    for file in &set.files {
        files.row([
            file.file_id.to_string(),
            file_type(file).to_owned(),
            file.logical_name.clone(),
            filegroups.get(&file.filegroup).copied().unwrap_or_default().to_owned(),
            file.bytes.to_string(),
            if file.is_data { file.pages_copied.to_string() } else { String::new() },
            file.physical_name.clone(),
        ]);
    }
    files.write(2, out)
}

fn file_type(file: &BackupFile) -> &'static str {
    match (file.is_data, file.is_log) {
        (true, _) => "data",
        (_, true) => "log",
        _ => "other",
    }
}

/// The names of a set's filegroups by ID. If several filegroups have the same ID, the first name is used.
fn filegroups(set: &BackupSet) -> HashMap<u16, &str> {
    set.filegroups.iter().rev().map(|group| (group.id, group.name.as_str())).collect()
}

/// An LSN as one decimal number, as RESTORE HEADERONLY prints it.
pub(crate) fn decimal(lsn: Lsn) -> String {
    format!("{}{:010}{:05}", lsn.vlf, lsn.block, lsn.slot)
}

fn describe(damage: &Damage) -> String {
    let tag = |tag: &[u8; 4]| String::from_utf8_lossy(tag).into_owned();
    match &damage.kind {
        DamageKind::BlockChecksum { tag: name } => format!("wrong checksum in the header of block {}", tag(name)),
        DamageKind::UnknownBlock { tag: name } => format!("block {} of unknown type", tag(name)),
        DamageKind::StreamChecksum { tag: name } => format!("wrong checksum in the header of stream {}", tag(name)),
        DamageKind::Truncated => "the file ends before the backup does".to_owned(),
        DamageKind::Lost => "bytes that belong to no block".to_owned(),
        DamageKind::SetIncomplete { position } => format!("set {position} has no end"),
        DamageKind::Configuration { position } => {
            format!("the configurations at the start and at the end of set {position} contradict each other")
        }
        other => format!("{other:?}"),
    }
}

fn line_of(media: &BackupMedia) -> lines::Media<'_> {
    let damage = |damage: &Damage| lines::Damage { position: damage.at, text: describe(damage) };
    lines::Media {
        v: crate::json::VERSION,
        kind: lines::MediaKind::Backup,
        path: media.path.display().to_string(),
        media_set_id: media.media_set.as_deref(),
        media_name: &media.name,
        media_description: &media.description,
        families: media.families,
        family: media.family,
        family_id: media.family_id,
        software: &media.software,
        created: media.created.as_deref(),
        block_size: media.block_bytes,
        compressed: media.is_compressed,
        sets: media.sets.iter().map(set_of).collect(),
        damage: media.damage.iter().map(damage).collect(),
    }
}

fn set_of(set: &BackupSet) -> lines::Set<'_> {
    let config = &set.config;
    let lsn = |lsn: Option<Lsn>| lsn.map(decimal);
    let filegroups = filegroups(set);
    let files = set.files.iter().map(|file| lines::SetFile {
        file_id: file.file_id,
        type_name: file_type(file),
        logical_name: &file.logical_name,
        physical_name: &file.physical_name,
        filegroup_id: file.filegroup,
        filegroup: filegroups.get(&file.filegroup).copied().unwrap_or_default(),
        size: file.bytes,
        pages_copied: file.is_data.then_some(file.pages_copied),
        differential_base_lsn: lsn(file.differential_base_lsn),
    });
    lines::Set {
        position: set.position,
        type_number: set.kind.number(),
        type_description: set.kind.name(),
        name: &set.name,
        description: &set.description,
        user: &set.user,
        server: &config.server,
        machine: &set.machine,
        database: &config.database,
        db_version: config.version,
        product: version::product(config.version),
        compatibility_level: config.compatibility_level,
        software_version: [set.software.0, set.software.1],
        database_created: config.database_created.as_deref(),
        started: config.started.as_deref(),
        finished: config.finished.as_deref(),
        labelled: set.labelled.as_deref(),
        first_lsn: lsn(config.first_lsn),
        last_lsn: lsn(config.last_lsn),
        checkpoint_lsn: lsn(config.checkpoint_lsn),
        database_backup_lsn: lsn(config.database_backup_lsn),
        size: config.bytes,
        log_bytes: set.log_bytes(),
        checksums: set.has_checksums,
        copy_only: set.is_copy_only,
        encrypted: set.is_encrypted,
        locale: config.locale,
        binding_id: config.binding_id.as_deref(),
        recovery_fork_id: config.recovery_fork_id.as_deref(),
        differential_base_guid: config.differential_base_guid.as_deref(),
        backup_set_guid: set.guid.as_deref(),
        files: files.collect(),
        filegroups: set.filegroups.iter().map(|group| lines::Filegroup { id: group.id, name: &group.name }).collect(),
    }
}
