//! Forwarded rows: the stub and the row of a forwarding pair, and the address by which indexes refer to a forwarded
//! row.

use format::RecordId;
use format::record::{Record, RecordKind};

/// One end of a forwarding pair, with the address of the other end.
pub(crate) enum Forwarding {
    /// A stub that points to this row.
    Stub(RecordId),
    /// A forwarded row that points back to this stub.
    Row(RecordId),
}

/// Whether a record is a forwarded row although its back pointer was not found. The record is either a ghost with 1 in
/// its second status byte, or a row whose back pointer is not in any known place.
pub(crate) fn is_unexplained_forward(record: &[u8]) -> bool {
    Record::data(record).is_ok_and(|record| record.kind() == RecordKind::Forwarded || record.is_ghost_forwarded())
}

/// The forwarding of a heap record, if it is a stub or a forwarded row (docs/format/forwarding.md). The last variable
/// column of a forwarded row is its back pointer: a complex column with the bytes 00 04 and the address of the stub.
pub(crate) fn forwarding(record: &[u8]) -> Option<Forwarding> {
    let record = Record::data(record).ok()?;
    match record.kind() {
        RecordKind::ForwardingStub => Some(Forwarding::Stub(RecordId::read(record.bytes(), 1)?)),
        RecordKind::Forwarded => {
            let columns = (1..=record.variable_count()).rev().filter_map(|number| record.variable(number));
            let mut pointers =
                columns.filter(|(bytes, complex)| *complex && bytes.len() == 10 && bytes.starts_with(&[0, 4]));
            Some(Forwarding::Row(RecordId::read(pointers.next()?.0, 2)?))
        }
        _ => None,
    }
}

/// Whether a record is a row that was not deleted.
pub(crate) fn is_live(record: &Record<'_>) -> bool {
    matches!(record.kind(), RecordKind::Primary | RecordKind::Forwarded | RecordKind::Index)
}

/// The address by which a nonclustered index of a heap refers to a row: the row's own address or, if the row was
/// forwarded, the address of its stub. `None` for ghosts and stubs, because no index refers to these records.
pub(crate) fn locator_of(at: RecordId, record: &Record<'_>) -> Option<RecordId> {
    match record.kind() {
        RecordKind::Primary | RecordKind::Index => Some(at),
        RecordKind::Forwarded => match forwarding(record.bytes()) {
            Some(Forwarding::Row(stub)) => Some(stub),
            _ => None,
        },
        _ => None,
    }
}
