//! Evaluates expressions that consist only of integers, for many rows at a time.

use std::ops::RangeInclusive;

use format::types::{TypeInfo, xtype};

use crate::ast::{BinaryOp, CompareOp};
use crate::node::{Node, Pred, Root};
use crate::program::{Program, holds};
use crate::types::Ty;
use crate::value::Datum;

/// The most steps of an expression that can be converted to [`Integers`].
const MAX_STEPS: usize = 32;

/// An expression of integers: sums, differences and products of columns and constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Integers {
    /// The steps of a stack machine, in order.
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Pushes the values of a column. The number is the position of the column in [`Program::columns`].
    Column(usize),
    Constant(i64),
    /// Replaces the two topmost values with the result of the operation. The two numbers are the smallest and the
    /// largest valid result.
    Arithmetic(Operation, i64, i64),
}

/// A condition on integers and NULLs. All of its terms must be TRUE.
#[derive(Clone, Debug)]
pub struct Selection {
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
enum Term {
    /// Tests whether a column is NULL (`true`) or not NULL (`false`). The number is the position of the column in
    /// [`Program::columns`].
    IsNull(usize, bool),
    /// A comparison of a column with a constant.
    Compare(usize, CompareOp, i64),
}

/// An operation on two int columns with an int result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfTwoInts {
    /// The columns, by their position in [`Program::columns`].
    pub columns: [usize; 2],
    operation: Operation,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Add,
    Subtract,
    Multiply,
}

/// Buffers for evaluations. They are reused for each page.
#[derive(Default)]
pub struct IntegerScratch {
    stack: Vec<Vec<i64>>,
    selected: Vec<bool>,
    nulls: Vec<bool>,
}

impl Integers {
    /// Converts a program; `None` if the program contains anything other than integers.
    pub fn of(program: &Program) -> Option<Self> {
        let Root::Scalar(node) = &program.root else { return None };
        let mut steps = Vec::new();
        add(node, &mut steps)?;
        Some(Self { steps })
    }

    /// The values of the expression for `rows` rows. `None` if `column` cannot provide the values of a column, or if
    /// the expression overflows in any row. In the second case, the caller must evaluate the rows one by one.
    pub fn evaluate<'r>(
        &self,
        rows: usize,
        room: &'r mut IntegerScratch,
        mut column: impl FnMut(usize, &mut [i64]) -> bool,
    ) -> Option<&'r [i64]> {
        let mut depth = 0usize;
        for step in &self.steps {
            if let Step::Arithmetic(operation, least, greatest) = *step {
                depth = depth.checked_sub(1)?;
                let [left, right] = room.stack.get_mut(depth - 1..=depth)? else { return None };
                if !operation.compute(left, right, least, greatest) {
                    return None;
                }
                continue;
            }
            if room.stack.len() <= depth {
                room.stack.push(Vec::new());
            }
            let values = room.stack.get_mut(depth)?;
            depth += 1;
            values.resize(rows, 0);
            match *step {
                Step::Constant(value) => values.fill(value),
                Step::Column(index) if !column(index, values) => return None,
                _ => {}
            }
        }
        room.stack.get(depth.checked_sub(1)?).map(Vec::as_slice)
    }

    /// The expression as one operation on two columns with an int result; `None` if it is any other expression. The
    /// caller must check that both columns are ints.
    pub fn of_two_ints(&self) -> Option<OfTwoInts> {
        const INT: RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;
        match *self.steps {
            [Step::Column(left), Step::Column(right), Step::Arithmetic(operation, least, greatest)]
                if (least..=greatest) == INT =>
            {
                Some(OfTwoInts { columns: [left, right], operation })
            }
            _ => None,
        }
    }
}

impl OfTwoInts {
    /// The result of the operation. If the result does not fit an int, the expression overflows for these two values.
    #[inline(always)]
    pub fn value(self, left: i32, right: i32) -> i64 {
        // No operation on two ints overflows a bigint.
        let [left, right] = [left, right].map(i64::from);
        match self.operation {
            Operation::Add => left.wrapping_add(right),
            Operation::Subtract => left.wrapping_sub(right),
            Operation::Multiply => left.wrapping_mul(right),
        }
    }
}

impl Selection {
    /// Converts a program; `None` if the program has any other kind of term.
    pub fn of(program: &Program) -> Option<Self> {
        let Root::Condition(condition) = &program.root else { return None };
        let mut terms = Vec::new();
        add_terms(condition, &mut terms)?;
        Some(Self { terms })
    }

