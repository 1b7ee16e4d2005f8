//! Values as plain text, in the form that the lab uses for its rows (`lab::truth`).

use rows::{DateTime, TimeOfDay, Value};

/// The value as text; `None` for NULL. For an unreadable value, the text is the reason in angle brackets.
pub fn plain(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bit(bit) => u8::from(*bit).to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Decimal { unscaled, scale } => scaled(*unscaled, *scale),
        Value::Real(number) => format!("{number:e}"),
        Value::Float(number) => format!("{number:e}"),
        Value::Date(day) => date(i64::from(*day)),
        Value::Time(time) => clock(*time),
        Value::DateTime(moment) => date_time(*moment),
        Value::DateTimeOffset { utc, offset_minutes } => {
            const DAY: i64 = 864_000_000_000;
            let east = i64::from(*offset_minutes);
            let ticks = utc.time.ticks.cast_signed() + east * 600_000_000;
            let day = i64::from(utc.day) + ticks.div_euclid(DAY);
            let time = TimeOfDay { ticks: ticks.rem_euclid(DAY).cast_unsigned(), digits: utc.time.digits };
            let (hours, minutes) = (east.abs() / 60, east.abs() % 60);
            let sign = if east < 0 { '-' } else { '+' };
            format!("{} {} {sign}{hours:02}:{minutes:02}", date(day), clock(time))
        }
        Value::Guid(bytes) => format::types::guid_text(*bytes).to_uppercase(),
        Value::Text(text) => text.as_str().to_owned(),
        Value::Bytes(bytes) => hex(bytes),
        Value::LongText(long) => {
            let mut bytes = Vec::new();
            let read = long.pieces(&mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            match read {
                Ok(Ok(())) => String::from_utf8_lossy(&bytes).into_owned(),
                Ok(Err(why)) => format!("<{why:?}>"),
                Err(error) => format!("<{error:?}>"),
            }
        }
        Value::LongBytes(long) => {
            let mut bytes = Vec::new();
            let read = long.pieces(&mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            match read {
                Ok(Ok(())) => hex(&bytes),
                Ok(Err(why)) => format!("<{why:?}>"),
                Err(error) => format!("<{error:?}>"),
            }
        }
        Value::Unreadable(why) => format!("<{why:?}>"),
    })
}

fn scaled(unscaled: i128, scale: u8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let scale = usize::from(scale);
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn date(day: i64) -> String {
    let (year, month, day) = format::types::civil(day as i32);
    format!("{year:04}-{month:02}-{day:02}")
}

fn clock(time: TimeOfDay) -> String {
    let (seconds, fraction) = (time.ticks / 10_000_000, time.ticks % 10_000_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match time.digits {
        0 => text,
        digits => {
            let digits = u32::from(digits);
            format!("{text}.{:0width$}", fraction / 10u64.pow(7 - digits), width = digits as usize)
        }
    }
}

fn date_time(moment: DateTime) -> String {
    format!("{} {}", date(i64::from(moment.day)), clock(moment.time))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}
