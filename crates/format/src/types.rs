//! Column types in the form that the catalog stores: the xtype, and the packed type information of sysrscols
//! (docs/format/types-and-keys.md#stored-values).

/// The numbers of the xtypes.
pub mod xtype {
    #![allow(missing_docs, reason = "the names are SQL Server's own type names")]
    pub const IMAGE: u8 = 34;
    pub const TEXT: u8 = 35;
    pub const UNIQUEIDENTIFIER: u8 = 36;
    pub const DATE: u8 = 40;
    pub const TIME: u8 = 41;
    pub const DATETIME2: u8 = 42;
    pub const DATETIMEOFFSET: u8 = 43;
    pub const TINYINT: u8 = 48;
    pub const SMALLINT: u8 = 52;
    pub const INT: u8 = 56;
    pub const SMALLDATETIME: u8 = 58;
    pub const REAL: u8 = 59;
    pub const MONEY: u8 = 60;
    pub const DATETIME: u8 = 61;
    pub const FLOAT: u8 = 62;
    pub const SQL_VARIANT: u8 = 98;
    pub const NTEXT: u8 = 99;
    pub const BIT: u8 = 104;
    pub const DECIMAL: u8 = 106;
    pub const NUMERIC: u8 = 108;
    pub const SMALLMONEY: u8 = 122;
    pub const BIGINT: u8 = 127;
    pub const VARBINARY: u8 = 165;
    pub const VARCHAR: u8 = 167;
    pub const BINARY: u8 = 173;
    pub const CHAR: u8 = 175;
    pub const TIMESTAMP: u8 = 189;
    pub const NVARCHAR: u8 = 231;
    pub const NCHAR: u8 = 239;
    pub const CLR: u8 = 240;
    pub const XML: u8 = 241;
    pub const JSON: u8 = 244;
}

/// Type IDs (syscolpars.utype) of types that share an xtype with others.
pub mod user_type {
    /// A hierarchyid, which is a node of a hierarchy; xtype 240.
    pub const HIERARCHYID: i32 = 128;
    /// A shape in the plane; xtype 240.
    pub const GEOMETRY: i32 = 129;
    /// A shape on the globe; xtype 240.
    pub const GEOGRAPHY: i32 = 130;
    /// A vector of numbers; xtype 165.
    pub const VECTOR: i32 = 255;
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
pub struct TypeInfo {
    /// The number of the type; see [`xtype`].
    pub xtype: u8,
    /// The length in bytes; 0 for the (max) types.
    pub length: u16,
    /// The precision of a decimal.
    pub precision: u8,
    /// The scale of a decimal or time type.
    pub scale: u8,
}

impl TypeInfo {
    /// Unpacks sysrscols.ti. Byte 0 is the xtype. For strings and binary, bits 8-23 are the length; for decimals, byte 1 is the
    /// precision and byte 2 the scale; for time types, byte 1 is the scale.
    ///
    /// ```
    /// use format::types::{TypeInfo, xtype};
    /// assert_eq!(TypeInfo::from_ti(0x0064_00E7).length, 0x6400);
    /// let decimal = TypeInfo::from_ti(0x0002_136A);
    /// assert_eq!((decimal.precision, decimal.scale, decimal.length), (19, 2, 9));
    /// assert_eq!(TypeInfo::from_ti(u32::from(xtype::INT)).length, 4);
    /// ```
    pub fn from_ti(ti: u32) -> Self {
        let [kind, first, second, _] = ti.to_le_bytes();
        let mut info = Self { xtype: kind, length: 0, precision: 0, scale: 0 };
        match kind {
            xtype::DECIMAL | xtype::NUMERIC => (info.precision, info.scale) = (first, second),
            xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => info.scale = first,
            _ => info.length = (ti >> 8) as u16,
        }
        info.length = fixed_length(info).unwrap_or(info.length);
        info
    }

    /// Whether a column can be declared with this precision and scale. A damaged catalog may contain an impossible
    /// precision or scale.
    pub fn is_possible(self) -> bool {
        match self.xtype {
            xtype::DECIMAL | xtype::NUMERIC => (1..=38).contains(&self.precision) && self.scale <= self.precision,
            xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => self.scale <= 7,
            _ => true,
        }
    }

    /// The type's name.
    pub fn name(self) -> &'static str {
        match self.xtype {
            xtype::IMAGE => "image",
            xtype::TEXT => "text",
            xtype::UNIQUEIDENTIFIER => "uniqueidentifier",
            xtype::DATE => "date",
            xtype::TIME => "time",
            xtype::DATETIME2 => "datetime2",
            xtype::DATETIMEOFFSET => "datetimeoffset",
            xtype::TINYINT => "tinyint",
            xtype::SMALLINT => "smallint",
            xtype::INT => "int",
            xtype::SMALLDATETIME => "smalldatetime",
            xtype::REAL => "real",
            xtype::MONEY => "money",
            xtype::DATETIME => "datetime",
            xtype::FLOAT => "float",
            xtype::SQL_VARIANT => "sql_variant",
            xtype::NTEXT => "ntext",
            xtype::BIT => "bit",
            xtype::DECIMAL => "decimal",
            xtype::NUMERIC => "numeric",
            xtype::SMALLMONEY => "smallmoney",
            xtype::BIGINT => "bigint",
            xtype::VARBINARY => "varbinary",
            xtype::VARCHAR => "varchar",
            xtype::BINARY => "binary",
            xtype::CHAR => "char",
            xtype::TIMESTAMP => "timestamp",
            xtype::NVARCHAR => "nvarchar",
            xtype::NCHAR => "nchar",
            xtype::CLR => "CLR type",
            xtype::XML => "xml",
            xtype::JSON => "json",
            _ => "unknown type",
        }
    }

