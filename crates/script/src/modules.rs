//! Procedures, functions, views and triggers, with the texts that their authors typed.

use std::collections::BTreeSet;

use source::PageSource;

use crate::Script;
use crate::definitions::{ModuleText, each_module_text};
use crate::module_kind::kind_of;

/// A procedure, function, view or trigger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// The object ID.
    pub object_id: i32,
    /// The name of the schema.
    pub schema: String,
    /// The name of the module.
    pub name: String,
    /// The kind: `PROCEDURE`, `FUNCTION`, `VIEW` or `TRIGGER`.
    pub kind: &'static str,
    /// The text of the definition, as its author typed it.
    pub text: ModuleText,
}

impl Script<'_> {
    /// The object IDs of the procedures, functions, views and triggers of the database.
    pub fn modules(&self) -> Vec<i32> {
        self.database.objects.values().filter(|object| kind_of(object).is_some()).map(|object| object.id).collect()
    }

    /// Calls `each` once with every procedure, function, view and trigger, in the order of the catalog. Only one text
    /// is in memory at a time, because their total size is not limited. Modules without a text come last, as
    /// unreadable.
    ///
    /// # Errors
    /// If `each` fails.
    pub fn each_module<E>(
        &self,
        source: &dyn PageSource,
        each: &mut dyn FnMut(Module) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut done, mut result) = (BTreeSet::new(), Ok(()));
        let mut hand_out = |object_id: i32, text: ModuleText| {
            let object = self.database.objects.get(&object_id);
            if let Some((object, kind)) = object.and_then(|object| Some((object, kind_of(object)?)))
                && result.is_ok()
                && done.insert(object_id)
            {
                let text = match text {
                    ModuleText::Text(text) if !defines(&text) => ModuleText::Encrypted,
                    text => text,
                };
                let (schema, name) = (self.database.schema_name(object).to_owned(), object.name.clone());
                result = each(Module { object_id, schema, name, kind, text });
            }
        };
        each_module_text(source, self.database, &mut hand_out);
        self.modules().into_iter().for_each(|object_id| hand_out(object_id, ModuleText::Unreadable));
        result
    }
}

/// Whether a text defines a module: after blanks and comments, it must begin with CREATE or ALTER and a kind of module.
/// This test rejects the bytes of an encrypted text. It also rejects all other statements, because a script must not
/// run them.
fn defines(text: &str) -> bool {
    const KINDS: [&str; 5] = ["PROC", "PROCEDURE", "FUNCTION", "VIEW", "TRIGGER"];
    let mut rest = text;
    let mut is_next = |wanted: &[&str]| {
        let Some((word, after)) = next_word(rest) else { return false };
        let fits = wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted));
        if fits {
            rest = after;
        }
        fits
    };
    let begins = is_next(&["CREATE", "ALTER"]);
    if begins && is_next(&["OR"]) {
        return is_next(&["ALTER"]) && is_next(&KINDS) && !text.contains('\0');
    }
    begins && is_next(&KINDS) && !text.contains('\0')
}

/// The first word after blanks and comments, and the text after this word. `None` if no word follows.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
        if rest.starts_with("--") {
            rest = rest.get(crate::expression::line_comment(rest)?..)?;
        } else if rest.starts_with("/*") {
            rest = rest.get(crate::expression::comment(rest)?..)?;
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            return (end > 0).then(|| rest.split_at(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_begins_with_create_after_comments() {
        for text in [
            "-- orders\r\nCREATE view v as select 1",
            "\r\n\t/* CREATE TABLE /* nested */ */create proc p as",
            "CREATE OR ALTER TRIGGER[t] on a",
            "create/**/procedure--\n p as",
            "\u{FEFF}CREATE FUNCTION f()",
        ] {
            assert!(defines(text), "{text}");
        }
        for text in [
            "",
            "\u{8d20}\u{3df1}\u{91c2}",
            "DROP TABLE a; CREATE VIEW v as select 1",
            "CREATE TABLE a (b int)",
            "/* CREATE VIEW v",
            "CREATE LOGIN a",
            "-- \rDROP TABLE a /*\nCREATE VIEW v */",
            "CREATE VIEW v as select '\0'",
        ] {
            assert!(!defines(text), "{text}");
        }
    }
}
