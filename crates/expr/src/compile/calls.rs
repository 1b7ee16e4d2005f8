//! Compiles function calls: checks the arguments, finds the result type, and refuses calls that are not supported.

use format::types::{fixed_length, xtype};

use super::operators::{recoded, widened};
use super::{Compiler, Typed, as_string, choice, implicit, literal, no};
use crate::Unsupported;
use crate::ast::{CompareOp, Expr, TypeName};
use crate::node::{CallTypes, Func, Node, Part};
use crate::types::{Label, Ty, common};
use crate::value::Datum;

/// Functions that may return a different value at every call.
const NOW_OR_NEW: [&str; 11] = [
    "getdate",
    "getutcdate",
    "sysdatetime",
    "sysutcdatetime",
    "sysdatetimeoffset",
    "current_timestamp",
    "newid",
    "newsequentialid",
    "rand",
    "crypt_gen_random",
    "current_timezone",
];

impl Compiler<'_> {
    pub(super) fn call(&mut self, name: &str, args: &[Expr]) -> Result<Typed, Unsupported> {
        if NOW_OR_NEW.contains(&name) {
            return no(format!("function {name}: not deterministic"));
        }
        match name {
            "dateadd" | "datediff" | "datepart" | "datename" => return self.date_call(name, args),
            "iif" => {
                let [condition, yes, other] = args else { return arguments(name) };
                let condition = self.condition(condition)?;
                return choice(vec![condition], vec![self.scalar(yes)?, self.scalar(other)?]);
            }
            "nullif" => {
                let [value, other] = args else { return arguments(name) };
                let equal = self.comparison(CompareOp::Equal, value, other)?;
                let value = self.scalar(value)?;
                let ty = value.ty;
                let null = Typed { node: Node::Const(Datum::Null), ty };
                return choice(vec![equal], vec![null, value]);
            }
            _ => {}
        }
        let args = args.iter().map(|arg| self.scalar(arg)).collect::<Result<Vec<_>, _>>()?;
        match name {
            "isnull" | "coalesce" => first_not_null(name, args),
            "year" | "month" | "day" => {
                let part = Part::named(name).unwrap_or(Part::Year);
                let args = match <[Typed; 1]>::try_from(args) {
                    Ok([date]) => vec![dated(date, part)?],
                    Err(_) => return arguments(name),
                };
                finish(Func::DatePart(part), args, Ty::of(xtype::INT))
            }
            "eomonth" | "datefromparts" => dates(name, args),
            "abs" | "ceiling" | "floor" | "round" | "sign" | "power" | "sqrt" | "square" | "str" => numbers(name, args),
            _ => strings(name, args),
        }
    }

    fn date_call(&mut self, name: &str, args: &[Expr]) -> Result<Typed, Unsupported> {
        let Some((Expr::Name { name: word, .. }, args)) = args.split_first() else { return arguments(name) };
        let Some(part) = Part::named(word) else { return no(format!("date part {word}")) };
        let args = args.iter().map(|arg| self.scalar(arg)).collect::<Result<Vec<_>, _>>()?;
        let weeks = matches!(part, Part::Week | Part::WeekDay);
        let mut args = args.into_iter();
        match (name, args.next(), args.next(), args.next()) {
            ("datepart" | "datename", Some(date), None, None) => {
                let named = name == "datename";
                if weeks || (named && part == Part::Month) {
                    return no(format!("{name} of {word}: depends on language or DATEFIRST"));
                }
                let date = dated(date, part)?;
                if named {
                    finish(Func::DateName(part), vec![date], Ty::bytes(xtype::NVARCHAR, 60))
                } else {
                    finish(Func::DatePart(part), vec![date], Ty::of(xtype::INT))
                }
            }
            ("datediff", Some(from), Some(to), None) if part != Part::WeekDay && part != Part::IsoWeek => {
                let args = vec![dated(from, part)?, dated(to, part)?];
                finish(Func::DateDiff(part), args, Ty::of(xtype::INT))
            }
            ("dateadd", Some(number), Some(date), None) if part != Part::IsoWeek => {
                if !number.ty.is_integer() {
                    return no(format!("dateadd of a number of type {}", number.ty.info.name()));
                }
                // DATEADD converts a string to datetime, but the other date functions convert it to datetime2.
                let text = date.ty.is_string() || date.ty.is_integer();
                let date = if text { implicit(date, &Ty::of(xtype::DATETIME))? } else { date };
                let date = dated(date, part)?;
                if date.ty.kind() == xtype::DATETIMEOFFSET {
                    return no("dateadd of datetimeoffset");
                }
                let ty = date.ty;
                finish(Func::DateAdd(part), vec![number, date], ty)
            }
            _ => arguments(name),
        }
    }
}

fn arguments<T>(name: &str) -> Result<T, Unsupported> {
    no(format!("arguments of {name}"))
}

