//! Evaluates string functions. Because these functions count characters, text outside ASCII is evaluated only if each
//! character is one byte, or one code unit that is not a surrogate.

use format::collation::{CollationId, has_one_byte_per_character};

use super::{WRONG, integer};
use crate::Undecided;
use crate::compare::{Chars, may_join_previous, same_char};
use crate::env::{Cell, Env, Outcome, Text, chars};
use crate::node::{CallTypes, Func, Node};
use crate::steps::{STEPS_PER_COMPARISON, Steps};
use crate::value::Datum;

const NOT_ASCII: Undecided = Undecided { reason: "text outside ASCII" };
const COLLATION: Undecided = Undecided { reason: "a search that depends on the collation" };

fn text_of<'a>(cell: Cell<'a>) -> Result<(Text<'a>, bool), Undecided> {
    match cell {
        Datum::Ansi(text) => Ok((text, false)),
        Datum::Unicode(text) => Ok((text, true)),
        _ => Err(WRONG),
    }
}

fn rewrap(text: Text<'_>, wide: bool) -> Cell<'_> {
    if wide { Datum::Unicode(text) } else { Datum::Ansi(text) }
}

/// Whether every byte of a char value, or every code unit of an nchar value, is one character.
fn countable(chars: Chars<'_>, id: CollationId) -> bool {
    if chars.wide {
        return chars.iter().all(|unit| !(0xD800..0xE000).contains(&unit));
    }
    chars.is_ascii() || has_one_byte_per_character(id)
}

fn counted<'e>(cell: Cell<'e>, id: CollationId, env: &'e Env<'_>) -> Result<Chars<'e>, Undecided> {
    let chars = chars(cell, env).ok_or(WRONG)?;
    if countable(chars, id) { Ok(chars) } else { Err(NOT_ASCII) }
}

/// Concatenates strings, and cuts the result to `most` bytes, the maximum length of its type.
pub(crate) fn concat<'a>(parts: &[Cell<'a>], most: usize, env: &mut Env<'a>) -> Outcome<'a> {
    let mut wide = false;
    let start = env.begin();
    for part in parts {
        if let Datum::Binary(_) = part {
            return Err(WRONG);
        }
        let (text, is_wide) = text_of(*part)?;
        wide = is_wide;
        env.append(text)?;
    }
    env.cut(start, most);
    Ok(rewrap(env.made(start), wide))
}

/// Evaluates CONCAT, which treats NULL as an empty string.
pub(super) fn concat_all<'a>(args: &'a [Node], types: &CallTypes, env: &mut Env<'a>) -> Outcome<'a> {
    // The evaluation of an argument may append text to the buffer. Therefore, each argument is evaluated before it is
    // joined to the earlier arguments.
    let wide = types.result.is_unicode();
    let mut all = rewrap(Text::Lent(b""), wide);
    for arg in args {
        let value = arg.evaluate(env)?;
        if !value.is_null() {
            all = concat(&[all, value], most_bytes(types), env)?;
        }
    }
    Ok(all)
}

fn most_bytes(types: &CallTypes) -> usize {
    if types.result.is_max() { usize::MAX / 2 } else { 8000 }
}

/// Evaluates functions with one string argument.
pub(super) fn one<'a>(func: Func, value: Cell<'a>, types: &CallTypes, env: &mut Env<'a>) -> Outcome<'a> {
    if func == Func::DataLength {
        let length = match value {
            Datum::Ansi(text) | Datum::Unicode(text) | Datum::Binary(text) => env.bytes(text).len(),
            _ => types.args.first().map_or(0, |ty| ty.info.length.into()),
        };
        return Ok(Datum::Int(length as i64));
    }
    let (text, wide) = text_of(value)?;
    let width = if wide { 2 } else { 1 };
    let source = counted(value, types.collation, env)?;
    let blanks_before = source.iter().take_while(|&unit| unit == 0x20).count();
    let (length, trimmed) = (source.len(), source.trimmed().len());
    match func {
        Func::Len => Ok(Datum::Int(trimmed as i64)),
        Func::Ascii | Func::Unicode => match source.get(0) {
            None => Ok(Datum::Null),
            Some(unit) if unit < 0x80 || func == Func::Unicode => Ok(Datum::Int(unit.into())),
            Some(_) => Err(NOT_ASCII),
        },
        Func::Ltrim => Ok(rewrap(env.part(text, blanks_before * width, length * width), wide)),
        Func::Rtrim => Ok(rewrap(env.part(text, 0, trimmed * width), wide)),
        Func::Trim => Ok(rewrap(env.part(text, blanks_before.min(trimmed) * width, trimmed * width), wide)),
        Func::Upper | Func::Lower => change_case(func == Func::Upper, value, types.collation, env),
        Func::Reverse => {
            env.reserve(length * width)?;
            let start = env.begin();
            for at in (0..length).rev() {
                let unit = chars(value, env).and_then(|chars| chars.get(at)).ok_or(WRONG)?;
                env.push(unit, wide);
            }
            Ok(rewrap(env.made(start), wide))
        }
        _ => Err(WRONG),
    }
}

