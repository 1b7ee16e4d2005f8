//! Resolves names on the command line to IDs in the catalog.

use std::collections::BTreeSet;

use catalog::{Database, Object};

use crate::failure::Failure;

/// The object ID of the base table of objects.
const SYSSCHOBJS: i32 = 34;

/// Finds the object that `text` names: by object ID, by name alone (first in the schema dbo, then in all schemas), or
/// by schema and name. Names may be in brackets. Upper and lower case are distinguished only if several names differ
/// only in case.
pub fn table(database: &Database, text: &str) -> Result<i32, Failure> {
    let with_rows: BTreeSet<i32> = database.rowsets.iter().map(|rowset| rowset.object_id).collect();
    if let Ok(id) = text.parse::<i32>() {
        return if with_rows.contains(&id) { Ok(id) } else { Err(unknown(text)) };
    }
    let objects = || database.objects.values().filter(|object| with_rows.contains(&object.id));
    let (schema, name) = match parts(text).as_deref() {
        Some([name]) => (None, name.clone()),
        Some([schema, name]) => (Some(schema.clone()), name.clone()),
        _ => return Err(unknown(text)),
    };
    let qualified = |object: &Object| (database.schema_name(object).to_owned(), object.name.clone());
    let folded = |(schema, name): (String, String)| (schema.to_lowercase(), name.to_lowercase());
    let wanted = |schema: &str| (schema.to_owned(), name.clone());
    let exact = wanted(schema.as_deref().unwrap_or("dbo"));
    if let Some(object) = objects().find(|object| qualified(object) == exact) {
        return Ok(object.id);
    }
    let matches = |object: &Object, schema: Option<&str>| match schema {
        Some(schema) => folded(qualified(object)) == folded(wanted(schema)),
        None => object.name.to_lowercase() == name.to_lowercase(),
    };
    let tries: &[Option<&str>] = match schema.as_deref() {
        Some(schema) => &[Some(schema)],
        None => &[Some("dbo"), None],
    };
    for schema in tries {
        let found: Vec<&Object> = objects().filter(|object| matches(object, *schema)).collect();
        match found.as_slice() {
            [] => {}
            [object] => return Ok(object.id),
            several => {
                let names: Vec<String> =
                    several.iter().map(|o| format!("{}.{}", database.schema_name(o), o.name)).collect();
                let text = format!("--table {text}: matches {}; give one with its schema", names.join(" and "));
                return Err(Failure::usage(text));
            }
        }
    }
    if database.is_encrypted {
        let text = format!("--table {text}: the database is encrypted (TDE), and the table names cannot be read");
        return Err(Failure::unable(text));
    }
    if database.objects.is_empty() || database.gap(SYSSCHOBJS).is_some() {
        let text = format!(
            "--table {text}: the table names in the catalog cannot be read completely; give the object ID instead"
        );
        return Err(Failure::unable(text));
    }
    Err(unknown(text))
}

/// If a table was not found, adds the most similar table names to the text of the failure.
pub fn nearest(failure: Failure, database: &Database, given: &str) -> Failure {
    const SHOWN: usize = 3;
    let unknown = unknown(given);
    if failure.text != unknown.text {
        return failure;
    }
    let name = parts(given).and_then(|parts| parts.last().cloned()).unwrap_or_default().to_lowercase();
    let is_user = |object: &&Object| object.type_code.trim() == "U";
    let distance = |object: &Object| distance(&name, &object.name.to_lowercase());
    let mut near: Vec<(usize, String)> = database
        .objects
        .values()
        .filter(is_user)
        .map(|object| (distance(object), format!("{}.{}", database.schema_name(object), object.name)))
        .filter(|(distance, _)| *distance <= name.chars().count() / 3 + 1)
        .collect();
    near.sort();
    let near: Vec<&str> = near.iter().take(SHOWN).map(|(_, name)| name.as_str()).collect();
    let end = match near.as_slice() {
        [] => "'mdfsck tables' lists all.".to_owned(),
        near => format!("Did you mean {}?", near.join(" or ")),
    };
    Failure::usage(format!("{} {end}", unknown.text))
}

/// The number of characters to change, add or remove to turn `a` into `b`.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut before = i;
        let mut next = vec![i + 1];
        for (to, above) in b.iter().zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or(0);
            next.push((before + usize::from(from != *to)).min(above + 1).min(left + 1));
            before = *above;
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// The failure for an unknown object, with the text of message 2501.
fn unknown(name: &str) -> Failure {
    Failure::usage(format!("Cannot find a table or object with the name \"{name}\". Check the system catalog."))
}

