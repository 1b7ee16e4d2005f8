//! Compiles an [`Expr`] to a [`Program`]. Resolves every type. If an expression uses anything that is not completely
//! supported, it is refused with an error that names the unsupported feature.

mod calls;
mod literal;
mod operators;

use format::collation::CollationId;
use format::types::{TypeInfo, xtype};

use crate::Unsupported;
use crate::ast::{BinaryOp, CompareOp, Expr, TypeName};
use crate::convert;
use crate::cost::{self, STEPS_PER_NODE};
use crate::env::{Env, Field, Row, Scratch};
use crate::integers::{Integers, Selection};
use crate::node::{Comparison, Conversion, Node, Pred, Root};
use crate::program::Program;
use crate::types::{ColumnType, Label, Ty, common};
use crate::value::Datum;

/// The longest text that is compiled, in bytes. SQL Server accepts longer texts, but no real catalog with a longer text
/// is known.
const MOST_TEXT_BYTES: usize = 1 << 17;

/// The number of nodes that a compiled expression may have in addition to two nodes per byte of its text. CASE, BETWEEN
/// and IN repeat their operand in the compiled expression, so nesting them multiplies the number of nodes.
const MOST_NODES: usize = 1000;

/// The number of bytes of a constant that count as one node.
const BYTES_PER_NODE: usize = 32;

/// A conversion of a constant is replaced by its result at compile time if the result has at most this many bytes. The
/// result of `convert(char(8000),'')` is much longer than the text of the expression, so it is computed for each row
/// and not stored.
const LONGEST_FOLDED: usize = 256;

/// Compiles the text of an expression. `column` returns the type of a column; it gets the name of the column as spelled
/// in the expression. The caller must decode `text`, because text that the catalog stores with one byte per character
/// is in the database's code page.
///
/// Without a default collation ([`compile_within`]), a string literal has no collation. In a comparison, it gets the
/// collation of the other operand. Two literals can be compared only if the result is the same under every collation.
pub fn compile(text: &str, column: &dyn Fn(&str) -> Option<ColumnType>) -> Result<Program, Unsupported> {
    compile_within(text, CollationId(0), column)
}

/// Like [`compile`], but literals have the database's default collation.
pub fn compile_within(
    text: &str,
    database: CollationId,
    column: &dyn Fn(&str) -> Option<ColumnType>,
) -> Result<Program, Unsupported> {
    if text.len() > MOST_TEXT_BYTES {
        return no(format!("an expression of more than {MOST_TEXT_BYTES} bytes"));
    }
    let expr = crate::parse(text)?;
    let most_nodes = MOST_NODES + 2 * text.len();
    let mut compiler = Compiler { column, database, names: Vec::new(), types: Vec::new(), nodes: 0, most_nodes };
    let (root, ty) = if is_condition(&expr) {
        (Root::Condition(compiler.condition(&expr)?), Ty::of(xtype::BIT))
    } else {
        let typed = compiler.scalar(&expr)?;
        (Root::Scalar(typed.node), typed.ty)
    };
    let mut program = Program { root, columns: compiler.names, ty, steps: 0 };
    if Integers::of(&program).is_none() && Selection::of(&program).is_none() {
        program.steps = compiler.nodes as u64 * STEPS_PER_NODE + cost::of_operations(&program.root);
    }
    Ok(program)
}

fn is_condition(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull { .. }
            | Expr::Like { .. }
            | Expr::In { .. }
            | Expr::Between { .. }
            | Expr::Operation(BinaryOp::Compare(_), ..)
    )
}

/// A compiled scalar and its type.
pub(crate) struct Typed {
    pub(crate) node: Node,
    pub(crate) ty: Ty,
}

struct Compiler<'c> {
    column: &'c dyn Fn(&str) -> Option<ColumnType>,
    database: CollationId,
    names: Vec<String>,
    types: Vec<ColumnType>,
    nodes: usize,
    most_nodes: usize,
}

