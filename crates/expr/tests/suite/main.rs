//! Tests of expressions: their values, expressions of real catalogs, and hostile texts.

mod hostile;
mod inventory;
mod table;
mod values;
