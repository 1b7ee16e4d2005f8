//! A table of all supported features. The documentation is generated from the table, and tests verify each row.

use format::collation::CollationId;

use crate::{Scratch, compile_within};

/// A supported operator, function or conversion.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// How the feature is written in T-SQL.
    pub form: &'static str,
    /// The limits within which the feature is supported.
    pub limits: &'static str,
    /// An expression that uses the feature.
    pub example: &'static str,
    /// The result of the example in SQL Server.
    pub result: &'static str,
}

const fn f(form: &'static str, example: &'static str, result: &'static str, limits: &'static str) -> Feature {
    Feature { form, limits, example, result }
}

/// Operators and predicates.
pub const OPERATORS: &[Feature] = &[
    f(
        "+ - *",
        "(18.25)*(2)-(0.5)",
        "36.00",
        "numbers by precedence; decimal results by the documented precision and scale",
    ),
    f(
        "/",
        "(2147483649)/(2)",
        "1073741824.500000",
        "integers and decimals are truncated; a negative inexact quotient of money is undecided",
    ),
    f("%", "(38)%(5)", "3", "integers, money, decimals"),
    f("& \\| ^ ~", "(170)&(75)", "10", "integers and bit"),
    f(
        "+ (strings)",
        "N'SO'+CONVERT([nvarchar](23),(43659))",
        "SO43659",
        "NULL gives NULL; cut to 8000 bytes unless (max)",
    ),
    f(
        "+ - (days)",
        "CONVERT([datetime],'20201231')+(1)",
        "2021-01-01 00:00:00.000",
        "datetime and smalldatetime with an integer on the right",
    ),
    f(
        "= <> != < <= > >= !< !>",
        "(1.50)>=(1)",
        "1",
        "by precedence; strings where the collation decides with certainty",
    ),
    f(
        "AND OR NOT",
        "NULL IS NULL OR (1)=(0)",
        "1",
        "three-valued; an undecided term doesn't matter if the others determine the result",
    ),
    f("IS [NOT] NULL", "(1) IS NOT NULL", "1", "columns of any type"),
    f(
        "[NOT] LIKE .. [ESCAPE ..]",
        "'9952' like '99[0-9][0-9]'",
        "1",
        "% _ [set] [a-z] [^set]; where each compared character is certain in the collation; no escape inside a set",
    ),
    f("[NOT] IN (..)", "(3) in (1,2,3)", "1", "lists only"),
    f("[NOT] BETWEEN .. AND ..", "(2) between (1) and (3)", "1", ""),
    f("CASE, both forms", "case (2) when (1) then 'a' when (2) then 'b' end", "b", ""),
    f(
        "COLLATE",
        "'a' collate Latin1_General_BIN2<'b'",
        "1",
        "any collation of SQL Server; char is converted to its code page",
    ),
];

