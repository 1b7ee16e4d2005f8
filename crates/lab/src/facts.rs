//! The system catalog of a new database, as facts in `data/catalogue.tsv`.
//!
//! Each line begins with the versions for which it holds (one letter per version, oldest version first). The kind of
//! the line and its fields follow.
//!
//! * `T` object: id, name, type, schema, status, intprop, status2
//! * `C` column: object, column id, name, xtype, utype, length, precision, scale, collation, status, maxinrow, NOT NULL
//! * `I` index: object, index, name, type, status, fill factor, rowset status, compression, null bitmap in leaf and
//!   non-leaf records, physical order (`id`: by column id, `key`: key columns first)
//! * `K` index column: object, index, number, status, column, key ordinal
//! * `D` row: table, then the values in column order. `~` is NULL, `@` is the creation date, `x..` is bytes, `*` is the
//!   collation of the database

use crate::version::Version;

const CATALOGUE: &str = include_str!("../data/catalogue.tsv");

/// A base table, internal table or queue.
#[derive(Clone, Debug)]
pub(crate) struct ObjectFact {
    /// Object ID.
    pub id: i32,
    /// Name.
    pub name: &'static str,
    /// Type code.
    pub kind: &'static str,
    /// Schema ID.
    pub schema: i32,
    /// sysschobjs.status.
    pub status: i64,
    /// sysschobjs.intprop: the last column ID of the object.
    pub intprop: i64,
    /// sysschobjs.status2.
    pub status2: i64,
    /// The columns, ordered by ID.
    pub columns: Vec<ColumnFact>,
    /// The indexes, ordered by ID, including the heap.
    pub indexes: Vec<IndexFact>,
    /// The rows that the table has in every new database.
    pub rows: Vec<Vec<&'static str>>,
}

/// A column of a base table.
#[derive(Clone, Debug)]
pub(crate) struct ColumnFact {
    /// Column ID.
    pub id: u32,
    /// Name.
    pub name: &'static str,
    /// xtype.
    pub xtype: u8,
    /// User type ID.
    pub utype: i64,
    /// Length in syscolpars; -1 for (max).
    pub length: i16,
    /// Precision.
    pub precision: u8,
    /// Scale.
    pub scale: u8,
    /// Collation ID; `None` for the collation of the database.
    pub collation: Option<u32>,
    /// syscolpars.status.
    pub status: i64,
    /// syscolpars.maxinrow.
    pub max_in_row: i64,
    /// Whether sysrscols marks the column as NOT NULL.
    pub not_null: bool,
}

/// An index of a base table.
#[derive(Clone, Debug)]
pub(crate) struct IndexFact {
    /// Index ID.
    pub id: i32,
    /// Name; empty for a heap.
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
    /// Whether leaf records have a null bitmap.
    pub leaf_nulls: bool,
    /// Whether non-leaf records have a null bitmap.
    pub inner_nulls: bool,
    /// Whether the key columns come first in the physical column order.
    pub key_first: bool,
    /// The columns, ordered by number.
    pub columns: Vec<IndexColumnFact>,
}

/// A row of sysiscols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexColumnFact {
    /// sysiscols.subid.
    pub number: i64,
    /// sysiscols.status.
    pub status: i64,
    /// Column ID.
    pub column: u32,
    /// Key ordinal; 0 for included columns.
    pub ordinal: i64,
}

/// All objects of a version, ordered by ID.
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
