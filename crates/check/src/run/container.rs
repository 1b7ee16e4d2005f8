//! Checks of a backup that do not concern its pages: damage in the structures around the pages, and missing parts.

use findings::registry::{self, Check, limits};
use findings::{Coverage, Finding};
use source::backup::{Damage, DamageKind};
use source::{BackupPages, PageSource};

use crate::basis::ledger::FindingCollector;
use crate::sweep::warnings;

/// Notes the stripes that were not given; their content is not verified.
pub(crate) fn note_missing_stripes(source: &dyn PageSource, coverage: &mut Coverage) {
    let Some(backup) = source.backup() else { return };
    if let Some(which) = warnings::missing_stripes(backup) {
        coverage.note(limits::BACKUP_STRIPES.with(&[&which]), "backup", backup.missing_stripes().into());
    }
}

/// Notes the blocks of undocumented types; their content is not verified.
pub(crate) fn note_undescribed_blocks(source: &dyn PageSource, coverage: &mut Coverage) {
    for (tag, count) in source.backup().map_or(&[][..], BackupPages::undescribed_blocks) {
        let scope = format!("of type {}", String::from_utf8_lossy(tag));
        coverage.note(&limits::BACKUP_BLOCK_TYPE_UNKNOWN, scope, *count);
    }
}

/// Checks the structures around the pages. Reads the parts of the backup that no earlier phase has read.
pub(crate) fn check(
    source: &dyn PageSource,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
    errors: &mut Vec<String>,
) {
    let Some(backup) = source.backup() else { return };
    // A compressed backup may have many damaged records, so each finding is passed to the collector immediately.
    let unread = backup.container_damage(|damage| match finding(&damage) {
        Some(finding) => findings.push(finding),
        None => {
            coverage.note(&limits::BACKUP_RECORD_FORM, damage.path.file_name().unwrap_or_default().to_string_lossy(), 1)
        }
    });
    errors.extend(unread.iter().map(ToString::to_string));
}

/// The finding for a damaged place; `None` if the content of the place may be legal.
fn finding(damage: &Damage) -> Option<Finding> {
    let about = |check: &'static Check| {
        let at = i64::try_from(damage.at).unwrap_or(i64::MAX);
        Finding::new(check).text_value("device", damage.path.display().to_string()).number("position", at)
    };
    let sums = |check, stored: u32, computed: u32| about(check).number("stored", stored).number("computed", computed);
    let tagged = |check, tag: &[u8; 4]| about(check).text_value("tag", String::from_utf8_lossy(tag));
    Some(match &damage.kind {
        DamageKind::BlockChecksum { tag } => tagged(&registry::BACKUP_BLOCK_CHECKSUM, tag),
        DamageKind::UnknownBlock { tag } => tagged(&registry::BACKUP_BLOCK_TYPE, tag),
        DamageKind::StreamChecksum { tag } => tagged(&registry::BACKUP_STREAM_CHECKSUM, tag),
        DamageKind::DataChecksum { stored, computed } => sums(&registry::BACKUP_DATA_CHECKSUM, *stored, *computed),
        DamageKind::RecordChecksum { stored, computed } => sums(&registry::BACKUP_RECORD_CHECKSUM, *stored, *computed),
        DamageKind::RecordLost => about(&registry::BACKUP_RECORD_LOST),
        DamageKind::RecordForm => return None,
        DamageKind::LogBlock => about(&registry::BACKUP_LOG_BLOCK),
        DamageKind::Truncated => about(&registry::BACKUP_TRUNCATED),
        DamageKind::Lost => about(&registry::BACKUP_LOST_BYTES),
        DamageKind::SetIncomplete { position } => about(&registry::BACKUP_SET_INCOMPLETE).number("set", *position),
        DamageKind::Configuration { position } => about(&registry::BACKUP_CONFIGURATION).number("set", *position),
        DamageKind::PagesMissing { file_id, expected, found } => about(&registry::BACKUP_PAGES_MISSING)
            .number("file", *file_id)
            .number("expected", i64::try_from(*expected).unwrap_or(i64::MAX))
            .number("found", i64::try_from(*found).unwrap_or(i64::MAX)),
    })
}
