//! Steps that need no backup: correct counts, rebuild nonclustered indexes, correct rows, rebuild tables.

use std::collections::BTreeSet;

use findings::registry;
use format::PageId;
use script::{comment, quote, quote_text};

use crate::damage::{Damage, Ids, RowFault, TableDamage, WrongRows};
use crate::keys;
use crate::request::Request;
use crate::statements::{self, BY_HAND, are_plain, commented, is_plain};
use crate::step::{Action, Step};

/// The steps before the restore, and the steps after it. Indexes of damaged tables are rebuilt after the restore, from
/// the restored rows.
pub(crate) fn steps(request: &Request<'_>, damage: &Damage) -> (Vec<Step>, Vec<Step>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    before.extend(update_usage(request, damage));
    for (&(object_id, index_id), ids) in &damage.indexes {
        let is_table_damaged = damage.tables.get(&object_id).is_some_and(TableDamage::loses_data);
        let mut step = rebuild_index(request, object_id, index_id);
        step.rests_on.clone_from(ids);
        let [missing, surplus] = damage.index_rows.get(&(object_id, index_id)).copied().unwrap_or_default();
        if surplus > missing {
            let save = save_index_rows(request, &step, ids, surplus - missing);
            match is_table_damaged {
                true => after.push(save),
                false => before.push(save),
            }
        }
        if missing + surplus > 0 {
            step.risk.push_str(
                " Where index and table disagree, the index or the table may be wrong: compare the rows in messages 8955 and \
                8956 with a backup first. The rebuild keeps the rows of the table.",
            );
        }
        match is_table_damaged {
            true => {
                step.reason.push_str(" The table itself is damaged: first restore its pages, or repair it.");
                step.proven = None;
                after.push(step);
            }
            false => before.push(step),
        }
    }
    for ((object_id, fault), rows) in &damage.rows {
        before.push(update_rows(request, *object_id, fault, rows));
    }
    for (&object_id, table) in &damage.tables {
        if !table.loses_data() && (table.is_in_structure || table.is_in_allocation) {
            before.push(rebuild_table(request, object_id, table));
        }
    }
    // These steps come after the restore for two reasons. If maps are wrong, a rebuild may allocate extents that
    // already contain live rows, or it may deallocate extents that belong to another object. Also, rows that a rebuild
    // needs may be unreadable before the restore.
    if !damage.maps.ids.is_empty() || damage.needs_restore() {
        after.splice(0..0, before.drain(..));
    }
    // Pages that seem to have no owner may belong to a table that lacks pages, so they are freed last.
    if !damage.unowned.ids.is_empty() {
        after.extend(unowned(request, damage));
    }
    (before, after)
}

/// The schema and name of an object, for use in texts.
pub(crate) fn object_name(request: &Request<'_>, object_id: i32) -> String {
    match request.database.objects.get(&object_id) {
        Some(object) => format!("{}.{}", request.database.schema_name(object), object.name),
        None => format!("object ID {object_id}"),
    }
}

/// A statement such as `USE [Orders];`, or a comment if a script runner could misread the name.
pub(crate) fn use_database(request: &Request<'_>) -> String {
    let name = &request.report.database.name;
    statements::database(name).map_or_else(
        || commented(&format!("USE the database {name}: its name is not plain text")),
        |name| format!("USE {name};"),
    )
}

fn update_usage(request: &Request<'_>, damage: &Damage) -> Option<Step> {
    if damage.counts.is_empty() {
        return None;
    }
    let names: Vec<String> = damage.counts.keys().map(|&object_id| object_name(request, object_id)).collect();
    let title = match names.as_slice() {
        [name] => format!("Correct the counts of {name}"),
        names => format!("Correct the counts of {} objects", names.len()),
    };
    let mut step = Step::new(Action::UpdateUsage, title);
    step.object = names.first().filter(|_| names.len() == 1).cloned();
    step.reason = "Row and page counts in the catalog are wrong; the pages themselves are sound.".to_owned();
    step.risk = "None for the data. The command locks each table while it counts.".to_owned();
    step.sql.push(use_database(request));
    for &object_id in damage.counts.keys() {
        let name = request.script.table_name(object_id).filter(|_| are_plain(request, object_id));
        let name = name.map_or_else(|| object_id.to_string(), |name| quote_text(&name));
        step.sql.push(format!("DBCC UPDATEUSAGE (0, {name}) WITH COUNT_ROWS;"));
    }
    step.proven = Some("Rows and pages were counted in this check.".to_owned());
    step.rests_on = damage.counts.values().flatten().copied().collect();
    Some(step)
}

