//! What definitions need of the catalog beyond what every check reads.

use std::collections::BTreeMap;

use catalog::{Database, Stored, off_row_value, read_base_table, read_base_table_stored};
use format::bytes::{unsigned, utf16};
use format::collation::CollationId;
use format::types::TypeInfo;
use source::PageSource;

/// Longest text of an object that is read; the engine takes batches of 64 kB to some MB.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// What definitions need of the catalog beyond [`Database`].
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// Columns by table and column id.
    pub columns: BTreeMap<(i32, u32), ColumnFacts>,
    /// Indexes by table and index id.
    pub indexes: BTreeMap<(i32, i32), IndexFacts>,
    /// Place of an index column in the key by table, index and position in sysiscols; 0 if it is not part of it.
    pub key_ordinals: BTreeMap<(i32, i32, u32), u8>,
    /// Texts by class, object and sub id: see [`Self::text`].
    texts: BTreeMap<(u8, i32, i32), ModuleText>,
    /// Types by id.
    pub types: BTreeMap<i32, UserType>,
    /// Filegroups and partition schemes by id.
    pub data_spaces: BTreeMap<i32, String>,
    /// sysschobjs.status by object.
    pub object_status: BTreeMap<i32, u32>,
    /// Base tables that could not be read to their end, by name: what rests on them may be missing.
    pub incomplete: Vec<&'static str>,
}

/// A column as it is declared (docs/format/catalog.md#syscolpars).
#[derive(Clone, Debug, Default)]
pub struct ColumnFacts {
    /// Type, with length in bytes (0 for the max types), precision and scale.
    pub info: TypeInfo,
    /// Collation of a text.
    pub collation: CollationId,
    /// The default constraint or bound default; 0 without.
    pub default_id: i32,
    /// The bound rule; 0 without.
    pub rule_id: i32,
    /// The XML schema collection; 0 without.
    pub xml_schema_id: i32,
}

/// An index beyond [`catalog::Index`].
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexFacts {
    /// FILLFACTOR; 0 for the server's default.
    pub fill_factor: u8,
}

/// A type of sysscalartypes.
#[derive(Clone, Debug, Default)]
pub struct UserType {
    /// Schema id.
    pub schema_id: i32,
    /// Name.
    pub name: String,
}

/// A text of the catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModuleText {
    /// The text.
    Text(String),
    /// It is there, and no text: what `WITH ENCRYPTION` leaves.
    Encrypted,
    /// It could not be read.
    Unreadable,
}

impl ModuleText {
    /// The text, if it could be read.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Encrypted | Self::Unreadable => None,
        }
    }
}

/// Classes of sysobjvalues (docs/format/catalog.md#sysobjvalues).
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

/// Gets the values of a row of a base table, by the columns that were asked for.
type Visit<'a, D> = dyn FnMut(&mut D, &[Option<&[u8]>]) + 'a;

impl Definitions {
    /// Reads them. What cannot be read is missing; [`Self::incomplete`] names its tables.
    pub fn load(source: &dyn PageSource, database: &Database) -> Self {
        let mut found = Self::default();
        found.load_columns(source, database);
        found.load_indexes(source, database);
        found.load_texts(source, database);
        found.load_types(source, database);
        found
    }

    /// The text of a module, default or CHECK constraint (class 1, sub id 0 or 1), of a computed column or of an index's filter.
    pub(crate) fn text(&self, class: u8, object_id: i32, sub_id: i32) -> Option<&ModuleText> {
        self.texts.get(&(class, object_id, sub_id))
    }

    /// The text of a module, default, rule or CHECK constraint.
    pub fn object_text(&self, object_id: i32) -> Option<&ModuleText> {
        [1, 0].into_iter().find_map(|sub_id| self.text(class::MODULE, object_id, sub_id))
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
                // -1 for the max types.
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
        let columns = ["valclass", "objid", "subobjid", "value", "imageval"];
        let texts = &mut self.texts;
        let read = read_base_table_stored(source, database, SYSOBJVALUES, &columns, |_, values| {
            let [kind, object, sub_id, encoding, image] = values else { return };
            let kind = value(kind.plain()) as u8;
            if !matches!(kind, class::MODULE | class::COMPUTED | class::FILTER) {
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
            texts.insert((kind, int(object.plain()), int(sub_id.plain())), text);
        });
        if read.is_err() {
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

/// A number; 0 if NULL.
fn value(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, unsigned)
}

fn int(bytes: Option<&[u8]>) -> i32 {
    (value(bytes) as u32).cast_signed()
}

/// A text by its encoding (docs/format/expressions.md#encoding). One byte per character is in the database's code page; only
/// ASCII is the same in all of them.
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