fn change_case<'a>(up: bool, value: Cell<'a>, id: CollationId, env: &mut Env<'a>) -> Outcome<'a> {
    let (_, wide) = text_of(value)?;
    let text = chars(value, env).ok_or(WRONG)?;
    if !text.is_ascii() {
        return Err(NOT_ASCII);
    }
    // In Turkish and Azeri, `i` and `I` are two different letters. A text with the letter `i` (for UPPER) or `I` (for
    // LOWER) is converted only in locales in which `i` and `I` are known to be the two cases of one letter.
    let plain = matches!(id.locale(), 0x01..=0x19 | 0x24) && id.locale() != 0;
    let dotted = |unit: u16| unit == u16::from(if up { b'i' } else { b'I' });
    if !plain && text.iter().any(dotted) {
        return Err(Undecided { reason: "upper and lower case of the letter i" });
    }
    let length = text.len();
    env.reserve(length * if wide { 2 } else { 1 })?;
    let start = env.begin();
    for at in 0..length {
        let byte = chars(value, env).and_then(|chars| chars.get(at)).ok_or(WRONG)? as u8;
        let byte = if up { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
        env.push(byte.into(), wide);
    }
    Ok(rewrap(env.made(start), wide))
}

/// Evaluates LEFT, RIGHT and SUBSTRING.
pub(super) fn slice<'a>(
    func: Func,
    value: Cell<'a>,
    b: Cell<'a>,
    c: Cell<'a>,
    types: &CallTypes,
    env: &mut Env<'a>,
) -> Outcome<'a> {
    const NEGATIVE: Undecided = Undecided { reason: "a negative length" };
    if let Datum::Binary(_) = value {
        return Err(WRONG);
    }
    let (text, wide) = text_of(value)?;
    let length = counted(value, types.collation, env)?.len() as i64;
    let (start, end) = match func {
        Func::Left => (0, integer(b)?),
        Func::Right => (length.saturating_sub(integer(b)?), length),
        _ => {
            let (from, count) = (integer(b)?, integer(c)?);
            if count < 0 {
                return Err(NEGATIVE);
            }
            (from.saturating_sub(1), from.saturating_sub(1).saturating_add(count))
        }
    };
    if func != Func::Substring && integer(b)? < 0 {
        return Err(NEGATIVE);
    }
    let width = if wide { 2 } else { 1 };
    let (start, end) = (start.clamp(0, length) as usize, end.clamp(0, length) as usize);
    Ok(rewrap(env.part(text, start * width, end.max(start) * width), wide))
}

/// Evaluates REPLICATE and SPACE.
pub(super) fn replicate<'a>(value: Cell<'a>, times: i64, types: &CallTypes, env: &mut Env<'a>) -> Outcome<'a> {
    if times < 0 {
        return Ok(Datum::Null);
    }
    let (text, wide) = text_of(value)?;
    let most = most_bytes(types);
    let length = env.bytes(text).len();
    let start = env.begin();
    // The loop appends one repetition more than the number that fits completely. `cut` then shortens the last
    // repetition.
    let enough = most.checked_div(length).map_or(0, |whole| (whole as i64).saturating_add(1));
    for _ in 0..times.min(enough) {
        env.append(text)?;
    }
    env.cut(start, most);
    Ok(rewrap(env.made(start), wide))
}

/// Evaluates CHAR and NCHAR.
pub(super) fn from_code<'a>(func: Func, code: i64, types: &CallTypes, env: &mut Env<'a>) -> Outcome<'a> {
    let wide = func == Func::NChar;
    match u16::try_from(code) {
        Ok(unit) if unit < 0x80 || wide && !(0xD800..0xE000).contains(&unit) => {
            env.reserve(2)?;
            let start = env.begin();
            env.push(unit, wide);
            Ok(rewrap(env.made(start), types.result.is_unicode()))
        }
        _ if !wide && !(0..=255).contains(&code) => Ok(Datum::Null),
        _ => Err(NOT_ASCII),
    }
}

/// Evaluates STUFF.
pub(super) fn stuff<'a>(args: [Cell<'a>; 4], types: &CallTypes, env: &mut Env<'a>) -> Outcome<'a> {
    let [value, start, count, insert] = args;
    if value.is_null() || start.is_null() || count.is_null() {
        return Ok(Datum::Null);
    }
    let (text, wide) = text_of(value)?;
    let length = counted(value, types.collation, env)?.len() as i64;
    let (from, count) = (integer(start)?, integer(count)?);
    if from < 1 || from > length || count < 0 {
        return Ok(Datum::Null);
    }
    let width = if wide { 2 } else { 1 };
    let bytes = |position: i64| position as usize * width;
    let head = env.part(text, 0, bytes(from - 1));
    let tail = env.part(text, bytes((from - 1).saturating_add(count).min(length)), bytes(length));
    let start = env.begin();
    env.append(head)?;
    if !insert.is_null() {
        env.append(text_of(insert)?.0)?;
    }
    env.append(tail)?;
    let made = env.made(start);
    if env.bytes(made).len() > most_bytes(types) {
        return Err(Undecided { reason: "a string longer than its type" });
    }
    Ok(rewrap(made, wide))
}

