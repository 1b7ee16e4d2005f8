//! Procedures, functions, views and triggers: their texts as they were typed.

use crate::Script;
use crate::definitions::ModuleText;

/// A procedure, function, view or trigger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// Object id.
    pub object_id: i32,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// `PROCEDURE`, `FUNCTION`, `VIEW` or `TRIGGER`.
    pub kind: &'static str,
    /// Its text, from CREATE on.
    pub text: ModuleText,
}

/// INFORMATION_SCHEMA and sys: their objects have no text in the database.
const SYSTEM_SCHEMAS: [i32; 2] = [3, 4];

impl Script<'_> {
    /// The procedures, functions, views and triggers of the database: views and functions first, then procedures, then
    /// triggers, each by schema and name. A view that rests on another may stand before it.
    pub fn definitions(&self) -> Vec<Module> {
        let mut modules: Vec<Module> = self
            .database
            .objects
            .values()
            .filter_map(|object| {
                let kind = kind(&object.type_code).filter(|_| !SYSTEM_SCHEMAS.contains(&object.schema_id))?;
                let text = self.definitions.object_text(object.id).cloned().unwrap_or(ModuleText::Unreadable);
                let text = match text {
                    ModuleText::Text(text) if !defines(&text) => ModuleText::Encrypted,
                    text => text,
                };
                let schema = self.database.schema_name(object).to_owned();
                Some(Module { object_id: object.id, schema, name: object.name.clone(), kind, text })
            })
            .collect();
        let order = |kind: &str| ["FUNCTION", "VIEW", "PROCEDURE", "TRIGGER"].iter().position(|other| *other == kind);
        modules.sort_by(|a, b| (order(a.kind), &a.schema, &a.name).cmp(&(order(b.kind), &b.schema, &b.name)));
        modules
    }
}

fn kind(type_code: &str) -> Option<&'static str> {
    Some(match type_code {
        "P" | "RF" => "PROCEDURE",
        "FN" | "IF" | "TF" => "FUNCTION",
        "V" => "VIEW",
        "TR" => "TRIGGER",
        _ => return None,
    })
}

/// Whether a text has the word CREATE, as every definition has: what WITH ENCRYPTION leaves is no text.
fn defines(text: &str) -> bool {
    const WORD: &str = "create";
    text.as_bytes().windows(WORD.len()).any(|window| window.eq_ignore_ascii_case(WORD.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_text_has_no_word_create() {
        assert!(defines("-- orders\r\nCREATE view v as select 1"));
        assert!(!defines("\u{8d20}\u{3df1}\u{91c2}"));
    }
}
