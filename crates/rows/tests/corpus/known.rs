//! Checks values of Microsoft's sample databases against their published install scripts.

use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use rows::{Reader, Scan, ScanOptions, Table, Value};

/// A known row: the file and the table, the column and text value that identify the row, and columns of the row with
/// their values as text.
type Known = (&'static str, &'static str, (&'static str, &'static str), &'static [(&'static str, &'static str)]);

const KNOWN: &[Known] = &[
    (
        "tschareck__LinqWorkshop/NORTHWND.zip.d/NORTHWND.MDF",
        "dbo.Orders",
        ("OrderID", "10248"),
        &[
            ("CustomerID", "VINET"),
            ("OrderDate", "1996-07-04 00:00:00"),
            ("Freight", "32.3800"),
            ("ShipRegion", "NULL"),
        ],
    ),
    (
        "tschareck__LinqWorkshop/NORTHWND.zip.d/NORTHWND.MDF",
        "dbo.Categories",
        ("CategoryID", "1"),
        &[
            ("CategoryName", "Beverages"),
            ("Description", "Soft drinks, coffees, teas, beers, and ales"),
            ("Picture", "10746 bytes"),
        ],
    ),
    (
        "tschareck__LinqWorkshop/NORTHWND.zip.d/NORTHWND.MDF",
        "dbo.Employees",
        ("EmployeeID", "2"),
        &[
            ("LastName", "Fuller"),
            ("BirthDate", "1952-02-19 00:00:00"),
            ("ReportsTo", "NULL"),
            ("Photo", "21626 bytes"),
        ],
    ),
    (
        "tschareck__LinqWorkshop/NORTHWND.zip.d/NORTHWND.MDF",
        "dbo.Order Details",
        ("OrderID", "10250"),
        &[("ProductID", "41"), ("UnitPrice", "7.7000"), ("Quantity", "10"), ("Discount", "0")],
    ),
    (
        "EugeneSu0515__t4CodeTemplate/",
        "SalesLT.Product",
        ("ProductID", "680"),
        &[
            ("Name", "HL Road Frame - Black, 58"),
            ("StandardCost", "1059.3100"),
            ("ListPrice", "1431.5000"),
            ("Weight", "1016.04"),
            ("SellStartDate", "1998-06-01 00:00:00"),
            ("rowguid", "43DD68D6-14A4-461F-9069-55309D90EA7E"),
        ],
    ),
    (
        "EugeneSu0515__t4CodeTemplate/",
        "SalesLT.ProductModel",
        ("ProductModelID", "19"),
        &[(
            "CatalogDescription",
            "<?xml-stylesheet href=\"ProductDescription.xsl\" type=\"text/xsl\"?><p1:ProductDescription xmlns:p1=\"http://schemas.microsof",
        )],
    ),
];

/// The number of characters of a text that the test compares.
const SHOWN: usize = 120;

pub(crate) fn trials(files: &Path) -> Vec<Trial> {
    let trial = |known: &'static Known| {
        let files = files.to_owned();
        Trial::test(format!("known values: {} of {}", known.1, known.0), move || matches(&files, known))
    };
    KNOWN.iter().map(trial).collect()
}

/// Returns `path` if it is a file, otherwise the first data file in the folder or its subfolders.
fn file(path: PathBuf) -> Option<PathBuf> {
    if path.is_file() {
        return source::is_data_file(&path).then_some(path);
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.into_iter().find_map(file)
}

fn matches(files: &Path, (path, name, (key, wanted), values): &Known) -> Result<(), Failed> {
    let path = file(files.join(path)).ok_or("no such file")?;
    let source = source::open(&[path], &[], false).map_err(|error| error.to_string())?;
    let database = catalog::load(source.as_ref());
    let tables = Table::list(&database).into_iter().filter_map(|id| Table::of(&database, id).ok());
    let table = tables.into_iter().find(|table| table.full_name() == *name).ok_or("no such table")?;
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let key = place(key).ok_or("no key column")?;
    let options = ScanOptions::default();
    let mut scan = Scan::new(source.as_ref(), &database, &table, options);
    let mut reader = Reader::new(source.as_ref(), &database, &table, options);
    let mut found = None;
    while let Some(range) = scan.next_range() {
        let read = reader.read(&range, &mut |row| {
            if found.is_none() && text(&row.values[key]) == *wanted {
                found = Some(
                    values.iter().map(|(name, _)| place(name).map(|at| text(&row.values[at]))).collect::<Vec<_>>(),
                );
            }
            Ok(())
        });
        read.map_err(|error| error.to_string())?;
    }
    let expected: Vec<_> = values.iter().map(|(_, value)| Some((*value).to_owned())).collect();
    if found.as_ref() == Some(&expected) { Ok(()) } else { Err(format!("{found:?}, not {expected:?}").into()) }
}

fn text(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Decimal { unscaled, scale } => {
            let digits = format!("{unscaled:0width$}", width = usize::from(*scale) + 1);
            let (whole, fraction) = digits.split_at(digits.len() - usize::from(*scale));
            format!("{whole}.{fraction}")
        }
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.as_str().chars().take(SHOWN).collect(),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::Guid(bytes) => format::types::guid_text(*bytes),
        Value::DateTime(moment) => {
            let ticks = (moment.time.ticks / 10_000_000 * 300) as u32;
            let days = moment.day as i32 - 693_595;
            format::types::datetime_text(ticks, days).unwrap_or_default().trim_end_matches(".000").to_owned()
        }
        other => format!("{other:?}"),
    }
}
