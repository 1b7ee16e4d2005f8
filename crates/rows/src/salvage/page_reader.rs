//! Reads the rows of single pages: whole values, kept in memory, without regard for speed.

use std::io;

use catalog::{Database, Level, RowsetColumn, Stored};
use catalog::{Fetched, fetch};
use format::lob::{Fragment, Links, Node, Pointer};
use format::record::Record;
use format::slots::SlotOrder;
use format::types::xtype;
use format::{Page, PageId, RecordId};
use source::PageSource;

use super::identity::each_index_record;
use super::leaf::{LeafScratch, Slot, each_slot, is_row};
use super::owned::{MOST_BYTES, Owned};
use super::{EachValues, ReadPage, Which};
use crate::table::{Column, Place, Table};
use crate::value::{DateTime, TimeOfDay, Unreadable, Value};

/// Levels of an off-row value: each has at least two children.
const MAX_LEVELS: u16 = 8;
/// Days from 0001-01-01 to 1900-01-01.
const DAY_1900: i64 = 693_595;

/// Reads pages of a table and of its indexes.
pub(crate) struct PageReader<'a> {
    pages: &'a dyn PageSource,
    database: &'a Database,
    /// The table, then its indexes.
    tables: Vec<&'a Table>,
    scratch: LeafScratch,
}

impl<'a> PageReader<'a> {
    pub(crate) fn new(pages: &'a dyn PageSource, database: &'a Database, tables: Vec<&'a Table>) -> Self {
        Self { pages, database, tables, scratch: LeafScratch::default() }
    }
}

impl ReadPage for PageReader<'_> {
    fn rows(&mut self, which: Which, partition: usize, page: PageId, each: &mut EachValues<'_>) -> io::Result<()> {
        let number = match which {
            Which::Table => 0,
            Which::Index(index) => index + 1,
        };
        let (Some(table), Some(rowset)) = (self.tables.get(number), self.database.rowsets.get(partition)) else {
            return Ok(());
        };
        let Fetched::Sound(bytes) = fetch(self.pages, page) else { return Ok(()) };
        let places: Vec<Option<&RowsetColumn>> = table
            .columns
            .iter()
            .map(|column| rowset.layout.columns.iter().find(|own| own.id == column.id && !own.is_dropped()))
            .collect();
        let pages = self.pages;
        let mut failed = Ok(());
        let mut row = |slot: u16, record: &Record<'_>| {
            if failed.is_err() {
                return;
            }
            let owned: Vec<Owned> =
                table.columns.iter().zip(&places).map(|(column, place)| value(pages, column, *place, record)).collect();
            let values: Vec<Value<'_>> = owned.iter().map(Owned::value).collect();
            failed = each(RecordId { page, slot }, &values);
        };
        match which {
            Which::Table => each_slot(Page::new(&bytes), rowset, &mut self.scratch, &mut |slot, content| {
                if let Slot::Record(record) = content
                    && is_row(&record)
                {
                    row(slot, &record);
                }
            }),
            Which::Index(_) => each_index_record(Page::new(&bytes), rowset, &mut |slot, record| row(slot, record)),
        }
        failed
    }
}

fn value(pages: &dyn PageSource, column: &Column, place: Option<&RowsetColumn>, record: &Record<'_>) -> Owned {
    let Some(physical) = place.filter(|_| column.place != Place::Computed) else {
        return Owned::Unreadable(Unreadable::NotStored);
    };
    match physical.stored(Level::Leaf, record) {
        Stored::Null => Owned::Null,
        Stored::Absent if physical.default.is_some() => Owned::Unreadable(Unreadable::Undocumented),
        Stored::Absent => Owned::Null,
        Stored::Plain(bytes) if physical.info.xtype == xtype::BIT => {
            Owned::Bit(bytes.first().is_some_and(|byte| byte >> physical.leaf_bit.min(7) & 1 == 1))
        }
        Stored::Plain(bytes) if physical.is_vardecimal() => {
            let _ = bytes;
            Owned::Unreadable(Unreadable::Undocumented)
        }
        Stored::Plain(bytes) => decode(column, bytes).unwrap_or(Owned::Unreadable(Unreadable::Impossible)),
        Stored::Complex(bytes) => match off_row(pages, bytes) {
            Ok(bytes) => decode(column, &bytes).unwrap_or(Owned::Unreadable(Unreadable::Impossible)),
            Err(why) => Owned::Unreadable(why),
        },
    }
}

