//! Arithmetic on numbers, and comparisons of numbers, dates and guids.

use std::cmp::Ordering;

use format::types::xtype;

use crate::Undecided;
use crate::ast::BinaryOp;
use crate::calendar;
use crate::env::{Cell, Outcome};
use crate::types::Ty;
use crate::value::Datum;

pub(crate) const OVERFLOW: Undecided = Undecided { reason: "arithmetic overflow" };
const DIVIDE_BY_ZERO: Undecided = Undecided { reason: "division by zero" };
const LONG_PRODUCT: Undecided = Undecided { reason: "a product of more than 38 digits" };
/// The error for float arithmetic with a result that is not exact.
pub(crate) const ROUNDED: Undecided = Undecided { reason: "arithmetic of floats that rounds" };
const TIE: Undecided = Undecided { reason: "money rounded at exactly half" };
const WRONG_TYPE: Undecided = Undecided { reason: "a value of an unexpected type" };

/// `10^n`, for n up to 38.
#[expect(clippy::indexing_slicing, reason = "no index is greater than 38")]
pub(crate) fn power_of_ten(n: u8) -> i128 {
    const POWERS: [i128; 39] = {
        let mut powers = [1i128; 39];
        let mut n = 1;
        while n < powers.len() {
            powers[n] = powers[n - 1] * 10;
            n += 1;
        }
        powers
    };
    POWERS[usize::from(n.min(38))]
}

/// The unscaled value and scale of an exact number.
#[inline]
pub(crate) fn exact(cell: Cell<'_>) -> Option<(i128, u8)> {
    match cell {
        Datum::Bit(value) => Some((value.into(), 0)),
        Datum::Int(value) => Some((value.into(), 0)),
        Datum::Decimal(value, scale) => Some((value, scale)),
        Datum::Money(value) => Some((value.into(), 4)),
        _ => None,
    }
}

/// Converts a whole number to float. For a number with a fraction, the result is undecided. Before compatibility level
/// 130, the division by a power of ten could make the last bit wrong (Microsoft, KB 4010261).
pub(crate) fn as_float(cell: Cell<'_>) -> Result<f64, Undecided> {
    if let Datum::Float(value) = cell {
        return Ok(value);
    }
    let (value, scale) = exact(cell).ok_or(WRONG_TYPE)?;
    let unit = power_of_ten(scale);
    if value.unsigned_abs() > 1 << 53 || value % unit != 0 {
        return Err(Undecided { reason: "a decimal that float does not hold exactly" });
    }
    Ok((value / unit) as f64)
}

/// Compares a float with a number of an exact type, which a float may be unable to represent exactly. The result is
/// undecided if the two numbers differ only in the last bits.
fn float_order(float: f64, other: Cell<'_>) -> Result<Ordering, Undecided> {
    let (value, scale) = exact(other).ok_or(WRONG_TYPE)?;
    let other = value as f64 / 10f64.powi(scale.into());
    if (float - other).abs() <= other.abs() * (16.0 * f64::EPSILON) {
        return Err(Undecided { reason: "a float with a decimal that it does not hold exactly" });
    }
    float.partial_cmp(&other).ok_or(Undecided { reason: "a float that is not a number" })
}

/// Converts an unscaled value from one scale to another. For a lower scale, halves are rounded away from zero, as in
/// SQL Server's conversions (Microsoft, CAST and CONVERT).
pub(crate) fn rescale(value: i128, from: u8, to: u8) -> Option<i128> {
    // A power of ten of 39 or more digits exceeds 128 bits.
    if to.abs_diff(from) > 38 {
        return (to < from || value == 0).then_some(0);
    }
    if to == from {
        return Some(value);
    }
    if to > from {
        return value.checked_mul(power_of_ten(to - from));
    }
    let unit = power_of_ten(from - to);
    let (quotient, rest) = (value / unit, value % unit);
    let up = rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
    Some(quotient + if up { value.signum() } else { 0 })
}

/// A decimal value; an error if the value has more than `precision` digits.
pub(crate) fn fit_decimal(value: i128, precision: u8, scale: u8) -> Outcome<'static> {
    if value.unsigned_abs() < power_of_ten(precision).unsigned_abs() {
        Ok(Datum::Decimal(value, scale))
    } else {
        Err(OVERFLOW)
    }
}

