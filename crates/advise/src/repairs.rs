//! Steps that need no backup: counts, nonclustered indexes, rows, rebuilds.

use std::collections::BTreeSet;

use format::PageId;
use script::{comment, quote, quote_text};

use crate::damage::{Damage, RowFault, TableDamage, WrongRows};
use crate::keys;
use crate::plan::Request;
use crate::statements;
use crate::step::{Action, Step};

/// The steps before tables are restored, and those after: indexes of damaged tables are rebuilt from what was restored.
pub(crate) fn steps(request: &Request<'_>, damage: &Damage) -> (Vec<Step>, Vec<Step>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    before.extend(update_usage(request, damage));
    for (&(object_id, index_id), ids) in &damage.indexes {
        let is_table_damaged = damage.tables.get(&object_id).is_some_and(TableDamage::loses_data);
        let mut step = rebuild_index(request, object_id, index_id);
        step.rests_on.clone_from(ids);
        match is_table_damaged {
            true => {
                step.reason.push_str(" The table itself is damaged: first restore its pages, or repair it.");
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
    if !damage.unowned.ids.is_empty() {
        before.push(unowned(request, damage));
    }
    (before, after)
}

/// The name of an object in texts: with its schema.
pub(crate) fn object_name(request: &Request<'_>, object_id: i32) -> String {
    match request.database.objects.get(&object_id) {
        Some(object) => format!("{}.{}", request.database.schema_name(object), object.name),
        None => format!("object ID {object_id}"),
    }
}

/// `USE [Orders];`
pub(crate) fn use_database(request: &Request<'_>) -> String {
    let name = &request.report.database.name;
    statements::database(name).map_or_else(
        || comment(&format!("USE the database {name}: its name is not plain text")),
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
    step.reason = "Row and page counts in the catalog are wrong; the pages are right.".to_owned();
    step.risk = "None for the data. It locks each table while it counts.".to_owned();
    step.sql.push(use_database(request));
    for &object_id in damage.counts.keys() {
        let name = request.script.table_name(object_id).map(|name| quote_text(&name));
        let name = name.unwrap_or_else(|| object_id.to_string());
        step.sql.push(format!("DBCC UPDATEUSAGE (0, {name}) WITH COUNT_ROWS;"));
    }
    step.rests_on = damage.counts.values().flatten().copied().collect();
    Some(step)
}

fn rebuild_index(request: &Request<'_>, object_id: i32, index_id: i32) -> Step {
    let object = object_name(request, object_id);
    let index = request.database.indexes.get(&(object_id, index_id));
    let name = index.map_or_else(|| format!("index ID {index_id}"), |index| index.name.clone());
    let mut step = Step::new(Action::RebuildIndex, format!("Rebuild the index {name} of {object}"));
    step.reason =
        "A nonclustered index holds copies of what the table has: built anew from the table, it loses nothing."
            .to_owned();
    step.risk =
        "Queries do without the index until it is rebuilt; foreign keys that refer to its key are off meanwhile. \
                 Without DISABLE first, the rebuild may read the damaged index instead of the table."
            .to_owned();
    step.sql.push(use_database(request));
    match request.script.rebuild_index(object_id, index_id) {
        Some(sql) => step.sql.push(sql.trim_end().to_owned()),
        None => step.sql.push(comment(&format!("{name} of {object} is not in the catalog"))),
    }
    if let Some(create) = request.script.create_index(object_id, index_id) {
        let table = request.script.table_name(object_id).unwrap_or_default();
        let drop = match request.script.is_constraint(object_id, index_id) {
            true => format!("ALTER TABLE {table} DROP CONSTRAINT {};", quote(&name)),
            false => format!("DROP INDEX {} ON {table};", quote(&name)),
        };
        step.sql.push("-- If that fails, drop it and create it again:".to_owned());
        step.sql.push(commented(&drop));
        step.sql.push(commented(create.trim_end()));
    }
    step.object = Some(object);
    step.index = Some(name);
    step
}

/// The text as comment lines.
pub(crate) fn commented(text: &str) -> String {
    text.lines().map(|line| format!("-- {line}")).collect::<Vec<_>>().join("\n")
}

fn update_rows(request: &Request<'_>, object_id: i32, fault: &RowFault, rows: &WrongRows) -> Step {
    let object = object_name(request, object_id);
    let table = request.script.table_name(object_id).unwrap_or_else(|| comment(&object));
    let count = rows.count.max(rows.records.len() as u64);
    let noun = if count == 1 { "row" } else { "rows" };
    let (title, reason, set) = match fault {
        RowFault::Purity { column } => (
            format!("Correct {count} {noun} of {object}: invalid values in {column}"),
            format!("The values of {column} are outside of what its type can hold. No repair does this: somebody must know the value."),
            Some(format!("SET {} = /* the right value */", quote(column))),
        ),
        RowFault::Column => (
            format!("Correct {count} {noun} of {object}"),
            "A value contradicts the definition of its column: NULL where NOT NULL is declared, or a stored computed value \
             that its expression does not give."
                .to_owned(),
            Some("SET /* column */ = /* the right value */".to_owned()),
        ),
        RowFault::Partition => (
            format!("Move {count} {noun} of {object} to the right partition"),
            "The rows are in a partition whose boundaries exclude them: queries that skip partitions do not find them. \
             Delete and insert them again."
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
    step.object = Some(object);
    step.sql.push(use_database(request));
    for record in &rows.records {
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
    if let RowFault::Constraint { name } = fault {
        step.sql.push("-- Afterwards:".to_owned());
        step.sql.push(format!("DBCC CHECKCONSTRAINTS ({});", quote_text(&quote(name))));
    }
    step.pages = rows.records.iter().map(|record| record.page).collect::<BTreeSet<PageId>>().into_iter().collect();
    step.rests_on.clone_from(&rows.ids);
    step
}

fn rebuild_table(request: &Request<'_>, object_id: i32, damage: &TableDamage) -> Step {
    let object = object_name(request, object_id);
    let table = request.script.table_name(object_id).unwrap_or_else(|| comment(&object));
    let is_heap = !request.database.indexes.contains_key(&(object_id, 1));
    let mut step = Step::new(Action::RebuildTable, format!("Rebuild the table {object}"));
    step.reason = match (damage.is_in_structure, damage.is_in_allocation) {
        (true, _) => "Links, levels or the order of its pages are wrong; every page by itself is sound.".to_owned(),
        (false, _) => "The maps of what belongs to the table are wrong; every page of it is sound.".to_owned(),
    };
    step.reason.push_str(" A rebuild writes its rows to new pages with new maps.");
    step.risk = "A rebuild keeps the rows that it finds: compare the number of rows before and after, with 'mdfsck export' or a \
                 backup. The table is locked, and needs its size again as free space."
        .to_owned();
    step.sql.push(use_database(request));
    step.sql.push(format!("SELECT COUNT_BIG(*) FROM {table};"));
    step.sql.push(match is_heap {
        true => format!("ALTER TABLE {table} REBUILD;"),
        false => format!("ALTER INDEX ALL ON {table} REBUILD;"),
    });
    step.sql.push(format!("SELECT COUNT_BIG(*) FROM {table};"));
    step.sql.push("-- If that fails, or the check still finds something:".to_owned());
    let name = statements::database(&request.report.database.name).unwrap_or_default();
    let repair = if damage.is_in_allocation { "REPAIR_ALLOW_DATA_LOSS" } else { "REPAIR_REBUILD" };
    step.sql.push(commented(&format!("ALTER DATABASE {name} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;")));
    step.sql.push(commented(&format!(
        "DBCC CHECKTABLE ({}, {repair}) WITH NO_INFOMSGS, ALL_ERRORMSGS;",
        quote_text(&table)
    )));
    step.sql.push(commented(&format!("ALTER DATABASE {name} SET MULTI_USER;")));
    if damage.is_in_allocation {
        step.cannot_restore =
            Some("Rows on extents that no map names any more: 'mdfsck export --damaged' looks for them.".to_owned());
    }
    step.command = Some(format!("mdfsck export {} -o saved --table {} --damaged", request.paths, argument(&object)));
    step.object = Some(object);
    step.pages = damage.iam_pages.iter().copied().collect();
    step.rests_on.clone_from(&damage.ids);
    step
}

/// An argument of a command, in quotes where it needs them.
pub(crate) fn argument(text: &str) -> String {
    source::argument(std::path::Path::new(text))
}

/// Extents that are allocated and belong to nothing.
fn unowned(request: &Request<'_>, damage: &Damage) -> Step {
    let mut step = Step::new(Action::RepairAllowDataLoss, "Free what is allocated and belongs to nothing");
    step.reason = "The maps have pages in use that no object names. No table misses them, unless another step says so; they only \
                   take room."
        .to_owned();
    step.risk =
        "The repair frees these pages. If they hold rows that a damaged map no longer names, the rows are gone then: \
                 do it last, after a backup, and only if no step about a table is left."
            .to_owned();
    step.cannot_restore =
        Some("What is on these pages: 'mdfsck export --damaged' looks for rows there first.".to_owned());
    step.command = Some(format!("mdfsck export {} -o saved --damaged", request.paths));
    let name = statements::database(&request.report.database.name).unwrap_or_default();
    step.sql = vec![
        "USE [master];".to_owned(),
        format!("ALTER DATABASE {name} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;"),
        format!(
            "DBCC CHECKALLOC ({}, REPAIR_ALLOW_DATA_LOSS) WITH NO_INFOMSGS, ALL_ERRORMSGS;",
            quote_text(&request.report.database.name)
        ),
        format!("ALTER DATABASE {name} SET MULTI_USER;"),
    ];
    step.pages = damage.unowned.pages.iter().copied().collect();
    step.rests_on.clone_from(&damage.unowned.ids);
    step
}
