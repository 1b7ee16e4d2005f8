//! Rows that moved: the two ends of a forwarding pair, and the address by which others know a row.

use format::RecordId;
use format::record::{Record, RecordKind};

/// The two ends of a forwarding pair.
pub(crate) enum Forwarding {
    /// A stub that leads to this row.
    Stub(RecordId),
    /// A forwarded row that points back to this stub.
    Row(RecordId),
}

/// A forwarded row whose back pointer is not where one was ever met, or that is a ghost (second status byte 1).
pub(crate) fn is_unexplained_forward(record: &[u8]) -> bool {
    Record::data(record).is_ok_and(|record| record.kind() == RecordKind::Forwarded || record.is_ghost_forwarded())
}

/// What a record of a heap says about forwarding (docs/format/forwarding.md). A forwarded row's last variable column is
/// its back pointer: complex, 00 04, address of the stub.
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

/// Whether a record is a row that is not deleted.
pub(crate) fn is_live(record: &Record<'_>) -> bool {
    matches!(record.kind(), RecordKind::Primary | RecordKind::Forwarded | RecordKind::Index)
}

/// The address by which a nonclustered index of a heap knows a row: its own, or its stub's if it was moved. `None` for
/// records that no index has: ghosts and stubs.
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
