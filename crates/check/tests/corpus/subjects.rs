//! The sound databases that trials damage, by name. Some are files of the corpus; the others are lab databases, which
//! are available in every clone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lab::description::{Column, DEFAULT_COLLATION, Filegroup, Filter, ForeignKey, Index, Table, Values};
use lab::{Description, PageVerify, SqlType, Version, orders, specimens};

use crate::image::Image;

/// The lab's sample schema, with checksums. It has clustered and nonclustered trees of several pages, and columns of
/// most types.
pub const ORDERS: &str = "lab orders 706";
/// The schema of [`ORDERS`] for SQL Server 2008 R2, with torn-page detection.
pub const TORN: &str = "lab orders 661";
/// The same schema for SQL Server 2019.
pub const ORDERS_2019: &str = "lab orders 904";
/// A table with an int column, a datetime column and two string columns, without an index.
pub const DATES: &str = "lab dates";
/// A database with everything that the lab can write.
pub const SPECIMEN: &str = "lab specimen 852";
/// Tables with the names and columns that trials look for in Microsoft's sample databases.
pub const SHOP: &str = "lab shop";
/// A table with two nullable variable columns, only one of which has an index.
pub const NOTES: &str = "lab notes";

/// A table with statistics on a number column and on a text column.
pub const STATISTICS: &str = "lab statistics";

/// The images read or written so far.
static IMAGES: Mutex<BTreeMap<String, Image>> = Mutex::new(BTreeMap::new());

/// Returns whether the database with this name is available. Lab databases are always available. The other databases
/// are available if the corpus is available.
pub fn is_there(name: &str) -> bool {
    name.starts_with("lab ") || crate::corpus().is_some()
}

/// A copy of the database with this name.
pub fn image(name: &str) -> Image {
    let Some(description) = description(name) else {
        let corpus = crate::corpus().expect("the corpus");
        return Image::load(&corpus.files.join(name));
    };
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    images.entry(name.to_owned()).or_insert_with(|| Image::write(&description)).clone()
}

/// The last part of a database's name, which is enough to identify it.
pub fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

fn description(name: &str) -> Option<Description> {
    let orders = |version, verify| Description { name: name.to_owned(), verify, ..orders::orders(version, 3, 9 << 20) };
    match name {
        ORDERS => Some(orders(Version::V706, PageVerify::Checksum)),
        TORN => Some(orders(Version::V661, PageVerify::Torn)),
        ORDERS_2019 => Some(orders(Version::V904, PageVerify::Checksum)),
        SPECIMEN => {
            let specimen = specimens::specimen(Version::V852, PageVerify::Checksum, 1);
            let tables = specimen.tables.into_iter().map(|table| Table { filegroup: 0, ..table }).collect();
            Some(of(name, Version::V852, tables))
        }
        DATES => Some(of(name, Version::V904, vec![dates()])),
        STATISTICS => Some(of(name, Version::V852, vec![people()])),
        NOTES => Some(of(name, Version::V852, vec![notes()])),
        SHOP => Some(of(name, Version::V706, vec![models(), products(), details(), suppliers(), employees()])),
        _ => None,
    }
}

/// A database with one data file.
fn of(name: &str, version: Version, tables: Vec<Table>) -> Description {
    Description {
        name: name.to_owned(),
        version,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed: 5,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables,
        least_pages: 0,
    }
}

fn serial(start: i64) -> Values {
    Values::Serial { start, step: 1 }
}

fn text(name: &str, characters: u16) -> Column {
    Column::new(name, SqlType::nvarchar(characters), Values::Text { least: 5, most: characters.into() })
}

fn people() -> Table {
    let number = |name, ty, values| Column { nullable: true, nulls: 10, ..Column::new(name, ty, values) };
    Table {
        name: "Person".to_owned(),
        columns: vec![
            Column::new("PersonID", SqlType::INT, serial(1)),
            number("Points", SqlType::INT, Values::Uniform { low: -500, high: 90_000 }),
            text("Name", 30),
            number("Visits", SqlType::BIGINT, serial(1)),
        ],
        clustered: Some(Index::on("PK_Person", &[0]).primary_key()),
        rows: 900,
        statistics: vec![1, 2],
        ..Table::default()
    }
}

fn models() -> Table {
    Table {
        name: "ProductModel".to_owned(),
        columns: vec![Column::new("ProductModelID", SqlType::INT, serial(1)), text("Name", 50)],
        clustered: Some(Index::on("PK_ProductModel", &[0]).primary_key()),
        rows: 40,
        ..Table::default()
    }
}