fn rebuild_index(request: &Request<'_>, object_id: i32, index_id: i32) -> Step {
    let object = object_name(request, object_id);
    let index = request.database.indexes.get(&(object_id, index_id));
    let name = index.map_or_else(|| format!("index ID {index_id}"), |index| index.name.clone());
    let mut step = Step::new(Action::RebuildIndex, format!("Rebuild the index {name} of {object}"));
    let is_view = request.script.is_view(object_id);
    step.reason =
        match is_view {
            true => "An indexed view holds copies of data in its tables: a rebuild from the tables loses nothing."
                .to_owned(),
            false => "A nonclustered index holds copies of data in the table: a rebuild from the table loses nothing."
                .to_owned(),
        };
    step.risk =
        "Until the rebuild, queries run without the index, and foreign keys that refer to its key are disabled. \
                 Without DISABLE first, the rebuild may read the damaged index instead of the table."
            .to_owned();
    step.proven = match is_view {
        true => None,
        false => Some("This check read the table, and no finding concerns the table's own pages.".to_owned()),
    };
    step.sql.push(use_database(request));
    match (request.script.rebuild_index(object_id, index_id), are_plain(request, object_id)) {
        (_, false) => step.sql.push(BY_HAND.to_owned()),
        (Some(sql), _) => step.sql.push(sql.trim_end().to_owned()),
        (None, _) => step.sql.push(commented(&format!("{name} of {object} is not in the catalog"))),
    }
    if let Some(create) = request.script.create_index(object_id, index_id) {
        let table = request.script.table_name(object_id).unwrap_or_default();
        let drop = match request.script.is_constraint(object_id, index_id) {
            true => format!("ALTER TABLE {table} DROP CONSTRAINT {};", quote(&name)),
            false => format!("DROP INDEX {} ON {table};", quote(&name)),
        };
        step.sql.push("-- If the rebuild fails, drop the index and create it again:".to_owned());
        step.sql.push(commented(&drop));
        step.sql.push(commented(create.trim_end()));
    }
    step.object = Some(object);
    step.index = Some(name);
    step
}

/// Saves the rows that are in an index but not in its table. The table may have lost these rows, so the index may have
/// their last copy.
fn save_index_rows(request: &Request<'_>, rebuild: &Step, ids: &Ids, more: u64) -> Step {
    let (object, index) = (rebuild.object.clone().unwrap_or_default(), rebuild.index.clone().unwrap_or_default());
    let rows = if more == 1 { "1 row".to_owned() } else { format!("{more} rows") };
    let mut step = Step::new(Action::Export, format!("Save the rows that only the index {index} has"));
    step.reason = format!(
        "The index has {rows} that {object} does not have: a write of the index was lost, or the table has lost these rows. A rebuild deletes \
         the last copy of their columns. Message 8956 of 'mdfsck check' shows these columns, and a backup may have the rows."
    );
    step.risk = "None: the files are only read.".to_owned();
    step.cannot_restore = Some("If the table has lost these rows: their columns that no index has.".to_owned());
    step.command = Some(format!("mdfsck check {} --format json", request.paths));
    step.object = Some(object);
    step.index = Some(index);
    step.rests_on.clone_from(ids);
    step
}

