//! CHECK and FOREIGN KEY constraints, and identity columns.

use format::types::xtype;

/// Bits of sysschobjs.status in the row of a constraint. They are inferred from constraints with published definitions.
/// In the database ReportServer, the foreign key that is declared `NOT FOR REPLICATION` has 0x200, and the foreign key
/// that the published script disables has 0x100. All constraints that were added or enabled again WITH NOCHECK have
/// 0x400.
mod status {
    pub(super) const SYSTEM_NAMED: u32 = 0x4;
    pub(super) const DISABLED: u32 = 0x100;
    pub(super) const NOT_FOR_REPLICATION: u32 = 0x200;
    pub(super) const NOT_TRUSTED: u32 = 0x400;
    /// The bits that encode the ON UPDATE and ON DELETE actions.
    pub(super) const ACTIONS: u32 = 0xF000;
    /// These bits encode whether the constraint is schema bound, which session options were set when it was created,
    /// and whether it depends on the database's collation.
    pub(super) const TEXT: u32 = 0x1E_0000;
    pub(super) const KNOWN: u32 = SYSTEM_NAMED | DISABLED | NOT_FOR_REPLICATION | NOT_TRUSTED | ACTIONS | TEXT;
}

/// The kind of a constraint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConstraintKind {
    /// A condition on the row. Its text is stored as [`ExpressionKind::Check`](crate::ExpressionKind::Check).
    Check,
    /// A foreign key. The values of some columns must occur in a key of the referenced table.
    ForeignKey {
        /// The object ID of the referenced table.
        referenced_id: i32,
        /// Pairs of column IDs. Each pair is a referencing column and the column that it references.
        columns: Vec<(u32, u32)>,
    },
}

/// A CHECK or FOREIGN KEY constraint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constraint {
    /// The object ID of the constraint.
    pub id: i32,
    /// The name of the constraint.
    pub name: String,
    /// The object ID of the table that has the constraint.
    pub table_id: i32,
    /// The kind of the constraint, and what it requires.
    pub kind: ConstraintKind,
    /// The status bits in sysschobjs.
    pub status: u32,
}

impl Constraint {
    /// Whether the engine trusts that all rows obey the constraint. This is so if the constraint is enabled, is not
    /// declared NOT FOR REPLICATION, and was verified for all rows.
    pub fn is_trusted(&self) -> bool {
        self.status & (status::DISABLED | status::NOT_FOR_REPLICATION | status::NOT_TRUSTED) == 0
    }

    /// Whether the engine checks new rows against the constraint.
    pub fn is_enabled(&self) -> bool {
        self.status & status::DISABLED == 0
    }

    /// Whether the constraint also applies to replication agents.
    pub fn is_for_replication(&self) -> bool {
        self.status & status::NOT_FOR_REPLICATION == 0
    }

    /// Whether the status has bits of unknown meaning.
    pub fn has_unknown_status(&self) -> bool {
        self.status & !status::KNOWN != 0
    }

    /// The type of the constraint for messages: CHECK or FOREIGN KEY.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            ConstraintKind::Check => "CHECK",
            ConstraintKind::ForeignKey { .. } => "FOREIGN KEY",
        }
    }
}

/// An identity column and its high-water mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The object ID of the table.
    pub table_id: i32,
    /// The column ID.
    pub column_id: u32,
    /// The high-water mark; `None` if its stored form is unknown.
    pub mark: Option<IdentityMark>,
}

/// The content of syscolpars.idtval for an identity column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdentityMark {
    /// The last value that was generated. If no value was generated, this is the seed.
    pub current: i64,
    /// The increment.
    pub increment: i64,
    /// The seed, which is the first value.
    pub seed: i64,
    /// Whether a value was generated since the table was created or truncated.
    pub is_used: bool,
}

impl IdentityMark {
    /// Reads the current value, the increment, the seed, and a byte of flags. `None` if the bytes have another form.
    /// Each of the three values has the length of the column's type, but a decimal always has 20 bytes, whatever its
    /// precision ([`mark_decimal`]). The identity columns of Service Broker queues, which are declared as
    /// IDENTITY(0,1), have this form. So does every identity column that could be compared with the rows of its table.
    pub(crate) fn read(bytes: &[u8], kind: u8, precision: u8) -> Option<Self> {
        const UNUSED: u8 = 0x1;
        /// A flag that is set in databases created by SQL Server 2000.
        const OLD: u8 = 0x82;
        let width = match kind {
            xtype::TINYINT => 1,
            xtype::SMALLINT => 2,
            xtype::INT => 4,
            xtype::BIGINT => 8,
            xtype::DECIMAL | xtype::NUMERIC => MARK_DECIMAL_BYTES,
            _ => return None,
        };
        let (numbers, &[flags]) = bytes.split_at_checked(3 * width)? else { return None };
        if flags & !(UNUSED | OLD) != 0 {
            return None;
        }
        let mut numbers = numbers.chunks_exact(width).map(|bytes| match width {
            MARK_DECIMAL_BYTES => mark_decimal(bytes, precision),
            _ => Some(integer(bytes, kind != xtype::TINYINT)),
        });
        let (current, increment, seed) = (numbers.next()??, numbers.next()??, numbers.next()??);
        (increment != 0).then_some(Self { current, increment, seed, is_used: flags & UNUSED == 0 })
    }
}

