//! Procedures, functions, views and triggers as files.

use std::fs;
use std::io::Write;
use std::path::Path;

use ::export::{Partial, stems};
use catalog::Database;
use report::export::Definition;
use script::{Definitions, ModuleText, Script};

use super::plan::Plan;
use crate::failure::Failure;
use crate::output::unwritable;

/// Writes each to a file of its own.
///
/// # Errors
/// A file that is there already, or cannot be written.
pub(super) fn write(database: &Database, texts: &Definitions, plan: &Plan) -> Result<Vec<Definition>, Failure> {
    let modules = Script::new(database, texts).definitions();
    let ids: Vec<i32> = modules.iter().map(|module| module.object_id).collect();
    let stems = stems(database, &ids);
    fs::create_dir_all(&plan.definitions).map_err(|cause| unwritable(&plan.definitions, &cause))?;
    let mut definitions = Vec::new();
    for module in &modules {
        let stem = stems.get(&module.object_id).cloned().unwrap_or_default();
        let name = format!("{stem}.{}.sql", module.kind.to_lowercase());
        let file = match &module.text {
            ModuleText::Text(text) => {
                let path = plan.definitions.join(&name);
                plan.refuse_existing(&path)?;
                write_file(&path, plan.replaces, &format!("{}\nGO\n", text.trim_end()))?;
                Ok(format!("definitions/{name}"))
            }
            ModuleText::Encrypted => Err("its text is encrypted (WITH ENCRYPTION)"),
            ModuleText::Unreadable => Err("its text cannot be read: a page of sysobjvalues is damaged or missing"),
        };
        let object = format!("{}.{}", module.schema, module.name);
        definitions.push(Definition { object, type_name: module.kind, file });
    }
    Ok(definitions)
}

/// Writes a small file.
pub(super) fn write_file(path: &Path, replaces: bool, text: &str) -> Result<(), Failure> {
    let written = Partial::create(path, replaces).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.finish()
    });
    written.map(|_| ()).map_err(|cause| unwritable(path, &cause))
}
