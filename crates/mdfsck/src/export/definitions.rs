//! Writes procedures, functions, views and triggers to files.

use std::fs;
use std::io::Write;
use std::path::Path;

use ::export::{Partial, stems};
use catalog::Database;
use jobs::failure::Failure;
use report::export::Definition;
use script::{Definitions, ModuleText, Script, batch};
use source::PageSource;

use super::plan::Plan;
use crate::output::unwritable;

/// The first lines of each file. sqlcmd turns these settings off by default, so the file turns them on. The settings
/// that the database stores for each module are not read.
const SETTINGS: &str = "SET QUOTED_IDENTIFIER ON;\nSET ANSI_NULLS ON;\nGO\n";
/// The kinds of modules, in the order in which the files are listed.
const KINDS: [&str; 4] = ["FUNCTION", "VIEW", "PROCEDURE", "TRIGGER"];

/// Writes each definition to a separate file.
///
/// # Errors
/// A file that already exists, or that cannot be written.
pub(super) fn write(
    pages: &dyn PageSource,
    database: &Database,
    texts: &Definitions,
    plan: &Plan,
) -> Result<Vec<Definition>, Failure> {
    let script = Script::new(database, texts);
    let stems = stems(database, &script.modules());
    fs::create_dir_all(&plan.definitions).map_err(|cause| unwritable(&plan.definitions, &cause))?;
    let mut definitions = Vec::new();
    script.each_module(pages, &mut |module| -> Result<(), Failure> {
        let stem = stems.get(&module.object_id).cloned().unwrap_or_default();
        let name = format!("{stem}.{}.sql", module.kind.to_lowercase());
        let file = match &module.text {
            ModuleText::Text(text) => {
                let path = plan.definitions.join(&name);
                plan.refuse_existing(&path)?;
                let schema = script.schema(module.object_id);
                let schema = if schema.is_empty() { schema } else { batch(&schema) };
                write_file(&path, plan.replaces, &format!("{SETTINGS}{schema}{}", batch(text)))?;
                Ok(format!("definitions/{name}"))
            }
            ModuleText::Encrypted => Err("its text is encrypted (WITH ENCRYPTION), or does not begin with CREATE"),
            ModuleText::Unreadable => Err("its text cannot be read: a page of sysobjvalues is damaged or missing"),
        };
        let object = format!("{}.{}", module.schema, module.name);
        definitions.push(Definition { object, type_name: module.kind, file });
        Ok(())
    })?;
    let order = |definition: &Definition| {
        let kind = KINDS.iter().position(|kind| *kind == definition.type_name);
        (kind, definition.object.clone())
    };
    definitions.sort_by_cached_key(order);
    Ok(definitions)
}

/// Writes a file under a temporary name, and renames the file when it is complete.
pub(super) fn write_file(path: &Path, replaces: bool, text: &str) -> Result<(), Failure> {
    let written = Partial::create(path, replaces).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.finish()
    });
    written.map(|_| ()).map_err(|cause| unwritable(path, &cause))
}
