//! Tests of table rows and index rows that do not match. A table row without an index row must give messages 8951 and
//! 8955, and an index row without a table row must give 8952 and 8956, with the values of the row. There must be no
//! other message. Rows that were lost with a damaged page must give none of these messages.

mod details;

use findings::{Options, Report};
use format::RecordId;
use libtest_mimic::{Failed, Trial};

use crate::damage::ADVENTURE_WORKS;
use crate::image::{Image, get16, put16, slot_at};
use crate::rows::Rows;
use crate::subjects;

use details::details;

/// A database with filtered indexes.
const FILTERED: &str = "AhmedHamada87__Point-Of-Sales-MVC-ASP.NET-Core/Database.rar.d/Ecommerce.mdf";
/// A database with indexes on heaps.
const HEAPS: &str = "itsligo__sampledbs/pubs.mdf";

/// A database with a table that has text pages and indexes.
const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";
/// A database with an index that has an included column; the index is on a system table.
const INCLUDED: &str = "inat97__CSDLNC/NORTHWND.MDF";

/// A table row without a matching index row, or an index row without a matching table row.
struct Lone {
    is_of_table: bool,
    at: RecordId,
    identity: String,
    values: String,
}

/// A table and one of its indexes.
struct Subject {
    table: Rows,
    index: Rows,
}

impl Subject {
    fn new(image: &Image, table: &str, index: &str) -> Self {
        Self { table: Rows::of_table(image, table), index: Rows::of_index(image, table, index) }
    }

    /// The order details with their index on the int column ProductID. The table is clustered by two other int columns.
    fn details(image: &Image) -> Self {
        Self::of_details(image, "IX_SalesOrderDetail_ProductID")
    }

    /// The order details with one of their indexes.
    fn of_details(image: &Image, index: &str) -> Self {
        let database = image.database();
        let table = database.objects.values().find(|object| object.name == "SalesOrderDetail").expect("table").id;
        Self::new(image, &database.object_name(table), index)
    }

    /// The addresses with their index on text columns, one of which is nullable.
    fn addresses(image: &Image) -> Self {
        let index = "IX_Address_AddressLine1_AddressLine2_City_StateProvince_PostalCode_CountryRegion";
        Self::new(image, "SalesLT.Address", index)
    }

    /// The messages for rows without a matching row.
    fn messages(&self, rows: &[Lone]) -> Vec<String> {
        let (table, index) = (&self.table.names.0, &self.index.names.1);
        let place = format!("Table error: table '{table}' (ID {})", self.index.object_id);
        let id = self.index.index_id;
        rows.iter()
            .flat_map(|row| {
                let Lone { at, identity, values, .. } = row;
                match row.is_of_table {
                    true => [
                        format!(
                            "8951 {place}. Data row does not have a matching index row in the index '{index}' (ID {id}). \
                             Possible missing or invalid keys for the index row matching:"
                        ),
                        format!("8955 Data row {at} identified by ({identity}) with index values '{values}'."),
                    ],
                    false => [
                        format!(
                            "8952 {place}. Index row in index '{index}' (ID {id}) does not match any data row. Possible \
                             extra or invalid keys for:"
                        ),
                        format!(
                            "8956 Index row {at} with values ({values}) pointing to the data row identified by ({identity})."
                        ),
                    ],
                }
            })
            .collect()
    }

    /// A row of the order details, in the table or in the index.
    fn detail(&self, image: &Image, is_of_table: bool, at: RecordId) -> Lone {
        let [product, order, detail] = match is_of_table {
            true => ["ProductID", "SalesOrderID", "SalesOrderDetailID"]
                .map(|name| self.table.int(image, at, self.table.named(name))),
            false => [1, 2, 3].map(|id| self.index.int(image, at, self.index.column(id))),
        };
        let identity = format!("SalesOrderID = {order} and SalesOrderDetailID = {detail}");
        Lone { is_of_table, at, values: format!("ProductID = {product} and {identity}"), identity }
    }

    /// The index row that belongs to a row of the order details.
    fn entry_of(&self, image: &Image, at: RecordId) -> RecordId {
        let detail = self.table.int(image, at, self.table.named("SalesOrderDetailID"));
        let column = self.index.column(3);
        *self.index.at.iter().find(|at| self.index.int(image, **at, column) == detail).expect("index row")
    }
}

