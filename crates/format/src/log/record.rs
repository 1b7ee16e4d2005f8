//! Typed views of log records (docs/format/log.md#records).

use std::fmt;

use super::operation::Operation;
use super::time::LogTime;
use crate::bytes::{u8_at, u16_at, u32_at, u64_at, utf16};
use crate::fields::{Structure, offset};
use crate::ids::{Lsn, PageId};

const fn at(name: &str, bytes: u32) -> usize {
    offset(Structure::LogRecord, name, bytes)
}

/// The length in bytes of the header that every log record has.
pub const HEADER_BYTES: usize = at("context", 1) + 1;
/// The flag of compensation records, which undo other records.
const IS_COMPENSATION: u16 = 1;

/// The ID of a transaction. Later transactions may have the same ID. Printed as SQL Server prints it, `0000:000003a8`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TransactionId {
    /// The upper part, which is printed first.
    pub high: u16,
    /// The lower part.
    pub low: u32,
}

impl TransactionId {
    /// The ID in records that belong to no transaction.
    pub const NONE: Self = Self { high: 0, low: 0 };

    /// Reads the ID at `offset` of `bytes`: first the u32 lower part, then the u16 upper part.
    pub fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        Some(Self { low: u32_at(bytes, offset)?, high: u16_at(bytes, offset.checked_add(4)?)? })
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:08x}", self.high, self.low)
    }
}

/// A log record. A field that is not inside the record's bytes reads as zero or empty.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    bytes: &'a [u8],
}

impl<'a> LogRecord<'a> {
    /// The record in `bytes`, which must end where the next record starts.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// All bytes of the record.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The operation of the record.
    pub fn operation(&self) -> Operation {
        Operation(u8_at(self.bytes, const { at("operation", 1) }).unwrap_or_default())
    }

    /// The context: a number for the kind of page or the purpose (docs/format/log.md#contexts).
    pub fn context(&self) -> u8 {
        u8_at(self.bytes, const { at("context", 1) }).unwrap_or_default()
    }

    /// The transaction of the record; [`TransactionId::NONE`] if it belongs to none.
    pub fn transaction(&self) -> TransactionId {
        TransactionId::read(self.bytes, const { at("transaction", 6) }).unwrap_or_default()
    }

    /// The LSN of the previous record of the transaction. In a compensation record, the LSN of the next record to undo.
    pub fn previous_lsn(&self) -> Lsn {
        Lsn::read(self.bytes, const { at("previousLSN", 10) }).unwrap_or_default()
    }

    /// Whether the record undoes another record.
    pub fn is_compensation(&self) -> bool {
        u16_at(self.bytes, const { at("flags", 2) }).is_some_and(|flags| flags & IS_COMPENSATION != 0)
    }

    /// The length in bytes of the fixed part, after which the elements begin.
    pub fn fixed_bytes(&self) -> usize {
        u16_at(self.bytes, const { at("fixedLength", 2) }).unwrap_or_default().into()
    }

    /// The number of elements according to the record.
    pub fn element_count(&self) -> usize {
        u16_at(self.bytes, self.fixed_bytes()).unwrap_or_default().into()
    }

    /// The elements: images of rows, keys, names. Only elements inside the record are returned, even if the stored
    /// count is higher.
    pub fn elements(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (bytes, count) = (self.bytes, self.element_count());
        let lengths = self.fixed_bytes() + 2;
        // Each element starts at a multiple of four bytes from the start of the record.
        let mut start = (lengths + 2 * count).next_multiple_of(4);
        (0..count).map_while(move |index| {
            let length = usize::from(u16_at(bytes, lengths + 2 * index)?);
            let element = bytes.get(start..start + length)?;
            start = (start + length).next_multiple_of(4);
            Some(element)
        })
    }