/// An integer value; an error if the value does not fit the type `kind`, which must not be bit.
pub(crate) fn fit_integer(value: i128, kind: u8) -> Outcome<'static> {
    let fits = match kind {
        xtype::TINYINT => u8::try_from(value).is_ok(),
        xtype::SMALLINT => i16::try_from(value).is_ok(),
        xtype::INT => i32::try_from(value).is_ok(),
        _ => true,
    };
    match i64::try_from(value) {
        Ok(value) if fits => Ok(Datum::Int(value)),
        _ => Err(OVERFLOW),
    }
}

/// A money value; an error if the value does not fit the type `kind`.
pub(crate) fn fit_money(value: i128, kind: u8) -> Outcome<'static> {
    let fits = kind != xtype::SMALLMONEY || i32::try_from(value).is_ok();
    match i64::try_from(value) {
        Ok(value) if fits => Ok(Datum::Money(value)),
        _ => Err(OVERFLOW),
    }
}

/// A float value; an error if the value exceeds the range of the type `kind`.
pub(crate) fn fit_float(value: f64, kind: u8) -> Outcome<'static> {
    let value = if kind == xtype::REAL { f64::from(value as f32) } else { value };
    if value.is_finite() { Ok(Datum::Float(value)) } else { Err(OVERFLOW) }
}

/// Evaluates `a op b`. The result has the type `ty`.
pub(crate) fn arithmetic(op: BinaryOp, a: Cell<'_>, b: Cell<'_>, ty: &Ty) -> Outcome<'static> {
    match (a, b) {
        (Datum::DateTime(days, ticks), Datum::Int(more)) => return shift_datetime(days, ticks, more, op),
        (Datum::SmallDateTime(days, minutes), Datum::Int(more)) => {
            let more = if op == BinaryOp::Subtract { more.checked_neg().ok_or(OVERFLOW)? } else { more };
            let days = i64::from(days).checked_add(more).and_then(|days| u16::try_from(days).ok()).ok_or(OVERFLOW)?;
            return Ok(Datum::SmallDateTime(days, minutes));
        }
        _ => {}
    }
    // Integers are the most common case and need no 128-bit arithmetic. If an operation overflows here, the general
    // code below handles it.
    if let (Datum::Int(a), Datum::Int(b), true) = (a, b, ty.is_integer()) {
        let value = match op {
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Subtract => a.checked_sub(b),
            BinaryOp::Multiply => a.checked_mul(b),
            BinaryOp::Divide => a.checked_div(b),
            BinaryOp::Modulo => a.checked_rem(b),
            _ => None,
        };
        if let Some(value) = value {
            let fits = match ty.kind() {
                xtype::INT => i32::try_from(value).is_ok(),
                xtype::SMALLINT => i16::try_from(value).is_ok(),
                xtype::TINYINT => u8::try_from(value).is_ok(),
                _ => true,
            };
            return if fits { Ok(Datum::Int(value)) } else { Err(OVERFLOW) };
        }
    }
    if ty.is_float() {
        return float(op, as_float(a)?, as_float(b)?, ty.kind());
    }
    let ((a, a_scale), (b, b_scale)) = (exact(a).ok_or(WRONG_TYPE)?, exact(b).ok_or(WRONG_TYPE)?);
    if ty.is_decimal() {
        decimal(op, (a, a_scale), (b, b_scale), ty)
    } else if ty.is_money() {
        let a = rescale(a, a_scale, 4).ok_or(OVERFLOW)?;
        let b = rescale(b, b_scale, 4).ok_or(OVERFLOW)?;
        // The amounts must fit 64 bits, so that their product fits 128 bits.
        i64::try_from(a).and(i64::try_from(b)).map_err(|_| OVERFLOW)?;
        fit_money(money(op, a, b)?, ty.kind())
    } else {
        let value = integer(op, a, b)?;
        if ty.kind() == xtype::BIT { Ok(Datum::Bit(value != 0)) } else { fit_integer(value, ty.kind()) }
    }
}

