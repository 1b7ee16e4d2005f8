//! Converts dates and times to and from text. Supports the formats that depend neither on the language nor on
//! DATEFORMAT.

use std::fmt;

use crate::calendar::{self, DAYS_TO_1900, LAST_DAY, UNITS_PER_DAY, UNITS_PER_SECOND};
use crate::env::Cell;
use crate::value::Datum;

/// A point in time as days since 0001-01-01 and units of 100 ns.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) days: i32,
    pub(crate) units: i64,
    /// False if the value was converted from a datetime that is not a whole number of milliseconds, so that it had to
    /// be rounded.
    pub(crate) exact: bool,
}

/// The point in time of a date or time value, in the value's own time zone.
pub(crate) fn moment(cell: Cell<'_>) -> Option<Moment> {
    let (days, units, exact) = match cell {
        Datum::Date(days) => (days, 0, true),
        Datum::Time(units) => (DAYS_TO_1900, units, true),
        Datum::DateTime(days, ticks) => {
            (days + DAYS_TO_1900, calendar::ticks_to_milliseconds(ticks) * 10_000, ticks.is_multiple_of(3))
        }
        Datum::SmallDateTime(days, minutes) => {
            (i32::from(days) + DAYS_TO_1900, i64::from(minutes) * 60 * UNITS_PER_SECOND, true)
        }
        Datum::DateTime2(days, units) => (days, units, true),
        Datum::DateTimeOffset(days, units, offset) => {
            let local = i64::from(days) * UNITS_PER_DAY + units + i64::from(offset) * 60 * UNITS_PER_SECOND;
            (i32::try_from(local.div_euclid(UNITS_PER_DAY)).ok()?, local.rem_euclid(UNITS_PER_DAY), true)
        }
        _ => return None,
    };
    ((0..=LAST_DAY).contains(&days) && (0..UNITS_PER_DAY).contains(&units)).then_some(Moment { days, units, exact })
}

/// The output format of a CONVERT style without month names: how the date and the time are printed, and the separator
/// between them.
pub(crate) struct Style {
    date: Option<(&'static str, bool)>,
    /// The separator between date and time.
    joint: &'static str,
    time: bool,
    /// The separator before the fraction of a second; `None` if no fraction is printed. The number of fraction digits
    /// is three for milliseconds, or the scale of the type.
    fraction: Option<&'static str>,
    /// Whether a fraction of zero is left out.
    terse: bool,
}

/// The format of the CONVERT style with this number; `None` if the style is not supported.
pub(crate) fn style(number: i32) -> Option<Style> {
    let date =
        |order, century| Style { date: Some((order, century)), joint: "", time: false, fraction: None, terse: false };
    let time = |fraction| Style { date: None, joint: "", time: true, fraction, terse: false };
    let both = |joint, fraction, terse| Style { date: Some(("y-m-d", true)), joint, time: true, fraction, terse };
    Some(match number {
        1 | 101 => date("m/d/y", number > 100),
        2 | 102 => date("y.m.d", number > 100),
        3 | 103 => date("d/m/y", number > 100),
        4 | 104 => date("d.m.y", number > 100),
        5 | 105 => date("d-m-y", number > 100),
        10 | 110 => date("m-d-y", number > 100),
        11 | 111 => date("y/m/d", number > 100),
        12 | 112 => date("ymd", number > 100),
        23 => date("y-m-d", true),
        8 | 24 | 108 => time(None),
        14 | 114 => time(Some(":")),
        20 | 120 => both(" ", None, false),
        21 | 25 | 121 => both(" ", Some("."), false),
        126 | 127 => both("T", Some("."), true),
        _ => return None,
    })
}

impl Style {
    /// Whether the style prints only a time. A value of type date cannot be printed in such a style.
    pub(crate) fn is_time_only(&self) -> bool {
        self.date.is_none()
    }

    /// Whether the style prints a fraction of a second.
    pub(crate) fn has_fraction(&self) -> bool {
        self.fraction.is_some()
    }
}

/// A point in time, printed in a style.
pub(crate) struct Styled<'s> {
    pub(crate) style: &'s Style,
    pub(crate) moment: Moment,
    /// The number of fraction digits of the type.
    pub(crate) digits: u32,
    /// Whether the value has the type date. If so, no time is printed.
    pub(crate) date_only: bool,
}

