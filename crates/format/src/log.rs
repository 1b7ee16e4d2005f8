//! The transaction log: virtual log files (VLFs) of blocks of records (docs/format/log.md).
//!
//! Views only: [`vlf`] and [`block`] say where blocks and records are and whether they are sound, [`record`] what a record
//! does. Reading files and following the log from block to block is the work of crate `log`.

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
