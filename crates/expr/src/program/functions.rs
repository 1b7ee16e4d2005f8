//! The evaluation of functions.

mod dates;
mod math;
mod strings;

pub(super) use strings::concat;

use crate::Undecided;
use crate::env::{Cell, Env, Outcome};
use crate::node::{CallTypes, Func, Node};
use crate::numeric::exact;
use crate::value::{Datum, time_unit};

const WRONG: Undecided = Undecided { reason: "a value of an unexpected type" };

/// The most arguments that any function has, except for the variadic functions.
const MOST_ARGS: usize = 4;

pub(super) fn call<'a>(func: Func, args: &'a [Node], types: &'a CallTypes, env: &mut Env<'a>) -> Outcome<'a> {
    match func {
        Func::Coalesce => {
            for arg in args {
                let value = arg.evaluate(env)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            return Ok(Datum::Null);
        }
        Func::Concat => return strings::concat_all(args, types, env),
        _ => {}
    }
    let mut values: [Cell<'a>; MOST_ARGS] = [Datum::Null; MOST_ARGS];
    for (value, arg) in values.iter_mut().zip(args) {
        *value = arg.evaluate(env)?;
    }
    let given = values.get(..args.len()).ok_or(WRONG)?;
    let null_counts = !matches!(func, Func::Stuff | Func::IsNumeric | Func::EoMonth);
    if null_counts && given.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    env.look_at(given)?;
    let [a, b, c, d] = values;
    match func {
        Func::Abs | Func::Ceiling | Func::Floor | Func::Round | Func::Sign | Func::Negate | Func::BitNot => {
            math::exact_function(func, given, types)
        }
        Func::Power | Func::Sqrt | Func::Square => math::float_function(func, a, b, types),
        Func::DateAdd(part) => match dates::add(part, integer(a)?, b)? {
            Datum::Time(units) | Datum::DateTime2(_, units) if units % time_unit(types.result.info.scale) != 0 => {
                Err(Undecided { reason: "a fraction of a second beyond the type's scale" })
            }
            sum => Ok(sum),
        },
        Func::DateDiff(part) => dates::difference(part, a, b),
        Func::DatePart(part) => dates::part(part, a).map(Datum::Int),
        Func::DateName(part) => {
            let number = dates::part(part, a)?;
            Ok(Datum::Unicode(env.print(true, format_args!("{number}"))?))
        }
        Func::EoMonth if a.is_null() => Ok(Datum::Null),
        Func::EoMonth => dates::end_of_month(a, if given.len() > 1 { b } else { Datum::Int(0) }),
        Func::DateFromParts => dates::from_parts(integer(a)?, integer(b)?, integer(c)?),
        Func::IsNumeric => strings::is_numeric(a, env),
        Func::Space => strings::replicate(Datum::Ansi(crate::env::Text::Lent(b" ")), integer(a)?, types, env),
        Func::Replicate => strings::replicate(a, integer(b)?, types, env),
        Func::Str => math::str_text(given, env),
        Func::Char | Func::NChar => strings::from_code(func, integer(a)?, types, env),
        Func::Left | Func::Right | Func::Substring => strings::slice(func, a, b, c, types, env),
        Func::Stuff => strings::stuff([a, b, c, d], types, env),
        Func::Replace => strings::replace(a, b, c, types, env),
        Func::CharIndex => strings::char_index(a, b, if given.len() > 2 { integer(c)? } else { 1 }, types, env),
        _ => strings::one(func, a, types, env),
    }
}

/// The value of an integer argument.
fn integer(cell: Cell<'_>) -> Result<i64, Undecided> {
    if let Datum::Int(value) = cell {
        return Ok(value);
    }
    match exact(cell) {
        Some((value, 0)) => i64::try_from(value).map_err(|_| WRONG),
        _ => Err(WRONG),
    }
}
