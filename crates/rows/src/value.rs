//! The value of a row in a column.

use std::io;

/// A value of a column, interpreted by the column's type.
///
/// Text is UTF-8, whatever its code page was. U+FFFD replaces an unpaired surrogate of UTF-16, which SQL Server allows,
/// and the reader counts it.
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
        /// The time in UTC.
        utc: DateTime,
        /// Minutes east of UTC, from -840 to 840.
        offset_minutes: i16,
    },
    /// uniqueidentifier: the bytes as stored; the first three groups are little-endian.
    Guid([u8; 16]),
    /// char, varchar, text, nchar, nvarchar, ntext, xml, json, and hierarchyid as its path.
    Text(Text<'a>),
    /// binary, varbinary, image, rowversion, geometry and geography as WKB, and CLR types as stored.
    Bytes(&'a [u8]),
    /// A text that is too long to be held in memory.
    LongText(LongValue<'a>),
    /// Bytes that are too long to be held in memory.
    LongBytes(LongValue<'a>),
    /// A value that cannot be read.
    Unreadable(Unreadable),
}

/// A text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    /// UTF-8, proven where it was made: code that only copies it need not check again.
    utf8: &'a [u8],
}

impl<'a> Text<'a> {
    /// A text from bytes that a conversion to UTF-8 produced, or that are ASCII.
    #[inline]
    pub(crate) fn of_utf8(utf8: &'a [u8]) -> Self {
        Self { utf8 }
    }

    /// Its bytes, as UTF-8.
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
    /// Digits after the second in the type, 0 to 7.
    pub digits: u8,
}

/// A date with a time of day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DateTime {
    /// Days since 0001-01-01, at most 3,652,058.
    pub day: u32,
    /// The time. The time of a datetime is rounded to milliseconds, as SQL Server prints it.
    pub time: TimeOfDay,
}

/// Why a value cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// The value is stored off the row, and a page with one of its pieces is damaged, unreadable or missing.
    Lost(format::PageId),
    /// The bytes are not a value of the type.
    Impossible,
    /// The storage format of the value is undocumented.
    Undocumented,
    /// The row does not store the value, and nothing here can compute it.
    NotStored,
    /// No remaining index has the column.
    NotInAnyIndex,
    /// It must be converted as a whole (xml, a shape), and is too long for that.
    TooLong,
}

/// A long value, read piece by piece.
#[derive(Clone, Copy)]
pub struct LongValue<'a> {
    /// Bytes as stored; as UTF-8 a text may have another length.
    pub stored_bytes: u64,
    /// The source of its pieces.
    pub(crate) reader: &'a dyn ReadLong,
}

/// Delivers the pieces of a long value.
pub trait ReadLong {
    /// Calls `each` with the pieces in order: for a text, UTF-8 of whole characters. Every call delivers the same
    /// pieces.
    ///
    /// # Errors
    /// Errors of `each`. `Ok(Err(..))` if a piece cannot be read: the pieces before it are the start of the value.
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
    /// A value whose pieces `reader` delivers.
    pub fn new(stored_bytes: u64, reader: &'a dyn ReadLong) -> Self {
        Self { stored_bytes, reader }
    }
}

impl std::fmt::Debug for LongValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "long value of {} bytes", self.stored_bytes)
    }
}
