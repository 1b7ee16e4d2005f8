//! The offsets of fields, for the readers of this crate. They are looked up in the tables at compile time.
//!
//! It is a compile error if the table does not have the name or the width, or if the kind of place is not the one that
//! the function expects. All calls are in constants, so no search happens at run time.

use super::{Field, Place, Structure, Width};

/// The offset in `structure` of the field `name`, which must be `bytes` bytes wide. Use it only in constants: a name or a
/// width that the table does not have is then a compile error.
///
/// ```
/// use format::fields::{Structure, offset};
/// const LSN: usize = offset(Structure::PageHeader, "m_lsn", 10);
/// assert_eq!(LSN, 40);
/// ```
#[expect(clippy::panic, reason = "stops the compilation")]
pub const fn offset(structure: Structure, name: &str, bytes: u32) -> usize {
    let Place::At(at) = field(structure, name, bytes).place else { panic!("the field has no fixed offset") };
    at as usize
}

/// The offset in `structure` of the first repetition of the field `name`, and the distance from one repetition to the
/// next.
#[expect(clippy::panic, reason = "stops the compilation")]
pub(crate) const fn series(structure: Structure, name: &str, bytes: u32) -> (usize, usize) {
    let Place::Each { first, stride, .. } = field(structure, name, bytes).place else { panic!("not repeated") };
    (first as usize, stride as usize)
}

/// The number, counted from 0, of the variable column of `structure` that contains the field `name`. The field must be
/// `bytes` bytes wide; pass 0 if its width varies.
#[expect(clippy::panic, reason = "stops the compilation")]
pub(crate) const fn column(structure: Structure, name: &str, bytes: u32) -> u16 {
    let Place::Column(position) = field(structure, name, bytes).place else { panic!("not a column") };
    position
}

#[expect(clippy::panic, reason = "stops the compilation")]
const fn field(structure: Structure, name: &str, bytes: u32) -> &'static Field {
    let mut fields = structure.fields();
    while let [field, rest @ ..] = fields {
        if is_same(field.name.as_bytes(), name.as_bytes()) {
            let width = match field.width {
                Width::Bytes(bytes) => bytes as u32,
                Width::Bits(bits) => bits / 8,
                Width::Varies => 0,
            };
            assert!(width == bytes, "the field has another width");
            return field;
        }
        fields = rest;
    }
    panic!("the structure has no field of this name")
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([a, rest_of_one @ ..], [b, rest_of_other @ ..]) = (one, other)
        && *a == *b
    {
        (one, other) = (rest_of_one, rest_of_other);
    }
    one.is_empty() && other.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_tables() {
        assert_eq!(offset(Structure::PageHeader, "m_lsn", 10), 40);
        assert_eq!(offset(Structure::GamBitmap, "gam", 7988), 4);
        assert_eq!(series(Structure::IamHeader, "singlePage", 6), (46, 6));
        assert_eq!(column(Structure::FileHeader, "LogicalName", 0), 27);
    }

    #[test]
    #[should_panic(expected = "no field of this name")]
    fn a_name_must_be_whole() {
        offset(Structure::PageHeader, "m_ls", 10);
    }

    #[test]
    #[should_panic(expected = "another width")]
    fn a_width_must_be_that_of_the_table() {
        offset(Structure::PageHeader, "m_lsn", 8);
    }
}