fn no<T>(what: impl Into<String>) -> Result<T, Unsupported> {
    Err(Unsupported { what: what.into() })
}

impl Compiler<'_> {
    fn count(&mut self, nodes: usize) -> Result<(), Unsupported> {
        self.nodes += nodes;
        if self.nodes > self.most_nodes { no("an expression of too many terms") } else { Ok(()) }
    }

    fn scalar(&mut self, expr: &Expr) -> Result<Typed, Unsupported> {
        self.count(match expr {
            Expr::Text { value, .. } => 1 + value.len() / BYTES_PER_NODE,
            Expr::Binary(bytes) => 1 + bytes.len() / BYTES_PER_NODE,
            _ => 1,
        })?;
        match expr {
            Expr::Null => Ok(Typed { node: Node::Const(Datum::Null), ty: Ty::null() }),
            Expr::Number(_) | Expr::Money(_) | Expr::Text { .. } | Expr::Binary(_) => {
                literal::literal(expr, self.database)
            }
            Expr::Name { name, quoted } => self.named(name, *quoted),
            Expr::Unary(op, value) => {
                let value = self.scalar(value)?;
                operators::unary(*op, value)
            }
            Expr::Operation(op, left, right) if !matches!(op, BinaryOp::Compare(_)) => {
                let (left, right) = (self.scalar(left)?, self.scalar(right)?);
                operators::binary(*op, left, right)
            }
            Expr::Case { operand, whens, otherwise } => self.case(operand.as_deref(), whens, otherwise.as_deref()),
            Expr::Convert { target, value, style, attempt } => {
                self.conversion(target, value, style.as_deref(), *attempt)
            }
            Expr::Call { name, args } => self.call(name, args),
            Expr::Collate(value, name) => {
                let mut value = self.scalar(value)?;
                if !value.ty.is_string() {
                    return no("COLLATE of a value that is not a string");
                }
                let collation = literal::collation(name, self.database);
                value = operators::recoded(value, collation)?;
                (value.ty.collation, value.ty.label) = (collation, Label::Explicit);
                Ok(value)
            }
            _ => no("a condition where a value is expected"),
        }
    }

    fn named(&mut self, name: &str, quoted: bool) -> Result<Typed, Unsupported> {
        let index = match self.names.iter().position(|known| known == name) {
            Some(index) => index,
            None => match (self.column)(name) {
                Some(column) => {
                    self.names.push(name.to_owned());
                    self.types.push(column);
                    self.names.len() - 1
                }
                None if quoted => return no(format!("column {name}, which the table does not have")),
                None => return no(format!("name {name}")),
            },
        };
        let column = self.types.get(index).copied().unwrap_or_default();
        let ty = Ty {
            collation: column.collation,
            label: Label::Implicit,
            nullable: column.nullable,
            ..Ty::with(column.info)
        };
        if crate::types::rank(ty.kind()) == 0 {
            return no(format!("column {name} of type {}", column.info.name()));
        }
        if !column.info.is_possible() {
            return no(format!("column {name} of the impossible type {}", column.info.declaration()));
        }
        Ok(Typed { node: Node::Column(index, ty.info), ty })
    }

    fn condition(&mut self, expr: &Expr) -> Result<Pred, Unsupported> {
        self.count(1)?;
        let negated = |pred: Pred, negated: bool| if negated { Pred::Not(Box::new(pred)) } else { pred };
        match expr {
            Expr::And(terms) => Ok(Pred::And(self.conditions(terms)?)),
            Expr::Or(terms) => Ok(Pred::Or(self.conditions(terms)?)),
            Expr::Not(term) => Ok(Pred::Not(Box::new(self.condition(term)?))),
            Expr::IsNull { value, negated: not } => {
                // The value is only tested for NULL, so even a type that is unsupported elsewhere is allowed here.
                Ok(negated(Pred::IsNull(Box::new(self.tested(value)?)), *not))
            }
            Expr::Operation(BinaryOp::Compare(op), left, right) => self.comparison(*op, left, right),
            Expr::In { value, list, negated: not } => {
                let terms = list.iter().map(|item| self.comparison(CompareOp::Equal, value, item));
                Ok(negated(Pred::Or(terms.collect::<Result<_, _>>()?), *not))
            }
            Expr::Between { value, low, high, negated: not } => {
                let low = self.comparison(CompareOp::GreaterOrEqual, value, low)?;
                let high = self.comparison(CompareOp::LessOrEqual, value, high)?;
                Ok(negated(Pred::And(vec![low, high]), *not))
            }
            Expr::Like { value, pattern, escape, negated: not } => {
                let (value, pattern) = (self.scalar(value)?, self.scalar(pattern)?);
                let (value, pattern) = (as_string(value)?, as_string(pattern)?);
                let escape = match escape {
                    Some(escape) => Some(as_string(self.scalar(escape)?)?.node),
                    None => None,
                };
                let (value, pattern, how) = operators::comparable(value, pattern)?;
                Ok(negated(Pred::Like(Box::new((value.node, pattern.node, escape)), how), *not))
            }
            _ => no("a value where a condition is expected"),
        }
    }

    fn conditions(&mut self, terms: &[Expr]) -> Result<Vec<Pred>, Unsupported> {
        terms.iter().map(|term| self.condition(term)).collect()
    }

    /// Compiles the operand of IS NULL. A column may have any type here, because only the presence of its value
    /// matters.
    fn tested(&mut self, value: &Expr) -> Result<Node, Unsupported> {
        if let Expr::Name { name, .. } = value
            && let Some(column) = (self.column)(name)
            && crate::types::rank(column.info.xtype) == 0
        {
            let index = self.names.iter().position(|known| known == name).unwrap_or(self.names.len());
            if index == self.names.len() {
                self.names.push(name.clone());
                self.types.push(column);
            }
            let bytes = TypeInfo { xtype: xtype::VARBINARY, ..TypeInfo::default() };
            return Ok(Node::Column(index, bytes));
        }
        Ok(self.scalar(value)?.node)
    }

    fn comparison(&mut self, op: CompareOp, left: &Expr, right: &Expr) -> Result<Pred, Unsupported> {
        let (left, right) = (self.scalar(left)?, self.scalar(right)?);
        let shared = common(&left.ty, &right.ty)?;
        let (left, right, how) = if shared.is_string() {
            operators::comparable(left, right)?
        } else {
            let how = Comparison { single: shared.kind() == xtype::REAL, ..Comparison::default() };
            if left.ty.is_number() && right.ty.is_number() {
                (left, right, how)
            } else {
                (implicit(left, &shared)?, implicit(right, &shared)?, how)
            }
        };
        Ok(Pred::Compare(Box::new((op, left.node, right.node)), how))
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        whens: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<Typed, Unsupported> {
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        for (when, then) in whens {
            conditions.push(match operand {
                Some(operand) => self.comparison(CompareOp::Equal, operand, when)?,
                None => self.condition(when)?,
            });
            values.push(self.scalar(then)?);
        }
        values.push(match otherwise {
            Some(otherwise) => self.scalar(otherwise)?,
            None => Typed { node: Node::Const(Datum::Null), ty: Ty::null() },
        });
        choice(conditions, values)
    }

    fn conversion(
        &mut self,
        target: &TypeName,
        value: &Expr,
        style: Option<&Expr>,
        attempt: bool,
    ) -> Result<Typed, Unsupported> {
        let to = literal::type_named(target)?;
        let value = self.scalar(value)?;
        let style = match style {
            None => None,
            Some(Expr::Number(digits)) => match digits.parse::<i32>() {
                Ok(number) => Some(number),
                Err(_) => return no(format!("style {digits}")),
            },
            Some(_) => return no("a style that is not a constant"),
        };
        // A conversion that fails leaves the value undecided. Therefore, TRY_CONVERT and TRY_CAST are compiled like
        // CONVERT and CAST.
        let _ = attempt;
        explicit(value, to, style)
    }
}

