//! SQL types: how the values of a type are stored, and which value of a type is generated for a number.

/// A type with its length, precision and scale, as the catalog describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SqlType {
    /// syscolpars.xtype, for example 56 for int and 231 for nvarchar.
    pub xtype: u8,
    /// The declared length in bytes; 0 for (max).
    pub length: u16,
    /// The precision of a decimal, or the number of digits of another numeric type.
    pub precision: u8,
    /// The scale of a decimal, or the number of fractional-second digits.
    pub scale: u8,
    /// syscolpars.utype if it is more specific than the xtype: 128 for hierarchyid, 129 for geometry, 130 for
    /// geography. Otherwise the xtype. 0 marks a column whose values the client encrypts; for such a column, the
    /// catalog still contains the declared type.
    pub user_type: u8,
}

/// The place where the values of a type are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// In the fixed-length part of the row, with this many bytes.
    Fixed(u16),
    /// One bit of a byte that several bit columns share.
    Bit,
    /// In the variable-length part of the row, with at most 8,000 bytes.
    Variable,
    /// In the variable-length part of the row if the value is short, otherwise in the LOB unit.
    Max,
    /// In the LOB unit, always with a 16-byte pointer in the row (text, ntext, image).
    Text,
}

/// The length in bytes of an encrypted value that consists of one cipher block and its header.
const ENCRYPTED_BYTES: u16 = 65;

const fn of(xtype: u8, length: u16, precision: u8, scale: u8) -> SqlType {
    SqlType { xtype, length, precision, scale, user_type: xtype }
}

impl SqlType {
    /// tinyint
    pub const TINYINT: Self = of(48, 1, 3, 0);
    /// smallint
    pub const SMALLINT: Self = of(52, 2, 5, 0);
    /// int
    pub const INT: Self = of(56, 4, 10, 0);
    /// bigint
    pub const BIGINT: Self = of(127, 8, 19, 0);
    /// bit
    pub const BIT: Self = of(104, 1, 1, 0);
    /// real
    pub const REAL: Self = of(59, 4, 24, 0);
    /// float
    pub const FLOAT: Self = of(62, 8, 53, 0);
    /// money
    pub const MONEY: Self = of(60, 8, 19, 4);
    /// smallmoney
    pub const SMALLMONEY: Self = of(122, 4, 10, 4);
    /// datetime
    pub const DATETIME: Self = of(61, 8, 23, 3);
    /// smalldatetime
    pub const SMALLDATETIME: Self = of(58, 4, 16, 0);
    /// date
    pub const DATE: Self = of(40, 3, 10, 0);
    /// uniqueidentifier
    pub const UNIQUEIDENTIFIER: Self = of(36, 16, 0, 0);
    /// rowversion
    pub const ROWVERSION: Self = of(189, 8, 0, 0);
    /// text
    pub const TEXT: Self = of(35, 16, 0, 0);
    /// ntext
    pub const NTEXT: Self = of(99, 16, 0, 0);
    /// image
    pub const IMAGE: Self = of(34, 16, 0, 0);
    /// xml
    pub const XML: Self = of(241, 0, 0, 0);
    /// sql_variant
    pub const SQL_VARIANT: Self = of(98, 8016, 0, 0);
    /// varchar(max)
    pub const VARCHAR_MAX: Self = of(167, 0, 0, 0);
    /// nvarchar(max)
    pub const NVARCHAR_MAX: Self = of(231, 0, 0, 0);
    /// varbinary(max)
    pub const VARBINARY_MAX: Self = of(165, 0, 0, 0);

    /// hierarchyid
    pub const HIERARCHYID: Self = Self { user_type: 128, ..of(240, 892, 0, 0) };
    /// geometry
    pub const GEOMETRY: Self = Self { user_type: 129, ..of(240, 0, 0, 0) };
    /// geography
    pub const GEOGRAPHY: Self = Self { user_type: 130, ..of(240, 0, 0, 0) };

