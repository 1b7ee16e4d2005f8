//! What is done with the base tables: IDs and structure stay, names of users' objects change, names of the system's
//! objects stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{Database, Level, Rowset, RowsetColumn, Stored};
use format::bytes::unsigned;
use format::record::Record;
use format::types::xtype;
use rows::{Origin, column_origins};

use crate::plan::{Action, NameKind, PlannedColumn, RowsetPlan};

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
/// The last ID of a system type, of a system schema or principal, and of the filegroup PRIMARY.
const LAST_TYPE: i64 = 256;
const LAST_SCHEMA: i64 = 4;
const LAST_FILEGROUP: i64 = 1;

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
pub(crate) fn fixed_objects(database: &Database) -> Arc<BTreeSet<i32>> {
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

/// The plan for a base table or an index on it.
pub(crate) fn plan(database: &Database, rowset: &Rowset, name: String, fixed: &Arc<BTreeSet<i32>>) -> RowsetPlan {
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
    let kind = match name.trim_start_matches("sys.") {
        "sysfiles1" | "sysprufiles" | "sysdbfiles" | "sysxprops" => NameKind::File,
        _ => NameKind::Object,
    };
    let names = match name.trim_start_matches("sys.") {
        "sysschobjs" | "syscolpars" | "sysidxstats" => {
            find("id").map(|id| Names::ByObject { id, fixed: Arc::clone(fixed) })
        }
        "sysscalartypes" => find("id").map(|id| Names::ById { id, last: LAST_TYPE }),
        "sysclsobjs" | "sysowners" => find("id").map(|id| Names::ById { id, last: LAST_SCHEMA }),
        "sysphfg" => find("fgid").or_else(|| find("id")).map(|id| Names::ById { id, last: LAST_FILEGROUP }),
        "sysfiles1" | "sysprufiles" | "sysdbfiles" | "sysxprops" | "syssoftobjrefs" => Some(Names::All),
        _ => None,
    };
    let is_values = name.trim_start_matches("sys.") == "sysobjvalues";
    let definitions =
        if is_values && rowset.index_id <= 1 { find("valclass").zip(find("objid")).zip(find("value")) } else { None };
    let definitions = definitions.map(|((class, object), value)| Definitions { class, object, value });
    let is_properties = name.trim_start_matches("sys.") == "sysxprops";
    let action = |column: &RowsetColumn| match (column.info.xtype, &names) {
        (xtype::NCHAR | xtype::NVARCHAR, Some(names)) => Action::Name(kind, names.clone()),
        (xtype::SQL_VARIANT, _) if is_properties => Action::Variant,
        (xtype::VARBINARY, _) if definitions.is_some() && name_of(column) == "imageval" => Action::Definition,
        _ => Action::Keep,
    };
    let columns = rowset.layout.columns.iter();
    let columns = columns.map(|column| PlannedColumn { column: column.clone(), action: action(column) }).collect();
    RowsetPlan { name, columns, definitions, ..RowsetPlan::default() }
}