    /// If the only term of the condition is that a column is not NULL, returns the position of this column in
    /// [`Program::columns`]. Otherwise returns `None`.
    pub fn not_null(&self) -> Option<usize> {
        match self.terms.as_slice() {
            [Term::IsNull(index, false)] => Some(*index),
            _ => None,
        }
    }

    /// Returns, for each of `rows` rows, whether the row satisfies the condition. `values` must store the values of a
    /// column, and must return false if the column has NULLs. `nulls` must store which values of a column are NULL. If
    /// `values` or `nulls` returns false, the result is `None`.
    pub fn evaluate<'r>(
        &self,
        rows: usize,
        room: &'r mut IntegerScratch,
        mut values: impl FnMut(usize, &mut [i64]) -> bool,
        mut nulls: impl FnMut(usize, &mut [bool]) -> bool,
    ) -> Option<&'r [bool]> {
        if room.stack.is_empty() {
            room.stack.push(Vec::new());
        }
        let numbers = room.stack.first_mut()?;
        numbers.resize(rows, 0);
        room.nulls.resize(rows, false);
        room.selected.clear();
        room.selected.resize(rows, true);
        for term in &self.terms {
            let known = match *term {
                Term::IsNull(index, expected) => {
                    let known = nulls(index, &mut room.nulls);
                    narrow(&mut room.selected, &room.nulls, |is_null| *is_null == expected);
                    known
                }
                Term::Compare(index, op, constant) => {
                    let known = values(index, numbers);
                    narrow(&mut room.selected, numbers, |value| holds(op, value.cmp(&constant)));
                    known
                }
            };
            if !known {
                return None;
            }
        }
        Some(&room.selected)
    }
}

#[inline(always)]
fn narrow<T>(selected: &mut [bool], values: &[T], holds: impl Fn(&T) -> bool) {
    selected.iter_mut().zip(values).for_each(|(selected, value)| *selected &= holds(value));
}

fn add_terms(condition: &Pred, terms: &mut Vec<Term>) -> Option<()> {
    let is_null = |node: &Node, expected| match node {
        Node::Column(index, _) => Some(Term::IsNull(*index, expected)),
        _ => None,
    };
    let term = match condition {
        Pred::And(conditions) => return conditions.iter().try_for_each(|condition| add_terms(condition, terms)),
        Pred::IsNull(node) => is_null(node, true)?,
        Pred::Not(condition) => match &**condition {
            Pred::IsNull(node) => is_null(node, false)?,
            _ => return None,
        },
        Pred::Compare(comparison, _) => match &**comparison {
            (op, Node::Column(index, info), Node::Const(Datum::Int(constant))) if is_integer(*info) => {
                Term::Compare(*index, *op, *constant)
            }
            _ => return None,
        },
        _ => return None,
    };
    terms.push(term);
    (terms.len() <= MAX_STEPS).then_some(())
}

fn is_integer(info: TypeInfo) -> bool {
    Ty { info, ..Ty::default() }.is_integer()
}

impl Operation {
    /// Replaces the left operands with the results. Returns false if a result is less than `least` or greater than
    /// `greatest`.
    fn compute(self, left: &mut [i64], right: &[i64], least: i64, greatest: i64) -> bool {
        match self {
            Self::Add => compute(left, right, least..=greatest, i64::overflowing_add),
            Self::Subtract => compute(left, right, least..=greatest, i64::overflowing_sub),
            Self::Multiply => compute(left, right, least..=greatest, i64::overflowing_mul),
        }
    }
}

#[inline(always)]
fn compute(
    left: &mut [i64],
    right: &[i64],
    bounds: RangeInclusive<i64>,
    operate: impl Fn(i64, i64) -> (i64, bool),
) -> bool {
    let (least, greatest) = bounds.into_inner();
    left.iter_mut().zip(right).fold(true, |fits, (left, right)| {
        let (value, overflows) = operate(*left, *right);
        *left = value;
        fits & !overflows & (least <= value) & (value <= greatest)
    })
}