/// Damages the image and returns the expected messages.
type Damage = fn(&mut Image) -> Vec<String>;

/// Damage to tables other than the order details.
fn kinds() -> Vec<(&'static str, Damage)> {
    [values(), filtered_and_heaps()].concat()
}

/// Damage to values that an index repeats, computes or includes.
fn values() -> Vec<(&'static str, Damage)> {
    vec![
        ("NULL of a table row made an empty text", |image| {
            let subject = Subject::addresses(image);
            let (at, entry) = null_address(image, &subject);
            let rows = null_rows(image, &subject, at, entry, ["''", "NULL"]);
            subject.table.flip_null(image, at, subject.table.named("AddressLine2"));
            subject.messages(&rows)
        }),
        ("NULL of an index row made an empty text", |image| {
            let subject = Subject::addresses(image);
            let (at, entry) = null_address(image, &subject);
            let rows = null_rows(image, &subject, at, entry, ["NULL", "''"]);
            subject.index.flip_null(image, entry, subject.index.column(2));
            subject.messages(&rows)
        }),
        ("value of an index on a computed column changed", |image| {
            let subject = Subject::new(image, "SalesLT.SalesOrderHeader", "AK_SalesOrderHeader_SalesOrderNumber");
            let entry = *subject.index.at.last().expect("a row");
            let number = subject.index.text(image, entry, subject.index.column(1));
            let id = subject.index.int(image, entry, subject.index.column(2));
            assert_eq!(number, format!("SO{id}"));
            let column = subject.table.named("SalesOrderID");
            let row = *subject.table.at.iter().find(|at| subject.table.int(image, **at, column) == id).expect("row");
            let wrong: Vec<u8> = format!("SO{}", id + 3).encode_utf16().flat_map(u16::to_le_bytes).collect();
            subject.index.write(image, entry, subject.index.column(1), &wrong);
            let identity = format!("SalesOrderID = {id}");
            let lone = |is_of_table, at, number| Lone {
                is_of_table,
                at,
                identity: identity.clone(),
                values: format!("SalesOrderNumber = 'SO{number}' and {identity}"),
            };
            subject.messages(&[lone(true, row, id), lone(false, entry, id + 3)])
        }),
        ("included value of an index row changed", |image| {
            *image = subjects::image(INCLUDED);
            let index = Rows::of_index(image, "sys.sysallocunits", "nc");
            let subject = Subject { table: Rows::of_table(image, "sys.sysallocunits"), index };
            let (entry, fragment) = (subject.index.at[7], subject.index.column(4));
            let columns = &image.database().index_columns[&(7, subject.index.index_id)];
            assert!(columns.iter().any(|column| column.included && column.position == fragment.id));
            let number = |id| {
                let bytes = subject.index.value(image, entry, subject.index.column(id)).expect("value");
                bytes.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte))
            };
            let [owner, kind, unit, old] = [1, 2, 3, 4].map(number);
            let holds = |at: &&RecordId| {
                let bytes = subject.table.value(image, **at, subject.table.named("auid")).expect("value");
                bytes == unit.to_le_bytes()
            };
            let row = *subject.table.at.iter().find(holds).expect("its row");
            let lone = |is_of_table, at, fragment| Lone {
                is_of_table,
                at,
                identity: format!("auid = {unit}"),
                values: format!("ownerid = {owner} and type = {kind} and auid = {unit} and dbfragid = {fragment}"),
            };
            subject.index.write(image, entry, fragment, &77i32.to_le_bytes());
            subject.messages(&[lone(true, row, old), lone(false, entry, 77)])
        }),
    ]
}

