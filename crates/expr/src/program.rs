//! Compiled expressions and their evaluation.

use format::collation::append_utf16;
use format::types::{TypeInfo, xtype};

use crate::ast::CompareOp;
use crate::compare::{self, Chars};
use crate::env::{Cell, Env, Field, Outcome, Row, Scratch, Text, chars};
use crate::like::Pattern;
use crate::node::{Comparison, Node, Pred, Root};
use crate::steps::TOO_EXPENSIVE;
use crate::types::Ty;
use crate::value::{Datum, Value, decode};
use crate::{Undecided, convert, like, numeric};

mod functions;

/// A compiled expression. It is compiled once per index or column, and evaluated for each row.
#[derive(Debug)]
pub struct Program {
    pub(crate) root: Root,
    pub(crate) columns: Vec<String>,
    pub(crate) ty: Ty,
    /// The number of steps that each evaluation uses for the nodes of the expression; 0 if the expression cannot be
    /// expensive.
    pub(crate) steps: u64,
}

impl Program {
    /// The names of the columns that the expression reads. The index that [`Row::field`] gets is a position in this
    /// list.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The type of the result; `None` for a condition and for the constant NULL alone. If the catalog states a
    /// different type for the computed column, SQL Server has used another typing rule, and the values must not be
    /// compared.
    pub fn result_type(&self) -> Option<TypeInfo> {
        (matches!(self.root, Root::Scalar(_)) && !self.ty.is_null()).then_some(self.ty.info)
    }

    /// Whether the expression is a condition, as filters and check constraints are.
    pub fn is_condition(&self) -> bool {
        matches!(self.root, Root::Condition(_))
    }

    /// Whether evaluations use steps. Expressions that [`crate::Integers`] or [`crate::Selection`] can evaluate use no
    /// steps. Therefore, these expressions are never too expensive, whether rows are processed in batches or one by
    /// one.
    pub fn takes_steps(&self) -> bool {
        self.steps > 0
    }

    /// The value for a row. The value of a condition is a bit, or NULL for UNKNOWN.
    pub fn evaluate<'a>(&'a self, row: &'a dyn Row, scratch: &'a mut Scratch) -> Result<Value<'a>, Undecided> {
        self.begin(scratch)?;
        let mut env = Env { row, scratch };
        let cell = match &self.root {
            Root::Scalar(node) => node.evaluate(&mut env)?,
            Root::Condition(pred) => pred.evaluate(&mut env)?.map_or(Datum::Null, Datum::Bit),
        };
        let Env { scratch, .. } = env;
        let bytes = &scratch.bytes;
        Ok(cell.map(|text| match text {
            Text::Lent(bytes) => bytes,
            Text::Made(start, end) => bytes.get(start..end).unwrap_or_default(),
        }))
    }

    /// The truth value of a condition; `None` for UNKNOWN.
    pub fn truth(&self, row: &dyn Row, scratch: &mut Scratch) -> Result<Option<bool>, Undecided> {
        self.begin(scratch)?;
        match &self.root {
            Root::Condition(pred) => pred.evaluate(&mut Env { row, scratch }),
            Root::Scalar(_) => Err(Undecided { reason: "not a condition" }),
        }
    }

    #[inline]
    fn begin(&self, scratch: &mut Scratch) -> Result<(), Undecided> {
        scratch.bytes.clear();
        if self.steps == 0 {
            return Ok(());
        }
        scratch.steps.begin();
        scratch.steps.take(self.steps)
    }

    /// Whether a row belongs to an index with this filter. A row belongs to the index only if the condition is TRUE;
    /// UNKNOWN is not enough.
    pub fn matches(&self, row: &dyn Row, scratch: &mut Scratch) -> Result<bool, Undecided> {
        Ok(self.truth(row, scratch)? == Some(true))
    }
}

