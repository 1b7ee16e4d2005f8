//! The system catalog that the lab writes must equal the catalog of real files of the same version. The comparison
//! includes base tables, their columns and indexes, the offset of each column, and the allocation units.
//!
//! The real files are not part of the repository. They are expected in `target/corpus`; without them, each test is
//! reported as ignored.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use catalog::Database;
use lab::{Version, orders};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// For each version, a real file whose system tables are unchanged, as in a new database.
const FILES: [(Version, &str); 6] = [
    (Version::V611, "edwardyi__rentHouse/App_Data/Database1.mdf"),
    (Version::V661, "itsligo__sampledbs/Bookshop.mdf"),
    (Version::V706, "0xHamzaCakmak__Gorsel-Programlama2-sql/Database2.mdf"),
    (Version::V852, "krystian2008__ShoppingCart/App_Data.zip.d/ShoppingCartDB.mdf"),
    (Version::V904, "Stolen94__CRMGURU_TEST2/DATABASE.7z.d/Country_DB.mdf"),
    (Version::V957, "AhmedHamada87__Point-Of-Sales-MVC-ASP.NET-Core/Database.rar.d/Ecommerce.mdf"),
];

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let trials = FILES.map(|(version, file)| {
        let path = corpus.join(file);
        let run = move || match path.is_file() {
            true => compare(version, path).map(|()| Completion::Completed),
            false => Ok(Completion::ignored_with("the file is not in target/corpus")),
        };
        // Tests with real files belong to the full tier.
        Trial::ignorable_test(format!("catalogue of {version:?} as in a real file"), run).with_ignored_flag(true)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}

fn load(path: PathBuf) -> Database {
    catalog::load(&source::DataFiles::open(&[path]).unwrap())
}

fn compare(version: Version, path: PathBuf) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut description = orders::orders(version, 1, 0);
    description.tables.clear();
    let written = lab::write(&description, folder.path())?;
    let (real, lab) = (load(path), load(written.files[0].clone()));
    let (mut expected, found) = (system_tables(&real), system_tables(&lab));
    // Ledger tables of the real file are compared only if the lab writes them.
    expected.retain(|name, _| found.contains_key(name) || !name.contains("ledger_"));
    for (name, lines) in &expected {
        if found.get(name) != Some(lines) {
            return Err(format!("{name}:\n real {lines:#?}\n lab {:#?}", found.get(name)).into());
        }
    }
    if expected.len() != found.len() {
        return Err(format!("{} rowsets, not {}", found.len(), expected.len()).into());
    }
    Ok(())
}

/// The catalog's description of each rowset of a base table or internal table. Collations are left out because they
/// depend on the database.
fn system_tables(database: &Database) -> BTreeMap<String, Vec<String>> {
    let mut tables = BTreeMap::new();
    for rowset in &database.rowsets {
        let Some(object) = database.objects.get(&rowset.object_id) else { continue };
        if !matches!(object.type_code.as_str(), "S" | "IT") {
            continue;
        }
        let mut lines: Vec<String> = rowset
            .layout
            .columns
            .iter()
            .map(|column| {
                let places = (column.leaf_offset, column.node_offset, column.leaf_null_bit, column.node_null_bit);
                let bits = (column.leaf_bit, column.node_bit);
                let head = (column.id, column.physical, column.info, column.key_ordinal, column.status);
                format!("{head:?} {places:?} {bits:?}")
            })
            .collect();
        let mut kinds: Vec<_> = rowset.units.iter().map(|&unit| database.units[unit].kind).collect();
        kinds.sort();
        lines.push(format!("units {kinds:?}, compression {}", rowset.compression));
        if let Some(index) = database.indexes.get(&(rowset.object_id, rowset.index_id)) {
            lines.push(format!("{:?} {} {:#x}", index.index_type, index.name, index.status));
        }
        for column in database.columns.get(&rowset.object_id).into_iter().flatten() {
            lines.push(format!("column {} {}", column.id, column.name));
        }
        tables.insert(format!("{}.{}", object.name, rowset.index_id), lines);
    }
    tables
}