fn shift_datetime(days: i32, ticks: u32, more: i64, op: BinaryOp) -> Outcome<'static> {
    let more = if op == BinaryOp::Subtract { more.checked_neg().ok_or(OVERFLOW)? } else { more };
    let days = i64::from(days).checked_add(more).and_then(|days| i32::try_from(days).ok()).ok_or(OVERFLOW)?;
    if calendar::DATETIME_DAYS.contains(&days) { Ok(Datum::DateTime(days, ticks)) } else { Err(OVERFLOW) }
}

fn integer(op: BinaryOp, a: i128, b: i128) -> Result<i128, Undecided> {
    Ok(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a.checked_mul(b).ok_or(OVERFLOW)?,
        BinaryOp::Divide => a.checked_div(b).ok_or(DIVIDE_BY_ZERO)?,
        BinaryOp::Modulo => a.checked_rem(b).ok_or(DIVIDE_BY_ZERO)?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Compare(_) => return Err(WRONG_TYPE),
    })
}

/// Multiplies or divides amounts of money. Products are rounded, and quotients are truncated: 18.4172 * 1.1562 is
/// 21.2940 and 1.00 / 18.4172 is 0.0542. How SQL Server rounds exact halves, and quotients below zero, is undocumented.
fn money(op: BinaryOp, a: i128, b: i128) -> Result<i128, Undecided> {
    Ok(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => {
            let product = a * b;
            if product % 10_000 == 5_000 * product.signum() {
                return Err(TIE);
            }
            rescale(product, 4, 0).ok_or(OVERFLOW)?
        }
        BinaryOp::Divide => {
            let dividend = a * 10_000;
            let rest = dividend.checked_rem(b).ok_or(DIVIDE_BY_ZERO)?;
            if rest != 0 && (a < 0) != (b < 0) {
                return Err(Undecided { reason: "a negative quotient of money" });
            }
            dividend / b
        }
        BinaryOp::Modulo => a.checked_rem(b).ok_or(DIVIDE_BY_ZERO)?,
        _ => return Err(WRONG_TYPE),
    })
}

fn decimal(op: BinaryOp, (a, a_scale): (i128, u8), (b, b_scale): (i128, u8), ty: &Ty) -> Outcome<'static> {
    let (precision, scale) = (ty.info.precision, ty.info.scale);
    let value = match op {
        BinaryOp::Multiply => {
            let product = a.checked_mul(b).ok_or(LONG_PRODUCT)?;
            rescale(product, a_scale + b_scale, scale).ok_or(OVERFLOW)?
        }
        BinaryOp::Divide => {
            if b == 0 {
                return Err(DIVIDE_BY_ZERO);
            }
            // The dividend is scaled so that the quotient has the scale of the result. The remainder is discarded, as
            // in System.Data.SqlTypes.SqlDecimal, which uses "exactly the same scheme" as the server.
            let wanted = scale + b_scale;
            if wanted < a_scale && a % power_of_ten(a_scale - wanted) != 0 {
                return Err(Undecided { reason: "a quotient whose dividend loses digits" });
            }
            let dividend = rescale(a, a_scale, wanted).ok_or(OVERFLOW)?;
            if dividend.unsigned_abs() >= power_of_ten(38).unsigned_abs() {
                return Err(OVERFLOW);
            }
            dividend / b
        }
        _ => {
            let common = a_scale.max(b_scale);
            let a = rescale(a, a_scale, common).ok_or(OVERFLOW)?;
            let b = rescale(b, b_scale, common).ok_or(OVERFLOW)?;
            let value = match op {
                BinaryOp::Add => a.checked_add(b).ok_or(OVERFLOW)?,
                BinaryOp::Subtract => a.checked_sub(b).ok_or(OVERFLOW)?,
                BinaryOp::Modulo => a.checked_rem(b).ok_or(DIVIDE_BY_ZERO)?,
                _ => return Err(WRONG_TYPE),
            };
            // Microsoft does not document whether SQL Server rounds the operands or the sum.
            if scale < common && value % power_of_ten(common - scale) != 0 {
                return Err(Undecided { reason: "a sum that loses digits" });
            }
            rescale(value, common, scale).ok_or(OVERFLOW)?
        }
    };
    fit_decimal(value, precision, scale)
}

