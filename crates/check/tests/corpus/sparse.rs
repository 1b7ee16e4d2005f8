//! Sparse columns. No real file with sparse columns is available. So the tests move values of a real table into sparse
//! vectors, whose form is published, and change the catalog to match. The table must then still be sound, and damage
//! must give exactly the documented messages.

use catalog::{Database, Level, Rowset, Stored, UnitKind};
use findings::Report;
use format::Page;
use format::record::{COMPLEX, Record, status};
use format::sparse::SparseVector;
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::image::{Image, children, offset_of, put16, slot_at};

const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";
/// A small table. The next constant lists the columns that become sparse. The table has an index on the first of these
/// columns.
const TABLE: &str = "Employees";
const COLUMNS: [&str; 3] = ["PostalCode", "BirthDate", "ReportsTo"];

/// The table with sparse columns. All its rows are on one page.
struct Table {
    object: i32,
    rowset: u64,
    page: u32,
    /// IDs of the sparse columns, ascending.
    ids: Vec<u16>,
    /// ID of a column that is not sparse.
    ordinary: u16,
}

impl Table {
    fn of(image: &Image) -> Self {
        let database = &image.database();
        let object = database.objects.values().find(|object| object.name == TABLE).expect("table").id;
        let rowset = Self::rowset(database, object);
        let unit = rowset.units.iter().map(|unit| &database.units[*unit]).find(|unit| unit.kind == UnitKind::InRow);
        let id = |name: &str| {
            let column = database.columns[&object].iter().find(|column| column.name == name);
            column.expect("column").id as u16
        };
        let mut ids = COLUMNS.map(id).to_vec();
        ids.sort_unstable();
        let page = children(&image.page(unit.expect("unit").root.page))[0];
        Self { object, rowset: rowset.id, page, ids, ordinary: id("Country") }
    }

    fn rowset(database: &Database, object: i32) -> &Rowset {
        database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object, 1)).expect("rowset")
    }
}

/// Moves the values of the columns into sparse vectors, and marks the columns as sparse in the catalog.
fn make_sparse(image: &mut Image) -> Table {
    let database = image.database();
    let table = Table::of(image);
    let layout = &Table::rowset(&database, table.object).layout;
    let mut bytes = image.page(table.page);
    let rows: Vec<Vec<u8>> = (0..Page::new(&bytes).header().slot_count.get())
        .map(|slot| {
            let record = Record::data(&bytes[offset_of(&bytes, slot)..]).expect("record");
            let values = table.ids.iter().filter_map(|id| {
                match layout.column(u32::from(*id)).expect("column").stored(Level::Leaf, &record) {
                    Stored::Plain(bytes) => Some((*id, bytes.to_vec())),
                    _ => None,
                }
            });
            let emptied = |number: u16| {
                let ids = || table.ids.iter().filter_map(|id| layout.column(u32::from(*id)));
                ids().any(|column| column.leaf_offset == -(number.cast_signed()))
            };
            with_vector(&record, &vector(&values.collect::<Vec<_>>()), emptied)
        })
        .collect();
    write_rows(&mut bytes, &rows);
    image.edit(table.page, |page| *page = bytes);
    for id in &table.ids {
        let key = [table.rowset.to_le_bytes().as_slice(), &u32::from(*id).to_le_bytes()].concat();
        // Sets the sparse bit of sysrscols.status.
        image.edit_row_by(3, &key, |row| row[4 + 36 + 1] |= 1);
    }
    table
}

fn vector(values: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let word = |value: usize| (value as u16).to_le_bytes();
    let mut bytes = [word(5), word(values.len())].concat();
    values.iter().for_each(|(id, _)| bytes.extend(id.to_le_bytes()));
    let mut end = 4 + 4 * values.len();
    for (_, value) in values {
        end += value.len();
        bytes.extend(word(end));
    }
    values.iter().for_each(|(_, value)| bytes.extend(value));
    bytes
}

/// Returns the record with a vector appended as its last variable column. `emptied` tells which of the existing
/// variable columns become empty.
fn with_vector(record: &Record<'_>, vector: &[u8], emptied: impl Fn(u16) -> bool) -> Vec<u8> {
    let columns: Vec<(&[u8], bool)> = record.variables().collect();
    let columns =
        columns.iter().zip(1u16..).map(|(column, number)| if emptied(number) { (&[][..], false) } else { *column });
    let columns: Vec<(&[u8], bool)> = columns.chain([(vector, true)]).collect();
    let bitmap = usize::from(record.fixed_end()) + 2 + usize::from(record.column_count()).div_ceil(8);
    let mut bytes = record.bytes()[..bitmap].to_vec();
    bytes[0] |= status::VARIABLE;
    bytes.extend((columns.len() as u16).to_le_bytes());
    let mut end = bytes.len() + 2 * columns.len();
    for (value, is_complex) in &columns {
        end += value.len();
        bytes.extend((end as u16 | if *is_complex { COMPLEX } else { 0 }).to_le_bytes());
    }
    columns.iter().for_each(|(value, _)| bytes.extend(*value));
    bytes
}

/// Writes the rows to the page one after another.
fn write_rows(page: &mut format::PageBytes, rows: &[Vec<u8>]) {
    let mut at = 96;
    for (row, slot) in rows.iter().zip(0u16..) {
        page[at..at + row.len()].copy_from_slice(row);
        put16(page, slot_at(slot), at as u16);
        at += row.len();
    }
    let free = 8192 - 2 * rows.len() - at;
    put16(page, 28, free as u16);
    put16(page, 30, at as u16);
}

