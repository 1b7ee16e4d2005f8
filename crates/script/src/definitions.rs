//! Reads the facts of the catalog that are needed only for definitions, in addition to the facts that every check
//! reads.

use std::collections::BTreeMap;

use catalog::{Database, Stored, off_row_value, read_base_table, read_base_table_stored};
use format::bytes::{unsigned, utf16};
use format::collation::CollationId;
use format::types::TypeInfo;
use source::PageSource;

use crate::module_kind::is_module;

/// The most bytes of an object's text to read. The engine accepts batches of 64 kB to some MB.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The maximum total size, in bytes, of the texts to keep. The texts of modules are not kept, because the number of
/// modules is not limited: each text is read when its module is written.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// The facts of the catalog that definitions need and [`Database`] does not have.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// Columns by table and column ID.
    pub columns: BTreeMap<(i32, u32), ColumnFacts>,
    /// Indexes by table and index ID.
    pub indexes: BTreeMap<(i32, i32), IndexFacts>,
    /// The ordinal of an index column in the key, by table, index and position in sysiscols; 0 if the column is not
    /// part of the key.
    pub key_ordinals: BTreeMap<(i32, i32, u32), u8>,
    /// Texts by class, object and sub ID; see `text`.
    texts: BTreeMap<Key, ModuleText>,
    /// Types by ID.
    pub types: BTreeMap<i32, UserType>,
    /// XML schema collections by ID.
    pub xml_schemas: BTreeMap<i32, UserType>,
    /// Filegroups and partition schemes by ID.
    pub data_spaces: BTreeMap<i32, String>,
    /// The status of each object, from sysschobjs.status.
    pub object_status: BTreeMap<i32, u32>,
    /// The names of base tables that could not be read to their end. Definitions that depend on these tables may be
    /// incomplete.
    pub incomplete: Vec<&'static str>,
}

/// The facts with which a table declares a column (docs/format/catalog.md#syscolpars).
#[derive(Clone, Debug, Default)]
pub struct ColumnFacts {
    /// The type, with length in bytes (0 for the max types), precision and scale.
    pub info: TypeInfo,
    /// The collation, if the column contains text.
    pub collation: CollationId,
    /// The object ID of the default constraint or bound default; 0 without a default.
    pub default_id: i32,
    /// The object ID of the bound rule; 0 without a rule.
    pub rule_id: i32,
    /// The ID of the XML schema collection; 0 without one.
    pub xml_schema_id: i32,
}

/// The facts of an index that definitions need and [`catalog::Index`] does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexFacts {
    /// The FILLFACTOR; 0 for the server's default.
    pub fill_factor: u8,
}

/// A type in sysscalartypes, or another named item that belongs to a schema but is not an object.
#[derive(Clone, Debug, Default)]
pub struct UserType {
    /// The ID of the schema.
    pub schema_id: i32,
    /// The name of the item.
    pub name: String,
}

/// A text of the catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModuleText {
    /// The text was read.
    Text(String),
    /// The catalog has a value that is not text, as after `WITH ENCRYPTION`.
    Encrypted,
    /// The text could not be read.
    Unreadable,
}

impl ModuleText {
    /// The text; `None` if it could not be read.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Encrypted | Self::Unreadable => None,
        }
    }
}

/// The classes of sysobjvalues (docs/format/catalog.md#sysobjvalues).
pub(crate) mod class {
    pub(crate) const MODULE: u8 = 1;
    pub(crate) const COMPUTED: u8 = 2;
    pub(crate) const FILTER: u8 = 66;
}

const SYSROWSETS: i32 = 5;
const SYSSCHOBJS: i32 = 34;
const SYSCOLPARS: i32 = 41;
const SYSSCALARTYPES: i32 = 50;
const SYSIDXSTATS: i32 = 54;
const SYSISCOLS: i32 = 55;
const SYSOBJVALUES: i32 = 60;
const SYSCLSOBJS: i32 = 64;
const SYSNSOBJS: i32 = 44;

/// The class, object ID and sub ID of a text.
type Key = (u8, i32, i32);

/// A function that receives the requested columns of a row of a base table.
type Visit<'a, D> = dyn FnMut(&mut D, &[Option<&[u8]>]) + 'a;

impl Definitions {
    /// Reads the facts. Facts that cannot be read are missing, and [`Self::incomplete`] names their tables.
    pub fn load(source: &dyn PageSource, database: &Database) -> Self {
        let mut found = Self::default();
        found.load_columns(source, database);
        found.load_indexes(source, database);
        found.load_texts(source, database);
        found.load_types(source, database);
        found
    }

    /// The text of a default or CHECK constraint (class 1, sub ID 0 or 1), of a computed column, or of the filter of an
    /// index.
    pub(crate) fn text(&self, class: u8, object_id: i32, sub_id: i32) -> Option<&ModuleText> {
        self.texts.get(&(class, object_id, sub_id))
    }

