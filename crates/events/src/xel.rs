//! Event files (docs/format/events.md#event-files).

mod metadata;
mod reader;
mod values;

pub use reader::{Fault, Reader};

/// The first bytes of an event file.
pub const MAGIC: [u8; 4] = 0xEFAB_375Au32.to_le_bytes();
/// The supported version of files, buffers and events.
pub const VERSION: u16 = 10;

/// Kinds of metadata objects: the highest four bits of an object ID.
mod kind {
    pub(super) const ACTION: u32 = 1;
    pub(super) const MAP: u32 = 3;
    pub(super) const TYPE: u32 = 6;

    /// The kind of the object with ID `id`.
    pub(super) const fn of(id: u32) -> u32 {
        id >> 28
    }
}

/// The number of the package in the ID of an object.
const fn package_of(id: u32) -> u32 {
    id & 0x3FF
}