/// A table with the products 680 to 999.
fn products() -> Table {
    let price = Values::Uniform { low: 1, high: 90_000 };
    Table {
        name: "Product".to_owned(),
        columns: vec![
            Column::new("ProductID", SqlType::INT, serial(680)),
            text("Name", 50),
            Column::new("ListPrice", SqlType::INT, price),
            Column::new("ProductModelID", SqlType::INT, Values::Uniform { low: 1, high: 40 }),
            Column::new("Weight", SqlType::decimal(8, 2), Values::Uniform { low: 1, high: 9_000 }).nullable(20),
        ],
        clustered: Some(Index::on("PK_Product", &[0]).primary_key()),
        checks: vec![("CK_Product_ListPrice".to_owned(), Filter::AtLeast(2, 0))],
        foreign_keys: vec![ForeignKey {
            name: "FK_Product_ProductModel_ProductModelID".to_owned(),
            column: 3,
            table: "ProductModel".to_owned(),
            key: 0,
        }],
        rows: 320,
        ..Table::default()
    }
}

/// A table clustered by two int columns, with an index on another int column and an index on a uniqueidentifier column.
fn details() -> Table {
    Table {
        name: "SalesOrderDetail".to_owned(),
        columns: vec![
            Column::new("SalesOrderID", SqlType::INT, Values::Grouped { start: 71_774, per: 17 }),
            Column::new("SalesOrderDetailID", SqlType::INT, serial(110_562)),
            Column::new("ProductID", SqlType::INT, Values::Uniform { low: 700, high: 5_000 }),
            Column::new("rowguid", SqlType::UNIQUEIDENTIFIER, Values::Scattered { per: 1 }),
        ],
        clustered: Some(Index::on("PK_SalesOrderDetail", &[0, 1]).primary_key()),
        indexes: vec![
            Index::on("AK_SalesOrderDetail_rowguid", &[3]).unique(),
            Index::on("IX_SalesOrderDetail_ProductID", &[2]),
        ],
        rows: 542,
        ..Table::default()
    }
}

/// A table whose rows have twelve columns and fit on one page, for the tests of compression.
fn suppliers() -> Table {
    Table {
        name: "Suppliers".to_owned(),
        columns: vec![
            Column::new("SupplierID", SqlType::INT, serial(1)),
            text("CompanyName", 40),
            text("ContactName", 30).nullable(5),
            Column::new("ContactTitle", SqlType::nvarchar(30), Values::Grouped { start: 70_000, per: 7 }),
            text("Address", 60).nullable(5),
            text("City", 15).nullable(5),
            text("Region", 15).nullable(60),
            text("PostalCode", 10).nullable(5),
            Column::new("Country", SqlType::nvarchar(15), Values::Grouped { start: 90_000, per: 9 }),
            text("Phone", 24).nullable(5),
            text("Fax", 24).nullable(50),
            Column::new("HomePage", SqlType::NTEXT, Values::Text { least: 5, most: 60 }).nullable(80),
        ],
        clustered: Some(Index::on("PK_Suppliers", &[0]).primary_key()),
        rows: 20,
        ..Table::default()
    }
}

fn dates() -> Table {
    Table {
        name: "dates".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, serial(1)),
            Column::new("at", SqlType::DATETIME, Values::Uniform { low: 0, high: 20_000 }),
            text("one", 40),
            text("two", 40),
        ],
        rows: 300,
        ..Table::default()
    }
}

fn notes() -> Table {
    let words = |name: &str| Column::new(name, SqlType::varchar(40), Values::Text { least: 5, most: 40 }).nullable(10);
    Table {
        name: "notes".to_owned(),
        columns: vec![Column::new("id", SqlType::INT, serial(1)), words("indexed"), words("free"), words("last")],
        clustered: Some(Index::on("PK_notes", &[0]).primary_key()),
        indexes: vec![Index::on("ix_indexed", &[1])],
        rows: 300,
        ..Table::default()
    }
}

/// A table with the employees 1 to 9 and an index.
fn employees() -> Table {
    Table {
        name: "Employees".to_owned(),
        columns: vec![
            Column::new("EmployeeID", SqlType::INT, serial(1)),
            text("LastName", 20),
            Column::new("PostalCode", SqlType::nchar(10), Values::Scattered { per: 1 }),
        ],
        clustered: Some(Index::on("PK_Employees", &[0]).primary_key()),
        indexes: vec![Index::on("PostalCode", &[2])],
        rows: 9,
        ..Table::default()
    }
}