    /// The estimated memory of the facts in bytes.
    pub fn bytes(&self) -> u64 {
        // A node of a `BTreeMap` has space for eleven entries and is at least half full.
        let of_entries = |count: usize, bytes: usize| 2 * (count * bytes) as u64;
        let texts: usize = self.texts.values().filter_map(ModuleText::text).map(str::len).sum();
        of_entries(self.columns.len(), size_of::<((i32, u32), ColumnFacts)>())
            + of_entries(self.indexes.len(), size_of::<((i32, i32), IndexFacts)>())
            + of_entries(self.key_ordinals.len(), size_of::<((i32, i32, u32), u8)>())
            + of_entries(self.texts.len(), size_of::<(Key, ModuleText)>() + 16)
            + of_entries(self.types.len() + self.xml_schemas.len() + self.data_spaces.len(), 2 * size_of::<UserType>())
            + of_entries(self.object_status.len(), size_of::<(i32, u32)>())
            + texts as u64
    }

    /// The text of a default, rule or CHECK constraint; `None` if the catalog has no text for this object.
    pub fn object_text(&self, object_id: i32) -> Option<&ModuleText> {
        [1, 0].into_iter().find_map(|sub_id| self.text(class::MODULE, object_id, sub_id))
    }

    /// Replaces every text with `text`.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self, text: &str) {
        self.texts.values_mut().for_each(|spoiled| *spoiled = ModuleText::Text(text.to_owned()));
    }

    fn scan(
        &mut self,
        source: &dyn PageSource,
        database: &Database,
        (object_id, table): (i32, &'static str),
        columns: &[&'static str],
        visit: &mut Visit<'_, Self>,
    ) {
        let read = read_base_table(source, database, object_id, columns, |_, values| visit(self, values));
        if read.is_err() {
            self.incomplete.push(table);
        }
    }

    fn load_columns(&mut self, source: &dyn PageSource, database: &Database) {
        const COLUMNS: [&str; 12] = [
            "id",
            "number",
            "colid",
            "xtype",
            "length",
            "prec",
            "scale",
            "collationid",
            "dflt",
            "chk",
            "xmlns",
            "utype",
        ];
        self.scan(source, database, (SYSCOLPARS, "syscolpars"), &COLUMNS, &mut |found, values| {
            let &[id, number, column, xtype, length, precision, scale, collation, default, rule, xml, _] = values
            else {
                return;
            };
            if number.map_or(0, unsigned) != 0 {
                return;
            }
            let length = value(length) as u16;
            let info = TypeInfo {
                xtype: value(xtype) as u8,
                // In the catalog, length -1 marks the max types.
                length: if length == u16::MAX { 0 } else { length },
                precision: value(precision) as u8,
                scale: value(scale) as u8,
            };
            let facts = ColumnFacts {
                info,
                collation: CollationId(value(collation) as u32),
                default_id: int(default),
                rule_id: int(rule),
                xml_schema_id: int(xml),
            };
            found.columns.insert((int(id), value(column) as u32), facts);
        });
    }

    fn load_indexes(&mut self, source: &dyn PageSource, database: &Database) {
        let columns = ["id", "indid", "fillfact"];
        self.scan(source, database, (SYSIDXSTATS, "sysidxstats"), &columns, &mut |found, values| {
            let &[id, index, fill_factor] = values else { return };
            found.indexes.insert((int(id), int(index)), IndexFacts { fill_factor: value(fill_factor) as u8 });
        });
        let columns = ["idmajor", "idminor", "subid", "tinyprop1", "status"];
        self.scan(source, database, (SYSISCOLS, "sysiscols"), &columns, &mut |found, values| {
            const INDEX_COLUMN: u64 = 0x2;
            let &[id, index, position, ordinal, status] = values else { return };
            if value(status) & INDEX_COLUMN != 0 {
                found.key_ordinals.insert((int(id), int(index), value(position) as u32), value(ordinal) as u8);
            }
        });
    }

    fn load_texts(&mut self, source: &dyn PageSource, database: &Database) {
        let mut left = MAX_KEPT_BYTES;
        let texts = &mut self.texts;
        let is_wanted = |(kind, object, _): Key| match kind {
            class::MODULE => !is_module(database, object),
            kind => matches!(kind, class::COMPUTED | class::FILTER),
        };
        let is_whole = each_text(source, database, &is_wanted, &mut |key, text| {
            let bytes = text.text().map_or(0, str::len);
            let text = if bytes > left { ModuleText::Unreadable } else { text };
            left = left.saturating_sub(bytes);
            texts.insert(key, text);
        });
        if !is_whole {
            self.incomplete.push("sysobjvalues");
        }
    }

    fn load_types(&mut self, source: &dyn PageSource, database: &Database) {
        let columns = ["id", "schid", "name"];
        self.scan(source, database, (SYSSCALARTYPES, "sysscalartypes"), &columns, &mut |found, values| {
            let &[id, schema, name] = values else { return };
            let name = name.map(utf16).unwrap_or_default();
            found.types.insert(int(id), UserType { schema_id: int(schema), name });
        });
        let columns = ["class", "id", "name", "nsid"];
        self.scan(source, database, (SYSNSOBJS, "sysnsobjs"), &columns, &mut |found, values| {
            const XML_SCHEMA_COLLECTION: u64 = 27;
            let &[kind, id, name, schema] = values else { return };
            if value(kind) == XML_SCHEMA_COLLECTION {
                let name = name.map(utf16).unwrap_or_default();
                found.xml_schemas.insert(int(id), UserType { schema_id: int(schema), name });
            }
        });
        let columns = ["class", "id", "name"];
        self.scan(source, database, (SYSCLSOBJS, "sysclsobjs"), &columns, &mut |found, values| {
            const DATA_SPACE: u64 = 31;
            let &[kind, id, name] = values else { return };
            if value(kind) == DATA_SPACE {
                found.data_spaces.insert(int(id), name.map(utf16).unwrap_or_default());
            }
        });
        let columns = ["id", "nsclass", "status"];
        self.scan(source, database, (SYSSCHOBJS, "sysschobjs"), &columns, &mut |found, values| {
            let &[id, class, status] = values else { return };
            if value(class) == 0 {
                found.object_status.insert(int(id), value(status) as u32);
            }
        });
        if database.gap(SYSROWSETS).is_some() {
            self.incomplete.push("sysrowsets");
        }
    }
}

/// Calls `each` with the text of one module after another, ordered by object ID.
pub(crate) fn each_module_text(source: &dyn PageSource, database: &Database, each: &mut dyn FnMut(i32, ModuleText)) {
    // The text of a module has sub ID 0 or 1. A numbered procedure has further texts with other sub IDs.
    let is_wanted =
        |(kind, object, sub_id): Key| kind == class::MODULE && matches!(sub_id, 0 | 1) && is_module(database, object);
    each_text(source, database, &is_wanted, &mut |(_, object, _), text| each(object, text));
}

/// Calls `each` with one wanted text after another. Returns `false` if the base table could not be read to its end.
fn each_text(
    source: &dyn PageSource,
    database: &Database,
    is_wanted: &dyn Fn(Key) -> bool,
    each: &mut dyn FnMut(Key, ModuleText),
) -> bool {
    let columns = ["valclass", "objid", "subobjid", "value", "imageval"];
    let read = read_base_table_stored(source, database, SYSOBJVALUES, &columns, |_, values| {
        let [kind, object, sub_id, encoding, image] = values else { return };
        let key = (value(kind.plain()) as u8, int(object.plain()), int(sub_id.plain()));
        if !is_wanted(key) {
            return;
        }
        let encoding = encoding.plain().and_then(|bytes| bytes.get(2).copied());
        let text = match *image {
            Stored::Plain(bytes) => decode(bytes, encoding),
            Stored::Complex(pointer) => match off_row_value(source, pointer, MAX_TEXT_BYTES) {
                Some(bytes) => decode(&bytes, encoding),
                None => ModuleText::Unreadable,
            },
            Stored::Null | Stored::Absent => return,
        };
        each(key, text);
    });
    read.is_ok()
}

/// A number from a column; 0 if the column is NULL.
fn value(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, unsigned)
}

fn int(bytes: Option<&[u8]>) -> i32 {
    (value(bytes) as u32).cast_signed()
}

/// Decodes a text by its stored encoding (docs/format/expressions.md#encoding). A text with one byte for each character
/// is in the database's code page; all code pages agree only on ASCII.
fn decode(bytes: &[u8], encoding: Option<u8>) -> ModuleText {
    match encoding {
        Some(1) => ModuleText::Text(utf16(bytes)),
        Some(2) if bytes.is_ascii() => ModuleText::Text(String::from_utf8_lossy(bytes).into_owned()),
        Some(2) => ModuleText::Text(bytes.iter().map(|&byte| char::from(byte)).collect()),
        _ => ModuleText::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_decoded_by_what_its_row_says_and_not_by_its_bytes() {
        assert_eq!(decode(b"(('')", Some(2)), ModuleText::Text("(('')".into()));
        assert_eq!(decode(&[0x28, 0x27, 0x27, 0x29], Some(1)), ModuleText::Text("\u{2728}\u{2927}".into()));
        assert_eq!(decode(b"x", None), ModuleText::Unreadable);
    }
}