impl Node {
    /// The value of the node. Leaf nodes are the most common operands, so they are evaluated without another function
    /// call.
    #[inline]
    pub(crate) fn evaluate<'a>(&'a self, env: &mut Env<'a>) -> Outcome<'a> {
        match self {
            Self::Const(Datum::Int(value)) => Ok(Datum::Int(*value)),
            Self::Column(index, info) => column(*index, *info, env),
            _ => self.compute(env),
        }
    }

    fn compute<'a>(&'a self, env: &mut Env<'a>) -> Outcome<'a> {
        match self {
            Self::Const(value) => Ok(lend(value)),
            Self::Unknown(reason) => Err(Undecided { reason }),
            Self::Column(index, info) => column(*index, *info, env),
            Self::Arithmetic(operation, ty) => {
                let (op, left, right) = &**operation;
                if let (true, Some(left), Some(right)) = (ty.is_integer(), left.integer(env), right.integer(env)) {
                    let (Some(left), Some(right)) = (left, right) else { return Ok(Datum::Null) };
                    return numeric::arithmetic(*op, Datum::Int(left), Datum::Int(right), ty);
                }
                let (left, right) = (left.evaluate(env)?, right.evaluate(env)?);
                if left.is_null() || right.is_null() {
                    return Ok(Datum::Null);
                }
                numeric::arithmetic(*op, left, right, ty)
            }
            Self::Concat(operands, most) => {
                let (left, right) = (operands.0.evaluate(env)?, operands.1.evaluate(env)?);
                if left.is_null() || right.is_null() {
                    return Ok(Datum::Null);
                }
                functions::concat(&[left, right], *most, env)
            }
            Self::Convert(conversion) => {
                let value = conversion.value.evaluate(env)?;
                convert::convert(value, conversion, env)
            }
            Self::Case(whens, otherwise) => {
                for (when, then) in whens {
                    if when.evaluate(env)? == Some(true) {
                        return then.evaluate(env);
                    }
                }
                otherwise.evaluate(env)
            }
            Self::Call(func, args, types) => functions::call(*func, args, types, env),
        }
    }
}

impl Node {
    /// The value of an integer column or constant. `Some(None)` means NULL, and `None` means any other kind of node.
    /// Integer columns and constants are the most common operands, and an `i64` is smaller than a `Datum`.
    #[inline]
    fn integer(&self, env: &Env<'_>) -> Option<Option<i64>> {
        match self {
            Self::Const(Datum::Int(value)) => Some(Some(*value)),
            Self::Column(index, info) => match (env.row.field(*index), info.xtype) {
                (Field::Null, xtype::INT | xtype::BIGINT | xtype::SMALLINT) => Some(None),
                (Field::Bytes(bytes), xtype::INT) => Some(Some(i32::from_le_bytes(bytes.try_into().ok()?).into())),
                (Field::Bytes(bytes), xtype::BIGINT) => Some(Some(i64::from_le_bytes(bytes.try_into().ok()?))),
                (Field::Bytes(bytes), xtype::SMALLINT) => Some(Some(i16::from_le_bytes(bytes.try_into().ok()?).into())),
                _ => None,
            },
            _ => None,
        }
    }
}

fn lend(value: &Datum<Box<[u8]>>) -> Cell<'_> {
    match value {
        Datum::Ansi(bytes) => Datum::Ansi(Text::Lent(bytes)),
        Datum::Unicode(bytes) => Datum::Unicode(Text::Lent(bytes)),
        Datum::Binary(bytes) => Datum::Binary(Text::Lent(bytes)),
        Datum::Null => Datum::Null,
        Datum::Bit(value) => Datum::Bit(*value),
        Datum::Int(value) => Datum::Int(*value),
        Datum::Decimal(value, scale) => Datum::Decimal(*value, *scale),
        Datum::Money(value) => Datum::Money(*value),
        Datum::Float(value) => Datum::Float(*value),
        Datum::Date(days) => Datum::Date(*days),
        Datum::Time(ticks) => Datum::Time(*ticks),
        Datum::DateTime(days, ticks) => Datum::DateTime(*days, *ticks),
        Datum::SmallDateTime(days, minutes) => Datum::SmallDateTime(*days, *minutes),
        Datum::DateTime2(days, ticks) => Datum::DateTime2(*days, *ticks),
        Datum::DateTimeOffset(days, ticks, offset) => Datum::DateTimeOffset(*days, *ticks, *offset),
        Datum::Guid(bytes) => Datum::Guid(*bytes),
    }
}

