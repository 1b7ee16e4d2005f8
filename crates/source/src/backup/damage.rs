//! Damage of a backup's container: everything around the pages.

use std::path::PathBuf;

use super::blocks::Tag;

/// A place of a backup that is not as it was written.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Damage {
    /// The backup file.
    pub path: PathBuf,
    /// Byte in it; for a compressed backup and damage found behind the decompression, byte of the decompressed tape.
    pub at: u64,
    /// Which.
    pub kind: DamageKind,
}

/// What is wrong at a place of a backup.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DamageKind {
    /// The checksum of a descriptor block's header.
    BlockChecksum {
        /// The block's type.
        tag: Tag,
    },
    /// A block of no known type, though its checksum is right.
    UnknownBlock {
        /// Its type.
        tag: Tag,
    },
    /// The checksum of a stream's header.
    StreamChecksum {
        /// The stream's type.
        tag: Tag,
    },
    /// The checksum over the data of a stream (WITH CHECKSUM).
    DataChecksum {
        /// As stored.
        stored: u32,
        /// As the bytes give it.
        computed: u32,
    },
    /// The checksum of a record of a compressed backup.
    RecordChecksum {
        /// As stored.
        stored: u32,
        /// As the bytes give it.
        computed: u32,
    },
    /// No record of the compressed backup where one must be.
    RecordLost,
    /// A record of the compressed backup that does not decompress to what its header says: its header is damaged, or its form
    /// is not known.
    RecordForm,
    /// A log block that is none, or whose checksum is wrong.
    LogBlock,
    /// The file ends before the backup does.
    Truncated,
    /// Bytes that belong to no block.
    Lost,
    /// A set without the configuration that ends it.
    SetIncomplete {
        /// Position of the set in the file.
        position: u16,
    },
    /// The configurations at the start and at the end of a set name different things.
    Configuration {
        /// Position of the set in the file.
        position: u16,
    },
    /// Fewer pages than were copied.
    PagesMissing {
        /// The data file.
        file_id: u16,
        /// Pages copied.
        expected: u64,
        /// Pages found.
        found: u64,
    },
}