/// Whether a value is large enough for the tests of exactness. These tests need a rounding error that is a normal
/// number: for a smaller result, the rounding error could be a denormal number or zero.
fn is_large(value: f64) -> bool {
    value.abs() > 1e-270
}

/// Evaluates float arithmetic. The result is decided only if it is exact, because the last bit of a rounded result
/// depends on the math library and the processor.
fn float(op: BinaryOp, a: f64, b: f64, kind: u8) -> Outcome<'static> {
    let b = if op == BinaryOp::Subtract { -b } else { b };
    let (value, is_exact) = match op {
        BinaryOp::Add | BinaryOp::Subtract => {
            let sum = a + b;
            let back = sum - a;
            (sum, (a - (sum - back)) + (b - back) == 0.0)
        }
        BinaryOp::Multiply => (a * b, is_large(a * b) && a.mul_add(b, -(a * b)) == 0.0 || a == 0.0 || b == 0.0),
        BinaryOp::Divide if b == 0.0 => return Err(DIVIDE_BY_ZERO),
        BinaryOp::Divide => (a / b, is_large(a / b) && is_large(a) && (a / b).mul_add(b, -a) == 0.0 || a == 0.0),
        _ => return Err(WRONG_TYPE),
    };
    let is_exact = is_exact && (kind != xtype::REAL || f64::from(value as f32) == value);
    if !is_exact || value == 0.0 && value.is_sign_negative() {
        return Err(ROUNDED);
    }
    fit_float(value, kind)
}

/// The order of two exact numbers.
fn exact_order((a, a_scale): (i128, u8), (b, b_scale): (i128, u8)) -> Ordering {
    if a_scale == b_scale {
        return a.cmp(&b);
    }
    let scale = a_scale.max(b_scale);
    match (rescale(a, a_scale, scale), rescale(b, b_scale, scale)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // Only the number with the lower scale is rescaled. If its unscaled value then overflows, its absolute value is
        // larger than any number of 38 digits, so its sign decides the order.
        (None, _) => a.signum().cmp(&0),
        (_, None) => 0.cmp(&b.signum()),
    }
}

/// The order of two values that are not strings.
pub(crate) fn order(a: Cell<'_>, b: Cell<'_>, single: bool) -> Result<Ordering, Undecided> {
    if let (Some(a), Some(b)) = (exact(a), exact(b)) {
        return Ok(exact_order(a, b));
    }
    Ok(match (a, b) {
        (Datum::Float(_), _) | (_, Datum::Float(_)) => {
            let whole = (as_float(a), as_float(b));
            let (a, b) = match (whole, a, b) {
                ((Ok(a), Ok(b)), ..) => (a, b),
                (_, Datum::Float(a), b) if !single => return float_order(a, b),
                (_, a, Datum::Float(b)) if !single => return float_order(b, a).map(Ordering::reverse),
                ((Err(why), _) | (_, Err(why)), ..) => return Err(why),
            };
            let (a, b) = if single { (f64::from(a as f32), f64::from(b as f32)) } else { (a, b) };
            a.partial_cmp(&b).ok_or(Undecided { reason: "a float that is not a number" })?
        }
        (Datum::Date(a), Datum::Date(b)) => a.cmp(&b),
        (Datum::Time(a), Datum::Time(b)) => a.cmp(&b),
        (Datum::DateTime(..), Datum::DateTime(..)) | (Datum::SmallDateTime(..), Datum::SmallDateTime(..)) => {
            let key = |cell| match cell {
                Datum::DateTime(days, ticks) => (days, ticks),
                Datum::SmallDateTime(days, minutes) => (i32::from(days), u32::from(minutes)),
                _ => (0, 0),
            };
            key(a).cmp(&key(b))
        }
        (Datum::DateTime2(a, a_time), Datum::DateTime2(b, b_time)) => (a, a_time).cmp(&(b, b_time)),
        (Datum::DateTimeOffset(a, a_time, _), Datum::DateTimeOffset(b, b_time, _)) => (a, a_time).cmp(&(b, b_time)),
        (Datum::Guid(a), Datum::Guid(b)) => {
            let key = |g: [u8; 16]| {
                [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3].map(|at: usize| g.get(at).copied().unwrap_or(0))
            };
            key(a).cmp(&key(b))
        }
        _ => return Err(WRONG_TYPE),
    })
}
