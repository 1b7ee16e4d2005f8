//! What is done with the base tables: IDs and structure stay, names of users' objects change, names of the system's
//! objects stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{Database, Level, Rowset, RowsetColumn, Stored};
use format::bytes::unsigned;
use format::record::Record;
use format::types::xtype;
use rows::{Origin, column_origins};

use super::{Action, NameKind, PlannedColumn, RowsetPlan};
use crate::kept::{Kept, Why};
use crate::letters::Form;

/// Which names of a base table stay.
#[derive(Clone, Debug)]
pub(crate) enum Names {
    /// None.
    All,
    /// The names of rows with these object IDs.
    ByObject { id: RowsetColumn, fixed: Arc<BTreeSet<i32>> },
    /// The names of rows with IDs of the system: up to `last`, and those of its roles and their schemas.
    ById { id: RowsetColumn, last: i64 },
}

/// The IDs of the roles that every database has, and of their schemas.
const ROLES: std::ops::RangeInclusive<i64> = 16_384..=16_399;
/// The last ID of a system type, of a system schema or principal, of the filegroup PRIMARY, and of the system's XML
/// schema collections, XML names, message types, contracts and services.
const LAST_TYPE: i64 = 256;
const LAST_SCHEMA: i64 = 4;
const LAST_FILEGROUP: i64 = 1;
const LAST_COMPONENT: i64 = 0xFFFF;

impl Names {
    /// Whether the name in a record stays. `None` if the record does not have the ID of its row, as on pages above the
    /// leaf level: then another record has the name, too.
    pub(crate) fn stays(&self, record: &Record<'_>, level: Level) -> Option<bool> {
        let id_of = |id: &RowsetColumn| match id.stored(level, record) {
            Stored::Plain(bytes) if (1..=8).contains(&bytes.len()) => {
                Some((unsigned(bytes) << (64 - 8 * bytes.len())).cast_signed() >> (64 - 8 * bytes.len()))
            }
            _ => None,
        };
        Some(match self {
            Self::All => false,
            Self::ByObject { id, fixed } => fixed.contains(&i32::try_from(id_of(id)?).ok()?),
            Self::ById { id, last } => id_of(id).map(|id| id <= *last || ROLES.contains(&id))?,
        })
    }
}

/// The columns of sysobjvalues that tell what a definition is.
#[derive(Clone, Debug)]
pub(crate) struct Definitions {
    pub(crate) class: RowsetColumn,
    pub(crate) object: RowsetColumn,
    pub(crate) value: RowsetColumn,
}

/// The objects whose names and columns stay: base tables and what belongs to them, internal tables, and the queues and
/// services of every database.
pub(super) fn fixed_objects(database: &Database) -> Arc<BTreeSet<i32>> {
    const LAST_OF_SYSTEM: i32 = 100;
    const QUEUES: [&str; 3] = ["QueryNotificationErrorsQueue", "EventNotificationErrorsQueue", "ServiceBrokerQueue"];
    let is_fixed = |object: &&catalog::Object| {
        object.id <= LAST_OF_SYSTEM
            || matches!(object.type_code.as_str(), "S" | "IT")
            || object.type_code == "SQ" && QUEUES.contains(&object.name.as_str())
    };
    let mut fixed: BTreeSet<i32> = database.objects.values().filter(is_fixed).map(|object| object.id).collect();
    let of_fixed = |object: &&catalog::Object| fixed.contains(&object.parent_id);
    let parts: Vec<i32> = database.objects.values().filter(of_fixed).map(|object| object.id).collect();
    fixed.extend(parts);
    Arc::new(fixed)
}

/// The base tables with the most names and definitions. The catalog may have lost their own names.
const TABLES: [(i32, &str); 9] = [
    (8, "sysfiles1"),
    (23, "sysphfg"),
    (27, "sysowners"),
    (34, "sysschobjs"),
    (41, "syscolpars"),
    (50, "sysscalartypes"),
    (54, "sysidxstats"),
    (60, "sysobjvalues"),
    (64, "sysclsobjs"),
];

