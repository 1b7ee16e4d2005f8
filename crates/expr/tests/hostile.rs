//! No text breaks the parser or the compiler, and no value the evaluation.

use expr::{ColumnType, Scratch, compile, parse};
use format::types::TypeInfo;
use proptest::prelude::*;

#[test]
fn nesting_is_bounded() {
    for (open, close) in [
        ("(", ")"),
        ("NOT ", ""),
        ("-+", ""),
        ("~", ""),
        ("abs(", ")"),
        ("CONVERT([int],", ")"),
        ("case when 1=1 then ", " end"),
        ("case ", " when 1 then 1 end"),
    ] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        assert!(parse(&deep).is_err(), "{open}");
        let _ = compile(&format!("{}1{}", open.repeat(40), close.repeat(40)), &|_| None);
    }
    let chain = "1+".repeat(100_000) + "1";
    assert_eq!(parse(&chain).unwrap_err().what, "an expression nested more than 96 deep");
    // Lists and chains of AND and OR may be long.
    let list = format!("1 in ({}1)", "1,".repeat(10_000));
    assert!(compile(&list, &|_| None).is_ok());
    assert!(compile(&("1=1 OR ".repeat(10_000) + "1=1"), &|_| None).is_ok());
}

#[test]
fn repeated_operands_do_not_multiply() {
    let mut text = String::from("1");
    for _ in 0..40 {
        text = format!("case {text} when 1 then 1 when 2 then 2 end");
    }
    assert_eq!(compile(&text, &|_| None).map(|_| ()).unwrap_err().what, "an expression of too many terms");
}

#[test]
fn columns_of_impossible_types_are_refused() {
    for (ti, declaration) in [(0x00_C8_12_6A, "decimal(18,200)"), (0x6A, "decimal(0,0)"), (0x09_29, "time(9)")] {
        let info = TypeInfo::from_ti(ti);
        let column = |_: &str| Some(ColumnType { info, ..ColumnType::default() });
        for text in ["[a]+[b]>(0)", "[a]*[b]", "[a]%(7)", "coalesce([a],(1.5))"] {
            let refusal = compile(text, &column).map(|_| ()).unwrap_err().what;
            assert_eq!(refusal, format!("column a of the impossible type {declaration}"), "{text}");
        }
    }
}

