//! String literals of T-SQL, as a server reads them.

use std::collections::BTreeMap;

pub(super) type Variables = BTreeMap<String, String>;

/// The value of a literal `N'...'` at the start of a text, and the rest of the text.
fn literal(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix("N'")?;
    let mut value = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '\'' {
            value.push(c);
        } else if chars.next_if(|&(_, next)| next == '\'').is_some() {
            value.push('\'');
        } else {
            return Some((value, &rest[at + 1..]));
        }
    }
    None
}

/// The variables that are declared and set at the start of a statement, and the rest of it.
pub(super) fn variables(statement: &str) -> Option<(Variables, &str)> {
    let (mut variables, mut rest) = (Variables::new(), statement);
    while let Some(after) = rest.strip_prefix("DECLARE @") {
        let (declaration, after) = after.split_once(";\n")?;
        let (name, kind) = declaration.split_once(' ')?;
        if kind != if name == "database" { "sysname" } else { "nvarchar(max)" } {
            return None;
        }
        let (value, after) = literal(after.strip_prefix(&format!("SET @{name} = "))?)?;
        rest = after.strip_prefix(";\n")?;
        variables.insert(name.to_owned(), value);
    }
    Some((variables, rest))
}

/// The literals of a list such as `MOVE N'a' TO N'b', MOVE ...`. Without `second`, each item has one literal, and may end
/// with a parenthesis.
pub(super) fn pairs(list: &str, first: &str, second: Option<&str>) -> Option<Vec<(String, String)>> {
    let (mut pairs, mut rest) = (Vec::new(), list);
    loop {
        let (one, after) = literal(rest.strip_prefix(first)?.strip_prefix(' ')?)?;
        let (other, after) = match second {
            Some(second) => literal(after.strip_prefix(' ')?.strip_prefix(second)?.strip_prefix(' ')?)?,
            None => (String::new(), after),
        };
        pairs.push((one, other));
        let after = if first.starts_with('(') { after.strip_prefix(')')? } else { after };
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => return after.is_empty().then_some(pairs),
        }
    }
}
