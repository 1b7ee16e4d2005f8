//! Tests of wrong column values: values outside the domain of their type, NULL in a NOT NULL column, and lengths that
//! are too long. Each must be reported with exactly the documented message and the name of the column. Changes of bytes
//! that have no meaning must not be reported.

mod legal;

use catalog::{Database, Level, Rowset, RowsetColumn, Stored, TableColumn, UnitKind};
use findings::{Options, Report};
use format::boot::status::CLEAN_SHUTDOWN;
use format::lob::{Fragment, Node};
use format::page::PAGE_BYTES;
use format::record::{Record, RecordKind};
use format::types::xtype;
use format::{AllocUnitId, Page, PageBytes, PageType, RecordId};
use libtest_mimic::{Failed, Trial};

use crate::image::{Image, get16, offset_of, put16};
use crate::subjects;

const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";
const ADVENTURE: &str = "jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf";
const DATES: &str = "Dirie__From-Database/Shafici.mdf";
const FLOATS: &str = "raghda-ali__Pharmacy/App_Data.rar.d/App_Data/Pharmacy.Models.MyDBContext.mdf";
const DATETIME2: &str = "bakolega__KnjiznicaApp2/database.7z.d/Knjiznica.mdf";
const VERSIONS: &str = "MAFG199626__PEDFAM-FINAL/App_Data.rar.d/App_Data/aspnet-PEDFAM-20241114105044.mdf";

/// The lowest ID of an XML index. The rows of an XML index contain parts of the documents in a column, not the bytes of
/// the column.
const XML_INDEXES: i32 = 256_000;

/// A column in one row.
#[derive(Clone)]
struct Spot {
    page: u32,
    slot: u16,
    /// Offset of the record on its page.
    at: usize,
    column: RowsetColumn,
    name: String,
    /// The owner as most messages print it: "object ID ..., index ID ...".
    owner: String,
}

impl Spot {
    /// Offset of the fixed column's bytes on the page.
    fn value(&self) -> usize {
        self.at + usize::from(self.column.leaf_offset.unsigned_abs())
    }

    /// Flips the column's null bit.
    fn flip_null(&self, bytes: &mut PageBytes) {
        let bitmap = self.at + usize::from(get16(bytes, self.at + 2)) + 2;
        let bit = usize::from(self.column.leaf_null_bit - 1);
        bytes[bitmap + bit / 8] ^= 1 << (bit % 8);
    }

    /// Offset of the variable column's entry in the array of end offsets.
    fn end_at(&self, bytes: &PageBytes) -> usize {
        let record = Record::data(&bytes[self.at..]).expect("record");
        let bitmap = usize::from(record.fixed_end()) + 2 + usize::from(record.column_count()).div_ceil(8);
        self.at + bitmap + 2 * usize::from(self.column.leaf_offset.unsigned_abs())
    }

    fn purity(&self, kind: &str) -> (u16, String) {
        let owner = self.owner.replace("(type In-row data)", "(type \"In-row data\")");
        let text = format!(
            "Page (1:{}), slot {} in {owner}. Column \"{}\" value is out of range for data type \"{kind}\". Update \
             column to a legal value.",
            self.page, self.slot, self.name
        );
        (2570, text)
    }

    fn record_check(&self, test: &str, values: (i64, i64)) -> (u16, String) {
        let text = format!(
            "Table error: {}, page (1:{}), row {}. The record check ({test}) failed. The values are {} and {}.",
            self.owner, self.page, self.slot, values.0, values.1
        );
        (2537, text)
    }
}

/// Finds values in rows for which `wanted` returns true, in page and slot order. Searches only user tables without
/// computed columns, and only columns that no index contains.
fn spots(image: &Image, wanted: impl Fn(&RowsetColumn, &TableColumn, Stored<'_>) -> bool) -> Vec<Spot> {
    let database = image.database();
    let mut spots = Vec::new();
    for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
        let bytes = image.page(page);
        if image.page(1)[100 + page as usize % 8088] & 0x40 == 0 || page > 8000 {
            continue;
        }
        let view = Page::new(&bytes);
        // SQL Server 2000 wrote index ID 0 on the data pages of a clustered index.
        let header = view.header();
        let unit = [header.alloc_unit(), AllocUnitId::from_header(1, header.object_id.get())];
        let unit = unit.iter().find_map(|id| database.unit_index(*id)).map(|at| &database.units[at]);
        let rowset = unit.filter(|unit| unit.kind == UnitKind::InRow).and_then(|unit| database.rowset_of(unit));
        let Some((unit, rowset)) = unit.zip(rowset) else { continue };
        if view.header().kind() != Some(PageType::Data) || !is_plain_table(&database, rowset) {
            continue;
        }
        let owner = format!(
            "object ID {}, index ID {}, partition ID {}, alloc unit ID {} (type In-row data)",
            rowset.object_id, rowset.index_id, rowset.id, unit.id
        );
        for slot in 0..view.header().slot_count.get() {
            let at = offset_of(&bytes, slot);
            let Ok(record) = Record::data(&bytes[at..]) else { continue };
            if at == 0 || record.kind() != RecordKind::Primary {
                continue;
            }
            for (column, table) in free_columns(&database, rowset) {
                if wanted(column, table, column.stored(Level::Leaf, &record)) {
                    let (column, name) = (column.clone(), table.name.clone());
                    spots.push(Spot { page, slot, at, column, name, owner: owner.clone() });
                }
            }
        }
    }
    assert!(!spots.is_empty(), "no such column");
    spots
}