/// Damage to filtered indexes, and to an index on a heap.
fn filtered_and_heaps() -> Vec<(&'static str, Damage)> {
    vec![
        ("row of a filtered index lost", |image| {
            *image = subjects::image(FILTERED);
            let subject = Subject::new(image, "AspNetUsers", "UserNameIndex");
            let entry = subject.index.at[1];
            let (at, row) = user(image, &subject, true, entry);
            subject.index.remove(image, entry);
            subject.messages(&[Lone { at, ..row }])
        }),
        ("row of a filtered index whose filter leaves it out", |image| {
            *image = subjects::image(FILTERED);
            let subject = Subject::new(image, "AspNetUsers", "UserNameIndex");
            let entry = subject.index.at[1];
            let (at, row) = user(image, &subject, false, entry);
            subject.table.set_null(image, at, subject.table.named("NormalizedUserName"));
            subject.messages(&[Lone { at: entry, ..row }])
        }),
        ("row of an index whose filter leaves it out changed otherwise", |image| {
            *image = subjects::image(FILTERED);
            // The filter excludes the changed row, so it is right that the index has no row for it.
            let subject = Subject::new(image, "AspNetUsers", "UserNameIndex");
            let entry = subject.index.at[1];
            let (at, _) = user(image, &subject, false, entry);
            subject.table.set_null(image, at, subject.table.named("NormalizedUserName"));
            subject.index.remove(image, entry);
            Vec::new()
        }),
        ("row of a heap pointed to from a wrong place", |image| {
            *image = subjects::image(HEAPS);
            let subject = Subject::new(image, "roysched", "titleidind");
            let entry = *subject.index.at.last().expect("a row");
            let title = subject.index.value(image, entry, subject.index.column(1)).expect("value");
            let title = String::from_utf8_lossy(&title).into_owned();
            let place = subject.index.value(image, entry, subject.index.column(2)).expect("value");
            let row = RecordId::read(&place, 0).expect("a place");
            assert!(subject.table.at.contains(&row));
            let wrong = RecordId { slot: row.slot + 256, ..row };
            let bytes = [&place[..6], &wrong.slot.to_le_bytes()].concat();
            subject.index.write(image, entry, subject.index.column(2), &bytes);
            let lone = |is_of_table, at, place: RecordId| Lone {
                is_of_table,
                at,
                identity: format!("HEAP RID = {place}"),
                values: format!("title_id = '{title}' and HEAP RID = {place}"),
            };
            subject.messages(&[lone(true, row, row), lone(false, entry, wrong)])
        }),
    ]
}

/// Two rows of the details' index whose locators can be swapped so that the keys stay in order.
fn exchangeable(image: &Image, subject: &Subject) -> (RecordId, RecordId) {
    let key = |at: RecordId| [1, 2, 3].map(|id| subject.index.int(image, at, subject.index.column(id)));
    let ascends = |keys: &[[i32; 3]]| keys.is_sorted();
    let rows = subject.index.at.windows(4).find(|rows| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| key(rows[at]));
        let same_page = rows.iter().all(|row| row.page == rows[0].page);
        same_page && b[0] != c[0] && b[1] != c[1] && ascends(&[a, [b[0], c[1], c[2]], [c[0], b[1], b[2]], d])
    });
    let rows = rows.expect("two such rows");
    (rows[1], rows[2])
}

/// An address whose second line is NULL, and its index row.
fn null_address(image: &Image, subject: &Subject) -> (RecordId, RecordId) {
    let (id, line) = (subject.table.named("AddressID"), subject.table.named("AddressLine2"));
    let at = subject.table.at[20..].iter().find(|at| subject.table.value(image, **at, line).is_none()).expect("a NULL");
    let wanted = subject.table.int(image, *at, id);
    let locator = subject.index.column(7);
    let entry = subject.index.at.iter().find(|at| subject.index.int(image, **at, locator) == wanted);
    (*at, *entry.expect("index row"))
}

/// Describes an address row and its index row as two rows without a matching row. `second_lines` contains the text of
/// AddressLine2 in the table row, and then its text in the index row.
fn null_rows(image: &Image, subject: &Subject, at: RecordId, entry: RecordId, second_lines: [&str; 2]) -> [Lone; 2] {
    let text = |name| subject.table.text(image, at, subject.table.named(name));
    let identity = format!("AddressID = {}", subject.table.int(image, at, subject.table.named("AddressID")));
    let lone = |is_of_table, at, second_line| Lone {
        is_of_table,
        at,
        identity: identity.clone(),
        values: format!(
            "AddressLine1 = '{}' and AddressLine2 = {second_line} and City = '{}' and StateProvince = '{}' and PostalCode = \
             '{}' and CountryRegion = '{}' and {identity}",
            text("AddressLine1"),
            text("City"),
            text("StateProvince"),
            text("PostalCode"),
            text("CountryRegion")
        ),
    };
    [lone(true, at, second_lines[0]), lone(false, entry, second_lines[1])]
}

