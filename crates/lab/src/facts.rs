//! The system catalog of a fresh database, as facts: `data/catalogue.tsv`.
//!
//! Each line has the versions for which it holds (one letter per version, oldest first), a kind, and fields.
//!
//! * `T` object: id, name, type, schema, status, intprop, status2
//! * `C` column: object, column id, name, xtype, utype, length, precision, scale, collation, status, maxinrow, NOT NULL
//! * `I` index: object, index, name, type, status, fill factor, rowset status, compression, null bitmap in leaf and
//!   non-leaf records, physical order (`id`: by column id, `key`: the key first)
//! * `K` index column: object, index, number, status, column, key ordinal
//! * `D` row: table, values in column order. `~` NULL, `@` the day of creation, `x..` bytes, `*` the database's collation

use crate::version::Version;

const CATALOGUE: &str = include_str!("../data/catalogue.tsv");

/// A base table, internal table or queue.
#[derive(Clone, Debug)]
pub(crate) struct ObjectFact {
    /// Object id.
    pub id: i32,
    /// Name.
    pub name: &'static str,
    /// Type code.
    pub kind: &'static str,
    /// Schema id.
    pub schema: i32,
    /// sysschobjs.status.
    pub status: i64,
    /// sysschobjs.intprop: its last column id.
    pub intprop: i64,
    /// sysschobjs.status2.
    pub status2: i64,
    /// Columns by id.
    pub columns: Vec<ColumnFact>,
    /// Indexes by id, heap included.
    pub indexes: Vec<IndexFact>,
    /// Rows of the table in every fresh database.
    pub rows: Vec<Vec<&'static str>>,
}

/// A column of a base table.
#[derive(Clone, Debug)]
pub(crate) struct ColumnFact {
    /// Column id.
    pub id: u32,
    /// Name.
    pub name: &'static str,
    /// xtype.
    pub xtype: u8,
    /// User type id.
    pub utype: i64,
    /// Length in syscolpars: -1 for (max).
    pub length: i16,
    /// Precision.
    pub precision: u8,
    /// Scale.
    pub scale: u8,
    /// Collation id; `None` for that of the database.
    pub collation: Option<u32>,
    /// syscolpars.status.
    pub status: i64,
    /// syscolpars.maxinrow.
    pub max_in_row: i64,
    /// sysrscols says NOT NULL.
    pub not_null: bool,
}

/// An index of a base table.
#[derive(Clone, Debug)]
pub(crate) struct IndexFact {
    /// Index id.
    pub id: i32,
    /// Name, empty for a heap.
    pub name: &'static str,
    /// sysidxstats.type.
    pub kind: u8,
    /// sysidxstats.status.
    pub status: i64,
    /// Fill factor.
    pub fill_factor: u8,
    /// sysrowsets.status.
    pub rowset_status: i64,
    /// sysrowsets.cmprlevel.
    pub compression: u8,
    /// Leaf records have a null bitmap.
    pub leaf_nulls: bool,
    /// Non-leaf records have a null bitmap.
    pub inner_nulls: bool,
    /// The key columns come first in the physical order.
    pub key_first: bool,
    /// Its columns by number.
    pub columns: Vec<IndexColumnFact>,
}

/// A row of sysiscols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexColumnFact {
    /// subid.
    pub number: i64,
    /// status.
    pub status: i64,
    /// Column id.
    pub column: u32,
    /// Key ordinal; 0 for included columns.
    pub ordinal: i64,
}

/// All objects of a version, by id.
pub(crate) fn objects(version: Version) -> Vec<ObjectFact> {
    let mut objects: Vec<ObjectFact> = Vec::new();
    for line in CATALOGUE.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let holds = fields.next().is_some_and(|versions| versions.as_bytes().get(version.index()) == Some(&b'x'));
        if holds {
            add(&mut objects, &fields.collect::<Vec<_>>());
        }
    }
    objects.sort_by_key(|object| object.id);
    for object in &mut objects {
        object.columns.sort_by_key(|column| column.id);
        object.indexes.sort_by_key(|index| index.id);
        for index in &mut object.indexes {
            index.columns.sort_by_key(|column| column.number);
        }
    }
    objects
}

fn add(objects: &mut Vec<ObjectFact>, fields: &[&'static str]) {
    let text = |at: usize| fields.get(at).copied().unwrap_or_default();
    let number = |at: usize| text(at).parse::<i64>().unwrap_or_default();
    let hex = |at: usize| i64::from_str_radix(text(at), 16).unwrap_or_default();
    let owner = objects.iter_mut().find(|object| i64::from(object.id) == number(1));
    match (text(0), owner) {
        ("T", None) => objects.push(ObjectFact {
            id: number(1) as i32,
            name: text(2),
            kind: text(3),
            schema: number(4) as i32,
            status: number(5),
            intprop: number(6),
            status2: number(7),
            columns: Vec::new(),
            indexes: Vec::new(),
            rows: Vec::new(),
        }),
        ("C", Some(object)) => object.columns.push(ColumnFact {
            id: number(2) as u32,
            name: text(3),
            xtype: number(4) as u8,
            utype: number(5),
            length: number(6) as i16,
            precision: number(7) as u8,
            scale: number(8) as u8,
            collation: (text(9) != "*").then(|| hex(9) as u32),
            status: hex(10),
            max_in_row: number(11),
            not_null: number(12) == 1,
        }),
        ("I", Some(object)) => object.indexes.push(IndexFact {
            id: number(2) as i32,
            name: text(3),
            kind: number(4) as u8,
            status: number(5),
            fill_factor: number(6) as u8,
            rowset_status: hex(7),
            compression: number(8) as u8,
            leaf_nulls: number(9) == 1,
            inner_nulls: number(10) == 1,
            key_first: text(11) == "key",
            columns: Vec::new(),
        }),
        ("K", Some(object)) => {
            let column =
                IndexColumnFact { number: number(3), status: number(4), column: number(5) as u32, ordinal: number(6) };
            if let Some(index) = object.indexes.iter_mut().find(|index| i64::from(index.id) == number(2)) {
                index.columns.push(column);
            }
        }
        ("D", Some(object)) => object.rows.push(fields[2..].to_vec()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_its_base_tables() {
        let names = |version| objects(version).iter().map(|object| object.name).collect::<Vec<_>>();
        for version in Version::ALL {
            for name in ["sysrowsets", "sysallocunits", "sysschobjs", "syscolpars", "sysidxstats", "sysiscols"] {
                assert!(names(version).contains(&name), "{name} of {version:?}");
            }
            assert_eq!(names(version).contains(&"sysrscols"), version > Version::V611);
        }
    }

    #[test]
    fn every_column_of_an_index_is_a_column_of_its_table() {
        for version in Version::ALL {
            for object in objects(version) {
                for index in &object.indexes {
                    for column in &index.columns {
                        assert!(object.columns.iter().any(|c| c.id == column.column), "{} {}", object.name, index.name);
                    }
                }
            }
        }
    }
}
