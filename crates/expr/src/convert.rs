//! CONVERT, CAST and implicit conversions. Decides which conversions are supported, and evaluates them.

mod from_text;
mod to_text;

use format::types::xtype;

use crate::calendar::{self, DAYS_TO_1900, TICKS_PER_DAY, UNITS_PER_DAY, UNITS_PER_SECOND};
use crate::env::{Cell, Env, Outcome};
use crate::moment::{Moment, moment, style};
use crate::node::Conversion;
use crate::numeric::{OVERFLOW, exact, fit_decimal, fit_float, fit_integer, fit_money, rescale};
use crate::types::Ty;
use crate::value::{Datum, time_unit};
use crate::{Undecided, Unsupported};

/// Checks that a conversion is completely supported. `wanted` is the style, which is CONVERT's third argument.
pub(crate) fn check(from: &Ty, to: &Ty, wanted: Option<i32>) -> Result<(), Unsupported> {
    let no = |what: String| Err(Unsupported { what });
    let pair = || format!("conversion of {} to {}", from.info.name(), to.info.name());
    if from.is_null() {
        return Ok(());
    }
    let number = wanted.unwrap_or(0);
    if from.is_moment() && to.is_string() {
        if from.kind() == xtype::DATETIMEOFFSET || from.kind() == xtype::TIME {
            return no(pair());
        }
        let Some(wanted) = wanted else {
            return no(format!("{} without a style: it depends on language or compatibility level", pair()));
        };
        return match style(wanted) {
            Some(style) if style.is_time_only() && from.kind() == xtype::DATE => no(pair()),
            // The supported styles with a fraction of a second, except 121, are refused for datetime2: Microsoft
            // documents their number of fraction digits only for datetime.
            Some(style) if from.kind() == xtype::DATETIME2 && style.has_fraction() && number != 121 => {
                no(format!("{} with style {wanted}", pair()))
            }
            Some(_) => Ok(()),
            None => no(format!("{} with style {wanted}", pair())),
        };
    }
    let money_style = from.is_money() && to.is_string() && (0..=2).contains(&number);
    let date_style = from.is_string()
        && to.is_moment()
        && [20, 21, 23, 25, 101, 102, 103, 104, 105, 110, 111, 112, 120, 121, 126].contains(&number);
    let numbers = from.is_number() && to.is_number();
    if number != 0 && !money_style && !date_style && !numbers {
        return no(format!("{} with style {number}", pair()));
    }
    let binary = |ty: &Ty| matches!(ty.kind(), xtype::BINARY | xtype::VARBINARY);
    let guid = xtype::UNIQUEIDENTIFIER;
    let fine = from.is_number() && to.is_number()
        || from.is_number() && !from.is_float() && to.is_string()
        || from.is_string() && (to.is_number() || to.is_string() || to.kind() == guid)
        || from.is_string() && to.is_moment() && to.kind() != xtype::DATETIMEOFFSET
        || from.is_string() && binary(to)
        || from.kind() == guid && (to.is_string() || to.kind() == guid)
        || binary(from) && binary(to)
        || from.is_integer() && to.kind() == xtype::DATETIME
        || from.is_moment() && to.is_moment() && moments_convert(from.kind(), to.kind());
    if fine { Ok(()) } else { no(pair()) }
}

fn moments_convert(from: u8, to: u8) -> bool {
    from == to && from != xtype::DATETIMEOFFSET
        || !matches!(from, xtype::DATETIMEOFFSET | xtype::TIME)
            && matches!(to, xtype::DATE | xtype::DATETIME | xtype::DATETIME2 | xtype::SMALLDATETIME | xtype::TIME)
            && !(from == xtype::DATE && to == xtype::TIME)
}

/// Converts a value according to `conversion`.
pub(crate) fn convert<'a>(value: Cell<'a>, conversion: &Conversion, env: &mut Env<'a>) -> Outcome<'a> {
    let (from, to) = (&conversion.from, &conversion.to);
    env.look_at(&[value])?;
    match value {
        Datum::Null => Ok(Datum::Null),
        Datum::Ansi(_) | Datum::Unicode(_) => from_text::convert(value, conversion, env),
        _ if to.is_string() => to_text::convert(value, conversion, env),
        Datum::Binary(text) => {
            let length = env.bytes(text).len();
            let most = if to.is_max() { length } else { usize::from(to.info.length) };
            Ok(Datum::Binary(fill(env, text, length.min(most), if to.kind() == xtype::BINARY { most } else { 0 })?))
        }
        Datum::Guid(_) => Ok(value),
        Datum::Int(days) if to.kind() == xtype::DATETIME => {
            let days = i32::try_from(days).ok().filter(|days| calendar::DATETIME_DAYS.contains(days));
            Ok(Datum::DateTime(days.ok_or(OVERFLOW)?, 0))
        }
        _ if from.is_moment() => to_moment(moment(value).ok_or(OVERFLOW)?, to),
        _ => to_number(value, from, to),
    }
}