/// Splits `[schema].[name]` at its dots. Inside brackets, `]]` means `]`. `None` if a bracket is not closed.
pub(crate) fn parts(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut rest = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = rest.next() {
        let part = parts.last_mut()?;
        match c {
            ']' if quoted && rest.next_if_eq(&']').is_some() => part.push(']'),
            ']' if quoted => quoted = false,
            '[' if !quoted && part.is_empty() => quoted = true,
            '.' if !quoted => parts.push(String::new()),
            c => part.push(c),
        }
    }
    (!quoted).then_some(parts)
}

/// Finds the filegroup that `text` names, by ID or by name.
pub fn filegroup(database: &Database, text: &str) -> Result<u16, Failure> {
    let mut known: Vec<(u16, String)> =
        database.filegroups.iter().map(|group| (group.id, group.name.clone())).collect();
    if known.iter().all(|(id, _)| *id != 1) {
        // SQL Server 2005 does not store filegroups in the same table as later versions. Filegroup 1 exists in every
        // database.
        known.push((1, "PRIMARY".to_owned()));
    }
    let of_units: BTreeSet<u16> = database.units.iter().map(|unit| unit.filegroup).filter(|&id| id != 0).collect();
    let by_id =
        text.parse::<u16>().ok().filter(|id| of_units.contains(id) || known.iter().any(|(known, _)| known == id));
    let by_name = known.iter().find(|(_, name)| name.to_lowercase() == text.to_lowercase()).map(|(id, _)| *id);
    by_id.or(by_name).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|(id, name)| format!("{name} ({id})")).collect();
        Failure::usage(format!("--filegroup {text}: no such filegroup in this database; it has {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::{Filegroup, Rowset};

    fn database() -> Database {
        let schemas = [(1, "dbo"), (4, "sys"), (5, "Sales")].map(|(id, name)| (id, name.to_owned())).into();
        let mut database = Database { schemas, ..Database::default() };
        let objects = [
            (10, 1, "Orders"),
            (11, 5, "Orders"),
            (12, 5, "Order.Details"),
            (13, 5, "Only"),
            (14, 1, "ONLY ]"),
            (15, 5, "case"),
            (16, 5, "CASE"),
            (17, 1, "NoRows"),
        ];
        for (id, schema_id, name) in objects {
            let object =
                Object { id, name: name.to_owned(), schema_id, type_code: "U".to_owned(), parent_id: 0, number: 0 };
            database.objects.insert(id, object);
            let rowset = Rowset { id: id as u64, object_id: id, partition: 1, owner_type: 1, ..Rowset::default() };
            if id != 17 {
                database.rowsets.push(rowset);
            }
        }
        database.filegroups =
            [(1, "PRIMARY"), (2, "Archive")].map(|(id, name)| Filegroup { id, name: name.to_owned() }).into();
        database
    }

    #[test]
    fn tables_are_found_as_dbcc_finds_them() {
        let database = database();
        let find = |text: &str| table(&database, text).map_err(|failure| failure.status);
        assert_eq!(find("Orders"), Ok(10), "dbo first");
        assert_eq!(find("orders"), Ok(10), "whatever the case");
        assert_eq!(find("Sales.Orders"), Ok(11));
        assert_eq!(find("[sales].[order.details]"), Ok(12));
        assert_eq!(find("Only"), Ok(13), "in any schema");
        assert_eq!(find("[ONLY ]]]"), Ok(14));
        assert_eq!(find("Sales.CASE"), Ok(16), "the exact name");
        assert_eq!(find("Sales.Case"), Err(8), "two names fit");
        assert_eq!(find("11"), Ok(11));
        for unknown in ["Nothing", "99", "NoRows", "a.b.c", "[Orders", ""] {
            assert_eq!(find(unknown), Err(8), "{unknown}");
        }
        assert_eq!(
            table(&database, "x").unwrap_err().text,
            "Cannot find a table or object with the name \"x\". Check the system catalog."
        );
        assert_eq!(table(&Database::default(), "x").unwrap_err().status, 4, "the catalog is lost");
    }

    #[test]
    fn near_names_are_offered_for_one_that_does_not_exist() {
        let database = database();
        let text = |given: &str| nearest(table(&database, given).unwrap_err(), &database, given).text;
        assert!(text("Ordrs").ends_with("Did you mean Sales.Orders or dbo.Orders?"), "{}", text("Ordrs"));
        assert!(text("Nothing at all").ends_with("'mdfsck tables' lists all."));
        assert_eq!(
            [distance("abc", "abc"), distance("abc", "abd"), distance("", "ab"), distance("kitten", "sitting")],
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn filegroups_are_found_by_name_and_id() {
        let database = database();
        assert_eq!(filegroup(&database, "archive").ok(), Some(2));
        assert_eq!(filegroup(&database, "1").ok(), Some(1));
        let failure = filegroup(&database, "3").unwrap_err();
        assert_eq!(failure.text, "--filegroup 3: no such filegroup in this database; it has PRIMARY (1), Archive (2)");
    }
}