fn update_rows(request: &Request<'_>, object_id: i32, fault: &RowFault, rows: &WrongRows) -> Step {
    let object = object_name(request, object_id);
    let table = request.script.table_name(object_id).unwrap_or_else(|| comment(&object));
    let count = rows.count.max(rows.records.len() as u64);
    let noun = if count == 1 { "row" } else { "rows" };
    let (title, reason, set) = match fault {
        RowFault::Purity { column } => (
            format!("Correct {count} {noun} of {object}: invalid values in {column}"),
            format!("The type of {column} cannot hold these values. No repair corrects them: a person must supply the \
                     right values."),
            Some(format!("SET {} = /* the right value */", quote(column))),
        ),
        RowFault::Column => (
            format!("Correct {count} {noun} of {object}"),
            "A value contradicts the definition of its column: NULL where NOT NULL is declared, or a stored computed \
             value that differs from its expression."
                .to_owned(),
            Some("SET /* column */ = /* the right value */".to_owned()),
        ),
        RowFault::Partition => (
            format!("Move {count} {noun} of {object} to the right partition"),
            "The rows are in a partition whose boundaries exclude them: queries that skip partitions do not find them. \
             Delete the rows and insert them again."
                .to_owned(),
            None,
        ),
        RowFault::Constraint { name } => (
            format!("Correct {count} {noun} of {object} that violate {name}"),
            format!("The constraint {name} is trusted, and these rows violate it."),
            Some("SET /* column */ = /* a value that the constraint allows */".to_owned()),
        ),
    };
    let mut step = Step::new(Action::UpdateRows, title);
    step.reason = reason;
    step.risk = "Look at each row first; a backup may have the right value.".to_owned();
    step.proven = Some("These rows were read in this check.".to_owned());
    step.object = Some(object);
    step.sql.push(use_database(request));
    let is_plain_fault = match fault {
        RowFault::Purity { column: name } | RowFault::Constraint { name } => is_plain(name),
        RowFault::Column | RowFault::Partition => true,
    };
    let is_written = is_plain_fault && are_plain(request, object_id);
    if !is_written {
        step.sql.push(BY_HAND.to_owned());
    }
    for record in rows.records.iter().filter(|_| is_written) {
        let condition = keys::condition(request.source, request.database, &request.script, object_id, *record);
        step.sql.push(format!("SELECT * FROM {table} WHERE {condition};"));
        if let Some(set) = &set {
            step.sql.push(commented(&format!("UPDATE {table} {set} WHERE {condition};")));
        }
    }
    let more = rows.count.saturating_sub(rows.records.len() as u64);
    if more > 0 {
        step.sql.push(format!("-- {more} more rows: 'mdfsck check --format json' lists all."));
    }
    if let RowFault::Constraint { name } = fault
        && is_written
    {
        step.sql.push("-- Afterwards:".to_owned());
        step.sql.push(format!("DBCC CHECKCONSTRAINTS ({});", quote_text(&quote(name))));
    }
    step.pages = rows.records.iter().map(|record| record.page).collect::<BTreeSet<PageId>>().into_iter().collect();
    step.rests_on.clone_from(&rows.ids);
    step
}

fn rebuild_table(request: &Request<'_>, object_id: i32, damage: &TableDamage) -> Step {
    let object = object_name(request, object_id);
    let parts = partitions(request, object_id, damage);
    let what = match parts.as_slice() {
        [] => format!("the table {object}"),
        [part] => format!("partition {part} of {object}"),
        parts => format!("{} partitions of {object}", parts.len()),
    };
    let mut step = Step::new(Action::RebuildTable, format!("Rebuild {what}"));
    let is_only_counted = damage.ids.iter().all(|id| *id == registry::PAGE_GHOST_COUNT.id);
    step.reason = match damage.is_in_structure {
        true if is_only_counted => {
            "The header of a page has a wrong number of ghost records; all rows of the page are sound.".to_owned()
        }
        true => "Links, levels or the order of the table's pages are wrong; each single page is sound.".to_owned(),
        false => "The allocation maps of the table are wrong; every page of it is sound.".to_owned(),
    };
    step.reason.push_str(" A rebuild writes the rows of the table to new pages with new maps.");
    step.risk = "A rebuild keeps only the rows that it finds through the damaged links or maps, and may fail on them: \
                 save the rows first, and compare row counts before and after. The rebuild locks the table, and needs as \
                 much free space as the table has pages."
        .to_owned();
    if !damage.keys.is_empty() {
        step.risk.push_str(
            " Where keys are out of order, a key may be wrong, and it is unknown which key: compare the rows with a backup \
            first. The page can be restored from the backup.",
        );
    }
    step.proven = Some("This check read the pages of the table, and no finding concerns their content.".to_owned());
    step.sql.push(use_database(request));
    match rebuild_statements(request, object_id, &parts, damage.is_in_allocation) {
        Some(sql) => step.sql.extend(sql),
        None => step.sql.push(BY_HAND.to_owned()),
    }
    if damage.is_in_allocation {
        step.cannot_restore = Some(
            "Rows on extents that no allocation map lists any more: 'mdfsck export --damaged' looks for them."
                .to_owned(),
        );
    }
    let table = table_argument(request, object_id);
    step.command = Some(format!("mdfsck export {} -o saved --table {table} --damaged", request.paths));
    step.object = Some(object);
    step.rests_on.clone_from(&damage.ids);
    step
}