/// Functions.
pub const FUNCTIONS: &[Feature] = &[
    f("abs", "abs(-1.0)", "1.0", "any number"),
    f("ascii", "ascii('A')", "65", "ASCII"),
    f("ceiling", "ceiling(-123.45)", "-123", "any number"),
    f("char", "char(65)", "A", "codes below 128"),
    f(
        "charindex",
        "charindex('is','This is a string',(4))",
        "6",
        "the first difference must be certain in the collation; positions in texts of one code unit per character",
    ),
    f("coalesce", "coalesce(NULL,NULL,(3))", "3", ""),
    f(
        "concat",
        "concat('Happy ','Birthday ',(11),'/','25')",
        "Happy Birthday 11/25",
        "strings, integers, decimals, bit; no (max)",
    ),
    f("convert, cast", "CONVERT([int],(10.6496))", "10", "see below"),
    f("datalength", "datalength('abc ')", "4", "not of decimals"),
    f(
        "dateadd",
        "dateadd(month,(1),'20060830')",
        "2006-09-30 00:00:00.000",
        "year to millisecond; not of datetimeoffset; milliseconds of a datetime in tens",
    ),
    f("datediff", "datediff(day,'2036-03-01','2036-02-28')", "-2", "year to millisecond; weeks begin on Sunday"),
    f("datefromparts", "datefromparts((2010),(12),(31))", "2010-12-31", ""),
    f("datename", "datename(year,'2007-10-30')", "2007", "parts that are numbers: no month, weekday, week"),
    f(
        "datepart",
        "datepart(dayofyear,'2007-10-30 12:15:32.1234567')",
        "303",
        "all parts except week and weekday (DATEFIRST), microseconds and nanoseconds",
    ),
    f("day", "day('20071030')", "30", ""),
    f("eomonth", "eomonth('2011-12-01',(1))", "2012-01-31", ""),
    f("floor", "floor(-123.45)", "-124", "any number"),
    f("iif", "iif((45)>(30),'true','false')", "true", ""),
    f("isnull", "isnull(CONVERT([varchar](3),NULL),'abcdef')", "abc", "the type of the first argument"),
    f(
        "isnumeric",
        "isnumeric('12.5')",
        "1",
        "plain numbers, and texts with a letter other than d, e, x; others are undecided",
    ),
    f("left", "left('abcdefg',(2))", "ab", ""),
    f("len", "len('abc  ')", "3", ""),
    f("lower", "lower('ABC')", "abc", "ASCII; the letter i only under a locale with the English case pairs"),
    f("ltrim", "ltrim('  abc')", "abc", ""),
    f("month", "month('20071030')", "10", ""),
    f("nchar", "nchar(65)", "A", "no surrogates"),
    f("nullif", "nullif((4),(5))", "4", ""),
    f("power", "power((2),(4))", "16", "exact results only"),
    f(
        "replace",
        "replace('abcdefghicde','cde','xxx')",
        "abxxxfghixxx",
        "the first difference must be certain in the collation; positions in texts of one code unit per character",
    ),
    f("replicate", "replicate('0',(4))", "0000", ""),
    f("reverse", "reverse('abc')", "cba", ""),
    f("right", "right('abcdefg',(2))", "fg", ""),
    f("round", "round((748.58),(-1))", "750.00", "not of floats with a fraction"),
    f("rtrim", "rtrim('abc  ')", "abc", ""),
    f("sign", "sign((-125))", "-1", "integers, money, floats"),
    f("space", "'a'+space((2))+'b'", "a  b", ""),
    f("sqrt", "sqrt((2.25E0))", "1.5", "exact results only"),
    f("square", "square((1.5E0))", "2.25", "exact results only"),
    f("str", "str((123),(6))", "   123", "whole numbers; constant length"),
    f("stuff", "stuff('abcdef',(2),(3),'ijklmn')", "aijklmnef", ""),
    f("substring", "substring('abcdef',(2),(3))", "bcd", "not of binary values"),
    f("trim", "trim('  abc ')", "abc", "one argument"),
    f("try_convert, try_cast", "try_cast('7' AS int)", "7", "undecided where the conversion fails"),
    f("unicode", "unicode(N'A')", "65", ""),
    f("upper", "upper('gc')", "GC", "ASCII; the letter i only under a locale with the English case pairs"),
    f("year", "year('20071030')", "2007", ""),
];

/// Conversions, explicit and implicit.
pub const CONVERSIONS: &[Feature] = &[
    f(
        "number to number",
        "CONVERT([decimal](5,1),(10.65))",
        "10.7",
        "decimal to integer truncates, to decimal and money rounds; a float with a fraction to decimal is undecided",
    ),
    f("number to string", "CONVERT([varchar](10),$4235.98)", "4235.98", "money styles 0, 1, 2; not of floats"),
    f("string to number", "CONVERT([int],' 42 ')", "42", "plain digits, sign and point"),
    f("string to string", "CONVERT([char](3),'a')", "a  ", "between char and nchar: ASCII"),
    f(
        "string to date and time",
        "CONVERT([date],'31/12/2020',(103))",
        "2020-12-31",
        "yyyymmdd, yyyy-mm-dd, yyyy-mm-ddThh:mi:ss[.f]; styles 20, 21, 23, 25, 101-105, 110-112, 120, 121, 126; not to datetimeoffset",
    ),
    f(
        "date and time to string",
        "CONVERT([varchar](10),CONVERT([datetime],'20201231'),(120))",
        "2020-12-31",
        "styles 1-5, 8, 10-12, 14, 20, 21, 23-25, 101-105, 108, 110-112, 114, 120, 121, 126, 127; the others print names in the session's language",
    ),
    f(
        "date and time to each other",
        "CONVERT([date],CONVERT([datetime],'20201231 23:59:59'))",
        "2020-12-31",
        "not from time, not datetimeoffset; thirds of a millisecond undecided",
    ),
    f("integer to datetime", "CONVERT([datetime],(1))", "1900-01-02 00:00:00.000", ""),
    f(
        "uniqueidentifier and string",
        "CONVERT([char](36),CONVERT([uniqueidentifier],'6F9619FF-8B86-D011-B42D-00C04FC964FF'))",
        "6F9619FF-8B86-D011-B42D-00C04FC964FF",
        "",
    ),
    f("string or binary to binary", "CONVERT([binary](3),'ab')", "0x616200", "style 0"),
];

