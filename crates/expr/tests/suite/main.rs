//! Tests of expressions: their values, expressions from real catalogs, and texts that are meant to cause failures.

mod hostile;
mod inventory;
mod table;
mod values;
