//! Evaluates mathematical functions. A function has a value only if its result is exact.

use format::types::xtype;

use super::{WRONG, integer};
use crate::Undecided;
use crate::env::{Cell, Env, Outcome};
use crate::node::{CallTypes, Func};
use crate::numeric::{
    OVERFLOW, ROUNDED, as_float, exact, fit_decimal, fit_float, fit_integer, fit_money, power_of_ten, rescale,
};
use crate::types::Ty;
use crate::value::Datum;

/// Evaluates abs, ceiling, floor, round, sign, `-` and `~`.
pub(super) fn exact_function(func: Func, args: &[Cell<'_>], types: &CallTypes) -> Outcome<'static> {
    let value = *args.first().ok_or(WRONG)?;
    let to = &types.result;
    if let Datum::Float(value) = value {
        let value = match func {
            Func::Abs => value.abs(),
            Func::Negate => -value,
            Func::Ceiling => value.ceil(),
            Func::Floor => value.floor(),
            Func::Sign if value == 0.0 => 0.0,
            Func::Sign => value.signum(),
            Func::Round if value.trunc() == value && args.get(1).is_some_and(|&n| integer(n).is_ok_and(|n| n >= 0)) => {
                value
            }
            _ => return Err(Undecided { reason: "a rounded float" }),
        };
        return fit_float(value, to.kind());
    }
    let (value, scale) = exact(value).ok_or(WRONG)?;
    let unit = power_of_ten(scale);
    let (value, scale) = match func {
        Func::Abs => (value.abs(), scale),
        Func::Negate => (-value, scale),
        Func::BitNot if to.kind() == xtype::BIT => return Ok(Datum::Bit(value == 0)),
        Func::BitNot => (!value, scale),
        Func::Ceiling => (-(-value).div_euclid(unit), 0),
        Func::Floor => (value.div_euclid(unit), 0),
        Func::Sign => (value.signum(), 0),
        _ => {
            let length = integer(*args.get(1).ok_or(WRONG)?)?;
            let truncates = args.get(2).map_or(Ok(false), |&function| integer(function).map(|number| number != 0))?;
            (rounded(value, scale, length, truncates)?, scale)
        }
    };
    exact_as(value, scale, to)
}

/// Converts an exact number to the type of the result. A negative number for a tinyint is the result of `~`, which
/// inverts only the eight bits of a tinyint.
fn exact_as(value: i128, scale: u8, to: &Ty) -> Outcome<'static> {
    if to.is_money() {
        fit_money(rescale(value, scale, 4).ok_or(OVERFLOW)?, to.kind())
    } else if to.is_decimal() {
        let value = rescale(value, scale, to.info.scale).ok_or(OVERFLOW)?;
        fit_decimal(value, to.info.precision, to.info.scale)
    } else if to.kind() == xtype::TINYINT && value < 0 {
        fit_integer(value & 0xFF, to.kind())
    } else {
        fit_integer(value, to.kind())
    }
}

/// Evaluates ROUND. Halves are rounded away from zero: 150.75 becomes 151 (Microsoft, ROUND).
fn rounded(value: i128, scale: u8, length: i64, truncates: bool) -> Result<i128, Undecided> {
    let lost = i64::from(scale).saturating_sub(length);
    if lost <= 0 {
        return Ok(value);
    }
    if lost > 37 {
        return Ok(0);
    }
    let unit = power_of_ten(lost as u8);
    let part = if truncates { value / unit } else { rescale(value, lost as u8, 0).ok_or(OVERFLOW)? };
    part.checked_mul(unit).ok_or(OVERFLOW)
}

/// Evaluates POWER, SQRT and SQUARE. A whole number raised to a whole power is exact in every implementation if the
/// result is below 2^53. For other results, the last bit depends on the C library.
pub(super) fn float_function(func: Func, a: Cell<'_>, b: Cell<'_>, types: &CallTypes) -> Outcome<'static> {
    const SOFT: Undecided = Undecided { reason: "a float whose last bit depends on the library" };
    let to = &types.result;
    match func {
        Func::Square => {
            let value = as_float(a)?;
            let square = value * value;
            if value.mul_add(value, -square) != 0.0 { Err(ROUNDED) } else { fit_float(square, to.kind()) }
        }
        Func::Sqrt => {
            let value = as_float(a)?;
            let root = value.sqrt();
            if value < 0.0 {
                Err(Undecided { reason: "root of a negative number" })
            } else if root.mul_add(root, -value) != 0.0 {
                Err(ROUNDED)
            } else {
                fit_float(root, to.kind())
            }
        }
        _ => {
            let exponent = match b {
                Datum::Float(_) => return Err(SOFT),
                _ => integer(b).map_err(|_| SOFT)?,
            };
            let exponent = u32::try_from(exponent).map_err(|_| SOFT)?;
            let (base, scale) = match a {
                Datum::Float(value) if value.trunc() == value && value.abs() < 9e15 => (value as i128, 0),
                Datum::Float(_) => return Err(SOFT),
                _ => exact(a).ok_or(WRONG)?,
            };
            if scale > 0 && exponent != 1 {
                return Err(SOFT);
            }
            let value = base.checked_pow(exponent).filter(|value| value.unsigned_abs() < 1 << 53).ok_or(SOFT)?;
            if to.is_float() { fit_float(value as f64, to.kind()) } else { exact_as(value, scale, to) }
        }
    }
}

/// Evaluates STR for a whole number. The text is right-justified. If the number is too long, the text consists of
/// asterisks.
pub(super) fn str_text<'a>(args: &[Cell<'a>], env: &mut Env<'a>) -> Outcome<'a> {
    let value = as_float(*args.first().ok_or(WRONG)?)?;
    let length = args.get(1).map_or(Ok(10), |&length| integer(length))?;
    let decimals = args.get(2).map_or(Ok(0), |&decimals| integer(decimals))?;
    if value.trunc() != value || value.abs() >= 1e15 || !(1..=8000).contains(&length) || !(0..=16).contains(&decimals) {
        return Err(Undecided { reason: "STR of a fraction" });
    }
    let whole = value as i64;
    let digits = i64::try_from(whole.to_string().len()).map_err(|_| WRONG)?;
    if digits > length {
        env.reserve(length as usize)?;
        let start = env.begin();
        (0..length).for_each(|_| env.push(u16::from(b'*'), false));
        return Ok(Datum::Ansi(env.made(start)));
    }
    // Decimal digits that do not fit are cut off. The decimal point needs one character too.
    let room = (length - digits - 1).clamp(0, decimals) as usize;
    let width = length as usize;
    Ok(Datum::Ansi(if room == 0 {
        env.print(false, format_args!("{whole:width$}"))?
    } else {
        env.print(false, format_args!("{whole:width$}.{:0room$}", 0, width = width - room - 1))?
    }))
}
