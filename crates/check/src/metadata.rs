//! Contradictions within the catalog: 7995 and 8930.

pub(crate) mod broker;
pub(crate) mod catalog_rules;
pub(crate) mod near;
pub(crate) mod prechecks;

use catalog::{ChainFault, Database};
use findings::registry::{self, limits};
use findings::{Coverage, Finding};
use format::PageId;
use source::PageSource;

use crate::basis::ledger::FindingCollector;
use crate::basis::units::Units;

/// IDs of the base tables that are needed to identify objects and their layouts; they include sysschobjs, syscolpars
/// and sysidxstats.
const NEEDED: [i32; 8] = [3, 4, 5, 7, 13, 34, 41, 54];

/// Internal versions that no release has; they exist only during an upgrade from SQL Server 2005. After an interrupted
/// upgrade, the catalog may have the form of SQL Server 2005 or that of SQL Server 2008.
const BETWEEN_2005_AND_2008: std::ops::RangeInclusive<u16> = 613..=654;

/// Reports contradictions in the catalog, and the parts of it that could not be read.
pub(crate) fn check(
    source: &dyn PageSource,
    database: &Database,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) {
    if database.boot.is_none() {
        coverage.note(&limits::CATALOG_BOOT_PAGE, "database", 0);
        return;
    }
    let mut unusable = false;
    let is_recovered = database.is_recovered(source);
    for gap in &database.gaps {
        let unread = matches!(gap.fault, Some(ChainFault::Unread { .. }));
        let is_led_astray = prechecks::is_led_astray(database, gap);
        let damaged = gap.fault.is_some() || gap.bad_records > 0;
        unusable |= NEEDED.contains(&gap.object_id) && damaged && !unread;
        let limit = match (gap.fault, gap.bad_records) {
            (None, 0) if gap.missing_rows > 0 && !is_recovered => &limits::CATALOG_ROWS_FEWER_LOG,
            (None, 0) if gap.missing_rows > 0 => &limits::CATALOG_ROWS_FEWER,
            (Some(ChainFault::Unread { .. }), _) => &limits::CATALOG_UNREADABLE,
            (Some(_), _) if is_led_astray => &limits::CATALOG_FIRST_PAGE,
            (Some(_), _) if !is_recovered => &limits::CATALOG_CHAIN_LOG,
            (Some(_), _) => &limits::CATALOG_CHAIN,
            (None, 1..) if !is_recovered => &limits::CATALOG_ROWS_LOG,
            (None, 0) => &limits::CATALOG_TABLE_UNKNOWN,
            (None, _) => &limits::CATALOG_ROWS,
        };
        let count = u64::from(gap.bad_records) + gap.missing_rows;
        coverage.note(limit, format!("sys.{}", gap.table), count);
    }
    if database.gaps.iter().any(|gap| matches!(gap.fault, Some(ChainFault::Unread { .. }))) {
        // Nothing is reported, because the missing parts of the catalog may be in the pages that could not be read.
    } else if unusable {
        findings.push(Finding::new(&registry::CATALOG_UNUSABLE));
    } else if is_of_another_version(database) {
        coverage.note(&limits::CATALOG_VERSION, "boot page (1:9), dbi_version", 0);
        let is_being_upgraded =
            database.boot.as_ref().is_some_and(|boot| BETWEEN_2005_AND_2008.contains(&boot.version));
        if !is_being_upgraded {
            findings.push(Finding::new(&registry::CATALOG_INCONSISTENT).page(PageId::BOOT));
        }
    } else if database.gaps.iter().all(|gap| gap.missing_rows == 0) && is_inconsistent(database) {
        findings.push(Finding::new(&registry::CATALOG_INCONSISTENT));
    }
}

/// Whether the catalog has the form of SQL Server 2005 although the boot page has a later version, or vice versa. In
/// SQL Server 2008, sysrscols replaced syshobtcolumns. All 258 databases seen agree with this.
fn is_of_another_version(database: &Database) -> bool {
    const SYSRSCOLS: u64 = 3 << 16;
    const SYSHOBTCOLUMNS_2005: u64 = 13 << 16;
    let has = |unit: u64| database.units.iter().any(|row| row.id.0 == unit);
    let is_2005 = database.boot.as_ref().is_some_and(|boot| boot.version < 655);
    [has(SYSRSCOLS), has(SYSHOBTCOLUMNS_2005)] == [is_2005, !is_2005]
}

/// Checks that the base tables are in the primary filegroup. Units with filegroup 0 belong to no table.
pub(crate) fn system_tables(database: &Database, units: &Units, findings: &mut FindingCollector) {
    const PRIMARY: u16 = 1;
    for unit in database.units.iter().filter(|unit| unit.filegroup > PRIMARY) {
        let owner = units.owner_of(unit.id);
        if (1..100).contains(&owner.object_id) {
            let finding = Finding::new(&registry::SYSTEM_TABLE_FILEGROUP).owner(owner);
            let name = database.object_name(owner.object_id);
            findings.push(finding.text_value("object_name", name).number("found_filegroup", unit.filegroup));
        }
    }
}

/// Whether there is a unit without a rowset, or a rowset with pages but without columns.
fn is_inconsistent(database: &Database) -> bool {
    database.units.iter().any(|unit| match database.rowset_of(unit) {
        None => !unit.is_dropped(),
        Some(rowset) => {
            let ordinary = rowset.owner_type == 1 && rowset.compression <= 2;
            ordinary && !unit.first_iam.is_none() && rowset.layout.columns.is_empty()
        }
    })
}
