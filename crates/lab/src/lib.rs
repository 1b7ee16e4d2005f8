//! The lab writes sound SQL Server databases of any size and shape from a description and a seed: data files that
//! any reader of the format must find in order, with a full system catalogue.
//!
//! It is written from the facts of the format alone and shares no code with the reader: what one of them
//! misunderstands, the other can show.
//!
//! [`mutate`] damages databases field by field and page by page, and [`hostile`] has the entry points of the fuzz targets;
//! these two do use the reader, as they work on what it reads.

pub mod backup;
mod bits;
mod build;
mod catalogue;
mod compress;
pub mod damage;
mod database;
pub mod description;
mod disk;
pub mod entries;
mod facts;
mod fixed;
mod heap;
pub mod hostile;
mod ids;
mod keys;
mod layout;
mod lob;
pub mod many_tables;
pub mod mutate;
mod off_row;
mod order;
pub mod orders;
mod page;
mod random;
mod record;
mod row;
mod rowset;
pub mod shapes;
mod space;
pub mod specimens;
mod staged;
mod tree;
mod types;
mod values;
mod version;

pub use database::{Written, write};
pub use description::Description;
pub use disk::LabError;
pub use ids::PageId;
pub use page::PageVerify;
pub use types::SqlType;
pub use version::Version;