fn finish(func: Func, args: Vec<Typed>, result: Ty) -> Result<Typed, Unsupported> {
    // Finds the collation with the strongest collation label among the strings. Refuses two columns with different
    // collations.
    let mut collation = Ty::default();
    for ty in args.iter().map(|arg| &arg.ty).filter(|ty| ty.is_string()) {
        if ty.label == collation.label && ty.label != Label::Coercible && ty.collation != collation.collation {
            return no("strings of two collations");
        }
        if collation.is_null() || ty.label > collation.label {
            collation = *ty;
        }
    }
    let (mut nodes, mut types) = (Vec::new(), Vec::new());
    for arg in args {
        let arg = recoded(arg, collation.collation)?;
        nodes.push(arg.node);
        types.push(arg.ty);
    }
    let mut ty = Ty { nullable: true, digits: 0, ..result };
    if ty.is_string() {
        (ty.collation, ty.label) = (collation.collation, collation.label);
    }
    let types = CallTypes { args: types, result: ty, collation: collation.collation };
    Ok(Typed { node: Node::Call(func, nodes, Box::new(types)), ty })
}

/// Converts a date argument. A string becomes a datetime2, and an integer becomes a datetime. Returns an error if the
/// type does not have the date part `part`.
fn dated(date: Typed, part: Part) -> Result<Typed, Unsupported> {
    let date = if date.ty.is_string() {
        let to = literal::type_named(&TypeName { name: "datetime2".into(), args: Vec::new() })?;
        implicit(date, &to)?
    } else if date.ty.is_integer() {
        implicit(date, &Ty::of(xtype::DATETIME))?
    } else {
        date
    };
    let (kind, name) = (date.ty.kind(), date.ty.info.name());
    let has_part = match kind {
        xtype::DATE => !part.is_time(),
        xtype::TIME => part.is_time(),
        _ => date.ty.is_moment(),
    };
    if has_part && kind != xtype::DATETIMEOFFSET { Ok(date) } else { no(format!("this date part of {name}")) }
}

fn first_not_null(name: &str, args: Vec<Typed>) -> Result<Typed, Unsupported> {
    if args.len() < 2 || name == "isnull" && args.len() != 2 {
        return arguments(name);
    }
    let mut shared = Ty::null();
    for arg in &args {
        // The result of ISNULL has the type of the first argument. The result of COALESCE has the common type of all
        // arguments.
        if name == "coalesce" || shared.is_null() {
            shared = common(&shared, &arg.ty)?;
        }
    }
    shared.digits = 0;
    shared.nullable = args.iter().all(|arg| arg.ty.nullable);
    let mut nodes = Vec::new();
    for arg in args {
        nodes.push(implicit(arg, &shared)?.node);
    }
    let types = CallTypes { args: Vec::new(), result: shared, collation: shared.collation };
    Ok(Typed { node: Node::Call(Func::Coalesce, nodes, Box::new(types)), ty: shared })
}

fn dates(name: &str, args: Vec<Typed>) -> Result<Typed, Unsupported> {
    let count = args.len();
    let integers = |args: &[Typed]| args.iter().all(|arg| arg.ty.is_integer());
    let mut args = args;
    match name {
        "eomonth" if (1..=2).contains(&count) && integers(args.get(1..).unwrap_or_default()) => {
            let date = args.remove(0);
            args.insert(0, dated(date, Part::Month)?);
            finish(Func::EoMonth, args, Ty::of(xtype::DATE))
        }
        "datefromparts" if count == 3 && integers(&args) => finish(Func::DateFromParts, args, Ty::of(xtype::DATE)),
        _ => arguments(name),
    }
}

fn numbers(name: &str, args: Vec<Typed>) -> Result<Typed, Unsupported> {
    let Some(first) = args.first().map(|arg| arg.ty) else { return arguments(name) };
    if !first.is_number() || first.kind() == xtype::BIT {
        return no(format!("{name} of {}", first.info.name()));
    }
    let others = args.get(1..).unwrap_or_default();
    let whole = others.iter().all(|arg| arg.ty.is_integer());
    let (func, most) = match name {
        "abs" => (Func::Abs, 0),
        "ceiling" => (Func::Ceiling, 0),
        "floor" => (Func::Floor, 0),
        "round" => (Func::Round, 2),
        "sign" => (Func::Sign, 0),
        "power" => (Func::Power, 1),
        "sqrt" => (Func::Sqrt, 0),
        "square" => (Func::Square, 0),
        _ => (Func::Str, 2),
    };
    let least = usize::from(matches!(func, Func::Round | Func::Power));
    if others.len() > most || others.len() < least || !whole {
        return arguments(name);
    }
    let float = Ty::of(xtype::FLOAT);
    let widest = match first.kind() {
        xtype::TINYINT | xtype::SMALLINT => Ty::of(xtype::INT),
        xtype::SMALLMONEY => Ty::of(xtype::MONEY),
        xtype::REAL => float,
        _ => first,
    };
    let result = match func {
        Func::Sqrt | Func::Square => float,
        Func::Str => {
            let length = match others.first().map(|arg| &arg.node) {
                None => 10,
                Some(Node::Const(Datum::Int(length))) => u16::try_from(*length).unwrap_or(0).clamp(1, 8000),
                Some(_) => return no("str with a length that is not a constant"),
            };
            Ty::bytes(xtype::VARCHAR, length)
        }
        Func::Sign if first.is_decimal() => return no("sign of decimal"),
        Func::Power if first.is_decimal() => Ty::decimal(38, first.info.scale),
        Func::Floor | Func::Ceiling if first.is_decimal() => {
            let mut ty = Ty::decimal(first.info.precision, 0);
            ty.info.xtype = first.kind();
            ty
        }
        _ => widest,
    };
    finish(func, args, result)
}

