//! Checks columns that may contain only a few values: the codes that the documentation of the catalog views lists, or
//! numbers and bits that were seen in real databases. Any other value is listed as not verified.

use super::super::evaluate::{Tables, code_number};
use super::Verdicts;

/// The values that a column may have.
enum Known {
    /// Codes of letters, padded with blanks or unpadded.
    Codes(&'static [&'static str]),
    /// Any of these numbers.
    Numbers(&'static [i64]),
    /// All numbers from the first to the second, inclusive.
    Range(i64, i64),
    /// Any combination of these bits.
    Bits(i64),
}

/// A column of a base table. If `when` is set, it names another column and a value, and the rule applies only to rows
/// that have this value in that column.
struct Coded {
    base: i32,
    /// Display name of the base table and the column.
    scope: &'static str,
    column: &'static str,
    when: Option<(&'static str, i64)>,
    known: Known,
}

use Known::{Bits, Codes, Numbers, Range};

const fn all(base: i32, scope: &'static str, column: &'static str, known: Known) -> Coded {
    Coded { base, scope, column, when: None, known }
}

const fn of_class(base: i32, scope: &'static str, column: &'static str, class: i64, known: Known) -> Coded {
    Coded { base, scope, column, when: Some(("class", class)), known }
}

/// All columns with codes, in the order of their tables. Ranges are those of the documentation. The codes are
/// documented in sys.objects, sys.database_principals, sys.database_permissions, sys.service_message_types,
/// sys.data_spaces, sys.database_files, sys.xml_schema_components, sys.xml_schema_facets and
/// sys.xml_schema_model_groups.
///
/// Numbers and bits are those seen in all rows of 258 databases: 3,639 rows of sysowners, 260 of sysnsobjs, 8,578 of
/// sysscalartypes, 57,045 of sysidxstats, 102,786 of sysiscols, 5,934 of sysbinobjs, 4,192 of sysclsobjs, 44,677 of
/// syssingleobjrefs, 35,978 of sysmultiobjrefs and 33,578 of sysrowsets. The rows of sysmultiobjrefs in 144 backups
/// were examined too; status bit 0x10 was seen only in one of these backups. In SQL Server 2005, sysrowsets has no
/// column fillfact.
static CODED: &[Coded] = &[
    all(5, "sys.sysrowsets, fillfact", "fillfact", Range(0, 100)),
    all(5, "sys.sysrowsets, scope_id", "scope_id", Numbers(&[0, 1])),
    all(7, "sys.sysallocunits, type", "type", Numbers(&[0, 1, 2, 3])),
    all(7, "sys.sysallocunits, status", "status", Numbers(&[0])),
    all(23, "sys.sysphfg, dbfragid", "dbfragid", Numbers(&[1])),
    all(23, "sys.sysphfg, type", "type", Codes(&["FG", "FD", "FX"])),
    all(24, "sys.sysprufiles, dbfragid", "dbfragid", Numbers(&[1])),
    all(24, "sys.sysprufiles, filetype", "filetype", Numbers(&[0, 1, 2, 3, 4])),
    all(24, "sys.sysprufiles, filestate", "filestate", Numbers(&[0, 1, 2, 3, 4, 5, 6, 7, 8])),
    all(27, "sys.sysowners, type", "type", Codes(&["A", "C", "E", "G", "K", "R", "S", "U", "X"])),
    all(27, "sys.sysowners, status", "status", Numbers(&[0])),
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
    of_class(44, "sys.sysnsobjs, status", "status", 27, Numbers(&[0])),
    of_class(44, "sys.sysnsobjs, intprop", "intprop", 27, Numbers(&[0])),
    all(50, "sys.sysscalartypes, status", "status", Numbers(&[0, 1])),
    all(54, "sys.sysidxstats, fillfact", "fillfact", Range(0, 100)),
    all(54, "sys.sysidxstats, tinyprop", "tinyprop", Numbers(&[0, 2])),
    all(55, "sys.sysiscols, status", "status", Bits(0x17)),
    // The position of the column among the partitioning columns.
    all(55, "sys.sysiscols, tinyprop2", "tinyprop2", Range(0, 16)),
    all(55, "sys.sysiscols, tinyprop3", "tinyprop3", Numbers(&[0])),
    all(58, "sys.sysbinobjs, status", "status", Numbers(&[0])),
    all(58, "sys.sysbinobjs, intprop", "intprop", Numbers(&[0])),
    of_class(58, "sys.sysbinobjs, type", "type", 21, Codes(&["E", "N", "V", "X"])),
    // Class 10: permission sets of assemblies. Class 50: schemas.
    of_class(64, "sys.sysclsobjs, intprop", "intprop", 10, Range(1, 3)),
    of_class(64, "sys.sysclsobjs, status", "status", 50, Numbers(&[0])),
    of_class(64, "sys.sysclsobjs, intprop", "intprop", 50, Numbers(&[0])),
    of_class(64, "sys.sysclsobjs, intprop", "intprop", 31, Numbers(&[0])),
    all(74, "sys.syssingleobjrefs, status", "status", Numbers(&[0])),
    all(75, "sys.sysmultiobjrefs, status", "status", Bits(0x17)),
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
    for of_table in CODED.chunk_by(|one, other| one.base == other.base) {
        let base = of_table.first().map_or(0, |coded| coded.base);
        // Some versions lack a table or a column. The rules for a missing table or column are left out.
        let known = tables.database.columns.get(&base);
        let is_there = |name: &str| known.is_some_and(|columns| columns.iter().any(|column| column.name == name));
        let when = |coded: &Coded| coded.when.map_or(coded.column, |(column, _)| column);
        let plan: Vec<(&Coded, Vec<i64>)> = of_table
            .iter()
            .filter(|coded| is_there(coded.column) && is_there(when(coded)))
            .map(|coded| (coded, coded.known.codes()))
            .collect();
        let columns: Vec<&'static str> = plan.iter().flat_map(|(coded, _)| [coded.column, when(coded)]).collect();
        if columns.is_empty() {
            continue;
        }
        let read = tables.each(base, &columns, |at, row| {
            for ((coded, codes), values) in plan.iter().zip(row.chunks_exact(2)) {
                let &[Some(value), class] = values else { continue };
                if coded.when.is_some_and(|(_, wanted)| class != Some(wanted)) || coded.known.has(codes, value) {
                    continue;
                }
                verdicts.unknown(coded.scope, || {
                    format!("page {}, slot {}: {}", at.page, at.slot, coded.known.shown(value))
                });
            }
        });
        // The error is ignored, because the check of the references between base tables has already noted incomplete
        // tables.
        let _: Result<(), catalog::Unread> = read;
    }
}

impl Known {
    /// The codes as numbers, unpadded and padded with blanks to one, two and four characters.
    fn codes(&self) -> Vec<i64> {
        let Self::Codes(codes) = self else { return Vec::new() };
        let lengths = [0, 1, 2, 4];
        let padded = |code: &'static str| {
            lengths.into_iter().filter(move |length| *length >= code.len()).map(move |length| code_number(code, length))
        };
        codes.iter().copied().flat_map(padded).collect()
    }

    /// Whether `value` is known; `codes` is the result of [`codes`](Self::codes).
    fn has(&self, codes: &[i64], value: i64) -> bool {
        match self {
            Self::Codes(_) => codes.contains(&value),
            Self::Numbers(numbers) => numbers.contains(&value),
            Self::Range(first, last) => (*first..=*last).contains(&value),
            Self::Bits(bits) => value & !bits == 0,
        }
    }

    /// The display form of the value.
    fn shown(&self, value: i64) -> String {
        match self {
            Self::Codes(_) => {
                let bytes = value.to_le_bytes();
                let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                format!("code {}", text.escape_ascii())
            }
            Self::Numbers(_) | Self::Range(..) | Self::Bits(_) => format!("number {value}"),
        }
    }
}