    /// The type in the form of a table definition: `nvarchar(40)`, `decimal(9,2)`.
    ///
    /// ```
    /// use format::types::TypeInfo;
    /// assert_eq!(TypeInfo::from_ti(0x0050_00E7 >> 8 << 8 | 231).declaration(), "nvarchar(10240)");
    /// assert_eq!(TypeInfo::from_ti(0x0000_00A7).declaration(), "varchar(max)");
    /// ```
    pub fn declaration(self) -> String {
        let name = self.name();
        match self.xtype {
            xtype::DECIMAL | xtype::NUMERIC => format!("{name}({},{})", self.precision, self.scale),
            xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => format!("{name}({})", self.scale),
            xtype::NVARCHAR | xtype::VARCHAR | xtype::VARBINARY if matches!(self.length, 0 | 0xFFFF) => {
                format!("{name}(max)")
            }
            xtype::NVARCHAR | xtype::NCHAR => format!("{name}({})", self.length / 2),
            xtype::VARCHAR | xtype::CHAR | xtype::VARBINARY | xtype::BINARY => format!("{name}({})", self.length),
            _ => name.to_owned(),
        }
    }
}

/// The length in bytes of the values of a fixed-length type; `None` for types with a declared length.
pub fn fixed_length(info: TypeInfo) -> Option<u16> {
    let time_bytes = match info.scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    };
    Some(match info.xtype {
        xtype::TINYINT | xtype::BIT => 1,
        xtype::SMALLINT => 2,
        xtype::DATE => 3,
        xtype::INT | xtype::SMALLDATETIME | xtype::REAL | xtype::SMALLMONEY => 4,
        xtype::BIGINT | xtype::MONEY | xtype::DATETIME | xtype::FLOAT | xtype::TIMESTAMP => 8,
        xtype::UNIQUEIDENTIFIER | xtype::TEXT | xtype::NTEXT | xtype::IMAGE => 16,
        xtype::TIME => time_bytes,
        xtype::DATETIME2 => time_bytes + 3,
        xtype::DATETIMEOFFSET => time_bytes + 5,
        xtype::DECIMAL | xtype::NUMERIC => match info.precision {
            0..=9 => 5,
            10..=19 => 9,
            20..=28 => 13,
            _ => 17,
        },
        _ => return None,
    })
}

/// Whether the type is decimal or numeric.
pub fn is_decimal(info: TypeInfo) -> bool {
    matches!(info.xtype, xtype::DECIMAL | xtype::NUMERIC)
}

/// Ten to the power of a precision or scale; `None` above 38, because the result does not fit into a `u128`.
#[inline]
pub fn power_of_ten(exponent: u8) -> Option<u128> {
    #[expect(clippy::indexing_slicing, reason = "a constant, one by one")]
    const POWERS: [u128; 39] = {
        let mut powers = [1; 39];
        let mut at = 1;
        while at < powers.len() {
            powers[at] = powers[at - 1] * 10;
            at += 1;
        }
        powers
    };
    POWERS.get(usize::from(exponent)).copied()
}

/// The number of days from 0001-01-01 to 1900-01-01.
const DAYS_TO_1900: i32 = 693_595;

/// The year, month and day of a number of days since 0001-01-01, in the proleptic Gregorian calendar.
pub fn civil(days: i32) -> (i32, u32, u32) {
    // Counts the days from 0000-03-01, so that a leap day is the last day of a year and the calendar repeats every 400
    // years.
    let shifted = i64::from(days) + 306;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month as u32, day as u32)
}

/// A datetime as SQL Server prints it: `2018-01-15 08:52:32.137`. `ticks` is the time of day in 1/300 seconds, `days` are the
/// days since 1900-01-01. `None` outside the range of the type, or for the zero value.
///
/// ```
/// assert_eq!(format::types::datetime_text(9_585_641, 43_113).as_deref(), Some("2018-01-15 08:52:32.137"));
/// ```
pub fn datetime_text(ticks: u32, days: i32) -> Option<String> {
    if !(-53_690..=2_958_463).contains(&days) || ticks >= 25_920_000 || (days, ticks) == (0, 0) {
        return None;
    }
    let (year, month, day) = civil(days + DAYS_TO_1900);
    let millis = (u64::from(ticks) * 10 + 1) / 3;
    let (seconds, millis) = (millis / 1000, millis % 1000);
    Some(format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{millis:03}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    ))
}

/// A GUID as SQL Server prints it: all digits are upper case, and the bytes of the first three groups, which are stored
/// little-endian, are reversed.
pub fn guid_text(bytes: [u8; 16]) -> String {
    let b = bytes;
    format!(
        "{:02X}{:02X}{:02X}{:02X}-{:02X}{:02X}-{:02X}{:02X}-{:02X}{:02X}-{:02X}{:02X}{:02X}{:02X}{:02X}{:02X}",
        b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_corners() {
        assert_eq!(datetime_text(0, 1).as_deref(), Some("1900-01-02 00:00:00.000"));
        assert_eq!(datetime_text(0, -53_690).as_deref(), Some("1753-01-01 00:00:00.000"));
        assert_eq!(datetime_text(25_919_999, 2_958_463).as_deref(), Some("9999-12-31 23:59:59.997"));
        assert_eq!(datetime_text(0, 36_583).as_deref(), Some("2000-02-29 00:00:00.000"));
        assert_eq!(datetime_text(25_920_000, 1), None);
    }
}