/// The statements of a rebuild; `None` if a script runner could misread a name in them.
fn rebuild_statements(
    request: &Request<'_>,
    object_id: i32,
    parts: &[i32],
    is_in_allocation: bool,
) -> Option<Vec<String>> {
    let table = request.script.table_name(object_id).filter(|_| are_plain(request, object_id))?;
    let name = statements::database(&request.report.database.name)?;
    let rebuild = match request.database.indexes.get(&(object_id, 1)) {
        // Rebuilds only the clustered index. The other indexes remain unchanged, so that the next check can compare the
        // rows with them.
        Some(index) => format!("ALTER INDEX {} ON {table} REBUILD", quote(&index.name)),
        None => format!("ALTER TABLE {table} REBUILD"),
    };
    let mut sql =
        vec![format!("-- {}", rows_counted(request, object_id)), format!("SELECT COUNT_BIG(*) FROM {table};")];
    match parts {
        [] => sql.push(format!("{rebuild};")),
        parts => sql.extend(parts.iter().map(|part| format!("{rebuild} PARTITION = {part};"))),
    }
    let check =
        |repair: &str| format!("DBCC CHECKTABLE ({}{repair}) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(&table));
    sql.extend([format!("SELECT COUNT_BIG(*) FROM {table};"), check("")]);
    let repair = if is_in_allocation { ", REPAIR_ALLOW_DATA_LOSS" } else { ", REPAIR_REBUILD" };
    sql.push("-- If the rebuild fails, or the check still finds errors:".to_owned());
    sql.push(commented(&format!("ALTER DATABASE {name} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;")));
    sql.push(commented(&check(repair)));
    sql.push(commented(&format!("ALTER DATABASE {name} SET MULTI_USER;")));
    Some(sql)
}

/// The number of rows that this check counted, for comparison after a rebuild or a repair.
pub(crate) fn rows_counted(request: &Request<'_>, object_id: i32) -> String {
    let of_table = request.report.rowsets.iter().filter(|rowset| rowset.object_id == object_id && rowset.index_id <= 1);
    format!("This check counted {} rows.", of_table.map(|rowset| rowset.rows).sum::<u64>())
}

/// The numbers of the damaged partitions. Empty if the table has only one partition, or if the findings do not name
/// partitions.
fn partitions(request: &Request<'_>, object_id: i32, damage: &TableDamage) -> Vec<i32> {
    let rowsets: Vec<_> = request.database.table_rowsets(object_id).collect();
    if rowsets.len() < 2 {
        return Vec::new();
    }
    let number = |id: &u64| rowsets.iter().find(|rowset| rowset.id == *id).map(|rowset| rowset.partition);
    let numbers: Option<BTreeSet<i32>> = damage.rowsets.iter().map(number).collect();
    numbers.unwrap_or_default().into_iter().collect()
}

/// An argument of a command line, quoted if necessary.
pub(crate) fn argument(text: &str) -> String {
    source::argument(std::path::Path::new(text))
}

/// A table as an argument of a command line: its name if every shell passes it on unchanged, otherwise its ID.
pub(crate) fn table_argument(request: &Request<'_>, object_id: i32) -> String {
    let is_usual =
        |name: &str| !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || "_ #@-".contains(char));
    match request.database.objects.get(&object_id) {
        Some(object) if is_usual(&object.name) && is_usual(request.database.schema_name(object)) => {
            argument(&object_name(request, object_id))
        }
        _ => object_id.to_string(),
    }
}

/// Steps for extents and pages that are allocated and have no owner.
fn unowned(request: &Request<'_>, damage: &Damage) -> [Step; 2] {
    let pages: Vec<PageId> = damage.unowned.pages.iter().copied().collect();
    let mut look = Step::new(Action::Export, "Save the rows of pages without an owner");
    look.reason =
        "The allocation maps mark pages as in use that belong to no object. Usually these pages only waste space. But if \
         a map or a catalog row that named them was lost, they hold rows, which this step saves."
            .to_owned();
    look.risk = "None: the files are only read.".to_owned();
    look.command = Some(format!("mdfsck export {} -o saved --damaged", request.paths));
    look.pages.clone_from(&pages);
    look.rests_on.clone_from(&damage.unowned.ids);
    let mut step = Step::new(Action::RepairAllowDataLoss, "Free the pages without an owner");
    step.reason =
        "Only the repair frees these pages, and the repair can wait: no table lacks these pages, unless another step says so."
            .to_owned();
    step.risk =
        "The repair frees these pages. If they hold rows that a damaged map no longer names, these rows are lost: run \
         the repair last, after a backup, and only if no step about a table is left."
            .to_owned();
    step.cannot_restore = Some("The content of these pages, except what was saved.".to_owned());
    let name = &request.report.database.name;
    step.sql = match statements::database(name) {
        Some(quoted) => vec![
            "USE [master];".to_owned(),
            format!("ALTER DATABASE {quoted} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;"),
            format!("DBCC CHECKALLOC ({}, REPAIR_ALLOW_DATA_LOSS) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(name)),
            statements::check_again(name),
            format!("ALTER DATABASE {quoted} SET MULTI_USER;"),
        ],
        None => vec![BY_HAND.to_owned()],
    };
    step.pages = pages;
    step.rests_on.clone_from(&damage.unowned.ids);
    [look, step]
}