    /// The page that the record changes, with the slot, the IDs and the LSN before the change; `None` for operations
    /// without a page.
    pub fn on_page(&self) -> Option<PageChange> {
        const PAGE: usize = offset(Structure::LogPageRecord, "page", 6);
        const SLOT: usize = offset(Structure::LogPageRecord, "slot", 2);
        const OBJECT: usize = offset(Structure::LogPageRecord, "m_objId", 4);
        const PAGE_LSN: usize = offset(Structure::LogPageRecord, "pageLSN", 10);
        const INDEX: usize = offset(Structure::LogPageRecord, "m_indexId", 2);
        const ROWSET: usize = offset(Structure::LogPageRecord, "rowset", 8);
        if !self.operation().is_on_a_page() {
            return None;
        }
        Some(PageChange {
            page: PageId::read(self.bytes, PAGE)?,
            slot: u16_at(self.bytes, SLOT)?,
            object_id: u32_at(self.bytes, OBJECT)?,
            index_id: u16_at(self.bytes, INDEX)?,
            page_lsn: Lsn::read(self.bytes, PAGE_LSN)?,
            rowset: u64_at(self.bytes, ROWSET).unwrap_or_default(),
        })
    }

    /// The fields of a BEGIN_XACT record; `None` for other operations.
    pub fn begin_transaction(&self) -> Option<BeginTransaction<'a>> {
        const SESSION: usize = offset(Structure::LogBeginTransaction, "spid", 2);
        const BEGAN: usize = offset(Structure::LogBeginTransaction, "began", 8);
        if self.operation() != Operation::BEGIN_XACT {
            return None;
        }
        let mut elements = self.elements();
        Some(BeginTransaction {
            session: u16_at(self.bytes, SESSION)?,
            began: LogTime::read(self.bytes, BEGAN),
            name: elements.next().unwrap_or_default(),
            login: elements.next().unwrap_or_default(),
        })
    }

    /// The time at which a COMMIT_XACT or ABORT_XACT ended its transaction, and the LSN at which the transaction began;
    /// `None` for other operations.
    pub fn end_transaction(&self) -> Option<(Option<LogTime>, Lsn)> {
        const ENDED: usize = offset(Structure::LogEndTransaction, "ended", 8);
        const BEGIN: usize = offset(Structure::LogEndTransaction, "beginLSN", 10);
        matches!(self.operation(), Operation::COMMIT_XACT | Operation::ABORT_XACT)
            .then(|| Some((LogTime::read(self.bytes, ENDED), Lsn::read(self.bytes, BEGIN)?)))?
    }

    /// The fields of a BEGIN_CKPT record; `None` for other operations.
    pub fn begin_checkpoint(&self) -> Option<BeginCheckpoint> {
        const BEGAN: usize = offset(Structure::LogBeginCheckpoint, "began", 8);
        const OLDEST: usize = offset(Structure::LogBeginCheckpoint, "oldestLSN", 10);
        const VERSION: usize = offset(Structure::LogBeginCheckpoint, "version", 2);
        if self.operation() != Operation::BEGIN_CKPT {
            return None;
        }
        Some(BeginCheckpoint {
            began: LogTime::read(self.bytes, BEGAN),
            oldest: Lsn::read(self.bytes, OLDEST).filter(|lsn| *lsn != Lsn::default()),
            version: u16_at(self.bytes, VERSION)?,
        })
    }

    /// The time at which an END_CKPT ended its checkpoint, and the LSN at which redo starts; `None` for other
    /// operations.
    pub fn end_checkpoint(&self) -> Option<(Option<LogTime>, Lsn)> {
        const ENDED: usize = offset(Structure::LogEndCheckpoint, "ended", 8);
        const REDO: usize = offset(Structure::LogEndCheckpoint, "redoLSN", 10);
        (self.operation() == Operation::END_CKPT)
            .then(|| Some((LogTime::read(self.bytes, ENDED), Lsn::read(self.bytes, REDO)?)))?
    }

    /// The transactions that were open at a checkpoint, from an XACT_CKPT record of context 0; empty for all other
    /// records.
    pub fn open_transactions(&self) -> impl Iterator<Item = OpenTransaction> + use<'a> {
        // Each element is a transaction. It has 56, 64 or 80 bytes, depending on the release.
        let is_list = self.operation() == Operation::XACT_CKPT && self.context() == 0;
        let entries = is_list.then(|| self.elements()).into_iter().flatten();
        entries.map_while(|entry| {
            Some(OpenTransaction {
                id: TransactionId::read(entry, 0)?,
                begin: Lsn::read(entry, 8)?,
                last: Lsn::read(entry, 0x14)?,
            })
        })
    }
}

