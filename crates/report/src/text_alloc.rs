//! The listing of CHECKALLOC (docs/format/checkdb.md#checkalloc), in the wording of SQL Server 2005 and later.

use std::io;

use findings::{FileTotals, Report, UnitFileTotals};

use crate::listing::ObjectListing;
use crate::text_table::printable;

/// The text of message 7922.
const SEPARATOR: &str = "***************************************************************";

/// Writes the messages about one object: 7922, 7923, then 7924 and 7925 for each allocation unit, then 7927.
pub(crate) fn write_object(object: &ObjectListing<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "{SEPARATOR}")?;
    writeln!(out, "Table {}                Object ID {}.", printable(&object.name()), object.id)?;
    let mut extents = 0;
    for rowset in &object.rowsets {
        for unit in &rowset.units {
            let who = format!(
                "Index ID {}, partition ID {}, alloc unit ID {} (type {}).",
                rowset.index_id,
                rowset.partition_id.cast_signed(),
                unit.alloc_unit,
                unit.type_name
            );
            writeln!(out, "{who} FirstIAM {}. Root {}. Dpages {}.", unit.first_iam, unit.root, unit.data_pages)?;
            writeln!(out, "{who} {} pages used in {} dedicated extents.", unit.used_pages, unit.extents)?;
            extents += unit.extents;
        }
    }
    writeln!(out, "Total number of extents is {extents}.")
}

/// Writes the messages with the totals. Message 7920 is first. Messages 2538 and 8915 follow for each file, then 8916
/// or 8917 for each allocation unit in the file. Messages 2539 and 8918 are last.
pub(crate) fn write_totals(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "{SEPARATOR}")?;
    let entries = report.rowsets.len();
    writeln!(out, "Processed {entries} entries in system catalog for database ID {}.", report.database.id)?;
    for file in &report.file_totals {
        let FileTotals { file_id, extents, used_pages, reserved_pages, mixed_extents, mixed_pages } = file;
        writeln!(
            out,
            "File {file_id}. The number of extents = {extents}, used pages = {used_pages}, and reserved pages = \
             {reserved_pages}."
        )?;
        writeln!(
            out,
            "           File {file_id} (number of mixed extents = {mixed_extents}, mixed pages = {mixed_pages})."
        )?;
        write_units(report, *file_id, out)?;
    }
    let total = |field: fn(&FileTotals) -> u64| report.file_totals.iter().map(field).sum::<u64>();
    writeln!(
        out,
        "The total number of extents = {}, used pages = {}, and reserved pages = {} in this database.",
        total(|file| file.extents),
        total(|file| file.used_pages),
        total(|file| file.reserved_pages)
    )?;
    writeln!(
        out,
        "       (number of mixed extents = {}, mixed pages = {}) in this database.",
        total(|file| file.mixed_extents),
        total(|file| file.mixed_pages)
    )
}

/// Writes a line for each allocation unit with pages in a file: 8916 for units of tables, 8917 for units of
/// nonclustered indexes.
fn write_units(report: &Report, file_id: u16, out: &mut dyn io::Write) -> io::Result<()> {
    for rowset in &report.rowsets {
        let kind = if rowset.index_id > 1 { "index" } else { "data" };
        for unit in &rowset.units {
            for UnitFileTotals { extents, used_pages, mixed_pages, .. } in
                unit.files.iter().filter(|file| file.file_id == file_id)
            {
                writeln!(
                    out,
                    "    Object ID {}, index ID {}, partition ID {}, alloc unit ID {} (type {}), {kind} extents {extents}, \
                     pages {used_pages}, mixed extent pages {mixed_pages}.",
                    rowset.object_id,
                    rowset.index_id,
                    rowset.partition_id.cast_signed(),
                    unit.alloc_unit,
                    unit.type_name
                )?;
            }
        }
    }
    Ok(())
}
