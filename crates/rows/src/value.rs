//! The value of one column in one row.

use std::io;

/// The value of a column, interpreted by the column's type.
///
/// Text is delivered as UTF-8, whatever code page it is stored in. U+FFFD replaces an unpaired UTF-16 surrogate, which
/// SQL Server allows; the reader counts these texts.
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
        /// All digits as an integer, with the sign.
        unscaled: i128,
        /// The number of digits after the decimal point, at most 38.
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
    /// char, varchar, text, nchar, nvarchar, ntext, xml, and hierarchyid as its path.
    Text(Text<'a>),
    /// binary, varbinary, image, rowversion; geometry and geography as WKB; json, vector, and CLR types that are not
    /// converted, as stored.
    Bytes(&'a [u8]),
    /// A text that is too long to keep in memory.
    LongText(LongValue<'a>),
    /// Bytes that are too long to keep in memory.
    LongBytes(LongValue<'a>),
    /// A value that cannot be read.
    Unreadable(Unreadable),
}

/// A text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes of the text. The code that created the text proved that these bytes are UTF-8, so code that copies the
    /// text need not check them again.
    utf8: &'a [u8],
}

impl<'a> Text<'a> {
    /// Creates a text from bytes that are the output of a conversion to UTF-8, or that are ASCII.
    #[inline]
    pub(crate) fn of_utf8(utf8: &'a [u8]) -> Self {
        Self { utf8 }
    }

    /// The bytes of the text, as UTF-8.
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

/// An exact time of day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimeOfDay {
    /// Units of 100 ns since midnight, below 864,000,000,000.
    pub ticks: u64,
    /// The number of fractional-second digits of the type, 0 to 7.
    pub digits: u8,
}

/// A date with a time of day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DateTime {
    /// Days since 0001-01-01, at most 3,652,058.
    pub day: u32,
    /// The time of day. For the type datetime it is rounded to milliseconds, as SQL Server prints it.
    pub time: TimeOfDay,
}

/// The reason why a value cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// The value is stored off the row, and this page, which contains a piece of it, is damaged, unreadable or missing.
    Lost(format::PageId),
    /// The bytes are not a valid value of the type.
    Impossible,
    /// The storage format of the value is undocumented.
    Undocumented,
    /// The row does not store the value, and this crate cannot compute it.
    NotStored,
    /// The row was rebuilt from indexes, and none of them contains the column.
    NotInAnyIndex,
    /// The value is xml or a shape. It can only be converted as a whole, and it is too long for that conversion.
    TooLong,
}

/// A long value, read piece by piece.
#[derive(Clone, Copy)]
pub struct LongValue<'a> {
    /// The length of the value as stored, in bytes. If the value is text, its length in UTF-8 may be different.
    pub stored_bytes: u64,
    /// The source of the pieces of this value.
    pub(crate) reader: &'a dyn ReadLong,
}

/// Delivers the pieces of a long value.
pub trait ReadLong {
    /// Calls `each` with the pieces in order. Pieces of a text are UTF-8 and end at character boundaries. Every call
    /// delivers the same pieces.
    ///
    /// # Errors
    ///
    /// Errors of `each`. The result is `Ok(Err(..))` if a piece cannot be read; the pieces delivered before it are the
    /// start of the value.
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
    /// Creates a long value whose pieces come from `reader`.
    pub fn new(stored_bytes: u64, reader: &'a dyn ReadLong) -> Self {
        Self { stored_bytes, reader }
    }
}

impl std::fmt::Debug for LongValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "long value of {} bytes", self.stored_bytes)
    }
}
