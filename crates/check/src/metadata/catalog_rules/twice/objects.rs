//! Objects (sysschobjs): their parents, and the column number in intprop. The dates of objects are not compared: they
//! are in local time, which goes back by an hour each fall.

use catalog::Object;

use super::super::evaluate::Tables;
use super::Verdicts;

const SYSCOLPARS: i32 = 41;
/// Types of objects that may have constraints and triggers.
const WITH_ROWS: [&str; 6] = ["U", "TT", "TF", "IT", "S", "V"];

pub(super) fn check(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) {
    for object in tables.database.objects.values() {
        let place = || format!("object {} of type {}", tables.database.object_name(object.id), object.type_code);
        parent(tables, object, place, verdicts);
        column_number(tables, object, place, verdicts);
    }
    defaults(tables, verdicts);
}

/// Checks that constraints and triggers belong to a table (3,285 of 3,285) and that other objects have no parent
/// (404,906 of 404,906).
fn parent(tables: &Tables<'_>, object: &Object, place: impl Fn() -> String, verdicts: &mut Verdicts<'_>) {
    let kind = object.type_code.as_str();
    let of_a_table = matches!(kind, "C" | "D" | "EC" | "F" | "PK" | "TR" | "UQ");
    let of_nothing = matches!(
        kind,
        "AF" | "FN" | "FS" | "FT" | "IF" | "P" | "PC" | "RF" | "S" | "SN" | "SO" | "SQ" | "TF" | "TT" | "U" | "V" | "X"
    );
    if object.parent_id == 0 {
        // A default that is bound to several columns belongs to no table. A database trigger belongs to no table
        // either.
        if matches!(kind, "C" | "EC" | "F" | "PK" | "UQ") {
            verdicts.doubt("sys.sysschobjs, parent", || format!("{} belongs to no table", place()));
        }
        return;
    }
    let parent = tables.database.objects.get(&object.parent_id);
    if of_nothing || of_a_table && parent.is_some_and(|parent| !WITH_ROWS.contains(&parent.type_code.as_str())) {
        verdicts.doubt("sys.sysschobjs, parent", || {
            format!("{} belongs to {}", place(), tables.database.object_name(object.parent_id))
        });
    }
}

/// Checks intprop. For a table, it is the highest column ID that the table ever had; for a system table, the ID of its
/// last column (19,661 of 19,661). For a CHECK constraint, it is the ID of a column of its table, or 0 (141 of 141);
/// for a default, the ID of its column. It is 0 for all other objects that are checked, whether or not they have rows
/// of their own (388,935 of 388,935).
fn column_number(tables: &Tables<'_>, object: &Object, place: impl Fn() -> String, verdicts: &mut Verdicts<'_>) {
    let columns = |id: i32| tables.database.columns.get(&id).filter(|columns| !columns.is_empty());
    let last = columns(object.id).and_then(|columns| columns.last()).map(|column| i64::from(column.id));
    let number = i64::from(object.number);
    let is_right = match object.type_code.as_str() {
        "U" | "TT" => last.is_none_or(|last| number >= last),
        "S" | "IT" => last.is_none_or(|last| number == last),
        "C" | "D" if object.parent_id != 0 => {
            let is_one = |columns: &Vec<catalog::TableColumn>| {
                let id = u32::try_from(number).unwrap_or_default();
                columns.binary_search_by_key(&id, |column| column.id).is_ok()
            };
            number == 0 && object.type_code == "C" || columns(object.parent_id).is_none_or(is_one)
        }
        "AF" | "FN" | "FS" | "FT" | "IF" | "P" | "PC" | "PK" | "SQ" | "TF" | "TR" | "UQ" | "V" | "X" => number == 0,
        _ => return,
    };
    if !is_right {
        verdicts.doubt("sys.sysschobjs, intprop", || format!("{}: {number} is not a column of its table", place()));
    }
}

/// Checks that the default of a column is a default object that belongs to the same table and names the column (711 of
/// 711). Also checks that only columns of type xml have an XML schema collection (193,000 of 193,000).
fn defaults(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) {
    const XML: i64 = 241;
    let read = tables.each(SYSCOLPARS, &["id", "number", "colid", "dflt", "xtype", "xmlns"], |_, row| {
        let &[Some(table), Some(number), Some(column), default, Some(kind), xml_schema] = row else { return };
        let place = || {
            let name = i32::try_from(table).map(|table| tables.database.object_name(table)).unwrap_or_default();
            format!("column or parameter {column} of {name}")
        };
        if kind != XML && xml_schema.is_some_and(|schema| schema != 0) {
            verdicts
                .doubt("sys.syscolpars, xmlns", || format!("{} has an XML schema, but is not of type xml", place()));
        }
        let object = default.and_then(|id| tables.database.objects.get(&i32::try_from(id).ok()?));
        let Some(object) = object.filter(|_| number == 0) else { return };
        let is_own = i64::from(object.parent_id) == table && i64::from(object.number) == column;
        if object.type_code != "D" || object.parent_id != 0 && !is_own {
            verdicts.doubt("sys.syscolpars and sys.sysschobjs, defaults", || {
                format!("{} has default {}, which belongs to another column", place(), object.name)
            });
        }
    });
    let _: Result<(), catalog::Unread> = read;
}