fn signed(bytes: &[u8]) -> Option<i64> {
    let negative = bytes.last()? & 0x80 != 0;
    let mut wide = [if negative { 0xFF } else { 0 }; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(wide))
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

fn time(bytes: &[u8], digits: u8) -> Option<TimeOfDay> {
    let ticks = unsigned(bytes)?.checked_mul(10u64.checked_pow(7u32.checked_sub(digits.into())?)?)?;
    (ticks < 864_000_000_000).then_some(TimeOfDay { ticks, digits })
}

fn day(bytes: &[u8]) -> Option<u32> {
    u32::try_from(unsigned(bytes)?).ok().filter(|day| *day <= 3_652_058)
}

fn moment(bytes: &[u8], digits: u8) -> Option<DateTime> {
    let (clock, date) = bytes.split_at_checked(bytes.len().checked_sub(3)?)?;
    Some(DateTime { day: day(date)?, time: time(clock, digits)? })
}

/// The value that these bytes are of the column's type.
fn decode(column: &Column, bytes: &[u8]) -> Option<Owned> {
    let info = column.info;
    Some(match info.xtype {
        xtype::TINYINT => Owned::Integer(i64::from(*bytes.first()?)),
        xtype::SMALLINT | xtype::INT | xtype::BIGINT => Owned::Integer(signed(bytes)?),
        xtype::MONEY | xtype::SMALLMONEY => Owned::Decimal { unscaled: signed(bytes)?.into(), scale: 4 },
        xtype::DECIMAL | xtype::NUMERIC => {
            let (sign, magnitude) = bytes.split_first()?;
            let mut wide = [0; 16];
            wide.get_mut(..magnitude.len())?.copy_from_slice(magnitude);
            let magnitude = i128::try_from(u128::from_le_bytes(wide)).ok()?;
            Owned::Decimal { unscaled: if *sign == 1 { magnitude } else { -magnitude }, scale: info.scale }
        }
        xtype::REAL => Owned::Real(f32::from_le_bytes(bytes.try_into().ok()?)),
        xtype::FLOAT => Owned::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        xtype::DATE => Owned::Date(day(bytes)?),
        xtype::TIME => Owned::Time(time(bytes, info.scale)?),
        xtype::DATETIME2 => Owned::DateTime(moment(bytes, info.scale)?),
        xtype::DATETIMEOFFSET => {
            let (utc, offset) = bytes.split_last_chunk::<2>()?;
            Owned::DateTimeOffset { utc: moment(utc, info.scale)?, offset_minutes: i16::from_le_bytes(*offset) }
        }
        xtype::DATETIME => {
            let (ticks, days) = bytes.split_at_checked(4)?;
            let milliseconds = (unsigned(ticks)? * 10 + 1) / 3;
            let day = u32::try_from(signed(days)?.checked_add(DAY_1900)?).ok()?;
            Owned::DateTime(DateTime { day, time: TimeOfDay { ticks: milliseconds.checked_mul(10_000)?, digits: 3 } })
        }
        xtype::SMALLDATETIME => {
            let (minutes, days) = bytes.split_at_checked(2)?;
            let day = u32::try_from(unsigned(days)?).ok()?.checked_add(DAY_1900 as u32)?;
            Owned::DateTime(DateTime {
                day,
                time: TimeOfDay { ticks: unsigned(minutes)?.checked_mul(600_000_000)?, digits: 0 },
            })
        }
        xtype::UNIQUEIDENTIFIER => Owned::Guid(bytes.try_into().ok()?),
        xtype::NCHAR | xtype::NVARCHAR | xtype::NTEXT => {
            let units = bytes.chunks_exact(2).map(|pair| {
                u16::from_le_bytes([
                    pair.first().copied().unwrap_or_default(),
                    pair.last().copied().unwrap_or_default(),
                ])
            });
            Owned::Text(
                char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect(),
            )
        }
        xtype::CHAR | xtype::VARCHAR | xtype::TEXT if bytes.is_ascii() => {
            Owned::Text(bytes.iter().map(|byte| char::from(*byte)).collect())
        }
        xtype::CHAR | xtype::VARCHAR | xtype::TEXT => {
            Owned::Text(encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned())
        }
        _ => Owned::Bytes(bytes.to_vec()),
    })
}

/// The bytes of a value that is stored off its row.
fn off_row(pages: &dyn PageSource, pointer: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut out = Vec::new();
    match Pointer::read(pointer) {
        Pointer::Text { id, root } => fragment(pages, id, root, MAX_LEVELS, &mut out)?,
        Pointer::InlineRoot { id, links, .. } | Pointer::Overflow { id, links, .. } => {
            children(pages, id, links, MAX_LEVELS, &mut out)?;
        }
        Pointer::Malformed => return Err(Unreadable::Impossible),
        Pointer::Undescribed => return Err(Unreadable::Undocumented),
    }
    Ok(out)
}

fn children(
    pages: &dyn PageSource,
    id: u64,
    links: Links<'_>,
    levels: u16,
    out: &mut Vec<u8>,
) -> Result<(), Unreadable> {
    for link in links.iter() {
        let before = out.len();
        fragment(pages, id, link.target, levels, out)?;
        if (out.len() - before) as u64 != link.size {
            return Err(Unreadable::Lost(link.target.page));
        }
    }
    Ok(())
}

/// Appends a fragment and what is below it. The depth of this recursion is bounded by `levels`.
fn fragment(pages: &dyn PageSource, id: u64, at: RecordId, levels: u16, out: &mut Vec<u8>) -> Result<(), Unreadable> {
    let lost = Unreadable::Lost(at.page);
    let Fetched::Sound(bytes) = fetch(pages, at.page) else { return Err(lost) };
    let page = Page::new(&bytes);
    let mut order = SlotOrder::default();
    order.load(page);
    let position = order.entries().iter().position(|entry| entry.slot == at.slot).ok_or(lost)?;
    let fragment = Fragment::read(order.space(page, position)).map_err(|_| lost)?;
    // Pointers in rows have six of the eight bytes.
    if fragment.blob_id() != id && fragment.blob_id() != id << 16 && fragment.blob_id() >> 16 != id {
        return Err(lost);
    }
    match fragment.node() {
        Node::Root { .. } | Node::Data { .. } => out.extend_from_slice(fragment.data().ok_or(lost)?),
        Node::Tree { links, .. } | Node::Internal { links, .. } => {
            children(pages, id, links, levels.checked_sub(1).ok_or(lost)?, out)?;
        }
        Node::Malformed | Node::Undescribed(_) | Node::Unknown(_) => return Err(lost),
    }
    if out.len() > MOST_BYTES { Err(Unreadable::Undocumented) } else { Ok(()) }
}
