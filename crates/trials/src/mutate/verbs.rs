//! The ways to change a field.

/// A way to change a field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verb {
    /// Set all bits to 0.
    Zeros,
    /// Set all bits to 1.
    Ones,
    /// Flip the lowest bit.
    FirstBit,
    /// Flip the bit in the middle.
    MiddleBit,
    /// Flip the highest bit.
    LastBit,
    /// Add one.
    Add,
    /// Subtract one.
    Subtract,
    /// Copy the value of another instance of the field.
    Other,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 8] = [
        Self::Zeros,
        Self::Ones,
        Self::FirstBit,
        Self::MiddleBit,
        Self::LastBit,
        Self::Add,
        Self::Subtract,
        Self::Other,
    ];

    /// The name of the verb, for human readers and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Ones => "ones",
            Self::FirstBit => "first bit",
            Self::MiddleBit => "middle bit",
            Self::LastBit => "last bit",
            Self::Add => "+1",
            Self::Subtract => "-1",
            Self::Other => "other",
        }
    }

    /// The changed value of `bytes`, which hold a little-endian value; `None` if the value does not change. `other` is
    /// the value of another instance of the field.
    pub fn apply(self, bytes: &[u8], other: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut changed = bytes.to_vec();
        let last = bytes.len().checked_sub(1)?;
        match self {
            Self::Zeros => changed.fill(0),
            Self::Ones => changed.fill(0xFF),
            Self::FirstBit => *changed.first_mut()? ^= 1,
            Self::MiddleBit if last == 0 => *changed.first_mut()? ^= 0x10,
            Self::MiddleBit => *changed.get_mut(bytes.len() / 2)? ^= 1,
            Self::LastBit => *changed.get_mut(last)? ^= 0x80,
            Self::Add => step(&mut changed, |byte| byte.overflowing_add(1)),
            Self::Subtract => step(&mut changed, |byte| byte.overflowing_sub(1)),
            Self::Other => {
                let other = other.filter(|other| other.len() == bytes.len())?;
                changed.copy_from_slice(other);
            }
        }
        (changed != bytes).then_some(changed)
    }
}

/// Adds or subtracts one. The carry moves from each byte to the next.
fn step(bytes: &mut [u8], one: impl Fn(u8) -> (u8, bool)) {
    for byte in bytes {
        let (value, carries) = one(*byte);
        *byte = value;
        if !carries {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_there_already_is_no_damage() {
        assert_eq!(Verb::Zeros.apply(&[0, 0], None), None);
        assert_eq!(Verb::Ones.apply(&[0xFF], None), None);
        assert_eq!(Verb::Other.apply(&[1, 2], Some(&[1, 2])), None);
        assert_eq!(Verb::Other.apply(&[1, 2], Some(&[1, 2, 3])), None);
        assert_eq!(Verb::Other.apply(&[1, 2], None), None);
    }

    #[test]
    fn steps_carry_and_bits_lie_where_their_names_say() {
        assert_eq!(Verb::Add.apply(&[0xFF, 0], None), Some(vec![0, 1]));
        assert_eq!(Verb::Subtract.apply(&[0, 0, 1], None), Some(vec![0xFF, 0xFF, 0]));
        assert_eq!(Verb::FirstBit.apply(&[0, 0], None), Some(vec![1, 0]));
        assert_eq!(Verb::MiddleBit.apply(&[0, 0], None), Some(vec![0, 1]));
        assert_eq!(Verb::LastBit.apply(&[0, 0], None), Some(vec![0, 0x80]));
        assert_eq!(Verb::Other.apply(&[1], Some(&[9])), Some(vec![9]));
    }
}
