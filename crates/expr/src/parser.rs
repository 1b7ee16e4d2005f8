//! Parses tokens to an [`Expr`]. Catalogs contain expressions in two forms, and the parser reads both: the normalized
//! text of SQL Server 2005 and later, and text as typed in SQL Server 2000 (docs/format/expressions.md#form).

use crate::Unsupported;
use crate::ast::{BinaryOp, CompareOp, Expr, TypeName, UnaryOp};
use crate::lexer::{Token, tokens};

/// The deepest allowed nesting of parentheses, calls and CASEs, and of operators in a chain. Text with deeper nesting
/// is refused, because it would overflow the stack.
pub const MAX_DEPTH: u16 = 96;

/// Parses `text`.
pub fn parse(text: &str) -> Result<Expr, Unsupported> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, nesting: 0 };
    let parsed = parser.expression(OR)?;
    match parser.tokens.get(parser.at) {
        None => Ok(parsed.expr),
        Some(token) => Err(Unsupported::syntax(format!("unexpected {}", name_of(token)))),
    }
}

// The levels of Microsoft's table of operator precedence. OR is the weakest level.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;

/// An expression and the height of its tree.
struct Parsed {
    expr: Expr,
    depth: u16,
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: u16,
}

/// Adds the node `expr` above a tree of height `depth`. Returns an error if the new tree is too high.
fn above(depth: u16, expr: Expr) -> Result<Parsed, Unsupported> {
    if depth >= MAX_DEPTH { Err(too_deep()) } else { Ok(Parsed { expr, depth: depth + 1 }) }
}

fn too_deep() -> Unsupported {
    Unsupported { what: format!("an expression nested more than {MAX_DEPTH} deep") }
}

fn name_of(token: &Token) -> String {
    match token {
        Token::Name { text, .. } => format!("name {text}"),
        Token::Number(text) | Token::Money(text) => format!("number {text}"),
        Token::Text { .. } => "string".into(),
        Token::Binary(_) => "binary constant".into(),
        Token::Symbol(symbol) => (*symbol).into(),
    }
}