/// Finds the table row of the user whose index row is `entry`. Returns the address of the table row, and a description
/// of the table row (with `is_of_table`) or of the index row as a row without a matching row.
fn user(image: &Image, subject: &Subject, is_of_table: bool, entry: RecordId) -> (RecordId, Lone) {
    let id = subject.index.text(image, entry, subject.index.column(2));
    let column = subject.table.named("Id");
    let at = *subject.table.at.iter().find(|at| subject.table.text(image, **at, column) == id).expect("row");
    let identity = format!("Id = '{id}'");
    let name = subject.index.text(image, entry, subject.index.column(1));
    (at, Lone { is_of_table, at, values: format!("NormalizedUserName = '{name}' and {identity}"), identity })
}

/// Moves the name of an employee to the given LOB page of the table. Returns the row and the offset of the name on that
/// page. For the database to be valid, the catalog must declare that these names may be off row.
fn move_off_row(image: &mut Image, subject: &Subject, page: u32) -> (RecordId, usize) {
    let name = subject.table.named("LastName").clone();
    let at = subject.table.at[3];
    let value = subject.table.value(image, at, &name).expect("value");
    let id = 0x7000_0001_0000_u64.to_le_bytes();
    let mut fragment = vec![8, 0, 14 + value.len() as u8, 0];
    fragment.extend(id);
    fragment.extend([3, 0]);
    fragment.extend(&value);
    let mut place = (0, 0);
    image.edit(page, |bytes| {
        let (slots, free, end) = (get16(bytes, 22), get16(bytes, 28), get16(bytes, 30));
        bytes[usize::from(end)..][..fragment.len()].copy_from_slice(&fragment);
        put16(bytes, slot_at(slots), end);
        put16(bytes, 22, slots + 1);
        put16(bytes, 28, free - fragment.len() as u16 - 2);
        put16(bytes, 30, end + fragment.len() as u16);
        place = (slots, usize::from(end) + 14);
    });
    let mut pointer = vec![4, 0, 0, 0, 1, 0];
    pointer.extend(&id[..6]);
    pointer.extend((value.len() as u32).to_le_bytes());
    pointer.extend(page.to_le_bytes());
    pointer.extend([1, 0]);
    pointer.extend(place.0.to_le_bytes());
    subject.table.replace(image, at, &name, &pointer, true);
    (at, place.1)
}

