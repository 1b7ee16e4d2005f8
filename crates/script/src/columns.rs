//! Writes the columns of a table in the form of CREATE TABLE.

use catalog::TableColumn;
use format::collation::CollationId;
use format::types::{TypeInfo, user_type, xtype};

use crate::definitions::{ColumnFacts, class};
use crate::{Script, comment, quote};

/// The bits of syscolpars.status (docs/format/catalog.md#syscolpars).
mod status {
    pub(super) const ROWGUID: u32 = 0x8;
    pub(super) const FILESTREAM: u32 = 0x20;
    pub(super) const PERSISTED: u32 = 0x40;
    pub(super) const HIDDEN: u32 = 0x2000;
    pub(super) const NOT_FOR_REPLICATION: u32 = 0x1_0000;
    pub(super) const COLUMN_SET: u32 = 0x200_0000;
    pub(super) const PERIOD_START: u32 = 0x1000_0000;
    pub(super) const PERIOD_END: u32 = 0x2000_0000;
}

/// The highest ID of a built-in type. The next constant is the ID of sysname, the only alias type that every database
/// has.
const LAST_BUILT_IN: i32 = 255;
const SYSNAME: i32 = 256;

impl Script<'_> {
    /// The definition of a column: `[Name] nvarchar(40) COLLATE ... NOT NULL`.
    pub(crate) fn column(&self, object_id: i32, column: &TableColumn) -> String {
        let name = quote(&column.name);
        let Some(facts) = self.definitions.columns.get(&(object_id, column.id)) else {
            return format!("{name} {}", comment("the catalog's row of this column could not be read"));
        };
        if column.is_computed() {
            return self.computed(object_id, column, &name);
        }
        let has = |bit: u32| column.status & bit != 0;
        if has(status::COLUMN_SET) {
            return format!("{name} xml COLUMN_SET FOR ALL_SPARSE_COLUMNS");
        }
        let mut text = format!("{name} {}", self.type_of(column, facts));
        if has(status::FILESTREAM) {
            text.push_str(" FILESTREAM");
        }
        // A column of an alias type has the collation of that type.
        if column.user_type <= SYSNAME
            && let Some(collation) = self.collation(facts)
        {
            text.push_str(&collation);
        }
        if column.is_sparse() {
            text.push_str(" SPARSE");
        }
        let period = [(status::PERIOD_START, "START"), (status::PERIOD_END, "END")];
        if let Some((_, end)) = period.into_iter().find(|(bit, _)| has(*bit)) {
            text.push_str(&format!(" GENERATED ALWAYS AS ROW {end}"));
            text.push_str(if has(status::HIDDEN) { " HIDDEN" } else { "" });
        }
        let identity =
            |identity: &&catalog::Identity| (identity.table_id, identity.column_id) == (object_id, column.id);
        if let Some(identity) = self.database.identities.iter().find(identity) {
            match identity.mark {
                Some(mark) => text.push_str(&format!(" IDENTITY({},{})", mark.seed, mark.increment)),
                None => text.push_str(&format!(" IDENTITY {}", comment("seed and increment are in an unknown form"))),
            }
            text.push_str(if has(status::NOT_FOR_REPLICATION) { " NOT FOR REPLICATION" } else { "" });
        }
        text.push_str(if column.is_not_null() { " NOT NULL" } else { " NULL" });
        text.push_str(if has(status::ROWGUID) { " ROWGUIDCOL" } else { "" });
        if let Some(default) = self.default(facts, &column.name) {
            text.push_str(&default);
        }
        if facts.rule_id != 0 {
            text.push_str(&format!(" {}", comment(&format!("bound to the rule {}", self.name_of(facts.rule_id)))));
        }
        text
    }

    fn computed(&self, object_id: i32, column: &TableColumn, name: &str) -> String {
        let text = self.definitions.text(class::COMPUTED, object_id, column.id.cast_signed());
        let Some(text) = self.expression(text) else {
            return format!(
                "{name} AS {}",
                comment("the expression of this computed column could not be read, or is not a single expression")
            );
        };
        let is_persisted = column.status & status::PERSISTED != 0;
        let persisted = if is_persisted { " PERSISTED" } else { "" };
        // Only a persisted computed column can be declared NOT NULL. For other computed columns, the engine infers
        // whether they can be NULL.
        let not_null = if is_persisted && column.is_not_null() { " NOT NULL" } else { "" };
        format!("{name} AS {text}{persisted}{not_null}")
    }

    /// The type of a column in the form of a declaration.
    pub(crate) fn type_of(&self, column: &TableColumn, facts: &ColumnFacts) -> String {
        match column.user_type {
            user_type::HIERARCHYID => "hierarchyid".to_owned(),
            user_type::GEOMETRY => "geometry".to_owned(),
            user_type::GEOGRAPHY => "geography".to_owned(),
            // A vector has a header of 8 bytes, then 4 bytes for each dimension.
            user_type::VECTOR => format!("vector({})", facts.info.length.saturating_sub(8) / 4),
            SYSNAME => "sysname".to_owned(),
            ..=LAST_BUILT_IN => self.built_in(facts),
            id => match self.definitions.types.get(&id) {
                Some(found) => {
                    let schema = self.database.schemas.get(&found.schema_id).map_or("dbo", String::as_str);
                    format!("{}.{}", quote(schema), quote(&found.name))
                }
                None => {
                    let why = comment(&format!("an alias type, id {id}, whose name is not in the catalog"));
                    format!("{} {why}", self.built_in(facts))
                }
            },
        }
    }

    pub(crate) fn built_in(&self, facts: &ColumnFacts) -> String {
        let info = TypeInfo { length: declared_length(facts.info), ..facts.info };
        match info.xtype {
            xtype::CLR => format!("varbinary(max) {}", comment("a CLR type whose name is not in the catalog")),
            xtype::XML if facts.xml_schema_id != 0 => {
                format!("xml {}", comment(&self.xml_schema(facts.xml_schema_id)))
            }
            xtype::TIMESTAMP => "rowversion".to_owned(),
            _ if info.name() == "unknown type" => comment(&format!("unknown type {}", info.xtype)),
            _ => info.declaration(),
        }
    }

    /// `COLLATE name` for a text column; `None` if the clause is not needed. If the collation differs from the
    /// collation of the database, but its name is unknown, the result is a comment.
    fn collation(&self, facts: &ColumnFacts) -> Option<String> {
        const TEXTS: [u8; 6] = [xtype::CHAR, xtype::VARCHAR, xtype::NCHAR, xtype::NVARCHAR, xtype::TEXT, xtype::NTEXT];
        if !TEXTS.contains(&facts.info.xtype) || facts.collation == CollationId(0) {
            return None;
        }
        let default = self.database.boot.as_ref().map(|boot| CollationId(boot.collation));
        match facts.collation.name() {
            Some(name) => Some(format!(" COLLATE {name}")),
            None if default == Some(facts.collation) => None,
            None => {
                Some(format!(" {}", comment(&format!("COLLATE: the name of id {:#x} is not known", facts.collation.0))))
            }
        }
    }

    /// The DEFAULT clause of a column, with the name of its constraint; a comment if the clause cannot be written.
    /// `None` if the column has no default.
    fn default(&self, facts: &ColumnFacts, column: &str) -> Option<String> {
        if facts.default_id == 0 {
            return None;
        }
        let text = self.expression(self.definitions.object_text(facts.default_id));
        let object = self.database.objects.get(&facts.default_id);
        Some(match (object, text) {
            // A default that was created with CREATE DEFAULT belongs to no table.
            (Some(object), Some(_)) if object.parent_id == 0 => {
                format!(" {}", comment(&format!("bound to the default {}", object.name)))
            }
            (Some(object), Some(text)) => format!(" CONSTRAINT {} DEFAULT {text}", quote(&object.name)),
            (None, Some(text)) => format!(" DEFAULT {text}"),
            (_, None) => {
                let what =
                    format!("the text of the default of {column} could not be read, or is not a single expression");
                format!(" {}", comment(&what))
            }
        })
    }

    pub(crate) fn name_of(&self, object_id: i32) -> String {
        self.table_name(object_id).unwrap_or_else(|| format!("object ID {object_id}"))
    }
}

/// The length in bytes from which the declaration of a type is made. For a fixed-length type, it is the length of a
/// value.
fn declared_length(info: TypeInfo) -> u16 {
    format::types::fixed_length(info).unwrap_or(info.length)
}
