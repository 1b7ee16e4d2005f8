//! Compiles operators.

use format::collation::{CollationId, code_page};
use format::types::xtype;

use super::{Typed, folded, implicit, no};
use crate::Unsupported;
use crate::ast::{BinaryOp, UnaryOp};
use crate::node::{CallTypes, Comparison, Conversion, Func, Node};
use crate::types::{Ty, arithmetic, collate};
use crate::value::Datum;

/// Compiles the operators with one operand: `-`, `+`, `~`.
pub(super) fn unary(op: UnaryOp, value: Typed) -> Result<Typed, Unsupported> {
    let ty = value.ty;
    let refused = || no(format!("unary operator of {}", ty.info.name()));
    let func = match op {
        UnaryOp::Plus if ty.is_number() => return Ok(value),
        // Microsoft does not document the type of a negated tinyint.
        UnaryOp::Minus if ty.is_number() && !matches!(ty.kind(), xtype::TINYINT | xtype::BIT) => Func::Negate,
        UnaryOp::BitNot if ty.is_integer() || ty.kind() == xtype::BIT => Func::BitNot,
        _ => return refused(),
    };
    if let (Node::Const(Datum::Int(number)), Func::Negate) = (&value.node, func) {
        return Ok(Typed { node: Node::Const(Datum::Int(-number)), ty });
    }
    let types = CallTypes { args: vec![ty], result: ty, collation: ty.collation };
    Ok(Typed { node: Node::Call(func, vec![value.node], Box::new(types)), ty: Ty { digits: 0, ..ty } })
}

/// Compiles the operators with two operands: `+ - * / % & | ^`.
pub(super) fn binary(op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, Unsupported> {
    if op == BinaryOp::Add && (left.ty.is_string() || right.ty.is_string()) {
        let texts = (left.ty.is_string() || left.ty.is_null()) && (right.ty.is_string() || right.ty.is_null());
        if texts {
            return concat(left, right);
        }
    }
    let (mut left, mut right) = (left, right);
    if left.ty.is_null() || right.ty.is_null() {
        let ty = if left.ty.is_null() { right.ty } else { left.ty };
        return Ok(Typed { node: Node::Const(Datum::Null), ty });
    }
    let days = |ty: &Ty| matches!(ty.kind(), xtype::DATETIME | xtype::SMALLDATETIME);
    if days(&left.ty) && right.ty.is_integer() && matches!(op, BinaryOp::Add | BinaryOp::Subtract) {
        let ty = Ty { nullable: true, ..left.ty };
        return Ok(Typed { node: Node::Arithmetic(Box::new((op, left.node, right.node)), ty), ty });
    }
    // A string that is combined with an integer is converted to an integer. A string that is combined with any other
    // number is not converted, because the precision of the converted string would be a guess.
    if left.ty.is_string() && right.ty.is_integer() {
        let to = Ty { digits: 0, ..right.ty };
        left = implicit(left, &to)?;
    } else if right.ty.is_string() && left.ty.is_integer() {
        let to = Ty { digits: 0, ..left.ty };
        right = implicit(right, &to)?;
    }
    let ty = arithmetic(op, &left.ty, &right.ty)?;
    Ok(Typed { node: Node::Arithmetic(Box::new((op, left.node, right.node)), ty), ty })
}

/// Compiles `+` of strings. The length of the result is the sum of both lengths, but at most 8000 bytes, unless one
/// operand is (max).
fn concat(left: Typed, right: Typed) -> Result<Typed, Unsupported> {
    let (collation, label) = collate(&left.ty, &right.ty)?;
    let unicode = left.ty.is_unicode() || right.ty.is_unicode();
    let fixed = |ty: &Ty| matches!(ty.kind(), xtype::CHAR | xtype::NCHAR);
    let kind = match (unicode, fixed(&left.ty) && fixed(&right.ty)) {
        (true, true) => xtype::NCHAR,
        (true, false) => xtype::NVARCHAR,
        (false, true) => xtype::CHAR,
        (false, false) => xtype::VARCHAR,
    };
    let max = [&left.ty, &right.ty].iter().any(|ty| ty.is_string() && ty.is_max());
    let characters = |ty: &Ty| if ty.is_string() { ty.characters().unwrap_or(0) } else { 1 };
    let total = u32::from(characters(&left.ty)) + u32::from(characters(&right.ty));
    let total = if unicode { total.min(4000) * 2 } else { total.min(8000) };
    let mut ty = Ty::bytes(if max { if unicode { xtype::NVARCHAR } else { xtype::VARCHAR } } else { kind }, 0);
    if !max {
        ty.info.length = total as u16;
    }
    (ty.collation, ty.label) = (collation, label);
    ty.nullable = left.ty.nullable || right.ty.nullable;
    let in_page = |value: Typed| if unicode { widened(value, true) } else { recoded(value, collation) };
    let (left, right) = (in_page(left)?, in_page(right)?);
    let most = if max { usize::MAX / 2 } else { 8000 };
    Ok(Typed { node: Node::Concat(Box::new((left.node, right.node)), most), ty })
}

/// Prepares two strings for a comparison, and returns the rules of the comparison. If both strings are char, converts
/// each to the code page of the collation under which they are compared.
pub(super) fn comparable(left: Typed, right: Typed) -> Result<(Typed, Typed, Comparison), Unsupported> {
    let collation = collate(&left.ty, &right.ty)?.0;
    let is_char = |ty: &Ty| ty.is_string() && !ty.is_unicode();
    let of_char = if is_char(&left.ty) { left.ty.collation } else { right.ty.collation };
    let how = Comparison { collation, of_char, ..Comparison::default() };
    if is_char(&left.ty) && is_char(&right.ty) {
        return Ok((recoded(left, collation)?, recoded(right, collation)?, how));
    }
    Ok((left, right, how))
}

/// Converts a char value to the code page of `collation`, if the value's own collation has a different code page.
pub(super) fn recoded(value: Typed, collation: CollationId) -> Result<Typed, Unsupported> {
    let own = value.ty.collation;
    let is_char = value.ty.is_string() && !value.ty.is_unicode();
    let (from, to) = (code_page(own), code_page(collation));
    // No conversion is needed if the code pages are equal, or if one collation is unknown (0). A literal has collation
    // 0 if the caller passed no default collation, and the value of such a literal is ASCII.
    if !is_char || own == collation || own.0 == 0 || collation.0 == 0 || from.is_some() && from == to {
        return Ok(value);
    }
    let to = Ty { collation, ..value.ty };
    let conversion = Conversion { value: value.node, from: value.ty, to, style: 0 };
    Ok(Typed { node: folded(Node::Convert(Box::new(conversion))), ty: to })
}

/// Converts a char value to nchar if `unicode` is set.
pub(super) fn widened(value: Typed, unicode: bool) -> Result<Typed, Unsupported> {
    if !unicode || value.ty.is_unicode() || value.ty.is_null() {
        return Ok(value);
    }
    let kind = if value.ty.kind() == xtype::CHAR { xtype::NCHAR } else { xtype::NVARCHAR };
    let length = value.ty.characters().map_or(0, |n| n.min(4000) * 2);
    let to = Ty { collation: value.ty.collation, label: value.ty.label, ..Ty::bytes(kind, length) };
    implicit(value, &to)
}
