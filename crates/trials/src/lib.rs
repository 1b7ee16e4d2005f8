//! Databases damaged with known truth, and bytes that must not hurt: what the campaigns of `trials`, the tests of the other
//! crates and the fuzz targets have in common.
//!
//! The writer of databases, `lab`, knows nothing of the reader. What uses both is here: [`mutate`] damages databases field by
//! field and page by page, at the places that the reader's own catalog of fields names, and [`hostile`] has the entry points
//! that must take any bytes; [`in_use`] and [`log_layout`] are for databases that were in use, and their logs. [`tools`] says what
//! a test does without a program that it needs.

pub mod hostile;
pub mod in_use;
pub mod log_layout;
pub mod mutate;
pub mod plain;
pub mod tools;
