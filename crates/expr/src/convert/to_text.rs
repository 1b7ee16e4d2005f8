//! Conversions from numbers, dates and guids to char and nchar.

use std::fmt;

use format::types::xtype;

use crate::Undecided;
use crate::env::{Cell, Env, Outcome, Text};
use crate::moment::{Styled, moment, style};
use crate::node::Conversion;
use crate::numeric::{OVERFLOW, power_of_ten, rescale};
use crate::types::Ty;
use crate::value::Datum;

/// Prints a decimal, from its unscaled value and its scale, without allocating memory.
struct Digits(i128, u8);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, scale) = *self;
        let unit = power_of_ten(scale).unsigned_abs();
        let (whole, fraction) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
        let sign = if value < 0 { "-" } else { "" };
        write!(f, "{sign}{whole}")?;
        if scale > 0 { write!(f, ".{fraction:0width$}", width = usize::from(scale)) } else { Ok(()) }
    }
}

/// Prints an amount in hundredths, with two decimal digits and with commas between groups of three digits.
struct Grouped(i128);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, cents) = (self.0.unsigned_abs() / 100, self.0.unsigned_abs() % 100);
        f.write_str(if self.0 < 0 { "-" } else { "" })?;
        let mut unit = 1u128;
        while whole / unit >= 1000 {
            unit *= 1000;
        }
        write!(f, "{}", whole / unit)?;
        while unit > 1 {
            unit /= 1000;
            write!(f, ",{:03}", whole / unit % 1000)?;
        }
        write!(f, ".{cents:02}")
    }
}

pub(super) fn convert<'a>(value: Cell<'a>, conversion: &Conversion, env: &mut Env<'a>) -> Outcome<'a> {
    let (from, to) = (&conversion.from, &conversion.to);
    let wide = to.is_unicode();
    let text = match value {
        Datum::Bit(bit) => env.print(wide, format_args!("{}", u8::from(bit)))?,
        Datum::Int(number) => env.print_integer(wide, number)?,
        Datum::Decimal(number, scale) => env.print(wide, format_args!("{}", Digits(number, scale)))?,
        Datum::Money(amount) => money(amount, conversion.style, wide, env)?,
        Datum::Guid(bytes) => {
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
            let (first, second) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
            let (third, fourth) = (u16::from_le_bytes([g, h]), u16::from_be_bytes([i, j]));
            let last = u64::from_be_bytes([0, 0, k, l, m, n, o, p]);
            env.print(wide, format_args!("{first:08X}-{second:04X}-{third:04X}-{fourth:04X}-{last:012X}"))?
        }
        _ => {
            let moment = moment(value).ok_or(OVERFLOW)?;
            let style = style(conversion.style).ok_or(OVERFLOW)?;
            let digits = if from.kind() == xtype::DATETIME2 { u32::from(from.info.scale) } else { 3 };
            let date_only = from.kind() == xtype::DATE;
            env.print(wide, format_args!("{}", Styled { style: &style, moment, digits, date_only }))?
        }
    };
    fit(text, from, to, env)
}

fn money<'a>(amount: i64, style: i32, wide: bool, env: &mut Env<'a>) -> Result<Text<'a>, Undecided> {
    if style == 2 {
        return env.print(wide, format_args!("{}", Digits(amount.into(), 4)));
    }
    if (amount % 100).unsigned_abs() == 50 {
        return Err(Undecided { reason: "money rounded at exactly half" });
    }
    let cents = rescale(amount.into(), 4, 2).ok_or(OVERFLOW)?;
    if style == 1 {
        env.print(wide, format_args!("{}", Grouped(cents)))
    } else {
        env.print(wide, format_args!("{}", Digits(cents, 2)))
    }
}

/// Converts the printed text of a value to the string type `to`. If the text is too long, an integer becomes `*` if
/// `to` is char, a date is cut off, and any other value is an error (Microsoft, CAST and CONVERT, "Truncating and
/// rounding results").
fn fit<'a>(text: Text<'a>, from: &Ty, to: &Ty, env: &mut Env<'a>) -> Outcome<'a> {
    let wide = to.is_unicode();
    let length = env.bytes(text).len();
    let most = if to.is_max() { length } else { usize::from(to.info.length) };
    let text = if length <= most {
        text
    } else if from.is_moment() {
        env.part(text, 0, most)
    } else if from.is_integer() && from.kind() != xtype::BIGINT && !wide {
        env.print(false, format_args!("*"))?
    } else {
        return Err(Undecided { reason: "a string too short for the number" });
    };
    pad(text, to, env)
}

/// Converts the text to a string of type `to`. If `to` has a fixed length, the text is padded with blanks.
pub(super) fn pad<'a>(text: Text<'a>, to: &Ty, env: &mut Env<'a>) -> Outcome<'a> {
    let wide = to.is_unicode();
    let length = env.bytes(text).len();
    let fixed = matches!(to.kind(), xtype::CHAR | xtype::NCHAR);
    let text = if fixed && length < usize::from(to.info.length) {
        env.reserve(usize::from(to.info.length) - length)?;
        let start = env.begin();
        env.append(text)?;
        let width = if wide { 2 } else { 1 };
        for _ in 0..(usize::from(to.info.length) - length) / width {
            env.push(0x20, wide);
        }
        env.made(start)
    } else {
        text
    };
    Ok(if wide { Datum::Unicode(text) } else { Datum::Ansi(text) })
}
