//! Steps for allocation maps with wrong entries for sound pages, if no restore can correct the maps without losing
//! data. The user must stop all writing, save the rows, and then correct the maps.

use format::PageId;
use script::quote_text;

use crate::damage::Damage;
use crate::repairs::{object_name, rows_counted, table_argument, use_database};
use crate::request::Request;
use crate::statements::{self, BY_HAND, are_plain, check_again};
use crate::step::{Action, Step};

/// The maximum number of objects that are named one by one.
const MOST_NAMED: usize = 5;

/// The steps in order. The first step saves the rows that a wrong map endangers.
pub(crate) fn steps(request: &Request<'_>, damage: &Damage) -> Vec<Step> {
    let mut steps = vec![save(request, damage)];
    if !damage.maps.ids.is_subset(&damage.maps.ids_of_missing) {
        steps.push(repair(request, damage));
    }
    let missing = damage.maps.called_free.iter();
    steps.extend(missing.map(|&object_id| rebuild(request, damage, object_id)));
    steps
}

/// The owners of the pages according to the page headers, as text: `dbo.orders and dbo.order_lines`.
fn objects(request: &Request<'_>, damage: &Damage) -> String {
    let names: Vec<String> = damage.maps.objects.iter().map(|&object_id| object_name(request, object_id)).collect();
    match names.as_slice() {
        [] => "the database".to_owned(),
        [rest @ .., last] if !rest.is_empty() && names.len() <= MOST_NAMED => format!("{} and {last}", rest.join(", ")),
        [name] => name.clone(),
        names => format!("{} objects", names.len()),
    }
}

fn save(request: &Request<'_>, damage: &Damage) -> Step {
    let of = objects(request, damage);
    let mut step = Step::new(Action::Export, format!("Stop all writes, and save the rows of {of}"));
    let maps = &damage.maps;
    step.reason = match maps.is_shared {
        true => format!(
            "Allocation maps assign the same pages to more than one object: {of}. Each page has the rows of only one \
             owner, and nothing else is damaged. But a write to another owner overwrites the page, and a drop or rebuild \
             of another owner frees it."
        ),
        false => format!(
            "Allocation maps have wrong entries for pages of {of}; these pages and their rows are sound. But the server \
            may treat the pages as free, and overwrite them."
        ),
    };
    step.reason.push_str(match request.backups {
        Some(_) => " No given backup can restore correct maps without loss.",
        None => {
            " With --backups DIR, mdfsck looks for usable backups: a restore of the file and the log loses nothing."
        }
    });
    step.risk = "The export only reads the files. SET READ_ONLY disconnects all users.".to_owned();
    step.proven = Some("Page headers name the owners, and no finding concerns the content of the pages.".to_owned());
    let is_known = |object_id: &&i32| !request.database.is_system_table(**object_id);
    let users: Vec<&i32> = maps.objects.iter().filter(is_known).collect();
    let tables: Vec<String> = match users.len() == maps.objects.len() {
        true => users.iter().map(|&&object_id| format!(" --table {}", table_argument(request, object_id))).collect(),
        false => Vec::new(),
    };
    step.command = Some(format!("mdfsck export {} -o saved --damaged{}", request.paths, tables.concat()));
    step.sql = match statements::database(&request.report.database.name) {
        Some(name) => {
            vec!["USE [master];".to_owned(), format!("ALTER DATABASE {name} SET READ_ONLY WITH ROLLBACK IMMEDIATE;")]
        }
        None => vec![BY_HAND.to_owned()],
    };
    let is_heap = |object_id: &&i32| !request.database.indexes.contains_key(&(**object_id, 1));
    step.cannot_restore = maps.called_free.iter().find(is_heap).map(|_| {
        "Rows of a heap on pages that PFS marks as free: the export treats them as old rows. A backup may have them; \
        'mdfsck page' shows them."
            .to_owned()
    });
    step.pages = maps.maps.iter().copied().collect();
    step.rests_on.clone_from(&maps.ids);
    step
}

