//! Tests with every form of expression that was found in real catalogs (docs/format/expressions.md#inventory). All of
//! them can be parsed. Every expression that depends only on the row can be compiled.

use expr::{ColumnType, compile, parse};
use format::collation::CollationId;
use format::types::{TypeInfo, xtype};

fn ty(kind: u8, length: u16, precision: u8, scale: u8) -> ColumnType {
    let mut info = TypeInfo { xtype: kind, length, precision, scale };
    info.length = format::types::fixed_length(info).unwrap_or(length);
    ColumnType { info, collation: CollationId(0x3400_D008), nullable: true }
}

/// The types of the columns. The name of a column determines its type.
fn column(name: &str) -> Option<ColumnType> {
    Some(match name {
        "Cantidad" | "n" | "m" | "SalesOrderID" | "a" | "b" | "id" | "q" | "RequiredQty" => ty(xtype::INT, 4, 0, 0),
        "OrderQty" => ty(xtype::SMALLINT, 2, 0, 0),
        "MontoUnitario" | "TotalFineAmount" | "RepaidAmount" | "cTotal" => ty(xtype::DECIMAL, 0, 18, 2),
        "SubTotal" | "TaxAmt" | "Freight" | "UnitPrice" | "UnitPriceDiscount" => ty(xtype::MONEY, 8, 0, 0),
        "Discount" => ty(xtype::REAL, 4, 0, 0),
        "c" | "pub_id" | "emp_id" | "Gender" => ty(xtype::CHAR, 9, 0, 0),
        "ssex" | "X" => ty(xtype::NVARCHAR, 20, 0, 0),
        "d" => ty(xtype::DATE, 3, 0, 0),
        _ => return None,
    })
}

const COMPILED: &[&str] = &[
    "([Cantidad]*[MontoUnitario])",
    "([TotalFineAmount]-[RepaidAmount])",
    "(([cTotal]*(5))/(100))",
    "(isnull(([SubTotal]+[TaxAmt])+[Freight],(0)))",
    "(isnull(([UnitPrice]*((1.0)-[UnitPriceDiscount]))*[OrderQty],(0.0)))",
    "(isnull(N'SO'+CONVERT([nvarchar](23),[SalesOrderID],0),N'*** ERROR ***'))",
    "([X] IS NOT NULL)",
    "([n]>(0))",
    "([n]>=(1))",
    "([n]>=(1) AND [n]<=(5))",
    "([TotalFineAmount]>=(0.00) AND [TotalFineAmount]<=(1.50))",
    "([n]>=(-40) AND [n]<=(-18))",
    "([c]='a' OR [c]='b' OR [c]='c' OR [c]='d' OR [c]='e' OR [c]='f' OR [c]='g' OR [c]='h' OR [c]='i')",
    "([n]=(3) OR [n]=(2) OR [n]=(1))",
    "([c] like '[0-9][0-9]-%')",
    "([c] like '[CS]%' OR [c] like '%[A-Z]')",
    "([a]>=[b] OR [a] IS NULL)",
    "([a]>=[b])",
    "([a]>[b] OR [b] IS NULL)",
    "([a]<>[b])",
    "([a] IS NULL AND [b] IS NULL AND [c] IS NULL OR [a] IS NOT NULL AND [b] IS NOT NULL AND [c] IS NOT NULL)",
    "([d]>='1930-01-01')",
    "(upper([c])='S' OR upper([c])='M')",
    "([c] IS NULL OR (upper([c])='GC' OR upper([c])='VC'))",
    "([a] IS NULL AND [b]=(0) AND [MontoUnitario]=(1.00) OR [a] IS NOT NULL AND [b]>=(1))",
    "([id]>(300) AND [id] IS NOT NULL)",
    "([ssex]='\u{7537}' OR [ssex]='\u{5973}')",
    "([ssex]=N'\u{7537}' OR [ssex]=N'\u{5973}')",
    // Text as typed in SQL Server 2000.
    "([Discount] >= 0 and [Discount] <= 1)",
    "([pub_id] = '1756' or ([pub_id] = '1622' or ([pub_id] = '0877'))) or [pub_id] like '99[0-9][0-9]'",
    "([emp_id] like '[A-Z][A-Z][A-Z][1-9][0-9][0-9][0-9][0-9][FM]' or [emp_id] like '[A-Z]-[A-Z][1-9][0-9][0-9][0-9][0-9][FM]')",
    // Column defaults.
    "((0))",
    "((-1))",
    "((0.00))",
    "((0.0000000000000000e+000))",
    "(0)",
    "(NULL)",
    "('text')",
    "('')",
    "(N'')",
    "('19000101')",
];

const REFUSED: &[(&str, &str)] = &[
    ("([d]<getdate())", "function getdate: not deterministic"),
    ("([d]<=CONVERT([date],sysdatetime()))", "function sysdatetime: not deterministic"),
    ("([d]>='1930-01-01' AND [d]<=dateadd(year,(-18),getdate()))", "function getdate: not deterministic"),
    ("(sysutcdatetime())", "function sysutcdatetime: not deterministic"),
    ("(newid())", "function newid: not deterministic"),
    ("(newsequentialid())", "function newsequentialid: not deterministic"),
    ("(isjson([c])>(0))", "function isjson"),
    ("([dbo].[f]([a])>(0))", "function dbo.f"),
    ("(hashbytes('MD5',[c]))", "function hashbytes"),
    ("(checksum([c]))", "function checksum"),
    ("(datename(month,[d]))", "datename of month: depends on language or DATEFIRST"),
    (
        "(CONVERT([varchar](20),[d]))",
        "conversion of date to varchar without a style: it depends on language or compatibility level",
    ),
    ("(CONVERT([varchar](20),[d],(107)))", "conversion of date to varchar with style 107"),
    ("(CONVERT([xml],[c]))", "type xml"),
    ("([nosuch]=(1))", "column nosuch, which the table does not have"),
];

#[test]
fn expressions_of_real_catalogs_compile() {
    for text in COMPILED {
        assert!(parse(text).is_ok(), "{text}");
        if let Err(unsupported) = compile(text, &column) {
            panic!("{text}: {unsupported}");
        }
    }
}

#[test]
fn what_is_refused_is_named() {
    for (text, what) in REFUSED {
        assert!(parse(text).is_ok(), "{text}");
        assert_eq!(compile(text, &column).map(|_| ()).unwrap_err().what, *what, "{text}");
    }
}

#[test]
fn results_have_the_types_that_catalogs_store() {
    let declared = |text: &str| compile(text, &column).unwrap().result_type().unwrap().declaration();
    // The columns TotalDue, LineTotal and SalesOrderNumber of AdventureWorks.
    assert_eq!(declared(COMPILED[3]), "money");
    assert_eq!(declared(COMPILED[4]), "numeric(38,6)");
    assert_eq!(declared(COMPILED[5]), "nvarchar(25)");
}