/// Changes the vector of the row in a slot. Returns the place of the row as messages print it.
fn edit_vector(image: &mut Image, table: &Table, slot: u16, change: impl FnOnce(&mut [u8])) -> String {
    image.edit(table.page, |bytes| {
        let at = offset_of(bytes, slot);
        let (start, length) = {
            let record = Record::data(&bytes[at..]).expect("record");
            let vector = SparseVector::of(&record).expect("vector").bytes();
            (vector.as_ptr().addr() - bytes.as_ptr().addr(), vector.len())
        };
        change(&mut bytes[start..start + length]);
    });
    format!("page (1:{}), row {slot}.", table.page)
}

/// Offset, within a vector, of the value of a sparse column.
fn value_at(vector: &[u8], id: u16) -> usize {
    let view = SparseVector::read(vector).expect("vector");
    let value = view.value(id).expect("sound").expect("value");
    value.bytes.as_ptr().addr() - vector.as_ptr().addr()
}

/// Damages the image, in which the table has sparse columns. Returns the number of each expected message, and part of
/// its text.
type Damage = fn(&mut Image, &Table) -> Vec<(u16, String)>;

/// One test per kind of damage.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let kinds: Vec<(&str, Damage)> = vec![
        ("sound", |_, _| Vec::new()),
        ("a value changed: its index row is missed and surplus", |image, table| {
            let postal = id(image, "PostalCode");
            edit_vector(image, table, 2, |vector| vector[value_at(vector, postal)] = b'Z');
            [
                "8951 in the index 'PostalCode'",
                "8952 in index 'PostalCode'",
                "8955 PostalCode = 'Z",
                "8956 PostalCode = '",
            ]
            .map(|text| (text[..4].parse().expect("number"), text[5..].to_owned()))
            .to_vec()
        }),
        ("a value out of its type's domain", |image, table| {
            let birth = id(image, "BirthDate");
            edit_vector(image, table, 3, |vector| {
                let at = value_at(vector, birth);
                vector[at..at + 4].fill(0xFF);
            });
            vec![(2570, "slot 3 in".to_owned()), (2570, "Column \"BirthDate\" value is out of range".to_owned())]
        }),
        ("a value of a length that its type does not have", |image, table| {
            // Moves the boundary between the first and second value of the vector by four bytes, so that the first
            // value is longer and the second is shorter.
            let at = edit_vector(image, table, 1, |vector| {
                let ends = 4 + 2 * usize::from(vector[2]);
                vector[ends] += 4;
            });
            vec![
                (
                    2537,
                    format!(
                        "{at} The record check (Valid length of column 'BirthDate') failed. The values are 12 and 8."
                    ),
                ),
                (8951, "PostalCode".to_owned()),
                (8952, "PostalCode".to_owned()),
                (8955, "PostalCode".to_owned()),
                (8956, "PostalCode".to_owned()),
            ]
        }),
        ("the offsets of a vector descend", |image, table| {
            let at = edit_vector(image, table, 1, |vector| {
                let ends = 4 + 2 * usize::from(vector[2]);
                vector[ends] = 1;
            });
            vec![(2537, format!("{at} The record check (sparse vector: offsets ascend) failed."))]
        }),
        ("a value of a column that is not sparse", |image, table| {
            let (postal, ordinary) = (id(image, "PostalCode"), table.ordinary);
            let at = edit_vector(image, table, 1, |vector| {
                let place = vector[4..].chunks(2).position(|id| id == postal.to_le_bytes()).expect("id");
                vector[4 + 2 * place..6 + 2 * place].copy_from_slice(&ordinary.to_le_bytes());
            });
            let test = "The record check (sparse vector: column is sparse) failed.";
            vec![
                (2537, format!("{at} {test} The values are {ordinary} and 0.")),
                (8951, "PostalCode".to_owned()),
                (8952, "PostalCode".to_owned()),
                (8955, "PostalCode = NULL".to_owned()),
                (8956, "PostalCode".to_owned()),
            ]
        }),
    ];
    let trial = |(name, damage): (&str, Damage)| {
        let corpus = corpus.clone();
        Trial::test(format!("sparse: {name}"), move || {
            let mut image = Image::load(&corpus.files.join(NORTHWIND));
            let table = make_sparse(&mut image);
            let expected = damage(&mut image, &table);
            agree(&image.check(), &expected)
        })
    };
    kinds.into_iter().map(trial).collect()
}

fn id(image: &Image, name: &str) -> u16 {
    let database = image.database();
    let table = Table::of(image);
    database.columns[&table.object].iter().find(|column| column.name == name).expect("column").id as u16
}

/// Asserts that each expected message is reported, and that no message with another number is reported. Also asserts
/// that everything in the table except the key order is verified, unless message 2537 is expected.
fn agree(report: &Report, expected: &[(u16, String)]) -> Result<(), Failed> {
    let found: Vec<(u16, String)> =
        report.findings.iter().map(|finding| (finding.check.msg, finding.text(&report.names()))).collect();
    let foreign = found.iter().find(|(msg, _)| !expected.iter().any(|(wanted, _)| wanted == msg));
    let missing = expected.iter().find(|(msg, part)| !found.iter().any(|(at, text)| at == msg && text.contains(part)));
    let unverified = report.not_verified.iter().find(|entry| entry.scope.contains(TABLE) && entry.what != "key order");
    let is_explained = expected.iter().any(|(msg, _)| *msg == 2537) || unverified.is_none();
    match (foreign, missing, is_explained) {
        (None, None, true) => Ok(()),
        _ => Err(format!("missing {missing:?}, unverified {unverified:?}, found {found:#?}").into()),
    }
}
