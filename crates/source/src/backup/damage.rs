//! Damage to a backup outside its pages.

use std::path::PathBuf;

use super::blocks::Tag;

/// A damaged place of a backup.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Damage {
    /// The backup file.
    pub path: PathBuf,
    /// Offset in it; for damage found after decompression, offset in the decompressed tape.
    pub at: u64,
    /// The damage.
    pub kind: DamageKind,
}

/// The kind of damage at a place of a backup.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DamageKind {
    /// Wrong checksum of a descriptor block's header.
    BlockChecksum {
        /// The block's type.
        tag: Tag,
    },
    /// A block of unknown type, though its checksum is right.
    UnknownBlock {
        /// Its type.
        tag: Tag,
    },
    /// Wrong checksum of a stream's header.
    StreamChecksum {
        /// The stream's type.
        tag: Tag,
    },
    /// Wrong checksum of a stream's data (WITH CHECKSUM).
    DataChecksum {
        /// As stored.
        stored: u32,
        /// According to the bytes.
        computed: u32,
    },
    /// Wrong checksum of a record of a compressed backup.
    RecordChecksum {
        /// As stored.
        stored: u32,
        /// According to the bytes.
        computed: u32,
    },
    /// No record of the compressed backup where one must be.
    RecordLost,
    /// A record of the compressed backup that does not decompress to what its header says: the header is damaged, or
    /// the form unknown.
    RecordForm,
    /// An invalid log block, or one with a wrong checksum.
    LogBlock,
    /// The file ends before the backup does.
    Truncated,
    /// Bytes that belong to no block.
    Lost,
    /// A set without its final configuration.
    SetIncomplete {
        /// Position of the set in the file.
        position: u16,
    },
    /// The configurations at the start and at the end of a set contradict each other.
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
