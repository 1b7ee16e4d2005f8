//! Rows that the ordinary reading of a table leaves out, and what can be said of them.

mod freed;
pub(crate) mod index_columns;
pub(crate) mod leaf;
mod strays;
pub(crate) mod tree;

pub use strays::{PageSet, Stray, Strays, strays};
