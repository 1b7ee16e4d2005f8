//! SQL Server's typing rules: the precedence of types, and the precision and scale of decimal results (Microsoft, "Data
//! type precedence", "Precision, scale, and length", "int, bigint, smallint, and tinyint").

use format::collation::CollationId;
use format::types::{TypeInfo, fixed_length, xtype};

use crate::Unsupported;
use crate::ast::BinaryOp;

/// The properties of a column that the compiler needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ColumnType {
    /// The type of the column.
    pub info: TypeInfo,
    /// The collation of the column; 0 for types without a collation.
    pub collation: CollationId,
    /// Whether the column may be NULL.
    pub nullable: bool,
}

/// The collation label of an operand. The weakest label comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Label {
    /// The label of a literal, which takes on the collation of the other operand.
    #[default]
    Coercible,
    /// The label of a column.
    Implicit,
    /// The label of an expression with a COLLATE clause.
    Explicit,
}

/// The type of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ty {
    pub(crate) info: TypeInfo,
    pub(crate) collation: CollationId,
    pub(crate) label: Label,
    pub(crate) nullable: bool,
    /// The number of digits if the expression is an integer constant; otherwise 0. If the constant is combined with a
    /// decimal, it becomes a numeric with exactly this number of digits.
    pub(crate) digits: u8,
}

impl Ty {
    pub(crate) fn of(kind: u8) -> Self {
        Self::with(TypeInfo { xtype: kind, ..TypeInfo::default() })
    }

    pub(crate) fn with(mut info: TypeInfo) -> Self {
        info.length = fixed_length(info).unwrap_or(info.length);
        Self { info, nullable: true, ..Self::default() }
    }

    pub(crate) fn decimal(precision: u8, scale: u8) -> Self {
        Self::with(TypeInfo { xtype: xtype::NUMERIC, precision, scale, length: 0 })
    }

    /// A string or binary type with a length in bytes. A length of 0 means (max).
    pub(crate) fn bytes(kind: u8, length: u16) -> Self {
        Self::with(TypeInfo { xtype: kind, length, ..TypeInfo::default() })
    }

    /// The type of the constant NULL.
    pub(crate) fn null() -> Self {
        Self::of(0)
    }

    pub(crate) fn is_null(&self) -> bool {
        self.info.xtype == 0
    }

    pub(crate) fn kind(&self) -> u8 {
        self.info.xtype
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.kind(), xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR)
    }

    pub(crate) fn is_unicode(&self) -> bool {
        matches!(self.kind(), xtype::NCHAR | xtype::NVARCHAR)
    }

    pub(crate) fn is_integer(&self) -> bool {
        matches!(self.kind(), xtype::TINYINT | xtype::SMALLINT | xtype::INT | xtype::BIGINT)
    }

    pub(crate) fn is_money(&self) -> bool {
        matches!(self.kind(), xtype::MONEY | xtype::SMALLMONEY)
    }

    pub(crate) fn is_decimal(&self) -> bool {
        matches!(self.kind(), xtype::DECIMAL | xtype::NUMERIC)
    }

    pub(crate) fn is_float(&self) -> bool {
        matches!(self.kind(), xtype::FLOAT | xtype::REAL)
    }

    pub(crate) fn is_number(&self) -> bool {
        self.is_integer() || self.is_money() || self.is_decimal() || self.is_float() || self.kind() == xtype::BIT
    }

    pub(crate) fn is_moment(&self) -> bool {
        (22..=27).contains(&rank(self.kind()))
    }

    pub(crate) fn is_max(&self) -> bool {
        matches!(self.info.length, 0 | 0xFFFF)
    }

    /// The maximum number of characters of a string type; `None` for (max).
    pub(crate) fn characters(&self) -> Option<u16> {
        (!self.is_max()).then_some(if self.is_unicode() { self.info.length / 2 } else { self.info.length })
    }

    /// The precision and scale of the decimal to which a number of this type is converted.
    pub(crate) fn precision(&self) -> (u8, u8) {
        match self.kind() {
            xtype::BIT => (1, 0),
            _ if self.digits > 0 => (self.digits, 0),
            xtype::TINYINT => (3, 0),
            xtype::SMALLINT => (5, 0),
            xtype::INT => (10, 0),
            xtype::BIGINT => (19, 0),
            xtype::SMALLMONEY => (10, 4),
            xtype::MONEY => (19, 4),
            _ => (self.info.precision, self.info.scale),
        }
    }

    /// The variable-length type with the same character width and at most `characters` characters; (max) for `None`.
    pub(crate) fn varying(mut self, characters: Option<u16>) -> Self {
        let unicode = self.is_unicode();
        self.info.xtype = if unicode { xtype::NVARCHAR } else { xtype::VARCHAR };
        self.info.length = characters.map_or(0, |n| if unicode { n.min(4000) * 2 } else { n.min(8000) });
        self.nullable = true;
        self
    }
}

