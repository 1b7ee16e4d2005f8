//! The rows of a lab database as plain text. A reader must find these rows.
//!
//! The text of a value comes from the numbers, dates and letters from which the value was made, not from its bytes:
//!
//! | type | text |
//! |---|---|
//! | bit, integers | decimal digits |
//! | decimal, money | decimal digits; the number of digits after the point is the scale |
//! | real, float | the shortest digits that identify the number, in scientific notation: `-1.5e-7` |
//! | date | `2005-01-31` |
//! | time | `23:59:59`, with the fractional digits of the type |
//! | datetime, smalldatetime, datetime2 | date, blank, time; a datetime has three fractional digits: .000, .003, .007 |
//! | datetimeoffset | local date, blank, local time, blank, `+01:00` |
//! | uniqueidentifier | as SQL Server prints it, in capitals |
//! | strings | the text itself, including the padding blanks of char and nchar |
//! | binary, image, rowversion | `0x` and hexadecimal digits in capitals |
//! | xml | the document without white space between its elements |
//! | sql_variant | the text of its base type |
//! | hierarchyid | its path: `/1/2.5/` |
//! | geometry, geography | the WKB of the shape, as bytes; in a geography, longitude comes before latitude |

use crate::build::table_seed;
use crate::description::{Description, Table};
use crate::values::Rows;

/// The rows of a table.
#[derive(Clone, Debug)]
pub struct TableTruth {
    /// Name of the table. The schema is dbo.
    pub table: String,
    /// Names of the stored columns, in the order of the column IDs.
    pub columns: Vec<String>,
    /// The rows in the order in which they were generated, which may differ from the order in the table. A value is
    /// `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// The rows of each table, without ghosts.
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
