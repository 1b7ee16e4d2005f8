//! Columns that hold one of a few codes: those that the documentation of the catalog views lists, and numbers that are the same
//! in all rows met. Any other is listed as not verified.

use super::super::evaluate::{Tables, number};
use super::Verdicts;

/// What a column may hold.
enum Known {
    /// Letters, padded with blanks or not.
    Codes(&'static [&'static str]),
    /// Numbers.
    Numbers(&'static [i64]),
}

/// A column of a base table, as far as another one of the row is as wanted.
struct Coded {
    base: i32,
    /// Base table and column, for people.
    scope: &'static str,
    column: &'static str,
    when: Option<(&'static str, i64)>,
    known: Known,
}

use Known::{Codes, Numbers};

const fn all(base: i32, scope: &'static str, column: &'static str, known: Known) -> Coded {
    Coded { base, scope, column, when: None, known }
}

const fn of_class(base: i32, scope: &'static str, column: &'static str, class: i64, known: Known) -> Coded {
    Coded { base, scope, column, when: Some(("class", class)), known }
}

/// In the order of their tables. Documented in sys.objects, sys.database_principals, sys.database_permissions,
/// sys.service_message_types, sys.data_spaces, sys.database_files and sys.xml_schema_components, _facets and _model_groups.
static CODED: &[Coded] = &[
    all(7, "sys.sysallocunits, type", "type", Numbers(&[0, 1, 2, 3])),
    all(7, "sys.sysallocunits, status", "status", Numbers(&[0])),
    all(23, "sys.sysphfg, type", "type", Codes(&["FG", "FD", "FX"])),
    all(24, "sys.sysprufiles, filetype", "filetype", Numbers(&[0, 1, 2, 3, 4])),
    all(24, "sys.sysprufiles, filestate", "filestate", Numbers(&[0, 1, 2, 3, 4, 5, 6, 7, 8])),
    all(27, "sys.sysowners, type", "type", Codes(&["A", "C", "E", "G", "K", "R", "S", "U", "X"])),
    all(29, "sys.sysprivs, state", "state", Codes(&["D", "G", "R", "W"])),
    all(
        34,
        "sys.sysschobjs, type",
        "type",
        Codes(&[
            "AF", "C", "D", "EC", "ET", "F", "FN", "FS", "FT", "IF", "IT", "P", "PC", "PG", "PK", "R", "RF", "S", "SN",
            "SO", "SQ", "ST", "TA", "TF", "TR", "TT", "U", "UQ", "V", "X",
        ]),
    ),
    of_class(58, "sys.sysbinobjs, type", "type", 21, Codes(&["E", "N", "V", "X"])),
    all(
        91,
        "sys.sysxmlcomponent, kind",
        "kind",
        Codes(&["N", "Z", "P", "S", "L", "U", "C", "R", "K", "I", "E", "M", "W", "A", "G", "V"]),
    ),
    all(91, "sys.sysxmlcomponent, deriv", "deriv", Codes(&["N", "X", "R", "S"])),
    all(91, "sys.sysxmlcomponent, enum", "enum", Codes(&["", "A", "C", "L", "P", "S"])),
    all(91, "sys.sysxmlcomponent, symspace", "symspace", Codes(&["N", "T", "E", "M", "A", "G"])),
    all(
        92,
        "sys.sysxmlfacet, kind",
        "kind",
        Codes(&["LG", "LN", "LX", "PT", "EU", "IN", "IX", "EN", "EX", "DT", "DF", "WS"]),
    ),
];

pub(super) fn check(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) {
    for coded in CODED {
        let (when, wanted) = coded.when.unwrap_or((coded.column, 0));
        let read = tables.each(coded.base, &[coded.column, when], |at, row| {
            let &[Some(value), class] = row else { return };
            if coded.when.is_some() && class != Some(wanted) || coded.known.has(value) {
                return;
            }
            verdicts.doubt(coded.scope, || {
                format!("page {}, slot {}: {}, which is not known", at.page, at.slot, coded.known.shown(value))
            });
        });
        // An incomplete table is noted with the rules about it; a version may lack one.
        let _: Result<(), catalog::Unread> = read;
    }
}

impl Known {
    fn has(&self, value: i64) -> bool {
        match self {
            Self::Codes(codes) => codes.iter().any(|code| is_code(value, code)),
            Self::Numbers(numbers) => numbers.contains(&value),
        }
    }

    /// The value as people write it.
    fn shown(&self, value: i64) -> String {
        match self {
            Self::Codes(_) => {
                let bytes = value.to_le_bytes();
                let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                format!("code {}", text.escape_ascii())
            }
            Self::Numbers(_) => format!("number {value}"),
        }
    }
}

/// Whether the bytes of a column are `code`, padded with blanks to one, two or four characters.
fn is_code(value: i64, code: &str) -> bool {
    [0, 1, 2, 4].into_iter().filter(|length| *length >= code.len()).any(|length| {
        let mut padded = code.as_bytes().to_vec();
        padded.resize(length, b' ');
        value == number(&padded)
    })
}