/// Tests a value that the table stores off row and the index stores in the row.
fn off_row() -> Result<(), Failed> {
    let image = subjects::image(NORTHWIND);
    let subject = Subject::new(&image, "Employees", "LastName");
    let names_are_large = |database: &mut catalog::Database| {
        let product =
            |rowset: &&mut catalog::Rowset| rowset.object_id == subject.table.object_id && rowset.index_id == 1;
        let rowset = database.rowsets.iter_mut().find(product).expect("rowset");
        let name = subject.table.named("LastName");
        rowset
            .layout
            .columns
            .iter_mut()
            .filter(|column| column.id == name.id)
            .for_each(|column| column.info.length = 0);
    };
    let database = image.database();
    let of_employees = |unit: &&catalog::AllocUnit| {
        database.rowset_of(unit).is_some_and(|rowset| rowset.object_id == subject.table.object_id)
    };
    let unit =
        database.units.iter().filter(of_employees).find(|unit| unit.kind == catalog::UnitKind::Lob).expect("unit");
    let pages = (0..(image.bytes.len() / 8192) as u32).filter(|page| {
        let bytes = image.page(*page);
        let header = *format::Page::new(&bytes).header();
        let room = slot_at(get16(&bytes, 22)).saturating_sub(get16(&bytes, 30).into());
        header.page_type == 3 && header.alloc_unit() == unit.id && header.page_id().page == *page && room >= 40
    });
    // The additional fragment changes the free space of its page. On most pages, the PFS byte is then wrong, so the
    // test searches for a page whose PFS byte is still right.
    for page in pages {
        let mut moved = image.clone();
        let (at, place) = move_off_row(&mut moved, &subject, page);
        let report = moved.check_as(names_are_large);
        if report.findings.iter().any(|finding| finding.check.msg == 8914) {
            continue;
        }
        agree(&report, Vec::new())?;
        let told = report.not_verified.iter().find(|entry| entry.what == "index rows against table rows");
        if told.is_some() {
            return Err(format!("{told:?}").into());
        }
        let name = subject.table.text(&image, at, subject.table.named("LastName"));
        let id = subject.table.int(&image, at, subject.table.named("EmployeeID"));
        let column = subject.index.column(2);
        let entry = *subject.index.at.iter().find(|at| subject.index.int(&image, **at, column) == id).expect("entry");
        moved.edit(page, |bytes| bytes[place] = b'~');
        let lone = |is_of_table, at, name: &str| Lone {
            is_of_table,
            at,
            identity: format!("EmployeeID = {id}"),
            values: format!("LastName = '{name}' and EmployeeID = {id}"),
        };
        let rows = [lone(true, at, &format!("~{}", &name[1..])), lone(false, entry, &name)];
        agree(&moved.check_as(names_are_large), subject.messages(&rows))?;
        // If the fragment has the ID of another value, this is reported only by the checks of off-row values.
        moved.edit(page, |bytes| bytes[place - 8] ^= 1);
        let report = moved.check_as(names_are_large);
        let is_index = |finding: &findings::Finding| (8951..=8956).contains(&finding.check.msg);
        let told = report.not_verified.iter().any(|entry| entry.scope.ends_with("LastName"));
        return match told && !report.findings.is_empty() && !report.findings.iter().any(|finding| is_index(&finding)) {
            true => Ok(()),
            false => Err(format!("{:?}", report.findings).into()),
        };
    }
    Err("no page with room".into())
}

/// One test per kind of damage.
pub fn trials() -> Vec<Trial> {
    let trial = |(name, damage): (&str, Damage), subject: &'static str| {
        Trial::test(format!("index rows: {name} ({})", subjects::short(subject)), move || {
            let mut image = subjects::image(subject);
            let expected = damage(&mut image);
            agree(&image.check(), expected)
        })
    };
    let mut trials: Vec<Trial> = details().into_iter().map(|kind| trial(kind, subjects::SHOP)).collect();
    if !subjects::is_there(ADVENTURE_WORKS) {
        return trials;
    }
    trials.extend(details().into_iter().chain(kinds()).map(|kind| trial(kind, ADVENTURE_WORKS)));
    trials.push(Trial::test("index rows: a value off the row equals one in the row", off_row));
    trials.push(Trial::test("index rows: rows on a damaged page are not missed in its indexes", move || {
        let mut image = subjects::image(ADVENTURE_WORKS);
        let tree = image.tree(true);
        image.edit_unsealed(tree.leaves[4], |bytes| bytes.fill(0));
        let report = image.check_with(&Options::default());
        let told = report.not_verified.iter().any(|entry| entry.reason.contains("is damaged"));
        let silent = report.findings.iter().all(|finding| !(8951..=8956).contains(&finding.check.msg));
        if told && silent { Ok(()) } else { Err(format!("{:?}", report.findings).into()) }
    }));
    trials
}

/// Asserts that the report has exactly the expected messages.
fn agree(report: &Report, mut expected: Vec<String>) -> Result<(), Failed> {
    let text = |finding: &findings::Finding| format!("{} {}", finding.check.msg, finding.text(&report.names()));
    let mut found: Vec<String> = report.findings.iter().map(|finding| text(&finding)).collect();
    found.sort();
    expected.sort();
    if found == expected {
        return Ok(());
    }
    let only = |these: &[String], those: &[String]| {
        these.iter().filter(|text| !those.contains(text)).take(6).cloned().collect::<Vec<_>>().join("\n")
    };
    let (surplus, missing) = (only(&found, &expected), only(&expected, &found));
    Err(format!("{} of {} messages\nsurplus\n{surplus}\nmissing\n{missing}", found.len(), expected.len()).into())
}
