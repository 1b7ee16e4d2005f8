//! Files of rows: CSV, JSON lines, T-SQL and Parquet.

// Indexing is used only where an earlier test proved the place; each such line says which.
#![warn(clippy::indexing_slicing)]