/// The rank of a type in Microsoft's list of data type precedence, where a higher number means higher precedence. The
/// rank is 0 for types that are not in the list or are not supported here.
pub(crate) fn rank(kind: u8) -> u8 {
    match kind {
        xtype::BINARY => 1,
        xtype::VARBINARY => 2,
        xtype::CHAR => 3,
        xtype::VARCHAR => 4,
        xtype::NCHAR => 5,
        xtype::NVARCHAR => 6,
        xtype::UNIQUEIDENTIFIER => 7,
        xtype::TIMESTAMP => 8,
        xtype::BIT => 12,
        xtype::TINYINT => 13,
        xtype::SMALLINT => 14,
        xtype::INT => 15,
        xtype::BIGINT => 16,
        xtype::SMALLMONEY => 17,
        xtype::MONEY => 18,
        xtype::DECIMAL | xtype::NUMERIC => 19,
        xtype::REAL => 20,
        xtype::FLOAT => 21,
        xtype::TIME => 22,
        xtype::DATE => 23,
        xtype::SMALLDATETIME => 24,
        xtype::DATETIME => 25,
        xtype::DATETIME2 => 26,
        xtype::DATETIMEOFFSET => 27,
        _ => 0,
    }
}

fn mixed(what: &str, a: &Ty, b: &Ty) -> Unsupported {
    Unsupported { what: format!("{what} of {} and {}", a.info.name(), b.info.name()) }
}

/// The collation of an operation on two strings; an error if their collations conflict.
pub(crate) fn collate(a: &Ty, b: &Ty) -> Result<(CollationId, Label), Unsupported> {
    let rivals = a.is_string() && b.is_string() && a.label == b.label && a.collation != b.collation;
    if rivals && a.label != Label::Coercible {
        return Err(Unsupported { what: "strings of two collations".into() });
    }
    // All literals have the collation of the database, even if the caller did not pass that collation.
    let unknown = rivals && a.collation == CollationId(0);
    let chosen = if !b.is_string() || (a.is_string() && a.label >= b.label && !unknown) { a } else { b };
    Ok((chosen.collation, chosen.label))
}

/// The common type of two expressions, which CASE, COALESCE and comparisons use.
pub(crate) fn common(a: &Ty, b: &Ty) -> Result<Ty, Unsupported> {
    let nullable = a.nullable || b.nullable;
    if a.is_null() || b.is_null() {
        return Ok(Ty { nullable: true, ..if a.is_null() { *b } else { *a } });
    }
    if rank(a.kind()) == 0 || rank(b.kind()) == 0 {
        return Err(mixed("combination", a, b));
    }
    let mut result = if rank(a.kind()) >= rank(b.kind()) { *a } else { *b };
    if a.is_string() && b.is_string() {
        let length = a.characters().zip(b.characters()).map(|(a, b)| a.max(b));
        let unicode = result.is_unicode();
        result.info.length = length.map_or(0, |n| if unicode { n.min(4000) * 2 } else { n });
        (result.collation, result.label) = collate(a, b)?;
    } else if result.is_decimal() && a.is_number() && b.is_number() {
        let ((p1, s1), (p2, s2)) = (a.precision(), b.precision());
        let (whole, scale) = ((p1 - s1).max(p2 - s2), s1.max(s2));
        if whole + scale > 38 {
            return Err(mixed("common type", a, b));
        }
        let kind = result.kind();
        result = Ty::decimal(whole + scale, scale);
        result.info.xtype = kind;
    } else if a.is_moment() && b.is_moment() && a.info != b.info {
        let mixes = [xtype::DATE, xtype::SMALLDATETIME, xtype::DATETIME];
        if !(mixes.contains(&a.kind()) && mixes.contains(&b.kind()) || a.kind() == b.kind()) {
            return Err(mixed("combination", a, b));
        }
        result.info.scale = a.info.scale.max(b.info.scale);
        result.info.length = fixed_length(result.info).unwrap_or(result.info.length);
    } else if matches!(a.kind(), xtype::BINARY | xtype::VARBINARY)
        && matches!(b.kind(), xtype::BINARY | xtype::VARBINARY)
    {
        result.info.length = if a.is_max() || b.is_max() { 0 } else { a.info.length.max(b.info.length) };
    }
    if result.digits > 0 && (a.digits == 0 || b.digits == 0) {
        result.digits = 0;
    }
    result.nullable = nullable;
    Ok(result)
}

