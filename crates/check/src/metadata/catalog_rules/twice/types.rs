//! Attributes of columns, parameters and types that the type alone determines. A row that contradicts its type is a
//! finding (message 3858).

use std::collections::HashMap;

use findings::{Finding, registry};
use format::RecordId;
use format::types::{TypeInfo, fixed_length, user_type, xtype};

use super::super::evaluate::Tables;
use super::Verdicts;

const SYSSCALARTYPES: i32 = 50;
/// The highest ID of a built-in type: sysname.
const LAST_OF_THE_ENGINE: i32 = 256;
/// The xtype of table types (docs/format/catalog.md#references).
const TABLE: u8 = 243;
/// The length that the catalog stores for (max) types, xml and most CLR types.
const MAX: i64 = -1;

/// A type as a row of syscolpars or sysscalartypes declares it.
#[derive(Clone, Copy)]
pub(super) struct Declared {
    pub(super) xtype: u8,
    pub(super) user_type: i32,
    pub(super) length: i64,
    pub(super) precision: i64,
    pub(super) scale: i64,
    pub(super) collation: i64,
}

impl Declared {
    /// Reads the columns xtype, type ID, length, prec, scale and collationid, in this order; `None` if one of them is
    /// NULL.
    pub(super) fn of(row: &[Option<i64>]) -> Option<Self> {
        let &[Some(kind), Some(user_type), Some(length), Some(precision), Some(scale), Some(collation)] = row else {
            return None;
        };
        Some(Self {
            xtype: u8::try_from(kind).ok()?,
            user_type: i32::try_from(user_type).ok()?,
            length,
            precision,
            scale,
            collation,
        })
    }

    /// How a rowset stores the type; `None` if unknown.
    pub(super) fn stored(&self) -> Option<TypeInfo> {
        let kind = match self.xtype {
            xtype::CLR => xtype::VARBINARY,
            TABLE | xtype::JSON => return None,
            kind => kind,
        };
        let mut info = TypeInfo { xtype: kind, length: 0, precision: 0, scale: 0 };
        match kind {
            xtype::DECIMAL | xtype::NUMERIC => {
                (info.precision, info.scale) = (u8::try_from(self.precision).ok()?, u8::try_from(self.scale).ok()?);
            }
            xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => info.scale = u8::try_from(self.scale).ok()?,
            _ => info.length = u16::try_from(self.length).unwrap_or(0),
        }
        info.length = match kind {
            // For sql_variant, syscolpars stores the length of the longest value, but the rowset stores no length. So
            // the result is 0, which means any length. For text types, syscolpars stores the number of bytes that may
            // be in the row, but the rowset stores the length of the pointer, which `fixed_length` returns.
            xtype::SQL_VARIANT => 0,
            _ => fixed_length(info).unwrap_or(info.length),
        };
        Some(info)
    }

    /// The attributes that are impossible for the type, each with its name in the catalog view and its value. If the
    /// type itself is wrong, it is the only attribute listed.
    fn impossible(&self) -> Impossible {
        let mut all = [None; 4];
        if let Some(kind) = engine_type(self.user_type)
            && kind != self.xtype
        {
            all[0] = Some(("system_type_id", self.xtype.into()));
            return all;
        }
        let Some(limits) = limits(self) else { return all };
        let wrong = |name, value: i64, is_right: bool| (!is_right).then_some((name, value));
        all[0] = wrong("max_length", self.length, limits.length);
        all[1] = wrong("precision", self.precision, limits.precision);
        all[2] = wrong("scale", self.scale, limits.scale);
        all[3] = wrong("collation_id", self.collation, limits.is_text == (self.collation != 0));
        all
    }
}