fn add(node: &Node, steps: &mut Vec<Step>) -> Option<()> {
    match node {
        Node::Const(Datum::Int(value)) => steps.push(Step::Constant(*value)),
        Node::Column(index, info) if is_integer(*info) => {
            steps.push(Step::Column(*index));
        }
        Node::Arithmetic(operation, ty) if ty.is_integer() => {
            let (operator, left, right) = &**operation;
            let operator = match operator {
                BinaryOp::Add => Operation::Add,
                BinaryOp::Subtract => Operation::Subtract,
                BinaryOp::Multiply => Operation::Multiply,
                _ => return None,
            };
            add(left, steps)?;
            add(right, steps)?;
            let (least, greatest) = match ty.kind() {
                xtype::TINYINT => (u8::MIN.into(), u8::MAX.into()),
                xtype::SMALLINT => (i16::MIN.into(), i16::MAX.into()),
                xtype::INT => (i32::MIN.into(), i32::MAX.into()),
                _ => (i64::MIN, i64::MAX),
            };
            steps.push(Step::Arithmetic(operator, least, greatest));
        }
        _ => return None,
    }
    (steps.len() <= MAX_STEPS).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnType, Scratch, compile};

    /// Compares batch evaluation with evaluation row by row, for rows of two ints.
    fn compare(text: &str, rows: &[(i32, i32)]) -> bool {
        let int = ColumnType { info: TypeInfo::from_ti(xtype::INT.into()), nullable: true, ..ColumnType::default() };
        let program = compile(text, &|name| matches!(name, "a" | "b").then_some(int)).unwrap();
        let integers = Integers::of(&program).unwrap();
        let of = |row: &(i32, i32), name: &str| if name == "a" { row.0 } else { row.1 };
        let mut room = IntegerScratch::default();
        let together = integers.evaluate(rows.len(), &mut room, |index, values| {
            let name = &program.columns()[index];
            values.iter_mut().zip(rows).for_each(|(value, row)| *value = of(row, name).into());
            true
        });
        let one_by_one: Option<Vec<i64>> = rows
            .iter()
            .map(|row| {
                let bytes: Vec<[u8; 4]> = program.columns().iter().map(|name| of(row, name).to_le_bytes()).collect();
                let field = |at: usize| bytes.get(at).map(|bytes| &bytes[..]);
                let fields = [field(0), field(1)];
                match program.evaluate(&fields, &mut Scratch::default()) {
                    Ok(Datum::Int(value)) => Some(value),
                    _ => None,
                }
            })
            .collect();
        assert_eq!(together, one_by_one.as_deref(), "{text}");
        if let Some(operation) = integers.of_two_ints() {
            let value = |row| {
                let [left, right] = operation.columns.map(|index| of(row, &program.columns()[index]));
                operation.value(left, right)
            };
            let are_ints = rows.iter().all(|row| i32::try_from(value(row)).is_ok());
            let in_one_pass: Option<Vec<_>> = are_ints.then(|| rows.iter().map(value).collect());
            assert_eq!(in_one_pass, one_by_one, "{text}");
        }
        one_by_one.is_some()
    }

    #[test]
    fn many_rows_at_a_time_give_what_each_gives() {
        let rows: Vec<(i32, i32)> = (-50..50).flat_map(|a| [(a, 7 - a), (a * 1000, 3), (i32::MAX / 60, a)]).collect();
        for text in ["[a]*[b]", "[a]", "([a]+[b])*(2)-[a]", "(1)", "[b]-([a]+[b]*(3))"] {
            assert!(compare(text, &rows), "{text}");
        }
        for text in ["[a]+[b]", "[b]-[a]", "[b]*[b]", "[b]-[b]"] {
            assert!(compare(text, &rows), "{text}");
        }
        assert!(!compare("[a]+[b]", &[(1, 1), (i32::MAX, 1), (1, 1)]), "an overflow");
        assert!(!compare("[a]*[b]", &[(i32::MIN, i32::MIN)]), "an overflow");
        assert!(!compare("[a]*[b]", &[(1, 1), (i32::MAX, 2)]), "an overflow");
        assert!(!compare("[a]-[b]", &[(i32::MIN, 1)]));
        assert!(compare("[a]*[b]", &[(i32::MIN, 1), (46_340, 46_340)]));
    }

    #[test]
    fn only_an_operation_on_two_columns_that_gives_an_int_is_one_of_two_ints() {
        let is_one = |text, name| {
            let column = ColumnType { info: TypeInfo::from_ti(name), nullable: true, ..ColumnType::default() };
            let program = compile(text, &|_| Some(column)).unwrap();
            Integers::of(&program).unwrap().of_two_ints().is_some()
        };
        for text in ["[a]+[b]", "[a]-[b]", "[a]*[b]", "[a]*[a]"] {
            assert!(is_one(text, xtype::INT.into()), "{text}");
            assert!(!is_one(text, xtype::SMALLINT.into()) && !is_one(text, xtype::BIGINT.into()), "{text}");
        }
        for text in ["[a]", "[a]+(1)", "(1)-[a]", "[a]+[b]+[c]"] {
            assert!(!is_one(text, xtype::INT.into()), "{text}");
        }
    }

    #[test]
    fn rows_are_selected_as_one_by_one() {
        let int = ColumnType { info: TypeInfo::from_ti(xtype::INT.into()), nullable: true, ..ColumnType::default() };
        let rows: Vec<[Option<i32>; 2]> = (-3..4).flat_map(|a| [[Some(a), None], [Some(a), Some(a * 2)]]).collect();
        for text in [
            "[b] IS NOT NULL",
            "[b] IS NULL AND [a]>(1)",
            "[a]>=(2)",
            "[a]<>(0) AND [a]<(3) AND [a]>(-3)",
            "[a]=(1)",
            "[a]<=(-2)",
        ] {
            let program = compile(text, &|name| matches!(name, "a" | "b").then_some(int)).unwrap();
            let place = |index: usize| usize::from(program.columns()[index] == "b");
            let mut room = IntegerScratch::default();
            let values = |index: usize, values: &mut [i64]| {
                let mut column = rows.iter().map(|row| row[place(index)]);
                values.iter_mut().for_each(|value| *value = column.next().flatten().unwrap_or_default().into());
                rows.iter().all(|row| row[place(index)].is_some())
            };
            let nulls = |index: usize, nulls: &mut [bool]| {
                nulls.iter_mut().zip(&rows).for_each(|(null, row)| *null = row[place(index)].is_none());
                true
            };
            let selection = Selection::of(&program).unwrap();
            let together = selection.evaluate(rows.len(), &mut room, values, nulls).unwrap();
            for (row, selected) in rows.iter().zip(together) {
                let bytes = row.map(|value| value.map(i32::to_le_bytes));
                let field = |at: usize| bytes.get(place(at))?.as_ref().map(|bytes| &bytes[..]);
                let fields = if program.columns().len() == 1 { [field(0), None] } else { [field(0), field(1)] };
                assert_eq!(program.matches(&fields, &mut Scratch::default()), Ok(*selected), "{text} {row:?}");
            }
        }
        let not_null = |text| Selection::of(&compile(text, &|_| Some(int)).unwrap()).unwrap().not_null();
        assert_eq!(not_null("[a] IS NOT NULL"), Some(0));
        assert_eq!(["[a] IS NULL", "[a]>(1)", "[a] IS NOT NULL AND [b]>(1)"].map(not_null), [None; 3]);
        for other in ["[a]>[b]", "[a]>(1) OR [b]>(1)", "[a]>(1.5)", "NOT [a]>(1)"] {
            let program = compile(other, &|_| Some(int)).unwrap();
            assert!(Selection::of(&program).is_none(), "{other}");
        }
        let program = compile("[b]>(1)", &|_| Some(int)).unwrap();
        let unknown = Selection::of(&program).unwrap();
        let mut room = IntegerScratch::default();
        assert_eq!(unknown.evaluate(3, &mut room, |_, _| false, |_, _| true), None, "a NULL");
    }

    #[test]
    fn other_expressions_are_refused() {
        let int = ColumnType { info: TypeInfo::from_ti(xtype::INT.into()), nullable: true, ..ColumnType::default() };
        let text = ColumnType { info: TypeInfo::from_ti(0x0064_00E7), nullable: true, ..ColumnType::default() };
        for other in ["[a]/(2)", "[a]%(2)", "isnull([a],(1))", "[t]", "[a]*(1.5)", "[a]>(1)"] {
            let program = compile(other, &|name| Some(if name == "t" { text } else { int })).unwrap();
            assert_eq!(Integers::of(&program), None, "{other}");
        }
        let long = (0..MAX_STEPS).fold("[a]".to_owned(), |text, _| format!("({text}+[a])"));
        assert_eq!(Integers::of(&compile(&long, &|_| Some(int)).unwrap()), None);
    }
}