/// The plan for a base table or an index on it.
pub(super) fn plan(database: &Database, rowset: &Rowset, fixed: &Arc<BTreeSet<i32>>, kept: &mut Kept) -> RowsetPlan {
    let name = database.object_name(rowset.object_id);
    let known = database.columns.get(&rowset.object_id).map(Vec::as_slice).unwrap_or_default();
    let origins = if rowset.index_id > 1 { column_origins(database, rowset) } else { None };
    let name_of = |column: &RowsetColumn| {
        let id = match (&origins, rowset.index_id) {
            (_, 0 | 1) => Some(column.id),
            (Some(origins), _) => {
                origins.iter().find(|(id, _)| *id == column.id).and_then(|(_, origin)| match origin {
                    Origin::Column(id) => Some(*id),
                    _ => None,
                })
            }
            (None, _) => None,
        };
        known.iter().find(|known| Some(known.id) == id).map_or("", |known| known.name.as_str())
    };
    let find = |wanted: &str| rowset.layout.columns.iter().find(|column| name_of(column) == wanted).cloned();
    let always = TABLES.iter().find(|(id, _)| *id == rowset.object_id).map(|(_, name)| *name);
    let table = always.unwrap_or(name.trim_start_matches("sys."));
    let kind = kind_of(table);
    let names = names_of(table, find, fixed);
    let is_values = table == "sysobjvalues";
    let definitions =
        if is_values && rowset.index_id <= 1 { find("valclass").zip(find("objid")).zip(find("value")) } else { None };
    let definitions = definitions.map(|((class, object), value)| Definitions { class, object, value });
    let is_long = |column: &RowsetColumn| matches!(column.info.length, 0 | 0xFFFF);
    let action = |column: &RowsetColumn| match (column.info.xtype, &names) {
        (xtype::NVARCHAR, Some(_)) if is_long(column) => Action::Value,
        (xtype::NCHAR | xtype::NVARCHAR, Some(names)) => Action::Name(kind, names.clone()),
        (xtype::SQL_VARIANT, _) if definitions.is_some() => Action::DefinitionValue,
        (xtype::SQL_VARIANT, _) if matches!(table, "sysxprops" | "sysmultiobjvalues") => Action::Property,
        (xtype::VARBINARY, _) if definitions.is_some() && name_of(column) == "imageval" => Action::Definition,
        (xtype::VARBINARY, _) if has_secret(table, name_of(column)) => match is_long(column) {
            true => Action::Value,
            false => Action::Text(Form::Bytes),
        },
        _ => Action::Keep,
    };
    let has_names = |column: &RowsetColumn| matches!(column.info.xtype, xtype::NCHAR | xtype::NVARCHAR);
    let lacks_ids = names.is_none() && rowset.layout.columns.iter().any(has_names);
    if lacks_ids || is_values && rowset.index_id <= 1 && definitions.is_none() {
        kept.note(Why::Damaged, &name);
    }
    let columns = rowset.layout.columns.iter();
    let columns = columns.map(|column| PlannedColumn { column: column.clone(), action: action(column) }).collect();
    RowsetPlan { name, columns, definitions, is_base_table: true, ..RowsetPlan::of(rowset) }
}

/// Which names are compared with those of a base table.
fn kind_of(table: &str) -> NameKind {
    match table {
        "sysschobjs" | "syscolpars" | "sysidxstats" | "sysscalartypes" | "sysclsobjs" | "sysowners" | "sysphfg"
        | "syssoftobjrefs" | "sysnsobjs" | "sysbinobjs" | "sysbinsubobjs" | "sysqnames" => NameKind::Object,
        _ => NameKind::Other,
    }
}

/// Which names of a base table stay. `find` finds a column by its name. `None` if the column with the IDs is unknown.
fn names_of(table: &str, find: impl Fn(&str) -> Option<RowsetColumn>, fixed: &Arc<BTreeSet<i32>>) -> Option<Names> {
    let by_id = |column: &str, last: i64| find(column).map(|id| Names::ById { id, last });
    match table {
        "sysschobjs" | "syscolpars" | "sysidxstats" => {
            find("id").map(|id| Names::ByObject { id, fixed: Arc::clone(fixed) })
        }
        "sysscalartypes" => by_id("id", LAST_TYPE),
        "sysclsobjs" | "sysowners" => by_id("id", LAST_SCHEMA),
        "sysphfg" => by_id("fgid", LAST_FILEGROUP).or_else(|| by_id("id", LAST_FILEGROUP)),
        "sysnsobjs" | "sysbinobjs" => by_id("id", LAST_COMPONENT),
        "sysbinsubobjs" => by_id("idmajor", LAST_COMPONENT),
        "sysqnames" => by_id("nid", LAST_COMPONENT),
        _ => Some(Names::All),
    }
}

/// Whether a column of a base table has a key, a hash of a password, a certificate, or a message of Service Broker.
fn has_secret(table: &str, column: &str) -> bool {
    matches!(
        table,
        "syscerts" | "sysasymkeys" | "sysobjkeycrypts" | "sysxmitqueue" | "sysxmitbody" | "sysdercv" | "syslnklgns"
    ) || matches!((table, column), ("sysowners", "password") | ("sysxlgns", "pwdhash") | ("syssqlguides", "hash"))
        || (table, column) == ("sysmultiobjvalues", "imageval")
}
