//! Tests that no text makes the parser or the compiler panic, and that no value makes the evaluation panic.

use expr::table::{CONVERSIONS, FUNCTIONS, OPERATORS};
use expr::{ColumnType, Program, STEPS_PER_ROW, Scratch, Undecided, compile, compile_within, parse};
use format::collation::CollationId;
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
    // IN lists and chains of AND and OR may have many terms.
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

/// The result of an expression without columns, and the steps that it uses.
fn cost(program: &Program, scratch: &mut Scratch) -> (Result<String, Undecided>, u64) {
    let allowed = 2 * STEPS_PER_ROW;
    scratch.allow(allowed);
    let row: [Option<&[u8]>; 0] = [];
    let value = program.evaluate(&row, scratch).map(|value| value.to_string());
    (value, allowed - scratch.allowed())
}

#[test]
fn what_would_take_hours_is_too_expensive_after_the_steps_of_a_row() {
    let many = |text: &str, times: usize| text.repeat(times);
    let nested = |open: &str, close: &str, times| format!("{}'ab'{}", many(open, times), many(close, times));
    let searches = many(&format!("replicate('a',8000) like '%{}b' or ", many("a", 27)), 100);
    let texts = [
        format!("{searches}1=1"),
        format!("replicate(convert(varchar(max),'a'),1000000) like '%{}b'", many("a", 5000)),
        format!("replicate('a',8000) like '%{}b%'", many("_", 2000)),
        format!("replicate('a',8000) like '%{}b%'", many("[^b]", 1000)),
        "replicate(convert(varchar(max),'a'),2147483647)".to_owned(),
        "replicate(replicate(convert(varchar(max),'a'),100000),100000)".to_owned(),
        "charindex(replicate('a',4000)+'b',replicate('a',8000))".to_owned(),
        "replace(replicate('a',8000),replicate('a',3999)+'b','')".to_owned(),
        nested("replicate(", ",8000)", 90),
        nested("replace(", ",'a',replicate('aa',4000))", 90),
        nested("reverse(upper(", "+space(8000)))", 30),
        format!("concat({}'')", many("space(8000),", 1000)),
        format!("coalesce({}NULL)", many("nullif(space(8000),space(8000)),", 1000)),
        format!("2 in ({}1)", many("len(convert(char(8000),'a')),", 4000)),
        format!("{}1=1", many("convert(char(8000),'a')>=convert(nchar(4000),N'a') and ", 2000)),
    ];
    let mut scratch = Scratch::default();
    for text in texts {
        let start = text.get(..60).unwrap_or(&text);
        // Under SQL_Latin1_General_CP1_CI_AS, comparisons of letters are certain.
        let program = compile_within(&text, CollationId(0x3400_D008), &|_| None);
        let program = program.unwrap_or_else(|why| panic!("{start}: {why}"));
        let (value, steps) = cost(&program, &mut scratch);
        assert!(value.is_err_and(Undecided::is_too_expensive), "{start}");
        assert!(steps <= STEPS_PER_ROW, "{start}: {steps} steps");
        assert!(scratch.held_bytes() < 400_000, "{start}: {} bytes", scratch.held_bytes());
    }
}

#[test]
fn ordinary_expressions_take_few_steps() {
    let mut scratch = Scratch::default();
    for feature in [OPERATORS, FUNCTIONS, CONVERSIONS].concat() {
        let program = compile(feature.example, &|_| None).unwrap();
        let (_, steps) = cost(&program, &mut scratch);
        // All examples take few steps, including the examples of SPACE and REPLICATE, although these functions can make
        // up to 8000 bytes.
        assert!(steps < 300, "{}: {steps} steps", feature.example);
    }
    let states = format!("'WY' in ({}'ZZ')", "'AL',".repeat(60));
    assert!(cost(&compile(&states, &|_| None).unwrap(), &mut scratch).1 < 700);
    // Eight nested REPLACE calls on a text of the greatest length that a row can store.
    let cleaned = (b'0'..=b'7')
        .fold("space(8000)".to_owned(), |text, digit| format!("replace({text},'{}','')", char::from(digit)));
    let cleaned = compile(&format!("ltrim(rtrim({cleaned})) like '%a%b%'"), &|_| None).unwrap();
    assert_eq!(cost(&cleaned, &mut scratch).0, Ok("0".to_owned()));
}

