//! Checks the numbers about storage in sysallocunits and sysrowsets, each row on its own.

use catalog::AllocUnit;

use super::super::evaluate::Tables;
use super::Verdicts;

const SYSROWSETS: i32 = 5;

pub(super) fn check(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) {
    for unit in tables.database.units.iter().filter(|unit| !unit.is_dropped()) {
        if let Some(flaw) = flaw_of_unit(unit) {
            verdicts.doubt("sys.sysallocunits", || format!("alloc unit ID {}: {flaw}", unit.id));
        }
    }
    let columns = ["rowsetid", "idmajor", "idminor", "numpart", "maxleaf", "minleaf", "maxint", "minint", "fgidfs"];
    let read = tables.each(SYSROWSETS, &columns, |_, row| {
        let &[Some(id), Some(object), Some(index), Some(partition), leaf, min_leaf, node, min_node, filestream] = row
        else {
            return;
        };
        let place = || {
            let name = i32::try_from(object).map(|object| tables.database.object_name(object)).unwrap_or_default();
            format!("index {index} of {name}, partition ID {}", id.cast_unsigned())
        };
        if partition < 1 {
            verdicts.doubt("sys.sysrowsets, numpart", || format!("{}: partition {partition}", place()));
        }
        // In 30,898 of 30,898 cases, the maximum length is not below the minimum length.
        for (longest, shortest, rows) in [(leaf, min_leaf, "rows"), (node, min_node, "entries above the leaf")] {
            if let (Some(longest), Some(shortest)) = (longest, shortest)
                && longest < shortest
            {
                verdicts.doubt("sys.sysrowsets, lengths", || {
                    format!("{}: {rows} of at least {shortest} and at most {longest} bytes", place())
                });
            }
        }
        let is_known = |group: i64| tables.database.filegroups.iter().any(|known| i64::from(known.id) == group);
        if let Some(group) = filestream.filter(|group| *group != 0 && !is_known(*group)) {
            verdicts.doubt("sys.sysrowsets, fgidfs", || {
                format!("{}: its FILESTREAM filegroup {group} does not exist", place())
            });
        }
    });
    // The error is ignored, because the check of the references between base tables has already noted incomplete
    // tables, and SQL Server 2005 lacks some of the columns.
    let _: Result<(), catalog::Unread> = read;
}

/// Checks that the used pages are not more than the reserved pages, and that a unit with pages has a first page and an
/// IAM page (38,659 of 38,659). Returns the wrong values as text, if any. The counts of upgraded databases may be
/// stale: a unit may have more data pages than used pages.
fn flaw_of_unit(unit: &AllocUnit) -> Option<String> {
    let AllocUnit { used_pages, data_pages, reserved_pages, .. } = *unit;
    if used_pages < 0 || data_pages < 0 || used_pages > reserved_pages {
        return Some(format!("{used_pages} pages in use, {data_pages} of data, {reserved_pages} reserved"));
    }
    if unit.first_page.is_none() != unit.first_iam.is_none() {
        return Some(format!("first page {}, first IAM page {}", unit.first_page, unit.first_iam));
    }
    (unit.first_iam.is_none() && !unit.root.is_none()).then(|| format!("root page {}, no IAM page", unit.root))
}
