//! The boot page as DBINFO prints it WITH TABLERESULTS: `mdfsck info --tableresults`.
//!
//! The names and order of the fields are DBINFO's. Fields with an unknown place on the page are left out. Some servers
//! print dbi_dbccLastKnownGood twice, which breaks scripts that expect one value. This program prints this field once.

use std::io;

use format::boot::Boot;
use format::fields::{Kind, Structure};
use format::instances::{FieldInstance, instances};
use format::types::{datetime_text, guid_text};
use format::{Lsn, Page, PageBytes, PageId, bytes};

use crate::dbcc_rows::{self, Row};

/// DBINFO's text for a datetime of zero.
const NEVER: &str = "1900-01-01 00:00:00.000";
/// The field that has one entry for each recovery fork. DBINFO prints each entry as a separate object.
const FORKS: &str = "dbi_recoveryForkNameStack";

/// The name of each field in DBINFO, and the field's name in the format crate.
const FIELDS: [(&str, &str); 30] = [
    ("dbi_version", "dbi_version"),
    ("dbi_createVersion", "dbi_createVersion"),
    ("dbi_dbbackupLSN", "dbi_logBackupLSN"),
    ("dbi_LastLogBackupTime", "dbi_LastLogBackupTime"),
    ("dbi_nextseqnum", "dbi_nextseqnum"),
    ("dbi_status", "dbi_status"),
    ("dbi_nextid", "dbi_nextid"),
    ("dbi_crdate", "dbi_crdate"),
    ("dbi_dbname", "dbi_dbname"),
    ("dbi_dbid", "dbi_dbid"),
    ("dbi_cmptlevel", "dbi_cmptlevel"),
    ("dbi_maxDbTimestamp", "dbi_maxDbTimestamp"),
    ("dbi_differentialBaseLSN", "dbi_differentialBaseLSN"),
    ("dbi_checkptLSN", "dbi_checkptLSN"),
    ("dbi_dbccFlags", "dbi_dbccFlags"),
    ("dbi_COWLastLSN", "dbi_COWLastLSN"),
    ("dbi_DirtyPageLSN", "dbi_DirtyPageLSN"),
    ("dbi_collation", "dbi_collation"),
    ("dbi_familyGUID", "dbi_familyGUID"),
    (FORKS, "dbi_recoveryForkLSN"),
    ("dbi_differentialBaseGuid", "dbi_differentialBaseGuid"),
    ("dbi_firstSysIndexes", "dbi_firstSysIndexes"),
    ("dbi_versionChangeLSN", "dbi_versionChangeLSN"),
    ("dbi_updSysCatalog", "dbi_updSysCatalog"),
    ("dbi_LogBackupChainOrigin", "dbi_logBackupChainOrigin"),
    ("dbi_dbccLastKnownGood", "dbi_dbccLastKnownGood"),
    ("dbi_modDate", "dbi_modDate"),
    ("dbi_verRDB", "dbi_engineBuild"),
    ("dbi_svcBrokerGUID", "dbi_svcBrokerGUID"),
    ("dbi_AuIdNext", "dbi_nextAllocUnit"),
];

/// Writes the fields of a boot page.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(boot: &PageBytes, out: &mut dyn io::Write) -> io::Result<()> {
    dbcc_rows::write(rows(boot), out)
}

fn rows(boot: &PageBytes) -> Vec<Row> {
    let found = instances(boot);
    let all = |name: &'static str| {
        found.iter().filter(move |found| found.field.structure == Structure::Boot && found.field.name == name)
    };
    let start = found.iter().find(|found| found.field.structure == Structure::Boot).map(|first| first.bytes.start);
    let start = start.unwrap_or_default();
    // Newer releases store a longer record, so the length is read from the record itself.
    let length = boot.get(start..).and_then(|record| bytes::u16_at(record, 2)).unwrap_or_default();
    let end = start.saturating_add(length.into());
    // DBINFO prints a memory address here. This program prints the offset on the page.
    let object = format!("DBINFO @0x{start:016X}");
    let text = str::to_owned;
    let mut rows = Vec::new();
    for (name, ours) in FIELDS {
        if name == FORKS {
            for (entry, (fork, guid)) in all(ours).zip(all("dbi_recoveryForkGUID")).enumerate() {
                rows.push([text(FORKS), format!("entry {entry}"), text("hex (dec)"), fork_lsn(boot, fork)]);
                rows.push([object.clone(), text(FORKS), text("m_guid"), value(boot, guid)]);
            }
        } else if let Some(field) = all(ours).find(|field| field.bytes.end <= end) {
            rows.push([text("DBINFO STRUCTURE:"), object.clone(), text(name), value(boot, field)]);
        }
    }
    rows
}

fn value(boot: &PageBytes, found: &FieldInstance) -> String {
    let bytes = boot.get(found.bytes.clone()).unwrap_or_default();
    let shown = match found.field.kind {
        Kind::DateTime => {
            let (ticks, days) = (bytes::u32_at(bytes, 0), bytes::u32_at(bytes, 4));
            let is_never = (ticks, days) == (Some(0), Some(0));
            let of = |(ticks, days): (u32, u32)| datetime_text(ticks, days.cast_signed());
            if is_never { Some(NEVER.to_owned()) } else { ticks.zip(days).and_then(of) }
        }
        Kind::Lsn => Lsn::read(bytes, 0).map(dbcc_rows::lsn),
        Kind::Guid => bytes::array_at(bytes, 0).map(|guid| guid_text(guid).to_lowercase()),
        Kind::PagePointer => PageId::read(bytes, 0).map(dbcc_rows::first_page),
        Kind::Text => Boot::read(Page::new(boot)).map(|boot| boot.name()),
        Kind::Flags(_) if bytes.len() == 4 => Some(format!("0x{:08x}", bytes::unsigned(bytes))),
        Kind::DatabaseVersion | Kind::EngineBuild | Kind::Unsigned | Kind::Hex | Kind::Flags(_) => {
            Some(bytes::unsigned(bytes).to_string())
        }
        _ => None,
    };
    shown.unwrap_or_else(|| found.render(boot))
}

/// An LSN as DBINFO prints it for recovery forks, hexadecimal first: `0x00000024:00000633:0001 (36:1587:1)`.
fn fork_lsn(boot: &PageBytes, found: &FieldInstance) -> String {
    let lsn = boot.get(found.bytes.clone()).and_then(|bytes| Lsn::read(bytes, 0)).unwrap_or_default();
    format!("0x{} {lsn}", crate::server_text::lsn_text(lsn))
}