/// Tests that an operation that takes longer than reading a byte uses more steps. Otherwise, a page of expressions with
/// such operations could run ten times as long as the limit should allow.
#[test]
fn a_slow_operation_takes_as_many_steps_as_it_takes_time() {
    let mut scratch = Scratch::default();
    let mut steps = |text: &str| cost(&compile(text, &|_| None).unwrap(), &mut scratch).1;
    let value = "len(replicate('a',5))";
    let plain = steps(&format!("{value}+{value}"));
    let quotient = steps(&format!("convert(decimal(9,2),{value})/convert(decimal(9,2),{value})"));
    assert!(quotient >= plain + 2 * 128 + 32, "{quotient} and {plain}");
    let converted = steps(&format!("convert(varchar(9),{value})"));
    assert!(converted >= steps(value) + 128, "{converted}");
}

#[test]
fn a_program_is_no_longer_than_its_text_allows() {
    let literal = "x".repeat(4000);
    for text in [
        format!("1 in ({}1)", "convert(char(8000),'a'),".repeat(1000)),
        format!("'{literal}' in ({}'a')", "'a',".repeat(1000)),
        format!("case '{literal}' {} end", "when 'a' then 1 ".repeat(1000)),
        format!("0x{} in ({}0x01)", "1234".repeat(2000), "0x01,".repeat(1000)),
    ] {
        match compile(&text, &|_| None) {
            Ok(program) => {
                let printed = format!("{program:?}").len();
                assert!(printed < 100 * text.len(), "{printed} for {}", text.len());
            }
            Err(why) => assert_eq!(why.what, "an expression of too many terms"),
        }
    }
    let long = format!("1 in ({}1)", "1,".repeat(100_000));
    let refusal = compile(&long, &|_| None).map(|_| ()).unwrap_err().what;
    assert_eq!(refusal, "an expression of more than 131072 bytes");
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
        // The compiler refuses a precision outside 1 to 38.
        info.precision = info.precision % 38 + 1;
        info.scale %= if kind == 106 { info.precision + 1 } else { 8 };
        info.length = format::types::fixed_length(info).unwrap_or(info.length % 4000 * 2 + 2);
        ColumnType { info, collation: CollationId(collation), nullable: true }
    })
}

/// The functions that expressions call.
const FUNCTION_NAMES: [&str; 38] = [
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

/// The types to which expressions convert.
const TYPE_NAMES: [&str; 11] = [
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
        let operators = ["+", "-", "*", "/", "%", "&", "|", "^", "=", "<", ">=", " like ", " AND ", " OR "];
        let parts = ["year", "quarter", "week", "hour", "millisecond", "iso_week"];
        prop_oneof![
            (inner.clone(), proptest::sample::select(operators.to_vec()), inner.clone())
                .prop_map(|(a, op, b)| format!("({a}{op}{b})")),
            (proptest::sample::select(FUNCTION_NAMES.to_vec()), prop::collection::vec(inner.clone(), 1..5))
                .prop_map(|(name, args)| format!("{name}({})", args.join(","))),
            (proptest::sample::select(TYPE_NAMES.to_vec()), inner.clone(), 0..130i32).prop_map(
                |(name, value, style)| {
                    let name = name.replace("](9,[2", "](9,2)").replace("](5", "](5)").replace("](4", "](4)");
                    let name = name.replace("](3", "](3)");
                    let bracket = if name.contains(']') { "" } else { "]" };
                    format!("CONVERT([{name}{bracket},{value},{})", if style > 60 { style } else { 0 })
                }
            ),
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
                // The number of steps depends only on the expression and the row. With a limit of exactly this number
                // of steps, the value must be the same as without a limit. With one step less, there must be no value.
                scratch.allow(u64::MAX);
                let value = program.evaluate(&row, &mut scratch).map(|value| value.to_string());
                let steps = u64::MAX - scratch.allowed();
                scratch.allow(steps);
                let again = program.evaluate(&row, &mut scratch).map(|value| value.to_string());
                prop_assert_eq!(&again, &value, "{}", text);
                prop_assert_eq!(scratch.allowed(), 0);
                if steps > 0 {
                    scratch.allow(steps - 1);
                    let refused = program.evaluate(&row, &mut scratch).map(|value| value.to_string());
                    prop_assert!(refused.is_err_and(Undecided::is_too_expensive), "{text}");
                    scratch.allow(u64::MAX);
                }
                if let Ok(value) = program.evaluate(&row, &mut scratch)
                    && let Some(info) = program.result_type()
                {
                    // A value of the result type must be storable in a column of this type.
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
