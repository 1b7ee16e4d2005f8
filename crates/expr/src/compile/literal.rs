//! Compiles constants, and resolves type names and collation names.

use format::collation::{CollationId, append_char};
use format::types::xtype;

use super::{Typed, no};
use crate::Unsupported;
use crate::ast::{Expr, TypeName};
use crate::node::Node;
use crate::types::Ty;
use crate::value::Datum;

/// Compiles a constant and determines its type (Microsoft, "Constants").
pub(super) fn literal(expr: &Expr, database: CollationId) -> Result<Typed, Unsupported> {
    match expr {
        Expr::Number(digits) => number(digits),
        Expr::Money(digits) => match fixed(digits) {
            Some((value, scale, _)) if scale <= 4 => {
                let value = value.checked_mul(10i128.pow(4 - u32::from(scale)));
                match value.and_then(|value| i64::try_from(value).ok()) {
                    Some(value) => constant(Datum::Money(value), Ty::of(xtype::MONEY)),
                    None => no(format!("money constant {digits}")),
                }
            }
            _ => no(format!("money constant {digits}")),
        },
        Expr::Text { value, unicode } => {
            let units = value.encode_utf16().count().max(1);
            let length = u16::try_from(units).unwrap_or(u16::MAX);
            let mut ty = if *unicode {
                Ty::bytes(xtype::NVARCHAR, if length <= 4000 { length * 2 } else { 0 })
            } else {
                Ty::bytes(xtype::VARCHAR, if length <= 8000 { length } else { 0 })
            };
            ty.nullable = false;
            ty.collation = database;
            if *unicode {
                let bytes: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
                constant(Datum::Unicode(bytes.into()), ty)
            } else {
                let units: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
                let mut bytes = Vec::new();
                if append_char(&units, database, &mut bytes) {
                    let length = u16::try_from(bytes.len().max(1)).unwrap_or(u16::MAX);
                    ty.info.length = if length <= 8000 { length } else { 0 };
                    return constant(Datum::Ansi(bytes.into()), ty);
                }
                Ok(Typed { node: Node::Unknown("a char literal outside ASCII depends on its code page"), ty })
            }
        }
        Expr::Binary(bytes) => {
            let length = u16::try_from(bytes.len().max(1)).ok().filter(|&length| length <= 8000);
            constant(Datum::Binary(bytes.clone().into()), Ty::bytes(xtype::VARBINARY, length.unwrap_or(0)))
        }
        _ => no("this constant"),
    }
}

fn constant(value: Datum<Box<[u8]>>, ty: Ty) -> Result<Typed, Unsupported> {
    Ok(Typed { node: Node::Const(value), ty: Ty { nullable: false, ..ty } })
}

/// Parses digits with an optional sign and decimal point. Returns the unscaled value, the scale and the precision.
fn fixed(digits: &str) -> Option<(i128, u8, u8)> {
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    if whole.len() + fraction.len() > 38 {
        return None;
    }
    let all = whole.bytes().chain(fraction.bytes());
    if !all.clone().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = all.fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    let precision = (whole.len() + fraction.len()).max(1) as u8;
    Some((if negative { -value } else { value }, fraction.len() as u8, precision))
}

/// The type of a number constant. A constant with an exponent is a float. An integer that fits an int is an int. All
/// other constants are numeric, with exactly as many digits as needed.
fn number(digits: &str) -> Result<Typed, Unsupported> {
    if digits.contains(['e', 'E']) {
        return match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => constant(Datum::Float(value), Ty::of(xtype::FLOAT)),
            _ => no(format!("float constant {digits}")),
        };
    }
    let Some((value, scale, precision)) = fixed(digits) else { return no(format!("constant {digits}")) };
    match i32::try_from(value) {
        Ok(int) if !digits.contains('.') && int != i32::MIN => {
            constant(Datum::Int(int.into()), Ty { digits: precision, ..Ty::of(xtype::INT) })
        }
        _ => constant(Datum::Decimal(value, scale), Ty::decimal(precision, scale)),
    }
}

/// Resolves a type as named in CONVERT and CAST.
pub(super) fn type_named(target: &TypeName) -> Result<Ty, Unsupported> {
    let args = &target.args;
    let unknown = || no(format!("type {}", target.name));
    let argument = |at: usize, or: u32| match args.get(at) {
        None => Some(or),
        Some(given) => *given,
    };
    let string = |kind: u8, width: u32, most: u32| match args.first() {
        Some(None) if matches!(kind, xtype::VARCHAR | xtype::NVARCHAR | xtype::VARBINARY) => Ok(Ty::bytes(kind, 0)),
        Some(None) => unknown(),
        // The default length is 30 (Microsoft, CAST and CONVERT).
        _ => match argument(0, 30) {
            Some(length) if (1..=most).contains(&length) => Ok(Ty::bytes(kind, (length * width) as u16)),
            _ => unknown(),
        },
    };
    let timed = |kind: u8| match argument(0, 7) {
        Some(scale) if scale <= 7 => {
            let info = format::types::TypeInfo { xtype: kind, scale: scale as u8, ..Default::default() };
            Ok(Ty::with(info))
        }
        _ => unknown(),
    };
    match target.name.as_str() {
        "bit" => Ok(Ty::of(xtype::BIT)),
        "tinyint" => Ok(Ty::of(xtype::TINYINT)),
        "smallint" => Ok(Ty::of(xtype::SMALLINT)),
        "int" | "integer" => Ok(Ty::of(xtype::INT)),
        "bigint" => Ok(Ty::of(xtype::BIGINT)),
        "money" => Ok(Ty::of(xtype::MONEY)),
        "smallmoney" => Ok(Ty::of(xtype::SMALLMONEY)),
        "real" => Ok(Ty::of(xtype::REAL)),
        "float" => match argument(0, 53) {
            Some(1..=24) => Ok(Ty::of(xtype::REAL)),
            Some(25..=53) => Ok(Ty::of(xtype::FLOAT)),
            _ => unknown(),
        },
        "decimal" | "numeric" | "dec" => match (argument(0, 18), argument(1, 0)) {
            (Some(precision @ 1..=38), Some(scale)) if scale <= precision => {
                let mut ty = Ty::decimal(precision as u8, scale as u8);
                if target.name != "numeric" {
                    ty.info.xtype = xtype::DECIMAL;
                }
                Ok(ty)
            }
            _ => unknown(),
        },
        "date" => Ok(Ty::of(xtype::DATE)),
        "datetime" => Ok(Ty::of(xtype::DATETIME)),
        "smalldatetime" => Ok(Ty::of(xtype::SMALLDATETIME)),
        "time" => timed(xtype::TIME),
        "datetime2" => timed(xtype::DATETIME2),
        "datetimeoffset" => timed(xtype::DATETIMEOFFSET),
        "char" => string(xtype::CHAR, 1, 8000),
        "varchar" => string(xtype::VARCHAR, 1, 8000),
        "nchar" => string(xtype::NCHAR, 2, 4000),
        "nvarchar" => string(xtype::NVARCHAR, 2, 4000),
        "binary" => string(xtype::BINARY, 1, 8000),
        "varbinary" => string(xtype::VARBINARY, 1, 8000),
        "uniqueidentifier" => Ok(Ty::of(xtype::UNIQUEIDENTIFIER)),
        _ => unknown(),
    }
}

/// The ID of the collation with this name. For an unknown name, the ID is 0, and few comparisons under this collation
/// are decided.
pub(super) fn collation(name: &str, database: CollationId) -> CollationId {
    if name.eq_ignore_ascii_case("database_default") {
        return database;
    }
    CollationId::named(name).unwrap_or_default()
}
