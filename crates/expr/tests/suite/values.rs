//! Tests with values from Microsoft's documentation, and with expressions that must stay undecided.

use expr::{ColumnType, Datum, Field, Row, Scratch, compile, encode, table::show};
use format::collation::CollationId;
use format::types::{TypeInfo, xtype};

fn gives(cases: &[(&str, &str)]) {
    for (text, result) in cases {
        assert_eq!(show(text), *result, "{text}");
    }
}

fn ty(kind: u8, length: u16, precision: u8, scale: u8) -> ColumnType {
    let mut info = TypeInfo { xtype: kind, length, precision, scale };
    info.length = format::types::fixed_length(info).unwrap_or(length);
    ColumnType { info, collation: CollationId(0x3400_D008), nullable: true }
}

/// Evaluates an expression with one column `c`, and returns the value as text.
fn over(text: &str, column: ColumnType, bytes: Option<&[u8]>) -> String {
    let program = match compile(text, &|_| Some(column)) {
        Ok(program) => program,
        Err(what) => return format!("unsupported: {what}"),
    };
    let row = [bytes];
    let mut scratch = Scratch::default();
    program.evaluate(&row, &mut scratch).map_or_else(|why| format!("undecided: {why}"), |value| value.to_string())
}

/// Evaluates an expression with one column `c` that is stored off the row, and returns the value as text.
fn off_row(text: &str, column: ColumnType) -> String {
    struct OffRow;
    impl Row for OffRow {
        fn field(&self, _: usize) -> Field<'_> {
            Field::OffRow
        }
    }
    let program = match compile(text, &|_| Some(column)) {
        Ok(program) => program,
        Err(what) => return format!("unsupported: {what}"),
    };
    let mut scratch = Scratch::default();
    program.evaluate(&OffRow, &mut scratch).map_or_else(|why| format!("undecided: {why}"), |value| value.to_string())
}

#[test]
fn arithmetic() {
    gives(&[
        // From the page "Precision, scale, and length".
        ("cast(0.0000009000 as decimal(30,20))*cast(1.0000000000 as decimal(30,20))", "0.00000090000000000"),
        ("cast(0.0000009000 as decimal(30,10))*cast(1.0000000000 as decimal(30,10))", "0.000001"),
        // From the page "int, bigint, smallint, and tinyint".
        ("2147483647/2", "1073741823"),
        ("2147483649/2", "1073741824.500000"),
        // From the pages "% (Modulus)" and "Operator precedence".
        ("38/5", "7"),
        ("38%5", "3"),
        ("4-2+27", "29"),
        ("2*4+5", "13"),
        ("2*(4+(5-3))", "12"),
        // The quotient of two decimal(38,10) is cut off at six digits. This is a frequent question on forums.
        ("cast(1.67574 as decimal(38,10))/cast(10000 as decimal(38,10))", "0.000167"),
        ("2.0/3.0", "0.666666"),
        ("$18.4172*$1.1562", "21.2940"),
        ("$1.00/$18.4172", "0.0542"),
        // How SQL Server rounds a product at exactly half, and quotients below zero, is undocumented.
        ("$0.0001*$0.5", "undecided: money rounded at exactly half"),
        ("$-1.00/$3", "undecided: a negative quotient of money"),
        ("1/0", "undecided: division by zero"),
        ("2147483647+1", "undecided: arithmetic overflow"),
        ("cast(255 as tinyint)+cast(1 as tinyint)", "undecided: arithmetic overflow"),
        ("-7/2", "-3"),
        ("-7%3", "-1"),
        ("NULL+1", "NULL"),
        ("~CONVERT([tinyint],(170))", "85"),
        ("1.5e0+1", "2.5"),
        // The exact product has 76 digits after the decimal point, but SQL Server keeps only 37.
        ("cast(0.5 as decimal(38,38))*cast(0.5 as decimal(38,38))", "undecided: a product of more than 38 digits"),
        (
            "cast(0.0000000000000000000000000000000000001 as decimal(38,38))*cast(0 as decimal(38,38))",
            "0.0000000000000000000000000000000000000",
        ),
    ]);
}