impl Parser {
    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Symbol(found)) if *found == symbol)
    }

    fn is_word_at(&self, at: usize, word: &str) -> bool {
        matches!(self.tokens.get(at), Some(Token::Name { text, quoted: false }) if text.eq_ignore_ascii_case(word))
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word_at(self.at, word);
        self.at += usize::from(found);
        found
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<(), Unsupported> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(symbol)) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Unsupported> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn expected(&self, what: &str) -> Unsupported {
        let found = self.tokens.get(self.at).map_or_else(|| "the end".into(), name_of);
        Unsupported::syntax(format!("expected {what}, found {found}"))
    }

    /// Parses an expression. Its top-level operators must bind at least as strongly as `weakest`.
    fn expression(&mut self, weakest: u8) -> Result<Parsed, Unsupported> {
        if self.nesting >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.nesting += 1;
        let mut left = self.operand(weakest)?;
        while let Some((level, next)) = self.operator(weakest) {
            left = match level {
                OR => self.chain(left, OR, "or")?,
                AND => self.chain(left, AND, "and")?,
                COMPARISON => self.comparison(left, next)?,
                _ => {
                    self.at += 1;
                    let right = self.expression(level + 1)?;
                    let Some(op) = next else { return Err(self.expected("an operator")) };
                    let depth = left.depth.max(right.depth);
                    above(depth, Expr::Operation(op, Box::new(left.expr), Box::new(right.expr)))?
                }
            };
        }
        self.nesting -= 1;
        Ok(left)
    }

    /// The next operator, if it binds at least as strongly as `weakest`.
    fn operator(&self, weakest: u8) -> Option<(u8, Option<BinaryOp>)> {
        let (level, op) = match self.tokens.get(self.at)? {
            Token::Symbol(symbol) => {
                let op = symbol_operator(symbol)?;
                (op_level(op), Some(op))
            }
            Token::Name { text, quoted: false } => match text.to_ascii_lowercase().as_str() {
                "or" => (OR, None),
                "and" => (AND, None),
                "is" | "like" | "in" | "between" | "not" => (COMPARISON, None),
                _ => return None,
            },
            _ => return None,
        };
        (level >= weakest).then_some((level, op))
    }

    /// Parses all terms of a chain of ANDs or ORs into one node, so that a long chain does not make the tree deep.
    fn chain(&mut self, first: Parsed, level: u8, word: &str) -> Result<Parsed, Unsupported> {
        let mut depth = first.depth;
        let mut terms = vec![first.expr];
        while self.take_word(word) {
            let term = self.expression(level + 1)?;
            depth = depth.max(term.depth);
            terms.push(term.expr);
        }
        above(depth, if level == OR { Expr::Or(terms) } else { Expr::And(terms) })
    }

    fn comparison(&mut self, left: Parsed, op: Option<BinaryOp>) -> Result<Parsed, Unsupported> {
        if let Some(op) = op {
            self.at += 1;
            let right = self.expression(SUM)?;
            let depth = left.depth.max(right.depth);
            return above(depth, Expr::Operation(op, Box::new(left.expr), Box::new(right.expr)));
        }
        if self.take_word("is") {
            let negated = self.take_word("not");
            self.expect_word("null")?;
            return above(left.depth, Expr::IsNull { value: Box::new(left.expr), negated });
        }
        let negated = self.take_word("not");
        let value = Box::new(left.expr);
        if self.take_word("like") {
            let pattern = self.expression(SUM)?;
            let mut depth = left.depth.max(pattern.depth);
            let escape = if self.take_word("escape") { Some(self.expression(SUM)?) } else { None };
            depth = depth.max(escape.as_ref().map_or(0, |escape| escape.depth));
            let escape = escape.map(|escape| Box::new(escape.expr));
            above(depth, Expr::Like { value, pattern: Box::new(pattern.expr), escape, negated })
        } else if self.take_word("in") {
            self.expect_symbol("(")?;
            let (list, depth) = self.list()?;
            above(depth.max(left.depth), Expr::In { value, list, negated })
        } else if self.take_word("between") {
            let low = self.expression(SUM)?;
            self.expect_word("and")?;
            let high = self.expression(SUM)?;
            let depth = left.depth.max(low.depth).max(high.depth);
            above(depth, Expr::Between { value, low: Box::new(low.expr), high: Box::new(high.expr), negated })
        } else {
            Err(self.expected("LIKE, IN or BETWEEN"))
        }
    }

    /// Parses one or more expressions up to the closing parenthesis.
    fn list(&mut self) -> Result<(Vec<Expr>, u16), Unsupported> {
        let (mut list, mut depth) = (Vec::new(), 0);
        loop {
            let item = self.expression(OR)?;
            depth = depth.max(item.depth);
            list.push(item.expr);
            if !self.take_symbol(",") {
                self.expect_symbol(")")?;
                return Ok((list, depth));
            }
        }
    }

    fn operand(&mut self, weakest: u8) -> Result<Parsed, Unsupported> {
        if weakest <= NOT && self.take_word("not") {
            let value = self.expression(NOT)?;
            return above(value.depth, Expr::Not(Box::new(value.expr)));
        }
        let signs = [("-", UnaryOp::Minus), ("+", UnaryOp::Plus), ("~", UnaryOp::BitNot)];
        for (symbol, op) in signs {
            if self.take_symbol(symbol) {
                // A minus sign belongs to the number after it, because 2147483648 without the sign does not fit an int.
                let next = self.tokens.get(self.at).cloned();
                if let (UnaryOp::Minus, Some(Token::Number(digits))) = (op, next) {
                    self.at += 1;
                    return above(0, Expr::Number(format!("-{digits}")));
                }
                let level = if op == UnaryOp::BitNot { PRODUCT + 1 } else { PRODUCT };
                let value = self.expression(level)?;
                return above(value.depth, Expr::Unary(op, Box::new(value.expr)));
            }
        }
        let mut parsed = self.primary()?;
        while self.take_word("collate") {
            let Some(Token::Name { text, .. }) = self.tokens.get(self.at).cloned() else {
                return Err(self.expected("a collation"));
            };
            self.at += 1;
            parsed = above(parsed.depth, Expr::Collate(Box::new(parsed.expr), text))?;
        }
        Ok(parsed)
    }

    fn primary(&mut self) -> Result<Parsed, Unsupported> {
        let Some(token) = self.tokens.get(self.at).cloned() else { return Err(self.expected("an operand")) };
        self.at += 1;
        match token {
            Token::Number(digits) => above(0, Expr::Number(digits)),
            Token::Money(digits) => above(0, Expr::Money(digits)),
            Token::Text { text, unicode } => above(0, Expr::Text { value: text, unicode }),
            Token::Binary(bytes) => above(0, Expr::Binary(bytes)),
            Token::Symbol("(") => {
                let inner = self.expression(OR)?;
                self.expect_symbol(")")?;
                Ok(inner)
            }
            Token::Name { text, quoted } => self.named(text, quoted),
            Token::Symbol(_) => {
                self.at -= 1;
                Err(self.expected("an operand"))
            }
        }
    }

    fn named(&mut self, text: String, quoted: bool) -> Result<Parsed, Unsupported> {
        let word = text.to_ascii_lowercase();
        if !quoted && word == "null" {
            return above(0, Expr::Null);
        }
        if !quoted && word == "case" {
            return self.case();
        }
        let mut name = text;
        let mut parts = 1;
        while self.take_symbol(".") {
            let Some(Token::Name { text, .. }) = self.tokens.get(self.at).cloned() else {
                return Err(self.expected("a name"));
            };
            self.at += 1;
            parts += 1;
            name = format!("{name}.{text}");
        }
        if self.take_symbol("(") {
            return match word.as_str() {
                "convert" | "try_convert" if parts == 1 => self.convert(word == "try_convert"),
                "cast" | "try_cast" if parts == 1 => self.cast(word == "try_cast"),
                _ => {
                    let (args, depth) = if self.take_symbol(")") { (Vec::new(), 0) } else { self.list()? };
                    above(depth, Expr::Call { name: name.to_ascii_lowercase(), args })
                }
            };
        }
        if parts > 1 {
            return Err(Unsupported { what: format!("name of several parts {name}") });
        }
        above(0, Expr::Name { name, quoted })
    }

    fn case(&mut self) -> Result<Parsed, Unsupported> {
        let mut depth = 0;
        let mut deepest = |parsed: Parsed| {
            depth = depth.max(parsed.depth);
            parsed.expr
        };
        let simple = !self.is_word_at(self.at, "when");
        let operand = if simple { Some(Box::new(deepest(self.expression(OR)?))) } else { None };
        let mut whens = Vec::new();
        while self.take_word("when") {
            let when = deepest(self.expression(OR)?);
            self.expect_word("then")?;
            whens.push((when, deepest(self.expression(OR)?)));
        }
        if whens.is_empty() {
            return Err(self.expected("WHEN"));
        }
        let otherwise = if self.take_word("else") { Some(Box::new(deepest(self.expression(OR)?))) } else { None };
        self.expect_word("end")?;
        above(depth, Expr::Case { operand, whens, otherwise })
    }

    fn convert(&mut self, attempt: bool) -> Result<Parsed, Unsupported> {
        let target = self.type_name()?;
        self.expect_symbol(",")?;
        let value = self.expression(OR)?;
        let style = if self.take_symbol(",") { Some(self.expression(OR)?) } else { None };
        self.expect_symbol(")")?;
        let depth = value.depth.max(style.as_ref().map_or(0, |style| style.depth));
        let style = style.map(|style| Box::new(style.expr));
        above(depth, Expr::Convert { target, value: Box::new(value.expr), style, attempt })
    }

    fn cast(&mut self, attempt: bool) -> Result<Parsed, Unsupported> {
        let value = self.expression(OR)?;
        self.expect_word("as")?;
        let target = self.type_name()?;
        self.expect_symbol(")")?;
        above(value.depth, Expr::Convert { target, value: Box::new(value.expr), style: None, attempt })
    }

    fn type_name(&mut self) -> Result<TypeName, Unsupported> {
        let Some(Token::Name { text, .. }) = self.tokens.get(self.at).cloned() else {
            return Err(self.expected("a type"));
        };
        self.at += 1;
        let mut target = TypeName { name: text.to_ascii_lowercase(), args: Vec::new() };
        if self.take_symbol(".") {
            return Err(Unsupported { what: format!("user type in schema {text}") });
        }
        if self.take_symbol("(") {
            loop {
                let number = match self.tokens.get(self.at) {
                    Some(Token::Number(digits)) => digits.parse().ok(),
                    _ => None,
                };
                if number.is_none() && !self.is_word_at(self.at, "max") {
                    return Err(self.expected("a length"));
                }
                self.at += 1;
                target.args.push(number);
                if !self.take_symbol(",") {
                    self.expect_symbol(")")?;
                    break;
                }
            }
        }
        Ok(target)
    }
}

fn symbol_operator(symbol: &str) -> Option<BinaryOp> {
    Some(match symbol {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Subtract,
        "*" => BinaryOp::Multiply,
        "/" => BinaryOp::Divide,
        "%" => BinaryOp::Modulo,
        "&" => BinaryOp::BitAnd,
        "|" => BinaryOp::BitOr,
        "^" => BinaryOp::BitXor,
        "=" => BinaryOp::Compare(CompareOp::Equal),
        "<>" | "!=" => BinaryOp::Compare(CompareOp::NotEqual),
        "<" => BinaryOp::Compare(CompareOp::Less),
        "<=" | "!>" => BinaryOp::Compare(CompareOp::LessOrEqual),
        ">" => BinaryOp::Compare(CompareOp::Greater),
        ">=" | "!<" => BinaryOp::Compare(CompareOp::GreaterOrEqual),
        _ => return None,
    })
}

fn op_level(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Compare(_) => COMPARISON,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo => PRODUCT,
        _ => SUM,
    }
}