/// Builds a CASE from compiled conditions and values. The last value is the value of ELSE.
fn choice(conditions: Vec<Pred>, values: Vec<Typed>) -> Result<Typed, Unsupported> {
    let mut shared = Ty::null();
    for value in &values {
        shared = common(&shared, &value.ty)?;
    }
    let mut nodes = Vec::new();
    for value in values {
        nodes.push(implicit(value, &shared)?.node);
    }
    let Some(otherwise) = nodes.pop() else { return no("CASE without a value") };
    let whens = conditions.into_iter().zip(nodes).collect();
    shared.nullable = true;
    shared.digits = 0;
    Ok(Typed { node: Node::Case(whens, Box::new(otherwise)), ty: shared })
}

/// Compiles an explicit conversion of `value` to the type `to`.
fn explicit(value: Typed, mut to: Ty, style: Option<i32>) -> Result<Typed, Unsupported> {
    convert::check(&value.ty, &to, style)?;
    if value.ty.is_string() && to.is_string() {
        (to.collation, to.label) = (value.ty.collation, value.ty.label);
    }
    to.nullable = value.ty.nullable;
    if value.ty.is_null() {
        return Ok(Typed { node: value.node, ty: to });
    }
    let conversion = Conversion { value: value.node, from: value.ty, to, style: style.unwrap_or(0) };
    Ok(Typed { node: folded(Node::Convert(Box::new(conversion))), ty: to })
}