const NOT_KNOWN: Undecided = Undecided { reason: "a column's value is unknown" };

#[inline]
fn column<'a>(index: usize, info: TypeInfo, env: &mut Env<'a>) -> Outcome<'a> {
    let bytes = match env.row.field(index) {
        Field::Null => return Ok(Datum::Null),
        Field::Bytes(bytes) => bytes,
        Field::OffRow => return Err(Undecided { reason: "a column's value is stored off the row" }),
        Field::Unknown => return Err(NOT_KNOWN),
    };
    match decode(bytes, info) {
        Some(value) => Ok(value.map(Text::Lent)),
        None => Err(Undecided { reason: "a column's bytes are no value of its type" }),
    }
}

impl Pred {
    /// Evaluates the condition in three-valued logic, where `None` means UNKNOWN. If an operand is undecided, the
    /// result is undecided too, unless the other operands determine it.
    pub(crate) fn evaluate<'a>(&'a self, env: &mut Env<'a>) -> Result<Option<bool>, Undecided> {
        match self {
            Self::And(terms) => junction(terms, false, env),
            Self::Or(terms) => junction(terms, true, env),
            Self::Not(term) => Ok(term.evaluate(env)?.map(|truth| !truth)),
            // Whether a column is NULL does not depend on its bytes.
            Self::IsNull(node) => match **node {
                Node::Column(index, _) => match env.row.field(index) {
                    Field::Unknown => Err(NOT_KNOWN),
                    field => Ok(Some(field == Field::Null)),
                },
                _ => Ok(Some(node.evaluate(env)?.is_null())),
            },
            Self::Compare(comparison, how) => {
                let (op, left, right) = &**comparison;
                if let (Some(left), Some(right)) = (left.integer(env), right.integer(env)) {
                    return Ok(left.zip(right).map(|(left, right)| holds(*op, left.cmp(&right))));
                }
                let (left, right) = (left.evaluate(env)?, right.evaluate(env)?);
                if left.is_null() || right.is_null() {
                    return Ok(None);
                }
                env.look_at(&[left, right])?;
                compared(*op, left, right, *how, env).map(Some)
            }
            Self::Like(operands, how) => {
                let (value, pattern, escape) = &**operands;
                let (value, pattern) = (value.evaluate(env)?, pattern.evaluate(env)?);
                let escape = match escape {
                    Some(escape) => Some(escape.evaluate(env)?),
                    None => None,
                };
                matched(value, pattern, escape, *how, env)
            }
        }
    }
}

/// Evaluates AND or OR. A single term with the truth value `settles` determines the result.
fn junction<'a>(terms: &'a [Pred], settles: bool, env: &mut Env<'a>) -> Result<Option<bool>, Undecided> {
    let (mut undecided, mut unknown) = (None, false);
    for term in terms {
        match term.evaluate(env) {
            Ok(Some(truth)) if truth == settles => return Ok(Some(settles)),
            Ok(Some(_)) => {}
            Ok(None) => unknown = true,
            // No steps are left to evaluate the remaining terms.
            Err(TOO_EXPENSIVE) => return Err(TOO_EXPENSIVE),
            Err(reason) => undecided = Some(reason),
        }
    }
    match undecided {
        Some(reason) => Err(reason),
        None => Ok((!unknown).then_some(!settles)),
    }
}

