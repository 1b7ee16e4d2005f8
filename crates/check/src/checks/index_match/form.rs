//! The form in which values are hashed when table and index store them differently, for example because only one of the
//! two is compressed.

use catalog::RowsetColumn;
use format::compressed::vardecimal;
use format::types::{TypeInfo, fixed_length, xtype};
use sums::hash::Hasher;

/// The part of a value that is hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Normalization {
    /// All bytes.
    AsStored,
    /// The bytes of the value without this padding at its end. Compressed rows, and tables created with ANSI_PADDING
    /// OFF, do not store the padding.
    Trimmed(&'static [u8]),
    /// Sign and magnitude of a decimal; zero always counts as positive.
    Decimal,
    /// Like `Decimal`, for a decimal stored as a variable-length column (vardecimal, SQL Server 2005 SP2).
    Vardecimal(TypeInfo),
}

impl Normalization {
    /// Returns the form in which the values of a column are hashed if the rowsets of the table and of the index store
    /// these values differently.
    pub(crate) fn of(column: &RowsetColumn) -> Self {
        if column.is_vardecimal() { Self::Vardecimal(column.info) } else { Self::of_type(column.info) }
    }

    /// The form for values of a type, given in their uncompressed form.
    pub(crate) fn of_type(info: TypeInfo) -> Self {
        match info.xtype {
            xtype::CHAR => Self::Trimmed(b" "),
            xtype::NCHAR => Self::Trimmed(b" \0"),
            xtype::BINARY => Self::Trimmed(&[0]),
            xtype::DECIMAL | xtype::NUMERIC => Self::Decimal,
            _ => Self::AsStored,
        }
    }

    /// Whether all bytes of this value are hashed.
    #[inline(always)]
    pub(super) fn is_as_stored(self, bytes: &[u8]) -> bool {
        match self {
            Self::AsStored => true,
            Self::Trimmed(&[padding]) => bytes.last() != Some(&padding),
            Self::Trimmed(&[first, second]) => bytes.last_chunk() != Some(&[first, second]),
            Self::Trimmed(_) | Self::Decimal | Self::Vardecimal(_) => false,
        }
    }

    /// Adds a value to the hash; `None` if the value cannot be decoded.
    pub(crate) fn add(self, hasher: &mut Hasher<'_>, bytes: &[u8]) -> Option<()> {
        match self {
            Self::AsStored => hasher.add_bytes(bytes),
            Self::Trimmed(padding) => hasher.add_bytes(trimmed(bytes, padding)),
            Self::Decimal => match bytes.split_first() {
                Some((_, magnitude)) if magnitude.iter().all(|byte| *byte == 0) => add_zero(hasher, bytes.len()),
                _ => hasher.add_bytes(bytes),
            },
            Self::Vardecimal(info) => {
                let value = vardecimal::decode(bytes, info).ok()?;
                let length = usize::from(fixed_length(info)?);
                let mut decimal = [0; 17];
                decimal[0] = u8::from(!value.negative);
                decimal[1..].copy_from_slice(&value.magnitude.to_le_bytes());
                hasher.add_bytes(decimal.get(..length)?);
            }
        }
        Some(())
    }
}

/// A value without its padding, which is a repeated unit of one or two bytes.
#[inline]
fn trimmed<'a>(value: &'a [u8], padding: &[u8]) -> &'a [u8] {
    let end = match *padding {
        [byte] => value.iter().rposition(|last| *last != byte).map_or(0, |last| last + 1),
        [first, second] => {
            // Pairs of bytes are counted from the end of the value; an odd first byte is kept.
            let (rest, pairs) = value.as_rchunks();
            match pairs.iter().rposition(|last| *last != [first, second]) {
                Some(last) => rest.len() + 2 * (last + 1),
                None => rest.len(),
            }
        }
        _ => value.len(),
    };
    value.get(..end).unwrap_or(value)
}

fn add_zero(hasher: &mut Hasher<'_>, length: usize) {
    let mut zero = [0; 17];
    zero[0] = 1;
    hasher.add_bytes(zero.get(..length).unwrap_or(&zero));
}

#[cfg(test)]
mod tests {
    use sums::hash::FactHash;

    use super::*;

    fn hash(form: Normalization, bytes: &[u8]) -> (u64, u64) {
        let keyed = FactHash::new(Some(1));
        let mut hasher = keyed.hasher();
        form.add(&mut hasher, bytes).unwrap();
        hasher.finish()
    }

    #[test]
    fn values_that_are_equal_hash_alike_however_they_are_stored() {
        let of = |kind: u8| Normalization::of_type(TypeInfo { xtype: kind, length: 6, precision: 9, scale: 2 });
        assert_eq!(hash(of(xtype::CHAR), b"ab    "), hash(of(xtype::CHAR), b"ab"));
        assert_ne!(hash(of(xtype::CHAR), b"ab    "), hash(of(xtype::CHAR), b" ab"));
        assert_eq!(hash(of(xtype::NCHAR), b"a\0 \0 \0"), hash(of(xtype::NCHAR), b"a\0"));
        assert_eq!(hash(of(xtype::NCHAR), b"\0 \0"), hash(of(xtype::VARBINARY), b"\0"), "pairs from the end");
        assert_ne!(hash(of(xtype::NCHAR), b"a \0a"), hash(of(xtype::NCHAR), b"a"));
        assert_eq!(hash(of(xtype::CHAR), b"   "), hash(of(xtype::CHAR), b""));
        assert_eq!(hash(of(xtype::BINARY), &[1, 0, 0]), hash(of(xtype::BINARY), &[1]));
        assert_ne!(hash(of(xtype::VARBINARY), &[1, 0]), hash(of(xtype::VARBINARY), &[1]));
        assert_eq!(hash(of(xtype::DECIMAL), &[0; 5]), hash(of(xtype::DECIMAL), &[1, 0, 0, 0, 0]), "no negative zero");
        let info = TypeInfo { xtype: xtype::DECIMAL, length: 5, precision: 9, scale: 2 };
        let vardecimal = Normalization::Vardecimal(info);
        assert_eq!(hash(vardecimal, &[0xC0, 0x19]), hash(of(xtype::DECIMAL), &[1, 100, 0, 0, 0]));
        assert_eq!(hash(vardecimal, &[]), hash(of(xtype::DECIMAL), &[1, 0, 0, 0, 0]));
        assert!(vardecimal.add(&mut FactHash::new(Some(1)).hasher(), &[0xC0, 0xFF, 0xFF]).is_none());
    }
}