fn repair(request: &Request<'_>, damage: &Damage) -> Step {
    let maps = &damage.maps;
    let mut step = Step::new(Action::RepairAllowDataLoss, "When the rows are saved: let the repair correct the maps");
    step.reason = match maps.is_shared {
        true => {
            "Only the repair changes maps. It takes the pages from one of their owners, and does not say from which."
                .to_owned()
        }
        false => "Only the repair changes maps. As far as the findings show, it only sets bits, and deletes nothing."
            .to_owned(),
    };
    step.risk =
        "The repair needs single-user mode. Copy the files first, and compare the numbers of rows before and after."
            .to_owned();
    step.cannot_restore =
        maps.is_shared.then(|| "The rows of the owner that loses pages; the export saved them.".to_owned());
    step.sql = repair_statements(request, damage).unwrap_or(vec![BY_HAND.to_owned()]);
    step.pages = maps.maps.iter().copied().collect();
    step.rests_on.clone_from(&maps.ids);
    step
}

fn repair_statements(request: &Request<'_>, damage: &Damage) -> Option<Vec<String>> {
    let name = &request.report.database.name;
    let quoted = statements::database(name)?;
    let is_counted =
        |object_id: &&i32| !request.database.is_system_table(**object_id) && are_plain(request, **object_id);
    let objects = damage.maps.objects.iter().filter(is_counted).take(MOST_NAMED);
    let counts: Vec<String> = objects
        .filter_map(|&object_id| {
            let table = request.script.table_name(object_id)?;
            Some(format!("-- {}\nSELECT COUNT_BIG(*) FROM {quoted}.{table};", rows_counted(request, object_id)))
        })
        .collect();
    let mut sql = vec!["USE [master];".to_owned()];
    sql.push(format!("ALTER DATABASE {quoted} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;"));
    sql.push(format!("ALTER DATABASE {quoted} SET READ_WRITE;"));
    sql.extend(counts.iter().cloned());
    sql.push(format!(
        "DBCC CHECKALLOC ({}, REPAIR_ALLOW_DATA_LOSS) WITH NO_INFOMSGS, ALL_ERRORMSGS;",
        quote_text(name)
    ));
    sql.extend(counts);
    sql.push(check_again(name));
    sql.push(format!("ALTER DATABASE {quoted} SET MULTI_USER;"));
    Some(sql)
}

/// Rebuilds a table that has pages marked as free by PFS. DBCC's repair does not notice these pages, because an
/// allocated extent may contain free pages.
fn rebuild(request: &Request<'_>, damage: &Damage, object_id: i32) -> Step {
    let object = object_name(request, object_id);
    let mut step = Step::new(Action::RebuildTable, format!("When the rows are saved: rebuild the table {object}"));
    step.reason =
        "A rebuild writes the rows to new pages with correct PFS bytes. It may skip pages that are marked as free; the \
         rows that it does not find are among the saved rows."
            .to_owned();
    step.risk =
        "Compare the number of rows with the number of saved rows, and insert the rows that are missing.".to_owned();
    let table = request.script.table_name(object_id).filter(|_| are_plain(request, object_id));
    step.sql = match (statements::database(&request.report.database.name), table) {
        (Some(name), Some(table)) => {
            let rebuild = match request.database.indexes.get(&(object_id, 1)) {
                Some(index) => format!("ALTER INDEX {} ON {table} REBUILD;", script::quote(&index.name)),
                None => format!("ALTER TABLE {table} REBUILD;"),
            };
            vec![
                "USE [master];".to_owned(),
                format!("ALTER DATABASE {name} SET READ_WRITE;"),
                use_database(request),
                rebuild,
                format!("SELECT COUNT_BIG(*) FROM {table};"),
                format!("DBCC CHECKTABLE ({}) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(&table)),
            ]
        }
        _ => vec![BY_HAND.to_owned()],
    };
    step.object = Some(object);
    step.pages = damage.maps.maps.iter().copied().collect::<Vec<PageId>>();
    step.rests_on.clone_from(&damage.maps.ids_of_missing);
    step
}