/// Converts a value to type `to`, unless it already has that type.
fn implicit(value: Typed, to: &Ty) -> Result<Typed, Unsupported> {
    let value = if to.is_string() { operators::recoded(value, to.collation)? } else { value };
    if value.ty.is_null() || value.ty.info == to.info {
        return Ok(Typed { node: value.node, ty: *to });
    }
    let variable = matches!(to.kind(), xtype::VARCHAR | xtype::NVARCHAR | xtype::VARBINARY);
    let fits = to.is_max() || value.ty.info.length <= to.info.length && !value.ty.is_max();
    if variable && fits && value.ty.is_string() && value.ty.is_unicode() == to.is_unicode() {
        return Ok(Typed { node: value.node, ty: *to });
    }
    let label = (to.collation, to.label);
    let mut converted = explicit(value, *to, None)?;
    (converted.ty.collation, converted.ty.label) = label;
    Ok(converted)
}

/// Converts an argument to a string, for functions that require one.
fn as_string(value: Typed) -> Result<Typed, Unsupported> {
    let length = match value.ty.kind() {
        _ if value.ty.is_string() => return Ok(value),
        0 => 1,
        xtype::BIT => 1,
        xtype::TINYINT | xtype::SMALLINT | xtype::INT => 12,
        xtype::BIGINT => 20,
        xtype::DECIMAL | xtype::NUMERIC => 41,
        _ => return no(format!("implicit conversion of {} to varchar", value.ty.info.name())),
    };
    implicit(value, &Ty::bytes(xtype::VARCHAR, length))
}

struct NoRow;

impl Row for NoRow {
    fn field(&self, _index: usize) -> Field<'_> {
        Field::Unknown
    }
}

/// Evaluates a conversion of a constant at compile time. If the conversion fails or has a long result, it stays in the
/// program and is evaluated for each row.
fn folded(node: Node) -> Node {
    let Node::Convert(conversion) = &node else { return node };
    if !matches!(conversion.value, Node::Const(_)) {
        return node;
    }
    let mut scratch = Scratch::default();
    let mut env = Env { row: &NoRow, scratch: &mut scratch };
    match node.evaluate(&mut env) {
        Ok(Datum::Ansi(text) | Datum::Unicode(text) | Datum::Binary(text))
            if env.bytes(text).len() > LONGEST_FOLDED =>
        {
            node
        }
        Ok(cell) => Node::Const(cell.map(|text| env.bytes(text).into())),
        Err(_) => node,
    }
}