/// The fields of a log record that describe the page it changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageChange {
    /// The changed page.
    pub page: PageId,
    /// The slot of the row; 65535 if the operation does not concern a row.
    pub slot: u16,
    /// The field m_objId of the page header.
    pub object_id: u32,
    /// The field m_indexId of the page header.
    pub index_id: u16,
    /// The LSN of the page before this change.
    pub page_lsn: Lsn,
    /// The ID of the rowset; 0 in operations on whole pages.
    pub rowset: u64,
}

/// The fields of the record that begins a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeginTransaction<'a> {
    /// The ID of the session that began the transaction.
    pub session: u16,
    /// The time at which the transaction began, in the server's local time.
    pub began: Option<LogTime>,
    name: &'a [u8],
    /// The security identifier of the login; empty for system transactions.
    pub login: &'a [u8],
}

impl BeginTransaction<'_> {
    /// The name of the transaction: `user_transaction`, the name of the statement or of the structure change, or a name
    /// that the user chose.
    pub fn name(&self) -> String {
        utf16(self.name)
    }
}

/// The fields of the record that begins a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeginCheckpoint {
    /// The time at which the checkpoint began, in the server's local time.
    pub began: Option<LogTime>,
    /// A lower bound for the LSN at which the oldest open transaction began; `None` if no transaction was open.
    pub oldest: Option<Lsn>,
    /// The internal version of the database.
    pub version: u16,
}

/// A transaction that was open at a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenTransaction {
    /// The ID of the transaction.
    pub id: TransactionId,
    /// The LSN at which the transaction began; zero if it has changed nothing.
    pub begin: Lsn,
    /// The LSN of the last record of the transaction, or of one of its earlier records.
    pub last: Lsn,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record with this operation, this fixed part and these elements.
    fn record(operation: u8, fixed_bytes: usize, elements: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0; fixed_bytes];
        bytes[2..4].copy_from_slice(&(fixed_bytes as u16).to_le_bytes());
        bytes[0x16] = operation;
        bytes.extend((elements.len() as u16).to_le_bytes());
        elements.iter().for_each(|element| bytes.extend((element.len() as u16).to_le_bytes()));
        for element in elements {
            bytes.resize(bytes.len().next_multiple_of(4), 0xEE);
            bytes.extend(*element);
        }
        bytes
    }

    #[test]
    fn elements_start_at_multiples_of_four() {
        let elements: [&[u8]; 4] = [b"abcde", b"", b"xy", b"last"];
        for fixed_bytes in [62, 60, 53] {
            let bytes = record(2, fixed_bytes, &elements);
            assert!(LogRecord::new(&bytes).elements().eq(elements), "{fixed_bytes}");
            let cut = LogRecord::new(&bytes[..bytes.len() - 1]);
            assert_eq!(cut.elements().count(), 3, "one that is not whole ends them");
        }
    }

    #[test]
    fn a_transactions_begin_has_its_name() {
        let name: Vec<u8> = "SplitPage".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut bytes = record(128, 76, &[&name, &[1, 5]]);
        bytes[0x10..0x16].copy_from_slice(&[0xA8, 3, 0, 0, 1, 0]);
        bytes[0x18] = 51;
        let record = LogRecord::new(&bytes);
        let begin = record.begin_transaction().unwrap();
        assert_eq!((begin.name(), begin.session, begin.login), ("SplitPage".to_owned(), 51, &[1u8, 5][..]));
        assert_eq!(record.transaction().to_string(), "0001:000003a8");
        assert_eq!((record.on_page(), record.end_transaction()), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..200), operation in any::<u8>()) {
            let mut bytes = bytes;
            if let Some(field) = bytes.get_mut(0x16) {
                *field = operation;
            }
            let record = LogRecord::new(&bytes);
            prop_assert!(record.elements().map(<[u8]>::len).sum::<usize>() <= bytes.len());
            prop_assert!(record.open_transactions().count() <= usize::from(u16::MAX));
            let _ = (record.on_page(), record.begin_transaction().map(|begin| begin.name()), record.end_transaction());
            let _ = (record.begin_checkpoint(), record.end_checkpoint(), record.previous_lsn(), record.is_compensation());
        }
    }
}
