//! T-SQL expressions as stored in the catalog: computed columns, filters of indexes, check constraints.
//!
//! [`compile`] resolves all types by SQL Server's rules. If an expression uses anything that is not completely
//! supported, `compile` returns an error that names the unsupported feature ([`Unsupported`]). The index or column is
//! then reported as *not verified*. [`Program::evaluate`] computes the value for a row from the stored bytes, or
//! reports that the value is uncertain ([`Undecided`]). It never guesses, because a wrong value would cause a false
//! alarm.
//!
//! ```
//! use expr::{ColumnType, Datum, Scratch, compile};
//! use format::types::TypeInfo;
//!
//! // The computed column of AdventureWorks' SalesOrderHeader.
//! let int = ColumnType { info: TypeInfo::from_ti(56), nullable: false, ..ColumnType::default() };
//! let text = "(isnull(N'SO'+CONVERT([nvarchar](23),[SalesOrderID],0),N'*** ERROR ***'))";
//! let program = compile(text, &|name| (name == "SalesOrderID").then_some(int)).unwrap();
//! assert_eq!(program.columns(), ["SalesOrderID"]);
//! assert_eq!(program.result_type().unwrap().declaration(), "nvarchar(25)");
//!
//! let (row, mut scratch) = ([Some(&[0x9B, 0xAA, 0, 0][..])], Scratch::default());
//! let value = program.evaluate(&row, &mut scratch).unwrap();
//! assert_eq!(value.to_string(), "SO43675");
//! assert!(matches!(value, Datum::Unicode(_)));
//!
//! // A row is not in the index if the filter is UNKNOWN for it.
//! let filter = compile("([SalesOrderID]>(100))", &|_| Some(ColumnType { nullable: true, ..int })).unwrap();
//! assert!(!filter.matches(&[None], &mut scratch).unwrap());
//! ```
//!
//! # What is undecided, and why
//!
//! * **Errors.** Overflow, division by zero and conversions that fail. SQL Server would have refused the row, or stored
//!   NULL, depending on the session options at that time. A `TRY_CONVERT` or `TRY_CAST` that fails is undecided too,
//!   because it is not completely documented which spellings fail.
//! * **Collations.** Comparisons of strings that `format::collation` cannot decide. It decides every comparison in a
//!   BIN2 collation. In other collations, it decides a comparison if it can prove the first difference, or the equality
//!   of the strings at all levels. A search (LIKE, CHARINDEX, REPLACE) is undecided if it is uncertain whether two
//!   compared characters are equal, or if the character after the match may belong to the match, like a combining
//!   accent.
//! * **Code pages.** Char values and literals with a character that may be missing in the code page of their collation,
//!   or with a code page that has two bytes per character. Also positions in such texts, and surrogate pairs in string
//!   functions.
//! * **Language and session.** Names of months and weekdays, results that depend on DATEFIRST, and dates like
//!   `2020-01-02` as datetime, because they depend on DATEFORMAT.
//! * **Undocumented rounding.** Products of money at exactly half, negative quotients of money, sums of decimals that
//!   lose digits, thirds of a millisecond, floats rounded to decimals, the last bit of transcendental functions, and
//!   float arithmetic with a rounded result. Also everything that compatibility level 130 changed (Microsoft, KB
//!   4010261), because rows may have been written before that change.
//! * **Unavailable values.** Values that are stored off the row, and bytes that are not a value of their type.
//!
//! Expressions that depend on the current time (`getdate()`) or on random numbers (`newid()`) are refused at compile
//! time, because their values cannot be checked.

// Code may index only after a bounds check. A comment on each indexing line names the check.
#![warn(clippy::indexing_slicing)]
#![warn(missing_docs)]

pub mod ast;
mod calendar;
mod compare;
mod compile;
mod convert;
mod cost;
mod env;
mod integers;
mod lexer;
mod like;
mod moment;
mod node;
mod numeric;
mod parser;
mod program;
mod size;
mod steps;
pub mod table;
mod types;
mod value;

use std::fmt;

pub use compile::{compile, compile_within};
pub use env::{Field, Row, Scratch};
pub use integers::{IntegerScratch, Integers, OfTwoInts, Selection};
pub use parser::{MAX_DEPTH, parse};
pub use program::Program;
pub use steps::STEPS_PER_ROW;
pub use types::ColumnType;
pub use value::{Datum, Value, decode, encode, encode_into};

/// The reason why an expression cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// The unsupported function, type, conversion or style, or the place of a syntax error.
    pub what: String,
}

impl Unsupported {
    fn syntax(what: impl fmt::Display) -> Self {
        Self { what: format!("syntax: {what}") }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Unsupported {}

/// The reason why an expression has no certain value for a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undecided {
    /// The reason as text. Only a few different texts exist, so that evaluations can be counted by reason.
    pub reason: &'static str,
}

impl Undecided {
    /// Whether the evaluation would need more steps than its limit allows.
    pub fn is_too_expensive(self) -> bool {
        self == steps::TOO_EXPENSIVE
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl std::error::Error for Undecided {}