/// The first place in `text`, starting at `from`, where `what` begins. Returns an error if a comparison of two
/// characters is uncertain before `what` is found. Also returns an error if the character after the match may be a part
/// of the match, like a combining accent.
fn find(
    what: Chars<'_>,
    text: Chars<'_>,
    from: usize,
    id: CollationId,
    steps: &Steps,
) -> Result<Option<usize>, Undecided> {
    let is_alone = |unit: u16| unit < 0x80 || same_char(unit, unit, id, text.wide) == Some(true);
    for start in from..=text.len() {
        let end = start + what.len();
        if end > text.len() {
            // The remaining text is shorter than `what`, so there is no match, unless an uncertain character counts as
            // several characters.
            let are_alone = (start..text.len()).all(|at| text.get(at).is_some_and(is_alone));
            return if are_alone { Ok(None) } else { Err(COLLATION) };
        }
        let mut equal = true;
        for at in 0..what.len() {
            steps.take(STEPS_PER_COMPARISON)?;
            let pair = what.get(at).zip(text.get(start + at)).ok_or(WRONG)?;
            equal = same_char(pair.0, pair.1, id, text.wide).ok_or(COLLATION)?;
            if !equal {
                break;
            }
        }
        if equal {
            let joins = |unit| may_join_previous(unit, id, text.wide);
            return if text.get(end).is_some_and(joins) { Err(COLLATION) } else { Ok(Some(start)) };
        }
    }
    Ok(None)
}

/// Evaluates REPLACE.
pub(super) fn replace<'a>(
    value: Cell<'a>,
    what: Cell<'a>,
    by: Cell<'a>,
    types: &CallTypes,
    env: &mut Env<'a>,
) -> Outcome<'a> {
    let ((text, wide), (by, _)) = (text_of(value)?, text_of(by)?);
    let width = if wide { 2 } else { 1 };
    let (length, step) = (counted(value, types.collation, env)?.len(), counted(what, types.collation, env)?.len());
    if step == 0 {
        return Ok(value);
    }
    // All matches are found before any text is copied, because the text may be in the same buffer as the copies.
    let start = env.begin();
    let mut from = 0;
    loop {
        let found = {
            let (what, text) = (chars(what, env).ok_or(WRONG)?, chars(value, env).ok_or(WRONG)?);
            find(what, text, from, types.collation, &env.scratch.steps)?
        };
        let Some(at) = found else { break };
        let piece = env.part(text, from * width, at * width);
        env.append(piece)?;
        env.append(by)?;
        from = at + step;
    }
    let rest = env.part(text, from * width, length * width);
    env.append(rest)?;
    env.cut(start, most_bytes(types));
    Ok(rewrap(env.made(start), wide))
}

/// Evaluates CHARINDEX.
pub(super) fn char_index(
    what: Cell<'_>,
    text: Cell<'_>,
    from: i64,
    types: &CallTypes,
    env: &Env<'_>,
) -> Outcome<'static> {
    let (what, text) = (counted(what, types.collation, env)?, counted(text, types.collation, env)?);
    if what.len() == 0 {
        return Err(Undecided { reason: "a search for the empty string" });
    }
    let from = usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX);
    let found = if from > text.len() { None } else { find(what, text, from, types.collation, &env.scratch.steps)? };
    Ok(Datum::Int(found.map_or(0, |at| at as i64 + 1)))
}

/// Evaluates ISNUMERIC. The result is decided only for text that is clearly a number or clearly not a number.
pub(super) fn is_numeric(value: Cell<'_>, env: &Env<'_>) -> Outcome<'static> {
    let chars = match value {
        Datum::Null => return Ok(Datum::Int(0)),
        Datum::Ansi(_) | Datum::Unicode(_) => chars(value, env).ok_or(WRONG)?,
        _ => return Ok(Datum::Int(1)),
    };
    let is = |unit: u16, set: &[u8]| u8::try_from(unit).is_ok_and(|byte| set.contains(&byte));
    let digits = chars.iter().filter(|&unit| is(unit, b"0123456789")).count();
    let points = chars.iter().filter(|&unit| is(unit, b".")).count();
    let first_is_sign = usize::from(chars.get(0).is_some_and(|unit| is(unit, b"+-")));
    if (1..=30).contains(&digits) && points <= 1 && digits + points + first_is_sign == chars.len() {
        return Ok(Datum::Int(1));
    }
    // Text with one of these characters is never a number. The letters d and e may be exponents. SQL Server may also
    // accept x, signs, points, commas, blanks and currency symbols in a number.
    let never = |unit: u16| is(unit, b"abcfghijklmnopqrstuvwyzABCFGHIJKLMNOPQRSTUVWYZ#&*/:;<=>?@[]^_`{|}~!");
    if chars.len() == 0 || chars.iter().any(never) {
        return Ok(Datum::Int(0));
    }
    Err(Undecided { reason: "ISNUMERIC of a number in an unusual form" })
}