type Impossible = [Option<(&'static str, i64)>; 4];

/// Whether each attribute is possible for the type, and whether the type is a character type.
struct Limits {
    length: bool,
    precision: bool,
    scale: bool,
    is_text: bool,
}

/// The xtype of a built-in type, by its id; `None` for a user type.
fn engine_type(user_type: i32) -> Option<u8> {
    match user_type {
        user_type::HIERARCHYID | user_type::GEOMETRY | user_type::GEOGRAPHY => Some(xtype::CLR),
        user_type::VECTOR => Some(xtype::VARBINARY),
        LAST_OF_THE_ENGINE => Some(xtype::NVARCHAR),
        other => u8::try_from(other).ok(),
    }
}

/// Compares the attributes with those that the type allows; `None` for an unknown type.
fn limits(declared: &Declared) -> Option<Limits> {
    let Declared { length, precision, scale, .. } = *declared;
    let exact = |wanted: [i64; 3]| Limits {
        length: length == wanted[0],
        precision: precision == wanted[1],
        scale: scale == wanted[2],
        is_text: false,
    };
    let sized = |is_text, length| Limits { length, precision: precision == 0, scale: scale == 0, is_text };
    let up_to_8000 = (0..=8000).contains(&length);
    let is_even = length % 2 == 0;
    Some(match declared.xtype {
        xtype::BIT => exact([1, 1, 0]),
        xtype::TINYINT => exact([1, 3, 0]),
        xtype::SMALLINT => exact([2, 5, 0]),
        xtype::INT => exact([4, 10, 0]),
        xtype::BIGINT => exact([8, 19, 0]),
        xtype::SMALLMONEY => exact([4, 10, 4]),
        xtype::MONEY => exact([8, 19, 4]),
        xtype::REAL => exact([4, 24, 0]),
        xtype::FLOAT => exact([8, 53, 0]),
        xtype::SMALLDATETIME => exact([4, 16, 0]),
        xtype::DATETIME => exact([8, 23, 3]),
        xtype::DATE => exact([3, 10, 0]),
        xtype::UNIQUEIDENTIFIER => exact([16, 0, 0]),
        xtype::TIMESTAMP => exact([8, 0, 0]),
        xtype::SQL_VARIANT => exact([8016, 0, 0]),
        xtype::XML | TABLE => exact([MAX, 0, 0]),
        // It is unknown how the attributes of a vector encode its dimensions, so they are not checked.
        xtype::VARBINARY if declared.user_type == user_type::VECTOR => return None,
        xtype::VARBINARY | xtype::CLR => sized(false, up_to_8000 || length == MAX),
        xtype::BINARY => sized(false, up_to_8000),
        xtype::VARCHAR => sized(true, up_to_8000 || length == MAX),
        xtype::CHAR => sized(true, up_to_8000),
        xtype::NVARCHAR => sized(true, up_to_8000 && is_even || length == MAX),
        xtype::NCHAR => sized(true, up_to_8000 && is_even),
        // The length is 16, or the number of bytes that may be in the row.
        xtype::TEXT | xtype::NTEXT => sized(true, (16..=7000).contains(&length)),
        xtype::IMAGE => sized(false, (16..=7000).contains(&length)),
        xtype::DECIMAL | xtype::NUMERIC => {
            let precision_is_right = (1..=38).contains(&precision);
            let info = TypeInfo { xtype: declared.xtype, precision: precision as u8, ..TypeInfo::default() };
            Limits {
                length: !precision_is_right || fixed_length(info).map(i64::from) == Some(length),
                precision: precision_is_right,
                scale: scale <= precision || !precision_is_right,
                is_text: false,
            }
        }
        kind @ (xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET) => {
            let scale_is_right = (0..=7).contains(&scale);
            let info = TypeInfo { xtype: kind, scale: scale as u8, ..TypeInfo::default() };
            // The precision is the number of characters of a value as text. The text contains the time as hh:mm:ss. For
            // datetime2, a date precedes the time; for datetimeoffset, an offset also follows it. If the scale is not
            // 0, the time has a decimal point and decimal digits.
            let whole = match kind {
                xtype::TIME => 8,
                xtype::DATETIME2 => 19,
                _ => 26,
            };
            let digits = if scale > 0 { scale + 1 } else { 0 };
            Limits {
                length: !scale_is_right || fixed_length(info).map(i64::from) == Some(length),
                precision: !scale_is_right || precision == whole + digits,
                scale: scale_is_right,
                is_text: false,
            }
        }
        _ => return None,
    })
}

/// Checks the type in a row on its own. `row` and `table` identify the row in messages.
pub(super) fn judge(
    declared: &Declared,
    at: RecordId,
    (scope, table): (&'static str, &str),
    row: impl Fn() -> String,
    verdicts: &mut Verdicts<'_>,
) {
    let is_known = limits(declared).is_some() || matches!(declared.xtype, xtype::JSON | xtype::VARBINARY);
    if !is_known {
        verdicts.unknown(scope, || format!("({}) has type {}", row(), declared.xtype));
    }
    for (attribute, value) in declared.impossible().into_iter().flatten() {
        verdicts.impossible(scope, || {
            Finding::new(&registry::CATALOG_INVALID_VALUE)
                .at_record(at)
                .text_value("attribute", format!("{attribute}={value}"))
                .text_value("row", row())
                .text_value("table", table)
        });
    }
}

/// Checks sysscalartypes; returns the user types by id.
pub(super) fn check(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) -> HashMap<i32, Declared> {
    const SCOPE: &str = "sys.sysscalartypes";
    let columns = ["xtype", "id", "length", "prec", "scale", "collationid"];
    let mut types = HashMap::new();
    let read = tables.each(SYSSCALARTYPES, &columns, |at, row| {
        let Some(declared) = Declared::of(row) else { return };
        judge(&declared, at, (SCOPE, "types"), || format!("user_type_id={}", declared.user_type), verdicts);
        if declared.user_type > LAST_OF_THE_ENGINE {
            types.insert(declared.user_type, declared);
        } else {
            engine_limits(&declared, verdicts);
        }
    });
    // If the table cannot be read to its end, the check of the references between base tables has already noted this.
    if read.is_err() {
        types.clear();
    }
    types
}

/// Checks that each built-in type of variable length is declared with the maximum length for the type.
fn engine_limits(declared: &Declared, verdicts: &mut Verdicts<'_>) {
    let wanted = match declared.user_type {
        LAST_OF_THE_ENGINE => 256,
        user_type::HIERARCHYID => 892,
        user_type::GEOMETRY | user_type::GEOGRAPHY => MAX,
        _ => match declared.xtype {
            xtype::DECIMAL | xtype::NUMERIC => 17,
            xtype::TIME => 5,
            xtype::DATETIME2 => 8,
            xtype::DATETIMEOFFSET => 10,
            xtype::TEXT | xtype::NTEXT | xtype::IMAGE => 16,
            xtype::CHAR | xtype::NCHAR | xtype::VARCHAR | xtype::NVARCHAR | xtype::BINARY | xtype::VARBINARY => 8000,
            _ => return,
        },
    };
    if declared.length != wanted {
        verdicts.doubt("sys.sysscalartypes, length", || {
            format!("system type {} has length {}, not {wanted}", declared.user_type, declared.length)
        });
    }
}