/// The length of a decimal in an identity mark, in bytes.
const MARK_DECIMAL_BYTES: usize = 20;

/// Reads a decimal in an identity mark; `None` if the bytes have another form. The decimal consists of its length in
/// 4-byte words (5), its precision, its scale, its sign, and 16 bytes of digits. The scale is 0, because identity
/// columns have no fraction. 71 of 71 marks of decimal columns in real files have this form.
fn mark_decimal(bytes: &[u8], precision: u8) -> Option<i64> {
    const WORDS: u8 = 5;
    let (&[words, digits, scale], value) = bytes.split_first_chunk()?;
    ((words, digits, scale) == (WORDS, precision, 0)).then(|| decimal(value))?
}

/// Reads a decimal of scale 0 in the form in which rows store it. A sign byte, which is 1 for positive values, is
/// followed by 4 to 16 bytes of digits. `None` if the bytes have another form, or if the value needs more than 64 bits.
pub fn decimal(bytes: &[u8]) -> Option<i64> {
    let (&sign, digits) = bytes.split_first()?;
    let (low, high) = digits.split_at_checked(digits.len().min(8))?;
    if !matches!(digits.len(), 4 | 8 | 12 | 16) || high.iter().any(|byte| *byte != 0) {
        return None;
    }
    let value = i64::try_from(format::bytes::unsigned(low)).ok()?;
    match sign {
        0 => Some(-value),
        1 => Some(value),
        _ => None,
    }
}

/// Reads a little-endian integer of at most eight bytes.
pub fn integer(bytes: &[u8], signed: bool) -> i64 {
    let value = format::bytes::unsigned(bytes);
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    if signed { (value << unused).cast_signed() >> unused } else { value.cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_current_value_increment_and_seed() {
        // The first mark comes from a Service Broker queue before its first message. The second comes from the table
        // Employees in a teaching database.
        let mut queue = [0; 25];
        (queue[8], queue[24]) = (1, 1);
        let expected = IdentityMark { current: 0, increment: 1, seed: 0, is_used: false };
        assert_eq!(IdentityMark::read(&queue, xtype::BIGINT, 19), Some(expected));
        let bytes = [44, 1, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 100, 0, 0, 0, 0];
        let expected = IdentityMark { current: 300, increment: -2, seed: 100, is_used: true };
        assert_eq!(IdentityMark::read(&bytes, xtype::INT, 10), Some(expected));
    }

    #[test]
    fn marks_of_other_forms_are_not_guessed() {
        assert_eq!(IdentityMark::read(&[1, 1, 1], xtype::TINYINT, 3), None);
        assert_eq!(IdentityMark::read(&[1, 1, 1, 0x40], xtype::TINYINT, 3), None);
        assert_eq!(IdentityMark::read(&[1; 52], xtype::DECIMAL, 18), None);
    }

    #[test]
    fn a_mark_of_a_decimal_column_has_twenty_bytes_per_number() {
        let number = |value: u16, sign: u8| {
            let mut bytes = [0; 20];
            bytes[..6].copy_from_slice(&[5, 18, 0, sign, value.to_le_bytes()[0], value.to_le_bytes()[1]]);
            bytes
        };
        let mark = [number(300, 1).as_slice(), &number(2, 0), &number(100, 1), &[1]].concat();
        let expected = IdentityMark { current: 300, increment: -2, seed: 100, is_used: false };
        assert_eq!(IdentityMark::read(&mark, xtype::NUMERIC, 18), Some(expected));
        assert_eq!(IdentityMark::read(&mark, xtype::NUMERIC, 17), None, "of another precision");
        for (at, byte) in [(0, 4), (2, 1), (3, 2), (13, 1), (22, 9)] {
            let mut other = mark.clone();
            other[at] = byte;
            assert_eq!(IdentityMark::read(&other, xtype::NUMERIC, 18), None, "byte {at}");
        }
        assert_eq!(decimal(&[0, 5, 0, 0, 0]), Some(-5));
        assert_eq!(decimal(&[1, 0, 0, 0, 0, 0, 0, 0, 0x80]), None, "more than 64 bits");
    }

    #[test]
    fn a_constraint_is_trusted_only_if_no_bit_says_otherwise() {
        let with = |status| Constraint { id: 1, name: "c".into(), table_id: 2, kind: ConstraintKind::Check, status };
        assert!([0, 0x4, 0x4000, 0x9000, 0x12_0000].map(with).iter().all(Constraint::is_trusted));
        assert!(![0x400, 0x12_0400, 0x600, 0x700, 0x100].map(with).iter().any(Constraint::is_trusted));
        assert!(with(0x80_0000).has_unknown_status() && !with(0x12_F704).has_unknown_status());
    }
}