impl fmt::Display for Styled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = calendar::civil(self.moment.days);
        if let Some((order, century)) = self.style.date {
            for part in order.chars() {
                match part {
                    'y' if century => write!(f, "{year:04}")?,
                    'y' => write!(f, "{:02}", year % 100)?,
                    'm' => write!(f, "{month:02}")?,
                    'd' => write!(f, "{day:02}")?,
                    sign => write!(f, "{sign}")?,
                }
            }
        }
        if !self.style.time || self.date_only {
            return Ok(());
        }
        let seconds = self.moment.units / UNITS_PER_SECOND;
        let joint = self.style.joint;
        write!(f, "{joint}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
        let fraction = self.moment.units % UNITS_PER_SECOND;
        if let Some(point) = self.style.fraction
            && self.digits > 0
            && !(self.style.terse && fraction == 0)
        {
            let digits = self.digits;
            write!(f, "{point}{:0width$}", fraction / 10i64.pow(7 - digits.min(7)), width = digits as usize)?;
        }
        Ok(())
    }
}

/// The date and time that were read from a text.
pub(crate) struct Parsed {
    pub(crate) days: i32,
    pub(crate) units: i64,
    /// The number of digits in the fraction of the second.
    pub(crate) digits: usize,
    /// Whether the text would mean a different day under another DATEFORMAT, if it is read as a datetime.
    pub(crate) ambiguous: bool,
}

/// Reads a date, a time or both in unambiguous formats. `style` is CONVERT's style, or 0 for none.
pub(crate) fn parse(text: &str, style: i32) -> Option<Parsed> {
    let text = text.trim_matches(' ');
    let nothing = Parsed { days: DAYS_TO_1900, units: 0, digits: 0, ambiguous: false };
    if text.is_empty() {
        return Some(nothing);
    }
    if text.as_bytes().get(2) == Some(&b':') {
        let (units, digits) = time(text)?;
        return Some(Parsed { units, digits, ..nothing });
    }
    let has_t = text.as_bytes().get(10) == Some(&b'T');
    let (day, clock) = match text.split_once(if has_t { 'T' } else { ' ' }) {
        Some((day, clock)) => (day, Some(clock)),
        None => (text, None),
    };
    let dashed = [20, 21, 23, 25, 120, 121, 126, 127].contains(&style);
    let (days, ambiguous) = if day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) {
        (calendar::days(day.get(..4)?.parse().ok()?, number(day.get(4..6)?)?, number(day.get(6..)?)?)?, false)
    } else if day.len() == 10 && day.as_bytes().get(4) == Some(&b'-') && (style == 0 || dashed) {
        let mut parts = day.split('-');
        let year = parts.next()?.parse().ok()?;
        (calendar::days(year, number(parts.next()?)?, number(parts.next()?)?)?, !dashed && !has_t)
    } else {
        (styled_day(day, style)?, false)
    };
    let (units, digits) = match clock {
        Some(clock) => time(clock)?,
        None => (0, 0),
    };
    Some(Parsed { days, units, digits, ambiguous })
}

fn styled_day(day: &str, style: i32) -> Option<i32> {
    let (sign, order) = match style {
        101 => ('/', "mdy"),
        102 => ('.', "ymd"),
        103 => ('/', "dmy"),
        104 => ('.', "dmy"),
        105 => ('-', "dmy"),
        110 => ('-', "mdy"),
        111 => ('/', "ymd"),
        _ => return None,
    };
    let (mut year, mut month, mut date) = (0, 0, 0);
    let mut parts = day.split(sign);
    for part in order.chars() {
        let text = parts.next()?;
        match part {
            'y' if text.len() == 4 => year = number(text)?,
            'm' if text.len() <= 2 => month = number(text)?,
            'd' if text.len() <= 2 => date = number(text)?,
            _ => return None,
        }
    }
    if parts.next().is_some() {
        return None;
    }
    calendar::days(year as i32, month, date)
}

fn number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) { None } else { text.parse().ok() }
}

/// Reads `hh:mi[:ss[.fraction]]`. Returns the time in units of 100 ns and the number of digits in the fraction.
fn time(text: &str) -> Option<(i64, usize)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let hour = number(parts.next()?).filter(|&hour| hour < 24)?;
    let minute = number(parts.next()?).filter(|&minute| minute < 60)?;
    let second = parts.next().map_or(Some(0), number).filter(|&second| second < 60)?;
    if parts.next().is_some() || fraction.len() > 7 || (text.ends_with('.')) {
        return None;
    }
    let units = if fraction.is_empty() { 0 } else { number(fraction)? * 10u32.pow(7 - fraction.len() as u32) };
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some((seconds * UNITS_PER_SECOND + i64::from(units), fraction.len()))
}
