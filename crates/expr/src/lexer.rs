//! Splits the text of an expression into tokens.

use crate::Unsupported;

/// A token. A symbol of two characters is one token.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    /// A word, or a name in brackets or double quotes.
    Name { text: String, quoted: bool },
    /// A number as written: digits, point and exponent.
    Number(String),
    /// A money constant without its `$`.
    Money(String),
    /// A string. A doubled quote in the text is stored as one quote.
    Text { text: String, unicode: bool },
    /// `0x..`.
    Binary(Vec<u8>),
    /// An operator or a bracket.
    Symbol(&'static str),
}

const SYMBOLS: [&str; 22] = [
    "<>", "!=", "<=", ">=", "!<", "!>", "(", ")", ",", ".", "+", "-", "*", "/", "%", "&", "|", "^", "~", "=", "<", ">",
];

/// Splits `text` into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Unsupported> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Result<Option<Token>, Unsupported> {
        self.skip_blanks()?;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let second = self.peek(1);
        Ok(Some(match first {
            '\'' => Token::Text { text: self.delimited('\'')?, unicode: false },
            'N' if second == Some(b'\'') => {
                self.at += 1;
                Token::Text { text: self.delimited('\'')?, unicode: true }
            }
            '[' => Token::Name { text: self.delimited(']')?, quoted: true },
            '"' => Token::Name { text: self.delimited('"')?, quoted: true },
            '0' if matches!(second, Some(b'x' | b'X')) => self.binary()?,
            '0'..='9' => Token::Number(self.number().to_owned()),
            '.' if second.is_some_and(|byte| byte.is_ascii_digit()) => Token::Number(self.number().to_owned()),
            '$' => self.money()?,
            _ if is_word(first) && !first.is_ascii_digit() => self.word(),
            _ => self.symbol()?,
        }))
    }

    fn skip_blanks(&mut self) -> Result<(), Unsupported> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let rest = self.rest();
            if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else { return Err(Unsupported::syntax("a comment has no end")) };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    /// Reads a string or name up to its closing character. Inside the text, two closing characters in a row mean one
    /// such character.
    fn delimited(&mut self, close: char) -> Result<String, Unsupported> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(close) else {
                return Err(Unsupported::syntax("a string or name has no end"));
            };
            text.push_str(rest.get(..end).unwrap_or_default());
            self.at += end + 1;
            if self.rest().starts_with(close) {
                text.push(close);
                self.at += 1;
            } else {
                return Ok(text);
            }
        }
    }

    fn digits(&mut self) {
        while self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> &'t str {
        let start = self.at;
        self.digits();
        if self.peek(0) == Some(b'.') {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if self.peek(1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += 1 + sign;
                self.digits();
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn money(&mut self) -> Result<Token, Unsupported> {
        self.at += 1;
        let sign = if self.peek(0) == Some(b'-') { "-" } else { "" };
        self.at += sign.len();
        let digits = self.number();
        if !digits.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(Unsupported::syntax("$ without an amount"));
        }
        Ok(Token::Money(format!("{sign}{digits}")))
    }

    fn binary(&mut self) -> Result<Token, Unsupported> {
        let digits: Vec<u8> = self.rest().bytes().skip(2).take_while(u8::is_ascii_hexdigit).collect();
        self.at += 2 + digits.len();
        if self.rest().chars().next().is_some_and(is_word) {
            return Err(Unsupported::syntax("a binary constant continues with letters"));
        }
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
        // If the number of digits is odd, a zero is added in front: 0xA is 0x0A.
        let odd = digits.len() % 2;
        let first = digits.get(..odd).unwrap_or_default().iter().map(|&digit| value(digit));
        let others = digits.get(odd..).unwrap_or_default().chunks_exact(2);
        let others = others.map(|pair| pair.iter().fold(0, |byte, &digit| (byte << 4) | value(digit)));
        Ok(Token::Binary(first.chain(others).collect()))
    }

    fn word(&mut self) -> Token {
        let rest = self.rest();
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        self.at += end;
        Token::Name { text: rest.get(..end).unwrap_or_default().to_owned(), quoted: false }
    }

    fn symbol(&mut self) -> Result<Token, Unsupported> {
        let rest = self.rest();
        match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => {
                self.at += symbol.len();
                Ok(Token::Symbol(symbol))
            }
            None => Err(Unsupported::syntax(format!("an unexpected character at byte {}", self.at))),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '@' | '#' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_quotes_are_doubled_inside() {
        let quoted = |text: &str| Token::Name { text: text.into(), quoted: true };
        assert_eq!(tokens("[a]]b]").unwrap(), [quoted("a]b")]);
        assert_eq!(tokens("N'it''s'").unwrap(), [Token::Text { text: "it's".into(), unicode: true }]);
        assert_eq!(tokens("0xABC").unwrap(), [Token::Binary(vec![0x0A, 0xBC])]);
        assert_eq!(
            tokens("a<>1.5e+000").unwrap(),
            [Token::Name { text: "a".into(), quoted: false }, Token::Symbol("<>"), Token::Number("1.5e+000".into())]
        );
        assert_eq!(tokens("1--2\n+$3").unwrap()[1..], [Token::Symbol("+"), Token::Money("3".into())]);
    }

    #[test]
    fn what_has_no_end_is_an_error() {
        for text in ["'abc", "[abc", "/* abc", "$", "?", "0x1G"] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }
}
