//! The syntax of an expression, before its types are resolved.

/// A parsed expression. One type represents both conditions and scalar expressions, because only the compiler can
/// distinguish `(a)` from `(a=b)`.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// `NULL`.
    Null,
    /// A number as written in the text: digits with an optional decimal point and exponent.
    Number(String),
    /// A money constant without its `$`.
    Money(String),
    /// A string constant.
    Text {
        /// The characters of the string. A doubled quote in the text is stored as one quote.
        value: String,
        /// Whether the string is written with the prefix N.
        unicode: bool,
    },
    /// `0x..`.
    Binary(Vec<u8>),
    /// A column, or a word such as the date part of `dateadd`.
    Name {
        /// The name without brackets.
        name: String,
        /// Whether the name is written in brackets or double quotes. Such a name is never a keyword or date part.
        quoted: bool,
    },
    /// `-x`, `+x`, `~x`.
    Unary(UnaryOp, Box<Expr>),
    /// An operator with two operands.
    Operation(BinaryOp, Box<Expr>, Box<Expr>),
    /// Several terms joined by AND.
    And(Vec<Expr>),
    /// Several terms joined by OR.
    Or(Vec<Expr>),
    /// `NOT x`.
    Not(Box<Expr>),
    /// `x IS [NOT] NULL`.
    IsNull {
        /// The tested expression.
        value: Box<Expr>,
        /// Whether the form with NOT is used.
        negated: bool,
    },
    /// `x [NOT] LIKE pattern [ESCAPE e]`.
    Like {
        /// The expression that is matched with the pattern.
        value: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape character.
        escape: Option<Box<Expr>>,
        /// Whether the form with NOT is used.
        negated: bool,
    },
    /// `x [NOT] IN (..)`.
    In {
        /// The expression that is looked up in the list.
        value: Box<Expr>,
        /// The list.
        list: Vec<Expr>,
        /// Whether the form with NOT is used.
        negated: bool,
    },
    /// `x [NOT] BETWEEN low AND high`.
    Between {
        /// The tested expression.
        value: Box<Expr>,
        /// The lower bound.
        low: Box<Expr>,
        /// The upper bound.
        high: Box<Expr>,
        /// Whether the form with NOT is used.
        negated: bool,
    },
    /// CASE, in its simple form or its searched form.
    Case {
        /// The operand of the simple form, `CASE operand WHEN`; `None` in the searched form.
        operand: Option<Box<Expr>>,
        /// The pairs of WHEN and THEN.
        whens: Vec<(Expr, Expr)>,
        /// The value of ELSE.
        otherwise: Option<Box<Expr>>,
    },
    /// CONVERT, CAST, TRY_CONVERT and TRY_CAST.
    Convert {
        /// The target type.
        target: TypeName,
        /// The converted expression.
        value: Box<Expr>,
        /// The style, which is CONVERT's third argument.
        style: Option<Box<Expr>>,
        /// Whether this is TRY_CONVERT or TRY_CAST, which return NULL instead of an error.
        attempt: bool,
    },
    /// A function call.
    Call {
        /// The name of the function in lower case. If a schema is written, it comes first, followed by a period.
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
    /// The numbers in parentheses. MAX is `None`.
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
