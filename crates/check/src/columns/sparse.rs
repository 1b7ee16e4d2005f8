//! The vector of a row's sparse values (format-rare.md 3).

use format::bytes::u16_at;

/// First word of a sparse vector.
const SPARSE: u16 = 5;

/// A rule that a vector breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// The rule.
    pub(super) test: &'static str,
    pub(super) value: i64,
    pub(super) against: i64,
}

/// Whether a complex column begins as a sparse vector does.
pub(super) fn is_vector(bytes: &[u8]) -> bool {
    u16_at(bytes, 0) == Some(SPARSE)
}

/// The first rule that a vector breaks: ids ascend, offsets ascend, and the last is the vector's length.
pub(super) fn fault(bytes: &[u8]) -> Option<Fault> {
    let fault = |test, value: usize, against: usize| Some(Fault { test, value: value as i64, against: against as i64 });
    let count = usize::from(u16_at(bytes, 2).unwrap_or_default());
    let mut end = 4 + 4 * count;
    if bytes.len() < end {
        return fault("sparse vector: columns <= length", end, bytes.len());
    }
    let word = |at: usize| usize::from(u16_at(bytes, at).unwrap_or_default());
    for column in 0..count {
        if column > 0 && word(4 + 2 * column) <= word(2 + 2 * column) {
            return fault("sparse vector: column IDs ascend", word(4 + 2 * column), word(2 + 2 * column));
        }
        let offset = word(4 + 2 * count + 2 * column);
        if offset < end {
            return fault("sparse vector: offsets ascend", offset, end);
        }
        end = offset;
    }
    if end != bytes.len() { fault("sparse vector: last offset == length", end, bytes.len()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B = 3 and E = 1234 of the reference's example.
    const VECTOR: [u8; 20] = [5, 0, 2, 0, 3, 0, 6, 0, 0x10, 0, 0x14, 0, 3, 0, 0, 0, 0xD2, 4, 0, 0];

    #[test]
    fn the_published_vector_is_sound() {
        assert!(is_vector(&VECTOR));
        assert_eq!(fault(&VECTOR), None);
    }

    #[test]
    fn each_rule_is_checked() {
        let with = |at: usize, byte: u8| {
            let mut bytes = VECTOR;
            bytes[at] = byte;
            fault(&bytes).map(|fault| fault.test)
        };
        assert_eq!(with(6, 3), Some("sparse vector: column IDs ascend"));
        assert_eq!(with(8, 0x15), Some("sparse vector: offsets ascend"));
        assert_eq!(with(8, 0x0B), Some("sparse vector: offsets ascend"));
        assert_eq!(with(10, 0x13), Some("sparse vector: last offset == length"));
        assert_eq!(with(2, 5), Some("sparse vector: columns <= length"));
        assert_eq!(fault(&[5, 0]).map(|fault| fault.test), Some("sparse vector: columns <= length"));
    }
}