/// The table in Markdown, for docs/expressions.md.
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    for (title, features) in
        [("Operators and predicates", OPERATORS), ("Functions", FUNCTIONS), ("Conversions", CONVERSIONS)]
    {
        text.push_str(&format!("\n## {title}\n\n| form | example | gives | limits |\n|---|---|---|---|\n"));
        for Feature { form, limits, example, result } in features {
            let example = example.replace('|', "\\|");
            text.push_str(&format!("| {form} | `{example}` | `{result}` | {limits} |\n"));
        }
    }
    text.push_str(TAIL);
    text
}

/// The value of an expression without columns, as text. The collation of the database is SQL_Latin1_General_CP1_CI_AS.
/// If the expression has no certain value, returns the reason.
pub fn show(text: &str) -> String {
    match compile_within(text, CollationId(0x3400_D008), &|_| None) {
        Err(unsupported) => format!("unsupported: {unsupported}"),
        Ok(program) => {
            let (row, mut scratch) = ([], Scratch::default());
            program
                .evaluate(&row, &mut scratch)
                .map_or_else(|why| format!("undecided: {why}"), |value| value.to_string())
        }
    }
}

const HEAD: &str = "# Supported expressions

For everyone with computed columns, filtered indexes or check constraints: mdfsck evaluates their expressions with SQL
Server's own typing and semantics. If an expression uses something that these tables do not list, its index or column is
listed by name as *not verified*. If mdfsck cannot determine the result for the values of a row, the row is *undecided*
and counted. mdfsck never guesses a result.

Types: bit, tinyint, smallint, int, bigint, decimal, numeric, money, smallmoney, real, float, date, time, datetime,
smalldatetime, datetime2, datetimeoffset (comparison only), char, varchar, nchar, nvarchar, binary, varbinary,
uniqueidentifier. Columns of any other type are supported only in IS [NOT] NULL.
";

const TAIL: &str = "
## What an expression may cost

Expressions come from the file that is checked, so someone could write an expression that runs for hours. Therefore
mdfsck counts the work in steps of one to three nanoseconds each. An expression needs one step for each byte of a string
that it reads, copies or creates, four steps for each pair of characters that a search compares, two for each node of
the expression, 32 for each function and each arithmetic operation on types other than integers, and 128 for each
conversion. The number of steps depends only on the text of the expression and on the row.

| limit | value | an ordinary expression |
|---|---|---|
| steps for a row | 524,288 | needs fewer than a thousand; eight REPLACEs of a text of 8000 bytes stay below the limit |
| steps for the rows of one page | 524,288 per expression; 2,097,152 for all indexes of a table together, the same number for all its computed columns, and the same for all its CHECK constraints | needs a few thousand; the maximum in the real databases of the tests is 11,725 |
| strings that are created for a row | 128 kB | creates a few hundred bytes |
| text of an expression | 128 kB | is shorter than 1 kB |
| terms of an expression | 1000 plus two for each byte of the text of the expression, because CASE, IN and BETWEEN repeat their operand | has fewer than a hundred |
| nesting | 96 | has fewer than ten |

A page on which an expression needs nearly all of its steps costs 0.4 to 1.5 milliseconds of processor time; for 1 GB of
such pages, this is up to 200 seconds. All expressions of a table together cost at most twelve times as much. `cargo
bench -p trials --bench costs` measures this.

A row for which an expression needs more steps is *not verified*, with the reason that it is too expensive. If the
expression is a filter or computed column of an index, the index is not verified either; if it is a CHECK constraint or
a persisted computed column, these rows are counted. The limit for a page does not depend on other pages, so the results
are the same for every number of threads, grant and batch. Sums, differences and products of integer columns, and
filters that use only integers and NULLs, need no steps. LIKE is linear in the text for patterns of characters and `%`.

## Not supported

Everything that is not deterministic (getdate, sysdatetime, newid, newsequentialid, rand ..), hashbytes, checksum,
binary_checksum, isjson, json_value, isdate, patindex, format, parse, translate, exp, log and trigonometry, datetimeoffset
functions, user functions, subqueries, xml, CLR types and sql_variant values.

This file is generated from the crate's table: `cargo run -p mdfsck-expr --example table > docs/expressions.md`.
";