fn is_plain_table(database: &Database, rowset: &Rowset) -> bool {
    let columns = database.columns.get(&rowset.object_id);
    database.objects.get(&rowset.object_id).is_some_and(|object| object.type_code == "U")
        && columns.is_some_and(|columns| !columns.iter().any(TableColumn::is_computed))
}

/// Columns that no index contains, so that damage to them is reported only by the column checks.
fn free_columns<'a>(
    database: &'a Database,
    rowset: &'a Rowset,
) -> impl Iterator<Item = (&'a RowsetColumn, &'a TableColumn)> {
    let indexed = |id: u32| {
        database
            .index_columns
            .range((rowset.object_id, 0)..(rowset.object_id, XML_INDEXES))
            .any(|(_, columns)| columns.iter().any(|column| column.column_id == id))
    };
    let table = &database.columns[&rowset.object_id];
    rowset
        .layout
        .columns
        .iter()
        .filter(move |column| !column.is_dropped() && !indexed(column.id))
        .filter_map(|column| Some((column, table.iter().find(|table| table.id == column.id)?)))
}

/// Finds the first value that has the type `kind` and is stored in its row.
fn value(image: &Image, kind: u8) -> Spot {
    let wanted =
        |column: &RowsetColumn, stored: Stored<'_>| column.info.xtype == kind && matches!(stored, Stored::Plain(_));
    spots(image, |column, _, stored| wanted(column, stored)).swap_remove(0)
}

/// Finds two neighboring variable columns of a row. `wanted` receives the lengths of their two values (`None` for NULL)
/// and selects the pair.
fn neighbours(image: &Image, wanted: impl Fn([Option<usize>; 2], &RowsetColumn) -> bool) -> [Spot; 2] {
    let all = spots(image, |column, _, stored| {
        column.leaf_offset < 0 && column.info.xtype == xtype::NVARCHAR && !matches!(stored, Stored::Complex(_))
    });
    let length = |spot: &Spot| {
        let bytes = image.page(spot.page);
        let record = Record::data(&bytes[spot.at..]).expect("record");
        // A trailing column may be omitted from the record; then it has no end offset that could be changed.
        record.variable(spot.column.leaf_offset.unsigned_abs())?;
        match spot.column.stored(Level::Leaf, &record) {
            Stored::Plain(bytes) => Some(Some(bytes.len())),
            _ => Some(None),
        }
    };
    let found = all.iter().find_map(|left| {
        let next = |right: &&Spot| {
            (right.page, right.slot, right.column.leaf_offset) == (left.page, left.slot, left.column.leaf_offset - 1)
        };
        let right = all.iter().find(next)?;
        wanted([length(left)?, length(right)?], &left.column).then(|| [left.clone(), right.clone()])
    });
    found.expect("two neighbours")
}

/// Damages the image and returns the expected messages.
type Damage = fn(&mut Image) -> Vec<(u16, String)>;

/// One test per kind of damage, and one per legal state.
pub fn trials() -> Vec<Trial> {
    let trial = |(name, file, damage): (&str, &'static str, Damage)| {
        Trial::test(format!("columns: {name} ({})", subjects::short(file)), move || {
            let mut image = subjects::image(file);
            let expected = damage(&mut image);
            agree(&image.check(), expected)
        })
    };
    let all = purity().into_iter().chain(rules()).chain(legal()).chain(of_the_lab());
    let mut trials: Vec<Trial> = all.filter(|(_, file, _)| subjects::is_there(file)).map(trial).collect();
    trials.extend(legal::trials());
    if subjects::is_there(NORTHWIND) {
        trials.extend(northwind());
    }
    trials
}