fn any_type() -> impl Strategy<Value = ColumnType> {
    let kinds = [
        34u8, 36, 40, 41, 42, 43, 48, 52, 56, 58, 59, 60, 61, 62, 98, 104, 106, 122, 127, 165, 167, 173, 175, 189, 231,
        239,
    ];
    (proptest::sample::select(kinds.to_vec()), any::<u32>(), any::<u32>()).prop_map(|(kind, ti, collation)| {
        let mut info = TypeInfo::from_ti((ti << 8) | u32::from(kind));
        // Others are refused as a whole.
        info.precision = info.precision % 38 + 1;
        info.scale %= if kind == 106 { info.precision + 1 } else { 8 };
        info.length = format::types::fixed_length(info).unwrap_or(info.length % 4000 * 2 + 2);
        ColumnType { info, collation: format::collation::CollationId(collation), nullable: true }
    })
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("[a]".to_owned()),
        Just("[b]".to_owned()),
        Just("(0)".to_owned()),
        Just("NULL".to_owned()),
        any::<i32>().prop_map(|n| format!("({n})")),
        (0u64..1_000_000_000_000, 0..9usize).prop_map(|(n, s)| format!("({n}.{:0s$})", 7)),
        "[ -~]{0,8}".prop_map(|text| format!("'{}'", text.replace('\'', "''"))),
        Just("$3.5".to_owned()),
        Just("1.5e+000".to_owned()),
        Just("0x0102".to_owned()),
        Just("'20200131 12:30:00'".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let functions = [
            "abs",
            "ascii",
            "ceiling",
            "char",
            "charindex",
            "coalesce",
            "concat",
            "datalength",
            "datefromparts",
            "day",
            "eomonth",
            "floor",
            "isnull",
            "isnumeric",
            "left",
            "len",
            "lower",
            "ltrim",
            "nchar",
            "nullif",
            "power",
            "replace",
            "replicate",
            "reverse",
            "right",
            "round",
            "rtrim",
            "sign",
            "space",
            "sqrt",
            "square",
            "str",
            "stuff",
            "substring",
            "trim",
            "unicode",
            "upper",
            "year",
        ];
        let types = [
            "int",
            "bit",
            "decimal](9,[2",
            "varchar](5",
            "nchar](4",
            "datetime",
            "date",
            "datetime2](3",
            "money",
            "float",
            "binary](3",
        ];
        let operators = ["+", "-", "*", "/", "%", "&", "|", "^", "=", "<", ">=", " like ", " AND ", " OR "];
        let parts = ["year", "quarter", "week", "hour", "millisecond", "iso_week"];
        prop_oneof![
            (inner.clone(), proptest::sample::select(operators.to_vec()), inner.clone())
                .prop_map(|(a, op, b)| format!("({a}{op}{b})")),
            (proptest::sample::select(functions.to_vec()), prop::collection::vec(inner.clone(), 1..5))
                .prop_map(|(name, args)| format!("{name}({})", args.join(","))),
            (proptest::sample::select(types.to_vec()), inner.clone(), 0..130i32).prop_map(|(name, value, style)| {
                let name = name.replace("](9,[2", "](9,2)").replace("](5", "](5)").replace("](4", "](4)");
                let name = name.replace("](3", "](3)");
                let bracket = if name.contains(']') { "" } else { "]" };
                format!("CONVERT([{name}{bracket},{value},{})", if style > 60 { style } else { 0 })
            }),
            (proptest::sample::select(parts.to_vec()), inner.clone(), inner.clone())
                .prop_map(|(part, a, b)| format!("dateadd({part},{a},{b})")),
            (proptest::sample::select(parts.to_vec()), inner.clone(), inner.clone())
                .prop_map(|(part, a, b)| format!("datediff({part},{a},{b})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("case when {a}={b} then {c} else {a} end")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
        let _ = compile(&text, &|_| None);
    }

    #[test]
    fn any_mix_of_tokens_is_parsed_or_refused(
        words in prop::collection::vec(proptest::sample::select(vec![
            "(", ")", "[a]", "'x'", "N'", "1", "$1", "0x1", ".", ",", "case", "when", "then", "end", "CONVERT(", "[int]",
            "and", "or", "not", "is", "null", "like", "escape", "in", "between", "-", "~", "*", "=", "cast(", "as", "int",
            "collate", "isnull(", "dateadd(day,",
        ]), 0..30)
    ) {
        let _ = compile(&words.join(" "), &|_| None);
    }

    #[test]
    fn any_program_evaluates_any_bytes(
        text in expression(),
        a in any_type(),
        b in any_type(),
        bytes in prop::collection::vec(any::<u8>(), 0..24),
        other in prop::collection::vec(0u8..0x80, 0..24),
    ) {
        let columns = |name: &str| if name == "a" { Some(a) } else { Some(b) };
        if let Ok(program) = compile(&text, &columns) {
            let mut scratch = Scratch::default();
            let fixed = |info: TypeInfo, bytes: &[u8]| -> Vec<u8> {
                let length = format::types::fixed_length(info).map_or(bytes.len(), usize::from);
                bytes.iter().copied().chain(std::iter::repeat(0)).take(length).collect()
            };
            let types: Vec<_> = program.columns().iter().map(|name| if name == "a" { a.info } else { b.info }).collect();
            for source in [&bytes, &other] {
                let values: Vec<Vec<u8>> = types.iter().map(|&info| fixed(info, source)).collect();
                let row: Vec<Option<&[u8]>> = values.iter().map(|value| Some(value.as_slice())).collect();
                let row: [Option<&[u8]>; 2] = [row.first().copied().flatten(), row.get(1).copied().flatten()];
                if let Ok(value) = program.evaluate(&row, &mut scratch) {
                    let _ = value.to_string();
                    if let Some(info) = program.result_type() {
                        // What has a value of its type can be stored as that type.
                        let stored = expr::encode(value, info);
                        prop_assert!(value.is_null() || stored.is_some(), "{text} {value:?} {info:?}");
                        if let Some(stored) = stored {
                            prop_assert!(expr::decode(&stored, info).is_some(), "{text}");
                        }
                    }
                }
            }
        }
    }
}
