//! Damage in a backup outside its pages.

use std::path::PathBuf;

use super::blocks::Tag;

/// Damage at one place in a backup.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Damage {
    /// Path of the backup file.
    pub path: PathBuf,
    /// Offset of the damage in the file. If the damage was found after decompression, the offset in the decompressed
    /// tape.
    pub at: u64,
    /// The kind of damage.
    pub kind: DamageKind,
}

/// The kind of damage in a backup.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DamageKind {
    /// The header of a descriptor block has a wrong checksum.
    BlockChecksum {
        /// The block's type.
        tag: Tag,
    },
    /// A block has an unknown type although its checksum is correct.
    UnknownBlock {
        /// The block's type.
        tag: Tag,
    },
    /// The header of a stream has a wrong checksum.
    StreamChecksum {
        /// The stream's type.
        tag: Tag,
    },
    /// The data of a stream has a wrong checksum (BACKUP WITH CHECKSUM).
    DataChecksum {
        /// The checksum stored in the backup.
        stored: u32,
        /// The checksum computed from the bytes.
        computed: u32,
    },
    /// A record of a compressed backup has a wrong checksum.
    RecordChecksum {
        /// The checksum stored in the backup.
        stored: u32,
        /// The checksum computed from the bytes.
        computed: u32,
    },
    /// A compressed backup has no record at an offset where it must have one.
    RecordLost,
    /// A record of a compressed backup does not decompress to the length in its header. Either the header is damaged,
    /// or the record is compressed in an unknown way.
    RecordForm,
    /// A log block is invalid or has a wrong checksum.
    LogBlock,
    /// The file ends before the end of the backup.
    Truncated,
    /// Bytes in the file belong to no block.
    Lost,
    /// A backup set lacks the configuration at its end.
    SetIncomplete {
        /// Position of the set in the file.
        position: u16,
    },
    /// The configurations at the start and at the end of a set contradict each other.
    Configuration {
        /// Position of the set in the file.
        position: u16,
    },
    /// The backup contains fewer pages of a file than its label counts as copied.
    PagesMissing {
        /// ID of the data file.
        file_id: u16,
        /// Number of pages copied, according to the label.
        expected: u64,
        /// Number of pages found.
        found: u64,
    },
}