/// The type of `a op b` for two numbers.
pub(crate) fn arithmetic(op: BinaryOp, a: &Ty, b: &Ty) -> Result<Ty, Unsupported> {
    if !a.is_number() || !b.is_number() {
        return Err(mixed("arithmetic", a, b));
    }
    let top = if rank(a.kind()) >= rank(b.kind()) { a } else { b };
    let bitwise = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
    if bitwise && !(top.is_integer() || top.kind() == xtype::BIT)
        || !bitwise && top.kind() == xtype::BIT
        || op == BinaryOp::Modulo && top.is_float()
    {
        return Err(mixed("this operator", a, b));
    }
    let mut result = Ty { digits: 0, nullable: true, ..*top };
    if top.is_decimal() {
        let (precision, scale) = decimal_result(op, a.precision(), b.precision());
        result = Ty::decimal(precision, scale);
        let both = [a.kind(), b.kind()];
        if both.contains(&xtype::DECIMAL) && !both.contains(&xtype::NUMERIC) {
            result.info.xtype = xtype::DECIMAL;
        }
    }
    Ok(result)
}

/// The precision and scale of the result of an operation on decimals, from Microsoft's table and the three rules below
/// that table.
pub(crate) fn decimal_result(op: BinaryOp, (p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> (u8, u8) {
    let (p1, s1, p2, s2) = (i32::from(p1), i32::from(s1), i32::from(p2), i32::from(s2));
    let whole = (p1 - s1).max(p2 - s2);
    let (precision, scale) = match op {
        BinaryOp::Multiply => (p1 + p2 + 1, s1 + s2),
        BinaryOp::Divide => (p1 - s1 + s2 + (s1 + p2 + 1).max(6), (s1 + p2 + 1).max(6)),
        BinaryOp::Modulo => ((p1 - s1).min(p2 - s2) + s1.max(s2), s1.max(s2)),
        _ => (s1.max(s2) + whole + 1, s1.max(s2)),
    };
    let reduced = match op {
        _ if precision <= 38 => scale,
        BinaryOp::Multiply | BinaryOp::Divide if precision - scale < 32 => scale.min(38 - (precision - scale)),
        BinaryOp::Multiply | BinaryOp::Divide => scale.min(6),
        _ => scale.min(38 - whole),
    };
    (precision.min(38) as u8, reduced as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_documented_precision_and_scale() {
        // The two examples on the page "Precision, scale, and length".
        assert_eq!(decimal_result(BinaryOp::Multiply, (30, 20), (30, 20)), (38, 17));
        assert_eq!(decimal_result(BinaryOp::Multiply, (30, 10), (30, 10)), (38, 6));
        // The best-known case: decimal(38,10) / decimal(38,10) is decimal(38,6).
        assert_eq!(decimal_result(BinaryOp::Divide, (38, 10), (38, 10)), (38, 6));
        // 2147483649 / 2 gives 1073741824.500000 (from the page "int, bigint, smallint, and tinyint").
        assert_eq!(decimal_result(BinaryOp::Divide, (10, 0), (1, 0)).1, 6);
        // AdventureWorks' LineTotal is numeric(38,6): money * (1.0 - money) * smallint.
        let discounted = decimal_result(BinaryOp::Subtract, (2, 1), (19, 4));
        let line = decimal_result(BinaryOp::Multiply, (19, 4), discounted);
        assert_eq!(decimal_result(BinaryOp::Multiply, line, (5, 0)), (38, 6));
        assert_eq!(decimal_result(BinaryOp::Add, (38, 10), (38, 10)), (38, 10));
        assert_eq!(decimal_result(BinaryOp::Modulo, (10, 2), (5, 4)), (5, 4));
    }
}
