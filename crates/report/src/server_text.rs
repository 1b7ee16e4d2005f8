//! LSNs and times as SQL Server prints them.

use format::Lsn;
use format::log::LogTime;
use format::types::datetime_text;

/// An LSN as SQL Server prints it: `00000022:00000a78:00a0`.
pub fn lsn_text(lsn: Lsn) -> String {
    format!("{:08x}:{:08x}:{:04x}", lsn.vlf, lsn.block, lsn.slot)
}

/// A time as SQL Server prints it: `2020-05-12 13:30:00.003`.
pub fn time_text(time: LogTime) -> Option<String> {
    datetime_text(time.ticks, time.days)
}
