//! The lab writes sound SQL Server databases of any size and structure from a description and a seed. It writes data
//! files with a full system catalog, which any correct reader of the format must accept as sound.
//!
//! The lab is written only from the facts of the format and shares no code with the reader, so that the lab and the
//! reader can each reveal misunderstandings in the other. It depends on no crate of the reader; a test proves this.

pub mod alphabet;
pub mod backup;
mod bits;
mod build;
mod bytes;
mod catalogue;
mod compress;
pub mod damage;
mod database;
pub mod description;
mod disk;
pub mod entries;
pub mod events;
pub mod every_type;
mod facts;
mod fixed;
mod heap;
pub mod histories;
mod ids;
pub mod in_use;
mod keys;
mod layout;
mod lob;
pub mod log;
pub mod many_tables;
mod off_row;
mod order;
pub mod orders;
mod page;
mod plain;
mod random;
mod record;
mod row;
mod rowset;
mod sample;
pub mod shapes;
pub mod snapshot;
mod space;
pub mod specimens;
mod staged;
mod statistics;
mod tree;
pub mod truth;
mod types;
mod values;
mod version;
pub mod workload;

pub use database::{MOST_FILE_PAGES, Written, write};
pub use description::Description;
pub use disk::LabError;
pub use ids::PageId;
pub use page::PageVerify;
pub use plain::hex_digits;
pub use sample::Sample;
pub use types::SqlType;
pub use version::Version;

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_of_the_workspace_is_a_dependency() {
        let manifest = include_str!("../Cargo.toml");
        let (_, dependencies) = manifest.split_once("[dependencies]").expect("dependencies");
        let names: Vec<&str> =
            dependencies.lines().filter_map(|line| line.split_once('.')).map(|(name, _)| name).collect();
        assert_eq!(names, ["tempfile", "thiserror"], "no crate that reads databases may be a dependency");
    }
}