/// The kinds of damage that are also applied to lab databases. Each of them needs columns of a type that the lab
/// databases have.
fn of_the_lab() -> Vec<(&'static str, &'static str, Damage)> {
    let there = |name: &str| match name {
        "an older version of no transaction"
        | "xml: signature"
        | "nvarchar: odd length, twice"
        | "longer than declared" => None,
        "datetime: a day has 25920000 ticks" | "datetime: year 10000" => Some(subjects::DATES),
        "ntext: odd length, off the row" => None,
        "decimal: precision" => Some(subjects::SHOP),
        "more columns than the table" => Some(subjects::DATES),
        _ => Some(subjects::ORDERS_2019),
    };
    let kinds = purity().into_iter().chain(rules());
    kinds.filter_map(|(name, _, damage)| Some((name, there(name)?, damage))).collect()
}

fn northwind() -> Vec<Trial> {
    let mut trials = Vec::new();
    trials.push(Trial::test("columns: a value in an index row, by the table's name for it", move || {
        let mut image = subjects::image(NORTHWIND);
        let database = image.database();
        let index = database.indexes.values().find(|index| index.name == "OrderDate").expect("index");
        let rowset = |rowset: &&Rowset| (rowset.object_id, rowset.index_id) == (index.object_id, index.index_id);
        let rowset = database.rowsets.iter().find(rowset).expect("rowset");
        let column = rowset.layout.columns.iter().find(|column| column.info.xtype == xtype::DATETIME).expect("column");
        let root = database.units[rowset.units[0]].root.page;
        let page = crate::image::children(&image.page(root))[0];
        image.edit(page, |bytes| {
            let at = offset_of(bytes, 5) + usize::from(column.leaf_offset.unsigned_abs());
            bytes[at..at + 4].fill(0xFF);
        });
        let report = image.check();
        let found = report.findings.iter().filter(|finding| finding.check.msg == 2570).collect::<Vec<_>>();
        let text = found.first().map(|finding| finding.text(&report.names())).unwrap_or_default();
        let wanted = format!("Page (1:{page}), slot 5 in object ID {}, index ID {}", index.object_id, index.index_id);
        match found.len() == 1 && text.starts_with(&wanted) && text.contains("Column \"OrderDate\" value") {
            true => Ok(()),
            false => Err(format!("{found:?}").into()),
        }
    }));
    trials.push(Trial::test("columns: purity is checked only when asked for", move || {
        let mut image = subjects::image(NORTHWIND);
        fixed(&mut image, xtype::DATETIME, &[0xFF; 8], "datetime");
        for options in [
            Options { data_purity: Some(false), ..Options::default() },
            Options { physical_only: true, ..Options::default() },
        ] {
            agree(&image.check_with(&options), Vec::new())?;
        }
        image.edit(9, |bytes| {
            let status = u32::from_le_bytes([bytes[132], bytes[133], bytes[134], bytes[135]]) & !CLEAN_SHUTDOWN;
            bytes[132..136].copy_from_slice(&status.to_le_bytes());
        });
        let report = image.check();
        agree(&report, Vec::new())?;
        match report.not_verified.iter().any(|entry| entry.what == "message 2570") {
            true => Ok(()),
            false => Err("what the log may explain is not reported".into()),
        }
    }));
    trials
}

fn agree(report: &Report, mut expected: Vec<(u16, String)>) -> Result<(), Failed> {
    let mut found: Vec<(u16, String)> =
        report.findings.iter().map(|finding| (finding.check.msg, finding.text(&report.names()))).collect();
    found.sort();
    expected.sort();
    if found == expected { Ok(()) } else { Err(format!("found {found:#?}\nexpected {expected:#?}").into()) }
}

/// Overwrites a fixed column.
fn fixed(image: &mut Image, kind: u8, bytes: &[u8], name: &str) -> Vec<(u16, String)> {
    let spot = value(image, kind);
    image.edit(spot.page, |page| page[spot.value()..spot.value() + bytes.len()].copy_from_slice(bytes));
    vec![spot.purity(name)]
}