fn compared(op: CompareOp, a: Cell<'_>, b: Cell<'_>, how: Comparison, env: &Env<'_>) -> Result<bool, Undecided> {
    if let (Datum::Int(a), Datum::Int(b)) = (a, b) {
        return Ok(holds(op, a.cmp(&b)));
    }
    let uncertain = Undecided { reason: "a string comparison depends on the collation" };
    if let (Some(a), Some(b)) = (chars(a, env), chars(b, env)) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let (a, b) = (alike(a, b, how, &mut left)?, alike(b, a, how, &mut right)?);
        if matches!(op, CompareOp::Equal | CompareOp::NotEqual) {
            let equal = compare::equal(a, b, how.collation).ok_or(uncertain)?;
            return Ok(equal == (op == CompareOp::Equal));
        }
        return Ok(holds(op, compare::order(a, b, how.collation).ok_or(uncertain)?));
    }
    let binary = |text| env.bytes(text);
    let order = match (a, b) {
        (Datum::Binary(a), Datum::Binary(b)) => {
            let trimmed = |bytes: &[u8]| bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            let (a, b) = (binary(a), binary(b));
            a.get(..trimmed(a)).cmp(&b.get(..trimmed(b)))
        }
        _ => numeric::order(a, b, how.single)?,
    };
    Ok(holds(op, order))
}

/// Converts a string to nchar if it is char and the `other` string is nchar. The converted string is stored in
/// `buffer`.
fn alike<'s>(
    text: Chars<'s>,
    other: Chars<'_>,
    how: Comparison,
    buffer: &'s mut Vec<u8>,
) -> Result<Chars<'s>, Undecided> {
    if text.wide || !other.wide {
        return Ok(text);
    }
    if !append_utf16(text.bytes, how.of_char, buffer) {
        return Err(Undecided { reason: "a code page is needed to compare char with nchar" });
    }
    Ok(Chars { bytes: buffer, wide: true })
}

pub(crate) fn holds(op: CompareOp, order: std::cmp::Ordering) -> bool {
    match op {
        CompareOp::Equal => order.is_eq(),
        CompareOp::NotEqual => order.is_ne(),
        CompareOp::Less => order.is_lt(),
        CompareOp::LessOrEqual => order.is_le(),
        CompareOp::Greater => order.is_gt(),
        CompareOp::GreaterOrEqual => order.is_ge(),
    }
}

fn matched(
    value: Cell<'_>,
    pattern: Cell<'_>,
    escape: Option<Cell<'_>>,
    how: Comparison,
    env: &mut Env<'_>,
) -> Result<Option<bool>, Undecided> {
    if value.is_null() || pattern.is_null() || escape.is_some_and(|escape| escape.is_null()) {
        return Ok(None);
    }
    let mut borders = std::mem::take(&mut env.scratch.borders);
    let matched = like(value, pattern, escape, how, env, &mut borders);
    env.scratch.borders = borders;
    matched.map(Some)
}

fn like(
    value: Cell<'_>,
    pattern: Cell<'_>,
    escape: Option<Cell<'_>>,
    how: Comparison,
    env: &Env<'_>,
    borders: &mut Vec<u32>,
) -> Result<bool, Undecided> {
    env.look_at(&[value, pattern])?;
    let (Some(value), Some(text)) = (chars(value, env), chars(pattern, env)) else { return Err(like::UNCERTAIN) };
    let escape = match escape {
        None => None,
        Some(escape) => match chars(escape, env) {
            Some(escape) if escape.len() == 1 && (escape.is_ascii() || escape.wide == text.wide) => escape.get(0),
            _ => return Err(Undecided { reason: "an ESCAPE that is not one character" }),
        },
    };
    let (mut of_value, mut of_pattern) = (Vec::new(), Vec::new());
    let (value, text) = (alike(value, text, how, &mut of_value)?, alike(text, value, how, &mut of_pattern)?);
    Pattern::new(text, escape, how.collation).matches(value, &env.scratch.steps, borders)
}
