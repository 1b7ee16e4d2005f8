//! Reads whole logs, and recovers a database with changed logs.

use std::sync::LazyLock;

use check::Silent;
use findings::Options;
use lab::PageVerify;
use lab::workload::{Flush, Spec, Stop};
use log::{History, Log, Walk};
use source::MemoryFiles;

use super::backup::Temporary;
use crate::in_use::{in_memory, recover, workload};
use crate::log_layout::{Layout, Part, seal};

/// The number of bytes before the data of each change: the part number (2 bytes), the offset (2 bytes) and the length
/// of the data (1 byte).
const CHANGE_HEADER: usize = 5;
/// A flag in the part number: if set, the part is a VLF, otherwise it is a block.
const OF_VLF: u16 = 1 << 15;
/// A flag in the number of a block: if set, the checksum of the changed block is not corrected.
const STALE: u16 = 1 << 14;
const GRANT_BYTES: u64 = 8 << 20;

/// A small lab database that was in use.
struct InUse {
    source: MemoryFiles,
    log: Vec<u8>,
    layout: Layout,
}

static IN_USE: LazyLock<Option<InUse>> = LazyLock::new(|| {
    let spec = Spec { verify: PageVerify::Checksum, seed: 9, rows: 40, ..Spec::default() };
    let crashed = workload(spec).crash(Stop::WithOpen, Flush::Some(1));
    let file = Temporary::write(&crashed.log.1)?;
    let layout = Layout::of(&Log::open(std::slice::from_ref(&file.0)).ok()?);
    Some(InUse { source: in_memory(&crashed.files), log: crashed.log.1, layout })
});

/// Applies the changes in `bytes` to the log of a small database. Then reads the changed log to its end, including its
/// transactions and checkpoints.
///
/// Each change consists of a part number (u16), an offset (u16), a length (u8), and that number of bytes. The checksum
/// of a changed block is corrected, unless a flag in the part number forbids this.
pub fn log_file(bytes: &[u8]) {
    let Some(file) = IN_USE.as_ref().and_then(|used| Temporary::write(&changed(used, bytes))) else { return };
    let Ok(log) = Log::open(std::slice::from_ref(&file.0)) else { return };
    let (mut walk, mut history) = (Walk::new(&log), History::new());
    while let Ok(Some(block)) = walk.next_block() {
        history.block(&block, &mut drop);
        for (_, record) in block.records() {
            let _ = (record.change(), record.elements().count(), record.open_transactions().count());
        }
    }
    history.finish(&mut drop);
}

/// Compares the small database with its changed log, recovers the database, and checks it.
pub fn recovery(bytes: &[u8]) {
    let Some(used) = IN_USE.as_ref() else { return };
    let Some(file) = Temporary::write(&changed(used, bytes)) else { return };
    let Ok(recovered) = recover(&used.source, &file.0, GRANT_BYTES) else { return };
    let database = catalog::load(&recovered.pages);
    let options = Options { max_threads: 1, ..Options::default() };
    let report = check::run(&recovered.pages, &database, &options, &Silent);
    let names = report.names();
    assert!(report.findings.iter().all(|finding| !finding.text(&names).is_empty()));
    assert!(recovered.audit.findings.iter().all(|finding| !finding.text(&names).is_empty()));
}

fn changed(used: &InUse, bytes: &[u8]) -> Vec<u8> {
    let mut log = used.log.clone();
    let mut rest = bytes;
    while let Some((&[a, b, c, d, length], after)) = rest.split_first_chunk::<CHANGE_HEADER>() {
        let number = u16::from_le_bytes([a, b]);
        let (value, next) = after.split_at(usize::from(length).min(after.len()));
        rest = next;
        let parts = if number & OF_VLF != 0 { &used.layout.vlfs } else { &used.layout.blocks };
        let index = usize::from(number & !(OF_VLF | STALE)) % parts.len().max(1);
        let Some(Part { at, bytes }) = parts.get(index) else { continue };
        let Some(part) = log.get_mut(*at..at + bytes) else { continue };
        let offset = usize::from(u16::from_le_bytes([c, d])) % part.len().max(1);
        for (place, byte) in part.iter_mut().skip(offset).zip(value) {
            *place = *byte;
        }
        if number & (OF_VLF | STALE) == 0 {
            seal(part);
        }
    }
    log
}
