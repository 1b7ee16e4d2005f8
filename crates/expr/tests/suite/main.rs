//! Expressions: their values, those of real catalogs, and hostile texts.

mod hostile;
mod inventory;
mod table;
mod values;
