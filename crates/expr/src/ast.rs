//! The syntax of an expression, before its types are resolved.

/// A parsed expression. Boolean and scalar expressions share one type: only the compiler distinguishes `(a)` from `(a=b)`.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// `NULL`.
    Null,
    /// A number as written, digits with an optional point and exponent.
    Number(String),
    /// A money constant without its `$`.
    Money(String),
    /// A string; `unicode` when written with the prefix N.
    Text {
        /// The characters, quotes undoubled.
        value: String,
        /// Written with the prefix N.
        unicode: bool,
    },
    /// `0x..`.
    Binary(Vec<u8>),
    /// A column, or a word such as the date part of `dateadd`.
    Name {
        /// The name, brackets removed.
        name: String,
        /// Written in brackets or double quotes: never a keyword or date part.
        quoted: bool,
    },
    /// `-x`, `+x`, `~x`.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands.
    Operation(BinaryOp, Box<Expr>, Box<Expr>),
    /// All terms of a chain of ANDs.
    And(Vec<Expr>),
    /// All terms of a chain of ORs.
    Or(Vec<Expr>),
    /// `NOT x`.
    Not(Box<Expr>),
    /// `x IS [NOT] NULL`.
    IsNull {
        /// The tested expression.
        value: Box<Expr>,
        /// Whether it is written with NOT.
        negated: bool,
    },
    /// `x [NOT] LIKE pattern [ESCAPE e]`.
    Like {
        /// The matched expression.
        value: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape character.
        escape: Option<Box<Expr>>,
        /// Whether it is written with NOT.
        negated: bool,
    },
    /// `x [NOT] IN (..)`.
    In {
        /// The expression that is looked up in the list.
        value: Box<Expr>,
        /// The list.
        list: Vec<Expr>,
        /// Whether it is written with NOT.
        negated: bool,
    },
    /// `x [NOT] BETWEEN low AND high`.
    Between {
        /// The tested expression.
        value: Box<Expr>,
        /// Lower bound.
        low: Box<Expr>,
        /// Upper bound.
        high: Box<Expr>,
        /// Whether it is written with NOT.
        negated: bool,
    },
    /// Both forms of CASE.
    Case {
        /// The operand of the simple form.
        operand: Option<Box<Expr>>,
        /// Pairs of WHEN and THEN.
        whens: Vec<(Expr, Expr)>,
        /// ELSE.
        otherwise: Option<Box<Expr>>,
    },
    /// CONVERT, CAST and their TRY_ forms.
    Convert {
        /// The target type.
        target: TypeName,
        /// The converted expression.
        value: Box<Expr>,
        /// CONVERT's third argument.
        style: Option<Box<Expr>>,
        /// Whether it is a TRY_ form, which gives NULL instead of an error.
        attempt: bool,
    },
    /// A function with its arguments, name in lower case, schema with a point.
    Call {
        /// The name.
        name: String,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `x COLLATE name`.
    Collate(Box<Expr>, String),
}

/// A type as named in CONVERT and CAST.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeName {
    /// The name in lower case.
    pub name: String,
    /// The numbers in parentheses; `None` is MAX.
    pub args: Vec<Option<u32>>,
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
}

/// Operators with two operands, except AND and OR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// A comparison.
    Compare(CompareOp),
}

/// Comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareOp {
    /// `=`
    Equal,
    /// `<>`, `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`, `!>`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`, `!<`
    GreaterOrEqual,
}