/// The value of an argument that must be a constant integer, because it determines the length of the result.
fn constant(arg: Option<&Typed>) -> Option<u16> {
    match arg.map(|arg| &arg.node) {
        Some(Node::Const(Datum::Int(number))) => u16::try_from(*number).ok(),
        _ => None,
    }
}

fn strings(name: &str, args: Vec<Typed>) -> Result<Typed, Unsupported> {
    // One letter for each argument: s means a string, i an integer, and a any type.
    let (func, shape) = match name {
        "ascii" => (Func::Ascii, "s"),
        "char" => (Func::Char, "i"),
        "charindex" => (Func::CharIndex, if args.len() == 3 { "ssi" } else { "ss" }),
        "concat" if args.len() >= 2 => return concat(args),
        "datalength" => (Func::DataLength, "a"),
        "isnumeric" => (Func::IsNumeric, "a"),
        "left" => (Func::Left, "si"),
        "len" => (Func::Len, "s"),
        "lower" => (Func::Lower, "s"),
        "ltrim" => (Func::Ltrim, "s"),
        "nchar" => (Func::NChar, "i"),
        "replace" => (Func::Replace, "sss"),
        "replicate" => (Func::Replicate, "si"),
        "reverse" => (Func::Reverse, "s"),
        "right" => (Func::Right, "si"),
        "rtrim" => (Func::Rtrim, "s"),
        "space" => (Func::Space, "i"),
        "stuff" => (Func::Stuff, "siis"),
        "substring" => (Func::Substring, "sii"),
        "trim" => (Func::Trim, "s"),
        "unicode" => (Func::Unicode, "s"),
        "upper" => (Func::Upper, "s"),
        _ => return no(format!("function {name}")),
    };
    if args.len() != shape.len() {
        return arguments(name);
    }
    let unicode = args.iter().any(|arg| arg.ty.is_unicode()) || func == Func::Unicode;
    let mut converted = Vec::new();
    for (arg, kind) in args.into_iter().zip(shape.chars()) {
        converted.push(match kind {
            's' => widened(as_string(arg)?, unicode)?,
            'i' if arg.ty.is_integer() || arg.ty.is_null() => arg,
            'i' => return no(format!("{name} with a number of type {}", arg.ty.info.name())),
            _ => arg,
        });
    }
    let Some(source) = converted.first().map(|arg| arg.ty) else { return arguments(name) };
    let length = source.characters();
    let cut = |at: usize| match (length, constant(converted.get(at))) {
        (Some(length), Some(count)) => Some(length.min(count.max(1))),
        _ => length,
    };
    let result = match func {
        Func::Ascii | Func::Unicode | Func::IsNumeric => Ty::of(xtype::INT),
        Func::Len | Func::DataLength if source.is_max() && (source.is_string() || func == Func::DataLength) => {
            // The length of a (max) type is 0, so `fixed_length` returns `None`, and the result is a bigint. For the
            // other types that this branch handles, which have a fixed length, the result is an int.
            Ty::of(if fixed_length(source.info).is_some() { xtype::INT } else { xtype::BIGINT })
        }
        Func::DataLength if source.is_decimal() => return no("datalength of decimal"),
        Func::Len | Func::DataLength => Ty::of(xtype::INT),
        Func::CharIndex if converted.get(1).is_some_and(|arg| arg.ty.is_max()) => Ty::of(xtype::BIGINT),
        Func::CharIndex => Ty::of(xtype::INT),
        Func::Char => Ty::bytes(xtype::CHAR, 1),
        Func::NChar => Ty::bytes(xtype::NCHAR, 2),
        Func::Space => Ty::bytes(xtype::VARCHAR, 8000),
        Func::Left | Func::Right => source.varying(cut(1)),
        Func::Substring => source.varying(cut(2)),
        Func::Replace | Func::Replicate | Func::Stuff if length.is_some() => source.varying(Some(8000)),
        _ => source.varying(length),
    };
    finish(func, converted, result)
}

fn concat(args: Vec<Typed>) -> Result<Typed, Unsupported> {
    let unicode = args.iter().any(|arg| arg.ty.is_unicode());
    let (mut parts, mut total) = (Vec::new(), 0u32);
    for arg in args {
        let part = widened(as_string(arg)?, unicode)?;
        match part.ty.characters() {
            Some(length) => total += u32::from(length),
            None if part.ty.is_null() => total += 1,
            None => return no("concat of a (max) type"),
        }
        parts.push(part);
    }
    let sample = if unicode { Ty::bytes(xtype::NVARCHAR, 2) } else { Ty::bytes(xtype::VARCHAR, 1) };
    finish(Func::Concat, parts, sample.varying(Some(total.min(8000) as u16)))
}
