//! Completes a catalog that lost pages with the catalog of a copy of the database.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::database::{Database, Object, RestsOn, Rowset, TableColumn};
use crate::layout::{RowsetColumn, column_status};

/// The base tables that say where columns are in the rows: sysrscols, and its two predecessors in SQL Server 2005.
pub(crate) const LAYOUTS: [i32; 3] = [3, 4, 13];

/// Why a database is not accepted as a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotACopy {
    /// The boot pages have different family GUIDs.
    OtherFamily,
    /// Most objects that both catalogs have are different ones.
    OtherObjects {
        /// The number of object IDs with the same name in both catalogs.
        same: usize,
        /// The number of object IDs with another name.
        different: usize,
    },
    /// The copy has no readable catalog of its own.
    NoCatalog,
}

impl fmt::Display for NotACopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherFamily => f.write_str("it is a copy of another database: its boot page has another family GUID"),
            Self::OtherObjects { same, different } => write!(
                f,
                "it is a copy of another database: of the object IDs that both catalogs have, {same} have the same name \
                 and {different} have different names"
            ),
            Self::NoCatalog => f.write_str("its own catalog cannot be read"),
        }
    }
}

/// Completes `database` with the catalog of a copy. Rows that the database's own catalog has stay as they are.
///
/// # Errors
/// [`NotACopy`] if the two are not copies of one database; `database` is then unchanged.
pub fn complete_from(database: &mut Database, copy: &Database) -> Result<(), NotACopy> {
    is_copy(database, copy)?;
    let layout_gap = database.gaps.iter().any(|gap| LAYOUTS.contains(&gap.object_id));
    let known: BTreeSet<u64> = database.units.iter().map(|unit| unit.id.0).collect();
    database.units.extend(copy.units.iter().filter(|unit| !known.contains(&unit.id.0)).cloned());
    let mut taken = BTreeSet::new();
    for rowset in &copy.rowsets {
        match database.rowsets.binary_search_by_key(&rowset.id, |own| own.id).map(|at| database.rowsets.get_mut(at)) {
            Ok(Some(own)) => {
                // A column that the copy has and the database has not was dropped, if all rows of sysrscols were read.
                if layout_gap && take_columns(own, rowset) {
                    taken.insert(own.object_id);
                }
            }
            _ => {
                taken.insert(rowset.object_id);
            }
        }
    }
    let known: BTreeSet<u64> = database.rowsets.iter().map(|rowset| rowset.id).collect();
    database.rowsets.extend(copy.rowsets.iter().filter(|rowset| !known.contains(&rowset.id)).cloned());
    link(database);
    add(&mut database.schemas, &copy.schemas);
    add(&mut database.objects, &copy.objects);
    add(&mut database.indexes, &copy.indexes);
    add(&mut database.index_columns, &copy.index_columns);
    add(&mut database.partition_functions, &copy.partition_functions);
    add(&mut database.partitioned, &copy.partitioned);
    database.object_ids.extend(&copy.object_ids);
    for (object, columns) in &copy.columns {
        let own = database.columns.entry(*object).or_default();
        let known: BTreeSet<u32> = own.iter().map(|column| column.id).collect();
        let more: Vec<TableColumn> = columns.iter().filter(|column| !known.contains(&column.id)).cloned().collect();
        if !more.is_empty() {
            own.extend(more);
            own.sort_by_key(|column| column.id);
            taken.insert(*object);
        }
    }
    let key = |expression: &crate::Expression| (expression.object_id, expression.kind, expression.sub_id);
    let known: BTreeSet<_> = database.expressions.iter().map(key).collect();
    database.expressions.extend(copy.expressions.iter().filter(|of| !known.contains(&key(of))).cloned());
    database.expressions.sort_by_key(key);
    if database.filegroups.is_empty() {
        database.filegroups.clone_from(&copy.filegroups);
    }
    if database.files.is_empty() {
        database.files.clone_from(&copy.files);
    }
    taken.into_iter().for_each(|object| {
        database.rests_on.insert(object, RestsOn::Copy);
    });
    Ok(())
}

/// Takes the columns from the copy whose rows are lost; returns whether there were such columns.
fn take_columns(own: &mut Rowset, copy: &Rowset) -> bool {
    // In SQL Server 2005, the ID of a column is in another table than its place; it is 0 if that row is lost.
    let is_known = |own: &RowsetColumn| own.id > 0 || own.status & column_status::UNIQUIFIER != 0;
    let own_columns = &own.layout.columns;
    let known: BTreeSet<(u32, u32)> = own_columns.iter().map(|own| (own.physical, own.id)).collect();
    let lacks = |copied: &RowsetColumn| !known.contains(&(copied.physical, copied.id));
    if !copy.layout.columns.iter().any(lacks) {
        return false;
    }
    // The positions in compressed rows are those in expanded rows, which depend on all columns.
    if own.is_row_compressed() || copy.is_row_compressed() {
        (own.layout, own.expansion) = (copy.layout.clone(), copy.expansion.clone());
        return true;
    }
    let kept: Vec<RowsetColumn> = own_columns.iter().filter(|own| is_known(own)).cloned().collect();
    let places: BTreeSet<u32> = kept.iter().map(|own| own.physical).collect();
    let taken = |column: &&RowsetColumn| !places.contains(&column.physical);
    let more: Vec<RowsetColumn> = copy.layout.columns.iter().filter(taken).cloned().collect();
    own.layout.columns = kept.into_iter().chain(more).collect();
    own.layout.columns.sort_by_key(|column| column.physical);
    true
}

fn add<K: Ord + Clone, V: Clone>(own: &mut BTreeMap<K, V>, copy: &BTreeMap<K, V>) {
    for (key, value) in copy {
        own.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

fn is_copy(database: &Database, copy: &Database) -> Result<(), NotACopy> {
    let (Some(boot), false) = (&copy.boot, copy.rowsets.is_empty()) else { return Err(NotACopy::NoCatalog) };
    let none = [0; 16];
    let family = database.boot.as_ref().map(|boot| boot.family_guid).filter(|family| *family != none);
    if family.is_some_and(|family| boot.family_guid != none && boot.family_guid != family) {
        return Err(NotACopy::OtherFamily);
    }
    // System objects have the same names in all databases.
    let is_users = |object: &&Object| object.type_code == "U";
    let both = database.objects.values().filter(is_users).filter_map(|own| Some((own, copy.objects.get(&own.id)?)));
    let (same, different): (Vec<_>, Vec<_>) = both.partition(|(own, copied)| own.name == copied.name);
    if different.len() > same.len() {
        Err(NotACopy::OtherObjects { same: same.len(), different: different.len() })
    } else {
        Ok(())
    }
}

/// Sorts rowsets and units by ID, and links them with each other.
pub(crate) fn link(database: &mut Database) {
    database.units.sort_by_key(|unit| unit.id);
    database.rowsets.sort_by_key(|rowset| rowset.id);
    database.rowsets.iter_mut().for_each(|rowset| rowset.units.clear());
    for (at, unit) in database.units.iter_mut().enumerate() {
        unit.rowset = database.rowsets.binary_search_by_key(&unit.owner_id, |rowset| rowset.id).ok();
        if let Some(rowset) = unit.rowset.and_then(|rowset| database.rowsets.get_mut(rowset)) {
            rowset.units.push(at);
        }
    }
    database.rowsets_by_object = crate::RowsetsByObject::default();
}