fn purity() -> Vec<(&'static str, &'static str, Damage)> {
    vec![
        ("datetime: a day has 25920000 ticks", NORTHWIND, |image| {
            fixed(image, xtype::DATETIME, &25_920_000u32.to_le_bytes(), "datetime")
        }),
        ("datetime: year 10000", ADVENTURE, |image| {
            let spot = value(image, xtype::DATETIME);
            image.edit(spot.page, |page| {
                page[spot.value() + 4..spot.value() + 8].copy_from_slice(&2_958_464i32.to_le_bytes());
            });
            vec![spot.purity("datetime")]
        }),
        ("date: year 10000", DATES, |image| fixed(image, xtype::DATE, &[0xDB, 0xB9, 0x37], "date")),
        ("datetime2: hour 24", DATETIME2, |image| fixed(image, xtype::DATETIME2, &[0xFF; 5], "datetime2")),
        ("real: not a number", NORTHWIND, |image| fixed(image, xtype::REAL, &f32::NAN.to_le_bytes(), "real")),
        ("float: denormal", FLOATS, |image| fixed(image, xtype::FLOAT, &1u64.to_le_bytes(), "float")),
        ("decimal: sign", ADVENTURE, |image| fixed(image, xtype::DECIMAL, &[2], "decimal")),
        ("decimal: minus zero", ADVENTURE, |image| fixed(image, xtype::DECIMAL, &[0, 0, 0, 0, 0], "decimal")),
        ("decimal: precision", ADVENTURE, |image| {
            fixed(image, xtype::DECIMAL, &[1, 0xFF, 0xFF, 0xFF, 0xFF], "decimal")
        }),
        ("nvarchar: odd length, twice", NORTHWIND, |image| {
            let [left, right] = neighbours(image, |[left, right], _| left > Some(2) && right > Some(2));
            image.edit(left.page, |bytes| {
                let at = left.end_at(bytes);
                put16(bytes, at, get16(bytes, at) - 1);
            });
            vec![left.purity("nvarchar"), right.purity("nvarchar")]
        }),
        ("ntext: odd length, off the row", NORTHWIND, |image| {
            let spots = spots(image, |column, _, stored| {
                column.info.xtype == xtype::NTEXT && matches!(stored, Stored::Complex(pointer) if pointer.len() == 16)
            });
            let root = |image: &Image, spot: &Spot| {
                let bytes = image.page(spot.page);
                let record = Record::data(&bytes[spot.at..]).expect("record");
                let Stored::Complex(pointer) = spot.column.stored(Level::Leaf, &record) else { panic!("a pointer") };
                RecordId::read(pointer, 8).expect("an address")
            };
            let is_small = |at: &RecordId| {
                let bytes = image.page(at.page.page);
                let fragment = Fragment::read(&bytes[offset_of(&bytes, at.slot)..]).expect("a fragment");
                fragment.node_type() == 0 && matches!(fragment.node(), Node::Root { size } if size > 10)
            };
            let found = spots.iter().map(|spot| (spot.clone(), root(image, spot)));
            let (spot, at) = found.into_iter().find(|(_, at)| is_small(at)).expect("a small root");
            image.edit(at.page.page, |bytes| {
                let length = offset_of(bytes, at.slot) + 14;
                put16(bytes, length, get16(bytes, length) - 1);
            });
            vec![spot.purity("ntext")]
        }),
        ("xml: signature", ADVENTURE, |image| {
            let spots = spots(image, |column, _, stored| {
                column.info.xtype == xtype::XML && matches!(stored, Stored::Plain(bytes) if !bytes.is_empty())
            });
            let spot = &spots[0];
            image.edit(spot.page, |bytes| {
                let record = Record::data(&bytes[spot.at..]).expect("record");
                let (value, _) = record.variable(spot.column.leaf_offset.unsigned_abs()).expect("value");
                let start = value.as_ptr().addr() - bytes.as_ptr().addr();
                bytes[start] = 0x3C;
            });
            vec![spot.purity("xml")]
        }),
    ]
}

/// Finds a row with an empty version tag and writes the address of an older version into the tag.
fn point_to_a_version(image: &mut Image) -> Spot {
    let tag_of = |image: &Image, spot: &Spot| {
        let bytes = image.page(spot.page);
        let record = Record::data(&bytes[spot.at..]).expect("record");
        record.version_tag().is_some_and(|tag| *tag == [0; 14]).then(|| spot.at + record.bytes().len() - 14)
    };
    let spots = spots(image, |_, _, _| true);
    let (spot, tag) = spots.iter().find_map(|spot| Some((spot.clone(), tag_of(image, spot)?))).expect("an empty tag");
    image.edit(spot.page, |bytes| bytes[tag..tag + 8].copy_from_slice(&[77, 0, 0, 0, 1, 0, 3, 0]));
    spot
}

