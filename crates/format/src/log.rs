//! The transaction log: virtual log files (VLFs), which consist of blocks, which consist of records
//! (docs/format/log.md).
//!
//! This module only has views: [`vlf`] and [`block`] find blocks and records and test whether they are sound;
//! [`record`] decodes a record. The crate `log` reads files and follows the log from block to block.

pub mod block;
pub mod change;
pub mod operation;
pub mod record;
mod time;
pub mod vlf;

pub use block::{Block, BlockFault, SECTOR_BYTES};
pub use change::Change;
pub use operation::Operation;
pub use record::{LogRecord, PageChange, TransactionId};
pub use time::LogTime;
pub use vlf::Vlf;
