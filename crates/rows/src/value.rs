//! What a row has in a column.

use std::io;

/// A value of a column, as its type means it.
///
/// Text is UTF-8 whatever its code page was. An unpaired surrogate of UTF-16, which SQL Server allows, is U+FFFD, and
/// the reader counts it.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// bit.
    Bit(bool),
    /// tinyint, smallint, int, bigint.
    Integer(i64),
    /// decimal, numeric, money, smallmoney: `unscaled / 10^scale`. The magnitude has at most 38 digits.
    Decimal {
        /// Digits with sign.
        unscaled: i128,
        /// Digits after the point, at most 38.
        scale: u8,
    },
    /// real.
    Real(f32),
    /// float.
    Float(f64),
    /// date: days since 0001-01-01, at most 3,652,058.
    Date(u32),
    /// time.
    Time(TimeOfDay),
    /// datetime, smalldatetime, datetime2.
    DateTime(DateTime),
    /// datetimeoffset.
    DateTimeOffset {
        /// The moment in UTC.
        utc: DateTime,
        /// Minutes east of UTC, from -840 to 840.
        offset_minutes: i16,
    },
    /// uniqueidentifier: the bytes as stored; the first three groups are little-endian.
    Guid([u8; 16]),
    /// char, varchar, text, nchar, nvarchar, ntext, xml, json, hierarchyid as its path.
    Text(Text<'a>),
    /// binary, varbinary, image, rowversion, geometry and geography as WKB, CLR types as stored.
    Bytes(&'a [u8]),
    /// A text too long to be held whole.
    LongText(LongValue<'a>),
    /// Bytes too long to be held whole.
    LongBytes(LongValue<'a>),
    /// A value that cannot be had.
    Unreadable(Unreadable),
}

/// A text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    /// UTF-8: proven where it was made, so that what only copies it need not look again.
    utf8: &'a [u8],
}

impl<'a> Text<'a> {
    /// What a conversion to UTF-8 made, or ASCII.
    #[inline]
    pub(crate) fn of_utf8(utf8: &'a [u8]) -> Self {
        Self { utf8 }
    }

    /// Its bytes as UTF-8.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.utf8
    }

    /// The text as a string.
    pub fn as_str(self) -> &'a str {
        std::str::from_utf8(self.utf8).unwrap_or_default()
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self { utf8: text.as_bytes() }
    }
}

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// A time of day, exact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimeOfDay {
    /// Hundreds of nanoseconds since midnight, below 864,000,000,000.
    pub ticks: u64,
    /// Digits after the second that the type has, 0 to 7.
    pub digits: u8,
}

/// A date with a time of day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DateTime {
    /// Days since 0001-01-01, at most 3,652,058.
    pub day: u32,
    /// The time. That of a datetime is rounded to milliseconds, as SQL Server prints it.
    pub time: TimeOfDay,
}

/// Why a value cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// The value is stored off the row, and a page with a piece of it is damaged, unreadable or missing.
    Lost(format::PageId),
    /// The bytes are no value of the type.
    Impossible,
    /// The form in which the value is stored is not documented.
    Undocumented,
    /// The row does not store the value, and nothing here can compute it.
    NotStored,
    /// No index that is left has the column.
    NotInAnyIndex,
    /// It has to be converted as a whole (xml, a shape), and is too long to be held.
    TooLong,
}

/// A long value, read piece by piece.
#[derive(Clone, Copy)]
pub struct LongValue<'a> {
    /// Bytes as stored; a text may have another length as UTF-8.
    pub stored_bytes: u64,
    /// Where its pieces come from.
    pub(crate) reader: &'a dyn ReadLong,
}

/// Hands out the pieces of a long value.
pub trait ReadLong {
    /// Calls `each` with the pieces in order: UTF-8 of whole characters for a text. The same pieces in every call.
    ///
    /// # Errors
    /// What `each` returns. `Ok(Err(..))` if a piece cannot be had: what was handed out before is the start of the value.
    fn pieces(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Result<(), Unreadable>>;
}

impl LongValue<'_> {
    /// See [`ReadLong::pieces`].
    ///
    /// # Errors
    /// As [`ReadLong::pieces`].
    pub fn pieces(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Result<(), Unreadable>> {
        self.reader.pieces(each)
    }
}

impl<'a> LongValue<'a> {
    /// A value whose pieces `reader` hands out.
    pub fn new(stored_bytes: u64, reader: &'a dyn ReadLong) -> Self {
        Self { stored_bytes, reader }
    }
}

impl std::fmt::Debug for LongValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "long value of {} bytes", self.stored_bytes)
    }
}