#[test]
fn conversions() {
    gives(&[
        // From the page "CAST and CONVERT": truncating and rounding.
        ("cast(10.6496 as int)", "10"),
        ("cast(-10.6496 as int)", "-10"),
        ("cast(10.6496 as numeric)", "11"),
        ("cast(-10.6496 as numeric)", "-11"),
        ("cast(10.3496847 as money)", "10.3497"),
        ("CONVERT([varchar](20),$4235.9819)", "4235.98"),
        ("CONVERT([varchar](20),$3510.92,1)", "3,510.92"),
        ("CONVERT([varchar](20),$4235.9819,2)", "4235.9819"),
        ("cast(69 as char(1))", "*"),
        ("cast(69 as nvarchar(1))", "undecided: a string too short for the number"),
        ("cast('' as int)", "0"),
        ("cast('' as decimal(5,2))", "undecided: a conversion of text that is not certain to succeed"),
        ("cast('abc' as int)", "undecided: a conversion of text that is not certain to succeed"),
        ("CONVERT([decimal](10,5),193.57)", "193.57000"),
        ("CONVERT([bit],(5))", "1"),
        // From the page "Constants": the same guid as text and as bytes.
        ("CONVERT([uniqueidentifier],'6F9619FF-8B86-D011-B42D-00C04FC964FF')", "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
        // From the page "datetime": the seconds of a datetime end in .000, .003 or .007.
        ("CONVERT([datetime],'19980101 23:59:59.995')", "1998-01-01 23:59:59.997"),
        ("CONVERT([datetime],'19980101 23:59:59.994')", "1998-01-01 23:59:59.993"),
        ("CONVERT([datetime],'19980101 23:59:59.991')", "1998-01-01 23:59:59.990"),
        // From the page "smalldatetime": seconds from 29.999 are rounded up.
        ("CONVERT([smalldatetime],'2007-05-08T12:35:29.998')", "2007-05-08 12:35:00"),
        ("CONVERT([smalldatetime],'2007-05-08T12:35:30')", "2007-05-08 12:36:00"),
        ("CONVERT([datetime],'2020-01-02')", "undecided: a date that depends on DATEFORMAT"),
        ("CONVERT([datetime],'2020-01-02',120)", "2020-01-02 00:00:00.000"),
        ("CONVERT([varchar](30),CONVERT([datetime],'20121107 18:26:20'),126)", "2012-11-07T18:26:20"),
        ("CONVERT([varchar](30),CONVERT([datetime],'20121107 18:26:20.5'),126)", "2012-11-07T18:26:20.500"),
        ("CONVERT([varchar](30),CONVERT([datetime],'20121107 18:26:20.5'),121)", "2012-11-07 18:26:20.500"),
        ("CONVERT([char](8),CONVERT([datetime],'20121107 18:26:20'),112)", "20121107"),
        ("CONVERT([varchar](10),CONVERT([datetime],'20121107'),101)", "11/07/2012"),
        ("CONVERT([varchar](10),CONVERT([datetime],'20121107'),3)", "07/11/12"),
        ("CONVERT([varchar](12),CONVERT([datetime],'20121107 18:26:20.5'),114)", "18:26:20:500"),
    ]);
}

#[test]
fn functions() {
    gives(&[
        // From the page "ROUND".
        ("round(123.9994,3)", "123.9990"),
        ("round(123.9995,3)", "124.0000"),
        ("round(123.4545,2)", "123.4500"),
        ("round(123.45,-2)", "100.00"),
        ("round(150.75,0)", "151.00"),
        ("round(150.75,0,1)", "150.00"),
        ("round(748.58,-4)", "0.00"),
        ("round(748.58,-3)", "undecided: arithmetic overflow"),
        ("round(cast(748.58 as decimal(6,2)),-3)", "1000.00"),
        // From the page "FLOOR".
        ("floor(123.45)", "123"),
        ("floor($123.45)", "123.0000"),
        // From the pages "SUBSTRING", "STUFF", "REPLICATE", "CHARINDEX", "STR", "ISNULL".
        ("substring('abcdef',0,3)", "ab"),
        ("substring('abcdef',7,3)", ""),
        ("substring('abcdef',2,-1)", "undecided: a negative length"),
        ("stuff('abcdef',0,1,'x')", "NULL"),
        ("stuff('abcdef',7,1,'x')", "NULL"),
        ("stuff('abcdef',2,3,NULL)", "aef"),
        ("replicate('a',-1)", "NULL"),
        ("charindex('vital','Reflectors are vital safety components of your bicycle.',5)", "16"),
        ("charindex('bike','Reflectors are vital safety components of your bicycle.')", "0"),
        ("charindex('TEST','This is a Test' collate Latin1_General_CS_AS)", "0"),
        ("charindex('Test','This is a Test' collate Latin1_General_CS_AS)", "11"),
        ("charindex('TEST','This is a Test' collate Latin1_General_CI_AS)", "11"),
        ("replace('This is a Test' collate Latin1_General_BIN,'Test','desk')", "This is a desk"),
        ("str(floor(123.45),8,3)", " 123.000"),
        ("str(1223,2)", "**"),
        ("len('')", "0"),
        ("isnull(NULL,5)", "5"),
        ("concat('a',NULL,'b')", "ab"),
        ("coalesce(NULL,'x')", "x"),
        // From the pages "DATEADD", "DATEDIFF", "DATEPART", "EOMONTH".
        ("dateadd(month,1,'20060831')", "2006-09-30 00:00:00.000"),
        ("dateadd(year,2147483647,'20060731')", "undecided: arithmetic overflow"),
        ("dateadd(quarter,4,cast('2007-01-01 01:01:01.1111111' as datetime2))", "2008-01-01 01:01:01.1111111"),
        ("dateadd(week,5,cast('2007-01-01 01:01:01.1111111' as datetime2))", "2007-02-05 01:01:01.1111111"),
        ("dateadd(hour,23,cast('2007-01-01 01:01:01.1111111' as datetime2))", "2007-01-02 00:01:01.1111111"),
        ("dateadd(second,59,cast('2007-01-01 01:01:01.1111111' as datetime2))", "2007-01-01 01:02:00.1111111"),
        ("dateadd(day,365,CONVERT([datetime],'20000101 01:01:01.110'))", "2000-12-31 01:01:01.110"),
        ("datepart(quarter,'2007-10-30')", "4"),
        ("datepart(iso_week,'2007-10-30')", "44"),
        ("datepart(millisecond,'00:00:01.1234567')", "123"),
        ("year(0)", "1900"),
        ("eomonth('20111201',-1)", "2011-11-30"),
        ("datefromparts(2023,2,29)", "undecided: a date that does not exist"),
        // From the page "POWER".
        ("power(2,3)", "8"),
        ("power(2,-100)", "undecided: a float whose last bit depends on the library"),
    ]);
    for part in ["year", "quarter", "month", "dayofyear", "day", "week", "hour", "minute", "second", "millisecond"] {
        let text = format!("datediff({part},'2005-12-31 23:59:59.9999999','2006-01-01 00:00:00.0000000')");
        assert_eq!(show(&text), "1", "{part}");
    }
}

/// The examples of "Changes in compatibility level 130" (Microsoft, KB 4010261). They are undecided, because a row may
/// have been written before the change.
#[test]
fn what_compatibility_level_130_changed_is_not_told() {
    let datetime = |text: &str| format!("CONVERT([datetime],'{text}',121)");
    for text in [
        "CONVERT([datetime],1.2E0)".to_owned(),
        format!("CONVERT([int],{})", datetime("1899-12-31 12:00:00.000")),
        format!("CONVERT([float],{})", datetime("1899-12-31 23:58:00.470")),
        "CONVERT([float],CONVERT([numeric](38,0),'41538374868278625639929991208632320'))".to_owned(),
        "CONVERT([float],CONVERT([numeric](18,10),'12345678.0123456781'))".to_owned(),
        "CONVERT([numeric](1,1),1.4999999999999999E-1)".to_owned(),
        "CONVERT([numeric](38,18),1E-18)".to_owned(),
        "CONVERT([money],562949953421312.25E0)".to_owned(),
        format!("CONVERT([time](7),{})", datetime("1900-01-01 00:00:00.003")),
        "CONVERT([datetime],CONVERT([time](4),'00:00:00.0045'))".to_owned(),
        "degrees(CONVERT([numeric](18,0),'1'))".to_owned(),
        "CONVERT([numeric](38,2),'-1.15')+CONVERT([numeric](38,1),'10')".to_owned(),
        "CONVERT([smallint],'0',NULL)".to_owned(),
        format!("datepart(microsecond,{})", datetime("1900-01-01 00:00:00.003")),
        format!("datediff(microsecond,{0},{0})", datetime("1900-01-01 00:00:00.003")),
        format!("datediff(ms,{},{})", datetime("1900-01-01 00:00:00.997"), datetime("1900-01-01 00:00:01.000")),
        format!("{}=CONVERT([datetime2](3),'1900-01-01 00:00:00.003',121)", datetime("1900-01-01 00:00:00.003")),
        "round(-4.175E-1,(3))".to_owned(),
    ] {
        let shown = show(&text);
        assert!(shown.starts_with("undecided: ") || shown.starts_with("unsupported: "), "{text} gives {shown}");
    }
}

#[test]
fn floats_are_told_where_nothing_is_rounded() {
    gives(&[
        ("2.5E0*2E0", "5"),
        ("1E0/4E0", "0.25"),
        ("1E0/3E0", "undecided: arithmetic of floats that rounds"),
        ("1E-1+2E-1", "undecided: arithmetic of floats that rounds"),
        ("5E-1-2.5E-1", "0.25"),
        ("1E-200*1E-200", "undecided: arithmetic of floats that rounds"),
        ("0E0*-1E0", "undecided: arithmetic of floats that rounds"),
        ("sqrt(2E0)", "undecided: arithmetic of floats that rounds"),
        ("1.1E0>1.0", "1"),
        ("1.1E0=1.1", "undecided: a float with a decimal that it does not hold exactly"),
        ("1.1>1.0E0", "1"),
        ("2E0=2.0", "1"),
    ]);
}

#[test]
fn three_values() {
    let max = ty(xtype::VARCHAR, 0, 0, 0);
    assert_eq!(off_row("([c] IS NOT NULL)", max), "1");
    assert_eq!(off_row("([c]='a')", max), "undecided: a column's value is stored off the row");
    gives(&[
        ("NULL=NULL", "NULL"),
        ("NULL=1 OR 1=1", "1"),
        ("NULL=1 AND 1=0", "0"),
        ("NULL=1 AND 1=1", "NULL"),
        ("NOT NULL=1", "NULL"),
        ("2 not in (1,NULL)", "NULL"),
        ("1 not in (1,NULL)", "0"),
        ("1 between NULL and 0", "0"),
        ("1/0=1 OR 1=1", "1"),
        ("1/0=1 AND 1=0", "0"),
        ("1/0=1 AND 1=1", "undecided: division by zero"),
        ("case NULL when NULL then 1 else 2 end", "2"),
        ("case when 1=0 then 1/0 else 2 end", "2"),
    ]);
}

#[test]
fn strings_compare_as_far_as_it_is_certain() {
    let char10 = ty(xtype::CHAR, 10, 0, 0);
    let text = |text: &str, value: &str| over(text, char10, Some(format!("{value:10}").as_bytes()));
    assert_eq!(text("([c]='gc')", "GC"), "1");
    assert_eq!(text("([c]='gc')", "G-C"), "0");
    assert_eq!(text("([c]<>'gc')", "gd"), "1");
    assert_eq!(text("(upper([c])='GC')", "gC"), "1");
    assert_eq!(text("([c]>'a-b')", "ab"), "1", "char of a SQL collation");
    let windows = ColumnType { collation: CollationId(0xD008), ..char10 };
    assert_eq!(
        over("([c]>'a-b')", windows, Some(b"ab        ")),
        "undecided: a string comparison depends on the collation"
    );
    assert_eq!(over("([c]='caf')", char10, Some(b"caf\xE9      ")), "0");
    assert_eq!(
        over("([c]='cafe')", char10, Some(b"caf\xE9      ")),
        "undecided: a string comparison depends on the collation"
    );
    let case_sensitive = ColumnType { collation: CollationId(0x3300_C008), ..char10 };
    assert_eq!(over("([c]='gc')", case_sensitive, Some(b"GC        ")), "0");
    // Both a literal and a number converted to a string have the collation of the database.
    let within = expr::compile_within("('a'+CONVERT([varchar](5),(1)))", CollationId(0xD008), &|_| None);
    assert!(within.is_ok());
    let turkish = ColumnType { collation: CollationId(0xD01A), ..char10 };
    assert_eq!(over("([c]='i')", turkish, Some(b"I         ")), "0", "dotless");
    assert_eq!(over("(len([c]))", char10, Some(b"caf\xE9      ")), "4");
    let hungarian = ColumnType { collation: CollationId(0xD00D), ..char10 };
    assert_eq!(over("([c]='F')", hungarian, Some(b"M         ")), "0");
    assert_eq!(
        over("([c]='dzdz')", hungarian, Some(b"ddz       ")),
        "undecided: a string comparison depends on the collation"
    );
    let chinese = ColumnType { collation: CollationId(0xD024), ..char10 };
    assert_eq!(over("(len([c]))", chinese, Some(b"\xC4\xD0        ")), "undecided: text outside ASCII");
    let nvarchar = ty(xtype::NVARCHAR, 20, 0, 0);
    assert_eq!(over("([c]=N'\u{7537}')", nvarchar, Some(&[0x37, 0x75])), "1");
    assert_eq!(
        over("([c]='\u{7537}')", nvarchar, Some(&[0x37, 0x75])),
        "undecided: a char literal outside ASCII depends on its code page"
    );
}

/// The little-endian UTF-16 of a text.
fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn char_and_nchar_compare_by_the_code_page_of_the_char_side() {
    const NO_PAGE: &str = "undecided: a code page is needed to compare char with nchar";
    let char10 = ty(xtype::CHAR, 10, 0, 0);
    let cyrillic = ColumnType { collation: CollationId(0xD015), ..char10 };
    // The Russian name of Moscow in code page 1251, padded with blanks.
    let moscow = b"\xCC\xEE\xF1\xEA\xE2\xE0    ";
    assert_eq!(over("([c]=N'Москва')", cyrillic, Some(moscow)), "1");
    assert_eq!(over("([c]<>N'москва')", cyrillic, Some(moscow)), "0", "case is ignored");
    assert_eq!(over("([c]<N'Минск')", cyrillic, Some(moscow)), "0");
    assert_eq!(over("([c] like N'Мос%')", cyrillic, Some(moscow)), "1");
    assert_eq!(over("([c] like N'М%ск')", cyrillic, Some(moscow)), "0");
    assert_eq!(over("(N'Москва' like [c])", cyrillic, Some(b"\xCC%        ")), "0", "blanks of a pattern count");
    // The following must be undecided: a byte to which code page 1252 assigns no character, and a two-byte character of
    // another code page. ASCII is decided even in a code page with two-byte characters.
    assert_eq!(over("([c]=N'a')", char10, Some(b"\x81")), NO_PAGE);
    let chinese = ColumnType { collation: CollationId(0xD024), ..char10 };
    assert_eq!(over("([c]=N'中')", chinese, Some(b"\xD6\xD0")), NO_PAGE);
    assert_eq!(over("([c]=N'a')", chinese, Some(b"a")), "1");
    // Conversions from char to nchar, and from nchar to char.
    assert_eq!(over("(convert([nvarchar](10),[c]))", cyrillic, Some(b"\xCC\xEE")), "Мо");
    assert_eq!(
        over("(convert([nvarchar](1),[c]))", cyrillic, Some(b"\xCC\xEE")),
        "undecided: cutting text outside ASCII"
    );
    let nvarchar = ColumnType { collation: CollationId(0xD015), ..ty(xtype::NVARCHAR, 20, 0, 0) };
    assert_eq!(over("(datalength(convert([varchar](10),[c])))", nvarchar, Some(&wide("Мо"))), "2");
    let no_page = "undecided: a code page is needed to convert text";
    assert_eq!(over("(convert([varchar](10),[c]))", nvarchar, Some(&wide("中"))), no_page, "a server makes it '?'");
}

#[test]
fn a_collation_of_another_code_page_converts_char() {
    let char10 = ty(xtype::CHAR, 10, 0, 0);
    let cyrillic = ColumnType { collation: CollationId(0xD015), ..char10 };
    let no_page = "undecided: a code page is needed to convert text";
    // SQL Server converts both operands to '?', so SQL Server finds them equal. Here, the comparison must be undecided.
    assert_eq!(over("([c]='\u{414}' collate Latin1_General_BIN2)", cyrillic, Some(b"\xC6")), no_page);
    assert_eq!(over("([c]='d' collate Latin1_General_BIN2)", cyrillic, Some(b"d")), "1");
    // The euro sign is 0x88 in code page 1251 and 0x80 in 1252.
    assert_eq!(
        over("(ascii([c] collate Latin1_General_CI_AS))", cyrillic, Some(b"\x88")),
        "undecided: text outside ASCII"
    );
    let same = "([c] collate Latin1_General_BIN2=convert([varchar](1),N'\u{20AC}' collate Latin1_General_BIN2))";
    assert_eq!(over(same, cyrillic, Some(b"\x88")), "1");
    // A literal is stored in the code page of the database.
    let literal = |collation| {
        let column = |_: &str| Some(cyrillic);
        let program = expr::compile_within("([c]='\u{20AC}')", CollationId(collation), &column).unwrap();
        let (row, mut scratch) = ([Some(b"\x88".as_slice())], Scratch::default());
        program.evaluate(&row, &mut scratch).map_or_else(|why| format!("undecided: {why}"), |value| value.to_string())
    };
    assert_eq!((literal(0xD008).as_str(), literal(0xD015).as_str()), ("1", "1"));
    assert_eq!(literal(0xD010), "undecided: a char literal outside ASCII depends on its code page", "Japanese");
}

#[test]
fn searches_outside_ascii_are_decided_where_each_character_is() {
    let nvarchar = ColumnType { collation: CollationId(0xD008), ..ty(xtype::NVARCHAR, 40, 0, 0) };
    let text = wide("Zürich, Åby");
    let uncertain = "undecided: a search that depends on the collation";
    assert_eq!(over("(charindex(N'r',[c]))", nvarchar, Some(&text)), "3");
    assert_eq!(over("(charindex(N'ÜR',[c]))", nvarchar, Some(&text)), "2", "case is ignored");
    assert_eq!(over("(charindex(N'u',[c]))", nvarchar, Some(&text)), uncertain, "u and \u{FC} differ by accent alone");
    assert_eq!(over("(replace([c],N'ü',N'ue'))", nvarchar, Some(&text)), "Zuerich, Åby");
    // A combining mark belongs to the character before it, and some characters count as two. So these results must be
    // uncertain.
    assert_eq!(over("(charindex(N'a',[c]))", nvarchar, Some(&wide("a\u{301}"))), uncertain);
    assert_eq!(over("(charindex(N's',[c]))", nvarchar, Some(&wide("\u{DF}"))), uncertain);
    assert_eq!(over("(charindex(N'xs',[c]))", nvarchar, Some(&wide("x\u{DF}"))), uncertain);
    assert_eq!(over("(charindex(N'ss',[c]))", nvarchar, Some(&wide("\u{DF}"))), uncertain);
    let unclear = "undecided: a LIKE depends on the collation";
    assert_eq!(over("([c] like N'%a%')", nvarchar, Some(&wide("xa\u{301}"))), unclear);
    assert_eq!(over("([c] like N'a%')", nvarchar, Some(&wide("a\u{301}"))), unclear);
    assert_eq!(over("([c] like N'%abcd%')", nvarchar, Some(&wide("abcd\u{301}"))), unclear);
    assert_eq!(over("([c] like N'%rich%')", nvarchar, Some(&text)), "1");
    // In sort order 52, each byte counts as one character.
    let sql = ty(xtype::VARCHAR, 40, 0, 0);
    assert_eq!(over("(charindex('@',[c]))", sql, Some(b"J\xFCrgen@example.org")), "7");
    assert_eq!(over("(charindex('U',[c]))", sql, Some(b"J\xFCrgen")), uncertain);
    assert_eq!(
        over("(charindex('a',[c]))", ColumnType { collation: CollationId(0x4_D188), ..sql }, Some("éa".as_bytes())),
        "undecided: text outside ASCII",
        "positions count characters"
    );
}

#[test]
fn stored_values_of_real_columns() {
    let smallint = ty(xtype::SMALLINT, 2, 0, 0);
    assert_eq!(over("([c]*(2))", smallint, Some(&[0xFE, 0xFF])), "-4");
    assert_eq!(over("([c]+(1))", ty(xtype::MONEY, 8, 0, 0), Some(&12_345_600i64.to_le_bytes())), "1235.5600");
    assert_eq!(over("([c]/(100))", ty(xtype::DECIMAL, 0, 9, 2), Some(&[1, 0x39, 0x30, 0, 0])), "1.234500");
    assert_eq!(over("([c]+(1))", smallint, None), "NULL");
    assert_eq!(over("([c]+(1))", smallint, Some(&[1])), "undecided: a column's bytes are no value of its type");
    // The datetime 2018-01-15 08:52:32.137.
    let datetime = [9_585_641u32.to_le_bytes(), 43_113i32.to_le_bytes()].concat();
    let column = ty(xtype::DATETIME, 8, 0, 0);
    assert_eq!(over("(CONVERT([varchar](10),[c],(120)))", column, Some(&datetime)), "2018-01-15");
    assert_eq!(over("(CONVERT([date],[c]))", column, Some(&datetime)), "2018-01-15");
    assert_eq!(over("(datepart(hour,[c]))", column, Some(&datetime)), "8");
    assert_eq!(over("(dateadd(day,datediff(day,(0),[c]),(0)))", column, Some(&datetime)), "2018-01-15 00:00:00.000");
    assert_eq!(over("([c]='20180115')", column, Some(&datetime)), "0");
    assert_eq!(over("([c] IS NULL)", ty(xtype::XML, 0, 0, 0), Some(&[1])), "0");
}

#[test]
fn results_are_stored_as_their_columns_are() {
    let bytes = |value, kind, length, precision, scale| encode(value, ty(kind, length, precision, scale).info);
    assert_eq!(bytes(Datum::Money(15_000), xtype::MONEY, 8, 0, 0), Some(15_000i64.to_le_bytes().to_vec()));
    assert_eq!(bytes(Datum::Decimal(123_450_000, 6), xtype::NUMERIC, 0, 38, 6).map(|bytes| bytes.len()), Some(17));
    assert_eq!(bytes(Datum::Decimal(1000, 0), xtype::DECIMAL, 0, 3, 0), None);
    assert_eq!(bytes(Datum::Ansi(b"ab"), xtype::CHAR, 4, 0, 0), Some(b"ab  ".to_vec()));
    assert_eq!(bytes(Datum::Unicode(b"a\0"), xtype::NCHAR, 4, 0, 0), Some(b"a\0 \0".to_vec()));
    assert_eq!(bytes(Datum::Ansi(b"abc"), xtype::VARCHAR, 2, 0, 0), None);
    assert_eq!(bytes(Datum::Int(1), xtype::MONEY, 8, 0, 0), None);
    assert_eq!(bytes(Datum::Date(1), xtype::DATE, 3, 0, 0), Some(vec![1, 0, 0]));
    assert_eq!(bytes(Datum::DateTime2(1, 10_000_000), xtype::DATETIME2, 0, 0, 0), Some(vec![1, 0, 0, 1, 0, 0]));
    assert_eq!(bytes(Datum::DateTime2(1, 1), xtype::DATETIME2, 0, 0, 0), None);
    assert_eq!(bytes(Datum::Null, xtype::INT, 4, 0, 0), None);
}