/// The first `length` bytes of a binary value, padded with zeros to at least `least` bytes.
fn fill<'a>(
    env: &mut Env<'a>,
    text: crate::env::Text<'a>,
    length: usize,
    least: usize,
) -> Result<crate::env::Text<'a>, Undecided> {
    let part = env.part(text, 0, length);
    if length >= least {
        return Ok(part);
    }
    env.reserve(least - length)?;
    let start = env.begin();
    env.append(part)?;
    (length..least).for_each(|_| env.push(0, false));
    Ok(env.made(start))
}

/// Converts a number to another type of number (Microsoft, CAST and CONVERT, "Truncating and rounding results").
pub(crate) fn to_number(value: Cell<'_>, from: &Ty, to: &Ty) -> Outcome<'static> {
    let kind = to.kind();
    if to.is_float() {
        return fit_float(crate::numeric::as_float(value)?, kind);
    }
    let (mantissa, scale) = match (value, exact(value)) {
        (_, Some(exact)) => exact,
        (Datum::Float(value), None) if kind == xtype::BIT => return Ok(Datum::Bit(value != 0.0)),
        // A conversion of a float to an integer truncates the value, and a conversion to a decimal rounds it. The
        // result of a conversion to a decimal is certain only if no digit is rounded away, and if the number has so few
        // digits that the change in compatibility level 130 does not affect it.
        (Datum::Float(value), None)
            if value.abs() < 9e15 && to.is_integer() || value.abs() < 1e9 && value.trunc() == value =>
        {
            (value.trunc() as i128, 0)
        }
        _ => return Err(Undecided { reason: "a float that is rounded to a decimal" }),
    };
    if kind == xtype::BIT {
        return Ok(Datum::Bit(mantissa != 0));
    }
    if to.is_integer() {
        let unit = crate::numeric::power_of_ten(scale);
        if !from.is_money() {
            return fit_integer(mantissa / unit, kind);
        }
        if (mantissa % unit).unsigned_abs() * 2 == unit.unsigned_abs() {
            return Err(Undecided { reason: "money rounded at exactly half" });
        }
        return fit_integer(rescale(mantissa, scale, 0).ok_or(OVERFLOW)?, kind);
    }
    if to.is_money() {
        return fit_money(rescale(mantissa, scale, 4).ok_or(OVERFLOW)?, kind);
    }
    fit_decimal(rescale(mantissa, scale, to.info.scale).ok_or(OVERFLOW)?, to.info.precision, to.info.scale)
}

const LATE: Undecided = Undecided { reason: "a date outside the type's range" };

/// Converts a point in time to another date or time type.
pub(crate) fn to_moment(moment: Moment, to: &Ty) -> Outcome<'static> {
    // Before SQL Server 2016, the conversion of a datetime to datetime2 used the milliseconds that SQL Server prints.
    // Since SQL Server 2016, it uses the exact value, with thirds of a millisecond.
    const THIRDS: Undecided = Undecided { reason: "thirds of a millisecond" };
    let Moment { days, units, exact } = moment;
    let since_1900 = days - DAYS_TO_1900;
    match to.kind() {
        xtype::DATE => Ok(Datum::Date(days)),
        xtype::TIME | xtype::DATETIME2 => {
            if !exact {
                return Err(THIRDS);
            }
            let unit = time_unit(to.info.scale);
            let rounded = (units + unit / 2) / unit * unit;
            if rounded >= UNITS_PER_DAY {
                return Err(Undecided { reason: "a time rounded up to midnight" });
            }
            Ok(if to.kind() == xtype::TIME { Datum::Time(rounded) } else { Datum::DateTime2(days, rounded) })
        }
        xtype::DATETIME => {
            if !calendar::DATETIME_DAYS.contains(&since_1900) {
                return Err(LATE);
            }
            if units % 10_000 != 0 {
                return Err(THIRDS);
            }
            // Milliseconds are rounded to the nearest tick of 1/300 s: .000, .003 and .007 seconds.
            let ticks = (units / 10_000 * 3 + 5) / 10;
            let ticks = u32::try_from(ticks).ok().filter(|&ticks| ticks < TICKS_PER_DAY);
            Ok(Datum::DateTime(since_1900, ticks.ok_or(LATE)?))
        }
        xtype::SMALLDATETIME => {
            let minute = 60 * UNITS_PER_SECOND;
            let up = units % minute;
            // Seconds up to 29.998 are rounded down to the minute, and seconds from 29.999 on are rounded up
            // (Microsoft, smalldatetime).
            if (299_980_000..300_000_000).contains(&up) && up != 299_980_000 {
                return Err(Undecided { reason: "seconds rounded to minutes" });
            }
            let minutes = units / minute + i64::from(up >= 300_000_000);
            let days = u16::try_from(since_1900 + i32::from(minutes == 1440)).map_err(|_| LATE)?;
            Ok(Datum::SmallDateTime(days, (minutes % 1440) as u16))
        }
        _ => Err(LATE),
    }
}
