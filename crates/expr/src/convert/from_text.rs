//! Conversions from char and nchar to all other types. Only unambiguous spellings are converted. For all other
//! spellings, the result is undecided.

use format::collation::{CollationId, append_char, append_utf16, code_page};
use format::types::xtype;

use super::{fill, to_moment, to_text};
use crate::Undecided;
use crate::compare::Chars;
use crate::env::{Cell, Env, Outcome, chars};
use crate::moment::{Moment, parse};
use crate::node::Conversion;
use crate::numeric::{OVERFLOW, fit_decimal, fit_float, fit_integer, fit_money, rescale};
use crate::types::Ty;
use crate::value::Datum;

const FAILED: Undecided = Undecided { reason: "a conversion of text that is not certain to succeed" };
const CUT: Undecided = Undecided { reason: "cutting text outside ASCII" };
const CODE_PAGE: Undecided = Undecided { reason: "a code page is needed to convert text" };

/// The longest text, in characters, that is converted to a number, date or guid.
const LONGEST: usize = 64;

pub(super) fn convert<'a>(value: Cell<'a>, conversion: &Conversion, env: &mut Env<'a>) -> Outcome<'a> {
    let to = &conversion.to;
    if to.is_string() {
        return to_string(value, &conversion.from, to, env);
    }
    let (Datum::Ansi(text) | Datum::Unicode(text)) = value else { return Err(FAILED) };
    if matches!(to.kind(), xtype::BINARY | xtype::VARBINARY) {
        let length = env.bytes(text).len();
        let most = if to.is_max() { length } else { usize::from(to.info.length) };
        let least = if to.kind() == xtype::BINARY { most } else { 0 };
        return Ok(Datum::Binary(fill(env, text, length.min(most), least)?));
    }
    let chars = chars(value, env).ok_or(FAILED)?;
    let mut buffer = [0u8; LONGEST];
    if !chars.is_printable_ascii() || chars.len() > LONGEST {
        return Err(FAILED);
    }
    for (byte, unit) in buffer.iter_mut().zip(chars.iter()) {
        *byte = unit as u8;
    }
    let text = buffer.get(..chars.len()).and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or(FAILED)?;
    if to.is_moment() {
        let parsed = parse(text, conversion.style).ok_or(FAILED)?;
        let old = matches!(to.kind(), xtype::DATETIME | xtype::SMALLDATETIME);
        if old && parsed.ambiguous {
            return Err(Undecided { reason: "a date that depends on DATEFORMAT" });
        }
        if old && parsed.digits > 3 {
            return Err(FAILED);
        }
        return to_moment(Moment { days: parsed.days, units: parsed.units, exact: true }, to);
    }
    match to.kind() {
        xtype::UNIQUEIDENTIFIER => guid(text).map(Datum::Guid).ok_or(FAILED),
        _ => number(text.trim_matches(' '), to),
    }
}

/// Converts text to a string type with another length, another code page, or another character width (char or nchar).
fn to_string<'a>(value: Cell<'a>, from: &Ty, to: &Ty, env: &mut Env<'a>) -> Outcome<'a> {
    let (text, wide) = match value {
        Datum::Ansi(text) => (text, false),
        Datum::Unicode(text) => (text, true),
        _ => return Err(FAILED),
    };
    let source = chars(value, env).ok_or(FAILED)?;
    let (length, ascii) = (source.len(), source.is_ascii());
    let most = to.characters().map_or(length, usize::from);
    let is_other_page = !wide && from.collation != to.collation && code_page(from.collation) != code_page(to.collation);
    if !ascii && (wide != to.is_unicode() || is_other_page) {
        env.scratch.steps.take_bytes(2 * length)?;
        let text = recoded(source, from.collation, to).ok_or(CODE_PAGE)?;
        if text.len() > most * if to.is_unicode() { 2 } else { 1 } {
            return Err(CUT);
        }
        let made = env.append_bytes(&text)?;
        return to_text::pad(made, to, env);
    }
    if wide != to.is_unicode() {
        env.reserve(2 * length.min(most))?;
        let start = env.begin();
        for at in 0..length.min(most) {
            let unit = chars(value, env).and_then(|chars| chars.get(at)).ok_or(FAILED)?;
            env.push(unit, to.is_unicode());
        }
        let made = env.made(start);
        return to_text::pad(made, to, env);
    }
    if length > most && !ascii {
        return Err(CUT);
    }
    let part = env.part(text, 0, most * if wide { 2 } else { 1 });
    to_text::pad(part, to, env)
}

/// Converts text to the code page and the character width of another type. `None` if a character is unknown in one of
/// the code pages.
fn recoded(source: Chars<'_>, collation: CollationId, to: &Ty) -> Option<Vec<u8>> {
    let mut units = Vec::new();
    if source.wide {
        units.extend_from_slice(source.bytes);
    } else if !append_utf16(source.bytes, collation, &mut units) {
        return None;
    }
    if to.is_unicode() {
        return Some(units);
    }
    let mut bytes = Vec::new();
    append_char(&units, to.collation, &mut bytes).then_some(bytes)
}

/// Parses a number that is written in plain digits.
fn number(text: &str, to: &Ty) -> Outcome<'static> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    if text.is_empty() {
        // An empty string is 0 when converted to an integer, but an error when converted to a decimal (Microsoft, CAST
        // and CONVERT).
        return if to.is_integer() { Ok(Datum::Int(0)) } else { Err(FAILED) };
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(fraction) || whole.len() + fraction.len() > 36 {
        return Err(FAILED);
    }
    let scale = fraction.len() as u8;
    let value = whole.bytes().chain(fraction.bytes()).fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    let value = if negative { -value } else { value };
    match to.kind() {
        xtype::BIT if !digits.contains('.') => Ok(Datum::Bit(value != 0)),
        _ if to.is_integer() && !digits.contains('.') => fit_integer(value, to.kind()),
        _ if to.is_money() && scale <= 4 => fit_money(rescale(value, scale, 4).ok_or(OVERFLOW)?, to.kind()),
        _ if to.is_decimal() => {
            let value = rescale(value, scale, to.info.scale).ok_or(OVERFLOW)?;
            fit_decimal(value, to.info.precision, to.info.scale)
        }
        _ if to.is_float() && whole.len() + fraction.len() <= 15 => {
            fit_float(text.parse().map_err(|_| FAILED)?, to.kind())
        }
        _ => Err(FAILED),
    }
}

/// Parses a guid such as `6F9619FF-8B86-D011-B42D-00C04FC964FF`, with or without braces. Returns the bytes in storage
/// order.
fn guid(text: &str) -> Option<[u8; 16]> {
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let mut bytes = [0; 16];
    let mut at = 0;
    for (group, length) in text.split('-').zip([8, 4, 4, 4, 12]) {
        if group.len() != length || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let value = u64::from_str_radix(group, 16).ok()?;
        let length = length / 2;
        let big_endian = value.to_be_bytes();
        let group = big_endian.get(8 - length..)?;
        for (index, byte) in group.iter().enumerate() {
            // The first three groups are little-endian numbers.
            let place = if at < 8 { at + length - 1 - index } else { at + index };
            *bytes.get_mut(place)? = *byte;
        }
        at += length;
    }
    (at == 16 && text.len() == 36).then_some(bytes)
}
