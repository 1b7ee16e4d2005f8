//! The objects that are modules: procedures, functions, views and triggers.

use catalog::{Database, Object};

/// The IDs of the schemas INFORMATION_SCHEMA and sys, which contain objects without a text in the database.
const SYSTEM_SCHEMAS: [i32; 2] = [3, 4];

/// Whether an object is a procedure, function, view or trigger of the database.
pub(crate) fn is_module(database: &Database, object_id: i32) -> bool {
    database.objects.get(&object_id).is_some_and(|object| kind_of(object).is_some())
}

/// The kind of module that an object of the database is; `None` if it is no module.
pub(crate) fn kind_of(object: &Object) -> Option<&'static str> {
    kind(&object.type_code).filter(|_| !SYSTEM_SCHEMAS.contains(&object.schema_id))
}

fn kind(type_code: &str) -> Option<&'static str> {
    Some(match type_code {
        "P" | "RF" => "PROCEDURE",
        "FN" | "IF" | "TF" => "FUNCTION",
        "V" => "VIEW",
        "TR" => "TRIGGER",
        _ => return None,
    })
}
