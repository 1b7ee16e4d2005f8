//! The nodes of compiled expressions: scalars, conditions, conversions, and the functions that they call.

use format::collation::CollationId;
use format::types::TypeInfo;

use crate::ast::{BinaryOp, CompareOp};
use crate::calendar::UNITS_PER_SECOND;
use crate::types::Ty;
use crate::value::Datum;

/// A scalar expression.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Datum<Box<[u8]>>),
    /// A value that cannot be computed, with the reason. Only the type of the value is known.
    Unknown(&'static str),
    Column(usize, TypeInfo),
    Arithmetic(Box<(BinaryOp, Node, Node)>, Ty),
    /// `+` of strings, with the maximum length of the result in bytes.
    Concat(Box<(Node, Node)>, usize),
    Convert(Box<Conversion>),
    /// The conditions of the WHENs with their values, and the value of ELSE.
    Case(Vec<(Pred, Node)>, Box<Node>),
    Call(Func, Vec<Node>, Box<CallTypes>),
}

/// The types of a function's arguments and result.
#[derive(Debug)]
pub(crate) struct CallTypes {
    pub(crate) args: Vec<Ty>,
    pub(crate) result: Ty,
    pub(crate) collation: CollationId,
}

#[derive(Debug)]
pub(crate) struct Conversion {
    pub(crate) value: Node,
    pub(crate) from: Ty,
    pub(crate) to: Ty,
    pub(crate) style: i32,
}

/// A condition.
#[derive(Debug)]
pub(crate) enum Pred {
    And(Vec<Pred>),
    Or(Vec<Pred>),
    Not(Box<Pred>),
    Compare(Box<(CompareOp, Node, Node)>, Comparison),
    IsNull(Box<Node>),
    /// The value, the pattern and the escape character.
    Like(Box<(Node, Node, Option<Node>)>, Comparison),
}

/// The rules by which two values are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) collation: CollationId,
    /// If one operand is char and the other is nchar, the collation that determines the code page of the char operand.
    pub(crate) of_char: CollationId,
    /// Whether both operands are compared as 32-bit floats (type real).
    pub(crate) single: bool,
}

#[derive(Debug)]
pub(crate) enum Root {
    Scalar(Node),
    Condition(Pred),
}

/// A supported function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Func {
    /// The first argument that is not NULL: isnull and coalesce.
    Coalesce,
    Abs,
    Ascii,
    Ceiling,
    Char,
    CharIndex,
    Concat,
    DataLength,
    DateAdd(Part),
    DateDiff(Part),
    DateFromParts,
    DateName(Part),
    DatePart(Part),
    EoMonth,
    Floor,
    IsNumeric,
    Left,
    Len,
    Lower,
    Ltrim,
    NChar,
    Negate,
    BitNot,
    Power,
    Replace,
    Replicate,
    Reverse,
    Right,
    Round,
    Rtrim,
    Sign,
    Space,
    Sqrt,
    Square,
    Str,
    Stuff,
    Substring,
    Trim,
    Unicode,
    Upper,
}

/// A date part that depends neither on the language nor on DATEFIRST.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Year,
    Quarter,
    Month,
    DayOfYear,
    Day,
    Week,
    Hour,
    Minute,
    Second,
    Millisecond,
    IsoWeek,
    /// The day of the week, supported only in DATEADD.
    WeekDay,
}

impl Part {
    /// Finds the date part with a name (Microsoft, DATEADD, DATEPART, DATEDIFF).
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" | "yy" | "yyyy" => Self::Year,
            "quarter" | "qq" | "q" => Self::Quarter,
            "month" | "mm" | "m" => Self::Month,
            "dayofyear" | "dy" | "y" => Self::DayOfYear,
            "day" | "dd" | "d" => Self::Day,
            "week" | "wk" | "ww" => Self::Week,
            "weekday" | "dw" | "w" => Self::WeekDay,
            "hour" | "hh" => Self::Hour,
            "minute" | "mi" | "n" => Self::Minute,
            "second" | "ss" | "s" => Self::Second,
            "millisecond" | "ms" => Self::Millisecond,
            "iso_week" | "isowk" | "isoww" => Self::IsoWeek,
            _ => return None,
        })
    }

    /// Whether the date part is a part of the time of day.
    pub(crate) fn is_time(self) -> bool {
        self.units().is_some()
    }

    /// The length of the date part in units of 100 ns, if it is a part of the time of day.
    pub(crate) fn units(self) -> Option<i64> {
        Some(match self {
            Self::Hour => 3600 * UNITS_PER_SECOND,
            Self::Minute => 60 * UNITS_PER_SECOND,
            Self::Second => UNITS_PER_SECOND,
            Self::Millisecond => 10_000,
            _ => return None,
        })
    }
}
