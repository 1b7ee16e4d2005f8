//! Databases with known damage, and hostile bytes. The campaigns of `trials`, the tests of the other crates, and the
//! fuzz targets share this code.
//!
//! The writer of databases, `lab`, does not depend on the reader. Code that uses both is here. [`mutate`] damages
//! databases field by field and page by page, at the places that the reader's own catalog of fields names. [`hostile`]
//! has the entry points that must accept any bytes. [`in_use`] and [`log_layout`] are for databases that were in use,
//! and for their logs. [`tools`] decides what a test does when a program that it needs is missing.

pub mod hostile;
pub mod in_use;
pub mod log_layout;
pub mod mutate;
pub mod plain;
pub mod tools;