    /// char(n)
    pub const fn char(n: u16) -> Self {
        of(175, n, 0, 0)
    }
    /// nchar(n)
    pub const fn nchar(n: u16) -> Self {
        of(239, 2 * n, 0, 0)
    }
    /// varchar(n)
    pub const fn varchar(n: u16) -> Self {
        of(167, n, 0, 0)
    }
    /// nvarchar(n)
    pub const fn nvarchar(n: u16) -> Self {
        of(231, 2 * n, 0, 0)
    }
    /// binary(n)
    pub const fn binary(n: u16) -> Self {
        of(173, n, 0, 0)
    }
    /// varbinary(n)
    pub const fn varbinary(n: u16) -> Self {
        of(165, n, 0, 0)
    }
    /// decimal(p, s)
    pub const fn decimal(precision: u8, scale: u8) -> Self {
        of(106, decimal_bytes(precision), precision, scale)
    }
    /// time(s)
    pub const fn time(scale: u8) -> Self {
        of(41, time_bytes(scale), if scale == 0 { 8 } else { 9 + scale }, scale)
    }
    /// datetime2(s)
    pub const fn datetime2(scale: u8) -> Self {
        of(42, time_bytes(scale) + 3, if scale == 0 { 19 } else { 20 + scale }, scale)
    }
    /// datetimeoffset(s)
    pub const fn datetimeoffset(scale: u8) -> Self {
        of(43, time_bytes(scale) + 5, if scale == 0 { 26 } else { 27 + scale }, scale)
    }

    /// Returns the type of a column whose values the client encrypts (Always Encrypted). Before encryption, a value
    /// must have at most 15 bytes.
    pub const fn encrypted(self) -> Self {
        Self { length: ENCRYPTED_BYTES, user_type: 0, ..self }
    }

    /// Whether the client encrypts the values.
    pub fn is_encrypted(self) -> bool {
        self.user_type == 0
    }

    /// The place where the values of the type are stored.
    pub fn storage(self) -> Storage {
        match self.xtype {
            _ if self.is_encrypted() => Storage::Variable,
            104 => Storage::Bit,
            34 | 35 | 99 => Storage::Text,
            241 => Storage::Max,
            165 | 167 | 231 | 240 if self.length == 0 => Storage::Max,
            165 | 167 | 231 | 98 | 240 => Storage::Variable,
            _ => Storage::Fixed(self.length),
        }
    }

    /// Length in bytes in the fixed-length part of a row; 0 for types of variable length.
    pub(crate) fn fixed_bytes(self) -> i16 {
        match self.storage() {
            Storage::Fixed(length) => length as i16,
            Storage::Bit => 1,
            _ => 0,
        }
    }

    /// Whether long values are stored in a LOB unit.
    pub fn is_lob(self) -> bool {
        matches!(self.storage(), Storage::Max | Storage::Text)
    }

    /// Whether the type has a collation.
    pub fn is_string(self) -> bool {
        matches!(self.xtype, 35 | 99 | 167 | 175 | 231 | 239)
    }

    /// Whether the values are UTF-16 text.
    pub fn is_unicode(self) -> bool {
        matches!(self.xtype, 99 | 231 | 239)
    }

    /// sysrscols.ti: the type, length, precision and scale, encoded in one number.
    pub fn type_info(self) -> u32 {
        let detail = match self.xtype {
            106 | 108 => u32::from(self.precision) | u32::from(self.scale) << 8,
            41..=43 => u32::from(self.scale),
            165 | 167 | 173 | 175 | 231 | 239 | 34 | 35 | 99 | 240 => u32::from(self.length),
            _ => 0,
        };
        // Rowsets store CLR types as varbinary.
        u32::from(if self.xtype == 240 { 165 } else { self.xtype }) | detail << 8
    }

    /// The most bytes that a value can have in the row.
    pub fn most_in_row(self) -> u32 {
        match self.storage() {
            Storage::Fixed(size) => u32::from(size),
            Storage::Bit => 1,
            Storage::Variable => u32::from(self.length),
            Storage::Max => 8000,
            Storage::Text => 16,
        }
    }

