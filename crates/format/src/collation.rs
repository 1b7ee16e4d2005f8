//! Compares strings by the rules of their collation, as far as these rules are proven
//! (docs/format/collations.md#comparing).
//!
//! If the rules do not prove the result, the comparison stays undecided. An undecided comparison only adds a line under
//! "not verified", but a wrong result would make the check report an error that does not exist.

mod ascii;
mod by_weights;
mod certain;
mod code_pages;
mod comparison;
mod exceptions;
mod first_difference;
mod locales;
mod name;
mod sort_52;
mod text;
mod weights;

pub use ascii::{CharClass, classify, equality_unit};
pub(crate) use certain::image_of;
pub use code_pages::{UTF_8, append_char, append_utf16, code_page, has_one_byte_per_character};
pub use comparison::{Comparison, compare, is_same_character, letters_of, may_join_previous};
pub(crate) use first_difference::Beginnings;
pub use first_difference::compare_at_first_difference;

/// The ID of a collation, as the catalog stores it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
pub struct CollationId(pub u32);

impl CollationId {
    /// Whether capital and small letters are equal.
    pub fn ignores_case(self) -> bool {
        self.0 & 0x1000 != 0
    }

    /// Whether the collation is a BIN2 collation, which compares nchar by UTF-16 code unit and char by byte.
    pub fn is_bin2(self) -> bool {
        self.0 & 0x800 != 0
    }

    /// Whether the collation is a BIN collation, which compares the first character by code unit and all others by
    /// byte.
    pub fn is_bin(self) -> bool {
        self.0 & 0x10000 != 0
    }

    /// The index of the locale. The index of a UTF-8 collation matches no known locale.
    pub fn locale(self) -> u8 {
        self.0 as u8
    }

    /// The family of the collation: all collations, UTF-8 or not, with the same words at the start of their names.
    pub fn family(self) -> u8 {
        self.locale() & 0x7F
    }

    /// Whether char and varchar are UTF-8 (from SQL Server 2019 on).
    pub fn is_utf8(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// The generation of the collation: 0 if its name contains no number, 1 for _90, 2 for _100, 3 for _140, 4 for
    /// _160.
    pub(crate) fn generation(self) -> u32 {
        self.0 >> 17 & 7
    }

    /// Whether letters with and without accents are equal.
    fn ignores_accents(self) -> bool {
        self.0 & 0x2000 != 0
    }

    /// The SQL sort order of char and varchar; 0 in Windows collations.
    fn sort_id(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Whether the id has bits whose meaning is unknown (docs/format/collations.md#ids).
    fn has_unknown_bits(self) -> bool {
        self.0 & 0x00F0_0400 != 0
    }

    /// Whether the collation has a SQL sort order for which nothing is certain. Such orders are: binary orders without
    /// the binary flag (30, 40, 50); orders that prefer capitals (33, 43, 53, 56, 58, 183 to 186); version 1 (49);
    /// Scandinavian (59, 60) and Greek orders (120 to 122), which may move letters; EBCDIC orders, which sort digits
    /// after letters (210 to 217, and two later orders of which only the names are known).
    fn is_doubtful(self) -> bool {
        let is_binary = self.is_bin() || self.is_bin2();
        !is_binary
            && matches!(self.0 >> 24, 30 | 33 | 40 | 43 | 49 | 50 | 53 | 56 | 58..=60 | 120..=122 | 183..=186 | 210..)
    }
}

/// The form in which the compared strings are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// char, varchar: bytes of a code page. SQL collations have a separate order for these types, a string sort in
    /// which no character is ignored; Windows collations order them like Unicode strings.
    Ansi,
    /// nchar, nvarchar: UTF-16 code units.
    Unicode,
}

impl Encoding {
    /// The number of bytes in a code unit. A character above U+FFFF has two code units.
    fn width(self) -> usize {
        match self {
            Self::Ansi => 1,
            Self::Unicode => 2,
        }
    }

    /// Returns the index of the character that contains the byte at index `byte`. Also returns a mask of the bits that
    /// are 0 in any eight bytes of ASCII text.
    fn place(self, byte: usize) -> (usize, u64) {
        match self {
            Self::Ansi => (byte, 0x8080_8080_8080_8080),
            Self::Unicode => (byte / 2, 0xFF80_FF80_FF80_FF80),
        }
    }
}

#[cfg(test)]
mod tests;
