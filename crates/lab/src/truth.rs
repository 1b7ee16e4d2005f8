//! The rows of a lab database as plain text, which a reader must find.
//!
//! The text comes from the numbers, dates and letters from which a value was made, not from its bytes:
//!
//! | type | text |
//! |---|---|
//! | bit, integers | decimal digits |
//! | decimal, money | digits with as many after the point as the scale says |
//! | real, float | the shortest digits that mean the same number, in scientific notation: `-1.5e-7` |
//! | date | `2005-01-31` |
//! | time | `23:59:59` with as many digits after the second as the type has |
//! | datetime, smalldatetime, datetime2 | date, blank, time; a datetime has three digits: .000, .003, .007 |
//! | datetimeoffset | local date, blank, local time, blank, `+01:00` |
//! | uniqueidentifier | as SQL Server prints it, in capitals |
//! | strings | the text itself, with the blanks of char and nchar |
//! | binary, image, rowversion | `0x` and hexadecimal capitals |
//! | xml | the document without white space between its elements |
//! | sql_variant | as its base type |
//! | hierarchyid | its path: `/1/2.5/` |
//! | geometry, geography | WKB of the shape, as bytes; a position on the globe is longitude, latitude |

use crate::build::table_seed;
use crate::description::{Description, Table};
use crate::values::Rows;

/// The rows of a table.
#[derive(Clone, Debug)]
pub struct TableTruth {
    /// Its name, in schema dbo.
    pub table: String,
    /// Its stored columns, in the order of their ids.
    pub columns: Vec<String>,
    /// Its rows in the order in which they were made, which is not the order of the table; `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// The rows of each table, without the deleted ones.
pub fn truth(description: &Description) -> Vec<TableTruth> {
    description.tables.iter().enumerate().map(|(number, table)| of_table(description, number, table)).collect()
}

fn of_table(description: &Description, number: usize, table: &Table) -> TableTruth {
    let rows = Rows::new(table, table_seed(description, number));
    let is_ghost = |n: u64| table.ghost_every > 0 && n % table.ghost_every == table.ghost_every - 1;
    let stored: Vec<bool> = table.columns.iter().map(|column| column.is_stored() && !column.is_dropped()).collect();
    let names = table.columns.iter().zip(&stored).filter(|(_, stored)| **stored).map(|(column, _)| column.name.clone());
    let row = |n: u64| {
        let values = rows.truth(n).into_iter().zip(&stored);
        values.filter(|(_, stored)| **stored).map(|(value, _)| value).collect()
    };
    TableTruth {
        table: table.name.clone(),
        columns: names.collect(),
        rows: (0..rows.count()).filter(|&n| !is_ghost(n)).map(row).collect(),
    }
}