    /// Appends the value that is generated for `number`. A greater number gives a greater value, as long as the number
    /// is within the range of the type.
    pub fn encode_number(self, number: i64, out: &mut Vec<u8>) {
        let n = number;
        if self.is_encrypted() {
            // An encrypted value consists of a version, an authentication tag, an initialization vector and one cipher
            // block. The bytes are arbitrary and cannot be decrypted.
            let word = |at: i64| (n + at).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64).to_le_bytes();
            out.push(1);
            out.extend((0..i64::from(ENCRYPTED_BYTES) / 8).flat_map(word));
            return;
        }
        match self.xtype {
            48 => out.push(n.rem_euclid(256) as u8),
            52 => out.extend((n.rem_euclid(65_536) - 32_768).to_le_bytes().iter().take(2)),
            56 | 122 => out.extend((n as i32).to_le_bytes()),
            127 | 60 => out.extend(n.to_le_bytes()),
            104 => out.push((n & 1) as u8),
            59 => out.extend((n as f32).to_le_bytes()),
            62 => out.extend((n as f64).to_le_bytes()),
            // The value rises by one minute per number. Number 0 is 2005-01-01, which is day 38351 since 1900-01-01.
            61 => {
                out.extend(((n.rem_euclid(1440) * 18_000) as u32).to_le_bytes());
                out.extend((38_351 + n.div_euclid(1440).clamp(-30_000, 2_000_000) as i32).to_le_bytes());
            }
            58 => {
                out.extend((n.rem_euclid(1440) as u16).to_le_bytes());
                out.extend((38_351 + n.div_euclid(1440).clamp(-30_000, 27_000) as i32).to_le_bytes().iter().take(2));
            }
            40 => out.extend((731_946 + n.clamp(-700_000, 2_900_000)).to_le_bytes().iter().take(3)),
            41 => self.push_time(n.rem_euclid(86_400), out),
            42 => {
                self.push_time(n.rem_euclid(86_400), out);
                push_day(n, out);
            }
            43 => {
                self.push_time(n.rem_euclid(86_400), out);
                push_day(n, out);
                out.extend(60i16.to_le_bytes());
            }
            106 | 108 => {
                let digits = u32::from(self.precision);
                let limit = 10u128.pow(digits.min(18));
                let magnitude = u128::from(n.unsigned_abs()) % limit;
                // A decimal cannot be negative zero, so zero always has the positive sign.
                out.push(u8::from(n >= 0 || magnitude == 0));
                out.extend(magnitude.to_le_bytes().iter().take(usize::from(self.length) - 1));
            }
            36 => {
                // The last six bytes contain the number, because SQL Server compares them first when it compares two
                // values of type uniqueidentifier.
                out.extend((n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
                out.extend([0x40, 0]);
                out.extend(n.to_be_bytes().iter().skip(2));
            }
            189 => out.extend(n.to_be_bytes()),
            173 => {
                let from = out.len();
                out.extend(n.to_be_bytes().iter().skip(8usize.saturating_sub(usize::from(self.length))));
                out.resize(from + usize::from(self.length), 0);
            }
            165 => {
                let length = if self.length == 0 { 8 } else { usize::from(self.length.min(8)) };
                out.extend(n.to_be_bytes().iter().skip(8 - length));
            }
            98 => {
                out.extend([56, 1]);
                out.extend((n as i32).to_le_bytes());
            }
            _ => self.push_digits(n, out),
        }
    }

    fn push_time(self, seconds: i64, out: &mut Vec<u8>) {
        let ticks = seconds * 10i64.pow(u32::from(self.scale));
        out.extend(ticks.to_le_bytes().iter().take(usize::from(time_bytes(self.scale))));
    }

    /// Appends the number in base 36, padded with zeros. Digits sort before letters in every collation.
    fn push_digits(self, n: i64, out: &mut Vec<u8>) {
        let unit = if self.is_unicode() { 2 } else { 1 };
        let room = if self.length == 0 || self.storage() == Storage::Text { 8000 } else { usize::from(self.length) };
        let width = (room / unit).min(8);
        let mut digits = [b'0'; 8];
        let mut rest = n.unsigned_abs();
        for digit in digits[..width].iter_mut().rev() {
            *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize];
            rest /= 36;
        }
        self.push_ascii(&digits[..width], out);
    }

    /// Appends an ASCII text in the encoding of this string type. If the type has a fixed length, the text is padded
    /// with blanks.
    pub fn push_ascii(self, text: &[u8], out: &mut Vec<u8>) {
        let from = out.len();
        if self.is_unicode() {
            out.extend(text.iter().flat_map(|&byte| [byte, 0]));
        } else {
            out.extend(text);
        }
        if let Storage::Fixed(size) = self.storage() {
            while out.len() < from + usize::from(size) {
                out.push(b' ');
                if self.is_unicode() {
                    out.push(0);
                }
            }
            out.truncate(from + usize::from(size));
        }
    }
}

const fn decimal_bytes(precision: u8) -> u16 {
    match precision {
        0..=9 => 5,
        10..=19 => 9,
        20..=28 => 13,
        _ => 17,
    }
}

pub(crate) const fn time_bytes(scale: u8) -> u16 {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}

/// Appends the day number of the date that is `seconds` seconds after 2005-01-01. Day 0 is 0001-01-01.
fn push_day(seconds: i64, out: &mut Vec<u8>) {
    let days = 731_946 + seconds.div_euclid(86_400).clamp(-700_000, 2_900_000);
    out.extend(days.to_le_bytes().iter().take(3));
}
