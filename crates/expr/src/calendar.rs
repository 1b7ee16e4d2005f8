//! The proleptic Gregorian calendar from 0001-01-01 to 9999-12-31, and times of day.

use std::ops::RangeInclusive;

pub(crate) use format::types::civil;

/// The number of days from 0001-01-01 to 1900-01-01.
pub(crate) const DAYS_TO_1900: i32 = 693_595;
/// The last valid date, 9999-12-31, as days since 0001-01-01.
pub(crate) const LAST_DAY: i32 = 3_652_058;
/// The valid days of datetime, counted from 1900-01-01: 1753-01-01 to 9999-12-31.
pub(crate) const DATETIME_DAYS: RangeInclusive<i32> = -53_690..=2_958_463;
/// The number of ticks of 1/300 s in a day.
pub(crate) const TICKS_PER_DAY: u32 = 25_920_000;
/// The number of units of 100 ns in a day.
pub(crate) const UNITS_PER_DAY: i64 = 864_000_000_000;
/// The number of units of 100 ns in a second.
pub(crate) const UNITS_PER_SECOND: i64 = 10_000_000;

/// The number of days from 0001-01-01 to a date; `None` if the date does not exist or is outside the years 1 to 9999.
pub(crate) fn days(year: i32, month: u32, day: u32) -> Option<i32> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let shifted_year = i64::from(year) - i64::from(month <= 2);
    let (era, year_of_era) = (shifted_year.div_euclid(400), shifted_year.rem_euclid(400));
    let month_from_march = i64::from(if month > 2 { month - 3 } else { month + 9 });
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some((era * 146_097 + day_of_era - 306) as i32)
}

/// The number of days in a month from 1 to 12.
pub(crate) fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The date `months` months after `date`. If the resulting month does not have the day of `date`, the result is the
/// last day of the month.
pub(crate) fn add_months(date: i32, months: i64) -> Option<i32> {
    let (year, month, day) = civil(date);
    let total = (i64::from(year) * 12 + i64::from(month) - 1).checked_add(months)?;
    let year = i32::try_from(total.div_euclid(12)).ok().filter(|year| (1..=9999).contains(year))?;
    let month = total.rem_euclid(12) as u32 + 1;
    days(year, month, day.min(days_in_month(year, month)))
}

/// The day of the year, from 1.
pub(crate) fn day_of_year(date: i32) -> i32 {
    let (year, _, _) = civil(date);
    days(year, 1, 1).map_or(0, |first| date - first + 1)
}

/// The week number of ISO 8601. Week 1 is the week with the first Thursday of the year.
pub(crate) fn iso_week(date: i32) -> i32 {
    // 0001-01-01 was a Monday.
    let thursday = date - date.rem_euclid(7) + 3;
    (day_of_year(thursday) - 1) / 7 + 1
}

/// A date as text: `yyyy-mm-dd`.
pub(crate) fn date_text(date: i32) -> String {
    let (year, month, day) = civil(date);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time of day as text: `hh:mm:ss` with a fraction of `scale` digits. Further digits are cut off.
pub(crate) fn time_text(units: i64, scale: u32) -> String {
    let seconds = units / UNITS_PER_SECOND;
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if scale > 0 {
        let fraction = units % UNITS_PER_SECOND / 10i64.pow(7 - scale.min(7));
        text.push_str(&format!(".{fraction:0width$}", width = scale as usize));
    }
    text
}

/// Converts the ticks of a datetime to whole milliseconds, rounded as SQL Server prints them.
pub(crate) fn ticks_to_milliseconds(ticks: u32) -> i64 {
    (i64::from(ticks) * 10 + 1) / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_civil_are_inverse_over_the_whole_calendar() {
        assert_eq!(days(1, 1, 1), Some(0));
        assert_eq!(days(1900, 1, 1), Some(DAYS_TO_1900));
        assert_eq!(days(9999, 12, 31), Some(LAST_DAY));
        assert_eq!(days(2023, 2, 29), None);
        for date in (0..=LAST_DAY).step_by(97) {
            let (year, month, day) = civil(date);
            assert_eq!(days(year, month, day), Some(date));
        }
    }

    #[test]
    fn months_end_where_the_shorter_one_does() {
        let day = |y, m, d| days(y, m, d).unwrap();
        assert_eq!(add_months(day(2006, 8, 31), 1), Some(day(2006, 9, 30)));
        assert_eq!(add_months(day(2024, 2, 29), 12), Some(day(2025, 2, 28)));
        assert_eq!(add_months(day(9999, 12, 1), 1), None);
        // 2004W01 covered Monday, 29 December 2003 to Sunday, 4 January 2004 (Microsoft, DATEPART).
        assert_eq!([iso_week(day(2003, 12, 29)), iso_week(day(2004, 1, 4))], [1, 1]);
        assert_eq!(iso_week(day(2007, 10, 30)), 44);
        assert_eq!(day_of_year(day(2007, 10, 30)), 303);
    }
}
