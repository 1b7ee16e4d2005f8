//! Event files (docs/format/events.md#event-files).

mod metadata;
mod reader;
mod values;

pub use reader::{Fault, Reader};

/// What an event file starts with.
pub const MAGIC: [u8; 4] = 0xEFAB_375Au32.to_le_bytes();
/// The version of files, buffers and events that can be read.
pub const VERSION: u16 = 10;

/// What an object of the metadata is, in the highest four bits of its id.
mod kind {
    pub(super) const ACTION: u32 = 1;
    pub(super) const MAP: u32 = 3;
    pub(super) const TYPE: u32 = 6;

    /// What `id` is of.
    pub(super) const fn of(id: u32) -> u32 {
        id >> 28
    }
}

/// The package of an object, by its id.
const fn package_of(id: u32) -> u32 {
    id & 0x3FF
}
