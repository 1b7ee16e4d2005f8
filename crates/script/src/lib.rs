//! T-SQL that defines the objects of a database, from its catalog.

// Indexing is used only where an earlier test proved the place; each such line says which.
#![warn(clippy::indexing_slicing)]