fn rules() -> Vec<(&'static str, &'static str, Damage)> {
    vec![
        ("NULL in a NOT NULL column", NORTHWIND, |image| {
            let spots = spots(image, |column, table, stored| {
                column.leaf_offset > 0 && table.is_not_null() && matches!(stored, Stored::Plain(_))
            });
            let spot = &spots[spots.len() / 2];
            image.edit(spot.page, |bytes| spot.flip_null(bytes));
            let owner = spot.owner.replacen("object", "Object", 1);
            let text = format!(
                "Row error: {owner}, page ID (1:{}), row ID {}. Column '{}' was created NOT NULL, but is NULL in the row.",
                spot.page, spot.slot, spot.name
            );
            vec![(8970, text)]
        }),
        ("longer than declared", NORTHWIND, |image| {
            let longest = |column: &RowsetColumn| usize::from(column.info.length);
            let [left, _] = neighbours(
                image,
                |lengths, column| matches!(lengths, [Some(left), Some(right)] if longest(column) > 0 && left + right > longest(column) + 2),
            );
            let most = left.column.info.length;
            image.edit(left.page, |bytes| {
                let record = Record::data(&bytes[left.at..]).expect("record");
                let (value, _) = record.variable(left.column.leaf_offset.unsigned_abs()).expect("value");
                let longer = most + 2 - value.len() as u16;
                let at = left.end_at(bytes);
                put16(bytes, at, get16(bytes, at) + longer);
            });
            let test = format!("Valid length of column '{}'", left.name);
            vec![left.record_check(&test, (i64::from(most) + 2, most.into()))]
        }),
        ("an older version of no transaction", FLOATS, |image| {
            let spot = point_to_a_version(image);
            let owner = spot.owner.replacen("object", "Object", 1);
            let text = format!(
                "{owner}, page (1:{}), row {}: Row contains a NULL versioning timestamp, but its version chain pointer is \
                 not NULL. Version chain points to page (1:77), slot 3.",
                spot.page, spot.slot
            );
            vec![(5262, text)]
        }),
        ("more columns than the table", NORTHWIND, |image| {
            let spots = spots(image, |column, _, _| column.leaf_offset > 0);
            let count = |image: &Image, spot: &Spot| {
                let bytes = image.page(spot.page);
                Record::data(&bytes[spot.at..]).expect("record").column_count()
            };
            let spot = spots.iter().find(|spot| count(image, spot) % 8 != 0).expect("room in the bitmap");
            let columns = count(image, spot);
            image.edit(spot.page, |bytes| {
                let at = spot.at + usize::from(get16(bytes, spot.at + 2));
                put16(bytes, at, columns + 1);
            });
            vec![spot.record_check("Valid column count", (i64::from(columns) + 1, columns.into()))]
        }),
    ]
}

fn legal() -> Vec<(&'static str, &'static str, Damage)> {
    vec![
        ("the bytes in the place of a NULL mean nothing", ADVENTURE, |image| {
            let spots = spots(image, |column, _, stored| {
                column.info.xtype == xtype::DATETIME && column.leaf_offset > 0 && stored == Stored::Null
            });
            for spot in &spots {
                image.edit(spot.page, |page| page[spot.value()..spot.value() + 8].fill(0xFF));
            }
            Vec::new()
        }),
        ("what a version tag means since 2019 is not known", VERSIONS, |image| {
            point_to_a_version(image);
            Vec::new()
        }),
        ("unused bits of the bitmap mean nothing", NORTHWIND, |image| {
            let spots = spots(image, |column, _, _| column.leaf_offset > 0);
            for spot in &spots {
                image.edit(spot.page, |bytes| {
                    let record = Record::data(&bytes[spot.at..]).expect("record");
                    let columns = usize::from(record.column_count());
                    let last = spot.at + usize::from(record.fixed_end()) + 2 + columns.div_ceil(8) - 1;
                    if !columns.is_multiple_of(8) {
                        bytes[last] |= 0xFF << (columns % 8);
                    }
                });
            }
            Vec::new()
        }),
        ("a row of before a column was added", NORTHWIND, |image| {
            // The row lacks the column with the last null bit. That is legal even if the column is NOT NULL.
            let database = image.database();
            let last = |column: &RowsetColumn, table: &TableColumn| {
                let count = database.rowsets.iter().filter(|rowset| {
                    rowset.layout.columns.contains(column)
                        && rowset.layout.columns.iter().all(|other| other.leaf_null_bit <= column.leaf_null_bit)
                });
                column.leaf_offset > 0 && count.count() > 0 && column.leaf_null_bit % 8 != 1 && table.id > 0
            };
            let spots = spots(image, |column, table, _| last(column, table));
            let spot = &spots[0];
            image.edit(spot.page, |bytes| {
                let at = spot.at + usize::from(get16(bytes, spot.at + 2));
                put16(bytes, at, spot.column.leaf_null_bit - 1);
                bytes[spot.value()] = 0xFF;
            });
            Vec::new()
        }),
    ]
}
