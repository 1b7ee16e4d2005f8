//! Evaluates date functions.

use super::{WRONG, integer};
use crate::Undecided;
use crate::calendar::{self, DATETIME_DAYS, DAYS_TO_1900, LAST_DAY, TICKS_PER_DAY, UNITS_PER_DAY, UNITS_PER_SECOND};
use crate::env::{Cell, Outcome};
use crate::moment::moment;
use crate::node::Part;
use crate::numeric::OVERFLOW;
use crate::value::Datum;

/// Evaluates DATEPART.
pub(super) fn part(part: Part, value: Cell<'_>) -> Result<i64, Undecided> {
    let moment = moment(value).ok_or(OVERFLOW)?;
    let (year, month, day) = calendar::civil(moment.days);
    let seconds = moment.units / UNITS_PER_SECOND;
    Ok(match part {
        Part::Year => year.into(),
        Part::Quarter => month.div_ceil(3).into(),
        Part::Month => month.into(),
        Part::DayOfYear => calendar::day_of_year(moment.days).into(),
        Part::Day => day.into(),
        Part::IsoWeek => calendar::iso_week(moment.days).into(),
        Part::Hour => seconds / 3600,
        Part::Minute => seconds / 60 % 60,
        Part::Second => seconds % 60,
        Part::Millisecond => moment.units % UNITS_PER_SECOND / 10_000,
        Part::Week | Part::WeekDay => return Err(Undecided { reason: "a week that depends on DATEFIRST" }),
    })
}

/// Evaluates DATEADD. The result has the type of the date argument.
pub(super) fn add(part: Part, number: i64, value: Cell<'_>) -> Outcome<'static> {
    if i32::try_from(number).is_err() {
        return Err(OVERFLOW);
    }
    if let Some(units) = part.units() {
        return add_time(number.checked_mul(units).ok_or(OVERFLOW)?, value);
    }
    let moved = |days: i32| -> Result<i32, Undecided> {
        let moved = match part {
            Part::Year => calendar::add_months(days, number * 12),
            Part::Quarter => calendar::add_months(days, number * 3),
            Part::Month => calendar::add_months(days, number),
            Part::Week => i32::try_from(i64::from(days) + number * 7).ok(),
            Part::IsoWeek => None,
            _ => i32::try_from(i64::from(days) + number).ok(),
        };
        moved.filter(|days| (0..=LAST_DAY).contains(days)).ok_or(OVERFLOW)
    };
    Ok(match value {
        Datum::Date(days) => Datum::Date(moved(days)?),
        Datum::DateTime(days, ticks) => {
            let days = moved(days + DAYS_TO_1900)? - DAYS_TO_1900;
            if !DATETIME_DAYS.contains(&days) {
                return Err(OVERFLOW);
            }
            Datum::DateTime(days, ticks)
        }
        Datum::SmallDateTime(days, minutes) => {
            let days = moved(i32::from(days) + DAYS_TO_1900)? - DAYS_TO_1900;
            Datum::SmallDateTime(u16::try_from(days).map_err(|_| OVERFLOW)?, minutes)
        }
        Datum::DateTime2(days, units) => Datum::DateTime2(moved(days)?, units),
        _ => return Err(WRONG),
    })
}

fn add_time(units: i64, value: Cell<'_>) -> Outcome<'static> {
    let carried = |days: i32, time: i64, per_day: i64, more: i64| -> Result<(i32, i64), Undecided> {
        let total = i64::from(days).checked_mul(per_day).and_then(|all| all.checked_add(time)?.checked_add(more));
        let total = total.ok_or(OVERFLOW)?;
        Ok((i32::try_from(total.div_euclid(per_day)).map_err(|_| OVERFLOW)?, total.rem_euclid(per_day)))
    };
    match value {
        Datum::DateTime(days, ticks) => {
            // 10 ms are 3 ticks. How SQL Server rounds times between multiples of 10 ms is undocumented.
            if units % 100_000 != 0 {
                return Err(Undecided { reason: "milliseconds between the ticks of a datetime" });
            }
            let (days, ticks) = carried(days, ticks.into(), TICKS_PER_DAY.into(), units / 100_000 * 3)?;
            if !DATETIME_DAYS.contains(&days) {
                return Err(OVERFLOW);
            }
            Ok(Datum::DateTime(days, ticks as u32))
        }
        Datum::SmallDateTime(days, minutes) => {
            let minute = 60 * UNITS_PER_SECOND;
            if units % minute != 0 {
                return Err(Undecided { reason: "seconds added to a smalldatetime" });
            }
            let (days, minutes) = carried(days.into(), minutes.into(), 1440, units / minute)?;
            Ok(Datum::SmallDateTime(u16::try_from(days).map_err(|_| OVERFLOW)?, minutes as u16))
        }
        Datum::DateTime2(days, time) => {
            let (days, time) = carried(days, time, UNITS_PER_DAY, units)?;
            if (0..=LAST_DAY).contains(&days) { Ok(Datum::DateTime2(days, time)) } else { Err(OVERFLOW) }
        }
        Datum::Time(time) => Ok(Datum::Time((time + units % UNITS_PER_DAY).rem_euclid(UNITS_PER_DAY))),
        _ => Err(WRONG),
    }
}

/// Evaluates DATEDIFF, which counts the date part boundaries between the two dates. Weeks begin on Sunday, whatever
/// DATEFIRST is.
pub(super) fn difference(part: Part, from: Cell<'_>, to: Cell<'_>) -> Outcome<'static> {
    let (from, to) = (moment(from).ok_or(OVERFLOW)?, moment(to).ok_or(OVERFLOW)?);
    if part == Part::Millisecond && !(from.exact && to.exact) {
        return Err(Undecided { reason: "thirds of a millisecond" });
    }
    let count = |moment: crate::moment::Moment| -> i64 {
        let (year, month, _) = calendar::civil(moment.days);
        match (part, part.units()) {
            (_, Some(units)) => i64::from(moment.days) * (UNITS_PER_DAY / units) + moment.units / units,
            (Part::Year, _) => year.into(),
            (Part::Quarter, _) => i64::from(year) * 4 + i64::from((month - 1) / 3),
            (Part::Month, _) => i64::from(year) * 12 + i64::from(month),
            // Day 0, 0001-01-01, was a Monday.
            (Part::Week, _) => i64::from(moment.days + 1).div_euclid(7),
            _ => moment.days.into(),
        }
    };
    match i32::try_from(count(to) - count(from)) {
        Ok(number) => Ok(Datum::Int(number.into())),
        Err(_) => Err(OVERFLOW),
    }
}

/// Evaluates EOMONTH.
pub(super) fn end_of_month(value: Cell<'_>, months: Cell<'_>) -> Outcome<'static> {
    if months.is_null() {
        return Err(Undecided { reason: "EOMONTH of NULL months" });
    }
    let moment = moment(value).ok_or(OVERFLOW)?;
    let moved = calendar::add_months(moment.days, integer(months)?).ok_or(OVERFLOW)?;
    let (year, month, _) = calendar::civil(moved);
    let last = calendar::days(year, month, calendar::days_in_month(year, month));
    last.map(Datum::Date).ok_or(OVERFLOW)
}

/// Evaluates DATEFROMPARTS.
pub(super) fn from_parts(year: i64, month: i64, day: i64) -> Outcome<'static> {
    let small = |number: i64| u32::try_from(number).ok();
    let days = match (i32::try_from(year), small(month), small(day)) {
        (Ok(year), Some(month), Some(day)) => calendar::days(year, month, day),
        _ => None,
    };
    days.map(Datum::Date).ok_or(Undecided { reason: "a date that does not exist" })
}
